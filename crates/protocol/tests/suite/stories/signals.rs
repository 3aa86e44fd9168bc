//! Signals (section 10).

use testkit::story::check;

#[test]
fn every_address_leads_somewhere_or_is_refused() {
    check(
        "
        top opens . as pilot             -> yes
        top launches mid src domain      -> yes
        mid launches low src/api         -> yes
        low signals BLOCKED_ON pilot     -> yes
        top has BLOCKED_ON
        low signals RETURN parent        -> yes
        mid has RETURN
        low signals INFO human           -> yes
        human has INFO
        low signals INFO low             -> yes
        low has INFO
        low signals INFO nobody          -> signal.address_unknown
        low signals INFO sess-20261130-1400-nobody -> signal.address_unknown
        low signals INFO sess-1          -> signal.address_unknown
    ",
    );
}

#[test]
fn the_pilot_and_parent_of_a_root_are_the_people() {
    check(
        "
        ana opens src                  -> yes
        ana signals BLOCKED_ON pilot   -> yes
        ana signals INFO parent        -> yes
        @plain signals CHECKPOINT pilote -> yes
        human has BLOCKED_ON INFO CHECKPOINT
    ",
    );
}

#[test]
fn all_is_everyone_who_lives_but_the_sender() {
    check(
        "
        ana opens a 5h          -> yes
        ben opens b 5h          -> yes
        cleo opens c 30m        -> yes
        dan opens d 5h          -> yes
        dan closes              -> yes
        @human pauses ben       -> yes
        x waits 1h
        ana signals INFO all    -> yes
        ana has nothing
        ben has INFO
        cleo has nothing
        dan has nothing
        eve opens e             -> yes
        eve has nothing
    ",
    );
}

#[test]
fn the_sender_is_one_of_the_callers_own() {
    check(
        "
        ana opens src                          -> yes
        ben opens docs                         -> yes
        ben signals INFO human from ana        -> signal.sender_not_yours
        ben signals INFO human from nobody     -> claim.unknown
        ben signals INFO ana from ben          -> yes
        ana has INFO
    ",
    );
}

#[test]
fn a_summary_is_one_short_line() {
    let long = "x".repeat(201);
    check(&format!(
        "
        ana opens src                          -> yes
        ana signals INFO human \"\"            -> text.bad
        ana signals INFO human \"a\u{1b}[31m\" -> text.bad
        ana signals INFO human {long}          -> text.bad
        ana signals INFO human {}              -> yes
    ",
        &long[1..]
    ));
}

#[test]
fn an_ended_session_gets_an_orphan() {
    check(
        "
        ana opens src            -> yes
        ben opens docs           -> yes
        ana closes               -> yes
        ben signals INFO ana     -> yes
        ana has INFO?
    ",
    );
}

#[test]
fn the_mail_of_an_ended_session_goes_to_who_took_its_place() {
    check(
        "
        ana opens src/a src/b 30m  -> yes
        cleo opens web             -> yes
        cleo signals INFO ana      -> yes
        x waits 31m
        ben opens src/a            -> yes
        ana is failed by ben
        dan opens docs             -> yes
        dan acks ana               -> signal.not_yours
        ben acks ana               -> yes something
        ana has nothing
        ben acks ana as ben        -> yes nothing
    ",
    );
}

#[test]
fn else_to_who_covers_its_whole_scope() {
    check(
        "
        ana opens src/a src/b   -> yes
        @human signals INFO ana -> yes
        ana closes              -> yes
        ben opens src/a         -> yes
        ben acks ana            -> signal.not_yours
        ben closes              -> yes
        cleo opens src          -> yes
        cleo acks ana           -> yes
        ana has nothing
    ",
    );
}

#[test]
fn a_second_acknowledgement_changes_nothing() {
    check(
        "
        ana opens src            -> yes
        @human signals INFO ana  -> yes
        ana acks ana             -> yes something
        ana acks sent            -> yes nothing
        ana acks none            -> signal.unknown
    ",
    );
}

#[test]
fn mail_to_the_people_is_not_an_agents_to_acknowledge() {
    check(
        "
        ana opens src             -> yes
        ana signals INFO human    -> yes
        ana acks human            -> signal.not_yours
        @human acks human         -> yes
        human has nothing
    ",
    );
}

#[test]
fn a_pause_is_told() {
    check(
        "
        ana opens . as pilot   -> yes
        ana launches ben src   -> yes
        @human pauses ben      -> yes
        ana has PAUSED
    ",
    );
}
