//! Sixteen processes write side by side: nobody starves, and the log stays short whoever reads (R22, R23, R24).

use std::path::Path;
use std::time::{Duration, Instant};

use protocol::world::Pick;
use store::Store;
use store::conformance::open_claim;

use crate::child::{Worker, ana, fresh, open, say, told};

const MANY: usize = 16;

/// What a process does that opens claims for so many milliseconds: `go 3000`.
pub fn committer(place: &Path, name: &str) {
    let mut store = open(place);
    say("ready");
    for line in told() {
        let ms: u64 = line.strip_prefix("go ").unwrap().parse().unwrap();
        let began = Instant::now();
        let (mut done, mut longest) = (0u64, Duration::ZERO);
        while began.elapsed() < Duration::from_millis(ms) {
            let asked = Instant::now();
            let entry = format!("{name}/{done}/");
            open_claim(&mut store, &ana(), &format!("{name}-{done}"), &[&entry], None).unwrap();
            longest = longest.max(asked.elapsed());
            done += 1;
        }
        say(&format!("{done} {}", longest.as_millis()));
    }
}

/// What a process does that looks all the time, as hooks and watchers do.
pub fn reader(place: &Path) {
    let mut store = open(place);
    say("ready");
    loop {
        store.look(&vec![Pick::Live]).unwrap();
    }
}

fn log_bytes(path: &Path) -> u64 {
    let log = format!("{}-wal", path.display());
    std::fs::metadata(log).map_or(0, |it| it.len())
}

#[test]
fn nobody_starves_among_16_writers_and_the_log_stays_short_while_others_read() {
    let (_folder, path) = fresh();
    let readers: Vec<Worker> = (0..2)
        .map(|at| Worker::start("reader", &path, &at.to_string()))
        .collect();
    let mut writers: Vec<Worker> = (0..MANY)
        .map(|at| Worker::start("committer", &path, &format!("c{at}")))
        .collect();
    writers
        .iter()
        .chain(&readers)
        .for_each(|it| assert_eq!(it.hear(), "ready"));
    writers.iter_mut().for_each(|it| it.tell("go 4000"));
    let mut most = 0;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(4_000) {
        most = most.max(log_bytes(&path));
        std::thread::sleep(Duration::from_millis(5));
    }
    let said: Vec<(u64, u64)> = writers
        .iter()
        .map(|it| {
            let line = it.hear();
            let (done, longest) = line.split_once(' ').unwrap();
            (done.parse().unwrap(), longest.parse().unwrap())
        })
        .collect();
    readers.into_iter().for_each(Worker::kill);
    writers.into_iter().for_each(Worker::end);
    let total: u64 = said.iter().map(|(done, _)| done).sum();
    let mean = total as f64 / MANY as f64;
    let slowest = said.iter().map(|(done, _)| *done).min().unwrap();
    let longest = said.iter().map(|(_, longest)| *longest).max().unwrap();
    println!(
        "{total} claims, slowest {slowest} of {mean:.0}, longest wait {longest} ms, log at most {most} bytes"
    );
    assert!(total > 100, "{total} claims are too few to tell");
    assert!(slowest as f64 >= mean * 0.25, "{said:?}");
    assert!(longest < 1_000, "{said:?}");
    assert!(most > 0 && most < 1 << 20, "the log grew to {most} bytes");
}

#[test]
fn the_log_is_folded_back_after_thousands_of_commands() {
    let (_folder, path) = fresh();
    let mut store = open(&path);
    let (mut most, mut shrank, mut last) = (0, 0, 0);
    for n in 0..2_500 {
        let caller = ana();
        let policy = store::conformance::policy();
        let request = store::Request {
            caller: &caller,
            policy: &policy,
            key: None,
        };
        // Relaxed: the log is as long, the disk is not waited for.
        let command = protocol::command::Command::SendSignal {
            to: "human".to_owned(),
            kind: protocol::facts::signal_kind::SignalKind::Info,
            from: None,
            summary: format!("number {n}"),
        };
        store::submit(&mut store, request, &command).unwrap();
        let bytes = log_bytes(&path);
        shrank += u64::from(bytes < last);
        (most, last) = (most.max(bytes), bytes);
    }
    assert!(most < 1 << 20, "the log grew to {most} bytes");
    assert!(shrank > 10, "it was folded back {shrank} times");
}
