//! Opening, renewing and reaping claims (sections 5 and 6).

use crate::command::OpenClaim;
use crate::event::Event;
use crate::facts::caller::Nature;
use crate::facts::claim::{Base, Claim, ClaimType, FailedBy, PhaseOf, State};
use crate::facts::id::SessId;
use crate::facts::kind::Kind;
use crate::facts::path::LogicalPath;
use crate::facts::scope::Scope;
use crate::facts::span::Span;
use crate::facts::tests::hides_status;
use crate::facts::work::WorkKey;
use crate::facts::zone::Coverage;
use crate::refusal::Refusal;
use crate::rules::family::{fail_tree, pilots_failed};
use crate::rules::who;
use crate::rules::words::one_line;
use crate::rules::{Asked, Draft, breaker};
use crate::world::World;

/// The shortest time to live; a second under `testkit`, which its policy says.
pub const TTL_LEAST: Span = Span::from_ms(1_000);
/// The longest time to live.
pub const TTL_MOST: Span = Span::from_ms(30 * 86_400_000);
/// What a claim gets that asks for nothing.
pub const TTL: Span = Span::from_ms(4 * 3_600_000);
/// What a pilot gets that asks for nothing.
pub const TTL_PILOT: Span = Span::from_ms(12 * 3_600_000);
/// The longest task, in characters.
const TASK_MAX: usize = 500;

/// Opens a claim: check and insert together, all scope entries or none.
pub(crate) fn open(d: &mut Draft<'_>, ask: &OpenClaim, phase: Option<PhaseOf>) -> Result<SessId, Refusal> {
    let asked = d.asked;
    check_request(ask)?;
    let id = choose_id(d, ask)?;
    if let Some(parent) = &ask.parent {
        check_parent(asked, &d.world, ask, parent)?;
    }
    let satellites = who::satellites_of(asked);
    if phase.is_none()
        && let Some(first) = satellites.first()
    {
        let parent = ask.parent.as_ref().and_then(|id| asked.world.claims.get(id));
        let below = |satellite: &&Claim| {
            parent.is_some_and(|it| it.id == satellite.id || asked.world.descends_from(it, &satellite.id))
        };
        if !satellites.iter().any(below) {
            return Err(Refusal::OnlyOwnChildren {
                caller: first.id.clone(),
            });
        }
    }

    let ttl = ask.ttl.unwrap_or(if ask.kind_of == ClaimType::Pilot {
        TTL_PILOT
    } else {
        TTL
    });
    let human = ask.kind_of != ClaimType::Satellite
        && phase.is_none()
        && !matches!(who::nature(asked), Nature::Agent { .. });
    let mut claim = Claim {
        id: id.clone(),
        kind_of: ask.kind_of,
        scope: ask.scope.clone(),
        agent: ask.agent.clone(),
        owner: ask.owner.clone(),
        opened_at: d.now(),
        ttl,
        story_angle: ask.story_angle.clone(),
        satellite_type: ask.satellite_type,
        satellite_level: ask.satellite_level,
        parent_satellite: ask.parent.clone(),
        on_done: ask.on_done.clone(),
        on_partial: ask.on_partial.clone(),
        on_fail: ask.on_fail.clone(),
        branch: ask.branch.clone(),
        theme_branch: ask.theme_branch.clone(),
        worktree: ask.worktree.clone(),
        tests: ask.tests.clone(),
        rendering: ask.rendering,
        exclusive: ask.exclusive,
        take_dirty: ask.take_dirty,
        work: match &phase {
            Some(phase) => breaker::of_phase(&d.world, &phase.plan, &phase.phase, &ask.scope),
            None => breaker::inherited(&d.world, &ask.scope).unwrap_or_else(|| WorkKey::of_claim(&id)),
        },
        workflow: phase,
        base: ask.base.clone(),
        fence: Default::default(),
        token: ask.token.clone(),
        human,
        policy: asked.policy.digest.clone(),
        rights: Default::default(),
        waiting: None,
        pauses: Default::default(),
        suspensions: Vec::new(),
        reaped: false,
        end: None,
        closing: None,
        result: None,
        inherits: Vec::new(),
    };

    for rival in rivals(asked, &d.world, &claim)? {
        claim.inherits.push(rival.clone());
        let why = format!("stale, and {id} opened over it");
        fail_tree(d, &rival, FailedBy::Superseded(id.clone()), &why);
    }
    pilots_failed(d);
    claim.fence = d.fence();
    d.push(Event::ClaimOpened(claim));
    Ok(id)
}

fn check_request(ask: &OpenClaim) -> Result<(), Refusal> {
    if let Some(ttl) = ask.ttl
        && !(TTL_LEAST..=TTL_MOST).contains(&ttl)
    {
        return Err(Refusal::TtlOutOfBounds {
            asked_ms: ttl.as_ms(),
            least_ms: TTL_LEAST.as_ms(),
            most_ms: TTL_MOST.as_ms(),
        });
    }
    one_line("task", &ask.story_angle, TASK_MAX)?;
    if let Some(tests) = &ask.tests
        && let Some(hides) = hides_status(&tests.run)
    {
        return Err(Refusal::TestsHidden {
            command: tests.run.clone(),
            by: hides.what.to_string(),
            column: hides.column,
        });
    }
    let detached = ask
        .base
        .iter()
        .find(|(_, base)| base.branch.is_none() && base.commit.is_some());
    if let (Some((repo, _)), None, true) = (detached, &ask.branch, ask.satellite_type != Kind::Search) {
        return Err(Refusal::Detached { repo: repo.clone() });
    }
    Ok(())
}

fn choose_id(d: &Draft<'_>, ask: &OpenClaim) -> Result<SessId, Refusal> {
    let taken = |id: &SessId| d.world.claims.contains_key(id) || d.world.taken.contains(id);
    if let Some(id) = &ask.id {
        return if taken(id) {
            Err(Refusal::IdTaken { id: id.clone() })
        } else {
            Ok(id.clone())
        };
    }
    let free = (1..)
        .map(|nth| SessId::compose(d.now(), &ask.slug, nth))
        .find(|id| !taken(id));
    free.ok_or_else(|| Refusal::IdTaken {
        id: SessId::compose(d.now(), &ask.slug, 1),
    })
}

fn check_parent(asked: Asked<'_>, world: &World, ask: &OpenClaim, id: &SessId) -> Result<(), Refusal> {
    let parent = who::find(world, id)?;
    who::may_act(asked, parent, "open a claim under")?;
    if !parent.may_have_children() {
        return Err(Refusal::LeafHasNoChildren { parent: id.clone() });
    }
    let state = world.state(parent, asked.now);
    if state != State::Open {
        return Err(Refusal::NoParent {
            parent: id.clone(),
            state,
        });
    }
    // As in check 1b of the preflight: a stale ancestor holds nothing back.
    if let Some(ancestor) = world
        .ancestors(parent)
        .find(|it| !matches!(world.state(it, asked.now), State::Open | State::Stale))
    {
        let state = world.state(ancestor, asked.now);
        return Err(Refusal::NoParent {
            parent: ancestor.id.clone(),
            state,
        });
    }
    // Every domain on the line: a pilot in between is no way out of one.
    let domain = std::iter::once(parent)
        .chain(world.ancestors(parent))
        .find(|it| it.is_domain() && !it.scope.contains(&ask.scope));
    if let Some(domain) = domain {
        return Err(Refusal::OutsideDomain {
            parent: domain.id.clone(),
            wanted: ask.scope.clone(),
            domain: domain.scope.clone(),
        });
    }
    Ok(())
}

/// The stale claims that this one would supersede; refuses over the first live one that it conflicts with.
fn rivals(asked: Asked<'_>, world: &World, claim: &Claim) -> Result<Vec<SessId>, Refusal> {
    let mut superseded = Vec::new();
    let above = |rival: &Claim| {
        claim.parent_satellite.as_ref().is_some_and(|parent| {
            *parent == rival.id
                || world
                    .claims
                    .get(parent)
                    .is_some_and(|p| world.descends_from(p, &rival.id))
        })
    };
    for rival in world.claims.values().filter(|rival| !rival.is_terminal()) {
        if above(rival) || !conflict(asked, claim, rival) {
            continue;
        }
        let stale = world.state(rival, asked.now) == State::Stale;
        let with_children = stale
            && world
                .descendants(&rival.id)
                .iter()
                .any(|child| world.state(child, asked.now).is_live());
        if stale && !with_children {
            superseded.push(rival.id.clone());
        } else {
            return Err(Refusal::ScopeOverlaps {
                wanted: claim.scope.clone(),
                held: Box::new(world.held(rival, asked.now)),
                stale_with_children: with_children,
            });
        }
    }
    // The deepest first, so that each is told by whom it was replaced.
    superseded.sort_by_key(|id| {
        std::cmp::Reverse(
            world
                .claims
                .get(id)
                .map_or(0, |claim| world.ancestors(claim).count()),
        )
    });
    Ok(superseded)
}

/// Whether two claims conflict by their types and scopes; being in one line is the caller's to except.
pub fn conflict(asked: Asked<'_>, a: &Claim, b: &Claim) -> bool {
    if !types_conflict((a.kind_of, a.exclusive), (b.kind_of, b.exclusive)) {
        return false;
    }
    let zones = &asked.policy.zones;
    match (writes(a), writes(b)) {
        (Some(a), Some(b)) => zones.overlap(&a, &b),
        _ => false,
    }
}

/// The conflict table: a pilot claims attention, not files, unless it is exclusive.
pub fn types_conflict(a: (ClaimType, bool), b: (ClaimType, bool)) -> bool {
    match (a, b) {
        ((ClaimType::Pilot, _), (ClaimType::Pilot, _)) => true,
        ((ClaimType::Pilot, exclusive), _) | (_, (ClaimType::Pilot, exclusive)) => exclusive,
        _ => true,
    }
}

/// What a claim may write: its scope, or of a search claim the files that it names, if any.
pub fn writes(claim: &Claim) -> Option<std::borrow::Cow<'_, Scope>> {
    if claim.satellite_type == Kind::Search {
        claim.scope.files().map(std::borrow::Cow::Owned)
    } else {
        Some(std::borrow::Cow::Borrowed(&claim.scope))
    }
}

/// Whether a claim may write this path, were nothing in the way: it covers it, in the path's own zone.
pub fn may_write(asked: Asked<'_>, claim: &Claim, path: &LogicalPath) -> bool {
    let covered = asked.policy.zones.coverage(&claim.scope, path) == Coverage::Yes;
    covered && (claim.satellite_type != Kind::Search || claim.scope.names_file_exactly(path))
}

/// Renews a claim, also from stale, where it gets a new fence and keeps its token.
pub(crate) fn renew(d: &mut Draft<'_>, id: &SessId) -> Result<(), Refusal> {
    let claim = who::find(&d.world, id)?;
    who::may_act(d.asked, claim, "renew")?;
    may_renew(&d.world, claim, d.now())?;
    let stale = d.world.state(claim, d.now()) == State::Stale;
    let fence = stale.then(|| d.fence());
    d.push(Event::ClaimRenewed {
        id: id.clone(),
        fence,
    });
    Ok(())
}

/// Whether a sign of life may push a claim's expiry on: open, or stale and nobody took the scope.
pub(crate) fn may_renew(
    world: &World,
    claim: &Claim,
    now: crate::facts::time::Instant,
) -> Result<(), Refusal> {
    if let Some(by) = claim.superseded_by() {
        return Err(Refusal::Superseded {
            id: claim.id.clone(),
            by: by.clone(),
        });
    }
    match world.state(claim, now) {
        State::Open | State::Stale => Ok(()),
        state => Err(Refusal::WrongState {
            id: claim.id.clone(),
            state,
            verb: "renew".to_owned(),
        }),
    }
}

/// Notes how a repository was when the claim first met it.
pub(crate) fn note_base(d: &mut Draft<'_>, id: &SessId, repo: &str, base: &Base) -> Result<(), Refusal> {
    let claim = who::find(&d.world, id)?;
    who::may_act(d.asked, claim, "note a repository of")?;
    if claim.is_terminal() {
        let state = d.world.state(claim, d.now());
        return Err(Refusal::WrongState {
            id: id.clone(),
            state,
            verb: "note a repository".to_owned(),
        });
    }
    if !claim.base.contains_key(repo) {
        d.push(Event::BaseNoted {
            id: id.clone(),
            repo: repo.to_owned(),
            base: base.clone(),
        });
    }
    Ok(())
}

/// Turns claims stale whose owner is gone, and fails those that were stale beyond the grace (section 6).
pub(crate) fn reap(d: &mut Draft<'_>, gone: &[(SessId, String)]) -> Result<(), Refusal> {
    for (id, why) in gone {
        let Some(claim) = d.world.claims.get(id) else {
            continue;
        };
        if d.world.state(claim, d.now()) == State::Open {
            d.push(Event::ClaimReaped {
                id: id.clone(),
                why: why.clone(),
            });
        }
    }
    let grace = d.asked.policy.stale_grace;
    let spent: Vec<SessId> = d
        .world
        .claims
        .values()
        .filter(|claim| {
            d.world.state(claim, d.now()) == State::Stale && is_spent(&d.world, claim, d.now(), grace)
        })
        .map(|claim| claim.id.clone())
        .collect();
    for id in spent {
        fail_tree(d, &id, FailedBy::Reaped, "stale for longer than the grace");
    }
    pilots_failed(d);
    Ok(())
}

/// Whether a stale claim's grace is over.
fn is_spent(world: &World, claim: &Claim, now: crate::facts::time::Instant, grace: Span) -> bool {
    let lease = world.leases.get(&crate::world::Lease::Claim(claim.id.clone()));
    // Without a lease (a rebuilt store) or in another boot, the wall clock is all there is: it may only
    // lengthen the grace.
    let since_wall = |wall: i64| u64::try_from(now.wall.saturating_sub(wall)).unwrap_or(0);
    let age = match lease {
        Some(lease) => now
            .since(lease.until)
            .map(|age| age.as_ms().saturating_sub(world.idle(claim, lease.touched, now)))
            .unwrap_or_else(|| since_wall(lease.until.wall)),
        None => since_wall(claim.opened_at.wall.saturating_add(claim.ttl.as_ms() as i64)),
    };
    age >= grace.as_ms()
}
