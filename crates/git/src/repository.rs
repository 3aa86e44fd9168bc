//! Finds a repository and tells what it is, without starting git: every preflight comes through here.

use crate::config::Config;
use crate::{Error, Kind, Oid};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One checkout of a repository, or a bare repository.
///
/// Two checkouts of one repository have the same [`common_dir`](Repository::common_dir): that is the
/// repository's identity. A submodule is a repository of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    toplevel: Option<PathBuf>,
    git_dir: PathBuf,
    common_dir: PathBuf,
    main_checkout: Option<PathBuf>,
    ignore_case: bool,
    reftable: bool,
    hooks_path: Option<String>,
}

/// Where a checkout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// On a branch that has commits.
    Branch {
        /// Without `refs/heads/`.
        name: String,
        /// Its tip.
        at: Oid,
    },
    /// On a commit and on no branch.
    Detached(Oid),
    /// On a branch without commits.
    Unborn {
        /// Without `refs/heads/`.
        name: String,
    },
}

impl Head {
    /// Returns the branch, if it is on one.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Head::Branch { name, .. } | Head::Unborn { name } => Some(name),
            Head::Detached(_) => None,
        }
    }

    /// Returns the commit, if there is one.
    pub fn oid(&self) -> Option<&Oid> {
        match self {
            Head::Branch { at, .. } | Head::Detached(at) => Some(at),
            Head::Unborn { .. } => None,
        }
    }
}

/// Returns the path that the file at `path` has in the main checkout.
///
/// A path inside a linked worktree becomes the path of the same file in the main checkout (for a bare
/// repository: below the folder that holds it); any other path stays as it is. A submodule of a linked
/// worktree follows its superproject. `path` is absolute with its links already followed; it need not
/// exist. Protocol, section 2.
pub fn logical(path: &Path) -> PathBuf {
    let mut inner: Vec<PathBuf> = Vec::new();
    let mut at = path.to_owned();
    while let Some((repository, found_at)) = discover(&at) {
        let Ok(below) = at.strip_prefix(&found_at) else {
            break;
        };
        inner.push(below.to_owned());
        at = match repository.is_linked_worktree() {
            true => repository.home().to_owned(),
            false => found_at,
        };
        // Whatever holds this checkout may itself be a linked worktree.
        match (at.parent(), at.file_name()) {
            (Some(parent), Some(name)) if discover(parent).is_some() => {
                inner.push(PathBuf::from(name));
                at = parent.to_owned();
            }
            _ => break,
        }
    }
    inner
        .iter()
        .rev()
        .filter(|part| !part.as_os_str().is_empty())
        .for_each(|part| at.push(part));
    at
}

/// Walks up from `path` to the first folder that is a checkout or a bare repository.
fn discover(path: &Path) -> Option<(Repository, PathBuf)> {
    path.ancestors()
        .find_map(|folder| Some((Repository::at(folder)?, folder.to_owned())))
}

impl Repository {
    /// Finds the repository that `path` lies in; `None` when there is none.
    ///
    /// `path` is absolute; it need not exist.
    pub fn find(path: &Path) -> Option<Repository> {
        discover(path).map(|(repository, _)| repository)
    }

    /// Opens the repository whose checkout, or whose bare folder, is exactly `folder`.
    pub fn at(folder: &Path) -> Option<Repository> {
        let dot_git = folder.join(".git");
        let (git_dir, holder) = match fs::symlink_metadata(&dot_git) {
            Ok(found) if found.is_file() => (follow_gitfile(&dot_git)?, Some(folder)),
            Ok(_) if looks_like_git_dir(&dot_git) => (dot_git, Some(folder)),
            _ if folder.file_name() != Some(OsStr::new(".git")) && looks_like_git_dir(folder) => {
                (folder.to_owned(), None)
            }
            _ => return None,
        };
        let git_dir = fs::canonicalize(git_dir).ok()?;
        let common_dir = match read_line(&git_dir.join("commondir")) {
            Some(to) => fs::canonicalize(git_dir.join(to)).ok()?,
            None => git_dir.clone(),
        };
        let linked = git_dir != common_dir;
        let config = Config::read(&common_dir.join("config"));
        let bare = config.flag("core.bare") == Some(true);
        let toplevel = match holder {
            Some(holder) if linked || !bare => Some(fs::canonicalize(holder).ok()?),
            _ => None,
        };
        let main_checkout = match (linked, bare) {
            (_, true) => None,
            (false, false) => toplevel.clone(),
            // A submodule's directory lies elsewhere and says where its files are. Any other is where its
            // files are: a configuration that claims otherwise would lead paths astray.
            (true, false) => dot_git_parent(&common_dir).or_else(|| {
                let to = config.get("core.worktree")?;
                fs::canonicalize(common_dir.join(to)).ok()
            }),
        };
        Some(Repository {
            toplevel,
            main_checkout,
            ignore_case: config.flag("core.ignorecase") == Some(true),
            reftable: config.get("extensions.refstorage") == Some("reftable"),
            hooks_path: config.get("core.hookspath").map(str::to_owned),
            git_dir,
            common_dir,
        })
    }

    /// Returns the folder of this checkout; `None` for a bare repository.
    pub fn toplevel(&self) -> Option<&Path> {
        self.toplevel.as_deref()
    }

    /// Returns this checkout's git directory.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the git directory that all checkouts share: the identity of the repository.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Returns the folder of the main checkout; `None` when the repository is bare.
    pub fn main_checkout(&self) -> Option<&Path> {
        self.main_checkout.as_deref()
    }

    /// Returns the folder that logical paths are counted from: the main checkout, or for a bare
    /// repository the folder that holds it.
    pub fn home(&self) -> &Path {
        let holder = self.common_dir.parent().unwrap_or(&self.common_dir);
        self.main_checkout.as_deref().unwrap_or(holder)
    }

    /// Tells whether this is a worktree next to the main checkout.
    pub fn is_linked_worktree(&self) -> bool {
        self.git_dir != self.common_dir
    }

    /// Tells whether `core.ignorecase` is set in the repository's own configuration.
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// Returns `core.hooksPath` as the repository's own configuration has it.
    pub fn hooks_path(&self) -> Option<&str> {
        self.hooks_path.as_deref()
    }

    /// Tells whether refs are kept in tables, which only git can read.
    pub(crate) fn has_reftable(&self) -> bool {
        self.reftable
    }

    /// Tells whether history has been cut off by a shallow clone or fetch.
    pub fn is_shallow(&self) -> bool {
        fs::metadata(self.common_dir.join("shallow")).is_ok_and(|found| found.len() > 0)
    }

    /// Returns the folder that git is started in.
    pub(crate) fn folder(&self) -> &Path {
        self.toplevel.as_deref().unwrap_or(&self.common_dir)
    }

    /// Reads where the checkout stands from its files; `None` when only git can tell
    /// ([`Door::head`](crate::Door::head) asks it then).
    pub fn head_from_files(&self) -> Option<Head> {
        if self.reftable {
            return None;
        }
        let content = read_line(&self.git_dir.join("HEAD"))?;
        let content = content.to_str()?;
        let Some(target) = content.strip_prefix("ref:").map(str::trim) else {
            return Oid::parse(content).map(Head::Detached);
        };
        let name = target.strip_prefix("refs/heads/")?.to_owned();
        match self.ref_from_files(target) {
            Ok(Some(at)) => Some(Head::Branch { name, at }),
            Ok(None) => Some(Head::Unborn { name }),
            Err(_) => None,
        }
    }

    /// Tells from files whether anybody has stashed anything: the stash is one for all worktrees. `None` when only
    /// git can tell.
    pub fn has_stash(&self) -> Option<bool> {
        let found = self.ref_from_files("refs/stash").ok()?;
        Some(found.is_some())
    }

    /// Reads a shared ref (`refs/heads/main`, `refs/stash`) from its files; an error means: ask git.
    pub(crate) fn ref_from_files(&self, name: &str) -> io::Result<Option<Oid>> {
        let odd = || io::Error::from(io::ErrorKind::InvalidData);
        if self.reftable || !name.starts_with("refs/") || name.split('/').any(|part| part == "..") {
            return Err(odd());
        }
        match fs::read(self.common_dir.join(name)) {
            Ok(bytes) => return Oid::from_bytes(&bytes).map(Some).ok_or_else(odd), // a symbolic ref is odd
            Err(e) if is_absent(&e) => {}
            Err(e) => return Err(e),
        }
        let packed = match fs::read(self.common_dir.join("packed-refs")) {
            Ok(packed) => packed,
            Err(e) if is_absent(&e) => return Ok(None),
            Err(e) => return Err(e),
        };
        let line = packed.split(|b| *b == b'\n').find_map(|line| {
            let at = line.iter().position(|b| *b == b' ')?;
            (&line[at + 1..] == name.as_bytes()).then(|| &line[..at])
        });
        Ok(line.and_then(Oid::from_bytes))
    }

    /// Reads from files which checkout has a branch, half-made ones left out; an error means: ask git.
    pub(crate) fn holder_from_files(&self, branch: &str) -> io::Result<Option<PathBuf>> {
        if self.reftable {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let wanted = format!("ref: refs/heads/{branch}");
        let has_it =
            |dir: &Path| read_line(&dir.join("HEAD")).is_some_and(|head| head.as_os_str() == &*wanted);
        if has_it(&self.common_dir) {
            // Without one it is bare, or its files are where only git knows.
            let main = self.main_checkout.clone();
            return main.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
        let linked = match fs::read_dir(self.common_dir.join("worktrees")) {
            Ok(linked) => linked,
            Err(e) if is_absent(&e) => return Ok(None),
            Err(e) => return Err(e),
        };
        for entry in linked {
            let dir = entry?.path();
            if has_it(&dir)
                && let Some(dot_git) = read_line(&dir.join("gitdir"))
            {
                return Ok(dir.join(dot_git).parent().map(Path::to_owned));
            }
        }
        Ok(None)
    }

    pub(crate) fn checkout(&self, doing: &'static str) -> Result<&Path, Error> {
        self.toplevel()
            .ok_or_else(|| Error::new(doing, &self.common_dir, Kind::NoCheckout))
    }
}

fn is_absent(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
    )
}

fn looks_like_git_dir(folder: &Path) -> bool {
    let is = |name: &str| folder.join(name).symlink_metadata().is_ok();
    is("HEAD") && (is("commondir") || (folder.join("objects").is_dir() && folder.join("refs").is_dir()))
}

fn follow_gitfile(file: &Path) -> Option<PathBuf> {
    let line = read_line(file)?;
    let to = line
        .as_os_str()
        .as_bytes()
        .strip_prefix(b"gitdir:")?
        .trim_ascii_start();
    Some(file.parent()?.join(OsStr::from_bytes(to)))
}

fn dot_git_parent(common_dir: &Path) -> Option<PathBuf> {
    (common_dir.file_name()? == ".git").then(|| common_dir.parent().map(Path::to_owned))?
}

fn read_line(file: &Path) -> Option<PathBuf> {
    let bytes = fs::read(file).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end())))
}
