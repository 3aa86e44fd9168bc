//! Long lists, read a page at a time: what is in memory does not grow with what is listed.

use protocol::facts::claim::Claim;
use protocol::facts::time::Instant;
use protocol::world::{Pick, World};

use crate::{Fault, Store};

/// How much is read in one look; a look is as short as any other, so nobody's writing waits (R27).
const PAGE: usize = 256;

/// The pages of one list that are still to be read.
///
/// Each is a consistent look of its own: what changes between two of them is seen as it is then.
pub struct Pages {
    next: Option<Pick>,
}

impl Pages {
    /// Claims in the order of their ids: those that have not ended, or all.
    pub fn of_claims(live: bool) -> Pages {
        Pages::of_claims_by(live, PAGE)
    }

    /// Locks in the order of their paths.
    pub fn of_locks() -> Pages {
        Pages::of_locks_by(PAGE)
    }

    /// As [`Pages::of_claims`], so many a page.
    pub(crate) fn of_claims_by(live: bool, most: usize) -> Pages {
        let after = None;
        Pages {
            next: Some(Pick::ClaimPage { live, after, most }),
        }
    }

    /// As [`Pages::of_locks`], so many a page.
    pub(crate) fn of_locks_by(most: usize) -> Pages {
        Pages {
            next: Some(Pick::LockPage { after: None, most }),
        }
    }

    /// Reads the next page; nothing after the last one.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn turn(&mut self, store: &mut dyn Store) -> Result<Option<(World, Instant)>, Fault> {
        let Some(pick) = self.next.take() else {
            return Ok(None);
        };
        let (world, now) = store.look(&vec![pick.clone()])?;
        self.next = match pick {
            Pick::ClaimPage { live, most, .. } if world.listed.len() == most => Some(Pick::ClaimPage {
                live,
                after: world.listed.last().cloned(),
                most,
            }),
            Pick::LockPage { most, .. } if world.locks.len() == most => Some(Pick::LockPage {
                after: world.locks.keys().next_back().cloned(),
                most,
            }),
            _ => None,
        };
        Ok(Some((world, now)))
    }
}

/// The claims of a page, without what they stand on.
pub fn listed(world: &World) -> impl Iterator<Item = &Claim> {
    world.listed.iter().filter_map(|id| world.claims.get(id))
}
