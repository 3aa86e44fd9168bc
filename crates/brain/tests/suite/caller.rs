//! Who is calling, asked by real processes below a host that is a shell under another name.
//!
//! The suite itself may run below an agent: what is asked is always below a host of the test's own.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brain::caller::{Life, OwnerError, Probe, life, proven};
use protocol::facts::caller::{Caller, Nature, Process, Proof};

fn nature(variables: fn(&str) -> Option<OsString>) -> (String, Caller) {
    let caller = Probe::of(variables).near();
    let by = match &caller.nature {
        Nature::Agent { by } => by.clone(),
        other => format!("{other:?}"),
    };
    (by, caller)
}

fn given(name: &str, of: &[(&str, &str)]) -> Option<OsString> {
    of.iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.into())
}

#[test]
fn the_environment_says_who_is_an_agent() {
    let (by, caller) = nature(|name| given(name, &[("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "s1")]));
    assert_eq!(by, "the mark CLAUDECODE in its environment");
    assert_eq!(caller.agent.as_deref(), Some("claude-code"));
    assert_eq!(caller.host_session.as_deref(), Some("s1"));
    let (_, caller) = nature(|name| given(name, &[("CODEX_THREAD_ID", "t9")]));
    assert_eq!(
        (caller.agent.as_deref(), caller.host_session.as_deref()),
        (Some("codex"), Some("t9"))
    );
    let (by, caller) = nature(|name| given(name, &[("AI_AGENT", "newcomer_1-2_harness")]));
    assert!(by.contains("AI_AGENT"));
    assert_eq!(caller.agent.as_deref(), Some("newcomer"));
    // An editor's terminal is a human's; an empty variable and a claim's name prove nothing.
    for plain in [
        nature(|name| given(name, &[("CURSOR_TRACE_ID", "x"), ("TERM_PROGRAM", "vscode")])),
        nature(|name| given(name, &[("CLAUDECODE", "")])),
        nature(|name| given(name, &[("BRAIN_SESSION", "sess-20261130-1030-api")])),
        nature(|name| given(name, &[("BRAIN_TOKEN", "not a token")])),
    ] {
        assert_eq!(plain.0, "Plain");
    }
    let (by, caller) = nature(|name| given(name, &[("BRAIN_TOKEN", TOKEN)]));
    assert_eq!(by, "a session token in its environment");
    assert!(caller.token.is_some_and(|digest| digest.0 != TOKEN));
}

const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#[test]
fn a_proof_makes_a_human_of_plain_callers_only() {
    let typed = || Proof::Typed {
        terminal: "/dev/pts/1".into(),
    };
    let plain = Caller::plain("ana", "host");
    assert!(matches!(proven(plain.clone(), typed()).nature, Nature::Human(_)));
    let agent = Caller {
        nature: Nature::Agent { by: "x".into() },
        ..plain
    };
    assert!(matches!(
        proven(agent.clone(), typed()).nature,
        Nature::Agent { .. }
    ));
    assert!(matches!(
        proven(agent, Proof::Demo).nature,
        Nature::Human(Proof::Demo)
    ));
}

/// What the probe tells, printed for [`below`]: only ever started by it.
#[test]
#[ignore = "the suite starts it itself, below a host"]
fn told_to_the_suite() {
    let owner = std::env::var("SUITE_OWNER").ok().map(|pid| pid.parse().unwrap());
    let probe = match owner {
        Some(pid) => Probe::new().owned_by(pid),
        None => Probe::new(),
    };
    let text = match probe.whole() {
        Ok(caller) => format!(
            "{:?}\n{}\n{}\n{}",
            caller.nature,
            caller.owner.map_or(0, |owner| owner.pid),
            caller.agent.unwrap_or_default(),
            std::os::unix::process::parent_id()
        ),
        Err(error) => error.to_string(),
    };
    let out = PathBuf::from(std::env::var("SUITE_OUT").unwrap());
    let draft = out.with_extension("draft");
    fs::write(&draft, text).unwrap();
    fs::rename(&draft, &out).unwrap();
}

/// A shell under a host's name.
fn host(folder: &Path, name: &str) -> PathBuf {
    let host = folder.join(name);
    // A link and no copy: what was just written cannot be started while another thread's child, between its fork
    // and its start, still has it open.
    symlink("/bin/sh", &host).unwrap();
    host
}

/// Runs a script in which `$TELL` starts the probe; gives what it told.
fn below(host: &Path, setsid: bool, script: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut command = match setsid {
        true => Command::new("setsid"),
        false => Command::new(host),
    };
    if setsid {
        command.arg("--wait").arg(host);
    }
    let tell = format!(
        "{} --quiet --ignored --exact caller::told_to_the_suite",
        std::env::current_exe().unwrap().display()
    );
    let done = command
        .args(["-c", script])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("TELL", tell)
        .env("SUITE_OUT", &out)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(done.success(), "{script}");
    let late = Instant::now() + Duration::from_secs(20);
    while !out.exists() && Instant::now() < late {
        std::thread::yield_now();
    }
    let text = fs::read_to_string(&out).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn what_descends_from_a_host_is_an_agent_that_the_host_owns() {
    let folder = tempfile::tempdir().unwrap();
    let claude = host(folder.path(), "claude");
    let told = below(&claude, false, "sh -c '$TELL; true'; true");
    assert!(
        told[0].contains("its descent from process") && told[0].contains("(claude-code)"),
        "{told:?}"
    );
    assert_eq!(told[2], "claude-code");
    assert_ne!(told[1], "0");
    // The nearest host counts.
    let codex = host(folder.path(), "codex");
    let told = below(
        &claude,
        false,
        &format!("{} -c '$TELL; true'; true", codex.display()),
    );
    assert_eq!(told[2], "codex");
}

#[test]
fn who_lost_its_parents_is_known_by_the_leader_of_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let claude = host(folder.path(), "claude");
    // The shell between them ends before the probe starts, whose parent is then none of the host's.
    let script = "sh -c '(while kill -0 $$ 2>/dev/null; do :; done; $TELL) &'
                  while [ ! -e $SUITE_OUT ]; do sleep 0.01; done";
    let told = below(&claude, true, script);
    assert!(told[0].contains("(claude-code)"), "{told:?}");
    assert!(!told[0].contains(&format!("process {} ", told[3])), "{told:?}");
}

#[test]
fn the_owner_that_is_named_must_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let claude = host(folder.path(), "claude");
    let told = below(
        &claude,
        false,
        "sh -c 'echo $$ > $SUITE_OUT.pid; SUITE_OWNER=$$ $TELL; true'; true",
    );
    assert_ne!(told[1], "0");
    let told = below(&claude, false, "SUITE_OWNER=1 $TELL; true");
    assert!(told[0].contains("everyone descends"), "{told:?}");
    let told = below(
        &claude,
        false,
        "sh -c 'exit 0' & P=$!; wait $P; SUITE_OWNER=$P $TELL; true",
    );
    assert!(told[0].contains("no such process"), "{told:?}");
    assert_eq!(
        OwnerError::Gone(7).to_string().split(':').next(),
        Some("--owner-pid 7")
    );
}

#[test]
fn a_process_lives_or_is_gone_or_is_out_of_sight() {
    let me = Probe::new().whole().unwrap().chain[0].clone();
    assert_eq!(me.pid, std::process::id());
    assert_eq!(life(&me), Life::Alive);
    let with = |change: fn(&mut Process)| {
        let mut other = me.clone();
        change(&mut other);
        life(&other)
    };
    assert_eq!(with(|it| it.start += 1), Life::Gone, "a recycled number");
    assert_eq!(with(|it| it.host = "elsewhere".into()), Life::Unknown);
    assert_eq!(with(|it| it.pid_ns += 1), Life::Unknown);
    assert_eq!(with(|it| it.boot = "another-machine/x".into()), Life::Unknown);
    let machine = me.boot.split('/').next().unwrap();
    let earlier = Process {
        boot: format!("{machine}/earlier"),
        ..me.clone()
    };
    let expected = if machine.is_empty() {
        Life::Unknown
    } else {
        Life::Gone
    };
    assert_eq!(life(&earlier), expected);
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let process = Probe::new().owned_by(child.id()).whole().unwrap().owner.unwrap();
    assert_eq!(life(&process), Life::Alive);
    child.kill().unwrap();
    while life(&process) == Life::Alive {}
    assert_eq!(life(&process), Life::Gone, "a zombie works no more");
    child.wait().unwrap();
    assert_eq!(life(&process), Life::Gone);
}

#[test]
#[ignore = "a measurement: cargo test --profile ci -p brain little_time -- --ignored --nocapture"]
fn walking_takes_little_time() {
    let best = |work: &dyn Fn()| {
        let once = || {
            let start = Instant::now();
            (0..50).for_each(|_| work());
            start.elapsed() / 50
        };
        (0..50).map(|_| once()).min().unwrap_or_default()
    };
    println!("near: {:?}", best(&|| drop(Probe::new().near())));
    let parents = Probe::new().whole().unwrap().chain.len();
    println!(
        "whole, chain of {parents}: {:?}",
        best(&|| drop(Probe::new().whole().unwrap()))
    );
}

#[cfg(feature = "testkit")]
#[test]
fn a_test_says_who_is_calling() {
    let (by, caller) = nature(|name| {
        given(
            name,
            &[
                ("BRAIN_TEST_CALLER", "agent:s7"),
                ("BRAIN_TEST_CHAIN", "12,3"),
                ("BRAIN_TEST_OWNER", "3"),
                ("CLAUDECODE", "1"),
            ],
        )
    });
    assert_eq!(by, "the test");
    assert_eq!(caller.host_session.as_deref(), Some("s7"));
    assert_eq!(
        caller.chain.iter().map(|process| process.pid).collect::<Vec<_>>(),
        [12, 3]
    );
    assert_eq!(caller.owner.as_ref().map(life), Some(Life::Alive));
    let (_, caller) = nature(|name| given(name, &[("BRAIN_TEST_CALLER", "human")]));
    assert!(matches!(caller.nature, Nature::Human(_)));
}
