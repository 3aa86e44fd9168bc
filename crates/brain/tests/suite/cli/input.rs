//! Whatever stands in the way is told in one message, with a code and what mends it, and leaves nothing half done.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::stage::{EXITS, Ran, Stage};

const OPEN: [&str; 6] = ["claim", "open", "--scope", "docs", "--task", "x"];

/// One message: its first line is the error with its code, and no other error follows.
fn is_one_message(err: &str) {
    assert!(err.starts_with("error: ") && err.contains(']'), "{err}");
    assert_eq!(err.matches("error: ").count(), 1, "{err}");
    assert!(err.lines().count() <= 12, "{err}");
}

/// A configuration or local configuration that does not read.
#[test]
fn a_broken_configuration_is_told_with_its_place_and_nothing_is_done() {
    for (file, text, wanted) in [
        ("brain.yml", "brain: [shop\n", "brain.yml:2"),
        ("brain.yml", "brain: shop\nzones:\n  kernal: [x]\n", "brain.yml:3"),
        (
            "brain.yml",
            "brain: shop\ncircuit_breaker: {max_consecutive_fails: many}\n",
            "brain.yml:2",
        ),
        ("brain.yml", "brain: shop\nbrain: again\n", "brain.yml:2"),
        ("brain.local.yml", "tests: {command: x}\n", "brain.local.yml:1"),
        ("brain.local.yml", "\t- x\n", "brain.local.yml:1"),
    ] {
        let stage = Stage::brain();
        let head = stage.head();
        let before = fs::read(stage.root.join(file)).ok();
        fs::write(stage.root.join(file), text).unwrap();
        for args in [
            &OPEN[..],
            &["status"],
            &["lock", "list"],
            &["init"],
            &["run", "status"],
        ] {
            let err = stage.no(78, "config.bad", args);
            is_one_message(&err);
            assert!(err.contains(wanted), "{text:?}: {err}");
        }
        let json = stage.run(&["status", "--json"]);
        let error = &json.document()["error"];
        assert_eq!(error["code"], "config.bad");
        assert!(!error["message"].as_str().unwrap().contains('\n'), "{error}");
        let problem = &error["facts"]["problems"][0];
        let place = format!("{}:{}", problem["file"].as_str().unwrap(), problem["line"]);
        assert!(place.starts_with(wanted), "{place}");
        assert!(
            problem["fix"].as_str().is_some_and(|fix| !fix.is_empty()),
            "{problem}"
        );
        match before {
            Some(before) => fs::write(stage.root.join(file), before).unwrap(),
            None => fs::remove_file(stage.root.join(file)).unwrap(),
        }
        assert_eq!(stage.head(), head);
    }
}

#[test]
fn a_broken_configuration_leaves_no_half_made_brain() {
    let stage = Stage::repository();
    fs::write(stage.root.join("brain.yml"), "brain: [\n").unwrap();
    is_one_message(&stage.no(78, "config.bad", &["init"]));
    assert!(!stage.root.join(".brain").exists());
}

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
    let looked = "SELECT rootpage FROM sqlite_schema WHERE name = 'gate_run'";
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

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let stage = Stage::brain();
    stage.ok(&OPEN);
    let brain = env!("CARGO_BIN_EXE_brain");
    for args in [
        "completions bash",
        "plan schema",
        "log",
        "status",
        "--help",
        "preflight check sess-20261130-1000-docs docs/a --json",
        "preflight check sess-20261130-1000-docs x y z",
    ] {
        // The reader is gone before the first word: the pipe is closed while the program starts.
        let script = format!("({{ sleep 0.05; {brain} {args} 2>&1; echo $? >code; }} | :); cat code");
        let code = stage.sh(&script);
        assert!(["0", "1"].contains(&code.trim()), "{args}: {code}");
    }
}

#[test]
fn a_bug_is_one_report_and_70() {
    let mut stage = Stage::brain();
    stage.set("BRAIN_TEST_PANIC", "1");
    let ran = Ran::of(stage.command(&["status"]).output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (70, ""));
    is_one_message(&ran.err);
    assert!(
        ran.err.contains("[bug]") && ran.err.contains("bug.rs:"),
        "{}",
        ran.err
    );
    let ran = Ran::of(stage.command(&["status", "--json"]).output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (70, ""));
    let document = ran.document();
    assert_eq!(document["error"]["kind"], "bug");
    assert_eq!(document["error"]["exit"], 70);
}

#[test]
fn colours_are_for_terminals_unless_they_are_asked_for() {
    let mut stage = Stage::brain();
    let colored = |stage: &Stage, args: &[&str]| {
        let ran = stage.run(args);
        ran.err.contains('\x1b') || ran.out.contains('\x1b')
    };
    let bad = ["claim", "show", "nobody"];
    let with = |word: &'static str| [&bad[..], &[word]].concat();
    assert!(!colored(&stage, &bad), "no terminal");
    assert!(colored(&stage, &with("--color=always")));
    assert!(colored(&stage, &["--color", "always", "doctor"]));
    assert!(colored(&stage, &["--color=always", "--help"]));
    stage.set("CLICOLOR_FORCE", "1");
    assert!(colored(&stage, &bad) && colored(&stage, &["doctor"]));
    assert!(!colored(&stage, &with("--color=never")) && !colored(&stage, &["--color=never", "frobnicate"]));
    for value in ["1", "0", "x"] {
        stage.set("NO_COLOR", value);
        assert!(!colored(&stage, &bad), "NO_COLOR={value}");
        assert!(
            colored(&stage, &with("--color=always")),
            "an option is nearer than the environment"
        );
    }
}

#[test]
fn quiet_says_only_the_answer() {
    let stage = Stage::brain();
    let ran = stage.run(&[&OPEN[..], &["-q"]].concat());
    assert_eq!(
        (ran.out.trim(), ran.err.as_str()),
        ("sess-20261130-1000-docs", "")
    );
    let ran = stage.run(&["lock", "acquire", "docs/x", "sess-20261130-1000-docs", "--quiet"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let err = stage.no(13, "id.unknown", &["claim", "show", "nobody", "--quiet"]);
    assert!(!err.is_empty());
}

#[test]
fn nothing_is_help_and_help_is_an_answer() {
    let stage = Stage::empty();
    let none: [&str; 0] = [];
    for args in [
        &none[..],
        &["--help"],
        &["claim", "open", "--help"],
        &["--version"],
    ] {
        let ran = stage.run(args);
        assert_eq!(ran.code, 0, "{args:?}");
        assert!(
            ran.out.contains("brain") && ran.err.is_empty(),
            "{args:?}: {}",
            ran.err
        );
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(stage.ok(&["completions", shell]).contains("brain"));
    }
    stage.ok(&["completions", "bash", "--json"]);
    stage.ok(&["plan", "schema", "--json"]);
    stage.ok(&["version", "--json"]);
}

/// Verbs, as they are typed.
const VERBS: [&str; 38] = [
    "",
    "claim",
    "claim open",
    "claim open --scope docs --task x",
    "claim list",
    "claim show",
    "claim renew",
    "claim reap",
    "preflight check",
    "preflight check sess-20261130-1000-docs",
    "preflight fail",
    "preflight reset",
    "preflight status",
    "lock acquire",
    "lock acquire docs/a",
    "lock release",
    "lock check",
    "lock list",
    "lock cleanup",
    "gate open",
    "gate list",
    "gate show",
    "gate approve",
    "gate answer",
    "gate pause",
    "gate resume",
    "gate abort",
    "gate status",
    "signal send --to",
    "signal send --to human --type INFO",
    "signal list",
    "signal ack",
    "plan check",
    "plan show",
    "close",
    "status",
    "log",
    "stop",
];

/// Words that may follow, right and wrong.
fn words() -> impl Strategy<Value = Vec<OsString>> {
    let known = prop::sample::select(vec![
        "--json",
        "--jsonl",
        "--quiet",
        "--root",
        "--scope",
        "--task",
        "--ttl",
        "--op",
        "--to",
        "--type",
        "--force",
        "--why",
        "--all",
        "--for",
        "--claim",
        "--since",
        "--result",
        "--leave",
        "--key",
        "--id",
        "--",
        "-",
        "@me",
        "docs",
        "10m",
        "sess-20261130-1000-docs",
        "gate-0000001",
        "sig-0000001",
        "../x",
        "",
        ".",
        "/",
        "src/**",
        "!x",
        "[",
        "\u{202e}",
        "1e9",
        "0",
        "-5",
        "a\nb",
        "é",
        "read",
        "failed",
        "INFO",
        "brain.yml",
        "/etc/passwd",
        "--color=always",
        "-h",
        "--help=x",
    ])
    .prop_map(OsString::from);
    let wild = prop_oneof![
        "\\PC{0,12}".prop_map(OsString::from),
        prop::collection::vec(1u8..=255, 0..8).prop_map(OsString::from_vec),
        "a{300}".prop_map(OsString::from),
    ];
    let rest = prop::collection::vec(prop_oneof![9 => known, 1 => wild], 0..4);
    (prop::sample::select(VERBS.to_vec()), rest)
        .prop_map(|(verb, rest)| verb.split_whitespace().map(OsString::from).chain(rest).collect())
}

#[test]
fn whatever_is_typed_ends_with_a_code_of_the_table() {
    let stage = Stage::brain();
    stage.ok(&OPEN);
    let met = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let config = ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&words(), |args| {
            let ran = Ran::of(stage.command(&args).output().unwrap());
            prop_assert!(
                !ran.err.contains("panicked") && ran.code != 70,
                "{args:?}: {}",
                ran.err
            );
            prop_assert!(
                EXITS.contains(&ran.code),
                "{args:?}: exit {}: {}",
                ran.code,
                ran.err
            );
            if ran.code == 64 {
                prop_assert!(
                    !ran.err.is_empty() || ran.out.contains("\"ok\":false"),
                    "{args:?}: not a word"
                );
            }
            met.borrow_mut().insert(ran.code);
            Ok(())
        })
        .unwrap();
    let met = met.into_inner();
    assert!(
        met.len() > 5 && met.contains(&0) && met.contains(&13),
        "only these codes were met: {met:?}"
    );
}

#[test]
fn what_ends_a_lock_run_ends_its_command_and_gives_the_lock_back() {
    let stage = Stage::brain();
    for (script, code) in [
        ("kill -TERM $PPID; exec sleep 60", 143),
        ("kill -HUP $PPID; exec sleep 60", 143),
        ("kill -INT $PPID; kill -QUIT $PPID; sleep 0.1; exit 3", 3),
    ] {
        let ran = stage.run(&["lock", "run", "ana", "docs/x", "--", "sh", "-c", script]);
        assert_eq!(ran.code, code, "{script}: {}", ran.err);
        assert_eq!(
            stage.run(&["lock", "check", "docs/x"]).code,
            0,
            "{script}: it is free again"
        );
    }
}
