//! Taking and giving back locks (section 8).

use crate::event::Event;
use crate::facts::claim::{Claim, Owner, State};
use crate::facts::id::SessId;
use crate::facts::lock::{Holder, Lock};
use crate::facts::path::LogicalPath;
use crate::facts::span::Span;
use crate::refusal::Refusal;
use crate::rules::claim::may_write;
use crate::rules::{Asked, Draft, who};
use crate::world::World;

/// The longest time that a lock may ask for.
const TTL_MOST: Span = Span::from_ms(30 * 86_400_000);

/// Takes or renews locks in sorted order, all or none.
pub(crate) fn acquire(
    d: &mut Draft<'_>,
    holder: &Holder,
    paths: &[LogicalPath],
    ttl: Span,
) -> Result<(), Refusal> {
    let asked = d.asked;
    if ttl.as_ms() < 1_000 || ttl > TTL_MOST {
        return Err(Refusal::TtlOutOfBounds {
            asked_ms: ttl.as_ms(),
            least_ms: 1_000,
            most_ms: TTL_MOST.as_ms(),
        });
    }
    check_holder(asked, &d.world, holder)?;
    let mut paths = paths.to_vec();
    paths.sort();
    paths.dedup();
    for path in paths {
        may_lock(asked, &d.world, holder, &path)?;
        let blocker = d
            .world
            .locks_on(&path, true, d.now())
            .find(|lock| lock.holder != *holder);
        if let Some(lock) = blocker {
            return Err(Refusal::LockHeld {
                path: path.clone(),
                by: lock.holder.clone(),
                locked: lock.path.clone(),
                owner: lock.owner.clone(),
                taken_at: lock.taken_at,
                expires_at: d.world.lock_expires(lock),
            });
        }
        let same = d.world.locks.get(path.key());
        let renewed = same.filter(|lock| lock.holder == *holder && d.world.holds(lock, d.now()));
        if let (Some(lock), Holder::Name(_)) = (renewed, holder) {
            // A name proves nothing: another session's lock is not renewed by spelling its name.
            may_release(asked, &d.world, lock)?;
        }
        let fence = renewed.map_or_else(|| d.fence(), |lock| lock.fence);
        // What holds nothing here goes, so that no late sign of life can bring it back.
        let touching = |lock: &&Lock| path.starts_with(&lock.path) || lock.path.starts_with(&path);
        let locks = d.world.locks.values().filter(touching);
        let dead: Vec<Lock> = locks
            .filter(|lock| !d.world.holds(lock, d.now()))
            .cloned()
            .collect();
        drop_dead(d, dead);
        let owner = Owner {
            user: asked.caller.user.clone(),
            host: asked.caller.host.clone(),
            process: asked.caller.owner.clone(),
            host_session: asked.caller.host_session.clone(),
        };
        let lock = Lock {
            path,
            holder: holder.clone(),
            owner,
            fence,
            taken_at: d.now(),
            ttl,
        };
        d.push(Event::LockTaken(lock));
    }
    Ok(())
}

fn check_holder(asked: Asked<'_>, world: &World, holder: &Holder) -> Result<(), Refusal> {
    match holder {
        Holder::Claim(id) => {
            let claim = who::find(world, id)?;
            who::may_act(asked, claim, "lock for")?;
            if let Some(by) = claim.superseded_by() {
                return Err(Refusal::Superseded {
                    id: id.clone(),
                    by: by.clone(),
                });
            }
            match world.state(claim, asked.now) {
                State::Open => Ok(()),
                state => Err(Refusal::WrongState {
                    id: id.clone(),
                    state,
                    verb: "lock".to_owned(),
                }),
            }
        }
        Holder::Name(name) => {
            let plain = |c: char| c.is_alphanumeric() || "._-@:".contains(c);
            let good = !name.is_empty() && name.chars().count() <= 96 && name.chars().all(plain);
            if good && SessId::parse(name).is_err() && !name.starts_with('-') {
                Ok(())
            } else {
                Err(Refusal::BadHolder { name: name.clone() })
            }
        }
    }
}

fn may_lock(asked: Asked<'_>, world: &World, holder: &Holder, path: &LogicalPath) -> Result<(), Refusal> {
    match holder {
        Holder::Claim(id) => {
            let claim = who::find(world, id)?;
            if may_write(asked, claim, path) {
                Ok(())
            } else {
                Err(Refusal::LockNotCovered {
                    path: path.clone(),
                    holder: id.to_string(),
                })
            }
        }
        Holder::Name(_) => match covering(asked, world, path, |_| true) {
            None => Ok(()),
            Some(claim) => Err(Refusal::LockClaimed {
                path: path.clone(),
                held: Box::new(world.held(claim, asked.now)),
            }),
        },
    }
}

/// A live claim that may write the path and passes the filter.
pub(crate) fn covering<'w>(
    asked: Asked<'_>,
    world: &'w World,
    path: &LogicalPath,
    filter: impl Fn(&Claim) -> bool,
) -> Option<&'w Claim> {
    world.claims.values().find(|claim| {
        !claim.is_terminal()
            && filter(claim)
            && may_write(asked, claim, path)
            && world.state(claim, asked.now).is_live()
    })
}

/// Gives locks back; releasing what is free is no refusal and leaves no event.
pub(crate) fn release(
    d: &mut Draft<'_>,
    holder: &Holder,
    paths: &[LogicalPath],
    force: Option<&str>,
) -> Result<(), Refusal> {
    if force.is_some() {
        who::must_be_human(d.asked, "release by force")?;
    }
    for path in paths {
        let Some(lock) = d.world.locks.get(path.key()).cloned() else {
            continue;
        };
        let live = d.world.holds(&lock, d.now());
        if lock.holder != *holder && force.is_none() {
            if live {
                return Err(Refusal::LockNotOwner {
                    path: path.clone(),
                    by: lock.holder,
                });
            }
            continue;
        }
        if force.is_none() {
            may_release(d.asked, &d.world, &lock)?;
        }
        let why = force.map(str::to_owned);
        d.push(Event::LockReleased {
            path: lock.path,
            holder: lock.holder,
            why,
        });
    }
    Ok(())
}

fn may_release(asked: Asked<'_>, world: &World, lock: &Lock) -> Result<(), Refusal> {
    let mine = match &lock.holder {
        Holder::Claim(id) => match world.claims.get(id) {
            Some(claim) => return who::may_act(asked, claim, "release a lock of"),
            None => false,
        },
        Holder::Name(_) => {
            let by_process = lock
                .owner
                .process
                .as_ref()
                .is_some_and(|it| asked.caller.chain.contains(it));
            let by_host =
                lock.owner.host_session.is_some() && lock.owner.host_session == asked.caller.host_session;
            by_process || by_host
        }
    };
    if mine || who::is_human_or_plain(asked) {
        return Ok(());
    }
    Err(Refusal::LockNotOwner {
        path: lock.path.clone(),
        by: lock.holder.clone(),
    })
}

/// Removes locks that hold nothing any more.
pub(crate) fn cleanup(d: &mut Draft<'_>) -> Result<(), Refusal> {
    let dead: Vec<Lock> = d
        .world
        .locks
        .values()
        .filter(|lock| !d.world.holds(lock, d.now()))
        .cloned()
        .collect();
    drop_dead(d, dead);
    Ok(())
}

fn drop_dead(d: &mut Draft<'_>, dead: Vec<Lock>) {
    for lock in dead {
        let why = Some("it had ended".to_owned());
        d.push(Event::LockReleased {
            path: lock.path,
            holder: lock.holder,
            why,
        });
    }
}
