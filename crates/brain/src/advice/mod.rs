//! The words of a refusal: what happened, to what, and what to type now.
//!
//! Advice never prints a command that overrides a guard: agents paste what they read.

use protocol::facts::claim::State;
use protocol::facts::id::SessId;
use protocol::facts::span::Span;
use protocol::facts::time::{Instant, rfc3339};
use protocol::refusal::{Held, Made, MadeBy, Refusal};

mod preflight;

pub use preflight::of_detail;

/// One thing to do, with the command that does it where there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    /// What it is good for.
    pub say: String,
    /// What to type.
    pub run: Option<String>,
}

fn advise(say: &str, run: impl Into<String>) -> Advice {
    Advice {
        say: say.to_owned(),
        run: Some(run.into()),
    }
}

fn hint(say: impl Into<String>) -> Advice {
    Advice {
        say: say.into(),
        run: None,
    }
}

/// Quotes a word for a shell where it needs it.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-@:+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Shows a text that someone else wrote: control, bidi and tag characters escaped, so that it stays one line.
pub fn escaped(text: &str) -> String {
    let odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
            || matches!(c, '\u{E0000}'..='\u{E007F}')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if odd(c) {
            shown.extend(c.escape_unicode())
        } else {
            shown.push(c)
        }
    }
    shown
}

fn at(instant: Option<Instant>) -> String {
    instant.map_or_else(|| "unknown".to_owned(), |instant| rfc3339(instant.wall))
}

fn holder(held: &Held) -> String {
    format!(
        "{} ({} {}, {}, by {} of {}@{}, last seen {}): {}",
        held.claim,
        held.state,
        held.kind_of.as_str(),
        held.scope,
        held.agent,
        held.owner.user,
        held.owner.host,
        at(held.seen_at),
        escaped(&held.story_angle),
    )
}

fn ask_holder(id: &SessId, about: &str) -> Advice {
    let text = quote(&format!("I need {about}: can you make room?"));
    advise(
        "ask the holder to make room",
        format!("brain signal send --to {id} --type BLOCKED_ON {text}"),
    )
}

fn see(id: &SessId) -> Advice {
    advise("see what it is", format!("brain claim show {id}"))
}

/// How a change is taken back, whether it is committed, edited or new.
fn take_back(made: &Made) -> Advice {
    let (checkout, file) = (quote(&made.checkout), quote(&made.file));
    let git = format!("git -C {checkout}");
    match &made.by {
        // What nobody tracks may be somebody's only copy.
        MadeBy::NewFile => advise(
            "take a new file out of the way",
            format!(
                "mv {} \"${{TMPDIR:-/tmp}}\"",
                quote(&format!("{}/{}", made.checkout, made.file))
            ),
        ),
        MadeBy::Edit => advise(
            "take a change back",
            format!("{git} restore --staged --worktree -- {file}"),
        ),
        MadeBy::Commit(base) => {
            let back = match base {
                Some(base) => format!("{git} restore --source {base} --staged --worktree -- {file}"),
                None => format!("{git} rm -q -- {file}"),
            };
            let text = quote(&format!("take back {}", made.file));
            advise(
                "take a committed change back with a commit of its own",
                format!("{back} && {git} commit -m {text} -- {file}"),
            )
        }
    }
}

fn halted(why: &str, since: Instant) -> (String, Vec<Advice>) {
    let since = rfc3339(since.wall);
    (
        format!("the brain is stopped since {since}: {}", escaped(why)),
        vec![hint("wait until a human lifts the stop")],
    )
}

/// What a refusal says, and what to do now.
pub fn of_refusal(refusal: &Refusal) -> (String, Vec<Advice>) {
    use Refusal as R;
    match refusal {
        R::Halted { why, since } => halted(why, *since),
        R::ClaimUnknown { id } => (
            format!("no claim is called {}", quote(id)),
            vec![advise("list the claims", "brain claim list --all")],
        ),
        R::IdTaken { id } => (
            format!("{id} is taken"),
            vec![see(id), hint("leave --id out, and brain composes a free one")],
        ),
        R::ScopeOverlaps {
            wanted,
            held,
            stale_with_children,
        } => {
            let message = format!("{wanted} overlaps {}", holder(held));
            let mut advice = vec![ask_holder(&held.claim, &wanted.to_string())];
            if *stale_with_children {
                advice.push(hint(
                    "it is stale, but a claim below it lives: whoever holds its token renews it",
                ));
            } else if let Some(expires) = held.expires_at {
                advice.push(hint(format!(
                    "or wait: it expires at {} unless something is heard of it",
                    rfc3339(expires.wall)
                )));
            }
            advice.push(advise("let claims go whose owner is gone", "brain claim reap"));
            (message, advice)
        }
        R::NoParent { parent, state } => (
            format!("{parent} is {state}: only an open claim launches others"),
            vec![see(parent)],
        ),
        R::LeafHasNoChildren { parent } => (
            format!("{parent} is a leaf: only a pilot or a domain launches satellites"),
            vec![advise(
                "open a pilot first",
                "brain claim open --type pilot --scope … --task …",
            )],
        ),
        R::OutsideDomain {
            parent,
            wanted,
            domain,
        } => (
            format!("{wanted} is not inside {domain}, the scope of the domain {parent}"),
            vec![hint("narrow the scope, or ask the domain's pilot")],
        ),
        R::OnlyOwnChildren { caller } => (
            format!("{caller} is a satellite, or stands below one: it opens only its own children"),
            vec![advise(
                "tell your pilot what you need",
                format!("brain signal send --from {caller} --to pilot --type BLOCKED_ON …"),
            )],
        ),
        R::Detached { repo } => (
            format!(
                "the head of {} is detached, so nothing says where the work belongs",
                if repo == "." {
                    "the repository".to_owned()
                } else {
                    quote(repo)
                }
            ),
            vec![
                advise("make a branch", "git switch -c NAME"),
                hint("or name one with --branch"),
            ],
        ),
        R::TtlOutOfBounds {
            asked_ms,
            least_ms,
            most_ms,
        } => (
            format!(
                "a time to live of {} is outside {} to {}",
                Span::from_ms(*asked_ms),
                Span::from_ms(*least_ms),
                Span::from_ms(*most_ms)
            ),
            vec![hint("write it as 90s, 30m, 4h or 2d")],
        ),
        R::TestsHidden { command, by, column } => (
            format!(
                "the status of the tests is hidden by `{by}` at column {column} of: {}",
                escaped(command)
            ),
            vec![hint(
                "write the test command alone: brain looks at its own exit status, and reads its output whole",
            )],
        ),
        R::BadText { field, why } => (format!("the {field} is not usable: {why}"), vec![]),
        R::NotOwner { id, verb, owner } => (
            format!(
                "you may not {verb} {id}: it belongs to {}@{}, and you do not stand above it",
                owner.user, owner.host
            ),
            vec![ask_holder(id, "something of yours")],
        ),
        R::WrongState { id, state, verb } => {
            let advice = match state {
                State::Stale => advise("renew it first", format!("brain claim renew {id}")),
                State::Paused => advise("see what pauses it", format!("brain gate status {id}")),
                State::WaitingHuman => advise("see what it waits for", format!("brain gate status {id}")),
                _ => see(id),
            };
            (format!("{id} is {state}: you cannot {verb} it now"), vec![advice])
        }
        R::Superseded { id, by } => (
            format!("{id} was stale and {by} took its scope: stop working on it"),
            vec![
                see(by),
                hint("what you changed is still in the tree: tell its new owner"),
            ],
        ),
        R::Outdated { id } => (
            format!("your token for {id} is outdated: someone else took the claim over"),
            vec![see(id)],
        ),

        R::LockHeld {
            path,
            by,
            locked,
            owner,
            expires_at,
            ..
        } => (
            format!(
                "{path} is locked by {by} of {}@{} (the lock is on {locked}, until {})",
                owner.user,
                owner.host,
                at(*expires_at)
            ),
            vec![advise(
                "see the lock",
                format!("brain lock check {}", quote(locked.as_str())),
            )],
        ),
        R::LockNotCovered { path, holder } => (
            format!("{holder} does not cover {path}, so it cannot lock it"),
            vec![advise("see its scope", format!("brain claim show {holder}"))],
        ),
        R::LockClaimed { path, held } => (
            format!("{path} is covered by {}", holder(held)),
            vec![ask_holder(&held.claim, path.as_str())],
        ),
        R::LockNotOwner { path, by } => (
            format!("the lock on {path} is {by}'s"),
            vec![advise(
                "see the lock",
                format!("brain lock check {}", quote(path.as_str())),
            )],
        ),
        R::LockLost { path, by } => {
            let by = by
                .as_ref()
                .map_or_else(|| "nobody".to_owned(), ToString::to_string);
            (
                format!("your lock on {path} had ended; it is {by}'s now"),
                vec![hint("look at the file again before you go on")],
            )
        }
        R::BadHolder { name } => (
            format!("{} cannot be the name of a lock's holder", quote(name)),
            vec![hint(
                "use a claim's id, or a name of letters, digits and . _ - @ :",
            )],
        ),

        R::NotHuman { verb, taken_for } => (
            format!("only a human may {verb}; you are taken for {taken_for}"),
            vec![hint(
                "a human does it in a terminal of their own, where brain shows a code to type",
            )],
        ),
        R::GateUnknown { id } => (
            format!("no gate is called {}", quote(id)),
            vec![advise("list the open gates", "brain gate list")],
        ),
        R::NotOffered { gate, kind, choice } => (
            format!("a {kind} gate does not offer {}", choice.as_str()),
            vec![advise("see what it offers", format!("brain gate show {gate}"))],
        ),
        R::GateChanged { gate, .. } => (
            format!("what {gate} is about changed after it was shown"),
            vec![advise("look at it again", format!("brain gate show {gate}"))],
        ),
        R::GateWithdrawn { gate } => (
            format!("{gate} was closed: what it belonged to has ended"),
            vec![],
        ),
        R::GatePending { gate, kind, why } => (
            format!("a human must answer {gate} first ({kind}): {}", escaped(why)),
            vec![advise("show it to a human", format!("brain gate show {gate}"))],
        ),
        R::WordsMustBe { gate, words } => (
            format!(
                "{gate} deletes a kernel file: the answer's words must be its path, {}",
                quote(words)
            ),
            vec![],
        ),
        R::NotPaused { id, paused_by } => {
            let message = if paused_by.is_empty() {
                format!("{id} is not paused")
            } else {
                format!(
                    "{id} has no pause of its own: it is paused by {}",
                    paused_by.join(", ")
                )
            };
            (
                message,
                vec![advise("see its state", format!("brain gate status {id}"))],
            )
        }
        R::OwnPause { id } => (
            format!("the pause of {id} stands on you: you cannot lift it"),
            vec![hint("ask the one who set it, or a human")],
        ),

        R::SignalUnknown { id } => (
            format!("no signal is called {id}"),
            vec![advise("list your signals", "brain signal list")],
        ),
        R::AddressUnknown { to } => (
            format!("nobody was ever called {}", quote(to)),
            vec![
                advise("list the sessions", "brain claim list"),
                hint("or send to pilot, parent, human or all"),
            ],
        ),
        R::SignalNotYours { id } => (format!("{id} is addressed to someone else"), vec![]),
        R::SenderNotYours { from } => (format!("{from} is not yours to send from"), vec![]),

        R::BreakerOpen { work, fails, last } => (
            format!(
                "{work} failed {fails} times in a row: {}",
                escaped(last.as_deref().unwrap_or("no reason given"))
            ),
            vec![hint("a human looks at it and resets the breaker")],
        ),

        R::OutOfScope { id, strays } => {
            let shown: Vec<String> = strays
                .iter()
                .take(5)
                .map(|it| format!("{} ({})", it.path, it.why))
                .collect();
            let more = strays.len().saturating_sub(5);
            let tail = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            (
                format!(
                    "{id} changed what its scope does not cover: {}{tail}",
                    shown.join(", ")
                ),
                strays
                    .iter()
                    .find_map(|stray| stray.made.as_ref().map(take_back))
                    .into_iter()
                    .chain([advise(
                        "or tell your pilot",
                        format!("brain signal send --from {id} --to pilot --type BLOCKED_ON …"),
                    )])
                    .collect(),
            )
        }
        R::TestsRed {
            id,
            command,
            exit,
            report,
        } => {
            let counts = report.as_ref().map_or_else(String::new, |it| {
                format!(", {} of {} failed", it.failed, it.total)
            });
            let names = report.as_ref().map(|it| {
                it.failures
                    .iter()
                    .take(3)
                    .map(|name| escaped(name))
                    .collect::<Vec<_>>()
                    .join(", ")
            });
            let names = names
                .filter(|names| !names.is_empty())
                .map_or_else(String::new, |names| format!(": {names}"));
            let exit = exit.map_or_else(
                || "was interrupted".to_owned(),
                |exit| format!("ended with status {exit}"),
            );
            (
                format!("the tests are red: `{}` {exit}{counts}{names}", escaped(command)),
                vec![advise("mend it, then close again", format!("brain close {id}"))],
            )
        }
        R::NoTests { id, command, .. } => (
            format!("no test ran: `{}` says so with its exit status", escaped(command)),
            vec![advise(
                "add a test, then close again",
                format!("brain close {id}"),
            )],
        ),
        R::ChildrenLive { id, children } => {
            let shown: Vec<String> = children
                .iter()
                .map(|(id, state)| format!("{id} ({state})"))
                .collect();
            let stale = children.iter().find(|(_, state)| *state == State::Stale);
            let first = children.first().map_or(id, |(id, _)| id);
            let mut advice = vec![advise("close what is left", format!("brain close {first}"))];
            if let Some((stale, _)) = stale {
                advice.push(advise("give a stale one up", format!("brain gate abort {stale}")));
            }
            (
                format!("{id} still has live claims below it: {}", shown.join(", ")),
                advice,
            )
        }
        R::ChildrenFailed { id, children } => {
            let shown: Vec<String> = children.iter().map(ToString::to_string).collect();
            (
                format!("claims below {id} failed: {}", shown.join(", ")),
                vec![advise(
                    "see why",
                    format!("brain claim show {}", shown.first().map_or("", String::as_str)),
                )],
            )
        }
        R::WrongPlace {
            id,
            repo,
            expected,
            found,
        } => (
            format!(
                "{id} must work on {expected} in {}, and it is {found}",
                quote(repo)
            ),
            vec![hint("go back to where the claim was opened, with the work")],
        ),
        R::WroteMeanwhile { id } => (
            format!("files of {id} changed while its tests ran, so they vouch for nothing"),
            vec![advise(
                "close again when nothing writes",
                format!("brain close {id}"),
            )],
        ),
        R::ReportRejected { id, why } => (
            format!("the report does not vouch for this work: {why}"),
            vec![advise(
                "close without it, and brain runs the tests",
                format!("brain close {id}"),
            )],
        ),
        R::NotClosing { id } => (
            format!("no close of {id} has begun"),
            vec![advise("begin it", format!("brain close {id}"))],
        ),
        R::NoEvidence { id } => (
            format!("{id} needs green tests, or a human's word, to close"),
            vec![advise(
                "close it, and brain runs them",
                format!("brain close {id}"),
            )],
        ),

        R::RunUnknown { id } => (
            format!("no run is called {}", quote(id)),
            vec![advise("list the runs", "brain run status")],
        ),
        R::PhaseUnknown { run, phase } => (
            format!("{run} has no phase {}", quote(phase)),
            vec![advise("list its phases", format!("brain run status {run}"))],
        ),
        R::RunUnfinished { run, plan } => (
            format!("{run} of {} is unfinished", quote(plan)),
            vec![
                advise("go on with it", format!("brain run --resume {run}")),
                advise("or give it up", format!("brain run cancel {run}")),
            ],
        ),
        R::RunOver { run } => (
            format!("{run} has ended"),
            vec![advise("see how", format!("brain run report {run}"))],
        ),
        R::RunTaken { run } => (format!("another hypervisor took {run} over: stop"), vec![]),
        R::RunDriven { run } => (
            format!("a hypervisor drives {run} and is alive"),
            vec![advise("watch it", format!("brain run status {run}"))],
        ),
        R::PhaseState { run, phase, verb } => (
            format!("you cannot {verb} phase {} of {run} now", quote(phase)),
            vec![advise("see where it stands", format!("brain run status {run}"))],
        ),
        R::JobsFull { run, jobs } => (
            format!("{run} has {jobs} phases under way, as many as --jobs allows"),
            vec![],
        ),
        R::Preflight { path, detail, .. } => of_detail(
            detail,
            path.as_ref().map_or("the path", |path| path.as_str()),
            None,
        ),
    }
}
