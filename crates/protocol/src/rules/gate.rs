//! Human gates, pauses, aborts and the emergency stop (section 6; `hypervisor.md`, 9).

use crate::command::OpenGate;
use crate::event::Event;
use crate::facts::claim::{FailedBy, Pauser, State};
use crate::facts::gate::{About, Answer, Choice, Gate, GateKind};
use crate::facts::id::{GateId, SessId};
use crate::facts::signal_kind::SignalKind;
use crate::refusal::Refusal;
use crate::rules::ask::push_gate;
use crate::rules::family::{fail_tree, pilots_failed};
use crate::rules::note::{self, Note, blocked_on};
use crate::rules::words::one_line;
use crate::rules::{Draft, run, who};
use crate::world::{owns, pauser_name};

/// The longest reason, in characters.
const WHY_MAX: usize = 2_000;

/// Opens a gate on a claim, which waits from then on.
pub(crate) fn open(d: &mut Draft<'_>, ask: &OpenGate) -> Result<GateId, Refusal> {
    one_line("why", &ask.why, WHY_MAX)?;
    let About::Claim(id) = &ask.about else {
        // Gates of a run come from its loop alone; see `run::ask_phase`.
        return Err(Refusal::WrongState {
            id: SessId::compose(d.now(), "run", 1),
            state: State::Open,
            verb: "open a gate".to_owned(),
        });
    };
    let claim = who::find(&d.world, id)?;
    who::may_act(d.asked, claim, "open a gate for")?;
    let state = d.world.state(claim, d.now());
    if state != State::Open {
        return Err(Refusal::WrongState {
            id: id.clone(),
            state,
            verb: "wait at a gate".to_owned(),
        });
    }
    let note = Note::to_parent(
        claim,
        SignalKind::GatePending,
        &format!("{}: {}", ask.kind, ask.why),
    );
    let gate = push_gate(d, ask);
    note::tell(d, note);
    Ok(gate)
}

/// Takes a human's answer, once; whoever comes second gets the first.
pub(crate) fn answer(
    d: &mut Draft<'_>,
    id: &GateId,
    choice: Choice,
    words: &str,
    shown: &str,
    mac: &str,
) -> Result<(), Refusal> {
    who::must_be_human(d.asked, "answer a gate")?;
    let gate = d
        .world
        .gates
        .get(id)
        .ok_or_else(|| Refusal::GateUnknown { id: id.to_string() })?
        .clone();
    if gate.answer.is_some() {
        return Ok(());
    }
    if gate.withdrawn_at.is_some() {
        return Err(Refusal::GateWithdrawn { gate: id.clone() });
    }
    if !gate.choices().contains(&choice) {
        return Err(Refusal::NotOffered {
            gate: id.clone(),
            kind: gate.kind,
            choice,
        });
    }
    if gate.shown != shown {
        let (shown, now) = (shown.to_owned(), gate.shown);
        return Err(Refusal::GateChanged {
            gate: id.clone(),
            shown,
            now,
        });
    }
    if let Some(needed) = gate.words_needed()
        && choice == Choice::Continue
        && words != needed
    {
        return Err(Refusal::WordsMustBe {
            gate: id.clone(),
            words: needed.to_owned(),
        });
    }
    let deferred = match &gate.about {
        About::Claim(claim) => {
            let claim = who::find(&d.world, claim)?;
            d.world.state(claim, d.now()) == State::Paused
        }
        About::Phase(..) | About::Run(_) => false,
    };
    let answer = Answer {
        choice,
        words: words.to_owned(),
        by: who::actor(d.asked),
        at: d.now(),
        mac: mac.to_owned(),
    };
    d.push(Event::GateAnswered {
        id: id.clone(),
        answer,
        deferred,
    });
    if !deferred {
        effects(d, &gate, choice, words);
    }
    Ok(())
}

/// What follows from an answer beyond the claim's own state.
fn effects(d: &mut Draft<'_>, gate: &Gate, choice: Choice, words: &str) {
    match &gate.about {
        About::Phase(run, phase) => run::answered(d, run, phase, gate, choice),
        About::Run(_) => {}
        About::Claim(id) => match choice {
            Choice::Continue if gate.kind == GateKind::Breaker => {
                let key = d.world.claims.get(id).map(|claim| claim.work.clone());
                if let Some(key) = key.filter(|key| d.world.works.contains_key(key)) {
                    let why = if words.is_empty() {
                        "continue at its gate"
                    } else {
                        words
                    };
                    d.push(Event::WorkCleared {
                        key,
                        of: Some(id.clone()),
                        why: why.to_owned(),
                    });
                }
            }
            Choice::Continue | Choice::Skip => {}
            Choice::Adapt | Choice::Retry => {
                let Some(claim) = d.world.claims.get(id) else {
                    return;
                };
                let note = Note {
                    from: crate::facts::signal::Sender::Brain,
                    to: crate::facts::signal::Address::Session(id.clone()),
                    kind: SignalKind::Adapt,
                    scope: claim.scope.to_strings(),
                    summary: format!("{}: {words}", choice.as_str()),
                };
                note::tell(d, note);
            }
            Choice::Abort => {
                let why = format!("rejected at {}: {words}", gate.id);
                blocked_on(d, id, &why);
                fail_tree(d, id, FailedBy::Reject, &why);
                pilots_failed(d);
            }
        },
    }
}

/// Lets answers that were given under a pause take effect where no pause is left.
fn settle(d: &mut Draft<'_>) {
    let deferred: Vec<Gate> = d
        .world
        .gates
        .values()
        .filter(|gate| gate.deferred)
        .cloned()
        .collect();
    for gate in deferred {
        let (About::Claim(id), Some(answer)) = (&gate.about, &gate.answer) else {
            continue;
        };
        let free = d
            .world
            .claims
            .get(id)
            .is_some_and(|it| !it.is_terminal() && d.world.pauses(it).is_empty());
        if free {
            d.push(Event::GateTookEffect { id: gate.id.clone() });
            effects(d, &gate, answer.choice, &answer.words);
        }
    }
}

/// Sets a pause on a claim; everything below is paused with it, also what opens later.
pub(crate) fn pause(d: &mut Draft<'_>, id: &SessId, why: &str) -> Result<(), Refusal> {
    let claim = who::find(&d.world, id)?;
    who::may_act(d.asked, claim, "pause")?;
    let state = d.world.state(claim, d.now());
    if state.is_terminal() {
        return Err(Refusal::WrongState {
            id: id.clone(),
            state,
            verb: "pause".to_owned(),
        });
    }
    let by = who::pauser(d.asked, Some(claim));
    if claim.pauses.contains_key(&by) {
        return Ok(());
    }
    let note = Note::to_parent(claim, SignalKind::Paused, &format!("{id} is paused: {why}"));
    d.push(Event::ClaimPaused {
        id: id.clone(),
        by,
        why: why.to_owned(),
    });
    note::tell(d, note);
    Ok(())
}

/// Lifts the caller's pause, or as a human or plain caller all that stand on the claim itself.
pub(crate) fn resume(d: &mut Draft<'_>, id: &SessId) -> Result<(), Refusal> {
    let claim = who::find(&d.world, id)?;
    let state = d.world.state(claim, d.now());
    if state.is_terminal() {
        return Err(Refusal::WrongState {
            id: id.clone(),
            state,
            verb: "resume".to_owned(),
        });
    }
    let paused_by = d.world.pauses(claim);
    if claim.pauses.is_empty() {
        return Err(Refusal::NotPaused {
            id: id.clone(),
            paused_by,
        });
    }
    let all = who::is_human_or_plain(d.asked);
    // Never by what is paused, or descends from it, also when it paused itself.
    let below = |own: &crate::facts::claim::Claim| own.id == *id || d.world.descends_from(own, id);
    if !all && d.asked.world.owned_by(d.asked.caller).any(below) {
        return Err(Refusal::OwnPause { id: id.clone() });
    }
    // A person's pause is named after the user, under whose name agents run too: it is never theirs.
    let mine_or_below = |by: &Pauser| match by {
        Pauser::Claim(pauser) => d
            .world
            .claims
            .get(pauser)
            .is_some_and(|it| owns(d.asked.caller, it) || who::is_ancestor(d.asked, it)),
        Pauser::User(_) => false,
    };
    let lifted: Vec<Pauser> = claim
        .pauses
        .keys()
        .filter(|by| all || mine_or_below(by))
        .cloned()
        .collect();
    if lifted.is_empty() {
        let (verb, owner) = ("lift the pause of".to_owned(), claim.owner.clone());
        return Err(Refusal::NotOwner {
            id: id.clone(),
            verb,
            owner,
        });
    }
    for by in lifted {
        d.push(Event::ClaimResumed { id: id.clone(), by });
    }
    settle(d);
    Ok(())
}

/// Fails a claim and everything below it, and tells the parent.
pub(crate) fn abort(d: &mut Draft<'_>, id: &SessId, why: &str) -> Result<(), Refusal> {
    let claim = who::find(&d.world, id)?;
    who::may_act(d.asked, claim, "abort")?;
    let state = d.world.state(claim, d.now());
    if state.is_terminal() {
        return Err(Refusal::WrongState {
            id: id.clone(),
            state,
            verb: "abort".to_owned(),
        });
    }
    blocked_on(d, id, &format!("{id} was aborted: {why}"));
    fail_tree(d, id, FailedBy::Abort, why);
    pilots_failed(d);
    Ok(())
}

/// Stops everything, at once; anyone may.
pub(crate) fn halt(d: &mut Draft<'_>, why: &str) -> Result<(), Refusal> {
    if d.world.halt.standing.is_none() {
        let by = who::pauser(d.asked, None);
        d.push(Event::Halted {
            why: why.to_owned(),
            by,
        });
    }
    Ok(())
}

/// Lifts the stop: plain callers and humans, since it stands on every session, also on the one that set it.
pub(crate) fn thaw(d: &mut Draft<'_>) -> Result<(), Refusal> {
    let Some((_, by)) = &d.world.halt.standing else {
        return Ok(());
    };
    if !who::is_human_or_plain(d.asked) {
        let taken_for = format!("an agent, on which the stop of {} stands", pauser_name(by));
        return Err(Refusal::NotHuman {
            verb: "lift the stop".to_owned(),
            taken_for,
        });
    }
    d.push(Event::Thawed);
    settle(d);
    Ok(())
}
