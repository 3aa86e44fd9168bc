//! Looking facts up in the tables, by index.

use std::path::Path;

use protocol::event::{Entry, Seq};
use protocol::facts::claim::{Claim, Fence};
use protocol::facts::gate::Gate;
use protocol::facts::id::{GateId, RunId, SessId, SigId};
use protocol::facts::lock::Lock;
use protocol::facts::path::Fold;
use protocol::facts::run::{PhaseRun, Run};
use protocol::facts::scope::Scope;
use protocol::facts::signal::{Address, Signal};
use protocol::facts::work::{Work, WorkKey};
use protocol::world::{Halt, Lease, Until};
use rusqlite::{OptionalExtension, Row, ToSql, params};
use serde::de::DeserializeOwned;

use super::Sqlite;
use super::write::{addressee, lease_id};
use crate::Fault;
use crate::load::{Claims, Gates, Locks, Phases, Runs, Source};

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
    fn meeting(&self, scope: &Scope, work: bool) -> Result<Vec<String>, Fault> {
        let mut owners = Vec::new();
        let exact = "SELECT owner, entry, folded FROM entry WHERE prefix = ?1 AND work = ?2";
        let below = "SELECT owner, entry, folded FROM entry WHERE prefix >= ?1 AND prefix < ?2 AND work = ?3";
        let row = |row: &Row<'_>| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, bool>(2)?,
            ))
        };
        for mine in scope.additions() {
            let prefix = mine.literal_prefix();
            let mut found = Vec::new();
            for above in above_or_at(&prefix) {
                found.extend(self.rows(exact, params![above, work], row)?);
            }
            let (from, to) = if prefix.is_empty() {
                // Everything: U+10FFFF in UTF-8 sorts last.
                (String::new(), "\u{10FFFF}".to_owned())
            } else {
                (format!("{prefix}/"), format!("{prefix}0"))
            };
            found.extend(self.rows(below, params![from, to, work], row)?);
            for (owner, text, folded) in found {
                let fold = if folded { Fold::Case } else { Fold::Exact };
                // What does not parse alone may still be part of a scope that meets.
                let theirs = Scope::parse([&text], fold);
                let apart = theirs.is_ok_and(|it| !it.additions().any(|it| it.may_overlap(mine)));
                if !apart {
                    owners.push(owner);
                }
            }
        }
        owners.sort();
        owners.dedup();
        Ok(owners)
    }
}

/// A prefix and every prefix above it, the root's empty one last.
fn above_or_at(prefix: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(prefix), |at| {
        (!at.is_empty()).then(|| at.rsplit_once('/').map_or("", |(above, _)| above))
    })
}

impl Source for Sqlite {
    fn base(&mut self) -> Result<(Seq, Fence, Halt), Fault> {
        let sql = "SELECT (SELECT coalesce(max(seq), 0) FROM journal), fence, halt FROM state";
        let row = self.one(sql, &[], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, String>(2)?,
            ))
        })?;
        let (head, fence, halt) = row.unwrap_or_default();
        Ok((head as Seq, Fence(fence as u64), parse(&self.path, &halt)?))
    }

    fn claim(&mut self, id: &SessId) -> Result<Option<Claim>, Fault> {
        self.fact("SELECT data FROM claim WHERE id = ?1", params![id.as_str()])
    }

    fn claims(&mut self, which: Claims<'_>) -> Result<Vec<SessId>, Fault> {
        match which {
            Claims::ChildrenOf(parent) => self.ids_of(
                "SELECT id FROM claim WHERE parent = ?1 ORDER BY id",
                params![parent.as_str()],
            ),
            Claims::Meeting(scope) => {
                let owners = self.meeting(scope, false)?;
                owners.iter().map(|owner| self.sess_id(owner)).collect()
            }
            Claims::OwnedBy(caller) => {
                let mut ids = Vec::new();
                if let Some(token) = &caller.token {
                    ids.extend(self.ids_of("SELECT id FROM claim WHERE token = ?1", params![token.0])?);
                }
                if let Some(host) = &caller.host_session {
                    let sql = "SELECT id FROM claim WHERE live AND host_session = ?1";
                    ids.extend(self.ids_of(sql, params![host])?);
                }
                for process in &caller.chain {
                    let sql = "SELECT id FROM claim WHERE live AND process = ?1";
                    let process = serde_json::to_string(process).unwrap_or_default();
                    ids.extend(self.ids_of(sql, params![process])?);
                }
                Ok(ids)
            }
            Claims::Live => self.ids_of("SELECT id FROM claim WHERE live ORDER BY id", &[]),
            Claims::Since(id) => self.ids_of(
                "SELECT DISTINCT claim FROM journal WHERE claim IS NOT NULL \
                 AND seq >= (SELECT min(seq) FROM journal WHERE claim = ?1) ORDER BY claim",
                params![id.as_str()],
            ),
            Claims::All => self.ids_of("SELECT id FROM claim ORDER BY id", &[]),
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
        let sql = "SELECT fence, touched, until FROM lease WHERE id = ?1";
        let row = self.one(sql, params![lease_id(lease)], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, String>(2)?,
            ))
        })?;
        let until = row.map(|(fence, touched, until)| {
            let (touched, until) = (parse(&self.path, &touched)?, parse(&self.path, &until)?);
            Ok(Until {
                fence: Fence(fence as u64),
                touched,
                until,
            })
        });
        until.transpose()
    }

    fn locks(&mut self, which: Locks<'_>) -> Result<Vec<Lock>, Fault> {
        match which {
            Locks::Touching(path) => {
                let mut locks = Vec::new();
                for above in path.ancestors_or_self() {
                    locks.extend(self.fact("SELECT data FROM lock WHERE path = ?1", params![above])?);
                }
                let (from, to) = match path.key() {
                    "" => (String::from("\u{1}"), "\u{10FFFF}".to_owned()),
                    key => (format!("{key}/"), format!("{key}0")),
                };
                locks.extend(self.facts(
                    "SELECT data FROM lock WHERE path >= ?1 AND path < ?2",
                    params![from, to],
                )?);
                Ok(locks)
            }
            Locks::Of(holder) => {
                let locks = self.facts(
                    "SELECT data FROM lock WHERE holder = ?1",
                    params![holder.as_str()],
                )?;
                Ok(locks
                    .into_iter()
                    .filter(|lock: &Lock| lock.holder == *holder)
                    .collect())
            }
            Locks::All => self.facts("SELECT data FROM lock ORDER BY path", &[]),
        }
    }

    fn gate(&mut self, id: &GateId) -> Result<Option<Gate>, Fault> {
        self.fact("SELECT data FROM gate WHERE id = ?1", params![id.as_str()])
    }

    fn gates(&mut self, which: Gates<'_>) -> Result<Vec<Gate>, Fault> {
        match which {
            Gates::Of(id) => self.facts(
                "SELECT data FROM gate WHERE claim = ?1 ORDER BY id",
                params![id.as_str()],
            ),
            Gates::OfRun(id) => self.facts(
                "SELECT data FROM gate WHERE run = ?1 ORDER BY id",
                params![id.as_str()],
            ),
            Gates::Pending => self.facts("SELECT data FROM gate WHERE pending ORDER BY id", &[]),
            Gates::Deferred => self.facts("SELECT data FROM gate WHERE deferred ORDER BY id", &[]),
        }
    }

    fn signal(&mut self, id: &SigId) -> Result<Option<Signal>, Fault> {
        self.fact("SELECT data FROM signal WHERE id = ?1", params![id.as_str()])
    }

    fn mail(&mut self, to: Option<&Address>) -> Result<Vec<Signal>, Fault> {
        match to {
            Some(to) => self.facts(
                "SELECT data FROM signal WHERE open AND addressee = ?1 ORDER BY id",
                params![addressee(to)],
            ),
            None => self.facts("SELECT data FROM signal WHERE open ORDER BY id", &[]),
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
            Runs::Live => self.facts("SELECT data FROM run WHERE live ORDER BY id", &[]),
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
                "SELECT data FROM phase WHERE run = ?1 AND busy ORDER BY position",
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
