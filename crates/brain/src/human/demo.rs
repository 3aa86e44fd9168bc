//! The throw-away key of a brain that `demo` made, which answers whoever calls.
//!
//! A demo shows a gate being answered, so its answers are sealed and verified as all others are, with nothing
//! but brain and git on the machine: by a key that lies in `.brain/demo`. That file must not turn a real brain
//! into one that agents answer in, so it is no proof by itself: the machine's key seals it over the root's
//! folder and the brain's id. Moved elsewhere, or written by someone without that key, it counts for nothing.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{HumanError, MacKey, Seal};
use crate::root::STATE;
use runner::random;

/// The file that holds the key, in a brain's state.
const FILE: &str = "demo";
const CONTEXT: &str = "brain-demo\n";

/// The key of one demo.
pub struct Demo(MacKey);

impl Demo {
    /// Makes the brain at `root` a demo. Only `brain demo` does, in a folder that it made itself.
    ///
    /// # Errors
    ///
    /// When the file exists or cannot be written.
    pub fn make(root: &Path, brain_id: &str, machine: &MacKey) -> Result<Self, HumanError> {
        let file = root.join(STATE).join(FILE);
        let failed = || HumanError::io("writing", &file);
        let key = random::bytes::<32>().map_err(failed())?;
        let hex = random::hex(&key);
        let seal = machine.mac(CONTEXT, &sealed(root, brain_id, &hex)).to_hex();
        let mut new = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file)
            .map_err(failed())?;
        new.write_all(format!("{hex}\n{seal}\n").as_bytes())
            .map_err(failed())?;
        Ok(Self(MacKey::from_bytes(key)))
    }

    /// Says whether a brain claims to be a demo, which costs one look; [`Demo::open`] says whether it is.
    pub fn is_claimed(root: &Path) -> bool {
        root.join(STATE).join(FILE).is_file()
    }

    /// Opens the key of a demo; `None` where this brain is none.
    pub fn open(root: &Path, brain_id: &str, machine: &MacKey) -> Option<Self> {
        let text = fs::read_to_string(root.join(STATE).join(FILE)).ok()?;
        let (hex, seal) = text.trim_end().split_once('\n')?;
        let key = random::unhex(hex)?;
        machine
            .is_mac(CONTEXT, &sealed(root, brain_id, hex), seal)
            .then(|| Self(MacKey::from_bytes(key)))
    }

    /// Seals an answer.
    pub fn seal(&self, answer: &str) -> Seal {
        Seal::Demo(self.0.mac(CONTEXT, answer).to_hex().to_string())
    }

    /// Says whether a seal is this demo's own over this answer.
    pub fn verifies(&self, answer: &str, seal: &Seal) -> bool {
        match seal {
            Seal::Demo(hex) => self.0.is_mac(CONTEXT, answer, hex),
            Seal::Mac(_) | Seal::Ssh(_) => false,
        }
    }
}

fn sealed(root: &Path, brain_id: &str, hex: &str) -> String {
    format!("{}\n{brain_id}\n{hex}", root.display())
}
