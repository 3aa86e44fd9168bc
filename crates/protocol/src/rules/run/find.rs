//! Finding a run, a phase and an attempt, and refusing a driver that was replaced.

use crate::facts::claim::Fence;
use crate::facts::id::{AttemptId, RunId};
use crate::facts::run::{Attempt, PhaseRun, Run, Standing};
use crate::facts::scope::Scope;
use crate::refusal::Refusal;
use crate::rules::{Asked, Draft, who};
use crate::world::World;

/// Finds a phase of a run.
pub fn phase_of<'w>(world: &'w World, run: &RunId, phase: &str) -> Option<&'w PhaseRun> {
    world.phases.get(&(run.clone(), phase.to_owned()))
}

/// A running phase holds its place until its attempt is judged; one that waits at a gate after that does not.
pub(super) fn is_busy(phase: &PhaseRun) -> bool {
    phase.standing == Standing::Running && phase.last().is_some_and(|attempt| attempt.outcome.is_none())
}

pub(super) fn scope_of(asked: Asked<'_>, phase: &PhaseRun) -> Option<Scope> {
    Scope::parse(&phase.phase.scope, asked.policy.fold).ok()
}

pub(super) fn find_run<'w>(world: &'w World, id: &RunId) -> Result<&'w Run, Refusal> {
    world
        .runs
        .get(id)
        .ok_or_else(|| Refusal::RunUnknown { id: id.to_string() })
}

pub(super) fn find_phase<'w>(world: &'w World, run: &RunId, phase: &str) -> Result<&'w PhaseRun, Refusal> {
    let unknown = || Refusal::PhaseUnknown {
        run: run.clone(),
        phase: phase.to_owned(),
    };
    phase_of(world, run, phase).ok_or_else(unknown)
}

/// Refuses a driver that was replaced, who may not drive, and anything on a run that has ended.
pub(super) fn driven<'d>(d: &'d Draft<'_>, id: &RunId, driver: Fence) -> Result<&'d Run, Refusal> {
    let run = find_run(&d.world, id)?;
    // A fence is no secret: an agent of the run must not judge its own work with it.
    who::may_act(d.asked, who::find(&d.world, &run.pilot)?, "drive a run of")?;
    if run.driver != driver {
        return Err(Refusal::RunTaken { run: id.clone() });
    }
    if run.end.is_some() {
        return Err(Refusal::RunOver { run: id.clone() });
    }
    Ok(run)
}

pub(super) fn find_attempt<'p>(it: &'p PhaseRun, attempt: &AttemptId) -> Result<&'p Attempt, Refusal> {
    it.attempts
        .iter()
        .find(|other| other.id == *attempt)
        .ok_or_else(|| Refusal::PhaseState {
            run: it.run.clone(),
            phase: it.phase.id.as_str().to_owned(),
            verb: format!("find the attempt {attempt} of"),
        })
}
