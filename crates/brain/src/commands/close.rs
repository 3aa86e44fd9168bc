//! `brain close`.

use protocol::facts::claim::{Claim, ClaimResult, Outcome};
use protocol::facts::id::SessId;
use protocol::refusal::Refusal;
use protocol::world::Pick;
use runner::close::{self, CloseAsk, CloseError, Closed};
use serde_json::json;
use store::Store;

use crate::cli::Close;
use crate::context::{Context, Typed};
use crate::failure::{Failure, Trouble};
use crate::{exit, prompt, proof, wire};

/// How long to listen for an answer at a time.
const LISTEN: std::time::Duration = std::time::Duration::from_millis(500);

/// Carries out `brain close`.
pub fn close(cx: &mut Context, args: &Close) -> Result<u8, Failure> {
    let id = cx.claim_id(&args.id, Typed::Whole)?;
    let at_most = args
        .result
        .as_deref()
        .and_then(Outcome::parse)
        .unwrap_or(Outcome::Ok);
    if !args.leave.is_empty() {
        let text = format!("close {id} and leave {}", args.leave.join(" "));
        proof::prove(cx, "leave changes behind", &text, &text)?;
    }
    let tests = args.tests.as_deref().map(std::path::absolute).transpose();
    let ask = CloseAsk {
        at_most,
        notes: args.notes.clone(),
        tests: tests.map_err(|error| Trouble::usage(format!("--tests: {error}")))?,
        leave: args.leave.clone(),
        accept_failed: args.accept_failed,
        ..CloseAsk::of(id.clone())
    };
    loop {
        let ground = crate::ground::of(cx)?;
        let closed = close::close(&mut ground.door(&mut cx.store), &ask);
        match closed.map_err(|error| failure(&id, error))? {
            Closed::Already(result) => {
                cx.out
                    .note(format!("{id} was closed already: nothing is done again"));
                return shown(cx, &id, &result, true);
            }
            Closed::Done(result, notices) => {
                for notice in notices {
                    cx.out.note(notice.to_string());
                }
                return shown(cx, &id, &result, false);
            }
            Closed::Waiting(gate) => {
                let (world, _) = cx.look(&vec![Pick::Gate(gate.clone())])?;
                let Some(fact) = world.gates.get(&gate).cloned() else {
                    return Err(Refusal::GateUnknown { id: gate.to_string() }.into());
                };
                let terminal = !args.no_wait && !cx.out.json && prompt::has_terminal() && !cx.is_agent();
                if !terminal {
                    return Err(Refusal::GatePending {
                        gate,
                        kind: fact.kind,
                        why: fact.why,
                    }
                    .into());
                }
                if let Some((choice, words)) = prompt::choice(&fact)? {
                    super::gate::give(cx, &fact, choice, &words)?;
                } else {
                    cx.store.wait(world.head, LISTEN)?;
                }
            }
        }
    }
}

/// The failure of a close, in the words of the command line.
pub fn failure(id: &SessId, error: CloseError) -> Failure {
    match error {
        CloseError::Refused(refusal) => refusal.into(),
        CloseError::Fault(fault) => Failure::Fault(fault),
        CloseError::Git(error) => crate::gitwords::trouble(&error).into(),
        other @ CloseError::Io { .. } => Trouble::new(exit::UNREACHABLE, "close.failed", other.to_string())
            .fix(
                "close again: it goes on from where it stopped",
                format!("brain close {id}"),
            )
            .into(),
    }
}

fn shown(cx: &mut Context, id: &SessId, result: &ClaimResult, already: bool) -> Result<u8, Failure> {
    let (world, _) = cx.look(&vec![Pick::Claim(id.clone())])?;
    let summary = world
        .claims
        .get(id)
        .map(|claim: &Claim| close::summary(claim, result))
        .unwrap_or_default();
    let document = json!({ "sess_id": id.as_str(), "already": already, "result": wire::result(result) });
    cx.out.answer(document, summary.join("\n"));
    Ok(0)
}
