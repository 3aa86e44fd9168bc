//! The circuit breaker (section 9).

use testkit::story::check;

#[test]
fn three_failures_stop_the_work_and_tell_the_parent_once() {
    check(
        "
        ana opens . as pilot   -> yes
        ana launches ben src   -> yes
        ben fails              -> yes
        ben fails              -> yes
        ben counts 2
        ben writes src/a       -> yes
        ana has nothing
        ben fails              -> yes
        ben writes src/a       -> 3 breaker.open
        ana has CIRCUIT_BREAK BLOCKED_ON
        ben fails              -> yes
        ben counts 4
        ana has CIRCUIT_BREAK BLOCKED_ON
    ",
    );
}

#[test]
fn a_root_tells_the_people() {
    check(
        "
        policy fails 1
        ana opens src   -> yes
        ana fails       -> yes
        human has CIRCUIT_BREAK BLOCKED_ON
    ",
    );
}

#[test]
fn a_failure_has_a_reason() {
    check(
        "
        ana opens src              -> yes
        ana fails because \"\"     -> text.bad
        ana counts 0
        ana fails because timeout  -> yes
        ana counts 1
        ben fails                  -> claim.unknown
    ",
    );
}

#[test]
fn the_count_goes_to_whoever_works_there_next() {
    check(
        "
        ana opens src         -> yes
        ana fails             -> yes
        ana fails             -> yes
        ana closes failed     -> yes
        ben opens src/api     -> yes
        ben counts 2
        cleo opens docs       -> yes
        cleo counts 0
        ben fails             -> yes
        ben writes src/api/x  -> 3 breaker.open
        ben closes failed     -> yes
        cleo closes           -> yes
        dan opens .           -> yes
        dan writes docs/x     -> 3 breaker.open
    ",
    );
}

#[test]
fn work_that_moved_on_is_still_the_same_work() {
    check(
        "
        ana opens src              -> yes
        ana fails                  -> yes
        ana fails                  -> yes
        ana closes failed          -> yes
        ben opens src/api docs     -> yes
        ben fails                  -> yes
        ben closes failed          -> yes
        cleo opens docs            -> yes
        cleo writes docs/x         -> 3 breaker.open
    ",
    );
}

#[test]
fn below_the_limit_a_success_of_the_work_clears_it() {
    check(
        "
        ana opens src      -> yes
        ben opens docs     -> yes
        ana fails          -> yes
        ana fails          -> yes
        ben closes         -> yes
        ana counts 2
        ana closes         -> yes
        cleo opens src     -> yes
        cleo counts 0
    ",
    );
}

#[test]
fn a_partial_end_is_no_success() {
    check(
        "
        ana opens src        -> yes
        ana fails            -> yes
        ana closes partial   -> yes
        ben opens src        -> yes
        ben counts 1
    ",
    );
}

#[test]
fn at_the_limit_a_success_clears_nothing() {
    check(
        "
        ana opens src        -> yes
        ana fails            -> yes
        ana fails            -> yes
        ana fails            -> yes
        ana closes           -> yes
        ben opens src        -> yes
        ben writes src/a     -> 3 breaker.open
        @human resets ana    -> yes
        ben writes src/a     -> yes
    ",
    );
}

#[test]
fn a_reset_at_the_limit_says_why() {
    check(
        "
        policy fails 1
        ana opens src                    -> yes
        ana fails                        -> yes
        @human resets ana because \"\"   -> text.bad
        @human resets ana because mended -> yes
        @human resets ana                -> yes nothing
        ana writes src/a                 -> yes
    ",
    );
}

#[test]
fn a_lower_limit_holds_also_for_what_failed_before_it() {
    check(
        "
        ana opens src      -> yes
        ana fails          -> yes
        policy fails 1
        ana writes src/a   -> 3 breaker.open
        ana resets         -> gate.not_human
        @human resets ana  -> yes
    ",
    );
}

#[test]
fn continue_on_a_breaker_gate_is_the_reset() {
    check(
        "
        policy fails 1
        ana opens src           -> yes
        ana fails               -> yes
        ana asks breaker        -> yes
        @human answers ana skip -> yes
        ana writes src/a        -> 3 breaker.open
        ana asks breaker        -> yes
        @human approves ana     -> yes
        ana writes src/a        -> yes
        ana counts 0
        ana asks breaker        -> yes
        @human approves ana saying mended -> yes
    ",
    );
}
