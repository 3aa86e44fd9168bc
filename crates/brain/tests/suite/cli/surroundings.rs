//! What a command stands on and cannot use (disk, store, git) is told in one message with what mends it, and leaves
//! nothing half done.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::stage::{OPEN, Ran, Stage, is_one_message};

/// A test of a read-only folder as the superuser, whom no folder keeps out, is one as nobody.
fn as_nobody(stage: &Stage, args: &[&str]) -> Ran {
    let brain = stage.command(args);
    if !rustix::process::getuid().is_root() {
        return Ran::of(stage.command(args).output().unwrap());
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(brain.get_program())
        .args(brain.get_args());
    command
        .env_clear()
        .envs(stage.environment())
        .current_dir(&stage.cwd);
    Ran::of(
        command
            .output()
            .expect("the suite needs setpriv when the superuser runs it"),
    )
}

#[test]
fn a_read_only_or_unreadable_store_is_told_and_nothing_is_done() {
    let stage = Stage::brain();
    let (state, head) = (stage.root.join(".brain"), stage.head());
    fs::set_permissions(&stage.path, fs::Permissions::from_mode(0o755)).unwrap();
    if rustix::process::getuid().is_root() {
        // Git leaves alone what belongs to another user, and says so.
        let ran = as_nobody(&stage, &OPEN);
        assert!(ran.code == 12 && ran.err.contains("[git.owner]"), "{}", ran.err);
        stage.sh("git config --global --add safe.directory '*'");
    }
    for mode in [0o555, 0o000] {
        fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
        for args in [&OPEN[..], &["lock", "acquire", "docs/x", "ana"], &["stop"]] {
            let ran = as_nobody(&stage, args);
            assert_eq!(ran.code, 69, "{mode:o} {args:?}: {}{}", ran.out, ran.err);
            is_one_message(&ran.err);
            assert!(ran.err.contains(".brain"), "{}", ran.err);
        }
        fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(stage.head(), head);
    }
}

#[test]
fn a_full_disk_is_told_and_nothing_is_done() {
    let stage = Stage::brain();
    let head = stage.head();
    // No file may grow past what stands there already.
    let limited = |args: &str| {
        let script = format!(
            "trap '' XFSZ; ulimit -f 1; exec {} {args}",
            env!("CARGO_BIN_EXE_brain")
        );
        Ran::of(
            stage
                .process(Path::new("/bin/sh"), &["-c", &script])
                .output()
                .unwrap(),
        )
    };
    let ran = limited("claim open --scope docs --task x");
    assert_eq!(ran.code, 69, "{}{}", ran.out, ran.err);
    is_one_message(&ran.err);
    assert_eq!(stage.head(), head);
    stage.ok(&OPEN);
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let stage = Stage::brain();
    let database = stage.root.join(".brain/brain.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    let was: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    connection.pragma_update(None, "user_version", was + 1).unwrap();
    for args in [
        &OPEN[..],
        &["status"],
        &["init"],
        &["preflight", "check", "sess-20261130-1000-x", "docs/ok.md"],
    ] {
        is_one_message(&stage.no(78, "store.too_new", args));
    }
    let ran = stage.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 21);
    connection.pragma_update(None, "user_version", was).unwrap();
    drop(connection);
    stage.ok(&OPEN);
}

#[test]
fn a_damaged_store_is_told_by_every_command() {
    let stage = Stage::brain();
    stage.ok(&OPEN);
    let state = stage.root.join(".brain");
    for file in ["brain.db-wal", "brain.db-shm"] {
        let _ = fs::remove_file(state.join(file));
    }
    fs::write(
        state.join("brain.db"),
        "this is no database, and never was one ".repeat(300),
    )
    .unwrap();
    for args in [
        &OPEN[..],
        &["status"],
        &["log"],
        &["preflight", "check", "sess-20261130-1000-docs", "docs/ok.md"],
    ] {
        let ran = stage.run(args);
        assert_eq!(ran.code, 69, "{}{}", ran.out, ran.err);
        is_one_message(&ran.err);
    }
}

#[test]
fn a_store_with_a_damaged_table_is_made_anew_from_its_journal_r_30() {
    let mut stage = Stage::brain();
    stage.ok(&OPEN);
    let database = stage.root.join(".brain/brain.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    let looked = "SELECT rootpage FROM sqlite_schema WHERE name = 'gate_about'";
    let page: i64 = connection.query_row(looked, [], |row| row.get(0)).unwrap();
    connection
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    drop(connection);
    let mut bytes = fs::read(&database).unwrap();
    let at = usize::try_from((page - 1) * 4096).unwrap();
    bytes[at..at + 64].iter_mut().for_each(|byte| *byte ^= 0x5A);
    fs::write(&database, bytes).unwrap();
    let before = stage.ok(&["log", "--jsonl"]);
    // The machine started anew, so the first command that writes looks the whole file over.
    stage.set("BRAIN_TEST_CLOCK", &stage.clock().replace("test ", "after "));
    let ran = stage.run(&["lock", "acquire", "docs/x", "ana"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("made anew from the"), "{}", ran.err);
    let after = stage.ok(&["log", "--jsonl"]);
    assert!(
        after.starts_with(&before) && after.lines().count() == before.lines().count() + 1,
        "{after}"
    );
    assert!(stage.ok(&["claim", "list"]).contains("stale"));
    let next = stage.run(&["lock", "acquire", "docs/y", "ana"]);
    assert!(!next.err.contains("anew"), "it is said once: {}", next.err);
}

#[test]
fn without_git_on_the_path_what_needs_it_says_so() {
    let mut stage = Stage::brain();
    let head = stage.head();
    let bin = stage.path.join("bin");
    fs::create_dir_all(&bin).unwrap();
    stage.set("PATH", bin.to_str().unwrap());
    // A claim is compared with what git says when it is closed: without git there is nothing to compare.
    let err = stage.no(69, "git.missing", &OPEN);
    is_one_message(&err);
    assert!(err.contains("install git"), "{err}");
    stage.ok(&["status"]);
    stage.ok(&["lock", "acquire", "docs/x", "ana"]);
    let ran = stage.run(&["doctor"]);
    assert_eq!(ran.code, 21);
    assert!(ran.out.contains("git is not on PATH"), "{}", ran.out);
    assert_eq!(stage.head(), head + 1);
}

#[test]
fn a_repository_without_a_commit_detached_or_shallow_is_no_riddle() {
    let stage = Stage::empty();
    stage.sh("git init -q && mkdir docs && echo d >docs/ok.md");
    stage.ok(&["init"]);
    stage.ok(&OPEN);
    is_one_message(&stage.no(
        12,
        "claim.no_worktree",
        &["claim", "open", "--scope", "src", "--task", "x", "--worktree"],
    ));

    let stage = Stage::brain();
    stage.sh("git checkout -q --detach");
    let head = stage.head();
    let err = stage.no(12, "claim.detached_head", &OPEN);
    assert!(err.contains("git switch -c") && err.contains("--branch"), "{err}");
    assert_eq!(stage.head(), head);
    stage.ok(&[
        "claim", "open", "--scope", "src", "--task", "look", "--kind", "search",
    ]);

    let mut stage = Stage::brain();
    stage.sh("git commit -q --allow-empty -m more && git clone -q --depth 1 file://$PWD ../shallow");
    stage.cwd = stage.path.join("shallow");
    stage.sh("git config user.name A && git config user.email a@b");
    stage.root = stage.cwd.clone();
    stage.ok(&["init"]);
    stage.ok(&[
        "claim",
        "open",
        "--scope",
        "docs",
        "--task",
        "x",
        "--kind",
        "brain-write",
    ]);
    stage.sh("echo more >>docs/ok.md");
    stage.ok(&["close", "sess-20261130-1000-docs"]);
}

#[test]
fn without_a_name_for_the_commit_a_close_says_so_and_goes_on_later() {
    let stage = Stage::brain();
    stage.ok(&[
        "claim",
        "open",
        "--scope",
        "docs",
        "--task",
        "x",
        "--kind",
        "brain-write",
    ]);
    let config = stage.path.join("home/gitconfig");
    let named = fs::read_to_string(&config).unwrap();
    stage.sh("echo more >>docs/ok.md");
    fs::write(&config, "[user]\n\tuseConfigOnly = true\n").unwrap();
    let err = stage.no(12, "git.no_identity", &["close", "sess-20261130-1000-docs"]);
    is_one_message(&err);
    assert!(err.contains("git config user.name"), "{err}");
    assert!(
        stage
            .run(&["doctor"])
            .out
            .contains("git does not know who commits")
    );
    fs::write(&config, named).unwrap();
    stage.ok(&["close", "sess-20261130-1000-docs"]);
}

#[test]
fn outside_a_repository_claims_work_and_closing_has_nothing_to_commit() {
    let stage = Stage::empty();
    stage.ok(&["init"]);
    fs::create_dir(stage.root.join("docs")).unwrap();
    stage.ok(&[
        "claim",
        "open",
        "--scope",
        "docs",
        "--task",
        "x",
        "--kind",
        "brain-write",
    ]);
    stage.ok(&["preflight", "check", "sess-20261130-1000-docs", "docs/a"]);
    assert!(stage.ok(&["status"]).contains("in no git repository"));
    stage.no(
        12,
        "claim.no_worktree",
        &["claim", "open", "--scope", "src", "--task", "x", "--worktree"],
    );
    let ran = stage.run(&["close", "sess-20261130-1000-docs"]);
    assert!([0, 11].contains(&ran.code), "{}{}", ran.out, ran.err);
}

#[test]
fn a_submodule_is_looked_at_and_left_alone() {
    let stage = Stage::brain();
    stage.sh(
        "git init -q ../lib && git -C ../lib commit -q --allow-empty -m l && \
         git -c protocol.file.allow=always submodule --quiet add ../lib lib && git commit -qm lib",
    );
    stage.ok(&[
        "claim",
        "open",
        "--scope",
        "docs",
        "--task",
        "x",
        "--kind",
        "brain-write",
    ]);
    stage.sh("echo more >>docs/ok.md");
    stage.ok(&["close", "sess-20261130-1000-docs"]);
}

#[test]
fn a_folder_that_is_gone_or_closed_to_us_is_told() {
    let mut stage = Stage::brain();
    let gone = stage.path.join("gone");
    fs::create_dir(&gone).unwrap();
    let script = format!(
        "cd {0} && rmdir {0} && exec {1} status",
        gone.display(),
        env!("CARGO_BIN_EXE_brain")
    );
    let ran = Ran::of(
        stage
            .process(Path::new("/bin/sh"), &["-c", &script])
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, 69, "{}", ran.err);
    is_one_message(&ran.err);
    stage.cwd = stage.path.clone();
    is_one_message(&stage.no(69, "brain.none", &["status"]));
}

/// A run that has no place to begin at says what to make, and begins nothing.
#[test]
fn a_run_without_a_repository_a_commit_or_a_branch_says_what_to_make() {
    let plan = "name: p\nmode: swarm\nphases:\n  - {id: 1, type: deploy, scope: a/, run: 'true'}\n";
    for (make, mend) in [
        ("true", "git init"),
        ("git init -q", "git commit --allow-empty -m start"),
        (
            "git init -q && git commit -q --allow-empty -m x && git switch -q --detach",
            "git switch -c NAME",
        ),
        (
            "git init -q && git commit -q --allow-empty -m x && echo 'main_branch: trunk' >brain.yml",
            "git branch trunk",
        ),
    ] {
        let stage = Stage::empty();
        stage.sh(make);
        stage.ok(&["init"]);
        fs::write(stage.root.join("p.yml"), plan).unwrap();
        let head = stage.head();
        let err = stage.no(12, "run.no_place", &["run", "p.yml", "--no-wait"]);
        assert!(err.ends_with(&format!("mend that first: {mend}\n")), "{err}");
        assert_eq!(stage.head(), head, "{err}");
        assert_eq!(stage.worktree(), "WORKTREE", "none was made");
    }
}

/// What could not be started is told as that, by who opens a worktree and by a run.
#[test]
fn a_submodule_that_cannot_be_filled_is_the_reason_that_is_told() {
    let stage = Stage::brain();
    stage.sh(
        "git init -q ../part && git -C ../part commit -q --allow-empty -m part && \
         git -c protocol.file.allow=always submodule --quiet add ../part part && git commit -qm part && rm -rf ../part",
    );
    let open = ["claim", "open", "--scope", "docs", "--task", "x", "--worktree"];
    let err = stage.no(12, "git.submodules", &open);
    is_one_message(&err);
    assert!(err.contains("git submodule update --init --recursive"), "{err}");
    assert_eq!(stage.ok(&["claim", "list"]), "", "no claim without its place");
    assert_eq!(stage.sh("git worktree list").lines().count(), 1);

    let plan = "name: p\nmode: swarm\nphases:\n  - {id: 1, type: deploy, scope: a/, run: 'true'}\n";
    fs::write(stage.root.join("p.yml"), plan).unwrap();
    let ran = stage.run(&["run", "p.yml", "--no-wait"]);
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    let gates = stage.run(&["gate", "list", "--json"]).document();
    let why = gates["gates"][0]["why"].as_str().unwrap();
    assert!(
        why.starts_with("it could not be started: ") && why.contains("submodule"),
        "{why}"
    );
}

/// Passed over, it would leave two machines that think they are coordinated.
#[test]
fn a_shared_store_in_the_environment_is_refused_by_every_command() {
    let mut stage = Stage::brain();
    let id = stage.ok(&OPEN);
    let head = stage.head();
    stage.set("BRAIN_STORE", "postgres://ana:secret@db/brain");
    for args in [
        &["claim", "open", "--scope", "src", "--task", "x"][..],
        &["status"],
        &["init"],
        &["preflight", "check", &id, "docs/ok.md"],
    ] {
        let err = stage.no(78, "config.bad", args);
        is_one_message(&err);
        assert!(err.contains("BRAIN_STORE names a shared store"), "{err}");
        assert!(err.contains(": unset BRAIN_STORE\n"), "{err}");
        assert!(!err.contains("secret"), "{err}");
    }
    let doctor = stage.run(&["doctor"]);
    assert_eq!(doctor.code, 21, "{}", doctor.out);
    assert_eq!(
        doctor.out.matches("BRAIN_STORE names").count(),
        1,
        "{}",
        doctor.out
    );
    assert!(doctor.out.contains("fix: unset BRAIN_STORE"), "{}", doctor.out);
    stage.set("BRAIN_STORE", "");
    assert_eq!(stage.head(), head, "an empty one names nothing");
}

/// Who reads the file later would take a part of the answer for the whole.
#[test]
fn an_answer_that_finds_no_room_is_told() {
    let stage = Stage::brain();
    stage.ok(&OPEN);
    for args in [
        "log",
        "log --json",
        "log --jsonl",
        "claim list",
        "claim list --json",
        "status --json",
        "status",
        "version",
        "preflight check sess-20261130-1000-docs docs/ok.md --json",
        "--help",
        "",
    ] {
        let script = format!("exec {} {args} >/dev/full", env!("CARGO_BIN_EXE_brain"));
        let ran = stage
            .process(Path::new("/bin/sh"), &["-c", &script])
            .output()
            .unwrap();
        let ran = Ran::of(ran);
        assert_eq!(ran.code, 69, "{args:?}: {}", ran.err);
        assert!(
            ran.err
                .starts_with("error: cannot write the answer to standard output: ")
                && ran.err.ends_with(" [io]\n")
                && ran.err.lines().count() == 1,
            "{args:?}: {}",
            ran.err
        );
    }
    // What was refused keeps the code that says what to do now.
    let script = format!(
        "exec {} claim show sess-20261130-1000-no --json >/dev/full",
        env!("CARGO_BIN_EXE_brain")
    );
    let ran = stage
        .process(Path::new("/bin/sh"), &["-c", &script])
        .output()
        .unwrap();
    assert_eq!(Ran::of(ran).code, 13);
}
