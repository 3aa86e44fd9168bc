//! Drives a run: asks the rules what is next, does it, and survives being killed (`hypervisor.md`, 6 and 10).
//!
//! The loop holds no state of its own that the store does not have: whatever it was doing, another driver
//! finds in the journal, in the attempt's folder and in the repository's refs.

mod attend;
mod begin;
mod brief;
mod finish;
mod mortal;
mod news;
mod turn;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use protocol::command::Command;
use protocol::event::Entry;
use protocol::facts::caller::Caller;
use protocol::facts::claim::Fence;
use protocol::facts::id::{GateId, RunId, SessId};
use protocol::facts::plan::{Plan, WorktreeSetup};
use protocol::facts::policy::Policy;
use protocol::facts::run::RunEnd;
use protocol::facts::tests::Tests;
use protocol::facts::time::Instant;
use protocol::world::{Footprint, World};
use store::{Outcome, Request, Store};

use crate::close;
use crate::launch::Child;

pub use begin::{Planned, phase_digest, start, whole_digest};
pub use brief::brief;
pub use news::{Face, News, Trouble};

/// How often a thread that waits looks whether it is to go on waiting.
const LISTEN: Duration = Duration::from_millis(200);

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

    /// Opens a checkout that an agent can write to: nothing that it configures is run (T10).
    pub(crate) fn coordinator(&self, repository: git::Repository) -> Result<git::Door, git::Error> {
        git::Door::user(repository).coordinator(&self.state.join("git"))
    }

    /// The worktree of an attempt, by its claim.
    pub fn worktree_dir(&self, claim: &SessId) -> PathBuf {
        self.state.join("worktrees").join(claim.as_str())
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

impl<'g> Hand<'g> {
    /// A hand with a store of its own.
    fn open(ground: &'g Ground, open: OpenStore<'g>) -> Result<Hand<'g>, Trouble> {
        let store = mortal::store(open()?);
        Ok(Hand { store, ground })
    }

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

/// Reads a plan's file as it stands now, or says why it cannot be read.
pub type Reread<'g> = &'g (dyn Fn() -> Result<Arc<Plan>, String> + Sync);

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
    reread: Reread<'g>,
    /// The children that run, by their claims: threads wait for them, the loop pauses and ends them.
    children: Mutex<BTreeMap<SessId, Arc<Child>>>,
    /// Whether the loop has come back: whoever waits for something stops waiting.
    over: AtomicBool,
}

impl<'g> Driver<'g> {
    /// A driver of a run that was just started, or taken, under this fence.
    pub fn new(
        ground: &'g Ground,
        open: OpenStore<'g>,
        face: &'g dyn Face,
        run: RunId,
        fence: Fence,
        reread: Reread<'g>,
    ) -> Driver<'g> {
        Driver {
            ground,
            open,
            face,
            run,
            fence,
            wait_at_gates: true,
            reread,
            children: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    /// Drives until the run is over, or stands at gates alone. Children that still run then are left alone.
    ///
    /// # Errors
    ///
    /// [`Trouble`] leaves the run unfinished; a later driver goes on with it.
    pub fn drive(&self) -> Result<Driven, Trouble> {
        thread::scope(|scope| {
            let (done, finished) = mpsc::channel();
            let mut hand = self.hand()?;
            let outcome = turn::drive(self, &mut hand, finished, |attempt, phase| {
                let done = done.clone();
                let see = move || {
                    let result = self
                        .hand()
                        .and_then(|mut hand| self.attend(&mut hand, &phase, &attempt));
                    // The loop may have come back already: then nobody listens.
                    let _ = done.send((attempt, result));
                };
                let thread = thread::Builder::new().name("attend".to_owned());
                let started = thread.spawn_scoped(scope, see);
                started
                    .map(drop)
                    .map_err(|error| Trouble::Io("start a thread for", self.ground.root.clone(), error))
            });
            self.over.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn hand(&self) -> Result<Hand<'g>, Trouble> {
        Hand::open(self.ground, self.open)
    }

    fn is_given_up(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn children(&self) -> MutexGuard<'_, BTreeMap<SessId, Arc<Child>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
