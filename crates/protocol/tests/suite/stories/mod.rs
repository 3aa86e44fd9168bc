//! Stories told to the rules, by the protocol's sections: `testkit::story` has the grammar.

mod breaker;
mod callers;
mod close;
mod field;
mod gates;
mod locks;
mod opening;
mod preflight;
mod runs;
mod signals;
mod states;

use std::collections::BTreeSet;

const STORIES: [&str; 11] = [
    include_str!("breaker.rs"),
    include_str!("callers.rs"),
    include_str!("close.rs"),
    include_str!("field.rs"),
    include_str!("gates.rs"),
    include_str!("locks.rs"),
    include_str!("opening.rs"),
    include_str!("preflight.rs"),
    include_str!("runs.rs"),
    include_str!("signals.rs"),
    include_str!("states.rs"),
];

/// Refusals that only the faces and the close know, since they look at disk and git.
const NOT_OF_THE_RULES: [(&str, &str); 5] = [
    ("close.out_of_scope", "Refusal::OutOfScope"),
    ("close.wrong_place", "Refusal::WrongPlace"),
    ("close.wrote_meanwhile", "Refusal::WroteMeanwhile"),
    ("lock.lost", "Refusal::LockLost"),
    ("breaker.open", "Refusal::BreakerOpen"),
];

const RULES: [&str; 22] = [
    include_str!("../../../src/rules/ask.rs"),
    include_str!("../../../src/rules/breaker.rs"),
    include_str!("../../../src/rules/claim.rs"),
    include_str!("../../../src/rules/close.rs"),
    include_str!("../../../src/rules/drift.rs"),
    include_str!("../../../src/rules/family.rs"),
    include_str!("../../../src/rules/footprint.rs"),
    include_str!("../../../src/rules/gate.rs"),
    include_str!("../../../src/rules/lock.rs"),
    include_str!("../../../src/rules/mod.rs"),
    include_str!("../../../src/rules/note.rs"),
    include_str!("../../../src/rules/preflight.rs"),
    include_str!("../../../src/rules/run/begin.rs"),
    include_str!("../../../src/rules/run/change.rs"),
    include_str!("../../../src/rules/run/find.rs"),
    include_str!("../../../src/rules/run/judge.rs"),
    include_str!("../../../src/rules/run/mod.rs"),
    include_str!("../../../src/rules/run/next.rs"),
    include_str!("../../../src/rules/signal.rs"),
    include_str!("../../../src/rules/trigger.rs"),
    include_str!("../../../src/rules/who.rs"),
    include_str!("../../../src/rules/words.rs"),
];

/// The dotted words that stand in quotes in a source.
fn codes_of(source: &str) -> BTreeSet<&str> {
    let dotted = |text: &&str| {
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        text.split_once('.').is_some_and(|(family, name)| {
            !family.is_empty() && !name.is_empty() && family.chars().all(plain) && name.chars().all(plain)
        })
    };
    source.split('"').skip(1).step_by(2).filter(dotted).collect()
}

/// The answers that the stories expect; each story fails where its answer is another.
fn expected() -> BTreeSet<&'static str> {
    let lines = STORIES.iter().flat_map(|story| story.lines());
    let answers = lines.filter_map(|line| line.rsplit_once(" -> ").map(|(_, answer)| answer));
    let odd = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    answers
        .flat_map(str::split_whitespace)
        .map(|word| word.trim_matches(odd))
        .collect()
}

#[test]
fn every_refusal_is_met_by_a_story() {
    let source = include_str!("../../../src/refusal.rs");
    let codes = codes_of(&source[source.find("pub fn code").expect("codes")..]);
    assert!(codes.len() > 70, "{}", codes.len());
    let met = expected();
    let elsewhere: BTreeSet<&str> = NOT_OF_THE_RULES.iter().map(|(code, _)| *code).collect();
    // The preflight has a refusal of the same code as the breaker's own.
    let missing: Vec<_> = codes
        .difference(&met)
        .filter(|code| !elsewhere.contains(*code))
        .collect();
    assert!(missing.is_empty(), "no story meets {missing:?}");
}

#[test]
fn what_no_story_can_meet_no_rule_gives() {
    for (code, refusal) in NOT_OF_THE_RULES {
        let given = RULES.iter().any(|source| source.contains(refusal));
        assert!(!given, "a rule gives {code}: tell a story of it");
    }
}
