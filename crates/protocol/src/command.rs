//! What can be asked: every change of state, from any face, is one of these (design, section 2).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::caller::TokenDigest;
use crate::facts::claim::{Base, ClaimType, Evidence, Fence, Landing, Level, Outcome, Owner};
use crate::facts::gate::{About, Choice, GateKind};
use crate::facts::id::{AttemptId, GateId, RunId, SessId, SigId};
use crate::facts::kind::Kind;
use crate::facts::lock::Holder;
use crate::facts::path::LogicalPath;
use crate::facts::plan::{KernelExit, Phase};
use crate::facts::run::{Exit, RunEnd};
use crate::facts::scope::Scope;
use crate::facts::signal_kind::SignalKind;
use crate::facts::span::Span;
use crate::facts::tests::Tests;
use crate::facts::trigger::Trigger;

/// Asks for a claim (section 5, Opening).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the claim's field of the same name")]
pub struct OpenClaim {
    /// An exact id, else one is composed from `slug`.
    pub id: Option<SessId>,
    pub slug: String,
    pub kind_of: ClaimType,
    pub scope: Scope,
    pub agent: String,
    pub owner: Owner,
    /// Left out: 4 h, 12 h for a pilot.
    pub ttl: Option<Span>,
    pub story_angle: String,
    pub satellite_type: Kind,
    pub satellite_level: Level,
    pub parent: Option<SessId>,
    pub on_done: Vec<Trigger>,
    pub on_partial: Vec<Trigger>,
    pub on_fail: Vec<Trigger>,
    pub branch: Option<String>,
    pub theme_branch: Option<String>,
    pub worktree: Option<String>,
    pub tests: Option<Tests>,
    pub rendering: bool,
    pub exclusive: bool,
    pub take_dirty: bool,
    pub base: BTreeMap<String, Base>,
    pub token: TokenDigest,
}

impl OpenClaim {
    /// Asks with what has no default; what is left out is as the command line has it: a solo leaf of kind `code`, for
    /// as long as its type lasts, on whatever branch is checked out, below nobody.
    pub fn new(
        slug: impl Into<String>,
        story_angle: impl Into<String>,
        scope: Scope,
        agent: impl Into<String>,
        owner: Owner,
        token: TokenDigest,
    ) -> OpenClaim {
        OpenClaim {
            id: None,
            slug: slug.into(),
            kind_of: ClaimType::Solo,
            scope,
            agent: agent.into(),
            owner,
            ttl: None,
            story_angle: story_angle.into(),
            satellite_type: Kind::Code,
            satellite_level: Level::Leaf,
            parent: None,
            on_done: Vec::new(),
            on_partial: Vec::new(),
            on_fail: Vec::new(),
            branch: None,
            theme_branch: None,
            worktree: None,
            tests: None,
            rendering: false,
            exclusive: false,
            take_dirty: false,
            base: BTreeMap::new(),
            token,
        }
    }
}

/// Asks for a human gate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenGate {
    /// What it belongs to.
    pub about: About,
    /// Its kind.
    pub kind: GateKind,
    /// The zone, path or step that it is for.
    pub subject: String,
    /// Why, in the asker's words.
    pub why: String,
    /// What brain knows, label and text.
    pub known: Vec<(String, String)>,
    /// The hash of what the answer is bound to.
    pub shown: String,
}

/// Starts a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the run's field of the same name")]
pub struct StartRun {
    pub plan: String,
    pub source: String,
    pub digest: String,
    /// The pilot that it works under, else one is opened as asked in `pilot`.
    pub parent: Option<SessId>,
    pub pilot: OpenClaim,
    pub theme: String,
    pub main: BTreeMap<String, String>,
    pub jobs: u32,
    pub merge: bool,
    pub kernel_exit: KernelExit,
    pub chain: bool,
    pub yes_to: Vec<GateKind>,
    pub risk: Vec<String>,
    /// The phases in order, each with the hash of its canonical form.
    pub phases: Vec<(Phase, String)>,
    /// Phases that an earlier run of this plan accepted on the same theme branch: id and hash.
    pub keep: Vec<(String, String)>,
}

/// A path that a finished phase changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Changed {
    /// The path.
    pub path: LogicalPath,
    /// Whether it was not there before.
    pub added: bool,
    /// Whether it is gone.
    pub deleted: bool,
}

/// A change of state that someone asks for. It carries durations and never an instant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one command is alive at a time")]
pub enum Command {
    /// Opens a claim.
    OpenClaim(OpenClaim),
    /// Renews a claim, also from stale.
    RenewClaim {
        /// The claim.
        id: SessId,
    },
    /// Notes how a repository was when the claim first met it.
    NoteBase {
        /// The claim.
        id: SessId,
        /// The repository, by its path below the root.
        repo: String,
        /// How it is.
        base: Base,
    },
    /// Turns claims stale whose owner was proven gone, and fails those stale beyond the grace.
    ReapClaims {
        /// Claims whose owner process is gone, with the proof in words.
        gone: Vec<(SessId, String)>,
    },

    /// Takes or renews locks, all or none.
    AcquireLocks {
        /// In whose name.
        holder: Holder,
        /// The paths, in any order.
        paths: Vec<LogicalPath>,
        /// For how long without a sign of life.
        ttl: Span,
    },
    /// Gives locks back.
    ReleaseLocks {
        /// In whose name.
        holder: Holder,
        /// The paths.
        paths: Vec<LogicalPath>,
        /// A human's reason to take another's lock away.
        force: Option<String>,
    },
    /// Removes locks that hold nothing any more.
    CleanupLocks,

    /// Adds a failure to the work of a claim.
    FailWork {
        /// The claim.
        id: SessId,
        /// Why.
        why: String,
    },
    /// Clears the failures of the work of a claim.
    ResetWork {
        /// The claim.
        id: SessId,
        /// Why; a human's word at the limit.
        why: String,
    },

    /// Opens a gate.
    OpenGate(OpenGate),
    /// Answers a gate.
    AnswerGate {
        /// The gate.
        id: GateId,
        /// The answer.
        choice: Choice,
        /// Its words.
        words: String,
        /// The hash of what was shown to the one who answers.
        shown: String,
        /// The MAC over [`crate::facts::gate::Gate::to_sign`].
        mac: String,
    },
    /// Pauses a claim and all below it.
    Pause {
        /// The claim.
        id: SessId,
        /// Why.
        why: String,
    },
    /// Lifts a pause.
    Resume {
        /// The claim on which it stands.
        id: SessId,
    },
    /// Fails a claim and all below it.
    Abort {
        /// The claim.
        id: SessId,
        /// Why.
        why: String,
    },
    /// Stops everything, at once.
    Halt {
        /// Why.
        why: String,
    },
    /// Lifts the stop.
    Thaw,

    /// Sends a signal.
    SendSignal {
        /// A session id, `pilot`, `parent`, `human` or `all`.
        to: String,
        /// Its type.
        kind: SignalKind,
        /// One of the caller's own claims.
        from: Option<SessId>,
        /// One line.
        summary: String,
    },
    /// Says that signals were received and understood.
    AckSignals {
        /// Which.
        ids: Vec<SigId>,
    },

    /// Begins or goes on with a close.
    BeginClose {
        /// The claim.
        id: SessId,
        /// The best result that the closer asks for.
        at_most: Outcome,
        /// The closer's words.
        notes: Option<String>,
        /// Whether failed children are accepted.
        accept_failed: bool,
    },
    /// Writes a test run down.
    RecordEvidence {
        /// The claim.
        id: SessId,
        /// What it showed.
        evidence: Evidence,
    },
    /// Writes a commit of the close down.
    RecordCommit {
        /// The claim.
        id: SessId,
        /// The repository.
        repo: String,
        /// The commit.
        commit: String,
    },
    /// Writes a move of a branch down, before and after it is made.
    RecordLanding {
        /// The claim.
        id: SessId,
        /// The repository.
        repo: String,
        /// The move.
        landing: Landing,
    },
    /// Ends a close.
    FinishClose {
        /// The claim.
        id: SessId,
        /// What the close computed; brain fills in status, children and signal.
        status: Outcome,
        /// What was changed.
        files_modified: Vec<String>,
        /// What the close had to say.
        notes: Vec<String>,
        /// Whether failed children are accepted.
        accept_failed: bool,
    },

    /// Starts a run.
    StartRun(Box<StartRun>),
    /// Takes a run whose driver is gone.
    TakeRun {
        /// The run.
        id: RunId,
        /// Whether the last driver was proven gone.
        driver_gone: bool,
    },
    /// Writes an attempt down and opens its claim.
    BeginAttempt {
        /// The run.
        run: RunId,
        /// The driver's fence.
        driver: Fence,
        /// The phase.
        phase: String,
        /// The claim to open; parent, branch and scope are the rules' to set.
        claim: Box<OpenClaim>,
    },
    /// Writes down how an attempt's process ended.
    EndAttempt {
        /// The run.
        run: RunId,
        /// The driver's fence.
        driver: Fence,
        /// The phase.
        phase: String,
        /// The attempt.
        attempt: AttemptId,
        /// How.
        exit: Exit,
    },
    /// Judges an attempt whose claim has ended, or whose close was refused.
    JudgeAttempt {
        /// The run.
        run: RunId,
        /// The driver's fence.
        driver: Fence,
        /// The phase.
        phase: String,
        /// The attempt.
        attempt: AttemptId,
        /// Why the close was refused, if it was.
        refused: Option<String>,
        /// What brain knows of that, for who is asked about it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        known: Vec<(String, String)>,
        /// What the phase changed.
        changed: Vec<Changed>,
    },
    /// Opens a gate of the run's loop on a phase.
    AskPhase {
        /// The run.
        run: RunId,
        /// The driver's fence.
        driver: Fence,
        /// The phase.
        phase: String,
        /// The gate's kind.
        kind: GateKind,
        /// The gate's subject.
        subject: String,
        /// Why.
        why: String,
        /// What brain knows.
        known: Vec<(String, String)>,
        /// The hash of what the answer is bound to.
        shown: String,
    },
    /// Takes a changed plan for the phases that are not done.
    AdaptRun {
        /// The run.
        run: RunId,
        /// The hash of the new plan.
        digest: String,
        /// The phases in order, each with the hash of its canonical form.
        phases: Vec<(Phase, String)>,
    },
    /// Writes the moves of the main branches down, before and after they are made.
    RecordRunLanding {
        /// The run.
        run: RunId,
        /// The driver's fence.
        driver: Fence,
        /// The moves.
        landings: BTreeMap<String, Landing>,
    },
    /// Ends a run.
    EndRun {
        /// The run.
        run: RunId,
        /// The driver's fence.
        driver: Fence,
        /// How.
        end: RunEnd,
    },
    /// Cancels a run, whoever drives it.
    CancelRun {
        /// The run.
        run: RunId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::path::Fold;

    #[test]
    fn an_opening_of_which_nothing_more_is_said_is_a_solo_leaf_of_code_that_asks_for_no_right() {
        let owner = Owner {
            user: "ana".to_owned(),
            host: "box".to_owned(),
            process: None,
            host_session: None,
        };
        let scope = Scope::parse(["src/"], Fold::Exact).unwrap();
        let token = TokenDigest("t".to_owned());
        let ask = OpenClaim::new("work", "a task", scope, "codex", owner.clone(), token.clone());
        assert_eq!(
            (ask.kind_of, ask.satellite_type, ask.satellite_level),
            (ClaimType::Solo, Kind::Code, Level::Leaf)
        );
        assert!(!ask.exclusive && !ask.rendering && !ask.take_dirty);
        assert_eq!(
            (ask.id, ask.ttl, ask.parent, ask.branch),
            (None, None, None, None)
        );
        let said = (ask.slug.as_str(), ask.story_angle.as_str(), ask.agent.as_str());
        assert_eq!(said, ("work", "a task", "codex"));
        assert_eq!((ask.owner, ask.token), (owner, token));
    }
}
