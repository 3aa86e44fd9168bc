//! Looking facts up in the tables, by index.

use std::collections::BTreeSet;
use std::path::Path;

use protocol::event::Entry;
use protocol::facts::caller::Caller;
use protocol::facts::gate::Gate;
use protocol::facts::id::{GateId, RunId, SessId, SigId};
use protocol::facts::lock::Lock;
use protocol::facts::path::Fold;
use protocol::facts::run::{PhaseRun, Run};
use protocol::facts::scope::Scope;
use protocol::facts::signal::Signal;
use protocol::facts::work::{Work, WorkKey};
use protocol::world::{Lease, Until};
use rusqlite::{OptionalExtension, Row, ToSql, params};
use serde::de::DeserializeOwned;

use super::Sqlite;
use super::write::{LEASE, addressee, json, lease_id, of_host_session, of_parent, of_token, read_lease};
use crate::Fault;
use crate::load::{self, Claims, Gates, Locks, Mail, Phases, Runs, Source, Whole};

const DOING: &str = "reading facts";

/// Reads a stored value.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| Fault::Damaged {
        path: path.to_owned(),
        why: format!("a row does not parse: {error}"),
    })
}

impl Sqlite {
    fn one<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Fault> {
        let fault = self.fault(DOING);
        let mut statement = self.connection.prepare_cached(sql).map_err(&fault)?;
        statement.query_row(values, read).optional().map_err(&fault)
    }

    fn rows<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Fault> {
        let fault = self.fault(DOING);
        let mut statement = self.connection.prepare_cached(sql).map_err(&fault)?;
        let rows = statement.query_map(values, read).map_err(&fault)?;
        rows.collect::<rusqlite::Result<Vec<T>>>().map_err(&fault)
    }

    fn fact<T: DeserializeOwned>(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Option<T>, Fault> {
        let text = self.one(sql, values, |row| row.get::<_, String>(0))?;
        text.map(|text| parse(&self.path, &text)).transpose()
    }

    fn facts<T: DeserializeOwned>(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Vec<T>, Fault> {
        let texts = self.rows(sql, values, |row| row.get::<_, String>(0))?;
        texts.iter().map(|text| parse(&self.path, text)).collect()
    }

    fn ids_of(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Vec<SessId>, Fault> {
        let texts = self.rows(sql, values, |row| row.get::<_, String>(0))?;
        texts.into_iter().map(|text| self.sess_id(&text)).collect()
    }

    fn sess_id(&self, text: &str) -> Result<SessId, Fault> {
        SessId::parse(text).map_err(|error| Fault::Damaged {
            path: self.path.clone(),
            why: error.to_string(),
        })
    }

    /// Owners of stored entries that may meet a scope: those whose literal components lie above or below
    /// one of its own, minus those that a cheap comparison rules out.
    fn meeting(&self, scope: &Scope, work: bool) -> Result<BTreeSet<String>, Fault> {
        let mut owners = BTreeSet::new();
        let all = "SELECT owner, entry FROM entry WHERE work = ?1";
        let exact = "SELECT owner, entry FROM entry WHERE prefix = ?1 AND work = ?2";
        let below = "SELECT owner, entry FROM entry WHERE prefix >= ?1 AND prefix < ?2 AND work = ?3";
        let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        for mine in load::folded(scope) {
            let prefix = mine.literal_prefix();
            let mut found = Vec::new();
            if prefix.is_empty() {
                found.extend(self.rows(all, params![work], row)?);
            } else {
                for above in above_or_at(&prefix) {
                    found.extend(self.rows(exact, params![above, work], row)?);
                }
                let (from, to) = (format!("{prefix}/"), format!("{prefix}0"));
                found.extend(self.rows(below, params![from, to, work], row)?);
            }
            for (owner, text) in found {
                if owners.contains(&owner) || plainly_apart(&text, &prefix) {
                    continue;
                }
                // What does not parse alone may still be part of a scope that meets.
                let theirs = Scope::parse([&text], Fold::Case);
                let apart = theirs.is_ok_and(|it| !it.additions().any(|it| it.may_overlap(&mine)));
                if !apart {
                    owners.insert(owner);
                }
            }
        }
        Ok(owners)
    }

    /// Locks with their leases, by a condition on `k`.
    fn leased(&self, condition: &str, values: &[&dyn ToSql]) -> Result<Vec<(Lock, Option<Until>)>, Fault> {
        let sql = format!(
            "SELECT k.data, {LEASE} FROM lock k LEFT JOIN lease l ON l.id = 'lock:' || k.path WHERE {condition}"
        );
        let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, read_lease(row, 1)?));
        let rows = self.rows(&sql, values, row)?;
        rows.into_iter()
            .map(|(lock, lease)| Ok((parse(&self.path, &lock)?, lease)))
            .collect()
    }

    /// Unended claims that a caller may own, those of its token, and what else tells its nature.
    fn owned_by(&self, caller: &Caller) -> Result<BTreeSet<SessId>, Fault> {
        let mut ids = BTreeSet::new();
        if let Some(token) = &caller.token {
            ids.extend(self.ids_of("SELECT claim FROM mark WHERE mark = ?1", params![of_token(token)])?);
        }
        if let Some(session) = &caller.host_session {
            let sql = "SELECT claim FROM mark WHERE mark = ?1";
            ids.extend(self.ids_of(sql, params![of_host_session(session)])?);
        }
        // An aggregate alone gives a row where there is none; a condition on it would read all that it is over.
        let sql = "SELECT id FROM claim WHERE process = ?1 AND live = 1 UNION ALL \
                   SELECT min(id) FROM claim WHERE process = ?1 AND live = 0 AND human = 0";
        let fault = self.fault(DOING);
        for process in &caller.chain {
            let process = json(process).map_err(&fault)?;
            let found = self.rows(sql, params![process], |row| row.get::<_, Option<String>>(0))?;
            for id in found.into_iter().flatten() {
                ids.insert(self.sess_id(&id)?);
            }
        }
        Ok(ids)
    }
}

/// Says without reading a pattern that it does not begin as a place does: a no is not certain.
///
/// Patterns without a literal first component stand beside every place, so each look meets all of them.
fn plainly_apart(text: &str, place: &str) -> bool {
    let pattern = text.split('/').next().unwrap_or_default();
    let name = place.split('/').next().unwrap_or_default();
    let special = |c: char| matches!(c, '*' | '?');
    let (Some(from), Some(to)) = (pattern.find(special), pattern.rfind(special)) else {
        return false;
    };
    if name.is_empty()
        || !name.is_ascii()
        || !pattern.is_ascii()
        || pattern.contains(['\\', '!'])
        || pattern == "**"
    {
        return false;
    }
    let (head, tail) = (&pattern[..from], &pattern[to + 1..]);
    let begins = name
        .get(..head.len())
        .is_some_and(|it| it.eq_ignore_ascii_case(head));
    let ends = name
        .len()
        .checked_sub(tail.len())
        .is_some_and(|at| name[at..].eq_ignore_ascii_case(tail));
    !(begins && ends)
}

/// A prefix and every prefix above it, the root's empty one last.
fn above_or_at(prefix: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(prefix), |at| {
        (!at.is_empty()).then(|| at.rsplit_once('/').map_or("", |(above, _)| above))
    })
}

impl Source for Sqlite {
    fn claim(&mut self, id: &SessId) -> Result<Option<Whole>, Fault> {
        let sql = format!(
            "SELECT c.data, w.data, {LEASE} FROM claim c LEFT JOIN lease l ON l.id = 'claim:' || c.id \
             LEFT JOIN work w ON w.key = c.work WHERE c.id = ?1"
        );
        let row = |row: &Row<'_>| {
            let (claim, work) = (row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?);
            Ok((claim, work, read_lease(row, 2)?))
        };
        let whole = self
            .one(&sql, params![id.as_str()], row)?
            .map(|(claim, work, lease)| {
                Ok(Whole {
                    claim: parse(&self.path, &claim)?,
                    lease,
                    work: work.map(|work| parse(&self.path, &work)).transpose()?,
                })
            });
        whole.transpose()
    }

    fn claims(&mut self, which: Claims<'_>) -> Result<Vec<SessId>, Fault> {
        match which {
            Claims::ChildrenOf(parent) => self.ids_of(
                "SELECT claim FROM mark WHERE mark = ?1 ORDER BY claim",
                params![of_parent(parent)],
            ),
            Claims::Meeting(scope) => {
                let owners = self.meeting(scope, false)?;
                owners.iter().map(|owner| self.sess_id(owner)).collect()
            }
            Claims::OwnedBy(caller) => Ok(self.owned_by(caller)?.into_iter().collect()),
            // Each unended claim has an entry, so that no index of its own is written with every claim.
            Claims::Live => self.ids_of(
                "SELECT DISTINCT owner FROM entry WHERE work = 0 ORDER BY owner",
                &[],
            ),
            Claims::Since(id) => self.ids_of(
                "SELECT DISTINCT claim FROM journal WHERE claim IS NOT NULL \
                 AND seq >= (SELECT min(seq) FROM journal WHERE claim = ?1) ORDER BY claim",
                params![id.as_str()],
            ),
            Claims::All => self.ids_of("SELECT id FROM claim ORDER BY id", &[]),
            // The index of ids alone is read, which is small; where in it the text stands no index tells.
            Claims::Named(part) => self.ids_of(
                "SELECT id FROM claim WHERE instr(id, ?1) > 0 ORDER BY id",
                params![part],
            ),
            Claims::Page { live, after, most } => self.ids_of(
                if live {
                    "SELECT DISTINCT owner FROM entry WHERE work = 0 AND owner > ?1 ORDER BY owner LIMIT ?2"
                } else {
                    "SELECT id FROM claim WHERE id > ?1 ORDER BY id LIMIT ?2"
                },
                params![after.map_or("", SessId::as_str), most as i64],
            ),
        }
    }

    fn ids(&mut self, prefix: &str) -> Result<Vec<SessId>, Fault> {
        let to = format!("{prefix}\u{10FFFF}");
        self.ids_of(
            "SELECT id FROM claim WHERE id >= ?1 AND id < ?2",
            params![prefix, to],
        )
    }

    fn lease(&mut self, lease: &Lease) -> Result<Option<Until>, Fault> {
        let sql = format!("SELECT {LEASE} FROM lease l WHERE l.id = ?1");
        let row = self.one(&sql, params![lease_id(lease)], |row| read_lease(row, 0))?;
        Ok(row.flatten())
    }

    fn locks(&mut self, which: Locks<'_>) -> Result<Vec<(Lock, Option<Until>)>, Fault> {
        match which {
            Locks::Touching(path) => {
                let mut locks = Vec::new();
                for above in path.ancestors_or_self() {
                    locks.extend(self.leased("k.path = ?1", params![above])?);
                }
                let below = match path.key() {
                    "" => self.leased("k.path > ''", &[])?,
                    key => self.leased(
                        "k.path >= ?1 AND k.path < ?2",
                        params![format!("{key}/"), format!("{key}0")],
                    )?,
                };
                locks.extend(below);
                Ok(locks)
            }
            Locks::Of(holder) => {
                let mut locks = self.leased("k.holder = ?1", params![holder.as_str()])?;
                locks.retain(|(lock, _)| lock.holder == *holder);
                Ok(locks)
            }
            Locks::All => self.leased("true", &[]),
            // The root's key is empty, and comes before every other.
            Locks::Page { after: None, most } => {
                self.leased("true ORDER BY k.path LIMIT ?1", params![most as i64])
            }
            Locks::Page {
                after: Some(after),
                most,
            } => self.leased(
                "k.path > ?1 ORDER BY k.path LIMIT ?2",
                params![after, most as i64],
            ),
        }
    }

    fn gate(&mut self, id: &GateId) -> Result<Option<Gate>, Fault> {
        self.fact("SELECT data FROM gate WHERE id = ?1", params![id.as_str()])
    }

    fn gates(&mut self, which: Gates<'_>) -> Result<Vec<Gate>, Fault> {
        match which {
            Gates::Of(id) => self.facts(
                "SELECT data FROM gate WHERE about = ?1 ORDER BY id",
                params![id.as_str()],
            ),
            Gates::OfRun(id) => self.facts(
                "SELECT data FROM gate WHERE about = ?1 ORDER BY id",
                params![id.as_str()],
            ),
            Gates::Pending => self.facts(
                "SELECT data FROM gate INDEXED BY gate_open WHERE (pending OR deferred) AND pending ORDER BY id",
                &[],
            ),
            Gates::Deferred => self.facts(
                "SELECT data FROM gate INDEXED BY gate_open WHERE (pending OR deferred) AND deferred ORDER BY id",
                &[],
            ),
        }
    }

    fn signal(&mut self, id: &SigId) -> Result<Option<Signal>, Fault> {
        self.fact("SELECT data FROM signal WHERE id = ?1", params![id.as_str()])
    }

    fn mail(&mut self, which: Mail<'_>) -> Result<Vec<Signal>, Fault> {
        match which {
            Mail::To(to) => self.facts(
                "SELECT data FROM signal WHERE open AND addressee = ?1 ORDER BY id",
                params![addressee(to)],
            ),
            Mail::Blockers => self.facts(
                "SELECT data FROM signal INDEXED BY signal_blocks WHERE blocks ORDER BY id",
                &[],
            ),
            Mail::All => self.facts(
                "SELECT data FROM signal INDEXED BY signal_open WHERE open ORDER BY id",
                &[],
            ),
        }
    }

    fn work(&mut self, key: &WorkKey) -> Result<Option<Work>, Fault> {
        self.fact("SELECT data FROM work WHERE key = ?1", params![key.0])
    }

    fn works(&mut self, scope: &Scope) -> Result<Vec<Work>, Fault> {
        let keys = self.meeting(scope, true)?;
        let works = keys.into_iter().map(|key| self.work(&WorkKey(key)));
        works.filter_map(Result::transpose).collect()
    }

    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault> {
        self.fact("SELECT data FROM run WHERE id = ?1", params![id.as_str()])
    }

    fn runs(&mut self, which: Runs<'_>) -> Result<Vec<Run>, Fault> {
        match which {
            Runs::Of(plan) => self.facts("SELECT data FROM run WHERE plan = ?1 ORDER BY id", params![plan]),
            Runs::Live => self.facts(
                "SELECT data FROM run INDEXED BY run_live WHERE live ORDER BY id",
                &[],
            ),
            Runs::All => self.facts("SELECT data FROM run ORDER BY id", &[]),
        }
    }

    fn phases(&mut self, run: &RunId, which: Phases<'_>) -> Result<Vec<PhaseRun>, Fault> {
        match which {
            Phases::One(id) => self.facts(
                "SELECT data FROM phase WHERE run = ?1 AND id = ?2",
                params![run.as_str(), id],
            ),
            Phases::Busy => self.facts(
                "SELECT data FROM phase INDEXED BY phase_busy WHERE run = ?1 AND busy ORDER BY position",
                params![run.as_str()],
            ),
            Phases::All => self.facts(
                "SELECT data FROM phase WHERE run = ?1 ORDER BY position",
                params![run.as_str()],
            ),
        }
    }

    fn green(&mut self, key: &str) -> Result<Option<u64>, Fault> {
        let total = self.one("SELECT total FROM green WHERE key = ?1", params![key], |row| {
            row.get::<_, i64>(0)
        })?;
        Ok(total.map(|total| total as u64))
    }

    fn answered(&mut self, key: &str) -> Result<Vec<Entry>, Fault> {
        self.facts(
            "SELECT data FROM journal WHERE key = ?1 ORDER BY seq",
            params![key],
        )
    }
}
