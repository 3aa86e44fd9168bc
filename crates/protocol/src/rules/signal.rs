//! Sending and acknowledging signals (section 10).

use crate::event::Event;
use crate::facts::claim::Claim;
use crate::facts::id::{RunId, SessId, SigId};
use crate::facts::signal::{Address, SUMMARY_MAX, Sender, Signal};
use crate::facts::signal_kind::SignalKind;
use crate::refusal::Refusal;
use crate::rules::note::{Note, tell};
use crate::rules::words::one_line;
use crate::rules::{Draft, who};
use crate::world::{World, owns};

/// Sends a caller's signal to one address, or to everyone alive.
pub(crate) fn send(
    d: &mut Draft<'_>,
    to: &str,
    kind: SignalKind,
    from: Option<&SessId>,
    summary: &str,
) -> Result<(), Refusal> {
    one_line("summary", summary, SUMMARY_MAX)?;
    let asked = d.asked;
    let sender = match from {
        Some(id) => {
            let claim = who::find(&d.world, id)?;
            if !owns(asked.caller, claim) && !who::is_ancestor(asked, claim) && !who::is_human_or_plain(asked)
            {
                return Err(Refusal::SenderNotYours { from: id.clone() });
            }
            Some(claim.clone())
        }
        None => who::own_claim(asked).cloned(),
    };
    let unknown = || Refusal::AddressUnknown { to: to.to_owned() };
    let session = |id: &SessId| Address::Session(id.clone());
    let addresses = match (to, &sender) {
        ("human", _) => vec![Address::Human],
        ("pilot" | "pilote" | "parent", None) => vec![Address::Human],
        ("pilot" | "pilote", Some(claim)) => {
            let root = d.world.root(claim);
            vec![if root.id == claim.id {
                Address::Human
            } else {
                session(&root.id)
            }]
        }
        ("parent", Some(claim)) => vec![claim.parent_satellite.as_ref().map_or(Address::Human, session)],
        ("all", _) => {
            let live = |claim: &&Claim| d.world.state(claim, d.now()).is_live();
            let others = |claim: &&Claim| sender.as_ref().is_none_or(|sender| sender.id != claim.id);
            d.world
                .claims
                .values()
                .filter(live)
                .filter(others)
                .map(|claim| session(&claim.id))
                .collect()
        }
        _ => {
            let id = SessId::parse(to).map_err(|_| unknown())?;
            vec![session(&d.world.claims.get(&id).ok_or_else(unknown)?.id)]
        }
    };
    let from = sender.as_ref().map_or_else(
        || Sender::User(asked.caller.user.clone()),
        |claim| Sender::Session(claim.id.clone()),
    );
    let scope = sender
        .as_ref()
        .map(|claim| claim.scope.to_strings())
        .unwrap_or_default();
    for to in addresses {
        let (from, scope, summary) = (from.clone(), scope.clone(), summary.to_owned());
        tell(
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
    Ok(())
}

/// Whether a claim takes over the mail of one that has ended: it took its files, or covers its whole scope.
pub fn succeeds(heir: &Claim, ended: &Claim) -> bool {
    let after = ended.is_terminal() && !heir.is_terminal() && heir.fence > ended.fence;
    after && (heir.inherits.contains(&ended.id) || heir.scope.contains(&ended.scope))
}

/// The unanswered `BLOCKED_ON` of a run's phase, or of any of its phases; orphans included.
pub fn blocked<'w>(
    world: &'w World,
    run: &'w RunId,
    phase: Option<&'w str>,
) -> impl Iterator<Item = &'w Signal> {
    let of_run = move |signal: &&Signal| match &signal.from {
        Sender::Session(from) => world
            .claims
            .get(from)
            .and_then(|claim| claim.workflow.as_ref())
            .is_some_and(|of| of.run == *run && phase.is_none_or(|phase| of.phase == phase)),
        Sender::User(_) | Sender::Brain => false,
    };
    let waits = |signal: &&Signal| signal.kind == SignalKind::BlockedOn && signal.acked_at.is_none();
    world.signals.values().filter(waits).filter(of_run)
}

/// Answers what a phase was blocked on, once it was settled.
pub(crate) fn unblock(d: &mut Draft<'_>, run: &RunId, phase: &str) {
    let ids: Vec<SigId> = blocked(&d.world, run, Some(phase))
        .map(|it| it.id.clone())
        .collect();
    for id in ids {
        d.push(Event::SignalAcked { id });
    }
}

/// Says that signals were received; a second time changes nothing.
pub(crate) fn ack(d: &mut Draft<'_>, ids: &[SigId]) -> Result<(), Refusal> {
    for id in ids {
        let signal = d
            .world
            .signals
            .get(id)
            .ok_or_else(|| Refusal::SignalUnknown { id: id.clone() })?;
        if let Address::Session(to) = &signal.to
            && let Some(claim) = d.world.claims.get(to)
        {
            let mut owned = d.world.owned_by(d.asked.caller);
            let mine = owns(d.asked.caller, claim)
                || who::is_ancestor(d.asked, claim)
                || owned.any(|own| succeeds(own, claim));
            if !mine && !who::is_human_or_plain(d.asked) {
                return Err(Refusal::SignalNotYours { id: id.clone() });
            }
        } else if !who::is_human_or_plain(d.asked) {
            return Err(Refusal::SignalNotYours { id: id.clone() });
        }
        if signal.acked_at.is_none() {
            d.push(Event::SignalAcked { id: id.clone() });
        }
    }
    Ok(())
}
