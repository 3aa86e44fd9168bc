//! Human gates (section 6; the kinds and answers of the hypervisor's section 9).

use testkit::story::check;

#[test]
fn a_claim_at_a_gate_waits_and_holds_its_scope() {
    check(
        "
        ana opens src              -> yes
        ana asks why \"may I?\"    -> yes
        ana is waiting_human
        human has GATE_PENDING
        ana writes src/a           -> 4 claim.not_open
        ana renews                 -> claim.wrong_state
        ana closes                 -> gate.pending
        ana asks                   -> claim.wrong_state
        @human approves ana        -> yes
        ana is open
        ana writes src/a           -> yes
    ",
    );
}

#[test]
fn a_gate_has_a_reason_on_one_line() {
    check(
        "
        ana opens src       -> yes
        ana asks why \"\"   -> text.bad
        ana is open
    ",
    );
}

#[test]
fn a_gate_of_a_run_comes_from_its_loop_alone() {
    check(
        "
        ana asks of-plan work  -> claim.wrong_state
        @human asks for nobody -> claim.unknown
    ",
    );
}

#[test]
fn a_gate_that_nobody_opened_is_unknown() {
    check(
        "
        @human approves ana  -> gate.unknown
    ",
    );
}

#[test]
fn an_answer_is_given_once_and_the_second_gets_the_first() {
    check(
        "
        ana opens src           -> yes
        ana asks                -> yes
        @human approves ana     -> yes something
        @human rejects ana      -> yes nothing
        ana is open
    ",
    );
}

#[test]
fn an_answer_is_bound_to_what_was_shown() {
    check(
        "
        ana opens src                       -> yes
        ana asks shown one                  -> yes
        @human approves ana seeing two      -> gate.changed
        ana is waiting_human
        @human approves ana seeing one      -> yes
    ",
    );
}

#[test]
fn retry_stands_in_place_of_continue_where_something_is_missing() {
    for kind in ["failed", "credentials", "plan"] {
        check(&format!(
            "
            ana opens src                  -> yes
            ana asks {kind}                -> yes
            @human answers ana continue    -> gate.not_offered
            @human answers ana retry       -> yes
            ana is open
        "
        ));
    }
    for kind in [
        "phase",
        "architecture",
        "partial",
        "review",
        "close",
        "breaker",
        "ask",
    ] {
        check(&format!(
            "
            ana opens src                  -> yes
            ana asks {kind}                -> yes
            @human answers ana retry       -> gate.not_offered
            @human answers ana continue    -> yes
            ana is open
        "
        ));
    }
}

#[test]
fn each_answer_leaves_its_state() {
    for (answer, state, mail) in [
        ("continue", "open", "nothing"),
        ("skip", "open", "nothing"),
        ("adapt", "open", "ADAPT"),
        ("abort", "failed", "nothing"),
        ("continuer", "open", "nothing"),
        ("passer", "open", "nothing"),
        ("adapter", "open", "ADAPT"),
        ("abandonner", "failed", "nothing"),
    ] {
        check(&format!(
            "
            ana opens src                               -> yes
            ana asks                                    -> yes
            @human answers ana {answer} saying \"so\"   -> yes
            ana is {state}
            ana has {mail}
        "
        ));
    }
}

#[test]
fn an_answer_under_a_pause_takes_effect_at_the_last_resume() {
    check(
        "
        top opens . as pilot          -> yes
        top launches ana KERNEL.md    -> yes
        ana asks zone about kernel    -> yes
        @human pauses ana             -> yes
        @human pauses top             -> yes
        @human approves ana           -> yes
        ana is paused
        ana writes KERNEL.md          -> 4 claim.not_open
        @human resumes top            -> yes
        ana is paused
        @human rejects ana            -> yes nothing
        @human resumes ana            -> yes
        ana is open
        ana writes KERNEL.md          -> yes
    ",
    );
}

#[test]
fn a_no_under_a_pause_waits_as_well() {
    check(
        "
        ana opens src           -> yes
        ana asks                -> yes
        @human pauses ana       -> yes
        @human rejects ana      -> yes
        ana is paused
        @human resumes ana      -> yes
        ana is failed
    ",
    );
}

#[test]
fn a_no_under_the_stop_waits_for_the_thaw_and_takes_all_below() {
    check(
        "
        top opens . as pilot     -> yes
        top launches ana src     -> yes
        top asks                 -> yes
        @human stops             -> yes
        @human rejects top       -> yes
        ana is paused
        @human thaws             -> yes
        top is failed
        ana is failed
    ",
    );
}

#[test]
fn a_deferred_answer_dies_with_its_claim() {
    check(
        "
        ana opens src           -> yes
        ana asks                -> yes
        @human pauses ana       -> yes
        @human approves ana     -> yes
        @human aborts ana       -> yes
        @human stops            -> yes
        @human thaws            -> yes
        ana is failed
    ",
    );
}

#[test]
fn a_resume_without_an_answer_goes_on_waiting() {
    check(
        "
        ana opens src           -> yes
        ana asks                -> yes
        @human pauses ana       -> yes
        @human resumes ana      -> yes
        ana is waiting_human
        @human approves ana     -> yes
        ana is open
    ",
    );
}
