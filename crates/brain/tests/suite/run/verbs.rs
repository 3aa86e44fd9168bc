//! What other terminals do to a run: pause, abort, cancel, stop; limits; reports.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use super::house::{House, processes};

const LONG: &str = "  - {id: 1, type: deploy, scope: a/, run: 'echo $$ > TOP/pid; mkdir a; until test -e TOP/go; do sleep 0.05; done; echo > a/f'}\n";

/// `T` for a process that is stopped.
fn state(pid: &str) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next())
        .unwrap_or('-')
}

fn pilot(house: &House) -> String {
    house.json(&["run", "status"])["run"]["pilot"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn o_13_a_pause_of_the_pilot_stops_the_processes_below_and_their_time() {
    let house = House::new();
    house.plan(&LONG.replace("scope: a/,", "scope: a/, timeout: 4s,"));
    let run = house.start(&["run", "p.yml"]);
    let pid = house.noted("pid", 1)[0].clone();
    let pilot = pilot(&house);
    assert_eq!(house.brain(&["gate", "pause", &pilot]).code, 0);
    house.until("it is stopped", || (state(&pid) == 'T').then_some(()));
    let claim = house.claim_of("1");
    assert_ne!(
        house.brain(&["preflight", "check", &claim, "a/f"]).code,
        0,
        "nothing below a pause writes"
    );
    // Longer than its time limit, which stands still.
    std::thread::sleep(Duration::from_millis(4_500));
    assert_eq!(state(&pid), 'T');
    fs::write(house.note("go"), "").unwrap();
    assert_eq!(house.brain(&["gate", "resume", &pilot]).code, 0);
    let said = run.end();
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

#[test]
fn a_stop_halts_a_run_and_a_thaw_lets_it_go_on() {
    let house = House::new();
    house.plan(
        &(LONG.to_owned()
            + "  - {id: 2, type: deploy, scope: b/, run: 'echo > TOP/two; mkdir b; echo > b/f'}\n"),
    );
    let run = house.start(&["run", "p.yml"]);
    let pid = house.noted("pid", 1)[0].clone();
    assert_eq!(house.brain(&["stop", "the deploy broke"]).code, 0);
    house.until("it is stopped", || (state(&pid) == 'T').then_some(()));
    fs::write(house.note("go"), "").unwrap();
    assert_eq!(house.brain(&["thaw"]).code, 0);
    let said = run.end();
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

#[test]
fn o_13_an_attempt_that_a_human_aborts_ends_with_all_below_it_and_is_not_retried() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: a/, retries: 3, run: 'trap \"\" TERM; setsid sh -c \"sleep 300\" & echo $$ >> TOP/pid; sleep 300'}\n\
         \x20 - {id: 2, type: deploy, scope: b/, needs: [], run: 'mkdir b; echo > b/f'}\n",
    );
    let run = house.start(&["run", "p.yml", "--jobs", "2"]);
    house.noted("pid", 1);
    let claim = house.claim_of("1");
    let said = house.brain(&["gate", "abort", &claim, "wrong idea"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let shown = house.settle("failed", "skip");
    assert!(shown.contains("wrong idea"), "{shown}");
    let said = run.end();
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(house.notes("pid").len(), 1, "not retried");
    assert!(house.has("b/f"), "its sibling went on");
    house.until("nothing is left", || {
        processes(&house.top.display().to_string())
            .is_empty()
            .then_some(())
    });
}

#[test]
fn a_cancel_ends_the_agents_and_the_run() {
    let house = House::new();
    house.plan(LONG);
    let run = house.start(&["run", "p.yml"]);
    house.noted("pid", 1);
    assert_eq!(house.brain(&["run", "cancel"]).code, 0);
    let said = run.end();
    assert_eq!(said.code, 20, "{}{}", said.out, said.err);
    house.until("nothing is left", || {
        processes(&house.top.display().to_string())
            .is_empty()
            .then_some(())
    });
    assert!(
        house.worktrees() > 0,
        "a worktree with unlanded work is never removed"
    );
    assert_eq!(house.brain(&["run", "--resume"]).code, 20);
}

#[test]
fn limits_end_an_attempt_and_say_which() {
    for (limit, what, words) in [
        ("timeout: 500ms", "sleep 60", "time limit"),
        ("idle: 500ms", "echo hi; sleep 60", "idle limit"),
        (
            "output: 4K",
            "while :; do echo 0123456789012345; done",
            "output limit",
        ),
        (
            "timeout: 500ms",
            "trap \"\" TERM; while :; do sleep 1; done",
            "time limit",
        ),
    ] {
        let house = House::new();
        house.plan(&format!(
            "  - {{id: 1, type: deploy, scope: a/, {limit}, run: '{what}'}}\n"
        ));
        let said = house.brain(&["run", "p.yml", "--no-wait"]);
        assert_eq!(said.code, 11, "{what}: {}{}", said.out, said.err);
        let (gate, _) = house.gate();
        let shown = house.brain(&["gate", "show", &gate]).out;
        assert!(shown.contains(words), "{what}: {shown}");
        assert!(processes(&house.top.display().to_string()).is_empty(), "{what}");
    }
}

/// The limit is the kernel's, on every process of the attempt: what wants more is told so and ends by itself.
#[test]
fn a_memory_limit_of_a_phase_binds_its_agent() {
    let house = House::new();
    let eats = "head -c 100M /dev/zero | tail -c 90M | wc -c >TOP/ate; mkdir a; ulimit -d >a/f";
    house.plan(&format!(
        "  - {{id: 1, type: deploy, scope: a/, memory: 40M, run: '{eats}'}}\n\
         \x20 - {{id: 2, type: deploy, scope: b/, run: 'head -c 100M /dev/zero | tail -c 90M | wc -c >TOP/eats; mkdir b; echo >b/f'}}\n"
    ));
    let said = house.brain(&["run", "p.yml"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(house.read("a/f"), "40960\n");
    assert_eq!(house.notes("ate"), ["0"]);
    assert_eq!(
        house.notes("eats"),
        [(90 << 20).to_string()],
        "the other phase has no limit"
    );
}

#[test]
fn reports_are_text_markdown_html_and_data() {
    let house = House::new();
    house.plan("  - {id: 1, title: '<b>bold</b> & | more', type: code, scope: a/, tests: sh tests/green.sh, run: 'mkdir a; echo > a/f'}\n");
    let said = house.brain(&["run", "p.yml"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let report = |form: &str| house.brain(&["run", "report", "--format", form]).out;
    assert!(report("text").contains("tests 1/1"), "{}", report("text"));
    assert!(report("markdown").contains("\\| more"), "{}", report("markdown"));
    let html = report("html");
    assert!(
        html.contains("&lt;b&gt;bold&lt;/b&gt; &amp; | more") && !html.contains("<b>"),
        "{html}"
    );
    let data: serde_json::Value = serde_json::from_str(&report("json")).unwrap();
    assert_eq!(data["delivered"], 1);
    assert_eq!(
        data["landings"][0]["commit"].as_str().unwrap(),
        house.git(&["rev-parse", "main"])
    );
    assert_eq!(house.json(&["run", "report"])["report"]["end"], "finished");
    assert!(house.brain(&["log"]).out.contains("phase accepted"));
}

/// An agent leaves a lock of git's that nobody holds any more, and its work uncommitted.
#[test]
fn o_33_a_worktree_that_git_has_locked_out_keeps_its_work() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: a/, run: 'mkdir a; echo work > a/f; test -e TOP/met || { touch TOP/met $(git rev-parse --git-dir)/index.lock; }'}\n",
    );
    let said = house.brain(&["run", "p.yml", "--no-wait"]);
    assert_eq!(said.code, 11, "{}{}", said.out, said.err);
    let claim = house.claim_of("1");
    let tree = house.root.join(".brain/worktrees").join(&claim);
    let lock = house.root.join(".git/worktrees").join(&claim).join("index.lock");
    let (gate, _) = house.gate();
    let shown = house.json(&["gate", "show", &gate])["gate"]["why"].to_string();
    let held = format!("{} has been held for", lock.display());
    assert!(shown.contains(&held) && !shown.contains("\\n"), "{shown}");

    // Once more is a worktree of its own; what stands in the old one is for a person to look at.
    house.settle("failed", "retry");
    let said = house.brain(&["run", "--resume"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(house.read("a/f"), "work\n");
    assert_ne!(house.claim_of("1"), claim);
    assert!(lock.exists(), "a lock of git's is never deleted");
    assert_eq!(fs::read_to_string(tree.join("a/f")).unwrap(), "work\n");
}

/// Somebody else's git is at work for a moment: a close waits for it, and for no longer.
#[test]
fn o_33_a_close_waits_for_a_lock_that_goes_away() {
    let house = House::new();
    let opened = house.brain(&[
        "claim", "open", "--scope", "a/", "--task", "x", "--kind", "deploy",
    ]);
    let id = opened.out.trim();
    house.write("a/f", "work\n");
    house.write("../bin/git", &house.filled(TOLD_GIT));
    let bin = house.top.join("bin");
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let lock = house.root.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let close = house
        .program(&["close", id])
        .env("PATH", path)
        .stderr(Stdio::piped())
        .spawn();
    let mut close = close.unwrap();
    let refused = house.noted("refused", 2);
    assert!(close.try_wait().unwrap().is_none(), "it ended after {refused:?}");
    fs::remove_file(&lock).unwrap();
    let ended = close.wait_with_output().unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert_eq!(house.git(&["show", "HEAD:a/f"]), "work");
}

/// A git that notes each time that a lock was in its way.
const TOLD_GIT: &str = "#!/bin/sh\n\
    PATH=${PATH#*:} git \"$@\" 2>TOP/said.$$\n\
    code=$?\n\
    cat TOP/said.$$ >&2\n\
    grep -q index.lock TOP/said.$$ && echo $code >>TOP/refused\n\
    exit $code\n";

#[test]
fn o_30_a_stash_that_an_agent_leaves_is_neither_taken_nor_dropped() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: a/, run: 'mkdir a; echo one > a/f; git add a; git stash -q; mkdir -p a; echo two > a/f'}\n\
         \x20 - {id: 2, type: deploy, scope: b/, run: 'git stash list > TOP/stash; mkdir b; echo > b/f'}\n",
    );
    let said = house.brain(&["run", "p.yml"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(house.read("a/f"), "two\n");
    assert_eq!(house.notes("stash").len(), 1, "one stash for all worktrees");
    assert_eq!(house.git(&["stash", "list"]).lines().count(), 1);
}
