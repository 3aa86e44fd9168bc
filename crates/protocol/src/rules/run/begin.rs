//! Starting and taking a run, beginning and ending an attempt.

use std::collections::BTreeMap;

use super::change::set_phase;
use super::find::{driven, find_attempt, find_phase, find_run, is_busy, phase_of, scope_of};
use super::next::{Ready, may_be_said_before, ready};
use crate::command::{OpenClaim, StartRun};
use crate::event::Event;
use crate::facts::claim::{ClaimType, Fence, Outcome, PhaseOf, Right, State};
use crate::facts::gate::GateKind;
use crate::facts::id::{AttemptId, RunId};
use crate::facts::run::{Attempt, Exit, Run, Standing};
use crate::refusal::Refusal;
use crate::rules::{Asked, Draft, claim, who};
use crate::world::Lease;

/// Starts a run under a pilot, which is opened with it unless one is named.
pub(crate) fn start(d: &mut Draft<'_>, ask: &StartRun) -> Result<(), Refusal> {
    let same = d
        .world
        .runs
        .values()
        .find(|run| run.plan == ask.plan && run.end.is_none());
    if let Some(run) = same {
        return Err(Refusal::RunUnfinished {
            run: run.id.clone(),
            plan: ask.plan.clone(),
        });
    }
    let pilot = match &ask.parent {
        Some(id) => {
            let pilot = who::find(&d.world, id)?;
            who::may_act(d.asked, pilot, "start a run under")?;
            if !pilot.may_have_children() {
                return Err(Refusal::LeafHasNoChildren { parent: id.clone() });
            }
            let state = d.world.state(pilot, d.now());
            if state != State::Open {
                return Err(Refusal::NoParent {
                    parent: id.clone(),
                    state,
                });
            }
            id.clone()
        }
        None => claim::open(d, &ask.pilot, None)?,
    };
    let id = RunId::mint(d.seq());
    let (driver, started_at) = (d.fence(), d.now());
    d.push(Event::RunStarted(Run {
        id: id.clone(),
        plan: ask.plan.clone(),
        source: ask.source.clone(),
        digest: ask.digest.clone(),
        pilot,
        owns_pilot: ask.parent.is_none(),
        theme: ask.theme.clone(),
        main: ask.main.clone(),
        jobs: ask.jobs,
        merge: ask.merge,
        kernel_exit: ask.kernel_exit,
        chain: ask.chain,
        yes_to: ask
            .yes_to
            .iter()
            .copied()
            .filter(|kind| may_be_said_before(*kind))
            .collect(),
        risk: ask.risk.clone(),
        phases: ask
            .phases
            .iter()
            .map(|(phase, _)| phase.id.as_str().to_owned())
            .collect(),
        started_at,
        driver,
        launches_ended: false,
        landings: BTreeMap::new(),
        end: None,
        ended_at: None,
    }));
    for (position, (phase, digest)) in ask.phases.iter().enumerate() {
        let kept = ask.keep.contains(&(phase.id.as_str().to_owned(), digest.clone()));
        let standing = if kept {
            Standing::Accepted(Outcome::Ok)
        } else {
            Standing::Pending
        };
        set_phase(d, &id, position, phase, digest, standing);
    }
    Ok(())
}

/// Takes a run whose driver is gone: the new driver's fence shuts the old one out.
pub(crate) fn take(d: &mut Draft<'_>, id: &RunId, driver_gone: bool) -> Result<(), Refusal> {
    let run = find_run(&d.world, id)?;
    if run.end.is_some() {
        return Err(Refusal::RunOver { run: id.clone() });
    }
    let pilot = who::find(&d.world, &run.pilot)?;
    who::may_act(d.asked, pilot, "drive a run of")?;
    let lease = d.world.leases.get(&Lease::Driver(id.clone()));
    let alive = lease.is_some_and(|lease| !lease.until.reached_by(d.now()));
    if alive && !driver_gone {
        return Err(Refusal::RunDriven { run: id.clone() });
    }
    let pilot = pilot.id.clone();
    let driver = d.fence();
    d.push(Event::RunTaken {
        id: id.clone(),
        driver,
    });
    let stale = d
        .world
        .claims
        .get(&pilot)
        .is_some_and(|it| d.world.state(it, d.now()) == State::Stale);
    if stale {
        let fence = Some(d.fence());
        d.push(Event::ClaimRenewed { id: pilot, fence });
    }
    Ok(())
}

/// Writes an attempt down and opens its claim, in one transaction and before anything is started.
pub(crate) fn begin_attempt(
    d: &mut Draft<'_>,
    run: &RunId,
    driver: Fence,
    phase: &str,
    ask: &OpenClaim,
) -> Result<(), Refusal> {
    let the_run = driven(d, run, driver)?.clone();
    let it = find_phase(&d.world, run, phase)?.clone();
    let refuse = |verb: &str| Refusal::PhaseState {
        run: run.clone(),
        phase: phase.to_owned(),
        verb: verb.to_owned(),
    };
    if it.standing != Standing::Pending || it.waiting.is_some() || the_run.launches_ended {
        return Err(refuse("begin"));
    }
    let asked = Asked {
        world: &d.world,
        ..d.asked
    };
    if !matches!(ready(asked, &the_run, &it), Ready::Yes) {
        return Err(refuse("begin"));
    }
    let busy = the_run
        .phases
        .iter()
        .filter_map(|id| phase_of(&d.world, run, id))
        .filter(|it| is_busy(it))
        .count();
    if busy >= the_run.jobs.max(1) as usize {
        return Err(Refusal::JobsFull {
            run: run.clone(),
            jobs: the_run.jobs,
        });
    }
    let scope = scope_of(asked, &it).ok_or_else(|| refuse("read the scope of"))?;
    let attempt = AttemptId::mint(d.seq());
    let workflow = PhaseOf {
        run: run.clone(),
        plan: the_run.plan.clone(),
        phase: phase.to_owned(),
        attempt: attempt.clone(),
    };
    let ask = OpenClaim {
        kind_of: ClaimType::Satellite,
        parent: Some(the_run.pilot.clone()),
        scope,
        theme_branch: Some(the_run.theme.clone()),
        satellite_type: it.phase.kind,
        tests: it.phase.tests.clone().or_else(|| ask.tests.clone()),
        on_done: it.phase.on_done.clone(),
        on_partial: it.phase.on_partial.clone(),
        on_fail: it.phase.on_fail.clone(),
        ..ask.clone()
    };
    let claim = claim::open(d, &ask, Some(workflow))?;
    for (kind, subject) in &it.allowed {
        let right = match (kind, subject.as_str()) {
            (GateKind::Zone, "kernel") => Right::Kernel,
            (GateKind::Zone, "personal") => Right::Personal,
            _ => continue,
        };
        d.push(Event::RightGiven {
            id: claim.clone(),
            right,
        });
    }
    let began_at = d.now();
    let attempt = Attempt {
        id: attempt,
        claim,
        began_at,
        exit: None,
        ended_at: None,
        outcome: None,
        why: None,
    };
    d.push(Event::AttemptBegan {
        run: run.clone(),
        phase: phase.to_owned(),
        attempt,
    });
    Ok(())
}

/// Writes down how the process of an attempt ended; the first word stands.
pub(crate) fn end_attempt(
    d: &mut Draft<'_>,
    run: &RunId,
    driver: Fence,
    phase: &str,
    attempt: &AttemptId,
    exit: &Exit,
) -> Result<(), Refusal> {
    driven(d, run, driver)?;
    let it = find_phase(&d.world, run, phase)?;
    if find_attempt(it, attempt)?.exit.is_none() {
        let (attempt, exit) = (attempt.clone(), exit.clone());
        d.push(Event::AttemptEnded {
            run: run.clone(),
            phase: phase.to_owned(),
            attempt,
            exit,
        });
    }
    Ok(())
}
