//! Exit codes: what the caller should do next. Families and codes are append-only.

use protocol::refusal::Refusal;
use store::Fault;

/// Someone else is there: wait, ask, go elsewhere.
pub const ELSEWHERE: u8 = 10;
/// A human must answer first.
pub const HUMAN_FIRST: u8 = 11;
/// Not yours, or not in this state: change the request.
pub const NOT_YOURS: u8 = 12;
/// No such thing.
pub const UNKNOWN: u8 = 13;
/// You were replaced: stop.
pub const REPLACED: u8 = 14;
/// The work does not pass: mend it.
pub const MEND: u8 = 15;
/// The plan failed.
pub const PLAN_FAILED: u8 = 20;
/// The environment is not ready.
pub const NOT_READY: u8 = 21;
/// Could not look: never a pass.
pub const CANNOT_JUDGE: u8 = 22;
/// Wrong usage.
pub const USAGE: u8 = 64;
/// Unreadable input.
pub const UNREADABLE: u8 = 65;
/// The store, or git, cannot be reached.
pub const UNREACHABLE: u8 = 69;
/// Our bug.
pub const BUG: u8 = 70;
/// Busy, try again.
pub const BUSY: u8 = 75;
/// Bad configuration, or a store newer than this binary.
pub const CONFIG: u8 = 78;

/// Every code with its meaning, for the generated page and `--help`.
pub const TABLE: &[(&str, &str)] = &[
    ("0", "done, or allowed"),
    (
        "1–6",
        "`preflight check` and `lock` only: 1 scope, 2 lock, 3 breaker, 4 claim or parent, 5 zone, 6 branch; of `lock`, 1 held by someone else, 2 any other refusal",
    ),
    ("10", "someone else is there: wait, ask, go elsewhere"),
    ("11", "a human must answer first"),
    ("12", "not yours, or not in this state: change the request"),
    ("13", "no such thing"),
    ("14", "you were replaced: stop"),
    ("15", "the work does not pass: mend it"),
    ("20", "the plan failed"),
    ("21", "the environment is not ready"),
    ("22", "could not look: never a pass"),
    ("64", "wrong usage"),
    ("65", "unreadable input"),
    ("69", "the store or git cannot be reached"),
    ("70", "a bug of brain's own"),
    ("75", "busy: try again"),
    ("78", "bad configuration, or a store newer than this binary"),
];

/// The exit code of a refusal, everywhere but in `lock`.
pub fn of_refusal(refusal: &Refusal) -> u8 {
    use Refusal as R;
    match refusal {
        R::ScopeOverlaps { .. }
        | R::LockHeld { .. }
        | R::LockClaimed { .. }
        | R::RunDriven { .. }
        | R::JobsFull { .. } => ELSEWHERE,
        R::Halted { .. } | R::GatePending { .. } | R::BreakerOpen { .. } => HUMAN_FIRST,
        R::IdTaken { .. }
        | R::NoParent { .. }
        | R::LeafHasNoChildren { .. }
        | R::OutsideDomain { .. }
        | R::OnlyOwnChildren { .. }
        | R::Detached { .. }
        | R::NotOwner { .. }
        | R::WrongState { .. }
        | R::LockNotCovered { .. }
        | R::LockNotOwner { .. }
        | R::LockLost { .. }
        | R::NotHuman { .. }
        | R::GateChanged { .. }
        | R::GateWithdrawn { .. }
        | R::WordsMustBe { .. }
        | R::NotPaused { .. }
        | R::OwnPause { .. }
        | R::SignalNotYours { .. }
        | R::SenderNotYours { .. }
        | R::NotClosing { .. }
        | R::RunUnfinished { .. }
        | R::RunOver { .. }
        | R::PhaseState { .. } => NOT_YOURS,
        R::ClaimUnknown { .. }
        | R::GateUnknown { .. }
        | R::SignalUnknown { .. }
        | R::AddressUnknown { .. }
        | R::RunUnknown { .. }
        | R::PhaseUnknown { .. } => UNKNOWN,
        R::Superseded { .. } | R::Outdated { .. } | R::RunTaken { .. } => REPLACED,
        R::OutOfScope { .. }
        | R::TestsRed { .. }
        | R::NoTests { .. }
        | R::ChildrenLive { .. }
        | R::ChildrenFailed { .. }
        | R::WrongPlace { .. }
        | R::WroteMeanwhile { .. }
        | R::ReportRejected { .. }
        | R::NoEvidence { .. } => MEND,
        R::TtlOutOfBounds { .. }
        | R::TestsHidden { .. }
        | R::BadText { .. }
        | R::BadHolder { .. }
        | R::NotOffered { .. } => USAGE,
        R::Preflight { check, .. } => check.exit(),
    }
}

/// The exit code of a refusal in `lock`: 1 says that someone else holds it, 2 everything else.
pub fn of_lock(refusal: &Refusal) -> u8 {
    match refusal {
        Refusal::LockHeld { .. } | Refusal::LockNotOwner { .. } => 1,
        Refusal::BadHolder { .. } | Refusal::TtlOutOfBounds { .. } | Refusal::BadText { .. } => USAGE,
        _ => 2,
    }
}

/// The exit code of a fault of the store.
pub fn of_fault(fault: &Fault) -> u8 {
    match fault {
        Fault::Busy { .. } => BUSY,
        Fault::TooNew { .. } => CONFIG,
        _ => UNREACHABLE,
    }
}

/// The dotted code of a fault of the store.
pub fn fault_code(fault: &Fault) -> &'static str {
    match fault {
        Fault::Missing(_) => "store.missing",
        Fault::Busy { .. } => "store.busy",
        Fault::TooNew { .. } => "store.too_new",
        Fault::Filesystem { .. } => "store.filesystem",
        Fault::Replaced(_) => "store.replaced",
        Fault::Disk { .. } => "store.disk",
        Fault::Damaged { .. } => "store.damaged",
        _ => "store.failed",
    }
}
