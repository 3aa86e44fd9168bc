//! The engine against the definition: a naive matcher over every short path. It shares no code with
//! the crate, and reads the entries from their text.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::scope::Scope;

fn text_matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|taken| text_matches(rest, &text[taken..])),
        ([b'?', rest @ ..], [_, after @ ..]) => text_matches(rest, after),
        ([letter, rest @ ..], [first, after @ ..]) => letter == first && text_matches(rest, after),
        _ => false,
    }
}

fn parts_match(parts: &[&str], path: &[&str], below: bool) -> bool {
    match parts {
        [] => path.is_empty() || below,
        ["**"] => !path.is_empty(),
        ["**", rest @ ..] => (0..=path.len()).any(|taken| parts_match(rest, &path[taken..], below)),
        [part, rest @ ..] => path.split_first().is_some_and(|(first, after)| {
            text_matches(part.as_bytes(), first.as_bytes()) && parts_match(rest, after, below)
        }),
    }
}

fn entry_matches(entry: &str, path: &str) -> bool {
    let parts: Vec<&str> = entry.split('/').filter(|part| !part.is_empty()).collect();
    let components: Vec<&str> = path.split('/').collect();
    parts_match(
        &parts,
        &components,
        entry.ends_with('/') || !entry.contains(['*', '?']),
    )
}

fn covers(scope: &[String], path: &str) -> bool {
    let (taken, added): (Vec<&String>, Vec<&String>) = scope.iter().partition(|entry| entry.starts_with('!'));
    added.iter().any(|entry| entry_matches(entry, path))
        && !taken.iter().any(|entry| entry_matches(&entry[1..], path))
}

/// Every path of at most so many characters over a, b, a letter that no entry names, and `/`.
fn paths(length: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut last = vec![String::new()];
    for _ in 0..length {
        last = last
            .iter()
            .flat_map(|path| ["a", "b", "c", "/"].map(|letter| format!("{path}{letter}")))
            .filter(|path| !path.starts_with('/') && !path.contains("//"))
            .collect();
        all.extend(last.iter().filter(|path| !path.ends_with('/')).cloned());
    }
    all
}

static SHORT: LazyLock<Vec<String>> = LazyLock::new(|| paths(6));
static LONG: LazyLock<Vec<String>> = LazyLock::new(|| paths(9));

/// Looks among the short paths; where a path is said to exist, among the long ones too.
fn some_path(said: bool, wanted: impl Fn(&str) -> bool) -> bool {
    SHORT.iter().any(|path| wanted(path)) || (said && LONG.iter().any(|path| wanted(path)))
}

fn entries() -> impl Strategy<Value = Vec<String>> {
    let part = prop_oneof![
        1 => Just("**".to_string()),
        5 => "[ab?*]{1,2}",
    ];
    let entry = (proptest::collection::vec(part, 1..3), any::<bool>())
        .prop_map(|(parts, directory)| parts.join("/") + if directory { "/" } else { "" });
    let taken = prop_oneof![2 => Just(0..1), 1 => Just(1..2), 1 => Just(2..3)];
    (proptest::collection::vec(entry.clone(), 1..3), taken)
        .prop_flat_map(move |(added, taken)| {
            (
                Just(added),
                proptest::collection::vec(entry.clone().prop_map(|entry| format!("!{entry}")), taken),
            )
        })
        .prop_map(|(added, taken)| added.into_iter().chain(taken).collect())
}

#[derive(Debug, Default)]
struct Counts {
    overlapping: usize,
    apart: usize,
    globs_overlapping: usize,
    globs_apart: usize,
    taken_overlapping: usize,
    taken_apart: usize,
    apart_only_by_exclusion: usize,
    covered: usize,
    taken_away: usize,
    contained: usize,
    contained_unequal_with_exclusion: usize,
    not_contained: usize,
    not_contained_but_overlapping: usize,
}

impl Counts {
    fn all(&self) -> [usize; 13] {
        [
            self.overlapping,
            self.apart,
            self.globs_overlapping,
            self.globs_apart,
            self.taken_overlapping,
            self.taken_apart,
            self.apart_only_by_exclusion,
            self.covered,
            self.taken_away,
            self.contained,
            self.contained_unequal_with_exclusion,
            self.not_contained,
            self.not_contained_but_overlapping,
        ]
    }
}

#[test]
fn the_engine_answers_as_the_definition_does() {
    let config = Config {
        cases: 400,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let counts = std::cell::RefCell::new(Counts::default());
    let at = proptest::sample::select(SHORT.clone());
    let outcome = runner.run(&(entries(), entries(), at), |(left, right, at)| {
        let mut counts = counts.borrow_mut();
        let (mine, theirs) = (
            Scope::parse(&left, Fold::Exact).unwrap(),
            Scope::parse(&right, Fold::Exact).unwrap(),
        );
        let path = LogicalPath::parse(&at, Fold::Exact).unwrap();
        let covered = covers(&left, &at);
        prop_assert_eq!(mine.covers(&path), covered, "covers {}", at);
        let added = |scope: &[String]| -> Vec<String> {
            scope
                .iter()
                .filter(|entry| !entry.starts_with('!'))
                .cloned()
                .collect()
        };
        counts.covered += usize::from(covered);
        counts.taken_away += usize::from(!covered && covers(&added(&left), &at));

        let said = mine.overlaps(&theirs);
        let overlap = some_path(said, |path| covers(&left, path) && covers(&right, path));
        prop_assert_eq!(said, overlap, "overlaps");
        prop_assert_eq!(theirs.overlaps(&mine), overlap, "overlaps the other way");
        let globs = [&mine, &theirs]
            .iter()
            .all(|scope| scope.additions().all(|entry| entry.is_glob()));
        let taken = [&mine, &theirs]
            .iter()
            .any(|scope| scope.exclusions().next().is_some());
        let tally = |yes: &mut usize, no: &mut usize| *if overlap { yes } else { no } += 1;
        let Counts {
            overlapping,
            apart,
            globs_overlapping,
            globs_apart,
            taken_overlapping,
            taken_apart,
            ..
        } = &mut *counts;
        tally(overlapping, apart);
        if globs {
            tally(globs_overlapping, globs_apart);
        }
        if taken {
            tally(taken_overlapping, taken_apart);
        }
        let (bare, others) = (added(&left), added(&right));
        if taken
            && !overlap
            && SHORT
                .iter()
                .any(|path| covers(&bare, path) && covers(&others, path))
        {
            counts.apart_only_by_exclusion += 1;
        }

        let said = mine.contains(&theirs);
        let outside = some_path(!said, |path| covers(&right, path) && !covers(&left, path));
        prop_assert_eq!(said, !outside, "contains");
        counts.contained += usize::from(!outside);
        counts.contained_unequal_with_exclusion +=
            usize::from(!outside && taken && mine != theirs && overlap);
        counts.not_contained += usize::from(outside);
        counts.not_contained_but_overlapping += usize::from(outside && overlap);
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, (left, right, at))) => {
            panic!("{reason}: {left:?} {right:?} at {at}")
        }
        Err(abort) => panic!("{abort}"),
    }
    let counts = counts.into_inner();
    assert!(
        counts.all().iter().all(|count| *count > 0),
        "a state was never reached: {counts:?}"
    );
}
