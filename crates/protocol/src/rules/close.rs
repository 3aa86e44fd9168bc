//! Closing a claim: what each tier demands, and what follows (sections 11 and 12).

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Event;
use crate::facts::claim::{
    Claim, ClaimResult, Closing, Evidence, EvidenceSource, Landing, Outcome, State, Tier,
};
use crate::facts::gate::GateKind;
use crate::facts::id::SessId;
use crate::facts::signal_kind::SignalKind;
use crate::refusal::Refusal;
use crate::rules::ask::pending;
use crate::rules::claim::may_renew;
use crate::rules::family::end_of;
use crate::rules::note::{self, Note};
use crate::rules::trigger::{carry_all_out, unasked};
use crate::rules::{Draft, breaker, who};
use crate::world::{World, green_key, owns};

/// The subject of a `close` gate about evidence.
pub const TESTS: &str = "tests";
/// The subject of a `close` gate about work that changed nothing.
pub const NOTHING: &str = "nothing";

/// What a test run is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Worth {
    /// Green.
    Green,
    /// Red: refuse and tell.
    Red,
    /// Nothing ran, and the command says so with its status: refuse.
    NoTests,
    /// A human must look: why.
    Ask(String),
}

/// Weighs a test run (section 11, step 2). Its own exit status counts and the counts do.
///
/// `last_green` is the number of tests of the last green run of the same command and repository;
/// `exit_is_enough` a human's stored word that this command's status alone is evidence.
pub fn weigh(evidence: &Evidence, last_green: Option<u64>, exit_is_enough: bool) -> Worth {
    let counts = evidence.report.as_ref();
    let nothing_ran = counts.is_some_and(|report| report.total == 0);
    if evidence.exit != Some(0) {
        return if nothing_ran { Worth::NoTests } else { Worth::Red };
    }
    let Some(report) = counts else {
        return if exit_is_enough {
            Worth::Green
        } else {
            Worth::Ask("the command ended well, and nothing in its output says how many tests ran".to_owned())
        };
    };
    match (report.failed, report.passed, last_green) {
        (1.., _, _) => Worth::Red,
        (_, 0, _) => Worth::Ask(format!(
            "no test passed: {} ran, {} skipped",
            report.total, report.skipped
        )),
        (_, _, Some(last)) if report.total < last => Worth::Ask(format!(
            "{} tests ran, the last green run had {last}",
            report.total
        )),
        _ => Worth::Green,
    }
}

/// Begins a close, or goes on with it; closing a closed claim is no refusal and leaves no event.
pub(crate) fn begin(
    d: &mut Draft<'_>,
    id: &SessId,
    at_most: Outcome,
    notes: Option<&str>,
    accept_failed: bool,
) -> Result<(), Refusal> {
    let claim = who::find(&d.world, id)?.clone();
    who::may_act(d.asked, &claim, "close")?;
    match d.world.state(&claim, d.now()) {
        State::Closed => return Ok(()),
        State::Open => {}
        State::Stale => {
            may_renew(&d.world, &claim, d.now())?;
            let fence = Some(d.fence());
            d.push(Event::ClaimRenewed {
                id: id.clone(),
                fence,
            });
            let state = who::find(&d.world, id).map(|claim| d.world.state(claim, d.now()))?;
            if state != State::Open {
                return Err(Refusal::WrongState {
                    id: id.clone(),
                    state,
                    verb: "close".to_owned(),
                });
            }
        }
        State::Failed if claim.superseded_by().is_some() => may_renew(&d.world, &claim, d.now())?,
        State::WaitingHuman => return Err(pending(&d.world, &claim)),
        state => {
            return Err(Refusal::WrongState {
                id: id.clone(),
                state,
                verb: "close".to_owned(),
            });
        }
    }
    if claim.tier() == Tier::Orchestrated {
        check_children(d, &claim, at_most, accept_failed)?;
    }
    if claim
        .closing
        .as_ref()
        .is_none_or(|it| it.at_most != at_most || notes.is_some_and(|_| it.notes.as_deref() != notes))
    {
        d.push(Event::CloseBegan {
            id: id.clone(),
            at_most,
            notes: notes.map(str::to_owned),
        });
    }
    Ok(())
}

/// Children whose results count: of the attempts at one phase only the last.
pub fn counted_children<'w>(world: &'w World, claim: &'w Claim) -> Vec<&'w Claim> {
    let mut last: BTreeMap<(&str, &str), &Claim> = BTreeMap::new();
    let mut counted = Vec::new();
    for child in world.children(&claim.id) {
        match &child.workflow {
            None => counted.push(child),
            Some(of) => {
                let slot = last.entry((of.run.as_str(), &of.phase)).or_insert(child);
                if slot.fence < child.fence {
                    *slot = child;
                }
            }
        }
    }
    counted.extend(last.into_values());
    counted
}

fn has_failed(claim: &Claim) -> bool {
    match (&claim.end, &claim.result) {
        (Some(crate::facts::claim::End::Failed { .. }), _) => true,
        (_, Some(result)) => result.status == Outcome::Failed,
        _ => false,
    }
}

/// Failed children that nobody settled: a phase that a human skipped or let go on is settled.
fn failed_children(world: &World, claim: &Claim) -> Vec<SessId> {
    let settled = |child: &Claim| {
        child.workflow.as_ref().is_some_and(|of| {
            let phase = world.phases.get(&(of.run.clone(), of.phase.clone()));
            phase.is_some_and(|phase| phase.standing.is_settled())
        })
    };
    let counted = counted_children(world, claim);
    counted
        .into_iter()
        .filter(|it| has_failed(it) && !settled(it))
        .map(|it| it.id.clone())
        .collect()
}

fn check_children(
    d: &Draft<'_>,
    claim: &Claim,
    at_most: Outcome,
    accept_failed: bool,
) -> Result<(), Refusal> {
    let id = claim.id.clone();
    let live: Vec<(SessId, State)> = d
        .world
        .descendants(&claim.id)
        .iter()
        .filter(|it| !it.is_terminal())
        .map(|it| (it.id.clone(), d.world.state(it, d.now())))
        .collect();
    if !live.is_empty() {
        return Err(Refusal::ChildrenLive { id, children: live });
    }
    let failed = failed_children(&d.world, claim);
    if !failed.is_empty() && at_most != Outcome::Failed {
        if !accept_failed {
            return Err(Refusal::ChildrenFailed { id, children: failed });
        }
        if !owns(d.asked.caller, claim) && !who::is_human_or_plain(d.asked) {
            let (verb, owner) = ("accept failed children of".to_owned(), claim.owner.clone());
            return Err(Refusal::NotOwner { id, verb, owner });
        }
    }
    Ok(())
}

fn closing<'d>(d: &'d Draft<'_>, id: &SessId) -> Result<(&'d Claim, &'d Closing), Refusal> {
    let claim = who::find(&d.world, id)?;
    who::may_act(d.asked, claim, "close")?;
    let state = d.world.state(claim, d.now());
    if state != State::Open {
        return Err(match (state, claim.superseded_by()) {
            (_, Some(by)) => Refusal::Superseded {
                id: id.clone(),
                by: by.clone(),
            },
            (State::WaitingHuman, None) => pending(&d.world, claim),
            _ => Refusal::WrongState {
                id: id.clone(),
                state,
                verb: "close".to_owned(),
            },
        });
    }
    match &claim.closing {
        Some(closing) => Ok((claim, closing)),
        None => Err(Refusal::NotClosing { id: id.clone() }),
    }
}

/// Writes a test run down; a red one is told to the parent.
pub(crate) fn record_evidence(d: &mut Draft<'_>, id: &SessId, evidence: &Evidence) -> Result<(), Refusal> {
    let (claim, closing) = closing(d, id)?;
    // The same run again, however long it took: nothing is new, and nobody is told twice.
    let took_ms = evidence.took_ms;
    let again = |known: &Evidence| {
        let known = Evidence {
            took_ms,
            ..known.clone()
        };
        known == *evidence
    };
    if closing.evidence.as_ref().is_some_and(again) {
        return Ok(());
    }
    if evidence.source == EvidenceSource::File && !who::is_human_or_plain(d.asked) {
        let why = "an agent hands in no report: brain runs the tests itself".to_owned();
        return Err(Refusal::ReportRejected { id: id.clone(), why });
    }
    let counts = evidence.report.as_ref().map_or_else(
        || match evidence.exit {
            Some(exit) => format!("exit status {exit}, no readable count"),
            None => "interrupted, no readable count".to_owned(),
        },
        |report| format!("{} of {} tests failed", report.failed, report.total),
    );
    let note = Note::to_parent(
        claim,
        SignalKind::BlockedOn,
        &format!("{}: {counts}", evidence.command),
    );
    d.push(Event::EvidenceTaken {
        id: id.clone(),
        evidence: evidence.clone(),
    });
    if matches!(weigh(evidence, None, true), Worth::Red | Worth::NoTests) {
        note::tell(d, note);
    }
    Ok(())
}

/// Writes a commit down.
pub(crate) fn record_commit(d: &mut Draft<'_>, id: &SessId, repo: &str, commit: &str) -> Result<(), Refusal> {
    let (_, closing) = closing(d, id)?;
    if closing.commits.get(repo).map(String::as_str) != Some(commit) {
        let (repo, commit) = (repo.to_owned(), commit.to_owned());
        d.push(Event::CloseCommitted {
            id: id.clone(),
            repo,
            commit,
        });
    }
    Ok(())
}

/// Writes a move of a branch down, before it is made and after.
pub(crate) fn record_landing(
    d: &mut Draft<'_>,
    id: &SessId,
    repo: &str,
    landing: &Landing,
) -> Result<(), Refusal> {
    let (_, closing) = closing(d, id)?;
    if closing.landings.get(repo) != Some(landing) {
        let (repo, landing) = (repo.to_owned(), landing.clone());
        d.push(Event::CloseLanded {
            id: id.clone(),
            repo,
            landing,
        });
    }
    Ok(())
}

/// Whether a human's word stands in for this run of the tests, or for none at all.
fn vouched(closing: &Closing) -> bool {
    closing.allowed.iter().any(|(kind, subject, shown)| {
        let about_this = closing
            .evidence
            .as_ref()
            .is_none_or(|evidence| *shown == evidence.shown());
        *kind == GateKind::Close && subject == TESTS && about_this
    })
}

/// What tier 2 demands: green tests, or a human's word where they are neither green nor red.
fn check_evidence(d: &Draft<'_>, claim: &Claim, closing: &Closing) -> Result<(), Refusal> {
    let id = claim.id.clone();
    let worth = closing.evidence.as_ref().map(|evidence| {
        let key = green_key(&evidence.repo, &evidence.command);
        let enough = d.asked.policy.exit_is_enough.contains(&evidence.command);
        (
            evidence,
            weigh(evidence, d.world.greens.get(&key).copied(), enough),
        )
    });
    match worth {
        Some((_, Worth::Green)) => Ok(()),
        Some((evidence, Worth::Red)) => Err(Refusal::TestsRed {
            id,
            command: evidence.command.clone(),
            exit: evidence.exit,
            report: evidence.report.clone(),
        }),
        Some((evidence, Worth::NoTests)) => Err(Refusal::NoTests {
            id,
            command: evidence.command.clone(),
            exit: evidence.exit,
        }),
        Some((_, Worth::Ask(_))) | None if vouched(closing) => Ok(()),
        Some((_, Worth::Ask(_))) | None => Err(Refusal::NoEvidence { id }),
    }
}

/// Ends a close: the result, the locks, the word to the parent, in one transaction.
pub(crate) fn finish(
    d: &mut Draft<'_>,
    id: &SessId,
    status: Outcome,
    files_modified: &[String],
    notes: &[String],
    accept_failed: bool,
) -> Result<(), Refusal> {
    if d.world.claims.get(id).is_some_and(|claim| claim.result.is_some()) {
        return Ok(());
    }
    let (claim, closing) = closing(d, id)?;
    let (claim, closing) = (claim.clone(), closing.clone());
    let mut status = status.max(closing.at_most);
    let children = counted_children(&d.world, &claim);
    if claim.tier() == Tier::Orchestrated {
        check_children(d, &claim, closing.at_most, accept_failed)?;
        // Also a failure that was accepted, or a phase that a human skipped, leaves less than the whole.
        let whole = |child: &&Claim| child.result.as_ref().is_some_and(|it| it.status == Outcome::Ok);
        if !children.iter().all(whole) {
            status = status.max(Outcome::Partial);
        }
    }
    if claim.tier() == Tier::Validated && status != Outcome::Failed {
        check_evidence(d, &claim, &closing)?;
    }
    if let Some(text) = unasked(&claim, status) {
        return Err(Refusal::BadText {
            field: "gate:human".to_owned(),
            why: format!("not yet asked: {text}"),
        });
    }

    let children: Vec<SessId> = children.iter().map(|it| it.id.clone()).collect();
    let mut files: BTreeSet<String> = files_modified.iter().cloned().collect();
    for child in &children {
        let result = d.world.claims.get(child).and_then(|it| it.result.as_ref());
        files.extend(
            result
                .into_iter()
                .flat_map(|it| it.files_modified.iter().cloned()),
        );
    }
    let files: Vec<String> = files.into_iter().collect();
    let signal_id = claim.parent_satellite.is_some().then(|| {
        let shown = match files.as_slice() {
            [] => "no file".to_owned(),
            [one] => one.clone(),
            [one, rest @ ..] => format!("{one} +{}", rest.len()),
        };
        let summary = format!("{} — {shown} — {}", claim.story_angle, status.as_str());
        note::tell(d, Note::to_parent(&claim, SignalKind::Checkpoint, &summary))
    });
    end_of(d, id, "closed");
    let result = ClaimResult {
        status,
        files_modified: files,
        commit: closing.commits.clone(),
        tests: closing.evidence.clone(),
        children,
        signal_id,
        notes: closing.notes.iter().chain(notes).cloned().collect(),
    };
    d.push(Event::ClaimClosed {
        id: id.clone(),
        result,
    });
    if status == Outcome::Ok {
        breaker::succeed(d, &claim);
    }
    // In a run, what a partial result sets off waits for the human's answer to the run's own gate.
    if claim.workflow.is_none() || status != Outcome::Partial {
        carry_all_out(d, &claim, status);
    }
    Ok(())
}
