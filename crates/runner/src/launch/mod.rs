//! Child processes: starts, watches, takes back, suspends and ends them (`hypervisor.md`, 5, 8 and 10).
//!
//! Nobody who can be killed by accident is the parent of an agent. Between the two stands a **shim**: this
//! same binary, in a session of its own, which keeps an exclusive lock on `alive` in the attempt's folder
//! for as long as it lives. The lock says whether the attempt runs (R42), the files say the rest:
//!
//! | lock | `started.json` | `result.json` | the attempt |
//! | --- | --- | --- | --- |
//! | held | yes or soon | | runs |
//! | free | | yes | has ended |
//! | free | yes | no | vanished: shim or machine died, and what it left is killed |
//! | free | no | no | never started |
//!
//! The starter takes the lock *before* the shim exists and hands it over as the shim's standard output, so
//! there is no moment at which a shim lives and the lock is free: two shims for one attempt cannot be
//! (R39). The shim starts the child through a second image of itself, which waits for a byte on its
//! standard input; that byte is sent after `started.json` is on the disk, so no agent runs unrecorded.
//! `result.json` is on the disk before the lock is let go (R47).
//!
//! No value of the child's environment and no byte of its brief is written to a file: both travel to the
//! shim through a pipe.
//!
//! What is promised in full is promised on Linux. Elsewhere no process table is read: what a child detached
//! from its process group is not found, and a killed shim does not take its child along.

mod child;
mod descriptors;
mod env;
mod files;
mod output;
mod parcel;
pub mod process;
mod quiet;
mod shim;
mod start;
mod watch;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use protocol::facts::run::Exit;
use protocol::facts::span::Span;
use serde::{Deserialize, Serialize};

pub use child::Child;
pub use env::{BASE, Base, Passed};
pub use output::{Filter, NewFilter, unfiltered};
pub use quiet::{Output, Quiet, run_quietly};
pub use shim::main;
pub use start::{Adopted, adopt, start};

/// The variable that every child has besides those it is given: its attempt's folder. An attempt's id is
/// one of its store alone, but no two attempts on a machine share a folder, so what a child leaves behind
/// can be told from everything else that runs.
pub const MARK: &str = "BRAIN_ATTEMPT_DIR";

/// What is to be started, and under which limits.
///
/// It has no `Debug`: environment and brief may hold secrets.
pub struct Spec {
    /// The attempt's folder, absolute; one folder is one attempt, for ever.
    pub dir: PathBuf,
    /// The program, absolute, and first arguments that lead to [`main`]; the rest is appended.
    pub shim: Vec<OsString>,
    /// What the child is.
    pub command: Command,
    /// Its working directory, absolute.
    pub cwd: PathBuf,
    /// What its environment is built on.
    pub base: Base,
    /// Its variables besides; of two with one name the later holds.
    pub env: Vec<(String, OsString)>,
    /// The names in `env` whose values the shim's [`Filter`] keeps out of the log.
    pub masked: Vec<String>,
    /// What it is told.
    pub brief: Brief,
    /// When it is ended.
    pub limits: Limits,
}

/// What a child is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// A text for `sh -c`.
    Shell(String),
    /// A program, looked up in the child's own `PATH`, and its arguments.
    Program(Vec<OsString>),
}

/// What a child is told, and how.
pub enum Brief {
    /// Nothing; its standard input is empty.
    None,
    /// On its standard input, which is closed afterwards.
    Stdin(Vec<u8>),
    /// As its last argument (`$1` of a shell text). Anyone on the machine can read it there.
    Argument(OsString),
}

/// The limits of a child.
///
/// Times are measured in the machine's boot clock, which nobody can set and which runs on while the machine
/// sleeps; they stand still while the child is stopped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// How long it may run.
    pub time: Option<Span>,
    /// How long it may print nothing.
    pub idle: Option<Span>,
    /// How many bytes it may print; what is beyond is not in the log.
    pub output: Option<u64>,
    /// How many bytes of private writable memory each process of it may have (`RLIMIT_DATA`).
    ///
    /// Beyond it an allocation fails, and what the process makes of that is its exit. It binds every
    /// process for itself, not their sum. The address space (`RLIMIT_AS`) is no measure: node and the JVM
    /// reserve far more than they use.
    pub memory: Option<u64>,
    /// How long it has between TERM and KILL.
    pub grace: Span,
}

impl Default for Limits {
    /// No limit, and five seconds to end in.
    fn default() -> Limits {
        Limits {
            time: None,
            idle: None,
            output: None,
            memory: None,
            grace: Span::from_ms(5_000),
        }
    }
}

/// How a child ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ending {
    /// How; for a limit the limit, whatever the status that the child ended with.
    pub exit: Exit,
    /// For how many milliseconds it ran, those in which it was stopped left out.
    pub ran_ms: u64,
    /// For how many milliseconds it was stopped.
    pub suspended_ms: u64,
    /// How many bytes it printed.
    pub output_bytes: u64,
}

impl Ending {
    /// An end of which nothing else is known.
    fn unmeasured(exit: Exit) -> Ending {
        Ending {
            exit,
            ran_ms: 0,
            suspended_ms: 0,
            output_bytes: 0,
        }
    }
}

/// Why nothing could be said or done about an attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    System {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// In its words.
        source: io::Error,
    },
    /// The spec asks for what no process can be given.
    Spec(String),
    /// The shim ended, or is stuck, before it had anything to say; starting again is safe.
    Shim {
        /// The attempt's folder.
        dir: PathBuf,
        /// What it said on its standard error.
        said: String,
    },
}

impl Error {
    /// Gives what `map_err` wants for a failure of the operating system.
    fn system<E: Into<io::Error>>(doing: &'static str, path: &Path) -> impl FnOnce(E) -> Error {
        let path = path.to_owned();
        move |source| Error::System {
            doing,
            path,
            source: source.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::System { doing, path, source } => write!(f, "cannot {doing} {}: {source}", path.display()),
            Error::Spec(why) => f.write_str(why),
            Error::Shim { dir, said } if said.is_empty() => {
                write!(f, "the attempt in {} did not start", dir.display())
            }
            Error::Shim { dir, said } => {
                write!(f, "the attempt in {} did not start: {said}", dir.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::System { source, .. } => Some(source),
            Error::Spec(_) | Error::Shim { .. } => None,
        }
    }
}
