//! `brain signal …`.

use protocol::command::Command;
use protocol::event::Event;
use protocol::facts::claim::Fence;
use protocol::facts::id::{SessId, SigId};
use protocol::facts::signal::Signal as Fact;
use protocol::facts::signal_kind::SignalKind;
use protocol::facts::span::Span;
use protocol::world::{Lease, Pick, World, owns};
use serde_json::json;
use store::Store;

use crate::cli::Signal;
use crate::context::{Context, Typed, one_of};
use crate::failure::{Failure, Trouble};
use crate::show::counted;
use crate::{show, wire};

/// How long a delivery is remembered: longer than any session.
const DELIVERED_FOR: Span = Span::from_ms(366 * 86_400_000);

/// Carries out `brain signal …`.
pub fn signal(cx: &mut Context, verb: &Signal) -> Result<u8, Failure> {
    match verb {
        Signal::Send {
            to,
            kind,
            from,
            summary,
        } => send(cx, to, kind, from.as_deref(), summary),
        Signal::List { to, jsonl } => list(cx, to.as_deref(), *jsonl),
        Signal::Ack { ids } => {
            let ids = ids
                .iter()
                .map(|id| sig_id(cx, id))
                .collect::<Result<Vec<_>, _>>()?;
            let entries = cx.submit(&Command::AckSignals { ids })?;
            let acked = entries.len();
            cx.out.answer(json!({ "acked": acked }), "");
            cx.out.note(if acked == 0 {
                "acknowledged already".to_owned()
            } else {
                format!("{} acknowledged", counted(acked, "signal"))
            });
            Ok(0)
        }
    }
}

/// The signal that was meant: its id, or a unique part of one that nobody acknowledged.
fn sig_id(cx: &mut Context, text: &str) -> Result<SigId, Failure> {
    if let Some(id) = SigId::parse(text) {
        return Ok(id);
    }
    let (world, _) = cx.look(&vec![Pick::AllMail])?;
    let id = one_of(
        text,
        world.signals.keys().map(SigId::as_str),
        "signal",
        "brain signal list",
    )?;
    SigId::parse(&id).ok_or_else(|| Trouble::usage(format!("{text:?} is no signal's id")).into())
}

fn send(cx: &mut Context, to: &str, kind: &str, from: Option<&str>, summary: &str) -> Result<u8, Failure> {
    let kind = SignalKind::parse(kind).ok_or_else(|| {
        let names: Vec<&str> = SignalKind::ALL.iter().map(|kind| kind.as_str()).collect();
        Trouble::usage(format!("{kind:?} is no type of signal: {}", names.join(", ")))
    })?;
    let named = std::env::var("BRAIN_SESSION")
        .ok()
        .filter(|named| !named.is_empty());
    let from = from.map(str::to_owned).or(named);
    let from = from.map(|from| cx.claim_id(&from, Typed::Part)).transpose()?;
    let to = match to {
        "pilot" | "pilote" | "parent" | "human" | "all" => to.to_owned(),
        _ => cx.claim_id(to, Typed::Part)?.to_string(),
    };
    let entries = cx.submit(&Command::SendSignal {
        to,
        kind,
        from,
        summary: summary.to_owned(),
    })?;
    let sent: Vec<&Fact> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::SignalSent(signal) => Some(signal),
            _ => None,
        })
        .collect();
    for signal in sent.iter().filter(|signal| signal.orphan) {
        cx.out.note(format!(
            "warning: the session of {} has ended; the signal waits for its successor",
            signal.id
        ));
    }
    let ids: Vec<&str> = sent.iter().map(|signal| signal.id.as_str()).collect();
    let orphans: Vec<&str> = sent
        .iter()
        .filter(|it| it.orphan)
        .map(|it| it.id.as_str())
        .collect();
    cx.out
        .answer(json!({ "signals": ids, "orphans": orphans }), ids.join("\n"));
    if ids.is_empty() {
        cx.out.note("no session is live: nobody gets it");
    }
    Ok(0)
}

fn list(cx: &mut Context, to: Option<&str>, jsonl: bool) -> Result<u8, Failure> {
    let to = match to {
        Some("human") => None,
        Some(id) => Some(cx.claim_id(id, Typed::Part)?),
        None => cx.claim_id("@me", Typed::Part).ok(),
    };
    let mut picks = vec![Pick::Mail(to.clone())];
    picks.extend(to.iter().cloned().map(Pick::Claim));
    let (mut world, _) = cx.look(&picks)?;
    // What a claim took over brings the mail of the one that it replaced.
    let inherits = to
        .as_ref()
        .and_then(|id| world.claims.get(id))
        .map(|claim| claim.inherits.clone());
    for former in inherits.unwrap_or_default() {
        let (more, _) = cx.look(&vec![Pick::Mail(Some(former))])?;
        world.signals.extend(more.signals);
        world.leases.extend(more.leases);
    }
    let mut mail: Vec<&Fact> = world.signals.values().collect();
    mail.sort_by_key(|signal| !is_first(signal));
    let text: Vec<String> = mail
        .iter()
        .map(|signal| show::signal_line(&world, signal))
        .collect();
    let items = mail.iter().map(|signal| wire::signal(&world, signal)).collect();
    cx.out.list(jsonl, "signals", items, &text, "no signal waits");
    deliver(cx, &world, to.as_ref(), &mail)
}

/// `PAUSED` and `ABORT` are handed over before anything else.
fn is_first(signal: &Fact) -> bool {
    matches!(signal.kind, SignalKind::Paused | SignalKind::Abort)
}

/// Whoever looks into another's mail has not received it.
fn deliver(cx: &mut Context, world: &World, to: Option<&SessId>, mail: &[&Fact]) -> Result<u8, Failure> {
    let mine = match to.and_then(|id| world.claims.get(id)) {
        Some(claim) => {
            owns(&cx.caller, claim)
                || std::env::var_os("BRAIN_SESSION").is_some_and(|id| id == claim.id.as_str())
        }
        None => !cx.is_agent(),
    };
    let leases: Vec<(Lease, Fence)> = mail
        .iter()
        .map(|signal| (Lease::Delivery(signal.id.clone()), Fence(0)))
        .collect();
    if mine && !leases.is_empty() {
        cx.store.touch(&leases, DELIVERED_FOR)?;
    }
    Ok(0)
}
