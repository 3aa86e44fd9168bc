//! Runs a test command and keeps what it printed. To be replaced by the launcher's own way to run quietly.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::evidence::BYTES_MAX;

/// What became of a command.
pub(super) struct Ran {
    /// Its own exit status; `None` when an interrupt ended it.
    pub exit: Option<i32>,
    /// What it printed to both streams, in the order in which it did, as far as a report may be long.
    pub output: Vec<u8>,
    /// How long it took.
    pub took: Duration,
}

/// Runs a shell command to its end, without a terminal.
pub(super) fn run(
    command: &str,
    folder: &Path,
    environment: Option<&[(OsString, OsString)]>,
    log: &Path,
) -> io::Result<Ran> {
    if let Some(above) = log.parent() {
        fs::create_dir_all(above)?;
    }
    let printed = File::create(log)?;
    let mut child = Command::new("/bin/sh");
    if let Some(environment) = environment {
        child.env_clear().envs(environment.iter().cloned());
    }
    child
        .args(["-c", command])
        .current_dir(folder)
        .env_remove("BRAIN_TOKEN")
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(printed)
        .process_group(0);
    let began = Instant::now();
    let status = child.status()?;
    let took = began.elapsed();
    let mut output = Vec::new();
    File::open(log)?
        .take(BYTES_MAX as u64 + 1)
        .read_to_end(&mut output)?;
    fs::remove_file(log)?;
    Ok(Ran {
        exit: status.code(),
        output,
        took,
    })
}
