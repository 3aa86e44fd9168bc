//! Drives a run: asks the rules what is next, does it, and survives being killed (`hypervisor.md`, 6 and 10).
//!
//! The loop holds no state of its own that the store does not have: whatever it was doing, another driver
//! finds in the journal, in the attempt's folder and in the repository's refs.

mod attend;
mod begin;
mod brief;
mod finish;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant as Stopwatch};

use protocol::DRIVER_TTL;
use protocol::command::Command;
use protocol::event::Entry;
use protocol::facts::caller::Caller;
use protocol::facts::claim::{Fence, Outcome as Went};
use protocol::facts::gate::Gate;
use protocol::facts::id::{AttemptId, GateId, RunId, SessId};
use protocol::facts::plan::{Plan, WorktreeSetup};
use protocol::facts::policy::Policy;
use protocol::facts::run::RunEnd;
use protocol::facts::tests::Tests;
use protocol::facts::time::Instant;
use protocol::refusal::Refusal;
use protocol::rules::Asked;
use protocol::rules::run::{Step, next};
use protocol::world::{Footprint, Lease, Pick, World};
use store::{Outcome, Request, Store};

use crate::close;

pub use begin::{Planned, phase_digest, start, whole_digest};
pub use brief::brief;

/// How often the loop looks again though nothing was heard: it renews its leases then.
const TICK: Duration = Duration::from_millis(1_000);
/// How often leases are pushed on.
const RENEW: Duration = Duration::from_secs(8);

/// What a driver stands on.
#[derive(Clone)]
pub struct Ground {
    /// The brain's root.
    pub root: PathBuf,
    /// The folder of brain's own state, `.brain`.
    pub state: PathBuf,
    /// Who drives.
    pub caller: Caller,
    /// The rules' share of the configuration.
    pub policy: Policy,
    /// The argv that starts a shim.
    pub shim: Vec<OsString>,
    /// Folders of projects below the root, by name.
    pub projects: BTreeMap<String, String>,
    /// Tests of projects, by name.
    pub tests: BTreeMap<String, Tests>,
    /// What the configuration says about closing.
    pub settings: close::Settings,
    /// Shell commands of runners, by name.
    pub runners: BTreeMap<String, Runner>,
    /// What makes a fresh worktree fit to work in.
    pub worktree: WorktreeSetup,
    /// The runner of phases that name none.
    pub runner: Option<String>,
}

/// A configured runner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Runner {
    /// The shell command.
    pub command: String,
    /// Whether the brief is its last argument instead of its standard input.
    pub brief_as_argument: bool,
}

impl Ground {
    /// The folder of an attempt, by its claim.
    pub fn attempt_dir(&self, claim: &SessId) -> PathBuf {
        self.state.join("attempts").join(claim.as_str())
    }

    /// The door through which a claim is closed.
    pub fn door<'a>(&'a self, store: &'a mut dyn Store) -> close::Door<'a> {
        close::Door {
            store,
            caller: &self.caller,
            policy: &self.policy,
            root: &self.root,
            state: &self.state,
            shim: &self.shim,
            environment: None,
            settings: &self.settings,
            fuse: Default::default(),
        }
    }

    /// The worktree of an attempt, by its claim.
    pub fn worktree_dir(&self, claim: &SessId) -> PathBuf {
        self.state.join("worktrees").join(claim.as_str())
    }
}

/// What happens, for whoever watches.
#[derive(Clone, PartialEq, Debug)]
pub enum News {
    /// A phase is about to be delegated: its number, title, zones and type.
    Announced {
        /// The phase.
        phase: String,
        /// Its title.
        title: String,
        /// The zones that its scope names.
        zones: Vec<String>,
        /// Its type.
        kind: String,
    },
    /// Something that a human should know and need not answer.
    Told {
        /// The phase.
        phase: String,
        /// What.
        what: String,
    },
    /// A worktree was made fit to work in.
    Prepared {
        /// The phase.
        phase: String,
        /// How long it took, in milliseconds.
        took_ms: u64,
    },
    /// An agent was started.
    Started {
        /// The phase.
        phase: String,
        /// Its claim.
        claim: SessId,
        /// Its log.
        log: PathBuf,
    },
    /// An agent that was running already was taken back.
    TakenBack {
        /// The phase.
        phase: String,
        /// Its claim.
        claim: SessId,
    },
    /// An agent ended.
    Ended {
        /// The phase.
        phase: String,
        /// How.
        how: String,
        /// How long it ran, in milliseconds.
        ran_ms: u64,
    },
    /// A close said no.
    Refused {
        /// The phase.
        phase: String,
        /// Why.
        why: Box<Refusal>,
    },
    /// A phase came to an end.
    Settled {
        /// The phase.
        phase: String,
        /// With what.
        outcome: Went,
        /// The lines of its claim's summary.
        summary: Vec<String>,
    },
    /// A gate waits.
    Gate(Box<Gate>),
    /// A branch was merged.
    Merged {
        /// The repository.
        repo: String,
        /// The branch that it went into.
        into: String,
        /// The commit.
        commit: String,
    },
}

/// Who watches a run and answers its gates.
pub trait Face: Sync {
    /// Hears what happens, from any thread.
    fn hear(&self, news: News);
}

/// Why a run could not go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// The rules say no.
    Refused(Box<Refusal>),
    /// The store failed.
    Store(store::Fault),
    /// git failed.
    Git(git::Error),
    /// A child could not be handled.
    Launch(crate::launch::Error),
    /// A close failed.
    Close(Box<close::CloseError>),
    /// A file could not be handled.
    Io(&'static str, PathBuf, std::io::Error),
    /// The theme does not merge into the main branch.
    MergeConflict {
        /// The repository.
        repo: String,
        /// The files.
        files: Vec<String>,
    },
    /// The main branch's checkout would lose something.
    WouldOverwrite {
        /// The repository.
        repo: String,
        /// The paths.
        paths: Vec<String>,
    },
    /// A branch of the theme's name is there and no run of this brain made it.
    BranchExists {
        /// The branch.
        branch: String,
        /// The repository.
        repo: String,
    },
    /// A phase asks for what cannot be had.
    Phase {
        /// The phase.
        phase: String,
        /// Why.
        why: String,
    },
}

impl From<store::Fault> for Trouble {
    fn from(fault: store::Fault) -> Trouble {
        Trouble::Store(fault)
    }
}

impl From<git::Error> for Trouble {
    fn from(error: git::Error) -> Trouble {
        Trouble::Git(error)
    }
}

impl From<crate::launch::Error> for Trouble {
    fn from(error: crate::launch::Error) -> Trouble {
        Trouble::Launch(error)
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        Trouble::Refused(Box::new(refusal))
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Refused(refusal) => write!(f, "refused: {}", refusal.code()),
            Trouble::Store(fault) => fault.fmt(f),
            Trouble::Git(error) => error.fmt(f),
            Trouble::Launch(error) => error.fmt(f),
            Trouble::Close(error) => error.fmt(f),
            Trouble::Io(doing, path, error) => write!(f, "cannot {doing} {}: {error}", path.display()),
            Trouble::MergeConflict { repo, files } => {
                write!(f, "the theme does not merge in {repo}: {}", files.join(", "))
            }
            Trouble::WouldOverwrite { repo, paths } => {
                write!(f, "the merge in {repo} would overwrite {}", paths.join(", "))
            }
            Trouble::BranchExists { branch, repo } => {
                write!(
                    f,
                    "{branch} is there already in {repo}, and no run of this brain made it"
                )
            }
            Trouble::Phase { phase, why } => write!(f, "phase {phase}: {why}"),
        }
    }
}

/// How driving ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Driven {
    /// The run ended.
    Over(RunEnd),
    /// Gates wait, nothing else can go on, and nobody here can answer.
    Gated(Vec<GateId>),
}

/// The store of one thread, with what a request needs.
pub(crate) struct Hand<'g> {
    pub store: Box<dyn Store + 'g>,
    pub ground: &'g Ground,
}

impl Hand<'_> {
    /// Decides a command at the door.
    pub fn submit(&mut self, command: &Command) -> Result<Vec<Entry>, Trouble> {
        let request = Request {
            caller: &self.ground.caller,
            policy: &self.ground.policy,
            key: None,
        };
        match store::submit(&mut *self.store, request, command)? {
            Outcome::Committed(entries) | Outcome::Repeated(entries) => Ok(entries),
            Outcome::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// Looks at the facts.
    pub fn look(&mut self, picks: &Footprint) -> Result<(World, Instant), Trouble> {
        Ok(self.store.look(picks)?)
    }
}

/// Opens a store for one more thread.
pub type OpenStore<'g> = &'g (dyn Fn() -> Result<Box<dyn Store>, store::Fault> + Sync);

/// Drives one run.
pub struct Driver<'g> {
    ground: &'g Ground,
    open: OpenStore<'g>,
    face: &'g dyn Face,
    run: RunId,
    fence: Fence,
    /// Whether to wait at gates that nobody here can answer.
    pub wait_at_gates: bool,
    /// Reads the plan again, for `adapt` and for changes before a delegation.
    pub reread: &'g (dyn Fn() -> Result<Plan, String> + Sync),
}

impl<'g> Driver<'g> {
    /// A driver of a run that was just started, or taken, under this fence.
    pub fn new(
        ground: &'g Ground,
        open: OpenStore<'g>,
        face: &'g dyn Face,
        run: RunId,
        fence: Fence,
        reread: &'g (dyn Fn() -> Result<Plan, String> + Sync),
    ) -> Driver<'g> {
        Driver {
            ground,
            open,
            face,
            run,
            fence,
            wait_at_gates: true,
            reread,
        }
    }

    /// Drives until the run is over, or stands at gates alone.
    ///
    /// # Errors
    ///
    /// [`Trouble`] leaves the run unfinished; a later driver goes on with it.
    pub fn drive(&self) -> Result<Driven, Trouble> {
        thread::scope(|scope| {
            let (done, finished) = mpsc::channel();
            let mut hand = self.hand()?;
            let mut loop_ = Loop {
                driver: self,
                busy: BTreeSet::new(),
                told: BTreeSet::new(),
                renewed: None,
                finished,
            };
            loop_.turn(&mut hand, |attempt, phase| {
                let done: Sender<Done> = done.clone();
                let driver = self;
                scope.spawn(move || {
                    let result = driver
                        .hand()
                        .and_then(|mut hand| driver.attend(&mut hand, &phase, &attempt));
                    // The loop may have given up already: then nobody listens.
                    let _ = done.send((attempt, result));
                });
            })
        })
    }

    fn hand(&self) -> Result<Hand<'g>, Trouble> {
        Ok(Hand {
            store: (self.open)()?,
            ground: self.ground,
        })
    }

    fn picks(&self) -> Footprint {
        let run = &self.run;
        vec![
            Pick::Run(run.clone()),
            Pick::Phases(run.clone()),
            Pick::GatesOfRun(run.clone()),
        ]
    }
}

type Done = (AttemptId, Result<(), Trouble>);

struct Loop<'d, 'g> {
    driver: &'d Driver<'g>,
    /// Attempts that a thread of ours sees through.
    busy: BTreeSet<AttemptId>,
    /// What was told already: gates, and findings by phase.
    told: BTreeSet<String>,
    renewed: Option<Stopwatch>,
    finished: Receiver<Done>,
}

impl Loop<'_, '_> {
    fn turn(
        &mut self,
        hand: &mut Hand<'_>,
        mut spawn: impl FnMut(AttemptId, String),
    ) -> Result<Driven, Trouble> {
        let driver = self.driver;
        loop {
            while let Ok((attempt, result)) = self.finished.try_recv() {
                self.busy.remove(&attempt);
                result?;
            }
            let (world, now) = hand.look(&driver.picks())?;
            let Some(run) = world.runs.get(&driver.run) else {
                return Err(Refusal::RunUnknown {
                    id: driver.run.to_string(),
                }
                .into());
            };
            if run.driver != driver.fence {
                return Err(Refusal::RunTaken {
                    run: driver.run.clone(),
                }
                .into());
            }
            if let Some(end) = run.end
                && self.busy.is_empty()
            {
                return Ok(Driven::Over(end));
            }
            self.renew(hand, &world)?;
            let gates = self.tell_gates(&world);
            let asked = Asked {
                world: &world,
                caller: &driver.ground.caller,
                policy: &driver.ground.policy,
                now,
            };
            let steps = next(asked, &driver.run);
            let mut moved = false;
            let mut sleep = None;
            for step in steps {
                match step {
                    Step::Attend(phase, attempt) => {
                        if self.busy.insert(attempt.clone()) {
                            spawn(attempt, phase);
                        }
                    }
                    Step::Begin(phase) => {
                        moved = true;
                        self.tell_findings(&world, &phase);
                        driver.begin(hand, &world, now, &phase)?;
                        // What began changes what may begin: look again.
                        break;
                    }
                    Step::Ask(question) => {
                        moved = true;
                        driver.ask(hand, &world, &question)?;
                    }
                    Step::Adapt => {
                        moved = true;
                        driver.adapt(hand)?;
                        break;
                    }
                    Step::Finish if self.busy.is_empty() => {
                        moved = true;
                        driver.finish(hand, &world)?;
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
            if !driver.wait_at_gates && self.busy.is_empty() && sleep.is_none() && !gates.is_empty() {
                return Ok(Driven::Gated(gates));
            }
            let due = sleep.map_or(TICK, |until| {
                Duration::from_millis(until.tick.saturating_sub(now.tick))
            });
            self.rest(hand, world.head, due.min(TICK))?;
        }
    }

    /// Waits for news of the store or of a thread of ours.
    fn rest(&mut self, hand: &mut Hand<'_>, head: u64, at_most: Duration) -> Result<(), Trouble> {
        let began = Stopwatch::now();
        while began.elapsed() < at_most {
            let slice = Duration::from_millis(50).min(at_most.saturating_sub(began.elapsed()));
            if hand.store.wait(head, slice)? > head {
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
    fn renew(&mut self, hand: &mut Hand<'_>, world: &World) -> Result<(), Trouble> {
        if self.renewed.is_some_and(|at| at.elapsed() < RENEW) {
            return Ok(());
        }
        let driver = self.driver;
        hand.store
            .touch(&[(Lease::Driver(driver.run.clone()), driver.fence)], DRIVER_TTL)?;
        for claim in world.claims.values().filter(|claim| !claim.is_terminal()) {
            let of_run = claim.workflow.as_ref().is_some_and(|of| of.run == driver.run);
            let pilot = world
                .runs
                .get(&driver.run)
                .is_some_and(|run| run.pilot == claim.id);
            if of_run || pilot {
                hand.store
                    .touch(&[(Lease::Claim(claim.id.clone()), claim.fence)], claim.ttl)?;
            }
        }
        self.renewed = Some(Stopwatch::now());
        Ok(())
    }

    /// Tells gates that were not told yet; gives all that wait.
    fn tell_gates(&mut self, world: &World) -> Vec<GateId> {
        let pending = world.gates.values().filter(|gate| gate.is_pending());
        let mut ids = Vec::new();
        for gate in pending {
            ids.push(gate.id.clone());
            if self.told.insert(gate.id.to_string()) {
                self.driver.face.hear(News::Gate(Box::new(gate.clone())));
            }
        }
        ids
    }

    /// Tells what a phase's drift only tells.
    fn tell_findings(&mut self, world: &World, phase: &str) {
        let driver = self.driver;
        for what in driver.findings(world, phase) {
            if self.told.insert(format!("{phase} {what}")) {
                driver.face.hear(News::Told {
                    phase: phase.to_owned(),
                    what,
                });
            }
        }
    }
}
