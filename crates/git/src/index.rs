//! An index of our own: what a commit will hold, without touching the one that people stage into.

use crate::door::Door;
use crate::{Error, Kind, Oid};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A copy of the checkout's index, gone when dropped.
///
/// It is a copy rather than an empty one because the copy knows which files have not changed since git
/// last read them; a new one would have every file of the repository hashed again.
pub(crate) struct Scratch<'d> {
    door: &'d Door,
    file: PathBuf,
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_file(self.file.with_extension("lock"));
    }
}

impl<'d> Scratch<'d> {
    /// Copies the checkout's index and puts what `head` has in the place of all that is staged.
    pub fn at(door: &'d Door, head: Option<&Oid>, doing: &'static str) -> Result<Scratch<'d>, Error> {
        let scratch = Scratch {
            door,
            file: door.scratch("index"),
        };
        match copy_with_time(&door.index_file(), &scratch.file) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io(doing, &scratch.file, e)),
        }
        let git = door
            .git(doing)
            .env("GIT_INDEX_FILE", &scratch.file)
            .arg("read-tree");
        match head {
            Some(head) => git.args(["--reset", head.as_str()]).run()?,
            None => git.arg("--empty").run()?,
        };
        Ok(scratch)
    }

    /// Takes these paths over from the files: content, mode, absence.
    pub fn take(&self, paths: &[PathBuf], doing: &'static str) -> Result<(), Error> {
        take(self.door, &self.file, paths, doing)
    }

    /// Writes the tree and returns its name.
    pub fn write_tree(&self, doing: &'static str) -> Result<Oid, Error> {
        let out = self
            .door
            .git(doing)
            .env("GIT_INDEX_FILE", &self.file)
            .arg("write-tree")
            .run()?;
        Oid::from_bytes(&out).ok_or_else(|| self.door.garbled(doing))
    }
}

/// Copies an index with its time: what was written within one second of it is looked at again by git, and a
/// copy that seems younger would hide such a change.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let written = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    fs::File::options().write(true).open(to)?.set_modified(written)
}

/// Takes paths over from the files into an index. These are paths and no patterns: a name is only itself.
pub(crate) fn take(door: &Door, index: &Path, paths: &[PathBuf], doing: &'static str) -> Result<(), Error> {
    check_paths(door, paths, doing)?;
    door.git(doing)
        .env("GIT_INDEX_FILE", index)
        .args(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"])
        .input_paths(paths)
        .run()?;
    Ok(())
}

/// Refuses what is no path inside the checkout before git sees it.
pub(crate) fn check_paths(door: &Door, paths: &[PathBuf], doing: &'static str) -> Result<(), Error> {
    use std::path::Component;
    let inside = |path: &Path| {
        !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
    };
    match paths.iter().find(|path| !inside(path)) {
        Some(path) => Err(door.error(
            doing,
            Kind::BadName {
                name: path.display().to_string(),
            },
        )),
        None => Ok(()),
    }
}
