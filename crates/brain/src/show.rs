//! What people read: lines and blocks, never parsed by anyone.

use protocol::facts::claim::Claim;
use protocol::facts::gate::{About, Choice, Gate};
use protocol::facts::signal::{Address, Sender, Signal};
use protocol::facts::time::{Instant, rfc3339};
use protocol::world::{Lease, World};

use crate::advice::escaped;

/// How long ago something was, in words.
pub fn ago(now: Instant, then: Instant) -> String {
    match now.since(then) {
        Some(span) => format!("{} ago", rough(span.as_ms())),
        None => format!("before this boot, at {}", rfc3339(then.wall)),
    }
}

/// A time span in its largest unit.
pub fn rough(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..=119 => format!("{s} s"),
        s @ 120..=7199 => format!("{} min", s / 60),
        s @ 7200..=172_799 => format!("{} h", s / 3600),
        s => format!("{} d", s / 86_400),
    }
}

/// A number with its noun.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// One claim on a line.
pub fn claim_line(world: &World, claim: &Claim, now: Instant) -> String {
    let state = world.state(claim, now);
    let seen = world
        .leases
        .get(&Lease::Claim(claim.id.clone()))
        .map(|lease| ago(now, lease.touched));
    format!(
        "{:<13} {}  {}  {}  seen {}  {}",
        state.as_str(),
        claim.id,
        claim.kind_of.as_str(),
        claim.scope,
        seen.unwrap_or_else(|| "never".to_owned()),
        escaped(&claim.story_angle),
    )
}

/// One claim, whole.
pub fn claim(world: &World, claim: &Claim, now: Instant) -> String {
    let held = world.held(claim, now);
    let mut lines = vec![
        format!("{}  {}", claim.id, held.state),
        format!("  task     {}", escaped(&claim.story_angle)),
        format!("  scope    {}", claim.scope),
        format!(
            "  type     {} {} {}, tier {}",
            claim.kind_of.as_str(),
            claim.satellite_type,
            claim.satellite_level.as_str(),
            claim.tier().number()
        ),
        format!(
            "  agent    {} of {}@{}",
            escaped(&claim.agent),
            claim.owner.user,
            claim.owner.host
        ),
        format!("  opened   {}", rfc3339(claim.opened_at.wall)),
    ];
    let mut add =
        |label: &str, text: Option<String>| lines.extend(text.map(|text| format!("  {label:<8} {text}")));
    add(
        "expires",
        held.expires_at
            .filter(|_| claim.end.is_none())
            .map(|at| rfc3339(at.wall)),
    );
    add("parent", claim.parent_satellite.as_ref().map(ToString::to_string));
    add("branch", claim.branch.clone());
    add("theme", claim.theme_branch.clone());
    add("worktree", claim.worktree.clone());
    add("tests", claim.tests.as_ref().map(|tests| tests.run.clone()));
    add("waits", claim.waiting.as_ref().map(|gate| format!("at {gate}")));
    let pauses = world.pauses(claim);
    add("paused", (!pauses.is_empty()).then(|| pauses.join(", ")));
    if let Some(result) = &claim.result {
        add("result", Some(result.status.as_str().to_owned()));
        let some = |text: String| (!text.is_empty()).then_some(text);
        add("files", some(result.files_modified.join(" ")));
        add(
            "commit",
            some(result.commit.values().cloned().collect::<Vec<_>>().join(" ")),
        );
        let tests = result.tests.as_ref().and_then(|tests| tests.report.as_ref());
        add(
            "tested",
            tests.map(|it| format!("{}/{} passed, {} skipped", it.passed, it.total, it.skipped)),
        );
        for note in &result.notes {
            add("note", Some(escaped(note)));
        }
    }
    if let Some(protocol::facts::claim::End::Failed { why, .. }) = &claim.end {
        add("why", Some(escaped(why)));
    }
    lines.join("\n")
}

/// One gate on a line.
pub fn gate_line(gate: &Gate) -> String {
    let about = match &gate.about {
        About::Claim(id) => id.to_string(),
        About::Phase(run, phase) => format!("{run} phase {phase}"),
        About::Run(run) => run.to_string(),
    };
    let state = match gate.choice() {
        Some(choice) => format!("answered {}", choice.as_str()),
        None if gate.withdrawn_at.is_some() => "withdrawn".to_owned(),
        None => "open".to_owned(),
    };
    format!(
        "{}  {state}  {}  {about}  {}",
        gate.id,
        gate.kind,
        escaped(&gate.why)
    )
}

/// A gate as a human sees it: what brain knows stands apart from what the asker wrote.
pub fn gate(gate: &Gate) -> String {
    let mut lines = vec![format!("⚡ Human gate {} — {}", gate.id, gate.kind)];
    if !gate.subject.is_empty() && matches!(gate.kind, protocol::facts::gate::GateKind::Zone) {
        lines.push(format!("   For      : {}", escaped(&gate.subject)));
    }
    for (label, text) in &gate.known {
        lines.push(format!("   {label:<9}: {}", escaped(text)));
    }
    let by = gate
        .by
        .claim
        .as_ref()
        .map_or_else(|| gate.by.user.clone(), ToString::to_string);
    lines.push(format!(
        "   Asked by : {by} ({}), {}",
        gate.by.nature,
        rfc3339(gate.asked_at.wall)
    ));
    lines.push(format!("   They say : “{}”", escaped(&gate.why)));
    let options: Vec<String> = gate
        .choices()
        .iter()
        .map(|choice| {
            let what = match choice {
                Choice::Continue => "as planned",
                Choice::Adapt => "change the plan",
                Choice::Retry => "once more",
                Choice::Skip => "leave it out",
                Choice::Abort => "stop",
            };
            format!("[{}] {what}", choice.as_str())
        })
        .collect();
    match &gate.answer {
        None => lines.push(format!("   Options  : {}", options.join(" · "))),
        Some(answer) => lines.push(format!(
            "   Answered : {} by {}@{} at {}{}",
            answer.choice.as_str(),
            answer.by.user,
            answer.by.host,
            rfc3339(answer.at.wall),
            if answer.words.is_empty() {
                String::new()
            } else {
                format!(": {}", escaped(&answer.words))
            },
        )),
    }
    lines.join("\n")
}

/// Whether the session to which a signal is addressed ended without reading it.
pub fn is_orphan(world: &World, signal: &Signal) -> bool {
    let ended = |id| world.claims.get(id).is_some_and(Claim::is_terminal);
    signal.orphan || matches!(&signal.to, Address::Session(id) if ended(id))
}

/// One signal on a line: who says what to whom, marked as data.
pub fn signal_line(world: &World, signal: &Signal) -> String {
    let from = match &signal.from {
        Sender::Session(id) => id.to_string(),
        Sender::User(user) => user.clone(),
        Sender::Brain => "brain".to_owned(),
    };
    let to = match &signal.to {
        Address::Session(id) => id.to_string(),
        Address::Human => "human".to_owned(),
    };
    let delivered = world.leases.contains_key(&Lease::Delivery(signal.id.clone()));
    let state = if is_orphan(world, signal) {
        "orphan"
    } else if delivered {
        "delivered"
    } else {
        "pending"
    };
    format!(
        "{}  {state}  {}  {from} → {to}  “{}”",
        signal.id,
        signal.kind,
        escaped(&signal.summary)
    )
}
