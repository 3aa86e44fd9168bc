//! What can go wrong with a store itself.

use std::fmt;
use std::path::PathBuf;

/// The world failed: what happened, to what, and whether trying again can help.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// There is no store at this place.
    Missing(PathBuf),
    /// The store stayed busy beyond the deadline; try again.
    Busy {
        /// What we were doing.
        doing: &'static str,
        /// For how long it was tried, in milliseconds.
        waited_ms: u64,
    },
    /// The store was made by a newer version of brain.
    TooNew {
        /// Its schema.
        found: u32,
        /// The newest that this binary knows.
        known: u32,
    },
    /// The file system cannot carry a store safely.
    Filesystem {
        /// The store.
        path: PathBuf,
        /// What it is: `nfs`, `fuse` …
        kind: String,
    },
    /// The store's file was replaced or removed while it was open.
    Replaced(PathBuf),
    /// The disk is full or read-only.
    Disk {
        /// What we were doing.
        doing: &'static str,
        /// In the database's words.
        why: String,
    },
    /// The store is damaged.
    Damaged {
        /// The store.
        path: PathBuf,
        /// In the database's words.
        why: String,
    },
    /// Anything else that the database reports.
    Database {
        /// What we were doing.
        doing: &'static str,
        /// In the database's words.
        why: String,
    },
}

impl Fault {
    /// Whether the same call may succeed later without anyone mending anything.
    pub fn can_retry(&self) -> bool {
        matches!(self, Fault::Busy { .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing(path) => write!(f, "there is no store at {}", path.display()),
            Fault::Busy { doing, waited_ms } => {
                write!(f, "the store stayed busy for {waited_ms} ms while {doing}")
            }
            Fault::TooNew { found, known } => {
                write!(f, "the store has schema {found}; this brain knows up to {known}")
            }
            Fault::Filesystem { path, kind } => {
                write!(
                    f,
                    "{} lies on {kind}, which cannot keep a store safe",
                    path.display()
                )
            }
            Fault::Replaced(path) => write!(f, "{} was replaced or removed while in use", path.display()),
            Fault::Disk { doing, why } => write!(f, "the disk refused while {doing}: {why}"),
            Fault::Damaged { path, why } => write!(f, "{} is damaged: {why}", path.display()),
            Fault::Database { doing, why } => write!(f, "the database failed while {doing}: {why}"),
        }
    }
}

impl std::error::Error for Fault {}
