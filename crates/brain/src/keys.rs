//! The keys whose seals count in a brain (protocol, section 5).

use std::path::PathBuf;

use protocol::facts::gate::Gate;

use crate::config::{Config, Gates};
use crate::exit;
use crate::failure::{Failure, Trouble};
use crate::human::{Demo, HumanError, MacKey, Seal, Signers};
use crate::root::Root;

/// The keys whose seals count in one brain: this machine's, the listed ones, a demo's own.
#[derive(Clone, Debug)]
pub struct Keys {
    root: PathBuf,
    brain: String,
    gates: Gates,
}

impl Keys {
    /// The keys of this brain. Opens none of them yet: most commands meet no answer.
    pub fn of(root: &Root, config: &Config) -> Keys {
        Keys {
            root: root.dir().to_owned(),
            brain: config.brain.clone().unwrap_or_default(),
            gates: config.gates.clone(),
        }
    }

    /// Whether a gate's answer is one. What cannot be looked at does not count.
    pub fn verify(&self, gate: &Gate) -> bool {
        let Some(answer) = &gate.answer else { return false };
        let Some(seal) = Seal::parse(&answer.mac) else {
            return false;
        };
        let text = gate.to_sign(answer.choice, &answer.words, &answer.by.user, &answer.by.host);
        match &seal {
            Seal::Mac(_) => !self.gates.signed && self.machine().is_ok_and(|key| key.verifies(&text, &seal)),
            Seal::Ssh(_) => self
                .signers()
                .is_ok_and(|signers| matches!(signers.verify(&text, &seal), Ok(Some(_)))),
            Seal::Demo(_) => self
                .demo()
                .is_ok_and(|demo| demo.is_some_and(|demo| demo.verifies(&text, &seal))),
        }
    }

    /// This machine's key.
    pub fn machine(&self) -> Result<MacKey, Failure> {
        MacKey::open(&MacKey::place().map_err(trouble)?, &self.root).map_err(trouble)
    }

    /// The demo's own key, in a demo.
    pub fn demo(&self) -> Result<Option<Demo>, Failure> {
        if !Demo::is_claimed(&self.root) {
            return Ok(None);
        }
        Ok(Demo::open(&self.root, &self.brain, &self.machine()?))
    }

    /// The keys that are listed.
    pub fn signers(&self) -> Result<Signers, Failure> {
        match &self.gates.signers {
            Some(file) => Ok(Signers::new(self.root.join(file))),
            None => Err(Trouble::new(
                exit::CONFIG,
                "config.bad",
                "gates.signed needs gates.signers".to_owned(),
            )
            .hint("name the file that lists the keys: gates: {signed: true, signers: .allowed-signers}")
            .into()),
        }
    }
}

/// Says why a proof or a seal could not be had.
pub fn trouble(error: HumanError) -> Failure {
    let code = match error {
        HumanError::NoTerminal | HumanError::WrongCode => "gate.not_human",
        HumanError::Ssh { .. } => "gate.signature",
        HumanError::Key { .. } | HumanError::Io { .. } => "gate.key",
    };
    Trouble::new(exit::NOT_YOURS, code, error.to_string()).into()
}
