//! Many at once ask for one thing: exactly one gets it, every round.

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use protocol::command::Command;
use protocol::facts::lock::Holder;
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::span::Span;
use store::clock::Clock;
use store::conformance::{open_claim, policy, tables_equal_journal};
use store::{Memory, Outcome, Request, Store, submit};

use crate::child::{Worker, ana, fresh, open, say, told};

const MANY: usize = 24;
const ROUNDS: usize = 200;

/// Asks for the scope of a round, or its lock; whether it was granted.
fn attempt(store: &mut dyn Store, name: &str, what: &str, round: usize) -> bool {
    let outcome = if what == "scope" {
        let scope = format!("round/{round}/");
        open_claim(store, &ana(), &format!("{name}-{round}"), &[&scope], None)
    } else {
        let path = LogicalPath::parse(&format!("lock/{round}"), Fold::Exact).unwrap();
        let policy = policy();
        let command = Command::AcquireLocks {
            holder: Holder::Name(name.to_owned()),
            paths: vec![path],
            ttl: Span::from_ms(600_000),
        };
        let caller = ana();
        let request = Request {
            caller: &caller,
            policy: &policy,
            key: None,
        };
        submit(store, request, &command)
    };
    match outcome.unwrap() {
        Outcome::Committed(_) => true,
        Outcome::Refused(_) => false,
        Outcome::Repeated(_) => panic!("nothing was asked twice"),
    }
}

fn now_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// What a racing process does: `scope 17 <when>` until nobody tells it more.
pub fn racer(place: &Path, name: &str) {
    let mut store = open(place);
    say("ready");
    for line in told() {
        let mut words = line.split(' ');
        let (what, round, when) = (
            words.next().unwrap(),
            words.next().unwrap(),
            words.next().unwrap(),
        );
        let when: i64 = when.parse().unwrap();
        // Everyone starts at one moment, not when its own line came.
        while now_ns() < when {
            std::hint::spin_loop();
        }
        let won = attempt(&mut store, name, what, round.parse().unwrap());
        say(if won { "won" } else { "lost" });
    }
}

fn race_processes(what: &str) {
    let (_folder, path) = fresh();
    let mut racers: Vec<Worker> = (0..MANY)
        .map(|at| Worker::start("racer", &path, &format!("racer-{at}")))
        .collect();
    racers.iter().for_each(|racer| assert_eq!(racer.hear(), "ready"));
    let mut winners = std::collections::BTreeSet::new();
    for round in 0..ROUNDS {
        let line = format!("{what} {round} {}", now_ns() + 500_000);
        racers.iter_mut().for_each(|racer| racer.tell(&line));
        let won: Vec<bool> = racers.iter().map(|racer| racer.hear() == "won").collect();
        let who: Vec<usize> = (0..MANY).filter(|at| won[*at]).collect();
        assert_eq!(who.len(), 1, "round {round} for one {what} was won by {who:?}");
        winners.extend(who);
    }
    assert!(
        winners.len() > 1,
        "one process alone won every round: that was no race"
    );
    racers.into_iter().for_each(Worker::end);
    tables_equal_journal(&mut open(&path)).unwrap();
}

#[test]
fn of_24_processes_that_want_one_scope_exactly_one_gets_it() {
    race_processes("scope");
}

#[test]
fn of_24_processes_that_want_one_lock_exactly_one_gets_it() {
    race_processes("lock");
}

#[test]
fn of_24_threads_on_memory_exactly_one_gets_it() {
    for what in ["scope", "lock"] {
        let store = Memory::new(Clock::by_hand(0));
        let barrier = Barrier::new(MANY);
        let wins = std::sync::Mutex::new(vec![Vec::new(); ROUNDS]);
        std::thread::scope(|scope| {
            for at in 0..MANY {
                let (mut store, barrier, wins) = (store.clone(), &barrier, &wins);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        barrier.wait();
                        if attempt(&mut store, &format!("racer-{at}"), what, round) {
                            wins.lock().unwrap()[round].push(at);
                        }
                    }
                });
            }
        });
        let wins = wins.into_inner().unwrap();
        assert!(wins.iter().all(|who| who.len() == 1), "{what}: {wins:?}");
    }
}

#[test]
fn a_waiter_hears_of_what_another_process_wrote() {
    let (_folder, path) = fresh();
    let mut writer = Worker::start("racer", &path, "writer");
    writer.hear();
    let mut store = open(&path);
    let head = crate::child::head(&mut store);
    writer.tell(&format!("scope 1 {}", now_ns() + 50_000_000));
    let began = Instant::now();
    assert_eq!(store.wait(head, Duration::from_secs(30)).unwrap(), head + 1);
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(store.wait(head + 1, Duration::from_millis(30)).unwrap(), head + 1);
    writer.end();
}
