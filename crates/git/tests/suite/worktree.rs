use crate::world::{World, write};
use git::{Head, Kind};
use std::fs;

#[test]
fn a_worktree_starts_at_exactly_the_commit_that_was_asked_for() {
    let world = World::new();
    let base = world.oid(&world.main, "HEAD");
    world.git(&world.main, &["checkout", "-q", "-b", "theme/x"]);
    let theme = world.commit(&world.main, "b", "x");
    world.git(&world.main, &["checkout", "-q", "main"]);
    for (n, door) in [world.door(), world.coordinator_at(&world.main)]
        .iter()
        .enumerate()
    {
        let tree = world.path.join(format!("trees/w{n}"));
        fs::create_dir_all(tree.parent().unwrap()).unwrap();
        let made = door.worktree_add(&tree, &format!("brain/w{n}"), &theme).unwrap();
        assert!(tree.join("b").exists());
        assert_eq!(
            made.head().unwrap(),
            Head::Branch {
                name: format!("brain/w{n}"),
                at: theme.clone()
            }
        );
        assert_eq!(made.status().unwrap().entries, []);
        // The caller may itself sit in a linked worktree.
        let from_inside =
            made.worktree_add(&world.path.join(format!("trees/in{n}")), &format!("in{n}"), &base);
        assert_eq!(from_inside.unwrap().head().unwrap().oid(), Some(&base));
    }
    let names: Vec<_> = world
        .door()
        .branches("brain")
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["brain/w0", "brain/w1"]);
}

#[test]
fn worktrees_are_made_and_removed_side_by_side() {
    let world = World::new();
    let at = world.oid(&world.main, "HEAD");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (world, at) = (&world, &at);
            scope.spawn(move || {
                let door = world.door();
                for round in 0..3 {
                    let (tree, branch) = (world.path.join(format!("w{n}")), format!("w{n}-{round}"));
                    door.worktree_add(&tree, &branch, at).unwrap();
                    let holder = door.checked_out_at(&branch).unwrap();
                    assert_eq!(holder.as_deref(), Some(tree.as_path()));
                    door.worktree_remove(&tree, "main").unwrap();
                    assert_eq!(door.checked_out_at(&branch).unwrap(), None);
                }
            });
        }
    });
    assert_eq!(world.door().worktrees().unwrap().len(), 1);
}

#[test]
fn a_leftover_folder_is_never_reused() {
    let world = World::new();
    let at = world.oid(&world.main, "HEAD");
    let tree = world.path.join("w1");
    write(&tree.join("precious"), "x");
    let refused = world.door().worktree_add(&tree, "w1", &at).unwrap_err();
    assert!(matches!(refused.kind(), Kind::Leftover));
    fs::remove_file(tree.join("precious")).unwrap();
    let refused = world.door().worktree_add(&tree, "w1", &at).unwrap_err();
    assert!(
        matches!(refused.kind(), Kind::Leftover),
        "an empty one is a leftover too"
    );
    assert_eq!(world.door().branch("w1").unwrap(), None);
}

#[test]
fn a_branch_that_exists_or_is_checked_out_is_named() {
    let world = World::new();
    let at = world.oid(&world.main, "HEAD");
    world.door().branch_create("taken", &at).unwrap();
    let taken = world
        .door()
        .worktree_add(&world.path.join("w1"), "taken", &at)
        .unwrap_err();
    assert!(
        matches!(taken.kind(), Kind::BranchExists { name } if name == "taken"),
        "{taken}"
    );
    let held = world
        .door()
        .worktree_add(&world.path.join("w1"), "main", &at)
        .unwrap_err();
    assert!(
        matches!(held.kind(), Kind::BranchCheckedOut { at, .. } if *at == world.main),
        "{held}"
    );
    assert!(!world.path.join("w1").exists());
    assert_eq!(
        world.door().branch("taken").unwrap(),
        Some(at),
        "what was there stays"
    );
}

#[test]
fn a_submodule_that_cannot_be_filled_leaves_no_worktree_and_no_branch() {
    let world = World::new();
    world.init(&world.path.join("lib"));
    world.git(&world.main, &["submodule", "--quiet", "add", "../lib", "lib"]);
    world.git(&world.main, &["commit", "-q", "-m", "lib"]);
    fs::rename(world.path.join("lib"), world.path.join("away")).unwrap();
    let at = world.oid(&world.main, "HEAD");
    let failed = world
        .door()
        .worktree_add(&world.path.join("w1"), "w1", &at)
        .unwrap_err();
    assert!(matches!(failed.kind(), Kind::Submodules), "{failed}");
    assert!(!world.path.join("w1").exists());
    assert_eq!(world.door().branch("w1").unwrap(), None);
    assert_eq!(world.door().worktrees().unwrap().len(), 1);
}

#[test]
fn a_worktree_with_uncommitted_or_unlanded_work_is_never_removed() {
    let world = World::new();
    let at = world.oid(&world.main, "HEAD");
    for door in [world.door(), world.coordinator_at(&world.main)] {
        let tree = world.path.join("w1");
        door.worktree_add(&tree, "w1", &at).unwrap();
        write(&tree.join("new"), "x");
        let dirty = door.worktree_remove(&tree, "main").unwrap_err();
        assert!(
            matches!(dirty.kind(), Kind::Dirty { paths } if paths.len() == 1),
            "{dirty}"
        );
        let tip = world.commit(&tree, "new", "x");
        let unlanded = door.worktree_remove(&tree, "main").unwrap_err();
        assert!(
            matches!(unlanded.kind(), Kind::Unlanded { head } if *head == tip),
            "{unlanded}"
        );
        let nowhere = door.worktree_remove(&tree, "no-such-branch").unwrap_err();
        assert!(matches!(nowhere.kind(), Kind::Unlanded { .. }), "{nowhere}");
        assert!(tree.join("new").exists());
        assert!(matches!(
            door.branch_delete("w1", &tip, "main").unwrap_err().kind(),
            Kind::BranchCheckedOut { .. }
        ));
        world.git(&world.main, &["branch", "landed", "w1"]);
        door.worktree_remove(&tree, "landed").unwrap();
        assert!(!tree.exists());
        door.worktree_remove(&tree, "landed").unwrap();
        assert!(matches!(
            door.branch_delete("w1", &tip, "main").unwrap_err().kind(),
            Kind::Unlanded { .. }
        ));
        assert!(matches!(
            door.branch_delete("w1", &at, "landed").unwrap_err().kind(),
            Kind::NonFastForward { .. }
        ));
        door.branch_delete("w1", &tip, "landed").unwrap();
        door.branch_delete("w1", &tip, "landed").unwrap();
        world.git(&world.main, &["branch", "-D", "landed"]);
    }
}

#[test]
fn the_main_checkout_and_strangers_are_never_removed() {
    let world = World::new();
    let other = world.path.join("other");
    world.init(&other);
    for folder in [&world.main, &other] {
        let refused = world.door().worktree_remove(folder, "main").unwrap_err();
        assert!(matches!(refused.kind(), Kind::NotARepository), "{refused}");
        assert!(folder.join("a.txt").exists());
    }
}

#[test]
fn a_worktree_with_submodules_is_removed_when_they_are_clean() {
    let world = World::new();
    world.init(&world.path.join("lib"));
    world.git(&world.main, &["submodule", "--quiet", "add", "../lib", "lib"]);
    world.git(&world.main, &["commit", "-q", "-m", "lib"]);
    let tree = world.path.join("w1");
    let at = world.oid(&world.main, "HEAD");
    world.door().worktree_add(&tree, "w1", &at).unwrap();
    write(&tree.join("lib/new"), "x");
    for door in [world.door(), world.coordinator_at(&world.main)] {
        let dirty = door.worktree_remove(&tree, "main").unwrap_err();
        assert!(matches!(dirty.kind(), Kind::Dirty { .. }), "{dirty}");
    }
    fs::remove_file(tree.join("lib/new")).unwrap();
    world.door().worktree_remove(&tree, "main").unwrap();
    assert!(!tree.exists());
}

#[test]
fn names_that_git_would_misread_are_refused() {
    let world = World::new();
    let at = world.oid(&world.main, "HEAD");
    for name in [
        "-d", "", "a..b", "a b", "x.lock", "a//b", "HEAD", "@", "a@{1}", "/a", "a/", ".a", "a\nb", "a~1",
    ] {
        let refused = world.door().branch_create(name, &at).unwrap_err();
        assert!(
            matches!(refused.kind(), Kind::BadName { .. }),
            "{name:?}: {refused}"
        );
    }
    world.door().branch_create("theme/été", &at).unwrap();
    assert_eq!(world.door().branch("theme/été").unwrap(), Some(at));
}
