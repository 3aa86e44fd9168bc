//! Writers are killed at any moment: what was answered stays, and nothing happens twice.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::command::Command;
use protocol::event::Event;
use protocol::facts::id::SessId;
use protocol::facts::lock::Holder;
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::span::Span;
use protocol::world::World;
use store::conformance::{minted, opening, policy, scope, tables_equal_journal};
use store::{Only, Outcome, Request, Store, submit};

use crate::child::{Worker, ana, fresh, open, say};

const WRITERS: usize = 8;

/// How many kills: all of them where the time is there, some in every run.
fn kills() -> usize {
    std::env::var("BRAIN_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(300)
}

fn log_of(place: &Path, name: &str) -> PathBuf {
    place.with_file_name(format!("acks-{name}"))
}

/// What a killed process does: three commands a round, each under a key of its own, each written down when it
/// is answered. A successor asks the last one again, answered or not.
pub fn writer(place: &Path, name: &str) {
    let path = log_of(place, name);
    let log = std::fs::read_to_string(&path).unwrap_or_default();
    let mut log_file = std::fs::File::options()
        .append(true)
        .create(true)
        .open(&path)
        .unwrap();
    let answered = log.lines().last().and_then(|line| line.split(' ').next());
    let mut n: u64 = answered.map_or(0, |n| n.parse().unwrap());
    let mut store = open(place);
    let policy = policy();
    say("ready");
    loop {
        let round = n / 3;
        let id = SessId::parse(&format!("sess-20261130-1400-{name}-{round}")).unwrap();
        let command = match n % 3 {
            0 => {
                let entry = format!("{name}/{round}/");
                let mut ask = opening(name, scope(&[&entry]), Span::from_ms(600_000));
                ask.id = Some(id);
                Command::OpenClaim(ask)
            }
            1 => Command::AcquireLocks {
                holder: Holder::Claim(id),
                paths: vec![LogicalPath::parse(&format!("{name}/{round}/f"), Fold::Exact).unwrap()],
                ttl: Span::from_ms(60_000),
            },
            _ => Command::Abort {
                id,
                why: "done".to_owned(),
            },
        };
        let (caller, key) = (ana(), format!("{name}-{n}"));
        let request = Request {
            caller: &caller,
            policy: &policy,
            key: Some(&key),
        };
        let entries = match submit(&mut store, request, &command).unwrap() {
            Outcome::Committed(entries) | Outcome::Repeated(entries) => entries,
            Outcome::Refused(refusal) => panic!("{name} {n}: {refusal:?}"),
        };
        // One write a line: a line is there or it is not.
        let line = format!("{n} {key} {} {}\n", entries[0].seq, entries.len());
        log_file.write_all(line.as_bytes()).unwrap();
        n += 1;
    }
}

#[test]
fn killed_writers_lose_and_double_nothing() {
    let (_folder, path) = fresh();
    let start = |at: usize| Worker::start("writer", &path, &format!("w{at}"));
    let mut writers: Vec<Worker> = (0..WRITERS).map(start).collect();
    let mut state = 7u64;
    let mut random = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for _ in 0..kills() {
        std::thread::sleep(Duration::from_millis(1 + random(20)));
        let at = random(WRITERS as u64) as usize;
        std::mem::replace(&mut writers[at], start(at)).kill();
    }
    writers.into_iter().for_each(Worker::kill);

    let mut store = open(&path);
    let journal = store.journal(0, usize::MAX, &Only::default()).unwrap();
    let mut by_key: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut world = World::default();
    for entry in &journal {
        assert_eq!(entry.seq, world.head + 1, "the journal has a gap");
        if let Some(fence) = minted(entry, &world) {
            assert!(fence > world.fence, "{fence} follows {}", world.fence);
        }
        world.apply(entry);
        by_key
            .entry(entry.key.clone().unwrap())
            .or_default()
            .push(entry.seq);
    }
    let (mut acknowledged, mut resent) = (0, 0);
    for at in 0..WRITERS {
        let log = std::fs::read_to_string(log_of(&path, &format!("w{at}"))).unwrap_or_default();
        let mut seen = BTreeMap::new();
        for line in log.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (first, len): (u64, u64) = (words[2].parse().unwrap(), words[3].parse().unwrap());
            let found = by_key
                .get(&format!("ana/{}", words[1]))
                .unwrap_or_else(|| panic!("{line} was lost"));
            let wanted: Vec<u64> = (first..first + len).collect();
            assert_eq!(*found, wanted, "{line} happened in another way, or twice");
            acknowledged += 1;
            if seen.insert(words[1].to_owned(), first).is_some() {
                resent += 1;
            }
        }
    }
    println!(
        "{acknowledged} answers, {resent} of them asked again, {} entries",
        journal.len()
    );
    assert!(
        acknowledged > kills() / 4 && resent > 0,
        "{acknowledged} answers, {resent} asked again: too few"
    );
    let opened = journal
        .iter()
        .filter(|entry| matches!(entry.event, Event::ClaimOpened(_)));
    assert_eq!(opened.count(), world.claims.len());
    tables_equal_journal(&mut store).unwrap();
    crate::sqlite::assert_sound(&path);
}
