//! The files in an attempt's folder: which there are, and how they are written so that a crash tears none.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use protocol::facts::caller::Process;
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Error, Limits};

/// An attempt's folder.
#[derive(Clone, Debug)]
pub(super) struct Place(PathBuf);

/// What the starter tells the shim besides what may be secret; `spec.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    /// When the child is ended.
    pub limits: Limits,
    /// Whether the child ends when its starter does.
    pub tied: bool,
    /// The names of the variables whose values are filtered from the log.
    pub masked: Vec<String>,
}

/// What the shim says before it lets the child go; `started.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Started {
    /// The shim.
    pub shim: Process,
    /// The child, which leads its own process group.
    pub child: Process,
}

impl Place {
    /// Names a folder, which need not exist.
    pub fn new(dir: &Path) -> Place {
        Place(dir.to_owned())
    }

    /// The value of [`super::MARK`]: the folder by its one true name, however it was spelled.
    pub fn mark(&self) -> PathBuf {
        self.0.canonicalize().unwrap_or_else(|_| self.0.clone())
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.0
    }

    /// The file whose lock says that the attempt runs.
    pub fn alive(&self) -> PathBuf {
        self.0.join("alive")
    }

    /// The [`Order`].
    pub fn spec(&self) -> PathBuf {
        self.0.join("spec.json")
    }

    /// The shim's [`Started`].
    pub fn started(&self) -> PathBuf {
        self.0.join("started.json")
    }

    /// The shim's last word, an [`super::Ending`].
    pub fn result(&self) -> PathBuf {
        self.0.join("result.json")
    }

    /// What the child printed.
    pub fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// The pipe on which the shim takes requests.
    pub fn control(&self) -> PathBuf {
        self.0.join("control")
    }

    /// Why the child's program could not be started, when that was found out in its own process.
    pub fn refused(&self) -> PathBuf {
        self.0.join("refused")
    }

    /// What the shim itself printed: nothing, unless it broke.
    pub fn shim_log(&self) -> PathBuf {
        self.0.join("shim.log")
    }

    /// Makes the folder, for its owner alone.
    pub fn make(&self) -> Result<(), Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(Error::system("make", &self.0))
    }

    /// Opens `alive`; `None` when there is none and none is to be made.
    pub fn open_alive(&self, make: bool) -> Result<Option<File>, Error> {
        let path = self.alive();
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(make)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        match opened {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !make => Ok(None),
            Err(error) => Err(Error::system("open", &path)(error)),
        }
    }

    /// Locks `alive`; `false` when that had to wait and must not.
    pub fn lock(&self, alive: &File, how: FlockOperation) -> Result<bool, Error> {
        loop {
            match flock(alive, how) {
                Ok(()) => return Ok(true),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::system("lock", &self.alive())(error)),
            }
        }
    }

    /// Opens a file for its owner alone, to write at its end.
    pub fn append(&self, path: &Path) -> Result<File, Error> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .map_err(Error::system("open", path))
    }

    /// Writes a file for its owner alone, whole or not at all, whatever dies meanwhile (R47).
    pub fn write(&self, path: &Path, value: &impl Serialize) -> Result<(), Error> {
        let bytes = serde_json::to_vec(value)
            .map_err(io::Error::from)
            .map_err(Error::system("write", path))?;
        let draft = path.with_extension("tmp");
        let written = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&draft)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&draft, path)?;
            File::open(&self.0)?.sync_all()
        };
        written().map_err(Error::system("write", path))
    }

    /// Reads what [`Place::write`] wrote; `None` when it has not.
    pub fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Error> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(io::Error::from)
                .map_err(Error::system("read", path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::system("read", path)(error)),
        }
    }
}

/// How much of a file's end [`tail`] looks at.
const TAIL: u64 = 256 * 1024;

/// Gives the last lines of a file, at most 256 KiB of them; what is no UTF-8 is replaced.
pub(super) fn tail(path: &Path, lines: usize) -> Result<String, Error> {
    let read = || {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let bytes = match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(Error::system("read", path))?,
    };
    let text = String::from_utf8_lossy(&bytes);
    // The line break at the very end closes the last line and begins none.
    let body = text.strip_suffix('\n').unwrap_or(&text);
    let from = match lines {
        0 => text.len(),
        _ => body
            .rmatch_indices('\n')
            .nth(lines - 1)
            .map_or(0, |(at, _)| at + 1),
    };
    Ok(text[from..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_whole_lines_from_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(tail(&path, 3).unwrap(), "");
        for (text, lines, expected) in [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\nb\n", 9, "a\nb\n"),
            ("a\n", 0, ""),
            ("", 1, ""),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(tail(&path, lines).unwrap(), expected);
        }
    }
}
