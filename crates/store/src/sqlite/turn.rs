//! The turn to write: two kernel locks in front of the database, on files of their own.
//!
//! Whoever asks SQLite itself for its turn takes a read lock for a moment each time. Among many writers there is
//! always one, so the write-ahead log was never folded back and grew without bound. Here they wait outside.
//! It is a queue and no guarantee: that is SQLite's own lock, which everyone takes after it.
//!
//! One of those who wait is next, and looks often; all others wait to be next, and look seldom. So the turn is
//! never free for long, and those who wait take little from whoever works.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant as Stopwatch};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use super::connect::jitter;

/// Between two looks of the one who is next: a fraction of what a write takes.
const NEXT: Duration = Duration::from_micros(50);

/// Between two looks of all others, at least; constant, so that nobody starves (R23).
const OTHERS: Duration = Duration::from_micros(2_200);

/// The files whose locks are the turn and being next; they stay empty.
pub struct Turn {
    turn: Option<OwnedFd>,
    next: Option<OwnedFd>,
}

impl Turn {
    /// The turn of the store at this path. Where no such file can be made, nobody queues.
    pub fn of(path: &Path) -> Turn {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let file = |what: &str| {
            let name = format!("{}-{what}", path.display());
            open(name, flags, Mode::from_raw_mode(0o666)).ok()
        };
        Turn {
            turn: file("turn"),
            next: file("next"),
        }
    }

    /// Waits for the turn, at most so long; whether it came.
    pub fn take(&self, at_most: Duration) -> bool {
        if locked(self.turn.as_ref()) {
            return true;
        }
        let began = Stopwatch::now();
        let wait = |lock: Option<&OwnedFd>, pause: &dyn Fn() -> Duration| {
            while !locked(lock) {
                if began.elapsed() >= at_most {
                    return false;
                }
                std::thread::sleep(pause());
            }
            true
        };
        if !wait(self.next.as_ref(), &|| OTHERS + jitter()) {
            return false;
        }
        let came = wait(self.turn.as_ref(), &|| NEXT);
        unlock(self.next.as_ref());
        came
    }

    /// Gives the turn to the next.
    pub fn give_back(&self) {
        unlock(self.turn.as_ref());
    }
}

/// Whether nobody else has the lock, and so we do. Without a file, or where locks are unknown, nobody has.
fn locked(file: Option<&OwnedFd>) -> bool {
    file.is_none_or(|file| flock(file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK))
}

fn unlock(file: Option<&OwnedFd>) {
    if let Some(file) = file {
        // It is given back with the file at the latest.
        let _ = flock(file, FlockOperation::Unlock);
    }
}
