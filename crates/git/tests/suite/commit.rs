use crate::status::odd_names;
use crate::world::{World, executable, message, paths, write};
use git::{Kind, Side};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn committed(world: &World) -> Vec<PathBuf> {
    let out = world
        .try_git(
            &world.main,
            &["show", "--format=", "--name-only", "--no-renames", "-z", "HEAD"],
        )
        .stdout;
    let text = String::from_utf8(out).unwrap();
    text.split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .collect()
}

#[test]
fn exactly_the_given_paths_are_committed_and_what_others_staged_stays_staged() {
    let world = World::new();
    for name in ["gone", "old", "run.sh", "theirs", "mixed"] {
        world.commit(&world.main, name, name);
    }
    write(&world.main.join("theirs"), "staged by somebody else\n");
    write(&world.main.join("their-new"), "x");
    world.git(&world.main, &["add", "theirs", "their-new"]);
    write(&world.main.join("loose"), "untracked of somebody else");
    write(&world.main.join("mixed"), "staged");
    world.git(&world.main, &["add", "mixed"]);
    write(&world.main.join("mixed"), "staged, then more");

    write(&world.main.join("a.txt"), "two\n");
    write(&world.main.join("dir/new"), "x");
    fs::remove_file(world.main.join("gone")).unwrap();
    world.git(&world.main, &["mv", "old", "renamed"]);
    executable(&world.main.join("run.sh"));
    symlink("a.txt", world.main.join("link")).unwrap();
    let mine = paths(&[
        "a.txt", "dir/new", "gone", "link", "mixed", "old", "renamed", "run.sh",
    ]);

    let door = world.door();
    let tree = door.tree_of(&mine).unwrap();
    let made = door.commit(&mine, &message("mine")).unwrap();
    assert!(made.made);
    assert_eq!(made.tree, tree, "the tree is known beforehand");
    assert_eq!(made.oid, world.oid(&world.main, "HEAD"));
    assert_eq!(committed(&world), mine);
    assert_eq!(
        world.git(&world.main, &["show", "HEAD:mixed"]),
        "staged, then more"
    );
    assert_eq!(
        world.git(&world.main, &["log", "-1", "--format=%B"]),
        "mine\n\nBrain-Session: sess-1"
    );
    let entries = door.status().unwrap().entries;
    let left: Vec<_> = entries
        .iter()
        .map(|e| (e.path.to_str().unwrap(), e.staged, e.unstaged))
        .collect();
    let wanted = [
        ("their-new", Some(Side::Added), None),
        ("theirs", Some(Side::Modified), None),
        ("loose", None, None),
    ];
    assert_eq!(left, wanted);
}

#[test]
fn any_file_name_is_committed() {
    let world = World::new();
    for name in odd_names() {
        write(&world.main.join(name), "x");
    }
    let tree = world.door().tree_of(&odd_names()).unwrap();
    assert_eq!(
        world.door().commit(&odd_names(), &message("odd")).unwrap().tree,
        tree
    );
    assert_eq!(world.door().status().unwrap().entries, []);
    write(&world.main.join("globXx.md"), "x");
    write(&world.main.join("glob*[x]?.md"), "y");
    world.git(&world.main, &["add", "globXx.md"]);
    world
        .door()
        .commit(&paths(&["glob*[x]?.md"]), &message("no pattern"))
        .unwrap();
    assert_eq!(committed(&world), paths(&["glob*[x]?.md"]));
}

#[test]
fn an_ignored_file_that_was_named_is_committed() {
    let world = World::new();
    world.commit(&world.main, ".gitignore", "*.log\n");
    write(&world.main.join("a.log"), "x");
    world.door().commit(&paths(&["a.log"]), &message("log")).unwrap();
    assert_eq!(committed(&world), paths(&["a.log"]));
}

#[test]
fn the_first_commit_of_a_repository_works_too() {
    let world = World::empty();
    fs::create_dir(&world.main).unwrap();
    world.git(&world.main, &["init", "-q"]);
    write(&world.main.join("a"), "x");
    write(&world.main.join("b"), "x");
    let tree = world.door().tree_of(&paths(&["a"])).unwrap();
    assert_eq!(
        world
            .door()
            .commit(&paths(&["a"]), &message("first"))
            .unwrap()
            .tree,
        tree
    );
    assert_eq!(committed(&world), paths(&["a"]));
}

#[test]
fn nothing_to_commit_is_the_tip_as_it_is() {
    let world = World::new();
    let tip = world.oid(&world.main, "HEAD");
    for given in [paths(&["a.txt"]), paths(&[]), paths(&["never-was"])] {
        let found = world.door().commit(&given, &message("nothing")).unwrap();
        assert_eq!((found.oid, found.made), (tip.clone(), false));
    }
}

#[test]
fn a_file_that_was_staged_away_and_removed_is_committed_as_gone() {
    let world = World::new();
    world.commit(&world.main, "b", "x");
    world.git(&world.main, &["rm", "-q", "b"]);
    world.door().commit(&paths(&["b"]), &message("gone")).unwrap();
    assert_eq!(committed(&world), paths(&["b"]));
}

#[test]
fn a_folder_that_took_a_files_place_carries_no_stranger_along() {
    let world = World::new();
    world.commit(&world.main, "x", "file");
    fs::remove_file(world.main.join("x")).unwrap();
    write(&world.main.join("x/mine"), "1");
    write(&world.main.join("x/theirs"), "2");
    let door = world.door();
    let tree = door.tree_of(&paths(&["x", "x/mine"])).unwrap();
    assert_eq!(
        door.commit(&paths(&["x", "x/mine"]), &message("folder"))
            .unwrap()
            .tree,
        tree
    );
    assert_eq!(committed(&world), paths(&["x", "x/mine"]));
    assert!(
        door.status()
            .unwrap()
            .entries
            .iter()
            .any(|e| e.untracked && e.path == Path::new("x/theirs"))
    );
}

#[test]
fn a_hook_that_refuses_is_named_with_its_words_and_leaves_the_index_alone() {
    let world = World::new();
    write(&world.main.join("theirs"), "x");
    world.git(&world.main, &["add", "theirs"]);
    write(&world.main.join("a.txt"), "two\n");
    write(&world.main.join("new"), "x");
    let before = world.git(&world.main, &["status", "--porcelain"]);
    let head = world.oid(&world.main, "HEAD");
    for hook in ["pre-commit", "commit-msg", "prepare-commit-msg"] {
        world.hook(
            hook,
            "echo \"not on my watch\"; git rev-parse HEAD >/dev/null; exit 3",
        );
        let refused = world
            .door()
            .commit(&paths(&["a.txt", "new"]), &message("no"))
            .unwrap_err();
        let Kind::HookRefused { hook: name, output } = refused.kind() else {
            panic!("{refused}")
        };
        assert_eq!(name, hook);
        assert!(output.contains("not on my watch"), "{output}");
        assert_eq!(world.git(&world.main, &["status", "--porcelain"]), before);
        assert_eq!(world.oid(&world.main, "HEAD"), head);
        fs::remove_file(world.main.join(".git/hooks").join(hook)).unwrap();
    }
    assert!(
        world
            .door()
            .commit(&paths(&["a.txt", "new"]), &message("yes"))
            .unwrap()
            .made
    );
}

#[test]
fn a_hook_that_reformats_and_refuses_is_asked_once_more() {
    let world = World::new();
    write(&world.main.join("a.txt"), "two");
    world.hook(
        "pre-commit",
        "echo run >> ../count; grep -q '!' a.txt || { echo ' !' >> a.txt; exit 1; }",
    );
    let made = world.door().commit(&paths(&["a.txt"]), &message("tidy")).unwrap();
    assert!(made.made && made.left_dirty.is_empty());
    assert_eq!(world.git(&world.main, &["show", "HEAD:a.txt"]), "two !");
    assert_eq!(
        fs::read_to_string(world.path.join("count")).unwrap(),
        "run\nrun\n"
    );
    assert_eq!(world.door().status().unwrap().entries, []);
    // One that is never content is asked twice and no more.
    world.hook("pre-commit", "echo run >> ../count; echo x >> a.txt; exit 1");
    write(&world.main.join("a.txt"), "three");
    assert!(world.door().commit(&paths(&["a.txt"]), &message("tidy")).is_err());
    assert_eq!(
        fs::read_to_string(world.path.join("count")).unwrap(),
        "run\n".repeat(4)
    );
}

#[test]
fn a_hook_that_reformats_and_stages_leaves_nothing_staged_behind() {
    let world = World::new();
    write(&world.main.join("theirs"), "x");
    world.git(&world.main, &["add", "theirs"]);
    write(&world.main.join("a.txt"), "two");
    world.hook("pre-commit", "echo ' !' >> a.txt; git add a.txt");
    let expected = world.door().tree_of(&paths(&["a.txt"])).unwrap();
    let made = world.door().commit(&paths(&["a.txt"]), &message("tidy")).unwrap();
    assert_ne!(made.tree, expected, "the caller sees that it is another tree");
    assert_eq!(world.git(&world.main, &["show", "HEAD:a.txt"]), "two !");
    assert_eq!(world.git(&world.main, &["status", "--porcelain"]), "A  theirs");
    world.hook("pre-commit", "echo ' ?' >> a.txt");
    write(&world.main.join("a.txt"), "three");
    let made = world.door().commit(&paths(&["a.txt"]), &message("tidy")).unwrap();
    assert_eq!(
        made.left_dirty,
        paths(&["a.txt"]),
        "rewritten and not staged: told"
    );
}

#[test]
fn a_hook_that_runs_into_the_lock_of_its_own_commit_has_refused() {
    let world = World::new();
    world.hook(
        "pre-commit",
        "echo run >> ../count; unset GIT_INDEX_FILE; git add a.txt || exit 1",
    );
    write(&world.main.join("a.txt"), "two\n");
    let refused = world
        .door()
        .commit(&paths(&["a.txt"]), &message("no"))
        .unwrap_err();
    assert!(
        matches!(refused.kind(), Kind::HookRefused { output, .. } if output.contains("index.lock")),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(world.path.join("count")).unwrap(), "run\n");
}

#[test]
fn a_key_that_refuses_is_named() {
    let world = World::new();
    world.git(&world.main, &["config", "commit.gpgSign", "true"]);
    world.git(&world.main, &["config", "gpg.program", "false"]);
    write(&world.main.join("a.txt"), "two\n");
    let refused = world
        .door()
        .commit(&paths(&["a.txt"]), &message("no"))
        .unwrap_err();
    assert!(matches!(refused.kind(), Kind::KeyRefused), "{refused}");
}

#[test]
fn a_commit_in_the_middle_of_a_merge_or_on_no_branch_is_refused() {
    let world = World::new();
    world.git(&world.main, &["checkout", "-q", "-b", "o"]);
    world.commit(&world.main, "o", "x");
    world.git(&world.main, &["checkout", "-q", "main"]);
    world.commit(&world.main, "m", "x");
    world.git(&world.main, &["merge", "-q", "--no-commit", "o"]);
    write(&world.main.join("a.txt"), "two\n");
    let refused = world
        .door()
        .commit(&paths(&["a.txt"]), &message("no"))
        .unwrap_err();
    assert!(
        matches!(refused.kind(), Kind::InProgress { what: "merge" }),
        "{refused}"
    );
    world.git(&world.main, &["merge", "--abort"]);
    world.git(&world.main, &["checkout", "-q", "--detach"]);
    let refused = world
        .door()
        .commit(&paths(&["a.txt"]), &message("no"))
        .unwrap_err();
    assert!(matches!(refused.kind(), Kind::DetachedHead), "{refused}");
}

#[test]
fn a_path_outside_is_refused() {
    let world = World::new();
    for name in ["../x", "/etc/passwd", "", "a/../b"] {
        for refused in [
            world.door().commit(&paths(&[name]), &message("no")).unwrap_err(),
            world.door().tree_of(&paths(&[name])).unwrap_err(),
        ] {
            assert!(
                matches!(refused.kind(), Kind::BadName { .. }),
                "{name}: {refused}"
            );
        }
    }
}

#[test]
fn the_tree_of_nothing_is_the_tree_of_the_last_commit_whatever_is_staged() {
    let world = World::new();
    write(&world.main.join("a.txt"), "two\n");
    write(&world.main.join("b"), "x");
    world.git(&world.main, &["add", "."]);
    let tree = world.oid(&world.main, "HEAD^{tree}");
    assert_eq!(world.door().tree_of(&[]).unwrap(), tree);
    let left = fs::read_dir(world.main.join(".git")).unwrap();
    assert!(
        left.flatten()
            .all(|f| !f.file_name().to_string_lossy().starts_with("brain-index")),
        "nothing is left over"
    );
}

/// Git compares times by the second. What is written within the second in which the index was, it finds by
/// its content, as long as the index, or its copy, is no younger.
#[test]
fn a_change_within_the_second_of_the_index_is_seen_in_the_next_one_too() {
    let world = World::new();
    let coordinator = world.coordinator_at(&world.main);
    let since_second = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Duration::from_nanos(now.subsec_nanos().into())
    };
    // Times of files lag behind the clock by up to a tick.
    let second = Duration::from_millis(1_050);
    std::thread::sleep(second - since_second());
    world.commit(&world.main, "a.txt", "1st\n");
    write(&world.main.join("a.txt"), "2nd\n");
    std::thread::sleep(second - since_second());
    let tree = coordinator.tree_of(&paths(&["a.txt"])).unwrap();
    assert_ne!(
        tree.as_str(),
        world.git(&world.main, &["rev-parse", "HEAD^{tree}"])
    );
}
