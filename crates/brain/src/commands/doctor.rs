//! `brain doctor`: what is missing or wrong on this machine and in this brain, each with its fix.

use std::path::Path;
use std::process::Command;

use protocol::facts::id::SessId;
use protocol::world::Pick;
use runner::token::{FOLDER, Token};
use serde_json::{Value, json};
use store::{Pages, listed};

use crate::advice::quote;
use crate::cli::Globals;
use crate::context::{Context, configuration, find_root};
use crate::exit;
use crate::failure::Failure;
use crate::out::Out;

/// The oldest git that everything works with.
const GIT_LEAST: (u32, u32) = (2, 40);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Ok,
    Warn,
    Fail,
}

struct Finding {
    check: &'static str,
    level: Level,
    why: String,
    fix: Option<String>,
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, check: &'static str, level: Level, why: impl Into<String>, fix: Option<&str>) {
        self.0.push(Finding {
            check,
            level,
            why: why.into(),
            fix: fix.map(str::to_owned),
        });
    }
}

/// Carries out `brain doctor`; fails when something keeps brain from working here.
pub fn doctor(globals: &Globals) -> Result<u8, Failure> {
    let mut found = Findings(Vec::new());
    git(&mut found);
    let cwd = std::env::current_dir().unwrap_or_default();
    identity(&mut found, &cwd);
    match find_root(globals, &cwd) {
        Err(failure) => found.add("brain", Level::Fail, failure.shown().message, Some("brain init")),
        Ok(root) => {
            found.add("brain", Level::Ok, root.dir().display().to_string(), None);
            match configuration(&root) {
                Ok((config, policy)) => {
                    found.add(
                        "configuration",
                        Level::Ok,
                        format!("policy {}", policy.digest),
                        None,
                    );
                    for notice in &config.notices {
                        found.add("configuration", Level::Warn, notice.clone(), None);
                    }
                    if config.gates.signed && !runs("ssh-keygen", &["-?"]) {
                        let why = "gates.signed needs ssh-keygen, which is not on PATH";
                        found.add("signatures", Level::Fail, why, Some("install the OpenSSH client"));
                    }
                }
                Err(failure) => {
                    let shown = failure.shown();
                    let fix = shown.advice.first().and_then(|it| it.run.as_deref());
                    found.add("configuration", Level::Fail, &shown.message, fix);
                }
            }
            if root.repository().is_none() {
                let why = "the root lies in no git repository: claims and locks work, closing has nothing to commit";
                found.add("repository", Level::Warn, why, Some("git init"));
            }
        }
    }
    match Context::open(globals) {
        Ok(mut cx) => brain(&mut cx, &mut found)?,
        Err(failure) => {
            let shown = failure.shown();
            let fix = shown.advice.first().and_then(|it| it.run.clone());
            // Each reason once: without a brain, or with a configuration that does not read, there is no store to judge.
            if !found.0.iter().any(|it| it.why == shown.message) {
                found.add("store", Level::Fail, shown.message, fix.as_deref());
            }
        }
    }
    let why = "an agent of your own user can leave its process tree: nothing here is a barrier against it but the audit at close";
    found.add("isolation", Level::Warn, why, None);
    show(Out::new(globals), &found)
}

fn runs(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok()
}

fn git(found: &mut Findings) {
    let fix = Some("install git 2.40 or newer");
    match git::version() {
        Ok(version) if version.number < GIT_LEAST => found.add("git", Level::Fail, version.text, fix),
        Ok(version) => found.add("git", Level::Ok, version.text, None),
        Err(error) => found.add("git", Level::Fail, crate::gitwords::trouble(&error).message, fix),
    }
}

fn identity(found: &mut Findings, cwd: &Path) {
    let fix = Some("git config --global user.name NAME && git config --global user.email MAIL");
    match git::knows_committer(cwd) {
        Ok(true) => found.add("identity", Level::Ok, "git knows who commits", None),
        Ok(false) => found.add("identity", Level::Fail, "git does not know who commits", fix),
        // Said once already.
        Err(_) => {}
    }
}

fn brain(cx: &mut Context, found: &mut Findings) -> Result<(), Failure> {
    let (world, _) = cx.look(&Vec::new())?;
    let (live, gone) = owners(cx)?;
    found.add(
        "store",
        Level::Ok,
        format!("{} events, {live} live claims", world.head),
        None,
    );
    if let Some((why, _)) = &world.halt.standing {
        found.add(
            "stop",
            Level::Warn,
            format!("the brain is stopped, until a human lifts it: {why}"),
            None,
        );
    }
    if gone > 0 {
        found.add(
            "owners",
            Level::Warn,
            format!("{gone} claims whose owner is gone"),
            Some("brain claim reap"),
        );
    }
    let dead = dead_locks(cx)?;
    if dead > 0 {
        found.add(
            "locks",
            Level::Warn,
            format!("{dead} locks that hold nothing"),
            Some("brain lock cleanup"),
        );
    }
    stray_tokens(cx, found)?;
    kept_worktrees(cx, found)?;
    Ok(())
}

/// How many claims have not ended, and of how many of them the owner's process is gone.
fn owners(cx: &mut Context) -> Result<(usize, usize), Failure> {
    let (mut live, mut gone) = (0, 0);
    let mut pages = Pages::of_claims(true);
    while let Some((world, _)) = pages.turn(&mut cx.store)? {
        live += world.listed.len();
        let processes = listed(&world)
            .filter(|claim| !claim.reaped)
            .filter_map(|claim| claim.owner.process.as_ref());
        gone += processes.filter_map(crate::attempts::process_gone).count();
    }
    Ok((live, gone))
}

/// How many locks hold nothing.
fn dead_locks(cx: &mut Context) -> Result<usize, Failure> {
    let mut dead = 0;
    let mut pages = Pages::of_locks();
    while let Some((world, now)) = pages.turn(&mut cx.store)? {
        dead += world
            .locks
            .values()
            .filter(|lock| !world.holds(lock, now))
            .count();
    }
    Ok(dead)
}

/// Tokens of claims that were never opened, or have ended, are taken away: they open nothing.
fn stray_tokens(cx: &mut Context, found: &mut Findings) -> Result<(), Failure> {
    let state = cx.root.state();
    for id in ids_in(&state.join(FOLDER)) {
        let (world, _) = cx.look(&vec![Pick::Claim(id.clone())])?;
        if world
            .claims
            .get(&id)
            .is_none_or(protocol::facts::claim::Claim::is_terminal)
            && let Err(error) = Token::forget(&state, &id)
        {
            found.add(
                "tokens",
                Level::Warn,
                format!("the token of {id}, which has ended: {error}"),
                None,
            );
        }
    }
    Ok(())
}

/// Worktrees of claims that ended with work that is not landed: kept, and named.
fn kept_worktrees(cx: &mut Context, found: &mut Findings) -> Result<(), Failure> {
    let mut pages = Pages::of_claims(false);
    while let Some((world, _)) = pages.turn(&mut cx.store)? {
        for claim in listed(&world).filter(|claim| claim.is_terminal()) {
            let Some(at) = claim.worktree.as_ref().filter(|at| Path::new(at).is_dir()) else {
                continue;
            };
            let why = format!("{} has ended and its worktree is kept: {at}", claim.id);
            let fix = format!("git -C {} status", quote(at));
            found.add("worktrees", Level::Warn, why, Some(&fix));
        }
    }
    Ok(())
}

fn ids_in(folder: &Path) -> Vec<SessId> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| SessId::parse(entry.file_name().to_str()?).ok())
        .collect()
}

fn show(out: Out, found: &Findings) -> Result<u8, Failure> {
    let word = |level| match level {
        Level::Ok => "ok",
        Level::Warn => "warn",
        Level::Fail => "fail",
    };
    let items: Vec<Value> = found
        .0
        .iter()
        .map(|it| json!({ "check": it.check, "level": word(it.level), "why": it.why, "fix": it.fix }))
        .collect();
    let text: Vec<String> = found
        .0
        .iter()
        .map(|it| {
            let colour = match it.level {
                Level::Ok => "32",
                Level::Warn => "33",
                Level::Fail => "31",
            };
            let fix = it
                .fix
                .as_ref()
                .map_or(String::new(), |fix| format!("\n              fix: {fix}"));
            format!(
                "{} {:<14} {}{fix}",
                out.paint_answer(colour, &format!("{:<4}", word(it.level))),
                it.check,
                it.why
            )
        })
        .collect();
    let failed = found.0.iter().any(|it| it.level == Level::Fail);
    Ok(out.verdict(
        if failed { exit::NOT_READY } else { 0 },
        json!({ "checks": items }),
        &text,
        "",
    ))
}
