use crate::world::{World, write};
use git::{Door, Head, Kind, Repository, logical};
use std::fs;
use std::path::Path;

#[test]
fn a_path_that_does_not_exist_yet_belongs_to_the_checkout_around_it() {
    let world = World::new();
    let found = Repository::find(&world.main.join("src/new/deep.rs")).unwrap();
    assert_eq!(found.toplevel(), Some(world.main.as_path()));
    assert_eq!(found.common_dir(), world.main.join(".git"));
    assert_eq!(found.main_checkout(), Some(world.main.as_path()));
    assert!(!found.is_linked_worktree());
    assert_eq!(Repository::find(&world.path.join("home/x")), None);
}

#[test]
fn a_linked_worktree_is_the_same_repository_and_its_paths_lead_to_the_main_checkout() {
    let world = World::new();
    let tree = world.path.join("elsewhere/w1");
    world.git(
        &world.main,
        &["worktree", "add", "-q", "-b", "w1", tree.to_str().unwrap()],
    );
    let found = Repository::find(&tree.join("x")).unwrap();
    assert!(found.is_linked_worktree());
    assert_eq!(found.common_dir(), world.main.join(".git"));
    assert_eq!(found.main_checkout(), Some(world.main.as_path()));
    assert_eq!(logical(&tree.join("src/new.rs")), world.main.join("src/new.rs"));
    assert_eq!(
        logical(&world.main.join("src/new.rs")),
        world.main.join("src/new.rs")
    );
    assert_eq!(logical(&tree), world.main);
}

#[test]
fn a_worktree_below_the_main_checkout_maps_too() {
    let world = World::new();
    let tree = world.main.join(".brain/worktrees/w1");
    world.git(
        &world.main,
        &["worktree", "add", "-q", "-b", "w1", tree.to_str().unwrap()],
    );
    assert_eq!(logical(&tree.join("src/a.rs")), world.main.join("src/a.rs"));
}

#[test]
fn paths_in_a_worktree_of_a_bare_repository_count_from_the_folder_that_holds_it() {
    let world = World::new();
    let bare = world.path.join("hub/app.git");
    world.git(
        &world.path,
        &["clone", "-q", "--bare", "main", bare.to_str().unwrap()],
    );
    let tree = world.path.join("w1");
    world.git(
        &bare,
        &["worktree", "add", "-q", "-b", "w1", tree.to_str().unwrap()],
    );
    let found = Repository::find(&bare.join("hooks")).unwrap();
    assert_eq!((found.toplevel(), found.main_checkout()), (None, None));
    assert_eq!(logical(&tree.join("src/a.rs")), world.path.join("hub/src/a.rs"));
    assert_eq!(Repository::find(&tree).unwrap().common_dir(), bare);
    let status = world.door_at(&bare).status();
    assert!(matches!(status.unwrap_err().kind(), Kind::NoCheckout));
}

#[test]
fn a_submodule_is_a_repository_of_its_own_and_follows_a_linked_worktree() {
    let world = World::new();
    world.init(&world.path.join("lib"));
    world.git(&world.main, &["submodule", "--quiet", "add", "../lib", "lib"]);
    world.git(&world.main, &["commit", "-q", "-m", "lib"]);
    let inside = Repository::find(&world.main.join("lib/a.txt")).unwrap();
    assert_eq!(inside.toplevel(), Some(world.main.join("lib").as_path()));
    assert_ne!(inside.common_dir(), world.main.join(".git"));
    let tree = world.path.join("w1");
    let commit = world.oid(&world.main, "HEAD");
    world.door().worktree_add(&tree, "w1", &commit).unwrap();
    assert!(tree.join("lib/a.txt").exists(), "submodules are filled");
    assert_eq!(
        logical(&tree.join("lib/src/x.rs")),
        world.main.join("lib/src/x.rs")
    );
}

#[test]
fn the_head_is_read_loose_packed_detached_and_unborn() {
    let world = World::new();
    let at = world.oid(&world.main, "HEAD");
    let on_main = Head::Branch {
        name: "main".to_owned(),
        at: at.clone(),
    };
    let files = || Repository::find(&world.main).unwrap().head_from_files();
    assert_eq!(files(), Some(on_main.clone()));
    world.git(&world.main, &["pack-refs", "--all"]);
    assert!(!world.main.join(".git/refs/heads/main").exists());
    assert_eq!(files(), Some(on_main));
    world.git(&world.main, &["checkout", "-q", "--detach"]);
    assert_eq!(files(), Some(Head::Detached(at)));
    world.git(&world.main, &["checkout", "-q", "--orphan", "fresh"]);
    assert_eq!(
        files(),
        Some(Head::Unborn {
            name: "fresh".to_owned()
        })
    );
}

#[test]
fn refs_in_tables_are_read_by_git() {
    let world = World::empty();
    fs::create_dir(&world.main).unwrap();
    if !world
        .try_git(&world.main, &["init", "-q", "--ref-format=reftable"])
        .status
        .success()
    {
        panic!("this git has no reftable: the suite needs 2.45");
    }
    assert!(matches!(world.door().head().unwrap(), Head::Unborn { name } if name == "main"));
    let at = world.commit(&world.main, "a", "x");
    assert_eq!(
        world.door().head().unwrap(),
        Head::Branch {
            name: "main".to_owned(),
            at
        }
    );
    assert_eq!(
        Repository::find(&world.main).unwrap().has_stash(),
        None,
        "only git can tell"
    );
    let refused = world.door().coordinator(&world.path.join("state")).unwrap_err();
    assert!(matches!(refused.kind(), Kind::Unsupported { .. }));
}

#[test]
fn case_folding_is_read_from_the_repository() {
    let world = World::new();
    assert!(!Repository::find(&world.main).unwrap().ignores_case());
    world.git(&world.main, &["config", "core.ignorecase", "true"]);
    assert!(Repository::find(&world.main).unwrap().ignores_case());
}

#[test]
fn the_stash_is_one_for_all_worktrees() {
    let world = World::new();
    let tree = world.path.join("w1");
    world.git(
        &world.main,
        &["worktree", "add", "-q", "-b", "w1", tree.to_str().unwrap()],
    );
    let stashed = || Repository::find(&tree).unwrap().has_stash();
    assert_eq!(stashed(), Some(false));
    write(&world.main.join("a.txt"), "two\n");
    world.git(&world.main, &["stash", "-q"]);
    assert_eq!(stashed(), Some(true));
    world.git(&world.main, &["pack-refs", "--all"]);
    assert_eq!(stashed(), Some(true));
}

#[test]
fn variables_that_point_git_elsewhere_are_withheld() {
    let world = World::new();
    let other = world.path.join("other");
    world.init(&other);
    write(&world.main.join("mine"), "x");
    let mut environment = world.environment();
    let git_dir = other.join(".git");
    environment.push(("GIT_DIR".into(), git_dir.clone().into()));
    environment.push(("GIT_WORK_TREE".into(), other.into()));
    environment.push(("GIT_INDEX_FILE".into(), git_dir.join("index").into()));
    let door = Door::user(Repository::find(&world.main).unwrap()).in_environment(environment);
    let entries = door.status().unwrap().entries;
    assert_eq!(
        entries.iter().map(|e| e.path.as_path()).collect::<Vec<_>>(),
        [Path::new("mine")]
    );
}

#[test]
fn without_git_the_failure_says_so() {
    let world = World::new();
    let environment = vec![("PATH".into(), world.path.join("nothing").into())];
    let door = Door::user(Repository::find(&world.main).unwrap()).in_environment(environment);
    assert!(matches!(door.status().unwrap_err().kind(), Kind::Missing));
}

#[test]
fn a_folder_that_is_gone_is_no_missing_git() {
    let world = World::new();
    let door = world.door();
    fs::remove_dir_all(&world.main).unwrap();
    assert!(matches!(door.status().unwrap_err().kind(), Kind::NotARepository));
}

#[test]
fn a_configuration_that_names_another_checkout_does_not_lead_paths_astray() {
    let world = World::new();
    let tree = world.path.join("w1");
    world.git(
        &world.main,
        &["worktree", "add", "-q", "-b", "w1", tree.to_str().unwrap()],
    );
    world.git(&world.main, &["config", "core.worktree", "/"]);
    assert_eq!(logical(&tree.join("src/a.rs")), world.main.join("src/a.rs"));
}
