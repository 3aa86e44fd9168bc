//! The facts of a refusal as JSON, written by hand: who wrote a program against them keeps working.

use protocol::facts::claim::State;
use protocol::facts::id::SessId;
use protocol::facts::report::Report;
use protocol::refusal::{Detail, Refusal, Stray};
use serde_json::{Value, json};

use crate::wire::{held, owner, time};

/// The facts of a refusal, without its code and words.
pub fn of_refusal(refusal: &Refusal) -> Value {
    use Refusal as R;
    match refusal {
        R::Halted { why, since } => json!({ "why": why, "since": time(*since) }),

        R::ClaimUnknown { id } => json!({ "id": id }),
        R::IdTaken { id } | R::Outdated { id } | R::OwnPause { id } => json!({ "id": id.as_str() }),
        R::WroteMeanwhile { id } | R::NotClosing { id } | R::NoEvidence { id } => {
            json!({ "id": id.as_str() })
        }
        R::ScopeOverlaps {
            wanted,
            held: it,
            stale_with_children,
        } => {
            json!({ "wanted": wanted.to_strings(), "held": held(it), "stale_with_children": stale_with_children })
        }
        R::NoParent { parent, state } => json!({ "parent": parent.as_str(), "state": state.as_str() }),
        R::LeafHasNoChildren { parent } => json!({ "parent": parent.as_str() }),
        R::OutsideDomain {
            parent,
            wanted,
            domain,
        } => {
            json!({ "parent": parent.as_str(), "wanted": wanted.to_strings(), "domain": domain.to_strings() })
        }
        R::OnlyOwnChildren { caller } => json!({ "caller": caller.as_str() }),
        R::Detached { repo } => json!({ "repo": repo }),
        R::TtlOutOfBounds {
            asked_ms,
            least_ms,
            most_ms,
        } => {
            json!({ "asked_ms": asked_ms, "least_ms": least_ms, "most_ms": most_ms })
        }
        R::TestsHidden { command, by, column } => json!({ "command": command, "by": by, "column": column }),
        R::BadText { field, why } => json!({ "field": field, "why": why }),
        R::NotOwner { id, verb, owner: of } => json!({ "id": id.as_str(), "verb": verb, "owner": owner(of) }),
        R::WrongState { id, state, verb } => {
            json!({ "id": id.as_str(), "state": state.as_str(), "verb": verb })
        }
        R::Superseded { id, by } => json!({ "id": id.as_str(), "by": by.as_str() }),

        R::LockHeld {
            path,
            by,
            locked,
            owner: of,
            taken_at,
            expires_at,
        } => json!({
            "path": path.as_str(), "by": by.as_str(), "locked": locked.as_str(), "owner": owner(of),
            "taken_at": time(*taken_at), "expires_at": expires_at.map(time),
        }),
        R::LockNotCovered { path, holder } => json!({ "path": path.as_str(), "holder": holder }),
        R::LockClaimed { path, held: it } => json!({ "path": path.as_str(), "held": held(it) }),
        R::LockNotOwner { path, by } => json!({ "path": path.as_str(), "by": by.as_str() }),
        R::LockLost { path, by } => json!({ "path": path.as_str(), "by": by.as_ref().map(|by| by.as_str()) }),
        R::BadHolder { name } => json!({ "name": name }),

        R::NotHuman { verb, taken_for } => json!({ "verb": verb, "taken_for": taken_for }),
        R::GateUnknown { id } => json!({ "id": id }),
        R::NotOffered { gate, kind, choice } => {
            json!({ "gate": gate.as_str(), "kind": kind.as_str(), "choice": choice.as_str() })
        }
        R::GateChanged { gate, shown, now } => json!({ "gate": gate.as_str(), "shown": shown, "now": now }),
        R::GateWithdrawn { gate } => json!({ "gate": gate.as_str() }),
        R::GatePending { gate, kind, why } => {
            json!({ "gate": gate.as_str(), "kind": kind.as_str(), "why": why })
        }
        R::WordsMustBe { gate, words } => json!({ "gate": gate.as_str(), "words": words }),
        R::NotPaused { id, paused_by } => json!({ "id": id.as_str(), "paused_by": paused_by }),

        R::SignalUnknown { id } | R::SignalNotYours { id } => json!({ "id": id.as_str() }),
        R::AddressUnknown { to } => json!({ "to": to }),
        R::SenderNotYours { from } => json!({ "from": from.as_str() }),

        R::BreakerOpen { work, fails, last } => json!({ "work": work, "fails": fails, "last": last }),

        R::OutOfScope { id, strays } => {
            json!({ "id": id.as_str(), "strays": strays.iter().map(stray).collect::<Vec<_>>() })
        }
        R::TestsRed {
            id,
            command,
            exit,
            report: it,
        } => {
            json!({ "id": id.as_str(), "command": command, "exit": exit, "report": it.as_ref().map(report) })
        }
        R::NoTests { id, command, exit } => json!({ "id": id.as_str(), "command": command, "exit": exit }),
        R::ChildrenLive { id, children } => {
            let child =
                |(id, state): &(SessId, State)| json!({ "claim": id.as_str(), "state": state.as_str() });
            json!({ "id": id.as_str(), "children": children.iter().map(child).collect::<Vec<_>>() })
        }
        R::ChildrenFailed { id, children } => {
            json!({ "id": id.as_str(), "children": children.iter().map(SessId::as_str).collect::<Vec<_>>() })
        }
        R::WrongPlace {
            id,
            repo,
            expected,
            found,
        } => {
            json!({ "id": id.as_str(), "repo": repo, "expected": expected, "found": found })
        }
        R::ReportRejected { id, why } => json!({ "id": id.as_str(), "why": why }),

        R::RunUnknown { id } => json!({ "id": id }),
        R::PhaseUnknown { run, phase } => json!({ "run": run.as_str(), "phase": phase }),
        R::RunUnfinished { run, plan } => json!({ "run": run.as_str(), "plan": plan }),
        R::RunOver { run } | R::RunTaken { run } | R::RunDriven { run } => json!({ "run": run.as_str() }),
        R::PhaseState { run, phase, verb } => json!({ "run": run.as_str(), "phase": phase, "verb": verb }),
        R::JobsFull { run, jobs } => json!({ "run": run.as_str(), "jobs": jobs }),

        R::Preflight { detail, .. } => of_detail(detail),
    }
}

/// The facts of what a preflight met.
pub fn of_detail(detail: &Detail) -> Value {
    use Detail as D;
    match detail {
        D::Halted { why, since } => json!({ "why": why, "since": time(*since) }),
        D::Unknown { id } => json!({ "id": id }),
        D::State {
            id,
            state,
            gate,
            paused_by,
        } => json!({
            "id": id.as_str(), "state": state.as_str(), "gate": gate.as_ref().map(|gate| gate.as_str()),
            "paused_by": paused_by,
        }),
        D::Superseded { id, by } => json!({ "id": id.as_str(), "by": by.as_str() }),
        D::Expired { id } | D::Outdated { id } => json!({ "id": id.as_str() }),
        D::Ancestor { ancestor, state } => json!({ "ancestor": ancestor.as_str(), "state": state.as_str() }),
        D::Outside { given, real } => json!({ "given": given, "real": real }),
        D::Reserved { given } | D::Links { given } => json!({ "given": given }),
        D::HardLinked { links } => json!({ "links": links }),
        D::NotCovered { scope, pilot, zone } => json!({
            "scope": scope.to_strings(), "pilot": pilot.as_ref().map(|id| id.as_str()), "zone": zone.to_string(),
        }),
        D::SearchReads { scope } => json!({ "scope": scope.to_strings() }),
        D::Zone { zone, right } => json!({ "zone": zone.to_string(), "right": right }),
        D::SecretRead => json!({ "zone": "secret" }),
        D::KernelDeleted => json!({ "zone": "kernel" }),
        D::LockHeld {
            by,
            locked,
            owner: of,
            expires_at,
        } => json!({
            "by": by.as_str(), "locked": locked.as_str(), "owner": owner(of), "expires_at": expires_at.map(time),
        }),
        D::Claimed { held: it } => json!({ "held": held(it) }),
        D::LockRequired => json!({}),
        D::Breaker {
            work,
            fails,
            most,
            last,
        } => {
            json!({ "work": work, "fails": fails, "most": most, "last": last })
        }
        D::Branch {
            repo,
            expected,
            found,
        } => json!({ "repo": repo, "expected": expected, "found": found }),
        D::Checkout {
            repo,
            expected,
            found,
        } => json!({ "repo": repo, "expected": expected, "found": found }),
    }
}

fn stray(stray: &Stray) -> Value {
    json!({ "path": stray.path.as_str(), "why": stray.why })
}

fn report(report: &Report) -> Value {
    json!({
        "format": report.format.as_str(),
        "total": report.total,
        "passed": report.passed,
        "failed": report.failed,
        "skipped": report.skipped,
        "failures": report.failures,
    })
}
