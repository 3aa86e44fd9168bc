//! The pure half of a run: which phase is next, and what a result does (`hypervisor.md`, 6 and 10).

use std::collections::{BTreeMap, BTreeSet};

use crate::command::{Changed, OpenClaim, StartRun};
use crate::event::Event;
use crate::facts::claim::{Claim, ClaimType, End, FailedBy, Fence, Landing, Outcome, PhaseOf, Right, State};
use crate::facts::gate::{About, Choice, DELETED, Gate, GateKind, NEED};
use crate::facts::id::{AttemptId, GateId, RunId, SessId};
use crate::facts::plan::{Phase, PhaseGate};
use crate::facts::run::{Attempt, Exit, PhaseRun, Run, RunEnd, Standing};
use crate::facts::scope::Scope;
use crate::facts::signal::Sender;
use crate::facts::span::Span;
use crate::facts::time::Instant;
use crate::facts::work::{Work, WorkKey};
use crate::refusal::Refusal;
use crate::rules::claim::{self, fail_tree};
use crate::rules::gate::{blocked_on, push_gate};
use crate::rules::{Asked, Draft, breaker, close, drift, signal, who};
use crate::world::{Lease, World};

/// The first pause before a retry; it doubles with each, up to [`BACKOFF_MOST`].
const BACKOFF: Span = Span::from_ms(1_000);
/// The longest pause before a retry.
const BACKOFF_MOST: Span = Span::from_ms(60_000);

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
fn launches(asked: Asked<'_>, run: &Run, phases: &[&PhaseRun], steps: &mut Vec<Step>) {
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

/// A running phase holds its place until its attempt is judged; one that waits at a gate after that does not.
fn is_busy(phase: &PhaseRun) -> bool {
    phase.standing == Standing::Running && phase.last().is_some_and(|attempt| attempt.outcome.is_none())
}

fn scope_of(asked: Asked<'_>, phase: &PhaseRun) -> Option<Scope> {
    Scope::parse(&phase.phase.scope, asked.policy.fold).ok()
}

enum Ready {
    No,
    Yes,
    At(Instant),
    Ask(Box<Question>),
}

/// Whether a phase may begin, or what must be asked first.
fn ready(asked: Asked<'_>, run: &Run, phase: &PhaseRun) -> Ready {
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
fn stopped_work<'w>(asked: Asked<'w>, run: &Run, phase: &PhaseRun) -> Option<&'w Work> {
    let scope = scope_of(asked, phase)?;
    let key = breaker::of_phase(asked.world, &run.plan, phase.phase.id.as_str(), &scope);
    let work = asked.world.works.get(&key)?;
    breaker::at_limit(asked.policy, work).then_some(work)
}

type Asks = (GateKind, String, String, Vec<(String, String)>);

/// What a phase asks before it is delegated: its own gate, then its drift.
fn questions(asked: Asked<'_>, run: &Run, phase: &PhaseRun) -> Vec<Asks> {
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
fn uncounted(world: &World, run: &Run, phase: &PhaseRun) -> Option<String> {
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

/// Finds a phase of a run.
pub fn phase_of<'w>(world: &'w World, run: &RunId, phase: &str) -> Option<&'w PhaseRun> {
    world.phases.get(&(run.clone(), phase.to_owned()))
}

/// Whether a gate of this run was answered with `adapt` and nobody has taken the changed plan yet.
fn wants_adapt(world: &World, gate: &Gate, run: &RunId) -> bool {
    match &gate.about {
        About::Phase(of, phase) if of == run && gate.choice() == Some(Choice::Adapt) => {
            phase_of(world, of, phase).is_some_and(|phase| phase.waiting.as_ref() == Some(&gate.id))
        }
        _ => false,
    }
}

fn find_run<'w>(world: &'w World, id: &RunId) -> Result<&'w Run, Refusal> {
    world
        .runs
        .get(id)
        .ok_or_else(|| Refusal::RunUnknown { id: id.to_string() })
}

fn find_phase<'w>(world: &'w World, run: &RunId, phase: &str) -> Result<&'w PhaseRun, Refusal> {
    let unknown = || Refusal::PhaseUnknown {
        run: run.clone(),
        phase: phase.to_owned(),
    };
    phase_of(world, run, phase).ok_or_else(unknown)
}

/// Refuses a driver that was replaced, who may not drive, and anything on a run that has ended.
fn driven<'d>(d: &'d Draft<'_>, id: &RunId, driver: Fence) -> Result<&'d Run, Refusal> {
    let run = find_run(&d.world, id)?;
    // A fence is no secret: an agent of the run must not judge its own work with it.
    who::may_act(d.asked, who::find(&d.world, &run.pilot)?, "drive a run of")?;
    if run.driver != driver {
        return Err(Refusal::RunTaken { run: id.clone() });
    }
    if run.end.is_some() {
        return Err(Refusal::RunOver { run: id.clone() });
    }
    Ok(run)
}

/// Starts a run under a pilot, which is opened with it unless one is named.
pub(crate) fn start(d: &mut Draft<'_>, ask: &StartRun) -> Result<(), Refusal> {
    let same = d
        .world
        .runs
        .values()
        .find(|run| run.plan == ask.plan && run.end.is_none());
    if let Some(run) = same {
        return Err(Refusal::RunUnfinished {
            run: run.id.clone(),
            plan: ask.plan.clone(),
        });
    }
    let pilot = match &ask.parent {
        Some(id) => {
            let pilot = who::find(&d.world, id)?;
            who::may_act(d.asked, pilot, "start a run under")?;
            if !pilot.may_have_children() {
                return Err(Refusal::LeafHasNoChildren { parent: id.clone() });
            }
            let state = d.world.state(pilot, d.now());
            if state != State::Open {
                return Err(Refusal::NoParent {
                    parent: id.clone(),
                    state,
                });
            }
            id.clone()
        }
        None => claim::open(d, &ask.pilot, None)?,
    };
    let id = RunId::mint(d.seq());
    let (driver, started_at) = (d.fence(), d.now());
    d.push(Event::RunStarted(Run {
        id: id.clone(),
        plan: ask.plan.clone(),
        source: ask.source.clone(),
        digest: ask.digest.clone(),
        pilot,
        owns_pilot: ask.parent.is_none(),
        theme: ask.theme.clone(),
        main: ask.main.clone(),
        jobs: ask.jobs,
        merge: ask.merge,
        kernel_exit: ask.kernel_exit,
        chain: ask.chain,
        yes_to: ask
            .yes_to
            .iter()
            .copied()
            .filter(|kind| may_be_said_before(*kind))
            .collect(),
        risk: ask.risk.clone(),
        phases: ask
            .phases
            .iter()
            .map(|(phase, _)| phase.id.as_str().to_owned())
            .collect(),
        started_at,
        driver,
        launches_ended: false,
        landings: BTreeMap::new(),
        end: None,
        ended_at: None,
    }));
    for (position, (phase, digest)) in ask.phases.iter().enumerate() {
        let kept = ask.keep.contains(&(phase.id.as_str().to_owned(), digest.clone()));
        let standing = if kept {
            Standing::Accepted(Outcome::Ok)
        } else {
            Standing::Pending
        };
        set_phase(d, &id, position, phase, digest, standing);
    }
    Ok(())
}

/// Gates to which a human may say yes before they are asked (`hypervisor.md`, 9).
pub fn may_be_said_before(kind: GateKind) -> bool {
    matches!(kind, GateKind::Partial | GateKind::Review)
}

fn set_phase(
    d: &mut Draft<'_>,
    run: &RunId,
    position: usize,
    phase: &Phase,
    digest: &str,
    standing: Standing,
) {
    d.push(Event::PhaseSet(PhaseRun {
        run: run.clone(),
        position: u32::try_from(position).unwrap_or(u32::MAX),
        phase: phase.clone(),
        digest: digest.to_owned(),
        standing,
        attempts: Vec::new(),
        retries_used: 0,
        not_before: None,
        allowed: BTreeSet::new(),
        waiting: None,
    }));
}

/// Takes a run whose driver is gone: the new driver's fence shuts the old one out.
pub(crate) fn take(d: &mut Draft<'_>, id: &RunId, driver_gone: bool) -> Result<(), Refusal> {
    let run = find_run(&d.world, id)?;
    if run.end.is_some() {
        return Err(Refusal::RunOver { run: id.clone() });
    }
    let pilot = who::find(&d.world, &run.pilot)?;
    who::may_act(d.asked, pilot, "drive a run of")?;
    let lease = d.world.leases.get(&Lease::Driver(id.clone()));
    let alive = lease.is_some_and(|lease| !lease.until.reached_by(d.now()));
    if alive && !driver_gone {
        return Err(Refusal::RunDriven { run: id.clone() });
    }
    let pilot = pilot.id.clone();
    let driver = d.fence();
    d.push(Event::RunTaken {
        id: id.clone(),
        driver,
    });
    let stale = d
        .world
        .claims
        .get(&pilot)
        .is_some_and(|it| d.world.state(it, d.now()) == State::Stale);
    if stale {
        let fence = Some(d.fence());
        d.push(Event::ClaimRenewed { id: pilot, fence });
    }
    Ok(())
}

/// Writes an attempt down and opens its claim, in one transaction and before anything is started.
pub(crate) fn begin_attempt(
    d: &mut Draft<'_>,
    run: &RunId,
    driver: Fence,
    phase: &str,
    ask: &OpenClaim,
) -> Result<(), Refusal> {
    let the_run = driven(d, run, driver)?.clone();
    let it = find_phase(&d.world, run, phase)?.clone();
    let refuse = |verb: &str| Refusal::PhaseState {
        run: run.clone(),
        phase: phase.to_owned(),
        verb: verb.to_owned(),
    };
    if it.standing != Standing::Pending || it.waiting.is_some() || the_run.launches_ended {
        return Err(refuse("begin"));
    }
    let asked = Asked {
        world: &d.world,
        ..d.asked
    };
    if !matches!(ready(asked, &the_run, &it), Ready::Yes) {
        return Err(refuse("begin"));
    }
    let busy = the_run
        .phases
        .iter()
        .filter_map(|id| phase_of(&d.world, run, id))
        .filter(|it| is_busy(it))
        .count();
    if busy >= the_run.jobs.max(1) as usize {
        return Err(Refusal::JobsFull {
            run: run.clone(),
            jobs: the_run.jobs,
        });
    }
    let scope = scope_of(asked, &it).ok_or_else(|| refuse("read the scope of"))?;
    let attempt = AttemptId::mint(d.seq());
    let workflow = PhaseOf {
        run: run.clone(),
        plan: the_run.plan.clone(),
        phase: phase.to_owned(),
        attempt: attempt.clone(),
    };
    let ask = OpenClaim {
        kind_of: ClaimType::Satellite,
        parent: Some(the_run.pilot.clone()),
        scope,
        theme_branch: Some(the_run.theme.clone()),
        satellite_type: it.phase.kind,
        tests: it.phase.tests.clone().or_else(|| ask.tests.clone()),
        on_done: it.phase.on_done.clone(),
        on_partial: it.phase.on_partial.clone(),
        on_fail: it.phase.on_fail.clone(),
        ..ask.clone()
    };
    let claim = claim::open(d, &ask, Some(workflow))?;
    for (kind, subject) in &it.allowed {
        let right = match (kind, subject.as_str()) {
            (GateKind::Zone, "kernel") => Right::Kernel,
            (GateKind::Zone, "personal") => Right::Personal,
            _ => continue,
        };
        d.push(Event::RightGiven {
            id: claim.clone(),
            right,
        });
    }
    let began_at = d.now();
    let attempt = Attempt {
        id: attempt,
        claim,
        began_at,
        exit: None,
        ended_at: None,
        outcome: None,
        why: None,
    };
    d.push(Event::AttemptBegan {
        run: run.clone(),
        phase: phase.to_owned(),
        attempt,
    });
    Ok(())
}

fn find_attempt<'p>(it: &'p PhaseRun, attempt: &AttemptId) -> Result<&'p Attempt, Refusal> {
    it.attempts
        .iter()
        .find(|other| other.id == *attempt)
        .ok_or_else(|| Refusal::PhaseState {
            run: it.run.clone(),
            phase: it.phase.id.as_str().to_owned(),
            verb: format!("find the attempt {attempt} of"),
        })
}

/// Writes down how the process of an attempt ended; the first word stands.
pub(crate) fn end_attempt(
    d: &mut Draft<'_>,
    run: &RunId,
    driver: Fence,
    phase: &str,
    attempt: &AttemptId,
    exit: &Exit,
) -> Result<(), Refusal> {
    driven(d, run, driver)?;
    let it = find_phase(&d.world, run, phase)?;
    if find_attempt(it, attempt)?.exit.is_none() {
        let (attempt, exit) = (attempt.clone(), exit.clone());
        d.push(Event::AttemptEnded {
            run: run.clone(),
            phase: phase.to_owned(),
            attempt,
            exit,
        });
    }
    Ok(())
}

/// Judges an attempt by its claim's end and by what it really changed; each attempt once.
pub(crate) fn judge_attempt(
    d: &mut Draft<'_>,
    run: &RunId,
    driver: Fence,
    phase: &str,
    attempt: &AttemptId,
    refused: Option<&str>,
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
        failed(d, &the_run, &phase, &claim, &why, by_human);
        return Ok(());
    }
    if outcome == Outcome::Ok {
        breaker::succeed(d, &claim);
    }
    let found = drift::after(d.asked.policy, &the_run, &it.phase, changed);
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
fn failed(d: &mut Draft<'_>, run: &Run, phase: &str, claim: &Claim, why: &str, by_human: bool) {
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
        let known = vec![("Attempts".to_owned(), attempts.to_string())];
        ask(d, run, phase, kind, claim.id.as_str(), why, &known);
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
        close::carry_all_out(d, &claim, outcome);
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
    let gate = crate::command::OpenGate {
        about: About::Phase(run.id.clone(), phase.to_owned()),
        kind,
        subject: subject.to_owned(),
        why: why.to_owned(),
        known: known.to_vec(),
        shown: format!("{digest} {subject}"),
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

/// Ends the runs whose pilot failed.
pub(crate) fn pilots_failed(d: &mut Draft<'_>) {
    let failed = |pilot: &Claim| matches!(pilot.end, Some(End::Failed { .. }));
    let over: Vec<RunId> = d
        .world
        .runs
        .values()
        .filter(|run| run.end.is_none())
        .filter(|run| d.world.claims.get(&run.pilot).is_some_and(failed))
        .map(|run| run.id.clone())
        .collect();
    for id in over {
        withdraw_gates(d, &id, "the run was aborted");
        d.push(Event::RunEnded {
            id,
            end: RunEnd::Aborted,
        });
    }
}

fn withdraw_gates(d: &mut Draft<'_>, run: &RunId, why: &str) {
    let of_run = |gate: &&Gate| matches!(&gate.about, About::Phase(of, _) | About::Run(of) if of == run);
    let pending: Vec<_> = d
        .world
        .gates
        .values()
        .filter(of_run)
        .filter(|it| it.is_pending())
        .map(|it| it.id.clone())
        .collect();
    for id in pending {
        d.push(Event::GateWithdrawn {
            id,
            why: why.to_owned(),
        });
    }
}

/// Closes the gate that a phase waits at, since the plan that it asked about has changed.
fn withdraw_gate(d: &mut Draft<'_>, phase: &PhaseRun) {
    let pending = |id: &&GateId| d.world.gates.get(id).is_some_and(Gate::is_pending);
    if let Some(id) = phase.waiting.as_ref().filter(pending).cloned() {
        let why = "the plan changed".to_owned();
        d.push(Event::GateWithdrawn { id, why });
    }
}

/// Carries an `abort` trigger out: nothing more of this run is launched.
pub(crate) fn launch_no_more(d: &mut Draft<'_>, claim: &Claim) {
    let run = claim.workflow.as_ref().map(|of| of.run.clone());
    if let Some(id) = run.filter(|id| d.world.runs.get(id).is_some_and(|run| !run.launches_ended)) {
        d.push(Event::LaunchesEnded { id });
    }
}

/// Takes a changed plan for what is not done; only where a human answered a gate with `adapt`.
pub(crate) fn adapt(
    d: &mut Draft<'_>,
    id: &RunId,
    digest: &str,
    phases: &[(Phase, String)],
) -> Result<(), Refusal> {
    let run = find_run(&d.world, id)?.clone();
    if run.end.is_some() {
        return Err(Refusal::RunOver { run: id.clone() });
    }
    who::may_act(d.asked, who::find(&d.world, &run.pilot)?, "adapt a run of")?;
    if !d.world.gates.values().any(|gate| wants_adapt(&d.world, gate, id)) {
        let taken_for = "nobody answered a gate of this run with adapt".to_owned();
        return Err(Refusal::NotHuman {
            verb: "adapt the plan of a run".to_owned(),
            taken_for,
        });
    }
    let order: Vec<String> = phases
        .iter()
        .map(|(phase, _)| phase.id.as_str().to_owned())
        .collect();
    for old in run.phases.iter().filter(|old| !order.contains(old)) {
        let Some(it) = phase_of(&d.world, id, old).cloned() else {
            continue;
        };
        if is_busy(&it) {
            let verb = "leave out of the plan".to_owned();
            return Err(Refusal::PhaseState {
                run: id.clone(),
                phase: old.clone(),
                verb,
            });
        }
        withdraw_gate(d, &it);
        if !it.standing.is_settled() {
            let (run, phase) = (id.clone(), old.clone());
            d.push(Event::PhaseSkipped { run, phase });
        }
    }
    d.push(Event::RunAdapted {
        id: id.clone(),
        digest: digest.to_owned(),
        phases: order,
    });
    for (position, (phase, digest)) in phases.iter().enumerate() {
        let old = phase_of(&d.world, id, phase.id.as_str()).cloned();
        match old {
            Some(old) if is_busy(&old) && old.digest != *digest => {
                let (phase, verb) = (phase.id.as_str().to_owned(), "change".to_owned());
                return Err(Refusal::PhaseState {
                    run: id.clone(),
                    phase,
                    verb,
                });
            }
            Some(old) if old.digest == *digest => {
                let asks = old.waiting.as_ref().and_then(|gate| d.world.gates.get(gate));
                let done = old.standing.is_settled()
                    || is_busy(&old)
                    // Its result still waits for a human, who was not asked about the plan.
                    || old.standing == Standing::Running && asks.is_some_and(Gate::is_pending);
                let position = u32::try_from(position).unwrap_or(u32::MAX);
                if done {
                    d.push(Event::PhaseSet(PhaseRun { position, ..old }));
                } else {
                    withdraw_gate(d, &old);
                    d.push(Event::PhaseSet(PhaseRun {
                        position,
                        standing: Standing::Pending,
                        waiting: None,
                        ..old
                    }));
                }
            }
            Some(old) => {
                withdraw_gate(d, &old);
                set_phase(d, id, position, phase, digest, Standing::Pending);
            }
            None => set_phase(d, id, position, phase, digest, Standing::Pending),
        }
    }
    Ok(())
}

/// Writes the moves of the main branches down, before they are made and after.
pub(crate) fn record_landing(
    d: &mut Draft<'_>,
    id: &RunId,
    driver: Fence,
    landings: &BTreeMap<String, Landing>,
) -> Result<(), Refusal> {
    let run = driven(d, id, driver)?;
    let settled = |phase: &String| phase_of(&d.world, id, phase).is_some_and(|it| it.standing.is_settled());
    if let Some(open) = run.phases.iter().find(|phase| !settled(phase)) {
        let (phase, verb) = (open.clone(), "merge over the unsettled".to_owned());
        return Err(Refusal::PhaseState {
            run: id.clone(),
            phase,
            verb,
        });
    }
    let unanswered = signal::blocked(&d.world, id, None).find_map(|signal| match &signal.from {
        Sender::Session(from) => d.world.claims.get(from)?.workflow.as_ref(),
        Sender::User(_) | Sender::Brain => None,
    });
    if let Some(of) = unanswered {
        return Err(Refusal::PhaseState {
            run: id.clone(),
            phase: of.phase.clone(),
            verb: "merge over an unanswered BLOCKED_ON of".to_owned(),
        });
    }
    if run.landings != *landings {
        d.push(Event::RunLanded {
            id: id.clone(),
            landings: landings.clone(),
        });
    }
    Ok(())
}

/// Ends a run; as finished only when every phase is settled.
pub(crate) fn end(d: &mut Draft<'_>, id: &RunId, driver: Fence, end: RunEnd) -> Result<(), Refusal> {
    if d.world.runs.get(id).is_some_and(|run| run.end == Some(end)) {
        return Ok(());
    }
    let run = driven(d, id, driver)?;
    let settled = |phase: &String| phase_of(&d.world, id, phase).is_some_and(|it| it.standing.is_settled());
    if end == RunEnd::Finished
        && let Some(open) = run.phases.iter().find(|phase| !settled(phase))
    {
        let (phase, verb) = (open.clone(), "finish over the unsettled".to_owned());
        return Err(Refusal::PhaseState {
            run: id.clone(),
            phase,
            verb,
        });
    }
    // A pilot that the run opened goes with it; of a run that finished, the driver has closed it.
    let pilot = (run.owns_pilot && end != RunEnd::Finished).then(|| run.pilot.clone());
    withdraw_gates(d, id, "the run ended");
    d.push(Event::RunEnded { id: id.clone(), end });
    if let Some(pilot) = pilot {
        fail_tree(d, &pilot, FailedBy::Abort, &format!("{id} ended"));
        pilots_failed(d);
    }
    Ok(())
}

/// Cancels a run: its pilot is aborted if the run opened it, else its attempts are.
pub(crate) fn cancel(d: &mut Draft<'_>, id: &RunId) -> Result<(), Refusal> {
    let run = find_run(&d.world, id)?.clone();
    if run.end.is_some() {
        return Err(Refusal::RunOver { run: id.clone() });
    }
    let pilot = who::find(&d.world, &run.pilot)?;
    who::may_act(d.asked, pilot, "cancel a run of")?;
    let why = format!("{id} was cancelled");
    if run.owns_pilot {
        if !pilot.is_terminal() {
            fail_tree(d, &run.pilot, FailedBy::Abort, &why);
        }
    } else {
        let of_run = |claim: &&Claim| claim.workflow.as_ref().is_some_and(|of| of.run == *id);
        let live: Vec<SessId> = d
            .world
            .claims
            .values()
            .filter(of_run)
            .filter(|it| !it.is_terminal())
            .map(|it| it.id.clone())
            .collect();
        for claim in live {
            fail_tree(d, &claim, FailedBy::Abort, &why);
        }
    }
    withdraw_gates(d, id, "the run was cancelled");
    d.push(Event::RunEnded {
        id: id.clone(),
        end: RunEnd::Cancelled,
    });
    pilots_failed(d);
    Ok(())
}
