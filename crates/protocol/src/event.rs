//! What happened: the journal's entries, from which everything else can be rebuilt (section 14).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::caller::Actor;
use crate::facts::claim::{
    Base, Claim, ClaimResult, Evidence, FailedBy, Fence, Landing, Outcome, Pauser, Right,
};
use crate::facts::gate::{Answer, Gate, GateKind};
use crate::facts::id::{AttemptId, GateId, RunId, SessId, SigId};
use crate::facts::lock::{Holder, Lock};
use crate::facts::path::LogicalPath;
use crate::facts::run::{Attempt, Exit, PhaseRun, Run, RunEnd};
use crate::facts::scope::Scope;
use crate::facts::signal::Signal;
use crate::facts::time::Instant;
use crate::facts::work::WorkKey;

/// The number of an event in its journal, from 1, without a gap.
pub type Seq = u64;

/// An event with its number, time and actor.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub seq: Seq,
    /// When, by the store's clock.
    pub at: Instant,
    /// Who did it.
    pub actor: Actor,
    /// The key under which a repeated request gets this answer again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What happened.
    pub event: Event,
}

/// Something that happened. Append-only vocabulary: a stored form never changes its meaning.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "events are few, short-lived and mostly claims"
)]
pub enum Event {
    /// A claim was opened.
    ClaimOpened(Claim),
    /// A sign of life by command; a new fence where it had gone stale.
    ClaimRenewed {
        /// The claim.
        id: SessId,
        /// The new fence, where one was minted.
        fence: Option<Fence>,
    },
    /// A claim met a repository for the first time.
    BaseNoted {
        /// The claim.
        id: SessId,
        /// The repository, by its path below the root.
        repo: String,
        /// How it was.
        base: Base,
    },
    /// A claim got a right that a human had given to its phase.
    RightGiven {
        /// The claim.
        id: SessId,
        /// The right.
        right: Right,
    },
    /// A claim's owner was proven gone.
    ClaimReaped {
        /// The claim.
        id: SessId,
        /// How it was proven.
        why: String,
    },
    /// A claim failed.
    ClaimFailed {
        /// The claim.
        id: SessId,
        /// By what.
        by: FailedBy,
        /// In whose words.
        why: String,
    },
    /// A pause was set on a claim.
    ClaimPaused {
        /// The claim.
        id: SessId,
        /// In whose name.
        by: Pauser,
        /// Why.
        why: String,
    },
    /// A pause was taken away.
    ClaimResumed {
        /// The claim.
        id: SessId,
        /// The pause that was lifted.
        by: Pauser,
    },
    /// A close began.
    CloseBegan {
        /// The claim.
        id: SessId,
        /// The best result that the closer asks for.
        at_most: Outcome,
        /// The closer's words.
        notes: Option<String>,
    },
    /// Tests were run for a close.
    EvidenceTaken {
        /// The claim.
        id: SessId,
        /// What they showed.
        evidence: Evidence,
    },
    /// A close committed what was the claim's.
    CloseCommitted {
        /// The claim.
        id: SessId,
        /// The repository.
        repo: String,
        /// The commit.
        commit: String,
    },
    /// A close is about to move a branch, or has moved it.
    CloseLanded {
        /// The claim.
        id: SessId,
        /// The repository.
        repo: String,
        /// The move.
        landing: Landing,
    },
    /// A claim was closed.
    ClaimClosed {
        /// The claim.
        id: SessId,
        /// What it delivered.
        result: ClaimResult,
    },

    /// A lock was taken or renewed.
    LockTaken(Lock),
    /// A lock ended.
    LockReleased {
        /// The path.
        path: LogicalPath,
        /// Who held it.
        holder: Holder,
        /// Why, when it was not its holder's own release.
        why: Option<String>,
    },
    /// Work failed once more.
    WorkFailed {
        /// The work.
        key: WorkKey,
        /// Where it writes.
        scope: Scope,
        /// Why.
        why: String,
        /// The claim that failed at it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<SessId>,
        /// Whether this met the limit.
        tripped: bool,
    },
    /// The failures of some work were cleared.
    WorkCleared {
        /// The work.
        key: WorkKey,
        /// The claim that they were cleared for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<SessId>,
        /// Why.
        why: String,
    },
    /// A gate was opened.
    GateOpened(Gate),
    /// A gate was answered.
    GateAnswered {
        /// The gate.
        id: GateId,
        /// The answer.
        answer: Answer,
        /// Whether it takes effect only when the pauses on its claim end.
        deferred: bool,
    },
    /// A deferred answer took effect.
    GateTookEffect {
        /// The gate.
        id: GateId,
    },
    /// A gate was closed without an answer.
    GateWithdrawn {
        /// The gate.
        id: GateId,
        /// Why.
        why: String,
    },
    /// The emergency stop was set.
    Halted {
        /// Why.
        why: String,
        /// Who.
        by: Pauser,
    },
    /// The emergency stop was lifted.
    Thawed,
    /// A signal was sent.
    SignalSent(Signal),
    /// A signal was received and understood.
    SignalAcked {
        /// The signal.
        id: SigId,
    },
    /// A run was started.
    RunStarted(Run),
    /// A phase of a run was set up, or set up anew from a changed plan.
    PhaseSet(PhaseRun),
    /// A driver took a run.
    RunTaken {
        /// The run.
        id: RunId,
        /// The driver's fence.
        driver: Fence,
    },
    /// A run goes on with a changed plan.
    RunAdapted {
        /// The run.
        id: RunId,
        /// The hash of the new plan.
        digest: String,
        /// Its phases in order.
        phases: Vec<String>,
    },
    /// An attempt was written down; its claim is opened by the event beside it.
    AttemptBegan {
        /// The run.
        run: RunId,
        /// The phase.
        phase: String,
        /// The attempt.
        attempt: Attempt,
    },
    /// The process of an attempt ended.
    AttemptEnded {
        /// The run.
        run: RunId,
        /// The phase.
        phase: String,
        /// The attempt.
        attempt: AttemptId,
        /// How.
        exit: Exit,
    },
    /// An attempt was judged.
    AttemptJudged {
        /// The run.
        run: RunId,
        /// The phase.
        phase: String,
        /// The attempt.
        attempt: AttemptId,
        /// What came of it.
        outcome: Outcome,
        /// Why it failed.
        why: Option<String>,
    },
    /// A phase was accepted.
    PhaseAccepted {
        /// The run.
        run: RunId,
        /// The phase.
        phase: String,
        /// With what result.
        outcome: Outcome,
    },
    /// A phase was left out by a human.
    PhaseSkipped {
        /// The run.
        run: RunId,
        /// The phase.
        phase: String,
    },
    /// A phase will be tried again.
    PhaseRetried {
        /// The run.
        run: RunId,
        /// The phase.
        phase: String,
        /// Not before this moment.
        not_before: Instant,
        /// Whether this used one of the plan's retries; a human's retry does not.
        counted: bool,
    },
    /// A phase failed for good, or until a human says otherwise.
    PhaseFailed {
        /// The run.
        run: RunId,
        /// The phase.
        phase: String,
    },
    /// A human let a phase go on past a gate.
    PhaseAllowed {
        /// The run.
        run: RunId,
        /// The phase.
        phase: String,
        /// The gate's kind.
        kind: GateKind,
        /// The gate's subject.
        subject: String,
    },
    /// Nothing more of a run is launched; what runs goes on.
    LaunchesEnded {
        /// The run.
        id: RunId,
    },
    /// A run is about to move the main branches, or has moved them.
    RunLanded {
        /// The run.
        id: RunId,
        /// The moves, by repository.
        landings: BTreeMap<String, Landing>,
    },
    /// A run ended.
    RunEnded {
        /// The run.
        id: RunId,
        /// How.
        end: RunEnd,
    },
}

impl Event {
    /// The claim that the event touches first, for `brain log --claim`.
    pub fn claim(&self) -> Option<&SessId> {
        match self {
            Event::ClaimOpened(claim) => Some(&claim.id),
            Event::ClaimRenewed { id, .. }
            | Event::BaseNoted { id, .. }
            | Event::RightGiven { id, .. }
            | Event::ClaimReaped { id, .. }
            | Event::ClaimFailed { id, .. }
            | Event::ClaimPaused { id, .. }
            | Event::ClaimResumed { id, .. }
            | Event::CloseBegan { id, .. }
            | Event::EvidenceTaken { id, .. }
            | Event::CloseCommitted { id, .. }
            | Event::CloseLanded { id, .. }
            | Event::ClaimClosed { id, .. } => Some(id),
            Event::LockTaken(Lock {
                holder: Holder::Claim(id),
                ..
            })
            | Event::LockReleased {
                holder: Holder::Claim(id),
                ..
            } => Some(id),
            Event::GateOpened(Gate {
                about: crate::facts::gate::About::Claim(id),
                ..
            }) => Some(id),
            Event::WorkFailed { by: of, .. } | Event::WorkCleared { of, .. } => of.as_ref(),
            Event::AttemptBegan { attempt, .. } => Some(&attempt.claim),
            Event::SignalSent(Signal {
                from: crate::facts::signal::Sender::Session(id),
                ..
            }) => Some(id),
            _ => None,
        }
    }
}
