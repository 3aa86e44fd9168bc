//! Gates of a run, answered from another process.

use super::house::House;

#[test]
fn o_12_a_gate_before_a_phase_opens_no_claim_until_a_human_answered() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: a/, gate: human, story_angle: 'write a', run: 'mkdir a; echo > a/f'}\n\
         \x20 - {id: 2, type: deploy, scope: b/, run: 'mkdir b; echo > b/f'}\n",
    );
    let ran = house.brain(&["run", "p.yml", "--no-wait"]);
    assert_eq!(ran.code, 11, "waiting is not failing: {}{}", ran.out, ran.err);
    let (gate, kind) = house.gate();
    assert_eq!(kind, "phase");
    assert!(ran.err.contains(&gate), "{}", ran.err);
    let claims = house.json(&["claim", "list"]);
    assert_eq!(
        claims["claims"].as_array().unwrap().len(),
        1,
        "the pilot alone: {claims}"
    );
    // Going on without an answer changes nothing.
    assert_eq!(house.brain(&["run", "--resume", "--no-wait"]).code, 11);
    assert!(!house.has("a"));
    // The hypervisor waits, the answer comes from elsewhere.
    let run = house.start(&["run", "--resume"]);
    house.answer(&gate, "continue");
    let ran = run.end();
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(house.has("a/f") && house.has("b/f"));
}

/// A plan whose second phase waits behind the first, which a test lets go on.
const HELD: &str = "  - {id: 1, type: deploy, scope: a/, run: 'echo > TOP/here; mkdir a; echo > a/f; until test -e TOP/go; do sleep 0.05; done'}\n";

#[test]
fn o_14_a_plan_that_changed_meanwhile_asks_with_the_difference_and_a_comment_does_not() {
    let second = |scope: &str, more: &str| {
        format!(
            "{HELD}  - {{id: 2, type: deploy, scope: {scope}, run: 'mkdir -p b c; echo > {scope}f'}}{more}\n"
        )
    };
    for (answer, ends_in) in [("adapt", "c/f"), ("retry", "b/f")] {
        let house = House::new();
        house.plan(&second("b/", ""));
        let run = house.start(&["run", "p.yml"]);
        house.noted("here", 1);
        house.plan(&second("c/", ""));
        std::fs::write(house.note("go"), "").unwrap();
        let (gate, kind) = house.gate();
        assert_eq!(kind, "plan");
        let shown = house.brain(&["gate", "show", &gate]).out;
        assert!(
            shown.contains("scope \"b/\"") && shown.contains("scope \"c/\""),
            "{shown}"
        );
        assert!(!house.has("c"));
        if answer == "retry" {
            house.plan(&second("b/", "  # as it was"));
        }
        house.answer(&gate, answer);
        let said = run.end();
        assert_eq!(said.code, 0, "{answer}: {}{}", said.out, said.err);
        assert!(house.has(ends_in), "{answer}: {}", said.err);
        assert!(
            !house.has(if ends_in == "b/f" { "c/f" } else { "b/f" }),
            "{answer}"
        );
    }
}

#[test]
fn red_tests_before_the_agent_ask_and_the_answer_holds_for_the_next_attempt() {
    let house = House::new();
    let phase = |more: &str| {
        format!(
            "  - {{id: 1, type: code, scope: tests/, tests: sh tests/red.sh, {more}run: 'echo >> TOP/ran; cp tests/green.sh tests/red.sh'}}\n"
        )
    };
    house.plan(&phase(""));
    let said = house.brain(&["run", "p.yml", "--no-wait"]);
    assert_eq!(said.code, 11, "{}{}", said.out, said.err);
    let shown = house.settle("review", "continue");
    assert!(shown.contains("fails before the agent starts"), "{shown}");
    assert!(house.notes("ran").is_empty(), "no agent before the answer");
    let said = house.brain(&["run", "--resume"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(house.notes("ran").len(), 1);

    let house = House::new();
    house.plan(&phase("baseline: false, "));
    assert_eq!(house.brain(&["run", "p.yml"]).code, 0);

    let house = House::new();
    house.plan(&phase(""));
    let said = house.brain(&["run", "p.yml", "--yes-to", "review"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(
        house.brain(&["log"]).out.contains("phase allowed"),
        "the yes is recorded"
    );
}

#[test]
fn a_failure_is_retried_after_a_stored_pause_and_then_asked_about() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: a/, retries: 1, run: 'echo $(date +%s%3N) >> TOP/tries; test -e TOP/good || exit 4; mkdir a; echo > a/f'}\n\
         \x20 - {id: 2, type: deploy, scope: b/, run: 'mkdir b; echo > b/f'}\n",
    );
    let said = house.brain(&["run", "p.yml", "--no-wait"]);
    assert_eq!(said.code, 11, "{}{}", said.out, said.err);
    let tries: Vec<u64> = house
        .notes("tries")
        .iter()
        .map(|it| it.parse().unwrap())
        .collect();
    assert_eq!(tries.len(), 2);
    assert!(tries[1] - tries[0] >= 1_000, "{tries:?}");
    std::fs::write(house.note("good"), "").unwrap();
    let shown = house.settle("failed", "retry");
    assert!(shown.contains("it ended with status 4"), "{shown}");
    let said = house.brain(&["run", "--resume"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("3 attempts"), "{}", said.out);
}

#[test]
fn who_is_asked_about_a_refused_close_sees_what_refused_it_and_answers_for_that() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: a/, run: 'mkdir a b; echo > a/f; echo > b/stray; echo > b/other'}\n\
         \x20 - {id: 2, type: code, scope: c/, needs: [], baseline: false, tests: sh tests/red.sh, run: 'mkdir c; echo > c/f'}\n",
    );
    let run = house.start(&["run", "p.yml"]);
    let (gate, _) = house.gate();
    let bound = house.json(&["gate", "show", &gate])["gate"]["shown"].to_string();
    let shown = house.settle("failed", "skip");
    assert!(shown.contains("close.out_of_scope"), "{shown}");
    for path in ["b/stray (", "b/other ("] {
        assert!(shown.contains(&format!("   Path     : {path}")), "{shown}");
        assert!(bound.contains(path), "the answer is not bound to {path}: {bound}");
    }
    let shown = house.settle("failed", "skip");
    assert!(shown.contains("close.tests_red"), "{shown}");
    assert!(shown.contains("   Tests    : sh tests/red.sh"), "{shown}");
    assert!(shown.contains("   Counts   : 1 of 1 failed"), "{shown}");
    let said = run.end();
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

#[test]
fn what_needs_a_skipped_phase_asks_once_and_an_abort_ends_the_run() {
    let plan = "  - {id: 1, type: deploy, scope: a/, run: 'exit 4'}\n  - {id: 2, type: deploy, scope: b/, run: 'mkdir b; echo > b/f'}\n";
    let house = House::new();
    house.plan(plan);
    let run = house.start(&["run", "p.yml"]);
    house.settle("failed", "skip");
    let shown = house.settle("failed", "continue");
    assert!(shown.contains("was skipped"), "{shown}");
    let said = run.end();
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(
        said.out.contains("1 delivered, 0 partial, 1 skipped, 0 failed"),
        "{}",
        said.out
    );
    assert!(house.has("b/f"));

    let house = House::new();
    house.plan(plan);
    let run = house.start(&["run", "p.yml"]);
    house.settle("failed", "abort");
    assert_eq!(run.end().code, 20);
    assert_eq!(house.json(&["run", "status"])["run"]["end"], "aborted");
}

#[test]
fn a_partial_result_asks_with_the_plans_text_and_a_yes_beforehand_is_taken() {
    let plan = "  - {id: 1, type: deploy, scope: a/, on_partial: 'gate:human → \"low ones are left: go on?\"', \
                run: 'mkdir a; echo > a/f; BRAIN close @me --result partial --notes \"two of three\"'}\n";
    let house = House::new();
    house.plan(plan);
    let said = house.brain(&["run", "p.yml", "--no-wait"]);
    assert_eq!(said.code, 11, "{}{}", said.out, said.err);
    let mut kinds = Vec::new();
    while let Some(gate) = house.json(&["gate", "list"])["gates"][0].as_object() {
        assert!(
            gate["why"].as_str().unwrap().contains("low ones are left"),
            "{gate:?}"
        );
        kinds.push(gate["kind"].as_str().unwrap().to_owned());
        house.answer(gate["gate"].as_str().unwrap(), "continue");
        house.brain(&["run", "--resume", "--no-wait"]);
    }
    assert_eq!(kinds, ["partial"], "one gate, not two");
    assert_eq!(house.standing(), ["1 accepted partial"]);
    assert!(house.has("a/f"));

    let house = House::new();
    house.plan(&plan.replace("on_partial: 'gate:human → \"low ones are left: go on?\"', ", ""));
    let said = house.brain(&["run", "p.yml", "--yes-to", "partial"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(house.standing(), ["1 accepted partial"]);
}

#[test]
fn a_kernel_scope_asks_first_and_gives_the_right_and_new_kernel_files_ask_after() {
    for pattern in ["agents/", "agents/**"] {
        let house = House::with(&format!("zones:\n  kernel: [\"{pattern}\"]"));
        house.plan("  - {id: 1, type: brain-write, scope: agents/, run: 'mkdir agents; BRAIN preflight check @me agents/new.md && echo > agents/new.md'}\n");
        let run = house.start(&["run", "p.yml"]);
        let shown = house.settle("zone", "continue");
        assert!(shown.contains("agents/ is kernel"), "{shown}");
        let shown = house.settle("architecture", "continue");
        assert!(shown.contains("agents/new.md"), "{shown}");
        let said = run.end();
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        assert!(house.has("agents/new.md"));
    }
}

#[test]
fn a_satellite_waits_at_a_gate_of_its_own() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: a/, run: 'BRAIN gate open @me \"drop it?\"; until BRAIN preflight check @me a/f; do sleep 0.1; done; mkdir a; echo > a/f'}\n",
    );
    let said = house.brain(&["run", "p.yml", "--no-wait"]);
    assert_eq!(said.code, 11, "{}{}", said.out, said.err);
    let shown = house.settle("ask", "continue");
    assert!(shown.contains("drop it?"), "{shown}");
    let said = house.brain(&["run", "--resume"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(
        house.json(&["run", "status"])["run"]["phases"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
