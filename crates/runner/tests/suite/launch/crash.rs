//! Crashes: whatever dies, an attempt is never started twice and never lost.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{self, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use protocol::facts::run::Exit;
use runner::launch::{Adopted, Child, Spec, adopt, start};
use rustix::fs::{FlockOperation, flock};

use super::{Bench, FOREVER, await_that, daemon, end_of, kill, pid_in, program, run, state_of, until};

/// Adopts a child that runs.
#[track_caller]
fn adopt_running(bench: &Bench) -> Child {
    match adopt(&bench.path("a")).unwrap() {
        Adopted::Running(child) => child,
        other => panic!("{other:?}"),
    }
}

#[test]
fn r42_a_child_outlives_its_hypervisor_and_is_taken_back() {
    let bench = Bench::new();
    let mut hypervisor = bench.hypervisor(
        "start",
        &format!("echo one; echo up > up; {}; echo two; exit 5", until("go")),
    );
    bench.await_text("up");
    hypervisor.kill().unwrap();
    hypervisor.wait().unwrap();

    let child = adopt_running(&bench);
    await_that("the log is there", || {
        (child.tail(9).unwrap() == "one\n").then_some(())
    });
    assert_eq!(child.try_wait(), None);
    bench.touch("go");
    assert_eq!(end_of(&child).exit, Exit::Status(5));
    assert_eq!(child.tail(9).unwrap(), "one\ntwo\n");
}

#[test]
fn a_killed_shim_takes_all_along_and_the_attempt_vanished() {
    let bench = Bench::new();
    let child =
        start(&bench.spec(&format!("{}; echo up > up; {}", daemon("daemon"), until("never")))).unwrap();
    bench.await_text("up");
    let (leader, daemon) = (child.leader().unwrap().pid, pid_in(&bench.text("daemon")));
    assert!(state_of(daemon).is_some());
    kill(child.process().unwrap().pid);
    assert_eq!(end_of(&child).exit, Exit::Vanished);
    for pid in [leader, daemon] {
        assert_eq!(state_of(pid), None);
    }
    assert!(matches!(adopt(&bench.path("a")).unwrap(), Adopted::Vanished));
    assert_eq!(run(&bench.spec("echo again > again")).0, Exit::Vanished);
    assert!(!bench.path("again").exists());
}

#[test]
fn r39_a_hypervisor_killed_at_any_step_of_a_start_starts_nothing_twice() {
    for step in [
        "",
        "alive",
        "spec.json",
        "log",
        "control",
        "started.json",
        "result.json",
    ] {
        for _ in 0..3 {
            let bench = Bench::new();
            let text = "echo ran >> ran";
            let mut hypervisor = bench.hypervisor("start", text);
            let path = bench.path("a").join(step);
            spin_until_there(&path);
            let _ = hypervisor.kill();
            hypervisor.wait().unwrap();
            assert_eq!(run(&bench.spec(text)).0, Exit::Status(0), "killed at `{step}`");
            assert_eq!(bench.text("ran"), "ran\n", "killed at `{step}`");
        }
    }
}

#[test]
fn r39_a_shim_killed_at_any_step_starts_nothing_twice() {
    let (mut never, mut vanished) = (0, 0);
    for step in ["log", "control", "started.json"] {
        for _ in 0..4 {
            let bench = Bench::new();
            let mut hypervisor = bench.hypervisor("start", "echo ran >> ran; sleep 1000");
            let path = bench.path("a").join(step);
            spin_until_there(&path);
            // The hypervisor first, or it would look after the attempt itself.
            hypervisor.kill().unwrap();
            for pid in pids_with(bench.path("a").to_str().unwrap()) {
                let pid = rustix::process::Pid::from_raw(pid).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            hypervisor.wait().unwrap();
            match adopt(&bench.path("a")).unwrap() {
                Adopted::NeverStarted => {
                    assert_eq!(bench.text("ran"), "");
                    assert_eq!(run(&bench.spec("echo ran >> ran")).0, Exit::Status(0));
                    never += 1;
                }
                Adopted::Vanished => {
                    assert_eq!(run(&bench.spec("echo ran >> ran")).0, Exit::Vanished);
                    vanished += 1;
                }
                // Killed and not yet gone: its last system call is being finished.
                Adopted::Running(child) => {
                    assert_eq!(end_of(&child).exit, Exit::Vanished);
                    vanished += 1;
                }
                other => panic!("{other:?}"),
            }
            assert!(bench.text("ran").len() <= "ran\n".len());
        }
    }
    assert!(
        never > 0 && vanished > 0,
        "{never} never started, {vanished} vanished"
    );
}

/// Waits for a file without ever sleeping: the moment just after it appears is the one that is wanted.
fn spin_until_there(path: &Path) {
    let deadline = Instant::now() + FOREVER;
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} never came", path.display());
        thread::yield_now();
    }
}

/// The processes that were started with this word.
fn pids_with(word: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
        })
        .collect()
}

#[test]
fn an_attempt_of_which_only_the_intention_is_written_may_be_started() {
    let bench = Bench::new();
    assert!(matches!(adopt(&bench.path("a")).unwrap(), Adopted::NeverStarted));
    fs::create_dir(bench.path("a")).unwrap();
    for name in ["alive", "spec.json", "spec.tmp", "started.tmp", "control.tmp"] {
        fs::write(bench.path("a").join(name), "{").unwrap();
        assert!(
            matches!(adopt(&bench.path("a")).unwrap(), Adopted::NeverStarted),
            "{name}"
        );
    }
    assert_eq!(run(&bench.spec("echo ran >> ran")).0, Exit::Status(0));
    assert_eq!(bench.text("ran"), "ran\n");
}

#[test]
fn a_shim_whose_parcel_is_torn_starts_nothing() {
    let bench = Bench::new();
    fs::create_dir(bench.path("a")).unwrap();
    let alive = fs::File::create(bench.path("a/alive")).unwrap();
    flock(&alive, FlockOperation::LockExclusive).unwrap();
    let mut shim = process::Command::new(program())
        .arg("__attempt")
        .arg(bench.path("a"))
        .stdin(Stdio::piped())
        .stdout(alive)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = shim.stdin.take().unwrap();
    pipe.write_all(b"brain-parcel 1 27 0 0\n/sh\0-c\0echo ran > ran")
        .unwrap();
    drop(pipe);
    assert!(!shim.wait().unwrap().success());
    assert!(matches!(adopt(&bench.path("a")).unwrap(), Adopted::NeverStarted));
}

#[test]
fn who_looks_while_an_attempt_is_being_started_waits_for_the_outcome() {
    let bench = Bench::new();
    fs::create_dir(bench.path("a")).unwrap();
    let alive = fs::File::create(bench.path("a/alive")).unwrap();
    flock(&alive, FlockOperation::LockExclusive).unwrap();
    thread::scope(|scope| {
        let looks = scope.spawn(|| adopt(&bench.path("a")).unwrap());
        let starts = scope.spawn(|| run(&bench.spec("echo ran >> ran")).0);
        thread::sleep(std::time::Duration::from_millis(50));
        assert!(!looks.is_finished() && !starts.is_finished());
        drop(alive);
        assert_eq!(starts.join().unwrap(), Exit::Status(0));
        looks.join().unwrap();
    });
    assert_eq!(bench.text("ran"), "ran\n");
}

#[test]
fn r47_a_result_is_told_again_as_often_as_one_asks() {
    let bench = Bench::new();
    let spec = bench.spec("echo ran >> ran; exit 9");
    let first = end_of(&start(&spec).unwrap());
    assert_eq!((&first.exit, first.output_bytes), (&Exit::Status(9), 0));
    for _ in 0..3 {
        let Adopted::Ended(ending) = adopt(&bench.path("a")).unwrap() else {
            panic!("it has ended")
        };
        assert_eq!(ending, first);
        assert_eq!(end_of(&start(&spec).unwrap()), first);
    }
    assert_eq!(bench.text("ran"), "ran\n");
}

#[test]
fn many_starters_of_one_attempt_have_one_child() {
    let bench = Bench::new();
    let barrier = Barrier::new(8);
    let leaders: Vec<u32> = thread::scope(|scope| {
        let starters: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    let child = start(&bench.spec(&format!("echo ran >> ran; {}", until("go")))).unwrap();
                    child.leader().unwrap().pid
                })
            })
            .collect();
        starters
            .into_iter()
            .map(|starter| starter.join().unwrap())
            .collect()
    });
    assert!(leaders.iter().all(|leader| *leader == leaders[0]), "{leaders:?}");

    let (one, two) = (adopt_running(&bench), adopt_running(&bench));
    assert_eq!(one.process(), two.process());
    bench.touch("go");
    assert_eq!(end_of(&one), end_of(&two));
    assert_eq!(bench.text("ran"), "ran\n");
}

#[test]
fn fifty_children_at_once_end_each_with_its_own_status() {
    let bench = Bench::new();
    let children: Vec<Child> = (0..50)
        .map(|n| {
            start(&Spec {
                dir: bench.path(&format!("many/{n}")),
                ..bench.spec(&format!("{}; echo {n}; exit {n}", until("go")))
            })
            .unwrap()
        })
        .collect();
    assert!(
        children.iter().all(|child| child.try_wait().is_none()),
        "not all at once"
    );
    bench.touch("go");
    for (n, child) in children.iter().enumerate() {
        assert_eq!(end_of(child).exit, Exit::Status(n as i32));
        assert_eq!(child.tail(1).unwrap(), format!("{n}\n"));
    }
}
