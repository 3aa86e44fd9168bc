//! Where a path leads: the half of a logical path that only the disk knows (protocol, section 2).

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git::{Door, Repository};
use protocol::facts::path::{LogicalPath, PathError};
use protocol::rules::preflight::{Op, PathAsk, RepoAt, Unplaced};
use rustix::io::Errno;

use crate::root::Root;

/// How many links a path may go through, as the kernel has it.
const LINKS_MAX: u32 = 40;

/// Says why a path could not be looked at. That it may not be written is no error, but its place.
#[derive(Debug)]
pub enum PlaceError {
    /// The path is empty: wrong usage (64).
    Empty,
    /// The path holds a NUL, which no file name can (64).
    Nul,
    /// The path, or where it leads, is not UTF-8: it has no name in the protocol (64).
    NotUtf8(PathBuf),
    /// The disk did not say what lies here (22): never a pass.
    Unreadable(PathBuf, io::Error),
}

/// A path followed to where it really leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    path: PathBuf,
    end: End,
    folder: bool,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// At something that exists, or was not followed.
    There,
    /// At a name that does not exist.
    Missing,
    /// It went through too many links.
    Links,
    /// At a link of `/proc`, which leads elsewhere for each process.
    Magic,
}

impl Walked {
    /// Returns where the path leads: absolute, without links, `.` or `..`; it need not exist.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Follows a path as the kernel does, component by component: a link, dangling or not, is followed before the
/// next component, and `..` is the parent of where one really is.
///
/// Past a component that does not exist names are only text, until `..` has taken them all away again: most
/// programs tidy `new/../link` before they open it, and then meet the link. A delete does not follow a last
/// component. `~` is a name like another, and so is a backslash.
///
/// `from` is where the path is seen from: absolute with its links followed, as the working directory is.
///
/// # Errors
///
/// [`PlaceError`] for what is no path, and when the disk does not answer.
pub fn walk(from: &Path, given: &OsStr, op: Op) -> Result<Walked, PlaceError> {
    let bytes = given.as_bytes();
    if bytes.is_empty() {
        return Err(PlaceError::Empty);
    }
    if bytes.contains(&0) {
        return Err(PlaceError::Nul);
    }
    let (mut real, rest) = match below(bytes, from) {
        Some(rest) => (from.to_owned(), rest), // known to have no links
        None if bytes[0] == b'/' => (PathBuf::from("/"), bytes),
        None => (from.to_owned(), bytes),
    };
    let mut rest = rest.to_owned();
    let (mut at, mut missing, mut links) = (0, 0, 0);
    let mut buffer = Vec::with_capacity(256);
    let end = loop {
        while rest.get(at) == Some(&b'/') {
            at += 1;
        }
        if at == rest.len() {
            break if missing > 0 { End::Missing } else { End::There };
        }
        let start = at;
        let stop = rest[at..]
            .iter()
            .position(|byte| *byte == b'/')
            .map_or(rest.len(), |length| at + length);
        let is_last = stop == rest.len();
        match &rest[at..stop] {
            b"." => {}
            b".." => {
                real.pop();
                missing = missing.max(1) - 1;
            }
            name => real.push(OsStr::from_bytes(name)),
        }
        let is_name = !matches!(&rest[at..stop], b"." | b"..");
        at = stop;
        if !is_name {
            continue;
        }
        if missing > 0 {
            missing += 1;
            continue;
        }
        if is_last && op == Op::Delete {
            break End::There;
        }
        match rustix::fs::readlink(&real, std::mem::take(&mut buffer)) {
            Ok(target) => {
                real.pop();
                if real.starts_with("/proc") {
                    real.push(OsStr::from_bytes(&rest[start..]));
                    break End::Magic;
                }
                links += 1;
                if links > LINKS_MAX {
                    break End::Links;
                }
                let mut followed = target.into_bytes();
                if followed.first() == Some(&b'/') {
                    real = PathBuf::from("/");
                }
                followed.extend_from_slice(&rest[at..]);
                rest = followed;
                at = 0;
            }
            Err(Errno::INVAL) => {}
            Err(Errno::NOENT | Errno::NOTDIR) => missing = 1,
            Err(error) => return Err(PlaceError::Unreadable(real, error.into())),
        }
    };
    Ok(Walked {
        path: real,
        end,
        folder: bytes.ends_with(b"/") || bytes.ends_with(b"/."),
    })
}

/// Returns what follows a folder in a path that is spelled with it.
fn below<'p>(path: &'p [u8], folder: &Path) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(folder.as_os_str().as_bytes())?;
    (rest.is_empty() || rest[0] == b'/').then_some(rest)
}

/// Places paths below one root, and keeps the repositories that it met.
#[derive(Debug)]
pub struct Placer<'r> {
    root: &'r Root,
    met: Vec<(PathBuf, Repository)>,
}

impl<'r> Placer<'r> {
    /// Places paths below this root.
    pub fn new(root: &'r Root) -> Self {
        let own = root
            .repository()
            .and_then(|own| Some((own.toplevel()?.to_owned(), own.clone())));
        Self {
            root,
            met: own.into_iter().collect(),
        }
    }

    /// Walks a path seen from a folder (see [`walk`]) and places it.
    ///
    /// # Errors
    ///
    /// [`PlaceError`].
    pub fn place(&mut self, from: &Path, given: &OsStr, op: Op) -> Result<PathAsk, PlaceError> {
        let walked = walk(from, given, op)?;
        self.ask(given, &walked, op)
    }

    /// Turns a path that was walked into what the preflight asks about.
    ///
    /// The repository that holds the root is called `.`, any other by its path below the root. Links count for
    /// a write alone: a delete takes one name of a file away and leaves the others.
    ///
    /// # Errors
    ///
    /// [`PlaceError::NotUtf8`] and [`PlaceError::Unreadable`].
    pub fn ask(&mut self, given: &OsStr, walked: &Walked, op: Op) -> Result<PathAsk, PlaceError> {
        let not_utf8 = || PlaceError::NotUtf8(walked.path.clone());
        let given = given.to_str().ok_or_else(not_utf8)?.to_owned();
        let real = walked.path();
        let unplaced = |why| PathAsk {
            given: given.clone(),
            path: Err(why),
            links: None,
            folder: walked.folder,
            repo: None,
        };
        let outside = || unplaced(Unplaced::Outside(real.to_string_lossy().into_owned()));
        match walked.end {
            End::Links => return Ok(unplaced(Unplaced::Links)),
            End::Magic => return Ok(outside()),
            End::There | End::Missing => {}
        }
        let from = match real.parent() {
            Some(parent) if op == Op::Delete && real != self.root.dir() => parent,
            _ => real,
        };
        let repository = self.repository(from);
        let Some(below) = self.logical(real, repository.as_ref()) else {
            return Ok(outside());
        };
        let path = match below.to_str().ok_or_else(not_utf8)? {
            "" => LogicalPath::root(),
            text => match LogicalPath::parse(text, self.root.fold()) {
                Ok(path) => path,
                Err(PathError::Reserved(_)) => return Ok(unplaced(Unplaced::Reserved)),
                Err(_) => return Ok(outside()),
            },
        };
        let found = match walked.end {
            End::There => match fs::symlink_metadata(real) {
                Ok(found) => Some(found),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
                Err(error) => return Err(PlaceError::Unreadable(real.to_owned(), error)),
            },
            _ => None,
        };
        let linked = found
            .as_ref()
            .filter(|found| op == Op::Write && found.is_file() && found.nlink() > 1);
        Ok(PathAsk {
            given,
            path: Ok(path),
            links: linked
                .filter(|_| !repository.as_ref().is_some_and(|at| is_ignored(at, real)))
                .map(MetadataExt::nlink),
            folder: walked.folder || found.is_some_and(|found| found.is_dir()),
            repo: repository.and_then(|repository| self.repo_at(&repository)),
        })
    }

    /// Finds the repository of a real path, looking at each folder once at most.
    fn repository(&mut self, real: &Path) -> Option<Repository> {
        for folder in real.ancestors() {
            if let Some((_, met)) = self.met.iter().find(|(of, _)| of == folder) {
                return Some(met.clone());
            }
            if let Some(found) = Repository::at(folder) {
                self.met.push((folder.to_owned(), found.clone()));
                return Some(found);
            }
        }
        None
    }

    /// Returns the logical path below the root: a linked worktree's files are those of the main checkout.
    fn logical(&self, real: &Path, repository: Option<&Repository>) -> Option<PathBuf> {
        let holds_root = |repository: &Repository| {
            !repository.is_linked_worktree()
                && repository
                    .toplevel()
                    .is_some_and(|top| self.root.dir().starts_with(top))
        };
        match repository {
            Some(repository) if !holds_root(repository) => self.root.below(&git::logical(real)),
            _ => self.root.below(real),
        }
    }

    fn repo_at(&self, repository: &Repository) -> Option<RepoAt> {
        let checkout = repository.toplevel()?;
        // The one that holds the root is called so wherever it lies: nearly every call ends here.
        let holds_root = !repository.is_linked_worktree() && self.root.repository() == Some(repository);
        let below = match holds_root {
            true => PathBuf::new(),
            false => {
                let home = git::logical(repository.home());
                home.strip_prefix(self.root.dir())
                    .map(Path::to_owned)
                    .unwrap_or_default()
            }
        };
        Some(RepoAt {
            repo: match below.to_string_lossy() {
                root if root.is_empty() => ".".to_owned(),
                other => other.into_owned(),
            },
            checkout: checkout.to_string_lossy().into_owned(),
            branch: branch(repository),
            submodule: is_submodule(repository),
        })
    }
}

/// Reads the branch from `HEAD`; git is started only where refs are kept in tables.
fn branch(repository: &Repository) -> Option<String> {
    let head = fs::read_to_string(repository.git_dir().join("HEAD")).ok()?;
    match head.strip_prefix("ref:")?.trim().strip_prefix("refs/heads/")? {
        ".invalid" => {
            let head = Door::user(repository.clone()).head().ok()?;
            head.branch().map(str::to_owned)
        }
        name => Some(name.to_owned()),
    }
}

/// Says whether a repository is another one's submodule: its git directory lies in the other's `modules`.
fn is_submodule(repository: &Repository) -> bool {
    repository.common_dir().ancestors().skip(1).any(|folder| {
        folder.file_name() == Some(OsStr::new("modules")) && folder.with_file_name("HEAD").is_file()
    })
}

/// Asks git whether it ignores a file. Every tree of pnpm has files with many names; elsewhere they are rare,
/// so that starting git costs nobody.
fn is_ignored(repository: &Repository, real: &Path) -> bool {
    let Some(below) = repository
        .toplevel()
        .and_then(|top| real.strip_prefix(top).ok()?.to_str())
    else {
        return false;
    };
    let mut literal = String::with_capacity(below.len());
    for letter in below.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\') {
            literal.push('\\');
        }
        literal.push(letter);
    }
    let ignored = Door::user(repository.clone()).ignored(&[literal.as_str()]);
    ignored.is_ok_and(|files| !files.is_empty())
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a path is empty: name the file or folder, `.` for this folder"),
            Self::Nul => f.write_str("a path holds a NUL, which no file name can"),
            Self::NotUtf8(path) => write!(
                f,
                "the name of {} is not UTF-8, so that no claim can cover it: rename it first",
                path.display()
            ),
            Self::Unreadable(path, error) => write!(
                f,
                "cannot look at {}: {error}; what cannot be seen is not allowed",
                path.display()
            ),
        }
    }
}

impl std::error::Error for PlaceError {}
