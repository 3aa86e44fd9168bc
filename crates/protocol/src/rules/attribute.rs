//! Whose a change is: what a close may commit, what refuses it, what it leaves alone (section 11, step 1).

use std::fmt;

use crate::facts::claim::{Base, Claim, ClaimType, End};
use crate::facts::id::SessId;
use crate::facts::path::LogicalPath;
use crate::facts::scope::Scope;
use crate::facts::time::Instant;
use crate::refusal::{Detail, Stray};
use crate::rules::Asked;
use crate::rules::claim::writes;
use crate::rules::preflight::{Op, in_scope, in_zone};
use crate::world::World;

/// A path that is not as it was when the claim was opened, with what git knows of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The logical path.
    pub path: LogicalPath,
    /// Whether nothing is there any more.
    pub deleted: bool,
    /// Whether files or index hold it uncommitted.
    pub uncommitted: bool,
    /// How it stood at the opening.
    pub at_opening: AtOpening,
    /// The commits since the opening that touched it.
    pub commits: Vec<Commit>,
}

/// How a path stood when the claim was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtOpening {
    /// As in the commit.
    Clean,
    /// Already different, and still exactly that.
    Same,
    /// Already different, and by now something else.
    Changed,
}

/// A commit that touched a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// The sessions that its trailers name.
    pub sessions: Vec<String>,
    /// Whether it was made elsewhere, and a pull, a merge or a reset brought it.
    pub brought: bool,
}

/// Why a change is not the closing claim's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// It was there at the opening, and is what it was.
    Before,
    /// It lies in the scope of this claim, which was live meanwhile or was launched by the closing one.
    Claimed(SessId),
    /// Its commits carry the name of another session.
    Committed(String),
    /// Only commits that were made elsewhere brought it.
    Brought,
    /// A human said so.
    Said,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::Before => f.write_str("it was there when the claim was opened"),
            Left::Claimed(id) => write!(f, "it lies in the scope of {id}"),
            Left::Committed(session) => write!(f, "{session} committed it"),
            Left::Brought => f.write_str("a pull or merge brought it"),
            Left::Said => f.write_str("a human said to leave it"),
        }
    }
}

/// Every change in one of three heaps; positions are those of the changes that were handed in.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Attribution {
    /// The claim's own and covered: to be committed.
    pub mine: Vec<usize>,
    /// The claim's own and not covered: they refuse the close.
    pub strays: Vec<(usize, Stray)>,
    /// Somebody else's.
    pub left: Vec<(usize, Left)>,
}

/// Sorts changes by whose they are. What nobody claims is the closing claim's.
///
/// The world holds the claims that were live meanwhile ([`crate::world::Pick::Since`] and
/// [`crate::world::Pick::Live`]) and what the claim launched. `leave` is a human's word; that it is a
/// human's was judged before.
pub fn attribute(
    asked: Asked<'_>,
    claim: &Claim,
    leave: Option<&Scope>,
    changes: &[Change],
) -> Attribution {
    let others = others(asked.world, claim);
    let mut sorted = Attribution::default();
    for (at, change) in changes.iter().enumerate() {
        if let Some(left) = not_mine(claim, &others, change) {
            sorted.left.push((at, left));
        } else if leave.is_some_and(|leave| leave.covers(&change.path)) {
            sorted.left.push((at, Left::Said));
        } else if let Some(why) = uncovered(asked, claim, change) {
            let path = change.path.clone();
            sorted.strays.push((at, Stray { path, why }));
        } else {
            sorted.mine.push(at);
        }
    }
    sorted
}

/// Another claim with what it may write, and how it stands to the closing one.
struct Other<'w> {
    id: &'w SessId,
    scope: std::borrow::Cow<'w, Scope>,
    /// It delegates to the closing claim, so it gave away what that one's scope covers.
    above: bool,
}

/// The claims whose changes may lie in the same checkout.
fn others<'w>(world: &'w World, claim: &Claim) -> Vec<Other<'w>> {
    let met = |other: &&Claim| {
        let reads_files = other.kind_of != ClaimType::Pilot || other.exclusive;
        let meanwhile = match &other.end {
            None => true,
            Some(End::Closed { at } | End::Failed { at, .. }) => is_after(*at, claim.opened_at),
        };
        other.id != claim.id && reads_files && meanwhile && !claim.inherits.contains(&other.id)
    };
    let known = |other: &'w Claim| {
        Some(Other {
            id: &other.id,
            scope: writes(other)?,
            above: world.descends_from(claim, &other.id),
        })
    };
    world.claims.values().filter(met).filter_map(known).collect()
}

fn is_after(late: Instant, early: Instant) -> bool {
    (late.era, late.tick) > (early.era, early.tick)
}

fn not_mine(claim: &Claim, others: &[Other<'_>], change: &Change) -> Option<Left> {
    let covered = claim.scope.covers(&change.path);
    if change.at_opening == AtOpening::Same && !(claim.take_dirty && covered) {
        return Some(Left::Before);
    }
    let theirs = |other: &&Other<'_>| other.scope.covers(&change.path) && !(other.above && covered);
    if let Some(other) = others.iter().find(theirs) {
        return Some(Left::Claimed(other.id.clone()));
    }
    // What is uncommitted besides was written here, whoever committed before.
    if change.uncommitted || change.commits.is_empty() {
        return None;
    }
    let foreign = |commit: &Commit| {
        let own = commit.sessions.iter().any(|it| it == claim.id.as_str());
        match commit.sessions.first() {
            Some(session) if !own => Some(Left::Committed(session.clone())),
            None if commit.brought => Some(Left::Brought),
            _ => None,
        }
    };
    let all: Option<Vec<Left>> = change.commits.iter().map(foreign).collect();
    all?.into_iter().next()
}

/// Why the claim may not have changed this path, if so.
fn uncovered(asked: Asked<'_>, claim: &Claim, change: &Change) -> Option<String> {
    if let Some(part) = change.path.reserved() {
        return Some(format!("{part} is reserved"));
    }
    let op = if change.deleted { Op::Delete } else { Op::Write };
    let verdict = in_scope(asked, claim, &change.path, None)
        .and_then(|()| in_zone(asked, claim, op, &change.path));
    match verdict {
        Ok(()) => None,
        Err(Detail::SearchReads { .. }) => Some("a search claim writes only the files that it names".to_owned()),
        Err(Detail::KernelDeleted) => Some("deleting a kernel file needs a gate of its own".to_owned()),
        Err(Detail::Zone { zone, .. }) => {
            Some(format!("it is of zone {zone}, and the claim has no right to write there"))
        }
        Err(_) => Some("it is outside the scope".to_owned()),
    }
}

/// What a repository was for this claim at its opening: with what it took over from claims before it.
///
/// What a superseded claim had left in its scope is the successor's own work, though it was there when
/// the successor was opened.
pub fn opening(world: &World, claim: &Claim, repo: &str, place: impl Fn(&str) -> LogicalPath) -> Option<Base> {
    let mut base = claim.base.get(repo)?.clone();
    let mut line: Vec<&SessId> = claim.inherits.iter().collect();
    let mut seen = 0;
    while let Some(id) = line.get(seen) {
        seen += 1;
        let Some(before) = world.claims.get(*id) else {
            continue;
        };
        let further: Vec<&SessId> = before.inherits.iter().filter(|id| !line.contains(id)).collect();
        line.extend(further);
        let Some(theirs) = before.base.get(repo) else {
            continue;
        };
        let taken: Vec<String> = base
            .dirty
            .keys()
            .filter(|path| before.scope.covers(&place(path)) && claim.scope.covers(&place(path)))
            .cloned()
            .collect();
        for path in taken {
            match theirs.dirty.get(&path) {
                Some(was) => base.dirty.insert(path, was.clone()),
                None => base.dirty.remove(&path),
            };
        }
    }
    Some(base)
}
