//! `brain status`: who works here, what waits, what is wrong. Looking changes nothing.

use std::collections::BTreeSet;

use protocol::facts::claim::{Claim, State};
use protocol::facts::time::rfc3339;
use protocol::world::{Pick, World, pauser_name};
use serde_json::json;
use store::{Sqlite, SqliteOptions, Store};

use crate::context::{Context, no_root};
use crate::failure::Failure;
use crate::show::counted;
use crate::{attempts, show, wire};

/// How alive a claim is, derived from its lease and its owner when it is read (O-36).
fn life(cx: &Context, claim: &Claim, state: State) -> &'static str {
    if state == State::Stale {
        return if claim.reaped {
            "owner gone"
        } else {
            "lease expired"
        };
    }
    let gone = match (&claim.workflow, &claim.owner.process) {
        (Some(_), _) => attempts::gone(&cx.root, &claim.id).is_some(),
        (None, Some(process)) => attempts::process_gone(process).is_some(),
        (None, None) => false,
    };
    if gone { "owner gone" } else { "alive" }
}

/// Carries out `brain status`.
pub fn status(cx: &mut Context) -> Result<u8, Failure> {
    let picks = vec![
        Pick::Live,
        Pick::PendingGates,
        Pick::AllMail,
        Pick::AllLocks,
        Pick::LiveRuns,
    ];
    let (world, now) = cx.look(&picks)?;
    let live: Vec<&Claim> = world
        .claims
        .values()
        .filter(|claim| !claim.is_terminal())
        .collect();
    let rows: Vec<(&Claim, State, &str)> = live
        .iter()
        .map(|claim| {
            let state = world.state(claim, now);
            (*claim, state, life(cx, claim, state))
        })
        .collect();
    let count = |what: &str| rows.iter().filter(|(_, _, life)| *life == what).count();
    let (alive, expired, gone) = (count("alive"), count("lease expired"), count("owner gone"));
    let gates: Vec<_> = world.gates.values().filter(|gate| gate.is_pending()).collect();
    let orphans: Vec<_> = world
        .signals
        .values()
        .filter(|signal| show::is_orphan(&world, signal))
        .collect();
    let held: Vec<_> = world
        .locks
        .values()
        .filter(|lock| world.holds(lock, now))
        .collect();
    let policies: BTreeSet<&str> = live.iter().map(|claim| claim.policy.as_str()).collect();
    let forged = forged(cx, &world)?;

    let mut text = Vec::new();
    if let Some((why, by)) = &world.halt.standing {
        let since = world
            .halt
            .stretches
            .last()
            .map_or(String::new(), |it| rfc3339(it.from.wall));
        text.push(format!("STOPPED since {since} by {}: {why}", pauser_name(by)));
    }
    text.push(format!(
        "{}: {alive} alive, {expired} expired, {gone} with their owner gone; {}, {}, {}, {}",
        counted(rows.len(), "claim"),
        counted(held.len(), "lock"),
        counted(gates.len(), "open gate"),
        counted(world.signals.len(), "signal"),
        counted(orphans.len(), "orphan"),
    ));
    for (claim, _, life) in &rows {
        let life = if *life == "alive" {
            String::new()
        } else {
            format!("  [{life}]")
        };
        text.push(format!("  {}{life}", show::claim_line(&world, claim, now)));
    }
    text.extend(gates.iter().map(|gate| format!("  {}", show::gate_line(gate))));
    text.extend(orphans.iter().map(|signal| {
        format!(
            "  {}  sent {}: its addressee has ended",
            show::signal_line(&world, signal),
            show::ago(now, signal.created_at)
        )
    }));
    for run in world.runs.values() {
        text.push(format!("  {}  {}  pilot {}", run.id, run.plan, run.pilot));
    }
    if policies.len() > 1 {
        text.push("  warning: live claims were opened under different policies (zones or limits)".to_owned());
    }
    text.extend(
        forged
            .iter()
            .map(|id| format!("  warning: the answer of {id} does not verify on this machine: it is none")),
    );
    if cx.root.repository().is_none() {
        text.push("  the root lies in no git repository".to_owned());
    }
    let document = json!({
        "stopped": world.halt.standing.as_ref().map(|(why, by)| json!({ "why": why, "by": pauser_name(by) })),
        "counts": { "claims": rows.len(), "alive": alive, "expired": expired, "owner_gone": gone,
                    "locks": held.len(), "gates": gates.len(), "signals": world.signals.len(), "orphans": orphans.len() },
        "claims": rows.iter().map(|(claim, _, life)| {
            let mut it = wire::claim(&world, claim, now);
            it["life"] = (*life).into();
            it
        }).collect::<Vec<_>>(),
        "gates": gates.iter().map(|gate| wire::gate(gate)).collect::<Vec<_>>(),
        "orphans": orphans.iter().map(|signal| wire::signal(&world, signal)).collect::<Vec<_>>(),
        "locks": held.iter().map(|lock| wire::lock(&world, lock, now)).collect::<Vec<_>>(),
        "policies_differ": policies.len() > 1,
        "answers_not_verified": forged,
    });
    cx.out.answer(document, text.join("\n"));
    Ok(0)
}

/// Gates of unended claims and runs whose answer bears no seal that counts here; for the rules it is none.
fn forged(cx: &mut Context, world: &World) -> Result<Vec<String>, Failure> {
    let mut picks: Vec<Pick> = world.claims.keys().cloned().map(Pick::GatesOf).collect();
    picks.extend(world.runs.keys().cloned().map(Pick::GatesOfRun));
    // As it lies there: the store of the context has taken such answers away already.
    let database = cx.root.database().map_err(|error| no_root(&error))?;
    let mut raw = Sqlite::open(&database, SqliteOptions::default())?;
    let (world, _) = raw.look(&picks)?;
    let answered = world.gates.values().filter(|gate| gate.answer.is_some());
    let forged = answered.filter(|gate| !cx.keys.verify(gate));
    Ok(forged.map(|gate| gate.id.to_string()).collect())
}
