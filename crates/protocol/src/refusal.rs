//! Every way in which the rules say no, with the facts that a reader needs.

use serde::{Deserialize, Serialize};

use crate::facts::claim::{ClaimType, Owner, State};
use crate::facts::gate::{Choice, GateKind};
use crate::facts::id::{GateId, RunId, SessId, SigId};
use crate::facts::lock::Holder;
use crate::facts::path::LogicalPath;
use crate::facts::report::Report;
use crate::facts::scope::Scope;
use crate::facts::time::Instant;
use crate::facts::zone::Zone;

/// A claim as a refusal shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// Its id.
    pub claim: SessId,
    /// Its part.
    #[serde(rename = "type")]
    pub kind_of: ClaimType,
    /// Its scope.
    pub scope: Scope,
    /// Its state.
    pub state: State,
    /// Its task.
    pub story_angle: String,
    /// Who works.
    pub agent: String,
    /// Whose it is.
    pub owner: Owner,
    /// When it was opened.
    pub opened_at: Instant,
    /// Its last sign of life.
    pub seen_at: Option<Instant>,
    /// When it expires, if nothing is heard of it.
    pub expires_at: Option<Instant>,
}

/// A change that a close may not commit or pass over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stray {
    /// The logical path.
    pub path: LogicalPath,
    /// Why it may not be.
    pub why: String,
    /// Where git knows it and from when, for who takes it back; nothing for what git ignores.
    pub made: Option<Made>,
}

/// How a change came to be where it is: each is taken back in another way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Made {
    /// The folder of the checkout.
    pub checkout: String,
    /// The path below it.
    pub file: String,
    /// By what.
    pub by: MadeBy,
}

/// What made a change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MadeBy {
    /// A file that git does not know.
    NewFile,
    /// An edit of a file that git knows, staged or not.
    Edit,
    /// A commit since this one, or since the beginning.
    Commit(Option<String>),
}

/// The rules say no. Expected, and no error in a log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields of a refusal are named by what they hold")]
pub enum Refusal {
    /// The emergency stop stands (section 6).
    Halted { why: String, since: Instant },

    /// No claim has this id.
    ClaimUnknown { id: String },
    /// The id is in use.
    IdTaken { id: SessId },
    /// The scope overlaps a live claim's and the types conflict (section 5).
    ScopeOverlaps {
        wanted: Scope,
        held: Box<Held>,
        stale_with_children: bool,
    },
    /// The parent can not have children, or is not open.
    NoParent { parent: SessId, state: State },
    /// A leaf launches nothing.
    LeafHasNoChildren { parent: SessId },
    /// A child of a domain must lie inside the domain's scope.
    OutsideDomain {
        parent: SessId,
        wanted: Scope,
        domain: Scope,
    },
    /// What is, or descends from, a satellite opens only its own children.
    OnlyOwnChildren { caller: SessId },
    /// The head of this repository is detached and no branch was named.
    Detached { repo: String },
    /// The time to live is outside its bounds.
    TtlOutOfBounds {
        asked_ms: u64,
        least_ms: u64,
        most_ms: u64,
    },
    /// The command hides the status of the tests.
    TestsHidden {
        command: String,
        by: String,
        column: usize,
    },
    /// The text of a task or reason is not one line, or too long.
    BadText { field: String, why: String },
    /// The caller neither owns the claim nor stands above it.
    NotOwner { id: SessId, verb: String, owner: Owner },
    /// The claim is not in a state in which this can happen.
    WrongState { id: SessId, state: State, verb: String },
    /// The claim was replaced: stop.
    Superseded { id: SessId, by: SessId },
    /// The claim's fence or token is outdated.
    Outdated { id: SessId },

    /// The lock is someone else's.
    LockHeld {
        path: LogicalPath,
        by: Holder,
        locked: LogicalPath,
        owner: Owner,
        taken_at: Instant,
        expires_at: Option<Instant>,
    },
    /// The path is not the session's to lock.
    LockNotCovered { path: LogicalPath, holder: String },
    /// A live claim covers the path, so only its session locks there.
    LockClaimed { path: LogicalPath, held: Box<Held> },
    /// The lock is not the caller's.
    LockNotOwner { path: LogicalPath, by: Holder },
    /// A holder that woke up late: someone else took the lock.
    LockLost { path: LogicalPath, by: Option<Holder> },
    /// A name that looks like a claim's id and is none, or holds odd characters.
    BadHolder { name: String },

    /// Only a human may do this (section 5).
    NotHuman { verb: String, taken_for: String },
    /// No gate has this id.
    GateUnknown { id: String },
    /// The gate does not offer this answer.
    NotOffered {
        gate: GateId,
        kind: GateKind,
        choice: Choice,
    },
    /// What was shown has changed since.
    GateChanged {
        gate: GateId,
        shown: String,
        now: String,
    },
    /// The gate ended before it was answered.
    GateWithdrawn { gate: GateId },
    /// A human must answer first.
    GatePending {
        gate: GateId,
        kind: GateKind,
        why: String,
    },
    /// The words must be the path itself.
    WordsMustBe { gate: GateId, words: String },
    /// Nothing of the caller's pauses this claim.
    NotPaused { id: SessId, paused_by: Vec<String> },
    /// A pause that stands on the caller is not the caller's to lift.
    OwnPause { id: SessId },

    /// No signal has this id.
    SignalUnknown { id: SigId },
    /// The address never existed.
    AddressUnknown { to: String },
    /// The signal is addressed to someone else.
    SignalNotYours { id: SigId },
    /// The caller owns no claim of this id to send from.
    SenderNotYours { from: SessId },

    /// The work failed too often; only a human reopens it (section 9).
    BreakerOpen {
        work: String,
        fails: u32,
        last: Option<String>,
    },

    /// Changes outside the scope (section 11, step 1).
    OutOfScope { id: SessId, strays: Vec<Stray> },
    /// The tests are red.
    TestsRed {
        id: SessId,
        command: String,
        exit: Option<i32>,
        report: Option<Report>,
    },
    /// No test ran, and the command says so with its status.
    NoTests {
        id: SessId,
        command: String,
        exit: Option<i32>,
    },
    /// A descendant is not terminal.
    ChildrenLive {
        id: SessId,
        children: Vec<(SessId, State)>,
    },
    /// A child failed and nobody accepted that.
    ChildrenFailed { id: SessId, children: Vec<SessId> },
    /// The work lies on another branch or in another checkout.
    WrongPlace {
        id: SessId,
        repo: String,
        expected: String,
        found: String,
    },
    /// The session wrote while its close was under way.
    WroteMeanwhile { id: SessId },
    /// The report handed in does not vouch for this work.
    ReportRejected { id: SessId, why: String },
    /// No close of this claim has begun.
    NotClosing { id: SessId },
    /// The evidence that this tier demands is missing.
    NoEvidence { id: SessId },

    /// No run, or no phase of it, has this id.
    RunUnknown { id: String },
    /// No such phase in the run.
    PhaseUnknown { run: RunId, phase: String },
    /// A run of this plan is unfinished.
    RunUnfinished { run: RunId, plan: String },
    /// The run has ended.
    RunOver { run: RunId },
    /// Another driver took the run.
    RunTaken { run: RunId },
    /// Someone drives the run and is alive.
    RunDriven { run: RunId },
    /// The phase is not in a state in which this can happen.
    PhaseState { run: RunId, phase: String, verb: String },
    /// Too many phases of the run are under way.
    JobsFull { run: RunId, jobs: u32 },

    /// A preflight said no; the number is its exit code (section 7).
    Preflight {
        check: Check,
        path: Option<LogicalPath>,
        detail: Box<Detail>,
    },
}

/// The checks of a preflight, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The claim may act.
    Claim,
    /// Every ancestor may act.
    Parents,
    /// The path lies in the scope.
    Scope,
    /// The path's zone is allowed.
    Zone,
    /// Nobody else holds the path.
    Lock,
    /// The work has not failed too often.
    Breaker,
    /// The path's repository is on the right branch.
    Branch,
}

impl Check {
    /// The exit code of `preflight check` when this check refuses.
    pub fn exit(self) -> u8 {
        match self {
            Check::Claim | Check::Parents => 4,
            Check::Scope => 1,
            Check::Zone => 5,
            Check::Lock => 2,
            Check::Breaker => 3,
            Check::Branch => 6,
        }
    }
}

/// What a preflight met.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields of a refusal are named by what they hold")]
pub enum Detail {
    /// The brain is stopped.
    Halted { why: String, since: Instant },
    /// No claim has this id.
    Unknown { id: String },
    /// The claim is not open.
    State {
        id: SessId,
        state: State,
        gate: Option<GateId>,
        paused_by: Vec<String>,
    },
    /// It was replaced.
    Superseded { id: SessId, by: SessId },
    /// Its time is over and the caller may not renew it.
    Expired { id: SessId },
    /// The token or fence is outdated.
    Outdated { id: SessId },
    /// An ancestor is not open.
    Ancestor { ancestor: SessId, state: State },
    /// The path lies outside the root.
    Outside { given: String, real: String },
    /// The path has a component that is reserved.
    Reserved { given: String },
    /// Too many links.
    Links { given: String },
    /// The file has more than one name.
    HardLinked { links: u64 },
    /// The scope does not cover the path.
    NotCovered {
        scope: Scope,
        pilot: Option<SessId>,
        zone: Zone,
    },
    /// A search claim writes only the files that its scope names.
    SearchReads { scope: Scope },
    /// The zone needs a right.
    Zone { zone: Zone, right: bool },
    /// A satellite never reads this zone.
    SecretRead,
    /// A kernel file is deleted only after a gate of its own.
    KernelDeleted,
    /// Someone else's lock.
    LockHeld {
        by: Holder,
        locked: LogicalPath,
        owner: Owner,
        expires_at: Option<Instant>,
    },
    /// A live claim that is no ancestor covers it.
    Claimed { held: Box<Held> },
    /// `mode: rendering` writes only under its own lock.
    LockRequired,
    /// The work failed too often.
    Breaker {
        work: String,
        fails: u32,
        most: u32,
        last: Option<String>,
    },
    /// The repository is on another branch.
    Branch {
        repo: String,
        expected: String,
        found: Option<String>,
    },
    /// The path is in another checkout than the claim's.
    Checkout {
        repo: String,
        expected: String,
        found: String,
    },
}

impl Refusal {
    /// The stable dotted code (design, section 4).
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Halted { .. } => "brain.stopped",
            Refusal::ClaimUnknown { .. } => "claim.unknown",
            Refusal::IdTaken { .. } => "claim.id_taken",
            Refusal::ScopeOverlaps { .. } => "claim.scope_overlaps",
            Refusal::NoParent { .. } => "claim.parent_not_open",
            Refusal::LeafHasNoChildren { .. } => "claim.leaf_has_no_children",
            Refusal::OutsideDomain { .. } => "claim.outside_domain",
            Refusal::OnlyOwnChildren { .. } => "claim.only_own_children",
            Refusal::Detached { .. } => "claim.detached_head",
            Refusal::TtlOutOfBounds { .. } => "claim.ttl",
            Refusal::TestsHidden { .. } => "tests.status_hidden",
            Refusal::BadText { .. } => "text.bad",
            Refusal::NotOwner { .. } => "claim.not_owner",
            Refusal::WrongState { .. } => "claim.wrong_state",
            Refusal::Superseded { .. } => "claim.superseded",
            Refusal::Outdated { .. } => "claim.outdated",
            Refusal::LockHeld { .. } => "lock.held",
            Refusal::LockNotCovered { .. } => "lock.not_covered",
            Refusal::LockClaimed { .. } => "lock.path_claimed",
            Refusal::LockNotOwner { .. } => "lock.not_owner",
            Refusal::LockLost { .. } => "lock.lost",
            Refusal::BadHolder { .. } => "lock.bad_holder",
            Refusal::NotHuman { .. } => "gate.not_human",
            Refusal::GateUnknown { .. } => "gate.unknown",
            Refusal::NotOffered { .. } => "gate.not_offered",
            Refusal::GateChanged { .. } => "gate.changed",
            Refusal::GateWithdrawn { .. } => "gate.withdrawn",
            Refusal::GatePending { .. } => "gate.pending",
            Refusal::WordsMustBe { .. } => "gate.words",
            Refusal::NotPaused { .. } => "claim.not_paused",
            Refusal::OwnPause { .. } => "claim.own_pause",
            Refusal::SignalUnknown { .. } => "signal.unknown",
            Refusal::AddressUnknown { .. } => "signal.address_unknown",
            Refusal::SignalNotYours { .. } => "signal.not_yours",
            Refusal::SenderNotYours { .. } => "signal.sender_not_yours",
            Refusal::BreakerOpen { .. } => "breaker.open",
            Refusal::OutOfScope { .. } => "close.out_of_scope",
            Refusal::TestsRed { .. } => "close.tests_red",
            Refusal::NoTests { .. } => "close.no_tests",
            Refusal::ChildrenLive { .. } => "close.children_live",
            Refusal::ChildrenFailed { .. } => "close.children_failed",
            Refusal::WrongPlace { .. } => "close.wrong_place",
            Refusal::WroteMeanwhile { .. } => "close.wrote_meanwhile",
            Refusal::ReportRejected { .. } => "close.report_rejected",
            Refusal::NotClosing { .. } => "close.not_closing",
            Refusal::NoEvidence { .. } => "close.no_evidence",
            Refusal::RunUnknown { .. } => "run.unknown",
            Refusal::PhaseUnknown { .. } => "run.phase_unknown",
            Refusal::RunUnfinished { .. } => "run.unfinished",
            Refusal::RunOver { .. } => "run.over",
            Refusal::RunTaken { .. } => "run.lease_lost",
            Refusal::RunDriven { .. } => "run.driven",
            Refusal::PhaseState { .. } => "run.phase_state",
            Refusal::JobsFull { .. } => "run.jobs_full",
            Refusal::Preflight { detail, .. } => detail.code(),
        }
    }
}

/// How many paths or names a human is shown of one refusal; of the rest they are told how many.
const KNOWN_MOST: usize = 20;

impl Refusal {
    /// What brain knows of why a close was refused, one `label: text` a line, for who is asked what to do about it.
    pub fn known(&self) -> Vec<(String, String)> {
        let list = |label: &str, all: &mut dyn ExactSizeIterator<Item = String>| {
            let more = all.len().saturating_sub(KNOWN_MOST);
            let mut lines: Vec<_> = all.take(KNOWN_MOST).map(|it| (label.to_owned(), it)).collect();
            if more > 0 {
                lines.push((label.to_owned(), format!("… and {more} more")));
            }
            lines
        };
        match self {
            Refusal::OutOfScope { strays, .. } => list(
                "Path",
                &mut strays
                    .iter()
                    .map(|stray| format!("{} ({})", stray.path, stray.why)),
            ),
            Refusal::TestsRed { command, report, .. } => {
                let mut known = vec![("Tests".to_owned(), command.clone())];
                if let Some(report) = report {
                    let counts = format!("{} of {} failed", report.failed, report.total);
                    known.push(("Counts".to_owned(), counts));
                    known.extend(list("Failed", &mut report.failures.iter().cloned()));
                }
                known
            }
            Refusal::NoTests { command, .. } => vec![("Tests".to_owned(), command.clone())],
            Refusal::ChildrenLive { children, .. } => list(
                "Below",
                &mut children.iter().map(|(id, state)| format!("{id} is {state}")),
            ),
            Refusal::ChildrenFailed { children, .. } => {
                list("Below", &mut children.iter().map(|id| format!("{id} failed")))
            }
            Refusal::WrongPlace {
                repo,
                expected,
                found,
                ..
            } => vec![
                ("Repo".to_owned(), repo.clone()),
                ("Expected".to_owned(), expected.clone()),
                ("Found".to_owned(), found.clone()),
            ],
            Refusal::ReportRejected { why, .. } => vec![("Report".to_owned(), why.clone())],
            // Nothing else that refuses a close has more to it than its name.
            _ => Vec::new(),
        }
    }
}

impl Detail {
    /// The stable dotted code.
    pub fn code(&self) -> &'static str {
        match self {
            Detail::Halted { .. } => "brain.stopped",
            Detail::Unknown { .. } => "claim.unknown",
            Detail::State { .. } => "claim.not_open",
            Detail::Superseded { .. } => "claim.superseded",
            Detail::Expired { .. } => "claim.expired",
            Detail::Outdated { .. } => "claim.outdated",
            Detail::Ancestor { .. } => "claim.ancestor_not_open",
            Detail::Outside { .. } => "path.outside",
            Detail::Reserved { .. } => "path.reserved",
            Detail::Links { .. } => "path.links",
            Detail::HardLinked { .. } => "path.hard_linked",
            Detail::NotCovered { .. } => "claim.not_covering",
            Detail::SearchReads { .. } => "claim.search_reads",
            Detail::Zone {
                zone: Zone::Kernel, ..
            } => "zone.kernel",
            Detail::Zone {
                zone: Zone::Personal, ..
            } => "zone.personal",
            Detail::Zone {
                zone: Zone::Project, ..
            } => "zone.project",
            Detail::Zone {
                zone: Zone::Secret, ..
            }
            | Detail::SecretRead => "zone.secret",
            Detail::KernelDeleted => "zone.kernel_deleted",
            Detail::LockHeld { .. } => "lock.held",
            Detail::Claimed { .. } => "claim.held_by_other",
            Detail::LockRequired => "lock.required",
            Detail::Breaker { .. } => "breaker.open",
            Detail::Branch { .. } => "branch.wrong",
            Detail::Checkout { .. } => "branch.other_checkout",
        }
    }
}
