//! Sixteen processes write side by side: nobody starves, and the log stays short whoever reads (R22, R23, R24).

use std::path::Path;
use std::time::{Duration, Instant};

use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::scope::Scope;
use protocol::world::Pick;
use store::Store;
use store::conformance::open_claim;

use crate::child::{Worker, ana, fresh, fresh_in_memory, open, say, told};

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

/// What a process does that looks all the time at what a hook looks at.
pub fn reader(place: &Path) {
    let mut store = open(place);
    let path = LogicalPath::parse("c1/7/x.rs", Fold::Exact).unwrap();
    let picks = vec![
        Pick::Rivals {
            scope: Scope::from_path(&path).unwrap(),
            trees: false,
        },
        Pick::Locks(vec![path]),
    ];
    say("ready");
    loop {
        store.look(&picks).unwrap();
    }
}

fn log_bytes(path: &Path) -> u64 {
    let log = format!("{}-wal", path.display());
    std::fs::metadata(log).map_or(0, |it| it.len())
}

/// What sixteen writers came to, beside so many readers: claims and longest wait of each, the longest log.
fn write_side_by_side(readers: usize) -> (Vec<(u64, u64)>, u64) {
    let (_folder, path) = fresh_in_memory();
    let readers: Vec<Worker> = (0..readers)
        .map(|at| Worker::start("reader", &path, &at.to_string()))
        .collect();
    let mut writers: Vec<Worker> = (0..MANY)
        .map(|at| Worker::start("committer", &path, &format!("c{at}")))
        .collect();
    let ready = |it: &Worker| assert_eq!(it.hear(), "ready");
    writers.iter().chain(&readers).for_each(ready);
    writers.iter_mut().for_each(|it| it.tell("go 3000"));
    let mut most = 0;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(3_000) {
        most = most.max(log_bytes(&path));
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = writers.iter().map(|it| {
        let line = it.hear();
        let (done, longest) = line.split_once(' ').unwrap();
        (done.parse().unwrap(), longest.parse().unwrap())
    });
    let said: Vec<(u64, u64)> = said.collect();
    readers.into_iter().for_each(Worker::kill);
    writers.into_iter().for_each(Worker::end);
    println!("(claims, longest wait in ms) of each: {said:?}; log at most {most} bytes");
    (said, most)
}

#[test]
fn r23_nobody_starves_among_16_writers() {
    let (said, most) = write_side_by_side(0);
    let total: u64 = said.iter().map(|(done, _)| done).sum();
    let slowest = said.iter().map(|(done, _)| *done).min().unwrap();
    let longest = said.iter().map(|(_, longest)| *longest).max().unwrap();
    assert!(total > 100, "{total} claims are too few to tell");
    assert!(slowest as f64 >= total as f64 / MANY as f64 * 0.25, "{said:?}");
    assert!(longest < 1_000, "{said:?}");
    assert!(most > 0 && most < 1 << 20, "the log grew to {most} bytes");
}

#[test]
fn r24_the_log_stays_short_while_16_write_and_others_look_all_the_time() {
    let (said, most) = write_side_by_side(2);
    assert!(said.iter().map(|(done, _)| done).sum::<u64>() > 100, "{said:?}");
    assert!(most > 0 && most < 1 << 20, "the log grew to {most} bytes");
}

#[test]
fn r24_the_log_is_folded_back_after_thousands_of_commands() {
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
