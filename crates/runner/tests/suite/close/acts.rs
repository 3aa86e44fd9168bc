//! Steps 3 and 5 to 8: the commit, children, gates, the result.

use protocol::command::Command;
use protocol::facts::claim::{ClaimType, Outcome};
use protocol::facts::gate::Choice;
use protocol::facts::trigger::Trigger;
use protocol::refusal::Refusal;
use runner::close::{CloseAsk, CloseError, Closed, Fuse, summary};

use super::world::{GREEN, World, code, notes, short};

#[test]
fn a_closed_claim_gives_its_stored_result_again() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    let result = w.done(&id);
    w.write("src/a.rs", "whatever comes later\n");
    assert_eq!(w.close(&id).unwrap(), Closed::Already(result));
    assert_eq!(w.commits("main"), 2);
}

#[test]
fn a_hook_that_refuses_is_named_and_nothing_is_staged_or_committed() {
    let mut w = World::new();
    w.script(&w.root.join(".git/hooks/pre-commit"), "echo no lint; exit 1");
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/new.md", "two\n");
    let Err(CloseError::Git(error)) = w.close(&id) else {
        panic!()
    };
    assert!(error.to_string().contains("no lint"), "{error}");
    assert_eq!(w.commits("main"), 1);
    assert_eq!(w.dirty(), ["?? docs/new.md"]);
    std::fs::remove_file(w.root.join(".git/hooks/pre-commit")).unwrap();
    w.done(&id);
}

#[test]
fn a_hook_that_reformats_has_its_tree_tested_too() {
    let mut w = World::new();
    w.script(
        &w.root.join(".git/hooks/pre-commit"),
        "echo formatted > src/a.rs; git add src/a.rs",
    );
    let id = w.open("api", &["src/"], code(GREEN));
    w.write("src/a.rs", "two\n");
    let result = w.done(&id);
    assert_eq!(w.root_git(&["show", "HEAD:src/a.rs"]), "formatted");
    assert_eq!(
        result.tests.unwrap().tree,
        w.root_git(&["rev-parse", "HEAD^{tree}"])
    );
    assert_eq!(w.commits("main"), 2);
    assert_eq!(w.dirty(), [""; 0]);
}

#[test]
fn a_human_gate_of_on_done_comes_before_the_commit_so_that_a_no_leaves_none() {
    for choice in [Choice::Continue, Choice::Abort] {
        let mut w = World::new();
        let mut ask = code(GREEN);
        ask.change = |open| open.on_done = vec![Trigger::parse("gate:human → \"ship it?\"").unwrap()];
        let id = w.open("api", &["src/"], ask);
        w.write("src/a.rs", "two\n");
        let (gate, subject, _) = w.waits(&id);
        assert_eq!(subject, "ship it?");
        assert_eq!(w.commits("main"), 1);
        w.answer(&gate, choice);
        if choice == Choice::Continue {
            assert_eq!(short(&w.done(&id)), (Outcome::Ok, vec!["src/a.rs"]));
        } else {
            assert!(matches!(w.refused(&id), Refusal::WrongState { .. }));
            assert_eq!(w.commits("main"), 1);
        }
    }
}

#[test]
fn other_content_than_what_a_human_said_yes_to_is_asked_about_again() {
    let mut w = World::new();
    let mut ask = notes();
    ask.change = |open| open.on_done = vec![Trigger::parse("gate:human → \"ship it?\"").unwrap()];
    let id = w.open("docs", &["docs/"], ask);
    w.write("docs/a.md", "two\n");
    let (first, ..) = w.waits(&id);
    w.answer(&first, Choice::Continue);
    w.write("docs/a.md", "three\n");
    let (second, ..) = w.waits(&id);
    assert_ne!(first, second);
    w.answer(&second, Choice::Continue);
    w.done(&id);
}

fn open_child(w: &mut World, slug: &str, scope: &str) -> protocol::facts::id::SessId {
    let mut ask = notes();
    ask.change = |open| {
        open.kind_of = ClaimType::Satellite;
        open.parent = Some(protocol::facts::id::SessId::parse("sess-20261130-1030-pilot").unwrap());
    };
    w.open(slug, &[scope], ask)
}

#[test]
fn a_pilot_waits_for_its_children_and_sums_them_up() {
    let mut w = World::new();
    let mut ask = notes();
    ask.change = |open| open.kind_of = ClaimType::Pilot;
    let pilot = w.open("pilot", &["."], ask);
    let docs = open_child(&mut w, "docs", "docs/");
    let src = open_child(&mut w, "src", "src/");
    w.write("docs/a.md", "two\n");
    w.write("src/a.rs", "two\n");
    assert!(matches!(w.refused(&pilot), Refusal::ChildrenLive { children, .. } if children.len() == 2));
    let result = w.done(&docs);
    let lines = summary(&w.claim(&docs), &result);
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], "✅ Satellite done — docs/");
    assert!(lines[3].ends_with("→ sess-20261130-1030-pilot"), "{lines:?}");

    let failed = CloseAsk {
        at_most: Outcome::Failed,
        ..CloseAsk::of(src.clone())
    };
    w.close_as(&w.plain(), &failed, Fuse::default()).unwrap();
    assert!(
        matches!(w.refused(&pilot), Refusal::ChildrenFailed { children, .. } if children == [src.clone()])
    );
    let accept = CloseAsk {
        accept_failed: true,
        ..CloseAsk::of(pilot.clone())
    };
    let said = w.close_as(&w.plain(), &accept, Fuse::default()).unwrap();
    let Closed::Done(result, _) = said else {
        panic!("{said:?}")
    };
    assert_eq!(result.status, Outcome::Partial);
    assert_eq!(result.children, [docs, src]);
    let lines = summary(&w.claim(&pilot), &result);
    assert!(lines.len() <= 8, "{lines:?}");
    assert_eq!(lines[0], "⚠️ Pilot partly done — . [Orchestrated]");
}

#[test]
fn a_partial_result_is_what_was_asked_for_and_stands_in_the_commit() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/", "etc/"], notes());
    w.write("docs/a.md", "two\n");
    let ask = CloseAsk {
        at_most: Outcome::Partial,
        notes: Some("half of it".to_owned()),
        ..CloseAsk::of(id.clone())
    };
    let said = w.close_as(&w.agent("docs"), &ask, Fuse::default()).unwrap();
    let Closed::Done(result, _) = said else {
        panic!("{said:?}")
    };
    assert_eq!(
        (result.status, result.notes.as_slice()),
        (Outcome::Partial, &["half of it".to_owned()][..])
    );
    let message = w.root_git(&["log", "-1", "--format=%B"]);
    assert!(
        message.starts_with("brain-write(docs/, +1): the work of docs\n"),
        "{message}"
    );
    assert!(message.contains("Brain-Result: partial"), "{message}");
}

#[test]
fn a_stopped_brain_closes_nothing_and_a_stale_claim_is_renewed_first() {
    let mut w = World::new();
    let id = w.open("docs", &["docs/"], notes());
    w.write("docs/a.md", "two\n");
    w.submit(
        &w.plain(),
        &Command::Halt {
            why: "wait".to_owned(),
        },
    );
    assert!(matches!(w.refused(&id), Refusal::Halted { .. }));
    assert_eq!(w.commits("main"), 1);
    w.submit(&w.human(), &Command::Thaw);
    w.clock.turn(5 * 3_600_000);
    w.done(&id);
}
