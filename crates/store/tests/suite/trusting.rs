//! A human's answer counts only where its seal verifies.

use protocol::command::{Command, OpenGate};
use protocol::event::Event;
use protocol::facts::caller::{Caller, Nature, Proof};
use protocol::facts::claim::Right;
use protocol::facts::gate::{About, Choice, GateKind};
use protocol::facts::id::{GateId, SessId};
use protocol::world::Pick;
use store::clock::Clock;
use store::conformance::{open_claim, policy};
use store::{Memory, Outcome, Request, Store, Trusting, submit};

fn events(store: &mut dyn Store, caller: &Caller, command: &Command) -> Vec<Event> {
    let policy = policy();
    let request = Request {
        caller,
        policy: &policy,
        key: None,
    };
    match submit(store, request, command).unwrap() {
        Outcome::Committed(entries) => entries.into_iter().map(|entry| entry.event).collect(),
        other => panic!("{other:?}"),
    }
}

/// A claim that a human gave the right to write kernel paths.
fn allowed(store: &mut dyn Store) -> (SessId, GateId) {
    let plain = Caller::plain("ana", "box");
    let human = Caller {
        nature: Nature::Human(Proof::Signed {
            signer: "ana".to_owned(),
        }),
        ..plain.clone()
    };
    let Outcome::Committed(opened) = open_claim(store, &plain, "a", &["src/"], None).unwrap() else {
        panic!("refused");
    };
    let claim = opened
        .iter()
        .find_map(|entry| entry.event.claim().cloned())
        .unwrap();
    let ask = OpenGate {
        about: About::Claim(claim.clone()),
        kind: GateKind::Zone,
        subject: "kernel".to_owned(),
        why: "the rules need it".to_owned(),
        known: Vec::new(),
        shown: "shown".to_owned(),
    };
    let asked = events(store, &plain, &Command::OpenGate(ask));
    let gate = asked.iter().find_map(|event| match event {
        Event::GateOpened(gate) => Some(gate.id.clone()),
        _ => None,
    });
    let gate = gate.unwrap();
    let answer = Command::AnswerGate {
        id: gate.clone(),
        choice: Choice::Continue,
        words: String::new(),
        shown: "shown".to_owned(),
        mac: "mac:forged".to_owned(),
    };
    events(store, &human, &answer);
    (claim, gate)
}

#[test]
fn an_answer_that_does_not_verify_is_none_and_gives_no_right() {
    let memory = Memory::new(Clock::by_hand(1_796_047_200_000));
    let (claim, gate) = allowed(&mut memory.clone());
    let picks = vec![Pick::Claim(claim.clone())];
    for trusted in [true, false] {
        let mut store = Trusting::new(memory.clone(), Box::new(move |_| trusted));
        let (world, _) = store.look(&picks).unwrap();
        assert_eq!(world.claims[&claim].rights.contains(&Right::Kernel), trusted);
        assert_eq!(world.gates[&gate].answer.is_some(), trusted);
        // The rules see the same as a look does.
        let seen = store.transact(&picks, store::Sync::Relaxed, &|world, _| {
            assert_eq!(world.claims[&claim].rights.contains(&Right::Kernel), trusted);
            Err(protocol::refusal::Refusal::NotClosing { id: claim.clone() })
        });
        assert!(matches!(seen.unwrap(), Outcome::Refused(_)));
    }
}
