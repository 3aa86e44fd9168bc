//! What is true now, as far as it was loaded: the facts that a rule looks at.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::event::{Entry, Seq};
use crate::facts::caller::Caller;
use crate::facts::claim::{Claim, End, Fence, Pauser, Right, State, Suspension};
use crate::facts::gate::{About, Choice, Gate, GateKind};
use crate::facts::id::{GateId, RunId, SessId, SigId};
use crate::facts::lock::{Holder, Lock};
use crate::facts::path::LogicalPath;
use crate::facts::run::{PhaseRun, Run};
use crate::facts::scope::Scope;
use crate::facts::signal::Signal;
use crate::facts::time::Instant;
use crate::facts::work::{Work, WorkKey};
use crate::refusal::Held;

/// Names a lease: the one kind of fact outside the journal, pushed on by signs of life.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lease {
    /// A claim's time to live.
    Claim(SessId),
    /// A lock's, by the key of its path.
    Lock(String),
    /// A signal that was handed to a reader.
    Delivery(SigId),
    /// A driver's hold on a run.
    Driver(RunId),
}

/// How long a lease lasts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Until {
    /// The fence of whoever holds it.
    pub fence: Fence,
    /// The last sign of life.
    pub touched: Instant,
    /// When it ends, not counting suspensions since `touched`.
    pub until: Instant,
}

/// The emergency stop, with the stretches of time in which it stood.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Halt {
    /// Why and in whose name it stands, while it does.
    pub standing: Option<(String, Pauser)>,
    /// When it stood.
    pub stretches: Vec<Suspension>,
}

/// Names a fact that a store keeps as a row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fact {
    /// A claim.
    Claim(SessId),
    /// A lock, by the key of its path.
    Lock(String),
    /// A gate.
    Gate(GateId),
    /// A signal.
    Signal(SigId),
    /// A piece of work.
    Work(WorkKey),
    /// A run.
    Run(RunId),
    /// A phase of a run.
    Phase(RunId, String),
    /// The emergency stop.
    Halt,
    /// The size of a last green test run.
    Green(String),
    /// A lease.
    Lease(Lease),
}

/// The facts, all of them or those that a footprint picked.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct World {
    /// The number of the last event.
    pub head: Seq,
    /// The last fence that was minted.
    pub fence: Fence,
    /// The emergency stop.
    pub halt: Halt,
    /// Claims by id.
    pub claims: BTreeMap<SessId, Claim>,
    /// Locks by the key of their path.
    pub locks: BTreeMap<String, Lock>,
    /// Gates by id.
    pub gates: BTreeMap<GateId, Gate>,
    /// Signals by id.
    pub signals: BTreeMap<SigId, Signal>,
    /// Work by key.
    pub works: BTreeMap<WorkKey, Work>,
    /// Runs by id.
    pub runs: BTreeMap<RunId, Run>,
    /// Phases by run and id.
    pub phases: BTreeMap<(RunId, String), PhaseRun>,
    /// How many tests the last green run of a command in a repository had; see [`green_key`].
    pub greens: BTreeMap<String, u64>,
    /// Leases.
    pub leases: BTreeMap<Lease, Until>,
    /// Claim ids that are in use without their claim being loaded.
    pub taken: BTreeSet<SessId>,
    /// The claims of the page that was asked for, in order; what they stand on is loaded beside them.
    pub listed: Vec<SessId>,
    /// The stored answer to a request with the same idempotency key.
    pub answered: Option<Vec<Entry>>,
    /// Facts changed since they were loaded.
    pub changed: BTreeSet<Fact>,
}

/// Chains longer than this are taken for a loop; none that long can be made.
const LINE_MAX: usize = 1_000;

impl World {
    /// The claims above this one, nearest first.
    pub fn ancestors<'w>(&'w self, claim: &'w Claim) -> impl Iterator<Item = &'w Claim> {
        let up = |claim: &'w Claim| claim.parent_satellite.as_ref().and_then(|id| self.claims.get(id));
        std::iter::successors(up(claim), move |claim| up(claim)).take(LINE_MAX)
    }

    /// Whether `above` is an ancestor of `claim`.
    pub fn descends_from(&self, claim: &Claim, above: &SessId) -> bool {
        self.ancestors(claim).any(|ancestor| ancestor.id == *above)
    }

    /// Whether one of the two is an ancestor of the other, or they are the same.
    pub fn in_line(&self, a: &Claim, b: &Claim) -> bool {
        a.id == b.id || self.descends_from(a, &b.id) || self.descends_from(b, &a.id)
    }

    /// The claims that this one launched.
    pub fn children<'w, 'i>(&'w self, id: &'i SessId) -> impl Iterator<Item = &'w Claim> + use<'w, 'i> {
        self.claims
            .values()
            .filter(move |claim| claim.parent_satellite.as_ref() == Some(id))
    }

    /// The claims below this one, each after its parent.
    pub fn descendants(&self, id: &SessId) -> Vec<&Claim> {
        let mut found: Vec<&Claim> = self.children(id).collect();
        let mut at = 0;
        while let Some(claim) = found.get(at) {
            found.extend(self.children(&claim.id));
            at += 1;
        }
        found
    }

    /// The root of the family of this claim.
    pub fn root<'w>(&'w self, claim: &'w Claim) -> &'w Claim {
        self.ancestors(claim).last().unwrap_or(claim)
    }

    /// The names of the pauses that stand on a claim: its own, each ancestor's, the stop's (section 6).
    pub fn pauses(&self, claim: &Claim) -> Vec<String> {
        let own = claim
            .pauses
            .keys()
            .map(|by| format!("{} on {}", pauser_name(by), claim.id));
        let above = self.ancestors(claim).flat_map(|ancestor| {
            ancestor
                .pauses
                .keys()
                .map(move |by| format!("{} on {}", pauser_name(by), ancestor.id))
        });
        let stop = self
            .halt
            .standing
            .iter()
            .map(|(_, by)| format!("stop by {}", pauser_name(by)));
        own.chain(above).chain(stop).collect()
    }

    fn is_paused(&self, claim: &Claim) -> bool {
        self.halt.standing.is_some()
            || !claim.pauses.is_empty()
            || self.ancestors(claim).any(|ancestor| !ancestor.pauses.is_empty())
    }

    /// The state of a claim (section 6).
    pub fn state(&self, claim: &Claim, now: Instant) -> State {
        match &claim.end {
            Some(End::Closed { .. }) => State::Closed,
            Some(End::Failed { .. }) => State::Failed,
            None if claim.reaped || self.left(claim, now).is_none() => State::Stale,
            None if self.is_paused(claim) => State::Paused,
            None if claim.waiting.is_some() => State::WaitingHuman,
            None => State::Open,
        }
    }

    /// Milliseconds that a claim has left before it goes stale; `None` when it has none.
    ///
    /// Judged net of every stretch at a gate or under a pause on its line, so that nothing has to be stored
    /// below what was paused.
    /// Another boot ends what ran; what stood still keeps the time that it had.
    pub fn left(&self, claim: &Claim, now: Instant) -> Option<u64> {
        let lease = self.leases.get(&Lease::Claim(claim.id.clone()))?;
        let now = if lease.until.era == now.era {
            now
        } else {
            let standing = self.stretches(claim).filter(|it| it.to.is_none());
            let of_that_boot = standing.filter(|it| it.from.era == lease.until.era);
            of_that_boot.map(|it| it.from).min_by_key(|from| from.tick)?
        };
        let idle = self.idle(claim, lease.touched, now);
        let deadline = lease.until.tick.saturating_add(idle);
        deadline.checked_sub(now.tick).filter(|left| *left > 0)
    }

    /// Every stretch that does not count for a claim: its own, those of its line, the stop's.
    fn stretches<'w>(&'w self, claim: &'w Claim) -> impl Iterator<Item = &'w Suspension> {
        let line = std::iter::once(claim).chain(self.ancestors(claim));
        line.flat_map(|claim| &claim.suspensions)
            .chain(&self.halt.stretches)
    }

    /// Milliseconds between two moments of one era that did not count for a claim.
    pub fn idle(&self, claim: &Claim, from: Instant, to: Instant) -> u64 {
        // A stretch may have begun in an earlier boot, or ended in a later one.
        let clip = |s: &Suspension| {
            let start = match s.from.era.cmp(&to.era) {
                Ordering::Less => from.tick,
                Ordering::Equal => s.from.tick.max(from.tick),
                Ordering::Greater => return None,
            };
            let end = match s.to {
                Some(end) if end.era < to.era => return None,
                Some(end) if end.era == to.era => end.tick.min(to.tick),
                _ => to.tick,
            };
            (start < end).then_some((start, end))
        };
        let mut clipped: Vec<(u64, u64)> = self.stretches(claim).filter_map(clip).collect();
        clipped.sort_unstable();
        let mut total = 0;
        let mut covered = 0;
        for (start, end) in clipped {
            total += end.saturating_sub(start.max(covered));
            covered = covered.max(end);
        }
        total
    }

    /// A claim as refusals and lists show it.
    pub fn held(&self, claim: &Claim, now: Instant) -> Held {
        let lease = self.leases.get(&Lease::Claim(claim.id.clone()));
        let expires_at = self
            .left(claim, now)
            .map(|left| now.plus(crate::facts::span::Span::from_ms(left)));
        Held {
            claim: claim.id.clone(),
            kind_of: claim.kind_of,
            scope: claim.scope.clone(),
            state: self.state(claim, now),
            story_angle: claim.story_angle.clone(),
            agent: claim.agent.clone(),
            owner: claim.owner.clone(),
            opened_at: claim.opened_at,
            seen_at: lease.map(|lease| lease.touched),
            expires_at,
        }
    }

    /// Whether a lock holds anything: unexpired, and its claim neither stale nor terminal (section 8).
    ///
    /// A lock that is older than its claim's fence was taken before the claim went stale and came back.
    pub fn holds(&self, lock: &Lock, now: Instant) -> bool {
        let lease = self.leases.get(&Lease::Lock(lock.path.key().to_owned()));
        let unexpired = lease.is_some_and(|lease| lease.fence == lock.fence && !lease.until.reached_by(now));
        let claim_lives = match &lock.holder {
            Holder::Name(_) => true,
            Holder::Claim(id) => self
                .claims
                .get(id)
                .is_some_and(|claim| claim.fence < lock.fence && self.state(claim, now).is_live()),
        };
        unexpired && claim_lives
    }

    /// When a lock ends.
    pub fn lock_expires(&self, lock: &Lock) -> Option<Instant> {
        self.leases
            .get(&Lease::Lock(lock.path.key().to_owned()))
            .map(|lease| lease.until)
    }

    /// The live locks that touch a path: on it, on a folder above it, and below it when `below`.
    pub fn locks_on<'w>(
        &'w self,
        path: &'w LogicalPath,
        below: bool,
        now: Instant,
    ) -> impl Iterator<Item = &'w Lock> {
        self.locks.values().filter(move |lock| {
            (path.starts_with(&lock.path) || below && lock.path.starts_with(path)) && self.holds(lock, now)
        })
    }

    /// Takes away what rests on answers that do not verify: such an answer is none (`hypervisor.md`, 9).
    ///
    /// What a human was made to allow falls back: rights of claims, gates of closes and of phases. The gates
    /// that something rests on are loaded with it.
    pub fn distrust(&mut self, trusts: &dyn Fn(&Gate) -> bool) {
        let refused = |gate: &&mut Gate| gate.answer.is_some() && !trusts(gate);
        for gate in self.gates.values_mut().filter(refused) {
            gate.answer = None;
            gate.deferred = false;
        }
        let gates = &self.gates;
        let said = |about: &About, kind: GateKind, subject: &str| {
            gates.values().any(|gate| {
                let same = gate.about == *about && gate.kind == kind && gate.subject == subject;
                same && gate.choice() == Some(Choice::Continue)
            })
        };
        for claim in self.claims.values_mut() {
            let own = About::Claim(claim.id.clone());
            let phase = claim
                .workflow
                .as_ref()
                .map(|of| About::Phase(of.run.clone(), of.phase.clone()));
            claim.rights.retain(|right| {
                let subject = match right {
                    Right::Kernel => "kernel",
                    Right::Personal => "personal",
                    Right::Delete(path) => path,
                };
                let of_phase = |about: &About| said(about, GateKind::Zone, subject);
                let deletes = matches!(right, Right::Delete(_))
                    && gates.values().any(|gate| {
                        gate.about == own
                            && gate.kind == GateKind::Zone
                            && gate.choice() == Some(Choice::Continue)
                    });
                said(&own, GateKind::Zone, subject) || deletes || phase.as_ref().is_some_and(of_phase)
            });
            if let Some(closing) = &mut claim.closing {
                closing
                    .allowed
                    .retain(|(kind, subject, _)| said(&own, *kind, subject));
            }
        }
        for phase in self.phases.values_mut() {
            let about = About::Phase(phase.run.clone(), phase.phase.id.as_str().to_owned());
            let before = |kind: GateKind| {
                self.runs
                    .get(&phase.run)
                    .is_some_and(|run| run.yes_to.contains(&kind))
            };
            phase
                .allowed
                .retain(|(kind, subject)| said(&about, *kind, subject) || before(*kind));
        }
    }

    /// The claims of which the caller is the owner (section 5).
    pub fn owned_by<'w>(&'w self, caller: &'w Caller) -> impl Iterator<Item = &'w Claim> {
        self.claims.values().filter(move |claim| owns(caller, claim))
    }
}

/// Whether a caller owns a claim: by its token, its host's session, or the process that owns it.
pub fn owns(caller: &Caller, claim: &Claim) -> bool {
    let by_token = caller.token.as_ref() == Some(&claim.token);
    let by_host = claim.owner.host_session.is_some() && claim.owner.host_session == caller.host_session;
    let by_process = claim
        .owner
        .process
        .as_ref()
        .is_some_and(|process| caller.chain.contains(process));
    by_token || by_host || by_process
}

/// The name of one in whose name a pause stands.
pub fn pauser_name(by: &Pauser) -> String {
    match by {
        Pauser::Claim(id) => id.to_string(),
        Pauser::User(name) => name.clone(),
    }
}

/// Names the green runs of one test command in one repository.
pub fn green_key(repo: &str, command: &str) -> String {
    format!("{repo}\n{command}")
}

/// What a store must load before a command can be decided: it may load too much, never too little.
#[derive(Clone, PartialEq, Debug)]
pub enum Pick {
    /// This claim, with its line.
    Claim(SessId),
    /// Ids that could be composed now with this slug, into [`World::taken`].
    Ids(String),
    /// Ids that contain this text, into [`World::taken`]: no claim is loaded, however many there are.
    IdsWith(String),
    /// Everything below this claim, with the locks and pending gates of each.
    Tree(SessId),
    /// Unended claims whose scope may meet this one, each with its line; where `trees`, with all below those
    /// that are stale.
    Rivals {
        /// The scope.
        scope: Scope,
        /// Whether descendants of stale ones come along.
        trees: bool,
    },
    /// Claims that the caller may own, each with its line.
    Caller(Caller),
    /// Locks on these paths, on folders above and on anything below.
    Locks(Vec<LogicalPath>),
    /// Every lock.
    AllLocks,
    /// Every claim that has not ended, with its line.
    Live,
    /// Claims of which anything was heard since this one was opened: among them all that ended since.
    Since(SessId),
    /// Every claim there ever was.
    AllClaims,
    /// A page of claims in the order of their ids, named in [`World::listed`].
    ClaimPage {
        /// Only those that have not ended.
        live: bool,
        /// The last one of the page before.
        after: Option<SessId>,
        /// How many at most.
        most: usize,
    },
    /// A page of locks in the order of their paths.
    LockPage {
        /// The key of the last path of the page before.
        after: Option<String>,
        /// How many at most.
        most: usize,
    },
    /// This gate and what it belongs to.
    Gate(GateId),
    /// The gates of this claim, and the last green run of the command of its close's evidence.
    GatesOf(SessId),
    /// Gates that wait for an answer.
    PendingGates,
    /// Gates whose answer waits for a pause to end.
    DeferredGates,
    /// The gates of this run's phases, pending ones and answered ones.
    GatesOfRun(RunId),
    /// Uncleared work whose scope may meet this one.
    Work(Scope),
    /// This work.
    WorkOf(WorkKey),
    /// These signals.
    Signals(Vec<SigId>),
    /// Unacknowledged signals to this session, or to the people.
    Mail(Option<SessId>),
    /// Signals that no one acknowledged yet, from anyone to anyone.
    AllMail,
    /// Signals of `BLOCKED_ON` that no one acknowledged yet, with the claims that sent them.
    Blockers,
    /// This run, with its pilot's line.
    Run(RunId),
    /// Everything below the pilot of this run.
    Crew(RunId),
    /// Every phase of this run, and the claims of each one's last attempt.
    Phases(RunId),
    /// These phases of this run, with their needs and the claim of the last attempt.
    Phase(RunId, Vec<String>),
    /// The phases of this run that have an attempt under way.
    Busy(RunId),
    /// Unfinished runs, and the last ones of plans of this name.
    RunsOf(String),
    /// Runs that have not ended.
    LiveRuns,
    /// Every run.
    AllRuns,
    /// The size of the last green run under this key.
    Green(String),
    /// The answer under this idempotency key.
    Key(String),
}

/// The picks of a command.
pub type Footprint = Vec<Pick>;
