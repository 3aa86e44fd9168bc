//! A session's claim on a scope (section 5).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::caller::{Process, TokenDigest};
use super::gate::GateKind;
use super::id::{AttemptId, GateId, RunId, SessId, SigId};
use super::kind::Kind;
use super::report::Report;
use super::scope::Scope;
use super::span::Span;
use super::tests::Tests;
use super::time::Instant;
use super::trigger::Trigger;
use super::work::WorkKey;

/// A number that only grows, unique in the store (R7, R8): an epoch in the high bits, a counter below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl Fence {
    /// How many fences one epoch holds.
    pub const EPOCH: u64 = 1 << 40;

    /// The next one.
    pub fn next(self) -> Fence {
        Fence(self.0 + 1)
    }

    /// The first one of the next epoch.
    pub fn next_epoch(self) -> Fence {
        Fence((self.0 / Fence::EPOCH + 1) * Fence::EPOCH)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The part a claim plays in a family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimType {
    /// Delegates; claims attention, not files.
    Pilot,
    /// Works for a pilot or a domain.
    Satellite,
    /// Works alone.
    Solo,
}

impl ClaimType {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            ClaimType::Pilot => "pilot",
            ClaimType::Satellite => "satellite",
            ClaimType::Solo => "solo",
        }
    }

    /// Reads its word; the French `pilote` is a pilot.
    pub fn parse(text: &str) -> Option<ClaimType> {
        Some(match text {
            "pilot" | "pilote" => ClaimType::Pilot,
            "satellite" => ClaimType::Satellite,
            "solo" => ClaimType::Solo,
            _ => return None,
        })
    }
}

/// Whether a claim coordinates others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Does one task.
    #[default]
    Leaf,
    /// May launch satellites of its own.
    Domain,
}

impl Level {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Leaf => "leaf",
            Level::Domain => "domain",
        }
    }
}

/// What closing demands, inferred and never written by the caller (section 11).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The deliverable is committed.
    Atomic,
    /// The same, and green tests.
    Validated,
    /// Every descendant is terminal.
    Orchestrated,
}

impl Tier {
    /// Its number, 1 to 3.
    pub fn number(self) -> u8 {
        match self {
            Tier::Atomic => 1,
            Tier::Validated => 2,
            Tier::Orchestrated => 3,
        }
    }
}

/// Who works.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Owner {
    /// The user's name.
    pub user: String,
    /// The machine's name.
    pub host: String,
    /// The process whose life is the session's.
    pub process: Option<Process>,
    /// The session id that the agent's host gave.
    pub host_session: Option<String>,
}

/// One repository as it was when the claim met it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Base {
    /// The commit checked out; `None` before the first one.
    pub commit: Option<String>,
    /// The branch checked out; `None` on a detached head.
    pub branch: Option<String>,
    /// The folder of the checkout, absolute.
    pub checkout: String,
    /// Paths that were dirty, with the hash of what lay there (empty for a deletion), relative to the repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dirty: BTreeMap<String, String>,
    /// Ignored files of zone `secret` and `kernel`, with their hashes, relative to the repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub guarded: BTreeMap<String, String>,
}

/// A right that a human gave to one claim (section 4).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// May write kernel paths of its scope.
    Kernel,
    /// May write personal paths of its scope.
    Personal,
    /// May delete this kernel path, by its key.
    Delete(String),
}

/// The phase that a claim works on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PhaseOf {
    /// The run.
    pub run: RunId,
    /// The plan's name.
    pub plan: String,
    /// The phase's id.
    pub phase: String,
    /// The attempt.
    pub attempt: AttemptId,
}

/// In whose name a pause stands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pauser {
    /// A session.
    Claim(SessId),
    /// A person or script without a claim, by user name.
    User(String),
}

/// Why a claim failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedBy {
    /// Someone aborted it.
    Abort,
    /// A human rejected its gate.
    Reject,
    /// Another claim took its scope while it was stale.
    Superseded(SessId),
    /// It stayed stale beyond the grace.
    Reaped,
    /// The claim above it failed.
    Ancestor(SessId),
}

/// How a claim ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Closed with a result.
    Closed {
        /// When.
        at: Instant,
    },
    /// Failed.
    Failed {
        /// When.
        at: Instant,
        /// By what.
        by: FailedBy,
        /// In whose words.
        why: String,
    },
}

/// A stretch of time that does not count against the TTL.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Suspension {
    /// Its start.
    pub from: Instant,
    /// Its end; `None` while it lasts.
    pub to: Option<Instant>,
}

/// What a claim's result says of how it went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All of it.
    Ok,
    /// Some of it.
    Partial,
    /// None of it.
    Failed,
}

impl Outcome {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Partial => "partial",
            Outcome::Failed => "failed",
        }
    }

    /// Reads its word.
    pub fn parse(text: &str) -> Option<Outcome> {
        [Outcome::Ok, Outcome::Partial, Outcome::Failed]
            .into_iter()
            .find(|o| o.as_str() == text)
    }
}

/// Where test evidence came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// brain ran the command itself.
    Run,
    /// A report that a plain or human caller handed in.
    File,
}

/// A test run, bound to the tree that it vouches for (section 11, step 2).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// The command, as configured.
    pub command: String,
    /// The repository in which it ran, relative to the root.
    pub repo: String,
    /// The tree that the commit has.
    pub tree: String,
    /// The exit status of the command itself; `None` when an interrupt ended it.
    pub exit: Option<i32>,
    /// The counts, where any were readable.
    pub report: Option<Report>,
    /// Who produced it.
    pub source: EvidenceSource,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Uncommitted changes of other people that lay in the checkout.
    pub foreign: u32,
    /// New files that the command left, neither committed nor refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
}

impl Evidence {
    /// Whether the command itself ended well, something passed and nothing failed.
    pub fn is_green(&self) -> bool {
        self.exit == Some(0) && self.report.as_ref().is_some_and(Report::is_green)
    }

    /// What a human's word about this run is bound to.
    pub fn shown(&self) -> String {
        let counts = self.report.as_ref().map(|it| (it.total, it.passed, it.skipped));
        format!("{} {} {:?} {counts:?}", self.tree, self.command, self.exit)
    }
}

/// What a closed claim delivered, computed and not declared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClaimResult {
    /// How it went.
    pub status: Outcome,
    /// What was changed, as logical paths.
    pub files_modified: Vec<String>,
    /// The commit in each repository, by its path below the root.
    pub commit: BTreeMap<String, String>,
    /// The evidence.
    pub tests: Option<Evidence>,
    /// Children, for a claim of tier 3.
    pub children: Vec<SessId>,
    /// The signal that told the parent.
    pub signal_id: Option<SigId>,
    /// The closer's words, and what the close itself had to say.
    pub notes: Vec<String>,
}

/// A close that has begun and not yet ended; it survives a crash.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Closing {
    /// When it first began: the date of a coordinator's commit, so that a repeated close makes the same hash.
    pub began_at: Instant,
    /// The lowest result that the closer asked for.
    pub at_most: Outcome,
    /// The closer's words.
    pub notes: Option<String>,
    /// The evidence, once taken.
    pub evidence: Option<Evidence>,
    /// The commits made, by repository.
    pub commits: BTreeMap<String, String>,
    /// The landings intended, by repository: branch, old and new commit.
    pub landings: BTreeMap<String, Landing>,
    /// Gates that were let go on: the kind and the step, with what was shown.
    pub allowed: BTreeSet<(GateKind, String, String)>,
}

/// A move of a branch, written down before it is made (R11).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Landing {
    /// The full name of the ref.
    pub target: String,
    /// The commit that it must point to before.
    pub old: String,
    /// The commit that it points to after.
    pub new: String,
    /// Whether it was made.
    pub done: bool,
}

/// A map whose keys are no plain text, as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K, V, S>(map: &BTreeMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
    where
        K: Serialize,
        V: Serialize,
        S: Serializer,
    {
        serializer.collect_seq(map)
    }

    pub fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let pairs = Vec::<(K, V)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

/// A session's hold on a scope.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// Its id.
    pub id: SessId,
    /// The part it plays.
    #[serde(rename = "type")]
    pub kind_of: ClaimType,
    /// Where it may write.
    pub scope: Scope,
    /// What works: free text.
    pub agent: String,
    /// Who works.
    pub owner: Owner,
    /// When it was opened.
    pub opened_at: Instant,
    /// How long it lasts without a sign of life.
    pub ttl: Span,
    /// The task, one line.
    pub story_angle: String,
    /// What it does.
    pub satellite_type: Kind,
    /// Whether it coordinates others.
    pub satellite_level: Level,
    /// The claim that launched it.
    pub parent_satellite: Option<SessId>,
    /// What happens after `ok`.
    pub on_done: Vec<Trigger>,
    /// What happens after `partial`.
    pub on_partial: Vec<Trigger>,
    /// What happens after `failed`.
    pub on_fail: Vec<Trigger>,
    /// The branch on which it must work, where one was named.
    pub branch: Option<String>,
    /// Where its close lands.
    pub theme_branch: Option<String>,
    /// Its own checkout, where it has one.
    pub worktree: Option<String>,
    /// The command whose success closes it.
    pub tests: Option<Tests>,
    /// Whether every write needs the lock (`mode: rendering`).
    pub rendering: bool,
    /// Whether a pilot keeps everyone else out.
    pub exclusive: bool,
    /// Whether what was dirty in its scope at opening is its own.
    pub take_dirty: bool,
    /// The phase it works on.
    pub workflow: Option<PhaseOf>,
    /// The repositories as it met them, by path below the root.
    pub base: BTreeMap<String, Base>,
    /// Its fence; grows with each renewal from stale.
    pub fence: Fence,
    /// The digest of its token.
    pub token: TokenDigest,
    /// Whether a human or plain caller opened it as solo or pilot.
    pub human: bool,
    /// The hash of the policy that it was opened under.
    pub policy: String,
    /// The work whose failures it counts.
    pub work: WorkKey,
    /// Rights that a human gave it.
    pub rights: BTreeSet<Right>,
    /// The gate that it waits at.
    pub waiting: Option<GateId>,
    /// Its own pauses, stored as pairs: a key in JSON is plain text, which does not tell who from who.
    #[serde(with = "pairs")]
    pub pauses: BTreeMap<Pauser, String>,
    /// Its own stretches of waiting and pausing.
    pub suspensions: Vec<Suspension>,
    /// Whether its owner was proven gone since its last sign of life.
    pub reaped: bool,
    /// How it ended.
    pub end: Option<End>,
    /// A close under way.
    pub closing: Option<Closing>,
    /// What it delivered.
    pub result: Option<ClaimResult>,
    /// Claims whose files it took over, with everything they had as base.
    pub inherits: Vec<SessId>,
}

impl Claim {
    /// Whether it has ended; a stale claim has not.
    pub fn is_terminal(&self) -> bool {
        self.end.is_some()
    }

    /// Whether it is a domain: by its level, or by its kind alone.
    pub fn is_domain(&self) -> bool {
        self.satellite_level == Level::Domain || self.satellite_type == Kind::Domain
    }

    /// Whether it may launch others: a leaf launches nothing.
    pub fn may_have_children(&self) -> bool {
        self.kind_of == ClaimType::Pilot || self.is_domain()
    }

    /// What its close demands.
    pub fn tier(&self) -> Tier {
        if self.may_have_children() {
            Tier::Orchestrated
        } else if matches!(self.satellite_type, Kind::Code | Kind::Test) {
            Tier::Validated
        } else {
            Tier::Atomic
        }
    }

    /// The claim that took its scope, if one did.
    pub fn superseded_by(&self) -> Option<&SessId> {
        match &self.end {
            Some(End::Failed {
                by: FailedBy::Superseded(id),
                ..
            }) => Some(id),
            _ => None,
        }
    }

    /// The branch on which it must be in this repository, if any is known.
    pub fn branch_in(&self, repo: &str) -> Option<&str> {
        let named = self.branch.as_deref().or(self.theme_branch.as_deref());
        named.or_else(|| self.base.get(repo)?.branch.as_deref())
    }
}

/// A claim's state, derived when it is read (section 6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// May write.
    Open,
    /// Waits for a human's answer.
    WaitingHuman,
    /// A pause stands on it or above it.
    Paused,
    /// Its time is over, or its owner is gone, and nobody took its scope yet.
    Stale,
    /// Ended with a result.
    Closed,
    /// Ended without one.
    Failed,
}

impl State {
    /// Every state.
    pub const ALL: [State; 6] = [
        State::Open,
        State::WaitingHuman,
        State::Paused,
        State::Stale,
        State::Closed,
        State::Failed,
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Open => "open",
            State::WaitingHuman => "waiting_human",
            State::Paused => "paused",
            State::Stale => "stale",
            State::Closed => "closed",
            State::Failed => "failed",
        }
    }

    /// Whether it holds its scope against others.
    pub fn is_live(self) -> bool {
        matches!(self, State::Open | State::WaitingHuman | State::Paused)
    }

    /// Whether nothing can change it any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, State::Closed | State::Failed)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
