//! Small worlds: every short sequence, and long random walks, of a few commands by a few sessions over nested
//! scopes. No law of the protocol's last section breaks, and every state worth meeting is met.

use std::collections::BTreeMap;

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use protocol::command::{Command, OpenClaim, OpenGate};
use protocol::event::Event;
use protocol::facts::caller::{Caller, TokenDigest};
use protocol::facts::claim::{ClaimType, Evidence, EvidenceSource, FailedBy, Level, Outcome, Owner, State};
use protocol::facts::gate::{About, Choice, GateKind};
use protocol::facts::id::{GateId, SessId};
use protocol::facts::kind::Kind;
use protocol::facts::lock::Holder;
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::report::{Format, Report};
use protocol::facts::scope::Scope;
use protocol::facts::span::Span;
use protocol::refusal::Refusal;
use protocol::rules::preflight::{Op, PathAsk, Preflight};
use testkit::stage::{Stage, agent, human, plain};
use testkit::story::blank;

/// The sessions: a pilot, two that work below it or alone, and one of the family's third generation.
const NAMES: [&str; 4] = ["ana", "ben", "cleo", "dan"];
const SCOPES: [&str; 4] = ["src/", "src/api/", "src/api/x", "docs/"];
const PATHS: [&str; 4] = ["src/api", "src/api/x", "src/y", "docs/z"];
const TTL: Span = Span::from_ms(60_000);

fn id(name: usize) -> SessId {
    SessId::parse(&format!("sess-20261130-1400-{}", NAMES[name])).expect("an id")
}

/// One thing that may happen, small enough to be listed.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// Opens: who, which scope, as what, below whom.
    Open(usize, usize, Role, Option<usize>),
    Renew(usize),
    Write(usize, usize, Op),
    Lock(usize, usize),
    Release(usize, usize),
    NamedLock(usize),
    Fail(usize),
    Reset(usize),
    Ask(usize),
    /// Answers the gate of the second, as the first.
    Answer(Who, usize, Choice),
    Pause(Who, usize),
    Resume(Who, usize),
    Abort(Who, usize),
    Stop,
    Thaw(Who),
    Reap(usize),
    Begin(usize),
    Test(usize, bool),
    Finish(usize),
    /// Seconds that pass.
    Wait(u64),
    Boot,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    Solo,
    Code,
    Pilot,
    Exclusive,
    Domain,
    Search,
}

#[derive(Clone, Copy, Debug)]
enum Who {
    Session(usize),
    Human,
    Plain,
}

impl Who {
    fn caller(self) -> Caller {
        match self {
            Who::Session(name) => agent(NAMES[name]),
            Who::Human => human(),
            Who::Plain => plain(),
        }
    }
}

/// A world under way, with what it met.
#[derive(Clone)]
struct Small {
    stage: Stage,
    scopes: Vec<Scope>,
    paths: Vec<LogicalPath>,
    callers: Vec<Caller>,
}

/// How often each state that is worth meeting was met.
#[derive(Default)]
struct Met(BTreeMap<&'static str, u64>);

impl Met {
    fn see(&mut self, what: &'static str, seen: bool) {
        *self.0.entry(what).or_default() += u64::from(seen);
    }

    fn all_seen(&self) {
        let missed: Vec<_> = self.0.iter().filter(|(_, times)| **times == 0).collect();
        assert!(missed.is_empty(), "never met: {missed:?}");
    }
}

impl Small {
    fn new() -> Small {
        let scope = |text: &&str| Scope::parse([*text], Fold::Exact).expect("a scope");
        let path = |text: &&str| LogicalPath::parse(text, Fold::Exact).expect("a path");
        Small {
            stage: Stage::default(),
            scopes: SCOPES.iter().map(scope).collect(),
            paths: PATHS.iter().map(path).collect(),
            callers: NAMES.iter().map(|name| agent(name)).collect(),
        }
    }

    fn opening(&self, name: usize, scope: usize, role: Role, parent: Option<usize>) -> OpenClaim {
        let caller = &self.callers[name];
        let mut ask = blank(self.scopes[scope].clone());
        ask.id = Some(id(name));
        ask.token = TokenDigest(NAMES[name].to_owned());
        ask.ttl = Some(TTL);
        ask.parent = parent.map(id);
        ask.owner = Owner {
            user: caller.user.clone(),
            host: caller.host.clone(),
            process: caller.owner.clone(),
            host_session: caller.host_session.clone(),
        };
        if parent.is_some() {
            ask.kind_of = ClaimType::Satellite;
        }
        match role {
            Role::Solo => {}
            Role::Code => ask.satellite_type = Kind::Code,
            Role::Pilot => ask.kind_of = ClaimType::Pilot,
            Role::Exclusive => (ask.kind_of, ask.exclusive) = (ClaimType::Pilot, true),
            Role::Domain => ask.satellite_level = Level::Domain,
            Role::Search => ask.satellite_type = Kind::Search,
        }
        ask
    }

    /// The last gate of a claim.
    fn gate(&self, name: usize) -> Option<&protocol::facts::gate::Gate> {
        let about = About::Claim(id(name));
        self.stage
            .world
            .gates
            .values()
            .filter(|gate| gate.about == about)
            .max_by(|a, b| a.id.cmp(&b.id))
    }

    /// Makes one move; every law is held by the stage.
    fn make(&mut self, step: Move, met: &mut Met) {
        let command = match step {
            Move::Wait(seconds) => return self.stage.pass(Span::from_ms(seconds * 1_000)),
            Move::Boot => return self.stage.boot(),
            Move::Write(name, path, op) => return self.write(name, path, op, met),
            Move::Open(name, scope, role, parent) => {
                let ask = self.opening(name, scope, role, parent);
                // A child is opened by its parent.
                let by = self.callers[parent.unwrap_or(name)].clone();
                return self.tell(&by, &Command::OpenClaim(ask), met);
            }
            Move::Renew(name) => Command::RenewClaim { id: id(name) },
            Move::Lock(name, path) => Command::AcquireLocks {
                holder: Holder::Claim(id(name)),
                paths: vec![self.paths[path].clone()],
                ttl: Span::from_ms(40_000),
            },
            Move::Release(name, path) => Command::ReleaseLocks {
                holder: Holder::Claim(id(name)),
                paths: vec![self.paths[path].clone()],
                force: None,
            },
            Move::NamedLock(path) => Command::AcquireLocks {
                holder: Holder::Name("ci".to_owned()),
                paths: vec![self.paths[path].clone()],
                ttl: Span::from_ms(40_000),
            },
            Move::Fail(name) => Command::FailWork {
                id: id(name),
                why: "red".to_owned(),
            },
            Move::Reset(name) => Command::ResetWork {
                id: id(name),
                why: "mended".to_owned(),
            },
            Move::Ask(name) => Command::OpenGate(OpenGate {
                about: About::Claim(id(name)),
                kind: GateKind::Ask,
                subject: String::new(),
                why: "may I?".to_owned(),
                known: Vec::new(),
                shown: String::new(),
            }),
            Move::Answer(_, name, choice) => Command::AnswerGate {
                id: self
                    .gate(name)
                    .map_or_else(|| GateId::mint(0), |gate| gate.id.clone()),
                choice,
                words: String::new(),
                shown: String::new(),
                mac: String::new(),
            },
            Move::Pause(_, name) => Command::Pause {
                id: id(name),
                why: "look".to_owned(),
            },
            Move::Resume(_, name) => Command::Resume { id: id(name) },
            Move::Abort(_, name) => Command::Abort {
                id: id(name),
                why: "enough".to_owned(),
            },
            Move::Stop => Command::Halt {
                why: "fire".to_owned(),
            },
            Move::Thaw(_) => Command::Thaw,
            Move::Reap(name) => Command::ReapClaims {
                gone: vec![(id(name), "gone".to_owned())],
            },
            Move::Begin(name) => Command::BeginClose {
                id: id(name),
                at_most: Outcome::Ok,
                notes: None,
                accept_failed: true,
            },
            Move::Test(name, green) => Command::RecordEvidence {
                id: id(name),
                evidence: evidence(green),
            },
            Move::Finish(name) => Command::FinishClose {
                id: id(name),
                status: Outcome::Ok,
                files_modified: Vec::new(),
                notes: Vec::new(),
                accept_failed: true,
            },
        };
        let caller = match step {
            Move::Answer(who, ..)
            | Move::Pause(who, _)
            | Move::Resume(who, _)
            | Move::Abort(who, _)
            | Move::Thaw(who) => who.caller(),
            Move::Reset(_) => human(),
            Move::NamedLock(_) => plain(),
            Move::Renew(name)
            | Move::Lock(name, _)
            | Move::Release(name, _)
            | Move::Fail(name)
            | Move::Ask(name)
            | Move::Begin(name)
            | Move::Test(name, _)
            | Move::Finish(name) => self.callers[name].clone(),
            _ => self.callers[0].clone(),
        };
        self.tell(&caller, &command, met);
    }

    fn write(&mut self, name: usize, path: usize, op: Op, met: &mut Met) {
        let ask = Preflight {
            id: Some(id(name)),
            op,
            paths: vec![PathAsk {
                given: PATHS[path].to_owned(),
                path: Ok(self.paths[path].clone()),
                links: None,
                folder: false,
                repo: None,
            }],
        };
        let caller = self.callers[name].clone();
        let (verdicts, renewed) = self.stage.check(&caller, &ask);
        let code = verdicts[0].refused.as_ref().map(|(_, detail)| detail.code());
        met.see("a go", code.is_none());
        met.see("a go after renewing", code.is_none() && renewed);
        for what in [
            "claim.superseded",
            "claim.not_open",
            "claim.ancestor_not_open",
            "claim.held_by_other",
            "claim.search_reads",
            "lock.held",
            "breaker.open",
            "brain.stopped",
        ] {
            met.see(what, code == Some(what));
        }
    }

    fn tell(&mut self, caller: &Caller, command: &Command, met: &mut Met) {
        let stale_lock = |it: &Small| {
            let dead = |lock: &&protocol::facts::lock::Lock| !it.stage.world.holds(lock, it.stage.now);
            it.stage.world.locks.values().filter(dead).count()
        };
        let dead = stale_lock(self);
        let head = self.stage.world.head;
        let answer = self.stage.tell(caller, command);
        match &answer {
            Err(Refusal::ScopeOverlaps {
                stale_with_children, ..
            }) => {
                met.see("refused over a live claim", !stale_with_children);
                met.see(
                    "refused over a stale claim with a live child",
                    *stale_with_children,
                );
            }
            Err(refusal) => {
                met.see("refused over a lock", matches!(refusal, Refusal::LockHeld { .. }));
                met.see("no human", matches!(refusal, Refusal::NotHuman { .. }));
                met.see("its own pause", matches!(refusal, Refusal::OwnPause { .. }));
                met.see(
                    "live children at a close",
                    matches!(refusal, Refusal::ChildrenLive { .. }),
                );
                met.see(
                    "no evidence",
                    matches!(refusal, Refusal::NoEvidence { .. } | Refusal::TestsRed { .. }),
                );
            }
            Ok(events) => {
                for event in events {
                    self.note(event, met);
                }
                let took = events.iter().any(|event| matches!(event, Event::LockTaken(_)));
                met.see("an expired lock taken over", took && dead > stale_lock(self));
                let (fails, opened) = (
                    events
                        .iter()
                        .filter(|event| matches!(event, Event::ClaimFailed { .. }))
                        .count(),
                    events.iter().any(|event| matches!(event, Event::ClaimOpened(_))),
                );
                met.see("three ended by one abort", fails >= 3);
                met.see("a family superseded", opened && fails >= 2);
            }
        }
        for claim in self
            .stage
            .world
            .claims
            .values()
            .filter(|_| self.stage.world.head > head)
        {
            let (world, now) = (&self.stage.world, self.stage.now);
            let state = world.state(claim, now);
            met.see(
                "paused and waiting",
                state == State::Paused && claim.waiting.is_some(),
            );
            met.see(
                "paused from above",
                state == State::Paused && claim.pauses.is_empty() && world.halt.standing.is_none(),
            );
            met.see("two pauses on one claim", claim.pauses.len() > 1);
            met.see("stopped", world.halt.standing.is_some());
            let below = world.descendants(&claim.id);
            met.see(
                "a grandchild",
                below.iter().any(|it| world.ancestors(it).count() == 2),
            );
            let alive = below.iter().any(|it| world.state(it, now).is_live());
            met.see("stale with a live child", state == State::Stale && alive);
            met.see(
                "stale and paused",
                state == State::Stale && !claim.pauses.is_empty(),
            );
            let tripped = world.works.get(&claim.work).is_some_and(|work| work.tripped);
            met.see("a tripped breaker", tripped);
            met.see(
                "a tripped breaker inherited",
                tripped && !claim.work.0.ends_with(claim.id.as_str()),
            );
        }
        let deferred = self.stage.world.gates.values().any(|gate| gate.deferred);
        met.see("a deferred answer", deferred);
    }

    fn note(&self, event: &Event, met: &mut Met) {
        met.see(
            "superseded",
            matches!(
                event,
                Event::ClaimFailed {
                    by: FailedBy::Superseded(_),
                    ..
                }
            ),
        );
        met.see(
            "rejected",
            matches!(
                event,
                Event::ClaimFailed {
                    by: FailedBy::Reject,
                    ..
                }
            ),
        );
        met.see(
            "reaped after the grace",
            matches!(
                event,
                Event::ClaimFailed {
                    by: FailedBy::Reaped,
                    ..
                }
            ),
        );
        met.see("reaped", matches!(event, Event::ClaimReaped { .. }));
        met.see(
            "a deferred answer took effect",
            matches!(event, Event::GateTookEffect { .. }),
        );
        met.see("a gate withdrawn", matches!(event, Event::GateWithdrawn { .. }));
        met.see(
            "renewed from stale",
            matches!(event, Event::ClaimRenewed { fence: Some(_), .. }),
        );
        let closed = match event {
            Event::ClaimClosed { id, result } => Some((&self.stage.world.claims[id], result)),
            _ => None,
        };
        let evident = |(_, result): &(_, &protocol::facts::claim::ClaimResult)| result.tests.is_some();
        met.see("closed with evidence", closed.filter(evident).is_some());
        met.see(
            "closed over children",
            closed.is_some_and(|(_, result)| !result.children.is_empty()),
        );
    }
}

fn evidence(green: bool) -> Evidence {
    let mut report = Report::empty(Format::Tap);
    report.pass(3);
    report.fail(u64::from(!green));
    Evidence {
        command: "npm test".to_owned(),
        repo: String::new(),
        tree: "tree".to_owned(),
        exit: Some(i32::from(!green)),
        report: Some(report),
        source: EvidenceSource::Run,
        took_ms: 1,
        foreign: 0,
        artifacts: Vec::new(),
    }
}

/// Draws one of a walk's moves.
fn draw(rng: &mut TestRng) -> Move {
    let mut below = |n: usize| (rng.next_u32() as usize) % n;
    let (name, scope, path) = (below(4), below(4), below(4));
    let who = match below(6) {
        0..3 => Who::Session(below(4)),
        3..5 => Who::Human,
        _ => Who::Plain,
    };
    let role = [
        Role::Solo,
        Role::Code,
        Role::Pilot,
        Role::Exclusive,
        Role::Domain,
        Role::Search,
    ][below(6)];
    let op = if below(4) == 0 { Op::Delete } else { Op::Write };
    let choice = [Choice::Continue, Choice::Continue, Choice::Skip, Choice::Abort][below(4)];
    match below(100) {
        // The family: a pilot over a domain over a leaf.
        0..8 => Move::Open(0, 0, Role::Pilot, None),
        8..14 => Move::Open(1, below(2), Role::Domain, Some(0)),
        14..19 => Move::Open(2, 1 + below(2), Role::Code, Some(1)),
        19..25 => Move::Open(3, scope, role, None),
        25..30 => Move::Open(name, scope, role, None),
        30..33 => Move::Renew(name),
        33..46 => Move::Write(name, path, op),
        46..54 => Move::Lock(name, path),
        54..56 => Move::Release(name, path),
        56..58 => Move::NamedLock(path),
        58..62 => Move::Fail(name),
        62 => Move::Reset(name),
        63..67 => Move::Ask(name),
        67..72 => Move::Answer(who, name, choice),
        72..76 => Move::Pause(who, name),
        76..81 => Move::Resume(who, name),
        81 => Move::Abort(who, name),
        82 if below(3) == 0 => Move::Stop,
        82..85 => Move::Thaw(who),
        85 => Move::Reap(name),
        86..88 => Move::Begin(name),
        88..90 => Move::Test(name, below(3) > 0),
        90..92 => Move::Finish(name),
        92..99 => Move::Wait([1, 10, 30, 61][below(4)]),
        _ if below(4) == 0 => Move::Boot,
        _ => Move::Wait(90_000),
    }
}

#[test]
fn a_hundred_thousand_steps_of_random_walks_break_no_law() {
    let mut met = Met::default();
    let mut steps = 0_u32;
    for seed in 0..2_000_u32 {
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&seed.to_le_bytes());
        let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut small = Small::new();
        for _ in 0..55 {
            small.make(draw(&mut rng), &mut met);
            steps += 1;
        }
        if seed % 20 == 0 {
            let rebuilt = small.stage.rebuilt();
            assert_eq!(rebuilt.claims, small.stage.world.claims);
            assert_eq!(rebuilt.locks, small.stage.world.locks);
            assert_eq!(rebuilt.gates, small.stage.world.gates);
            assert_eq!(rebuilt.works, small.stage.world.works);
        }
    }
    assert!(steps >= 100_000);
    met.all_seen();
}

/// The moves of the exhaustive search: two sessions, one of them below the other or beside it.
const FEW: [Move; 18] = [
    Move::Open(0, 0, Role::Pilot, None),
    Move::Open(0, 0, Role::Solo, None),
    Move::Open(1, 1, Role::Solo, Some(0)),
    Move::Open(1, 1, Role::Solo, None),
    Move::Lock(0, 0),
    Move::Lock(1, 1),
    Move::Write(0, 1, Op::Write),
    Move::Write(1, 1, Op::Write),
    Move::Ask(0),
    Move::Answer(Who::Human, 0, Choice::Continue),
    Move::Answer(Who::Session(1), 0, Choice::Continue),
    Move::Pause(Who::Human, 0),
    Move::Resume(Who::Human, 0),
    Move::Resume(Who::Session(1), 0),
    Move::Abort(Who::Human, 0),
    Move::Finish(0),
    Move::Begin(0),
    Move::Wait(61),
];

#[test]
fn every_sequence_of_five_moves_breaks_no_law() {
    let mut met = Met::default();
    let mut count = 0_u32;
    let mut open = vec![(Small::new(), 0)];
    while let Some((small, depth)) = open.pop() {
        for step in FEW {
            let mut next = small.clone();
            next.make(step, &mut met);
            count += 1;
            // What changed nothing leads nowhere new.
            let same = next.stage.world == small.stage.world && next.stage.now == small.stage.now;
            if depth + 1 < 5 && !same {
                open.push((next, depth + 1));
            }
        }
    }
    assert!(count > 10_000, "{count}");
}
