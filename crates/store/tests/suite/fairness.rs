//! Sixteen processes write side by side: nobody starves, and the log stays short whoever reads (R22, R23, R24).

use std::path::Path;
use std::time::{Duration, Instant};

use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::scope::Scope;
use protocol::world::Pick;
use store::conformance::open_claim;
use store::{Sqlite, Store};

use crate::child::{Worker, ana, fresh, fresh_in_memory, open, say, told};

const MANY: usize = 16;

/// The longest log of processes that live long, in bytes; commands that do one thing each leave a quarter of it.
const LOG_MOST: u64 = 3 << 20;

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
    assert!(most > 0 && most < LOG_MOST, "the log grew to {most} bytes");
}

#[test]
fn r24_the_log_stays_short_while_16_write_and_others_look_all_the_time() {
    let (said, most) = write_side_by_side(2);
    assert!(said.iter().map(|(done, _)| done).sum::<u64>() > 100, "{said:?}");
    assert!(most > 0 && most < LOG_MOST, "the log grew to {most} bytes");
}

/// Sends so many signals, `each` of them through a store that is opened for them; the longest log, and how often
/// its file shrank.
fn signals(path: &Path, many: usize, each: usize) -> (u64, u64) {
    let (caller, policy) = (ana(), store::conformance::policy());
    let request = store::Request {
        caller: &caller,
        policy: &policy,
        key: None,
    };
    let (mut most, mut shrank, mut last) = (0, 0, 0);
    let mut one = |store: &mut Sqlite, n: usize| {
        // Relaxed: the log is as long, the disk is not waited for.
        let command = protocol::command::Command::SendSignal {
            to: "human".to_owned(),
            kind: protocol::facts::signal_kind::SignalKind::Info,
            from: None,
            summary: format!("number {n}"),
        };
        store::submit(store, request, &command).unwrap();
        let bytes = log_bytes(path);
        shrank += u64::from(bytes < last);
        (most, last) = (most.max(bytes), bytes);
    };
    for n in (0..many).step_by(each) {
        let mut store = open(path);
        (n..n + each).for_each(|n| one(&mut store, n));
    }
    (most, shrank)
}

#[test]
fn r24_the_log_is_cut_off_by_processes_that_do_one_thing_each() {
    let (_folder, path) = fresh();
    let (most, shrank) = signals(&path, 2_000, 1);
    assert!(most < 500_000, "the log grew to {most} bytes");
    assert!(shrank > 10, "it was cut off {shrank} times");
}

#[test]
fn r24_the_log_is_begun_anew_by_a_process_that_lives_long() {
    let (_folder, path) = fresh();
    let (most, shrank) = signals(&path, 2_000, 2_000);
    assert!(most < LOG_MOST, "the log grew to {most} bytes");
    assert_eq!(shrank, 1, "it was cut off once, the first time");
    let (one_more, _) = signals(&path, 200, 1);
    assert!(
        one_more < 1 << 20,
        "whoever comes later folds it back: {one_more} bytes"
    );
}
