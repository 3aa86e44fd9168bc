//! The circuit breaker: work that fails too often waits for a human (section 9).

use crate::event::Event;
use crate::facts::claim::Claim;
use crate::facts::id::SessId;
use crate::facts::policy::Policy;
use crate::facts::scope::Scope;
use crate::facts::signal_kind::SignalKind;
use crate::facts::work::{Work, WorkKey};
use crate::refusal::Refusal;
use crate::rules::note::{self, Note};
use crate::rules::words::one_line;
use crate::rules::{Draft, who};
use crate::world::{World, owns};

/// The uncleared work that a new claim takes over: of those that overlap its scope, the worst.
pub fn inherited(world: &World, scope: &Scope) -> Option<WorkKey> {
    let meets = |work: &&Work| work.fails > 0 && work.scope.overlaps(scope);
    world
        .works
        .values()
        .filter(meets)
        .max_by_key(|work| (work.tripped, work.fails))
        .map(|work| work.key.clone())
}

/// The work of a phase: its own once that failed, else uncleared work that its scope meets.
pub fn of_phase(world: &World, plan: &str, phase: &str, scope: &Scope) -> WorkKey {
    let own = WorkKey::of_phase(plan, phase);
    if world.works.contains_key(&own) {
        return own;
    }
    inherited(world, scope).unwrap_or(own)
}

/// Whether work failed so often that only a human reopens it.
pub fn at_limit(policy: &Policy, work: &Work) -> bool {
    work.tripped || work.fails >= policy.fails_max
}

/// Counts one failure of a claim's work.
pub(crate) fn fail(d: &mut Draft<'_>, id: &SessId, why: &str) -> Result<(), Refusal> {
    let claim = who::find(&d.world, id)?;
    who::may_act(d.asked, claim, "record a failure of")?;
    one_line("why", why, 2_000)?;
    if claim.is_terminal() {
        let state = d.world.state(claim, d.now());
        return Err(Refusal::WrongState {
            id: id.clone(),
            state,
            verb: "fail".to_owned(),
        });
    }
    let claim = claim.clone();
    count(d, &claim, why);
    Ok(())
}

/// Counts one failure; at the limit tells the parent, once. An attempt counts one, whatever it reported.
pub(crate) fn count(d: &mut Draft<'_>, claim: &Claim, why: &str) {
    let before = d.world.works.get(&claim.work);
    if claim.workflow.is_some() && before.is_some_and(|work| work.last_by.as_ref() == Some(&claim.id)) {
        return;
    }
    let fails = before.map_or(0, |work| work.fails) + 1;
    let already = before.is_some_and(|work| work.tripped);
    let tripped = fails >= d.asked.policy.fails_max;
    let (key, scope) = (claim.work.clone(), claim.scope.clone());
    d.push(Event::WorkFailed {
        key,
        scope,
        why: why.to_owned(),
        by: Some(claim.id.clone()),
        tripped,
    });
    if tripped && !already {
        let summary = format!("{fails} failures in a row: {why}");
        for kind in [SignalKind::CircuitBreak, SignalKind::BlockedOn] {
            note::tell(d, Note::to_parent(claim, kind, &summary));
        }
    }
}

/// Clears the failures of a claim's work: below the limit by its owner, at the limit by a human.
pub(crate) fn reset(d: &mut Draft<'_>, id: &SessId, why: &str) -> Result<(), Refusal> {
    let claim = who::find(&d.world, id)?;
    let Some(work) = d.world.works.get(&claim.work) else {
        return Ok(());
    };
    if at_limit(d.asked.policy, work) {
        who::must_be_human(d.asked, "reset the breaker")?;
        one_line("why", why, 2_000)?;
    } else if !owns(d.asked.caller, claim) && !who::is_human_or_plain(d.asked) {
        let (verb, owner) = ("reset the failures of".to_owned(), claim.owner.clone());
        return Err(Refusal::NotOwner {
            id: id.clone(),
            verb,
            owner,
        });
    }
    let key = work.key.clone();
    d.push(Event::WorkCleared {
        key,
        of: Some(id.clone()),
        why: why.to_owned(),
    });
    Ok(())
}

/// A success of a claim's own work sets its count to 0, unless a human must.
pub(crate) fn succeed(d: &mut Draft<'_>, claim: &Claim) {
    let work = d.world.works.get(&claim.work);
    if work.is_some_and(|work| !at_limit(d.asked.policy, work)) {
        d.push(Event::WorkCleared {
            key: claim.work.clone(),
            of: Some(claim.id.clone()),
            why: format!("{} succeeded", claim.id),
        });
    }
}
