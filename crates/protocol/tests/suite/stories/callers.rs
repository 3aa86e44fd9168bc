//! Who may do what (section 5): each row of the table, each caller.

use testkit::story::check;

/// A family of three and a stranger.
const FAMILY: &str = "
    top opens . as pilot         -> yes
    top launches mid src domain  -> yes
    mid launches low src/api     -> yes
    kin opens docs               -> yes
";

/// Tells the story anew for each caller, `?` standing for it, with its own answer.
fn each(story: &str, answers: &[(&str, &str)]) {
    for (who, answer) in answers {
        check(&format!(
            "{FAMILY}\n{}",
            story.replace('?', who).replace("ANSWER", answer)
        ));
    }
}

const OWNER_ANCESTOR_PLAIN_HUMAN: [(&str, &str); 8] = [
    ("low", "yes"),
    ("@plain!low", "yes"),
    ("mid", "yes"),
    ("top", "yes"),
    ("@plain", "yes"),
    ("@human", "yes"),
    ("kin", "claim.not_owner"),
    ("@agent", "claim.not_owner"),
];

#[test]
fn owner_ancestor_plain_and_human_close_renew_fail_and_ask() {
    each("? closes low -> ANSWER", &OWNER_ANCESTOR_PLAIN_HUMAN);
    each("? renews low -> ANSWER", &OWNER_ANCESTOR_PLAIN_HUMAN);
    each("? fails low -> ANSWER", &OWNER_ANCESTOR_PLAIN_HUMAN);
    each("? asks for low -> ANSWER", &OWNER_ANCESTOR_PLAIN_HUMAN);
}

#[test]
fn every_step_of_a_close_asks_who_closes() {
    let story = "
        low begins     -> yes
        ? tests low 1/1 -> ANSWER
        ? commits low  -> ANSWER
        ? lands low    -> ANSWER
        ? finishes low -> ANSWER
    ";
    each(story, &OWNER_ANCESTOR_PLAIN_HUMAN);
}

#[test]
fn a_signal_goes_out_in_ones_own_name() {
    each(
        "? signals INFO top hello from low -> ANSWER",
        &[
            ("low", "yes"),
            ("mid", "yes"),
            ("top", "yes"),
            ("@plain", "yes"),
            ("@human", "yes"),
            ("kin", "signal.sender_not_yours"),
            ("@agent", "signal.sender_not_yours"),
        ],
    );
}

#[test]
fn a_lock_is_taken_and_given_back_by_owner_ancestor_plain_and_human() {
    each("? locks src/api/x as low -> ANSWER", &OWNER_ANCESTOR_PLAIN_HUMAN);
    each(
        "low locks src/api/x -> yes
         ? releases src/api/x as low -> ANSWER",
        &[
            ("low", "yes"),
            ("mid", "yes"),
            ("top", "yes"),
            ("@plain", "yes"),
            ("@human", "yes"),
            ("kin", "claim.not_owner"),
            ("@agent", "claim.not_owner"),
        ],
    );
}

#[test]
fn a_signal_is_acknowledged_by_owner_ancestor_plain_and_human() {
    each(
        "top signals INFO low hello -> yes
         ? acks low -> ANSWER",
        &[
            ("low", "yes"),
            ("mid", "yes"),
            ("top", "yes"),
            ("@plain", "yes"),
            ("@human", "yes"),
            ("kin", "signal.not_yours"),
            ("@agent", "signal.not_yours"),
        ],
    );
}

#[test]
fn a_run_is_taken_and_cancelled_by_owner_ancestor_plain_and_human() {
    let answers = [
        ("low", "claim.not_owner"),
        ("mid", "yes"),
        ("top", "yes"),
        ("@plain", "yes"),
        ("@human", "yes"),
        ("kin", "claim.not_owner"),
        ("@agent", "claim.not_owner"),
    ];
    let start = r#"mid starts plan "1 scope:src/web" under mid -> yes"#;
    each(&format!("{start}\n? cancels plan -> ANSWER"), &answers);
    each(&format!("{start}\n? takes plan gone -> ANSWER"), &answers);
    each(&format!("{start}\nx waits 31s\n? takes plan -> ANSWER"), &answers);
}

#[test]
fn a_child_is_opened_by_the_parents_owner_its_ancestors_plain_and_human() {
    each(
        "? opens src/web as satellite under mid named new -> ANSWER",
        &[
            ("mid", "yes"),
            ("top", "yes"),
            ("@plain", "yes"),
            ("@human", "yes"),
            ("kin", "claim.not_owner"),
            ("@agent", "claim.not_owner"),
            ("low", "claim.not_owner"),
        ],
    );
}

#[test]
fn anyone_reaps_and_checks() {
    let anyone = ["low", "mid", "top", "kin", "@plain", "@human", "@agent"].map(|who| (who, "yes"));
    each("? writes src/api/x as low -> ANSWER", &anyone);
    each("? reaps low -> ANSWER", &anyone);
    each("? stops -> ANSWER", &anyone);
    each("? cleans -> ANSWER", &anyone);
}

#[test]
fn owner_ancestor_plain_and_human_pause_and_abort() {
    each("? pauses low -> ANSWER", &OWNER_ANCESTOR_PLAIN_HUMAN);
    each("? aborts low -> ANSWER", &OWNER_ANCESTOR_PLAIN_HUMAN);
}

#[test]
fn a_pause_is_lifted_by_who_set_it_or_stands_above_that() {
    each(
        "mid pauses low -> yes
         ? resumes low -> ANSWER",
        &[
            ("mid", "yes"),
            ("top", "yes"),
            ("@plain", "yes"),
            ("@human", "yes"),
            ("low", "claim.own_pause"),
            ("@plain!low", "claim.own_pause"),
            ("kin", "claim.not_owner"),
            ("@agent", "claim.not_owner"),
        ],
    );
    each(
        "top pauses low -> yes
         ? resumes low -> ANSWER",
        &[("mid", "claim.not_owner"), ("top", "yes")],
    );
}

#[test]
fn a_pause_is_never_lifted_from_below_also_not_ones_own() {
    each(
        "mid pauses mid -> yes
         ? resumes mid -> ANSWER",
        &[
            ("mid", "claim.own_pause"),
            ("low", "claim.own_pause"),
            ("top", "yes"),
            ("@plain", "yes"),
            ("@human", "yes"),
            ("kin", "claim.not_owner"),
        ],
    );
}

#[test]
fn a_persons_pause_is_no_agents_to_lift_though_the_user_is_the_same() {
    each(
        "@human pauses low -> yes
         ? resumes low -> ANSWER",
        &[
            ("mid", "claim.not_owner"),
            ("top", "claim.not_owner"),
            ("kin", "claim.not_owner"),
            ("@agent", "claim.not_owner"),
            ("low", "claim.own_pause"),
            ("@plain", "yes"),
            ("@human", "yes"),
        ],
    );
}

#[test]
fn a_session_with_two_claims_pauses_in_the_name_of_the_nearest() {
    check(
        "
        ana opens . as pilot             -> yes
        ana launches ben src itself      -> yes
        ana launches dom docs domain     -> yes
        dom launches low docs/x          -> yes
        ana pauses dom                   -> yes
        low resumes dom                  -> claim.own_pause
        ana resumes dom                  -> yes
    ",
    );
}

#[test]
fn the_stop_is_lifted_by_plain_and_human() {
    each(
        "low stops -> yes
         ? thaws -> ANSWER",
        &[
            ("@plain", "yes"),
            ("@human", "yes"),
            ("low", "gate.not_human"),
            ("top", "gate.not_human"),
            ("kin", "gate.not_human"),
            ("@agent", "gate.not_human"),
        ],
    );
}

const HUMAN_ONLY: [(&str, &str); 8] = [
    ("@human", "yes"),
    ("@plain", "gate.not_human"),
    ("low", "gate.not_human"),
    ("mid", "gate.not_human"),
    ("top", "gate.not_human"),
    ("kin", "gate.not_human"),
    ("@human!low", "gate.not_human"),
    ("@human/low", "gate.not_human"),
];

#[test]
fn a_gate_is_answered_by_a_human_alone() {
    each("low asks -> yes\n? approves low -> ANSWER", &HUMAN_ONLY);
    each("low asks -> yes\n? rejects low -> ANSWER", &HUMAN_ONLY);
    each("low asks -> yes\n? answers low skip -> ANSWER", &HUMAN_ONLY);
}

#[test]
fn who_is_no_human_is_told_so_before_all_else() {
    check(
        "
        @plain approves low                 -> gate.not_human
        @plain releases src/x as low force  -> gate.not_human
    ",
    );
}

#[test]
fn at_the_limit_only_a_human_resets() {
    each(
        "low fails -> yes
         low fails -> yes
         low fails -> yes
         ? resets low -> ANSWER",
        &HUMAN_ONLY,
    );
}

#[test]
fn below_the_limit_the_owner_resets() {
    each(
        "low fails -> yes
         ? resets low -> ANSWER",
        &[
            ("low", "yes"),
            ("@plain", "yes"),
            ("@human", "yes"),
            ("mid", "claim.not_owner"),
            ("kin", "claim.not_owner"),
        ],
    );
}

#[test]
fn a_lock_is_taken_away_by_a_human_alone() {
    each(
        "low locks src/api/x -> yes\n? releases src/api/x as low force -> ANSWER",
        &HUMAN_ONLY,
    );
}

#[test]
fn failed_children_are_accepted_by_owner_plain_and_human() {
    each(
        "@human aborts low -> yes
         ? closes mid accepting -> ANSWER",
        &[
            ("mid", "yes"),
            ("@plain", "yes"),
            ("@human", "yes"),
            ("top", "claim.not_owner"),
            ("kin", "claim.not_owner"),
        ],
    );
}

#[test]
fn what_descends_from_a_session_is_an_agent_whatever_it_signs() {
    check(
        "
        ana opens src            -> yes
        ben opens docs           -> yes
        ben asks                 -> yes
        @human/ana approves ben  -> gate.not_human
        @plain/ana closes ben    -> claim.not_owner
        @human/ben approves ben  -> gate.not_human
        @human approves ben      -> yes
    ",
    );
}

#[test]
fn the_shell_of_a_humans_claim_is_still_a_human() {
    check(
        "
        @human opens src named mia  -> yes
        ana opens docs              -> yes
        ana asks                    -> yes
        @human approves ana         -> yes
    ",
    );
}
