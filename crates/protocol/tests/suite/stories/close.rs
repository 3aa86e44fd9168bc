//! Closing and what it sets off (sections 11 and 12).

use protocol::facts::claim::{Evidence, EvidenceSource};
use protocol::facts::report::{Format, Report};
use protocol::rules::close::{Worth, weigh};
use testkit::story::check;

#[test]
fn a_leaf_that_writes_no_code_needs_no_tests() {
    for kind in ["brain-write", "deploy", "search"] {
        check(&format!(
            "
            ana opens src/ kind {kind} -> yes
            ana closes files src/a     -> yes
            ana is closed
            ana result ok files src/a
        "
        ));
    }
}

#[test]
fn code_and_tests_close_with_green_tests_only() {
    for kind in ["code", "test"] {
        check(&format!(
            "
            ana opens src kind {kind}    -> yes
            ana closes                   -> close.no_evidence
            ana closes 11/12             -> close.tests_red
            ana closes 12/12 exit 1      -> close.tests_red
            ana closes 0/0 exit 5        -> close.no_tests
            ana closes 0/0               -> close.no_evidence
            ana closes uncounted         -> close.no_evidence
            ana closes 0/3 skipped 3     -> close.no_evidence
            ana is open
            ana closes 12/12             -> yes
            ana is closed
        "
        ));
    }
}

#[test]
fn a_failed_result_needs_no_evidence() {
    check(
        "
        ana opens src kind code   -> yes
        ana closes partial        -> close.no_evidence
        ana closes failed         -> yes
        ana result failed
    ",
    );
}

#[test]
fn a_result_is_only_ever_lowered() {
    check(
        "
        ana opens src             -> yes
        ana begins partial        -> yes
        ana finishes ok           -> yes
        ana result partial
        ben opens docs            -> yes
        ben begins ok             -> yes
        ben finishes failed       -> yes
        ben result failed
    ",
    );
}

#[test]
fn a_close_has_an_order() {
    check(
        "
        ana opens src        -> yes
        ana tests 1/1        -> close.not_closing
        ana commits          -> close.not_closing
        ana lands            -> close.not_closing
        ana finishes         -> close.not_closing
        ana begins           -> yes something
        ana begins           -> yes nothing
        ana begins noting x  -> yes something
        ana begins           -> yes nothing
        ana tests 1/1        -> yes something
        ana tests 1/1        -> yes nothing
        ana commits          -> yes something
        ana commits          -> yes nothing
        ana lands            -> yes something
        ana lands            -> yes nothing
        ana finishes         -> yes something
        ana finishes         -> yes nothing
        ana begins           -> yes nothing
    ",
    );
}

#[test]
fn fewer_tests_than_the_last_green_run_ask() {
    check(
        "
        ana opens src kind code   -> yes
        ana closes 12/12          -> yes
        ben opens src kind code   -> yes
        ben closes 11/11          -> close.no_evidence
        ben closes 11/11 command other -> yes
        cleo opens src kind code  -> yes
        cleo closes 13/13         -> yes
    ",
    );
}

#[test]
fn a_humans_word_stands_in_for_counts_but_never_for_red() {
    check(
        "
        ana opens src kind code      -> yes
        ana closes uncounted         -> close.no_evidence
        ana asks evidence            -> yes
        @human approves ana          -> yes
        ana finishes                 -> yes
        ben opens src kind code      -> yes
        ben closes 11/12             -> close.tests_red
        ben asks evidence            -> yes
        @human approves ben          -> yes
        ben finishes                 -> close.tests_red
        ben closes 0/0 exit 5        -> close.no_tests
    ",
    );
}

#[test]
fn a_humans_word_is_bound_to_the_run_that_was_shown() {
    check(
        "
        ana opens src kind code          -> yes
        ana closes uncounted             -> close.no_evidence
        ana asks evidence                -> yes
        @human approves ana              -> yes
        ana closes uncounted tree other  -> close.no_evidence
        ana closes uncounted             -> yes
    ",
    );
}

#[test]
fn skip_is_no_word() {
    check(
        "
        ana opens src kind code   -> yes
        ana closes uncounted      -> close.no_evidence
        ana asks evidence         -> yes
        @human answers ana skip   -> yes
        ana closes uncounted      -> close.no_evidence
    ",
    );
}

#[test]
fn without_a_test_command_a_human_is_asked() {
    check(
        "
        ana opens src kind code   -> yes
        ana closes                -> close.no_evidence
        ana asks evidence         -> yes
        @human approves ana       -> yes
        ana finishes              -> yes
    ",
    );
}

#[test]
fn a_status_is_enough_where_a_human_said_so() {
    check(
        "
        policy enough \"make check\"
        ana opens src kind code                             -> yes
        ana closes uncounted command \"make check\" exit 1  -> close.tests_red
        ana closes uncounted command \"make\"               -> close.no_evidence
        ana closes uncounted command \"make check\"         -> yes
    ",
    );
}

#[test]
fn an_agent_hands_in_no_report() {
    check(
        "
        ana opens src kind code           -> yes
        ana begins                        -> yes
        ana tests 12/12 handed            -> close.report_rejected
        @plain tests ana 0/0 exit 1 handed -> yes
        @plain finishes ana               -> close.no_tests
        @plain tests ana 12/12 handed     -> yes
        ana finishes                      -> yes
    ",
    );
}

#[test]
fn red_tests_are_told_to_the_parent() {
    check(
        "
        ana opens . as pilot           -> yes
        ana launches ben src kind code -> yes
        ben closes 1/2                 -> close.tests_red
        ana has BLOCKED_ON
        ben closes 2/2                 -> yes
        ana has BLOCKED_ON CHECKPOINT
    ",
    );
}

#[test]
fn a_pilot_closes_when_everything_below_has_ended() {
    check(
        "
        ana opens . as pilot 12h     -> yes
        ana launches dom src domain  -> yes
        dom launches ben src/api 1h  -> yes
        ana closes                   -> close.children_live
        dom closes                   -> close.children_live
        x waits 2h
        ben is stale
        dom closes                   -> close.children_live
        @human closes ben files src/api/x -> yes
        dom closes files src/y       -> yes
        ana closes                   -> yes
        dom result ok files src/api/x src/y
        ana result ok files src/api/x src/y
    ",
    );
}

#[test]
fn a_child_that_opens_during_the_close_stops_it() {
    check(
        "
        ana opens . as pilot     -> yes
        ana begins               -> yes
        ana launches ben src     -> yes
        ana finishes             -> close.children_live
    ",
    );
}

#[test]
fn a_failed_child_is_accepted_by_name_and_makes_the_rest_partial() {
    check(
        "
        ana opens . as pilot      -> yes
        ana launches ben src      -> yes
        ben closes failed         -> yes
        ana closes                -> close.children_failed
        ana closes accepting      -> yes
        ana result partial
        cleo opens . as pilot     -> yes
        cleo launches dan src     -> yes
        @human aborts dan         -> yes
        cleo closes               -> close.children_failed
        cleo closes failed        -> yes
        cleo result failed
    ",
    );
}

#[test]
fn the_worst_child_counts() {
    check(
        "
        ana opens . as pilot      -> yes
        ana launches ben src      -> yes
        ana launches cleo docs    -> yes
        ben closes partial        -> yes
        cleo closes               -> yes
        ana closes                -> yes
        ana result partial
    ",
    );
}

#[test]
fn the_parent_gets_a_checkpoint() {
    check(
        "
        ana opens . as pilot   -> yes
        ana launches ben src   -> yes
        ben closes             -> yes
        ana has CHECKPOINT
        ana closes             -> yes
        human has nothing
    ",
    );
}

#[test]
fn a_failed_end_without_a_trigger_blocks_on_the_pilot() {
    check(
        "
        ana opens . as pilot          -> yes
        ana launches dom src domain   -> yes
        dom launches ben src/x        -> yes
        ben closes failed             -> yes
        dom has CHECKPOINT
        ana has BLOCKED_ON
        cleo opens docs               -> yes
        cleo closes failed            -> yes
        human has BLOCKED_ON
    ",
    );
}

#[test]
fn each_result_reads_its_own_triggers() {
    let opens = r#"ana opens src done "signal -> DONE human" partial "notify -> human" fail "signal -> ESCALATE human""#;
    for (result, mail) in [("ok", "DONE"), ("partial", "INFO"), ("failed", "ESCALATE")] {
        check(&format!(
            "
            {opens}  -> yes
            ana closes {result} -> yes
            human has {mail}
        "
        ));
    }
}

#[test]
fn partial_reads_on_done_where_it_has_none_and_a_launch_becomes_a_question() {
    check(
        "
        ana opens src done \"signal -> DONE human\"               -> yes
        ana closes partial                                        -> yes
        human has DONE
        ben opens src done \"trigger -> type:test scope:src\"     -> yes
        ben closes partial                                        -> text.bad
        ben asks phase about \"the result is partial: trigger → type:test scope:src?\" -> yes
        @human approves ben                                       -> yes
        ben closes partial                                        -> yes
    ",
    );
}

#[test]
fn a_human_gate_is_asked_before_the_end() {
    check(
        "
        ana opens src done \"gate:human -> deploy?\"   -> yes
        ana closes                                     -> text.bad
        ana asks phase about deploy?                   -> yes
        ana finishes                                   -> gate.pending
        ana closes                                     -> gate.pending
        @human approves ana                            -> yes
        ana closes                                     -> yes
    ",
    );
}

#[test]
fn an_abort_trigger_tells_the_pilot() {
    check(
        "
        ana opens . as pilot                  -> yes
        ana launches ben src fail abort       -> yes
        ana launches cleo docs                -> yes
        ben closes failed                     -> yes
        ana has CHECKPOINT ABORT
        cleo is open
    ",
    );
}

#[test]
fn a_trigger_reaches_whom_it_names() {
    check(
        "
        ana opens . as pilot                                        -> yes
        ana launches dom src domain                                 -> yes
        dom launches ben src/a done \"notify -> parent\"            -> yes
        dom launches cleo src/b done \"notify -> sess-20261130-1400-ana\" -> yes
        ben closes                                                  -> yes
        dom has CHECKPOINT INFO
        cleo closes                                                 -> yes
        ana has INFO
    ",
    );
}

fn evidence(exit: Option<i32>, counts: Option<(u64, u64, u64)>) -> Evidence {
    Evidence {
        command: "npm test".to_owned(),
        repo: String::new(),
        tree: "tree".to_owned(),
        exit,
        report: counts.map(|(passed, failed, skipped)| {
            let mut report = Report::empty(Format::Tap);
            report.pass(passed);
            report.fail(failed);
            report.skip(skipped);
            report
        }),
        source: EvidenceSource::Run,
        took_ms: 1,
        foreign: 0,
        artifacts: Vec::new(),
    }
}

/// One word for what a run is worth.
fn worth(
    exit: Option<i32>,
    counts: Option<(u64, u64, u64)>,
    last: Option<u64>,
    enough: bool,
) -> &'static str {
    match weigh(&evidence(exit, counts), last, enough) {
        Worth::Green => "green",
        Worth::Red => "red",
        Worth::NoTests => "no tests",
        Worth::Ask(_) => "ask",
    }
}

#[test]
fn a_run_is_weighed_by_its_status_and_by_its_counts() {
    for (exit, counts, last, enough, expected) in [
        (Some(0), Some((12, 0, 0)), None, false, "green"),
        (Some(0), Some((12, 0, 3)), None, false, "green"),
        (Some(0), Some((12, 0, 0)), Some(12), false, "green"),
        (Some(0), Some((10, 0, 2)), Some(12), false, "green"),
        (Some(0), Some((11, 0, 0)), Some(12), false, "ask"),
        (Some(0), Some((11, 1, 0)), None, true, "red"),
        (Some(1), Some((12, 0, 0)), None, true, "red"),
        (None, Some((12, 0, 0)), None, true, "red"),
        (Some(1), None, None, true, "red"),
        (Some(5), Some((0, 0, 0)), None, true, "no tests"),
        (Some(0), Some((0, 0, 0)), None, true, "ask"),
        (Some(0), Some((0, 0, 7)), None, false, "ask"),
        (Some(0), None, None, false, "ask"),
        (Some(0), None, None, true, "green"),
    ] {
        assert_eq!(
            worth(exit, counts, last, enough),
            expected,
            "{exit:?} {counts:?} {last:?}"
        );
    }
}
