use crate::status::odd_names;
use crate::world::{World, executable, message, paths, signature, write};
use git::{AtOpening, Audit, Change, Kind, Made, Opening, Side};
use std::fs;
use std::path::Path;

fn open(world: &World, at: &Path) -> Opening {
    let door = world.door_at(at);
    Opening {
        commit: door.head().unwrap().oid().cloned(),
        dirty: door.dirty().unwrap(),
    }
}

fn change<'a>(audit: &'a Audit, path: &str) -> &'a Change {
    audit
        .changes
        .iter()
        .find(|change| change.path == Path::new(path))
        .unwrap_or_else(|| panic!("{path}: {audit:#?}"))
}

#[test]
fn what_was_dirty_at_opening_is_told_from_what_changed_since() {
    let world = World::new();
    world.commit(&world.main, "b.txt", "x");
    write(&world.main.join("a.txt"), "dirty\n");
    write(&world.main.join("b.txt"), "dirty\n");
    write(&world.main.join("was-new"), "x");
    write(&world.main.join("reverted"), "x");
    let opening = open(&world, &world.main);
    write(&world.main.join("b.txt"), "dirtier\n");
    fs::remove_file(world.main.join("reverted")).unwrap();
    write(&world.main.join("fresh"), "x");
    let audit = world.door().audit(&opening).unwrap();
    assert_eq!(change(&audit, "a.txt").at_opening, AtOpening::DirtySame);
    assert_eq!(change(&audit, "b.txt").at_opening, AtOpening::DirtyChanged);
    assert_eq!(change(&audit, "was-new").at_opening, AtOpening::DirtySame);
    assert_eq!(change(&audit, "reverted").at_opening, AtOpening::DirtyChanged);
    assert_eq!(change(&audit, "fresh").at_opening, AtOpening::Clean);
    assert!(change(&audit, "fresh").untracked && change(&audit, "fresh").is_added());
    assert_eq!(audit.changes.len(), 5);
}

#[test]
fn a_mode_change_of_a_dirty_file_counts_as_a_change() {
    let world = World::new();
    write(&world.main.join("tool"), "x");
    let opening = open(&world, &world.main);
    executable(&world.main.join("tool"));
    let audit = world.door().audit(&opening).unwrap();
    assert_eq!(change(&audit, "tool").at_opening, AtOpening::DirtyChanged);
}

#[test]
fn committed_staged_and_unstaged_changes_are_all_there_with_both_sides_of_a_rename() {
    let world = World::new();
    write(&world.main.join("long"), &"line\n".repeat(40));
    world.git(&world.main, &["add", "."]);
    world.git(&world.main, &["commit", "-q", "-m", "long"]);
    let opening = open(&world, &world.main);
    world.git(&world.main, &["mv", "long", "moved"]);
    world.git(
        &world.main,
        &["commit", "-q", "-m", "move", "-m", "Brain-Session: sess-7"],
    );
    world.git(&world.main, &["rm", "-q", "--cached", "a.txt"]);
    executable(&world.main.join("moved"));
    let audit = world.door().audit(&opening).unwrap();
    let (old, new) = (change(&audit, "long"), change(&audit, "moved"));
    assert!(old.is_deleted() && old.in_commits && old.to.as_deref() == Some(Path::new("moved")));
    assert!(new.is_added() && new.in_commits && new.from.as_deref() == Some(Path::new("long")));
    assert_eq!((new.unstaged, new.mode), (Some(Side::Modified), Some(0o100_755)));
    assert_eq!(audit.commits[new.commits[0]].sessions, ["sess-7"]);
    assert_eq!(old.commits, new.commits);
    let both = change(&audit, "a.txt");
    assert!(
        both.staged == Some(Side::Deleted) && both.untracked,
        "staged away, still on disk"
    );
}

#[test]
fn any_file_name_is_audited_committed_or_not() {
    let world = World::new();
    let opening = open(&world, &world.main);
    let (committed, loose): (Vec<_>, Vec<_>) =
        odd_names().into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
    for (_, name) in &committed {
        write(&world.main.join(name), "x");
    }
    world.git(&world.main, &["add", "."]);
    world.git(&world.main, &["commit", "-q", "-m", "odd"]);
    for (_, name) in &loose {
        write(&world.main.join(name), "x");
    }
    let audit = world.door().audit(&opening).unwrap();
    let mut found: Vec<_> = audit.changes.iter().map(|change| change.path.clone()).collect();
    let mut wanted = odd_names();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    assert!(
        audit
            .changes
            .iter()
            .all(|c| c.in_commits != c.untracked && c.commits.len() == usize::from(c.in_commits))
    );
}

#[test]
fn commits_that_a_merge_brought_are_told_from_those_made_here() {
    let world = World::new();
    let other = world.path.join("w1");
    world.git(
        &world.main,
        &["worktree", "add", "-q", "-b", "o", other.to_str().unwrap()],
    );
    let opening = open(&world, &world.main);
    world.commit(&other, "theirs", "x");
    world.commit(&world.main, "mine", "x");
    world.git(&world.main, &["merge", "-q", "--no-commit", "o"]);
    write(&world.main.join("slipped-in"), "x");
    world.git(&world.main, &["add", "."]);
    world.git(&world.main, &["commit", "-q", "-m", "merge"]);
    let audit = world.door().audit(&opening).unwrap();
    let made = |path: &str| {
        change(&audit, path)
            .commits
            .iter()
            .map(|n| audit.commits[*n].made)
            .collect::<Vec<_>>()
    };
    assert_eq!(made("theirs"), [Made::Brought]);
    assert_eq!(made("mine"), [Made::Here]);
    assert_eq!(
        made("slipped-in"),
        [Made::Here],
        "a merge commit that adds something of its own touched it"
    );
    assert_eq!(
        audit.commits.iter().filter(|commit| commit.parents == 2).count(),
        1
    );
}

#[test]
fn a_fast_forward_pull_made_nothing_here_and_an_amend_did() {
    let world = World::new();
    let clone = world.path.join("clone");
    world.git(&world.path, &["clone", "-q", "main", "clone"]);
    let opening = open(&world, &clone);
    world.commit(&world.main, "theirs", "x");
    world.git(&clone, &["pull", "-q", "--ff-only"]);
    world.commit(&clone, "mine", "x");
    world.git(&clone, &["commit", "-q", "--amend", "-m", "again"]);
    let audit = world.door_at(&clone).audit(&opening).unwrap();
    assert_eq!(
        audit.commits.iter().map(|commit| commit.made).collect::<Vec<_>>(),
        [Made::Here, Made::Brought]
    );
}

#[test]
fn without_a_log_nobody_says_who_made_a_commit() {
    let world = World::new();
    let opening = open(&world, &world.main);
    world.commit(&world.main, "mine", "x");
    fs::remove_file(world.main.join(".git/logs/HEAD")).unwrap();
    assert_eq!(
        world.door().audit(&opening).unwrap().commits[0].made,
        Made::Unknown
    );
}

#[test]
fn a_rewritten_base_is_refused() {
    let world = World::new();
    world.commit(&world.main, "b", "x");
    let opening = open(&world, &world.main);
    world.git(&world.main, &["commit", "-q", "--amend", "-m", "again"]);
    let refused = world.door().audit(&opening).unwrap_err();
    assert!(matches!(refused.kind(), Kind::NotAncestor { .. }), "{refused}");
}

#[test]
fn histories_with_nothing_in_common_are_refused() {
    let world = World::new();
    let opening = open(&world, &world.main);
    world.git(&world.main, &["checkout", "-q", "--orphan", "fresh"]);
    let unborn = world.door().audit(&opening).unwrap_err();
    assert!(matches!(unborn.kind(), Kind::UnbornHead), "{unborn}");
    world.git(&world.main, &["commit", "-q", "-m", "other"]);
    let refused = world.door().audit(&opening).unwrap_err();
    assert!(matches!(refused.kind(), Kind::NoMergeBase), "{refused}");
}

#[test]
fn a_shallow_clone_that_lacks_the_base_is_refused_and_never_clean() {
    let world = World::new();
    let base = world.oid(&world.main, "HEAD");
    world.commit(&world.main, "agents/k.md", "x");
    let url = format!("file://{}", world.main.display());
    world.git(&world.path, &["clone", "-q", "--depth", "1", &url, "shallow"]);
    let shallow = world.path.join("shallow");
    let opening = Opening {
        commit: Some(base),
        ..Opening::default()
    };
    let refused = world.door_at(&shallow).audit(&opening).unwrap_err();
    assert!(matches!(refused.kind(), Kind::Shallow), "{refused}");
    world.git(&shallow, &["fetch", "-q", "--unshallow"]);
    let audit = world.door_at(&shallow).audit(&opening).unwrap();
    assert_eq!(change(&audit, "agents/k.md").before, None);
}

#[test]
fn the_first_commit_is_audited_against_nothing() {
    let world = World::empty();
    fs::create_dir(&world.main).unwrap();
    world.git(&world.main, &["init", "-q"]);
    let opening = open(&world, &world.main);
    assert_eq!(opening.commit, None);
    world.commit(&world.main, "a", "x");
    let audit = world.door().audit(&opening).unwrap();
    assert!(change(&audit, "a").in_commits);
    assert_eq!(audit.commits.len(), 1);
    assert_eq!(change(&audit, "a").commits, [0]);
}

#[test]
fn a_moved_submodule_and_a_nested_repository_are_seen() {
    let world = World::new();
    world.init(&world.path.join("lib"));
    world.git(&world.main, &["submodule", "--quiet", "add", "../lib", "lib"]);
    world.git(
        &world.main,
        &["config", "-f", ".gitmodules", "submodule.lib.ignore", "all"],
    );
    world.git(&world.main, &["add", "."]);
    world.git(&world.main, &["commit", "-q", "-m", "lib"]);
    let opening = open(&world, &world.main);
    world.commit(&world.main.join("lib"), "more", "x");
    world.init(&world.main.join("nested"));
    for door in [world.door(), world.coordinator_at(&world.main)] {
        let audit = door.audit(&opening).unwrap();
        assert!(change(&audit, "lib").is_repository() && change(&audit, "lib").unstaged.is_some());
        assert!(change(&audit, "nested").is_repository() && change(&audit, "nested").untracked);
    }
}

#[test]
fn the_branch_now_is_told_so_that_another_one_is_noticed() {
    let world = World::new();
    let opening = open(&world, &world.main);
    world.git(&world.main, &["checkout", "-q", "-b", "elsewhere"]);
    let audit = world.door().audit(&opening).unwrap();
    assert_eq!(audit.branch.as_deref(), Some("elsewhere"));
}

#[test]
fn a_commit_that_the_coordinator_wrote_was_made_here() {
    let world = World::new();
    let tree = world.path.join("w1");
    let door = world.coordinator_at(&world.main);
    let door = door
        .worktree_add(&tree, "w1", &world.oid(&world.main, "HEAD"))
        .unwrap();
    let opening = open(&world, &tree);
    write(&tree.join("b"), "x");
    door.commit_as(&paths(&["b"]), &message("b"), &signature(1))
        .unwrap();
    let audit = door.audit(&opening).unwrap();
    assert_eq!(
        (audit.commits[0].made, &*audit.commits[0].sessions),
        (Made::Here, &["sess-1".to_owned()][..])
    );
}

#[test]
fn replaced_objects_hide_nothing() {
    let world = World::new();
    let opening = open(&world, &world.main);
    let real = world.commit(&world.main, "hidden", "x");
    let base = opening.commit.clone().unwrap();
    world.git(&world.main, &["replace", "-f", real.as_str(), base.as_str()]);
    assert!(change(&world.door().audit(&opening).unwrap(), "hidden").in_commits);
}

#[test]
fn thousands_of_files_are_audited_in_one_go() {
    let world = World::new();
    let opening = open(&world, &world.main);
    for n in 0..4000 {
        fs::write(world.main.join(format!("file-{n}")), "x").unwrap();
    }
    assert_eq!(world.door().audit(&opening).unwrap().changes.len(), 4000);
    assert_eq!(world.door().dirty().unwrap().len(), 4000);
}
