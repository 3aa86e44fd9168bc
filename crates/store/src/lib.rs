//! The journal and its shadow, the tables: the one door through which everything changes.
//!
//! A store loads what a footprint picks, reads its own clock, lets the rules decide and commits all or
//! none. It never decides, and two stores never differ in an answer.

pub mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod fault;
pub mod load;
mod memory;
mod pages;
mod sqlite;
mod trusting;

use std::time::Duration;

use protocol::command::Command;
use protocol::event::{Entry, Event, Seq};
use protocol::facts::caller::Caller;
use protocol::facts::claim::Fence;
use protocol::facts::policy::Policy;
use protocol::facts::span::Span;
use protocol::facts::time::Instant;
use protocol::refusal::Refusal;
use protocol::rules::{self, Asked, who};
use protocol::world::{Footprint, Lease, Pick, World};

pub use fault::Fault;
pub use memory::Memory;
pub use pages::{Pages, listed};
pub use sqlite::{Rebuilt, Sqlite, SqliteOptions};
pub use trusting::{Trusting, Trusts};

/// The version of the SQLite inside.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// How durable an answer must be before it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// On the disk: fences, claims, gates, phases.
    Full,
    /// In the operating system's hands: what a power cut may take back without harm.
    Relaxed,
}

/// What a transaction came to.
#[derive(Clone, PartialEq, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a refusal is large on purpose, and one outcome is alive at a time"
)]
pub enum Outcome {
    /// The events are committed.
    Committed(Vec<Entry>),
    /// The same request was answered before: its events.
    Repeated(Vec<Entry>),
    /// The rules said no; nothing changed.
    Refused(Refusal),
}

/// Which entries of the journal are asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Only {
    /// Those that touch this claim.
    pub claim: Option<protocol::facts::id::SessId>,
    /// Those at or after this wall clock time, in milliseconds since 1970.
    pub since_wall: Option<i64>,
}

/// The pure answer inside a transaction; a serialisation retry may ask again.
pub type Decide<'a> = &'a dyn Fn(&World, Instant) -> Result<Decided, Refusal>;

/// Events to commit, in whose name, under which idempotency key.
#[derive(Clone, PartialEq, Debug)]
pub struct Decided {
    /// In whose name.
    pub actor: protocol::facts::caller::Actor,
    /// The idempotency key.
    pub key: Option<String>,
    /// What happened.
    pub events: Vec<Event>,
}

/// A place that keeps a journal and its tables.
pub trait Store: Send {
    /// Loads what `picks` names, reads the shared clock, lets `decide` answer, commits all or none.
    ///
    /// # Errors
    ///
    /// A [`Fault`] when the store cannot be reached, is busy beyond the deadline, or is damaged.
    fn transact(&mut self, picks: &Footprint, sync: Sync, decide: Decide<'_>) -> Result<Outcome, Fault>;

    /// Loads what `picks` names and reads the clock, in one consistent look.
    ///
    /// # Errors
    ///
    /// As [`Store::transact`].
    fn look(&mut self, picks: &Footprint) -> Result<(World, Instant), Fault>;

    /// At most `limit` entries after `after`, in order.
    ///
    /// # Errors
    ///
    /// As [`Store::transact`].
    fn journal(&mut self, after: Seq, limit: usize, only: &Only) -> Result<Vec<Entry>, Fault>;

    /// Returns when the journal's head is past `after`, or after `at_most`; with the head.
    ///
    /// # Errors
    ///
    /// As [`Store::transact`].
    fn wait(&mut self, after: Seq, at_most: Duration) -> Result<Seq, Fault>;

    /// Pushes leases on that these fences hold. Never waits for a busy store: the answer says which were
    /// pushed. A lease that is not there is made where its fence is 0 (a delivery).
    ///
    /// # Errors
    ///
    /// As [`Store::transact`].
    fn touch(&mut self, leases: &[(Lease, Fence)], until: Span) -> Result<Vec<bool>, Fault>;
}

/// One request at the door.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// Under which configuration.
    pub policy: &'a Policy,
    /// The key under which a repeated request gets the first answer again.
    pub key: Option<&'a str>,
}

/// The door: decides a command in one transaction.
///
/// # Errors
///
/// A [`Fault`] of the store; a refusal is an [`Outcome`].
pub fn submit(store: &mut dyn Store, request: Request<'_>, command: &Command) -> Result<Outcome, Fault> {
    let mut picks = rules::footprint::of(command, request.caller);
    let key = request.key.map(|key| format!("{}/{key}", request.caller.user));
    picks.extend(key.iter().cloned().map(Pick::Key));
    let decide = |world: &World, now: Instant| {
        let asked = Asked {
            world,
            caller: request.caller,
            policy: request.policy,
            now,
        };
        let events = rules::decide(asked, command)?;
        Ok(Decided {
            actor: who::actor(asked),
            key: key.clone(),
            events,
        })
    };
    store.transact(&picks, sync_of(command), &decide)
}

/// How durable each command's answer must be (R9, R32): what mints a fence or answers a human is on the disk.
fn sync_of(command: &Command) -> Sync {
    match command {
        Command::SendSignal { .. } | Command::AckSignals { .. } | Command::CleanupLocks => Sync::Relaxed,
        _ => Sync::Full,
    }
}
