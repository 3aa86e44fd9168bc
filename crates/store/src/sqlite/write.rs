//! Writing the journal, the tables' shadow of it, and leases.

use std::collections::BTreeSet;

use protocol::event::Entry;
use protocol::facts::caller::TokenDigest;
use protocol::facts::claim::{Claim, Fence};
use protocol::facts::gate::About;
use protocol::facts::id::SessId;
use protocol::facts::run::Standing;
use protocol::facts::scope::{Entry as ScopeEntry, Scope};
use protocol::facts::signal::Address;
use protocol::facts::signal_kind::SignalKind;
use protocol::facts::time::Instant;
use protocol::facts::work::Work;
use protocol::world::{Fact, Lease, Until, World};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::load;

/// A value as it is stored.
pub fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Notes a boot that the store has not met.
pub fn note_boot(connection: &Connection, boot: &str, era: u32) -> rusqlite::Result<()> {
    connection
        .execute(
            "INSERT OR IGNORE INTO boot (id, era) VALUES (?1, ?2)",
            params![boot, era],
        )
        .map(drop)
}

/// Appends to the journal, with the last fence that was minted.
pub fn journal(connection: &Connection, entries: &[Entry], fence: Fence) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO journal (seq, wall, claim, key, fence, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for entry in entries {
        let claim = entry.event.claim().map(|id| id.as_str());
        insert.execute(params![
            entry.seq as i64,
            entry.at.wall,
            claim,
            entry.key,
            fence.0 as i64,
            json(entry)?
        ])?;
    }
    Ok(())
}

/// Writes every fact that changed since the world was loaded.
pub fn facts(connection: &Connection, world: &World) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| -> rusqlite::Result<()> {
        connection.prepare_cached(sql)?.execute(values).map(drop)
    };
    for fact in &world.changed {
        match fact {
            Fact::Halt => run("UPDATE state SET halt = ?1", params![json(&world.halt)?])?,
            Fact::Claim(id) => match world.claims.get(id) {
                Some(claim) => write_claim(connection, claim)?,
                None => run("DELETE FROM claim WHERE id = ?1", params![id.as_str()])?,
            },
            Fact::Lock(path) => match world.locks.get(path) {
                Some(lock) => run(
                    "INSERT OR REPLACE INTO lock (path, holder, data) VALUES (?1, ?2, ?3)",
                    params![path, lock.holder.as_str(), json(lock)?],
                )?,
                None => run("DELETE FROM lock WHERE path = ?1", params![path])?,
            },
            Fact::Gate(id) => {
                let Some(gate) = world.gates.get(id) else { continue };
                let about = match &gate.about {
                    About::Claim(claim) => claim.as_str(),
                    About::Phase(run, _) | About::Run(run) => run.as_str(),
                };
                run(
                    "INSERT OR REPLACE INTO gate (id, about, pending, deferred, data) \
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![id.as_str(), about, gate.is_pending(), gate.deferred, json(gate)?],
                )?;
            }
            Fact::Signal(id) => {
                let Some(signal) = world.signals.get(id) else {
                    continue;
                };
                let open = signal.acked_at.is_none();
                let blocks = open && signal.kind == SignalKind::BlockedOn;
                run(
                    "INSERT OR REPLACE INTO signal (id, addressee, open, blocks, data) \
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![id.as_str(), addressee(&signal.to), open, blocks, json(signal)?],
                )?;
            }
            Fact::Work(key) => {
                let work = world.works.get(key);
                let old: Option<Work> = stored(connection, "SELECT data FROM work WHERE key = ?1", &key.0)?;
                match work {
                    Some(work) => run(
                        "INSERT OR REPLACE INTO work (key, data) VALUES (?1, ?2)",
                        params![key.0, json(work)?],
                    )?,
                    None => run("DELETE FROM work WHERE key = ?1", params![key.0])?,
                }
                let (old, new) = (old.as_ref().map(|it| &it.scope), work.map(|it| &it.scope));
                write_entries(connection, old, new, true, &key.0)?;
            }
            Fact::Run(id) => {
                let Some(it) = world.runs.get(id) else { continue };
                run(
                    "INSERT OR REPLACE INTO run (id, plan, live, data) VALUES (?1, ?2, ?3, ?4)",
                    params![id.as_str(), it.plan, it.end.is_none(), json(it)?],
                )?;
            }
            Fact::Phase(of, id) => {
                let Some(it) = world.phases.get(&(of.clone(), id.clone())) else {
                    continue;
                };
                let busy = it.standing == Standing::Running;
                run(
                    "INSERT OR REPLACE INTO phase (run, id, position, busy, data) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![of.as_str(), id, it.position, busy, json(it)?],
                )?;
            }
            Fact::Green(key) => {
                let total = world.greens.get(key).copied().unwrap_or_default();
                run(
                    "INSERT OR REPLACE INTO green (key, total) VALUES (?1, ?2)",
                    params![key, total as i64],
                )?;
            }
            Fact::Lease(lease) => match world.leases.get(lease) {
                Some(until) => write_lease(connection, lease, until)?,
                None => run("DELETE FROM lease WHERE id = ?1", params![lease_id(lease)])?,
            },
        }
    }
    Ok(())
}

fn write_claim(connection: &Connection, claim: &Claim) -> rusqlite::Result<()> {
    let id = claim.id.as_str();
    let old: Option<Claim> = stored(connection, "SELECT data FROM claim WHERE id = ?1", id)?;
    let live = !claim.is_terminal();
    let process = claim.owner.process.as_ref().map(json).transpose()?;
    let mut upsert = connection.prepare_cached(
        "INSERT INTO claim (id, live, human, process, work, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (id) DO UPDATE SET live = ?2, human = ?3, process = ?4, work = ?5, data = ?6",
    )?;
    upsert.execute(params![
        id,
        live,
        claim.human,
        process,
        claim.work.0,
        json(claim)?
    ])?;
    write_marks(connection, old.as_ref(), claim)?;
    let old = old.as_ref().filter(|it| !it.is_terminal()).map(|it| &it.scope);
    write_entries(connection, old, live.then_some(&claim.scope), false, id)
}

/// Writes by which marks a claim is found, in place of those by which it was.
fn write_marks(connection: &Connection, old: Option<&Claim>, new: &Claim) -> rusqlite::Result<()> {
    let (found, wanted) = (old.map(marks).unwrap_or_default(), marks(new));
    let id = new.id.as_str();
    for mark in found.difference(&wanted) {
        connection
            .prepare_cached("DELETE FROM mark WHERE mark = ?1 AND claim = ?2")?
            .execute(params![mark, id])?;
    }
    for mark in wanted.difference(&found) {
        connection
            .prepare_cached("INSERT INTO mark (mark, claim) VALUES (?1, ?2)")?
            .execute(params![mark, id])?;
    }
    Ok(())
}

/// The marks of a claim. A host's session finds what lives; the other two also what has ended.
fn marks(claim: &Claim) -> BTreeSet<String> {
    let session = claim
        .owner
        .host_session
        .as_deref()
        .filter(|_| !claim.is_terminal());
    let parent = claim.parent_satellite.as_ref().map(of_parent);
    let all = [Some(of_token(&claim.token)), parent, session.map(of_host_session)];
    all.into_iter().flatten().collect()
}

/// The mark of the children of a claim.
pub fn of_parent(parent: &SessId) -> String {
    format!("parent:{parent}")
}

/// The mark of the claims of a token.
pub fn of_token(token: &TokenDigest) -> String {
    format!("token:{}", token.0)
}

/// The mark of the living claims of a host's session.
pub fn of_host_session(session: &str) -> String {
    format!("host:{session}")
}

/// What stands in a row now.
fn stored<T: DeserializeOwned>(connection: &Connection, sql: &str, key: &str) -> rusqlite::Result<Option<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let text: Option<String> = statement.query_row([key], |row| row.get(0)).optional()?;
    let parse = |text: String| {
        serde_json::from_str(&text)
            .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
    };
    text.map(parse).transpose()
}

/// Writes by which entries a claim or a piece of work is found, in place of those by which it was.
fn write_entries(
    connection: &Connection,
    old: Option<&Scope>,
    new: Option<&Scope>,
    work: bool,
    owner: &str,
) -> rusqlite::Result<()> {
    let rows = |scope: Option<&Scope>| -> BTreeSet<(String, String)> {
        let entries = scope.map(load::folded).unwrap_or_default();
        let row = |entry: &ScopeEntry| (entry.literal_prefix(), entry.as_str().to_owned());
        entries.iter().map(row).collect()
    };
    // Most changes of a claim leave its scope as it is.
    if old.map(Scope::to_strings) == new.map(Scope::to_strings) {
        return Ok(());
    }
    let (found, wanted) = (rows(old), rows(new));
    for (prefix, entry) in found.difference(&wanted) {
        connection
            .prepare_cached(
                "DELETE FROM entry WHERE prefix = ?1 AND work = ?2 AND owner = ?3 AND entry = ?4",
            )?
            .execute(params![prefix, work, owner, entry])?;
    }
    for (prefix, entry) in wanted.difference(&found) {
        connection
            .prepare_cached("INSERT INTO entry (prefix, work, owner, entry) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![prefix, work, owner, entry])?;
    }
    Ok(())
}

/// The column by which a signal is found.
pub fn addressee(to: &Address) -> &str {
    match to {
        Address::Session(id) => id.as_str(),
        Address::Human => "",
    }
}

/// The key of a lease's row.
pub fn lease_id(lease: &Lease) -> String {
    match lease {
        Lease::Claim(id) => format!("claim:{id}"),
        Lease::Lock(path) => format!("lock:{path}"),
        Lease::Delivery(id) => format!("sig:{id}"),
        Lease::Driver(id) => format!("run:{id}"),
    }
}

/// Writes a lease.
pub fn write_lease(connection: &Connection, lease: &Lease, until: &Until) -> rusqlite::Result<()> {
    let (from, to) = (until.touched, until.until);
    connection
        .prepare_cached("INSERT OR REPLACE INTO lease VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
        .execute(params![
            lease_id(lease),
            until.fence.0 as i64,
            from.era,
            from.tick as i64,
            from.wall,
            to.era,
            to.tick as i64,
            to.wall
        ])
        .map(drop)
}

/// The columns of a lease, in the order in which [`read_lease`] takes them.
pub const LEASE: &str = "l.fence, l.touched_era, l.touched_tick, l.touched_wall, l.era, l.tick, l.wall";

/// Reads the columns of [`LEASE`], which stand from `at` on; nothing where a join found none.
pub fn read_lease(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Until>> {
    let Some(fence) = row.get::<_, Option<i64>>(at)? else {
        return Ok(None);
    };
    let instant = |at: usize| -> rusqlite::Result<Instant> {
        Ok(Instant {
            era: row.get(at)?,
            tick: row.get::<_, i64>(at + 1)? as u64,
            wall: row.get(at + 2)?,
        })
    };
    Ok(Some(Until {
        fence: Fence(fence as u64),
        touched: instant(at + 1)?,
        until: instant(at + 4)?,
    }))
}
