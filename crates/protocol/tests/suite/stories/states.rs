//! The states of a claim (section 6).

use testkit::story::check;

#[test]
fn a_claim_goes_stale_when_its_time_is_over() {
    check(
        "
        ana opens src 30m -> yes
        x waits 29m
        ana is open
        x waits 1m
        ana is stale
    ",
    );
}

#[test]
fn a_stale_claim_guards_nothing() {
    check(
        "
        ana opens src 30m     -> yes
        ben writes src/api.rs -> claim.unknown
        ben waits 31m
        ben opens src 30m     -> yes
        ben writes src/api.rs -> yes
        ana writes src/api.rs -> claim.superseded
    ",
    );
}

#[test]
fn a_long_session_that_is_alive_is_never_stale() {
    check(
        "
        ana opens src 30m     -> yes
        x waits 20m
        ana writes src/a      -> yes kept
        x waits 20m
        ana writes src/a      -> yes kept
        x waits 20m
        ana renews            -> yes
        x waits 20m
        ana is open
    ",
    );
}

#[test]
fn a_go_near_the_end_renews_first() {
    check(
        "
        ana opens src 100s     -> yes
        x waits 79s
        ana writes src/a       -> yes kept
        x waits 81s
        ana writes src/a       -> yes renewed
        ana left 100s
    ",
    );
}

#[test]
fn a_stranger_gets_no_go_that_would_outlive_the_claim() {
    check(
        "
        ana opens src 100s        -> yes
        ben writes src/a as ana   -> yes kept
        x waits 90s
        ben writes src/a as ana   -> 4 claim.expired
        @plain writes src/a as ana -> yes renewed
    ",
    );
}

#[test]
fn an_expired_claim_that_nobody_took_is_renewed_by_its_owners_next_sign_of_life() {
    check(
        "
        ana opens src 30m           -> yes
        x waits 31m
        ben writes src/a as ana     -> 4 claim.expired
        ana is stale
        ana writes src/a            -> yes renewed
        ana is open
        x waits 31m
        @plain writes src/a as ana  -> yes renewed
        x waits 31m
        @human writes src/a as ana  -> yes renewed
        x waits 31m
        ana closes                  -> yes
    ",
    );
}

#[test]
fn a_renewed_claim_has_lost_the_locks_of_its_old_fence() {
    check(
        "
        ana opens src 30m    -> yes
        ana locks src/a 2h   -> yes
        src/a held ana
        x waits 31m
        src/a held nobody
        ana renews           -> yes
        src/a held nobody
        ana locks src/a      -> yes
        src/a held ana
    ",
    );
}

#[test]
fn waiting_does_not_count() {
    check(
        "
        ana opens src 30m   -> yes
        x waits 20m
        ana asks            -> yes
        x waits 5d
        ana is waiting_human
        @human approves ana -> yes
        ana left 10m
        x waits 10m
        ana is stale
    ",
    );
}

#[test]
fn a_pause_above_does_not_count_below() {
    check(
        "
        ana opens . as pilot 12h -> yes
        ana launches ben src 30m -> yes
        x waits 10m
        @human pauses ana        -> yes
        x waits 3h
        ben is paused
        ben left 20m
        @human resumes ana       -> yes
        ben is open
        ben left 20m
        x waits 20m
        ben is stale
    ",
    );
}

#[test]
fn stretches_that_overlap_count_once() {
    check(
        "
        ana opens src 30m   -> yes
        x waits 10m
        ana asks            -> yes
        x waits 1h
        @human pauses ana   -> yes
        x waits 1h
        @human stops        -> yes
        x waits 1h
        @human approves ana -> yes
        @human resumes ana  -> yes
        ana is paused
        x waits 1h
        @human thaws        -> yes
        ana is open
        ana left 20m
    ",
    );
}

#[test]
fn a_question_above_does_not_stop_the_clock_of_what_may_not_write() {
    check(
        "
        ana opens . as pilot 12h -> yes
        ana launches ben src 30m -> yes
        ana asks                 -> yes
        x waits 3h
        ben left 30m
        ben writes src/a         -> 4 claim.ancestor_not_open
    ",
    );
}

#[test]
fn another_boot_ends_what_ran() {
    check(
        "
        ana opens src 30d    -> yes
        ana locks src/a 30d  -> yes
        machine boots
        ana is stale
        src/a held nobody
        ana writes src/a     -> yes renewed
        ana is open
    ",
    );
}

#[test]
fn another_boot_leaves_what_waited() {
    check(
        "
        ana opens src 30m    -> yes
        ana asks             -> yes
        ben opens docs 30m   -> yes
        @human pauses ben    -> yes
        machine boots
        ana is waiting_human
        ben is paused
        cleo opens src       -> claim.scope_overlaps
        @human approves ana  -> yes
        ana is stale
        ana writes src/a     -> yes renewed
        @human resumes ben   -> yes
        ben is stale
    ",
    );
}

#[test]
fn a_pause_of_an_earlier_boot_still_stops_the_clock() {
    check(
        "
        ana opens . as pilot 12h    -> yes
        ana launches ben src 30m    -> yes
        x waits 31m
        @human pauses ana           -> yes
        machine boots
        ben renews                  -> yes
        ben is paused
        x waits 25h
        ben is paused
        ben left 30m
        @human resumes ana          -> yes
        ben left 30m
    ",
    );
}

#[test]
fn reaping_needs_a_proof_and_touches_only_what_is_open() {
    check(
        "
        ana opens src      -> yes
        ben opens docs     -> yes
        cleo opens web     -> yes
        ben asks           -> yes
        cleo waits 1m
        @human pauses cleo -> yes
        @plain reaps       -> yes nothing
        ana is open
        @agent reaps ana ben cleo dan -> yes
        ana is stale
        ben is waiting_human
        cleo is paused
        ana writes src/a   -> yes renewed
        ana is open
    ",
    );
}

#[test]
fn what_stays_stale_fails_after_the_grace() {
    check(
        "
        ana opens src 1h     -> yes
        x waits 1h
        ana is stale
        x waits 23h
        @plain reaps         -> yes nothing
        ana writes src/a     -> yes renewed
        x waits 25h
        @plain reaps         -> yes
        ana is failed
        ana renews           -> claim.wrong_state
        ana writes src/a     -> 4 claim.not_open
    ",
    );
}

#[test]
fn the_grace_begins_when_the_claim_went_stale() {
    check(
        "
        ana opens src 1h     -> yes
        @human pauses ana    -> yes
        x waits 40h
        @human resumes ana   -> yes
        x waits 2h
        ana is stale
        @plain reaps         -> yes nothing
        x waits 23h
        @plain reaps         -> yes
        ana is failed
    ",
    );
}

#[test]
fn a_spent_family_ends_once() {
    check(
        "
        ana opens . as pilot 1h   -> yes
        ana launches ben src 1h   -> yes
        x waits 26h
        @plain reaps              -> yes
        ana is failed
        ben is failed
    ",
    );
}

#[test]
fn a_spent_pilot_takes_what_lives_below_with_it() {
    check(
        "
        ana opens . as pilot 1h   -> yes
        ana launches ben src 30d  -> yes
        ben locks src/a 30d       -> yes
        x waits 26h
        @plain reaps              -> yes
        ben is failed
        src/a held nobody
        locks stand 0
    ",
    );
}

#[test]
fn pauses_are_a_set() {
    check(
        "
        ana opens . as pilot        -> yes
        ana launches ben src domain -> yes
        ana pauses ben              -> yes
        ana pauses ben              -> yes nothing
        @human pauses ben           -> yes
        @human pauses ana           -> yes
        ana resumes ben             -> yes
        ben is paused
        @human resumes ana          -> yes
        ben is paused
        @human resumes ben          -> yes
        ben is open
        @human resumes ben          -> claim.not_paused
    ",
    );
}

#[test]
fn what_opens_under_a_pause_later_is_paused_too() {
    check(
        "
        ana opens . as pilot          -> yes
        ana launches dom src domain   -> yes
        dom launches ben src/api      -> yes
        @human pauses ana             -> yes
        dom is paused
        ben is paused
        ben writes src/api/x          -> 4 claim.not_open
        ben resumes                   -> claim.not_paused
        @human resumes ben            -> claim.not_paused
        @human resumes ana            -> yes
        ben writes src/api/x          -> yes
    ",
    );
}

#[test]
fn a_paused_claim_does_nothing() {
    check(
        "
        ana opens src            -> yes
        ana locks src/a          -> yes
        @human pauses ana        -> yes
        ana writes src/a         -> 4 claim.not_open
        ana renews               -> claim.wrong_state
        ana asks                 -> claim.wrong_state
        ana locks src/b          -> claim.wrong_state
        ana closes               -> claim.wrong_state
        ana releases src/a       -> yes
        @human resumes ana       -> yes
        ana writes src/a         -> yes
    ",
    );
}

#[test]
fn a_stale_claim_takes_a_pause_and_comes_back_paused() {
    check(
        "
        ana opens src 30m   -> yes
        x waits 31m
        @human pauses ana   -> yes
        ana is stale
        ana asks            -> claim.wrong_state
        ana renews          -> yes
        ana is paused
        @human resumes ana  -> yes
        ana is open
    ",
    );
}

#[test]
fn a_close_of_a_stale_claim_under_a_pause_is_refused() {
    check(
        "
        ana opens src 30m   -> yes
        x waits 31m
        @human pauses ana   -> yes
        ana closes          -> claim.wrong_state
        ana is stale
        @human resumes ana  -> yes
        ana closes          -> yes
    ",
    );
}

#[test]
fn an_abort_takes_the_whole_tree() {
    check(
        "
        ana opens . as pilot          -> yes
        ana launches dom src domain   -> yes
        dom launches ben src/api      -> yes
        ben locks src/api/x           -> yes
        ana launches cleo docs        -> yes
        cleo asks                     -> yes
        eve opens web                 -> yes
        eve locks web/x               -> yes
        @human aborts ana             -> yes
        ana is failed
        dom is failed
        ben is failed
        cleo is failed
        locks stand 1
        eve is open
        @human approves cleo          -> gate.withdrawn
        @human aborts ana             -> claim.wrong_state
        @human pauses ana             -> claim.wrong_state
        @human resumes ana            -> claim.wrong_state
        ana renews                    -> claim.wrong_state
        ana closes                    -> claim.wrong_state
        ana asks                      -> claim.wrong_state
        ana fails                     -> claim.wrong_state
        ana notes                     -> claim.wrong_state
    ",
    );
}

#[test]
fn the_parent_is_told_of_an_abort_and_of_a_reject() {
    check(
        "
        ana opens . as pilot   -> yes
        ana launches ben src   -> yes
        ana launches cleo docs -> yes
        @human aborts ben      -> yes
        ana has BLOCKED_ON
        cleo asks              -> yes
        @human rejects cleo    -> yes
        ana has BLOCKED_ON GATE_PENDING BLOCKED_ON
        @human aborts ana      -> yes
        human has BLOCKED_ON
    ",
    );
}

#[test]
fn every_state_can_be_aborted() {
    check(
        "
        ana opens a 30m    -> yes
        ben opens b 30m    -> yes
        cleo opens c 30m   -> yes
        dan opens d 9h     -> yes
        ben asks           -> yes
        @human pauses cleo -> yes
        x waits 1h
        ana is stale
        ben is waiting_human
        cleo is paused
        @human aborts ana  -> yes
        @human aborts ben  -> yes
        @human aborts cleo -> yes
        @human aborts dan  -> yes
        cleo is failed
    ",
    );
}

#[test]
fn a_closed_claim_is_closed() {
    check(
        "
        ana opens src          -> yes
        ana closes             -> yes
        ana closes             -> yes nothing
        ana renews             -> claim.wrong_state
        ana locks src/a        -> claim.wrong_state
        @human aborts ana      -> claim.wrong_state
        @human pauses ana      -> claim.wrong_state
        ana is closed
    ",
    );
}

#[test]
fn the_emergency_stop_holds_everyone() {
    check(
        "
        ana opens src           -> yes
        ben opens docs          -> yes
        ben asks                -> yes
        @agent stops            -> yes
        @human stops            -> yes nothing
        ana writes src/a        -> 4 brain.stopped
        @human writes src/a as ana -> 4 brain.stopped
        cleo opens web          -> brain.stopped
        @human opens web        -> brain.stopped
        ana renews              -> brain.stopped
        ana closes              -> brain.stopped
        ana tests 1/1           -> brain.stopped
        ana commits             -> brain.stopped
        ana lands               -> brain.stopped
        ana locks src/a         -> brain.stopped
        ana notes               -> brain.stopped
        ana is paused
        ben is paused
        ana thaws               -> gate.not_human
        @agent thaws            -> gate.not_human
        @plain thaws            -> yes
        @plain thaws            -> yes nothing
        ana writes src/a        -> yes
        ben is waiting_human
    ",
    );
}

#[test]
fn the_stop_leaves_what_can_only_end_things() {
    check(
        "
        ana opens src       -> yes
        ana locks src/a     -> yes
        @human stops        -> yes
        ana releases src/a  -> yes
        ana signals BLOCKED_ON human  -> yes
        @human aborts ana   -> yes
        ana is failed
    ",
    );
}

#[test]
fn a_repository_is_noted_when_it_is_first_met() {
    check(
        "
        ana opens src                                        -> yes
        ana writes src/x repo vendor branch other            -> yes
        ana notes                                            -> yes
        ana notes                                            -> yes nothing
        ana writes src/x repo vendor checkout /vendor branch other -> 6 branch.wrong
        ben notes ana                                        -> claim.not_owner
        ben notes                                            -> claim.unknown
    ",
    );
}
