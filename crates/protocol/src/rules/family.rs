//! The end of a claim and of all below it, whatever ends it (section 6).

use crate::event::Event;
use crate::facts::claim::{Claim, End, FailedBy};
use crate::facts::gate::{About, Gate};
use crate::facts::id::{RunId, SessId};
use crate::facts::run::RunEnd;
use crate::rules::Draft;

/// Fails a claim and every live claim below it, releases their locks and withdraws their gates (section 6).
pub(crate) fn fail_tree(d: &mut Draft<'_>, id: &SessId, by: FailedBy, why: &str) {
    if d.world.claims.get(id).is_none_or(Claim::is_terminal) {
        return;
    }
    let below: Vec<SessId> = d
        .world
        .descendants(id)
        .iter()
        .filter(|it| !it.is_terminal())
        .map(|it| it.id.clone())
        .collect();
    end_of(d, id, why);
    d.push(Event::ClaimFailed {
        id: id.clone(),
        by,
        why: why.to_owned(),
    });
    for child in below {
        let why = format!("{id} failed: {why}");
        end_of(d, &child, &why);
        d.push(Event::ClaimFailed {
            id: child,
            by: FailedBy::Ancestor(id.clone()),
            why,
        });
    }
}

/// Releases the locks of a claim that ends and withdraws its pending gate.
pub(crate) fn end_of(d: &mut Draft<'_>, id: &SessId, why: &str) {
    let holder = crate::facts::lock::Holder::Claim(id.clone());
    let locks: Vec<_> = d
        .world
        .locks
        .values()
        .filter(|it| it.holder == holder)
        .map(|it| it.path.clone())
        .collect();
    for path in locks {
        let why = Some(format!("{id} ended: {why}"));
        d.push(Event::LockReleased {
            path,
            holder: holder.clone(),
            why,
        });
    }
    let about = About::Claim(id.clone());
    let gates: Vec<_> = d
        .world
        .gates
        .values()
        .filter(|it| it.about == about && it.is_pending())
        .map(|it| it.id.clone())
        .collect();
    for gate in gates {
        d.push(Event::GateWithdrawn {
            id: gate,
            why: why.to_owned(),
        });
    }
}

/// Ends the runs whose pilot failed.
pub(crate) fn pilots_failed(d: &mut Draft<'_>) {
    let failed = |pilot: &Claim| matches!(pilot.end, Some(End::Failed { .. }));
    let over: Vec<RunId> = d
        .world
        .runs
        .values()
        .filter(|run| run.end.is_none())
        .filter(|run| d.world.claims.get(&run.pilot).is_some_and(failed))
        .map(|run| run.id.clone())
        .collect();
    for id in over {
        withdraw_gates(d, &id, "the run was aborted");
        d.push(Event::RunEnded {
            id,
            end: RunEnd::Aborted,
        });
    }
}

pub(crate) fn withdraw_gates(d: &mut Draft<'_>, run: &RunId, why: &str) {
    let of_run = |gate: &&Gate| matches!(&gate.about, About::Phase(of, _) | About::Run(of) if of == run);
    let pending: Vec<_> = d
        .world
        .gates
        .values()
        .filter(of_run)
        .filter(|it| it.is_pending())
        .map(|it| it.id.clone())
        .collect();
    for id in pending {
        d.push(Event::GateWithdrawn {
            id,
            why: why.to_owned(),
        });
    }
}
