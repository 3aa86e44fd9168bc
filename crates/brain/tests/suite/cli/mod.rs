//! The real program, from the words that are typed to what is seen.

mod advice;
mod input;
mod lists;
mod race;
mod stage;
mod surroundings;
mod tale;
mod who;

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
fn zones_modes_and_satellites_have_limits_of_their_own() {
    tell("zone", Stage::brain());
}

#[test]
fn a_claim_in_a_worktree_lands_where_it_came_from() {
    tell("worktree", Stage::brain());
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
