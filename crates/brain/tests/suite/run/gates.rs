//! Gates of a run, answered from another process.

use super::house::House;

#[test]
fn a_gate_before_a_phase_opens_no_claim_until_a_human_answered_o_12() {
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
    assert_eq!(claims["claims"].as_array().unwrap().len(), 1, "the pilot alone: {claims}");
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
