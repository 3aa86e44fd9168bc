//! Runs of plans (the hypervisor's sections 6, 9 and 10), as far as they are rules.

use testkit::story::check;

#[test]
fn phases_go_in_the_order_of_their_needs() {
    check(
        "
        ana starts p \"1 scope:a\" \"2 scope:b needs:1\" -> yes
        p offers begin:1
        ana delegates p 2                        -> run.phase_state
        ana delegates p 1                        -> yes
        p offers attend:1
        ana delegates p 1                        -> run.phase_state
        p-1 is open
        p-1 writes a/x branch theme/p            -> yes
        p-1 closes p-1 1/1                       -> yes
        ana judges p 1                           -> yes
        ana judges p 1                           -> yes nothing
        p phase 1 accepted:ok
        p offers begin:2
        ana delegates p 2                        -> yes
        p-2 closes 1/1                           -> yes
        ana judges p 2                           -> yes
        p offers finish
        ana merges p                             -> yes
        ana merges p                             -> yes nothing
        ana closes p                             -> yes
        ana finishes-run p finished              -> yes
        ana finishes-run p finished              -> yes nothing
        p ended finished
        p offers nothing
    ",
    );
}

/// The end of a run closes its pilot first and ends the run then: a crash between the two is no abort.
#[test]
fn a_run_whose_pilot_was_closed_before_a_crash_is_finished_by_the_next_driver() {
    check(
        "
        ana starts p 1                           -> yes
        ana delegates p 1                        -> yes
        p-1 closes 1/1                           -> yes
        ana judges p 1                           -> yes
        ana closes p                             -> yes
        p is closed
        p offers finish
        @plain takes p gone                      -> yes
        p offers finish
        @plain finishes-run p finished           -> yes
        p ended finished
    ",
    );
}

#[test]
fn what_there_is_not_is_unknown() {
    check(
        "
        ana delegates p 1                        -> run.unknown
        ana takes p                              -> run.unknown
        ana cancels p                            -> run.unknown
        ana starts p 1                           -> yes
        ana delegates p 9                        -> run.phase_unknown
        ana ends p 1 0                           -> run.phase_state
        ana judges p 1                           -> run.phase_state
        ana finishes-run p finished              -> run.phase_state
        ana merges p                             -> run.phase_state
        ana adapts p 1                           -> gate.not_human
    ",
    );
}

#[test]
fn one_plan_has_one_unfinished_run() {
    check(
        "
        ana starts p 1             -> yes
        ben starts p 1             -> run.unfinished
        ana cancels p              -> yes
        ana cancels p              -> run.over
        ana delegates p 1          -> run.over
        ana takes p                -> run.over
        ana adapts p 1             -> run.over
        p ended cancelled
        p is failed
        ben starts p 1             -> yes
    ",
    );
}

#[test]
fn side_by_side_go_phases_that_do_not_meet_as_many_as_there_are_jobs() {
    check(
        "
        ana starts p jobs 2 \"1 scope:a\" \"2 scope:a/x\" \"3 scope:c\" \"4 scope:d\" -> yes
        p offers begin:1 begin:3
        ana delegates p 1    -> yes
        p offers attend:1 begin:3
        ana delegates p 2    -> claim.scope_overlaps
        ana delegates p 3    -> yes
        ana delegates p 4    -> run.jobs_full
        p-1 closes 1/1       -> yes
        ana judges p 1       -> yes
        p offers attend:3 begin:2
    ",
    );
}

#[test]
fn a_run_works_under_the_pilot_that_it_is_given() {
    check(
        "
        ana opens . as pilot             -> yes
        ana starts p 1 under ana         -> yes
        ana delegates p 1                -> yes
        ana cancels p                    -> yes
        p-1 is failed
        ana is open
        ben opens docs                   -> yes
        ben starts q 1 under ben         -> claim.leaf_has_no_children
        ben starts q 1 under ana         -> claim.not_owner
        ana asks                         -> yes
        ana starts q 1 under ana         -> claim.parent_not_open
    ",
    );
}

#[test]
fn a_satellite_starts_no_run_outside_its_line() {
    check(
        "
        ana opens . as pilot             -> yes
        ana launches dom src domain      -> yes
        dom starts p 1                   -> claim.only_own_children
        dom starts p \"1 scope:docs\" under dom -> yes
        dom delegates p 1                -> claim.outside_domain
    ",
    );
}

#[test]
fn a_failure_is_tried_again_later_and_later_then_a_human_is_asked() {
    check(
        "
        policy fails 9
        ana starts p \"1 retries:2\"   -> yes
        ana delegates p 1              -> yes
        ana ends p 1 1                 -> yes something
        ana ends p 1 0                 -> yes nothing
        p-1 closes failed              -> yes
        ana judges p 1                 -> yes
        p phase 1 pending
        p offers sleep:1s
        ana delegates p 1              -> run.phase_state
        x waits 1s
        p offers begin:1
        ana delegates p 1              -> yes
        p-1-2 closes failed            -> yes
        ana judges p 1                 -> yes
        p offers sleep:2s
        x waits 2s
        ana delegates p 1              -> yes
        p-1-3 closes failed            -> yes
        ana judges p 1                 -> yes
        p phase 1 failed
        p offers nothing
        @human answers p:1 continue    -> gate.not_offered
        @human answers p:1 retry       -> yes
        p offers begin:1
        ana delegates p 1              -> yes
        p-1-4 closes 1/1               -> yes
        ana judges p 1                 -> yes
        p phase 1 accepted:ok
        ana closes p                   -> yes
        p result ok
    ",
    );
}

#[test]
fn a_refused_close_fails_the_attempt_and_its_claim() {
    check(
        "
        ana starts p \"1 retries:1\"          -> yes
        ana delegates p 1                     -> yes
        ana judges p 1                        -> run.phase_state
        p-1 closes 1/2                        -> close.tests_red
        ana judges p 1 refused \"red tests\"  -> yes
        p-1 is failed
        p offers sleep:1s
    ",
    );
}

#[test]
fn what_a_human_aborted_is_not_tried_again() {
    check(
        "
        ana starts p \"1 retries:5\"    -> yes
        ana delegates p 1               -> yes
        @human aborts p-1               -> yes
        ana judges p 1                  -> yes
        p phase 1 failed
        @human answers p:1 abort        -> yes
        p is failed
        p ended aborted
        human has BLOCKED_ON
    ",
    );
}

#[test]
fn what_went_stale_is_tried_again() {
    check(
        "
        ana starts p \"1 retries:1\"            -> yes
        ana delegates p 1                       -> yes
        x waits 5h
        p-1 is stale
        ana judges p 1 refused \"no word\"      -> yes
        p phase 1 pending
    ",
    );
}

#[test]
fn a_phase_waits_for_its_human_before_it_is_delegated() {
    check(
        "
        ana starts p \"1 gate:human\"   -> yes
        p offers ask:1:phase
        ana delegates p 1               -> run.phase_state
        ana asks-phase p 1              -> yes
        ana asks-phase p 1 review       -> yes nothing
        p offers nothing
        ana delegates p 1               -> run.phase_state
        ana approves p:1                -> gate.not_human
        @human approves p:1             -> yes
        p offers begin:1
    ",
    );
}

#[test]
fn zero_failures_asks_only_about_what_was_not_counted() {
    check(
        "
        ana starts p \"1 scope:a\" \"2 scope:b gate:0 needs:1\" -> yes
        ana delegates p 1     -> yes
        p-1 closes 2/2        -> yes
        ana judges p 1        -> yes
        p offers begin:2
        ana starts q keep 9 \"1 scope:a\" \"2 scope:b gate:0 needs:1\" under p -> yes
        ana delegates q 1     -> yes
        q-1 closes 2/3 skipped 1 -> yes
        ana judges q 1        -> yes
        q offers ask:2:phase
    ",
    );
}

#[test]
fn a_phase_into_the_kernel_asks_and_gets_the_right() {
    check("
        ana starts p \"1 scope:KERNEL.md kind:brain-write\" \"2 scope:progression/ needs:1 kind:brain-write\" -> yes
        p offers ask:1:zone
        ana asks-phase p 1                     -> yes
        @human approves p:1                    -> yes
        ana delegates p 1                      -> yes
        p-1 writes KERNEL.md                   -> yes
        p-1 closes                             -> yes
        ana judges p 1 KERNEL.md               -> yes
        p phase 1 accepted:ok
        p offers ask:2:zone
        ana asks-phase p 2                     -> yes
        @human approves p:2                    -> yes
        ana delegates p 2                      -> yes
        p-2 writes progression/x               -> yes
    ");
}

#[test]
fn leaving_the_kernel_is_told_or_asked_as_the_plan_says() {
    let phases = "\"1 scope:KERNEL.md kind:brain-write\" \"2 scope:b needs:1\"";
    for (how, offers) in [("", "begin:2"), ("kernel-gate", "ask:2:zone")] {
        check(&format!(
            "
            ana starts p {how} {phases}  -> yes
            ana asks-phase p 1           -> yes
            @human approves p:1          -> yes
            ana delegates p 1            -> yes
            p-1 closes                   -> yes
            ana judges p 1               -> yes
            p offers {offers}
        "
        ));
    }
    check(&format!(
        "
        ana starts p kernel-gate {phases} -> yes
        ana asks-phase p 1           -> yes
        @human approves p:1          -> yes
        ana delegates p 1            -> yes
        p-1 closes                   -> yes
        ana judges p 1               -> yes
        ana asks-phase p 2           -> yes
        @human approves p:2          -> yes
        p offers begin:2
    "
    ));
}

#[test]
fn what_the_house_stands_on_asks() {
    check(
        "
        ana starts p risk protocol/ \"1 scope:protocol/core\" \"2 scope:b needs:\" -> yes
        p offers ask:1:architecture begin:2
    ",
    );
}

#[test]
fn the_real_diff_asks_though_the_phase_reports_ok() {
    for (changed, kind) in [
        ("src/a", None),
        ("KERNEL.md", Some("zone")),
        ("+agents/new.md", Some("zone")),
        ("progression/x", Some("zone")),
        ("risky/x", Some("architecture")),
    ] {
        let story = "
            ana starts p risk risky/ \"1 scope:src/\" -> yes
            ana delegates p 1     -> yes
            p-1 closes 1/1        -> yes
            ana judges p 1 CHANGED -> yes
        ";
        let rest = match kind {
            None => "p phase 1 accepted:ok".to_owned(),
            Some(_) => "p phase 1 running
                p offers nothing
                @human approves p:1 -> yes
                p phase 1 accepted:ok
                p offers finish"
                .to_owned(),
        };
        check(&format!("{}\n{rest}", story.replace("CHANGED", changed)));
    }
}

#[test]
fn a_deleted_kernel_file_is_let_go_with_its_path_as_the_words() {
    check(
        "
        ana starts p \"1 scope:src/\"                -> yes
        ana delegates p 1                            -> yes
        p-1 closes 1/1                               -> yes
        ana judges p 1 -agents/x.md +agents/y.md     -> yes
        @human approves p:1                          -> gate.words
        @human approves p:1 saying agents/x.md       -> yes
        p phase 1 accepted:ok
    ",
    );
}

#[test]
fn a_partial_result_always_asks_once_and_then_sets_off_the_rest() {
    check(
        "
        ana starts p \"1 partial:gate:human_->_go_on? partial:notify_->_human\" -> yes
        ana delegates p 1          -> yes
        p-1 closes partial 1/1     -> yes
        human has nothing
        ana judges p 1             -> yes
        p phase 1 running
        @human approves p:1        -> yes
        human has INFO
        p phase 1 accepted:partial
        p offers finish
    ",
    );
}

#[test]
fn a_yes_beforehand_counts_for_partial_and_review_only() {
    check(
        "
        ana starts p yes-to partial yes-to zone \"1 scope:a\" \"2 scope:KERNEL.md needs:1\" -> yes
        ana delegates p 1          -> yes
        p-1 closes partial 1/1     -> yes
        ana judges p 1             -> yes
        p phase 1 accepted:partial
        p offers ask:2:zone
        ana asks-phase p 2         -> yes
        p offers nothing
        ana asks-phase p 1 review  -> yes
    ",
    );
}

#[test]
fn a_skipped_phase_settles_and_each_that_needs_it_asks_once() {
    check(
        "
        ana starts p \"1 scope:a\" \"2 scope:b needs:1\" \"3 scope:c needs:2\" -> yes
        ana delegates p 1            -> yes
        p-1 closes failed            -> yes
        ana judges p 1               -> yes
        p offers nothing
        @human answers p:1 skip      -> yes
        p phase 1 skipped
        p offers ask:2:failed
        ana asks-phase p 2           -> yes
        @human answers p:2 retry     -> gate.not_offered
        @human approves p:2          -> yes
        p offers begin:2
        ana delegates p 2            -> yes
        p-2 closes 1/1               -> yes
        ana judges p 2               -> yes
        p offers begin:3
        ana delegates p 3            -> yes
        p-3 closes 1/1               -> yes
        ana judges p 3               -> yes
        p offers finish
        ana closes p                 -> yes
        p result partial
    ",
    );
}

#[test]
fn a_phase_that_is_skipped_under_way_ends_with_its_claim() {
    check(
        "
        ana starts p 1               -> yes
        ana delegates p 1            -> yes
        ana asks-phase p 1 review    -> yes
        @human answers p:1 skip      -> yes
        p-1 is failed
        p offers finish
        ana finishes-run p finished  -> yes
    ",
    );
}

#[test]
fn work_that_failed_too_often_is_not_begun_again() {
    check(
        "
        policy fails 2
        ana starts p \"1 retries:5\" \"2 scope:docs needs:1\"  -> yes
        ana delegates p 1            -> yes
        p-1 fails                    -> yes
        p-1 fails                    -> yes
        p-1 counts 1
        p-1 closes failed            -> yes
        ana judges p 1               -> yes
        p-1 counts 1
        x waits 1s
        ana delegates p 1            -> yes
        p-1-2 closes failed          -> yes
        ana judges p 1               -> yes
        p-1-2 counts 2
        p phase 1 failed
        @human approves p:1          -> yes
        p-1-2 counts 0
        p offers begin:1
    ",
    );
}

#[test]
fn a_new_run_asks_about_work_that_is_stopped() {
    check(
        "
        policy fails 1
        ana starts p 1               -> yes
        ana delegates p 1            -> yes
        p-1 closes failed            -> yes
        ana judges p 1               -> yes
        @human answers p:1 abort     -> yes
        ana starts p 1               -> yes
        p offers ask:1:breaker
        ana delegates p 1            -> run.phase_state
        ana asks-phase p 1           -> yes
        @human approves p:1          -> yes
        p offers begin:1
    ",
    );
}

#[test]
fn stopped_work_stops_the_phase_that_meets_it() {
    check(
        "
        policy fails 1
        ben opens src/api            -> yes
        ben fails                    -> yes
        ben closes failed            -> yes
        ana starts p \"1 scope:src/\" -> yes
        p offers ask:1:breaker
        ana asks-phase p 1           -> yes
        @human approves p:1          -> yes
        ana delegates p 1            -> yes
        p-1 writes src/api/x         -> yes
    ",
    );
}

#[test]
fn an_abort_trigger_launches_nothing_more_and_siblings_go_on() {
    check(
        "
        ana starts p jobs 2 \"1 scope:a fail:abort\" \"2 scope:b needs:\" \"3 scope:c needs:\" -> yes
        ana delegates p 1     -> yes
        ana delegates p 2     -> yes
        p-1 closes failed     -> yes
        p has CHECKPOINT ABORT
        ana judges p 1        -> yes
        p-2 is open
        p offers attend:2
        ana delegates p 3     -> run.phase_state
        p-2 closes 1/1        -> yes
        ana judges p 2        -> yes
        p offers nothing
        @human answers p:1 skip -> yes
        p offers end:aborted
        ana finishes-run p aborted -> yes
        p is failed
    ",
    );
}

#[test]
fn a_run_whose_pilot_fails_is_over() {
    check(
        "
        ana starts p 1 \"2 scope:docs gate:human needs:\"  -> yes
        ana delegates p 1      -> yes
        ana asks-phase p 2     -> yes
        @human aborts p        -> yes
        p-1 is failed
        p ended aborted
        @human approves p:2    -> gate.withdrawn
        p offers nothing
    ",
    );
}

#[test]
fn a_pilot_rejected_at_its_own_gate_ends_its_run() {
    check(
        "
        ana starts p 1         -> yes
        ana asks for p         -> yes
        p offers nothing
        @human rejects p       -> yes
        p ended aborted
    ",
    );
}

#[test]
fn a_paused_run_launches_nothing() {
    check(
        "
        ana starts p 1         -> yes
        @human pauses p        -> yes
        p offers nothing
        ana delegates p 1      -> claim.parent_not_open
        @human resumes p       -> yes
        p offers begin:1
        @human stops           -> yes
        ana delegates p 1      -> brain.stopped
        ana starts q 1         -> brain.stopped
        ana takes p gone       -> brain.stopped
        ana merges p           -> brain.stopped
    ",
    );
}

#[test]
fn one_driver_at_a_time() {
    check(
        "
        ana starts p 1            -> yes
        @plain takes p            -> run.driven
        @plain takes p gone       -> yes
        ana delegates p 1         -> run.lease_lost
        @plain delegates p 1      -> yes
        x waits 31s
        @human takes p            -> yes
        @plain judges p 1         -> run.lease_lost
    ",
    );
}

#[test]
fn taking_a_run_brings_its_stale_pilot_back() {
    check(
        "
        ana starts p 1            -> yes
        x waits 13h
        p is stale
        ana delegates p 1         -> claim.parent_not_open
        ana takes p               -> yes
        p is open
        ana delegates p 1         -> yes
    ",
    );
}

#[test]
fn an_agent_of_the_run_does_not_judge_its_own_work() {
    check(
        "
        ana starts p 1            -> yes
        ana delegates p 1         -> yes
        p-1 judges p 1            -> claim.not_owner
    ",
    );
}

#[test]
fn a_plan_is_adapted_only_after_a_human_said_so() {
    check(
        "
        ana starts p \"1 scope:a\" \"2 scope:b needs:1 gate:human\" \"3 scope:c needs:2\" -> yes
        ana delegates p 1            -> yes
        p-1 closes 1/1               -> yes
        ana judges p 1               -> yes
        ana asks-phase p 2           -> yes
        ana adapts p \"1 scope:a\"   -> gate.not_human
        @human answers p:2 adapt     -> yes
        p offers adapt
        p-1 adapts p \"1 scope:a\"   -> claim.not_owner
        ana adapts p \"1 scope:a\" \"2 scope:d needs:1\" -> yes
        p phase 1 accepted:ok
        p phase 3 skipped
        p offers begin:2
        ana delegates p 2            -> yes
        p-2 writes d/x branch theme/p -> yes
    ",
    );
}

#[test]
fn a_phase_under_way_is_neither_changed_nor_left_out() {
    check(
        "
        ana starts p jobs 2 \"1 scope:a\" \"2 scope:b gate:human needs:\" -> yes
        ana delegates p 1            -> yes
        ana asks-phase p 2           -> yes
        @human answers p:2 adapt     -> yes
        ana adapts p \"2 scope:b\"   -> run.phase_state
        ana adapts p \"1 scope:c\" \"2 scope:b\"   -> run.phase_state
        ana adapts p \"1 scope:a\" \"2 scope:b\"   -> yes
        p offers attend:1 begin:2
    ",
    );
}

#[test]
fn an_adapted_phase_is_done_again_and_one_that_waits_for_its_answer_waits_on() {
    check(
        "
        ana starts p jobs 2 \"1 scope:a needs:\" \"2 scope:b needs:\" -> yes
        ana delegates p 1                 -> yes
        ana delegates p 2                 -> yes
        p-1 closes partial 1/1            -> yes
        ana judges p 1                    -> yes
        p-2 closes partial 1/1            -> yes
        ana judges p 2                    -> yes
        @human answers p:1 adapt          -> yes
        ana adapts p \"1 scope:a needs:\" \"2 scope:b needs:\" -> yes
        p phase 1 pending
        p phase 2 running
        p offers begin:1
        @human approves p:2               -> yes
        p phase 2 accepted:partial
    ",
    );
}

#[test]
fn a_new_run_keeps_what_was_accepted_with_the_same_content() {
    check(
        "
        ana starts p \"1 scope:a\" \"2 scope:b needs:1\" keep 1 -> yes
        p phase 1 accepted:ok
        p offers begin:2
        ana cancels p          -> yes
        ana starts p keep 1 \"1 scope:a\" -> yes
        p phase 1 pending
    ",
    );
}

#[test]
fn nothing_is_merged_over_an_unanswered_question() {
    check(
        "
        policy fails 9
        ana starts p \"1 retries:1\"      -> yes
        ana delegates p 1                 -> yes
        p-1 signals BLOCKED_ON pilot      -> yes
        p-1 closes 1/1                    -> yes
        p has BLOCKED_ON CHECKPOINT
        ana judges p 1                    -> yes
        p has CHECKPOINT
        ana merges p                      -> yes
        ana starts q under p \"1 scope:x\" -> yes
        ana delegates q 1                 -> yes
        q-1 closes 1/1                    -> yes
        ana judges q 1                    -> yes
        q-1 signals BLOCKED_ON human from q-1 -> yes
        ana merges q                      -> run.phase_state
        @human acks human                 -> yes
        ana merges q                      -> yes
    ",
    );
}

#[test]
fn a_chain_step_that_said_never_asks_before_what_follows() {
    check(
        "
        ana starts p \"1 scope:a after\" \"2 scope:b needs:1\"  -> yes
        ana delegates p 1     -> yes
        p-1 closes 1/1        -> yes
        ana judges p 1        -> yes
        p offers ask:2:review
    ",
    );
}
