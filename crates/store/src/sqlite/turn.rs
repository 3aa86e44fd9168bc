//! The turn to write: one kernel lock in front of the database, on a file of its own.
//!
//! Whoever asks SQLite itself for its turn takes a read lock for a moment each time. Among many writers there is
//! always one, so the write-ahead log was never folded back and grew without bound. Here they wait outside.
//! It is a queue and no guarantee: that is SQLite's own lock, which everyone takes after it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant as Stopwatch};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

/// The file whose lock is the turn; it stays empty.
pub struct Turn {
    file: Option<OwnedFd>,
}

impl Turn {
    /// The turn of the store at this path. Where no such file can be made, nobody queues.
    pub fn of(path: &Path) -> Turn {
        let name = format!("{}-turn", path.display());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        Turn {
            file: open(name, flags, Mode::from_raw_mode(0o666)).ok(),
        }
    }

    /// Waits for the turn, at most so long; whether it came.
    pub fn take(&self, at_most: Duration) -> bool {
        let Some(file) = &self.file else { return true };
        let began = Stopwatch::now();
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return true,
                Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < at_most => super::connect::pause(),
                Err(rustix::io::Errno::WOULDBLOCK) => return false,
                // A file system without such locks: nobody queues.
                Err(_) => return true,
            }
        }
    }

    /// Gives the turn to the next.
    pub fn give_back(&self) {
        if let Some(file) = &self.file {
            // It is given back with the file at the latest.
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}
