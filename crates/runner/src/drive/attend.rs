//! Seeing one attempt through: worktree, baseline, agent, close, judgement. Any step may find itself done.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant as Stopwatch;

use git::{Door, Oid, Repository};
use protocol::command::{Changed, Command};
use protocol::facts::claim::{Claim, Outcome};
use protocol::facts::gate::GateKind;
use protocol::facts::id::{AttemptId, SessId};
use protocol::facts::path::LogicalPath;
use protocol::facts::plan::{Launch, Phase, WorktreeSetup};
use protocol::facts::run::{Exit, PhaseRun, Standing};
use protocol::refusal::Refusal;
use protocol::rules::drift;
use protocol::rules::run::{phase_of, said_by};
use protocol::world::{Pick, World};

use super::begin::{Place, branch_of, place_of};
use super::{Driver, Hand, LISTEN, News, Trouble, brief, mortal};
use crate::close::{self, CloseAsk, CloseError, Closed};
use crate::launch::{self, Adopted, Brief, Child, Limits, Spec};
use crate::token::{self, Token};

/// One attempt with what it needs.
struct Attempt<'a> {
    it: &'a PhaseRun,
    claim: Claim,
    place: Place,
    worktree: PathBuf,
}

impl Attempt<'_> {
    fn phase(&self) -> &Phase {
        &self.it.phase
    }

    fn id(&self) -> &str {
        self.it.phase.id.as_str()
    }

    fn base(&self) -> Option<Oid> {
        self.claim
            .base
            .get(&self.place.key)
            .and_then(|base| Oid::parse(base.commit.as_deref()?))
    }
}

impl Driver<'_> {
    /// Sees an attempt through to its judgement, from wherever it stands.
    pub(super) fn attend(&self, hand: &mut Hand<'_>, phase: &str, id: &AttemptId) -> Result<(), Trouble> {
        let (world, _) = hand.look(&self.attempt_picks(phase))?;
        let Some(it) = phase_of(&world, &self.run, phase) else {
            return Ok(());
        };
        let Some(fact) = it.attempts.iter().find(|attempt| attempt.id == *id) else {
            return Ok(());
        };
        let Some(claim) = world.claims.get(&fact.claim).cloned() else {
            return Ok(());
        };
        let worktree = self.ground.worktree_dir(&claim.id);
        let place = place_of(self.ground, &it.phase)?;
        let attempt = Attempt {
            it,
            claim,
            place,
            worktree,
        };

        let exit = match &fact.exit {
            Some(exit) => exit.clone(),
            None => {
                let Some(exit) = self.run_child(hand, &world, &attempt, id)? else {
                    return Ok(());
                };
                let ended = hand.submit(&Command::EndAttempt {
                    run: self.run.clone(),
                    driver: self.fence,
                    phase: phase.to_owned(),
                    attempt: id.clone(),
                    exit: exit.clone(),
                });
                match ended {
                    // Cancelled or aborted meanwhile: its claims are failed, nothing is left to see through.
                    Err(Trouble::Refused(refusal)) if matches!(*refusal, Refusal::RunOver { .. }) => {
                        return Ok(());
                    }
                    ended => drop(ended?),
                }
                exit
            }
        };
        self.settle(hand, &attempt, id, &exit)
    }

    fn attempt_picks(&self, phase: &str) -> Vec<Pick> {
        vec![
            Pick::Run(self.run.clone()),
            Pick::Phase(self.run.clone(), vec![phase.to_owned()]),
        ]
    }

    /// Starts the attempt's child, or takes back the one that runs; gives how it ended.
    ///
    /// `None`: the attempt was taken away before anything was started.
    fn run_child(
        &self,
        hand: &mut Hand<'_>,
        world: &World,
        attempt: &Attempt<'_>,
        id: &AttemptId,
    ) -> Result<Option<Exit>, Trouble> {
        let dir = self.ground.attempt_dir(&attempt.claim.id);
        let child = match launch::adopt(&dir)? {
            Adopted::Ended(ending) => return Ok(Some(ending.exit)),
            Adopted::Vanished => return Ok(Some(Exit::Vanished)),
            Adopted::Running(child) => {
                let (phase, claim) = (attempt.id().to_owned(), attempt.claim.id.clone());
                self.face.hear(News::TakenBack { phase, claim });
                child
            }
            Adopted::NeverStarted => {
                match self.is_free(hand, attempt)? {
                    Free::Yes => {}
                    Free::Ended => return Ok(Some(Exit::NotStarted("its claim ended first".to_owned()))),
                    Free::GivenUp => return Ok(None),
                }
                if let Err(why) = self.prepare(attempt) {
                    return Ok(Some(Exit::NotStarted(why)));
                }
                match self.baseline(hand, attempt)? {
                    Baseline::Go => {}
                    Baseline::Gone => return Ok(None),
                }
                match self.is_free(hand, attempt)? {
                    Free::Yes => {}
                    Free::Ended => return Ok(Some(Exit::NotStarted("its claim ended first".to_owned()))),
                    Free::GivenUp => return Ok(None),
                }
                let token = match Token::find(&self.ground.state, &attempt.claim.id) {
                    Ok(Some(token)) => token.to_environment(),
                    Ok(None) => return Ok(Some(Exit::NotStarted("its token is gone".to_owned()))),
                    Err(error) => return Ok(Some(Exit::NotStarted(format!("its token is gone: {error}")))),
                };
                let spec = match self.spec(world, attempt, id, &dir, &token) {
                    Ok(spec) => spec,
                    Err(why) => return Ok(Some(Exit::NotStarted(why))),
                };
                mortal::step();
                let started = launch::start(&spec);
                mortal::step();
                let child = match started {
                    Ok(child) => child,
                    Err(error) => return Ok(Some(Exit::NotStarted(error.to_string()))),
                };
                self.face.hear(News::Started {
                    phase: attempt.id().to_owned(),
                    claim: attempt.claim.id.clone(),
                    log: child.log_path(),
                });
                child
            }
        };
        Ok(self.watch(attempt, child))
    }

    /// Waits while the claim is paused or at a gate: nothing is made or started for it then.
    fn is_free(&self, hand: &mut Hand<'_>, attempt: &Attempt<'_>) -> Result<Free, Trouble> {
        loop {
            let (world, _) = hand.look(&vec![Pick::Claim(attempt.claim.id.clone())])?;
            match world.claims.get(&attempt.claim.id) {
                None => return Ok(Free::Ended),
                Some(claim) if claim.is_terminal() => return Ok(Free::Ended),
                Some(claim) if claim.waiting.is_none() && world.pauses(claim).is_empty() => {
                    return Ok(Free::Yes);
                }
                Some(_) if self.is_given_up() => return Ok(Free::GivenUp),
                Some(_) => drop(hand.store.wait(world.head, LISTEN)?),
            }
        }
    }

    /// Makes the worktree of the attempt and makes it fit to work in.
    fn prepare(&self, attempt: &Attempt<'_>) -> Result<(), String> {
        let began = Stopwatch::now();
        let base = attempt.base().ok_or("its base is unknown")?;
        let door = &attempt.place.door;
        let branch = branch_of(&attempt.claim.id);
        let mut tries = 0;
        while let Err(error) = make(door, &attempt.worktree, &branch, &base) {
            // The git of a driver that was killed may still be at work on it.
            tries += 1;
            if tries == TRIES || self.is_given_up() {
                return Err(error.to_string());
            }
            std::thread::sleep(LISTEN);
        }
        let setup = attempt.phase().worktree.as_ref().unwrap_or(&self.ground.worktree);
        self.furnish(attempt, setup)?;
        if *setup != WorktreeSetup::default() {
            let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.face.hear(News::Prepared {
                phase: attempt.id().to_owned(),
                took_ms,
            });
        }
        Ok(())
    }

    /// Links, copies and runs what `worktree:` says; nothing of zone `secret` is linked or copied.
    fn furnish(&self, attempt: &Attempt<'_>, setup: &WorktreeSetup) -> Result<(), String> {
        let home = attempt
            .place
            .door
            .repository()
            .main_checkout()
            .map(Path::to_owned);
        for (paths, link) in [(&setup.link, true), (&setup.copy, false)] {
            for path in paths {
                let home = home
                    .as_deref()
                    .ok_or("a bare repository has nothing to link or copy")?;
                let (from, to) = (home.join(path), attempt.worktree.join(path));
                let logical = LogicalPath::parse(path, self.ground.policy.fold)
                    .map_err(|_| format!("worktree: {path:?} is no path below the repository"))?;
                if self.ground.policy.zones.zone_of(&logical) == protocol::facts::zone::Zone::Secret {
                    return Err(format!(
                        "worktree: {path} is in zone secret: it is neither linked nor copied"
                    ));
                }
                if to.symlink_metadata().is_ok() || from.symlink_metadata().is_err() {
                    continue;
                }
                if let Some(folder) = to.parent() {
                    std::fs::create_dir_all(folder).map_err(|error| format!("worktree: {path}: {error}"))?;
                }
                let done = if link {
                    std::os::unix::fs::symlink(&from, &to)
                } else {
                    copy(&from, &to)
                };
                done.map_err(|error| format!("worktree: {path}: {error}"))?;
            }
        }
        let Some(command) = &setup.setup else {
            return Ok(());
        };
        let ran = self
            .quietly(attempt, command, "setup")
            .map_err(|trouble| trouble.to_string())?;
        if ran.exit.is_success() {
            return Ok(());
        }
        let said = ran.tail.lines().last().unwrap_or_default().to_owned();
        Err(format!(
            "worktree.setup: {command}: {}: {said}",
            said_by(&ran.exit)
        ))
    }

    fn quietly(&self, attempt: &Attempt<'_>, command: &str, name: &str) -> Result<launch::Output, Trouble> {
        // A folder for each try: what a killed driver left of the last one stays beside it.
        let folder = self.ground.state.join("quiet");
        let mark = crate::random::bytes::<8>().map_err(|error| Trouble::Io("name", folder.clone(), error))?;
        Ok(launch::run_quietly(launch::Quiet {
            dir: folder.join(format!(
                "{}-{name}-{}",
                attempt.claim.id,
                crate::random::hex(&mark)
            )),
            shim: self.ground.shim.clone(),
            command: launch::Command::Shell(command.to_owned()),
            cwd: attempt.worktree.join(&attempt.place.inside),
            base: launch::Base::Fixed,
            env: Vec::new(),
            limits: Limits::default(),
        })?)
    }

    /// Asks a human when the tests fail before the agent has touched anything.
    fn baseline(&self, hand: &mut Hand<'_>, attempt: &Attempt<'_>) -> Result<Baseline, Trouble> {
        let Some(tests) = self
            .tests_of(attempt.phase())
            .filter(|_| attempt.phase().baseline)
        else {
            return Ok(Baseline::Go);
        };
        let tree = attempt.base().map(|base| base.to_string()).unwrap_or_default();
        let subject = format!(
            "baseline:{}",
            &blake3::hash(format!("{tree}\n{}", tests.run).as_bytes()).to_hex()[..16]
        );
        let allowed = |it: &PhaseRun| it.allowed.contains(&(GateKind::Review, subject.clone()));
        if allowed(attempt.it) {
            return Ok(Baseline::Go);
        }
        let known_green = self
            .ground
            .state
            .join("baselines")
            .join(&subject["baseline:".len()..]);
        if known_green.exists() {
            return Ok(Baseline::Go);
        }
        let ran = self.quietly(attempt, &tests.run, "baseline")?;
        if ran.exit.is_success() {
            // A hint only: without it the next phase looks for itself.
            let folder = known_green.parent().map(std::fs::create_dir_all);
            let _ = folder.map(|_| std::fs::write(&known_green, b""));
            return Ok(Baseline::Go);
        }
        let said: Vec<(String, String)> = ran
            .tail
            .lines()
            .rev()
            .take(3)
            .map(|line| ("Output".to_owned(), line.to_owned()))
            .collect();
        hand.submit(&Command::AskPhase {
            run: self.run.clone(),
            driver: self.fence,
            phase: attempt.id().to_owned(),
            kind: GateKind::Review,
            subject: subject.clone(),
            why: format!(
                "`{}` fails before the agent starts: {}",
                tests.run,
                said_by(&ran.exit)
            ),
            known: said,
            shown: String::new(),
        })?;
        loop {
            let (world, _) = hand.look(&self.attempt_picks(attempt.id()))?;
            let Some(it) = phase_of(&world, &self.run, attempt.id()) else {
                return Ok(Baseline::Gone);
            };
            if allowed(it) {
                return Ok(Baseline::Go);
            }
            let claim_lives = world
                .claims
                .get(&attempt.claim.id)
                .is_some_and(|claim| !claim.is_terminal());
            let is_over = self.is_over(&world) || self.is_given_up();
            if it.standing != Standing::Running || !claim_lives || is_over {
                return Ok(Baseline::Gone);
            }
            hand.store.wait(world.head, LISTEN)?;
        }
    }

    fn is_over(&self, world: &World) -> bool {
        world
            .runs
            .get(&self.run)
            .is_none_or(|run| run.end.is_some() || run.driver != self.fence)
    }

    /// What is to be started, and with what.
    fn spec(
        &self,
        world: &World,
        attempt: &Attempt<'_>,
        id: &AttemptId,
        dir: &Path,
        secret: &str,
    ) -> Result<Spec, String> {
        let phase = attempt.phase();
        let (command, as_argument) = self.command(phase)?;
        let zones: Vec<String> = drift::zones_of(&self.ground.policy, phase)
            .iter()
            .map(ToString::to_string)
            .collect();
        let before: Vec<String> = phase
            .needs
            .iter()
            .filter_map(|need| before(world, self, need.as_str()))
            .collect();
        let text = brief(phase, &attempt.claim, &zones, &before);
        let env =
            |name: &str, value: &dyn AsRef<std::ffi::OsStr>| (name.to_owned(), value.as_ref().to_owned());
        Ok(Spec {
            dir: dir.to_owned(),
            shim: self.ground.shim.clone(),
            command: launch::Command::Shell(command),
            cwd: attempt.worktree.join(&attempt.place.inside),
            base: launch::Base::Fixed,
            env: vec![
                env("BRAIN_SESSION", &attempt.claim.id.as_str()),
                env(token::VARIABLE, &secret),
                env("BRAIN_ROOT", &self.ground.root),
                env("BRAIN_ATTEMPT", &id.as_str()),
            ],
            masked: vec![token::VARIABLE.to_owned()],
            brief: if as_argument {
                Brief::Argument(OsString::from(text))
            } else {
                Brief::Stdin(text.into_bytes())
            },
            limits: Limits {
                time: phase.timeout,
                idle: phase.idle,
                output: phase.output.map(|size| size.as_bytes()),
                memory: phase.memory.map(|size| size.as_bytes()),
                ..Limits::default()
            },
        })
    }

    /// The shell command of a phase, and whether its brief is an argument.
    fn command(&self, phase: &Phase) -> Result<(String, bool), String> {
        let launch = phase
            .run
            .clone()
            .or_else(|| self.ground.runner.clone().map(Launch::Runner));
        match launch {
            Some(Launch::Shell(command)) => Ok((command, false)),
            Some(Launch::Runner(name)) => match self.ground.runners.get(&name) {
                Some(runner) => Ok((runner.command.clone(), runner.brief_as_argument)),
                None => Err(format!(
                    "the runner {name} is not configured: write `runners: {{{name}: {{command: …}}}}` in brain.yml, \
                     or a shell command as `run:`"
                )),
            },
            None => Err(
                "nothing says what does it: write `run:` in the phase, or `runner:` in brain.yml".to_owned(),
            ),
        }
    }

    /// Waits for the child, while the loop pauses and ends it; nothing when the loop has come back first.
    fn watch(&self, attempt: &Attempt<'_>, child: Child) -> Option<Exit> {
        let child = Arc::new(child);
        let id = &attempt.claim.id;
        self.children().insert(id.clone(), Arc::clone(&child));
        let ending = loop {
            if let Some(ending) = child.wait(Some(Stopwatch::now() + LISTEN)) {
                break Some(ending);
            }
            if self.is_given_up() {
                break None;
            }
        };
        self.children().remove(id);
        let ending = ending?;
        self.face.hear(News::Ended {
            phase: attempt.id().to_owned(),
            how: said_by(&ending.exit),
            ran_ms: ending.ran_ms,
        });
        Some(ending.exit)
    }

    /// Closes the claim of an ended child, if it is open, and has the attempt judged.
    fn settle(
        &self,
        hand: &mut Hand<'_>,
        attempt: &Attempt<'_>,
        id: &AttemptId,
        exit: &Exit,
    ) -> Result<(), Trouble> {
        let (refused, known) = match self.close(hand, attempt, exit)? {
            Shut::Yes => (None, Vec::new()),
            Shut::No { why, known } => (Some(why), known),
            Shut::GivenUp => return Ok(()),
        };
        let changed = if refused.is_some() {
            Vec::new()
        } else {
            self.changed(attempt)?
        };
        let judged = hand.submit(&Command::JudgeAttempt {
            run: self.run.clone(),
            driver: self.fence,
            phase: attempt.id().to_owned(),
            attempt: id.clone(),
            refused,
            known,
            changed,
        });
        match judged {
            // The run was cancelled or aborted meanwhile: its claims are failed, nothing is left to judge.
            Err(Trouble::Refused(refusal)) if matches!(*refusal, Refusal::RunOver { .. }) => return Ok(()),
            other => drop(other?),
        }
        let (world, _) = hand.look(&self.attempt_picks(attempt.id()))?;
        let claim = world.claims.get(&attempt.claim.id);
        let outcome = phase_of(&world, &self.run, attempt.id())
            .and_then(|it| it.attempts.iter().find(|it| it.id == *id))
            .and_then(|it| it.outcome)
            .unwrap_or(Outcome::Failed);
        let result =
            claim.and_then(|claim| claim.result.as_ref().map(|result| close::summary(claim, result)));
        self.face.hear(News::Settled {
            phase: attempt.id().to_owned(),
            outcome,
            summary: result.unwrap_or_default(),
        });
        if let Some(claim) = claim.filter(|claim| claim.is_terminal()) {
            self.tidy(&attempt.place, claim);
        }
        Ok(())
    }

    /// Takes away what a claim that ended needs no more: its token, and the worktree of work that is landed.
    pub(super) fn tidy(&self, place: &Place, claim: &Claim) {
        mortal::step();
        // A token opens nothing of a claim that ended, so one that stays does no harm.
        let _ = Token::forget(&self.ground.state, &claim.id);
        let landed = claim
            .result
            .as_ref()
            .is_some_and(|result| result.status == Outcome::Ok);
        if landed
            && let Some(theme) = &claim.theme_branch
            && let Ok(door) = self.ground.coordinator(place.door.repository().clone())
        {
            // A worktree with anything else in it is kept.
            let _ = door.worktree_remove(&self.ground.worktree_dir(&claim.id), theme);
        }
    }

    /// Closes the attempt's claim; says whether it did.
    fn close(&self, hand: &mut Hand<'_>, attempt: &Attempt<'_>, exit: &Exit) -> Result<Shut, Trouble> {
        let id = &attempt.claim.id;
        let at_most = if exit.is_success() {
            Outcome::Ok
        } else {
            Outcome::Failed
        };
        let notes = (!exit.is_success()).then(|| said_by(exit));
        loop {
            let (world, _) = hand.look(&vec![Pick::Claim(id.clone()), Pick::Run(self.run.clone())])?;
            let Some(claim) = world.claims.get(id) else {
                return Ok(Shut::Yes);
            };
            if claim.is_terminal() || self.is_over(&world) {
                return Ok(Shut::Yes);
            }
            if self.is_given_up() {
                return Ok(Shut::GivenUp);
            }
            // Nothing ran, so there is nothing to look over, and perhaps no place to look at.
            if let Exit::NotStarted(_) = exit {
                let (why, known) = (said_by(exit), Vec::new());
                return Ok(Shut::No { why, known });
            }
            if claim.waiting.is_some() || !world.pauses(claim).is_empty() {
                hand.store.wait(world.head, LISTEN)?;
                continue;
            }
            let ask = CloseAsk {
                at_most,
                notes: notes.clone(),
                ..CloseAsk::of(id.clone())
            };
            match close::close(&mut self.ground.door(&mut *hand.store), &ask) {
                Ok(Closed::Done(..) | Closed::Already(_)) => return Ok(Shut::Yes),
                Ok(Closed::Waiting(_)) => {}
                Err(CloseError::Refused(refusal)) => match refusal {
                    // A gate or a pause came between: wait for its end and go on.
                    Refusal::GatePending { .. } | Refusal::Halted { .. } => {}
                    refusal => {
                        let (why, known) = (refusal.code().to_owned(), refusal.known());
                        let phase = attempt.id().to_owned();
                        self.face.hear(News::Refused {
                            phase,
                            why: Box::new(refusal),
                        });
                        return Ok(Shut::No { why, known });
                    }
                },
                Err(CloseError::Fault(fault)) => return Err(Trouble::Store(fault)),
                Err(other) => {
                    let (why, known) = (other.to_string(), Vec::new());
                    return Ok(Shut::No { why, known });
                }
            }
            hand.store.wait(world.head, LISTEN)?;
        }
    }

    /// What the attempt really changed, for the look at its drift.
    ///
    /// What cannot be compared is an error and never "nothing": the attempt is judged when it can be.
    fn changed(&self, attempt: &Attempt<'_>) -> Result<Vec<Changed>, Trouble> {
        let Some(tree) = Repository::at(&attempt.worktree) else {
            // It was never made, so nothing was written in it.
            return Ok(Vec::new());
        };
        let opening = git::Opening {
            commit: attempt.base(),
            dirty: Default::default(),
        };
        let changes = self.ground.coordinator(tree)?.changes(&opening)?;
        let logical = |path: &Path| {
            let key = attempt.place.key.as_str();
            let below = if key == "." {
                path.to_owned()
            } else {
                Path::new(key).join(path)
            };
            LogicalPath::from_tree(&below.to_string_lossy(), self.ground.policy.fold).ok()
        };
        let facts = changes.into_iter().filter_map(|change| {
            let path = logical(&change.path)?;
            Some(Changed {
                path,
                added: change.is_added(),
                deleted: change.is_deleted(),
            })
        });
        Ok(facts.collect())
    }
}

/// How often a worktree is tried to be made.
const TRIES: usize = 5;

/// Makes a worktree in which nothing ran yet; what a killed maker left of it is taken away and made again, since
/// nobody can tell how much of it is there.
fn make(door: &Door, at: &Path, branch: &str, base: &Oid) -> Result<(), git::Error> {
    if door.branch(branch)?.is_some() || at.symlink_metadata().is_ok() {
        door.worktree_discard(at, branch, base)?;
    }
    // Where that fails git says so.
    let _ = at.parent().map(std::fs::create_dir_all);
    mortal::step();
    let made = door.worktree_add(at, branch, base).map(drop);
    mortal::step();
    made
}

enum Baseline {
    Go,
    Gone,
}

enum Free {
    Yes,
    Ended,
    GivenUp,
}

enum Shut {
    Yes,
    No {
        why: String,
        known: Vec<(String, String)>,
    },
    GivenUp,
}

/// One line of what an earlier phase left.
fn before(world: &World, driver: &Driver<'_>, phase: &str) -> Option<String> {
    let it = phase_of(world, &driver.run, phase)?;
    let claim: &SessId = &it.last()?.claim;
    let result = world.claims.get(claim)?.result.as_ref()?;
    let files = result
        .files_modified
        .iter()
        .take(8)
        .cloned()
        .collect::<Vec<_>>()
        .join(" ");
    Some(format!("{} — {}: {files}", it.phase.id, result.status.as_str()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return std::fs::copy(from, to).map(drop);
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
