//! Locks (section 8).

use testkit::story::check;

#[test]
fn a_path_has_one_holder() {
    check(
        "
        ana opens src as pilot      -> yes
        ana launches ben src        -> yes
        ana locks src/a             -> yes
        ben locks src/a             -> lock.held
        ben locks src/b             -> yes
        ana releases src/a          -> yes
        ben locks src/a             -> yes
        ben writes src/a            -> yes
    ",
    );
}

#[test]
fn the_same_holder_renews() {
    check(
        "
        ana opens src             -> yes
        ana locks src/a 10m       -> yes
        x waits 9m
        ana locks src/a 10m       -> yes
        x waits 9m
        src/a held ana
        locks stand 1
    ",
    );
}

#[test]
fn all_paths_or_none() {
    check(
        "
        @plain locks src/c as ci             -> yes
        @plain locks src/a src/b src/c as cd -> lock.held
        locks stand 1
        @plain locks src/a src/b src/a as cd -> yes
        locks stand 3
    ",
    );
}

#[test]
fn a_lock_on_a_folder_holds_everything_below() {
    check(
        "
        @plain locks src as ci    -> yes
        @plain locks src/a/b as cd -> lock.held
        @plain locks srcx as cd   -> yes
        src/a/b held ci
    ",
    );
}

#[test]
fn a_folder_is_not_locked_over_someone_below() {
    check(
        "
        @plain locks src/a/b as ci -> yes
        @plain locks src as cd     -> lock.held
        @plain locks . as cd       -> lock.held
        @plain locks src as ci     -> yes
    ",
    );
}

#[test]
fn a_session_locks_only_what_its_claim_covers() {
    check(
        "
        ana opens src      -> yes
        ana locks docs/x   -> lock.not_covered
        ana locks .        -> lock.not_covered
        ana locks src      -> yes
        ben locks src/x    -> claim.unknown
    ",
    );
}

#[test]
fn a_session_without_a_claim_locks_where_nobody_has_one() {
    check(
        "
        ana opens src 30m           -> yes
        @plain locks src/a as ci    -> lock.path_claimed
        @plain locks docs/a as ci   -> yes
        ben opens docs              -> yes
        ben writes docs/a           -> 2 lock.held
        ben writes docs/b           -> yes
        x waits 31m
        @plain locks src/a as ci    -> yes
        ana writes src/a            -> 2 lock.held renewed
    ",
    );
}

#[test]
fn a_name_is_plain_and_is_no_claims_id() {
    check(
        "
        @plain locks x as sess-20261130-1400-ana -> lock.bad_holder
        @plain locks x as -x                     -> lock.bad_holder
        @plain locks x as a/b                    -> lock.bad_holder
        @plain locks x as été@host               -> yes
    ",
    );
}

#[test]
fn a_name_proves_nothing() {
    check(
        "
        ana locks src/a as ci     -> yes
        ben locks src/a as ci     -> lock.not_owner
        ben releases src/a as ci  -> lock.not_owner
        ana locks src/a as ci     -> yes
        ana releases src/a as ci  -> yes
        locks stand 0
    ",
    );
}

#[test]
fn a_time_has_bounds() {
    check(
        "
        @plain locks x as ci 999ms -> claim.ttl
        @plain locks x as ci 31d   -> claim.ttl
        @plain locks x as ci 1s    -> yes
    ",
    );
}

#[test]
fn an_expired_lock_holds_nothing_and_the_next_one_takes_it() {
    check(
        "
        @plain locks src/a as ci 1m  -> yes
        x waits 59s
        @plain locks src/a as cd     -> lock.held
        x waits 1s
        src/a held nobody
        locks stand 1
        @plain locks src/a as cd     -> yes
        src/a held cd
    ",
    );
}

#[test]
fn a_holder_that_woke_up_late_is_refused() {
    check(
        "
        @plain locks src/a as ci 1m -> yes
        x waits 1m
        ana opens . as pilot        -> yes
        ana locks src/a             -> yes
        @plain releases src/a as ci -> lock.not_owner
        @plain locks src/a as ci    -> lock.path_claimed
        src/a held ana
    ",
    );
}

#[test]
fn a_lock_that_was_taken_over_below_never_comes_back() {
    check(
        "
        ana opens . as pilot 30m      -> yes
        ana locks src 5h              -> yes
        x waits 31m
        ana is stale
        ben opens src                 -> yes
        ben locks src/a               -> yes
        locks stand 1
        ana renews                    -> yes
        src/a held ben
        ana locks src                 -> lock.held
        ana writes docs/x             -> yes
    ",
    );
}

#[test]
fn a_lock_of_an_ended_claim_is_gone() {
    check(
        "
        ana opens src        -> yes
        ana locks src/a      -> yes
        ana closes           -> yes
        locks stand 0
        ben opens src        -> yes
        ben locks src/a      -> yes
        @human aborts ben    -> yes
        locks stand 0
    ",
    );
}

#[test]
fn a_lock_of_a_stale_claim_holds_nothing() {
    check(
        "
        ana opens src 30m       -> yes
        ana locks src/a 5h      -> yes
        x waits 31m
        src/a held nobody
        ben opens src           -> yes
        locks stand 0
        ben locks src/a         -> yes
    ",
    );
}

#[test]
fn a_lock_of_a_paused_or_waiting_claim_holds() {
    check(
        "
        ana opens src as pilot        -> yes
        ana locks src/a 5h            -> yes
        ana asks                      -> yes
        ben opens src                 -> yes
        ben locks src/a               -> lock.held
        @human approves ana           -> yes
        @human pauses ana             -> yes
        ben locks src/a               -> lock.held
        ben writes src/a              -> 2 lock.held
    ",
    );
}

#[test]
fn releasing_what_is_free_is_no_refusal() {
    check(
        "
        ana opens src            -> yes
        ana releases src/a       -> yes nothing
        ana releases src/gone    -> yes nothing
        ana locks src/a 1m       -> yes
        x waits 2m
        ben releases src/a as ci -> yes nothing
        ana releases src/a       -> yes something
    ",
    );
}

#[test]
fn what_someone_else_holds_is_not_ones_to_release() {
    check(
        "
        ana opens src             -> yes
        ana locks src/a           -> yes
        @plain releases src/a as ci -> lock.not_owner
        ben releases src/a as ana -> claim.not_owner
        @human releases src/a as ci force -> yes
        locks stand 0
    ",
    );
}

#[test]
fn cleaning_takes_only_what_holds_nothing() {
    check(
        "
        @plain locks src/a as ci 1m -> yes
        @plain locks src/b as ci 1h -> yes
        x waits 2m
        @agent cleans               -> yes something
        locks stand 1
        src/b held ci
        @agent cleans               -> yes nothing
    ",
    );
}

#[test]
fn nobody_locks_for_a_claim_that_may_not_act() {
    check(
        "
        ana opens src 30m   -> yes
        ana asks            -> yes
        ana locks src/a     -> claim.wrong_state
        @human approves ana -> yes
        x waits 31m
        ana locks src/a     -> claim.wrong_state
        ana renews          -> yes
        ana locks src/a     -> yes
    ",
    );
}
