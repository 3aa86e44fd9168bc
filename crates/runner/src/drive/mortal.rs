//! Death at a chosen step, in a binary that was built for tests: `BRAIN_TEST_DIE_AT=n` kills the process, as
//! nobody can prevent, before its n-th step. Each act and each side of each transaction is one.

#[cfg(not(feature = "testkit"))]
use store::Store;

/// Marks a step.
#[cfg(not(feature = "testkit"))]
pub(super) fn step() {}

/// A store whose transactions are steps.
#[cfg(not(feature = "testkit"))]
pub(super) fn store(store: Box<dyn Store>) -> Box<dyn Store> {
    store
}

#[cfg(feature = "testkit")]
pub(super) use testkit::{step, store};

#[cfg(feature = "testkit")]
mod testkit {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use protocol::event::{Entry, Seq};
    use protocol::facts::claim::Fence;
    use protocol::facts::span::Span;
    use protocol::facts::time::Instant;
    use protocol::world::{Footprint, Lease, World};
    use store::{Decide, Fault, Only, Outcome, Store, Sync};

    /// Counts a step, and dies before it when it is the last one.
    pub fn step() {
        static DIES_AT: OnceLock<Option<u64>> = OnceLock::new();
        static STEPS: AtomicU64 = AtomicU64::new(0);
        let dies_at = DIES_AT.get_or_init(|| std::env::var("BRAIN_TEST_DIE_AT").ok()?.parse().ok());
        if *dies_at == Some(STEPS.fetch_add(1, Ordering::SeqCst) + 1) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }

    /// A store before and after whose transactions the process may die.
    pub fn store(store: Box<dyn Store>) -> Box<dyn Store> {
        Box::new(Mortal(store))
    }

    struct Mortal(Box<dyn Store>);

    impl Store for Mortal {
        fn transact(&mut self, picks: &Footprint, sync: Sync, decide: Decide<'_>) -> Result<Outcome, Fault> {
            step();
            let outcome = self.0.transact(picks, sync, decide);
            step();
            outcome
        }

        fn look(&mut self, picks: &Footprint) -> Result<(World, Instant), Fault> {
            self.0.look(picks)
        }

        fn journal(&mut self, after: Seq, limit: usize, only: &Only) -> Result<Vec<Entry>, Fault> {
            self.0.journal(after, limit, only)
        }

        fn wait(&mut self, after: Seq, at_most: Duration) -> Result<Seq, Fault> {
            self.0.wait(after, at_most)
        }

        fn touch(&mut self, leases: &[(Lease, Fence)], until: Span) -> Result<Vec<bool>, Fault> {
            self.0.touch(leases, until)
        }
    }
}
