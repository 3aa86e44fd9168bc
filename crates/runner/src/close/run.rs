//! Runs a test command to its end and keeps what it printed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use protocol::facts::run::Exit;

use super::step::{Step, Stop};
use crate::evidence::BYTES_MAX;
use crate::launch::{self, Base, Limits, Quiet, run_quietly};

/// What became of a command.
pub(super) struct Ran {
    /// Its own exit status; `None` when something ended it.
    pub exit: Option<i32>,
    /// What it printed to both streams, as far as a report may be long.
    pub output: Vec<u8>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

impl Step<'_, '_> {
    /// Runs a shell command, with all that it started gone afterwards.
    ///
    /// In a human's checkout it has the environment in which the human would run it, in a satellite's own
    /// only the fixed one, where no secret is.
    pub fn run(&self, command: &str, folder: &Path) -> Result<Ran, Stop> {
        const DOING: &str = "running the tests";
        let own = self.folder();
        fs::create_dir_all(&own).map_err(Stop::io(DOING))?;
        // Each run has a folder that was never used; one of a close that was cut off may still be there.
        let dir = (1..)
            .map(|nth| own.join(format!("{}.run-{nth}", self.claim.id)))
            .find(|dir| dir.symlink_metadata().is_err())
            .ok_or_else(|| Stop::io(DOING)(io::ErrorKind::AlreadyExists.into()))?;
        let given = self.door.environment.into_iter().flatten();
        let text = |(name, value): &(OsString, OsString)| Some((name.to_str()?.to_owned(), value.clone()));
        let output = run_quietly(Quiet {
            dir: dir.clone(),
            shim: self.door.shim.to_vec(),
            command: launch::Command::Shell(command.to_owned()),
            cwd: folder.to_owned(),
            base: if self.claim.worktree.is_some() {
                Base::Fixed
            } else {
                Base::Whole
            },
            env: given.filter_map(text).collect(),
            limits: Limits::default(),
        })
        .map_err(|error| Stop::io(DOING)(io::Error::other(error.to_string())))?;
        let mut printed = Vec::new();
        File::open(&output.log)
            .and_then(|log| log.take(BYTES_MAX as u64 + 1).read_to_end(&mut printed))
            .map_err(Stop::io(DOING))?;
        fs::remove_dir_all(&dir).map_err(Stop::io(DOING))?;
        Ok(Ran {
            exit: match output.exit {
                Exit::Status(status) => Some(status),
                _ => None,
            },
            output: printed,
            took_ms: output.took_ms,
        })
    }
}
