//! `brain lock …`.

use std::path::PathBuf;

use protocol::command::Command;
use protocol::event::Event;
use protocol::facts::id::SessId;
use protocol::facts::lock::{Holder, Lock as Fact};
use protocol::facts::path::LogicalPath;
use protocol::facts::span::Span;
use protocol::facts::time::rfc3339;
use protocol::refusal::Refusal;
use protocol::rules::preflight::Unplaced;
use protocol::world::{Pick, World};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGTERM};
use store::Pages;

use crate::attended::{attend, code};
use crate::cli::Lock;
use crate::commands::span_in_minutes;
use crate::context::{Context, Typed};
use crate::failure::{Failure, Trouble};
use crate::{exit, proof, wire};

/// How long a lock of `lock run` lasts unless it is renewed.
const RUN_TTL: Span = Span::from_ms(60 * 60_000);
/// The part of its time after which a lock is renewed while a command runs.
const RENEW_AFTER: u32 = 3;

/// Carries out `brain lock …`.
pub fn lock(cx: &mut Context, verb: &Lock) -> Result<u8, Failure> {
    carry_out(cx, verb).map_err(as_lock)
}

fn carry_out(cx: &mut Context, verb: &Lock) -> Result<u8, Failure> {
    match verb {
        Lock::Acquire { path, id, ttl } => {
            let ttl = span_in_minutes(ttl, "--ttl")?;
            let holder = holder(cx, id)?;
            let typed = path;
            let path = logical(cx, typed)?;
            let entries = match acquire(cx, &holder, vec![path.clone()], ttl) {
                Err(failure @ Failure::LockRefused(_)) => {
                    if is_typed_otherwise(cx, typed, &path) {
                        cx.out.note(format!(
                            "note: {} here is {path} of the brain: one file has one lock, whatever it is called and in every worktree",
                            typed.display()
                        ));
                    }
                    return Err(failure);
                }
                taken => taken?,
            };
            let (world, now) = cx.look(&vec![Pick::Locks(vec![path.clone()])])?;
            for entry in &entries {
                match &entry.event {
                    Event::LockReleased { path, holder, .. } => {
                        cx.out.note(format!("the lock of {holder} on {path} had ended"));
                    }
                    Event::LockTaken(lock) => {
                        let until = world
                            .lock_expires(lock)
                            .map(|it| rfc3339(it.wall))
                            .unwrap_or_default();
                        cx.out
                            .answer(json!({ "lock": wire::lock(&world, lock, now) }), "");
                        cx.out.note(format!(
                            "{} is locked by {} until {until}",
                            lock.path, lock.holder
                        ));
                    }
                    _ => {}
                }
            }
            Ok(0)
        }
        Lock::Release { path, id, force, why } => {
            if *force {
                proof::only_humans(cx, "release by force")?;
            }
            let path = logical(cx, path)?;
            let force = if *force { why.clone() } else { None };
            let holder = match &force {
                Some(why) => {
                    if *id != "-" && SessId::parse(id).is_err() {
                        holder(cx, id)?;
                    }
                    let text = format!("release {path} by force: {why}");
                    proof::prove(cx, "release by force", &text, &text)?;
                    Holder::Name(id.clone())
                }
                None => holder(cx, id)?,
            };
            let command = Command::ReleaseLocks {
                holder,
                paths: vec![path.clone()],
                force,
            };
            let entries = cx.submit(&command).map_err(as_lock)?;
            let released = entries
                .iter()
                .any(|entry| matches!(entry.event, Event::LockReleased { .. }));
            cx.out
                .answer(json!({ "path": path.as_str(), "released": released }), "");
            cx.out.note(if released {
                format!("{path} is free")
            } else {
                format!("{path} was not locked by you; nothing to do")
            });
            Ok(0)
        }
        Lock::Check { path } => {
            let path = logical(cx, path)?;
            let (world, now) = cx.look(&vec![Pick::Locks(vec![path.clone()])])?;
            let held: Vec<&Fact> = world.locks_on(&path, true, now).collect();
            let text: Vec<String> = held.iter().map(|lock| line(&world, lock, now)).collect();
            let items: Vec<serde_json::Value> =
                held.iter().map(|lock| wire::lock(&world, lock, now)).collect();
            let fields = json!({ "path": path.as_str(), "locks": items });
            Ok(cx.out.verdict(
                u8::from(!held.is_empty()),
                fields,
                &text,
                &format!("{path} is free"),
            ))
        }
        Lock::List { jsonl } => {
            let mut listing = cx.out.listing(*jsonl, "locks");
            let mut pages = Pages::of_locks();
            'pages: while let Some((world, now)) = pages.turn(&mut cx.store)? {
                for lock in world.locks.values() {
                    if !listing.add(|| wire::lock(&world, lock, now), || line(&world, lock, now)) {
                        break 'pages;
                    }
                }
            }
            listing.end(&cx.out, "nothing is locked");
            Ok(0)
        }
        Lock::Cleanup => {
            let entries = cx.submit(&Command::CleanupLocks)?;
            cx.out
                .answer(json!({ "removed": entries.len() }), entries.len().to_string());
            Ok(0)
        }
        Lock::Run { id, paths, command } => run(cx, id, paths, command).map_err(nothing_ran),
    }
}

fn line(world: &World, lock: &Fact, now: protocol::facts::time::Instant) -> String {
    let until = world
        .lock_expires(lock)
        .map_or_else(|| "unknown".to_owned(), |it| rfc3339(it.wall));
    let state = if world.holds(lock, now) { "held" } else { "ended" };
    format!("{state}  {}  {}  until {until}", lock.path, lock.holder)
}

/// A claim's id, or any other name.
fn holder(cx: &mut Context, text: &str) -> Result<Holder, Failure> {
    if text == "@me" || text.starts_with("sess-") {
        return cx.claim_id(text, Typed::Part).map(Holder::Claim);
    }
    Ok(Holder::Name(text.to_owned()))
}

fn logical(cx: &Context, path: &std::path::Path) -> Result<LogicalPath, Failure> {
    let placed = cx.place(path, false)?;
    placed.path.map_err(|why| {
        let (code, why) = match why {
            Unplaced::Outside(real) => ("path.outside", format!("it lies outside the brain, at {real}")),
            Unplaced::Reserved => ("path.reserved", "it is git's or brain's own".to_owned()),
            Unplaced::Links => ("path.links", "it goes through more than 40 links".to_owned()),
        };
        Trouble::new(2, code, format!("{} cannot be locked: {why}", path.display())).into()
    })
}

/// Whether a path was typed as something else than the place that it names: through a link or in a linked worktree.
fn is_typed_otherwise(cx: &Context, typed: &std::path::Path, path: &LogicalPath) -> bool {
    let whole = |at: PathBuf| {
        let parent = at.parent().and_then(|parent| parent.canonicalize().ok());
        parent.zip(at.file_name().map(std::ffi::OsStr::to_owned))
    };
    whole(cx.cwd.join(typed)) != whole(cx.root.dir().join(path.as_str()))
}

/// The exit codes of locks: 1 someone else holds it, 2 whatever else refuses.
fn as_lock(failure: Failure) -> Failure {
    match failure {
        Failure::Refused(refusal) if !matches!(*refusal, Refusal::NotHuman { .. }) => {
            Failure::LockRefused(refusal)
        }
        Failure::Other(trouble)
            if (exit::ELSEWHERE..=exit::MEND).contains(&trouble.exit) && trouble.code != "gate.not_human" =>
        {
            Failure::Other(Box::new(Trouble { exit: 2, ..*trouble }))
        }
        other => other,
    }
}

fn acquire(
    cx: &mut Context,
    holder: &Holder,
    paths: Vec<LogicalPath>,
    ttl: Span,
) -> Result<Vec<protocol::event::Entry>, Failure> {
    cx.submit(&Command::AcquireLocks {
        holder: holder.clone(),
        paths,
        ttl,
    })
    .map_err(as_lock)
}

/// Locks that are held while a command runs.
struct Held {
    /// Taken for it, and given back after it.
    taken: Vec<LogicalPath>,
    /// Those that its session had before, with the time that each was taken for: they stay its own.
    kept: Vec<(LogicalPath, Span)>,
}

impl Held {
    /// Tells what of these paths the holder has already.
    fn of(cx: &mut Context, holder: &Holder, paths: Vec<LogicalPath>) -> Result<Held, Failure> {
        let (world, now) = cx.look(&vec![Pick::Locks(paths.clone())])?;
        let mut held = Held {
            taken: Vec::new(),
            kept: Vec::new(),
        };
        for path in paths {
            let own = world.locks.get(path.key());
            match own.filter(|lock| lock.holder == *holder && world.holds(lock, now)) {
                Some(lock) => held.kept.push((path, lock.ttl)),
                None => held.taken.push(path),
            }
        }
        Ok(held)
    }

    /// Takes the locks, or renews them, each for its own time.
    fn hold(&self, cx: &mut Context, holder: &Holder) -> Result<(), Failure> {
        for (path, ttl) in &self.kept {
            acquire(cx, holder, vec![path.clone()], *ttl)?;
        }
        if !self.taken.is_empty() {
            acquire(cx, holder, self.taken.clone(), RUN_TTL)?;
        }
        Ok(())
    }

    /// How long they hold safely without a sign of life.
    fn renewed_after(&self) -> std::time::Duration {
        let kept = self.kept.iter().map(|(_, ttl)| ttl.as_ms());
        let shortest = kept
            .min()
            .map_or(RUN_TTL.as_ms(), |kept| kept.min(RUN_TTL.as_ms()));
        std::time::Duration::from_millis(shortest) / RENEW_AFTER
    }
}

/// Runs a command; who holds locks for it gives a sign of life long before they end.
///
/// What is meant to end this process ends the command instead, so that the locks are given back.
fn while_held(
    cx: &mut Context,
    holder: &Holder,
    held: &Held,
    command: &mut std::process::Command,
) -> std::io::Result<std::process::ExitStatus> {
    let child = attend(command, &[SIGTERM, SIGHUP])?;
    while child.runs_after(held.renewed_after()) {
        if let Err(failure) = held.hold(cx, holder) {
            cx.out.note(format!(
                "the locks could not be renewed: {}",
                failure.shown().message
            ));
        }
    }
    child.status()
}

/// Whatever kept the locks from being taken is 75, since 1 and 2 are the command's to say.
fn nothing_ran(failure: Failure) -> Failure {
    let shown = failure.shown();
    if shown.kind != "refused" || shown.exit == exit::USAGE {
        return failure;
    }
    let trouble = Trouble {
        exit: exit::BUSY,
        code: shown.code,
        message: format!("nothing ran: {}", shown.message),
        detail: shown.detail,
        advice: shown.advice,
        facts: shown.facts,
    };
    trouble.into()
}

/// Takes the locks, runs the command, gives back what it took whatever happens.
fn run(cx: &mut Context, id: &str, paths: &[PathBuf], command: &[std::ffi::OsString]) -> Result<u8, Failure> {
    let holder = holder(cx, id)?;
    let paths = paths
        .iter()
        .map(|path| logical(cx, path))
        .collect::<Result<Vec<_>, _>>()?;
    let Some((program, args)) = command.split_first() else {
        return Err(Trouble::usage("no command was given after --").into());
    };
    let held = Held::of(cx, &holder, paths)?;
    held.hold(cx, &holder)?;
    let ran = while_held(cx, &holder, &held, std::process::Command::new(program).args(args));
    let released = cx.submit(&Command::ReleaseLocks {
        holder,
        paths: held.taken,
        force: None,
    });
    let status = match ran {
        Ok(status) => status,
        // As a shell says it: not found, or not to be run.
        Err(error) => {
            cx.out.note(format!(
                "cannot run {}: {error}",
                std::path::Path::new(program).display()
            ));
            return released.map(|_| {
                if error.kind() == std::io::ErrorKind::NotFound {
                    127
                } else {
                    126
                }
            });
        }
    };
    released?;
    Ok(code(status))
}
