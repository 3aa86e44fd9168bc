//! The embedded store: SQLite in write-ahead mode, opened by every command and by nothing else (R20–R32).

mod connect;
mod durable;
mod log;
mod rebuild;
mod schema;
mod source;
mod turn;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Stopwatch};

use protocol::event::{Entry, Seq};
use protocol::facts::claim::Fence;
use protocol::facts::span::Span;
use protocol::facts::time::Instant;
use protocol::world::{Footprint, Lease, World};
use rusqlite::{Connection, Row, params};

use crate::clock::Clock;
use crate::load;
pub use rebuild::Rebuilt;

use log::Log;
use turn::Turn;

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
    /// What the kernel calls the file system of a path; tests put another in its place (R21).
    pub filesystem: fn(&Path) -> Option<u64>,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            clock: Clock::System,
            deadline: Duration::from_secs(10),
            filesystem: connect::filesystem,
        }
    }
}

/// A store in one SQLite file.
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    file: (u64, u64),
    options: SqliteOptions,
    /// Whether the connection was told how to write; whoever only looks has no use for it.
    writes: bool,
    turn: Option<Turn>,
    log: Log,
    /// How often the log was made durable.
    synced: u64,
}

impl Sqlite {
    /// Makes a store where there is none; with one there, opens it and changes nothing.
    ///
    /// # Errors
    ///
    /// [`Fault::Filesystem`] on a network file system, [`Fault::Disk`] where nothing can be written.
    pub fn create(path: &Path, options: SqliteOptions) -> Result<Sqlite, Fault> {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        connect::refuse_network(folder.unwrap_or(Path::new(".")), &options)?;
        let connection = connect::open(path, true, options.deadline)?;
        schema::migrate(&connection, path, options.deadline)?;
        // A failure costs nothing: the log stays as it is.
        let _ = log::truncate(&connection);
        let file = connect::identity(path)?;
        Ok(Sqlite::over(connection, path, file, options))
    }

    /// Opens a store that is there.
    ///
    /// # Errors
    ///
    /// [`Fault::Missing`], [`Fault::TooNew`], [`Fault::Filesystem`], [`Fault::Damaged`].
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Sqlite, Fault> {
        // Taken before and after: a file that is replaced in between is not the one that was opened.
        let file = connect::identity(path).map_err(|_| Fault::Missing(path.to_owned()))?;
        connect::refuse_network(path, &options)?;
        let connection = connect::open(path, false, options.deadline)?;
        schema::check(&connection, path)?;
        let it = Sqlite::over(connection, path, file, options);
        it.same_file()?;
        Ok(it)
    }

    /// How often this store waited until all that it had committed was on the disk.
    #[cfg(feature = "conformance")]
    pub fn synced(&self) -> u64 {
        self.synced
    }

    fn over(connection: Connection, path: &Path, file: (u64, u64), options: SqliteOptions) -> Sqlite {
        Sqlite {
            connection,
            path: path.to_owned(),
            file,
            options,
            writes: false,
            turn: None,
            log: Log::default(),
            synced: 0,
        }
    }

    /// Begins a new epoch: every fence from now on is larger than any that was ever shown before, also by
    /// what was lost when an older copy of the store was put back (R8).
    ///
    /// # Errors
    ///
    /// As [`Store::transact`].
    pub fn raise_epoch(&mut self) -> Result<Fence, Fault> {
        self.same_file()?;
        let begun = self.begin_writing(self.options.deadline);
        let raised = begun.and_then(|()| self.read_base()).and_then(|read| {
            let fence = read.base.1.next_epoch();
            let fault = self.fault("raising the epoch");
            self.connection
                .execute("UPDATE state SET fence = ?1", [fence.0 as i64])
                .map_err(&fault)?;
            self.run("COMMIT").map_err(&fault)?;
            Ok(fence)
        });
        self.end_writing();
        let fence = raised?;
        self.make_durable()?;
        Ok(fence)
    }

    /// Waits until all that was committed is on the disk, with the turn to write given back.
    fn make_durable(&mut self) -> Result<(), Fault> {
        durable::sync_log(&self.connection).map_err(self.fault("waiting for the disk"))?;
        self.synced += 1;
        Ok(())
    }

    /// Carries out a statement without an answer, which stays prepared.
    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
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

    /// Reads what every look begins with, then the clock. It is the first statement of a transaction, so
    /// nothing that is looked at was written after the time that is read here.
    ///
    /// A boot that the store has not met yet has the next era, which only a command notes.
    fn read_base(&self) -> Result<Read, Fault> {
        let boot = self.options.clock.read().boot;
        let fault = self.fault("reading the clock");
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT j.seq, j.fence, s.fence, s.halt, (SELECT era FROM boot WHERE id = ?1), \
                 (SELECT max(era) FROM boot) FROM state s \
                 LEFT JOIN journal j ON j.seq = (SELECT max(seq) FROM journal)",
            )
            .map_err(&fault)?;
        let row = |row: &Row<'_>| {
            let head: Option<i64> = row.get(0)?;
            let (minted, least): (Option<i64>, i64) = (row.get(1)?, row.get(2)?);
            let halt: String = row.get(3)?;
            let (known, last): (Option<u32>, Option<u32>) = (row.get(4)?, row.get(5)?);
            let fence = minted.unwrap_or(0).max(least);
            Ok((head.unwrap_or(0), fence, halt, known, last))
        };
        let (head, fence, halt, known, last) = statement.query_row([&boot], row).map_err(&fault)?;
        let reading = self.options.clock.read();
        let now = Instant {
            era: known.unwrap_or_else(|| last.unwrap_or(0) + 1),
            tick: reading.tick,
            wall: reading.wall,
        };
        let base = (
            head as Seq,
            Fence(fence as u64),
            source::parse(&self.path, &halt)?,
        );
        let new_boot = known.is_none().then_some(boot);
        Ok(Read { base, now, new_boot })
    }

    /// Ends the transaction that stands, if one does, without its changes, and gives the turn back.
    fn end_writing(&self) {
        self.roll_back();
        if let Some(turn) = &self.turn {
            turn.give_back();
        }
    }

    /// Ends the transaction that stands, if one does, without its changes.
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // Nothing is lost by a failure here: the connection's end rolls back too.
            let _ = self.run("ROLLBACK");
        }
    }

    /// Decides and writes inside the transaction that stands; says whether anything was written.
    fn transact_once(&mut self, picks: &Footprint, decide: Decide<'_>) -> Result<(Outcome, bool), Fault> {
        let Read { base, now, new_boot } = self.read_base()?;
        if let Some(boot) = &new_boot {
            // Once per boot, by the first command, with all others waiting for their turn behind it (R30).
            schema::quick_check(&self.connection, &self.path)?;
            write::note_boot(&self.connection, boot, now.era).map_err(self.fault("noting the boot"))?;
        }
        let noted = new_boot.is_some();
        let mut world = load::load(self, base, picks, now)?;
        if let Some(entries) = world.answered.take() {
            return Ok((Outcome::Repeated(entries), noted));
        }
        let decided = match decide(&world, now) {
            Ok(decided) => decided,
            Err(refusal) => return Ok((Outcome::Refused(refusal), noted)),
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
        write::journal(&self.connection, &entries, world.fence).map_err(self.fault("writing the journal"))?;
        write::facts(&self.connection, &world).map_err(self.fault("writing facts"))?;
        let wrote = noted || !entries.is_empty();
        Ok((Outcome::Committed(entries), wrote))
    }

    /// Takes the turn to write and begins; [`Sqlite::end_writing`] must follow, whatever this says.
    fn begin_writing(&mut self, at_most: Duration) -> Result<(), Fault> {
        let turn = self.turn.get_or_insert_with(|| Turn::of(&self.path));
        if !turn.take(at_most) {
            return Err(Fault::Busy {
                doing: "waiting for its turn to write",
                waited_ms: u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX),
            });
        }
        if !self.writes {
            // What must be on the disk before it is answered is synced once the turn was given back; the log is
            // folded back by [`Log::keep_short`].
            let how = "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL";
            let told = self.connection.execute_batch(how);
            told.map_err(self.fault("choosing how durable an answer is"))?;
            self.writes = true;
        }
        self.run("BEGIN IMMEDIATE")
            .map_err(self.fault("waiting for its turn to write"))
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.log.end(&mut self.connection);
    }
}

/// What every look begins with, and when.
struct Read {
    base: load::Base,
    now: Instant,
    /// The boot, where the store has not met it yet.
    new_boot: Option<String>,
}

impl Store for Sqlite {
    fn transact(&mut self, picks: &Footprint, sync: Sync, decide: Decide<'_>) -> Result<Outcome, Fault> {
        self.same_file()?;
        let turn = || -> Result<Outcome, Fault> {
            self.begin_writing(self.options.deadline)?;
            let (outcome, wrote) = self.transact_once(picks, decide)?;
            if wrote {
                self.run("COMMIT").map_err(self.fault("committing"))?;
                self.log
                    .keep_short(&mut self.connection, &self.path, self.options.deadline);
            }
            Ok(outcome)
        };
        // A bug in a rule must not leave the turn to write taken in a process that lives on.
        let answer = catch_unwind(AssertUnwindSafe(turn));
        self.end_writing();
        let outcome = answer.unwrap_or_else(|bug| resume_unwind(bug))?;
        // An answer that is repeated may be that of a process which died before its sync.
        if sync == Sync::Full && !matches!(outcome, Outcome::Refused(_)) {
            self.make_durable()?;
        }
        Ok(outcome)
    }

    fn look(&mut self, picks: &Footprint) -> Result<(World, Instant), Fault> {
        self.same_file()?;
        self.run("BEGIN").map_err(self.fault("beginning to read"))?;
        let looked = self
            .read_base()
            .and_then(|read| Ok((load::load(self, read.base, picks, read.now)?, read.now)));
        self.roll_back();
        looked
    }

    fn journal(&mut self, after: Seq, limit: usize, only: &Only) -> Result<Vec<Entry>, Fault> {
        self.same_file()?;
        let fault = self.fault("reading the journal");
        // One statement each, so that either has its index.
        let sql = match only.claim {
            None => {
                "SELECT data FROM journal WHERE seq > ?1 AND wall >= ?2 AND ?3 IS NULL ORDER BY seq LIMIT ?4"
            }
            Some(_) => {
                "SELECT data FROM journal WHERE seq > ?1 AND wall >= ?2 AND claim = ?3 ORDER BY seq LIMIT ?4"
            }
        };
        let mut statement = self.connection.prepare_cached(sql).map_err(&fault)?;
        let (claim, since) = (
            only.claim.as_ref().map(|id| id.as_str()),
            only.since_wall.unwrap_or(i64::MIN),
        );
        let (after, limit) = (
            i64::try_from(after).unwrap_or(i64::MAX),
            i64::try_from(limit).unwrap_or(i64::MAX),
        );
        let rows = statement
            .query_map(params![after, since, claim, limit], |row| row.get::<_, String>(0))
            .map_err(&fault)?;
        // Read to the end before any is parsed: no read transaction outlives the reading (R27).
        let texts = rows.collect::<rusqlite::Result<Vec<String>>>().map_err(&fault)?;
        texts.iter().map(|text| source::parse(&self.path, text)).collect()
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
        let begun = self.begin_writing(Duration::ZERO);
        let touched = begun.and_then(|()| self.push(leases, until));
        self.end_writing();
        connect::set_busy_handler(&mut self.connection, self.options.deadline).map_err(&renewing)?;
        match touched {
            Err(Fault::Busy { .. }) => Ok(none()),
            other => other,
        }
    }
}

impl Sqlite {
    /// Pushes leases on inside the transaction that stands, and commits.
    ///
    /// In a boot that no command has noted yet there is no era to write down, and every lease has run out.
    fn push(&mut self, leases: &[(Lease, Fence)], by: Span) -> Result<Vec<bool>, Fault> {
        let Read { now, new_boot, .. } = self.read_base()?;
        if new_boot.is_some() {
            return Ok(leases.iter().map(|_| false).collect());
        }
        let mut answers = Vec::with_capacity(leases.len());
        for (lease, fence) in leases {
            let held = load::Source::lease(self, lease)?;
            let pushed = load::pushed(held, *fence, now, by);
            if let Some(pushed) = pushed.filter(|pushed| held != Some(*pushed)) {
                write::write_lease(&self.connection, lease, &pushed).map_err(self.fault("renewing"))?;
            }
            answers.push(pushed.is_some());
        }
        self.run("COMMIT").map_err(self.fault("renewing"))?;
        self.log
            .keep_short(&mut self.connection, &self.path, self.options.deadline);
        Ok(answers)
    }
}
