//! Cases from the field, by number: what went wrong elsewhere, as far as rules can keep it from happening.

use testkit::story::{check, tell};

#[test]
fn o_01_of_sixteen_that_ask_for_one_scope_one_gets_it() {
    let mut story = "s0 opens agents kind code -> yes\n".to_owned();
    for n in 1..16 {
        story += &format!("s{n} opens agents kind code -> claim.scope_overlaps\n");
    }
    assert_eq!(tell(&story).world.claims.len(), 1);
}

#[test]
fn o_01_of_sixteen_that_ask_for_one_id_one_gets_it() {
    let mut story = "s0 opens d0 id sess-20261130-1000-k -> yes\n".to_owned();
    for n in 1..16 {
        story += &format!("s{n} opens d{n} id sess-20261130-1000-k -> claim.id_taken\n");
    }
    assert_eq!(tell(&story).world.claims.len(), 1);
}

#[test]
fn o_03_nobody_closes_anothers_claim_unseen() {
    check(
        "
        ana opens pilote/brain        -> yes
        ben opens learning/omarchy    -> yes
        ana closes ben                -> claim.not_owner
        ben is open
        @plain closes ben             -> yes
        ben closes                    -> yes nothing
    ",
    );
}

#[test]
fn o_08_only_a_humans_reset_lets_the_brake_go() {
    check(
        "
        ana opens . as pilot          -> yes
        ana launches ben src          -> yes
        ana launches cleo docs        -> yes
        ben fails because first       -> yes
        ben fails because second      -> yes
        ben fails because third       -> yes
        ben writes src/a              -> 3 breaker.open
        machine boots
        ben writes src/a              -> 3 breaker.open renewed
        ana renews                    -> yes
        @human pauses ben             -> yes
        @human resumes ben            -> yes
        ben writes src/a              -> 3 breaker.open
        cleo renews                   -> yes
        cleo closes                   -> yes
        ben writes src/a              -> 3 breaker.open
        ben locks src/a               -> yes
        ben releases src/a            -> yes
        ben writes src/a              -> 3 breaker.open
        ben resets                    -> gate.not_human
        @plain resets ben             -> gate.not_human
        ben counts 3
        @human resets ben because mended -> yes
        ben writes src/a              -> yes
    ",
    );
}

#[test]
fn o_08_a_success_between_two_failures_starts_the_count_anew() {
    check(
        "
        ana opens src     -> yes
        ana fails         -> yes
        ana fails         -> yes
        ana resets        -> yes
        ana fails         -> yes
        ana counts 1
        ana writes src/a  -> yes
    ",
    );
}

#[test]
fn o_09_of_eight_racers_one_locks() {
    for before in ["", "@plain locks race.ts as old 1m -> yes\nx waits 1m\n"] {
        let mut story = format!("{before}@plain locks race.ts as r0 -> yes\n");
        for n in 1..8 {
            story += &format!("@plain locks race.ts as r{n} -> lock.held\n");
        }
        story += "@plain locks race.ts as r0 -> yes\nlocks stand 1\nrace.ts held r0\n";
        check(&story);
    }
}

#[test]
fn o_10_every_spelling_is_one_lock() {
    for spelling in [
        "./src/auth/a.ts",
        "src/auth/../auth/a.ts",
        "src//auth/a.ts",
        "src/auth/./a.ts",
    ] {
        check(&format!(
            "
            @plain locks src/auth/a.ts as ci  -> yes
            @plain locks {spelling} as cd     -> lock.held
            locks stand 1
            @plain releases {spelling} as ci  -> yes something
            locks stand 0
        "
        ));
    }
}

#[test]
fn o_12_a_gate_opens_nothing_before_it_is_answered() {
    check(
        "
        ana starts demo \"1 scope:src/api/ gate:human\" \"2 scope:infra/ kind:deploy needs:1\" -> yes
        demo offers ask:1:phase
        ana asks-phase demo 1           -> yes
        ana delegates demo 1            -> run.phase_state
        demo-1 writes src/api/x.ts      -> 4 claim.unknown
        @plain approves demo:1          -> gate.not_human
        demo offers nothing
        @human approves demo:1          -> yes
        ana delegates demo 1            -> yes
        demo-1 writes src/api/x.ts branch theme/demo -> yes
    ",
    );
}

#[test]
fn o_13_the_grandchild_stops_with_the_pilot() {
    check(
        "
        pilot opens . as pilot         -> yes
        pilot launches sat src domain  -> yes
        sat launches leaf src/a        -> yes
        leaf locks src/a/x             -> yes
        other opens docs               -> yes
        @human pauses pilot            -> yes
        leaf writes src/a/x            -> 4 claim.not_open
        @human resumes pilot           -> yes
        leaf writes src/a/x            -> yes
        @human aborts pilot            -> yes
        leaf writes src/a/x            -> 4 claim.not_open
        leaf is failed
        locks stand 0
        sat launches new src/b         -> claim.parent_not_open
        other writes docs/x            -> yes
    ",
    );
}

#[test]
fn o_14_an_answer_is_void_when_what_it_was_about_changed() {
    check(
        "
        ana starts p \"1 scope:a gate:human\" \"2 scope:src/ needs: gate:human\" -> yes
        ana asks-phase p 2                    -> yes
        @human approves p:2 seeing another    -> gate.changed
        @human approves p:2                   -> yes
        ana asks-phase p 1                    -> yes
        @human answers p:1 adapt              -> yes
        ana adapts p \"1 scope:a gate:human\" \"2 scope:agents/ needs: gate:human\" -> yes
        ana delegates p 2                     -> run.phase_state
        p offers ask:1:phase ask:2:phase
    ",
    );
}

#[test]
fn o_14_the_same_content_keeps_its_answer() {
    check(
        "
        ana starts p \"1 scope:a gate:human\" \"2 scope:src/ needs: gate:human\" -> yes
        ana asks-phase p 2                    -> yes
        @human approves p:2                   -> yes
        ana asks-phase p 1                    -> yes
        @human answers p:1 adapt              -> yes
        ana adapts p \"2 scope:src/ needs: gate:human\" -> yes
        p offers begin:2
    ",
    );
}

#[test]
fn o_15_what_a_pipe_hides_vouches_for_nothing() {
    for command in [
        "npm test | tail -20",
        "npm test 2>&1 | grep -i fail",
        "npm test || true",
        "npm test; echo done",
    ] {
        check(&format!(
            "
            ana opens src kind code tests \"{command}\" -> tests.status_hidden
        "
        ));
    }
    check(
        "
        ana opens src kind code tests \"npm test\" -> yes
        ana closes 14/14 exit 1                    -> close.tests_red
        ana closes 1/1                             -> yes
    ",
    );
}

#[test]
fn o_16_nothing_that_ran_is_green_when_nothing_ran() {
    check(
        "
        a opens a kind code                  -> yes
        a closes 0/0 command \"node --test\" -> close.no_evidence
        c opens c kind code                  -> yes
        c closes 0/0 exit 5 command pytest   -> close.no_tests
        d opens d kind code                  -> yes
        d closes uncounted exit 1            -> close.tests_red
        e opens e kind code                  -> yes
        e closes uncounted command true      -> close.no_evidence
        e is open
    ",
    );
}

#[test]
fn o_36_what_is_shown_is_derived_and_looking_changes_nothing() {
    let stage = tell(
        "
        alive opens a 5h    -> yes
        over opens b 30m    -> yes
        gone opens c 5h     -> yes
        x waits 31m
        alive is open
        over is stale
        gone is open
        @plain reaps gone   -> yes
        gone is stale
        alive is open
    ",
    );
    let held = stage
        .world
        .claims
        .values()
        .map(|claim| stage.world.held(claim, stage.now));
    let shown: Vec<(String, bool)> = held
        .map(|it| (it.claim.slug().to_owned(), it.state.is_live()))
        .collect();
    let wanted = [("alive", true), ("gone", false), ("over", false)];
    assert_eq!(shown, wanted.map(|(name, live)| (name.to_owned(), live)));
    let reaped = stage.world.claims.values().filter(|claim| claim.reaped).count();
    assert_eq!(reaped, 1, "an owner that is gone is told from time that is over");
}
