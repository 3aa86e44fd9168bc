//! The loop of a driver: what is next, done, and watched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant as Stopwatch};

use protocol::DRIVER_TTL;
use protocol::command::Command;
use protocol::facts::claim::{Claim, Fence};
use protocol::facts::gate::{About, Gate};
use protocol::facts::id::{AttemptId, GateId, SessId};
use protocol::facts::scope::Scope;
use protocol::facts::span::Span;
use protocol::facts::time::Instant;
use protocol::refusal::Refusal;
use protocol::rules::Asked;
use protocol::rules::run::{Step, next, phase_of};
use protocol::world::{Lease, Pick, World};
use store::Only;

use super::begin::Began;
use super::{Driven, Driver, Hand, News, Trouble};

/// How often the loop looks again though nothing was heard: it renews its leases then.
const TICK: Duration = Duration::from_millis(1_000);
/// How often leases are pushed on.
const RENEW: Duration = Duration::from_secs(8);
/// How long a child has between the request to end and its end by force.
pub(super) const GRACE: Span = Span::from_ms(5_000);
/// How many entries of the journal are read at a time.
const PAGE: usize = 1_000;

pub(super) type Done = (AttemptId, Result<(), Trouble>);

/// Drives until the run is over, or stands at gates alone.
pub(super) fn drive(
    driver: &Driver<'_>,
    hand: &mut Hand<'_>,
    finished: Receiver<Done>,
    spawn: impl FnMut(AttemptId, String) -> Result<(), Trouble>,
) -> Result<Driven, Trouble> {
    let (world, now) = whole(driver, hand)?;
    let mut it = Loop {
        driver,
        world,
        now,
        busy: BTreeMap::new(),
        paused: BTreeMap::new(),
        ended: BTreeSet::new(),
        told: BTreeSet::new(),
        renewed: None,
        finished,
    };
    it.turn(hand, spawn)
}

/// Looks at all of the run: once, since the journal tells what changes afterwards.
fn whole(driver: &Driver<'_>, hand: &mut Hand<'_>) -> Result<(World, Instant), Trouble> {
    let run = &driver.run;
    let mut picks = vec![
        Pick::Run(run.clone()),
        Pick::Crew(run.clone()),
        Pick::Phases(run.clone()),
        Pick::GatesOfRun(run.clone()),
    ];
    let (world, _) = hand.look(&picks)?;
    let of_run = world.phases.values().filter(|it| it.run == *run);
    let scope: Vec<&String> = of_run.flat_map(|it| &it.phase.scope).collect();
    picks.extend(
        Scope::parse(scope, driver.ground.policy.fold)
            .ok()
            .map(Pick::Work),
    );
    hand.look(&picks)
}

struct Loop<'d, 'g> {
    driver: &'d Driver<'g>,
    /// The facts of the run, kept up by the journal. What is decided is decided at the door all the same.
    world: World,
    now: Instant,
    /// Attempts that a thread of ours sees through, with their phases.
    busy: BTreeMap<AttemptId, String>,
    /// Whether the children that run were suspended, as far as we did it.
    paused: BTreeMap<SessId, bool>,
    /// Claims whose children were asked to end.
    ended: BTreeSet<SessId>,
    /// What was told already: gates, findings by phase, troubles.
    told: BTreeSet<String>,
    renewed: Option<Stopwatch>,
    finished: Receiver<Done>,
}

impl Loop<'_, '_> {
    fn turn(
        &mut self,
        hand: &mut Hand<'_>,
        mut spawn: impl FnMut(AttemptId, String) -> Result<(), Trouble>,
    ) -> Result<Driven, Trouble> {
        let driver = self.driver;
        loop {
            self.bury()?;
            self.catch_up(hand)?;
            let Some(run) = self.world.runs.get(&driver.run) else {
                let id = driver.run.to_string();
                return Err(Refusal::RunUnknown { id }.into());
            };
            if run.driver != driver.fence {
                let run = driver.run.clone();
                return Err(Refusal::RunTaken { run }.into());
            }
            if let Some(end) = run.end
                && self.busy.is_empty()
            {
                return Ok(Driven::Over(end));
            }
            self.renew(hand)?;
            self.mind()?;
            let gates = self.tell_gates();
            let asked = Asked {
                world: &self.world,
                caller: &driver.ground.caller,
                policy: &driver.ground.policy,
                now: self.now,
            };
            let (mut moved, mut sleep) = (false, None);
            for step in next(asked, &driver.run) {
                match step {
                    Step::Attend(phase, attempt) => {
                        if self.busy.insert(attempt.clone(), phase.clone()).is_none() {
                            spawn(attempt, phase)?;
                        }
                    }
                    Step::Begin(phase) => {
                        self.tell_findings(&phase);
                        match driver.begin(hand, &self.world, self.now, &phase)? {
                            Began::Yes => moved = true,
                            // The door knows better: look at all of it again, and not at once.
                            Began::No(why) => {
                                (self.world, self.now) = whole(driver, hand)?;
                                self.tell(&phase, why);
                            }
                        }
                        // What began changes what may begin: look again.
                        break;
                    }
                    Step::Ask(question) => {
                        moved = true;
                        driver.ask(hand, &self.world, &question)?;
                    }
                    Step::Adapt => {
                        match driver.adapt(hand, &self.world)? {
                            Began::Yes => moved = true,
                            Began::No(why) => self.tell("plan", why),
                        }
                        break;
                    }
                    Step::Finish if self.busy.is_empty() => {
                        moved = true;
                        driver.finish(hand, &self.world)?;
                        break;
                    }
                    Step::End(end) if self.busy.is_empty() => {
                        moved = true;
                        let (run, driver) = (driver.run.clone(), driver.fence);
                        hand.submit(&Command::EndRun { run, driver, end })?;
                        break;
                    }
                    Step::Finish | Step::End(_) => {}
                    Step::Sleep(until) => sleep = Some(until),
                }
            }
            if moved {
                continue;
            }
            if !driver.wait_at_gates && sleep.is_none() && !gates.is_empty() && self.is_stuck() {
                return Ok(Driven::Gated(gates));
            }
            let left = |until: Instant| Duration::from_millis(until.tick.saturating_sub(self.now.tick));
            let due = sleep.map_or(TICK, left);
            self.rest(hand, due.min(TICK))?;
        }
    }

    /// Takes note of the threads that have come back.
    fn bury(&mut self) -> Result<(), Trouble> {
        while let Ok((attempt, result)) = self.finished.try_recv() {
            self.busy.remove(&attempt);
            result?;
        }
        Ok(())
    }

    /// Takes in what the journal says since the last look.
    fn catch_up(&mut self, hand: &mut Hand<'_>) -> Result<(), Trouble> {
        loop {
            let (base, now) = hand.look(&Vec::new())?;
            self.now = now;
            if base.head <= self.world.head {
                return Ok(());
            }
            for entry in hand.store.journal(self.world.head, PAGE, &Only::default())? {
                self.world.apply(&entry);
            }
            let run = &self.driver.run;
            let of_run = |claim: &Claim| claim.workflow.as_ref().is_some_and(|of| of.run == *run);
            self.world
                .claims
                .retain(|_, claim| !claim.is_terminal() || of_run(claim) || claim.workflow.is_none());
            self.world.signals.clear();
            self.world.locks.clear();
            self.world.changed.clear();
        }
    }

    /// Waits for news of the store or of a thread of ours.
    fn rest(&mut self, hand: &mut Hand<'_>, at_most: Duration) -> Result<(), Trouble> {
        let began = Stopwatch::now();
        while began.elapsed() < at_most {
            let slice = Duration::from_millis(50).min(at_most.saturating_sub(began.elapsed()));
            if hand.store.wait(self.world.head, slice)? > self.world.head {
                return Ok(());
            }
            if let Ok((attempt, result)) = self.finished.try_recv() {
                self.busy.remove(&attempt);
                return result;
            }
        }
        Ok(())
    }

    /// Pushes on the leases of the run, its pilot and its live children: each sign of life for its own.
    fn renew(&mut self, hand: &mut Hand<'_>) -> Result<(), Trouble> {
        if self.renewed.is_some_and(|at| at.elapsed() < RENEW) {
            return Ok(());
        }
        let driver = self.driver;
        let held = hand
            .store
            .touch(&[(Lease::Driver(driver.run.clone()), driver.fence)], DRIVER_TTL)?;
        let pilot = self.world.runs.get(&driver.run).map(|run| run.pilot.clone());
        let mut by_ttl: BTreeMap<Span, Vec<(Lease, Fence)>> = BTreeMap::new();
        for claim in self.world.claims.values().filter(|claim| !claim.is_terminal()) {
            let of_run = claim.workflow.as_ref().is_some_and(|of| of.run == driver.run);
            if of_run || pilot.as_ref() == Some(&claim.id) {
                let lease = (Lease::Claim(claim.id.clone()), claim.fence);
                by_ttl.entry(claim.ttl).or_default().push(lease);
            }
        }
        for (ttl, leases) in by_ttl {
            hand.store.touch(&leases, ttl)?;
        }
        // A store that was busy is asked again at the next turn.
        if held.iter().all(|held| *held) {
            self.renewed = Some(Stopwatch::now());
        }
        Ok(())
    }

    /// Suspends, continues and ends the children that run, as their claims say.
    fn mind(&mut self) -> Result<(), Trouble> {
        let children: Vec<_> = self
            .driver
            .children()
            .iter()
            .map(|(id, child)| (id.clone(), child.clone()))
            .collect();
        self.paused
            .retain(|id, _| children.iter().any(|(other, _)| other == id));
        for (id, child) in children {
            let Some(claim) = self.world.claims.get(&id) else {
                continue;
            };
            if claim.is_terminal() && claim.result.is_none() {
                if !self.ended.contains(&id) {
                    child.end(GRACE)?;
                    self.ended.insert(id);
                }
                continue;
            }
            let paused = !self.world.pauses(claim).is_empty();
            // Of a child that was taken back nobody knows how the last driver left it.
            if self.paused.get(&id) != Some(&paused) {
                if paused {
                    child.suspend()?
                } else {
                    child.resume()?
                };
                self.paused.insert(id, paused);
            }
        }
        Ok(())
    }

    /// Whether every attempt under way waits for a human.
    fn is_stuck(&self) -> bool {
        let waits = |phase: &String| {
            let it = phase_of(&self.world, &self.driver.run, phase);
            it.is_none_or(|it| {
                let claim = it.last().and_then(|last| self.world.claims.get(&last.claim));
                it.waiting.is_some() || claim.is_some_and(|claim| claim.waiting.is_some())
            })
        };
        self.busy.values().all(waits)
    }

    /// Whether a gate belongs to this run: to one of its phases, to its pilot or to an attempt.
    fn is_ours(&self, gate: &Gate) -> bool {
        let run = &self.driver.run;
        match &gate.about {
            About::Phase(of, _) | About::Run(of) => of == run,
            About::Claim(id) => {
                let is_pilot = self.world.runs.get(run).is_some_and(|run| run.pilot == *id);
                let workflow = self
                    .world
                    .claims
                    .get(id)
                    .and_then(|claim| claim.workflow.as_ref());
                is_pilot || workflow.is_some_and(|of| of.run == *run)
            }
        }
    }

    /// Tells gates that were not told yet; gives all that wait.
    fn tell_gates(&mut self) -> Vec<GateId> {
        let pending = self.world.gates.values().filter(|gate| gate.is_pending());
        let ours: Vec<Gate> = pending.filter(|gate| self.is_ours(gate)).cloned().collect();
        let ids = ours.iter().map(|gate| gate.id.clone()).collect();
        for gate in ours {
            if self.told.insert(gate.id.to_string()) {
                self.driver.face.hear(News::Gate(Box::new(gate)));
            }
        }
        ids
    }

    /// Tells what a phase's drift only tells.
    fn tell_findings(&mut self, phase: &str) {
        for what in self.driver.findings(&self.world, phase) {
            self.tell(phase, Some(what));
        }
    }

    /// Tells something once.
    fn tell(&mut self, phase: &str, what: Option<String>) {
        let Some(what) = what else { return };
        if self.told.insert(format!("{phase} {what}")) {
            let phase = phase.to_owned();
            self.driver.face.hear(News::Told { phase, what });
        }
    }
}
