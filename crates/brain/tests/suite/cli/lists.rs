//! Lists of any length: whole for programs, bounded for people, and never in memory all at once.

use std::path::Path;

use store::SqliteOptions;

use super::stage::{Ran, Stage};
use crate::fill::{Size, fill};

const SESSION: &str = "sess-20261130-1000-many";

/// A brain in which much is live: what each command once took for it was above 90 MiB.
fn crowded() -> Stage {
    crowded_by(Size {
        claims: 2_000,
        locks: 20_000,
        events: 30_000,
    })
}

fn crowded_by(size: Size) -> Stage {
    let stage = Stage::brain();
    stage.ok(&[
        "claim", "open", "--id", SESSION, "--scope", "src/", "--task", "x", "--ttl", "2d",
    ]);
    let options = SqliteOptions {
        clock: store::clock::Clock::read_from(&stage.clock()).unwrap(),
        ..SqliteOptions::default()
    };
    fill(&stage.root.join(".brain/brain.db"), SESSION, options, size);
    stage
}

/// Runs the program with so little memory that no list fits into it.
fn in_little_memory(stage: &Stage, args: &[&str]) -> Ran {
    let program = env!("CARGO_BIN_EXE_brain");
    let mut words = vec!["-c", "ulimit -d 24576 && exec \"$0\" \"$@\"", program];
    words.extend(args);
    let ran = Ran::of(stage.process(Path::new("/bin/sh"), &words).output().unwrap());
    assert_eq!(ran.code, 0, "{args:?}: {} bytes, {}", ran.out.len(), ran.err);
    ran
}

#[test]
fn what_lists_needs_no_more_memory_the_more_there_is() {
    let stage = crowded();
    for (args, name, number) in [
        (&["status", "--json"][..], "locks", 20_000),
        (&["status", "--json"], "claims", 2_001),
        (&["claim", "list", "--json"], "claims", 2_001),
        (&["claim", "list", "--all", "--json"], "claims", 2_001),
        (&["lock", "list", "--json"], "locks", 20_000),
        (&["log", "--json"], "entries", 30_000),
        (&["gate", "list", "--json"], "gates", 0),
        (&["signal", "list", "--json"], "signals", 0),
    ] {
        let ran = in_little_memory(&stage, args);
        ran.keeps_its_word(true, false);
        let document = ran.document();
        let items = document[name].as_array().map(Vec::len);
        assert_eq!(items, Some(number), "{args:?}");
    }
    for (args, lines) in [
        (&["claim", "list"][..], 2_001),
        (&["claim", "list", "--jsonl"], 2_001),
        (&["lock", "list"], 20_000),
        (&["log"], 30_000),
    ] {
        assert_eq!(
            in_little_memory(&stage, args).out.lines().count(),
            lines,
            "{args:?}"
        );
    }
    let doctor = in_little_memory(&stage, &["doctor"]).out;
    assert!(doctor.contains("30000 events, 2001 live claims"), "{doctor}");
}

/// The id is typed in part, or a verb goes through what is live: neither takes all that is there into memory.
#[test]
fn what_looks_for_a_claim_needs_no_more_memory_the_more_there_is() {
    let stage = crowded_by(Size {
        claims: 10_000,
        locks: 0,
        events: 10_002,
    });
    let part = "many-1234";
    let shown = in_little_memory(&stage, &["claim", "show", part]).out;
    assert!(shown.contains("sess-20261130-1000-many-1234"), "{shown}");
    in_little_memory(&stage, &["log", "--claim", part]);
    in_little_memory(&stage, &["stop"]);
    in_little_memory(&stage, &["thaw"]);
    let err = stage.no(64, "usage", &["claim", "show", "many-12"]);
    assert!(err.contains("fits 111 ids"), "{err}");
    let err = stage.no(64, "usage", &["close", part]);
    assert!(
        err.contains("did you mean sess-20261130-1000-many-1234?"),
        "{err}"
    );
}

#[test]
fn people_see_the_first_claims_and_are_told_of_the_rest() {
    let stage = crowded();
    let told = stage.ok(&["status"]);
    assert!(told.starts_with("2001 claims: 2001 alive, 0 expired"), "{told}");
    assert!(told.contains("; 20000 locks, 0 open gates"), "{told}");
    assert!(told.ends_with("\n  … and 1951 more: brain claim list"), "{told}");
    assert_eq!(told.lines().count(), 52);
}
