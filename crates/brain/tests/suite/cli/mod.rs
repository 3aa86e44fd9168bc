//! The real program, from the words that are typed to what is seen.

mod stage;
mod tale;

use stage::Stage;
use tale::tell;

#[test]
fn claims_are_opened_shown_renewed_and_let_go() {
    tell("claim", Stage::brain());
}

#[test]
fn locks_are_taken_given_back_and_taken_away() {
    tell("lock", Stage::brain());
}

#[test]
fn a_preflight_says_why_not_and_what_mends_it() {
    tell("preflight", Stage::brain());
}

#[test]
fn gates_wait_for_a_human_and_pauses_cascade() {
    tell("gate", Stage::brain());
}

#[test]
fn signals_reach_whom_they_are_for() {
    tell("signal", Stage::brain());
}

#[test]
fn a_close_commits_what_is_mine_or_says_what_is_missing() {
    tell("close", Stage::brain());
}

#[test]
fn plans_are_checked_and_shown() {
    tell("plan", Stage::brain());
}

#[test]
fn status_log_doctor_and_the_rest_look_and_change_nothing() {
    tell("look", Stage::brain());
}

#[test]
fn a_brain_is_made_once_and_found_from_anywhere() {
    tell("init", Stage::repository());
}
