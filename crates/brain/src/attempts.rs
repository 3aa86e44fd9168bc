//! Processes of a run that a verb suspends, continues or ends on this machine (section 6).

use protocol::event::{Entry, Event};
use protocol::facts::caller::Process;
use protocol::facts::id::SessId;
use protocol::facts::span::Span;
use protocol::world::{Pick, World};
use runner::launch::{Adopted, Child, adopt};

use crate::caller::{Life, life};
use crate::context::Context;
use crate::failure::Failure;
use crate::root::Root;

/// How long a process has between the request to end and its end by force.
const GRACE: Span = Span::from_ms(5_000);

/// The running child of a claim, if it has one here.
fn child(root: &Root, claim: &SessId) -> Option<Child> {
    let dir = root.state().join("attempts").join(claim.as_str());
    match adopt(&dir) {
        Ok(Adopted::Running(child)) if dir.exists() => Some(child),
        _ => None,
    }
}

fn each(root: &Root, claims: impl Iterator<Item = SessId>, act: impl Fn(&Child)) {
    for claim in claims {
        if let Some(child) = child(root, &claim) {
            act(&child);
        }
    }
}

fn line(world: &World, id: &SessId) -> Vec<SessId> {
    let below = world
        .descendants(id)
        .into_iter()
        .filter(|claim| !claim.is_terminal());
    std::iter::once(id.clone())
        .chain(below.map(|claim| claim.id.clone()))
        .collect()
}

/// Stops the processes of a claim and of all below it where they stand.
///
/// A failure is the run's loop to mend: it looks at the same facts a moment later.
pub fn suspend(root: &Root, world: &World, id: &SessId) {
    each(root, line(world, id).into_iter(), |child| drop(child.suspend()));
}

/// Lets the processes go on below which no pause is left.
pub fn resume(root: &Root, world: &World, id: &SessId) {
    let free = |id: &SessId| {
        world
            .claims
            .get(id)
            .is_some_and(|claim| world.pauses(claim).is_empty())
    };
    each(root, line(world, id).into_iter().filter(free), |child| {
        drop(child.resume())
    });
}

/// Stops the processes of every claim.
///
/// # Errors
///
/// The store's fault.
pub fn suspend_all(cx: &mut Context) -> Result<(), Failure> {
    every(cx, |_, child| drop(child.suspend()))
}

/// Lets every process go on on which no pause stands.
///
/// # Errors
///
/// The store's fault.
pub fn resume_all(cx: &mut Context) -> Result<(), Failure> {
    every(cx, |is_paused, child| {
        if !is_paused {
            drop(child.resume());
        }
    })
}

/// Does something to each process here whose claim has not ended, told whether a pause stands on it.
///
/// What runs here is few, whatever number of claims there is: so it is asked for one by one.
fn every(cx: &mut Context, act: impl Fn(bool, &Child)) -> Result<(), Failure> {
    for id in known(&cx.root) {
        let Some(child) = child(&cx.root, &id) else {
            continue;
        };
        let (world, _) = cx.look(&vec![Pick::Claim(id.clone())])?;
        if let Some(claim) = world.claims.get(&id).filter(|claim| !claim.is_terminal()) {
            act(!world.pauses(claim).is_empty(), &child);
        }
    }
    Ok(())
}

/// Ends the processes of the claims that these events failed.
pub fn end(root: &Root, entries: &[Entry]) {
    let failed = entries.iter().filter_map(|entry| match &entry.event {
        Event::ClaimFailed { id, .. } => Some(id.clone()),
        _ => None,
    });
    each(root, failed, |child| drop(child.end(GRACE)));
}

/// The claims of which attempts were ever started here.
fn known(root: &Root) -> Vec<SessId> {
    let names = std::fs::read_dir(root.state().join("attempts"));
    let names = names.into_iter().flatten().flatten();
    names
        .filter_map(|entry| SessId::parse(entry.file_name().to_str()?).ok())
        .collect()
}

/// Ends every process here, whatever its claim is, and waits until it has.
pub fn end_all(root: &Root) {
    let children: Vec<Child> = known(root).iter().filter_map(|id| child(root, id)).collect();
    children.iter().for_each(|child| drop(child.end(GRACE)));
    // Who watches one still writes down how it ended.
    let until = std::time::Instant::now() + 2 * std::time::Duration::from_millis(GRACE.as_ms());
    children.iter().for_each(|child| drop(child.wait(Some(until))));
}

/// Ends every process here whose claim has failed.
///
/// # Errors
///
/// The store's fault.
pub fn end_dead(cx: &mut Context) -> Result<(), Failure> {
    for id in known(&cx.root) {
        let Some(child) = child(&cx.root, &id) else {
            continue;
        };
        let (world, _) = cx.look(&vec![Pick::Claim(id.clone())])?;
        if world
            .claims
            .get(&id)
            .is_none_or(|claim| claim.is_terminal() && claim.result.is_none())
        {
            // The run's loop tries again if this does not reach it.
            drop(child.end(GRACE));
        }
    }
    Ok(())
}

/// Says how a process is known to be gone; `None` while it lives, or where nobody here can tell.
pub fn process_gone(process: &Process) -> Option<String> {
    (life(process) == Life::Gone)
        .then(|| format!("its process {} on {} has ended", process.pid, process.host))
}

/// Says how the process of an attempt's claim is known to be gone: by the lock that it no longer holds.
pub fn gone(root: &Root, claim: &SessId) -> Option<String> {
    let dir = root.state().join("attempts").join(claim.as_str());
    match adopt(&dir) {
        Ok(Adopted::Vanished) => Some("what watched its process is gone, and its lock is free".to_owned()),
        _ => None,
    }
}
