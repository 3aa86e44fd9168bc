//! `brain gate …`, `brain stop`, `brain thaw`.

use protocol::command::{Command, OpenGate};
use protocol::event::Event;
use protocol::facts::gate::{About, Choice, Gate as Fact, GateKind};
use protocol::facts::id::GateId;
use protocol::refusal::Refusal;
use protocol::world::Pick;
use serde_json::json;

use crate::cli::Gate;
use crate::context::{Context, Typed};
use crate::failure::{Failure, Trouble};
use crate::{proof, show, wire};

/// Carries out `brain gate …`.
pub fn gate(cx: &mut Context, verb: &Gate) -> Result<u8, Failure> {
    match verb {
        Gate::Open { id, about, why } => open(cx, id, about, why),
        Gate::Approve { id, words } => answer(cx, id, Choice::Continue, words),
        Gate::Reject { id, words } => answer(cx, id, Choice::Abort, words),
        Gate::Answer { id, choice, words } => {
            let choice = Choice::parse(&choice.to_lowercase()).ok_or_else(|| {
                Trouble::usage(format!(
                    "{choice:?} is no answer: continue, adapt, retry, skip or abort"
                ))
            })?;
            answer(cx, id, choice, words)
        }
        Gate::List { jsonl } => list(cx, *jsonl),
        Gate::Show { id } => {
            let gate = find(cx, id, Typed::Part)?;
            cx.out
                .answer(json!({ "gate": wire::gate(&gate) }), show::gate(&gate));
            Ok(0)
        }
        Gate::Pause { id, why } => {
            let id = cx.claim_id(id, Typed::Part)?;
            cx.submit(&Command::Pause {
                id: id.clone(),
                why: reason(why, "paused"),
            })?;
            let (world, _) = cx.look(&vec![Pick::Tree(id.clone())])?;
            crate::attempts::suspend(&cx.root, &world, &id);
            cx.out
                .answer(json!({ "sess_id": id.as_str(), "status": "paused" }), "");
            cx.out.note(format!("{id} is paused, with all below it"));
            Ok(0)
        }
        Gate::Resume { id } => {
            let id = cx.claim_id(id, Typed::Part)?;
            cx.submit(&Command::Resume { id: id.clone() })?;
            let (world, now) = cx.look(&vec![Pick::Tree(id.clone())])?;
            crate::attempts::resume(&cx.root, &world, &id);
            let state = world
                .claims
                .get(&id)
                .map_or("unknown", |claim| world.state(claim, now).as_str());
            cx.out
                .answer(json!({ "sess_id": id.as_str(), "status": state }), "");
            cx.out.note(format!("{id} is {state}"));
            Ok(0)
        }
        Gate::Abort { id, why } => {
            let id = cx.claim_id(id, Typed::Whole)?;
            let entries = cx.submit(&Command::Abort {
                id: id.clone(),
                why: reason(why, "aborted"),
            })?;
            crate::attempts::end(&cx.root, &entries);
            let failed: Vec<&str> = entries
                .iter()
                .filter_map(|entry| match &entry.event {
                    Event::ClaimFailed { id, .. } => Some(id.as_str()),
                    _ => None,
                })
                .collect();
            cx.out.answer(
                json!({ "sess_id": id.as_str(), "status": "failed", "failed": failed }),
                "",
            );
            cx.out.note(format!("failed: {}", failed.join(", ")));
            Ok(0)
        }
        Gate::Status { id } => status(cx, id),
    }
}

fn reason(words: &[String], otherwise: &str) -> String {
    if words.is_empty() {
        otherwise.to_owned()
    } else {
        words.join(" ")
    }
}

/// Reads what a gate is about: a kind, or `zone.kernel`, `zone.personal`, `zone:PATH`.
fn subject(about: &str) -> Result<(GateKind, String), Failure> {
    if let Some(path) = about.strip_prefix("zone:") {
        return Ok((GateKind::Zone, path.to_owned()));
    }
    if let Some(zone) = about.strip_prefix("zone.") {
        return match zone {
            "kernel" | "personal" => Ok((GateKind::Zone, zone.to_owned())),
            _ => Err(Trouble::usage(format!("no right can be asked for zone {zone:?}")).into()),
        };
    }
    match GateKind::parse(about) {
        Some(GateKind::Zone) => Ok((GateKind::Zone, "personal".to_owned())),
        Some(kind) => Ok((kind, String::new())),
        None => {
            let names: Vec<&str> = GateKind::ALL.iter().map(|(_, name)| *name).collect();
            Err(Trouble::usage(format!("{about:?} is no kind of gate: {}", names.join(", "))).into())
        }
    }
}

fn open(cx: &mut Context, id: &str, about: &str, why: &str) -> Result<u8, Failure> {
    let id = cx.claim_id(id, Typed::Part)?;
    let (kind, mut subject) = subject(about)?;
    if let Some(path) = about.strip_prefix("zone:") {
        subject = logical(cx, path)?;
    }
    let (world, _) = cx.look(&vec![Pick::Claim(id.clone())])?;
    let scope = world
        .claims
        .get(&id)
        .map(|claim| claim.scope.to_string())
        .unwrap_or_default();
    let known = vec![
        ("Claim".to_owned(), id.to_string()),
        ("Scope".to_owned(), scope.clone()),
    ];
    let shown = blake3::hash(format!("{id}\n{scope}\n{kind}\n{subject}\n{why}").as_bytes()).to_hex();
    let ask = OpenGate {
        about: About::Claim(id),
        kind,
        subject,
        why: why.to_owned(),
        known,
        shown: shown.as_str()[..16].to_owned(),
    };
    let entries = cx.submit(&Command::OpenGate(ask))?;
    let gate = entries.iter().find_map(|entry| match &entry.event {
        Event::GateOpened(gate) => Some(gate.clone()),
        _ => None,
    });
    let Some(gate) = gate else { return Ok(0) };
    cx.out
        .answer(json!({ "gate": wire::gate(&gate) }), gate.id.as_str());
    cx.out
        .note(format!("a human answers it: brain gate show {}", gate.id));
    Ok(0)
}

/// The logical path that a right is asked for, however it was spelled.
fn logical(cx: &Context, path: &str) -> Result<String, Failure> {
    let placed = cx.place(std::path::Path::new(path), true)?;
    let lost = |_| {
        Trouble::usage(format!(
            "{path}: no right can be given outside the brain, nor for what is git's or brain's own"
        ))
    };
    Ok(placed.path.map_err(lost)?.as_str().to_owned())
}

fn find(cx: &mut Context, text: &str, typed: Typed) -> Result<Fact, Failure> {
    let id = cx.gate_id(text, typed)?;
    by_id(cx, &id)
}

fn by_id(cx: &mut Context, id: &GateId) -> Result<Fact, Failure> {
    let (world, _) = cx.look(&vec![Pick::Gate(id.clone())])?;
    let gate = world.gates.get(id).cloned();
    gate.ok_or_else(|| Refusal::GateUnknown { id: id.to_string() }.into())
}

fn answer(cx: &mut Context, text: &str, choice: Choice, words: &[String]) -> Result<u8, Failure> {
    proof::only_humans(cx, "answer a gate")?;
    let gate = find(cx, text, Typed::Whole)?;
    give(cx, &gate, choice, &words.join(" "))
}

/// Answers a gate as a human: shows it, asks for the proof, signs the answer.
pub fn give(cx: &mut Context, gate: &Fact, choice: Choice, words: &str) -> Result<u8, Failure> {
    if gate.answer.is_none() {
        let answer = gate.to_sign(choice, words, &cx.caller.user, &cx.caller.host);
        let shown = format!("{}\n   Answer   : {}", show::gate(gate), choice.as_str());
        let seal = proof::prove(cx, "answer a gate", &shown, &answer)?;
        cx.submit(&Command::AnswerGate {
            id: gate.id.clone(),
            choice,
            words: words.to_owned(),
            shown: gate.shown.clone(),
            mac: seal.to_string(),
        })?;
    }
    let gate = by_id(cx, &gate.id)?;
    if let About::Claim(_) | About::Phase(..) = &gate.about
        && gate.choice() == Some(Choice::Abort)
    {
        crate::attempts::end_dead(cx)?;
    }
    let given = gate.choice().map_or("none", Choice::as_str);
    cx.out.answer(json!({ "gate": wire::gate(&gate) }), "");
    cx.out.note(format!("{}: {given}", gate.id));
    Ok(0)
}

fn list(cx: &mut Context, jsonl: bool) -> Result<u8, Failure> {
    let (world, _) = cx.look(&vec![Pick::PendingGates])?;
    let gates: Vec<&Fact> = world.gates.values().filter(|gate| gate.is_pending()).collect();
    let text: Vec<String> = gates.iter().map(|gate| show::gate_line(gate)).collect();
    cx.out.list(
        jsonl,
        "gates",
        gates.iter().map(|gate| wire::gate(gate)).collect(),
        &text,
        "no gate is open",
    );
    Ok(0)
}

fn status(cx: &mut Context, text: &str) -> Result<u8, Failure> {
    let id = cx.claim_id(text, Typed::Part)?;
    let (world, now) = cx.look(&vec![Pick::Claim(id.clone()), Pick::GatesOf(id.clone())])?;
    let claim = world
        .claims
        .get(&id)
        .ok_or_else(|| Refusal::ClaimUnknown { id: id.to_string() })?;
    let state = world.state(claim, now);
    let gates: Vec<&Fact> = world
        .gates
        .values()
        .filter(|gate| matches!(&gate.about, About::Claim(of) if *of == id))
        .collect();
    let mut text = format!("{id} is {state}");
    let pauses = world.pauses(claim);
    if !pauses.is_empty() {
        text.push_str(&format!("\n  paused by {}", pauses.join(", ")));
    }
    for gate in &gates {
        text.push_str(&format!("\n  {}", show::gate_line(gate)));
    }
    let document = json!({
        "sess_id": id.as_str(),
        "status": state.as_str(),
        "pauses": pauses,
        "gates": gates.iter().map(|gate| wire::gate(gate)).collect::<Vec<_>>(),
    });
    cx.out.answer(document, text);
    Ok(0)
}

/// Carries out `brain stop`.
pub fn stop(cx: &mut Context, why: &[String]) -> Result<u8, Failure> {
    cx.submit(&Command::Halt {
        why: reason(why, "stopped"),
    })?;
    crate::attempts::suspend_all(cx)?;
    cx.out.answer(json!({ "stopped": true }), "");
    cx.out.note(
        "the brain is stopped: nothing is written, opened, launched, closed or landed until `brain thaw`",
    );
    Ok(0)
}

/// Carries out `brain thaw`.
pub fn thaw(cx: &mut Context) -> Result<u8, Failure> {
    cx.submit(&Command::Thaw)?;
    crate::attempts::resume_all(cx)?;
    cx.out.answer(json!({ "stopped": false }), "");
    cx.out.note("the stop is lifted");
    Ok(0)
}
