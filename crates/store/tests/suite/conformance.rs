//! Every store answers as the model does, keeps its journal without a gap, and tables that the journal folds to.

use store::conformance::{Met, play};
use store::{Memory, Sqlite, SqliteOptions};

fn met_by(seeds: std::ops::Range<u64>, steps: usize, one: impl Fn(u64, usize) -> Met) -> Met {
    let mut met = Met::default();
    for seed in seeds {
        met.add(&one(seed, steps));
    }
    met
}

fn on_memory(seed: u64, steps: usize) -> Met {
    play(seed, steps, &mut |clock| Box::new(Memory::new(clock)))
}

fn on_sqlite(seed: u64, steps: usize) -> Met {
    let folder = tempfile::tempdir().unwrap();
    play(seed, steps, &mut |clock| {
        let options = SqliteOptions {
            clock,
            ..SqliteOptions::default()
        };
        Box::new(Sqlite::create(&folder.path().join("store.db"), options).unwrap())
    })
}

/// Fails where a suite passed because nothing happened.
fn assert_met_all(met: &Met) {
    let missing: Vec<&str> = crate::golden::EVENTS
        .into_iter()
        .filter(|name| !met.events.contains_key(*name))
        .collect();
    assert!(missing.is_empty(), "no script met {missing:?}; it met {met:#?}");
    let missing: Vec<&str> = crate::golden::COMMANDS
        .into_iter()
        .filter(|name| !met.commands.contains_key(*name))
        .collect();
    assert!(missing.is_empty(), "no script gave {missing:?}");
    for name in [
        "scope_overlaps",
        "superseded",
        "lock_held",
        "not_owner",
        "halted",
        "run_taken",
        "id_taken",
    ] {
        assert!(
            met.refusals.contains_key(name),
            "no script was refused over {name}"
        );
    }
    assert!(
        met.repeated > 10 && met.touched > 100 && met.late > 100,
        "{met:#?}"
    );
    assert!(met.expired > 100 && met.boots > 0, "{met:#?}");
    assert!(met.go > 50 && met.no_go > 50, "{met:#?}");
    // Five claims and a lock are on more than one page each.
    assert!(met.pages > 100, "{met:#?}");
}

#[test]
fn memory_answers_as_the_model_does() {
    // More where the time is there: each new seed is another walk.
    let seeds = std::env::var("BRAIN_SEEDS").ok().and_then(|n| n.parse().ok());
    assert_met_all(&met_by(0..seeds.unwrap_or(70), 250, on_memory));
    // Here someone above the one who paused a claim lifts that.
    on_memory(400, 250);
}

#[test]
fn sqlite_answers_as_the_model_does() {
    let met = met_by(100..110, 250, on_sqlite);
    assert!(
        met.repeated > 10 && met.touched > 50 && met.late > 50 && met.expired > 100,
        "{met:#?}"
    );
    assert!(
        met.boots > 0 && met.events.len() > 25 && met.refusals.len() > 20,
        "{met:#?}"
    );
}
