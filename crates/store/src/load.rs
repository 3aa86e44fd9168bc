//! How picks are closed into a world: one walk for every store, over what each can look up.

use std::collections::BTreeSet;

use protocol::event::{Entry, Seq};
use protocol::facts::caller::Caller;
use protocol::facts::claim::{Claim, Fence, Pauser, State};
use protocol::facts::gate::{About, Gate};
use protocol::facts::id::{GateId, RunId, SessId, SigId};
use protocol::facts::lock::{Holder, Lock};
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::run::{PhaseRun, Run, Standing};
use protocol::facts::scope::{Entry as ScopeEntry, Scope};
use protocol::facts::signal::{Address, Sender, Signal};
use protocol::facts::span::Span;
use protocol::facts::time::Instant;
use protocol::facts::trigger::Trigger;
use protocol::facts::work::{Work, WorkKey};
use protocol::world::{Footprint, Halt, Lease, Pick, Until, World, green_key};

use crate::Fault;

/// Which claims are listed.
#[derive(Clone, Debug)]
pub enum Claims<'a> {
    /// Those launched by this one.
    ChildrenOf(&'a SessId),
    /// Unended ones whose scope may meet this one.
    Meeting(&'a Scope),
    /// Unended ones that this caller may own, those of its token, and of each process in its chain the first
    /// ended one that was no human's: it still tells that process for an agent's.
    OwnedBy(&'a Caller),
    /// Unended ones.
    Live,
    /// Those that the journal names after this one's first entry.
    Since(&'a SessId),
    /// All.
    All,
    /// Those whose id contains this text.
    Named(&'a str),
    /// A page of all, or of unended ones, in the order of their ids.
    Page {
        /// Only unended ones.
        live: bool,
        /// The last one of the page before.
        after: Option<&'a SessId>,
        /// How many at most.
        most: usize,
    },
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

/// Which of the signals that nobody acknowledged are listed.
#[derive(Clone, Debug)]
pub enum Mail<'a> {
    /// Those to this address.
    To(&'a Address),
    /// Those of `BLOCKED_ON`.
    Blockers,
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
    /// A page of all, in the order of the keys of their paths.
    Page {
        /// The key of the last one of the page before.
        after: Option<&'a str>,
        /// How many at most.
        most: usize,
    },
}

/// A claim with what is always looked at beside it.
#[derive(Clone, PartialEq, Debug)]
pub struct Whole {
    /// The claim.
    pub claim: Claim,
    /// Its lease.
    pub lease: Option<Until>,
    /// The failures of its work.
    pub work: Option<Work>,
}

/// What a store can look up, inside one transaction.
pub trait Source {
    /// One claim with its lease and its work.
    fn claim(&mut self, id: &SessId) -> Result<Option<Whole>, Fault>;
    /// Ids of claims.
    fn claims(&mut self, which: Claims<'_>) -> Result<Vec<SessId>, Fault>;
    /// Ids in use that begin with this text.
    fn ids(&mut self, prefix: &str) -> Result<Vec<SessId>, Fault>;
    /// One lease.
    fn lease(&mut self, lease: &Lease) -> Result<Option<Until>, Fault>;
    /// Locks with their leases.
    fn locks(&mut self, which: Locks<'_>) -> Result<Vec<(Lock, Option<Until>)>, Fault>;
    /// One gate.
    fn gate(&mut self, id: &GateId) -> Result<Option<Gate>, Fault>;
    /// Gates.
    fn gates(&mut self, which: Gates<'_>) -> Result<Vec<Gate>, Fault>;
    /// One signal.
    fn signal(&mut self, id: &SigId) -> Result<Option<Signal>, Fault>;
    /// Signals that nobody acknowledged.
    fn mail(&mut self, which: Mail<'_>) -> Result<Vec<Signal>, Fault>;
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

/// What every look begins with: the journal's head, the last fence and the stop.
pub type Base = (Seq, Fence, Halt);

/// Loads what the picks name, on top of what every look begins with.
///
/// # Errors
///
/// The source's.
pub fn load(source: &mut dyn Source, base: Base, picks: &Footprint, now: Instant) -> Result<World, Fault> {
    let (head, fence, halt) = base;
    let world = World {
        head,
        fence,
        halt,
        ..World::default()
    };
    let mut loader = Loader {
        source,
        world,
        now,
        absent: BTreeSet::new(),
        trees: BTreeSet::new(),
        answered: BTreeSet::new(),
    };
    for pick in picks {
        loader.pick(pick)?;
    }
    Ok(loader.world)
}

struct Loader<'s> {
    source: &'s mut dyn Source,
    world: World,
    /// The time at which will be decided.
    now: Instant,
    /// Claims that were looked for and are not there.
    absent: BTreeSet<SessId>,
    /// Claims whose descendants are loaded.
    trees: BTreeSet<SessId>,
    /// Runs whose gates are loaded.
    answered: BTreeSet<RunId>,
}

impl Loader<'_> {
    fn pick(&mut self, pick: &Pick) -> Result<(), Fault> {
        match pick {
            Pick::Claim(id) => self.claim(id),
            Pick::Ids(slug) => {
                let first = SessId::compose(self.now, slug, 1);
                let taken = self.source.ids(first.as_str())?;
                self.world.taken.extend(taken);
                Ok(())
            }
            Pick::IdsWith(part) => {
                let named = self.source.claims(Claims::Named(part))?;
                self.world.taken.extend(named);
                Ok(())
            }
            Pick::Tree(id) => self.tree(id),
            Pick::Rivals { scope, trees } => {
                for id in self.source.claims(Claims::Meeting(scope))? {
                    if *trees {
                        self.rival(&id)?
                    } else {
                        self.claim(&id)?
                    }
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
            Pick::ClaimPage { live, after, most } => {
                let (live, after, most) = (*live, after.as_ref(), *most);
                self.world.listed = self.source.claims(Claims::Page { live, after, most })?;
                let listed = self.world.listed.clone();
                listed.iter().try_for_each(|id| self.claim(id))
            }
            Pick::LockPage { after, most } => self.locks(Locks::Page {
                after: after.as_deref(),
                most: *most,
            }),
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
            Pick::Work(scope) => self.works(scope),
            Pick::WorkOf(key) => self.work(key),
            Pick::Signals(ids) => ids.iter().try_for_each(|id| match self.source.signal(id)? {
                Some(signal) => self.signal(signal),
                None => Ok(()),
            }),
            Pick::Mail(to) => {
                let to = to.clone().map_or(Address::Human, Address::Session);
                let mail = self.source.mail(Mail::To(&to))?;
                mail.into_iter().try_for_each(|signal| self.signal(signal))
            }
            Pick::AllMail => {
                let mail = self.source.mail(Mail::All)?;
                mail.into_iter().try_for_each(|signal| self.signal(signal))
            }
            Pick::Blockers => {
                let mail = self.source.mail(Mail::Blockers)?;
                mail.into_iter().try_for_each(|signal| self.signal(signal))
            }
            Pick::Run(id) => self.run(id).map(drop),
            Pick::Crew(id) => match self.run(id)? {
                Some(pilot) => self.tree(&pilot),
                None => Ok(()),
            },
            Pick::Phases(run) => {
                for phase in self.source.phases(run, Phases::All)? {
                    let busy = phase.standing == Standing::Running;
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

    fn works(&mut self, scope: &Scope) -> Result<(), Fault> {
        for work in self.source.works(scope)? {
            self.world.works.insert(work.key.clone(), work);
        }
        Ok(())
    }

    /// All that opening a claim on this scope looks at beside the claim itself.
    fn pick_rivals(&mut self, scope: &Scope) -> Result<(), Fault> {
        for id in self.source.claims(Claims::Meeting(scope))? {
            self.rival(&id)?;
        }
        self.works(scope)
    }

    /// A claim in the way, with all below it where it is stale: only such a one is superseded, with its family.
    ///
    /// The pilot of a run is in the way of each of its attempts, and all those before are below it.
    fn rival(&mut self, id: &SessId) -> Result<(), Fault> {
        self.claim(id)?;
        let rival = self.world.claims.get(id);
        match rival.is_some_and(|it| self.world.state(it, self.now) == State::Stale) {
            true => self.tree(id),
            false => Ok(()),
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
            let Some(Whole { claim, lease, work }) = self.source.claim(&id)? else {
                self.absent.insert(id);
                return Ok(());
            };
            self.world
                .leases
                .extend(lease.map(|lease| (Lease::Claim(id.clone()), lease)));
            self.world.works.extend(work.map(|work| (work.key.clone(), work)));
            if let Some(gate) = &claim.waiting
                && let Some(gate) = self.source.gate(gate)?
            {
                self.world.gates.insert(gate.id.clone(), gate);
            }
            let closing = claim
                .closing
                .as_ref()
                .is_some_and(|closing| !closing.allowed.is_empty());
            if closing || !claim.rights.is_empty() {
                self.answers_of(&claim)?;
            }
            // What a close weighs its evidence against.
            if let Some(evidence) = claim
                .closing
                .as_ref()
                .and_then(|closing| closing.evidence.as_ref())
            {
                let key = green_key(&evidence.repo, &evidence.command);
                let total = self.source.green(&key)?;
                self.world.greens.extend(total.map(|total| (key, total)));
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
            // A close tells the sessions that its triggers name, and whether they had ended by then.
            let triggers = claim
                .on_done
                .iter()
                .chain(&claim.on_partial)
                .chain(&claim.on_fail);
            let told = triggers.filter_map(addressee);
            // Who paused it may lift that, and so may who is above who did.
            let pausers = claim.pauses.keys().filter_map(|by| match by {
                Pauser::Claim(id) => Some(id.clone()),
                Pauser::User(_) => None,
            });
            let named: Vec<SessId> = told.chain(pausers).collect();
            if live {
                named.iter().try_for_each(|id| self.claim(id))?;
                self.locks(Locks::Of(&Holder::Claim(id.clone())))?;
                self.gates(Gates::Of(&id))?;
            }
            if let Some(of) = workflow {
                drop(self.run(&of.run)?);
                let phases = self.source.phases(&of.run, Phases::One(&of.phase))?;
                phases.into_iter().try_for_each(|phase| self.phase(phase))?;
            }
            open.extend(self.source.claims(Claims::ChildrenOf(&id))?);
        }
        Ok(())
    }

    fn locks(&mut self, which: Locks<'_>) -> Result<(), Fault> {
        for (lock, lease) in self.source.locks(which)? {
            let key = lock.path.key().to_owned();
            self.world
                .leases
                .extend(lease.map(|lease| (Lease::Lock(key.clone()), lease)));
            if let Holder::Claim(id) = &lock.holder {
                self.claim(&id.clone())?;
            }
            self.world.locks.insert(key, lock);
        }
        Ok(())
    }

    fn gates(&mut self, which: Gates<'_>) -> Result<(), Fault> {
        for gate in self.source.gates(which)? {
            match &gate.about {
                About::Claim(id) => self.claim(&id.clone())?,
                // What ends the gate frees the phase that waits at it.
                About::Phase(run, phase) => {
                    for phase in self.source.phases(run, Phases::One(phase))? {
                        self.phase(phase)?;
                    }
                }
                About::Run(_) => {}
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
                // An abort here may end other runs below this one's pilot.
                self.gates(Gates::Pending)?;
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
        if let Sender::Session(from) = &signal.from {
            self.claim(&from.clone())?;
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

    /// The gates on which a claim's rights, or what its close was allowed, rest.
    fn answers_of(&mut self, claim: &Claim) -> Result<(), Fault> {
        let own = self.source.gates(Gates::Of(&claim.id))?;
        self.world
            .gates
            .extend(own.into_iter().map(|gate| (gate.id.clone(), gate)));
        match &claim.workflow {
            Some(of) => self.answers_in(&of.run.clone()),
            None => Ok(()),
        }
    }

    /// The gates on which what the phases of a run were allowed rests, once per run.
    fn answers_in(&mut self, run: &RunId) -> Result<(), Fault> {
        if self.answered.insert(run.clone()) {
            let gates = self.source.gates(Gates::OfRun(run))?;
            self.world
                .gates
                .extend(gates.into_iter().map(|gate| (gate.id.clone(), gate)));
        }
        Ok(())
    }

    fn phase(&mut self, phase: PhaseRun) -> Result<(), Fault> {
        if !phase.allowed.is_empty() {
            self.answers_in(&phase.run)?;
        }
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
            let unjudged = phase.attempts.iter().filter(|attempt| attempt.outcome.is_none());
            let attempts: BTreeSet<SessId> = unjudged
                .chain(phase.last())
                .map(|attempt| attempt.claim.clone())
                .collect();
            attempts.iter().try_for_each(|claim| self.tree(claim))?;
            if phase.standing == Standing::Pending {
                // Its next attempt opens a claim on its own scope, whatever the command says, and counts the
                // failures of the phase, wherever those before it wrote.
                drop(self.run(run)?);
                if let Some(plan) = self.world.runs.get(run).map(|run| run.plan.clone()) {
                    self.work(&WorkKey::of_phase(&plan, id))?;
                }
                for fold in [Fold::Exact, Fold::Case] {
                    if let Ok(scope) = Scope::parse(&phase.phase.scope, fold) {
                        self.pick_rivals(&scope)?;
                    }
                }
            }
            self.phase(phase)?;
        }
        Ok(())
    }
}

/// The session that a trigger tells by name.
fn addressee(trigger: &Trigger) -> Option<SessId> {
    match trigger {
        Trigger::Signal { to, .. } | Trigger::Notify { to } => SessId::parse(to).ok(),
        _ => None,
    }
}

/// Says cheaply whether two scopes may meet: too often rather than too seldom.
///
/// Case is always folded here, since either side or the policy may say so and then both are.
pub fn may_meet(a: &Scope, b: &Scope) -> bool {
    let (a, b) = (folded(a), folded(b));
    a.iter().any(|x| b.iter().any(|y| x.may_overlap(y)))
}

/// The entries of a scope that add paths, case folded.
pub fn folded(scope: &Scope) -> Vec<ScopeEntry> {
    let fold = |entry: &ScopeEntry| match Scope::parse([entry.as_str()], Fold::Case) {
        Ok(scope) => scope.entries().to_vec(),
        Err(_) => vec![entry.clone()],
    };
    scope.additions().flat_map(fold).collect()
}

/// The lease that a sign of life leaves, or nothing where it comes too late (R3, R6).
///
/// A lease that ran out, or that another boot began, is only renewed by a command, which mints a new fence;
/// a delivery holds nothing and is made again at any time. A lease is never shortened.
pub fn pushed(held: Option<Until>, fence: Fence, now: Instant, by: Span) -> Option<Until> {
    let until = now.plus(by);
    let fresh = Until {
        fence,
        touched: now,
        until,
    };
    match held {
        Some(held) if held.fence != fence => None,
        _ if fence == Fence(0) => Some(fresh),
        Some(held) if held.until.reached_by(now) => None,
        Some(held) if held.until.tick >= until.tick => Some(held),
        Some(_) => Some(fresh),
        None => None,
    }
}
