//! Making the tables anew from the journal, when the file is damaged but the journal can be read (R30).

use std::path::{Path, PathBuf};

use protocol::event::Entry;
use protocol::world::{Fact, World};
use rusqlite::{Connection, params};

use super::{Sqlite, SqliteOptions, connect, schema, source, write};
use crate::Fault;

/// What a rebuild came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebuilt {
    /// Where the damaged store lies now, page for page.
    pub aside: PathBuf,
    /// How many entries the journal has.
    pub entries: u64,
}

impl Sqlite {
    /// Makes every table anew from the journal, in place and in one transaction: other processes wait for it
    /// and go on. The damaged pages are copied aside first. Leases are lost, so every claim is stale until its
    /// next sign of life; the epoch is raised (R8).
    ///
    /// # Errors
    ///
    /// [`Fault::Damaged`] where the journal itself, or the file's first page, cannot be read: then only a
    /// backup or the git journal helps, and nothing was changed.
    pub fn rebuild(path: &Path, options: SqliteOptions) -> Result<Rebuilt, Fault> {
        let file = connect::identity(path).map_err(|_| Fault::Missing(path.to_owned()))?;
        connect::refuse_network(path, &options)?;
        let connection = connect::open(path, false, options.deadline)?;
        schema::check(&connection, path)?;
        let wall = options.clock.read().wall;
        let mut it = Sqlite::over(connection, path, file, options);
        it.same_file()?;
        // With the turn to write in hand nothing is added between the reading and the writing.
        let begun = it.begin_writing(it.options.deadline);
        let rebuilt = begun.and_then(|()| it.rebuild_inside(wall));
        it.end_writing();
        let rebuilt = rebuilt?;
        it.make_durable()?;
        // What the damaged tables lay in is given back. Losing this does no harm.
        let _ = it.connection.execute_batch("VACUUM");
        Ok(rebuilt)
    }

    fn rebuild_inside(&mut self, wall: i64) -> Result<Rebuilt, Fault> {
        let aside = PathBuf::from(format!("{}.damaged-{wall}", self.path.display()));
        self.copy_to(&aside)?;
        let entries = self.read_journal()?;
        let mut world = World::default();
        for entry in &entries {
            world.apply(entry);
        }
        world.changed.retain(|fact| !matches!(fact, Fact::Lease(_)));
        world.changed.insert(Fact::Halt);
        world.fence = world.fence.next_epoch();
        let boots = self.read_boots(&entries);
        let fault = self.fault("rebuilding the tables");
        schema::begin_anew(&self.connection).map_err(&fault)?;
        for (boot, era) in boots {
            write::note_boot(&self.connection, &boot, era).map_err(&fault)?;
        }
        write::journal(&self.connection, &entries, world.fence).map_err(&fault)?;
        write::facts(&self.connection, &world).map_err(&fault)?;
        self.connection.execute_batch("COMMIT").map_err(&fault)?;
        let entries = entries.len() as u64;
        Ok(Rebuilt { aside, entries })
    }

    /// Copies the pages as they are, by SQLite: it alone may touch the file while it is open (R25, R28).
    fn copy_to(&self, aside: &Path) -> Result<(), Fault> {
        let fault = self.fault("keeping the damaged store aside");
        let reader = connect::open(&self.path, false, self.options.deadline)?;
        let mut copy = Connection::open(aside).map_err(&fault)?;
        let backup = rusqlite::backup::Backup::new(&reader, &mut copy).map_err(&fault)?;
        match backup.step(-1).map_err(&fault)? {
            rusqlite::backup::StepResult::Done => Ok(()),
            _ => Err(Fault::Busy {
                doing: "keeping the damaged store aside",
                waited_ms: 0,
            }),
        }
    }

    /// Reads the whole journal, by its table alone; a gap or an entry that does not parse is damage.
    fn read_journal(&self) -> Result<Vec<Entry>, Fault> {
        let fault = self.fault("reading the journal");
        let damaged = |why: String| Fault::Damaged {
            path: self.path.clone(),
            why: format!("its journal cannot be read: {why}"),
        };
        let mut statement = self
            .connection
            .prepare("SELECT seq, data FROM journal NOT INDEXED ORDER BY seq")
            .map_err(&fault)?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
            .map_err(&fault)?;
        let mut entries: Vec<Entry> = Vec::new();
        for row in rows {
            let (seq, data) = row.map_err(|error| damaged(error.to_string()))?;
            let entry: Entry = source::parse(&self.path, &data)?;
            let wanted = entries.len() as u64 + 1;
            if entry.seq != wanted || seq as u64 != wanted {
                return Err(damaged(format!("{seq} stands in the place of {wanted}")));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    /// The boots that the store has met; where they cannot be read, one that stands for all of them.
    fn read_boots(&self, entries: &[Entry]) -> Vec<(String, u32)> {
        let read = || -> rusqlite::Result<Vec<(String, u32)>> {
            let mut statement = self.connection.prepare("SELECT id, era FROM boot")?;
            let rows = statement.query_map(params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        let last = entries.iter().map(|entry| entry.at.era).max().unwrap_or(0);
        let boots = read().unwrap_or_default();
        if boots.iter().any(|(_, era)| *era >= last) {
            return boots;
        }
        vec![("before the rebuild".to_owned(), last)]
    }
}
