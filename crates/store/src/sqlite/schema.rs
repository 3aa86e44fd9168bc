//! The schema, its version, and the look over a file after a boot.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::connect::fault;
use crate::Fault;

/// The schema of this binary.
pub const VERSION: u32 = 1;

/// Marks the file as ours: `brai`.
const APPLICATION: i32 = 0x6272_6169;

/// The first SQLite without the log-reset corruption of 3.7.0 to 3.51.2 (R20).
const SQLITE_LEAST: i32 = 3_051_003;

const SCHEMA: &str = include_str!("schema.sql");

/// Makes or brings up to date, in one exclusive transaction (R31).
pub fn migrate(connection: &Connection, path: &Path, deadline: Duration) -> Result<(), Fault> {
    let fault = |error| fault("making the store", path, deadline, error);
    connection.execute_batch("BEGIN EXCLUSIVE").map_err(fault)?;
    let made = match version(connection).map_err(fault) {
        Ok(0) => make(connection, path).and_then(|()| connection.execute_batch("COMMIT").map_err(fault)),
        Ok(_) => connection.execute_batch("COMMIT").map_err(fault),
        Err(error) => Err(error),
    };
    if made.is_err() && !connection.is_autocommit() {
        // The failure is what counts; closing rolls back too.
        let _ = connection.execute_batch("ROLLBACK");
    }
    made?;
    check(connection, path)
}

fn make(connection: &Connection, path: &Path) -> Result<(), Fault> {
    let fault = |error| fault("making the store", path, Duration::ZERO, error);
    let sql = "SELECT count(*) FROM sqlite_schema";
    let things: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(fault)?;
    if things > 0 {
        return Err(Fault::Damaged {
            path: path.to_owned(),
            why: "it is the database of another program".to_owned(),
        });
    }
    begin(connection).map_err(fault)
}

fn begin(connection: &Connection) -> rusqlite::Result<()> {
    let sql = format!("{SCHEMA} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}");
    connection.execute_batch(&sql)
}

/// Forgets every table, whatever state it is in, and makes them empty, inside the transaction that stands.
pub fn begin_anew(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema; PRAGMA writable_schema = RESET",
    )?;
    begin(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Refuses a SQLite that corrupts, a file that is not ours, and a schema that is newer.
pub fn check(connection: &Connection, path: &Path) -> Result<(), Fault> {
    let fault = |error| fault("reading the store's version", path, Duration::ZERO, error);
    if rusqlite::version_number() < SQLITE_LEAST {
        let why = format!("SQLite {} can corrupt its log", rusqlite::version());
        return Err(Fault::Database {
            doing: "opening",
            why,
        });
    }
    let found = version(connection).map_err(fault)?;
    if found > VERSION {
        return Err(Fault::TooNew {
            found,
            known: VERSION,
        });
    }
    if found == 0 {
        let why = "it holds no store of brain".to_owned();
        return Err(Fault::Damaged {
            path: path.to_owned(),
            why,
        });
    }
    Ok(())
}

/// Looks the whole file over, once per boot and before the first write (R30).
pub fn quick_check(connection: &Connection, path: &Path) -> Result<(), Fault> {
    let fault = |error| fault("looking the store over", path, Duration::ZERO, error);
    let said: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(fault)?;
    if said == "ok" {
        Ok(())
    } else {
        Err(Fault::Damaged {
            path: path.to_owned(),
            why: said,
        })
    }
}
