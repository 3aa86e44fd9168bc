//! Limits, suspension, and the end of all that a child began.

use std::fs;
use std::thread;
use std::time::Duration;

use protocol::facts::run::Exit;
use protocol::facts::span::Span;
use runner::launch::{Limits, Spec, start};

use super::{Bench, await_that, daemon, end_of, ms, pid_in, run, state_of, until};

#[test]
fn r43_at_the_time_limit_nothing_is_left_not_even_what_detached_itself() {
    let bench = Bench::new();
    let child = start(&Spec {
        limits: Limits {
            time: ms(1_500),
            grace: Span::from_ms(200),
            ..Limits::default()
        },
        ..bench.spec(&format!("{}; {}", daemon("daemon"), until("never")))
    })
    .unwrap();
    let daemon = pid_in(&bench.await_text("daemon"));
    assert!(state_of(daemon).is_some());
    let ending = end_of(&child);
    assert_eq!(ending.exit, Exit::TimedOut);
    assert!(ending.ran_ms >= 1_500, "{ending:?}");
    assert_eq!(state_of(daemon), None);
    assert_eq!(state_of(child.leader().unwrap().pid), None);
}

#[test]
fn r43_what_a_child_leaves_running_ends_with_it() {
    let bench = Bench::new();
    let spec = Spec {
        limits: Limits {
            grace: Span::from_ms(100),
            ..Limits::default()
        },
        ..bench.spec(&format!("{}; exit 4", daemon("daemon")))
    };
    assert_eq!(run(&spec).0, Exit::Status(4));
    assert_eq!(state_of(pid_in(&bench.text("daemon"))), None);
}

#[test]
fn a_silent_child_is_idle_and_one_that_prints_is_not() {
    let bench = Bench::new();
    let spec = Spec {
        limits: Limits {
            idle: ms(300),
            ..Limits::default()
        },
        ..bench.spec(&format!("echo a; {}", until("never")))
    };
    assert_eq!(run(&spec), (Exit::Idle, "a\n".into()));

    let bench = Bench::new();
    let child = start(&Spec {
        limits: Limits {
            idle: ms(2_000),
            ..Limits::default()
        },
        ..bench.spec("for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.3; done")
    })
    .unwrap();
    let ending = end_of(&child);
    assert_eq!(ending.exit, Exit::Status(0));
    assert!(ending.ran_ms > 2_000, "the limit never came near: {ending:?}");
}

#[test]
fn a_child_that_prints_too_much_is_ended_and_its_log_is_cut() {
    let bench = Bench::new();
    let child = start(&Spec {
        limits: Limits {
            output: Some(10_001),
            ..Limits::default()
        },
        ..bench.spec("yes")
    })
    .unwrap();
    let ending = end_of(&child);
    assert_eq!(ending.exit, Exit::TooMuchOutput);
    assert!(ending.output_bytes > 10_001, "{ending:?}");
    assert_eq!(fs::metadata(child.log_path()).unwrap().len(), 10_001);
}

#[test]
fn the_memory_limit_and_the_ban_on_core_dumps_bind_the_child() {
    let bench = Bench::new();
    let spec = Spec {
        limits: Limits {
            memory: Some(64 << 20),
            ..Limits::default()
        },
        ..bench.spec("ulimit -d; ulimit -c; head -c 200M /dev/zero | tail -c 199M | wc -c")
    };
    let (_, printed) = run(&spec);
    assert!(printed.starts_with("65536\n0\n"), "{printed}");
    assert!(!printed.contains("208666624"), "{printed}");
}

#[test]
fn a_limit_holds_over_the_status_that_the_child_ends_with() {
    let bench = Bench::new();
    let spec = Spec {
        limits: Limits {
            time: ms(300),
            ..Limits::default()
        },
        ..bench.spec(&format!("trap 'exit 0' TERM; {}", until("never")))
    };
    assert_eq!(run(&spec).0, Exit::TimedOut);
}

#[test]
fn o_13_suspending_reaches_the_grandchild_and_stops_the_clock() {
    let bench = Bench::new();
    let child = start(&Spec {
        limits: Limits {
            time: ms(4_000),
            idle: ms(3_000),
            grace: Span::from_ms(100),
            ..Limits::default()
        },
        ..bench.spec(&format!(
            "{}; echo up > up; {}; echo done",
            daemon("daemon"),
            until("go")
        ))
    })
    .unwrap();
    bench.await_text("up");
    let (leader, daemon) = (child.leader().unwrap().pid, pid_in(&bench.text("daemon")));

    assert!(child.suspend().unwrap());
    for pid in [leader, daemon] {
        await_that("it is stopped", || (state_of(pid) == Some('T')).then_some(()));
    }
    bench.touch("go");
    let written = bench.text("daemon.on");
    // Longer than either limit.
    thread::sleep(Duration::from_millis(4_500));
    assert_eq!(child.try_wait(), None);
    assert_eq!(bench.text("daemon.on"), written);

    assert!(child.resume().unwrap());
    let ending = end_of(&child);
    assert_eq!(ending.exit, Exit::Status(0));
    assert!(ending.suspended_ms >= 4_400, "{ending:?}");
    assert!(ending.ran_ms < 4_000, "{ending:?}");
    assert!(!child.suspend().unwrap(), "an ended child was suspended");
}

#[test]
fn a_child_may_take_leave_when_it_is_asked_to_end() {
    let bench = Bench::new();
    let child = start(&bench.spec(&format!(
        "trap 'echo bye; exit 3' TERM; echo up > up; {}",
        until("never")
    )))
    .unwrap();
    bench.await_text("up");
    child.end(Span::from_ms(60_000)).unwrap();
    assert_eq!(end_of(&child).exit, Exit::Status(3));
    assert_eq!(child.tail(1).unwrap(), "bye\n");
    // Too late, and no error.
    child.end(Span::from_ms(0)).unwrap();
}

#[test]
fn a_stopped_child_can_be_ended_and_a_deaf_one_is_killed() {
    let bench = Bench::new();
    let child = start(&bench.spec(&format!("echo up > up; {}", until("never")))).unwrap();
    bench.await_text("up");
    child.suspend().unwrap();
    child.end(Span::from_ms(60_000)).unwrap();
    assert_eq!(end_of(&child).exit, Exit::Interrupt(15));

    let bench = Bench::new();
    let child = start(&bench.spec(&format!("trap '' TERM; echo up > up; {}", until("never")))).unwrap();
    bench.await_text("up");
    child.end(Span::from_ms(60_000)).unwrap();
    // The second request is the more urgent one.
    child.end(Span::from_ms(0)).unwrap();
    assert_eq!(end_of(&child).exit, Exit::Interrupt(9));
}
