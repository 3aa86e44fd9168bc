//! `brain claim …`.

use std::path::Path;

use protocol::command::{Command, OpenClaim};
use protocol::event::Event;
use protocol::facts::claim::{Claim as Fact, ClaimType, Level, Owner};
use protocol::facts::id::{SessId, slug_of};
use protocol::facts::kind::Kind;
use protocol::facts::path::LogicalPath;
use protocol::facts::scope::Scope;
use protocol::facts::span::Span;
use protocol::facts::tests::Tests;
use protocol::facts::trigger::Trigger;
use protocol::refusal::Refusal;
use protocol::world::Pick;
use runner::token::Token;
use serde_json::{Value, json};
use store::{Pages, listed};

use crate::advice::quote;
use crate::caller::Probe;
use crate::cli::{Claim, Open};
use crate::commands::span;
use crate::context::{Context, Typed};
use crate::failure::{Failure, Trouble};
use crate::{attempts, bases, show, wire};

/// Carries out `brain claim …`.
pub fn claim(cx: &mut Context, verb: &Claim) -> Result<u8, Failure> {
    match verb {
        Claim::Open(args) => open(cx, args),
        Claim::List { all, jsonl } => list(cx, *all, *jsonl),
        Claim::Show { id } => {
            let id = cx.claim_id(id, Typed::Part)?;
            let (world, now) = cx.look(&vec![Pick::Claim(id.clone())])?;
            let claim = world
                .claims
                .get(&id)
                .ok_or_else(|| Refusal::ClaimUnknown { id: id.to_string() })?;
            cx.out.answer(
                json!({ "claim": wire::claim(&world, claim, now) }),
                show::claim(&world, claim, now),
            );
            Ok(0)
        }
        Claim::Renew { id } => {
            let id = cx.claim_id(id, Typed::Part)?;
            let entries = cx.submit(&Command::RenewClaim { id: id.clone() })?;
            let revived = entries
                .iter()
                .any(|it| matches!(it.event, Event::ClaimRenewed { fence: Some(_), .. }));
            cx.out
                .answer(json!({ "sess_id": id.as_str(), "was_stale": revived }), "");
            cx.out.note(format!("{id} is renewed"));
            Ok(0)
        }
        Claim::Reap { older_than } => reap(cx, older_than.as_deref()),
    }
}

fn word<T>(read: Option<T>, what: &str, text: &str, words: &str) -> Result<T, Failure> {
    read.ok_or_else(|| Trouble::usage(format!("{what}: {text:?} is none of {words}")).into())
}

/// Reads what `claim open` was given.
fn request(cx: &mut Context, args: &Open, token: &Token) -> Result<OpenClaim, Failure> {
    let kind_of = word(
        ClaimType::parse(&args.kind_of),
        "--type",
        &args.kind_of,
        "pilot, satellite, solo",
    )?;
    let kinds = "code, test, deploy, search, brain-write, domain";
    let satellite_type = word(Kind::parse(&args.kind), "--kind", &args.kind, kinds)?;
    let level = match args.level.as_str() {
        "leaf" => Level::Leaf,
        "domain" => Level::Domain,
        other => return Err(Trouble::usage(format!("--level: {other:?} is none of leaf, domain")).into()),
    };
    let rendering = match args.mode.as_deref() {
        None => false,
        Some("rendering") => true,
        Some(other) => {
            return Err(Trouble::usage(format!("--mode: {other:?} is none; there is rendering")).into());
        }
    };
    let scope = scope(cx, args, satellite_type)?;
    let id = args.id.as_deref().map(SessId::parse).transpose();
    let id = id.map_err(|error| Trouble::usage(format!("--id: {error}")))?;
    let parent = args
        .parent
        .as_deref()
        .map(|id| cx.claim_id(id, Typed::Part))
        .transpose()?;
    let triggers = |texts: &[String], what: &str| -> Result<Vec<Trigger>, Failure> {
        let read = |text: &String| {
            Trigger::parse(text).map_err(|error| Trouble::usage(format!("{what}: {text:?}: {error}")).into())
        };
        texts.iter().map(read).collect()
    };
    let owner_process = match args.owner_pid {
        Some(pid) => {
            Probe::new()
                .owned_by(pid)
                .whole()
                .map_err(|error| Trouble::usage(format!("--owner-pid: {error}")))?
                .owner
        }
        None => cx.caller.owner.clone(),
    };
    let slug = args
        .slug
        .clone()
        .unwrap_or_else(|| args.scope.first().cloned().unwrap_or_default());
    let agent = args.agent.clone().or_else(|| cx.caller.agent.clone());
    Ok(OpenClaim {
        id,
        slug: slug_of(&slug),
        kind_of,
        scope,
        agent: agent.unwrap_or_else(|| {
            if cx.is_agent() {
                "agent".to_owned()
            } else {
                "human".to_owned()
            }
        }),
        owner: Owner {
            user: cx.caller.user.clone(),
            host: cx.caller.host.clone(),
            process: owner_process,
            host_session: cx.caller.host_session.clone(),
        },
        ttl: args.ttl.as_deref().map(|ttl| span(ttl, "--ttl")).transpose()?,
        story_angle: args.task.clone(),
        satellite_type,
        satellite_level: level,
        parent,
        on_done: triggers(&args.on_done, "--on-done")?,
        on_partial: triggers(&args.on_partial, "--on-partial")?,
        on_fail: triggers(&args.on_fail, "--on-fail")?,
        branch: args.branch.clone(),
        theme_branch: args.theme.clone(),
        worktree: None,
        tests: args.tests.clone().map(|run| Tests {
            run,
            report: None,
            format: None,
        }),
        rendering,
        exclusive: args.exclusive,
        take_dirty: args.take_dirty,
        base: Default::default(),
        token: token.digest(),
    })
}

/// Reads the entries of the scope, seen from the caller's folder and made relative to the root.
///
/// A folder that exists gets its slash for a search claim, which may write the files that it names.
fn scope(cx: &Context, args: &Open, kind: Kind) -> Result<Scope, Failure> {
    let below = cx.root.below(&cx.cwd).unwrap_or_default();
    let mut entries = Vec::with_capacity(args.scope.len());
    for text in &args.scope {
        let (minus, text) = match text.strip_prefix('!') {
            Some(rest) => ("!", rest),
            None => ("", text.as_str()),
        };
        let text = if let Ok(rest) = Path::new(text).strip_prefix(cx.root.dir()) {
            let slash = if text.ends_with('/') { "/" } else { "" };
            format!("{}{slash}", rest.display())
        } else if below.as_os_str().is_empty() || text.starts_with('/') || text.is_empty() {
            text.to_owned()
        } else {
            format!("{}/{text}", below.display())
        };
        let text = if text.is_empty() && !args.scope.iter().any(String::is_empty) {
            ".".to_owned()
        } else {
            text
        };
        let folder = kind == Kind::Search && !text.ends_with('/') && cx.root.dir().join(&text).is_dir();
        entries.push(format!("{minus}{text}{}", if folder { "/" } else { "" }));
    }
    Scope::parse(&entries, cx.policy.fold).map_err(|error| {
        let code = match error {
            protocol::facts::scope::ScopeError::TooComplex(_) => "scope.too_complex",
            _ => "scope.bad",
        };
        Trouble::new(crate::exit::USAGE, code, format!("--scope: {error}"))
            .hint("name folders, files or globs below the root, such as src/api/ or 'src/**/*.sql'")
            .into()
    })
}

fn open(cx: &mut Context, args: &Open) -> Result<u8, Failure> {
    let token =
        Token::mint().map_err(|error| Trouble::io("cannot read", Path::new("/dev/urandom"), &error))?;
    let mut ask = request(cx, args, &token)?;
    if let Some(theme) = &ask.theme_branch {
        bases::theme(cx, theme)?;
    }
    ask.base = bases::of(cx)?;
    let own = args
        .worktree
        .then(|| bases::plan_worktree(cx, &mut ask))
        .transpose()?;
    // A key is its caller's own: another session of the same user has others.
    let session = cx.caller.host_session.clone().unwrap_or_default();
    let key = args.key.as_ref().map(|key| format!("{session}/{key}"));
    let entries = submit_or_reap(cx, &ask, key.as_deref())?;
    let opened = entries.iter().find_map(|entry| match &entry.event {
        Event::ClaimOpened(claim) => Some(claim.clone()),
        _ => None,
    });
    let same = |claim: &Fact| {
        claim.story_angle == ask.story_angle
            && claim.scope.to_strings() == ask.scope.to_strings()
            && (claim.kind_of, claim.satellite_type) == (ask.kind_of, ask.satellite_type)
            && claim.parent_satellite == ask.parent
    };
    let Some(claim) = opened.filter(|claim| !cx.replayed || same(claim)) else {
        return Err(Trouble::usage("--key was used for another request")
            .hint("use another key")
            .into());
    };
    if !cx.replayed
        && let Err(failure) = equip(cx, &claim, &token, own.as_ref())
    {
        // A claim without its token or the place in which it works is no claim.
        let why = "what it needs could not be made".to_owned();
        cx.submit(&Command::Abort {
            id: claim.id.clone(),
            why,
        })?;
        return Err(failure);
    }
    told(cx, &claim, &entries);
    let (world, now) = cx.look(&vec![Pick::Claim(claim.id.clone())])?;
    let document = json!({
        "claim": world.claims.get(&claim.id).map_or(Value::Null, |claim| wire::claim(&world, claim, now)),
        "dirty": dirty_in_scope(cx, &claim),
        "replayed": cx.replayed,
    });
    cx.out.answer(document, claim.id.as_str());
    Ok(0)
}

/// Gives a claim its token and, where it asked for one, its worktree.
fn equip(cx: &Context, claim: &Fact, token: &Token, own: Option<&bases::Own>) -> Result<(), Failure> {
    let state = cx.root.state();
    token
        .keep(&state, &claim.id)
        .map_err(|error| Trouble::io("cannot keep the token in", &state, &error))?;
    own.map_or(Ok(()), |own| bases::make_worktree(cx, own))
}

/// What the opener should know: what was superseded, what is dirty, where the worktree is.
fn told(cx: &Context, claim: &Fact, entries: &[protocol::event::Entry]) {
    for entry in entries {
        if let Event::ClaimFailed { id, why, .. } = &entry.event {
            cx.out.note(format!("{id} failed: {why}"));
        }
    }
    let dirty = dirty_in_scope(cx, claim);
    if !dirty.is_empty() && !claim.take_dirty {
        let more = dirty.len().saturating_sub(5);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let shown = dirty[..dirty.len().min(5)].join(", ");
        cx.out.note(format!(
            "dirty already, and left alone at close: {shown}{more} (--take-dirty takes it)"
        ));
    }
    for entry in claim.scope.additions().filter(|entry| entry.is_reserved()) {
        cx.out.note(format!(
            "note: {} is git's or brain's own, where no claim may write: each write there is refused",
            quote(entry.as_str())
        ));
    }
    match (&claim.worktree, &claim.branch) {
        (Some(worktree), _) => cx.out.note(format!("its worktree: {worktree}")),
        (None, Some(branch)) if bases::lacks_branch(cx, &claim.base, branch) => cx.out.note(format!(
            "note: there is no branch {branch:?} yet, and each write is refused until it is made and checked out: \
             git switch -c {}",
            quote(branch)
        )),
        (None, _) => {}
    }
}

/// What was changed in the claim's scope before it was opened, by its path below the root.
fn dirty_in_scope(cx: &Context, claim: &Fact) -> Vec<String> {
    let below = |repo: &String, path: &String| {
        if repo == "." {
            path.clone()
        } else {
            format!("{repo}/{path}")
        }
    };
    let all = claim
        .base
        .iter()
        .flat_map(|(repo, base)| base.dirty.keys().map(move |path| below(repo, path)));
    all.filter(|path| LogicalPath::parse(path, cx.policy.fold).is_ok_and(|path| claim.scope.covers(&path)))
        .collect()
}

/// Opens; over a blocker whose owner is proven gone, reaps it first.
fn submit_or_reap(
    cx: &mut Context,
    ask: &OpenClaim,
    key: Option<&str>,
) -> Result<Vec<protocol::event::Entry>, Failure> {
    let command = Command::OpenClaim(ask.clone());
    for _ in 0..8 {
        let refused = match cx.submit_under(&command, key) {
            Err(Failure::Refused(refusal)) => refusal,
            other => return other,
        };
        let Refusal::ScopeOverlaps { held, .. } = &*refused else {
            return Err(Failure::Refused(refused));
        };
        let Some(why) = held.owner.process.as_ref().and_then(attempts::process_gone) else {
            return Err(Failure::Refused(refused));
        };
        cx.out.note(format!("{}: {why}", held.claim));
        cx.submit(&Command::ReapClaims {
            gone: vec![(held.claim.clone(), why)],
        })?;
    }
    cx.submit_under(&command, key)
}

fn list(cx: &mut Context, all: bool, jsonl: bool) -> Result<u8, Failure> {
    let mut listing = cx.out.listing(jsonl, "claims");
    let mut pages = Pages::of_claims(!all);
    'pages: while let Some((world, now)) = pages.turn(&mut cx.store)? {
        for claim in listed(&world) {
            let item = || wire::claim(&world, claim, now);
            if !listing.add(item, || show::claim_line(&world, claim, now)) {
                break 'pages;
            }
        }
    }
    let empty = if all {
        "no claim was ever opened"
    } else {
        "no claim is live"
    };
    listing.end(&cx.out, empty);
    Ok(0)
}

fn reap(cx: &mut Context, older_than: Option<&str>) -> Result<u8, Failure> {
    let older_than = older_than.map(|text| span(text, "--older-than")).transpose()?;
    let gone = proven_gone(cx, older_than)?;
    let entries = cx.submit(&Command::ReapClaims { gone })?;
    let mut items = Vec::new();
    let mut text = Vec::new();
    for entry in &entries {
        let (id, state, why) = match &entry.event {
            Event::ClaimReaped { id, why } => (id, "stale", why),
            Event::ClaimFailed { id, why, .. } => (id, "failed", why),
            _ => continue,
        };
        let (world, now) = cx.look(&vec![Pick::Claim(id.clone())])?;
        let claim = world.claims.get(id);
        let age = claim
            .map(|claim| show::ago(now, claim.opened_at))
            .unwrap_or_default();
        let owner = claim
            .map(|it| format!("{}@{}", it.owner.user, it.owner.host))
            .unwrap_or_default();
        items.push(json!({ "sess_id": id.as_str(), "status": state, "why": why }));
        text.push(format!("{state}  {id}  of {owner}, opened {age}: {why}"));
    }
    cx.out
        .list(false, "reaped", items, &text, "no claim's owner is proven gone");
    Ok(0)
}

/// Unended claims whose owner is proven gone, each with the proof; those only that were silent for so long.
fn proven_gone(cx: &mut Context, older_than: Option<Span>) -> Result<Vec<(SessId, String)>, Failure> {
    let mut gone = Vec::new();
    let mut pages = Pages::of_claims(true);
    while let Some((world, now)) = pages.turn(&mut cx.store)? {
        for claim in listed(&world).filter(|claim| !claim.is_terminal() && !claim.reaped) {
            let lease = world.leases.get(&protocol::world::Lease::Claim(claim.id.clone()));
            let silent = lease.and_then(|lease| now.since(lease.touched));
            if older_than.is_some_and(|least| silent.is_some_and(|silent| silent < least)) {
                continue;
            }
            let proof = match (&claim.workflow, &claim.owner.process) {
                (Some(_), _) => attempts::gone(&cx.root, &claim.id),
                (None, Some(process)) => attempts::process_gone(process),
                (None, None) => None,
            };
            gone.extend(proof.map(|why| (claim.id.clone(), why)));
        }
    }
    Ok(gone)
}
