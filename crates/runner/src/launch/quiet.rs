//! Commands run on the side: test suites as evidence, the setting up of a worktree.

use std::ffi::OsString;
use std::path::PathBuf;

use protocol::facts::run::Exit;

use super::start::begin;
use super::{Base, Brief, Command, Error, Limits, Spec};

/// A command whose end is waited for.
pub struct Quiet {
    /// A folder of its own, absolute and not used before; the output stays there.
    pub dir: PathBuf,
    /// As in [`Spec`].
    pub shim: Vec<OsString>,
    /// What is run.
    pub command: Command,
    /// Where.
    pub cwd: PathBuf,
    /// What its environment is built on.
    pub base: Base,
    /// Its variables besides.
    pub env: Vec<(String, OsString)>,
    /// When it is ended.
    pub limits: Limits,
}

/// What came of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Its own status, or the limit that ended it.
    pub exit: Exit,
    /// The file with all that it printed, on both streams.
    pub log: PathBuf,
    /// The last lines of it.
    pub tail: String,
    /// How long it ran, in milliseconds.
    pub took_ms: u64,
}

/// How many lines of a command's output are told.
const TOLD: usize = 40;

/// Runs a command to its end, under limits, with all that it started gone afterwards.
///
/// It has a shim as an agent has; but should the caller die, the command is killed at once: nobody would
/// read what comes of it.
///
/// # Errors
///
/// [`Error`] when no shim came up. A command that could not be started is no error but `Exit::NotStarted`.
pub fn run_quietly(quiet: Quiet) -> Result<Output, Error> {
    let child = begin(
        &Spec {
            dir: quiet.dir,
            shim: quiet.shim,
            command: quiet.command,
            cwd: quiet.cwd,
            base: quiet.base,
            env: quiet.env,
            masked: Vec::new(),
            brief: Brief::None,
            limits: quiet.limits,
        },
        true,
    )?;
    let (exit, took_ms) = match child.wait(None) {
        Some(ending) => (ending.exit, ending.ran_ms),
        None => (Exit::Vanished, 0),
    };
    Ok(Output {
        exit,
        log: child.log_path(),
        tail: child.tail(TOLD)?,
        took_ms,
    })
}
