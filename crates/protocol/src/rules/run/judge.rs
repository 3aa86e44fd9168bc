//! What an attempt came to, and what a human's answer does to a phase.

use std::collections::BTreeSet;

use super::find::{driven, find_attempt, find_phase, phase_of};
use super::next::{may_be_said_before, stopped_work};
use crate::command::Changed;
use crate::event::Event;
use crate::facts::claim::{Claim, End, FailedBy, Fence, Outcome};
use crate::facts::gate::{About, Choice, DELETED, Gate, GateKind};
use crate::facts::id::{AttemptId, RunId};
use crate::facts::run::{Exit, PhaseRun, Run, Standing};
use crate::facts::span::Span;
use crate::facts::work::WorkKey;
use crate::refusal::Refusal;
use crate::rules::ask::push_gate;
use crate::rules::family::{fail_tree, pilots_failed};
use crate::rules::note::blocked_on;
use crate::rules::trigger::carry_all_out;
use crate::rules::{Asked, Draft, breaker, drift, signal, who};

/// The first pause before a retry; it doubles with each, up to [`BACKOFF_MOST`].
const BACKOFF: Span = Span::from_ms(1_000);
/// The longest pause before a retry.
const BACKOFF_MOST: Span = Span::from_ms(60_000);

/// Judges an attempt by its claim's end and by what it really changed; each attempt once.
#[expect(clippy::too_many_arguments, reason = "the fields of one command")]
pub(crate) fn judge_attempt(
    d: &mut Draft<'_>,
    run: &RunId,
    driver: Fence,
    phase: &str,
    attempt: &AttemptId,
    refused: Option<&str>,
    known: &[(String, String)],
    changed: &[Changed],
) -> Result<(), Refusal> {
    let the_run = driven(d, run, driver)?.clone();
    let it = find_phase(&d.world, run, phase)?.clone();
    let the_attempt = find_attempt(&it, attempt)?;
    if the_attempt.outcome.is_some() {
        return Ok(());
    }
    let claim = who::find(&d.world, &the_attempt.claim)?.clone();
    let (outcome, why, by_human) = match (&claim.end, refused) {
        (Some(End::Closed { .. }), _) => {
            let result = claim.result.as_ref();
            let outcome = result.map_or(Outcome::Failed, |it| it.status);
            let said = result
                .map(|it| it.notes.join("; "))
                .filter(|notes| !notes.is_empty());
            let why = said.or_else(|| the_attempt.exit.as_ref().map(said_by));
            (outcome, why.filter(|_| outcome != Outcome::Ok), false)
        }
        (Some(End::Failed { by, why, .. }), _) => {
            let by_human = matches!(by, FailedBy::Abort | FailedBy::Reject | FailedBy::Ancestor(_));
            (Outcome::Failed, Some(why.clone()), by_human)
        }
        (None, Some(refused)) => {
            fail_tree(d, &claim.id, FailedBy::Abort, refused);
            (Outcome::Failed, Some(refused.to_owned()), false)
        }
        (None, None) => {
            let verb = "judge the attempt under way of".to_owned();
            return Err(Refusal::PhaseState {
                run: run.clone(),
                phase: phase.to_owned(),
                verb,
            });
        }
    };
    let (attempt, phase) = (attempt.clone(), phase.to_owned());
    d.push(Event::AttemptJudged {
        run: run.clone(),
        phase: phase.clone(),
        attempt,
        outcome,
        why: why.clone(),
    });
    if outcome == Outcome::Failed {
        let why = why.unwrap_or_else(|| "the attempt failed".to_owned());
        failed(d, &the_run, &phase, &claim, &why, known, by_human);
        return Ok(());
    }
    if outcome == Outcome::Ok {
        breaker::succeed(d, &claim);
    }
    let found = drift::after(d.asked.policy, &the_run, &it.phase, &claim, changed);
    if found.is_empty() {
        accept(d, &the_run, &phase);
    } else {
        ask_about_drift(d, &the_run, &phase, &claim, &found);
    }
    Ok(())
}

/// Asks about all that a diff shows in one gate: of the strictest kind, and answered with the paths as its
/// words where kernel files are gone.
fn ask_about_drift(d: &mut Draft<'_>, run: &Run, phase: &str, claim: &Claim, found: &[drift::Finding]) {
    let kinds = found.iter().filter_map(|finding| finding.gate);
    let kind = kinds.min().unwrap_or(GateKind::Architecture);
    let whys: Vec<&str> = found.iter().map(|finding| finding.why.as_str()).collect();
    let known: Vec<_> = found.iter().flat_map(|it| it.known.iter().cloned()).collect();
    let deleted: Vec<&str> = found
        .iter()
        .filter(|finding| finding.subject == drift::DELETES)
        .flat_map(|finding| finding.known.iter().map(|(_, path)| path.as_str()))
        .collect();
    let subject = if deleted.is_empty() {
        format!("diff:{}", claim.id)
    } else {
        format!("{DELETED}{}", deleted.join(" "))
    };
    ask(d, run, phase, kind, &subject, &whys.join("; "), &known);
}

/// What an exit means, for the reader.
pub fn said_by(exit: &Exit) -> String {
    match exit {
        Exit::Status(code) => format!("it ended with status {code}"),
        Exit::Interrupt(number) => format!("it was ended by signal {number}"),
        Exit::TimedOut => "it reached its time limit".to_owned(),
        Exit::Idle => "it was silent for longer than its idle limit".to_owned(),
        Exit::TooMuchOutput => "it printed more than its output limit".to_owned(),
        Exit::Vanished => "it died without a word".to_owned(),
        Exit::NotStarted(why) => format!("it could not be started: {why}"),
    }
}

/// Counts a failure, then retries, or asks a human.
fn failed(
    d: &mut Draft<'_>,
    run: &Run,
    phase: &str,
    claim: &Claim,
    why: &str,
    known: &[(String, String)],
    by_human: bool,
) {
    breaker::count(d, claim, why);
    let tripped = d.world.works.get(&claim.work).is_some_and(|work| work.tripped);
    let Some(it) = phase_of(&d.world, &run.id, phase).cloned() else {
        return;
    };
    if !by_human && !tripped && !run.launches_ended && it.retries_used < it.phase.retries {
        let factor = 1u64 << it.retries_used.min(16);
        let back_off = Span::from_ms((BACKOFF.as_ms() * factor).min(BACKOFF_MOST.as_ms()));
        let not_before = d.now().plus(back_off);
        d.push(Event::PhaseRetried {
            run: run.id.clone(),
            phase: phase.to_owned(),
            not_before,
            counted: true,
        });
        return;
    }
    d.push(Event::PhaseFailed {
        run: run.id.clone(),
        phase: phase.to_owned(),
    });
    let pilot_lives = d
        .world
        .claims
        .get(&run.pilot)
        .is_some_and(|pilot| !pilot.is_terminal());
    if pilot_lives {
        let kind = if tripped {
            GateKind::Breaker
        } else {
            GateKind::Failed
        };
        let attempts = it.attempts.len();
        let mut shown = vec![("Attempts".to_owned(), attempts.to_string())];
        shown.extend(known.iter().cloned());
        ask(d, run, phase, kind, claim.id.as_str(), why, &shown);
    }
}

/// Accepts a phase, unless its partial result still has to be asked about.
fn accept(d: &mut Draft<'_>, run: &Run, phase: &str) {
    let Some(it) = phase_of(&d.world, &run.id, phase).cloned() else {
        return;
    };
    let Some(attempt) = it.last() else { return };
    let Some(outcome) = attempt.outcome else { return };
    if outcome == Outcome::Partial {
        let subject = attempt.claim.to_string();
        if !it.allowed.contains(&(GateKind::Partial, subject.clone())) {
            let text = it.phase.on_partial.iter().find_map(|trigger| match trigger {
                crate::facts::trigger::Trigger::HumanGate { text } => Some(text.clone()),
                _ => None,
            });
            let why = text.unwrap_or_else(|| "the result is partial: go on?".to_owned());
            let known = attempt
                .why
                .iter()
                .map(|why| ("Result".to_owned(), why.clone()))
                .collect::<Vec<_>>();
            if !ask(d, run, phase, GateKind::Partial, &subject, &why, &known) {
                return;
            }
        }
    }
    let claim = d.world.claims.get(&attempt.claim).cloned();
    d.push(Event::PhaseAccepted {
        run: run.id.clone(),
        phase: phase.to_owned(),
        outcome,
    });
    signal::unblock(d, &run.id, phase);
    if let (Outcome::Partial, Some(claim)) = (outcome, claim) {
        carry_all_out(d, &claim, outcome);
    }
}

/// Opens a gate on a phase; `true` when the starter said yes beforehand, which is recorded.
fn ask(
    d: &mut Draft<'_>,
    run: &Run,
    phase: &str,
    kind: GateKind,
    subject: &str,
    why: &str,
    known: &[(String, String)],
) -> bool {
    if run.yes_to.contains(&kind) && may_be_said_before(kind) {
        let (subject, phase) = (subject.to_owned(), phase.to_owned());
        d.push(Event::PhaseAllowed {
            run: run.id.clone(),
            phase,
            kind,
            subject,
        });
        return true;
    }
    let digest = phase_of(&d.world, &run.id, phase)
        .map(|it| it.digest.clone())
        .unwrap_or_default();
    // The answer is bound to all that its giver sees.
    let seen = known.iter().map(|(label, text)| format!("\n{label}: {text}"));
    let gate = crate::command::OpenGate {
        about: About::Phase(run.id.clone(), phase.to_owned()),
        kind,
        subject: subject.to_owned(),
        why: why.to_owned(),
        known: known.to_vec(),
        shown: format!("{digest} {subject}{}", seen.collect::<String>()),
    };
    push_gate(d, &gate);
    false
}

/// Opens a gate of the loop on a phase, unless it waits at one already or was let go on.
#[expect(clippy::too_many_arguments, reason = "the fields of one command")]
pub(crate) fn ask_phase(
    d: &mut Draft<'_>,
    run: &RunId,
    driver: Fence,
    phase: &str,
    kind: GateKind,
    subject: &str,
    why: &str,
    known: &[(String, String)],
    shown: &str,
) -> Result<(), Refusal> {
    let the_run = driven(d, run, driver)?.clone();
    let it = find_phase(&d.world, run, phase)?;
    if it.waiting.is_some() || it.allowed.contains(&(kind, subject.to_owned())) {
        return Ok(());
    }
    if shown.is_empty() {
        ask(d, &the_run, phase, kind, subject, why, known);
        return Ok(());
    }
    push_gate(
        d,
        &crate::command::OpenGate {
            about: About::Phase(run.clone(), phase.to_owned()),
            kind,
            subject: subject.to_owned(),
            why: why.to_owned(),
            known: known.to_vec(),
            shown: shown.to_owned(),
        },
    );
    Ok(())
}

/// What a human's answer does to a phase.
pub(crate) fn answered(d: &mut Draft<'_>, run: &RunId, phase: &str, gate: &Gate, choice: Choice) {
    let Some(the_run) = d.world.runs.get(run).cloned() else {
        return;
    };
    let Some(it) = phase_of(&d.world, run, phase).cloned() else {
        return;
    };
    let (run_id, phase_id) = (run.clone(), phase.to_owned());
    match choice {
        Choice::Continue if gate.kind == GateKind::Breaker => {
            for key in works_of(d, &the_run, &it) {
                d.push(Event::WorkCleared {
                    key,
                    of: it.last().map(|attempt| attempt.claim.clone()),
                    why: format!("continue at {}", gate.id),
                });
            }
            signal::unblock(d, run, phase);
            let not_before = d.now();
            d.push(Event::PhaseRetried {
                run: run_id,
                phase: phase_id,
                not_before,
                counted: false,
            });
        }
        Choice::Continue => {
            let (kind, subject) = (gate.kind, gate.subject.clone());
            d.push(Event::PhaseAllowed {
                run: run_id,
                phase: phase_id,
                kind,
                subject,
            });
            signal::unblock(d, run, phase);
            if it.standing == Standing::Running && it.last().is_some_and(|it| it.outcome.is_some()) {
                accept(d, &the_run, phase);
            }
        }
        Choice::Retry => {
            drop_attempt(d, &it, &format!("retried at {}", gate.id));
            let not_before = d.now();
            d.push(Event::PhaseRetried {
                run: run_id,
                phase: phase_id,
                not_before,
                counted: false,
            });
        }
        Choice::Skip => {
            drop_attempt(d, &it, &format!("skipped at {}", gate.id));
            d.push(Event::PhaseSkipped {
                run: run_id,
                phase: phase_id,
            });
            signal::unblock(d, run, phase);
        }
        // The phase waits on until the driver has taken the changed plan.
        Choice::Adapt => {}
        Choice::Abort => {
            let why = format!("aborted at {}", gate.id);
            blocked_on(d, &the_run.pilot, &why);
            fail_tree(d, &the_run.pilot, FailedBy::Reject, &why);
            pilots_failed(d);
        }
    }
}

/// The failed work that a breaker gate of a phase is about.
fn works_of(d: &Draft<'_>, run: &Run, phase: &PhaseRun) -> BTreeSet<WorkKey> {
    let asked = Asked {
        world: &d.world,
        ..d.asked
    };
    let of_scope = stopped_work(asked, run, phase).map(|work| work.key.clone());
    let last = phase
        .last()
        .and_then(|attempt| d.world.claims.get(&attempt.claim));
    let of_last = last.map(|claim| claim.work.clone());
    let failed = |key: &WorkKey| d.world.works.contains_key(key);
    of_scope.into_iter().chain(of_last).filter(failed).collect()
}

/// Ends the attempt that is under way when a human settles its phase without it.
fn drop_attempt(d: &mut Draft<'_>, phase: &PhaseRun, why: &str) {
    let Some(attempt) = phase.last().filter(|attempt| attempt.outcome.is_none()) else {
        return;
    };
    fail_tree(d, &attempt.claim, FailedBy::Abort, why);
    d.push(Event::AttemptJudged {
        run: phase.run.clone(),
        phase: phase.phase.id.as_str().to_owned(),
        attempt: attempt.id.clone(),
        outcome: Outcome::Failed,
        why: Some(why.to_owned()),
    });
}
