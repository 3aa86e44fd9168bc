//! Making a repository, and showing its history to a person: what a demonstration needs.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::command::failure;
use crate::door::Door;
use crate::{Error, Kind, Repository};

impl Repository {
    /// Makes a repository in a folder that is none yet, on this branch and with these settings of its own.
    ///
    /// # Errors
    ///
    /// [`Kind::Missing`] without git; what git says otherwise.
    pub fn init(folder: &Path, branch: &str, settings: &[(&str, &str)]) -> Result<Repository, Error> {
        const DOING: &str = "making a repository";
        let mut init = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
        {
            init.env_remove(name);
        }
        init.args(["init", "--quiet", "--initial-branch", branch])
            .current_dir(folder);
        let output = init.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::new(DOING, folder, Kind::Missing),
            _ => Error::io(DOING, folder, error),
        })?;
        if !output.status.success() {
            return Err(failure(DOING, folder, &output));
        }
        let made = Repository::at(folder).ok_or_else(|| Error::new(DOING, folder, Kind::NotARepository))?;
        let door = Door::user(made.clone());
        for (name, value) in settings {
            door.git(DOING).args(["config", name, value]).run()?;
        }
        Ok(made)
    }
}

impl Door {
    /// Draws the last commits of a branch as a graph, a line each.
    ///
    /// # Errors
    ///
    /// What git says.
    pub fn graph(&self, branch: &str, most: usize) -> Result<String, Error> {
        let most = format!("--max-count={most}");
        let args = ["log", "--graph", "--oneline", "--no-color", &most, branch, "--"];
        let drawn = self.git("drawing the history").args(args).run()?;
        Ok(String::from_utf8_lossy(&drawn).into_owned())
    }
}
