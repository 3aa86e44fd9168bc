use crate::world::{World, message, paths, signature, write};
use git::Kind;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_held_index_is_waited_for_then_named_and_never_deleted() {
    let world = World::new();
    let lock = world.main.join(".git/index.lock");
    write(&lock, "");
    write(&world.main.join("a.txt"), "two\n");
    write(&world.main.join("new"), "x");
    let begun = Instant::now();
    let refused = world
        .door()
        .commit(&paths(&["a.txt", "new"]), &message("no"))
        .unwrap_err();
    let Kind::Locked { path, age } = refused.kind() else {
        panic!("{refused}")
    };
    assert_eq!(*path, lock);
    assert!(age.is_some_and(|age| age < Duration::from_secs(60)));
    assert!(begun.elapsed() >= Duration::from_millis(200), "it was waited for");
    assert!(begun.elapsed() < Duration::from_secs(10), "and not for ever");
    assert!(lock.exists(), "it is somebody's");
}

#[test]
fn a_lock_that_is_let_go_in_time_is_no_failure() {
    let world = World::new();
    let lock = world.main.join(".git/index.lock");
    write(&lock, "");
    write(&world.main.join("a.txt"), "two\n");
    let holder = lock.clone();
    let letting_go = thread::spawn(move || {
        thread::sleep(Duration::from_millis(150));
        fs::remove_file(holder).unwrap();
    });
    let door = world.door().with_patience(Duration::from_secs(20));
    assert!(door.commit(&paths(&["a.txt"]), &message("yes")).unwrap().made);
    letting_go.join().unwrap();
}

#[test]
fn a_held_ref_is_named_and_never_deleted() {
    let world = World::new();
    let lock = world.main.join(".git/refs/heads/x.lock");
    write(&lock, "");
    let at = world.oid(&world.main, "HEAD");
    let refused = world.door().branch_create("x", &at).unwrap_err();
    assert!(
        matches!(refused.kind(), Kind::Locked { path, .. } if *path == lock),
        "{refused}"
    );
    assert!(lock.exists());
}

#[test]
fn a_held_index_keeps_the_coordinators_commit_whole_and_the_next_try_finishes_it() {
    let world = World::new();
    let tree = world.path.join("w1");
    let door = world.coordinator_at(&world.main);
    let door = door
        .worktree_add(&tree, "w1", &world.oid(&world.main, "HEAD"))
        .unwrap();
    write(&tree.join("new"), "x");
    let lock = door.repository().git_dir().join("index.lock");
    write(&lock, "");
    let refused = door
        .commit_as(&paths(&["new"]), &message("new"), &signature(5))
        .unwrap_err();
    assert!(matches!(refused.kind(), Kind::Locked { .. }), "{refused}");
    fs::remove_file(&lock).unwrap();
    let first = world.oid(&tree, "HEAD");
    let again = door
        .commit_as(&paths(&["new"]), &message("new"), &signature(5))
        .unwrap();
    assert_eq!((again.oid, again.made), (first, false));
    assert_eq!(door.status().unwrap().entries, []);
}

#[test]
fn nobody_is_guessed_as_the_author() {
    let world = World::new();
    fs::write(world.path.join("home/.gitconfig"), "").unwrap();
    write(&world.main.join("a.txt"), "two\n");
    world.git(&world.main, &["config", "user.useConfigOnly", "true"]);
    let refused = world
        .door()
        .commit(&paths(&["a.txt"]), &message("no"))
        .unwrap_err();
    assert!(matches!(refused.kind(), Kind::NoIdentity), "{refused}");
    let mut nobody = signature(1);
    nobody.identity = None;
    let door = world.coordinator_at(&world.main);
    let refused = door
        .commit_as(&paths(&["a.txt"]), &message("no"), &nobody)
        .unwrap_err();
    assert!(matches!(refused.kind(), Kind::NoIdentity), "{refused}");
}
