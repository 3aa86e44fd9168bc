//! What a plan may not touch unasked: kernel files that go, and what stands under `risk.paths`.

use super::house::House;

/// A deletion is answered with the paths as its words, and with nothing less.
#[test]
fn a_kernel_file_is_deleted_by_a_human_who_names_it() {
    let house = House::with("zones:\n  kernel: [agents/]");
    house.write("agents/old.md", "old\n");
    house.write("agents/kept.md", "kept\n");
    house.commit_all("", "agents");
    house.plan("  - {id: 1, type: brain-write, scope: agents/, run: 'BRAIN preflight check @me agents/old.md --op delete 2>TOP/no; echo $? >TOP/code; rm agents/old.md'}\n");
    let run = house.start(&["run", "p.yml"]);
    house.settle("zone", "continue");
    // The right to write is none to delete: the hook says so before, the close says so after.
    house.noted("code", 1);
    assert_eq!(house.notes("code"), ["5"]);
    assert!(
        house.notes("no")[0].contains("zone.kernel_deleted"),
        "{:?}",
        house.notes("no")
    );
    let shown = house.settle("failed", "skip");
    assert!(
        shown.contains("agents/old.md (deleting a kernel file needs a gate of its own)"),
        "{shown}"
    );
    assert_eq!(run.end().code, 0);
    assert!(house.has("agents/old.md"), "nobody let it go");
}

#[test]
fn a_kernel_file_that_its_agent_asked_for_goes() {
    let house = House::with("zones:\n  kernel: [agents/]");
    house.write("agents/old.md", "old\n");
    house.commit_all("", "agents");
    house.plan("  - {id: 1, type: brain-write, scope: agents/, run: 'BRAIN gate open @me --about zone:agents/old.md \"it is old\"; until BRAIN preflight check @me agents/old.md --op delete; do sleep 0.05; done; rm agents/old.md'}\n");
    let run = house.start(&["run", "p.yml"]);
    house.settle("zone", "continue");
    let (gate, kind) = house.gate();
    assert_eq!(kind, "zone");
    let said = house.brain(&["gate", "answer", &gate, "continue", "yes"]);
    assert!(said.err.contains("[gate.words"), "{}", said.err);
    let said = house.brain(&["gate", "answer", &gate, "continue", "agents/old.md"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let said = run.end();
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(!house.has("agents/old.md"));
    let log = house.brain(&["log"]).out;
    assert_eq!(
        log.matches("gate opened").count(),
        2,
        "asked once, not once more: {log}"
    );
}

#[test]
fn a_phase_that_touches_what_the_house_stands_on_asks_before_and_after() {
    let house = House::with("risk:\n  paths: [law/]");
    house.plan(
        "  - {id: 1, type: deploy, scope: law/, run: 'echo >> TOP/ran; mkdir law; echo > law/f'}\n\
         \x20 - {id: 2, type: deploy, scope: a/, run: 'mkdir a; echo > a/f'}\n",
    );
    let run = house.start(&["run", "p.yml"]);
    let shown = house.settle("architecture", "continue");
    assert!(shown.contains("law/"), "{shown}");
    let shown = house.settle("architecture", "continue");
    assert!(shown.contains("law/f"), "{shown}");
    assert_eq!(house.notes("ran").len(), 1, "asked before and after one attempt");
    let said = run.end();
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(house.standing(), ["1 accepted ok", "2 accepted ok"]);
    let log = house.brain(&["log"]).out;
    assert_eq!(
        log.matches("gate opened").count(),
        2,
        "the other phase asks nothing: {log}"
    );
}

/// A no before the agent is started leaves no trace of it.
#[test]
fn who_says_no_to_a_risk_has_nothing_started() {
    let house = House::with("risk:\n  paths: [law/]");
    house.plan("  - {id: 1, type: deploy, scope: law/, run: 'touch TOP/ran'}\n");
    let run = house.start(&["run", "p.yml"]);
    house.settle("architecture", "skip");
    assert_eq!(run.end().code, 0);
    assert!(!house.note("ran").exists());
    assert_eq!(house.standing(), ["1 skipped"]);
}
