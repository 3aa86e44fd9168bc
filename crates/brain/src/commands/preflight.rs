//! `brain preflight …`: the check that runs before every write of every agent.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use protocol::command::Command;
use protocol::facts::id::SessId;
use protocol::refusal::{Check as Checked, Detail, Refusal};
use protocol::rules::Asked;
use protocol::rules::footprint;
use protocol::rules::preflight::{Answer, Op, Preflight as Ask, Verdict, judge, read_blind};
use protocol::world::{Lease, Pick};
use serde_json::{Value, json};
use store::Store;

use crate::cli::{Check, Globals, OpWord, Preflight};
use crate::context::{Context, Typed, bad_path};
use crate::failure::{Failure, Trouble};
use crate::out::Out;
use crate::{advice, exit, facts, place, wire};

/// Lines of human output at most (section 7).
const LINES_MOST: usize = 10;
/// A sign of life is written down again when the last one is older than this, in milliseconds.
const TOUCH_AFTER: u64 = 60_000;

/// Carries out `brain preflight …`.
pub fn preflight(globals: &Globals, verb: &Preflight) -> Result<u8, Failure> {
    match verb {
        Preflight::Check(args) => check(globals, args),
        Preflight::Fail { id, why } => {
            let cx = &mut Context::open(globals)?;
            let id = cx.claim_id(id, Typed::Part)?;
            cx.submit(&Command::FailWork {
                id: id.clone(),
                why: why.clone(),
            })?;
            count(cx, &id)
        }
        Preflight::Reset { id, why } => {
            let cx = &mut Context::open(globals)?;
            let id = cx.claim_id(id, Typed::Part)?;
            let (world, _) = cx.look(&vec![Pick::Claim(id.clone())])?;
            let tripped = world
                .claims
                .get(&id)
                .and_then(|claim| world.works.get(&claim.work))
                .is_some_and(|work| work.tripped);
            if tripped {
                let text = format!("reset the breaker of {id}: {why}");
                crate::proof::prove(cx, "reset the breaker", &text, &text)?;
            }
            cx.submit(&Command::ResetWork {
                id: id.clone(),
                why: why.clone(),
            })?;
            count(cx, &id)
        }
        Preflight::Status { id } => {
            let cx = &mut Context::open(globals)?;
            let id = cx.claim_id(id, Typed::Part)?;
            count(cx, &id)
        }
    }
}

/// Shows the failures of a claim's work.
fn count(cx: &mut Context, id: &SessId) -> Result<u8, Failure> {
    let (world, _) = cx.look(&vec![Pick::Claim(id.clone())])?;
    let claim = world
        .claims
        .get(id)
        .ok_or_else(|| Refusal::ClaimUnknown { id: id.to_string() })?;
    let work = world.works.get(&claim.work);
    let (fails, most) = (work.map_or(0, |work| work.fails), cx.policy.fails_max);
    let last = work.and_then(|work| work.last.clone());
    let tripped = work.is_some_and(|work| work.tripped);
    let mut text = format!("{fails}/{most} failures in a row: {}", claim.work.0);
    if let Some(last) = &last {
        text.push_str(&format!("\n  last: {}", advice::escaped(last)));
    }
    if tripped {
        text.push_str("\n  stopped: only a human reopens it");
    }
    let document = json!({ "sess_id": id.as_str(), "work": claim.work.0, "fails": fails, "most": most, "last": last, "stopped": tripped });
    cx.out.answer(document, text);
    Ok(0)
}

/// Reads `preflight check` from the bare words, without the cost of the whole grammar.
///
/// `None` hands the words to the grammar: help, a mistake, or anything unusual.
pub fn fast(args: &[OsString]) -> Option<(Globals, Check)> {
    let [first, second, rest @ ..] = args else {
        return None;
    };
    if first != "preflight" || second != "check" {
        return None;
    }
    let mut globals = Globals {
        root: std::env::var_os("BRAIN_ROOT").map(PathBuf::from),
        ..Globals::default()
    };
    let mut check = Check {
        id: String::new(),
        paths: Vec::new(),
        op: OpWord::Write,
    };
    let mut words = rest.iter();
    let mut plain = false;
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") if !plain => plain = true,
            Some("--json") if !plain => globals.json = true,
            Some("--quiet" | "-q") if !plain => globals.quiet = true,
            Some("--root") if !plain => globals.root = Some(words.next()?.into()),
            Some("--op") if !plain => {
                check.op = match words.next()?.to_str()? {
                    "write" => OpWord::Write,
                    "read" => OpWord::Read,
                    "delete" => OpWord::Delete,
                    _ => return None,
                }
            }
            Some(option) if !plain && option.starts_with('-') && option != "-" => return None,
            _ if check.id.is_empty() => check.id = word.to_str()?.to_owned(),
            _ => check.paths.push(word.into()),
        }
    }
    (!check.id.is_empty() && !check.paths.is_empty()).then_some((globals, check))
}

/// Judges the paths; exit 0 is go, 1 to 6 name the first check that refuses.
pub fn check(globals: &Globals, args: &Check) -> Result<u8, Failure> {
    let op = match args.op {
        OpWord::Write => Op::Write,
        OpWord::Read => Op::Read,
        OpWord::Delete => Op::Delete,
    };
    let cx = match Context::near(globals) {
        Ok(cx) => cx,
        Err(failure) if op == Op::Read => return blind(globals, args, failure),
        Err(failure) => return Err(failure),
    };
    // The process ends with the answer and takes all this with it, faster than piece by piece.
    let cx = Box::leak(Box::new(cx));
    let mut near = op != Op::Read && SessId::parse(&args.id).is_ok();
    if !near {
        cx.look_around();
    }
    let id = match args.id.as_str() {
        "-" if op == Op::Read => None,
        "-" => return Err(Trouble::usage("only a read goes without a claim").into()),
        "@me" => Some(cx.claim_id("@me", Typed::Part)?),
        // The whole id costs no look of its own; what is no claim's may still be a part of one.
        text => match SessId::parse(text) {
            Ok(id) => Some(id),
            Err(_) => Some(cx.claim_id(text, Typed::Part)?),
        },
    };
    let mut placer = place::Placer::new(&cx.root);
    let mut paths = Vec::with_capacity(args.paths.len());
    for path in &args.paths {
        paths.push(
            placer
                .place(&cx.cwd, path.as_os_str(), op)
                .map_err(|error| bad_path(path, &error))?,
        );
    }
    let ask = Ask {
        id: id.clone(),
        op,
        paths,
    };
    let mut renewed = false;
    let mut worktree = None;
    let verdicts = loop {
        let picks = footprint::of_preflight(&ask, &cx.caller);
        let (world, now) = cx.store.look(&picks)?;
        let claim = id.as_ref().and_then(|id| world.claims.get(id));
        worktree = claim.and_then(|claim| claim.worktree.clone()).or(worktree);
        let asked = Asked {
            world: &world,
            caller: &cx.caller,
            policy: &cx.policy,
            now,
        };
        let judged = judge(asked, &ask);
        let go = |verdicts: &[Verdict]| verdicts.iter().all(|verdict| verdict.refused.is_none());
        match (judged, &id) {
            (Answer::Judged(verdicts), Some(id)) if go(&verdicts) => {
                if !renewed {
                    sign_of_life(cx, &world, id, now, near);
                }
                break verdicts;
            }
            // Whose processes stand above can only turn a no into a yes, or say who may renew.
            _ if near => {
                cx.look_around();
                near = false;
            }
            (Answer::Judged(verdicts), _) => {
                if let (Some(part), false) = (is_unknown(&verdicts), renewed)
                    && let Ok(whole) = cx.claim_id(&part, Typed::Part)
                {
                    return check(
                        globals,
                        &Check {
                            id: whole.to_string(),
                            paths: args.paths.clone(),
                            op: args.op,
                        },
                    );
                }
                break verdicts;
            }
            (Answer::RenewFirst, Some(id)) if !renewed => {
                cx.submit(&Command::RenewClaim { id: id.clone() })?;
                renewed = true;
            }
            (Answer::RenewFirst, _) => {
                return Err(Trouble::new(
                    exit::BUSY,
                    "claim.renewal",
                    "the claim could not be renewed in time",
                )
                .into());
            }
        }
    };
    let worktree = worktree.filter(|_| op != Op::Read);
    let warning = worktree.as_deref().and_then(shared_stash);
    Ok(answer(cx.out, id.as_ref(), &verdicts, warning))
}

/// The warning for a session with a worktree of its own beside somebody's stash (O-30).
///
/// From files alone, since it comes with every check; where only git could tell, nothing is said.
fn shared_stash(worktree: &str) -> Option<&'static str> {
    let stashed = git::Repository::at(Path::new(worktree))?.has_stash()?;
    stashed.then_some(
        "something is stashed, and the stash is one for all worktrees: a `git stash pop` here may bring the work of \
         another session; commit work in progress on your own branch",
    )
}

/// The id that no claim has.
fn is_unknown(verdicts: &[Verdict]) -> Option<String> {
    match verdicts.first()?.refused.as_ref()? {
        (_, Detail::Unknown { id }) => Some(id.clone()),
        _ => None,
    }
}

/// Pushes the claim's expiry on, when the last sign of life is old enough to be worth a write.
fn sign_of_life(
    cx: &mut Context,
    world: &protocol::world::World,
    id: &SessId,
    now: protocol::facts::time::Instant,
    near: bool,
) {
    let (Some(claim), Some(lease)) = (world.claims.get(id), world.leases.get(&Lease::Claim(id.clone())))
    else {
        return;
    };
    let old = now
        .since(lease.touched)
        .is_some_and(|age| age.as_ms() > TOUCH_AFTER.min(claim.ttl.as_ms() / 10));
    if !old {
        return;
    }
    if near {
        cx.look_around();
    }
    if protocol::world::owns(&cx.caller, claim) || !cx.is_agent() {
        // A lost renewal only shortens the lease; the next check renews.
        let _ = cx
            .store
            .touch(&[(Lease::Claim(id.clone()), claim.fence)], claim.ttl);
    }
}

/// Shows the verdicts; gives the exit code.
fn answer(out: Out, id: Option<&SessId>, verdicts: &[Verdict], warning: Option<&str>) -> u8 {
    let code = verdicts
        .iter()
        .find_map(|it| it.refused.as_ref())
        .map_or(0, |(check, _)| check.exit());
    if out.json {
        let shown: Vec<Value> = verdicts.iter().map(|verdict| verdict_json(id, verdict)).collect();
        let mut document = json!({ "v": wire::VERSION, "ok": code == 0, "exit": code, "verdicts": shown });
        if let Some(warning) = warning {
            document["warnings"] = json!([warning]);
        }
        out.document(&document);
        return code;
    }
    // A refusal has enough to say of its own.
    if let (0, Some(warning)) = (code, warning) {
        out.note(format!("warning: {warning}"));
    }
    let refused: Vec<&Verdict> = verdicts
        .iter()
        .filter(|verdict| verdict.refused.is_some())
        .collect();
    let mut lines = Vec::new();
    let mut mends = None;
    for verdict in &refused {
        let Some((check, detail)) = &verdict.refused else {
            continue;
        };
        let (message, advice) = words(id, verdict, detail);
        lines.push(format!(
            "refused: {message} [{}, check {}]",
            detail.code(),
            number(*check)
        ));
        let advice = advice.into_iter().map(|it| match it.run {
            Some(run) => format!("  {}: {run}", it.say),
            None => format!("  {}", it.say),
        });
        mends = mends.or_else(|| advice.into_iter().next());
    }
    // What mends the first refusal comes last, where it is read.
    let room = LINES_MOST - usize::from(mends.is_some());
    let shown = if lines.len() > room { room - 1 } else { lines.len() };
    lines.iter().take(shown).for_each(|line| out.note(line));
    if shown < lines.len() {
        out.note(format!(
            "refused: and {} more, of {} paths",
            lines.len() - shown,
            verdicts.len()
        ));
    }
    mends.iter().for_each(|mends| out.note(mends));
    code
}

fn words(id: Option<&SessId>, verdict: &Verdict, detail: &Detail) -> (String, Vec<advice::Advice>) {
    let path = verdict
        .path
        .as_ref()
        .map_or(verdict.given.as_str(), |path| path.as_str());
    let satellite = match detail {
        Detail::NotCovered { pilot: Some(_), .. } => id,
        _ => None,
    };
    advice::of_detail(detail, path, satellite)
}

fn number(check: Checked) -> &'static str {
    match check {
        Checked::Claim => "1",
        Checked::Parents => "1b",
        Checked::Scope => "2",
        Checked::Zone => "3",
        Checked::Lock => "4",
        Checked::Breaker => "5",
        Checked::Branch => "6",
    }
}

fn verdict_json(id: Option<&SessId>, verdict: &Verdict) -> Value {
    let path = verdict.path.as_ref().map(|path| path.as_str().to_owned());
    match &verdict.refused {
        None => json!({ "path": path.unwrap_or_else(|| verdict.given.clone()), "ok": true }),
        Some((check, detail)) => {
            let (message, advice) = words(id, verdict, detail);
            let fix = advice.into_iter().map(|it| it.run.unwrap_or(it.say)).next();
            json!({
                "path": path.unwrap_or_else(|| verdict.given.clone()),
                "given": verdict.given,
                "ok": false,
                "check": check,
                "exit": check.exit(),
                "code": detail.code(),
                "message": message,
                "facts": facts::of_detail(detail),
                "fix": fix,
            })
        }
    }
}

/// A read where the store cannot be asked: zone `secret` is refused to every agent, the rest is no concern.
fn blind(globals: &Globals, args: &Check, failure: Failure) -> Result<u8, Failure> {
    let cwd = std::env::current_dir().map_err(|_| Trouble::usage("the current folder is gone"))?;
    let Ok(root) = crate::context::find_root(globals, &cwd) else {
        return Err(failure);
    };
    let (_, policy) = crate::context::configuration(&root)?;
    let caller = crate::caller::Probe::new().near();
    let mut placer = place::Placer::new(&root);
    let mut verdicts = Vec::new();
    for path in &args.paths {
        let asked = placer
            .place(&cwd, path.as_os_str(), Op::Read)
            .map_err(|error| bad_path(path, &error))?;
        let secret = asked
            .path
            .as_ref()
            .is_ok_and(|path| read_blind(&caller.nature, policy.zones.zone_of(path)));
        let refused = secret.then_some((Checked::Zone, Detail::SecretRead));
        verdicts.push(Verdict {
            given: asked.given,
            path: asked.path.ok(),
            refused,
        });
    }
    Ok(answer(Out::new(globals), None, &verdicts, None))
}
