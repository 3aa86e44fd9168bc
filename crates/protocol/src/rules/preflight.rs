//! The check before each write, in one look and in a fixed order (section 7).

use crate::facts::caller::Nature;
use crate::facts::claim::{Claim, ClaimType, Right, State};
use crate::facts::id::SessId;
use crate::facts::kind::Kind;
use crate::facts::lock::Holder;
use crate::facts::path::LogicalPath;
use crate::facts::policy::Policy;
use crate::facts::scope::Scope;
use crate::facts::zone::{Coverage, Zone};
use crate::refusal::{Check, Detail};
use crate::rules::claim::{may_renew, may_write, writes};
use crate::rules::{Asked, breaker, who};
use crate::world::owns;

/// What is about to be done to the paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Op {
    /// Create or change; a move's destination.
    #[default]
    Write,
    /// Remove; a move's source.
    Delete,
    /// Look at; only zone `secret` is judged.
    Read,
}

/// Why a path has no logical form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unplaced {
    /// It lies outside the root, at this real place.
    Outside(String),
    /// It has a reserved component.
    Reserved,
    /// It goes through more than 40 links.
    Links,
}

/// Where a path's repository stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepoAt {
    /// The repository, by its path below the root.
    pub repo: String,
    /// The folder of the checkout in which the path was given.
    pub checkout: String,
    /// The branch checked out there; `None` when detached.
    pub branch: Option<String>,
    /// Whether the path is a submodule's own content.
    pub submodule: bool,
}

/// One path as the caller gave it, with what only the disk knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathAsk {
    /// As it was typed.
    pub given: String,
    /// Its logical form.
    pub path: Result<LogicalPath, Unplaced>,
    /// How many names the file has, when more than one and git does not ignore it.
    pub links: Option<u64>,
    /// Whether it is a folder.
    pub folder: bool,
    /// Its repository, if it lies in one.
    pub repo: Option<RepoAt>,
}

/// One question: may this session do this to these paths?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preflight {
    /// The claim; only a read may do without.
    pub id: Option<SessId>,
    /// What is about to be done.
    pub op: Op,
    /// The paths.
    pub paths: Vec<PathAsk>,
}

/// The answer for one path.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// As it was typed.
    pub given: String,
    /// Its logical form, where it has one.
    pub path: Option<LogicalPath>,
    /// The first check that refuses, and what it met.
    pub refused: Option<(Check, Detail)>,
}

/// What a preflight says.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// One verdict per path, in the order asked.
    Judged(Vec<Verdict>),
    /// The claim must be renewed first, by a command of its own, and then be asked for again.
    RenewFirst,
}

/// Judges a preflight. It looks and changes nothing.
pub fn judge(asked: Asked<'_>, ask: &Preflight) -> Answer {
    if ask.op == Op::Read {
        return Answer::Judged(
            ask.paths
                .iter()
                .map(|path| verdict(path, read(asked, ask, path)))
                .collect(),
        );
    }
    let claim = match ask.id.as_ref().and_then(|id| asked.world.claims.get(id)) {
        Some(claim) => claim,
        None => {
            let id = ask.id.as_ref().map_or_else(|| "-".to_owned(), SessId::to_string);
            let detail = Detail::Unknown { id };
            return Answer::Judged(all(ask, Check::Claim, &detail));
        }
    };
    match acting(asked, claim) {
        Ok(true) => {}
        Ok(false) => return Answer::RenewFirst,
        Err(detail) => return Answer::Judged(all(ask, Check::Claim, &detail)),
    }
    if let Some(detail) = above(asked, claim) {
        return Answer::Judged(all(ask, Check::Parents, &detail));
    }
    let judged = ask
        .paths
        .iter()
        .map(|path| verdict(path, write(asked, claim, ask.op, path).err()));
    Answer::Judged(judged.collect())
}

fn verdict(path: &PathAsk, refused: Option<(Check, Detail)>) -> Verdict {
    Verdict {
        given: path.given.clone(),
        path: path.path.clone().ok(),
        refused,
    }
}

fn all(ask: &Preflight, check: Check, detail: &Detail) -> Vec<Verdict> {
    ask.paths
        .iter()
        .map(|path| verdict(path, Some((check, detail.clone()))))
        .collect()
}

/// Check 1. `Ok(false)`: it may act once it is renewed, which the caller may do.
fn acting(asked: Asked<'_>, claim: &Claim) -> Result<bool, Detail> {
    let (world, id) = (asked.world, claim.id.clone());
    if let Some((why, _)) = &world.halt.standing {
        let since = world
            .halt
            .stretches
            .last()
            .map_or(asked.now, |stretch| stretch.from);
        return Err(Detail::Halted {
            why: why.clone(),
            since,
        });
    }
    if let Some(by) = claim.superseded_by() {
        return Err(Detail::Superseded { id, by: by.clone() });
    }
    if let Some(token) = &asked.caller.token
        && !world.claims.values().any(|claim| claim.token == *token)
    {
        return Err(Detail::Outdated { id });
    }
    let may_renew = owns(asked.caller, claim) || who::is_human_or_plain(asked);
    match world.state(claim, asked.now) {
        State::Open => {
            let margin = (claim.ttl.as_ms() / 5).max(2_000).min(claim.ttl.as_ms() / 2);
            let enough = world.left(claim, asked.now).is_some_and(|left| left > margin);
            if !enough && !may_renew {
                return Err(Detail::Expired { id });
            }
            Ok(enough)
        }
        State::Stale if may_renew && self::may_renew(world, claim, asked.now).is_ok() => Ok(false),
        State::Stale => Err(Detail::Expired { id }),
        state => {
            let paused_by = world.pauses(claim);
            Err(Detail::State {
                id,
                state,
                gate: claim.waiting.clone(),
                paused_by,
            })
        }
    }
}

/// Check 1b: every ancestor may act; a stale one holds nothing back.
fn above(asked: Asked<'_>, claim: &Claim) -> Option<Detail> {
    asked.world.ancestors(claim).find_map(|ancestor| {
        let state = asked.world.state(ancestor, asked.now);
        let holds = matches!(state, State::Paused | State::Failed | State::WaitingHuman);
        holds.then(|| Detail::Ancestor {
            ancestor: ancestor.id.clone(),
            state,
        })
    })
}

/// Checks 2 to 6 for one path.
fn write(asked: Asked<'_>, claim: &Claim, op: Op, ask: &PathAsk) -> Result<(), (Check, Detail)> {
    let path = match &ask.path {
        Ok(path) => path,
        Err(why) => {
            let given = ask.given.clone();
            let detail = match why {
                Unplaced::Outside(real) => Detail::Outside {
                    given,
                    real: real.clone(),
                },
                Unplaced::Reserved => Detail::Reserved { given },
                Unplaced::Links => Detail::Links { given },
            };
            return Err((Check::Scope, detail));
        }
    };
    in_scope(asked, claim, path, ask.links).map_err(|detail| (Check::Scope, detail))?;
    in_zone(asked, claim, op, path).map_err(|detail| (Check::Zone, detail))?;
    unheld(asked, claim, op, ask.folder, path).map_err(|detail| (Check::Lock, detail))?;
    if let Some(work) = asked.world.works.get(&claim.work)
        && breaker::at_limit(asked.policy, work)
    {
        let detail = Detail::Breaker {
            work: work.key.0.clone(),
            fails: work.fails,
            most: asked.policy.fails_max,
            last: work.last.clone(),
        };
        return Err((Check::Breaker, detail));
    }
    match &ask.repo {
        Some(at) => on_branch(claim, at).map_err(|detail| (Check::Branch, detail)),
        None => Ok(()),
    }
}

/// Check 2. A path of another zone than its entry's is left to check 3.
pub(super) fn in_scope(
    asked: Asked<'_>,
    claim: &Claim,
    path: &LogicalPath,
    links: Option<u64>,
) -> Result<(), Detail> {
    if asked.policy.zones.coverage(&claim.scope, path) == Coverage::No {
        let pilot = claim.parent_satellite.clone();
        let zone = asked.policy.zones.zone_of(path);
        return Err(Detail::NotCovered {
            scope: claim.scope.clone(),
            pilot,
            zone,
        });
    }
    if claim.satellite_type == Kind::Search && !claim.scope.names_file_exactly(path) {
        return Err(Detail::SearchReads {
            scope: claim.scope.clone(),
        });
    }
    match links {
        Some(links) => Err(Detail::HardLinked { links }),
        None => Ok(()),
    }
}

/// Check 3.
pub(super) fn in_zone(asked: Asked<'_>, claim: &Claim, op: Op, path: &LogicalPath) -> Result<(), Detail> {
    let zones = &asked.policy.zones;
    let zone = zones.zone_of(path);
    let has = |right: &Right| claim.rights.contains(right);
    let named = matches!(zones.coverage(&claim.scope, path), Coverage::Yes);
    let allowed = match zone {
        Zone::Project => named,
        Zone::Secret => false,
        Zone::Kernel => asked.policy.kerneluser && named && (claim.human || has(&Right::Kernel)),
        Zone::Personal => named && has(&Right::Personal),
    };
    if !allowed {
        let right = has(&Right::Kernel) || has(&Right::Personal);
        return Err(Detail::Zone { zone, right });
    }
    if zone == Zone::Kernel && op == Op::Delete && !may_delete(asked.policy, claim, path) {
        return Err(Detail::KernelDeleted);
    }
    Ok(())
}

/// Whether a human let this very path go.
pub(super) fn may_delete(policy: &Policy, claim: &Claim, path: &LogicalPath) -> bool {
    let this_path = |text: &str| {
        let named = LogicalPath::parse(text, policy.fold);
        named.is_ok_and(|named| named.key() == path.key())
    };
    let mut rights = claim.rights.iter();
    rights.any(|right| matches!(right, Right::Delete(text) if this_path(text)))
}

/// Check 4.
fn unheld(asked: Asked<'_>, claim: &Claim, op: Op, folder: bool, path: &LogicalPath) -> Result<(), Detail> {
    let (world, now) = (asked.world, asked.now);
    let below = folder || op == Op::Delete;
    let me = Holder::Claim(claim.id.clone());
    if let Some(lock) = world.locks_on(path, below, now).find(|lock| lock.holder != me) {
        return Err(Detail::LockHeld {
            by: lock.holder.clone(),
            locked: lock.path.clone(),
            owner: lock.owner.clone(),
            expires_at: world.lock_expires(lock),
        });
    }
    let tree = if below { Scope::from_path(path).ok() } else { None };
    let holds = |other: &&Claim| {
        let bars = (other.kind_of != ClaimType::Pilot || other.exclusive)
            && other.id != claim.id
            && !other.is_terminal()
            && !world.descends_from(claim, &other.id);
        let below = |tree: &Scope| writes(other).is_some_and(|it| asked.policy.zones.overlap(&it, tree));
        bars && (may_write(asked, other, path) || tree.as_ref().is_some_and(below))
            && world.state(other, now).is_live()
    };
    if let Some(other) = world.claims.values().find(holds) {
        return Err(Detail::Claimed {
            held: Box::new(world.held(other, now)),
        });
    }
    if claim.rendering && !world.locks_on(path, false, now).any(|lock| lock.holder == me) {
        return Err(Detail::LockRequired);
    }
    Ok(())
}

/// Check 6.
fn on_branch(claim: &Claim, at: &RepoAt) -> Result<(), Detail> {
    if at.submodule {
        return Ok(());
    }
    let checkout = claim
        .worktree
        .as_ref()
        .or_else(|| claim.base.get(&at.repo).map(|base| &base.checkout));
    if let Some(expected) = checkout
        && *expected != at.checkout
    {
        let (repo, expected, found) = (at.repo.clone(), expected.clone(), at.checkout.clone());
        return Err(Detail::Checkout {
            repo,
            expected,
            found,
        });
    }
    match claim.branch_in(&at.repo) {
        Some(expected) if at.branch.as_deref() != Some(expected) => Err(Detail::Branch {
            repo: at.repo.clone(),
            expected: expected.to_owned(),
            found: at.branch.clone(),
        }),
        _ => Ok(()),
    }
}

/// `read` judges zone `secret` alone: refused to a satellite and what descends from it.
fn read(asked: Asked<'_>, ask: &Preflight, path: &PathAsk) -> Option<(Check, Detail)> {
    let place = path.path.as_ref().ok()?;
    if asked.policy.zones.zone_of(place) != Zone::Secret {
        return None;
    }
    let named = ask.id.as_ref().and_then(|id| asked.world.claims.get(id));
    let line = named
        .into_iter()
        .flat_map(|claim| std::iter::once(claim).chain(asked.world.ancestors(claim)));
    let by_claim = line
        .into_iter()
        .any(|claim| claim.kind_of == ClaimType::Satellite);
    (by_claim || !who::satellites_of(asked).is_empty()).then_some((Check::Zone, Detail::SecretRead))
}

/// Whether a read must be refused where the store cannot be asked: to every agent, for zone `secret`.
pub fn read_blind(nature: &Nature, zone: Zone) -> bool {
    zone == Zone::Secret && matches!(nature, Nature::Agent { .. })
}
