//! What a store must answer: every command decided on the whole world.

use protocol::command::Command;
use protocol::event::{Entry, Event};
use protocol::facts::claim::Fence;
use protocol::facts::span::Span;
use protocol::facts::time::Instant;
use protocol::rules::{self, Asked, who};
use protocol::world::{Lease, World};

use crate::clock::Clock;
use crate::load;
use crate::{Outcome, Request};

/// A store of the plainest kind: one world, one journal, no footprints.
pub struct Model {
    /// Everything that is true.
    pub world: World,
    /// Everything that happened.
    pub journal: Vec<Entry>,
    clock: Clock,
    boots: Vec<String>,
}

impl Model {
    /// An empty one on this clock.
    pub fn new(clock: Clock) -> Model {
        Model {
            world: World::default(),
            journal: Vec::new(),
            clock,
            boots: Vec::new(),
        }
    }

    /// The clock; a boot is counted when a command meets it.
    pub fn now(&self) -> Instant {
        let reading = self.clock.read();
        let known = self.boots.iter().position(|boot| *boot == reading.boot);
        Instant {
            era: known.unwrap_or(self.boots.len()) as u32 + 1,
            tick: reading.tick,
            wall: reading.wall,
        }
    }

    fn knows_boot(&self) -> bool {
        self.boots.contains(&self.clock.read().boot)
    }

    /// Answers as [`crate::submit`] must.
    pub fn submit(&mut self, request: Request<'_>, command: &Command) -> Outcome {
        let now = self.now();
        if !self.knows_boot() {
            self.boots.push(self.clock.read().boot);
        }
        let key = request.key.map(|key| format!("{}/{key}", request.caller.user));
        if let Some(key) = &key {
            let under = |entry: &&Entry| entry.key.as_ref() == Some(key);
            let before: Vec<Entry> = self.journal.iter().filter(under).cloned().collect();
            if !before.is_empty() {
                return Outcome::Repeated(before);
            }
        }
        let asked = Asked {
            world: &self.world,
            caller: request.caller,
            policy: request.policy,
            now,
        };
        let events: Vec<Event> = match rules::decide(asked, command) {
            Ok(events) => events,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        let actor = who::actor(asked);
        let mut entries = Vec::new();
        for event in events {
            let entry = Entry {
                seq: self.world.head + 1,
                at: now,
                actor: actor.clone(),
                key: key.clone(),
                event,
            };
            self.world.apply(&entry);
            entries.push(entry);
        }
        self.world.changed.clear();
        self.journal.extend(entries.iter().cloned());
        Outcome::Committed(entries)
    }

    /// Answers as [`crate::Store::touch`] must.
    pub fn touch(&mut self, leases: &[(Lease, Fence)], by: Span) -> Vec<bool> {
        let now = self.now();
        let known = self.knows_boot();
        let mut answers = Vec::new();
        for (lease, fence) in leases {
            let held = self.world.leases.get(lease).copied();
            let pushed = if known {
                load::pushed(held, *fence, now, by)
            } else {
                None
            };
            answers.push(pushed.is_some());
            self.world
                .leases
                .extend(pushed.map(|pushed| (lease.clone(), pushed)));
        }
        answers
    }
}
