//! A bare insert: opens a file as durable as a store, writes one row and ends.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result};

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).expect("the file");
    let db = Connection::open(path)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    db.execute_batch(
        "PRAGMA synchronous = FULL; BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, \
         data TEXT NOT NULL); INSERT INTO row (data) VALUES ('a row'); COMMIT",
    )
}
