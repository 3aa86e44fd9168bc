//! Random commands from a fixed seed, most of which make sense in the world that they are given to.

use std::collections::BTreeMap;

use protocol::command::{Changed, Command, OpenClaim, OpenGate, StartRun};
use protocol::facts::caller::{Caller, Nature, Process, Proof, TokenDigest};
use protocol::facts::claim::{
    Base, Claim, ClaimType, Evidence, EvidenceSource, Fence, Landing, Level, Outcome, Owner, State,
};
use protocol::facts::gate::{About, Choice, GateKind};
use protocol::facts::id::{AttemptId, GateId, RunId, SessId, SigId};
use protocol::facts::kind::Kind;
use protocol::facts::lock::Holder;
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::plan::{KernelExit, Phase, PhaseGate, PhaseId};
use protocol::facts::policy::Policy;
use protocol::facts::report::{Format, Report};
use protocol::facts::run::{Exit, PhaseRun, Run, RunEnd, Standing};
use protocol::facts::scope::Scope;
use protocol::facts::signal_kind::SignalKind;
use protocol::facts::span::Span;
use protocol::facts::tests::Tests;
use protocol::facts::time::Instant;
use protocol::facts::trigger::Trigger;
use protocol::facts::zone::{ZoneLists, Zones};
use protocol::rules::preflight::{Op, PathAsk, Preflight};
use protocol::world::{Lease, World};

/// One step of a script.
#[expect(clippy::large_enum_variant, reason = "one step is alive at a time")]
pub enum Step {
    /// Time passes, in milliseconds.
    Turn(u64),
    /// Someone sets the wall clock, by so many milliseconds.
    Wall(i64),
    /// The machine boots.
    Boot(String),
    /// Signs of life.
    Touch(Vec<(Lease, Fence)>, Span),
    /// A request.
    Submit {
        /// Who asks.
        caller: Caller,
        /// Under which idempotency key.
        key: Option<String>,
        /// For what.
        command: Command,
    },
}

/// The configuration under which scripts run.
///
/// # Panics
///
/// Never: the built-in zones are accepted.
pub fn policy() -> Policy {
    #[expect(clippy::expect_used, reason = "the built-in zones are accepted")]
    let zones = Zones::new(&ZoneLists::default(), false, &[], Fold::Exact).expect("the built-in zones");
    Policy {
        zones,
        kerneluser: true,
        fails_max: 3,
        stale_grace: Span::from_ms(60_000),
        fold: Fold::Exact,
        exit_is_enough: Vec::new(),
        digest: "policy".to_owned(),
    }
}

/// A scope of these entries.
///
/// # Panics
///
/// Where they are none.
pub fn scope(entries: &[&str]) -> Scope {
    Scope::parse(entries, Fold::Exact).unwrap_or_else(|error| panic!("{entries:?}: {error}"))
}

/// A request for a plain claim.
pub fn opening(slug: &str, scope: Scope, ttl: Span) -> OpenClaim {
    OpenClaim {
        ttl: Some(ttl),
        branch: Some("main".to_owned()),
        ..OpenClaim::new(
            slug,
            format!("work on {slug}"),
            scope,
            "codex",
            Owner {
                user: "ana".to_owned(),
                host: "box".to_owned(),
                process: None,
                host_session: None,
            },
            TokenDigest(format!("token of {slug}")),
        )
    }
}

/// A request for a run of these phases (id, scope, needs) under a pilot of its own.
pub fn run_of(plan: &str, phases: Vec<Phase>) -> StartRun {
    let pilot = OpenClaim {
        kind_of: ClaimType::Pilot,
        ..opening(
            &format!("pilot-{plan}"),
            scope(&["plans/"]),
            Span::from_ms(600_000),
        )
    };
    StartRun {
        plan: plan.to_owned(),
        source: format!("/plans/{plan}.yml"),
        digest: format!("digest of {plan}"),
        parent: None,
        pilot,
        theme: format!("theme/{plan}"),
        main: BTreeMap::from([(String::new(), "main".to_owned())]),
        jobs: 2,
        merge: true,
        kernel_exit: KernelExit::Told,
        chain: false,
        yes_to: Vec::new(),
        risk: Vec::new(),
        phases: phases
            .into_iter()
            .map(|phase| (phase.clone(), phase.canonical()))
            .collect(),
        keep: Vec::new(),
    }
}

const SCOPES: [&[&str]; 18] = [
    &["src/"],
    &["src/api/"],
    &["src/api/a.rs"],
    &["src/api/*.rs", "!src/api/gen.rs"],
    &["Src/API/"],
    &["src/web/", "docs/web.md"],
    &["docs/"],
    &["docs/*.md"],
    &["*.toml"],
    &["**/x.rs"],
    &["lib/**/deep.c"],
    &["lib/"],
    &["tests/a/"],
    &["tests/b/"],
    &["tests/?/"],
    &["."],
    &["CLAUDE.md"],
    &["t\u{e9}l\u{e9}/", "a b/c/"],
];
const PHASE_SCOPES: [&[&str]; 6] = [
    &["work/a/"],
    &["work/b/", "work/b.md"],
    &["work/c/*.rs"],
    &["work/"],
    &["CLAUDE.md"],
    &["src/api/"],
];
const PATHS: [&str; 12] = [
    "src",
    "src/api",
    "src/api/a.rs",
    "src/api/b.rs",
    "src/web/x.rs",
    "docs/web.md",
    "docs",
    "lib/q/deep.c",
    "Cargo.toml",
    "tests/a/t.rs",
    ".",
    "t\u{e9}l\u{e9}/x",
];
const WORDS: [&str; 4] = ["go on", "it broke", "take a look", "no"];

/// Makes a script's steps one by one; the same seed in the same worlds makes the same steps.
pub struct Script {
    state: u64,
    policy: Policy,
    made: u64,
    boots: u64,
    /// Whether this script is mostly about runs, with little that disturbs them.
    calm: bool,
    keys: Vec<(Caller, String, Command)>,
}

impl Script {
    /// Begins a script.
    pub fn new(seed: u64) -> Script {
        Script {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03,
            policy: policy(),
            made: 0,
            boots: 0,
            calm: seed % 2 == 1,
            keys: Vec::new(),
        }
    }

    /// The configuration of every request.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// A random number below `n` (splitmix64).
    pub fn below(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap_or(0);
        all.get(at)
    }

    fn word(&mut self) -> String {
        self.of(&WORDS)
            .map_or_else(String::new, |word| (*word).to_owned())
    }

    fn scope(&mut self) -> Scope {
        // The whole root is rare, or it would be all that there is.
        let at = self.below(SCOPES.len() as u64 * 3) as usize;
        let entries = SCOPES[if at >= SCOPES.len() * 2 {
            at % 12
        } else {
            at % SCOPES.len()
        }];
        let fold = if self.chance(10) { Fold::Case } else { Fold::Exact };
        Scope::parse(entries, fold).unwrap_or_else(|error| panic!("{entries:?}: {error}"))
    }

    fn path(&mut self) -> LogicalPath {
        let path = PATHS[self.below(PATHS.len() as u64) as usize];
        LogicalPath::parse(path, Fold::Exact).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn paths(&mut self) -> Vec<LogicalPath> {
        (0..=self.below(3)).map(|_| self.path()).collect()
    }

    /// A claim's id: mostly of one that has not ended, sometimes of one that has, seldom of none.
    fn claim(&mut self, world: &World) -> SessId {
        let live: Vec<&SessId> = world
            .claims
            .values()
            .filter(|it| !it.is_terminal())
            .map(|it| &it.id)
            .collect();
        let all: Vec<&SessId> = world.claims.keys().collect();
        let unknown = SessId::compose(
            Instant {
                era: 1,
                tick: 0,
                wall: 0,
            },
            "nobody",
            1,
        );
        let from = if self.chance(85) { &live } else { &all };
        if self.chance(3) {
            return unknown;
        }
        self.of(from).map_or(unknown, |id| (*id).clone())
    }

    fn process(&mut self) -> Process {
        let pid = 100 + self.below(6) as u32;
        Process {
            host: "box".to_owned(),
            boot: "boot".to_owned(),
            pid_ns: 1,
            pid,
            start: 7,
        }
    }

    fn caller(&mut self, world: &World) -> Caller {
        let plain = Caller::plain("ana", "box");
        match self.below(10) {
            0..3 => plain,
            3..5 => Caller {
                nature: Nature::Human(Proof::Signed {
                    signer: "ana".to_owned(),
                }),
                ..plain
            },
            5 => Caller {
                nature: Nature::Agent {
                    by: "a mark".to_owned(),
                },
                chain: vec![self.process(), self.process()],
                user: "ben".to_owned(),
                ..plain
            },
            6 => Caller {
                chain: vec![self.process()],
                ..plain
            },
            _ => {
                let id = self.claim(world);
                let claim = world.claims.get(&id);
                let how = self.below(3);
                Caller {
                    nature: Nature::Agent {
                        by: "a mark".to_owned(),
                    },
                    token: claim.filter(|_| how == 0).map(|it| it.token.clone()),
                    host_session: claim
                        .filter(|_| how == 1)
                        .and_then(|it| it.owner.host_session.clone()),
                    chain: claim
                        .into_iter()
                        .filter(|_| how == 2)
                        .filter_map(|it| it.owner.process.clone())
                        .collect(),
                    owner: claim.and_then(|it| it.owner.process.clone()),
                    ..plain
                }
            }
        }
    }

    fn triggers(&mut self, world: &World) -> Vec<Trigger> {
        if self.chance(60) {
            return Vec::new();
        }
        let to = match self.below(4) {
            0 => "human".to_owned(),
            1 => "pilot".to_owned(),
            _ => self.claim(world).to_string(),
        };
        vec![match self.below(4) {
            0 => Trigger::Notify { to },
            1 => Trigger::Abort,
            2 => Trigger::HumanGate {
                text: "deploy?".to_owned(),
            },
            _ => Trigger::Signal {
                kind: SignalKind::Handoff,
                to,
            },
        }]
    }

    fn open(&mut self, world: &World) -> OpenClaim {
        self.made += 1;
        let slug = format!("s{}", self.below(20));
        let scope = self.scope();
        let ttl = Span::from_ms(5_000 + self.below(60_000));
        let mut ask = opening(&slug, scope, ttl);
        ask.token = TokenDigest(format!("token {}", self.made));
        let above: Vec<SessId> = world
            .claims
            .values()
            .filter(|it| !it.is_terminal())
            .filter(|it| it.kind_of == ClaimType::Pilot || it.satellite_level == Level::Domain)
            .map(|it| it.id.clone())
            .collect();
        match self.below(10) {
            0..2 => ask.kind_of = ClaimType::Pilot,
            2..6 if !above.is_empty() => {
                ask.kind_of = ClaimType::Satellite;
                ask.parent = self.of(&above).cloned();
                if self.chance(20) {
                    ask.satellite_level = Level::Domain;
                }
            }
            _ => {}
        }
        ask.satellite_type = Kind::ALL[self.below(6) as usize];
        ask.exclusive = self.chance(5);
        ask.rendering = self.chance(10);
        if self.chance(50) {
            ask.owner.process = Some(self.process());
        }
        if self.chance(30) {
            ask.owner.host_session = Some(format!("host-{}", self.below(5)));
        }
        if self.chance(10) {
            ask.id = Some(self.claim(world));
        } else if self.chance(20) {
            ask.id = SessId::parse(&format!("sess-20261130-1400-x{}", self.made)).ok();
        }
        ask.on_done = self.triggers(world);
        ask.on_partial = self.triggers(world);
        ask.on_fail = self.triggers(world);
        if self.chance(30) {
            ask.tests = Some(Tests {
                run: "cargo test".to_owned(),
                report: None,
                format: None,
            });
        }
        if self.chance(3) {
            ask.story_angle = "two\nlines".to_owned();
        }
        ask
    }

    fn phase(&mut self, id: &str, needs: &[&str]) -> Phase {
        let entries = if self.calm {
            PHASE_SCOPES[self.below(6) as usize]
        } else {
            SCOPES[self.below(14) as usize]
        };
        let entries = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let name = |id: &str| PhaseId::parse(id).unwrap_or_else(|| panic!("{id} is no phase"));
        let mut phase = Phase::new(name(id), entries);
        phase.needs = needs.iter().map(|need| name(need)).collect();
        phase.retries = self.below(2) as u32;
        phase.kind = Kind::ALL[self.below(5) as usize];
        phase.gate = [
            PhaseGate::Never,
            PhaseGate::Never,
            PhaseGate::Human,
            PhaseGate::ZeroFailures,
        ][self.below(4) as usize];
        if self.chance(60) {
            phase.on_fail = vec![Trigger::Abort];
        }
        phase
    }

    fn phases(&mut self) -> Vec<Phase> {
        vec![
            self.phase("a", &[]),
            self.phase("b", &["a"]),
            self.phase("c", &[]),
        ]
    }

    fn start(&mut self, world: &World) -> StartRun {
        let plan = format!("p{}", self.below(3));
        let phases = self.phases();
        let mut ask = run_of(&plan, phases);
        self.made += 1;
        ask.pilot.token = TokenDigest(format!("token {}", self.made));
        if self.chance(30) {
            ask.parent = Some(self.claim(world));
        }
        if self.chance(40) {
            ask.yes_to = vec![GateKind::Partial];
        }
        if self.chance(20) {
            ask.keep = ask
                .phases
                .iter()
                .take(1)
                .map(|(phase, hash)| (phase.id.to_string(), hash.clone()))
                .collect();
        }
        ask
    }

    /// The next step in this world.
    pub fn next(&mut self, world: &World, now: Instant) -> Step {
        let longest = if self.calm { 1_500 } else { 12_000 };
        match self.below(100) {
            0..8 => Step::Turn(1 + self.below(longest)),
            8 => Step::Wall(if self.chance(50) { 3_600_000 } else { -3_600_000 }),
            9 if self.chance(25) => {
                self.boots += 1;
                Step::Boot(format!("boot {}", self.boots))
            }
            10..15 => {
                let leases = self.leases(world);
                Step::Touch(leases, Span::from_ms(1_000 + self.below(40_000)))
            }
            15..19 => match self.repeat() {
                Some((caller, key, command)) => Step::Submit {
                    caller,
                    key: Some(key),
                    command,
                },
                None => self.submit(world, now),
            },
            _ => self.submit(world, now),
        }
    }

    fn repeat(&mut self) -> Option<(Caller, String, Command)> {
        let keys = std::mem::take(&mut self.keys);
        let chosen = self.of(&keys).cloned();
        self.keys = keys;
        chosen
    }

    fn leases(&mut self, world: &World) -> Vec<(Lease, Fence)> {
        let held: Vec<(Lease, Fence)> = world
            .leases
            .iter()
            .map(|(lease, until)| (lease.clone(), until.fence))
            .collect();
        let mut leases = Vec::new();
        for _ in 0..=self.below(3) {
            if let Some((lease, fence)) = self.of(&held).cloned() {
                let old = self.chance(10);
                leases.push((
                    lease,
                    if old {
                        Fence(fence.0.saturating_sub(1))
                    } else {
                        fence
                    },
                ));
            }
        }
        let signals: Vec<SigId> = world.signals.keys().cloned().collect();
        if let (true, Some(signal)) = (self.chance(40), self.of(&signals)) {
            leases.push((Lease::Delivery(signal.clone()), Fence(0)));
        }
        leases
    }

    fn submit(&mut self, world: &World, now: Instant) -> Step {
        let stopped = world.halt.standing.is_some() && self.chance(25);
        let about_runs = !stopped && self.calm && self.chance(70);
        let command = match (stopped, about_runs) {
            (true, _) => Command::Thaw,
            (false, true) if self.chance(15) => self.answer(world),
            (false, true) => self.run(world, now),
            (false, false) => self.command(world, now),
        };
        let mut caller = self.caller(world);
        if (stopped || about_runs) && self.chance(85) {
            caller = Caller::plain("ana", "box");
        }
        if let Command::AnswerGate { .. } | Command::ResetWork { .. } = command
            && self.chance(70)
        {
            caller = Caller {
                nature: Nature::Human(Proof::Demo),
                ..Caller::plain("ana", "box")
            };
        }
        let key = self.chance(25).then(|| format!("key {}", self.below(400)));
        if let Some(key) = &key {
            self.keys.push((caller.clone(), key.clone(), command.clone()));
        }
        Step::Submit { caller, key, command }
    }

    fn command(&mut self, world: &World, now: Instant) -> Command {
        match self.below(100) {
            0..22 => Command::OpenClaim(self.open(world)),
            22..25 => Command::RenewClaim {
                id: self.claim(world),
            },
            25..27 => Command::NoteBase {
                id: self.claim(world),
                repo: ["", "sub"][self.below(2) as usize].to_owned(),
                base: Base {
                    commit: Some("c0ffee".to_owned()),
                    branch: Some("main".to_owned()),
                    checkout: "/work".to_owned(),
                    dirty: BTreeMap::from([("x".to_owned(), "h".to_owned())]),
                    guarded: BTreeMap::new(),
                },
            },
            27..30 => {
                let gone = (0..self.below(2)).map(|_| (self.claim(world), "its process ended".to_owned()));
                Command::ReapClaims { gone: gone.collect() }
            }
            30..37 => Command::AcquireLocks {
                holder: self.holder(world),
                paths: self.paths(),
                ttl: Span::from_ms(2_000 + self.below(30_000)),
            },
            37..41 => self.release(world),
            41..42 => Command::CleanupLocks,
            42..45 => Command::FailWork {
                id: self.claim(world),
                why: self.word(),
            },
            45..47 => Command::ResetWork {
                id: self.failing(world),
                why: self.word(),
            },
            47..50 => Command::OpenGate(OpenGate {
                about: About::Claim(self.claim(world)),
                kind: GateKind::ALL[self.below(11) as usize].0,
                subject: ["kernel", "personal", "CLAUDE.md", "tests"][self.below(4) as usize].to_owned(),
                why: self.word(),
                known: vec![("Files".to_owned(), "3".to_owned())],
                shown: "shown".to_owned(),
            }),
            50..57 => self.answer(world),
            57..59 => Command::Pause {
                id: self.claim(world),
                why: self.word(),
            },
            59..62 => Command::Resume {
                id: self.paused(world),
            },
            62..64 => Command::Abort {
                id: self.claim(world),
                why: self.word(),
            },
            64 if self.chance(30) => Command::Halt { why: self.word() },
            64..66 => Command::Thaw,
            66..69 => Command::SendSignal {
                to: match self.below(6) {
                    0 => "human".to_owned(),
                    1 => "pilot".to_owned(),
                    2 => "parent".to_owned(),
                    3 => "all".to_owned(),
                    4 => "nobody".to_owned(),
                    _ => self.claim(world).to_string(),
                },
                kind: SignalKind::ALL[self.below(17) as usize],
                from: self.chance(50).then(|| self.claim(world)),
                summary: self.word(),
            },
            69..71 => {
                let open: Vec<SigId> = world.signals.keys().cloned().collect();
                let ids = (0..=self.below(2)).filter_map(|_| self.of(&open).cloned());
                Command::AckSignals { ids: ids.collect() }
            }
            71..80 => self.close(world),
            _ => self.run(world, now),
        }
    }

    fn holder(&mut self, world: &World) -> Holder {
        if self.chance(30) {
            Holder::Name(["cron", "ci", "-bad"][self.below(3) as usize].to_owned())
        } else {
            Holder::Claim(self.claim(world))
        }
    }

    fn release(&mut self, world: &World) -> Command {
        let locks: Vec<_> = world.locks.values().collect();
        let lock = self.of(&locks).copied().cloned();
        let foreign = self.chance(25);
        let force = self.chance(15).then(|| "it is in the way".to_owned());
        match lock {
            Some(lock) if !foreign => Command::ReleaseLocks {
                holder: lock.holder,
                paths: vec![lock.path],
                force,
            },
            lock => Command::ReleaseLocks {
                holder: self.holder(world),
                paths: lock.map_or_else(|| self.paths(), |lock| vec![lock.path]),
                force,
            },
        }
    }

    /// A question before a write, by someone who may or may not be the claim's owner.
    pub fn preflight(&mut self, world: &World) -> (Caller, Preflight) {
        let op = [Op::Write, Op::Write, Op::Delete, Op::Read][self.below(4) as usize];
        let id = (op != Op::Read || self.chance(50)).then(|| self.claim(world));
        let caller = self.caller(world);
        // Mostly a path that the claim names, so that the later checks are met too.
        let named = id.as_ref().and_then(|id| world.claims.get(id));
        let named: Vec<String> = named.map(|it| it.scope.literal_prefixes()).unwrap_or_default();
        let inside = self.of(&named).map(|prefix| format!("{prefix}/x.rs"));
        let path = match inside {
            Some(inside) if self.chance(60) => {
                let inside = inside.trim_start_matches('/');
                LogicalPath::parse(inside, Fold::Exact).unwrap_or_else(|_| LogicalPath::root())
            }
            _ => self.path(),
        };
        let ask = PathAsk {
            given: path.to_string(),
            path: Ok(path),
            links: None,
            folder: self.chance(20),
            repo: None,
        };
        let paths = vec![ask];
        (caller, Preflight { id, op, paths })
    }

    fn failing(&mut self, world: &World) -> SessId {
        let failing: Vec<SessId> = world
            .claims
            .values()
            .filter(|it| world.works.contains_key(&it.work))
            .map(|it| it.id.clone())
            .collect();
        self.of(&failing).cloned().unwrap_or_else(|| self.claim(world))
    }

    fn paused(&mut self, world: &World) -> SessId {
        let paused: Vec<SessId> = world
            .claims
            .values()
            .filter(|it| !it.pauses.is_empty() && !it.is_terminal())
            .map(|it| it.id.clone())
            .collect();
        self.of(&paused).cloned().unwrap_or_else(|| self.claim(world))
    }

    fn answer(&mut self, world: &World) -> Command {
        let pending: Vec<_> = world.gates.values().filter(|it| it.is_pending()).collect();
        let all: Vec<_> = world.gates.values().collect();
        let from = if self.chance(90) { &pending } else { &all };
        let gate = self.of(from).copied();
        if let Some(About::Claim(id)) = gate.map(|gate| &gate.about)
            && self.chance(15)
        {
            // An answer under a pause waits for its end.
            return Command::Pause {
                id: id.clone(),
                why: self.word(),
            };
        }
        let choice = match gate {
            Some(gate) if self.chance(95) => gate.choices()[self.below(4) as usize],
            _ => Choice::Retry,
        };
        let stale = self.chance(5);
        Command::AnswerGate {
            id: gate.map_or_else(|| GateId::mint(0), |it| it.id.clone()),
            choice,
            words: match gate {
                Some(gate) if self.chance(80) => gate.subject.clone(),
                _ => self.word(),
            },
            shown: gate
                .filter(|_| !stale)
                .map(|it| it.shown.clone())
                .unwrap_or_default(),
            mac: "mac".to_owned(),
        }
    }

    fn close(&mut self, world: &World) -> Command {
        let closing: Vec<&Claim> = world
            .claims
            .values()
            .filter(|it| it.closing.is_some() && !it.is_terminal())
            .collect();
        let begun = self.of(&closing).map(|it| it.id.clone());
        let id = match begun {
            Some(id) if self.chance(75) => id,
            _ => {
                return Command::BeginClose {
                    id: self.claim(world),
                    at_most: self.outcome(),
                    notes: self.chance(30).then(|| self.word()),
                    accept_failed: self.chance(50),
                };
            }
        };
        match self.below(8) {
            0..3 => Command::RecordEvidence {
                id,
                evidence: self.evidence(),
            },
            3 => Command::RecordCommit {
                id,
                repo: String::new(),
                commit: format!("c{}", self.below(3)),
            },
            4 => Command::RecordLanding {
                id,
                repo: String::new(),
                landing: self.landing(),
            },
            _ => Command::FinishClose {
                id,
                status: self.outcome(),
                files_modified: vec!["src/api/a.rs".to_owned()],
                notes: vec![self.word()],
                accept_failed: self.chance(60),
            },
        }
    }

    fn outcome(&mut self) -> Outcome {
        [Outcome::Ok, Outcome::Ok, Outcome::Partial, Outcome::Failed][self.below(4) as usize]
    }

    fn landing(&mut self) -> Landing {
        Landing {
            target: "refs/heads/main".to_owned(),
            old: "a".to_owned(),
            new: "b".to_owned(),
            done: self.chance(50),
        }
    }

    fn evidence(&mut self) -> Evidence {
        let mut report = Report::empty(Format::parse("tap").unwrap_or_else(|| panic!("tap is a form")));
        report.pass(self.below(5));
        if self.chance(20) {
            report.fail(1);
        }
        if self.chance(20) {
            report.skip(1);
        }
        Evidence {
            command: "cargo test".to_owned(),
            repo: String::new(),
            tree: format!("t{}", self.below(2)),
            exit: if self.chance(85) { Some(0) } else { None },
            report: self.chance(90).then_some(report),
            source: EvidenceSource::Run,
            took_ms: 12,
            foreign: 0,
            artifacts: Vec::new(),
        }
    }

    fn run(&mut self, world: &World, now: Instant) -> Command {
        let live: Vec<&Run> = world.runs.values().filter(|run| run.end.is_none()).collect();
        let all: Vec<&Run> = world.runs.values().collect();
        let from = if self.chance(95) { &live } else { &all };
        let Some(run) = self.of(from).copied() else {
            return Command::StartRun(Box::new(self.start(world)));
        };
        if self.chance(6) {
            return Command::StartRun(Box::new(self.start(world)));
        }
        let id = run.id.clone();
        let driver = if self.chance(95) { run.driver } else { Fence(1) };
        if self.chance(4) {
            let driver_gone = self.chance(60);
            return Command::TakeRun { id, driver_gone };
        }
        let phases: Vec<&PhaseRun> = run
            .phases
            .iter()
            .filter_map(|phase| world.phases.get(&(id.clone(), phase.clone())))
            .collect();
        let adapted = world.gates.values().any(|gate| {
            matches!(&gate.about, About::Phase(of, _) if *of == id) && gate.choice() == Some(Choice::Adapt)
        });
        if self.chance(if adapted { 40 } else { 2 }) {
            let phases = self.phases();
            return Command::AdaptRun {
                run: id,
                digest: format!("adapted {}", self.below(5)),
                phases: phases
                    .into_iter()
                    .map(|phase| (phase.clone(), phase.canonical()))
                    .collect(),
            };
        }
        let settled = phases.iter().all(|phase| phase.standing.is_settled());
        if settled && self.chance(50) {
            return if self.chance(60) {
                Command::RecordRunLanding {
                    run: id,
                    driver,
                    landings: BTreeMap::from([(String::new(), self.landing())]),
                }
            } else {
                Command::EndRun {
                    run: id,
                    driver,
                    end: RunEnd::Finished,
                }
            };
        }
        match self.below(90) {
            0 => return Command::CancelRun { run: id },
            1 => {
                return Command::EndRun {
                    run: id,
                    driver,
                    end: [RunEnd::Finished, RunEnd::Failed][self.below(2) as usize],
                };
            }
            _ => {}
        }
        let done = |need: &PhaseId| {
            let need = world.phases.get(&(id.clone(), need.to_string()));
            need.is_some_and(|need| need.standing.is_settled())
        };
        let sensible = |it: &&PhaseRun| {
            !it.standing.is_settled() && it.waiting.is_none() && it.phase.needs.iter().all(done)
        };
        let ripe: Vec<&PhaseRun> = phases.iter().copied().filter(sensible).collect();
        let from = if self.chance(80) && !ripe.is_empty() {
            &ripe
        } else {
            &phases
        };
        let Some(phase) = self.of(from).copied() else {
            return Command::CancelRun { run: id };
        };
        self.phase_step(world, now, id, driver, phase)
    }

    fn phase_step(
        &mut self,
        world: &World,
        now: Instant,
        run: RunId,
        driver: Fence,
        it: &PhaseRun,
    ) -> Command {
        let phase = it.phase.id.to_string();
        if self.chance(12) {
            let (kind, subject) = [
                (GateKind::Zone, "kernel"),
                (GateKind::Review, "look"),
                (GateKind::Plan, "plan"),
            ][self.below(3) as usize];
            return Command::AskPhase {
                run,
                driver,
                phase,
                kind,
                subject: subject.to_owned(),
                why: self.word(),
                known: Vec::new(),
                shown: if self.chance(50) {
                    String::new()
                } else {
                    "shown".to_owned()
                },
            };
        }
        let attempt = match it.last() {
            Some(last) if it.standing == Standing::Running || self.chance(10) => last,
            _ => {
                let mut claim = Box::new(self.open(world));
                claim.id = None;
                claim.ttl = Some(Span::from_ms(900_000));
                return Command::BeginAttempt {
                    run,
                    driver,
                    phase,
                    claim,
                };
            }
        };
        let old: Vec<AttemptId> = it.attempts.iter().map(|it| it.id.clone()).collect();
        let id = match self.of(&old) {
            Some(old) if self.chance(10) => old.clone(),
            _ => attempt.id.clone(),
        };
        let claim = world.claims.get(&attempt.claim);
        let open = claim.is_some_and(|claim| world.state(claim, now) == State::Open);
        match self.below(10) {
            0 => Command::EndAttempt {
                run,
                driver,
                phase,
                attempt: id,
                exit: [
                    Exit::Status(0),
                    Exit::TimedOut,
                    Exit::NotStarted("no shell".to_owned()),
                ][self.below(3) as usize]
                    .clone(),
            },
            1..8 if open => {
                let claim = attempt.claim.clone();
                let begun = world.claims.get(&claim).and_then(|it| it.closing.as_ref());
                match begun {
                    None => Command::BeginClose {
                        id: claim,
                        at_most: if self.chance(30) {
                            Outcome::Failed
                        } else {
                            self.outcome()
                        },
                        notes: None,
                        accept_failed: true,
                    },
                    Some(closing) if closing.evidence.is_none() => Command::RecordEvidence {
                        id: claim,
                        evidence: self.evidence(),
                    },
                    Some(_) => Command::FinishClose {
                        id: claim,
                        status: self.outcome(),
                        files_modified: Vec::new(),
                        notes: Vec::new(),
                        accept_failed: true,
                    },
                }
            }
            _ => Command::JudgeAttempt {
                run,
                driver,
                phase,
                attempt: id,
                refused: self.chance(7).then(|| self.word()),
                known: vec![("Path".to_owned(), self.word())],
                changed: vec![Changed {
                    path: self.path(),
                    added: self.chance(50),
                    deleted: false,
                }],
            },
        }
    }
}
