//! One world in memory with a hand-turned clock, changed by the rules and by nothing else.

use std::sync::LazyLock;

use protocol::command::Command;
use protocol::event::{Entry, Event};
use protocol::facts::caller::{Caller, Nature, Process, Proof};
use protocol::facts::path::Fold;
use protocol::facts::policy::{FAILS_MAX, Policy};
use protocol::facts::span::Span;
use protocol::facts::time::Instant;
use protocol::facts::zone::{ZoneLists, Zones};
use protocol::refusal::Refusal;
use protocol::rules::preflight::{self, Answer, Preflight, Verdict};
use protocol::rules::{self, Asked, who};
use protocol::world::{Lease, Until, World, owns};

use crate::laws::{self, Broken};

/// The moment at which every stage begins: 30 November 2026, 14:00 in UTC.
pub const START: Instant = Instant {
    era: 1,
    tick: 1_000_000,
    wall: 1_796_047_200_000,
};

/// A policy with every default, in a brain whose root holds a `KERNEL.md`.
pub fn policy() -> Policy {
    static BUILT_IN: LazyLock<Policy> = LazyLock::new(built_in);
    BUILT_IN.clone()
}

fn built_in() -> Policy {
    Policy {
        zones: Zones::new(&ZoneLists::default(), true, &[], Fold::Exact)
            .expect("the built-in lists are legal"),
        kerneluser: true,
        fails_max: FAILS_MAX,
        exit_is_enough: Vec::new(),
        stale_grace: Span::from_ms(24 * 3_600_000),
        fold: Fold::Exact,
        digest: "built-in".to_owned(),
    }
}

/// The process of this name: two names never share one.
pub fn process(name: &str) -> Process {
    let number = name
        .bytes()
        .fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Process {
        host: "host".to_owned(),
        boot: name.to_owned(),
        pid_ns: 1,
        pid: number,
        start: 1,
    }
}

/// A session of an agent host, known by its host's session id and its process.
pub fn agent(name: &str) -> Caller {
    Caller {
        nature: Nature::Agent {
            by: "its host's mark".to_owned(),
        },
        host_session: Some(name.to_owned()),
        chain: vec![process(name)],
        owner: Some(process(name)),
        agent: Some("claude-code".to_owned()),
        ..Caller::plain("user", "host")
    }
}

/// A script: no mark, no proof.
pub fn plain() -> Caller {
    Caller {
        chain: vec![process("script")],
        owner: Some(process("script")),
        ..Caller::plain("user", "host")
    }
}

/// A person who typed the code at this terminal.
pub fn human() -> Caller {
    Caller {
        nature: Nature::Human(Proof::Typed {
            terminal: "/dev/pts/1".to_owned(),
        }),
        chain: vec![process("shell")],
        owner: Some(process("shell")),
        ..Caller::plain("user", "host")
    }
}

/// The rules with a world, a clock and a policy. Every step is held against the laws.
#[derive(Clone)]
pub struct Stage {
    /// What is true.
    pub world: World,
    /// The clock.
    pub now: Instant,
    /// The configuration's share.
    pub policy: Policy,
    /// All that happened.
    pub journal: Vec<Entry>,
}

impl Default for Stage {
    fn default() -> Stage {
        Stage {
            world: World::default(),
            now: START,
            policy: policy(),
            journal: Vec::new(),
        }
    }
}

impl Stage {
    /// What a rule looks at when this caller asks.
    pub fn asked<'a>(&'a self, caller: &'a Caller) -> Asked<'a> {
        Asked {
            world: &self.world,
            caller,
            policy: &self.policy,
            now: self.now,
        }
    }

    /// Gives a command and takes in what it did.
    ///
    /// # Errors
    ///
    /// The rules' refusal.
    ///
    /// # Panics
    ///
    /// When the step breaks a law.
    pub fn tell(&mut self, caller: &Caller, command: &Command) -> Result<Vec<Event>, Refusal> {
        match self.try_tell(caller, command) {
            Ok(answer) => answer,
            Err(broken) => panic!("{broken} by {command:?}"),
        }
    }

    /// As [`Stage::tell`], but hands a broken law back.
    ///
    /// # Errors
    ///
    /// The law that the step broke.
    pub fn try_tell(
        &mut self,
        caller: &Caller,
        command: &Command,
    ) -> Result<Result<Vec<Event>, Refusal>, Broken> {
        let events = match rules::decide(self.asked(caller), command) {
            Ok(events) => events,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if events.is_empty() {
            return Ok(Ok(events));
        }
        let before = self.world.clone();
        let actor = who::actor(self.asked(caller));
        let mut entries = Vec::new();
        for event in &events {
            let entry = Entry {
                seq: self.world.head + 1,
                at: self.now,
                actor: actor.clone(),
                key: None,
                event: event.clone(),
            };
            self.world.apply(&entry);
            entries.push(entry);
        }
        laws::step(&before, &self.world, &entries, caller, self.now)?;
        laws::hold(&self.world, &self.policy, self.now)?;
        self.journal.append(&mut entries);
        Ok(Ok(events))
    }

    /// Asks before a write as the command line does: renews where that must come first, and counts a go to
    /// the owner as a sign of life. Also tells whether it renewed.
    ///
    /// # Panics
    ///
    /// When a go breaks a law, or renewing does not help.
    pub fn check(&mut self, caller: &Caller, ask: &Preflight) -> (Vec<Verdict>, bool) {
        let (verdicts, renewed) = match preflight::judge(self.asked(caller), ask) {
            Answer::Judged(verdicts) => (verdicts, false),
            Answer::RenewFirst => {
                let id = ask.id.clone().expect("only a claim is renewed");
                self.tell(caller, &Command::RenewClaim { id })
                    .expect("it was said that it may be renewed");
                match preflight::judge(self.asked(caller), ask) {
                    Answer::Judged(verdicts) => (verdicts, true),
                    Answer::RenewFirst => panic!("renewing did not help"),
                }
            }
        };
        if let Err(broken) = laws::go(&self.world, &self.policy, self.now, ask, &verdicts) {
            panic!("{broken} by {ask:?}");
        }
        let id = ask.id.as_ref().filter(|_| ask.op != preflight::Op::Read);
        if let Some(claim) = id.and_then(|id| self.world.claims.get(id))
            && owns(caller, claim)
            && verdicts.iter().all(|verdict| verdict.refused.is_none())
        {
            let until = Until {
                fence: claim.fence,
                touched: self.now,
                until: self.now.plus(claim.ttl),
            };
            self.world.set_lease(Lease::Claim(claim.id.clone()), until);
        }
        (verdicts, renewed)
    }

    /// Lets time pass, in which nothing is heard of anyone.
    ///
    /// # Panics
    ///
    /// When time alone breaks a law.
    pub fn pass(&mut self, span: Span) {
        let before = self.now;
        self.now = self.now.plus(span);
        if let Err(broken) = laws::time(&self.world, before, self.now)
            .and_then(|()| laws::hold(&self.world, &self.policy, self.now))
        {
            panic!("{broken} by {span} passing");
        }
    }

    /// Starts the machine anew after a minute: the clock begins again in another era.
    pub fn boot(&mut self) {
        self.now = Instant {
            era: self.now.era + 1,
            tick: 1_000,
            wall: self.now.wall + 60_000,
        };
    }

    /// Folds the journal from the beginning, as a rebuild does.
    pub fn rebuilt(&self) -> World {
        let mut world = World::default();
        self.journal.iter().for_each(|entry| world.apply(entry));
        world
    }
}
