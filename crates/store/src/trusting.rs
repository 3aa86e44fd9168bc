//! A store in which a human's answer counts only where its seal verifies (`hypervisor.md`, 9).

use std::time::Duration;

use protocol::event::{Entry, Seq};
use protocol::facts::claim::Fence;
use protocol::facts::gate::Gate;
use protocol::facts::span::Span;
use protocol::facts::time::Instant;
use protocol::world::{Footprint, Lease, World};

use crate::{Decide, Fault, Only, Outcome, Store, Sync};

/// Says whether a gate's answer is one.
pub type Trusts = Box<dyn Fn(&Gate) -> bool + Send>;

/// Another store, whose answers are held against their seals before any rule sees them.
///
/// The keys lie outside every store, so a store cannot judge them itself: whoever opens it says how.
pub struct Trusting<S> {
    inner: S,
    trusts: Trusts,
}

impl<S: Store> Trusting<S> {
    /// Holds every answer of this store against `trusts`.
    pub fn new(inner: S, trusts: Trusts) -> Trusting<S> {
        Trusting { inner, trusts }
    }
}

impl<S: Store> Store for Trusting<S> {
    fn transact(&mut self, picks: &Footprint, sync: Sync, decide: Decide<'_>) -> Result<Outcome, Fault> {
        let trusts = &self.trusts;
        self.inner.transact(picks, sync, &|world: &World, now: Instant| {
            if world.gates.is_empty() && world.phases.is_empty() && world.claims.values().all(owes_nobody) {
                return decide(world, now);
            }
            let mut world = world.clone();
            world.distrust(trusts);
            decide(&world, now)
        })
    }

    fn look(&mut self, picks: &Footprint) -> Result<(World, Instant), Fault> {
        let (mut world, now) = self.inner.look(picks)?;
        world.distrust(&self.trusts);
        Ok((world, now))
    }

    fn journal(&mut self, after: Seq, limit: usize, only: &Only) -> Result<Vec<Entry>, Fault> {
        self.inner.journal(after, limit, only)
    }

    fn wait(&mut self, after: Seq, at_most: Duration) -> Result<Seq, Fault> {
        self.inner.wait(after, at_most)
    }

    fn touch(&mut self, leases: &[(Lease, Fence)], until: Span) -> Result<Vec<bool>, Fault> {
        self.inner.touch(leases, until)
    }
}

/// Whether nothing that a claim may do rests on an answer.
fn owes_nobody(claim: &protocol::facts::claim::Claim) -> bool {
    claim.rights.is_empty()
        && claim
            .closing
            .as_ref()
            .is_none_or(|closing| closing.allowed.is_empty())
}
