//! Proofs that a human answers: a code typed on the terminal, a signature, and the seal that every answer bears
//! (`hypervisor.md`, 9).
//!
//! An answer is sealed over [`Gate::to_sign`](protocol::facts::gate::Gate::to_sign). The seal stands in the
//! answer and names its kind; one that does not verify is no answer:
//!
//! | seal | key | counts |
//! | --- | --- | --- |
//! | `mac:` | the machine's and user's, outside the root | on this machine |
//! | `ssh:` | a listed one | on every machine that lists it |
//! | `demo:` | the throw-away one of a brain that `demo` made | in that brain alone |

mod demo;
mod key;
mod signed;
mod typed;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use demo::Demo;
pub use key::MacKey;
pub use signed::{Signers, sign};
pub use typed::typed;

/// What an answer bears so that it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seal {
    /// The machine's own: hexadecimal.
    Mac(String),
    /// An SSH signature, armoured.
    Ssh(String),
    /// That of a demo's key: hexadecimal.
    Demo(String),
}

impl Seal {
    /// Reads a seal from an answer; `None` for what is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        Some(match kind {
            "mac" => Self::Mac(rest.to_owned()),
            "ssh" => Self::Ssh(rest.to_owned()),
            "demo" => Self::Demo(rest.to_owned()),
            _ => return None,
        })
    }
}

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mac(hex) => write!(f, "mac:{hex}"),
            Self::Ssh(armoured) => write!(f, "ssh:{armoured}"),
            Self::Demo(hex) => write!(f, "demo:{hex}"),
        }
    }
}

/// Says why nobody was proven to be a human.
#[derive(Debug)]
pub enum HumanError {
    /// There is no terminal to ask on: a pipe, CI, a hook.
    NoTerminal,
    /// The code was not the one shown.
    WrongCode,
    /// `ssh-keygen` is missing or did not do its work.
    Ssh {
        /// What it was to do.
        doing: &'static str,
        /// What it said.
        said: String,
    },
    /// A key file is not as it must be.
    Key {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: &'static str,
        /// The command that mends it.
        fix: String,
    },
    /// The disk said no.
    Io {
        /// What was to be done.
        doing: &'static str,
        /// To which file.
        file: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl HumanError {
    fn io(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |source| Self::Io { doing, file, source }
    }
}

impl fmt::Display for HumanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTerminal => f.write_str(
                "only a human answers this, and there is no terminal to ask on: run the same command in a terminal of \
                 your own",
            ),
            Self::WrongCode => {
                f.write_str("that was not the code that was shown: nothing was done, run the same command again")
            }
            Self::Ssh { doing, said } => write!(f, "ssh-keygen failed at {doing}: {said}"),
            Self::Key { file, what, fix } => write!(f, "{}: {what}\n  mend it: {fix}", file.display()),
            Self::Io { doing, file, source } => write!(f, "{doing} {}: {source}", file.display()),
        }
    }
}

impl std::error::Error for HumanError {}
