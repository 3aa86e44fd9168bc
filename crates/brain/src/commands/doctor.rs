//! `brain doctor`: what is missing or wrong on this machine and in this brain, each with its fix.

use std::path::Path;
use std::process::Command;

use protocol::facts::id::SessId;
use protocol::world::Pick;
use runner::token::{FOLDER, Token};
use serde_json::{Value, json};

use crate::cli::Globals;
use crate::context::{Context, configuration, find_root};
use crate::failure::Failure;
use crate::out::Out;

/// The oldest git that everything works with.
const GIT_LEAST: (u32, u32) = (2, 40);
/// The environment is not ready.
const NOT_READY: u8 = 21;

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
    identity(&mut found);
    let cwd = std::env::current_dir().unwrap_or_default();
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
                Err(failure) => found.add("configuration", Level::Fail, failure.shown().message, None),
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
            found.add("store", Level::Fail, shown.message, fix.as_deref());
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
    let Ok(output) = Command::new("git").arg("--version").output() else {
        return found.add("git", Level::Fail, "git is not on PATH", fix);
    };
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let number = text.split_whitespace().nth(2).unwrap_or_default().to_owned();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if version < GIT_LEAST {
        found.add("git", Level::Fail, text, fix)
    } else {
        found.add("git", Level::Ok, text, None)
    }
}

fn identity(found: &mut Findings) {
    let known = Command::new("git").args(["var", "GIT_COMMITTER_IDENT"]).output();
    match known {
        Ok(output) if output.status.success() => {
            found.add("identity", Level::Ok, "git knows who commits", None)
        }
        _ => found.add(
            "identity",
            Level::Fail,
            "git does not know who commits",
            Some("git config --global user.name NAME && git config --global user.email MAIL"),
        ),
    }
}

fn brain(cx: &mut Context, found: &mut Findings) -> Result<(), Failure> {
    let (world, now) = cx.look(&vec![Pick::Live, Pick::AllLocks])?;
    found.add(
        "store",
        Level::Ok,
        format!("{} events, {} live claims", world.head, world.claims.len()),
        None,
    );
    if let Some((why, _)) = &world.halt.standing {
        found.add(
            "stop",
            Level::Warn,
            format!("the brain is stopped: {why}"),
            Some("brain thaw"),
        );
    }
    let gone = world
        .claims
        .values()
        .filter(|claim| !claim.is_terminal() && !claim.reaped)
        .filter(|claim| {
            claim
                .owner
                .process
                .as_ref()
                .and_then(crate::attempts::process_gone)
                .is_some()
        })
        .count();
    if gone > 0 {
        found.add(
            "owners",
            Level::Warn,
            format!("{gone} claims whose owner is gone"),
            Some("brain claim reap"),
        );
    }
    let dead = world
        .locks
        .values()
        .filter(|lock| !world.holds(lock, now))
        .count();
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
    let folder = cx.root.state().join("worktrees");
    for id in ids_in(&folder) {
        let (world, _) = cx.look(&vec![Pick::Claim(id.clone())])?;
        if world
            .claims
            .get(&id)
            .is_some_and(protocol::facts::claim::Claim::is_terminal)
        {
            let at = folder.join(id.as_str());
            let why = format!("{} has ended and its worktree is kept: {}", id, at.display());
            found.add(
                "worktrees",
                Level::Warn,
                why,
                Some(&format!("git -C {} status", at.display())),
            );
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
                out.paint(colour, &format!("{:<4}", word(it.level))),
                it.check,
                it.why
            )
        })
        .collect();
    let failed = found.0.iter().any(|it| it.level == Level::Fail);
    out.list(false, "checks", items, &text, "");
    Ok(if failed { NOT_READY } else { 0 })
}
