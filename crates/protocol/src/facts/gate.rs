//! A question that only a human answers (`hypervisor.md`, 9).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::caller::Actor;
use super::id::{GateId, RunId, SessId};
use super::time::Instant;

/// What a gate is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// A plan's `gate: human`, or a `gate:human` trigger.
    Phase,
    /// A zone that needs a right.
    Zone,
    /// A change to what the house stands on.
    Architecture,
    /// A partial result: go on?
    Partial,
    /// A failed phase, or one whose need failed.
    Failed,
    /// Something to look at first.
    Review,
    /// A secret or a file of secrets that is missing.
    Credentials,
    /// The plan changed under a run.
    Plan,
    /// A close that lacks evidence.
    Close,
    /// Work that failed too often.
    Breaker,
    /// A question of a session's own.
    Ask,
}

impl GateKind {
    /// Every kind with its name.
    pub const ALL: [(GateKind, &'static str); 11] = [
        (GateKind::Phase, "phase"),
        (GateKind::Zone, "zone"),
        (GateKind::Architecture, "architecture"),
        (GateKind::Partial, "partial"),
        (GateKind::Failed, "failed"),
        (GateKind::Review, "review"),
        (GateKind::Credentials, "credentials"),
        (GateKind::Plan, "plan"),
        (GateKind::Close, "close"),
        (GateKind::Breaker, "breaker"),
        (GateKind::Ask, "ask"),
    ];

    /// Its name, in small letters.
    pub fn as_str(self) -> &'static str {
        GateKind::ALL
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("ask", |(_, name)| name)
    }

    /// Reads a name; capitals are accepted.
    pub fn parse(text: &str) -> Option<GateKind> {
        let text = text.to_ascii_lowercase();
        GateKind::ALL
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(kind, _)| *kind)
    }
}

impl fmt::Display for GateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a human can answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Go on as planned; `approve` is the same.
    Continue,
    /// Take a changed plan or request.
    Adapt,
    /// Do it once more.
    Retry,
    /// Leave this out.
    Skip,
    /// Stop; `reject` is the same.
    Abort,
}

impl Choice {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Choice::Continue => "continue",
            Choice::Adapt => "adapt",
            Choice::Retry => "retry",
            Choice::Skip => "skip",
            Choice::Abort => "abort",
        }
    }

    /// Reads a word, English or French.
    pub fn parse(text: &str) -> Option<Choice> {
        Some(match text {
            "continue" | "approve" | "continuer" => Choice::Continue,
            "adapt" | "adapter" => Choice::Adapt,
            "retry" => Choice::Retry,
            "skip" | "passer" => Choice::Skip,
            "abort" | "reject" | "abandonner" => Choice::Abort,
            _ => return None,
        })
    }
}

/// What a gate belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A claim, which waits for the answer.
    Claim(SessId),
    /// A phase of a run.
    Phase(RunId, String),
    /// A run as a whole.
    Run(RunId),
}

/// A human's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// What was chosen.
    pub choice: Choice,
    /// The words that came with it.
    pub words: String,
    /// Who answered.
    pub by: Actor,
    /// When.
    pub at: Instant,
    /// Proves that brain took this answer from a human on this machine; see [`Gate::to_sign`].
    pub mac: String,
}

/// How the subject of a `failed` gate begins that is about a phase's need.
pub const NEED: &str = "need:";

/// How the subject of a phase's `zone` gate begins that is about deleted kernel files: their paths follow.
pub const DELETED: &str = "deleted:";

/// A question and, once, its answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Gate {
    /// Its id.
    pub id: GateId,
    /// What it is about.
    pub kind: GateKind,
    /// What it belongs to.
    pub about: About,
    /// The zone or path that the right is for, on a `zone` gate; the step that asks, on a `close` gate.
    pub subject: String,
    /// Why, as the asker wrote it: data, to be shown escaped and labelled.
    pub why: String,
    /// What the store knows, one `label: text` a line.
    pub known: Vec<(String, String)>,
    /// The hash of what the answer is bound to.
    pub shown: String,
    /// Who asked.
    pub by: Actor,
    /// When it was asked.
    pub asked_at: Instant,
    /// The answer, given once.
    pub answer: Option<Answer>,
    /// Whether the answer waits for a pause to end before it takes effect.
    pub deferred: bool,
    /// When it was closed without an answer, because what it belongs to ended.
    pub withdrawn_at: Option<Instant>,
}

impl Gate {
    /// Whether it still waits for an answer.
    pub fn is_pending(&self) -> bool {
        self.answer.is_none() && self.withdrawn_at.is_none()
    }

    /// The answers that it offers, in the order in which they are shown.
    ///
    /// Retry stands in place of continue where something failed or is missing, but not where only a need
    /// of the phase did: there is nothing of its own to try again.
    pub fn choices(&self) -> [Choice; 4] {
        let again = match self.kind {
            GateKind::Failed => !self.subject.starts_with(NEED),
            GateKind::Credentials | GateKind::Plan => true,
            _ => false,
        };
        let first = if again { Choice::Retry } else { Choice::Continue };
        [first, Choice::Adapt, Choice::Skip, Choice::Abort]
    }

    /// The words without which it takes no continue: the path, where kernel files are deleted (section 4).
    pub fn words_needed(&self) -> Option<&str> {
        match (self.kind, &self.about) {
            (GateKind::Zone, About::Claim(_)) => {
                Some(self.subject.as_str()).filter(|it| !matches!(*it, "kernel" | "personal"))
            }
            (GateKind::Zone, _) => self.subject.strip_prefix(DELETED),
            _ => None,
        }
    }

    /// The answer's choice, if one was given.
    pub fn choice(&self) -> Option<Choice> {
        self.answer.as_ref().map(|answer| answer.choice)
    }

    /// The bytes over which an answer's MAC is taken: gate, content, choice, words and person.
    pub fn to_sign(&self, choice: Choice, words: &str, user: &str, host: &str) -> String {
        let parts = [self.id.as_str(), &self.shown, choice.as_str(), words, user, host];
        parts
            .iter()
            .map(|part| format!("{}:{part}\n", part.len()))
            .collect()
    }
}
