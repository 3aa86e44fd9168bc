//! Many at once: exactly one wins each step, and nobody's work is lost.

use crate::world::{World, message, paths, signature, write};
use git::Kind;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

const RACERS: u64 = 6;

#[test]
fn branches_that_land_at_once_all_land() {
    let world = World::new();
    let base = world.oid(&world.main, "HEAD");
    let tips: Vec<_> = (0..RACERS)
        .map(|n| {
            world.git(
                &world.main,
                &["checkout", "-q", "-b", &format!("w{n}"), base.as_str()],
            );
            world.commit(&world.main, &format!("file-{n}"), "x")
        })
        .collect();
    world.git(&world.main, &["checkout", "-q", "--detach"]);
    let start = Barrier::new(tips.len());
    let lost: u32 = thread::scope(|scope| {
        let racers: Vec<_> = tips
            .iter()
            .zip(0..)
            .map(|(tip, n)| {
                let door = world
                    .coordinator_at(&world.main)
                    .with_patience(Duration::from_secs(30));
                let start = &start;
                scope.spawn(move || {
                    let plan = || {
                        door.plan_merge(tip, "main", &message("m"), &signature(n))
                            .unwrap()
                    };
                    let mut lost = 0;
                    let mut landing = plan();
                    start.wait(); // all have worked it out from the same place: one can be right
                    loop {
                        match door.land(&landing) {
                            Ok(()) => return lost,
                            Err(e) if matches!(e.kind(), Kind::NonFastForward { .. }) => lost += 1,
                            Err(e) => panic!("{e}"),
                        }
                        landing = plan();
                    }
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    });
    assert!(lost >= RACERS as u32 - 1, "nobody raced: this run proves nothing");
    let files = world.git(&world.main, &["ls-tree", "--name-only", "main"]);
    assert_eq!(
        files.lines().filter(|name| name.starts_with("file-")).count() as u64,
        RACERS
    );
}

#[test]
fn commits_in_one_checkout_at_once_hold_their_own_files_only() {
    let world = World::new();
    thread::scope(|scope| {
        for n in 0..RACERS {
            let door = world.door().with_patience(Duration::from_secs(60));
            let world = &world;
            scope.spawn(move || {
                let name = format!("file-{n}");
                write(&world.main.join(&name), "x");
                let mine = paths(&[&name]);
                loop {
                    match door.commit(&mine, &message(&name)) {
                        Ok(made) => return assert!(made.made),
                        Err(e) if matches!(e.kind(), Kind::NonFastForward { .. }) => {}
                        Err(e) => panic!("{e}"),
                    }
                }
            });
        }
    });
    let log = world.git(
        &world.main,
        &[
            "log",
            "--format=>%s",
            "--name-only",
            "--no-renames",
            "HEAD~6..HEAD",
        ],
    );
    let commits: Vec<Vec<&str>> = log
        .split('>')
        .skip(1)
        .map(|commit| commit.lines().filter(|line| !line.is_empty()).collect())
        .collect();
    assert_eq!(commits.len() as u64, RACERS);
    assert!(
        commits
            .iter()
            .all(|commit| commit.len() == 2 && commit[0] == commit[1]),
        "{commits:?}"
    );
    assert_eq!(world.git(&world.main, &["status", "--porcelain"]), "");
}
