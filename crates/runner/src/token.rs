//! Session tokens: what proves that a process works for a session (protocol, section 5).

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use protocol::facts::caller::TokenDigest;
use protocol::facts::id::SessId;

use crate::random;

/// The folder of tokens in a brain's state, one file per session.
pub const FOLDER: &str = "tokens";

/// The variable in which a launched child has its session's token.
pub const VARIABLE: &str = "BRAIN_TOKEN";

/// How many random bytes a token has.
const BYTES: usize = 32;

/// A session's token. It has no voice: it is never shown, logged or stored but in its own file.
pub struct Token([u8; BYTES]);

impl Token {
    /// Mints a new one.
    ///
    /// # Errors
    ///
    /// When the operating system gives no randomness.
    pub fn mint() -> io::Result<Self> {
        random::bytes().map(Self)
    }

    /// Reads what stands in a file, the environment or standard input; anything else is no token.
    pub fn read(text: &str) -> Option<Self> {
        random::unhex(text.trim()).map(Self)
    }

    /// Returns the digest by which rules and stores know it.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(blake3::hash(&self.0).to_hex().to_string())
    }

    /// Returns the text that a child finds under [`VARIABLE`].
    pub fn to_environment(&self) -> String {
        random::hex(&self.0)
    }

    /// Gives it to a child in its environment.
    pub fn hand_to(&self, child: &mut Command) {
        child.env(VARIABLE, random::hex(&self.0));
    }

    /// Keeps it as `.brain/tokens/<sess_id>`, readable by the user alone; a reader meets the old one or the new
    /// one, never half of one.
    ///
    /// It is not forced to the disk: a power cut ends every process that could have used it, and leaves the
    /// claim stale; what is torn by one reads as no token.
    ///
    /// # Errors
    ///
    /// Whatever keeps the file from being written.
    pub fn keep(&self, state: &Path, id: &SessId) -> io::Result<()> {
        let folder = state.join(FOLDER);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let draft = folder.join(format!(".{id}.{}", random::hex(&random::bytes::<8>()?)));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        let written = file
            .write_all(format!("{}\n", random::hex(&self.0)).as_bytes())
            .and_then(|()| fs::rename(&draft, path(state, id)));
        if written.is_err() {
            let _ = fs::remove_file(&draft); // what failed first is what is told
        }
        written
    }

    /// Finds the token of a session; `None` when it has none here.
    ///
    /// # Errors
    ///
    /// When the file is there and cannot be read, as in a sandbox, or holds no token.
    pub fn find(state: &Path, id: &SessId) -> io::Result<Option<Self>> {
        match fs::read_to_string(path(state, id)) {
            Ok(text) => Self::read(&text)
                .map(Some)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the file holds no token")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Forgets the token of a session that ended; one that is gone already is no error.
    ///
    /// # Errors
    ///
    /// Whatever keeps the file from being removed.
    pub fn forget(state: &Path, id: &SessId) -> io::Result<()> {
        match fs::remove_file(path(state, id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn path(state: &Path, id: &SessId) -> PathBuf {
    state.join(FOLDER).join(id.as_str())
}
