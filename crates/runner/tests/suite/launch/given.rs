//! What a child is given, and what it is not.

use std::collections::BTreeSet;
use std::fs;
use std::process::{self, Stdio};

use protocol::facts::run::Exit;
use runner::launch::{BASE, Base, Brief, Command, MARK, Quiet, Spec, run_quietly, start};

use super::{Bench, await_that, end_of, ms, program, run, shim, until};

#[test]
fn o_28_a_childs_whole_environment_is_the_list_and_what_it_was_given() {
    let bench = Bench::new();
    let child = start(&Spec {
        command: Command::Program(vec!["env".into()]),
        env: vec![
            ("DB_PASSWORD".into(), "hunter2 = \"Zq9\" é".into()),
            ("LANG".into(), "fr_FR.UTF-8".into()),
        ],
        ..bench.spec("")
    })
    .unwrap();
    assert_eq!(end_of(&child).exit, Exit::Status(0));
    let got: BTreeSet<_> = child
        .tail(usize::MAX)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let mut expected = BTreeSet::from([
        "DB_PASSWORD=hunter2 = \"Zq9\" é".to_owned(),
        "LANG=fr_FR.UTF-8".to_owned(),
        format!("{MARK}={}", bench.path("a").canonicalize().unwrap().display()),
    ]);
    for passed in BASE.iter().filter(|passed| passed.name != "LANG") {
        let matching = std::env::vars().filter(|(name, _)| match passed.name.strip_suffix('*') {
            Some(stem) => name.starts_with(stem),
            None => name == passed.name,
        });
        expected.extend(matching.map(|(name, value)| format!("{name}={value}")));
    }
    assert_eq!(got, expected);
}

#[test]
fn o_28_the_parents_secrets_reach_neither_child_nor_shim() {
    let bench = Bench::new();
    let text = format!(
        "tr '\\0' '\\n' < /proc/$PPID/environ; exec env; {}",
        until("never")
    );
    let mut hypervisor = process::Command::new(program())
        .args(["start".as_ref(), bench.path("a").as_os_str(), text.as_ref()])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("HOME", "/h"), ("LC_TIME", "C")])
        .envs([
            ("STRIPE_SECRET_KEY", "sk_x"),
            ("DATABASE_URL", "mysql://u:p@h/d"),
            ("SSH_AUTH_SOCK", "/tmp/s"),
            ("A_SECRET_OF_TOMORROW", "x"),
        ])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    assert!(hypervisor.wait().unwrap().success());
    let log = bench.text("a/log");
    let names: BTreeSet<_> = log
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    // `PWD` is the shell's own.
    assert_eq!(names, BTreeSet::from([MARK, "HOME", "LC_TIME", "PATH", "PWD"]));
}

#[test]
fn o_28_a_value_is_in_no_command_line_and_in_no_file() {
    let bench = Bench::new();
    let child = start(&Spec {
        env: vec![("TOKEN".into(), "canary-7Hq".into())],
        brief: Brief::Stdin(b"canary-7Hq in a brief".to_vec()),
        ..bench.spec(&format!("echo up > up; {}", until("go")))
    })
    .unwrap();
    bench.await_text("up");
    for process in [child.process().unwrap(), child.leader().unwrap()] {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap();
        assert!(!line.is_empty());
        assert!(!String::from_utf8_lossy(&line).contains("canary"));
    }
    let environ = fs::read(format!("/proc/{}/environ", child.process().unwrap().pid));
    assert!(environ.is_err() || environ.is_ok_and(|environ| environ.is_empty()));
    bench.touch("go");
    assert_eq!(end_of(&child).exit, Exit::Status(0));
    let mut read = 0;
    for entry in fs::read_dir(bench.path("a")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            let text = fs::read_to_string(entry.path()).unwrap();
            assert!(!text.contains("canary"), "{:?}", entry.path());
            read += 1;
        }
    }
    assert!(read >= 5, "only {read} files were looked at");
}

#[test]
fn r26_a_child_inherits_no_descriptor() {
    let bench = Bench::new();
    // One that the hypervisor itself was left, as a shell leaves them.
    let leak = fs::File::create(bench.path("leak")).unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let (exit, printed) = run(&bench.spec("ls -l /proc/$$/fd; echo; ls -l /proc/$PPID/fd"));
    assert_eq!(exit, Exit::Status(0), "{printed}");
    assert!(!printed.contains("leak"), "{printed}");
    let (childs, shims) = printed.split_once("\n\n").unwrap();
    assert_eq!(
        childs.lines().filter(|line| line.contains(" -> ")).count(),
        3,
        "{childs}"
    );
    assert!(!childs.contains("/a/"), "{childs}");
    // The shim holds what it must: the lock is its standard output.
    assert!(shims.contains("1 -> ") && shims.contains("/a/alive"), "{shims}");
    drop(leak);
}

#[test]
fn a_brief_arrives_byte_for_byte_and_is_closed() {
    let bench = Bench::new();
    let brief: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    let spec = Spec {
        brief: Brief::Stdin(brief.clone()),
        ..bench.spec("cat > got")
    };
    assert_eq!(run(&spec).0, Exit::Status(0));
    assert_eq!(fs::read(bench.path("got")).unwrap(), brief);
}

#[test]
fn a_child_need_not_read_its_brief_and_may_have_none() {
    let bench = Bench::new();
    let spec = Spec {
        brief: Brief::Stdin(vec![b'x'; 1 << 20]),
        ..bench.spec("exit 7")
    };
    assert_eq!(run(&spec).0, Exit::Status(7));
    let bench = Bench::new();
    assert_eq!(
        run(&bench.spec("cat; echo done")),
        (Exit::Status(0), "done\n".into())
    );
}

#[test]
fn a_brief_as_an_argument_is_the_last_one() {
    let bench = Bench::new();
    let spec = Spec {
        brief: Brief::Argument("a \"b\" $c".into()),
        ..bench.spec("printf '%s|' \"$@\"")
    };
    assert_eq!(run(&spec), (Exit::Status(0), "a \"b\" $c|".into()));
}

#[test]
fn both_streams_are_in_one_log_in_the_order_of_printing() {
    let bench = Bench::new();
    let (exit, printed) = run(&bench.spec("echo a; echo b >&2; echo c; echo d >&2; exit 3"));
    assert_eq!((exit, printed.as_str()), (Exit::Status(3), "a\nb\nc\nd\n"));
}

#[test]
fn masked_values_do_not_reach_the_log() {
    let bench = Bench::new();
    let spec = Spec {
        shim: shim("__masked"),
        env: vec![("KEY".into(), "s3cret99".into()), ("MODE".into(), "open".into())],
        masked: vec!["KEY".into()],
        ..bench.spec("echo $MODE; printf s3cr; sleep 0.05; echo et99; echo $KEY")
    };
    assert_eq!(run(&spec), (Exit::Status(0), "open\n********\n********\n".into()));
}

#[test]
fn what_cannot_be_started_says_why() {
    let bench = Bench::new();
    let spec = Spec {
        command: Command::Program(vec!["no-such-program".into()]),
        ..bench.spec("")
    };
    let child = start(&spec).unwrap();
    let Exit::NotStarted(why) = end_of(&child).exit else {
        panic!("{child:?}")
    };
    assert!(why.contains("no-such-program"), "{why}");

    let bench = Bench::new();
    let spec = Spec {
        cwd: bench.path("no-such-folder"),
        ..bench.spec("true")
    };
    let Exit::NotStarted(why) = run(&spec).0 else {
        panic!("it started")
    };
    assert!(why.contains("no-such-folder"), "{why}");
}

#[test]
fn what_no_environment_can_hold_is_refused_without_its_value() {
    let bench = Bench::new();
    for (name, value) in [("A=B", "hush"), ("", "hush"), ("A", "hush\0")] {
        let spec = Spec {
            env: vec![(name.into(), value.into())],
            ..bench.spec("true")
        };
        let said = start(&spec).unwrap_err().to_string();
        assert!(!said.contains("hush"), "{said}");
    }
}

fn quiet(bench: &Bench, text: &str) -> Quiet {
    Quiet {
        dir: bench.path("a"),
        shim: shim("__attempt"),
        command: Command::Shell(text.into()),
        cwd: bench.path(""),
        base: Base::Fixed,
        env: vec![("GIVEN".into(), "yes".into())],
        limits: runner::launch::Limits {
            time: ms(60_000),
            ..Default::default()
        },
    }
}

#[test]
fn o_15_a_quiet_commands_status_is_its_own() {
    let bench = Bench::new();
    let output = run_quietly(quiet(&bench, "echo 14 passed; echo $GIVEN; exit 1")).unwrap();
    assert_eq!(output.exit, Exit::Status(1));
    assert_eq!(output.tail, "14 passed\nyes\n");
    assert_eq!(fs::read_to_string(output.log).unwrap(), output.tail);
}

#[test]
fn a_quiet_command_ends_with_who_asked_for_it() {
    let bench = Bench::new();
    let mut hypervisor = bench.hypervisor(
        "quiet",
        "trap '' TERM HUP; echo $$ > up; while :; do sleep 0.05; done",
    );
    let pid = super::pid_in(&bench.await_text("up"));
    assert!(super::state_of(pid).is_some());
    hypervisor.kill().unwrap();
    hypervisor.wait().unwrap();
    await_that("the command is gone", || {
        super::state_of(pid).is_none().then_some(())
    });
}
