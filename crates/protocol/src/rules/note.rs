//! Messages that the rules themselves send (section 10).

use crate::event::Event;
use crate::facts::claim::Claim;
use crate::facts::id::{SessId, SigId};
use crate::facts::signal::{Address, SUMMARY_MAX, Sender, Signal};
use crate::facts::signal_kind::SignalKind;
use crate::rules::Draft;

/// A message that a rule itself sends.
pub(crate) struct Note {
    pub from: Sender,
    pub to: Address,
    pub kind: SignalKind,
    pub scope: Vec<String>,
    pub summary: String,
}

impl Note {
    /// From a claim to the one above it, or to the people.
    pub fn to_parent(claim: &Claim, kind: SignalKind, summary: &str) -> Note {
        let to = claim
            .parent_satellite
            .clone()
            .map_or(Address::Human, Address::Session);
        Note {
            from: Sender::Session(claim.id.clone()),
            to,
            kind,
            scope: claim.scope.to_strings(),
            summary: summary.to_owned(),
        }
    }
}

/// Sends a message of the rules' own, its summary cut to size and to one line.
pub(crate) fn tell(d: &mut Draft<'_>, note: Note) -> SigId {
    let line: String = note
        .summary
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let summary: String = line.chars().take(SUMMARY_MAX).collect();
    let id = SigId::mint(d.seq());
    let orphan = match &note.to {
        Address::Session(to) => d.world.claims.get(to).is_some_and(Claim::is_terminal),
        Address::Human => false,
    };
    d.push(Event::SignalSent(Signal {
        id: id.clone(),
        from: note.from,
        to: note.to,
        kind: note.kind,
        scope: note.scope,
        summary,
        created_at: d.now(),
        acked_at: None,
        orphan,
    }));
    id
}

/// Tells the parent that a claim was rejected or aborted.
pub(crate) fn blocked_on(d: &mut Draft<'_>, id: &SessId, why: &str) {
    let note = d
        .world
        .claims
        .get(id)
        .map(|claim| Note::to_parent(claim, SignalKind::BlockedOn, why));
    if let Some(note) = note {
        tell(d, note);
    }
}
