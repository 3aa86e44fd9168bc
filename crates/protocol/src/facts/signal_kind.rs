//! The types that a signal may have.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        /// What a signal says by its type alone (protocol, 10); written in capitals, exactly.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum SignalKind {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }

        impl SignalKind {
            /// All types, in the order of the protocol: the list that a refusal of an unknown one shows.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Gives the written name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

kinds! {
    /// The sender cannot go on without an answer.
    BlockedOn = "BLOCKED_ON",
    /// A piece of work was delivered.
    Checkpoint = "CHECKPOINT",
    /// Work passes to the reader.
    Handoff = "HANDOFF",
    /// Worth knowing, blocks nothing.
    Info = "INFO",
    /// A satellite was launched.
    Spawn = "SPAWN",
    /// A satellite came back.
    Return = "RETURN",
    /// Somebody above must decide.
    Escalate = "ESCALATE",
    /// A step of a workflow is done.
    StepDone = "STEP_DONE",
    /// A gate waits for a human.
    GatePending = "GATE_PENDING",
    /// All is done.
    Done = "DONE",
    /// The breaker opened.
    CircuitBreak = "CIRCUIT_BREAK",
    /// Stop for good.
    Abort = "ABORT",
    /// Stop until resumed.
    Paused = "PAUSED",
    /// Ready to be reviewed.
    ReadyForReview = "READY_FOR_REVIEW",
    /// The review is done.
    Reviewed = "REVIEWED",
    /// Coordinate this.
    Orchestrate = "ORCHESTRATE",
    /// The plan changes.
    Adapt = "ADAPT",
}

impl SignalKind {
    /// Reads a type by its written name, in capitals.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seventeen_types_are_read_in_capitals_only() {
        assert_eq!(SignalKind::ALL.len(), 17);
        for kind in SignalKind::ALL {
            assert_eq!(SignalKind::parse(kind.as_str()), Some(*kind));
            assert_eq!(serde_json::to_string(kind).unwrap(), format!("\"{kind}\""));
        }
        for text in ["blocked_on", "BLOCKED-ON", "HUMAN_GATE", ""] {
            assert_eq!(SignalKind::parse(text), None, "{text}");
        }
    }
}
