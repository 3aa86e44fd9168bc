//! Who is calling: found once per command from what the caller cannot choose (section 5).

use serde::{Deserialize, Serialize};

/// A process that cannot be mistaken for another one that later gets its number (R18).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Process {
    /// The machine it runs on.
    pub host: String,
    /// The boot of that machine.
    pub boot: String,
    /// The namespace in which `pid` counts.
    pub pid_ns: u64,
    /// The process id.
    pub pid: u32,
    /// The start time in clock ticks since boot.
    pub start: u64,
}

/// The digest of a session token; the token itself never reaches a rule or a store.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenDigest(pub String);

/// How a human proved to be one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Typed the code that brain showed on this terminal.
    Typed {
        /// The terminal's device.
        terminal: String,
    },
    /// Signed with a listed key.
    Signed {
        /// The signer's name in the list of signers.
        signer: String,
    },
    /// Signed with the throw-away key of a brain that `demo` made.
    Demo,
}

/// What a caller is taken for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// A person, proven.
    Human(Proof),
    /// An AI coding agent, or what descends from one; says by which mark it was recognised.
    Agent {
        /// The mark, in words for the reader.
        by: String,
    },
    /// The rest: scripts, CI, a person's shell before a proof was asked for.
    Plain,
}

/// The one who gives a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Caller {
    /// What the caller is taken for before the store was asked.
    pub nature: Nature,
    /// The digest of the session token in its environment.
    pub token: Option<TokenDigest>,
    /// The session id that its agent host gave it.
    pub host_session: Option<String>,
    /// Itself and its chain of parents, nearest first.
    pub chain: Vec<Process>,
    /// The process that would own a claim opened now.
    pub owner: Option<Process>,
    /// The user's name.
    pub user: String,
    /// The machine's name.
    pub host: String,
    /// Free text: `claude-code`, `codex`, `human` …
    pub agent: Option<String>,
}

impl Caller {
    /// A plain caller without any mark, as a script has.
    pub fn plain(user: &str, host: &str) -> Caller {
        Caller {
            nature: Nature::Plain,
            token: None,
            host_session: None,
            chain: Vec::new(),
            owner: None,
            user: user.to_owned(),
            host: host.to_owned(),
            agent: None,
        }
    }
}

/// Who did something, as the journal keeps it; holds neither token nor process id (section 14).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Actor {
    /// `human`, `agent` or `plain`.
    pub nature: String,
    /// The user's name.
    pub user: String,
    /// The machine's name.
    pub host: String,
    /// The claim in whose name it acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<super::id::SessId>,
    /// How a human proved to be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}
