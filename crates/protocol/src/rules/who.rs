//! Who may do what: the caller's nature, ownership and descent (section 5).

use crate::facts::caller::{Actor, Nature, Proof};
use crate::facts::claim::{Claim, ClaimType, Pauser};
use crate::facts::id::SessId;
use crate::refusal::Refusal;
use crate::rules::Asked;
use crate::world::{World, owns};

/// What the caller is taken for once the store was asked: a session's process makes an agent of what
/// descends from it, whatever it can sign. In a brain that `demo` made, its own key answers whoever calls.
pub fn nature(asked: Asked<'_>) -> Nature {
    let caller = asked.caller;
    if matches!(caller.nature, Nature::Human(Proof::Demo) | Nature::Agent { .. }) {
        return caller.nature.clone();
    }
    if caller.token.is_some() {
        return Nature::Agent {
            by: "a session token in its environment".to_owned(),
        };
    }
    let owner_of = |claim: &&Claim| {
        let owner = claim.owner.process.as_ref();
        !claim.human && owner.is_some_and(|process| caller.chain.contains(process))
    };
    match asked.world.claims.values().find(owner_of) {
        Some(claim) => Nature::Agent {
            by: format!("its descent from the process of {}", claim.id),
        },
        None => caller.nature.clone(),
    }
}

/// The caller as the journal keeps it.
pub fn actor(asked: Asked<'_>) -> Actor {
    let (nature, proof) = match nature(asked) {
        Nature::Human(proof) => ("human", Some(proof)),
        Nature::Agent { .. } => ("agent", None),
        Nature::Plain => ("plain", None),
    };
    Actor {
        nature: nature.to_owned(),
        user: asked.caller.user.clone(),
        host: asked.caller.host.clone(),
        claim: own_claim(asked).map(|claim| claim.id.clone()),
        proof,
    }
}

/// The claim in whose name the caller acts: the one of its token, else the only one that it owns.
pub fn own_claim(asked: Asked<'_>) -> Option<&Claim> {
    let by_token = |claim: &&Claim| asked.caller.token.as_ref() == Some(&claim.token);
    let mut owned = asked
        .world
        .owned_by(asked.caller)
        .filter(|claim| !claim.is_terminal());
    asked
        .world
        .claims
        .values()
        .find(by_token)
        .or_else(|| match (owned.next(), owned.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        })
}

/// Refuses all but humans.
pub fn must_be_human(asked: Asked<'_>, verb: &str) -> Result<(), Refusal> {
    let taken_for = match nature(asked) {
        Nature::Human(_) => return Ok(()),
        Nature::Agent { by } => format!("an agent, by {by}"),
        Nature::Plain => "a script: nothing was signed and no code was typed".to_owned(),
    };
    Err(Refusal::NotHuman {
        verb: verb.to_owned(),
        taken_for,
    })
}

/// Whether the caller is a human or a plain caller.
pub fn is_human_or_plain(asked: Asked<'_>) -> bool {
    !matches!(nature(asked), Nature::Agent { .. })
}

/// Whether the caller owns a claim above this one.
pub fn is_ancestor(asked: Asked<'_>, claim: &Claim) -> bool {
    asked
        .world
        .ancestors(claim)
        .any(|ancestor| owns(asked.caller, ancestor))
}

/// Lets the claim's owner, an ancestor, plain callers and humans pass.
pub fn may_act(asked: Asked<'_>, claim: &Claim, verb: &str) -> Result<(), Refusal> {
    if owns(asked.caller, claim) || is_ancestor(asked, claim) || is_human_or_plain(asked) {
        return Ok(());
    }
    Err(Refusal::NotOwner {
        id: claim.id.clone(),
        verb: verb.to_owned(),
        owner: claim.owner.clone(),
    })
}

/// The satellites that the caller is, or descends from; none where it is also a pilot or works alone.
///
/// A token binds to its claim for good, also after that has ended. Without one, a session that opened
/// satellites of its own is still the pilot that it was.
pub fn satellites_of(asked: Asked<'_>) -> Vec<&Claim> {
    let in_satellite = |claim: &&Claim| {
        let mut line = std::iter::once(*claim).chain(asked.world.ancestors(claim));
        line.any(|claim| claim.kind_of == ClaimType::Satellite)
    };
    if let Some(token) = &asked.caller.token {
        let bound = asked.world.claims.values().filter(|claim| claim.token == *token);
        return bound.filter(in_satellite).collect();
    }
    let live = asked.world.owned_by(asked.caller).filter(|it| !it.is_terminal());
    let (satellites, others): (Vec<&Claim>, Vec<&Claim>) = live.partition(in_satellite);
    if others.is_empty() { satellites } else { Vec::new() }
}

/// In whose name the caller's pause of a claim stands: the nearest on its line that the caller owns, else
/// the one claim that it owns, else its user.
pub fn pauser(asked: Asked<'_>, of: Option<&Claim>) -> Pauser {
    let in_line = of.and_then(|claim| {
        let mut line = std::iter::once(claim).chain(asked.world.ancestors(claim));
        line.find(|claim| owns(asked.caller, claim))
    });
    in_line.or_else(|| own_claim(asked)).map_or_else(
        || Pauser::User(asked.caller.user.clone()),
        |claim| Pauser::Claim(claim.id.clone()),
    )
}

/// Finds a claim, or refuses.
pub fn find<'w>(world: &'w World, id: &SessId) -> Result<&'w Claim, Refusal> {
    world
        .claims
        .get(id)
        .ok_or_else(|| Refusal::ClaimUnknown { id: id.to_string() })
}
