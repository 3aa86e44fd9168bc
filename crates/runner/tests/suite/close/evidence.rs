//! Step 2: tests that brain ran itself.

use std::fs;

use protocol::event::Event;
use protocol::facts::claim::{EvidenceSource, Outcome};
use protocol::facts::gate::Choice;
use protocol::facts::kind::Kind;
use protocol::facts::signal_kind::SignalKind;
use protocol::refusal::Refusal;
use runner::close::{CloseAsk, CloseError, Closed, Fuse, Notice};

use super::world::{GREEN, World, code, short, tests};

fn with_work(command: &str) -> (World, protocol::facts::id::SessId) {
    let mut w = World::new();
    let id = w.open("api", &["src/"], code(command));
    w.write("src/a.rs", "two\n");
    (w, id)
}

/// The same, with a suite that is this script.
fn with_suite(text: &str) -> (World, protocol::facts::id::SessId) {
    let mut w = World::new();
    w.write_suite(text);
    let suite = w.suite();
    let id = w.open("api", &["src/"], code(suite));
    w.write("src/a.rs", "two\n");
    (w, id)
}

#[test]
fn green_tests_are_in_the_commit_and_in_the_result() {
    let (mut w, id) = with_work(GREEN);
    let result = w.done(&id);
    let evidence = result.tests.as_ref().unwrap();
    assert_eq!(evidence.source, EvidenceSource::Run);
    assert_eq!(evidence.tree, w.root_git(&["rev-parse", "HEAD^{tree}"]));
    let subject = w.root_git(&["log", "-1", "--format=%s"]);
    assert_eq!(subject, "code(src/): the work of api [tests: 2/2 ✅]");
}

#[test]
fn red_tests_refuse_tell_the_parent_and_leave_nothing() {
    let (mut w, id) = with_suite("printf '1..2\\nok 1 - a\\nnot ok 2 - b\\n'; exit 1");
    let Refusal::TestsRed { report, exit, .. } = w.refused(&id) else {
        panic!()
    };
    assert_eq!((report.unwrap().failures, exit), (vec!["b".to_owned()], Some(1)));
    let sent: Vec<SignalKind> = w.facts().signals.values().map(|it| it.kind).collect();
    assert_eq!(sent, [SignalKind::BlockedOn]);
    assert_eq!(w.commits("main"), 1);
    assert_eq!(w.dirty(), [" M src/a.rs"]);
    w.write_suite("printf '1..2\\nok 1 - a\\nok 2 - b\\n'");
    w.done(&id);
}

#[test]
fn o_15_a_status_that_another_command_hides_is_refused_wherever_it_is_written() {
    for command in [
        "npm test | tail -20",
        "npm test 2>&1 | grep -i fail",
        "npm test || true",
        "npm test; echo done",
    ] {
        let mut w = World::new();
        let said = w.try_open("api", &["src/"], code(command));
        assert!(
            matches!(said, Err(Refusal::TestsHidden { .. })),
            "{command}: {said:?}"
        );
        let mut unnamed = code("");
        unnamed.tests = None;
        let id = w.open("api", &["src/"], unnamed);
        w.settings.tests = Some(tests(command));
        w.write("src/a.rs", "two\n");
        let said = w.refused(&id);
        assert!(matches!(said, Refusal::TestsHidden { .. }), "{command}: {said:?}");
        assert_eq!(w.commits("main"), 1);
    }
}

#[test]
fn o_15_a_red_status_counts_whatever_is_printed() {
    let (mut w, id) = with_suite("echo '14 passed'; printf '1..1\\nok 1\\n'; exit 1");
    assert!(matches!(w.refused(&id), Refusal::TestsRed { exit: Some(1), .. }));
    assert_eq!(w.commits("main"), 1);
}

#[test]
fn o_16_nothing_that_ran_is_never_green() {
    // What node 20, jest 29 and `true` print: no test ran and the status is 0.
    let node = "printf 'TAP version 13\\n1..0\\n# tests 0\\n# suites 0\\n# pass 0\\n# fail 0\\n'";
    let jest = "echo 'No tests found, exiting with code 0'";
    for command in [node, jest, "true"] {
        let (mut w, id) = with_work(command);
        let (gate, subject, _) = w.waits(&id);
        assert_eq!(subject, "tests", "{command}");
        assert_eq!(w.commits("main"), 1);
        w.answer(&gate, Choice::Continue);
        assert_eq!(w.done(&id).status, Outcome::Ok);
        let runs = w
            .events()
            .iter()
            .filter(|it| matches!(it, Event::EvidenceTaken { .. }))
            .count();
        assert_eq!(runs, 1, "{command}: what was let go on is not run again");
    }
}

#[test]
fn a_human_called_the_status_of_this_command_enough() {
    let (mut w, id) = with_work("true");
    w.policy.exit_is_enough = vec!["true".to_owned()];
    let result = w.done(&id);
    assert_eq!((result.status, result.tests.unwrap().report), (Outcome::Ok, None));
}

#[test]
fn o_16_an_error_since_nothing_was_there_is_called_so() {
    for script in [
        "echo 'collected 0 items'; echo '=== no tests ran in 0.01s ==='; exit 5",
        "echo '> echo \"Error: no test specified\" && exit 1'; echo 'Error: no test specified'; exit 1",
    ] {
        let (mut w, id) = with_suite(script);
        assert!(matches!(w.refused(&id), Refusal::NoTests { .. }), "{script}");
        assert_eq!(w.commits("main"), 1);
    }
}

#[test]
fn fewer_tests_than_the_last_green_run_ask() {
    let (mut w, id) = with_suite("printf '1..3\\nok 1\\nok 2\\nok 3\\n'");
    w.done(&id);
    w.write_suite("printf '1..1\\nok 1\\n'");
    w.clock.turn(60_000);
    let suite = w.suite();
    let id = w.open("again", &["src/"], code(suite));
    w.write("src/a.rs", "three\n");
    let (_, subject, why) = w.waits(&id);
    assert_eq!(subject, "tests");
    assert!(why.contains("had 3"), "{why}");
}

#[test]
fn what_a_human_let_go_on_is_asked_again_for_another_tree() {
    let (mut w, id) = with_work("true");
    let (gate, ..) = w.waits(&id);
    assert!(matches!(w.close(&id), Ok(Closed::Waiting(again)) if again == gate));
    w.answer(&gate, Choice::Continue);
    w.write("src/a.rs", "three\n");
    let (second, ..) = w.waits(&id);
    assert_ne!(gate, second);
    w.answer(&second, Choice::Continue);
    w.done(&id);
}

#[test]
fn without_a_test_command_a_human_is_asked() {
    let mut w = World::new();
    let mut ask = code("");
    ask.tests = None;
    let id = w.open("api", &["src/"], ask);
    w.write("src/a.rs", "two\n");
    let (gate, subject, _) = w.waits(&id);
    assert_eq!(subject, "tests");
    w.answer(&gate, Choice::Continue);
    assert_eq!(w.done(&id).tests, None);
}

#[test]
fn code_that_changed_nothing_asks() {
    for kind in [Kind::Code, Kind::Test] {
        let mut w = World::new();
        let mut ask = code(GREEN);
        ask.kind = kind;
        let id = w.open("api", &["src/"], ask);
        let (gate, subject, _) = w.waits(&id);
        assert_eq!(subject, "nothing");
        w.answer(&gate, Choice::Continue);
        let result = w.done(&id);
        assert_eq!(short(&result), (Outcome::Ok, vec![]));
        assert!(result.commit.is_empty());
    }
}

#[test]
fn what_the_tests_leave_is_listed_and_neither_committed_nor_refused_the_next_time() {
    let (mut w, id) = with_suite(
        "mkdir -p out; echo $$ > out/report.txt; echo $$ > src/left.txt; printf '1..1\\nnot ok 1\\n'",
    );
    assert!(matches!(w.refused(&id), Refusal::TestsRed { .. }));
    w.write_suite("echo $$ > out/report.txt; printf '1..1\\nok 1\\n'");
    w.write("src/new.rs", "mine\n");
    let closed = w.close(&id).unwrap();
    let Closed::Done(result, notices) = closed else {
        panic!("{closed:?}")
    };
    assert_eq!(short(&result).1, ["src/a.rs", "src/new.rs"]);
    let artifacts = vec!["out/report.txt".to_owned(), "src/left.txt".to_owned()];
    assert_eq!(notices, [Notice::Artifacts(artifacts)]);
}

#[test]
fn tests_that_change_what_is_committed_run_once_more_on_that() {
    let (mut w, id) = with_suite("echo formatted > src/a.rs; printf '1..1\\nok 1\\n'");
    let result = w.done(&id);
    assert_eq!(w.root_git(&["show", "HEAD:src/a.rs"]), "formatted");
    assert_eq!(
        result.tests.unwrap().tree,
        w.root_git(&["rev-parse", "HEAD^{tree}"])
    );
    let runs = w
        .events()
        .iter()
        .filter(|it| matches!(it, Event::EvidenceTaken { .. }))
        .count();
    assert_eq!(runs, 2);
}

#[test]
fn tests_that_never_leave_it_alone_void_the_evidence() {
    let (mut w, id) = with_suite("echo x >> src/a.rs; printf '1..1\\nok 1\\n'");
    assert!(matches!(w.refused(&id), Refusal::WroteMeanwhile { .. }));
    assert_eq!(w.commits("main"), 1);
}

#[test]
fn changes_of_other_people_in_the_checkout_are_counted_and_clean_evidence_sees_none() {
    for clean in [false, true] {
        let mut w = World::new();
        w.settings.clean = clean;
        w.write("docs/a.md", "of a human\n");
        w.write_suite("grep -q human docs/a.md && seen=human || seen=nobody; printf \"1..1\\nok 1\\n\" && cat src/a.rs > \"$0.$seen\"");
        let suite = w.suite();
        let id = w.open("api", &["src/"], code(suite));
        w.write("src/a.rs", "two\n");
        let evidence = w.done(&id).tests.unwrap();
        let (foreign, seen) = if clean {
            (0, "suite.sh.nobody")
        } else {
            (1, "suite.sh.human")
        };
        assert_eq!(evidence.foreign, foreign);
        assert_eq!(fs::read_to_string(w.path.join(seen)).unwrap(), "two\n");
        assert_eq!(
            w.root_git(&["worktree", "list", "--porcelain"])
                .matches("worktree ")
                .count(),
            1
        );
        assert_eq!(w.dirty(), [" M docs/a.md"]);
    }
}

#[test]
fn a_report_file_counts_only_if_this_run_wrote_it() {
    let mut w = World::new();
    let mut ask = code("true");
    ask.change = |open| open.tests.as_mut().unwrap().report = Some("ignored/report.tap".to_owned());
    let id = w.open("api", &["src/"], ask);
    w.write("src/a.rs", "two\n");
    w.write(
        "ignored/report.tap",
        "1..9\nok 1\nok 2\nok 3\nok 4\nok 5\nok 6\nok 7\nok 8\nok 9\n",
    );
    let (_, subject, why) = w.waits(&id);
    assert_eq!(subject, "tests", "an old report is none");
    assert!(why.contains("nothing in its output"), "{why}");
}

#[test]
fn a_report_handed_in_counts_for_people_only_and_only_if_it_is_newer_than_the_work() {
    let (mut w, id) = with_work("false");
    let report = w.root.join("ignored/report.tap");
    let ask = CloseAsk {
        tests: Some(report.clone()),
        ..CloseAsk::of(id.clone())
    };
    w.write("ignored/report.tap", "1..1\nok 1\n");
    let said = w.close_as(&w.agent("api"), &ask, Fuse::default());
    assert!(
        matches!(said, Err(CloseError::Refused(Refusal::ReportRejected { .. }))),
        "{said:?}"
    );
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let set = |time| {
        fs::File::options()
            .write(true)
            .open(&report)
            .unwrap()
            .set_modified(time)
            .unwrap()
    };
    set(old);
    let said = w.close_as(&w.plain(), &ask, Fuse::default());
    assert!(
        matches!(said, Err(CloseError::Refused(Refusal::ReportRejected { .. }))),
        "{said:?}"
    );
    w.write("ignored/report.tap", "TAP version 13\n1..0\n");
    let said = w.close_as(&w.plain(), &ask, Fuse::default());
    assert!(
        matches!(said, Err(CloseError::Refused(Refusal::NoTests { .. }))),
        "{said:?}"
    );
    w.write("ignored/report.tap", "1..1\nok 1\n");
    let said = w.close_as(&w.plain(), &ask, Fuse::default());
    let Ok(Closed::Done(result, _)) = said else {
        panic!("{said:?}")
    };
    assert_eq!(result.tests.unwrap().source, EvidenceSource::File);
}

#[test]
fn a_failed_close_needs_no_evidence_and_commits_nothing() {
    let (mut w, id) = with_work("false");
    let ask = CloseAsk {
        at_most: Outcome::Failed,
        ..CloseAsk::of(id.clone())
    };
    let said = w.close_as(&w.plain(), &ask, Fuse::default());
    let Ok(Closed::Done(result, _)) = said else {
        panic!("{said:?}")
    };
    assert_eq!(result.status, Outcome::Failed);
    assert_eq!(w.commits("main"), 1);
    assert_eq!(w.dirty(), [" M src/a.rs"]);
}
