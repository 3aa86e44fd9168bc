//! One suite for every store, and what its tests are made of.
//!
//! A [`Script`] of random commands is played on a store and on a [`Model`], which decides on the whole world
//! and keeps it by the journal's fold alone. After every step answer, journal and tables must be the same.

mod model;
mod script;

use std::collections::BTreeMap;

use protocol::command::Command;
use protocol::event::{Entry, Event};
use protocol::facts::caller::Caller;
use protocol::facts::claim::Fence;
use protocol::facts::id::SessId;
use protocol::facts::signal_kind::SignalKind;
use protocol::facts::span::Span;
use protocol::rules::{Asked, footprint, preflight};
use protocol::world::{Footprint, Lease, Pick, World};
use serde::Serialize;

use crate::clock::{Clock, Reading};
use crate::{Fault, Only, Outcome, Pages, Request, Store, listed, submit};

pub use model::Model;
pub use script::{Script, Step, opening, policy, run_of, scope};

/// What a script met, by name: a test that met nothing of interest proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// How often each event was committed.
    pub events: BTreeMap<String, u64>,
    /// How often each refusal was given.
    pub refusals: BTreeMap<String, u64>,
    /// How often each command was given.
    pub commands: BTreeMap<String, u64>,
    /// Requests that were answered again.
    pub repeated: u64,
    /// Leases that a sign of life pushed on.
    pub touched: u64,
    /// Signs of life that came too late or under an old fence.
    pub late: u64,
    /// Claims seen stale because of time.
    pub expired: u64,
    /// Boots of the machine.
    pub boots: u64,
    /// Preflights that said go.
    pub go: u64,
    /// Preflights that did not.
    pub no_go: u64,
    /// Pages that were read.
    pub pages: u64,
}

impl Met {
    /// Adds what another script met.
    pub fn add(&mut self, other: &Met) {
        let sum = |mine: &mut BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>| {
            for (name, times) in theirs {
                *mine.entry(name.clone()).or_default() += times;
            }
        };
        sum(&mut self.events, &other.events);
        sum(&mut self.refusals, &other.refusals);
        sum(&mut self.commands, &other.commands);
        self.repeated += other.repeated;
        self.touched += other.touched;
        self.late += other.late;
        self.expired += other.expired;
        self.boots += other.boots;
        self.go += other.go;
        self.no_go += other.no_go;
        self.pages += other.pages;
    }
}

/// The name of a variant, as it is stored.
pub fn variant<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(serde_json::Value::Object(fields)) => fields.keys().next().cloned().unwrap_or_default(),
        other => format!("{other:?}"),
    }
}

/// An outcome as text, byte for byte.
pub fn text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Committed(entries) => format!("committed {}", json(entries)),
        Outcome::Repeated(entries) => format!("repeated {}", json(entries)),
        Outcome::Refused(refusal) => format!("refused {}", json(refusal)),
    }
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("no JSON: {error}"))
}

/// Plays one script of so many steps on a store that `open` makes on a hand-turned clock.
///
/// # Panics
///
/// Where the store differs from the model, with the seed and the step.
pub fn play(seed: u64, steps: usize, open: &mut dyn FnMut(Clock) -> Box<dyn Store>) -> Met {
    let clock = Clock::by_hand(1_796_047_200_000);
    let mut store = open(clock.clone());
    let mut model = Model::new(clock.clone());
    let mut script = Script::new(seed);
    let mut rebuilt = World::default();
    let mut met = Met::default();
    for step in 0..steps {
        let at = format!("seed {seed}, step {step}");
        match script.next(&model.world, model.now()) {
            Step::Turn(ms) => clock.turn(ms),
            Step::Wall(ms) => {
                let reading = clock.read();
                clock.set(Reading {
                    wall: reading.wall + ms,
                    ..reading
                });
            }
            Step::Boot(boot) => {
                met.boots += 1;
                let reading = clock.read();
                clock.set(Reading {
                    boot,
                    tick: 5_000,
                    wall: reading.wall + 60_000,
                });
            }
            Step::Touch(leases, by) => {
                let wanted = model.touch(&leases, by);
                let got = store
                    .touch(&leases, by)
                    .unwrap_or_else(|fault| panic!("{at}: {fault}"));
                assert_eq!(got, wanted, "{at}: touching {leases:?}");
                met.touched += got.iter().filter(|pushed| **pushed).count() as u64;
                met.late += got.iter().filter(|pushed| !**pushed).count() as u64;
            }
            Step::Submit { caller, key, command } => {
                let request = Request {
                    caller: &caller,
                    policy: script.policy(),
                    key: key.as_deref(),
                };
                let wanted = model.submit(request, &command);
                let got =
                    submit(&mut *store, request, &command).unwrap_or_else(|fault| panic!("{at}: {fault}"));
                let said = format!("{at}: {} by {caller:?}", json(&command));
                assert_eq!(text(&got), text(&wanted), "{said}");
                count(&mut met, &command, &got, &model);
            }
        }
        for entry in store
            .journal(rebuilt.head, usize::MAX, &Only::default())
            .unwrap_or_else(|fault| panic!("{at}: {fault}"))
        {
            assert_eq!(entry.seq, rebuilt.head + 1, "{at}: the journal has a gap");
            if let Some(fence) = minted(&entry, &rebuilt) {
                let last = rebuilt.fence;
                assert!(fence > last, "{at}: {fence} is not larger than {last}");
            }
            rebuilt.apply(&entry);
        }
        let (caller, ask) = script.preflight(&model.world);
        let picks = footprint::of_preflight(&ask, &caller);
        let looked = store.look(&picks);
        let (world, now) = looked.unwrap_or_else(|fault| panic!("{at}: {fault}"));
        let judge = |world: &World, now| {
            let policy = script.policy();
            let asked = Asked {
                world,
                caller: &caller,
                policy,
                now,
            };
            preflight::judge(asked, &ask)
        };
        let (got, wanted) = (judge(&world, now), judge(&model.world, model.now()));
        assert_eq!(got, wanted, "{at}: {ask:?} by {caller:?}");
        met.go += u64::from(goes(&got));
        met.no_go += u64::from(!goes(&got));
        let seen = look(&mut *store, &model.world).unwrap_or_else(|why| panic!("{at}: {why}"));
        differ(&seen, &model.world, true).unwrap_or_else(|why| panic!("{at}: tables and model: {why}"));
        differ(&seen, &rebuilt, false).unwrap_or_else(|why| panic!("{at}: tables and journal: {why}"));
        same_lists(&mut *store, &model.world).unwrap_or_else(|why| panic!("{at}: {why}"));
    }
    tables_equal_journal(&mut *store).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    pages_hold_each_once(&mut *store, &model.world, &mut met)
        .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    met
}

fn goes(answer: &preflight::Answer) -> bool {
    match answer {
        preflight::Answer::Judged(verdicts) => verdicts.iter().all(|verdict| verdict.refused.is_none()),
        preflight::Answer::RenewFirst => false,
    }
}

fn count(met: &mut Met, command: &Command, outcome: &Outcome, model: &Model) {
    *met.commands.entry(variant(command)).or_default() += 1;
    match outcome {
        Outcome::Committed(entries) => {
            for entry in entries {
                *met.events.entry(variant(&entry.event)).or_default() += 1;
            }
        }
        Outcome::Repeated(_) => met.repeated += 1,
        Outcome::Refused(refusal) => *met.refusals.entry(variant(refusal)).or_default() += 1,
    }
    let now = model.now();
    let live = model
        .world
        .claims
        .values()
        .filter(|claim| !claim.is_terminal() && !claim.reaped);
    let stale = live.filter(|claim| model.world.left(claim, now).is_none());
    met.expired += u64::from(stale.count() > 0);
}

/// The fence that an entry mints in this world; a lock that is renewed keeps its own.
pub fn minted(entry: &Entry, world: &World) -> Option<Fence> {
    match &entry.event {
        Event::ClaimOpened(claim) => Some(claim.fence),
        Event::ClaimRenewed { fence, .. } => *fence,
        Event::LockTaken(lock) => {
            let held = world.locks.get(lock.path.key());
            let renewed = held.is_some_and(|held| held.fence == lock.fence && held.holder == lock.holder);
            (!renewed).then_some(lock.fence)
        }
        Event::RunStarted(run) => Some(run.driver),
        Event::RunTaken { driver, .. } => Some(*driver),
        _ => None,
    }
}

/// Picks for everything that a world holds, so that a store must show all of it.
pub fn everything(world: &World) -> Footprint {
    let mut picks = vec![
        Pick::AllClaims,
        Pick::AllLocks,
        Pick::AllRuns,
        Pick::PendingGates,
        Pick::AllMail,
    ];
    picks.extend(world.gates.keys().cloned().map(Pick::Gate));
    picks.extend(world.runs.keys().cloned().map(Pick::Phases));
    picks.push(Pick::Signals(world.signals.keys().cloned().collect()));
    picks.extend(world.works.keys().cloned().map(Pick::WorkOf));
    picks.extend(world.greens.keys().cloned().map(Pick::Green));
    picks
}

fn look(store: &mut dyn Store, world: &World) -> Result<World, String> {
    let looked = store.look(&everything(world));
    looked.map(|(seen, _)| seen).map_err(|fault| fault.to_string())
}

/// Says where what a store lists by a condition differs from a world.
fn same_lists(store: &mut dyn Store, world: &World) -> Result<(), String> {
    let (seen, _) = store
        .look(&vec![Pick::Blockers])
        .map_err(|fault| fault.to_string())?;
    let mut wanted = world.signals.clone();
    wanted.retain(|_, it| it.kind == SignalKind::BlockedOn && it.acked_at.is_none());
    same_map("blocking signals", &seen.signals, &wanted)
}

/// Says where what a store shows differs from a world; leases too, if asked.
fn differ(seen: &World, world: &World, leases: bool) -> Result<(), String> {
    same("heads", &seen.head, &world.head)?;
    // An epoch may have been raised since the last fence was minted.
    if seen.fence < world.fence {
        return Err(format!(
            "the last fence is {}, but {} was shown",
            seen.fence, world.fence
        ));
    }
    same("stops", &seen.halt, &world.halt)?;
    same_map("claims", &seen.claims, &world.claims)?;
    same_map("locks", &seen.locks, &world.locks)?;
    same_map("gates", &seen.gates, &world.gates)?;
    same_map("signals", &seen.signals, &world.signals)?;
    same_map("works", &seen.works, &world.works)?;
    same_map("runs", &seen.runs, &world.runs)?;
    same_map("phases", &seen.phases, &world.phases)?;
    same_map("greens", &seen.greens, &world.greens)?;
    if leases {
        same("fences", &seen.fence, &world.fence)?;
        let driven = |lease: &Lease| !matches!(lease, Lease::Delivery(_));
        let of = |world: &World| {
            let leases = world.leases.iter().filter(|(lease, _)| driven(lease));
            leases
                .map(|(lease, until)| (lease.clone(), *until))
                .collect::<BTreeMap<_, _>>()
        };
        same_map("leases", &of(seen), &of(world))?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, tables: &T, journal: &T) -> Result<(), String> {
    if tables == journal {
        return Ok(());
    }
    Err(format!(
        "{what} differ:\n tables:  {tables:?}\n wanted: {journal:?}"
    ))
}

fn same_map<K, V>(what: &str, tables: &BTreeMap<K, V>, journal: &BTreeMap<K, V>) -> Result<(), String>
where
    K: Ord + std::fmt::Debug,
    V: PartialEq + std::fmt::Debug,
{
    for key in tables.keys().chain(journal.keys()) {
        let what = format!("{what} at {key:?}");
        same(&what, &tables.get(key), &journal.get(key))?;
    }
    Ok(())
}

/// Folds a whole journal.
///
/// # Errors
///
/// The store's fault, or the place of a gap, in words.
pub fn rebuild(store: &mut dyn Store) -> Result<World, String> {
    let mut world = World::default();
    loop {
        let read = store.journal(world.head, 1_000, &Only::default());
        let entries = read.map_err(|fault| fault.to_string())?;
        if entries.is_empty() {
            world.changed.clear();
            return Ok(world);
        }
        for entry in entries {
            if entry.seq != world.head + 1 {
                return Err(format!("{} follows {} in the journal", entry.seq, world.head));
            }
            world.apply(&entry);
        }
    }
}

/// Says whether a store's tables are what its journal folds to, leases apart.
///
/// # Errors
///
/// The first difference, in words.
pub fn tables_equal_journal(store: &mut dyn Store) -> Result<(), String> {
    let world = rebuild(store)?;
    differ(&look(store, &world)?, &world, false)
}

/// Says whether pages of a few hold every claim and lock once, in order.
fn pages_hold_each_once(store: &mut dyn Store, world: &World, met: &mut Met) -> Result<(), String> {
    const FEW: usize = 3;
    for live in [true, false] {
        let claims = world.claims.values();
        let wanted: Vec<&SessId> = claims
            .filter(|claim| !(live && claim.is_terminal()))
            .map(|claim| &claim.id)
            .collect();
        let mut pages = Pages::of_claims_by(live, FEW);
        let mut seen = Vec::new();
        while let Some((page, _)) = pages.turn(store).map_err(|fault| fault.to_string())? {
            let claims: Vec<SessId> = listed(&page).map(|claim| claim.id.clone()).collect();
            same("a page and its claims", &claims, &page.listed)?;
            seen.extend(claims);
            met.pages += 1;
        }
        same("claims by pages", &seen.iter().collect::<Vec<_>>(), &wanted)?;
    }
    for part in ["-s1", "1130-14", "sess", "nowhere"] {
        let looked = store.look(&vec![Pick::IdsWith(part.to_owned())]);
        let (seen, _) = looked.map_err(|fault| fault.to_string())?;
        let wanted = world.claims.keys().filter(|id| id.as_str().contains(part));
        same("ids with a text", &seen.taken, &wanted.cloned().collect())?;
        same("claims of ids alone", &seen.claims.len(), &0)?;
    }
    let mut pages = Pages::of_locks_by(FEW);
    let mut seen = Vec::new();
    while let Some((page, _)) = pages.turn(store).map_err(|fault| fault.to_string())? {
        seen.extend(page.locks.into_keys());
        met.pages += 1;
    }
    same("locks by pages", &seen, &world.locks.keys().cloned().collect())
}

/// Opens a claim on a scope in one request, as tests and benches do.
///
/// # Errors
///
/// The store's.
pub fn open_claim(
    store: &mut dyn Store,
    caller: &Caller,
    slug: &str,
    entries: &[&str],
    key: Option<&str>,
) -> Result<Outcome, Fault> {
    let policy = policy();
    let ask = opening(slug, scope(entries), Span::from_ms(3_600_000));
    let request = Request {
        caller,
        policy: &policy,
        key,
    };
    submit(store, request, &Command::OpenClaim(ask))
}
