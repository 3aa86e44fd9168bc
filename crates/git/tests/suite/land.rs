use crate::world::{World, executable, message, paths, signature, write};
use git::{Door, Kind, Landing, Oid, Way};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A branch `work` with one commit that changes, adds, deletes, links and marks executable.
fn work(world: &World) -> Oid {
    for name in ["gone", "run.sh", "other"] {
        world.commit(&world.main, name, "x\n");
    }
    world.git(&world.main, &["checkout", "-q", "-b", "work"]);
    write(&world.main.join("a.txt"), "two\n");
    write(&world.main.join("dir/new"), "x\n");
    symlink("a.txt", world.main.join("link")).unwrap();
    executable(&world.main.join("run.sh"));
    fs::remove_file(world.main.join("gone")).unwrap();
    world.git(&world.main, &["add", "-A"]);
    world.git(&world.main, &["commit", "-q", "-m", "work"]);
    let tip = world.oid(&world.main, "HEAD");
    world.git(&world.main, &["checkout", "-q", "main"]);
    tip
}

fn plan(door: &Door, source: &Oid) -> Landing {
    door.plan_merge(source, "main", &message("Merge work"), &signature(3))
        .unwrap()
}

fn doors(world: &World) -> [Door; 2] {
    [world.door(), world.coordinator_at(&world.main)]
}

#[test]
fn a_branch_behind_moves_forward_and_its_files_go_along() {
    for n in 0..2 {
        let world = World::new();
        let tip = work(&world);
        write(&world.main.join("other"), "dirty, but not touched by the move\n");
        write(&world.main.join("loose"), "x");
        let door = &doors(&world)[n];
        let landing = plan(door, &tip);
        assert_eq!((landing.way, &landing.new), (Way::FastForward, &tip));
        door.land(&landing).unwrap();
        assert_eq!(world.oid(&world.main, "main"), tip);
        assert_eq!(
            world.git(&world.main, &["status", "--porcelain"]),
            " M other\n?? loose"
        );
        assert_eq!(
            fs::read_link(world.main.join("link")).unwrap(),
            Path::new("a.txt")
        );
        assert_eq!(plan(door, &tip).way, Way::AlreadyThere);
        door.land(&plan(door, &tip)).unwrap();
        assert_eq!(
            world.git(&world.main, &["reflog", "-1", "--format=%gs", "HEAD"]),
            "merge: landed by brain"
        );
    }
}

#[test]
fn diverged_branches_are_merged_without_a_checkout_and_the_same_twice() {
    let world = World::new();
    let tip = work(&world);
    let old = world.commit(&world.main, "meanwhile", "x");
    world.git(&world.main, &["checkout", "-q", "--detach"]);
    let landing = plan(&world.door(), &tip);
    assert_eq!(landing.way, Way::Merge);
    assert_eq!(plan(&world.door(), &tip), landing);
    assert_eq!(
        world.oid(&world.main, "main"),
        old,
        "working it out moves nothing"
    );
    world.door().land(&landing).unwrap();
    let parents = world.git(&world.main, &["log", "-1", "--format=%P", "main"]);
    assert_eq!(parents, format!("{old} {tip}"));
    assert!(
        world.main.join("gone").exists(),
        "a checkout of something else stays as it is"
    );
    assert!(
        world
            .git(&world.main, &["log", "-1", "--format=%B", "main"])
            .contains("Brain-Session: sess-1")
    );
}

#[test]
fn a_bare_repository_lands_too() {
    let world = World::new();
    let tip = work(&world);
    world.git(&world.path, &["clone", "-q", "--bare", "main", "hub.git"]);
    let hub = world.path.join("hub.git");
    for door in [world.door_at(&hub), world.coordinator_at(&hub)] {
        let landing = plan(&door, &tip);
        door.land(&landing).unwrap();
        assert_eq!(world.oid(&hub, "main"), tip);
        world.git(&hub, &["update-ref", "refs/heads/main", landing.old.as_str()]);
    }
}

#[test]
fn a_conflict_names_the_files_and_moves_nothing() {
    let world = World::new();
    let tip = work(&world);
    let old = world.commit(&world.main, "a.txt", "three\n");
    for door in doors(&world) {
        let refused = door
            .plan_merge(&tip, "main", &message("m"), &signature(3))
            .unwrap_err();
        assert!(
            matches!(refused.kind(), Kind::Conflict { files } if *files == paths(&["a.txt"])),
            "{refused}"
        );
    }
    assert_eq!(world.oid(&world.main, "main"), old);
}

#[test]
fn histories_with_nothing_in_common_do_not_merge() {
    let world = World::new();
    world.git(&world.main, &["checkout", "-q", "--orphan", "fresh"]);
    world.git(&world.main, &["commit", "-q", "-m", "other"]);
    let tip = world.oid(&world.main, "fresh");
    let refused = world
        .door()
        .plan_merge(&tip, "main", &message("m"), &signature(3))
        .unwrap_err();
    assert!(matches!(refused.kind(), Kind::NoMergeBase), "{refused}");
}

#[test]
fn a_branch_that_moved_meanwhile_is_worked_out_again() {
    let world = World::new();
    let tip = work(&world);
    let stale = plan(&world.door(), &tip);
    let moved = world.commit(&world.main, "meanwhile", "x");
    let refused = world.door().land(&stale).unwrap_err();
    assert!(
        matches!(
            refused.kind(),
            Kind::NonFastForward { .. } | Kind::WouldOverwrite { .. }
        ),
        "{refused}"
    );
    assert_eq!(world.oid(&world.main, "main"), moved);
    world.git(&world.main, &["checkout", "-q", "--detach"]);
    let refused = world.door().land(&stale).unwrap_err();
    assert!(
        matches!(refused.kind(), Kind::NonFastForward { name } if name == "refs/heads/main"),
        "{refused}"
    );
    world.door().land(&plan(&world.door(), &tip)).unwrap();
}

#[test]
fn uncommitted_work_in_the_way_is_named_and_nothing_moves() {
    let world = World::new();
    world.commit(&world.main, ".gitignore", "ignored\n");
    let tip = {
        let tip = work(&world);
        world.git(&world.main, &["checkout", "-q", "work"]);
        write(&world.main.join("ignored"), "now tracked");
        write(&world.main.join("deep/er"), "x");
        world.git(&world.main, &["add", "-f", "ignored", "deep"]);
        world.git(&world.main, &["commit", "-q", "-m", "more"]);
        let tip2 = world.oid(&world.main, "HEAD");
        assert_ne!(tip, tip2);
        world.git(&world.main, &["checkout", "-q", "main"]);
        tip2
    };
    let old = world.oid(&world.main, "main");
    type Spoil = fn(&Path);
    let spoilers: [(&str, Spoil); 7] = [
        ("a.txt", |at| write(&at.join("a.txt"), "mine\n")),
        ("gone", |at| write(&at.join("gone"), "mine\n")),
        ("dir/new", |at| write(&at.join("dir/new"), "untracked\n")),
        ("ignored", |at| {
            write(&at.join("ignored"), "ignored and precious\n")
        }),
        ("dir", |at| {
            write(&at.join("dir"), "a file where a folder must come\n")
        }),
        ("link/below", |at| {
            write(&at.join("link/below"), "a folder where a link must come\n")
        }),
        ("run.sh", |at| fs::remove_file(at.join("run.sh")).unwrap()),
    ];
    for (name, spoil) in spoilers {
        for door in doors(&world) {
            spoil(&world.main);
            let before = world.git(&world.main, &["status", "--porcelain", "-uall", "--ignored"]);
            let refused = door.land(&plan(&door, &tip)).unwrap_err();
            let Kind::WouldOverwrite { paths: found, at } = refused.kind() else {
                panic!("{name}: {refused}")
            };
            assert_eq!((found, at), (&paths(&[name]), &world.main));
            assert_eq!(world.oid(&world.main, "main"), old);
            assert_eq!(
                world.git(&world.main, &["status", "--porcelain", "-uall", "--ignored"]),
                before
            );
            world.git(&world.main, &["reset", "-q", "--hard"]);
            world.git(&world.main, &["clean", "-qfdx"]);
        }
    }
    world.door().land(&plan(&world.door(), &tip)).unwrap();
}

#[test]
fn the_files_of_another_worktree_go_along() {
    let world = World::new();
    let tip = work(&world);
    world.git(&world.main, &["checkout", "-q", "--detach"]);
    let tree = world.path.join("w1");
    world.git(
        &world.main,
        &["worktree", "add", "-q", tree.to_str().unwrap(), "main"],
    );
    world.door().land(&plan(&world.door(), &tip)).unwrap();
    assert_eq!(world.git(&tree, &["status", "--porcelain"]), "");
    assert!(tree.join("dir/new").exists());
    assert_eq!(
        world.git(&tree, &["reflog", "-1", "--format=%gs", "HEAD"]),
        "merge: landed by brain"
    );
}

#[test]
fn a_crash_after_the_ref_has_moved_is_finished_at_every_point() {
    // 0: no file was written; 1: some were; 2: all files, but not the index; 3: all was done.
    for done in 0..4 {
        for n in 0..2 {
            let world = World::new();
            let tip = work(&world);
            let door = &doors(&world)[n];
            let landing = plan(door, &tip);
            write(&world.main.join("other"), "dirty\n");
            world.git(
                &world.main,
                &[
                    "update-ref",
                    "refs/heads/main",
                    tip.as_str(),
                    landing.old.as_str(),
                ],
            );
            if done >= 1 {
                write(&world.main.join("a.txt"), "two\n");
                write(&world.main.join("dir/new"), "x\n");
            }
            if done >= 2 {
                symlink("a.txt", world.main.join("link")).unwrap();
                executable(&world.main.join("run.sh"));
                fs::remove_file(world.main.join("gone")).unwrap();
            }
            if done >= 3 {
                world.git(&world.main, &["add", "a.txt", "dir", "link", "run.sh", "gone"]);
            }
            for _ in 0..2 {
                door.sync_checkout("main", &landing.old, &landing.new).unwrap();
                assert_eq!(
                    world.git(&world.main, &["status", "--porcelain"]),
                    " M other",
                    "point {done}"
                );
                assert_eq!(fs::read_to_string(world.main.join("a.txt")).unwrap(), "two\n");
            }
        }
    }
}

#[test]
fn work_that_came_after_the_crash_is_kept() {
    let world = World::new();
    let tip = work(&world);
    let landing = plan(&world.door(), &tip);
    world.git(&world.main, &["update-ref", "refs/heads/main", tip.as_str()]);
    write(&world.main.join("a.txt"), "precious\n");
    let refused = world
        .door()
        .sync_checkout("main", &landing.old, &landing.new)
        .unwrap_err();
    assert!(
        matches!(refused.kind(), Kind::WouldOverwrite { paths: p, .. } if *p == paths(&["a.txt"])),
        "{refused}"
    );
    assert_eq!(
        fs::read_to_string(world.main.join("a.txt")).unwrap(),
        "precious\n"
    );
}

#[test]
fn several_repositories_land_together_or_not_at_all() {
    let (one, two) = (World::new(), World::new());
    let tips = [work(&one), work(&two)];
    let doors = [one.door(), two.door()];
    let landings = [plan(&doors[0], &tips[0]), plan(&doors[1], &tips[1])];
    let together = [(&doors[0], &landings[0]), (&doors[1], &landings[1])];
    // The second repository's branch is held: what the first has moved goes back.
    let lock = two.main.join(".git/refs/heads/main.lock");
    write(&lock, "");
    let refused = Door::land_all(&together).unwrap_err();
    assert!(matches!(refused.kind(), Kind::Locked { .. }), "{refused}");
    assert_eq!(one.oid(&one.main, "main"), landings[0].old);
    assert_eq!(one.git(&one.main, &["status", "--porcelain"]), "");
    assert!(
        one.git(&one.main, &["reflog", "--format=%gs", "HEAD"])
            .contains("undone"),
        "it had moved"
    );
    fs::remove_file(lock).unwrap();
    // Work in the way in the second keeps the first from moving at all.
    write(&two.main.join("a.txt"), "mine\n");
    assert!(matches!(
        Door::land_all(&together).unwrap_err().kind(),
        Kind::WouldOverwrite { .. }
    ));
    assert_eq!(one.oid(&one.main, "main"), landings[0].old);
    two.git(&two.main, &["checkout", "-q", "a.txt"]);
    Door::land_all(&together).unwrap();
    assert_eq!([one.oid(&one.main, "main"), two.oid(&two.main, "main")], tips);
}

#[test]
fn a_rebase_keeps_authors_and_messages_and_moves_the_checkout() {
    let world = World::new();
    world.git(&world.main, &["checkout", "-q", "-b", "work"]);
    write(&world.main.join("b"), "x");
    world.git(&world.main, &["add", "b"]);
    let by = [
        "commit",
        "-q",
        "--author=Ben <ben@example.org>",
        "--date=@1000 +0200",
        "-m",
        "b",
        "-m",
        "K: v",
    ];
    world.git(&world.main, &by);
    world.commit(&world.main, "same", "x");
    world.git(&world.main, &["checkout", "-q", "main"]);
    let onto = world.commit(&world.main, "same", "x");
    world.git(&world.main, &["checkout", "-q", "work"]);
    let landing = world.door().plan_rebase("work", &onto, &signature(9)).unwrap();
    assert_eq!(landing.way, Way::Rebase);
    world.door().land(&landing).unwrap();
    let log = world.git(
        &world.main,
        &["log", "--format=%an %ae %at %cn %ct %s", &format!("{onto}..work")],
    );
    assert_eq!(
        log, "Ben ben@example.org 1000 Brain 9 b",
        "what is there already is left out"
    );
    assert_eq!(
        world.git(&world.main, &["log", "-1", "--format=%B", "work"]),
        "b\n\nK: v"
    );
    assert_eq!(world.git(&world.main, &["status", "--porcelain"]), "");
    assert!(world.main.join("b").exists());
    assert_eq!(
        world
            .door()
            .plan_rebase("work", &onto, &signature(9))
            .unwrap()
            .way,
        Way::AlreadyThere
    );
}

#[test]
fn a_shallow_clone_lands_what_its_history_can_tell_and_refuses_the_rest() {
    let world = World::new();
    let before = world.oid(&world.main, "HEAD");
    world.commit(&world.main, "b", "x");
    let url = format!("file://{}", world.main.display());
    world.git(&world.path, &["clone", "-q", "--depth", "1", &url, "shallow"]);
    let shallow = world.path.join("shallow");
    world.git(&shallow, &["checkout", "-q", "-b", "work"]);
    let tip = world.commit(&shallow, "c", "x");
    let door = world.door_at(&shallow);
    assert_eq!(plan(&door, &tip).way, Way::FastForward);
    world.git(&shallow, &["checkout", "-q", "main"]);
    world.commit(&shallow, "d", "x");
    let landing = plan(&door, &tip);
    assert_eq!(landing.way, Way::Merge);
    door.land(&landing).unwrap();
    // One that forked before the history that is here.
    world.git(&world.main, &["checkout", "-q", "-b", "early", before.as_str()]);
    world.commit(&world.main, "e", "x");
    world.git(
        &shallow,
        &["fetch", "-q", "--depth", "1", "origin", "early:early"],
    );
    let early = world.oid(&shallow, "early");
    let refused = door
        .plan_merge(&early, "main", &message("m"), &signature(1))
        .unwrap_err();
    assert!(matches!(refused.kind(), Kind::Shallow), "{refused}");
    let refused = door.plan_rebase("early", &tip, &signature(1)).unwrap_err();
    assert!(matches!(refused.kind(), Kind::Shallow), "{refused}");
}
