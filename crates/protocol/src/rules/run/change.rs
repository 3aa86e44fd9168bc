//! Changing a run's plan, landing its theme, and ending it.

use std::collections::{BTreeMap, BTreeSet};

use super::find::{driven, find_run, is_busy, phase_of};
use super::next::wants_adapt;
use crate::event::Event;
use crate::facts::claim::{Claim, FailedBy, Fence, Landing};
use crate::facts::gate::Gate;
use crate::facts::id::{GateId, RunId, SessId};
use crate::facts::plan::Phase;
use crate::facts::run::{PhaseRun, RunEnd, Standing};
use crate::facts::signal::Sender;
use crate::refusal::Refusal;
use crate::rules::family::{fail_tree, pilots_failed, withdraw_gates};
use crate::rules::{Draft, signal, who};

/// Takes a changed plan for what is not done; only where a human answered a gate with `adapt`.
pub(crate) fn adapt(
    d: &mut Draft<'_>,
    id: &RunId,
    digest: &str,
    phases: &[(Phase, String)],
) -> Result<(), Refusal> {
    let run = find_run(&d.world, id)?.clone();
    if run.end.is_some() {
        return Err(Refusal::RunOver { run: id.clone() });
    }
    who::may_act(d.asked, who::find(&d.world, &run.pilot)?, "adapt a run of")?;
    if !d.world.gates.values().any(|gate| wants_adapt(&d.world, gate, id)) {
        let taken_for = "nobody answered a gate of this run with adapt".to_owned();
        return Err(Refusal::NotHuman {
            verb: "adapt the plan of a run".to_owned(),
            taken_for,
        });
    }
    let order: Vec<String> = phases
        .iter()
        .map(|(phase, _)| phase.id.as_str().to_owned())
        .collect();
    for old in run.phases.iter().filter(|old| !order.contains(old)) {
        let Some(it) = phase_of(&d.world, id, old).cloned() else {
            continue;
        };
        if is_busy(&it) {
            let verb = "leave out of the plan".to_owned();
            return Err(Refusal::PhaseState {
                run: id.clone(),
                phase: old.clone(),
                verb,
            });
        }
        withdraw_gate(d, &it);
        if !it.standing.is_settled() {
            let (run, phase) = (id.clone(), old.clone());
            d.push(Event::PhaseSkipped { run, phase });
        }
    }
    d.push(Event::RunAdapted {
        id: id.clone(),
        digest: digest.to_owned(),
        phases: order,
    });
    for (position, (phase, digest)) in phases.iter().enumerate() {
        let old = phase_of(&d.world, id, phase.id.as_str()).cloned();
        match old {
            Some(old) if is_busy(&old) && old.digest != *digest => {
                let (phase, verb) = (phase.id.as_str().to_owned(), "change".to_owned());
                return Err(Refusal::PhaseState {
                    run: id.clone(),
                    phase,
                    verb,
                });
            }
            Some(old) if old.digest == *digest => {
                let asks = old.waiting.as_ref().and_then(|gate| d.world.gates.get(gate));
                let done = old.standing.is_settled()
                    || is_busy(&old)
                    // Its result still waits for a human, who was not asked about the plan.
                    || old.standing == Standing::Running && asks.is_some_and(Gate::is_pending);
                let position = u32::try_from(position).unwrap_or(u32::MAX);
                if done {
                    d.push(Event::PhaseSet(PhaseRun { position, ..old }));
                } else {
                    withdraw_gate(d, &old);
                    d.push(Event::PhaseSet(PhaseRun {
                        position,
                        standing: Standing::Pending,
                        waiting: None,
                        ..old
                    }));
                }
            }
            Some(old) => {
                withdraw_gate(d, &old);
                set_phase(d, id, position, phase, digest, Standing::Pending);
            }
            None => set_phase(d, id, position, phase, digest, Standing::Pending),
        }
    }
    Ok(())
}

/// Writes the moves of the main branches down, before they are made and after.
pub(crate) fn record_landing(
    d: &mut Draft<'_>,
    id: &RunId,
    driver: Fence,
    landings: &BTreeMap<String, Landing>,
) -> Result<(), Refusal> {
    let run = driven(d, id, driver)?;
    let settled = |phase: &String| phase_of(&d.world, id, phase).is_some_and(|it| it.standing.is_settled());
    if let Some(open) = run.phases.iter().find(|phase| !settled(phase)) {
        let (phase, verb) = (open.clone(), "merge over the unsettled".to_owned());
        return Err(Refusal::PhaseState {
            run: id.clone(),
            phase,
            verb,
        });
    }
    let unanswered = signal::blocked(&d.world, id, None).find_map(|signal| match &signal.from {
        Sender::Session(from) => d.world.claims.get(from)?.workflow.as_ref(),
        Sender::User(_) | Sender::Brain => None,
    });
    if let Some(of) = unanswered {
        return Err(Refusal::PhaseState {
            run: id.clone(),
            phase: of.phase.clone(),
            verb: "merge over an unanswered BLOCKED_ON of".to_owned(),
        });
    }
    if run.landings != *landings {
        d.push(Event::RunLanded {
            id: id.clone(),
            landings: landings.clone(),
        });
    }
    Ok(())
}

/// Ends a run; as finished only when every phase is settled.
pub(crate) fn end(d: &mut Draft<'_>, id: &RunId, driver: Fence, end: RunEnd) -> Result<(), Refusal> {
    if d.world.runs.get(id).is_some_and(|run| run.end == Some(end)) {
        return Ok(());
    }
    let run = driven(d, id, driver)?;
    let settled = |phase: &String| phase_of(&d.world, id, phase).is_some_and(|it| it.standing.is_settled());
    if end == RunEnd::Finished
        && let Some(open) = run.phases.iter().find(|phase| !settled(phase))
    {
        let (phase, verb) = (open.clone(), "finish over the unsettled".to_owned());
        return Err(Refusal::PhaseState {
            run: id.clone(),
            phase,
            verb,
        });
    }
    // A pilot that the run opened goes with it; of a run that finished, the driver has closed it.
    let pilot = (run.owns_pilot && end != RunEnd::Finished).then(|| run.pilot.clone());
    withdraw_gates(d, id, "the run ended");
    d.push(Event::RunEnded { id: id.clone(), end });
    if let Some(pilot) = pilot {
        fail_tree(d, &pilot, FailedBy::Abort, &format!("{id} ended"));
        pilots_failed(d);
    }
    Ok(())
}

/// Cancels a run: its pilot is aborted if the run opened it, else its attempts are.
pub(crate) fn cancel(d: &mut Draft<'_>, id: &RunId) -> Result<(), Refusal> {
    let run = find_run(&d.world, id)?.clone();
    if run.end.is_some() {
        return Err(Refusal::RunOver { run: id.clone() });
    }
    let pilot = who::find(&d.world, &run.pilot)?;
    who::may_act(d.asked, pilot, "cancel a run of")?;
    let why = format!("{id} was cancelled");
    if run.owns_pilot {
        if !pilot.is_terminal() {
            fail_tree(d, &run.pilot, FailedBy::Abort, &why);
        }
    } else {
        let of_run = |claim: &&Claim| claim.workflow.as_ref().is_some_and(|of| of.run == *id);
        let live: Vec<SessId> = d
            .world
            .claims
            .values()
            .filter(of_run)
            .filter(|it| !it.is_terminal())
            .map(|it| it.id.clone())
            .collect();
        for claim in live {
            fail_tree(d, &claim, FailedBy::Abort, &why);
        }
    }
    withdraw_gates(d, id, "the run was cancelled");
    d.push(Event::RunEnded {
        id: id.clone(),
        end: RunEnd::Cancelled,
    });
    pilots_failed(d);
    Ok(())
}

pub(super) fn set_phase(
    d: &mut Draft<'_>,
    run: &RunId,
    position: usize,
    phase: &Phase,
    digest: &str,
    standing: Standing,
) {
    d.push(Event::PhaseSet(PhaseRun {
        run: run.clone(),
        position: u32::try_from(position).unwrap_or(u32::MAX),
        phase: phase.clone(),
        digest: digest.to_owned(),
        standing,
        attempts: Vec::new(),
        retries_used: 0,
        not_before: None,
        allowed: BTreeSet::new(),
        waiting: None,
    }));
}

/// Closes the gate that a phase waits at, since the plan that it asked about has changed.
fn withdraw_gate(d: &mut Draft<'_>, phase: &PhaseRun) {
    let pending = |id: &&GateId| d.world.gates.get(id).is_some_and(Gate::is_pending);
    if let Some(id) = phase.waiting.as_ref().filter(pending).cloned() {
        let why = "the plan changed".to_owned();
        d.push(Event::GateWithdrawn { id, why });
    }
}
