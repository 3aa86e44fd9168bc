//! Many processes at once on one store.

use std::fs;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::stage::{Ran, Stage};

/// Starts all at once, then waits for all.
fn at_once(stage: &Stage, commands: impl Iterator<Item = Vec<String>>) -> Vec<Ran> {
    let start = |args: Vec<String>| {
        let mut command = stage.command(&args);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = commands.map(start).collect();
    children
        .into_iter()
        .map(|child| Ran::of(child.wait_with_output().unwrap()))
        .collect()
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn o_1_of_many_who_open_one_scope_exactly_one_wins() {
    let mut stage = Stage::brain();
    stage.set("BRAIN_TEST_CLOCK", "");
    for round in 0..3 {
        // Half of them name one id, half let it be composed.
        let ran = at_once(
            &stage,
            (0..24).map(|n| {
                let id = if n % 2 == 0 {
                    format!(" --id sess-20261130-1000-r{round}")
                } else {
                    String::new()
                };
                words(&format!("claim open --scope race{round} --task t{n}{id}"))
            }),
        );
        let won: Vec<&Ran> = ran.iter().filter(|ran| ran.code == 0).collect();
        assert_eq!(won.len(), 1, "round {round}");
        let winner = won[0].out.trim();
        for lost in ran.iter().filter(|ran| ran.code != 0) {
            assert!([10, 12].contains(&lost.code), "{}", lost.err);
            assert!(lost.err.contains(winner), "does not name {winner}: {}", lost.err);
        }
    }
    assert_eq!(stage.ok(&["claim", "list"]).lines().count(), 3);
}

#[test]
fn o_9_of_many_who_take_one_lock_exactly_one_wins() {
    let mut stage = Stage::brain();
    for round in 0..2 {
        let ran = at_once(
            &stage,
            (0..24).map(|n| words(&format!("lock acquire race.ts r{round}-{n} --ttl 10m"))),
        );
        let won: Vec<usize> = (0..24).filter(|n| ran[*n].code == 0).collect();
        assert_eq!(won.len(), 1, "round {round}");
        let winner = format!("r{round}-{}", won[0]);
        for lost in ran.iter().filter(|ran| ran.code != 0) {
            assert_eq!(lost.code, 1, "{}", lost.err);
            assert!(
                lost.err.contains(&winner) && lost.err.contains("until 2026-11-30T"),
                "{}",
                lost.err
            );
        }
        stage.ok(&["lock", "acquire", "race.ts", &winner, "--ttl", "10m"]);
        assert_eq!(stage.ok(&["lock", "list"]).lines().count(), 1);
        // The next round is for a lock that has expired.
        stage.turn(11 * 60_000);
    }
}

#[test]
fn sixteen_sessions_at_work_are_all_answered_and_the_log_stays_short() {
    let mut stage = Stage::brain();
    stage.set("BRAIN_TEST_CLOCK", "");
    let rounds: usize = std::env::var("BRAIN_TEST_ROUNDS").map_or(3, |it| it.parse().unwrap());
    let at_work = AtomicBool::new(true);
    let (answered, log) = thread::scope(|scope| {
        let longest = || {
            let mut longest = 0;
            while at_work.load(Ordering::Relaxed) {
                let log = fs::metadata(stage.root.join(".brain/brain.db-wal"));
                longest = longest.max(log.map_or(0, |file| file.len()));
                thread::sleep(Duration::from_millis(1));
            }
            longest
        };
        let session = |n: usize| {
            let stage = &stage;
            move || {
                for round in 0..rounds {
                    let id = format!("sess-20261130-1000-s{n}-{round}");
                    let file = format!("w{n}/f{round}.ts");
                    stage.ok(&[
                        "claim",
                        "open",
                        "--scope",
                        &format!("w{n}"),
                        "--task",
                        "t",
                        "--id",
                        &id,
                    ]);
                    stage.ok(&["preflight", "check", &id, &file]);
                    stage.ok(&["lock", "acquire", &file, &id]);
                    stage.ok(&[
                        "signal", "send", "--from", &id, "--to", "human", "--type", "INFO", "hello",
                    ]);
                    stage.ok(&["close", &id, "--result", "failed"]);
                }
                5 * rounds
            }
        };
        let log = scope.spawn(longest);
        let sessions: Vec<_> = (0..16).map(|n| scope.spawn(session(n))).collect();
        let answered: Vec<_> = sessions.into_iter().map(|session| session.join()).collect();
        at_work.store(false, Ordering::Relaxed);
        let answered: usize = answered.into_iter().map(Result::unwrap).sum();
        (answered, log.join().unwrap())
    });
    println!("{answered} commands answered; the log had {log} bytes at most");
    assert_eq!(answered, 16 * 5 * rounds);
    assert!(log > 0 && log < 1 << 20, "the log file has {log} bytes");
    assert_eq!(stage.ok(&["claim", "list", "--all"]).lines().count(), 16 * rounds);
}
