//! Messages between sessions (section 10).

use serde::{Deserialize, Serialize};

use super::id::{SessId, SigId};
use super::signal_kind::SignalKind;
use super::time::Instant;

/// The longest summary, in characters.
pub const SUMMARY_MAX: usize = 200;

/// Where a signal goes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// One session.
    Session(SessId),
    /// The people.
    Human,
}

/// Who sent a signal; the store sets it, never the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// One session.
    Session(SessId),
    /// A person or a script without a claim, by user name.
    User(String),
    /// brain itself.
    Brain,
}

/// One message. Whether it was delivered is a lease, not part of this fact.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Signal {
    /// Its id.
    pub id: SigId,
    /// Who sent it.
    pub from: Sender,
    /// To whom.
    pub to: Address,
    /// What it means.
    pub kind: SignalKind,
    /// The sender's scope, for successors.
    pub scope: Vec<String>,
    /// One line of data, never an instruction.
    pub summary: String,
    /// When it was sent.
    pub created_at: Instant,
    /// When a reader said that it was received.
    pub acked_at: Option<Instant>,
    /// Whether the addressee had ended when it was sent.
    pub orphan: bool,
}
