//! Stories: one line a step, told to the rules on a stage of their own.
//!
//! ```text
//! ana opens src 30m                 -> yes
//! ben writes src/api.rs             -> 4 claim.unknown
//! ana waits 31m
//! ana is stale
//! @human approves ana               -> gate.unknown
//! ```
//!
//! A line is `WHO VERB … -> ANSWER`, or a plain look at the world. `ana` is a session of an agent host whose
//! claim has that name; `@human`, `@plain` and `@agent` are callers without one. `ana!ben` carries the token of
//! `ben`, `@plain/ben` descends from the process of `ben`. The answer is `yes` or a refusal's code, before it
//! the exit code of a preflight, after it what else must be true: `renewed`, `kept`, `nothing` (no event).
//! What has blanks stands in double quotes; `#` begins a remark.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::vec::IntoIter;

use protocol::command::{Changed, Command, OpenClaim, OpenGate, StartRun};
use protocol::event::{Entry, Event};
use protocol::facts::caller::{Caller, Nature, TokenDigest};
use protocol::facts::claim::{
    Base, ClaimType, Evidence, EvidenceSource, Fence, Landing, Level, Outcome, Owner,
};
use protocol::facts::gate::{About, Choice, Gate, GateKind};
use protocol::facts::id::{AttemptId, GateId, RunId, SessId, SigId, slug_of};
use protocol::facts::kind::Kind;
use protocol::facts::lock::Holder;
use protocol::facts::path::{LogicalPath, PathError};
use protocol::facts::plan::{KernelExit, Phase, PhaseGate, PhaseId};
use protocol::facts::report::{Format, Report};
use protocol::facts::run::{Exit, RunEnd, Standing};
use protocol::facts::scope::Scope;
use protocol::facts::signal::Address;
use protocol::facts::signal_kind::SignalKind;
use protocol::facts::span::Span;
use protocol::facts::tests::Tests;
use protocol::facts::trigger::Trigger;
use protocol::facts::zone::{ZoneLists, Zones};
use protocol::refusal::Refusal;
use protocol::rules::preflight::{Op, PathAsk, Preflight, RepoAt, Unplaced};
use protocol::rules::run::{Step, next};
use protocol::rules::signal::succeeds;

use crate::stage::{Stage, agent, human, plain, process};

/// Tells a story and holds every line of it.
///
/// # Panics
///
/// At the first line that comes out otherwise, breaks a law, or cannot be read; and when the journal does
/// not rebuild the world.
pub fn check(story: &str) {
    tell(story);
}

/// As [`check`], and hands over the stage as it is at the end.
///
/// # Panics
///
/// As [`check`].
pub fn tell(story: &str) -> Stage {
    let mut teller = Teller::default();
    teller.all(story);
    teller.rebuilds();
    teller.stage
}

/// What a step came to, for tables.
pub struct Answer {
    /// `yes`, or the refusal's code.
    pub code: &'static str,
    /// The exit code of a preflight.
    pub exit: Option<u8>,
    /// What it wrote down.
    pub entries: Vec<Entry>,
    /// The stage after it.
    pub stage: Stage,
}

/// Tells a story, then takes one more step, written without its answer.
///
/// # Panics
///
/// As [`check`].
pub fn answer(story: &str, step: &str) -> Answer {
    let mut teller = Teller::default();
    teller.all(story);
    step.clone_into(&mut teller.at);
    let head = teller.stage.journal.len();
    let mut words = words(step);
    let (who, verb) = (teller.word(&mut words), teller.word(&mut words));
    let told = teller.step(&who, &verb, &mut words);
    Answer {
        code: told.code,
        exit: told.exit,
        entries: teller.stage.journal[head..].to_vec(),
        stage: teller.stage,
    }
}

#[derive(Default)]
struct Teller {
    stage: Stage,
    /// The claims by the name that the story gives them.
    names: BTreeMap<String, SessId>,
    /// The fence with which each caller drives each plan.
    drives: BTreeMap<(String, String), Fence>,
    /// Where the story is, for whoever reads a failure.
    at: String,
}

/// What came of a step.
struct Told {
    code: &'static str,
    exit: Option<u8>,
    marks: Vec<&'static str>,
    seen: String,
}

impl From<Result<Vec<Event>, Refusal>> for Told {
    fn from(answer: Result<Vec<Event>, Refusal>) -> Told {
        match answer {
            Ok(events) => Told {
                code: "yes",
                exit: None,
                marks: if events.is_empty() {
                    vec!["nothing"]
                } else {
                    vec!["something"]
                },
                seen: json(&events),
            },
            Err(refusal) => Told {
                code: refusal.code(),
                exit: None,
                marks: Vec::new(),
                seen: json(&refusal),
            },
        }
    }
}

type Words = Peekable<IntoIter<String>>;

/// Splits a line at blanks, outside double quotes.
fn words(line: &str) -> Words {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    assert!(!quoted, "a quote is not closed: {line}");
    words.extend(word);
    words.into_iter().peekable()
}

fn json(seen: &impl serde::Serialize) -> String {
    serde_json::to_string(seen).expect("facts have a stored form")
}

fn span(text: &str) -> Option<Span> {
    text.starts_with(|c: char| c.is_ascii_digit())
        .then(|| Span::parse(text).ok())
        .flatten()
}

impl Teller {
    fn all(&mut self, story: &str) {
        for (number, line) in story.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                self.at = format!("line {}: {line}", number + 1);
                self.line(line);
            }
        }
    }

    /// Holds that the journal says all that the world holds, leases apart.
    fn rebuilds(&self) {
        let (rebuilt, world) = (self.stage.rebuilt(), &self.stage.world);
        assert_eq!(rebuilt.claims, world.claims, "the journal rebuilds the claims");
        assert_eq!(rebuilt.locks, world.locks, "the journal rebuilds the locks");
        assert_eq!(rebuilt.gates, world.gates, "the journal rebuilds the gates");
        assert_eq!(rebuilt.signals, world.signals, "the journal rebuilds the signals");
        assert_eq!(rebuilt.works, world.works, "the journal rebuilds the work");
        assert_eq!(rebuilt.runs, world.runs, "the journal rebuilds the runs");
        assert_eq!(rebuilt.phases, world.phases, "the journal rebuilds the phases");
        assert_eq!(rebuilt.halt, world.halt, "the journal rebuilds the stop");
        assert_eq!(rebuilt.fence, world.fence, "the journal rebuilds the fence");
    }

    fn line(&mut self, line: &str) {
        let (step, expected) = match line.rsplit_once(" -> ") {
            Some((step, expected)) => (step, Some(expected)),
            None => (line, None),
        };
        let step = step.split(" # ").next().unwrap_or_default();
        let mut words = words(step);
        let who = self.word(&mut words);
        let Some(expected) = expected else {
            return self.look(&who, words);
        };
        let expected = expected.split(" # ").next().unwrap_or_default();
        let verb = self.word(&mut words);
        let told = self.step(&who, &verb, &mut words);
        let rest: Vec<String> = words.collect();
        assert!(rest.is_empty(), "{}: {rest:?} was not understood", self.at);
        for word in expected.split_whitespace() {
            let holds = match word.parse::<u8>() {
                Ok(exit) => told.exit == Some(exit),
                Err(_) => word == told.code || told.marks.contains(&word),
            };
            let Told {
                code,
                exit,
                marks,
                seen,
            } = &told;
            assert!(holds, "{}\nbut it was {exit:?} {code} {marks:?}: {seen}", self.at);
        }
        // A refusal must be told as one: `-> nothing` alone is a yes.
        assert!(
            told.code == "yes" || expected.contains(told.code),
            "{}\nbut it was {}: {}",
            self.at,
            told.code,
            told.seen
        );
    }

    fn word(&self, words: &mut Words) -> String {
        words
            .next()
            .unwrap_or_else(|| panic!("{}: a word is missing", self.at))
    }

    fn caller(&self, who: &str) -> Caller {
        let (who, token) = match who.split_once('!') {
            Some((who, token)) => (who, Some(TokenDigest(token.to_owned()))),
            None => (who, None),
        };
        let (who, below) = match who.split_once('/') {
            Some((who, below)) => (who, Some(process(below))),
            None => (who, None),
        };
        let mut caller = match who {
            "@human" => human(),
            "@plain" => plain(),
            "@agent" => Caller {
                host_session: None,
                ..agent("@agent")
            },
            name => agent(name),
        };
        caller.chain.extend(below);
        if token.is_some() {
            caller.token = token;
            caller.nature = Nature::Plain;
        }
        caller
    }

    fn id(&self, name: &str) -> SessId {
        let known = self.names.get(name).cloned().or_else(|| SessId::parse(name).ok());
        known.unwrap_or_else(|| {
            SessId::parse(&format!("sess-20261130-1400-{}", slug_of(name))).expect("an id")
        })
    }

    fn path(&self, text: &str) -> LogicalPath {
        LogicalPath::parse(text, self.stage.policy.fold).unwrap_or_else(|why| panic!("{}: {why:?}", self.at))
    }

    fn scope(&self, entries: &[String]) -> Scope {
        Scope::parse(entries, self.stage.policy.fold).unwrap_or_else(|why| panic!("{}: {why:?}", self.at))
    }

    fn tell(&mut self, caller: &Caller, command: &Command) -> Told {
        match self.stage.try_tell(caller, command) {
            Ok(answer) => answer.into(),
            Err(broken) => panic!("{}\n{broken}", self.at),
        }
    }

    // ---- lines that look ----

    fn look(&mut self, who: &str, mut words: Words) {
        let verb = self.word(&mut words);
        let (world, now) = (&self.stage.world, self.stage.now);
        match (who, verb.as_str()) {
            ("policy", what) => {
                let value = words.next().unwrap_or_default();
                let policy = &mut self.stage.policy;
                match what {
                    "kerneluser" => policy.kerneluser = value != "off",
                    "fails" => policy.fails_max = value.parse().expect("a number"),
                    "enough" => policy.exit_is_enough.push(value),
                    "project" => {
                        let lists = ZoneLists {
                            project: Some(vec![value]),
                            ..ZoneLists::default()
                        };
                        policy.zones = Zones::new(&lists, true, &[], policy.fold).expect("legal zones");
                    }
                    other => panic!("{}: no policy {other}", self.at),
                }
            }
            ("machine", "boots") => self.stage.boot(),
            (_, "waits") => {
                let time = span(&self.word(&mut words)).expect("a span");
                self.stage.pass(time);
            }
            (name, "is") => {
                let state = self.word(&mut words);
                let id = self.id(name);
                let claim = world
                    .claims
                    .get(&id)
                    .unwrap_or_else(|| panic!("{}: no such claim", self.at));
                assert_eq!(world.state(claim, now).as_str(), state, "{}", self.at);
                if let Some("by") = words.next().as_deref() {
                    let by = self.word(&mut words);
                    assert_eq!(claim.superseded_by(), Some(&self.id(&by)), "{}", self.at);
                }
            }
            (path, "held") => {
                let path = self.path(path);
                let lock = world.locks_on(&path, false, now).next();
                let holder = lock.map_or("nobody".to_owned(), |lock| match &lock.holder {
                    Holder::Claim(id) => self.name(id),
                    Holder::Name(name) => name.clone(),
                });
                assert_eq!(holder, self.word(&mut words), "{}", self.at);
            }
            ("locks", "stand") => {
                let count: usize = self.word(&mut words).parse().expect("a number");
                assert_eq!(world.locks.len(), count, "{}: {:?}", self.at, world.locks);
            }
            // The unacknowledged signals to a claim or to `human`, oldest first.
            (to, "has") => {
                let mail = self.mail(to).into_iter().map(|(_, kind, orphan)| {
                    let orphan = if orphan { "?" } else { "" };
                    format!("{kind}{orphan}")
                });
                let wanted = words.by_ref().filter(|word| word != "nothing");
                assert_eq!(
                    mail.collect::<Vec<_>>(),
                    wanted.collect::<Vec<_>>(),
                    "{}",
                    self.at
                );
            }
            (name, "counts") => {
                let work = &world.claims[&self.id(name)].work;
                let fails = world.works.get(work).map_or(0, |work| work.fails);
                assert_eq!(fails.to_string(), self.word(&mut words), "{}", self.at);
            }
            (name, "result") => {
                let result = world.claims[&self.id(name)].result.as_ref().expect("a result");
                assert_eq!(result.status.as_str(), self.word(&mut words), "{}", self.at);
                if let Some("files") = words.next().as_deref() {
                    assert_eq!(
                        result.files_modified,
                        words.by_ref().collect::<Vec<_>>(),
                        "{}",
                        self.at
                    );
                }
            }
            (name, "inherits") => {
                let claim = &world.claims[&self.id(name)];
                let inherits: Vec<String> = claim.inherits.iter().map(|id| self.name(id)).collect();
                assert_eq!(inherits, words.by_ref().collect::<Vec<_>>(), "{}", self.at);
            }
            (name, "left") => {
                let left = world.left(&world.claims[&self.id(name)], now).map(Span::from_ms);
                let left = left.map_or("nothing".to_owned(), |left| left.to_string());
                assert_eq!(left, self.word(&mut words), "{}", self.at);
            }
            (plan, "offers") => {
                let run = self.run(plan);
                let caller = plain();
                let steps: Vec<String> = next(self.stage.asked(&caller), &run)
                    .iter()
                    .map(|step| self.shown(step))
                    .collect();
                let wanted = words.by_ref().filter(|word| word != "nothing");
                assert_eq!(steps, wanted.collect::<Vec<_>>(), "{}", self.at);
            }
            (plan, "phase") => {
                let phase = self.word(&mut words);
                let it = &world.phases[&(self.run(plan), phase)];
                let standing = match &it.standing {
                    Standing::Accepted(outcome) => format!("accepted:{}", outcome.as_str()),
                    other => format!("{other:?}").to_lowercase(),
                };
                assert_eq!(standing, self.word(&mut words), "{}", self.at);
            }
            (plan, "ended") => {
                let end = world.runs[&self.run(plan)].end;
                let end = end.map_or("not".to_owned(), |end| format!("{end:?}").to_lowercase());
                assert_eq!(end, self.word(&mut words), "{}", self.at);
            }
            (_, other) => panic!("{}: nothing to see at {other}", self.at),
        }
        let rest: Vec<String> = words.collect();
        assert!(rest.is_empty(), "{}: {rest:?} was not understood", self.at);
    }

    fn name(&self, id: &SessId) -> String {
        let named = self.names.iter().find(|(_, other)| *other == id);
        named.map_or_else(|| id.slug().to_owned(), |(name, _)| name.clone())
    }

    fn mail(&self, to: &str) -> Vec<(SigId, SignalKind, bool)> {
        let address = match to {
            "human" => Address::Human,
            name => Address::Session(self.id(name)),
        };
        let signals = self.stage.world.signals.values();
        let pending = signals.filter(|it| it.to == address && it.acked_at.is_none());
        pending.map(|it| (it.id.clone(), it.kind, it.orphan)).collect()
    }

    fn run(&self, plan: &str) -> RunId {
        let runs = self.stage.world.runs.values().filter(|run| run.plan == plan);
        let last = runs.max_by(|a, b| a.id.cmp(&b.id));
        last.map_or_else(|| RunId::parse("run-none").expect("an id"), |run| run.id.clone())
    }

    fn shown(&self, step: &Step) -> String {
        match step {
            Step::Begin(phase) => format!("begin:{phase}"),
            Step::Attend(phase, _) => format!("attend:{phase}"),
            Step::Ask(it) => format!("ask:{}:{}", it.phase, it.kind),
            Step::Adapt => "adapt".to_owned(),
            Step::Finish => "finish".to_owned(),
            Step::End(end) => format!("end:{}", format!("{end:?}").to_lowercase()),
            Step::Sleep(at) => {
                let left = at.since(self.stage.now).expect("one boot");
                format!("sleep:{left}")
            }
        }
    }

    // ---- lines that do ----

    fn step(&mut self, who: &str, verb: &str, words: &mut Words) -> Told {
        let caller = self.caller(who);
        let own = who.split(['!', '/']).next().unwrap_or_default().to_owned();
        match verb {
            "opens" => self.opens(&caller, &own, words, false),
            "launches" => self.opens(&caller, &own, words, true),
            "writes" | "deletes" | "reads" => self.preflight(&caller, &own, verb, words),
            "locks" | "releases" => self.lock(&caller, &own, verb, words),
            "cleans" => self.tell(&caller, &Command::CleanupLocks),
            "asks" => self.asks(&caller, &own, words),
            "approves" | "rejects" | "answers" => self.answers(&caller, verb, words),
            "signals" => self.signals(&caller, words),
            "acks" => self.acks(&caller, words),
            "reaps" => {
                let gone = words
                    .map(|name| (self.id(&name), "its process is gone".to_owned()))
                    .collect();
                self.tell(&caller, &Command::ReapClaims { gone })
            }
            "stops" => self.tell(
                &caller,
                &Command::Halt {
                    why: "fire".to_owned(),
                },
            ),
            "thaws" => self.tell(&caller, &Command::Thaw),
            "begins" | "finishes" | "closes" | "tests" | "commits" | "lands" => {
                self.closing(&caller, &own, verb, words)
            }
            "starts" | "takes" | "delegates" | "ends" | "judges" | "asks-phase" | "adapts" | "merges"
            | "finishes-run" | "cancels" => self.running(&caller, &own, verb, words),
            verb => self.on_claim(&caller, &own, verb, words),
        }
    }

    /// Verbs on one claim: the caller's own, or the one named.
    fn on_claim(&mut self, caller: &Caller, own: &str, verb: &str, words: &mut Words) -> Told {
        let mut id = self.id(own);
        let mut why = "because".to_owned();
        while let Some(word) = words.next() {
            match word.as_str() {
                "because" => why = self.word(words),
                name => id = self.id(name),
            }
        }
        let command = match verb {
            "renews" => Command::RenewClaim { id },
            "notes" => Command::NoteBase {
                id,
                repo: "vendor".to_owned(),
                base: base(Some("main"), "/vendor"),
            },
            "fails" => Command::FailWork { id, why },
            "resets" => Command::ResetWork { id, why },
            "pauses" => Command::Pause { id, why },
            "resumes" => Command::Resume { id },
            "aborts" => Command::Abort { id, why },
            other => panic!("{}: no verb {other}", self.at),
        };
        self.tell(caller, &command)
    }

    fn opens(&mut self, caller: &Caller, own: &str, words: &mut Words, launch: bool) -> Told {
        let mut name = if launch { self.word(words) } else { own.to_owned() };
        let mut itself = false;
        let mut entries = Vec::new();
        let mut ask = blank(self.scope(&["src".to_owned()]));
        if launch {
            ask.kind_of = ClaimType::Satellite;
            ask.parent = Some(self.id(own));
        }
        while let Some(word) = words.next() {
            match word.as_str() {
                "as" => ask.kind_of = ClaimType::parse(&self.word(words)).expect("a type"),
                "kind" => ask.satellite_type = Kind::parse(&self.word(words)).expect("a kind"),
                "under" => ask.parent = Some(self.id(&self.word(words))),
                "named" => name = self.word(words),
                "itself" => itself = true,
                "domain" => ask.satellite_level = Level::Domain,
                "exclusive" => ask.exclusive = true,
                "rendering" => ask.rendering = true,
                "branch" => ask.branch = Some(self.word(words)),
                "theme" => ask.theme_branch = Some(self.word(words)),
                "worktree" => ask.worktree = Some(self.word(words)),
                "detached" => drop(ask.base.insert(String::new(), base(None, "/root"))),
                "tests" => {
                    ask.tests = Some(Tests {
                        run: self.word(words),
                        report: None,
                        format: None,
                    });
                }
                "task" => ask.story_angle = self.word(words),
                "id" => ask.id = Some(SessId::parse(&self.word(words)).expect("an id")),
                "done" | "partial" | "fail" => {
                    let text = self.word(words);
                    let trigger = Trigger::parse(&text).unwrap_or_else(|why| panic!("{}: {why:?}", self.at));
                    match word.as_str() {
                        "done" => ask.on_done.push(trigger),
                        "partial" => ask.on_partial.push(trigger),
                        _ => ask.on_fail.push(trigger),
                    }
                }
                text => match span(text) {
                    Some(ttl) => ask.ttl = Some(ttl),
                    None => entries.push(text.to_owned()),
                },
            }
        }
        ask.scope = self.scope(&entries);
        ask.slug.clone_from(&name);
        ask.token = TokenDigest(name.clone());
        let owner = if itself || own.starts_with('@') && name == own {
            caller.clone()
        } else if own.starts_with('@') && ask.kind_of != ClaimType::Satellite {
            // A person or a script opens for itself, whatever the story calls it.
            caller.clone()
        } else {
            agent(&name)
        };
        ask.owner = owner_of(&owner);
        let told = self.stage.try_tell(caller, &Command::OpenClaim(ask));
        let told = told.unwrap_or_else(|broken| panic!("{}\n{broken}", self.at));
        self.remember(&name, &told);
        told.into()
    }

    fn remember(&mut self, name: &str, told: &Result<Vec<Event>, Refusal>) {
        let opened = told.iter().flatten().find_map(|event| match event {
            Event::ClaimOpened(claim) => Some(claim.id.clone()),
            _ => None,
        });
        if let Some(id) = opened {
            self.names.insert(name.to_owned(), id);
        }
    }

    fn preflight(&mut self, caller: &Caller, own: &str, verb: &str, words: &mut Words) -> Told {
        let op = match verb {
            "writes" => Op::Write,
            "deletes" => Op::Delete,
            _ => Op::Read,
        };
        let mut id = (!own.starts_with('@')).then(|| self.id(own));
        let mut given = Vec::new();
        let mut repo: Option<RepoAt> = None;
        let (mut links, mut folder, mut looping) = (None, false, false);
        let root = || RepoAt {
            repo: String::new(),
            checkout: "/root".to_owned(),
            branch: Some("main".to_owned()),
            submodule: false,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "as" => id = Some(self.id(&self.word(words))),
                "branch" => {
                    let branch = self.word(words);
                    repo.get_or_insert_with(root).branch = (branch != "-").then_some(branch);
                }
                "checkout" => repo.get_or_insert_with(root).checkout = self.word(words),
                "repo" => repo.get_or_insert_with(root).repo = self.word(words),
                "submodule" => repo.get_or_insert_with(root).submodule = true,
                "linked" => links = Some(2),
                "folder" => folder = true,
                "looping" => looping = true,
                path => given.push(path.to_owned()),
            }
        }
        let fold = self.stage.policy.fold;
        let place = |text: &String| match LogicalPath::parse(text, fold) {
            _ if looping => Err(Unplaced::Links),
            Ok(path) if path.reserved().is_some() => Err(Unplaced::Reserved),
            Ok(path) => Ok(path),
            Err(PathError::Reserved(_)) => Err(Unplaced::Reserved),
            Err(_) => Err(Unplaced::Outside(text.clone())),
        };
        let paths = given.iter().map(|text| PathAsk {
            given: text.clone(),
            path: place(text),
            links,
            folder,
            repo: repo.clone(),
        });
        let ask = Preflight {
            id,
            op,
            paths: paths.collect(),
        };
        let (verdicts, renewed) = self.stage.check(caller, &ask);
        let first = verdicts.iter().find_map(|verdict| verdict.refused.as_ref());
        let seen = json(&verdicts.iter().map(|it| &it.refused).collect::<Vec<_>>());
        let (code, exit) = match first {
            Some((check, detail)) => (detail.code(), check.exit()),
            None => ("yes", 0),
        };
        let mut marks = vec![if renewed { "renewed" } else { "kept" }];
        if verdicts.iter().any(|verdict| verdict.refused.is_none()) && first.is_some() {
            marks.push("partly");
        }
        Told {
            code,
            exit: Some(exit),
            marks,
            seen,
        }
    }

    fn lock(&mut self, caller: &Caller, own: &str, verb: &str, words: &mut Words) -> Told {
        let mut holder = Holder::Claim(self.id(own));
        let mut ttl = Span::from_ms(3_600_000);
        let (mut paths, mut force) = (Vec::new(), None);
        while let Some(word) = words.next() {
            match word.as_str() {
                "as" => {
                    let name = self.word(words);
                    holder = match self.names.get(&name) {
                        Some(id) => Holder::Claim(id.clone()),
                        None => Holder::Name(name),
                    };
                }
                "force" => force = Some("it hangs".to_owned()),
                text => match span(text) {
                    Some(time) => ttl = time,
                    None => paths.push(self.path(text)),
                },
            }
        }
        let command = match verb {
            "locks" => Command::AcquireLocks { holder, paths, ttl },
            _ => Command::ReleaseLocks { holder, paths, force },
        };
        self.tell(caller, &command)
    }

    fn asks(&mut self, caller: &Caller, own: &str, words: &mut Words) -> Told {
        let mut ask = OpenGate {
            about: About::Claim(self.id(own)),
            kind: GateKind::Ask,
            subject: String::new(),
            why: "may I?".to_owned(),
            known: Vec::new(),
            shown: "shown".to_owned(),
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "for" => ask.about = About::Claim(self.id(&self.word(words))),
                "of-plan" => ask.about = About::Run(self.run(&self.word(words))),
                "about" => ask.subject = self.word(words),
                "why" => ask.why = self.word(words),
                "shown" => ask.shown = self.word(words),
                // As the close does: bound to the evidence that was taken.
                "evidence" => {
                    let About::Claim(id) = &ask.about else {
                        panic!("{}", self.at)
                    };
                    let closing = self.stage.world.claims[id].closing.as_ref();
                    let evidence = closing.and_then(|closing| closing.evidence.as_ref());
                    ask.shown = evidence.map(Evidence::shown).unwrap_or_default();
                    ask.subject = "tests".to_owned();
                    ask.kind = GateKind::Close;
                }
                kind => {
                    ask.kind = GateKind::parse(kind).unwrap_or_else(|| panic!("{}: no kind {kind}", self.at));
                }
            }
        }
        self.tell(caller, &Command::OpenGate(ask))
    }

    /// The last gate about a claim, or about a phase written `PLAN:PHASE`.
    fn gate(&self, of: &str) -> Option<&Gate> {
        let about = match of.split_once(':') {
            Some((plan, phase)) => About::Phase(self.run(plan), phase.to_owned()),
            None => About::Claim(self.id(of)),
        };
        let gates = self.stage.world.gates.values().filter(|gate| gate.about == about);
        gates.max_by(|a, b| a.id.cmp(&b.id))
    }

    fn answers(&mut self, caller: &Caller, verb: &str, words: &mut Words) -> Told {
        let of = self.word(words);
        let gate = self.gate(&of);
        let id = gate.map_or_else(
            || GateId::parse("gate-none").expect("an id"),
            |gate| gate.id.clone(),
        );
        let mut shown = gate.map(|gate| gate.shown.clone()).unwrap_or_default();
        let mut choice = match verb {
            "approves" => Choice::Continue,
            _ => Choice::Abort,
        };
        let mut said = String::new();
        while let Some(word) = words.next() {
            match word.as_str() {
                "saying" => said = self.word(words),
                "seeing" => shown = self.word(words),
                text => {
                    choice = Choice::parse(text).unwrap_or_else(|| panic!("{}: no answer {text}", self.at))
                }
            }
        }
        let command = Command::AnswerGate {
            id,
            choice,
            words: said,
            shown,
            mac: "mac".to_owned(),
        };
        self.tell(caller, &command)
    }

    fn signals(&mut self, caller: &Caller, words: &mut Words) -> Told {
        let kind = SignalKind::parse(&self.word(words)).expect("a signal's type");
        let to = self.word(words);
        let to = self.names.get(&to).map_or(to, SessId::to_string);
        let (mut from, mut summary) = (None, "a word".to_owned());
        while let Some(word) = words.next() {
            match word.as_str() {
                "from" => from = Some(self.id(&self.word(words))),
                text => text.clone_into(&mut summary),
            }
        }
        let command = Command::SendSignal {
            to,
            kind,
            from,
            summary,
        };
        self.tell(caller, &command)
    }

    /// `acks NAME`: all that waits there; `acks NAME as HEIR` says that HEIR succeeded it.
    fn acks(&mut self, caller: &Caller, words: &mut Words) -> Told {
        let to = self.word(words);
        let mut ids: Vec<SigId> = match to.as_str() {
            "none" => vec![SigId::parse("sig-none").expect("an id")],
            "sent" => self.stage.world.signals.keys().cloned().collect(),
            to => self.mail(to).into_iter().map(|(id, ..)| id).collect(),
        };
        if let Some("as") = words.next().as_deref() {
            let heir = &self.stage.world.claims[&self.id(&self.word(words))];
            let ended = &self.stage.world.claims[&self.id(&to)];
            if !succeeds(heir, ended) {
                ids.clear();
            }
        }
        self.tell(caller, &Command::AckSignals { ids })
    }

    fn closing(&mut self, caller: &Caller, own: &str, verb: &str, words: &mut Words) -> Told {
        let mut id = self.id(own);
        let (mut status, mut accept_failed, mut notes) = (Outcome::Ok, false, None);
        let mut files = Vec::new();
        let mut evidence = Evidence {
            command: "npm test".to_owned(),
            repo: String::new(),
            tree: "tree".to_owned(),
            exit: Some(0),
            report: None,
            source: EvidenceSource::Run,
            took_ms: 1,
            foreign: 0,
            artifacts: Vec::new(),
        };
        let mut taken = verb == "tests";
        let (mut counts, mut skipped) = (None, 0);
        while let Some(word) = words.next() {
            match word.as_str() {
                "ok" | "partial" | "failed" => status = Outcome::parse(&word).expect("an outcome"),
                "accepting" => accept_failed = true,
                "noting" => notes = Some(self.word(words)),
                "files" => files.extend(words.by_ref()),
                "exit" => {
                    let exit = self.word(words);
                    evidence.exit = exit.parse().ok();
                }
                "skipped" => skipped = self.word(words).parse().expect("a number"),
                "command" => evidence.command = self.word(words),
                "tree" => evidence.tree = self.word(words),
                "handed" => evidence.source = EvidenceSource::File,
                "uncounted" => taken = true,
                text => match text.split_once('/') {
                    Some((passed, total)) if total.parse::<u64>().is_ok() => {
                        counts = passed.parse::<u64>().ok().zip(total.parse::<u64>().ok());
                        taken = true;
                    }
                    _ => id = self.id(text),
                },
            }
        }
        evidence.report = counts.map(|(passed, total)| {
            let mut report = Report::empty(Format::Junit);
            report.pass(passed);
            report.skip(skipped);
            report.fail(total - passed - skipped);
            report
        });
        let begin = Command::BeginClose {
            id: id.clone(),
            at_most: status,
            notes: notes.clone(),
            accept_failed,
        };
        let record = Command::RecordEvidence {
            id: id.clone(),
            evidence,
        };
        let finish = Command::FinishClose {
            id: id.clone(),
            status,
            files_modified: files,
            notes: Vec::new(),
            accept_failed,
        };
        let landing = Landing {
            target: "refs/heads/main".to_owned(),
            old: "old".to_owned(),
            new: "new".to_owned(),
            done: true,
        };
        let repo = String::new();
        let steps = match verb {
            "begins" => vec![begin],
            "tests" => vec![record],
            "finishes" => vec![finish],
            "commits" => vec![Command::RecordCommit {
                id,
                repo,
                commit: "commit".to_owned(),
            }],
            "lands" => vec![Command::RecordLanding { id, repo, landing }],
            _ if taken => vec![begin, record, finish],
            _ => vec![begin, finish],
        };
        let mut last = None;
        for step in &steps {
            let told = self.tell(caller, step);
            if told.code != "yes" {
                return told;
            }
            last = Some(told);
        }
        last.expect("a close has steps")
    }

    // ---- runs ----

    fn running(&mut self, caller: &Caller, own: &str, verb: &str, words: &mut Words) -> Told {
        let plan = self.word(words);
        let run = self.run(&plan);
        let driver = self
            .drives
            .get(&(own.to_owned(), plan.clone()))
            .copied()
            .unwrap_or_default();
        match verb {
            "starts" => return self.starts(caller, own, &plan, words),
            "takes" => {
                let driver_gone = words.next().as_deref() == Some("gone");
                let told = self
                    .stage
                    .tell(caller, &Command::TakeRun { id: run, driver_gone });
                self.drives_now(own, &plan, &told);
                return told.into();
            }
            "adapts" => {
                let phases = self.phases(words);
                let digest = "adapted".to_owned();
                return self.tell(caller, &Command::AdaptRun { run, digest, phases });
            }
            "merges" => {
                let landing = Landing {
                    target: "refs/heads/main".to_owned(),
                    old: "old".to_owned(),
                    new: "new".to_owned(),
                    done: false,
                };
                let landings = BTreeMap::from([(String::new(), landing)]);
                return self.tell(
                    caller,
                    &Command::RecordRunLanding {
                        run,
                        driver,
                        landings,
                    },
                );
            }
            "finishes-run" => {
                let end = match self.word(words).as_str() {
                    "finished" => RunEnd::Finished,
                    "failed" => RunEnd::Failed,
                    _ => RunEnd::Aborted,
                };
                return self.tell(caller, &Command::EndRun { run, driver, end });
            }
            "cancels" => return self.tell(caller, &Command::CancelRun { run }),
            _ => {}
        }
        let phase = self.word(words);
        let it = self.stage.world.phases.get(&(run.clone(), phase.clone()));
        let attempt = it.and_then(|it| it.last()).map(|attempt| attempt.id.clone());
        let attempt = attempt.unwrap_or_else(|| AttemptId::parse("att-none").expect("an id"));
        let nth = it.map_or(0, |it| it.attempts.len()) + 1;
        match verb {
            "delegates" => {
                let name = match nth {
                    1 => format!("{plan}-{phase}"),
                    nth => format!("{plan}-{phase}-{nth}"),
                };
                let mut claim = blank(self.scope(&["src".to_owned()]));
                claim.slug.clone_from(&name);
                claim.token = TokenDigest(name.clone());
                claim.owner = owner_of(&agent(&name));
                let claim = Box::new(claim);
                let told = self.stage.tell(
                    caller,
                    &Command::BeginAttempt {
                        run,
                        driver,
                        phase,
                        claim,
                    },
                );
                self.remember(&name, &told);
                told.into()
            }
            "ends" => {
                let exit = match self.word(words).as_str() {
                    "vanished" => Exit::Vanished,
                    "late" => Exit::TimedOut,
                    status => Exit::Status(status.parse().expect("a status")),
                };
                self.tell(
                    caller,
                    &Command::EndAttempt {
                        run,
                        driver,
                        phase,
                        attempt,
                        exit,
                    },
                )
            }
            "judges" => {
                let (mut refused, mut changed) = (None, Vec::new());
                while let Some(word) = words.next() {
                    match word.as_str() {
                        "refused" => refused = Some(self.word(words)),
                        path => changed.push(Changed {
                            path: self.path(path.trim_start_matches(['+', '-'])),
                            added: path.starts_with('+'),
                            deleted: path.starts_with('-'),
                        }),
                    }
                }
                let command = Command::JudgeAttempt {
                    run,
                    driver,
                    phase,
                    attempt,
                    refused,
                    known: Vec::new(),
                    changed,
                };
                self.tell(caller, &command)
            }
            _ => {
                let asked = plain();
                let step = next(self.stage.asked(&asked), &run)
                    .into_iter()
                    .find_map(|step| match step {
                        Step::Ask(question) if question.phase == phase => Some(question),
                        _ => None,
                    });
                let typed = words.next().and_then(|word| GateKind::parse(&word));
                let why = "look at this".to_owned();
                let (kind, subject, why, known) = match (typed, step) {
                    (Some(kind), _) => (kind, "typed".to_owned(), why, Vec::new()),
                    (None, Some(it)) => (it.kind, it.subject, it.why, it.known),
                    (None, None) => panic!("{}: the loop has nothing to ask", self.at),
                };
                let shown = words.next().unwrap_or_default();
                let command = Command::AskPhase {
                    run,
                    driver,
                    phase,
                    kind,
                    subject,
                    why,
                    known,
                    shown,
                };
                self.tell(caller, &command)
            }
        }
    }

    fn drives_now(&mut self, own: &str, plan: &str, told: &Result<Vec<Event>, Refusal>) {
        let driver = told.iter().flatten().find_map(|event| match event {
            Event::RunStarted(run) => Some(run.driver),
            Event::RunTaken { driver, .. } => Some(*driver),
            _ => None,
        });
        if let Some(driver) = driver {
            self.drives.insert((own.to_owned(), plan.to_owned()), driver);
        }
    }

    /// `starts PLAN "ID key:value …" … [under X] [jobs N] [yes-to KIND] [risk PATTERN] [kernel-gate] [keep ID]`
    fn starts(&mut self, caller: &Caller, own: &str, plan: &str, words: &mut Words) -> Told {
        let mut pilot = blank(self.scope(&[".".to_owned()]));
        pilot.kind_of = ClaimType::Pilot;
        plan.clone_into(&mut pilot.slug);
        pilot.token = TokenDigest(plan.to_owned());
        pilot.owner = owner_of(caller);
        let mut ask = StartRun {
            plan: plan.to_owned(),
            source: "/root/plan.yml".to_owned(),
            digest: "plan".to_owned(),
            parent: None,
            pilot,
            theme: format!("theme/{plan}"),
            main: BTreeMap::from([(String::new(), "main".to_owned())]),
            jobs: 1,
            merge: true,
            kernel_exit: KernelExit::Told,
            chain: false,
            yes_to: Vec::new(),
            risk: Vec::new(),
            phases: Vec::new(),
            keep: Vec::new(),
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "under" => ask.parent = Some(self.id(&self.word(words))),
                "jobs" => ask.jobs = self.word(words).parse().expect("a number"),
                "yes-to" => ask
                    .yes_to
                    .push(GateKind::parse(&self.word(words)).expect("a kind")),
                "risk" => ask.risk.push(self.word(words)),
                "kernel-gate" => ask.kernel_exit = KernelExit::Gate,
                "keep" => {
                    let id = self.word(words);
                    let digest = ask.phases.iter().find(|(phase, _)| phase.id.as_str() == id);
                    let digest = digest.map_or_else(|| "another".to_owned(), |(_, digest)| digest.clone());
                    ask.keep.push((id, digest));
                }
                spec => ask.phases.push(self.phase(spec)),
            }
        }
        let told = self.stage.tell(caller, &Command::StartRun(Box::new(ask)));
        self.remember(plan, &told);
        self.drives_now(own, plan, &told);
        told.into()
    }

    fn phases(&self, words: &mut Words) -> Vec<(Phase, String)> {
        words.map(|spec| self.phase(&spec)).collect()
    }

    /// `ID [scope:S] [needs:A,B] [kind:K] [gate:human] [retries:N] [partial:TEXT] [after] [title:T]`
    fn phase(&self, spec: &str) -> (Phase, String) {
        let mut parts = spec.split_whitespace();
        let id = PhaseId::parse(parts.next().unwrap_or_default()).expect("a phase's id");
        let mut phase = Phase::new(id, vec!["src/".to_owned()]);
        for part in parts {
            let (key, value) = part.split_once(':').unwrap_or((part, ""));
            match key {
                "scope" => phase.scope = value.split(',').map(str::to_owned).collect(),
                "needs" => phase.needs = value.split(',').filter_map(PhaseId::parse).collect(),
                "kind" => phase.kind = Kind::parse(value).expect("a kind"),
                "gate" if value == "human" => phase.gate = PhaseGate::Human,
                "gate" => phase.gate = PhaseGate::ZeroFailures,
                "retries" => phase.retries = value.parse().expect("a number"),
                "partial" => phase
                    .on_partial
                    .push(Trigger::parse(&value.replace('_', " ")).expect("a trigger")),
                "done" => phase
                    .on_done
                    .push(Trigger::parse(&value.replace('_', " ")).expect("a trigger")),
                "fail" => phase
                    .on_fail
                    .push(Trigger::parse(&value.replace('_', " ")).expect("a trigger")),
                "after" => phase.gate_after = true,
                "title" => value.clone_into(&mut phase.title),
                other => panic!("{}: a phase has no {other}", self.at),
            }
        }
        let digest = phase.canonical();
        (phase, digest)
    }
}

fn base(branch: Option<&str>, checkout: &str) -> Base {
    Base {
        commit: Some("commit".to_owned()),
        branch: branch.map(str::to_owned),
        checkout: checkout.to_owned(),
        ..Base::default()
    }
}

fn owner_of(caller: &Caller) -> Owner {
    Owner {
        user: caller.user.clone(),
        host: caller.host.clone(),
        process: caller.owner.clone(),
        host_session: caller.host_session.clone(),
    }
}

/// A solo claim of kind `brain-write` on the branch `main` of the root's repository.
pub fn blank(scope: Scope) -> OpenClaim {
    OpenClaim {
        satellite_type: Kind::BrainWrite,
        base: BTreeMap::from([(String::new(), base(Some("main"), "/root"))]),
        ..OpenClaim::new(
            "work",
            "a task",
            scope,
            "claude-code",
            owner_of(&plain()),
            TokenDigest("none".to_owned()),
        )
    }
}
