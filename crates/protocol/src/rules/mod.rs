//! What may happen: each command is decided here, and nowhere else.

pub(crate) mod ask;
pub mod attribute;
pub mod breaker;
pub mod claim;
pub mod close;
pub mod drift;
pub(crate) mod family;
pub mod footprint;
pub mod gate;
pub mod lock;
pub(crate) mod note;
pub mod preflight;
pub mod run;
pub mod signal;
pub mod trigger;
pub mod who;
pub(crate) mod words;

use crate::command::Command;
use crate::event::{Entry, Event, Seq};
use crate::facts::caller::Caller;
use crate::facts::claim::Fence;
use crate::facts::policy::Policy;
use crate::facts::time::Instant;
use crate::refusal::Refusal;
use crate::world::World;

/// What a rule looks at: who asks, under which policy, when, in which world.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The facts.
    pub world: &'a World,
    /// Who asks.
    pub caller: &'a Caller,
    /// The configuration's share.
    pub policy: &'a Policy,
    /// The store's clock.
    pub now: Instant,
}

/// The answer under construction: events in order, each with its number and fence already fixed.
pub(crate) struct Draft<'a> {
    pub asked: Asked<'a>,
    /// The world as it is after the events so far.
    pub world: World,
    events: Vec<Event>,
    first: Seq,
}

impl<'a> Draft<'a> {
    fn new(asked: Asked<'a>) -> Draft<'a> {
        Draft {
            asked,
            world: asked.world.clone(),
            events: Vec::new(),
            first: asked.world.head + 1,
        }
    }

    /// The number that the next event will have.
    pub fn seq(&self) -> Seq {
        self.first + self.events.len() as u64
    }

    /// The next fence; minted by the event that carries it.
    pub fn fence(&self) -> Fence {
        self.world.fence.next()
    }

    /// The store's clock.
    pub fn now(&self) -> Instant {
        self.asked.now
    }

    /// Adds an event and takes it in, so that the next step of the rule sees it.
    pub fn push(&mut self, event: Event) {
        let entry = Entry {
            seq: self.seq(),
            at: self.asked.now,
            actor: who::actor(self.asked),
            key: None,
            event: event.clone(),
        };
        self.world.apply(&entry);
        self.events.push(event);
    }
}

/// Decides a command: the events that carry it out, or why not. Pure: a store may call it again.
///
/// # Errors
///
/// A [`Refusal`] with the facts that the asker needs. Nothing has changed then.
pub fn decide(asked: Asked<'_>, command: &Command) -> Result<Vec<Event>, Refusal> {
    if let (Some((why, _)), true) = (&asked.world.halt.standing, stops(command)) {
        let since = asked
            .world
            .halt
            .stretches
            .last()
            .map_or(asked.now, |stretch| stretch.from);
        return Err(Refusal::Halted {
            why: why.clone(),
            since,
        });
    }
    let mut draft = Draft::new(asked);
    let d = &mut draft;
    match command {
        Command::OpenClaim(ask) => claim::open(d, ask, None).map(drop),
        Command::RenewClaim { id } => claim::renew(d, id),
        Command::NoteBase { id, repo, base } => claim::note_base(d, id, repo, base),
        Command::ReapClaims { gone } => claim::reap(d, gone),
        Command::AcquireLocks { holder, paths, ttl } => lock::acquire(d, holder, paths, *ttl),
        Command::ReleaseLocks { holder, paths, force } => lock::release(d, holder, paths, force.as_deref()),
        Command::CleanupLocks => lock::cleanup(d),
        Command::FailWork { id, why } => breaker::fail(d, id, why),
        Command::ResetWork { id, why } => breaker::reset(d, id, why),
        Command::OpenGate(ask) => gate::open(d, ask).map(drop),
        Command::AnswerGate {
            id,
            choice,
            words,
            shown,
            mac,
        } => gate::answer(d, id, *choice, words, shown, mac),
        Command::Pause { id, why } => gate::pause(d, id, why),
        Command::Resume { id } => gate::resume(d, id),
        Command::Abort { id, why } => gate::abort(d, id, why),
        Command::Halt { why } => gate::halt(d, why),
        Command::Thaw => gate::thaw(d),
        Command::SendSignal {
            to,
            kind,
            from,
            summary,
        } => signal::send(d, to, *kind, from.as_ref(), summary),
        Command::AckSignals { ids } => signal::ack(d, ids),
        Command::BeginClose {
            id,
            at_most,
            notes,
            accept_failed,
        } => close::begin(d, id, *at_most, notes.as_deref(), *accept_failed),
        Command::RecordEvidence { id, evidence } => close::record_evidence(d, id, evidence),
        Command::RecordCommit { id, repo, commit } => close::record_commit(d, id, repo, commit),
        Command::RecordLanding { id, repo, landing } => close::record_landing(d, id, repo, landing),
        Command::FinishClose {
            id,
            status,
            files_modified,
            notes,
            accept_failed,
        } => close::finish(d, id, *status, files_modified, notes, *accept_failed),
        Command::StartRun(ask) => run::start(d, ask),
        Command::TakeRun { id, driver_gone } => run::take(d, id, *driver_gone),
        Command::BeginAttempt {
            run,
            driver,
            phase,
            claim,
        } => run::begin_attempt(d, run, *driver, phase, claim),
        Command::EndAttempt {
            run,
            driver,
            phase,
            attempt,
            exit,
        } => run::end_attempt(d, run, *driver, phase, attempt, exit),
        Command::JudgeAttempt {
            run,
            driver,
            phase,
            attempt,
            refused,
            known,
            changed,
        } => run::judge_attempt(
            d,
            run,
            *driver,
            phase,
            attempt,
            refused.as_deref(),
            known,
            changed,
        ),
        Command::AskPhase {
            run,
            driver,
            phase,
            kind,
            subject,
            why,
            known,
            shown,
        } => run::ask_phase(d, run, *driver, phase, *kind, subject, why, known, shown),
        Command::AdaptRun { run, digest, phases } => run::adapt(d, run, digest, phases),
        Command::RecordRunLanding {
            run,
            driver,
            landings,
        } => run::record_landing(d, run, *driver, landings),
        Command::EndRun { run, driver, end } => run::end(d, run, *driver, *end),
        Command::CancelRun { run } => run::cancel(d, run),
    }?;
    Ok(draft.events)
}

/// Whether the emergency stop forbids a command: nothing opens, renews, launches, closes or lands (section 6).
fn stops(command: &Command) -> bool {
    match command {
        Command::OpenClaim(_)
        | Command::RenewClaim { .. }
        | Command::NoteBase { .. }
        | Command::AcquireLocks { .. }
        | Command::BeginClose { .. }
        | Command::RecordEvidence { .. }
        | Command::RecordCommit { .. }
        | Command::RecordLanding { .. }
        | Command::FinishClose { .. }
        | Command::StartRun(_)
        | Command::TakeRun { .. }
        | Command::BeginAttempt { .. }
        | Command::RecordRunLanding { .. } => true,
        Command::ReapClaims { .. }
        | Command::ReleaseLocks { .. }
        | Command::CleanupLocks
        | Command::FailWork { .. }
        | Command::ResetWork { .. }
        | Command::OpenGate(_)
        | Command::AnswerGate { .. }
        | Command::Pause { .. }
        | Command::Resume { .. }
        | Command::Abort { .. }
        | Command::Halt { .. }
        | Command::Thaw
        | Command::SendSignal { .. }
        | Command::AckSignals { .. }
        | Command::EndAttempt { .. }
        | Command::JudgeAttempt { .. }
        | Command::AskPhase { .. }
        | Command::AdaptRun { .. }
        | Command::EndRun { .. }
        | Command::CancelRun { .. } => false,
    }
}
