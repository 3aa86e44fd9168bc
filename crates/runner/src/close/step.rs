//! What the steps of a close share: the claim as it is written down, and the ways to go on or stop.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use git::Repository;
use protocol::command::{Command, OpenGate};
use protocol::event::{Entry, Event};
use protocol::facts::claim::{Claim, Closing};
use protocol::facts::gate::{About, GateKind};
use protocol::facts::id::{GateId, SessId};
use protocol::facts::time::Instant;
use protocol::refusal::Refusal;
use protocol::world::{Footprint, Lease, Pick, World};
use store::{Fault, Outcome, Request};

use super::{CloseAsk, CloseError, Door, Notice};

/// Cuts a close off before its n-th act, as a crash would; the default never does.
#[derive(Clone, Debug, Default)]
pub struct Fuse(Option<Rc<Cell<u32>>>);

impl Fuse {
    /// Lets so many acts pass.
    pub fn after(acts: u32) -> Fuse {
        Fuse(Some(Rc::new(Cell::new(acts))))
    }

    /// Says whether it has cut the close off.
    pub fn is_spent(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.get() == 0)
    }

    fn burn(&self) -> Result<(), CloseError> {
        let Some(left) = &self.0 else { return Ok(()) };
        match left.get() {
            0 => Err(CloseError::Io {
                doing: "closing",
                source: io::ErrorKind::Interrupted.into(),
            }),
            acts => {
                left.set(acts - 1);
                Ok(())
            }
        }
    }
}

/// Why the steps do not go on.
#[expect(
    clippy::large_enum_variant,
    reason = "a close ends once, and a refusal carries facts"
)]
pub(super) enum Stop {
    /// A human must answer.
    Wait(GateId),
    /// It cannot go on.
    Error(CloseError),
}

impl Stop {
    pub fn refused(refusal: Refusal) -> Stop {
        Stop::Error(CloseError::Refused(refusal))
    }

    pub fn io(doing: &'static str) -> impl Fn(io::Error) -> Stop {
        move |source| Stop::Error(CloseError::Io { doing, source })
    }
}

impl From<CloseError> for Stop {
    fn from(error: CloseError) -> Stop {
        Stop::Error(error)
    }
}

impl From<git::Error> for Stop {
    fn from(error: git::Error) -> Stop {
        Stop::Error(CloseError::Git(error))
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Error(CloseError::Fault(fault))
    }
}

/// A close under way.
pub(super) struct Step<'s, 'a> {
    pub door: &'s mut Door<'a>,
    pub ask: &'s CloseAsk,
    pub claim: Claim,
    /// The claims that were live meanwhile, those below, the phase.
    pub world: World,
    pub now: Instant,
    pub notices: Vec<Notice>,
}

impl<'s, 'a> Step<'s, 'a> {
    /// Loads the claim and whoever may have changed something meanwhile.
    pub fn look(door: &'s mut Door<'a>, ask: &'s CloseAsk) -> Result<Step<'s, 'a>, Stop> {
        let id = &ask.id;
        let mut picks: Footprint = vec![
            Pick::Caller(door.caller.clone()),
            Pick::Tree(id.clone()),
            Pick::GatesOf(id.clone()),
            Pick::Live,
            Pick::Since(id.clone()),
        ];
        let (mut world, mut now) = door.store.look(&picks)?;
        // Claims whose files were taken over ended before this one began, each with its own before it.
        loop {
            let known =
                |id: &SessId| world.claims.contains_key(id) || picks.contains(&Pick::Claim(id.clone()));
            let line = world.claims.get(id).into_iter().chain(world.claims.values());
            let missing: Vec<SessId> = line
                .flat_map(|it| &it.inherits)
                .filter(|id| !known(id))
                .cloned()
                .collect();
            if missing.is_empty() {
                break;
            }
            picks.extend(missing.into_iter().map(Pick::Claim));
            (world, now) = door.store.look(&picks)?;
        }
        let claim = world.claims.get(id).cloned();
        let claim = claim.ok_or_else(|| Stop::refused(Refusal::ClaimUnknown { id: id.to_string() }))?;
        Ok(Step {
            door,
            ask,
            claim,
            world,
            now,
            notices: Vec::new(),
        })
    }

    /// Submits a command, which is also a sign of life, and reads the claim again.
    pub fn submit(&mut self, command: Command) -> Result<Vec<Entry>, Stop> {
        self.stay_alive()?;
        self.door.fuse.burn()?;
        let request = Request {
            caller: self.door.caller,
            policy: self.door.policy,
            key: None,
        };
        let entries = match store::submit(self.door.store, request, &command)? {
            Outcome::Committed(entries) | Outcome::Repeated(entries) => entries,
            Outcome::Refused(refusal) => return Err(Stop::refused(refusal)),
        };
        self.door.fuse.burn()?;
        let (world, now) = self.door.store.look(&vec![Pick::Claim(self.ask.id.clone())])?;
        self.now = now;
        if let Some(claim) = world.claims.get(&self.ask.id) {
            self.claim = claim.clone();
        }
        Ok(entries)
    }

    /// Pushes the claim's expiry on: a close may take longer than its time to live (section 6).
    pub fn stay_alive(&mut self) -> Result<(), Stop> {
        let lease = (Lease::Claim(self.claim.id.clone()), self.claim.fence);
        self.door.store.touch(&[lease], self.claim.ttl)?;
        Ok(())
    }

    /// Marks an act outside the store: a crash may come before it.
    pub fn act(&self) -> Result<(), Stop> {
        self.door.fuse.burn().map_err(Stop::Error)
    }

    /// What is written down of this close.
    pub fn closing(&self) -> Result<&Closing, Stop> {
        let id = self.claim.id.clone();
        let closing = self.claim.closing.as_ref();
        closing.ok_or_else(|| Stop::refused(Refusal::NotClosing { id }))
    }

    /// Asks a human, unless one let exactly this go on.
    pub fn gate(
        &mut self,
        kind: GateKind,
        subject: &str,
        why: &str,
        known: Vec<(String, String)>,
        shown: &str,
    ) -> Result<(), Stop> {
        if self.is_allowed(kind, subject, shown)? {
            return Ok(());
        }
        let ask = OpenGate {
            about: About::Claim(self.claim.id.clone()),
            kind,
            subject: subject.to_owned(),
            why: why.to_owned(),
            known,
            shown: shown.to_owned(),
        };
        let entries = self.submit(Command::OpenGate(ask))?;
        let opened = entries.into_iter().find_map(|entry| match entry.event {
            Event::GateOpened(gate) => Some(gate.id),
            _ => None,
        });
        match opened.or(self.claim.waiting.clone()) {
            Some(gate) => Err(Stop::Wait(gate)),
            None => Ok(()),
        }
    }

    /// Whether a human let exactly this go on.
    pub fn is_allowed(&self, kind: GateKind, subject: &str, shown: &str) -> Result<bool, Stop> {
        let allowed = &self.closing()?.allowed;
        Ok(allowed.contains(&(kind, subject.to_owned(), shown.to_owned())))
    }

    /// The folder of what a close leaves between its steps.
    pub fn folder(&self) -> PathBuf {
        self.door.state.join("close")
    }

    /// Opens a checkout: a human's as its user, a satellite's own as the coordinator (T10).
    pub fn open(&self, repository: Repository) -> Result<git::Door, Stop> {
        let mut door = git::Door::user(repository);
        if let Some(environment) = self.door.environment {
            door = door.in_environment(environment.iter().cloned());
        }
        if self.claim.worktree.is_some() {
            door = door.coordinator(&self.door.state.join("git"))?;
        }
        Ok(door)
    }
}
