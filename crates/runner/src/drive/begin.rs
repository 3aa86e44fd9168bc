//! Starting a run, and beginning an attempt: the intention is committed before anything is done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use git::{Door, Head, Oid, Repository};
use protocol::command::{Command, OpenClaim, StartRun};
use protocol::event::Event;
use protocol::facts::caller::TokenDigest;
use protocol::facts::claim::{Base, ClaimType, Fence, Owner};
use protocol::facts::gate::{GateKind, NEED};
use protocol::facts::id::{RunId, SessId, slug_of};
use protocol::facts::plan::{Phase, Plan};
use protocol::facts::run::{PhaseRun, Standing};
use protocol::facts::scope::Scope;
use protocol::facts::time::Instant;
use protocol::refusal::Refusal;
use protocol::rules::drift;
use protocol::rules::run::{Question, phase_of};
use protocol::world::{Pick, World};

use super::{Driver, Ground, Hand, Trouble, mortal};
use crate::token::Token;

/// A plan as it is to be run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The file that it was read from, absolute.
    pub source: String,
    /// The hash of the whole.
    pub digest: String,
    /// The pilot under which it works, else one is opened.
    pub parent: Option<SessId>,
    /// How many phases may run side by side.
    pub jobs: u32,
    /// Whether the theme is merged at the end.
    pub merge: bool,
    /// Gates that the starter said yes to.
    pub yes_to: Vec<GateKind>,
    /// The main branch of the configuration.
    pub main_branch: Option<String>,
    /// Paths whose change asks an `architecture` gate.
    pub risk: Vec<String>,
}

/// The hash of a phase's canonical form.
pub fn phase_digest(phase: &Phase) -> String {
    blake3::hash(phase.canonical().as_bytes()).to_hex()[..16].to_owned()
}

/// A repository of the brain that a phase works in.
pub(crate) struct Place {
    /// Its path below the root; `.` for the root's own.
    pub key: String,
    /// The door to its main checkout.
    pub door: Door,
    /// The phase's project folder below the repository; empty for its top.
    pub inside: PathBuf,
}

impl Place {
    /// The repository as people know it.
    fn folder(&self) -> &str {
        if self.key == "." {
            "the repository"
        } else {
            &self.key
        }
    }
}

/// Finds the repository that holds a phase's project.
pub(crate) fn place_of(ground: &Ground, phase: &Phase) -> Result<Place, Trouble> {
    let folder = match &phase.project {
        Some(name) => ground.projects.get(name).cloned().unwrap_or_default(),
        None => String::new(),
    };
    let folder = ground.root.join(folder);
    let repository = Repository::find(&folder).ok_or_else(|| Trouble::Place {
        why: format!("{} lies in no git repository", folder.display()),
        mend: "git init".to_owned(),
    })?;
    let top = repository
        .main_checkout()
        .unwrap_or_else(|| repository.home())
        .to_owned();
    let key = key_of(&ground.root, &top);
    let inside = folder.strip_prefix(&top).map(Path::to_owned).unwrap_or_default();
    Ok(Place {
        key,
        door: Door::user(repository),
        inside,
    })
}

/// The name of a repository: its path below the root, `.` for one that holds the root.
pub(crate) fn key_of(root: &Path, top: &Path) -> String {
    match top.strip_prefix(root) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.to_string_lossy().into_owned(),
        Err(_) => ".".to_owned(),
    }
}

/// Phases that an earlier run of this plan accepted on the same theme, by id and canonical form; only where
/// the theme is still there to hold their work.
fn keep(world: &World, plan: &Plan, there: &BTreeSet<String>, ground: &Ground) -> Vec<(String, String)> {
    let of_plan = |id: &RunId| {
        let run = world.runs.get(id);
        run.is_some_and(|run| run.plan == plan.name && run.theme == plan.branch)
    };
    let accepted = |standing: &Standing| matches!(standing, Standing::Accepted(_));
    let is_there = |it: &&PhaseRun| place_of(ground, &it.phase).is_ok_and(|place| there.contains(&place.key));
    let phases = world
        .phases
        .values()
        .filter(|it| of_plan(&it.run) && accepted(&it.standing));
    phases
        .filter(is_there)
        .map(|it| (it.phase.id.as_str().to_owned(), it.digest.clone()))
        .collect()
}

/// Starts a run: its facts first, then its theme branches.
///
/// # Errors
///
/// The rules' refusal; [`Trouble::BranchExists`]; what git says.
pub(crate) fn start_in(hand: &mut Hand<'_>, planned: &Planned) -> Result<(RunId, Fence), Trouble> {
    let plan = &planned.plan;
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    for phase in &plan.phases {
        let place = place_of(hand.ground, phase)?;
        places.entry(place.key.clone()).or_insert(place);
    }
    let (mut world, now) = hand.look(&vec![
        Pick::RunsOf(plan.name.clone()),
        Pick::Caller(hand.ground.caller.clone()),
    ])?;
    let runs: Vec<RunId> = world.runs.values().map(|run| run.id.clone()).collect();
    for run in runs {
        let (more, _) = hand.look(&vec![Pick::Phases(run)])?;
        world.phases.extend(more.phases);
    }
    let ours = |key: &str| {
        world
            .runs
            .values()
            .any(|run| run.theme == plan.branch && run.main.contains_key(key))
    };
    let (mut main, mut there) = (BTreeMap::new(), BTreeSet::new());
    for (key, place) in &places {
        if place.door.branch(&plan.branch)?.is_some() {
            if !ours(key) {
                return Err(Trouble::BranchExists {
                    branch: plan.branch.clone(),
                    repo: key.clone(),
                });
            }
            there.insert(key.clone());
        }
        main.insert(key.clone(), main_branch(planned, place)?);
    }
    let scope: Vec<&String> = plan.phases.iter().flat_map(|phase| &phase.scope).collect();
    let scope = Scope::parse(scope, hand.ground.policy.fold).map_err(|error| Trouble::Phase {
        phase: "all".to_owned(),
        why: error.to_string(),
    })?;
    let pilot = free_id(hand, now, &format!("{}-pilot", plan.name))?;
    let token = write_token(hand.ground, &pilot)?;
    let ask = StartRun {
        plan: plan.name.clone(),
        source: planned.source.clone(),
        digest: planned.digest.clone(),
        parent: planned.parent.clone(),
        pilot: OpenClaim {
            id: Some(pilot.clone()),
            kind_of: ClaimType::Pilot,
            story_angle: format!("run {}", plan.name),
            ..open_claim(hand.ground, scope, token)
        },
        theme: plan.branch.clone(),
        main,
        jobs: planned.jobs,
        merge: planned.merge,
        kernel_exit: plan.kernel_exit,
        chain: plan.chain,
        yes_to: planned.yes_to.clone(),
        risk: planned.risk.clone(),
        keep: keep(&world, plan, &there, hand.ground),
        phases: plan
            .phases
            .iter()
            .map(|phase| (phase.clone(), phase_digest(phase)))
            .collect(),
    };
    let entries = hand
        .submit(&Command::StartRun(Box::new(ask)))
        .inspect_err(|_| forget_token(hand.ground, &pilot))?;
    let run = entries.iter().find_map(|entry| match &entry.event {
        Event::RunStarted(run) => Some(run.clone()),
        _ => None,
    });
    let Some(run) = run else {
        return Err(Trouble::Phase {
            phase: "all".to_owned(),
            why: "the store did not say what it started".to_owned(),
        });
    };
    if !run.owns_pilot {
        forget_token(hand.ground, &pilot);
    }
    for (key, place) in &places {
        ensure_theme(place, &run.theme, run.main.get(key).map_or("", String::as_str))?;
    }
    Ok((run.id, run.driver))
}

/// Starts a run with a store of its own.
///
/// # Errors
///
/// As for the driver.
pub fn start(
    ground: &Ground,
    open: super::OpenStore<'_>,
    planned: &Planned,
) -> Result<(RunId, Fence), Trouble> {
    let mut hand = Hand::open(ground, open)?;
    start_in(&mut hand, planned)
}

fn main_branch(planned: &Planned, place: &Place) -> Result<String, Trouble> {
    if let Some(name) = planned
        .plan
        .main_branch
        .clone()
        .or_else(|| planned.main_branch.clone())
    {
        return match place.door.branch(&name)? {
            Some(_) => Ok(name),
            None => Err(no_branch(place, &name)),
        };
    }
    match place.door.head()? {
        Head::Branch { name, .. } => Ok(name),
        Head::Unborn { .. } => Err(Trouble::Place {
            why: format!("{} has no commit yet", place.folder()),
            mend: "git commit --allow-empty -m start".to_owned(),
        }),
        Head::Detached(_) => Err(Trouble::Place {
            why: format!(
                "the head of {} is detached, and no `main_branch` says where the run begins",
                place.folder()
            ),
            mend: "git switch -c NAME".to_owned(),
        }),
    }
}

fn no_branch(place: &Place, name: &str) -> Trouble {
    Trouble::Place {
        why: format!("{} has no branch {name}", place.folder()),
        mend: format!("git branch {name}"),
    }
}

/// Makes the theme branch at the head of the main branch, unless it is there.
pub(crate) fn ensure_theme(place: &Place, theme: &str, main: &str) -> Result<Oid, Trouble> {
    if let Some(at) = place.door.branch(theme)? {
        return Ok(at);
    }
    let at = place.door.branch(main)?.ok_or_else(|| no_branch(place, main))?;
    mortal::step();
    place.door.branch_create(theme, &at)?;
    Ok(at)
}

fn owner(ground: &Ground) -> Owner {
    Owner {
        user: ground.caller.user.clone(),
        host: ground.caller.host.clone(),
        process: ground.caller.chain.first().cloned(),
        host_session: None,
    }
}

fn open_claim(ground: &Ground, scope: Scope, token: TokenDigest) -> OpenClaim {
    OpenClaim {
        kind_of: ClaimType::Satellite,
        ..OpenClaim::new("", "", scope, "brain", owner(ground), token)
    }
}

/// An id that nobody has; whoever takes it meanwhile makes the opening fail, and nothing is lost.
fn free_id(hand: &mut Hand<'_>, now: Instant, slug: &str) -> Result<SessId, Trouble> {
    let slug = slug_of(slug);
    let (world, _) = hand.look(&vec![Pick::Ids(slug.clone())])?;
    let free = (1..)
        .map(|nth| SessId::compose(now, &slug, nth))
        .find(|id| !world.taken.contains(id));
    Ok(free.unwrap_or_else(|| SessId::compose(now, &slug, 1)))
}

/// Writes a fresh token for a claim that is about to be opened; gives its digest.
fn write_token(ground: &Ground, claim: &SessId) -> Result<TokenDigest, Trouble> {
    let failed = |error| Trouble::Io("write the token of", ground.state.join(claim.as_str()), error);
    let token = Token::mint().map_err(failed)?;
    token.keep(&ground.state, claim).map_err(failed)?;
    Ok(token.digest())
}

fn forget_token(ground: &Ground, claim: &SessId) {
    // A token without a claim opens nothing; `doctor` sweeps what is left.
    let _ = Token::forget(&ground.state, claim);
}

/// Whether something that was due was begun.
pub(super) enum Began {
    /// It was, or a human is asked first.
    Yes,
    /// Not now, perhaps with why.
    No(Option<String>),
}

impl Driver<'_> {
    /// The zones, type changes and exits that a phase only tells.
    pub(super) fn findings(&self, world: &World, phase: &str) -> Vec<String> {
        let Some(run) = world.runs.get(&self.run) else {
            return Vec::new();
        };
        let Some(it) = phase_of(world, &self.run, phase) else {
            return Vec::new();
        };
        let needs: Vec<&Phase> = it
            .phase
            .needs
            .iter()
            .filter_map(|need| phase_of(world, &self.run, need.as_str()))
            .map(|it| &it.phase)
            .collect();
        let found = drift::before(&self.ground.policy, run, &it.phase, &needs);
        found
            .into_iter()
            .filter(|finding| finding.gate.is_none())
            .map(|finding| finding.why)
            .collect()
    }

    /// Asks a gate of the loop.
    pub(super) fn ask(&self, hand: &mut Hand<'_>, world: &World, question: &Question) -> Result<(), Trouble> {
        let mut known = question.known.clone();
        if let Some(it) = phase_of(world, &self.run, &question.phase) {
            known.insert(
                0,
                (
                    "Phase".to_owned(),
                    format!("{} — {}", it.phase.id, it.phase.title),
                ),
            );
            known.push(("Scope".to_owned(), it.phase.scope.join(" ")));
        }
        hand.submit(&Command::AskPhase {
            run: self.run.clone(),
            driver: self.fence,
            phase: question.phase.clone(),
            kind: question.kind,
            subject: question.subject.clone(),
            why: question.why.clone(),
            known,
            shown: String::new(),
        })?;
        Ok(())
    }

    /// Takes the plan as it stands now, since a human answered with `adapt`; what cannot be taken is told, and
    /// read again.
    pub(super) fn adapt(&self, hand: &mut Hand<'_>, world: &World) -> Result<Began, Trouble> {
        let plan = match (self.reread)() {
            Ok(plan) => plan,
            Err(why) => return Ok(Began::No(Some(format!("it cannot be taken as it stands: {why}")))),
        };
        let main = world.runs.get(&self.run).map(|run| &run.main);
        for phase in &plan.phases {
            let why = match place_of(self.ground, phase) {
                Ok(place) if main.is_some_and(|main| main.contains_key(&place.key)) => continue,
                Ok(place) => format!(
                    "phase {} works in {}, where this run has no branch",
                    phase.id, place.key
                ),
                Err(trouble) => trouble.to_string(),
            };
            return Ok(Began::No(Some(why)));
        }
        let phases: Vec<(Phase, String)> = plan
            .phases
            .iter()
            .map(|phase| (phase.clone(), phase_digest(phase)))
            .collect();
        let digest = whole_digest(&phases);
        match hand.submit(&Command::AdaptRun {
            run: self.run.clone(),
            digest,
            phases,
        }) {
            Ok(_) => Ok(Began::Yes),
            Err(Trouble::Refused(refusal)) => match *refusal {
                Refusal::PhaseState { phase, verb, .. } => Ok(Began::No(Some(format!(
                    "phase {phase} is under way: {verb} it when it has ended"
                )))),
                refusal => Err(refusal.into()),
            },
            Err(trouble) => Err(trouble),
        }
    }

    /// Begins an attempt at a phase, unless the plan's file says something else of it by now.
    pub(super) fn begin(
        &self,
        hand: &mut Hand<'_>,
        world: &World,
        now: Instant,
        phase: &str,
    ) -> Result<Began, Trouble> {
        let (Some(run), Some(it)) = (world.runs.get(&self.run), phase_of(world, &self.run, phase)) else {
            return Ok(Began::No(None));
        };
        if let Some((why, known)) = self.changed_since(it) {
            // Answered with `retry`, the file is read once more; only `adapt` takes what it says.
            hand.submit(&Command::AskPhase {
                run: self.run.clone(),
                driver: self.fence,
                phase: phase.to_owned(),
                kind: GateKind::Plan,
                subject: blake3::hash(why.as_bytes()).to_hex()[..16].to_owned(),
                why: "the plan's file changed after the run was started".to_owned(),
                known,
                shown: blake3::hash(why.as_bytes()).to_hex()[..16].to_owned(),
            })?;
            return Ok(Began::Yes);
        }
        let place = place_of(self.ground, &it.phase)?;
        let head = ensure_theme(
            &place,
            &run.theme,
            run.main.get(&place.key).map_or("", String::as_str),
        )?;
        let scope =
            Scope::parse(&it.phase.scope, self.ground.policy.fold).map_err(|error| Trouble::Phase {
                phase: phase.to_owned(),
                why: error.to_string(),
            })?;
        let claim = free_id(hand, now, &format!("{}-{phase}", run.plan))?;
        let worktree = self.ground.worktree_dir(&claim);
        let branch = branch_of(&claim);
        let base = Base {
            commit: Some(head.to_string()),
            branch: Some(branch.clone()),
            checkout: worktree.display().to_string(),
            ..Base::default()
        };
        let token = write_token(self.ground, &claim)?;
        let task = it
            .phase
            .story_angle
            .clone()
            .unwrap_or_else(|| it.phase.title.clone());
        let ask = OpenClaim {
            id: Some(claim.clone()),
            agent: it.phase.agent.clone().unwrap_or_else(|| "satellite".to_owned()),
            owner: Owner {
                process: None,
                ..owner(self.ground)
            },
            story_angle: task,
            branch: Some(branch),
            worktree: Some(worktree.display().to_string()),
            tests: self.tests_of(&it.phase),
            base: BTreeMap::from([(place.key, base)]),
            ..open_claim(self.ground, scope, token)
        };
        let begun = hand.submit(&Command::BeginAttempt {
            run: self.run.clone(),
            driver: self.fence,
            phase: phase.to_owned(),
            claim: Box::new(ask),
        });
        match begun {
            Ok(_) => {
                let zones = drift::zones_of(&self.ground.policy, &it.phase);
                self.face.hear(super::News::Announced {
                    phase: phase.to_owned(),
                    title: it.phase.title.clone(),
                    zones: zones.iter().map(ToString::to_string).collect(),
                    kind: it.phase.kind.to_string(),
                });
                Ok(Began::Yes)
            }
            Err(trouble) => {
                forget_token(self.ground, &claim);
                self.not_begun(hand, it, trouble)
            }
        }
    }

    /// A phase that may not begin now waits for what bars it: a later look tries again, or a human says.
    fn not_begun(&self, hand: &mut Hand<'_>, it: &PhaseRun, trouble: Trouble) -> Result<Began, Trouble> {
        let Trouble::Refused(refusal) = &trouble else {
            return Err(trouble);
        };
        match &**refusal {
            Refusal::PhaseState { .. } | Refusal::JobsFull { .. } | Refusal::IdTaken { .. } => {
                Ok(Began::No(None))
            }
            Refusal::ScopeOverlaps { held, .. } => {
                let why = format!("{} holds {}: {}", held.claim, held.scope, held.story_angle);
                let subject = format!("{NEED}held:{}", held.claim);
                if it.allowed.contains(&(GateKind::Failed, subject.clone())) {
                    // A human said to go on: as soon as the other one has let go.
                    return Ok(Began::No(Some(format!("waits: {why}"))));
                }
                hand.submit(&Command::AskPhase {
                    run: self.run.clone(),
                    driver: self.fence,
                    phase: it.phase.id.to_string(),
                    kind: GateKind::Failed,
                    subject,
                    why,
                    known: Vec::new(),
                    shown: String::new(),
                })?;
                Ok(Began::Yes)
            }
            _ => Err(trouble),
        }
    }

    /// What the plan's file says otherwise than the run, of this phase.
    fn changed_since(&self, it: &PhaseRun) -> Option<(String, Vec<(String, String)>)> {
        let was = it.phase.canonical();
        let plan = match (self.reread)() {
            Ok(plan) => plan,
            Err(why) => return Some((why.clone(), vec![("Now".to_owned(), why)])),
        };
        let Some(phase) = plan.phase(it.phase.id.as_str()) else {
            return Some((
                "gone".to_owned(),
                vec![("Now".to_owned(), "the phase is gone".to_owned())],
            ));
        };
        let is = phase.canonical();
        if is == was {
            return None;
        }
        let lines = |text: &str, other: &str, label: &str| -> Vec<(String, String)> {
            let only = text.lines().filter(|line| !other.lines().any(|it| it == *line));
            only.map(|line| (label.to_owned(), line.to_owned())).collect()
        };
        let mut known = lines(&was, &is, "Was");
        known.extend(lines(&is, &was, "Now"));
        Some((is, known))
    }

    pub(super) fn tests_of(&self, phase: &Phase) -> Option<protocol::facts::tests::Tests> {
        let project = phase
            .project
            .as_deref()
            .and_then(|name| self.ground.tests.get(name));
        phase
            .tests
            .as_ref()
            .or(project)
            .or(self.ground.settings.tests.as_ref())
            .cloned()
    }
}

/// The branch of an attempt's own, by its claim.
pub(crate) fn branch_of(claim: &SessId) -> String {
    format!("brain/{}", claim.as_str().trim_start_matches("sess-"))
}

/// The hash of a whole plan: of what its phases mean, in their order.
pub fn whole_digest(phases: &[(Phase, String)]) -> String {
    let mut hasher = blake3::Hasher::new();
    for (_, digest) in phases {
        hasher.update(digest.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}
