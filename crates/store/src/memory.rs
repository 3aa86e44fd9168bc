//! A store in memory: the reference that the others must equal, and what tests run on.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::event::{Entry, Seq};
use protocol::facts::caller::Process;
use protocol::facts::claim::{Claim, Fence};
use protocol::facts::gate::{About, Gate};
use protocol::facts::id::{GateId, RunId, SessId, SigId};
use protocol::facts::lock::Lock;
use protocol::facts::run::{PhaseRun, Run, Standing};
use protocol::facts::scope::Scope;
use protocol::facts::signal::Signal;
use protocol::facts::signal_kind::SignalKind;
use protocol::facts::span::Span;
use protocol::facts::time::Instant;
use protocol::facts::work::{Work, WorkKey};
use protocol::world::{Footprint, Lease, Until, World, owns};

use crate::clock::Clock;
use crate::load::{self, Claims, Gates, Locks, Mail, Phases, Runs, Source, Whole, may_meet};
use crate::{Decide, Fault, Only, Outcome, Store, Sync};

/// A store in memory; clones share it.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    moved: Condvar,
    clock: Clock,
}

#[derive(Default)]
struct State {
    world: World,
    journal: Vec<Entry>,
    boots: Vec<String>,
}

impl Memory {
    /// An empty store on this clock.
    pub fn new(clock: Clock) -> Memory {
        Memory {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                moved: Condvar::new(),
                clock,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Reads the clock. A boot that the store has not met yet has the next era, which only a command notes.
    fn now(&self, state: &State) -> (Instant, Option<String>) {
        let reading = self.clock.read();
        let known = state.boots.iter().position(|boot| *boot == reading.boot);
        let era = known.unwrap_or(state.boots.len());
        let now = Instant {
            era: u32::try_from(era).unwrap_or(u32::MAX - 1) + 1,
            tick: reading.tick,
            wall: reading.wall,
        };
        (now, known.is_none().then_some(reading.boot))
    }
}

impl Store for Memory {
    fn transact(&mut self, picks: &Footprint, _: Sync, decide: Decide<'_>) -> Result<Outcome, Fault> {
        let mut state = self.state();
        let (now, new_boot) = self.shared.now(&state);
        state.boots.extend(new_boot);
        let base = state.base();
        let world = load::load(&mut *state, base, picks, now)?;
        if let Some(entries) = world.answered {
            return Ok(Outcome::Repeated(entries));
        }
        let decided = match decide(&world, now) {
            Ok(decided) => decided,
            Err(refusal) => return Ok(Outcome::Refused(refusal)),
        };
        let mut entries = Vec::new();
        for event in decided.events {
            let (actor, key) = (decided.actor.clone(), decided.key.clone());
            let entry = Entry {
                seq: state.world.head + 1,
                at: now,
                actor,
                key,
                event,
            };
            state.world.apply(&entry);
            entries.push(entry);
        }
        state.world.changed.clear();
        state.journal.extend(entries.iter().cloned());
        self.shared.moved.notify_all();
        Ok(Outcome::Committed(entries))
    }

    fn look(&mut self, picks: &Footprint) -> Result<(World, Instant), Fault> {
        let mut state = self.state();
        let (now, _) = self.shared.now(&state);
        let base = state.base();
        Ok((load::load(&mut *state, base, picks, now)?, now))
    }

    fn journal(&mut self, after: Seq, limit: usize, only: &Only) -> Result<Vec<Entry>, Fault> {
        let state = self.state();
        let wanted = |entry: &&Entry| {
            entry.seq > after
                && only.since_wall.is_none_or(|since| entry.at.wall >= since)
                && only
                    .claim
                    .as_ref()
                    .is_none_or(|claim| entry.event.claim() == Some(claim))
        };
        Ok(state.journal.iter().filter(wanted).take(limit).cloned().collect())
    }

    fn wait(&mut self, after: Seq, at_most: Duration) -> Result<Seq, Fault> {
        let state = self.state();
        let waited = self
            .shared
            .moved
            .wait_timeout_while(state, at_most, |state| state.world.head <= after);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Ok(state.world.head)
    }

    fn touch(&mut self, leases: &[(Lease, Fence)], until: Span) -> Result<Vec<bool>, Fault> {
        let mut state = self.state();
        let (now, new_boot) = self.shared.now(&state);
        let touched = leases.iter().map(|(lease, fence)| {
            let held = state.world.leases.get(lease).copied();
            let pushed = new_boot.is_none().then(|| load::pushed(held, *fence, now, until));
            match pushed.flatten() {
                Some(pushed) => {
                    state.world.leases.insert(lease.clone(), pushed);
                    true
                }
                None => false,
            }
        });
        Ok(touched.collect())
    }
}

impl State {
    fn base(&self) -> load::Base {
        (self.world.head, self.world.fence, self.world.halt.clone())
    }

    /// Of each process in this chain the first claim that has ended and was no human's.
    fn ended_of(&self, chain: &[Process]) -> Vec<SessId> {
        let of = |process: &Process| {
            let ended = |claim: &&Claim| {
                claim.is_terminal() && !claim.human && claim.owner.process.as_ref() == Some(process)
            };
            self.world
                .claims
                .values()
                .find(ended)
                .map(|claim| claim.id.clone())
        };
        chain.iter().filter_map(of).collect()
    }
}

impl Source for State {
    fn claim(&mut self, id: &SessId) -> Result<Option<Whole>, Fault> {
        let world = &self.world;
        let whole = |claim: &Claim| Whole {
            lease: world.leases.get(&Lease::Claim(id.clone())).copied(),
            work: world.works.get(&claim.work).cloned(),
            claim: claim.clone(),
        };
        Ok(world.claims.get(id).map(whole))
    }

    fn claims(&mut self, which: Claims<'_>) -> Result<Vec<SessId>, Fault> {
        let named = |entry: &Entry| entry.event.claim().cloned();
        let since: BTreeSet<SessId> = match &which {
            Claims::Since(id) => {
                let entries = self.journal.iter().skip_while(|it| it.event.claim() != Some(*id));
                entries.filter_map(named).collect()
            }
            _ => BTreeSet::new(),
        };
        let wanted = |claim: &&Claim| match &which {
            Claims::ChildrenOf(parent) => claim.parent_satellite.as_ref() == Some(*parent),
            Claims::Meeting(scope) => !claim.is_terminal() && may_meet(&claim.scope, scope),
            Claims::OwnedBy(caller) => {
                let by_token = caller.token.as_ref() == Some(&claim.token);
                by_token || !claim.is_terminal() && owns(caller, claim)
            }
            Claims::Live => !claim.is_terminal(),
            Claims::Since(_) => since.contains(&claim.id),
            Claims::All => true,
            Claims::Named(part) => claim.id.as_str().contains(part),
            Claims::Page { live, after, .. } => {
                !(*live && claim.is_terminal()) && after.is_none_or(|after| claim.id > *after)
            }
        };
        let most = match which {
            Claims::Page { most, .. } => most,
            _ => usize::MAX,
        };
        let mut ids: Vec<SessId> = self
            .world
            .claims
            .values()
            .filter(wanted)
            .take(most)
            .map(|claim| claim.id.clone())
            .collect();
        if let Claims::OwnedBy(caller) = which {
            ids.extend(self.ended_of(&caller.chain));
        }
        Ok(ids)
    }

    fn ids(&mut self, prefix: &str) -> Result<Vec<SessId>, Fault> {
        let ids = self
            .world
            .claims
            .keys()
            .filter(|id| id.as_str().starts_with(prefix));
        Ok(ids.cloned().collect())
    }

    fn lease(&mut self, lease: &Lease) -> Result<Option<Until>, Fault> {
        Ok(self.world.leases.get(lease).copied())
    }

    fn locks(&mut self, which: Locks<'_>) -> Result<Vec<(Lock, Option<Until>)>, Fault> {
        let wanted = |lock: &&Lock| match &which {
            Locks::Touching(path) => path.starts_with(&lock.path) || lock.path.starts_with(path),
            Locks::Of(holder) => lock.holder == **holder,
            Locks::All => true,
            Locks::Page { after, .. } => after.is_none_or(|after| lock.path.key() > after),
        };
        let most = match which {
            Locks::Page { most, .. } => most,
            _ => usize::MAX,
        };
        let leased = |lock: &Lock| {
            let lease = Lease::Lock(lock.path.key().to_owned());
            (lock.clone(), self.world.leases.get(&lease).copied())
        };
        Ok(self
            .world
            .locks
            .values()
            .filter(wanted)
            .take(most)
            .map(leased)
            .collect())
    }

    fn gate(&mut self, id: &GateId) -> Result<Option<Gate>, Fault> {
        Ok(self.world.gates.get(id).cloned())
    }

    fn gates(&mut self, which: Gates<'_>) -> Result<Vec<Gate>, Fault> {
        let wanted = |gate: &&Gate| match &which {
            Gates::Of(id) => matches!(&gate.about, About::Claim(of) if of == *id),
            Gates::OfRun(run) => matches!(&gate.about, About::Phase(of, _) | About::Run(of) if of == *run),
            Gates::Pending => gate.is_pending(),
            Gates::Deferred => gate.deferred,
        };
        Ok(self.world.gates.values().filter(wanted).cloned().collect())
    }

    fn signal(&mut self, id: &SigId) -> Result<Option<Signal>, Fault> {
        Ok(self.world.signals.get(id).cloned())
    }

    fn mail(&mut self, which: Mail<'_>) -> Result<Vec<Signal>, Fault> {
        let wanted = |signal: &&Signal| {
            signal.acked_at.is_none()
                && match which {
                    Mail::To(to) => signal.to == *to,
                    Mail::Blockers => signal.kind == SignalKind::BlockedOn,
                    Mail::All => true,
                }
        };
        Ok(self.world.signals.values().filter(wanted).cloned().collect())
    }

    fn work(&mut self, key: &WorkKey) -> Result<Option<Work>, Fault> {
        Ok(self.world.works.get(key).cloned())
    }

    fn works(&mut self, scope: &Scope) -> Result<Vec<Work>, Fault> {
        Ok(self
            .world
            .works
            .values()
            .filter(|work| may_meet(&work.scope, scope))
            .cloned()
            .collect())
    }

    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault> {
        Ok(self.world.runs.get(id).cloned())
    }

    fn runs(&mut self, which: Runs<'_>) -> Result<Vec<Run>, Fault> {
        let wanted = |run: &&Run| match &which {
            Runs::Of(plan) => run.plan == *plan,
            Runs::Live => run.end.is_none(),
            Runs::All => true,
        };
        Ok(self.world.runs.values().filter(wanted).cloned().collect())
    }

    fn phases(&mut self, run: &RunId, which: Phases<'_>) -> Result<Vec<PhaseRun>, Fault> {
        let wanted = |phase: &&PhaseRun| {
            phase.run == *run
                && match &which {
                    Phases::One(id) => phase.phase.id.as_str() == *id,
                    Phases::Busy => phase.standing == Standing::Running,
                    Phases::All => true,
                }
        };
        let mut phases: Vec<PhaseRun> = self.world.phases.values().filter(wanted).cloned().collect();
        phases.sort_by_key(|phase| phase.position);
        Ok(phases)
    }

    fn green(&mut self, key: &str) -> Result<Option<u64>, Fault> {
        Ok(self.world.greens.get(key).copied())
    }

    fn answered(&mut self, key: &str) -> Result<Vec<Entry>, Fault> {
        let under = |entry: &&Entry| entry.key.as_deref() == Some(key);
        Ok(self.journal.iter().filter(under).cloned().collect())
    }
}
