//! Who is calling, with real processes, marks, tokens, terminals and keys.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::stage::{Ran, Stage};

/// A brain whose callers are looked at, with a claim that waits for a human.
fn stage() -> (Stage, String) {
    let mut stage = Stage::brain();
    stage.set("BRAIN_TEST_CALLER", "");
    // The suite itself may run below an agent: a session of its own has none above it.
    let claim = alone(
        &stage,
        "claim open --scope docs --task x --kind brain-write --slug docs",
    );
    assert_eq!(claim.code, 0, "{}", claim.err);
    let gate = alone(&stage, "gate open sess-20261130-1000-docs why");
    assert_eq!(gate.code, 0, "{}", gate.err);
    (stage, gate.out.trim().to_owned())
}

/// Runs a line below this process name, cut off from the suite's own parents.
///
/// `setsid --fork` gives the line to the first process; the fifo holds the end until it is over.
fn below(stage: &Stage, name: &str, line: &str) -> Ran {
    let shell = stage.path.join(name);
    if !shell.exists() {
        symlink("/bin/sh", &shell).unwrap();
    }
    let (out, err, code) = (
        stage.path.join("out"),
        stage.path.join("err"),
        stage.path.join("code"),
    );
    let _ = fs::remove_file(&code);
    // A second word keeps the shell from becoming the program itself.
    let script = format!(
        "{brain} {line} >{out} 2>{err} </dev/null; echo $? >{code}.new; mv {code}.new {code}",
        brain = env!("CARGO_BIN_EXE_brain"),
        out = out.display(),
        err = err.display(),
        code = code.display()
    );
    let mut command = stage.process(
        Path::new("setsid"),
        &[Path::new("--fork"), &shell, Path::new("-c")],
    );
    command.arg(script).stdout(Stdio::piped());
    // Whoever has the pipe's other end is at work: its end is the line's.
    let output = command.output().unwrap();
    assert!(output.status.success());
    Ran {
        code: fs::read_to_string(code).unwrap().trim().parse().unwrap(),
        out: fs::read_to_string(out).unwrap(),
        err: fs::read_to_string(err).unwrap(),
    }
}

fn alone(stage: &Stage, line: &str) -> Ran {
    below(stage, "sh", line)
}

fn not_human(ran: &Ran, by: &str) {
    assert_eq!(ran.code, 12, "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("[gate.not_human]") && ran.err.contains(by),
        "{}",
        ran.err
    );
}

#[test]
fn an_agent_answers_nothing_whatever_betrays_it() {
    let (mut stage, gate) = stage();
    let only_humans = [
        format!("gate approve {gate}"),
        format!("gate answer {gate} skip"),
        "lock release docs/ok.md ana --force --why x".to_owned(),
        "close sess-20261130-1000-docs --leave docs".to_owned(),
    ];
    let head = alone(&stage, "log").out.lines().count();
    for line in &only_humans {
        not_human(&below(&stage, "claude", line), "descent from process");
    }
    for (name, value, by) in [
        ("CLAUDECODE", "1", "the mark CLAUDECODE"),
        ("CODEX_THREAD_ID", "t1", "the mark CODEX_THREAD_ID"),
        ("BRAIN_TOKEN", &"0123456789abcdef".repeat(4), "a session token"),
    ] {
        stage.set(name, value);
        for line in &only_humans {
            not_human(&alone(&stage, line), by);
        }
        stage.set(name, "");
    }
    // No option and no claim's name makes a human of it, nor an agent of anyone.
    stage.set("BRAIN_SESSION", "sess-20261130-1000-docs");
    not_human(&alone(&stage, &only_humans[0]), "no terminal");
    assert_eq!(
        alone(&stage, "log").out.lines().count(),
        head,
        "a refusal changed something"
    );
}

#[test]
fn a_breaker_at_its_limit_and_an_agents_own_stop_are_no_agents_to_lift() {
    let (mut stage, _) = stage();
    for _ in 0..3 {
        assert_eq!(alone(&stage, "preflight fail sess-20261130-1000-docs").code, 0);
    }
    let reset = "preflight reset sess-20261130-1000-docs --why done";
    not_human(&below(&stage, "claude", reset), "descent");
    not_human(&alone(&stage, reset), "no terminal");
    stage.set("CLAUDE_CODE_SESSION_ID", "s1");
    stage.set("CLAUDECODE", "1");
    assert_eq!(
        alone(&stage, "claim open --scope src --task y --slug mine").code,
        0
    );
    assert_eq!(alone(&stage, "stop now").code, 0);
    not_human(&alone(&stage, "thaw"), "agent");
    stage.set("CLAUDE_CODE_SESSION_ID", "");
    stage.set("CLAUDECODE", "");
    assert_eq!(alone(&stage, "thaw").code, 0);
}

#[test]
fn a_process_that_everyone_descends_from_owns_nothing() {
    let (stage, _) = stage();
    let ran = alone(&stage, "claim open --scope src --task y --owner-pid 1");
    assert_eq!(ran.code, 64, "{}", ran.err);
    let ran = alone(&stage, "claim open --scope src --task y --owner-pid 4194304");
    assert_eq!(ran.code, 64, "{}", ran.err);
}

#[test]
fn o_36_a_killed_owner_is_told_from_a_live_one_and_reaped_on_request_alone() {
    let (stage, _) = stage();
    let mut owners: Vec<_> = (0..2)
        .map(|_| {
            Command::new("sleep")
                .arg("60")
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for (owner, scope) in owners.iter().zip(["a", "b"]) {
        let line = format!(
            "claim open --scope {scope} --task t --slug {scope} --owner-pid {}",
            owner.id()
        );
        assert_eq!(alone(&stage, &line).code, 0);
    }
    owners[0].kill().unwrap();
    owners[0].wait().unwrap();
    for _ in 0..2 {
        let status = alone(&stage, "status --json").document();
        let life = |id: &str| {
            let claims = status["claims"].as_array().unwrap();
            claims.iter().find(|claim| claim["sess_id"] == id).unwrap()["life"].clone()
        };
        assert_eq!(life("sess-20261130-1000-a"), "owner gone");
        assert_eq!(life("sess-20261130-1000-b"), "alive");
        assert_eq!(status["counts"]["owner_gone"], 1, "looking changed something");
    }
    // Whoever meets it opens over it; a live one stands.
    assert_eq!(alone(&stage, "claim open --scope b --task t --slug c").code, 10);
    let over = alone(&stage, "claim open --scope a --task t --slug c");
    assert!(over.code == 0 && over.err.contains("has ended"), "{}", over.err);
    owners[1].kill().unwrap();
    owners[1].wait().unwrap();
    let reaped = alone(&stage, "claim reap");
    assert!(
        reaped.out.contains("sess-20261130-1000-b") && reaped.out.contains("has ended"),
        "{}",
        reaped.out
    );
    assert!(!reaped.out.contains("sess-20261130-1000-docs"), "{}", reaped.out);
}

/// Types on a terminal of the program's own what `answer` makes of the code that is shown.
fn on_terminal(stage: &Stage, args: &[&str], answer: fn(&str) -> String) -> (i32, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::from(rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
    let mut master = File::from(master);
    // A session of its own on the terminal, below no agent that the suite may run under.
    let brain: PathBuf = env!("CARGO_BIN_EXE_brain").into();
    let code = stage.path.join("code");
    let _ = fs::remove_file(&code);
    let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let script = format!(
        "timeout --foreground 30 {} {}; echo $? >{code}.new; mv {code}.new {code}",
        brain.display(),
        quoted.join(" "),
        code = code.display()
    );
    let mut command: Command = stage.process(
        Path::new("setsid"),
        &["--fork", "--ctty", "/bin/sh", "-c", &script],
    );
    command
        .stdin(terminal.try_clone().unwrap())
        .stdout(terminal.try_clone().unwrap())
        .stderr(terminal);
    assert!(command.status().unwrap().success());
    drop(command);
    let (mut shown, mut read_to) = (Vec::new(), 0);
    loop {
        let mut bytes = [0; 512];
        // The last one to hold the terminal has gone: the read fails.
        let Ok(read) = master.read(&mut bytes) else { break };
        if read == 0 {
            break;
        }
        shown.extend_from_slice(&bytes[..read]);
        let text = String::from_utf8_lossy(&shown[read_to..]).into_owned();
        let typed = if let Some((before, _)) = text.split_once(" to answer: ") {
            answer(before.rsplit(' ').next().unwrap())
        } else if text.contains("answer [continue|") && text.ends_with(": ") {
            "continue it is so".to_owned()
        } else {
            continue;
        };
        read_to = shown.len();
        master.write_all(format!("{typed}\n").as_bytes()).unwrap();
    }
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let code = fs::read_to_string(code).unwrap_or_else(|why| panic!("{why}: {shown}"));
    (code.trim().parse().unwrap(), shown)
}

#[test]
fn a_human_types_the_code_and_a_close_goes_on() {
    let (stage, gate) = stage();
    let (code, shown) = on_terminal(&stage, &["gate", "approve", &gate], |_| "yes".to_owned());
    assert_eq!(code, 12, "{shown}");
    assert!(
        shown.contains("why") && shown.contains("[gate.not_human]"),
        "{shown}"
    );
    let (code, shown) = on_terminal(&stage, &["gate", "approve", &gate, "go on"], str::to_lowercase);
    assert_eq!(code, 0, "{shown}");
    let told = alone(&stage, &format!("gate show {gate}"));
    assert!(
        told.out.contains("continue") && told.out.contains("go on"),
        "{}",
        told.out
    );
    assert!(!alone(&stage, "status").out.contains("does not verify"));
    stage.sh("echo more >>docs/ok.md");
    let closed = alone(&stage, "close sess-20261130-1000-docs");
    assert_eq!(closed.code, 0, "{}", closed.err);
}

#[test]
fn a_close_on_a_terminal_asks_there_and_goes_on() {
    let mut stage = Stage::brain();
    stage.set("BRAIN_TEST_CALLER", "");
    let open = "claim open --scope docs --task idle --kind test --tests true --slug idle";
    assert_eq!(alone(&stage, open).code, 0);
    let close = ["close", "sess-20261130-1000-idle"];
    let (code, shown) = on_terminal(&stage, &[&close[..], &["--no-wait"]].concat(), str::to_owned);
    assert_eq!(code, 11, "{shown}");
    assert_eq!(alone(&stage, "close sess-20261130-1000-idle").code, 11);
    // Nothing was changed, and nothing was tested: a human says twice that it is so.
    let (code, shown) = on_terminal(&stage, &close, str::to_lowercase);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("nothing was changed"), "{shown}");
    let told = alone(&stage, "claim show sess-20261130-1000-idle");
    assert!(told.out.contains("closed"), "{}", told.out);
}

#[test]
fn a_signed_gate_is_answered_by_a_listed_key_alone() {
    let (mut stage, gate) = stage();
    for name in ["ana", "ben"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
            .arg(stage.path.join(name))
            .status();
        assert!(made.expect("the suite needs ssh-keygen").success());
    }
    let public = fs::read_to_string(stage.path.join("ana.pub")).unwrap();
    fs::write(
        stage.root.join("signers"),
        format!("ana@example.org namespaces=\"brain-gate\" {public}"),
    )
    .unwrap();
    fs::write(
        stage.root.join("brain.yml"),
        "brain: shop\ngates: {signed: true, signers: signers}\n",
    )
    .unwrap();
    let key = |name: &str| stage.path.join(name).to_str().unwrap().to_owned();
    let (ana, ben, none) = (key("ana"), key("ben"), key("none"));
    let approve = format!("gate approve {gate}");
    stage.set("BRAIN_SIGNING_KEY", &none);
    assert_eq!(alone(&stage, &approve).code, 12);
    stage.set("BRAIN_SIGNING_KEY", &ben);
    let ran = alone(&stage, &approve);
    assert!(ran.code == 12 && ran.err.contains("gates.signers"), "{}", ran.err);
    stage.set("BRAIN_SIGNING_KEY", &ana);
    not_human(&below(&stage, "claude", &approve), "descent");
    let ran = alone(&stage, &approve);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let shown = alone(&stage, &format!("gate show {gate} --json"));
    assert_eq!(
        shown.document()["gate"]["answer"]["by"]["proof"]["signed"],
        "ana@example.org"
    );
    assert_eq!(
        alone(&stage, "preflight check sess-20261130-1000-docs docs/ok.md").code,
        0
    );
}
