//! Where a brain is: the folder that all its paths are counted from (protocol, section 1).

use std::cell::OnceCell;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git::Repository;
use protocol::facts::path::{Fold, LogicalPath};

use crate::config::{self, RootFacts};

/// The folder at the root that holds the store, tokens and worktrees.
pub const STATE: &str = ".brain";
/// The embedded store, in [`STATE`].
pub const DATABASE: &str = "brain.db";
/// The file that `brain init` leaves in the git directory; it holds the root relative to the checkout.
pub const MARK: &str = "brain-root";

/// The root of a brain: absolute, its links followed.
#[derive(Debug)]
pub struct Root {
    dir: PathBuf,
    repository: OnceCell<Option<Repository>>,
    fold: OnceCell<Fold>,
}

/// Says why there is no brain to work with.
#[derive(Debug)]
pub enum RootError {
    /// No folder at or above this one is a brain: hooks let everything pass here.
    NoBrain(PathBuf),
    /// The brain at this folder has no store (exit 69): hooks block.
    StoreMissing(PathBuf),
    /// The folder that was named is none.
    NoFolder(PathBuf, io::Error),
}

impl Root {
    /// Finds the brain that a place lies in: the nearest folder at or above it that holds `.brain/`, a linked
    /// worktree standing for its main checkout; else one that bears another mark of a brain.
    ///
    /// `place` is absolute with its links followed (the working directory is, and so is what
    /// [`walk`](crate::place::walk) gives); it need not exist.
    ///
    /// # Errors
    ///
    /// [`RootError::NoBrain`]. A brain without a store is found: see [`Root::database`].
    pub fn find(place: &Path) -> Result<Self, RootError> {
        if let Some(dir) = plainly_above(place) {
            return Ok(Self::at(dir.to_owned()));
        }
        // The main checkout's brain comes first, then one that merely holds the worktree.
        let logical = git::logical(place);
        let is_root = |dir: &Path| holds_state(dir) && !is_in_linked_worktree(dir);
        let is_marked = |dir: &Path| {
            let marked = |name: &str| dir.join(name).is_file();
            (marked(config::FILE) || marked(config::COMPOSE)) && !is_in_linked_worktree(dir)
        };
        let above = |is: &dyn Fn(&Path) -> bool| {
            let mut dirs = logical.ancestors().chain(place.ancestors());
            dirs.find(|dir| is(dir)).map(Path::to_owned)
        };
        above(&is_root)
            .or_else(|| above(&is_marked))
            .or_else(|| left_mark(&logical))
            .map(Self::at)
            .ok_or_else(|| RootError::NoBrain(place.to_owned()))
    }

    /// Takes the folder that `--root` or `BRAIN_ROOT` names; within a linked worktree its main checkout's is meant.
    ///
    /// # Errors
    ///
    /// [`RootError::NoFolder`].
    pub fn named(dir: &Path) -> Result<Self, RootError> {
        let real = fs::canonicalize(dir).and_then(|real| match real.is_dir() {
            true => Ok(real),
            false => Err(io::ErrorKind::NotADirectory.into()),
        });
        match real {
            Ok(real) if is_in_linked_worktree(&real) => Ok(Self::at(git::logical(&real))),
            Ok(real) => Ok(Self::at(real)),
            Err(error) => Err(RootError::NoFolder(dir.to_owned(), error)),
        }
    }

    fn at(dir: PathBuf) -> Self {
        Self {
            dir,
            repository: OnceCell::new(),
            fold: OnceCell::new(),
        }
    }

    /// Returns the root's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the folder of brain's own files.
    pub fn state(&self) -> PathBuf {
        self.dir.join(STATE)
    }

    /// Returns the embedded store, which only `brain init` makes.
    ///
    /// # Errors
    ///
    /// [`RootError::StoreMissing`]. A brain with a shared store has no use for this file, so ask only without one.
    pub fn database(&self) -> Result<PathBuf, RootError> {
        let database = self.dir.join(STATE).join(DATABASE);
        match database.is_file() {
            true => Ok(database),
            false => Err(RootError::StoreMissing(self.dir.clone())),
        }
    }

    /// Returns the repository that holds the root, if one does.
    pub fn repository(&self) -> Option<&Repository> {
        self.repository
            .get_or_init(|| Repository::find(&self.dir))
            .as_ref()
    }

    /// Says whether comparison of paths folds case: where the volume does, or git was told so.
    ///
    /// The volume is asked for `.BRAIN`, once; a folder deeper down that folds on its own is not noticed.
    pub fn fold(&self) -> Fold {
        let same = |other: &str| {
            let found = fs::metadata(self.dir.join(other)).ok()?;
            let state = fs::metadata(self.dir.join(STATE)).ok()?;
            Some((found.dev(), found.ino()) == (state.dev(), state.ino()))
        };
        *self.fold.get_or_init(|| {
            let folds = same(".BRAIN") == Some(true)
                || self
                    .repository()
                    .is_some_and(|repository| repository.ignores_case());
            if folds { Fold::Case } else { Fold::Exact }
        })
    }

    /// Gathers what a policy depends on besides the configuration.
    pub fn facts(&self) -> RootFacts {
        let stands = |name: &str| self.dir.join(name).symlink_metadata().is_ok();
        RootFacts {
            legacy_layout: stands("KERNEL.md") || stands(config::COMPOSE),
            hooks: self.hooks().into_iter().collect(),
            fold: self.fold(),
        }
    }

    /// Returns the folder of the git hooks where the repository keeps it below the root, outside `.git`.
    fn hooks(&self) -> Option<LogicalPath> {
        let repository = self.repository()?;
        let real = fs::canonicalize(repository.toplevel()?.join(repository.hooks_path()?)).ok()?;
        let below = real.strip_prefix(&self.dir).ok()?.to_str()?;
        LogicalPath::parse(below, self.fold()).ok()
    }

    /// Leaves the mark by which this brain is known even after `git clean -xdf`; without a repository, none.
    ///
    /// # Errors
    ///
    /// Whatever keeps the file from being written.
    pub fn leave_mark(&self) -> io::Result<()> {
        let Some(repository) = self.repository() else {
            return Ok(());
        };
        let below = self.dir.strip_prefix(repository.home()).unwrap_or(Path::new(""));
        let mut text = below.as_os_str().as_encoded_bytes().to_owned();
        text.push(b'\n');
        fs::write(repository.common_dir().join(MARK), text)
    }

    /// Returns where a real path lies below the root; `None` when it does not.
    ///
    /// A folder is known by what it is, not by its name: a volume that folds case, or a bind mount, has more
    /// than one name for the root. That is looked at only when the names differ.
    pub fn below(&self, real: &Path) -> Option<PathBuf> {
        if let Ok(below) = real.strip_prefix(&self.dir) {
            return Some(below.to_owned());
        }
        let mine = fs::metadata(&self.dir).ok()?;
        let is_mine = |dir: &&Path| {
            fs::metadata(dir).is_ok_and(|found| (found.dev(), found.ino()) == (mine.dev(), mine.ino()))
        };
        let dir = real.ancestors().find(is_mine)?;
        real.strip_prefix(dir).ok().map(Path::to_owned)
    }
}

fn holds_state(dir: &Path) -> bool {
    dir.join(STATE).is_dir()
}

/// Finds the root where no linked worktree and no submodule can be involved: the case of nearly every call,
/// at two looks per folder.
fn plainly_above(place: &Path) -> Option<&Path> {
    let mut root = None;
    for dir in place.ancestors() {
        if root.is_none() && holds_state(dir) {
            root = Some(dir);
        }
        match fs::symlink_metadata(dir.join(".git")) {
            Ok(git) if !git.is_dir() => return None,
            // The first checkout at or above the root is a main one.
            Ok(_) if root.is_some() => break,
            _ => {}
        }
    }
    root
}

fn is_in_linked_worktree(dir: &Path) -> bool {
    Repository::find(dir).is_some_and(|repository| repository.is_linked_worktree())
}

/// Reads the mark in the git directory.
fn left_mark(place: &Path) -> Option<PathBuf> {
    let repository = Repository::find(place)?;
    let below = fs::read_to_string(repository.common_dir().join(MARK)).ok()?;
    let dir = repository.home().join(below.trim_end_matches('\n'));
    fs::canonicalize(dir).ok()
}

impl fmt::Display for RootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBrain(place) => write!(
                f,
                "no brain here: neither {} nor a folder above it holds .brain/\n  make one: brain init",
                place.display()
            ),
            Self::StoreMissing(root) => write!(
                f,
                "the brain at {root} has no store: {root}/.brain/brain.db is missing (`git clean -xdf` takes it \
                 away)\n  make it:          brain init --root {quoted}\n  \
                 take back claims: brain journal import {quoted} --root {quoted}",
                root = root.display(),
                quoted = quoted(root)
            ),
            Self::NoFolder(dir, error) => {
                write!(
                    f,
                    "--root or BRAIN_ROOT names {}, which is no folder: {error}",
                    dir.display()
                )
            }
        }
    }
}

impl std::error::Error for RootError {}

/// Writes a path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,@%".contains(&byte);
    match text.bytes().all(plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_advice_can_be_pasted() {
        assert_eq!(quoted(Path::new("/a/b-c.d")), "/a/b-c.d");
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}
