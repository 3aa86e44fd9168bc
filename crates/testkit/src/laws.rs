//! The protocol's laws (its section 16), as far as one world can show them, judged without the rules' help.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use protocol::event::{Entry, Event};
use protocol::facts::caller::Caller;
use protocol::facts::claim::{Claim, ClaimType, End, Fence, Outcome, State, Tier};
use protocol::facts::gate::{About, Choice, GateKind};
use protocol::facts::id::SessId;
use protocol::facts::kind::Kind;
use protocol::facts::lock::{Holder, Lock};
use protocol::facts::policy::Policy;
use protocol::facts::time::Instant;
use protocol::rules::preflight::{Op, Preflight, Verdict};
use protocol::world::{Lease, World, owns};

/// A law that does not hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its number in section 16.
    pub law: u8,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law {} is broken: {}", self.law, self.what)
    }
}

fn must(law: u8, holds: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds {
        Ok(())
    } else {
        Err(Broken { law, what: what() })
    }
}

/// The ids from a claim upwards, by the parent links alone.
fn line<'w>(world: &'w World, claim: &'w Claim) -> BTreeSet<&'w SessId> {
    let mut ids = BTreeSet::new();
    let mut at = Some(claim);
    while let Some(claim) = at.filter(|claim| ids.insert(&claim.id)) {
        at = claim
            .parent_satellite
            .as_ref()
            .and_then(|id| world.claims.get(id));
    }
    ids
}

/// The laws that hold at every instant: 1, 2, 5, 6 and 8.
///
/// # Errors
///
/// The first that does not.
pub fn hold(world: &World, policy: &Policy, now: Instant) -> Result<(), Broken> {
    let lines: BTreeMap<&SessId, BTreeSet<&SessId>> = world
        .claims
        .values()
        .map(|claim| (&claim.id, line(world, claim)))
        .collect();
    let live: Vec<&Claim> = world
        .claims
        .values()
        .filter(|it| world.state(it, now).is_live())
        .collect();
    for (at, a) in live.iter().enumerate() {
        for b in &live[at + 1..] {
            let family = lines[&a.id].contains(&&b.id) || lines[&b.id].contains(&&a.id);
            must(1, family || !conflict(policy, a, b), || {
                format!("{} and {} are both live", a.id, b.id)
            })?;
        }
    }

    let locks: Vec<&Lock> = world
        .locks
        .values()
        .filter(|lock| world.holds(lock, now))
        .collect();
    for (at, a) in locks.iter().enumerate() {
        for b in &locks[at + 1..] {
            let meet = a.path.starts_with(&b.path) || b.path.starts_with(&a.path);
            must(2, !meet || a.holder == b.holder, || {
                format!("{} holds {}, and {} holds {}", a.holder, a.path, b.holder, b.path)
            })?;
        }
    }

    for claim in world.claims.values() {
        let ended_above = lines[&claim.id]
            .iter()
            .filter(|id| **id != &claim.id)
            .find(|id| world.claims[**id].end.is_some());
        let law = match ended_above.map(|id| &world.claims[*id].end) {
            Some(Some(End::Closed { .. })) => 6,
            _ => 8,
        };
        must(law, claim.end.is_some() || ended_above.is_none(), || {
            format!("{} has not ended, though {ended_above:?} has", claim.id)
        })?;
        must(8, claim.end.is_none() || claim.waiting.is_none(), || {
            format!("{} has ended and waits", claim.id)
        })?;
        if let Some(result) = &claim.result {
            let needed = claim.tier() == Tier::Validated && result.status != Outcome::Failed;
            let green = result.tests.as_ref().is_some_and(|tests| {
                tests.exit == Some(0)
                    && (policy.exit_is_enough.contains(&tests.command)
                        || tests
                            .report
                            .as_ref()
                            .is_some_and(|it| it.failed == 0 && it.passed > 0))
            });
            let word = || {
                world.gates.values().any(|gate| {
                    gate.about == About::Claim(claim.id.clone())
                        && gate.kind == GateKind::Close
                        && gate.choice() == Some(Choice::Continue)
                })
            };
            must(5, !needed || green || word(), || {
                format!("{} closed without evidence", claim.id)
            })?;
        }
    }
    Ok(())
}

/// The conflict table once more, entry by entry.
fn conflict(policy: &Policy, a: &Claim, b: &Claim) -> bool {
    let keeps_out = |claim: &Claim| claim.kind_of != ClaimType::Pilot || claim.exclusive;
    let by_type = match (a.kind_of, b.kind_of) {
        (ClaimType::Pilot, ClaimType::Pilot) => true,
        _ => keeps_out(a) && keeps_out(b),
    };
    let written = |claim: &Claim| match claim.satellite_type {
        Kind::Search => claim.scope.files(),
        _ => Some(claim.scope.clone()),
    };
    let meet = |(a, b)| policy.zones.overlap(&a, &b);
    by_type && written(a).zip(written(b)).is_some_and(meet)
}

/// The laws of one step: 2 (fences), 3, 9 and 10.
///
/// # Errors
///
/// The first that does not hold.
pub fn step(
    before: &World,
    after: &World,
    entries: &[Entry],
    caller: &Caller,
    now: Instant,
) -> Result<(), Broken> {
    let mut last = before.head;
    for entry in entries {
        must(9, entry.seq == last + 1, || {
            format!("event {} follows {last}", entry.seq)
        })?;
        last = entry.seq;
    }

    let mut highest = before.fence;
    for fence in entries.iter().filter_map(|entry| minted(before, &entry.event)) {
        must(2, fence > highest, || {
            format!("fence {fence} was minted after {highest}")
        })?;
        highest = fence;
    }
    must(2, after.fence == highest, || {
        format!("the store's fence is {}, not {highest}", after.fence)
    })?;

    for claim in before.claims.values() {
        let now_is = &after.claims[&claim.id];
        let (from, to) = (before.state(claim, now), after.state(now_is, now));
        // What stood still over a boot is open for no time at all once it is let go.
        let lease = before.leases.get(&Lease::Claim(claim.id.clone()));
        let booted = to == State::Stale && lease.is_some_and(|lease| lease.until.era != now.era);
        must(3, allowed(from, to) || booted, || {
            format!("{} went from {from} to {to}", claim.id)
        })?;
        must(3, claim.end.is_none() || claim.end == now_is.end, || {
            format!("{} ended twice", claim.id)
        })?;
        must(10, claim.scope == now_is.scope, || {
            format!("the scope of {} changed", claim.id)
        })?;
        let by_word = |entry: &Entry| {
            matches!(
                entry.event,
                Event::GateAnswered { .. } | Event::GateTookEffect { .. } | Event::RightGiven { .. }
            )
        };
        must(
            10,
            claim.rights == now_is.rights || entries.iter().any(by_word),
            || format!("the rights of {} changed by no answer", claim.id),
        )?;
    }

    for entry in entries {
        let by_agent = entry.actor.nature == "agent";
        match &entry.event {
            Event::GateAnswered { answer, .. } => {
                must(10, answer.by.nature == "human" && !by_agent, || {
                    "a gate was answered by no human".to_owned()
                })?;
            }
            Event::ClaimResumed { id, .. } => {
                let stands_on = |own: &Claim| line(before, own).contains(&id);
                let on_caller = before
                    .claims
                    .values()
                    .filter(|own| owns(caller, own))
                    .any(stands_on);
                must(10, !by_agent || !on_caller, || {
                    format!("the pause of {id} was lifted from below")
                })?;
            }
            Event::Thawed => must(10, !by_agent, || "an agent lifted the stop".to_owned())?,
            Event::RightGiven { id, .. } => {
                let of = after.claims[id].workflow.clone();
                let zone = |gate: &protocol::facts::gate::Gate| {
                    gate.kind == GateKind::Zone
                        && gate.choice() == Some(Choice::Continue)
                        && of
                            .as_ref()
                            .is_some_and(|of| gate.about == About::Phase(of.run.clone(), of.phase.clone()))
                };
                must(10, after.gates.values().any(zone), || {
                    format!("{id} got a right from no human")
                })?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The fence that an event brings into the world.
fn minted(before: &World, event: &Event) -> Option<Fence> {
    match event {
        Event::ClaimOpened(claim) => Some(claim.fence),
        Event::ClaimRenewed { fence, .. } => *fence,
        Event::LockTaken(lock) => {
            let same = before.locks.get(lock.path.key());
            same.is_none_or(|it| it.fence != lock.fence).then_some(lock.fence)
        }
        Event::RunStarted(run) => Some(run.driver),
        Event::RunTaken { driver, .. } => Some(*driver),
        _ => None,
    }
}

/// The pairs of states between which one command may move a claim (section 6).
fn allowed(from: State, to: State) -> bool {
    use State::{Closed, Failed, Open, Paused, Stale, WaitingHuman};
    match (from, to) {
        (from, to) if from == to => true,
        (Open, WaitingHuman | Paused | Stale | Closed | Failed) => true,
        (WaitingHuman, Open | Paused | Failed) => true,
        (Paused, Open | WaitingHuman | Failed) => true,
        (Stale, Open | Paused | Failed) => true,
        _ => false,
    }
}

/// What time alone may do: make an open claim stale, and nothing else (law 3).
///
/// # Errors
///
/// When it did more.
pub fn time(world: &World, before: Instant, after: Instant) -> Result<(), Broken> {
    for claim in world.claims.values() {
        let (from, to) = (world.state(claim, before), world.state(claim, after));
        let fine = from == to || (from, to) == (State::Open, State::Stale);
        must(3, fine, || format!("time took {} from {from} to {to}", claim.id))?;
    }
    Ok(())
}

/// Law 4, and of law 8 that nobody writes under a pause: at the instant of a go every check held.
///
/// # Errors
///
/// When one did not.
pub fn go(
    world: &World,
    policy: &Policy,
    now: Instant,
    ask: &Preflight,
    verdicts: &[Verdict],
) -> Result<(), Broken> {
    let gone: Vec<_> = verdicts
        .iter()
        .filter(|verdict| verdict.refused.is_none())
        .collect();
    if ask.op == Op::Read || gone.is_empty() {
        return Ok(());
    }
    let Some(claim) = ask.id.as_ref().and_then(|id| world.claims.get(id)) else {
        return Err(Broken {
            law: 4,
            what: "a go without a claim".to_owned(),
        });
    };
    let mut above = line(world, claim);
    above.remove(&&claim.id);
    must(8, world.halt.standing.is_none(), || {
        "a go under the stop".to_owned()
    })?;
    must(4, world.state(claim, now) == State::Open, || {
        format!("a go for {}, which is not open", claim.id)
    })?;
    for id in &above {
        let it = &world.claims[*id];
        let quiet =
            it.pauses.is_empty() && it.waiting.is_none() && !matches!(it.end, Some(End::Failed { .. }));
        must(8, quiet, || format!("a go for {} under {id}", claim.id))?;
    }
    let work = world.works.get(&claim.work);
    must(4, work.is_none_or(|work| !work.tripped), || {
        "a go past the breaker".to_owned()
    })?;
    for verdict in gone {
        let Some(path) = &verdict.path else {
            return Err(Broken {
                law: 4,
                what: format!("a go outside the root: {}", verdict.given),
            });
        };
        must(4, claim.scope.covers(path), || {
            format!("a go on {path}, outside {:?}", claim.scope.to_strings())
        })?;
        let me = Holder::Claim(claim.id.clone());
        let locked = world.locks.values().find(|lock| {
            let meets = path.starts_with(&lock.path) || ask.op == Op::Delete && lock.path.starts_with(path);
            meets && lock.holder != me && world.holds(lock, now)
        });
        must(4, locked.is_none(), || {
            format!("a go on {path} under the lock of {locked:?}")
        })?;
        let zone = policy.zones.zone_of(path);
        let other = world.claims.values().find(|other| {
            let named = other.scope.additions().any(|entry| {
                policy
                    .zones
                    .entry_zones(&other.scope)
                    .iter()
                    .any(|(of, its)| of.as_str() == entry.as_str() && *its == zone)
            });
            other.id != claim.id
                && !above.contains(&&other.id)
                && other.satellite_type != Kind::Search
                && (other.kind_of != ClaimType::Pilot || other.exclusive)
                && world.state(other, now).is_live()
                && other.scope.covers(path)
                && named
        });
        must(4, other.is_none(), || {
            format!("a go on {path}, which another live claim covers")
        })?;
    }
    Ok(())
}
