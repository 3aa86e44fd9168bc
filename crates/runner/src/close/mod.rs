//! Closing a claim: acts around pure decisions, each step finished by the next call (protocol, section 11).
//!
//! Every step looks at what is already written down (the closing's evidence, commits and landings; the refs
//! of the repositories) and goes on from there, so that a crash between any two is finished by the same call.

mod audit;
mod commit;
mod evidence;
mod land;
mod run;
mod step;
mod summary;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use protocol::command::Command;
use protocol::facts::caller::Caller;
use protocol::facts::claim::{ClaimResult, Outcome, Tier};
use protocol::facts::gate::GateKind;
use protocol::facts::id::{GateId, SessId};
use protocol::facts::policy::Policy;
use protocol::facts::tests::Tests;
use protocol::facts::trigger::Trigger;
use protocol::refusal::Refusal;
use protocol::rules::close::NOTHING;
use protocol::rules::trigger::{triggers, unasked};
use protocol::rules::{Asked, who};
use store::{Fault, Store};

pub use step::Fuse;
pub use summary::summary;

use step::{Step, Stop};

/// Everything that a close needs from outside.
pub struct Door<'a> {
    /// The store that it writes through.
    pub store: &'a mut dyn Store,
    /// Who closes.
    pub caller: &'a Caller,
    /// The rules' share of the configuration.
    pub policy: &'a Policy,
    /// The brain root, absolute, its links followed.
    pub root: &'a Path,
    /// The folder of brain's own state, for the coordinator's git directories and what tests print.
    pub state: &'a Path,
    /// The argv that starts a shim ([`crate::launch::Spec::shim`]).
    pub shim: &'a [OsString],
    /// The variables for git and the tests, in place of this process's.
    pub environment: Option<&'a [(OsString, OsString)]>,
    /// The close's share of the configuration.
    pub settings: &'a Settings,
    /// Cuts the close off, in tests.
    pub fuse: Fuse,
}

/// What the configuration says about closing.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `tests`: for claims, phases and projects that name none.
    pub tests: Option<Tests>,
    /// `projects.*.tests`, by repository.
    pub projects: BTreeMap<String, Tests>,
    /// `evidence: clean`: tests run in a checkout of exactly the tree that is committed.
    pub clean: bool,
    /// `push`: whether a branch with an upstream is pushed.
    pub push: bool,
}

/// What is asked of a close.
#[derive(Clone, Debug)]
pub struct CloseAsk {
    /// The claim.
    pub id: SessId,
    /// The best result that is asked for.
    pub at_most: Outcome,
    /// The closer's words.
    pub notes: Option<String>,
    /// A report that a plain or human caller hands in, absolute.
    pub tests: Option<PathBuf>,
    /// Paths that a human leaves aside: entries as in a scope.
    pub leave: Vec<String>,
    /// Whether failed children are accepted.
    pub accept_failed: bool,
}

impl CloseAsk {
    /// Asks for nothing but the close.
    pub fn of(id: SessId) -> CloseAsk {
        CloseAsk {
            id,
            at_most: Outcome::Ok,
            notes: None,
            tests: None,
            leave: Vec::new(),
            accept_failed: false,
        }
    }
}

/// How a close went.
#[derive(Clone, PartialEq, Debug)]
pub enum Closed {
    /// It is done.
    Done(ClaimResult, Vec<Notice>),
    /// A human must answer first; the next call goes on.
    Waiting(GateId),
    /// It was done before.
    Already(ClaimResult),
}

/// Why a close did not go on.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a close ends once, and a refusal carries facts"
)]
pub enum CloseError {
    /// The rules say no.
    Refused(Refusal),
    /// The store failed.
    Fault(Fault),
    /// Git did not do it, or could not tell.
    Git(git::Error),
    /// The operating system said no.
    Io {
        /// What was being done.
        doing: &'static str,
        /// Its words.
        source: io::Error,
    },
}

impl fmt::Display for CloseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseError::Refused(refusal) => write!(f, "refused: {}", refusal.code()),
            CloseError::Fault(fault) => fault.fmt(f),
            CloseError::Git(error) => error.fmt(f),
            CloseError::Io { doing, source } => write!(f, "{doing}: {source}"),
        }
    }
}

impl std::error::Error for CloseError {}

/// What a close has to say besides its result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Changes that were left alone, with why.
    Left(Vec<(String, String)>),
    /// New files that the test command left: neither committed nor refused.
    Artifacts(Vec<String>),
    /// Entries of the scope that lie in no repository: nothing of them was committed.
    Unversioned(Vec<String>),
    /// Files that a hook left different from what was committed.
    LeftDirty(Vec<String>),
    /// The work could not be brought into a branch: where, and why.
    NotLanded(String, String),
    /// The branch could not be pushed: which, and why.
    NotPushed(String, String),
    /// Nothing was committed since nothing was achieved; so many files stay as they are.
    Uncommitted(usize),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Left(paths) => {
                f.write_str("left alone:")?;
                paths
                    .iter()
                    .try_for_each(|(path, why)| write!(f, " {path} ({why})"))
            }
            Notice::Artifacts(paths) => write!(f, "left by the tests, not committed: {}", paths.join(" ")),
            Notice::Unversioned(paths) => write!(f, "unversioned, nothing committed: {}", paths.join(" ")),
            Notice::LeftDirty(paths) => write!(f, "changed again by a hook: {}", paths.join(" ")),
            Notice::NotLanded(branch, why) => write!(f, "not landed in {branch}: {why}"),
            Notice::NotPushed(branch, why) => write!(f, "{branch} not pushed: {why}"),
            Notice::Uncommitted(files) => write!(f, "failed: {files} changed files stay uncommitted"),
        }
    }
}

/// Closes a claim, or goes on with a close that was cut off or waited for a human.
///
/// # Errors
///
/// A refusal leaves neither commit nor push; the same call can be made again after any error.
pub fn close(door: &mut Door<'_>, ask: &CloseAsk) -> Result<Closed, CloseError> {
    match steps(door, ask) {
        Ok(closed) => Ok(closed),
        Err(Stop::Wait(gate)) => Ok(Closed::Waiting(gate)),
        Err(Stop::Error(error)) => Err(error),
    }
}

fn steps(door: &mut Door<'_>, ask: &CloseAsk) -> Result<Closed, Stop> {
    let mut step = Step::look(door, ask)?;
    if !ask.leave.is_empty() {
        who::must_be_human(step.asked(), "leave changes aside").map_err(CloseError::Refused)?;
    }
    if let Some(result) = &step.claim.result {
        return Ok(Closed::Already(result.clone()));
    }
    let began = step.submit(Command::BeginClose {
        id: ask.id.clone(),
        at_most: ask.at_most,
        notes: ask.notes.clone(),
        accept_failed: ask.accept_failed,
    });
    match began {
        Err(Stop::Error(CloseError::Refused(Refusal::GatePending { gate, .. }))) => {
            return Ok(Closed::Waiting(gate));
        }
        began => drop(began?),
    }
    let failed = ask.at_most == Outcome::Failed;

    let mut found = step.audit()?;
    let unversioned = step.unversioned();
    if step.claim.tier() == Tier::Validated && !failed && found.is_unchanged() && unversioned.is_empty() {
        let why = "nothing was changed since the claim was opened";
        let shown = step.shown(&found)?;
        step.gate(GateKind::Close, NOTHING, why, Vec::new(), &shown)?;
    }
    if step.claim.tier() == Tier::Validated && !failed {
        found = step.evidence(found)?;
    }
    step.ask_human(ask.at_most, &found)?;

    let mut status = ask.at_most;
    if failed {
        let files = found.parts.iter().map(|part| part.to_commit.len()).sum();
        step.notices
            .extend((files > 0).then_some(Notice::Uncommitted(files)));
    } else {
        found = step.commit(found)?;
        status = status.max(step.land(&mut found)?);
    }
    step.ask_human(status, &found)?;

    step.tell_of(&found, unversioned);
    let notes = step.notices.iter().map(ToString::to_string).collect();
    step.submit(Command::FinishClose {
        id: ask.id.clone(),
        status,
        files_modified: found.files(),
        notes,
        accept_failed: ask.accept_failed,
    })?;
    match &step.claim.result {
        Some(result) => Ok(Closed::Done(result.clone(), step.notices)),
        None => Err(Stop::refused(Refusal::NotClosing { id: ask.id.clone() })),
    }
}

impl Step<'_, '_> {
    /// Asks what the triggers of this result have to ask of a human, and again what was let go on for
    /// other content than what is there now.
    fn ask_human(&mut self, status: Outcome, found: &audit::Found) -> Result<(), Stop> {
        let texts: Vec<String> = triggers(&self.claim, status)
            .into_iter()
            .filter_map(|trigger| match trigger {
                Trigger::HumanGate { text } => Some(text),
                _ => None,
            })
            .collect();
        if texts.is_empty() {
            return Ok(());
        }
        let shown = self.shown(found)?;
        while let Some(text) = unasked(&self.claim, status) {
            self.gate(GateKind::Phase, &text, &text, Vec::new(), &shown)?;
        }
        for text in texts {
            let asked = |(kind, subject, _): &(GateKind, String, String)| {
                *kind == GateKind::Phase && *subject == text
            };
            if self.closing()?.allowed.iter().any(asked) {
                self.gate(GateKind::Phase, &text, &text, Vec::new(), &shown)?;
            }
        }
        Ok(())
    }

    /// Who asks, in which world.
    fn asked(&self) -> Asked<'_> {
        Asked {
            world: &self.world,
            caller: self.door.caller,
            policy: self.door.policy,
            now: self.now,
        }
    }
}
