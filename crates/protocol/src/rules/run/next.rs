//! What a driver can do now, and what must be asked first.

use super::find::{is_busy, phase_of, scope_of};
use crate::facts::claim::State;
use crate::facts::gate::{About, Choice, Gate, GateKind, NEED};
use crate::facts::id::{AttemptId, RunId};
use crate::facts::plan::{Phase, PhaseGate};
use crate::facts::run::{PhaseRun, Run, RunEnd, Standing};
use crate::facts::scope::Scope;
use crate::facts::time::Instant;
use crate::facts::work::Work;
use crate::rules::{Asked, breaker, drift};
use crate::world::World;

/// Something for a driver to do now.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Begin an attempt at this phase.
    Begin(String),
    /// See this attempt through: start it, wait for it, close its claim, have it judged.
    Attend(String, AttemptId),
    /// Open this gate on a phase.
    Ask(Question),
    /// Read the plan again: a human answered a gate with `adapt`.
    Adapt,
    /// Every phase is settled: merge, close the pilot, end the run.
    Finish,
    /// Nothing more is launched and nothing runs: end the run as this.
    End(RunEnd),
    /// Nothing before this moment.
    Sleep(Instant),
}

/// A gate that the loop asks on a phase.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// The phase.
    pub phase: String,
    /// The gate's kind.
    pub kind: GateKind,
    /// The gate's subject: with the kind, what an answer lets pass.
    pub subject: String,
    /// Why.
    pub why: String,
    /// What brain knows.
    pub known: Vec<(String, String)>,
}

/// What a driver can do now. Empty: wait for a child, a human, or another phase.
pub fn next(asked: Asked<'_>, id: &RunId) -> Vec<Step> {
    let world = asked.world;
    let Some(run) = world.runs.get(id) else {
        return Vec::new();
    };
    if run.end.is_some() {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let phases: Vec<&PhaseRun> = run
        .phases
        .iter()
        .filter_map(|phase| phase_of(world, id, phase))
        .collect();
    for phase in &phases {
        if phase.standing == Standing::Running
            && let Some(attempt) = phase.last()
            && attempt.outcome.is_none()
        {
            steps.push(Step::Attend(
                phase.phase.id.as_str().to_owned(),
                attempt.id.clone(),
            ));
        }
    }
    let pilot = world.claims.get(&run.pilot);
    let pilot_state = pilot.map(|pilot| world.state(pilot, asked.now));
    let all_settled = phases.iter().all(|phase| phase.standing.is_settled());
    match pilot_state {
        // The end of the run closes it, and may have been cut off right after.
        Some(State::Closed) if all_settled => {
            steps.push(Step::Finish);
            return steps;
        }
        Some(State::Failed | State::Closed) | None => {
            if steps.is_empty() {
                steps.push(Step::End(RunEnd::Aborted));
            }
            return steps;
        }
        Some(State::Paused | State::WaitingHuman) => return steps,
        Some(State::Open | State::Stale) => {}
    }
    if world.gates.values().any(|gate| wants_adapt(world, gate, id)) {
        steps.push(Step::Adapt);
        return steps;
    }
    if all_settled {
        steps.push(Step::Finish);
        return steps;
    }
    if run.launches_ended {
        if steps.is_empty() && phases.iter().all(|phase| phase.waiting.is_none()) {
            steps.push(Step::End(RunEnd::Aborted));
        }
        return steps;
    }
    launches(asked, run, &phases, &mut steps);
    steps
}

/// Adds the phases that can begin, the gates to ask, and the first retry that is due later.
pub(super) fn launches(asked: Asked<'_>, run: &Run, phases: &[&PhaseRun], steps: &mut Vec<Step>) {
    let mut busy: Vec<Scope> = phases
        .iter()
        .filter(|it| is_busy(it))
        .filter_map(|it| scope_of(asked, it))
        .collect();
    let mut sleep: Option<Instant> = None;
    for phase in phases {
        if phase.standing != Standing::Pending || phase.waiting.is_some() {
            continue;
        }
        match ready(asked, run, phase) {
            Ready::No => {}
            Ready::Ask(question) => steps.push(Step::Ask(*question)),
            Ready::At(at) => {
                let earlier = sleep.is_none_or(|other| at.tick < other.tick);
                sleep = if earlier { Some(at) } else { sleep };
            }
            Ready::Yes => {
                let Some(scope) = scope_of(asked, phase) else {
                    continue;
                };
                let full = busy.len() >= run.jobs.max(1) as usize;
                let clash = busy.iter().any(|other| asked.policy.zones.overlap(other, &scope));
                if !full && !clash {
                    busy.push(scope);
                    steps.push(Step::Begin(phase.phase.id.as_str().to_owned()));
                }
            }
        }
    }
    steps.extend(sleep.map(Step::Sleep));
}

pub(super) enum Ready {
    No,
    Yes,
    At(Instant),
    Ask(Box<Question>),
}

/// Whether a phase may begin, or what must be asked first.
pub(super) fn ready(asked: Asked<'_>, run: &Run, phase: &PhaseRun) -> Ready {
    let id = phase.phase.id.as_str();
    let ask = |kind, subject: String, why: String, known| {
        Ready::Ask(Box::new(Question {
            phase: id.to_owned(),
            kind,
            subject,
            why,
            known,
        }))
    };
    for need in &phase.phase.needs {
        let Some(need) = phase_of(asked.world, &run.id, need.as_str()) else {
            return Ready::No;
        };
        match &need.standing {
            Standing::Accepted(_) => {}
            Standing::Skipped => {
                let subject = format!("{NEED}{}", need.phase.id);
                if !phase.allowed.contains(&(GateKind::Failed, subject.clone())) {
                    let why = format!("phase {}, which it needs, was skipped", need.phase.id);
                    return ask(GateKind::Failed, subject, why, Vec::new());
                }
            }
            Standing::Pending | Standing::Running | Standing::Failed => return Ready::No,
        }
    }
    if let Some(at) = phase.not_before
        && !at.reached_by(asked.now)
    {
        return Ready::At(at);
    }
    if let Some(work) = stopped_work(asked, run, phase) {
        let why = work.last.clone().unwrap_or_default();
        let known = vec![("Failures".to_owned(), work.fails.to_string())];
        return ask(GateKind::Breaker, work.key.0.clone(), why, known);
    }
    let allowed = |kind, subject: &str| phase.allowed.contains(&(kind, subject.to_owned()));
    for (kind, subject, why, known) in questions(asked, run, phase) {
        if !allowed(kind, &subject) {
            return ask(kind, subject, why, known);
        }
    }
    Ready::Yes
}

/// The work of a phase, where it failed so often that nothing is launched by itself.
pub(super) fn stopped_work<'w>(asked: Asked<'w>, run: &Run, phase: &PhaseRun) -> Option<&'w Work> {
    let scope = scope_of(asked, phase)?;
    let key = breaker::of_phase(asked.world, &run.plan, phase.phase.id.as_str(), &scope);
    let work = asked.world.works.get(&key)?;
    breaker::at_limit(asked.policy, work).then_some(work)
}

pub(super) type Asks = (GateKind, String, String, Vec<(String, String)>);

/// What a phase asks before it is delegated: its own gate, then its drift.
pub(super) fn questions(asked: Asked<'_>, run: &Run, phase: &PhaseRun) -> Vec<Asks> {
    let mut asks = Vec::new();
    match phase.phase.gate {
        PhaseGate::Human => {
            let why = phase
                .phase
                .story_angle
                .clone()
                .unwrap_or_else(|| phase.phase.title.clone());
            asks.push((GateKind::Phase, phase.digest.clone(), why, Vec::new()));
        }
        PhaseGate::ZeroFailures => {
            if let Some(why) = uncounted(asked.world, run, phase) {
                asks.push((GateKind::Phase, phase.digest.clone(), why, Vec::new()));
            }
        }
        PhaseGate::Never => {}
    }
    let before: Vec<&Phase> = phase
        .phase
        .needs
        .iter()
        .filter_map(|it| phase_of(asked.world, &run.id, it.as_str()))
        .map(|it| &it.phase)
        .collect();
    for finding in drift::before(asked.policy, run, &phase.phase, &before) {
        if let Some(kind) = finding.gate {
            asks.push((kind, finding.subject, finding.why, finding.known));
        }
    }
    for need in before.iter().filter(|need| need.gate_after) {
        let subject = format!("after:{}", need.id);
        let why = format!(
            "step {} said `gate: never`, which ended the chain in the original",
            need.id
        );
        asks.push((GateKind::Review, subject, why, Vec::new()));
    }
    asks
}

/// Tests of a phase's needs that were skipped or not counted.
pub(super) fn uncounted(world: &World, run: &Run, phase: &PhaseRun) -> Option<String> {
    phase.phase.needs.iter().find_map(|need| {
        let need = phase_of(world, &run.id, need.as_str())?;
        let claim = need.last().and_then(|attempt| world.claims.get(&attempt.claim))?;
        let tests = claim.result.as_ref()?.tests.as_ref();
        match tests.map(|tests| &tests.report) {
            Some(Some(report)) if report.skipped == 0 => None,
            Some(Some(report)) => Some(format!(
                "{} tests of phase {} were skipped",
                report.skipped, need.phase.id
            )),
            Some(None) => Some(format!("the tests of phase {} were not counted", need.phase.id)),
            None => Some(format!("phase {} has no tests", need.phase.id)),
        }
    })
}

/// Whether a gate of this run was answered with `adapt` and nobody has taken the changed plan yet.
pub(super) fn wants_adapt(world: &World, gate: &Gate, run: &RunId) -> bool {
    match &gate.about {
        About::Phase(of, phase) if of == run && gate.choice() == Some(Choice::Adapt) => {
            phase_of(world, of, phase).is_some_and(|phase| phase.waiting.as_ref() == Some(&gate.id))
        }
        _ => false,
    }
}

/// Gates to which a human may say yes before they are asked (`hypervisor.md`, 9).
pub fn may_be_said_before(kind: GateKind) -> bool {
    matches!(kind, GateKind::Partial | GateKind::Review)
}
