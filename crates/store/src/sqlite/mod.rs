//! The embedded store: SQLite in write-ahead mode, opened by every command and by nothing else (R20–R32).

mod connect;
mod schema;
mod source;
mod write;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Stopwatch};

use protocol::event::{Entry, Seq};
use protocol::facts::claim::Fence;
use protocol::facts::span::Span;
use protocol::facts::time::Instant;
use protocol::world::{Footprint, Lease, World};
use rusqlite::{Connection, params};

use crate::clock::Clock;
use crate::load;
use crate::{Decide, Fault, Only, Outcome, Store, Sync};

/// How often a waiter asks whether another process has written (1.2 µs each).
const POLL: Duration = Duration::from_millis(25);

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The clock that judges leases.
    pub clock: Clock,
    /// For how long a command tries while others write.
    pub deadline: Duration,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            clock: Clock::System,
            deadline: Duration::from_secs(10),
        }
    }
}

/// A store in one SQLite file.
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    file: (u64, u64),
    options: SqliteOptions,
}

impl Sqlite {
    /// Makes a store where there is none; with one there, opens it and changes nothing.
    ///
    /// # Errors
    ///
    /// [`Fault::Filesystem`] on a network file system, [`Fault::Disk`] where nothing can be written.
    pub fn create(path: &Path, options: SqliteOptions) -> Result<Sqlite, Fault> {
        connect::refuse_network(path.parent().unwrap_or(path))?;
        let connection = connect::open(path, true, options.deadline)?;
        schema::migrate(&connection, path)?;
        Sqlite::over(connection, path, options)
    }

    /// Opens a store that is there.
    ///
    /// # Errors
    ///
    /// [`Fault::Missing`], [`Fault::TooNew`], [`Fault::Filesystem`], [`Fault::Damaged`].
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Sqlite, Fault> {
        if !path.exists() {
            return Err(Fault::Missing(path.to_owned()));
        }
        connect::refuse_network(path)?;
        let connection = connect::open(path, false, options.deadline)?;
        schema::check(&connection, path)?;
        Sqlite::over(connection, path, options)
    }

    fn over(connection: Connection, path: &Path, options: SqliteOptions) -> Result<Sqlite, Fault> {
        let file = connect::identity(path)?;
        Ok(Sqlite {
            connection,
            path: path.to_owned(),
            file,
            options,
        })
    }

    /// Refuses to go on when the file under our feet was replaced or removed (R29).
    fn same_file(&self) -> Result<(), Fault> {
        match connect::identity(&self.path) {
            Ok(file) if file == self.file => Ok(()),
            _ => Err(Fault::Replaced(self.path.clone())),
        }
    }

    fn fault(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> Fault + use<> {
        let (path, deadline) = (self.path.clone(), self.options.deadline);
        move |error| connect::fault(doing, &path, deadline, error)
    }

    /// Reads the clock; a boot that the store has not met yet has the next era, which a writer notes.
    fn now(&self) -> Result<(Instant, Option<String>), Fault> {
        let reading = self.options.clock.read();
        let mut boots = self
            .connection
            .prepare_cached("SELECT (SELECT era FROM boot WHERE id = ?1), (SELECT max(era) FROM boot)")
            .map_err(self.fault("reading the clock"))?;
        let (known, last): (Option<u32>, Option<u32>) = boots
            .query_row([&reading.boot], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(self.fault("reading the clock"))?;
        let era = known.unwrap_or_else(|| last.unwrap_or(0) + 1);
        let now = Instant {
            era,
            tick: reading.tick,
            wall: reading.wall,
        };
        Ok((now, known.is_none().then_some(reading.boot)))
    }

    /// Ends the transaction that stands, if one does, without its changes.
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // Nothing is lost by a failure here: the connection's end rolls back too.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn transact_once(&mut self, picks: &Footprint, decide: Decide<'_>) -> Result<Outcome, Fault> {
        let (now, new_boot) = self.now()?;
        if let Some(boot) = new_boot {
            write::note_boot(&self.connection, &boot, now.era).map_err(self.fault("noting the boot"))?;
        }
        let mut world = load::load(self, picks, now)?;
        if let Some(entries) = world.answered.take() {
            return Ok(Outcome::Repeated(entries));
        }
        let decided = match decide(&world, now) {
            Ok(decided) => decided,
            Err(refusal) => return Ok(Outcome::Refused(refusal)),
        };
        let mut entries = Vec::with_capacity(decided.events.len());
        for event in decided.events {
            let (actor, key) = (decided.actor.clone(), decided.key.clone());
            let entry = Entry {
                seq: world.head + 1,
                at: now,
                actor,
                key,
                event,
            };
            world.apply(&entry);
            entries.push(entry);
        }
        write::journal(&self.connection, &entries).map_err(self.fault("writing the journal"))?;
        write::facts(&self.connection, &world).map_err(self.fault("writing facts"))?;
        Ok(Outcome::Committed(entries))
    }

    fn begin_writing(&self, sync: Sync) -> Result<(), Fault> {
        let level = match sync {
            Sync::Full => "FULL",
            Sync::Relaxed => "NORMAL",
        };
        self.connection
            .execute_batch(&format!("PRAGMA synchronous = {level}; BEGIN IMMEDIATE"))
            .map_err(self.fault("waiting for its turn to write"))
    }

    /// Whether another boot of the machine began since the last write: then the file is looked over once (R30).
    fn is_first_of_boot(&self) -> Result<bool, Fault> {
        Ok(self.now()?.1.is_some())
    }
}

impl Store for Sqlite {
    fn transact(&mut self, picks: &Footprint, sync: Sync, decide: Decide<'_>) -> Result<Outcome, Fault> {
        self.same_file()?;
        if self.is_first_of_boot()? {
            schema::quick_check(&self.connection, &self.path)?;
        }
        self.begin_writing(sync)?;
        let outcome = self.transact_once(picks, decide);
        match &outcome {
            Ok(Outcome::Committed(_)) => {
                let committed = self
                    .connection
                    .execute_batch("COMMIT")
                    .map_err(self.fault("committing"));
                if committed.is_err() {
                    self.roll_back();
                }
                committed?;
                connect::keep_log_short(&mut self.connection, &self.path, self.options.deadline);
            }
            Ok(Outcome::Repeated(_) | Outcome::Refused(_)) | Err(_) => self.roll_back(),
        }
        outcome
    }

    fn look(&mut self, picks: &Footprint) -> Result<(World, Instant), Fault> {
        self.same_file()?;
        self.connection
            .execute_batch("BEGIN")
            .map_err(self.fault("beginning to read"))?;
        let looked = self
            .now()
            .and_then(|(now, _)| Ok((load::load(self, picks, now)?, now)));
        self.roll_back();
        looked
    }

    fn journal(&mut self, after: Seq, limit: usize, only: &Only) -> Result<Vec<Entry>, Fault> {
        self.same_file()?;
        let fault = self.fault("reading the journal");
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT data FROM journal WHERE seq > ?1 AND (?2 IS NULL OR claim = ?2) \
                 AND (?3 IS NULL OR wall >= ?3) ORDER BY seq LIMIT ?4",
            )
            .map_err(&fault)?;
        let claim = only.claim.as_ref().map(|id| id.as_str());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement
            .query_map(params![after as i64, claim, only.since_wall, limit], |row| {
                row.get::<_, String>(0)
            })
            .map_err(&fault)?;
        rows.map(|row| source::parse(&self.path, &row.map_err(&fault)?))
            .collect()
    }

    fn wait(&mut self, after: Seq, at_most: Duration) -> Result<Seq, Fault> {
        let began = Stopwatch::now();
        let version = |it: &Sqlite| {
            let read = it
                .connection
                .query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0));
            read.map_err(it.fault("waiting for news"))
        };
        let head = |it: &Sqlite| {
            let sql = "SELECT coalesce(max(seq), 0) FROM journal";
            let read = it.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            read.map(|head| head as Seq).map_err(it.fault("waiting for news"))
        };
        let mut seen = version(self)?;
        let mut now = head(self)?;
        while now <= after {
            let left = at_most.saturating_sub(began.elapsed());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(POLL.min(left));
            self.same_file()?;
            let fresh = version(self)?;
            if fresh != seen {
                seen = fresh;
                now = head(self)?;
            }
        }
        Ok(now)
    }

    fn touch(&mut self, leases: &[(Lease, Fence)], until: Span) -> Result<Vec<bool>, Fault> {
        self.same_file()?;
        let renewing = self.fault("renewing");
        let none = || leases.iter().map(|_| false).collect();
        // A renewal waits for nobody: what is lost by it is a little of a lease.
        connect::clear_busy_handler(&mut self.connection).map_err(&renewing)?;
        let begun = self.begin_writing(Sync::Relaxed);
        let touched = begun.and_then(|()| {
            let (now, _) = self.now()?;
            let until = now.plus(until);
            let pushed =
                write::touch(&self.connection, leases, now, until).map_err(self.fault("renewing"))?;
            self.connection
                .execute_batch("COMMIT")
                .map_err(self.fault("renewing"))?;
            Ok(pushed)
        });
        self.roll_back();
        connect::set_busy_handler(&mut self.connection, self.options.deadline).map_err(&renewing)?;
        match touched {
            Err(Fault::Busy { .. }) => Ok(none()),
            other => other,
        }
    }
}
