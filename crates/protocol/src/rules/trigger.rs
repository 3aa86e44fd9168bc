//! Exit triggers: what a result sets off (section 12).

use crate::event::Event;
use crate::facts::claim::{Claim, Outcome};
use crate::facts::gate::GateKind;
use crate::facts::id::SessId;
use crate::facts::signal::{Address, Sender};
use crate::facts::signal_kind::SignalKind;
use crate::facts::trigger::Trigger;
use crate::rules::Draft;
use crate::rules::note::{self, Note};

/// The triggers that a result reads, in order (section 12).
pub fn triggers(claim: &Claim, outcome: Outcome) -> Vec<Trigger> {
    let signal_pilot = || {
        vec![Trigger::Signal {
            kind: SignalKind::BlockedOn,
            to: "pilot".to_owned(),
        }]
    };
    match outcome {
        Outcome::Ok => claim.on_done.clone(),
        Outcome::Partial if !claim.on_partial.is_empty() => claim.on_partial.clone(),
        // A launch that was meant for a whole result becomes a question.
        Outcome::Partial => claim
            .on_done
            .iter()
            .map(|trigger| match trigger {
                Trigger::Launch { .. } | Trigger::Next | Trigger::Phase(_) => Trigger::HumanGate {
                    text: format!("the result is partial: {trigger}?"),
                },
                other => other.clone(),
            })
            .collect(),
        Outcome::Failed if claim.on_fail.is_empty() => signal_pilot(),
        Outcome::Failed => claim.on_fail.clone(),
    }
}

/// The text of a `gate:human` that this result still has to ask, if any.
///
/// Of a run's attempt only `ok` asks here: about any other result the run's own gate asks, once.
pub fn unasked(claim: &Claim, outcome: Outcome) -> Option<String> {
    if claim.workflow.is_some() && outcome != Outcome::Ok {
        return None;
    }
    let allowed = claim.closing.as_ref().map(|closing| &closing.allowed);
    triggers(claim, outcome)
        .into_iter()
        .find_map(|trigger| match trigger {
            Trigger::HumanGate { text } => {
                let asked = allowed.is_some_and(|it| {
                    it.iter()
                        .any(|(kind, subject, _)| *kind == GateKind::Phase && *subject == text)
                });
                (!asked).then_some(text)
            }
            _ => None,
        })
}

/// Carries out what a result sets off.
pub(crate) fn carry_all_out(d: &mut Draft<'_>, claim: &Claim, status: Outcome) {
    for trigger in triggers(claim, status) {
        carry_out(d, claim, &trigger, status);
    }
}

/// Carries out the triggers that are signals; launches are the driver's and the face's.
fn carry_out(d: &mut Draft<'_>, claim: &Claim, trigger: &Trigger, status: Outcome) {
    let (kind, to) = match trigger {
        Trigger::Signal { kind, to } => (*kind, to.as_str()),
        Trigger::Notify { to } => (SignalKind::Info, to.as_str()),
        Trigger::Abort => {
            launch_no_more(d, claim);
            (SignalKind::Abort, "pilot")
        }
        Trigger::Launch { .. } | Trigger::Next | Trigger::Phase(_) | Trigger::HumanGate { .. } => return,
    };
    let root = d.world.root(claim);
    let to = match to {
        "human" => Address::Human,
        "parent" => claim
            .parent_satellite
            .clone()
            .map_or(Address::Human, Address::Session),
        "pilot" if root.id == claim.id => Address::Human,
        "pilot" => Address::Session(root.id.clone()),
        other => match SessId::parse(other) {
            Ok(id) => Address::Session(id),
            Err(_) => Address::Human,
        },
    };
    let summary = format!("{} ended {}: {}", claim.id, status.as_str(), claim.story_angle);
    let (from, scope) = (Sender::Session(claim.id.clone()), claim.scope.to_strings());
    note::tell(
        d,
        Note {
            from,
            to,
            kind,
            scope,
            summary,
        },
    );
}

/// Carries an `abort` trigger out: nothing more of this run is launched.
pub(crate) fn launch_no_more(d: &mut Draft<'_>, claim: &Claim) {
    let run = claim.workflow.as_ref().map(|of| of.run.clone());
    if let Some(id) = run.filter(|id| d.world.runs.get(id).is_some_and(|run| !run.launches_ended)) {
        d.push(Event::LaunchesEnded { id });
    }
}
