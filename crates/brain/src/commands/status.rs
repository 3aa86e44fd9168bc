//! `brain status`: who works here, what waits, what is wrong. Looking changes nothing.

use std::collections::BTreeSet;

use protocol::facts::claim::{Claim, State};
use protocol::facts::time::rfc3339;
use protocol::world::{Footprint, Pick, pauser_name};
use serde_json::json;
use store::{Pages, Sqlite, SqliteOptions, Store, listed};

use crate::context::{Context, no_root};
use crate::failure::Failure;
use crate::out::Stream;
use crate::show::counted;
use crate::{attempts, show, wire};

/// How many claims, and how many gates, people see; of the rest they are told how many, and where.
const SHOWN: usize = 50;

/// How alive a claim is, derived from its lease and its owner when it is read (O-36).
#[derive(Clone, Copy)]
enum Life {
    Alive,
    Expired,
    OwnerGone,
}

impl Life {
    fn as_str(self) -> &'static str {
        match self {
            Life::Alive => "alive",
            Life::Expired => "lease expired",
            Life::OwnerGone => "owner gone",
        }
    }
}

fn life(cx: &Context, claim: &Claim, state: State) -> Life {
    if state == State::Stale {
        return if claim.reaped {
            Life::OwnerGone
        } else {
            Life::Expired
        };
    }
    let gone = match (&claim.workflow, &claim.owner.process) {
        (Some(_), _) => attempts::gone(&cx.root, &claim.id).is_some(),
        (None, Some(process)) => attempts::process_gone(process).is_some(),
        (None, None) => false,
    };
    if gone { Life::OwnerGone } else { Life::Alive }
}

/// What a look over the claims that have not ended came to.
#[derive(Default)]
struct Claims {
    all: usize,
    alive: usize,
    expired: usize,
    gone: usize,
    /// The policies under which they were opened.
    policies: BTreeSet<String>,
    /// Gates whose answer bears no seal that counts here.
    forged: Vec<String>,
    /// The first few, as people see them.
    lines: Vec<String>,
}

/// Looks over the claims that have not ended, and prints each of them into the document.
fn claims(cx: &mut Context, raw: &mut Sqlite, document: &mut Stream) -> Result<Claims, Failure> {
    let mut seen = Claims::default();
    let mut pages = Pages::of_claims(true);
    document.list("claims");
    while let Some((world, now)) = pages.turn(&mut cx.store)?
        && document.is_read()
    {
        for claim in listed(&world) {
            let life = life(cx, claim, world.state(claim, now));
            seen.all += 1;
            match life {
                Life::Alive => seen.alive += 1,
                Life::Expired => seen.expired += 1,
                Life::OwnerGone => seen.gone += 1,
            }
            if !seen.policies.contains(&claim.policy) {
                seen.policies.insert(claim.policy.clone());
            }
            if seen.lines.len() < SHOWN {
                let line = show::claim_line(&world, claim, now);
                seen.lines.push(match life {
                    Life::Alive => format!("  {line}"),
                    Life::Expired | Life::OwnerGone => format!("  {line}  [{}]", life.as_str()),
                });
            }
            document.item(|| {
                let mut it = wire::claim(&world, claim, now);
                it["life"] = life.as_str().into();
                it
            });
        }
        let answered = world.listed.iter().cloned().map(Pick::GatesOf).collect();
        seen.forged.extend(forged(cx, raw, &answered)?);
    }
    Ok(seen)
}

/// Counts the locks that hold, and prints each of them into the document.
fn locks(cx: &mut Context, document: &mut Stream) -> Result<usize, Failure> {
    let mut held = 0;
    let mut pages = Pages::of_locks();
    document.list("locks");
    while let Some((world, now)) = pages.turn(&mut cx.store)?
        && document.is_read()
    {
        for lock in world.locks.values().filter(|lock| world.holds(lock, now)) {
            held += 1;
            document.item(|| wire::lock(&world, lock, now));
        }
    }
    Ok(held)
}

/// Carries out `brain status`.
pub fn status(cx: &mut Context) -> Result<u8, Failure> {
    let (world, now) = cx.look(&vec![Pick::PendingGates, Pick::AllMail, Pick::LiveRuns])?;
    let gates: Vec<_> = world.gates.values().filter(|gate| gate.is_pending()).collect();
    let orphans: Vec<_> = world
        .signals
        .values()
        .filter(|signal| show::is_orphan(&world, signal))
        .collect();
    // As it lies there: the store of the context has taken answers that do not count away already.
    let database = cx.root.database().map_err(|error| no_root(&error))?;
    let mut raw = Sqlite::open(&database, SqliteOptions::default())?;
    let mut document = cx.out.stream();
    let mut seen = claims(cx, &mut raw, &mut document)?;
    let of_runs = world.runs.keys().cloned().map(Pick::GatesOfRun).collect();
    seen.forged.extend(forged(cx, &mut raw, &of_runs)?);
    let held = locks(cx, &mut document)?;
    if cx.out.json {
        let stopped = world.halt.standing.as_ref();
        document.field(
            "stopped",
            stopped.map(|(why, by)| json!({ "why": why, "by": pauser_name(by) })),
        );
        document.field(
            "counts",
            json!({ "claims": seen.all, "alive": seen.alive, "expired": seen.expired, "owner_gone": seen.gone,
                    "locks": held, "gates": gates.len(), "signals": world.signals.len(), "orphans": orphans.len() }),
        );
        document.field(
            "gates",
            gates.iter().map(|gate| wire::gate(gate)).collect::<Vec<_>>(),
        );
        let orphans = orphans.iter().map(|signal| wire::signal(&world, signal));
        document.field("orphans", orphans.collect::<Vec<_>>());
        document.field("policies_differ", seen.policies.len() > 1);
        document.field("answers_not_verified", seen.forged);
        document.end();
        return Ok(0);
    }

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
        "{}: {} alive, {} expired, {} with their owner gone; {}, {}, {}, {}",
        counted(seen.all, "claim"),
        seen.alive,
        seen.expired,
        seen.gone,
        counted(held, "lock"),
        counted(gates.len(), "open gate"),
        counted(world.signals.len(), "signal"),
        counted(orphans.len(), "orphan"),
    ));
    text.append(&mut seen.lines);
    if seen.all > SHOWN {
        text.push(format!("  … and {} more: brain claim list", seen.all - SHOWN));
    }
    text.extend(
        gates
            .iter()
            .take(SHOWN)
            .map(|gate| format!("  {}", show::gate_line(gate))),
    );
    if gates.len() > SHOWN {
        text.push(format!("  … and {} more: brain gate list", gates.len() - SHOWN));
    }
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
    if seen.policies.len() > 1 {
        text.push("  warning: live claims were opened under different policies (zones or limits)".to_owned());
    }
    text.extend(
        seen.forged
            .iter()
            .map(|id| format!("  warning: the answer of {id} does not verify on this machine: it is none")),
    );
    if cx.root.repository().is_none() {
        text.push("  the root lies in no git repository".to_owned());
    }
    cx.out.answer(json!({}), text.join("\n"));
    Ok(0)
}

/// Those of these gates whose answer bears no seal that counts here; for the rules it is none.
fn forged(cx: &Context, raw: &mut Sqlite, gates: &Footprint) -> Result<Vec<String>, Failure> {
    let (world, _) = raw.look(gates)?;
    let answered = world.gates.values().filter(|gate| gate.answer.is_some());
    let forged = answered.filter(|gate| !cx.keys.verify(gate));
    Ok(forged.map(|gate| gate.id.to_string()).collect())
}
