//! How an event changes the world: the one fold from which every table is a shadow.

use crate::event::{Entry, Event};
use crate::facts::claim::{Claim, Closing, End, Evidence, Fence, Outcome, Right, Suspension};
use crate::facts::gate::{About, Choice, Gate, GateKind};
use crate::facts::id::SessId;
use crate::facts::run::Standing;
use crate::facts::span::Span;
use crate::facts::time::Instant;
use crate::facts::work::Work;
use crate::world::{Fact, Lease, Until, World, green_key};

/// How long a driver's hold on its run lasts without a sign of life.
pub const DRIVER_TTL: Span = Span::from_ms(30_000);

impl World {
    /// Takes one event in. Facts that an event speaks of must be there: a footprint loads them.
    pub fn apply(&mut self, entry: &Entry) {
        let at = entry.at;
        self.head = entry.seq;
        match &entry.event {
            Event::ClaimOpened(claim) => {
                self.fence = self.fence.max(claim.fence);
                let until = Until {
                    fence: claim.fence,
                    touched: at,
                    until: at.plus(claim.ttl),
                };
                self.set_lease(Lease::Claim(claim.id.clone()), until);
                self.claims.insert(claim.id.clone(), claim.clone());
                self.changed.insert(Fact::Claim(claim.id.clone()));
            }
            Event::ClaimRenewed { id, fence } => {
                let mut lease = None;
                self.claim(id, |claim| {
                    claim.fence = fence.unwrap_or(claim.fence);
                    claim.reaped = false;
                    lease = Some(Until {
                        fence: claim.fence,
                        touched: at,
                        until: at.plus(claim.ttl),
                    });
                });
                self.fence = self.fence.max(fence.unwrap_or_default());
                if let Some(lease) = lease {
                    self.set_lease(Lease::Claim(id.clone()), lease);
                }
            }
            Event::BaseNoted { id, repo, base } => self.claim(id, |claim| {
                claim.base.entry(repo.clone()).or_insert_with(|| base.clone());
            }),
            Event::RightGiven { id, right } => self.claim(id, |claim| {
                claim.rights.insert(right.clone());
            }),
            Event::ClaimReaped { id, .. } => self.claim(id, |claim| claim.reaped = true),
            Event::ClaimFailed { id, by, why } => self.claim(id, |claim| {
                claim.end = Some(End::Failed {
                    at,
                    by: by.clone(),
                    why: why.clone(),
                });
                claim.waiting = None;
                rest(claim, at);
            }),
            Event::ClaimPaused { id, by, why } => self.claim(id, |claim| {
                claim.pauses.insert(by.clone(), why.clone());
                suspend(claim, at);
            }),
            Event::ClaimResumed { id, by } => self.claim(id, |claim| {
                claim.pauses.remove(by);
                rest(claim, at);
            }),
            Event::CloseBegan { id, at_most, notes } => self.claim(id, |claim| {
                let closing = claim.closing.get_or_insert_with(|| Closing {
                    began_at: at,
                    at_most: Outcome::Ok,
                    notes: None,
                    evidence: None,
                    commits: Default::default(),
                    landings: Default::default(),
                    allowed: Default::default(),
                });
                closing.at_most = *at_most;
                closing.notes = notes.clone().or(closing.notes.take());
            }),
            Event::EvidenceTaken { id, evidence } => {
                self.closing(id, |closing| closing.evidence = Some(evidence.clone()));
            }
            Event::CloseCommitted { id, repo, commit } => self.closing(id, |closing| {
                closing.commits.insert(repo.clone(), commit.clone());
            }),
            Event::CloseLanded { id, repo, landing } => self.closing(id, |closing| {
                closing.landings.insert(repo.clone(), landing.clone());
            }),
            Event::ClaimClosed { id, result } => {
                self.claim(id, |claim| {
                    claim.end = Some(End::Closed { at });
                    claim.waiting = None;
                    claim.closing = None;
                    claim.result = Some(result.clone());
                    rest(claim, at);
                });
                let green = |evidence: &&Evidence| evidence.is_green();
                if let Some(Evidence {
                    repo,
                    command,
                    report: Some(report),
                    ..
                }) = result.tests.as_ref().filter(green)
                {
                    let key = green_key(repo, command);
                    self.greens.insert(key.clone(), report.total);
                    self.changed.insert(Fact::Green(key));
                }
            }

            Event::LockTaken(lock) => {
                let key = lock.path.key().to_owned();
                self.fence = self.fence.max(lock.fence);
                let until = Until {
                    fence: lock.fence,
                    touched: at,
                    until: at.plus(lock.ttl),
                };
                self.set_lease(Lease::Lock(key.clone()), until);
                self.changed.insert(Fact::Lock(key.clone()));
                self.locks.insert(key, lock.clone());
            }
            Event::LockReleased { path, .. } => {
                let key = path.key().to_owned();
                self.locks.remove(&key);
                let lease = Lease::Lock(key.clone());
                self.leases.remove(&lease);
                self.changed.insert(Fact::Lease(lease));
                self.changed.insert(Fact::Lock(key));
            }

            Event::WorkFailed {
                key,
                scope,
                why,
                by,
                tripped,
            } => {
                let work = self.works.entry(key.clone()).or_insert_with(|| Work {
                    key: key.clone(),
                    scope: scope.clone(),
                    fails: 0,
                    last: None,
                    last_at: None,
                    last_by: None,
                    tripped: false,
                });
                // Work that is done under ever other scopes is still one piece of work.
                if !work.scope.contains(scope)
                    && let Ok(both) = work.scope.union(scope)
                {
                    work.scope = both;
                }
                work.fails += 1;
                work.last_by.clone_from(by);
                work.last = Some(why.clone());
                work.last_at = Some(at);
                work.tripped |= *tripped;
                self.changed.insert(Fact::Work(key.clone()));
            }
            Event::WorkCleared { key, .. } => {
                self.works.remove(key);
                self.changed.insert(Fact::Work(key.clone()));
            }

            Event::GateOpened(gate) => {
                self.changed.insert(Fact::Gate(gate.id.clone()));
                match &gate.about {
                    About::Claim(id) => self.claim(id, |claim| {
                        claim.waiting = Some(gate.id.clone());
                        suspend(claim, at);
                    }),
                    About::Phase(run, phase) => {
                        self.phase(run, phase, |it| it.waiting = Some(gate.id.clone()))
                    }
                    About::Run(_) => {}
                }
                self.gates.insert(gate.id.clone(), gate.clone());
            }
            Event::GateAnswered { id, answer, deferred } => {
                let Some(gate) = self.gates.get_mut(id) else {
                    return;
                };
                gate.answer = Some(answer.clone());
                gate.deferred = *deferred;
                let gate = gate.clone();
                self.changed.insert(Fact::Gate(id.clone()));
                if !deferred {
                    self.take_effect(&gate, answer.choice, at);
                }
            }
            Event::GateTookEffect { id } => {
                let Some(gate) = self.gates.get_mut(id) else {
                    return;
                };
                gate.deferred = false;
                let gate = gate.clone();
                self.changed.insert(Fact::Gate(id.clone()));
                if let Some(choice) = gate.choice() {
                    self.take_effect(&gate, choice, at);
                }
            }
            Event::GateWithdrawn { id, .. } => {
                let Some(gate) = self.gates.get_mut(id) else {
                    return;
                };
                gate.withdrawn_at = Some(at);
                let about = gate.about.clone();
                self.changed.insert(Fact::Gate(id.clone()));
                match about {
                    About::Claim(claim) => self.claim(&claim, |claim| {
                        claim.waiting = None;
                        rest(claim, at);
                    }),
                    About::Phase(run, phase) => self.phase(&run, &phase, |it| it.waiting = None),
                    About::Run(_) => {}
                }
            }
            Event::Halted { why, by } => {
                self.halt.standing = Some((why.clone(), by.clone()));
                self.halt.stretches.push(Suspension { from: at, to: None });
                self.changed.insert(Fact::Halt);
            }
            Event::Thawed => {
                self.halt.standing = None;
                for stretch in self.halt.stretches.iter_mut().filter(|s| s.to.is_none()) {
                    stretch.to = Some(at);
                }
                self.changed.insert(Fact::Halt);
            }

            Event::SignalSent(signal) => {
                self.changed.insert(Fact::Signal(signal.id.clone()));
                self.signals.insert(signal.id.clone(), signal.clone());
            }
            Event::SignalAcked { id } => {
                if let Some(signal) = self.signals.get_mut(id) {
                    signal.acked_at.get_or_insert(at);
                    self.changed.insert(Fact::Signal(id.clone()));
                }
            }

            Event::RunStarted(run) => {
                self.fence = self.fence.max(run.driver);
                self.drive(run.id.clone(), run.driver, at);
                self.changed.insert(Fact::Run(run.id.clone()));
                self.runs.insert(run.id.clone(), run.clone());
            }
            Event::PhaseSet(phase) => {
                let key = (phase.run.clone(), phase.phase.id.as_str().to_owned());
                self.changed.insert(Fact::Phase(key.0.clone(), key.1.clone()));
                self.phases.insert(key, phase.clone());
            }
            Event::RunTaken { id, driver } => {
                self.fence = self.fence.max(*driver);
                self.drive(id.clone(), *driver, at);
                self.run(id, |run| run.driver = *driver);
            }
            Event::RunAdapted { id, digest, phases } => self.run(id, |run| {
                run.digest.clone_from(digest);
                run.phases.clone_from(phases);
            }),
            Event::AttemptBegan { run, phase, attempt } => self.phase(run, phase, |it| {
                it.attempts.push(attempt.clone());
                it.standing = Standing::Running;
                it.not_before = None;
            }),
            Event::AttemptEnded {
                run,
                phase,
                attempt,
                exit,
            } => self.phase(run, phase, |it| {
                if let Some(it) = it.attempts.iter_mut().find(|it| it.id == *attempt) {
                    it.exit = Some(exit.clone());
                    it.ended_at = Some(at);
                }
            }),
            Event::AttemptJudged {
                run,
                phase,
                attempt,
                outcome,
                why,
            } => self.phase(run, phase, |it| {
                if let Some(it) = it.attempts.iter_mut().find(|it| it.id == *attempt) {
                    it.outcome = Some(*outcome);
                    it.why.clone_from(why);
                }
            }),
            Event::PhaseAccepted { run, phase, outcome } => {
                self.phase(run, phase, |it| it.standing = Standing::Accepted(*outcome));
            }
            Event::PhaseSkipped { run, phase } => self.phase(run, phase, |it| {
                it.standing = Standing::Skipped;
                it.waiting = None;
            }),
            Event::PhaseRetried {
                run,
                phase,
                not_before,
                counted,
            } => self.phase(run, phase, |it| {
                it.standing = Standing::Pending;
                it.not_before = Some(*not_before);
                it.retries_used += u32::from(*counted);
                it.waiting = None;
            }),
            Event::PhaseFailed { run, phase } => self.phase(run, phase, |it| it.standing = Standing::Failed),
            Event::PhaseAllowed {
                run,
                phase,
                kind,
                subject,
            } => self.phase(run, phase, |it| {
                it.allowed.insert((*kind, subject.clone()));
                it.waiting = None;
            }),
            Event::LaunchesEnded { id } => self.run(id, |run| run.launches_ended = true),
            Event::RunLanded { id, landings } => self.run(id, |run| run.landings.clone_from(landings)),
            Event::RunEnded { id, end } => self.run(id, |run| {
                run.end = Some(*end);
                run.ended_at = Some(at);
            }),
        }
    }

    /// What an answer does to the claim that waited for it (section 6).
    fn take_effect(&mut self, gate: &Gate, choice: Choice, at: Instant) {
        let About::Claim(id) = &gate.about else { return };
        self.claim(id, |claim| {
            claim.waiting = None;
            rest(claim, at);
            if choice != Choice::Continue {
                return;
            }
            match (gate.kind, gate.subject.as_str()) {
                (GateKind::Zone, "kernel") => drop(claim.rights.insert(Right::Kernel)),
                (GateKind::Zone, "personal") => drop(claim.rights.insert(Right::Personal)),
                (GateKind::Zone, path) => drop(claim.rights.insert(Right::Delete(path.to_owned()))),
                _ => {}
            }
            if let Some(closing) = &mut claim.closing {
                closing
                    .allowed
                    .insert((gate.kind, gate.subject.clone(), gate.shown.clone()));
            }
        });
    }

    fn drive(&mut self, run: crate::facts::id::RunId, fence: Fence, at: Instant) {
        self.set_lease(
            Lease::Driver(run),
            Until {
                fence,
                touched: at,
                until: at.plus(DRIVER_TTL),
            },
        );
    }

    fn claim(&mut self, id: &SessId, change: impl FnOnce(&mut Claim)) {
        if let Some(claim) = self.claims.get_mut(id) {
            change(claim);
            self.changed.insert(Fact::Claim(id.clone()));
        }
    }

    fn closing(&mut self, id: &SessId, change: impl FnOnce(&mut Closing)) {
        self.claim(id, |claim| claim.closing.as_mut().map(change).unwrap_or_default());
    }

    fn run(&mut self, id: &crate::facts::id::RunId, change: impl FnOnce(&mut crate::facts::run::Run)) {
        if let Some(run) = self.runs.get_mut(id) {
            change(run);
            self.changed.insert(Fact::Run(id.clone()));
        }
    }

    fn phase(
        &mut self,
        run: &crate::facts::id::RunId,
        phase: &str,
        change: impl FnOnce(&mut crate::facts::run::PhaseRun),
    ) {
        if let Some(it) = self.phases.get_mut(&(run.clone(), phase.to_owned())) {
            change(it);
            self.changed.insert(Fact::Phase(run.clone(), phase.to_owned()));
        }
    }

    /// Pushes a lease on; a lease may only be extended by the fence that holds it.
    pub fn set_lease(&mut self, lease: Lease, until: Until) {
        self.changed.insert(Fact::Lease(lease.clone()));
        self.leases.insert(lease, until);
    }
}

/// Starts a stretch that does not count, unless one runs already.
fn suspend(claim: &mut Claim, at: Instant) {
    if claim.suspensions.last().is_none_or(|last| last.to.is_some()) {
        claim.suspensions.push(Suspension { from: at, to: None });
    }
}

/// Ends the stretch when neither gate nor own pause is left.
fn rest(claim: &mut Claim, at: Instant) {
    if claim.waiting.is_none() && claim.pauses.is_empty() {
        for stretch in claim.suspensions.iter_mut().filter(|s| s.to.is_none()) {
            stretch.to = Some(at);
        }
    }
}
