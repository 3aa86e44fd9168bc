//! Behind the coordinator's door nothing that an agent wrote into the repository is executed.

use crate::world::{World, executable, message, paths, signature, write};
use git::{Door, Kind, Opening};
use std::fs;
use std::path::PathBuf;

/// A worktree whose repository has been prepared by somebody who wants code to run.
struct Trap {
    world: World,
    tree: PathBuf,
    marker: PathBuf,
    opening: Opening,
}

/// What is planted: keys of the configuration with `PAYLOAD` for the command.
const PLANTED: [(&str, &str); 36] = [
    ("core.fsmonitor", "PAYLOAD"),
    ("core.hooksPath", "HOOKS"),
    ("core.sshCommand", "PAYLOAD"),
    ("core.pager", "PAYLOAD"),
    ("core.editor", "PAYLOAD"),
    ("core.askPass", "PAYLOAD"),
    ("core.gitProxy", "PAYLOAD"),
    ("core.attributesFile", "ATTRIBUTES"),
    ("core.alternateRefsCommand", "PAYLOAD"),
    ("core.worktree", "/"),
    ("pager.status", "PAYLOAD"),
    ("pager.log", "PAYLOAD"),
    ("diff.external", "PAYLOAD"),
    ("diff.evil.textconv", "PAYLOAD"),
    ("diff.evil.command", "PAYLOAD"),
    ("diff.ignoreSubmodules", "all"),
    ("status.renames", "copies"),
    ("log.showSignature", "true"),
    ("merge.evil.driver", "PAYLOAD"),
    ("merge.default", "evil"),
    ("gpg.program", "PAYLOAD"),
    ("gpg.ssh.program", "PAYLOAD"),
    ("gpg.x509.program", "PAYLOAD"),
    ("commit.gpgSign", "true"),
    ("tag.gpgSign", "true"),
    ("credential.helper", "!PAYLOAD"),
    ("alias.status", "!PAYLOAD"),
    ("alias.commit-tree", "!PAYLOAD"),
    ("alias.diff-tree", "!PAYLOAD"),
    ("sequence.editor", "PAYLOAD"),
    ("interactive.diffFilter", "PAYLOAD"),
    ("trailer.Brain-Session.command", "PAYLOAD"),
    ("remote.origin.uploadpack", "PAYLOAD"),
    ("remote.origin.promisor", "true"),
    ("include.path", "INCLUDED"),
    ("submodule.recurse", "true"),
];

impl Trap {
    fn new() -> Trap {
        let world = World::new();
        let tree = world.path.join("w1");
        let door = world.coordinator_at(&world.main);
        let door = door
            .worktree_add(&tree, "w1", &world.oid(&world.main, "HEAD"))
            .unwrap();
        let opening = Opening {
            commit: door.head().unwrap().oid().cloned(),
            dirty: door.dirty().unwrap(),
        };
        let marker = world.path.join("ran");
        let payload = world.path.join("payload");
        write(
            &payload,
            &format!(
                "#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat 2>/dev/null\n",
                marker.display()
            ),
        );
        executable(&payload);
        for hook in [
            "pre-commit",
            "post-commit",
            "commit-msg",
            "prepare-commit-msg",
            "post-checkout",
            "post-merge",
            "pre-merge-commit",
            "reference-transaction",
            "post-index-change",
            "pre-push",
            "post-rewrite",
            "fsmonitor-watchman",
        ] {
            for folder in [world.main.join(".git/hooks"), world.path.join("hooks")] {
                fs::create_dir_all(&folder).unwrap();
                fs::copy(&payload, folder.join(hook)).unwrap();
            }
        }
        let included = world.path.join("included");
        let hidden = format!(
            "[core]\n\tfsmonitor = {0}\n[filter \"inc\"]\n\tclean = {0}\n",
            payload.display()
        );
        write(&included, &hidden);
        write(&world.path.join("attributes"), "* diff=evil merge=evil\n");
        let mut config = String::new();
        for (key, value) in PLANTED {
            let value = value
                .replace("PAYLOAD", payload.to_str().unwrap())
                .replace("HOOKS", world.path.join("hooks").to_str().unwrap())
                .replace("ATTRIBUTES", world.path.join("attributes").to_str().unwrap())
                .replace("INCLUDED", included.to_str().unwrap());
            let (section, name) = key.rsplit_once('.').unwrap();
            let section = match section.split_once('.') {
                Some((section, sub)) => format!("{section} \"{sub}\""),
                None => section.to_owned(),
            };
            config += &format!("[{section}]\n\t{name} = {value}\n");
        }
        config += &format!("[includeIf \"gitdir:/\"]\n\tpath = {}\n", included.display());
        config += "[extensions]\n\tworktreeConfig = true\n";
        let file = world.main.join(".git/config");
        let before = fs::read_to_string(&file).unwrap();
        write(&file, &(before + &config));
        write(&world.main.join(".git/worktrees/w1/config.worktree"), &config);
        write(
            &world.main.join(".git/info/attributes"),
            "* diff=evil merge=evil\n",
        );
        write(&tree.join(".gitattributes"), "*.md diff=evil merge=evil\n");
        Trap {
            world,
            tree,
            marker,
            opening,
        }
    }

    fn door(&self) -> Door {
        self.world.coordinator_at(&self.tree)
    }

    fn assert_unsprung(&self) {
        let ran = fs::read_to_string(&self.marker).unwrap_or_default();
        assert_eq!(ran, "", "something that was planted has run");
    }
}

#[test]
fn nothing_that_was_planted_runs_in_any_operation() {
    let trap = Trap::new();
    let door = trap.door();
    write(&trap.tree.join("a.txt"), "two\n");
    write(&trap.tree.join("b.md"), "x\n");
    door.status().unwrap();
    trap.assert_unsprung();
    door.dirty().unwrap();
    door.audit(&trap.opening).unwrap();
    trap.assert_unsprung();
    let mine = paths(&["a.txt", "b.md", ".gitattributes"]);
    let tree = door.tree_of(&mine).unwrap();
    let made = door.commit_as(&mine, &message("mine"), &signature(7)).unwrap();
    assert_eq!(made.tree, tree);
    trap.assert_unsprung();
    assert_eq!(door.audit(&trap.opening).unwrap().changes.len(), 3);
    trap.assert_unsprung();
    // Both sides change one file, so that a merge driver would be asked.
    let other = trap.world.path.join("w2");
    let base = trap.opening.commit.clone().unwrap();
    let second = door.worktree_add(&other, "w2", &base).unwrap();
    write(&other.join("b.md"), "y\n");
    let theirs = second
        .commit_as(&paths(&["b.md"]), &message("theirs"), &signature(8))
        .unwrap();
    trap.assert_unsprung();
    let conflict = door
        .plan_merge(&theirs.oid, "w1", &message("merge"), &signature(9))
        .unwrap_err();
    assert!(matches!(conflict.kind(), Kind::Conflict { .. }), "{conflict}");
    let onto = door.plan_rebase("w2", &made.oid, &signature(9)).unwrap_err();
    assert!(matches!(onto.kind(), Kind::Conflict { .. }), "{onto}");
    trap.assert_unsprung();
    let landing = door
        .plan_merge(&made.oid, "main", &message("merge"), &signature(9))
        .unwrap();
    door.land(&landing).unwrap();
    assert_eq!(
        fs::read_to_string(trap.world.main.join("b.md")).unwrap(),
        "x\n",
        "the files went along"
    );
    trap.assert_unsprung();
    door.worktree_remove(&trap.tree, "main").unwrap();
    door.worktrees().unwrap();
    trap.assert_unsprung();
}

#[test]
fn nothing_that_was_planted_for_a_submodule_runs() {
    let trap = Trap::new();
    let world = &trap.world;
    let lib = world.path.join("lib");
    world.init(&lib);
    write(
        &trap.tree.join(".gitmodules"),
        &format!("[submodule \"lib\"]\n\tpath = lib\n\turl = {}\n", lib.display()),
    );
    // Made by hand: any git of the user's would spring the traps.
    world.git(
        &world.path,
        &["clone", "-q", "lib", trap.tree.join("lib").to_str().unwrap()],
    );
    let door = trap.door();
    let mine = paths(&[".gitattributes", ".gitmodules", "lib"]);
    let made = door.commit_as(&mine, &message("lib"), &signature(1)).unwrap();
    let payload = world.path.join("payload");
    let config = world.main.join(".git/config");
    let before = fs::read_to_string(&config).unwrap();
    write(
        &config,
        &format!("{before}[submodule \"lib\"]\n\tupdate = !{}\n", payload.display()),
    );
    let filled = world.path.join("w2");
    let second = door.worktree_add(&filled, "w2", &made.oid).unwrap();
    assert!(filled.join("lib/a.txt").exists());
    trap.assert_unsprung();
    // Whoever works in it can write the submodule's own configuration too.
    let inside = world.main.join(".git/worktrees/w2/modules/lib/config");
    let before = fs::read_to_string(&inside).unwrap();
    write(
        &inside,
        &format!("{before}[core]\n\tfsmonitor = {}\n", payload.display()),
    );
    write(&filled.join("lib/a.txt"), "changed\n");
    second.status().unwrap();
    second.audit(&trap.opening).unwrap();
    let dirty = second.worktree_remove(&filled, "w1").unwrap_err();
    assert!(
        matches!(dirty.kind(), Kind::Dirty { paths: p } if *p == paths(&["lib/a.txt"])),
        "{dirty}"
    );
    write(&filled.join("lib/a.txt"), "one\n");
    second.worktree_remove(&filled, "w1").unwrap();
    assert!(!filled.exists());
    trap.assert_unsprung();
}

#[test]
fn a_checkout_that_went_to_another_branch_is_followed() {
    let world = World::new();
    let door = world.coordinator_at(&world.main);
    world.git(&world.main, &["checkout", "-q", "-b", "other"]);
    assert_eq!(door.status().unwrap().branch.as_deref(), Some("other"));
    write(&world.main.join("x"), "x");
    let made = door
        .commit_as(&paths(&["x"]), &message("x"), &signature(1))
        .unwrap();
    assert_eq!(world.oid(&world.main, "other"), made.oid);
    assert_ne!(world.oid(&world.main, "main"), made.oid);
}

#[test]
fn the_traps_are_live_for_a_user_who_commits() {
    let trap = Trap::new();
    write(&trap.tree.join("a.txt"), "two\n");
    let _ = trap.world.try_git(&trap.tree, &["commit", "-q", "-a", "-m", "x"]);
    let ran = fs::read_to_string(&trap.marker).unwrap_or_default();
    assert!(!ran.is_empty(), "a trap that cannot spring proves nothing");
}

#[test]
fn a_filter_that_only_the_repository_defines_refuses_the_commit_and_does_not_run() {
    for kind in ["clean", "smudge", "process"] {
        let trap = Trap::new();
        let payload = trap.world.path.join("payload");
        let config = trap.world.main.join(".git/config");
        let before = fs::read_to_string(&config).unwrap();
        write(
            &config,
            &format!("{before}[filter \"evil\"]\n\t{kind} = {}\n", payload.display()),
        );
        write(&trap.tree.join(".gitattributes"), "*.bin filter=evil\n");
        write(&trap.tree.join("x.bin"), "raw");
        let door = trap.door();
        door.status().unwrap();
        door.audit(&trap.opening).unwrap();
        let mine = paths(&[".gitattributes", "x.bin"]);
        let refused = door.commit_as(&mine, &message("no"), &signature(1)).unwrap_err();
        let Kind::Filter { path, name } = refused.kind() else {
            panic!("{refused}")
        };
        assert_eq!((path.to_str(), name.as_str()), (Some("x.bin"), "evil"));
        assert_eq!(door.head().unwrap().oid(), trap.opening.commit.as_ref());
        trap.assert_unsprung();
    }
}

#[test]
fn a_filter_of_the_users_own_configuration_still_works() {
    let world = World::new();
    world.configure("[filter \"lfs\"]\n\tclean = \"sed 's/^/pointer to /'\"\n\tsmudge = \"sed 's/^pointer to //'\"\n\trequired = true\n");
    let door = world.coordinator_at(&world.main);
    let tree = world.path.join("w1");
    let door = door
        .worktree_add(&tree, "w1", &world.oid(&world.main, "HEAD"))
        .unwrap();
    write(
        &tree.join(".gitattributes"),
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    write(&tree.join("x.bin"), "large\n");
    let mine = paths(&[".gitattributes", "x.bin"]);
    let made = door.commit_as(&mine, &message("lfs"), &signature(1)).unwrap();
    assert_eq!(
        world.git(&tree, &["cat-file", "-p", "HEAD:x.bin"]),
        "pointer to large"
    );
    assert_eq!(door.status().unwrap().entries, []);
    let landing = door
        .plan_merge(&made.oid, "main", &message("m"), &signature(1))
        .unwrap();
    door.land(&landing).unwrap();
    assert_eq!(fs::read_to_string(world.main.join("x.bin")).unwrap(), "large\n");
}

#[test]
fn hooks_and_a_file_monitor_of_the_users_own_do_not_run_for_a_session() {
    let world = World::new();
    let payload = world.path.join("hooks/reference-transaction");
    write(
        &payload,
        &format!("#!/bin/sh\ntouch '{}'\n", world.path.join("ran").display()),
    );
    executable(&payload);
    let tree = world.path.join("w1");
    let door = world.coordinator_at(&world.main);
    world.configure(&format!(
        "[core]\n\thooksPath = {}\n\tfsmonitor = {}\n",
        world.path.join("hooks").display(),
        payload.display()
    ));
    let door = door
        .worktree_add(&tree, "w1", &world.oid(&world.main, "HEAD"))
        .unwrap();
    fs::remove_file(world.path.join("ran")).unwrap_or_default(); // the look-up above was the user's
    write(&tree.join("x"), "x");
    door.status().unwrap();
    door.commit_as(&paths(&["x"]), &message("x"), &signature(1))
        .unwrap();
    assert!(!world.path.join("ran").exists());
    world.door_at(&tree).status().unwrap();
    assert!(world.path.join("ran").exists(), "for the user it does");
}

#[test]
fn line_endings_and_a_name_of_the_repositorys_own_are_kept() {
    let world = World::new();
    world.git(&world.main, &["config", "core.autocrlf", "true"]);
    world.git(&world.main, &["config", "user.name", "Repo \"R\" # Name"]);
    let door = world.coordinator_at(&world.main);
    let tree = world.path.join("w1");
    let door = door
        .worktree_add(&tree, "w1", &world.oid(&world.main, "HEAD"))
        .unwrap();
    write(&tree.join("dos"), "a\r\nb\r\n");
    let mut by = signature(1);
    by.identity = None;
    door.commit_as(&paths(&["dos"]), &message("dos"), &by).unwrap();
    let blob = world.try_git(&tree, &["cat-file", "-p", "HEAD:dos"]).stdout;
    assert_eq!(blob, b"a\nb\n");
    assert_eq!(
        world.git(&tree, &["log", "-1", "--format=%an <%ae>"]),
        "Repo \"R\" # Name <ana@example.org>"
    );
}

#[test]
fn the_same_commit_twice_has_one_name() {
    let world = World::new();
    let mut made = Vec::new();
    for name in ["w1", "w2"] {
        let tree = world.path.join(name);
        let door = world.coordinator_at(&world.main);
        let door = door
            .worktree_add(&tree, name, &world.oid(&world.main, "HEAD"))
            .unwrap();
        write(&tree.join("x"), "x");
        made.push(
            door.commit_as(&paths(&["x"]), &message("x"), &signature(1_700_000_000))
                .unwrap(),
        );
        let again = door
            .commit_as(&paths(&["x"]), &message("x"), &signature(1_800_000_000))
            .unwrap();
        assert_eq!((&again.oid, again.made), (&made.last().unwrap().oid, false));
    }
    assert_eq!(made[0], made[1]);
    assert_eq!(
        world.git(
            &world.main,
            &["log", "-1", "--format=%at %ct", made[0].oid.as_str()]
        ),
        "1700000000 1700000000"
    );
}

#[test]
fn a_commit_shows_in_the_worktrees_log_and_not_in_the_main_checkouts() {
    let world = World::new();
    let tree = world.path.join("w1");
    let door = world.coordinator_at(&world.main);
    let before = fs::read(world.main.join(".git/logs/HEAD")).unwrap();
    let door = door
        .worktree_add(&tree, "w1", &world.oid(&world.main, "HEAD"))
        .unwrap();
    write(&tree.join("x"), "x");
    door.commit_as(&paths(&["x"]), &message("x"), &signature(1))
        .unwrap();
    assert_eq!(
        world.git(&tree, &["reflog", "-1", "--format=%gs", "HEAD"]),
        "commit: x"
    );
    assert_eq!(fs::read(world.main.join(".git/logs/HEAD")).unwrap(), before);
    assert_eq!(world.git(&tree, &["status", "--porcelain"]), "");
}

#[test]
fn a_shallow_clone_and_packed_refs_work_behind_the_door() {
    let world = World::new();
    world.commit(&world.main, "b", "x");
    let url = format!("file://{}", world.main.display());
    world.git(&world.path, &["clone", "-q", "--depth", "1", &url, "shallow"]);
    let shallow = world.path.join("shallow");
    world.git(&shallow, &["pack-refs", "--all"]);
    let door = world.coordinator_at(&shallow);
    write(&shallow.join("b"), "y");
    let made = door
        .commit_as(&paths(&["b"]), &message("b"), &signature(1))
        .unwrap();
    assert_eq!(world.oid(&shallow, "HEAD"), made.oid);
    world.git(&shallow, &["fsck"]);
}

#[test]
fn a_repository_of_long_names_works_behind_the_door() {
    let world = World::empty();
    fs::create_dir(&world.main).unwrap();
    world.git(&world.main, &["init", "-q", "--object-format=sha256"]);
    let door = world.coordinator_at(&world.main);
    write(&world.main.join("a"), "x");
    let first = door
        .commit_as(&paths(&["a"]), &message("first"), &signature(1))
        .unwrap();
    assert_eq!(first.oid.as_str().len(), 64);
    let opening = Opening {
        commit: Some(first.oid),
        ..Opening::default()
    };
    write(&world.main.join("b"), "x");
    door.commit_as(&paths(&["b"]), &message("second"), &signature(2))
        .unwrap();
    assert_eq!(door.audit(&opening).unwrap().changes.len(), 1);
    assert_eq!(world.git(&world.main, &["status", "--porcelain"]), "");
}

#[test]
fn files_and_folders_that_trade_places_are_committed() {
    let world = World::new();
    world.commit(&world.main, "file", "x");
    world.commit(&world.main, "folder/in", "x");
    let tree = world.path.join("w1");
    let door = world.coordinator_at(&world.main);
    let door = door
        .worktree_add(&tree, "w1", &world.oid(&world.main, "HEAD"))
        .unwrap();
    fs::remove_file(tree.join("file")).unwrap();
    fs::remove_dir_all(tree.join("folder")).unwrap();
    write(&tree.join("file/in"), "x");
    write(&tree.join("folder"), "x");
    let mine = paths(&["file", "file/in", "folder", "folder/in"]);
    let made = door.commit_as(&mine, &message("trade"), &signature(1)).unwrap();
    let listed = world.git(&tree, &["ls-tree", "-r", "--name-only", "HEAD"]);
    assert_eq!(listed, "a.txt\nfile/in\nfolder");
    assert_eq!(door.status().unwrap().entries, []);
    let landing = door
        .plan_merge(&made.oid, "main", &message("m"), &signature(1))
        .unwrap();
    door.land(&landing).unwrap();
    assert_eq!(world.git(&world.main, &["status", "--porcelain"]), "");
    assert!(world.main.join("file/in").exists());
}
