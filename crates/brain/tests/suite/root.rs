//! Which brain a place belongs to.

use std::fs;

use brain::root::{Root, RootError};
use protocol::facts::path::LogicalPath;

use super::world::World;

#[test]
fn the_nearest_folder_that_holds_a_store_is_the_root() {
    let world = World::bare();
    let find = |at: &str| Root::find(&world.main.join(at)).unwrap().dir().to_owned();
    assert_eq!(find(""), world.main);
    assert_eq!(find("a/b/c"), world.main);
    fs::create_dir_all(world.main.join("inner/.brain")).unwrap();
    assert_eq!(find("inner/x"), world.main.join("inner"));
    // A brain.yml alone does not hide the brain that it lies in: fixtures have them.
    world.write("tests/fixture/brain.yml", "brain: x\n");
    assert_eq!(find("tests/fixture/x"), world.main);
}

#[test]
fn a_brain_without_its_store_is_told_with_the_command_that_makes_it() {
    let world = World::new();
    world.write("brain.yml", "brain: b\n");
    let root = Root::find(&world.main).unwrap();
    assert!(root.database().is_ok());
    root.leave_mark().unwrap();
    fs::remove_dir_all(world.main.join(".brain")).unwrap();
    let error = |at: &str| {
        let root = Root::find(&world.main.join(at)).unwrap();
        assert_eq!(root.dir(), world.main);
        root.database().unwrap_err().to_string()
    };
    let shown = error("src/auth");
    assert!(
        shown.contains("brain init --root ") && shown.contains("brain journal import"),
        "{shown}"
    );
    fs::remove_file(world.main.join("brain.yml")).unwrap();
    error("src"); // by the mark in the git directory
    fs::remove_file(world.main.join(".git/brain-root")).unwrap();
    world.write("brain-compose.yml", "");
    error("src");
    fs::remove_file(world.main.join("brain-compose.yml")).unwrap();
    let none = Root::find(&world.main.join("src")).unwrap_err();
    assert!(matches!(none, RootError::NoBrain(_)) && none.to_string().contains("brain init"));
}

#[test]
fn a_worktrees_copy_is_never_a_root() {
    let world = World::new();
    let beside = world.path.join("beside");
    world.git(
        &world.main,
        &["worktree", "add", "-q", "-b", "t", beside.to_str().unwrap()],
    );
    fs::create_dir_all(beside.join(".brain")).unwrap();
    fs::write(beside.join("brain.yml"), "").unwrap();
    assert_eq!(Root::find(&beside.join("src")).unwrap().dir(), world.main);
    assert_eq!(Root::named(&beside).unwrap().dir(), world.main);
    // Without a brain in the main checkout there is none, whatever the copy holds.
    fs::remove_dir_all(world.main.join(".brain")).unwrap();
    assert!(matches!(Root::find(&beside), Err(RootError::NoBrain(_))));
    // A brain that merely holds the worktree is one.
    fs::create_dir_all(world.path.join(".brain")).unwrap();
    assert_eq!(Root::find(&beside).unwrap().dir(), world.path);
}

#[test]
fn the_mark_leads_to_a_root_below_its_repository() {
    let world = World::new();
    let inner = world.main.join("team/brain");
    fs::create_dir_all(inner.join(".brain")).unwrap();
    fs::remove_dir_all(world.main.join(".brain")).unwrap();
    Root::named(&inner).unwrap().leave_mark().unwrap();
    fs::remove_dir_all(inner.join(".brain")).unwrap();
    assert_eq!(Root::find(&world.main.join("src")).unwrap().dir(), inner);
}

#[test]
fn the_root_tells_what_a_policy_needs() {
    let world = World::new();
    let facts = || Root::find(&world.main).unwrap().facts();
    assert!(!facts().legacy_layout && facts().hooks.is_empty());
    world.write("KERNEL.md", "");
    world.write(".husky/pre-commit", "");
    world.git(&world.main, &["config", "core.hooksPath", ".husky"]);
    assert!(facts().legacy_layout);
    assert_eq!(
        facts().hooks.iter().map(LogicalPath::as_str).collect::<Vec<_>>(),
        [".husky"]
    );
    let missing = Root::named(&world.path.join("nowhere")).unwrap_err();
    assert!(missing.to_string().contains("--root"));
}
