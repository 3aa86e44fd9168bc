//! What the end of a phase sets off in a run (protocol, section 12).

use super::house::House;

/// The signals that were sent: from whom, to whom, of which type.
fn sent(house: &House) -> Vec<(String, String, String)> {
    let log = house.json(&["log"]);
    let entries = log["entries"].as_array().unwrap().iter();
    let sent = entries.filter(|it| it["event"] == "signal_sent");
    let word = |value: &serde_json::Value| match value.as_object() {
        Some(named) => named.values().next().unwrap().as_str().unwrap().to_owned(),
        None => value.as_str().unwrap().to_owned(),
    };
    sent.map(|it| {
        (
            word(&it["data"]["from"]),
            word(&it["data"]["to"]),
            word(&it["data"]["kind"]),
        )
    })
    .collect()
}

fn pilot(house: &House) -> String {
    let status = house.json(&["run", "status"]);
    status["run"]["pilot"].as_str().unwrap().to_owned()
}

#[test]
fn a_phase_that_is_done_signals_and_notifies() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: a/, on_done: ['signal → HANDOFF human', notify → pilot], run: 'mkdir a; echo > a/f'}\n",
    );
    let said = house.brain(&["run", "p.yml"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let (claim, pilot) = (house.claim_of("1"), pilot(&house));
    let sent = sent(&house);
    for (to, kind) in [("human", "HANDOFF"), (pilot.as_str(), "INFO")] {
        let told = (claim.clone(), to.to_owned(), kind.to_owned());
        assert_eq!(
            sent.iter().filter(|it| **it == told).count(),
            1,
            "{told:?}: {sent:?}"
        );
    }
    let mail = house.brain(&["signal", "list", "--for", "human"]).out;
    assert!(mail.contains(&format!("HANDOFF  {claim} → human")), "{mail}");
}

/// What is under way goes on; what waits is not launched any more, and the run ends aborted.
#[test]
fn an_abort_launches_nothing_more_and_leaves_the_siblings_alone() {
    let house = House::new();
    house.plan(
        "  - {id: 1, type: deploy, scope: a/, on_done: abort, run: 'until test -e TOP/beside; do sleep 0.05; done; mkdir a; echo > a/f'}\n\
         \x20 - {id: 2, type: deploy, scope: b/, needs: [], run: 'touch TOP/beside; until test -e TOP/go; do sleep 0.05; done; mkdir b; echo > b/f'}\n\
         \x20 - {id: 3, type: deploy, scope: c/, needs: [1], run: 'touch TOP/never; mkdir c; echo > c/f'}\n",
    );
    let run = house.start(&["run", "p.yml", "--jobs", "3"]);
    house.until("the first phase is accepted", || {
        house
            .standing()
            .contains(&"1 accepted ok".to_owned())
            .then_some(())
    });
    std::fs::write(house.note("go"), "").unwrap();
    let said = run.end();
    assert_eq!(said.code, 20, "{}{}", said.out, said.err);
    assert_eq!(house.standing(), ["1 accepted ok", "2 accepted ok", "3 pending"]);
    assert!(!house.note("never").exists());
    let told = (house.claim_of("1"), pilot(&house), "ABORT".to_owned());
    assert!(sent(&house).contains(&told), "{told:?}: {:?}", sent(&house));
    assert_eq!(house.json(&["run", "status"])["run"]["end"], "aborted");
    assert!(!house.has("a/f"), "nothing of it is on main");
    assert_eq!(
        house.git(&["show", "theme/p:b/f"]),
        "",
        "and all that was done is on the theme"
    );
}
