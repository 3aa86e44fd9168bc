//! JSON for the outside, written by hand: rule types never leave as they are stored.

use std::collections::BTreeMap;

use protocol::event::Entry;
use protocol::facts::caller::Proof;
use protocol::facts::claim::{Claim, ClaimResult, End, Evidence, EvidenceSource, FailedBy, Fence, Owner};
use protocol::facts::gate::{About, Gate};
use protocol::facts::lock::Lock;
use protocol::facts::run::{Exit, PhaseRun, Run, RunEnd, Standing};
use protocol::facts::signal::{Address, Sender, Signal};
use protocol::facts::time::{Instant, rfc3339};
use protocol::refusal::Held;
use protocol::world::{Lease, World};
use serde_json::{Map, Value, json};

/// The version of every document.
pub const VERSION: u32 = 1;

/// A successful answer: `{"v":1,"ok":true,…}`.
pub fn answer(fields: Value) -> Value {
    let mut document = Map::new();
    document.insert("v".into(), VERSION.into());
    document.insert("ok".into(), true.into());
    if let Value::Object(fields) = fields {
        document.extend(fields);
    }
    Value::Object(document)
}

/// A moment as RFC 3339 in UTC.
pub fn time(instant: Instant) -> Value {
    rfc3339(instant.wall).into()
}

/// Whose something is, with its process: the reader is on this machine.
pub fn owner(owner: &Owner) -> Value {
    json!({
        "user": owner.user,
        "host": owner.host,
        "pid": owner.process.as_ref().map(|process| process.pid),
        "host_session": owner.host_session,
    })
}

/// A claim, with the field names of the protocol (section 5).
pub fn claim(world: &World, claim: &Claim, now: Instant) -> Value {
    let held = world.held(claim, now);
    let closed_at = match &claim.end {
        Some(End::Closed { at } | End::Failed { at, .. }) => Some(time(*at)),
        None => None,
    };
    let failed = match &claim.end {
        Some(End::Failed { by, why, .. }) => Some(json!({ "by": failed_by(by), "why": why })),
        _ => None,
    };
    let base: Map<String, Value> = claim
        .base
        .iter()
        .map(|(repo, base)| {
            let dirty: Vec<&String> = base.dirty.keys().collect();
            (repo.clone(), json!({ "commit": base.commit, "branch": base.branch, "checkout": base.checkout, "dirty": dirty }))
        })
        .collect();
    let triggers =
        |list: &[protocol::facts::trigger::Trigger]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "sess_id": claim.id.as_str(),
        "type": claim.kind_of.as_str(),
        "scope": claim.scope.to_strings(),
        "agent": claim.agent,
        "owner": owner(&claim.owner),
        "status": held.state.as_str(),
        "pauses": world.pauses(claim),
        "opened_at": time(claim.opened_at),
        "seen_at": held.seen_at.map(time),
        "expires_at": held.expires_at.map(time),
        "closed_at": closed_at,
        "ttl": claim.ttl.to_string(),
        "story_angle": claim.story_angle,
        "satellite_type": claim.satellite_type.as_str(),
        "satellite_level": claim.satellite_level.as_str(),
        "parent_satellite": claim.parent_satellite.as_ref().map(|id| id.as_str()),
        "tier": claim.tier().number(),
        "on_done": triggers(&claim.on_done),
        "on_partial": triggers(&claim.on_partial),
        "on_fail": triggers(&claim.on_fail),
        "branch": claim.branch,
        "theme_branch": claim.theme_branch,
        "worktree": claim.worktree,
        "tests": claim.tests.as_ref().map(|tests| &tests.run),
        "mode": claim.rendering.then_some("rendering"),
        "exclusive": claim.exclusive,
        "human": claim.human,
        "workflow": claim.workflow.as_ref().map(|of| of.plan.clone()),
        "workflow_step": claim.workflow.as_ref().map(|of| of.phase.clone()),
        "base": base,
        "fence": fence(claim.fence),
        "waiting": claim.waiting.as_ref().map(|gate| gate.as_str()),
        "failed": failed,
        "result": claim.result.as_ref().map(result),
    })
}

fn fence(fence: Fence) -> Value {
    fence.0.into()
}

fn failed_by(by: &FailedBy) -> String {
    match by {
        FailedBy::Abort => "abort".to_owned(),
        FailedBy::Reject => "reject".to_owned(),
        FailedBy::Superseded(id) => format!("superseded_by {id}"),
        FailedBy::Reaped => "reaped".to_owned(),
        FailedBy::Ancestor(id) => format!("ancestor {id}"),
    }
}

/// What a claim delivered (section 11, step 6).
pub fn result(result: &ClaimResult) -> Value {
    json!({
        "status": result.status.as_str(),
        "files_modified": result.files_modified,
        "commit": commit(&result.commit),
        "tests": result.tests.as_ref().map(evidence),
        "children": result.children.iter().map(|id| id.as_str()).collect::<Vec<_>>(),
        "signal_id": result.signal_id.as_ref().map(|id| id.as_str()),
        "notes": result.notes,
    })
}

/// The commit of a close; a map by repository when there are several.
fn commit(commits: &BTreeMap<String, String>) -> Value {
    match commits.len() {
        0 => Value::Null,
        1 => json!(commits.values().next()),
        _ => json!(commits),
    }
}

/// A test run.
pub fn evidence(evidence: &Evidence) -> Value {
    let report = evidence.report.as_ref();
    json!({
        "command": evidence.command,
        "exit": evidence.exit,
        "tree": evidence.tree,
        "total": report.map(|it| it.total),
        "passed": report.map(|it| it.passed),
        "failed": report.map(|it| it.failed),
        "skipped": report.map(|it| it.skipped),
        "failures": report.map(|it| it.failures.clone()),
        "source": match evidence.source {
            EvidenceSource::Run => "run",
            EvidenceSource::File => "file",
        },
        "took_ms": evidence.took_ms,
        "foreign": evidence.foreign,
        "artifacts": evidence.artifacts,
    })
}

/// A lock.
pub fn lock(world: &World, lock: &Lock, now: Instant) -> Value {
    json!({
        "path": lock.path.as_str(),
        "holder": lock.holder.as_str(),
        "owner": owner(&lock.owner),
        "fence": fence(lock.fence),
        "taken_at": time(lock.taken_at),
        "expires_at": world.lock_expires(lock).map(time),
        "held": world.holds(lock, now),
    })
}

/// A gate.
pub fn gate(gate: &Gate) -> Value {
    let about = match &gate.about {
        About::Claim(id) => json!({ "claim": id.as_str() }),
        About::Phase(run, phase) => json!({ "run": run.as_str(), "phase": phase }),
        About::Run(run) => json!({ "run": run.as_str() }),
    };
    let answer = gate.answer.as_ref().map(|answer| {
        json!({
            "choice": answer.choice.as_str(),
            "words": answer.words,
            "by": { "user": answer.by.user, "host": answer.by.host, "proof": answer.by.proof.as_ref().map(proof) },
            "at": time(answer.at),
        })
    });
    json!({
        "gate": gate.id.as_str(),
        "kind": gate.kind.as_str(),
        "about": about,
        "subject": gate.subject,
        "why": gate.why,
        "known": gate.known.iter().map(|(label, text)| json!({ "label": label, "text": text })).collect::<Vec<_>>(),
        "shown": gate.shown,
        "options": gate.choices().iter().map(|choice| choice.as_str()).collect::<Vec<_>>(),
        "asked_by": { "nature": gate.by.nature, "user": gate.by.user, "claim": gate.by.claim.as_ref().map(|id| id.as_str()) },
        "asked_at": time(gate.asked_at),
        "pending": gate.is_pending(),
        "deferred": gate.deferred,
        "answer": answer,
    })
}

fn proof(proof: &Proof) -> Value {
    match proof {
        Proof::Typed { terminal } => json!({ "typed": terminal }),
        Proof::Signed { signer } => json!({ "signed": signer }),
        Proof::Demo => json!({ "demo": true }),
    }
}

/// A signal, with the names of section 10.
pub fn signal(world: &World, signal: &Signal) -> Value {
    let delivered = world
        .leases
        .get(&Lease::Delivery(signal.id.clone()))
        .map(|lease| lease.touched);
    let state = match (signal.acked_at, delivered) {
        (Some(_), _) => "acked",
        (None, Some(_)) => "delivered",
        (None, None) => "pending",
    };
    let from = match &signal.from {
        Sender::Session(id) => id.to_string(),
        Sender::User(user) => user.clone(),
        Sender::Brain => "brain".to_owned(),
    };
    let to = match &signal.to {
        Address::Session(id) => id.to_string(),
        Address::Human => "human".to_owned(),
    };
    json!({
        "sig_id": signal.id.as_str(),
        "from": from,
        "to": to,
        "type": signal.kind.as_str(),
        "scope": signal.scope,
        "summary": signal.summary,
        "state": state,
        "orphan": crate::show::is_orphan(world, signal),
        "created_at": time(signal.created_at),
        "delivered_at": delivered.map(time),
        "acked_at": signal.acked_at.map(time),
    })
}

/// An entry of the journal.
pub fn entry(entry: &Entry) -> Value {
    // The stored shape of an event is protocol already; only its envelope is ours.
    let event = serde_json::to_value(&entry.event).unwrap_or_default();
    let (name, data) = match event {
        Value::Object(map) => map.into_iter().next().unwrap_or_default(),
        Value::String(name) => (name, Value::Null),
        _ => Default::default(),
    };
    json!({
        "seq": entry.seq,
        "at": time(entry.at),
        "actor": { "nature": entry.actor.nature, "user": entry.actor.user, "host": entry.actor.host,
                   "claim": entry.actor.claim.as_ref().map(|id| id.as_str()) },
        "event": name,
        "claim": entry.event.claim().map(|id| id.as_str()),
        "data": outside(without_private(data)),
    })
}

/// Takes process ids and token digests out of what is shown (section 14).
fn without_private(mut data: Value) -> Value {
    if let Value::Object(map) = &mut data {
        map.remove("token");
        map.remove("process");
        for value in map.values_mut() {
            *value = without_private(std::mem::take(value));
        }
    }
    data
}

/// A run with its phases.
pub fn run(run: &Run, phases: &[&PhaseRun]) -> Value {
    json!({
        "run": run.id.as_str(),
        "plan": run.plan,
        "source": run.source,
        "pilot": run.pilot.as_str(),
        "theme": run.theme,
        "jobs": run.jobs,
        "started_at": time(run.started_at),
        "end": run.end.map(|_| end_word(run)),
        "ended_at": run.ended_at.map(time),
        "phases": phases.iter().map(|it| phase(it)).collect::<Vec<_>>(),
    })
}

/// A phase of a run.
pub fn phase(it: &PhaseRun) -> Value {
    let (standing, outcome) = standing(&it.standing);
    let attempts: Vec<Value> = it
        .attempts
        .iter()
        .map(|attempt| {
            json!({
                "attempt": attempt.id.as_str(),
                "claim": attempt.claim.as_str(),
                "began_at": time(attempt.began_at),
                "ended_at": attempt.ended_at.map(time),
                "exit": attempt.exit.as_ref().map(exit),
                "outcome": attempt.outcome.map(|it| it.as_str()),
                "why": attempt.why,
            })
        })
        .collect();
    json!({
        "phase": it.phase.id.as_str(),
        "title": it.phase.title,
        "type": it.phase.kind.as_str(),
        "scope": it.phase.scope,
        "needs": it.phase.needs.iter().map(|need| need.as_str()).collect::<Vec<_>>(),
        "state": standing,
        "outcome": outcome,
        "waiting": it.waiting.as_ref().map(|gate| gate.as_str()),
        "attempts": attempts,
    })
}

/// How the process of an attempt ended.
fn exit(exit: &Exit) -> Value {
    match exit {
        Exit::Status(status) => json!({ "status": status }),
        Exit::Interrupt(number) => json!({ "interrupt": number }),
        Exit::TimedOut => json!("timed_out"),
        Exit::Idle => json!("idle"),
        Exit::TooMuchOutput => json!("too_much_output"),
        Exit::Vanished => json!("vanished"),
        Exit::NotStarted(why) => json!({ "not_started": why }),
    }
}

/// The word for where a phase stands, and its outcome.
pub fn standing(standing: &Standing) -> (&'static str, Option<&'static str>) {
    match standing {
        Standing::Pending => ("pending", None),
        Standing::Running => ("running", None),
        Standing::Accepted(outcome) => ("accepted", Some(outcome.as_str())),
        Standing::Skipped => ("skipped", None),
        Standing::Failed => ("failed", None),
    }
}

/// A claim as a refusal shows it.
pub fn held(held: &Held) -> Value {
    json!({
        "claim": held.claim.as_str(),
        "type": held.kind_of.as_str(),
        "scope": held.scope.to_strings(),
        "status": held.state.as_str(),
        "story_angle": held.story_angle,
        "agent": held.agent,
        "owner": owner(&held.owner),
        "opened_at": time(held.opened_at),
        "seen_at": held.seen_at.map(time),
        "expires_at": held.expires_at.map(time),
    })
}

/// Stored instants as RFC 3339.
fn outside(value: Value) -> Value {
    match value {
        Value::Object(map) if map.len() == 3 && map.contains_key("era") && map.contains_key("tick") => map
            .get("wall")
            .and_then(Value::as_i64)
            .map_or(Value::Null, |wall| rfc3339(wall).into()),
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, value)| (key, outside(value)))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(outside).collect()),
        other => other,
    }
}

/// How a run stands, in a word.
pub fn end_word(run: &Run) -> &'static str {
    match run.end {
        None => "under way",
        Some(RunEnd::Finished) => "finished",
        Some(RunEnd::Failed) => "failed",
        Some(RunEnd::Cancelled) => "cancelled",
        Some(RunEnd::Aborted) => "aborted",
    }
}
