//! The git of this machine: its version, and whom it would commit as.

use std::path::Path;

use crate::command::{bare, unstarted};
use crate::{Error, Kind};

/// What git calls itself, with its major and minor number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// Its own words, such as `git version 2.47.1`.
    pub text: String,
    /// Major and minor.
    pub number: (u32, u32),
}

/// Asks git for its version.
///
/// # Errors
///
/// [`Kind::Missing`] when there is none on `PATH`.
pub fn version() -> Result<Version, Error> {
    const DOING: &str = "asking git for its version";
    let here = Path::new(".");
    let output = bare(here)
        .arg("--version")
        .output()
        .map_err(|why| unstarted(DOING, here, why))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let number = text.split_whitespace().nth(2).unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => Ok(Version {
            number: (major, minor),
            text,
        }),
        _ => Err(Error::new(DOING, here, Kind::Garbled).with_stderr(&output.stderr)),
    }
}

/// Tells whether git knows who commits in this folder, which need not be in a repository.
///
/// # Errors
///
/// [`Kind::Missing`] when there is no git on `PATH`.
pub fn knows_committer(folder: &Path) -> Result<bool, Error> {
    const DOING: &str = "asking git who commits";
    let output = bare(folder)
        .args(["var", "GIT_COMMITTER_IDENT"])
        .output()
        .map_err(|why| unstarted(DOING, folder, why))?;
    Ok(output.status.success())
}
