//! Writing a gate down, and saying that one waits.

use crate::command::OpenGate;
use crate::event::Event;
use crate::facts::claim::{Claim, State};
use crate::facts::gate::Gate;
use crate::facts::id::GateId;
use crate::refusal::Refusal;
use crate::rules::{Draft, who};
use crate::world::World;

/// Writes a gate down.
pub(crate) fn push_gate(d: &mut Draft<'_>, ask: &OpenGate) -> GateId {
    let id = GateId::mint(d.seq());
    d.push(Event::GateOpened(Gate {
        id: id.clone(),
        kind: ask.kind,
        about: ask.about.clone(),
        subject: ask.subject.clone(),
        why: ask.why.clone(),
        known: ask.known.clone(),
        shown: ask.shown.clone(),
        by: who::actor(d.asked),
        asked_at: d.now(),
        answer: None,
        deferred: false,
        withdrawn_at: None,
    }));
    id
}

pub(crate) fn pending(world: &World, claim: &Claim) -> Refusal {
    match claim.waiting.as_ref().and_then(|id| world.gates.get(id)) {
        Some(gate) => Refusal::GatePending {
            gate: gate.id.clone(),
            kind: gate.kind,
            why: gate.why.clone(),
        },
        None => Refusal::WrongState {
            id: claim.id.clone(),
            state: State::WaitingHuman,
            verb: "close".to_owned(),
        },
    }
}
