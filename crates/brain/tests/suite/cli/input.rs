//! Whatever is typed, and however it is read, ends with one message and a code, and leaves nothing half done.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::stage::{EXITS, OPEN, Ran, Stage, is_one_message};

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
        ("brain.yml", "brain: shop\ntests: ''\n", "brain.yml:2"),
        (
            "brain.yml",
            "brain: shop\nstore: postgres://u:p@db/x\n",
            "brain.yml:2",
        ),
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
    // The same words each time: which codes are met among so few is else a matter of luck.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
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

/// A worktree has a branch of its own, so another one is not silently passed over.
#[test]
fn a_worktree_takes_no_branch() {
    let stage = Stage::brain();
    let head = stage.head();
    let err = stage.no(
        64,
        "usage",
        &[&OPEN[..], &["--worktree", "--branch", "main"]].concat(),
    );
    is_one_message(&err);
    assert!(err.contains("--theme"), "{err}");
    assert_eq!(stage.head(), head);
}

/// The protocol lets both open, so they are told by a word and not by a no.
#[test]
fn a_claim_that_cannot_write_yet_or_ever_is_told_so() {
    let stage = Stage::brain();
    let open = |more: &[&str]| {
        let ran = stage.run(&[&["claim", "open", "--task", "x", "--kind", "search"], more].concat());
        assert_eq!(ran.code, 0, "{more:?}: {}", ran.err);
        ran.err
    };
    for branch in ["nosuch", "no such"] {
        let told = open(&["--scope", "docs", "--branch", branch]);
        assert!(
            told.contains(&format!("there is no branch {branch:?} yet")) && told.contains("git switch -c"),
            "{told}"
        );
    }
    assert_eq!(open(&["--scope", "docs", "--branch", "main"]), "");
    stage.sh("git branch other");
    assert_eq!(open(&["--scope", "docs", "--branch", "other"]), "");
    for scope in [".git", "src/.GIT/hooks/", ".brain/*", "**/.git/"] {
        let told = open(&["--scope", scope]);
        assert!(
            told.contains(scope) && told.contains("where no claim may write"),
            "{told}"
        );
    }
    for scope in [".github/", "src/", "!.git/"] {
        assert_eq!(open(&["--scope", scope, "--scope", "docs"]), "");
    }
}

/// The first commit will make it.
#[test]
fn a_branch_without_a_commit_is_one_that_there_is() {
    let stage = Stage::empty();
    stage.sh("git init -q -b main");
    stage.ok(&["init"]);
    let ran = stage.run(&[&OPEN[..], &["--branch", "main"]].concat());
    assert_eq!(
        (ran.code, ran.err.contains("no branch")),
        (0, false),
        "{}",
        ran.err
    );
}
