//! What went wrong, in a form that a caller can match.

use crate::Oid;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A failed operation: what was being done, to what, why it failed, and what git said about it.
#[derive(Debug)]
pub struct Error {
    doing: &'static str,
    target: PathBuf,
    kind: Box<Kind>,
    stderr: String,
}

/// Why an operation failed.
#[derive(Debug)]
pub enum Kind {
    /// There is no `git` to run.
    Missing,
    /// No repository is there, or git refuses to open it (its own message says which).
    NotARepository,
    /// Somebody else holds a lock of git's and did not let go in time. It is never deleted here.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long it has been there; hours, with no git running, speak of one that died.
        age: Option<Duration>,
    },
    /// Two commits have no common ancestor.
    NoMergeBase,
    /// The commit that something was measured against is not in the history of the other.
    NotAncestor {
        /// The commit expected below.
        base: Oid,
        /// The commit it is not below of.
        head: Oid,
    },
    /// History ends too early to judge: the clone is shallow.
    Shallow,
    /// The checkout is on no branch.
    DetachedHead,
    /// The checkout's branch has no commit yet.
    UnbornHead,
    /// Nobody told git who is committing.
    NoIdentity,
    /// No such branch, ref or commit.
    Unknown {
        /// The name that led nowhere.
        name: String,
    },
    /// A hook said no.
    HookRefused {
        /// Its name, `pre-commit` for example.
        hook: String,
        /// What it printed.
        output: String,
    },
    /// The commit could not be signed.
    KeyRefused,
    /// A path's attributes name a filter that neither the system nor the user has defined.
    Filter {
        /// The path, relative to the checkout.
        path: PathBuf,
        /// The filter's name.
        name: String,
    },
    /// Both sides changed these files.
    Conflict {
        /// Paths relative to the checkout.
        files: Vec<PathBuf>,
    },
    /// The ref is no longer where it was expected: look again and retry.
    NonFastForward {
        /// The ref.
        name: String,
    },
    /// A branch of this name is already there.
    BranchExists {
        /// The branch.
        name: String,
    },
    /// The branch is checked out.
    BranchCheckedOut {
        /// The branch.
        name: String,
        /// The checkout that has it.
        at: PathBuf,
    },
    /// The folder is already there; what it holds is somebody's.
    Leftover,
    /// Uncommitted work stands where files would have to change. Nothing was moved.
    WouldOverwrite {
        /// The paths in the way, relative to that checkout.
        paths: Vec<PathBuf>,
        /// The checkout.
        at: PathBuf,
    },
    /// The worktree holds uncommitted work.
    Dirty {
        /// The paths, relative to it.
        paths: Vec<PathBuf>,
    },
    /// The worktree or branch holds commits that are nowhere else.
    Unlanded {
        /// Its tip.
        head: Oid,
    },
    /// A merge, rebase, cherry-pick or revert is going on in the checkout.
    InProgress {
        /// Which.
        what: &'static str,
    },
    /// A bare repository has no files.
    NoCheckout,
    /// A submodule could not be filled.
    Submodules,
    /// The other side said no to a push (a protected branch, a server's hook).
    PushRefused {
        /// Its reason.
        reason: String,
    },
    /// The other side could not be reached, or does not know us.
    Unreachable,
    /// The repository uses something that this operation cannot handle.
    Unsupported {
        /// What.
        what: &'static str,
    },
    /// A name that git would not take, or would take for something else.
    BadName {
        /// The name.
        name: String,
    },
    /// The operating system said no.
    Io(io::Error),
    /// Git answered something that could not be read.
    Garbled,
    /// Git failed for another reason; its own words tell.
    Failed {
        /// Its exit code; `None` when a signal ended it.
        status: Option<i32>,
    },
}

impl Error {
    pub(crate) fn new(doing: &'static str, target: &Path, kind: Kind) -> Error {
        Error {
            doing,
            target: target.to_owned(),
            kind: Box::new(kind),
            stderr: String::new(),
        }
    }

    pub(crate) fn io(doing: &'static str, target: &Path, source: io::Error) -> Error {
        Error::new(doing, target, Kind::Io(source))
    }

    pub(crate) fn with_stderr(mut self, stderr: &[u8]) -> Error {
        self.stderr = String::from_utf8_lossy(stderr).trim().to_owned();
        self
    }

    /// Returns the reason, to be matched.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns what git printed, trimmed; empty when git was not what failed.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// Returns what it was done to: a checkout, a repository, a file.
    pub fn target(&self) -> &Path {
        &self.target
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}: {}", self.doing, self.target.display(), self.kind)?;
        // One line for whoever logs or asks; of a lock that is held git says nothing more.
        let mut said = self.stderr.lines().filter(|line| !line.trim().is_empty());
        match said.next() {
            Some(first) if !matches!(*self.kind, Kind::Locked { .. }) => {
                write!(f, " (git: {first}")?;
                said.take(2).try_for_each(|line| write!(f, " / {line}"))?;
                f.write_str(")")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.kind {
            Kind::Io(source) => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Missing => f.write_str("git is not installed, or not on PATH"),
            Kind::NotARepository => f.write_str("not a repository that git opens"),
            Kind::Locked { path, age: Some(age) } => {
                write!(f, "{} has been held for {} s", path.display(), age.as_secs())
            }
            Kind::Locked { path, age: None } => write!(f, "{} is held", path.display()),
            Kind::NoMergeBase => f.write_str("the two histories have no commit in common"),
            Kind::NotAncestor { base, head } => write!(f, "{base} is not in the history of {head}"),
            Kind::Shallow => f.write_str("the clone is shallow and its history ends before the base"),
            Kind::DetachedHead => f.write_str("the checkout is on no branch"),
            Kind::UnbornHead => f.write_str("the branch has no commit yet"),
            Kind::NoIdentity => f.write_str("user.name and user.email are not set"),
            Kind::Unknown { name } => write!(f, "no such thing: {name}"),
            Kind::HookRefused { hook, output } => write!(f, "the {hook} hook refused: {}", output.trim()),
            Kind::KeyRefused => f.write_str("the commit could not be signed"),
            Kind::Filter { path, name } => {
                write!(
                    f,
                    "{} needs the filter {name}, which only the repository defines",
                    path.display()
                )
            }
            Kind::Conflict { files } => write!(f, "both sides changed {}", Listed(files)),
            Kind::NonFastForward { name } => write!(f, "{name} has moved"),
            Kind::BranchExists { name } => write!(f, "the branch {name} is already there"),
            Kind::BranchCheckedOut { name, at } => write!(f, "{name} is checked out at {}", at.display()),
            Kind::Leftover => f.write_str("the folder is already there"),
            Kind::WouldOverwrite { paths, at } => {
                write!(
                    f,
                    "uncommitted work is in the way in {}: {}",
                    at.display(),
                    Listed(paths)
                )
            }
            Kind::Dirty { paths } => write!(f, "it holds uncommitted work: {}", Listed(paths)),
            Kind::Unlanded { head } => write!(f, "{head} has not landed"),
            Kind::InProgress { what } => write!(f, "a {what} is going on"),
            Kind::NoCheckout => f.write_str("a bare repository has no files"),
            Kind::Submodules => f.write_str("a submodule could not be filled"),
            Kind::PushRefused { reason } => write!(f, "the push was refused: {reason}"),
            Kind::Unreachable => f.write_str("the remote could not be reached"),
            Kind::Unsupported { what } => write!(f, "{what} is not supported here"),
            Kind::BadName { name } => write!(f, "{name:?} is no name that git can take"),
            Kind::Io(source) => write!(f, "{source}"),
            Kind::Garbled => f.write_str("git answered something unreadable"),
            Kind::Failed { status: Some(code) } => write!(f, "git ended with {code}"),
            Kind::Failed { status: None } => f.write_str("git was killed"),
        }
    }
}

/// Shows the first few of many paths.
struct Listed<'a>(&'a [PathBuf]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        for (n, path) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{}", if n == 0 { "" } else { ", " }, path.display())?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
