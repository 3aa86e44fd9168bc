//! Every store answers as the model does, keeps its journal without a gap, and tables that the journal folds to.

use store::conformance::{Met, play, variant};
use store::{Memory, Sqlite, SqliteOptions};

fn met_by(seeds: std::ops::Range<u64>, steps: usize, mut one: impl FnMut(u64, usize) -> Met) -> Met {
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

#[test]
fn memory_answers_as_the_model_does() {
    let met = met_by(0..12, 700, on_memory);
    println!("{met:#?}");
}

#[test]
fn sqlite_answers_as_the_model_does() {
    let met = met_by(0..4, 500, on_sqlite);
    println!("{met:#?}");
}
