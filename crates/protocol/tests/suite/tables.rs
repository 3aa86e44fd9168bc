//! The tables of `docs/protocol.md`, made by asking the rules; `UPDATE=1` writes them anew.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;

use protocol::facts::claim::State;
use protocol::facts::id::SessId;
use testkit::story::{Answer, answer, tell};

const NONE: &str = "–";

fn document() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md")
}

/// Holds that the document has this table between its markers, or puts it there.
fn documented(name: &str, table: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    let path = document();
    let text = std::fs::read_to_string(&path).expect("docs/protocol.md can be read");
    let begin = format!("<!-- table: {name}, made by the tests -->\n");
    let (before, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("no table {name} in the document"));
    let (found, after) = rest.split_once("<!-- end -->").expect("the table has an end");
    let wanted = format!("\n{table}\n");
    if found != wanted && std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, format!("{before}{begin}{wanted}<!-- end -->{after}"))
            .expect("it can be written");
    } else {
        assert_eq!(found, wanted, "{name}: run the tests with UPDATE=1");
    }
}

/// Writes a Markdown table.
fn table(corner: &str, columns: &[&str], rows: &[(String, Vec<String>)]) -> String {
    let mut text = format!("| {corner} | {} |\n| ---", columns.join(" | "));
    columns.iter().for_each(|_| text.push_str(" | ---"));
    text.push_str(" |\n");
    for (name, cells) in rows {
        writeln!(text, "| {name} | {} |", cells.join(" | ")).expect("a text takes it");
    }
    text
}

fn ana() -> SessId {
    SessId::parse("sess-20261130-1400-ana").expect("an id")
}

fn state(answer: &Answer) -> State {
    answer
        .stage
        .world
        .state(&answer.stage.world.claims[&ana()], answer.stage.now)
}

#[test]
fn every_event_in_every_state_is_documented() {
    let states = [
        (State::Open, ""),
        (State::WaitingHuman, "ana asks -> yes"),
        (State::Paused, "@human pauses ana -> yes"),
        (State::Stale, "x waits 31m"),
        (State::Closed, "ana closes -> yes"),
        (State::Failed, "@human aborts ana -> yes"),
    ];
    assert_eq!(states.map(|(state, _)| state), State::ALL);
    // The time that passes first, and the step.
    let events = [
        ("gate", "", "ana asks"),
        ("approve", "", "@human approves ana"),
        ("skip", "", "@human answers ana skip"),
        ("reject", "", "@human rejects ana"),
        ("pause", "", "ana pauses"),
        ("last resume", "", "@plain resumes ana"),
        ("abort", "", "@plain aborts ana"),
        ("ttl over", "x waits 31m", "@plain cleans"),
        ("reap", "", "@plain reaps ana"),
        ("grace over", "x waits 24h\nx waits 31m", "@plain reaps"),
        ("renew", "", "ana renews"),
        ("supersede", "", "ben opens src"),
        ("write", "", "ana writes src/a"),
        ("close", "", "ana closes"),
    ];
    let mut rows = Vec::new();
    for (from, setup) in states {
        let story = format!("ana opens src 30m -> yes\n{setup}");
        let cells = events.map(|(event, time, step)| {
            let told = answer(&format!("{story}\n{time}"), step);
            let to = state(&told);
            if event == "write" {
                return match told.exit {
                    Some(0) => format!("go, {to}"),
                    exit => format!("exit {}", exit.expect("a preflight has one")),
                };
            }
            let touched = told
                .entries
                .iter()
                .any(|entry| entry.event.claim() == Some(&ana()));
            let same = told.code != "yes" || !touched && to == from;
            if same { NONE.to_owned() } else { to.to_string() }
        });
        rows.push((from.to_string(), cells.to_vec()));
    }
    documented(
        "transitions",
        &table("from \\ event", &events.map(|(event, ..)| event), &rows),
    );
}

#[test]
fn every_pair_of_claims_is_documented() {
    let claims = [
        ("solo", "src/"),
        ("satellite", "src/ as satellite"),
        ("pilot", "src/ as pilot"),
        ("exclusive pilot", "src/ as pilot exclusive"),
        ("search of a folder", "src/ kind search"),
        ("search that names a file", "src/a kind search"),
    ];
    let mut rows = Vec::new();
    for (name, held) in claims {
        let cells = claims.map(|(_, wanted)| {
            let told = answer(
                &format!("ana opens {held} -> yes"),
                &format!("ben opens {wanted}"),
            );
            match told.code {
                "yes" => NONE.to_owned(),
                "claim.scope_overlaps" => "conflict".to_owned(),
                other => panic!("{held}, {wanted}: {other}"),
            }
        });
        rows.push((name.to_owned(), cells.to_vec()));
    }
    for (at, (_, row)) in rows.iter().enumerate() {
        for (other, cell) in row.iter().enumerate() {
            assert_eq!(*cell, rows[other].1[at], "the order of the two does not count");
        }
    }
    documented(
        "conflicts",
        &table("held \\ wanted", &claims.map(|(name, _)| name), &rows),
    );
}

/// A pilot over a domain over a leaf, and a stranger.
const FAMILY: &str = "
    top opens . as pilot         -> yes
    top launches mid src domain  -> yes
    mid launches low src/api     -> yes
    kin opens docs               -> yes
";

/// The refusals that say who one is not; any other answer is about the state.
const NOT_YOURS: [&str; 8] = [
    "claim.not_owner",
    "claim.only_own_children",
    "claim.own_pause",
    "gate.not_human",
    "lock.not_owner",
    "run.lease_lost",
    "signal.not_yours",
    "signal.sender_not_yours",
];

#[test]
fn who_may_do_what_is_documented() {
    let callers = [
        ("owner", "mid"),
        ("its token", "@plain!mid"),
        ("above it", "top"),
        ("below it", "low"),
        ("another session", "kin"),
        ("plain", "@plain"),
        ("human", "@human"),
    ];
    let failing = "mid fails -> yes";
    let rows = [
        ("close", "", "closes mid"),
        ("renew", "", "renews mid"),
        ("record a failure", "", "fails mid"),
        ("open a gate", "", "asks for mid"),
        ("send a signal from it", "", "signals INFO human hello from mid"),
        ("lock", "", "locks src/web as mid"),
        ("release", "mid locks src/web -> yes", "releases src/web as mid"),
        (
            "acknowledge a signal to it",
            "@human signals INFO mid -> yes",
            "acks mid",
        ),
        (
            "take or cancel a run under it",
            "mid starts p \"1 scope:src/x\" under mid -> yes",
            "cancels p",
        ),
        (
            "open a child of it",
            "",
            "opens src/web as satellite under mid named new",
        ),
        ("ask before a write", "", "writes src/web as mid"),
        ("reap", "", "reaps mid"),
        ("stop everything", "", "stops"),
        ("pause", "", "pauses mid"),
        ("abort", "", "aborts mid"),
        (
            "lift a pause that it set itself",
            "mid pauses mid -> yes",
            "resumes mid",
        ),
        (
            "lift a pause that was set above",
            "top pauses mid -> yes",
            "resumes mid",
        ),
        (
            "lift a pause of a human",
            "@human pauses mid -> yes",
            "resumes mid",
        ),
        ("lift the stop", "@agent stops -> yes", "thaws"),
        ("answer its gate", "mid asks -> yes", "approves mid"),
        ("reset its failures", failing, "resets mid"),
        (
            "reset them at the limit",
            "policy fails 1\nmid fails -> yes",
            "resets mid",
        ),
        (
            "take its lock away",
            "mid locks src/web -> yes",
            "releases src/web as mid force",
        ),
        (
            "close over failed children",
            "@human aborts low -> yes",
            "closes mid accepting",
        ),
    ];
    let mut table_rows = Vec::new();
    for (verb, setup, step) in rows {
        let cells = callers.map(|(_, who)| {
            let told = answer(&format!("{FAMILY}\n{setup}"), &format!("{who} {step}"));
            if NOT_YOURS.contains(&told.code) {
                NONE
            } else {
                "yes"
            }
            .to_owned()
        });
        table_rows.push((verb.to_owned(), cells.to_vec()));
    }
    documented(
        "permissions",
        &table("verb", &callers.map(|(name, _)| name), &table_rows),
    );
}

#[test]
fn a_refusal_in_the_tables_is_about_who_or_about_the_state() {
    // Each code above is one that the rules know: a misspelt one would turn a cell into a yes.
    let source = include_str!("../../src/refusal.rs");
    for code in NOT_YOURS {
        assert!(source.contains(&format!("\"{code}\"")), "{code}");
    }
    tell(FAMILY);
}
