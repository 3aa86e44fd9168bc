//! How picks are closed into a world: one walk for every store, over what each can look up.

use std::collections::BTreeSet;

use protocol::event::{Entry, Seq};
use protocol::facts::caller::Caller;
use protocol::facts::claim::{Claim, Fence};
use protocol::facts::gate::{About, Gate};
use protocol::facts::id::{GateId, RunId, SessId, SigId};
use protocol::facts::lock::{Holder, Lock};
use protocol::facts::path::LogicalPath;
use protocol::facts::run::{PhaseRun, Run};
use protocol::facts::scope::Scope;
use protocol::facts::signal::{Address, Signal};
use protocol::facts::time::Instant;
use protocol::facts::work::{Work, WorkKey};
use protocol::world::{Footprint, Halt, Lease, Pick, Until, World};

use crate::Fault;

/// Which claims are listed.
#[derive(Clone, Debug)]
pub enum Claims<'a> {
    /// Those launched by this one.
    ChildrenOf(&'a SessId),
    /// Unended ones whose scope may meet this one.
    Meeting(&'a Scope),
    /// Unended ones that this caller may own.
    OwnedBy(&'a Caller),
    /// Unended ones.
    Live,
    /// Those that the journal names after this one's first entry.
    Since(&'a SessId),
    /// All.
    All,
}

/// Which gates are listed.
#[derive(Clone, Debug)]
pub enum Gates<'a> {
    /// Those of this claim.
    Of(&'a SessId),
    /// Those of the phases of this run.
    OfRun(&'a RunId),
    /// Those that wait.
    Pending,
    /// Those whose answer waits for a pause to end.
    Deferred,
}

/// Which runs are listed.
#[derive(Clone, Debug)]
pub enum Runs<'a> {
    /// Those of plans of this name.
    Of(&'a str),
    /// Unended ones.
    Live,
    /// All.
    All,
}

/// Which phases of a run are listed.
#[derive(Clone, Debug)]
pub enum Phases<'a> {
    /// This one.
    One(&'a str),
    /// Those with an attempt under way.
    Busy,
    /// All.
    All,
}

/// Which locks are listed.
#[derive(Clone, Debug)]
pub enum Locks<'a> {
    /// On this path, on folders above it, on anything below it.
    Touching(&'a LogicalPath),
    /// Of this holder.
    Of(&'a Holder),
    /// All.
    All,
}

/// What a store can look up, inside one transaction.
pub trait Source {
    /// The journal's head, the last fence and the stop.
    fn base(&mut self) -> Result<(Seq, Fence, Halt), Fault>;
    /// One claim.
    fn claim(&mut self, id: &SessId) -> Result<Option<Claim>, Fault>;
    /// Ids of claims.
    fn claims(&mut self, which: Claims<'_>) -> Result<Vec<SessId>, Fault>;
    /// Ids in use that begin with this text.
    fn ids(&mut self, prefix: &str) -> Result<Vec<SessId>, Fault>;
    /// One lease.
    fn lease(&mut self, lease: &Lease) -> Result<Option<Until>, Fault>;
    /// Locks.
    fn locks(&mut self, which: Locks<'_>) -> Result<Vec<Lock>, Fault>;
    /// One gate.
    fn gate(&mut self, id: &GateId) -> Result<Option<Gate>, Fault>;
    /// Gates.
    fn gates(&mut self, which: Gates<'_>) -> Result<Vec<Gate>, Fault>;
    /// One signal.
    fn signal(&mut self, id: &SigId) -> Result<Option<Signal>, Fault>;
    /// Signals that nobody acknowledged: to this address, or to anyone.
    fn mail(&mut self, to: Option<&Address>) -> Result<Vec<Signal>, Fault>;
    /// One piece of work.
    fn work(&mut self, key: &WorkKey) -> Result<Option<Work>, Fault>;
    /// Uncleared work whose scope may meet this one.
    fn works(&mut self, scope: &Scope) -> Result<Vec<Work>, Fault>;
    /// One run.
    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault>;
    /// Runs.
    fn runs(&mut self, which: Runs<'_>) -> Result<Vec<Run>, Fault>;
    /// Phases of a run.
    fn phases(&mut self, run: &RunId, which: Phases<'_>) -> Result<Vec<PhaseRun>, Fault>;
    /// The size of the last green run under a key.
    fn green(&mut self, key: &str) -> Result<Option<u64>, Fault>;
    /// The entries under an idempotency key.
    fn answered(&mut self, key: &str) -> Result<Vec<Entry>, Fault>;
}

/// Loads what the picks name.
pub fn load(source: &mut dyn Source, picks: &Footprint, now: Instant) -> Result<World, Fault> {
    let (head, fence, halt) = source.base()?;
    let world = World {
        head,
        fence,
        halt,
        ..World::default()
    };
    let mut loader = Loader {
        source,
        world,
        absent: BTreeSet::new(),
        trees: BTreeSet::new(),
    };
    for pick in picks {
        loader.pick(pick, now)?;
    }
    Ok(loader.world)
}

struct Loader<'s> {
    source: &'s mut dyn Source,
    world: World,
    /// Claims that were looked for and are not there.
    absent: BTreeSet<SessId>,
    /// Claims whose descendants are loaded.
    trees: BTreeSet<SessId>,
}

impl Loader<'_> {
    fn pick(&mut self, pick: &Pick, now: Instant) -> Result<(), Fault> {
        match pick {
            Pick::Claim(id) => self.claim(id),
            Pick::Ids(slug) => {
                let first = SessId::compose(now, slug, 1);
                let taken = self.source.ids(first.as_str())?;
                self.world.taken.extend(taken);
                Ok(())
            }
            Pick::Tree(id) => self.tree(id),
            Pick::Rivals { scope, trees } => {
                for id in self.source.claims(Claims::Meeting(scope))? {
                    if *trees { self.tree(&id)? } else { self.claim(&id)? }
                }
                Ok(())
            }
            Pick::Caller(caller) => {
                if caller.token.is_none() && caller.host_session.is_none() && caller.chain.is_empty() {
                    return Ok(());
                }
                self.each(Claims::OwnedBy(caller))
            }
            Pick::Locks(paths) => paths
                .iter()
                .try_for_each(|path| self.locks(Locks::Touching(path))),
            Pick::AllLocks => self.locks(Locks::All),
            Pick::Live => self.each(Claims::Live),
            Pick::Since(id) => self.each(Claims::Since(id)),
            Pick::AllClaims => self.each(Claims::All),
            Pick::Gate(id) => match self.source.gate(id)? {
                Some(gate) => self.gate_whole(gate),
                None => Ok(()),
            },
            Pick::GatesOf(id) => self.gates(Gates::Of(id)),
            Pick::PendingGates => self.gates(Gates::Pending),
            Pick::DeferredGates => {
                let gates = self.source.gates(Gates::Deferred)?;
                gates.into_iter().try_for_each(|gate| self.gate_whole(gate))
            }
            Pick::GatesOfRun(run) => self.gates(Gates::OfRun(run)),
            Pick::Work(scope) => {
                let works = self.source.works(scope)?;
                self.world
                    .works
                    .extend(works.into_iter().map(|work| (work.key.clone(), work)));
                Ok(())
            }
            Pick::WorkOf(key) => self.work(key),
            Pick::Signals(ids) => ids.iter().try_for_each(|id| match self.source.signal(id)? {
                Some(signal) => self.signal(signal),
                None => Ok(()),
            }),
            Pick::Mail(to) => {
                let to = to.clone().map_or(Address::Human, Address::Session);
                let mail = self.source.mail(Some(&to))?;
                mail.into_iter().try_for_each(|signal| self.signal(signal))
            }
            Pick::AllMail => {
                let mail = self.source.mail(None)?;
                mail.into_iter().try_for_each(|signal| self.signal(signal))
            }
            Pick::Run(id) => self.run(id).map(drop),
            Pick::Crew(id) => match self.run(id)? {
                Some(pilot) => self.tree(&pilot),
                None => Ok(()),
            },
            Pick::Phases(run) => {
                for phase in self.source.phases(run, Phases::All)? {
                    let busy = phase.standing == protocol::facts::run::Standing::Running;
                    if let (true, Some(last)) = (busy, phase.last()) {
                        self.claim(&last.claim.clone())?;
                    }
                    self.phase(phase)?;
                }
                Ok(())
            }
            Pick::Phase(run, ids) => ids.iter().try_for_each(|id| self.phase_whole(run, id)),
            Pick::Busy(run) => {
                let phases = self.source.phases(run, Phases::Busy)?;
                phases.into_iter().try_for_each(|phase| self.phase(phase))
            }
            Pick::RunsOf(plan) => self.runs(Runs::Of(plan)),
            Pick::LiveRuns => self.runs(Runs::Live),
            Pick::AllRuns => self.runs(Runs::All),
            Pick::Green(key) => {
                let total = self.source.green(key)?;
                self.world.greens.extend(total.map(|total| (key.clone(), total)));
                Ok(())
            }
            Pick::Key(key) => {
                let entries = self.source.answered(key)?;
                self.world.answered = (!entries.is_empty()).then_some(entries);
                Ok(())
            }
        }
    }

    fn lease(&mut self, lease: Lease) -> Result<(), Fault> {
        if let Some(until) = self.source.lease(&lease)? {
            self.world.leases.insert(lease, until);
        }
        Ok(())
    }

    fn each(&mut self, which: Claims<'_>) -> Result<(), Fault> {
        let ids = self.source.claims(which)?;
        ids.iter().try_for_each(|id| self.claim(id))
    }

    /// A claim with its lease, its work, the gate that it waits at, and its line.
    fn claim(&mut self, id: &SessId) -> Result<(), Fault> {
        let mut next = Some(id.clone());
        while let Some(id) = next.take() {
            if self.world.claims.contains_key(&id) || self.absent.contains(&id) {
                return Ok(());
            }
            let Some(claim) = self.source.claim(&id)? else {
                self.absent.insert(id);
                return Ok(());
            };
            self.lease(Lease::Claim(id.clone()))?;
            self.work(&claim.work)?;
            if let Some(gate) = &claim.waiting
                && let Some(gate) = self.source.gate(gate)?
            {
                self.world.gates.insert(gate.id.clone(), gate);
            }
            next.clone_from(&claim.parent_satellite);
            self.world.claims.insert(id, claim);
        }
        Ok(())
    }

    /// A claim and all below it, with their locks, gates and the phases that they work on.
    fn tree(&mut self, id: &SessId) -> Result<(), Fault> {
        let mut open = vec![id.clone()];
        while let Some(id) = open.pop() {
            if !self.trees.insert(id.clone()) {
                continue;
            }
            self.claim(&id)?;
            let Some(claim) = self.world.claims.get(&id) else {
                continue;
            };
            let (live, workflow) = (!claim.is_terminal(), claim.workflow.clone());
            if live {
                self.locks(Locks::Of(&Holder::Claim(id.clone())))?;
                self.gates(Gates::Of(&id))?;
            }
            if let Some(of) = workflow {
                let phases = self.source.phases(&of.run, Phases::One(&of.phase))?;
                phases.into_iter().try_for_each(|phase| self.phase(phase))?;
            }
            open.extend(self.source.claims(Claims::ChildrenOf(&id))?);
        }
        Ok(())
    }

    fn locks(&mut self, which: Locks<'_>) -> Result<(), Fault> {
        for lock in self.source.locks(which)? {
            let key = lock.path.key().to_owned();
            self.lease(Lease::Lock(key.clone()))?;
            if let Holder::Claim(id) = &lock.holder {
                self.claim(&id.clone())?;
            }
            self.world.locks.insert(key, lock);
        }
        Ok(())
    }

    fn gates(&mut self, which: Gates<'_>) -> Result<(), Fault> {
        for gate in self.source.gates(which)? {
            if let About::Claim(id) = &gate.about {
                self.claim(&id.clone())?;
            }
            self.world.gates.insert(gate.id.clone(), gate);
        }
        Ok(())
    }

    /// A gate with everything that its answer may change.
    fn gate_whole(&mut self, gate: Gate) -> Result<(), Fault> {
        match gate.about.clone() {
            About::Claim(id) => self.tree(&id)?,
            About::Phase(run, phase) => {
                if let Some(pilot) = self.run(&run)? {
                    self.tree(&pilot)?;
                }
                self.phase_whole(&run, &phase)?;
                self.gates(Gates::OfRun(&run))?;
            }
            About::Run(run) => drop(self.run(&run)?),
        }
        self.world.gates.insert(gate.id.clone(), gate);
        Ok(())
    }

    fn work(&mut self, key: &WorkKey) -> Result<(), Fault> {
        if let Some(work) = self.source.work(key)? {
            self.world.works.insert(work.key.clone(), work);
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Fault> {
        self.lease(Lease::Delivery(signal.id.clone()))?;
        if let Address::Session(to) = &signal.to {
            self.claim(&to.clone())?;
        }
        self.world.signals.insert(signal.id.clone(), signal);
        Ok(())
    }

    /// A run with its lease and its pilot's line; the pilot.
    fn run(&mut self, id: &RunId) -> Result<Option<SessId>, Fault> {
        let Some(run) = self.source.run(id)? else {
            return Ok(None);
        };
        let pilot = run.pilot.clone();
        self.claim(&pilot)?;
        self.lease(Lease::Driver(id.clone()))?;
        self.world.runs.insert(id.clone(), run);
        Ok(Some(pilot))
    }

    fn runs(&mut self, which: Runs<'_>) -> Result<(), Fault> {
        for run in self.source.runs(which)? {
            self.claim(&run.pilot.clone())?;
            self.lease(Lease::Driver(run.id.clone()))?;
            self.world.runs.insert(run.id.clone(), run);
        }
        Ok(())
    }

    fn phase(&mut self, phase: PhaseRun) -> Result<(), Fault> {
        if let Some(gate) = &phase.waiting
            && let Some(gate) = self.source.gate(gate)?
        {
            self.world.gates.insert(gate.id.clone(), gate);
        }
        let key = (phase.run.clone(), phase.phase.id.as_str().to_owned());
        self.world.phases.insert(key, phase);
        Ok(())
    }

    /// A phase, its needs, and the claim of each one's last attempt with all below it.
    fn phase_whole(&mut self, run: &RunId, id: &str) -> Result<(), Fault> {
        for phase in self.source.phases(run, Phases::One(id))? {
            let needs: Vec<String> = phase
                .phase
                .needs
                .iter()
                .map(|need| need.as_str().to_owned())
                .collect();
            for need in needs {
                for need in self.source.phases(run, Phases::One(&need))? {
                    if let Some(last) = need.last() {
                        self.claim(&last.claim.clone())?;
                    }
                    self.phase(need)?;
                }
            }
            if let Some(last) = phase.last() {
                self.tree(&last.claim.clone())?;
            }
            self.phase(phase)?;
        }
        Ok(())
    }
}
