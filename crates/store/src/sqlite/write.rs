//! Writing the journal, the tables' shadow of it, and leases.

use protocol::event::Entry;
use protocol::facts::claim::{Claim, Fence};
use protocol::facts::gate::About;
use protocol::facts::path::Fold;
use protocol::facts::run::Standing;
use protocol::facts::scope::Scope;
use protocol::facts::signal::Address;
use protocol::facts::time::Instant;
use protocol::world::{Fact, Lease, Until, World};
use rusqlite::{Connection, params};
use serde::Serialize;

/// A value as it is stored.
fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
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

/// Appends to the journal.
pub fn journal(connection: &Connection, entries: &[Entry]) -> rusqlite::Result<()> {
    let mut insert = connection
        .prepare_cached("INSERT INTO journal (seq, wall, claim, key, data) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for entry in entries {
        let claim = entry.event.claim().map(|id| id.as_str());
        insert.execute(params![
            entry.seq as i64,
            entry.at.wall,
            claim,
            entry.key,
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
    if !world.changed.is_empty() {
        run(
            "UPDATE state SET fence = ?1, halt = ?2",
            params![world.fence.0 as i64, json(&world.halt)?],
        )?;
    }
    for fact in &world.changed {
        match fact {
            Fact::Halt => {}
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
                let (claim, of_run) = match &gate.about {
                    About::Claim(claim) => (Some(claim.as_str()), None),
                    About::Phase(run, _) | About::Run(run) => (None, Some(run.as_str())),
                };
                run(
                    "INSERT OR REPLACE INTO gate (id, claim, run, pending, deferred, data) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![
                        id.as_str(),
                        claim,
                        of_run,
                        gate.is_pending(),
                        gate.deferred,
                        json(gate)?
                    ],
                )?;
            }
            Fact::Signal(id) => {
                let Some(signal) = world.signals.get(id) else {
                    continue;
                };
                run(
                    "INSERT OR REPLACE INTO signal (id, addressee, open, data) VALUES (?1, ?2, ?3, ?4)",
                    params![
                        id.as_str(),
                        addressee(&signal.to),
                        signal.acked_at.is_none(),
                        json(signal)?
                    ],
                )?;
            }
            Fact::Work(key) => {
                run("DELETE FROM entry WHERE owner = ?1 AND work", params![key.0])?;
                match world.works.get(key) {
                    Some(work) => {
                        run(
                            "INSERT OR REPLACE INTO work (key, data) VALUES (?1, ?2)",
                            params![key.0, json(work)?],
                        )?;
                        write_entries(connection, &work.scope, true, &key.0)?;
                    }
                    None => run("DELETE FROM work WHERE key = ?1", params![key.0])?,
                }
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
    let process = claim.owner.process.as_ref().map(json).transpose()?;
    let live = !claim.is_terminal();
    let mut upsert = connection.prepare_cached(
        "INSERT OR REPLACE INTO claim (id, live, parent, token, host_session, process, data) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let parent = claim.parent_satellite.as_ref().map(|id| id.as_str());
    let (id, token) = (claim.id.as_str(), &claim.token.0);
    upsert.execute(params![
        id,
        live,
        parent,
        token,
        claim.owner.host_session,
        process,
        json(claim)?
    ])?;
    connection
        .prepare_cached("DELETE FROM entry WHERE owner = ?1 AND NOT work")?
        .execute([id])?;
    if live {
        write_entries(connection, &claim.scope, false, id)?;
    }
    Ok(())
}

fn write_entries(connection: &Connection, scope: &Scope, work: bool, owner: &str) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO entry (prefix, work, owner, entry, folded) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for entry in scope.additions() {
        let folded = entry.fold() == Fold::Case;
        insert.execute(params![
            entry.literal_prefix(),
            work,
            owner,
            entry.as_str(),
            folded
        ])?;
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

fn write_lease(connection: &Connection, lease: &Lease, until: &Until) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO lease (id, fence, touched, until) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![
            lease_id(lease),
            until.fence.0 as i64,
            json(&until.touched)?,
            json(&until.until)?
        ])
        .map(drop)
}

/// Pushes leases on that these fences hold; makes deliveries.
pub fn touch(
    connection: &Connection,
    leases: &[(Lease, Fence)],
    now: Instant,
    until: Instant,
) -> rusqlite::Result<Vec<bool>> {
    let mut push = connection
        .prepare_cached("UPDATE lease SET touched = ?3, until = ?4 WHERE id = ?1 AND fence = ?2")?;
    let mut pushed = Vec::with_capacity(leases.len());
    for (lease, fence) in leases {
        let rows = push.execute(params![
            lease_id(lease),
            fence.0 as i64,
            json(&now)?,
            json(&until)?
        ])?;
        let fresh = rows == 0 && *fence == Fence(0);
        if fresh {
            write_lease(
                connection,
                lease,
                &Until {
                    fence: *fence,
                    touched: now,
                    until,
                },
            )?;
        }
        pushed.push(rows > 0 || fresh);
    }
    Ok(pushed)
}
