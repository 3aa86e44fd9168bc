//! The key with which this machine and user seal answers: outside every root, store and sandbox.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{HumanError, Seal};
use runner::random;

/// A key for seals; it has no voice.
pub struct MacKey([u8; 32]);

/// Keeps a seal of this kind apart from every other use of the same key.
const CONTEXT: &str = "brain-gate\n";

impl MacKey {
    /// Returns where the key lies: `$XDG_STATE_HOME/brain/mac.key`, else below `~/.local/state`.
    ///
    /// # Errors
    ///
    /// [`HumanError::Key`] without a home.
    pub fn place() -> Result<PathBuf, HumanError> {
        let absolute = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
        let state = state.ok_or_else(|| HumanError::Key {
            file: PathBuf::from("mac.key"),
            what: "there is no home to keep it in",
            fix: "export XDG_STATE_HOME=DIR".to_owned(),
        })?;
        Ok(state.join("brain/mac.key"))
    }

    /// Opens the key at a place, and makes it the first time; of several that make it at once one wins.
    ///
    /// # Errors
    ///
    /// [`HumanError::Key`] when it lies within the root, where agents write, or others can read it.
    pub fn open(file: &Path, root: &Path) -> Result<Self, HumanError> {
        let folder = file.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(HumanError::io("making", folder))?;
        let real = fs::canonicalize(folder).map_err(HumanError::io("finding", folder))?;
        if real.starts_with(root) {
            return Err(HumanError::Key {
                file: file.to_owned(),
                what: "the key of answers may not lie within the brain, where agents write",
                fix: "unset XDG_STATE_HOME".to_owned(),
            });
        }
        if !file.exists() {
            make(file)?;
        }
        let found = fs::metadata(file).map_err(HumanError::io("reading", file))?;
        let mine = rustix::process::getuid().as_raw() == found.uid();
        if !mine || found.mode() & 0o077 != 0 {
            return Err(HumanError::Key {
                file: file.to_owned(),
                what: "others can read the key of answers",
                fix: format!("chmod 600 {}", file.display()),
            });
        }
        let bytes = fs::read(file).map_err(HumanError::io("reading", file))?;
        match <[u8; 32]>::try_from(bytes) {
            Ok(key) => Ok(Self(key)),
            Err(_) => Err(HumanError::Key {
                file: file.to_owned(),
                what: "this is no key of answers; without it, answers sealed before no longer verify",
                fix: format!("rm {}", file.display()),
            }),
        }
    }

    pub(super) fn from_bytes(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Seals an answer.
    pub fn seal(&self, answer: &str) -> Seal {
        Seal::Mac(self.mac(CONTEXT, answer).to_hex().to_string())
    }

    /// Says whether a seal is this key's own over this answer.
    pub fn verifies(&self, answer: &str, seal: &Seal) -> bool {
        match seal {
            Seal::Mac(hex) => self.is_mac(CONTEXT, answer, hex),
            Seal::Ssh(_) | Seal::Demo(_) => false,
        }
    }

    pub(super) fn mac(&self, context: &str, text: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(context.as_bytes());
        hasher.update(text.as_bytes());
        hasher.finalize()
    }

    /// Compares in constant time.
    pub(super) fn is_mac(&self, context: &str, text: &str, hex: &str) -> bool {
        blake3::Hash::from_hex(hex).is_ok_and(|given| given == self.mac(context, text))
    }
}

/// Writes a new key beside its place and gives it its name, which only one can.
fn make(file: &Path) -> Result<(), HumanError> {
    let failed = || HumanError::io("making", file);
    let draft = file.with_extension(random::hex(&random::bytes::<8>().map_err(failed())?));
    let key = random::bytes::<32>().map_err(failed())?;
    let made = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut new| {
            new.write_all(&key)?;
            new.sync_all()?;
            match fs::hard_link(&draft, file) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                other => other,
            }
        });
    let _ = fs::remove_file(&draft); // what failed first is what is told
    made.map_err(failed())
}
