//! A plan under way: what was started, accepted, and asked (`hypervisor.md`, 6 and 10).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::claim::{Fence, Landing, Outcome};
use super::gate::GateKind;
use super::id::{AttemptId, GateId, RunId, SessId};
use super::plan::{KernelExit, Phase};
use super::time::Instant;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Every phase was accepted, or skipped by a human, and the theme was merged or kept on purpose.
    Finished,
    /// A phase failed for good.
    Failed,
    /// Someone cancelled it.
    Cancelled,
    /// A human aborted it at a gate.
    Aborted,
}

/// A run of a plan. Its phases are facts of their own, so that a step costs the same in a long plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The plan's name.
    pub plan: String,
    /// The file that it was read from, absolute.
    pub source: String,
    /// The hash of the whole plan.
    pub digest: String,
    /// The claim under which it works.
    pub pilot: SessId,
    /// Whether the run opened that claim, and so closes it.
    pub owns_pilot: bool,
    /// The branch on which the work gathers.
    pub theme: String,
    /// The branch into which it is merged, by repository.
    pub main: BTreeMap<String, String>,
    /// How many phases may run side by side.
    pub jobs: u32,
    /// Whether the theme is merged at the end.
    pub merge: bool,
    /// Whether leaving the kernel zone asks or only tells.
    pub kernel_exit: KernelExit,
    /// Whether a `gate: never` step ends the chain, as the original meant.
    pub chain: bool,
    /// Gates that the starter answers with continue beforehand.
    pub yes_to: BTreeSet<GateKind>,
    /// Patterns of paths that ask an `architecture` gate.
    pub risk: Vec<String>,
    /// The ids of the phases, in the plan's order.
    pub phases: Vec<String>,
    /// When it was started.
    pub started_at: Instant,
    /// Who drives it: minted with each take-over, so that a late driver is refused.
    pub driver: Fence,
    /// Whether an `abort` trigger ended its launches.
    pub launches_ended: bool,
    /// The final moves of the main branches.
    pub landings: BTreeMap<String, Landing>,
    /// How it ended.
    pub end: Option<RunEnd>,
    /// When it ended.
    pub ended_at: Option<Instant>,
}

/// How a child process ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this status.
    Status(i32),
    /// By this signal of the operating system.
    Interrupt(i32),
    /// At its time limit.
    TimedOut,
    /// Silent for too long.
    Idle,
    /// Printed more than it may.
    TooMuchOutput,
    /// Without a word: it, or what watched it, was killed.
    Vanished,
    /// It could not be started: the reason.
    NotStarted(String),
}

impl Exit {
    /// Whether the child says that it did its work.
    pub fn is_success(&self) -> bool {
        *self == Exit::Status(0)
    }
}

/// One try at a phase, committed before its agent starts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// Its id, in the environment of what it starts.
    pub id: AttemptId,
    /// The claim that it works under.
    pub claim: SessId,
    /// When it was written down.
    pub began_at: Instant,
    /// How its process ended.
    pub exit: Option<Exit>,
    /// When.
    pub ended_at: Option<Instant>,
    /// What came of it, once judged.
    pub outcome: Option<Outcome>,
    /// Why it failed, for the reader.
    pub why: Option<String>,
}

/// Where a phase stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Not begun, or to be tried again.
    Pending,
    /// An attempt is under way.
    Running,
    /// Its last attempt was accepted.
    Accepted(Outcome),
    /// A human left it out.
    Skipped,
    /// It failed and a human has not settled it, or settled it as failed.
    Failed,
}

impl Standing {
    /// Whether nothing more will happen to it by itself.
    pub fn is_settled(&self) -> bool {
        matches!(self, Standing::Accepted(_) | Standing::Skipped)
    }
}

/// One phase of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PhaseRun {
    /// The run.
    pub run: RunId,
    /// Its place in the plan.
    pub position: u32,
    /// The phase as the run was started with it.
    pub phase: Phase,
    /// The hash of its canonical form.
    pub digest: String,
    /// Where it stands.
    pub standing: Standing,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// How many retries were used.
    pub retries_used: u32,
    /// Not to be tried again before this moment.
    pub not_before: Option<Instant>,
    /// Gates that a human let go on: kind and subject.
    pub allowed: BTreeSet<(GateKind, String)>,
    /// The gate that it waits at.
    pub waiting: Option<GateId>,
}

impl PhaseRun {
    /// The attempt under way or the last one.
    pub fn last(&self) -> Option<&Attempt> {
        self.attempts.last()
    }
}
