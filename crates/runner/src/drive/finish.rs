//! The end of a run: all merges are tried first, then all branches move or none (`hypervisor.md`, 1 and 6).

use std::collections::BTreeMap;

use git::{Door, Message, Signature};
use protocol::command::Command;
use protocol::facts::claim::{Landing, Outcome};
use protocol::facts::run::{Run, RunEnd, Standing};
use protocol::facts::signal_kind::SignalKind;
use protocol::rules::run::phase_of;
use protocol::world::{Pick, World};

use super::begin::{Place, place_of};
use super::{Driver, Hand, News, Trouble, mortal};

impl Driver<'_> {
    /// Merges the theme, closes the pilot, ends the run. Each step finds what the one before left.
    pub(super) fn finish(&self, hand: &mut Hand<'_>, world: &World) -> Result<(), Trouble> {
        let Some(run) = world.runs.get(&self.run) else {
            return Ok(());
        };
        if run.merge {
            self.blocked(hand, run)?;
            self.merge(hand, world, run)?;
        }
        self.sweep(world, run);
        let pilot_lives = world
            .claims
            .get(&run.pilot)
            .is_some_and(|pilot| !pilot.is_terminal());
        if run.owns_pilot && pilot_lives {
            self.close_pilot(hand, world, run)?;
        }
        hand.submit(&Command::EndRun {
            run: self.run.clone(),
            driver: self.fence,
            end: RunEnd::Finished,
        })?;
        Ok(())
    }

    /// Takes away what a killed driver had no time to: worktrees and tokens of work that is landed.
    fn sweep(&self, world: &World, run: &Run) {
        let attempts = run
            .phases
            .iter()
            .filter_map(|phase| phase_of(world, &run.id, phase));
        for it in attempts {
            for claim in it
                .attempts
                .iter()
                .filter_map(|attempt| world.claims.get(&attempt.claim))
            {
                if self.ground.worktree_dir(&claim.id).exists()
                    && let Ok(place) = place_of(self.ground, &it.phase)
                {
                    self.tidy(&place, claim);
                }
            }
        }
    }

    /// A theme is not merged while a `BLOCKED_ON` of its run is unanswered; what was settled since is.
    fn blocked(&self, hand: &mut Hand<'_>, run: &Run) -> Result<(), Trouble> {
        let (world, _) = hand.look(&vec![Pick::Blockers, Pick::Phases(run.id.clone())])?;
        let mut answered = Vec::new();
        for signal in world
            .signals
            .values()
            .filter(|signal| signal.kind == SignalKind::BlockedOn)
        {
            let protocol::facts::signal::Sender::Session(from) = &signal.from else {
                continue;
            };
            let phase = world
                .phases
                .values()
                .find(|it| it.run == run.id && it.attempts.iter().any(|attempt| attempt.claim == *from));
            // A later attempt was accepted, or a human let the phase go on: brain writes the ack.
            if phase.is_some_and(|it| it.standing.is_settled()) {
                answered.push(signal.id.clone());
            }
        }
        if !answered.is_empty() {
            hand.submit(&Command::AckSignals { ids: answered })?;
        }
        Ok(())
    }

    fn merge(&self, hand: &mut Hand<'_>, world: &World, run: &Run) -> Result<(), Trouble> {
        let places = self.places(world, run)?;
        if run.landings.values().all(|landing| landing.done) && !run.landings.is_empty() {
            return Ok(());
        }
        let mut planned: BTreeMap<String, (git::Landing, &Place)> = BTreeMap::new();
        for (key, main) in &run.main {
            let Some(place) = places.get(key) else { continue };
            let Some(theme) = place.door.branch(&run.theme)? else {
                continue;
            };
            if let Some(landing) = run.landings.get(key)
                && place
                    .door
                    .branch(main)?
                    .is_some_and(|at| at.as_str() == landing.new)
            {
                // The branch moved before a crash; its checkout may not have.
                let (old, new) = (git::Oid::parse(&landing.old), git::Oid::parse(&landing.new));
                if let (Some(old), Some(new)) = (old, new) {
                    place.door.sync_checkout(main, &old, &new)?;
                }
                continue;
            }
            let message = Message {
                text: format!("merge {}: {}", run.theme, run.plan),
                trailers: vec![("Brain-Run".to_owned(), run.id.to_string())],
            };
            let seconds = u64::try_from(run.started_at.wall / 1000).unwrap_or_default();
            let signature = Signature {
                identity: None,
                seconds,
            };
            let landing = place.door.plan_merge(&theme, main, &message, &signature);
            let landing = landing.map_err(|error| match error.kind() {
                git::Kind::Conflict { files } => Trouble::MergeConflict {
                    repo: key.clone(),
                    files: files.iter().map(|file| file.display().to_string()).collect(),
                },
                _ => Trouble::Git(error),
            })?;
            planned.insert(key.clone(), (landing, place));
        }
        let mut written = run.landings.clone();
        for (key, (landing, _)) in &planned {
            written.insert(key.clone(), as_fact(landing, false));
        }
        let record = |landings: &BTreeMap<String, Landing>| Command::RecordRunLanding {
            run: run.id.clone(),
            driver: self.fence,
            landings: landings.clone(),
        };
        hand.submit(&record(&written))?;
        let moves: Vec<(&Door, &git::Landing)> = planned
            .values()
            .map(|(landing, place)| (&place.door, landing))
            .collect();
        mortal::step();
        let moved = Door::land_all(&moves);
        mortal::step();
        moved.map_err(|error| match error.kind() {
            git::Kind::WouldOverwrite { paths, at } => Trouble::WouldOverwrite {
                repo: at.display().to_string(),
                paths: paths.iter().map(|path| path.display().to_string()).collect(),
            },
            _ => Trouble::Git(error),
        })?;
        for landing in written.values_mut() {
            landing.done = true;
        }
        hand.submit(&record(&written))?;
        for (key, (landing, _)) in &planned {
            self.face.hear(News::Merged {
                repo: key.clone(),
                into: landing.branch.clone(),
                commit: landing.new.to_string(),
            });
        }
        Ok(())
    }

    fn places(&self, world: &World, run: &Run) -> Result<BTreeMap<String, Place>, Trouble> {
        let mut places = BTreeMap::new();
        for phase in run
            .phases
            .iter()
            .filter_map(|phase| phase_of(world, &run.id, phase))
        {
            let place = place_of(self.ground, &phase.phase)?;
            places.entry(place.key.clone()).or_insert(place);
        }
        Ok(places)
    }

    fn close_pilot(&self, hand: &mut Hand<'_>, world: &World, run: &Run) -> Result<(), Trouble> {
        let phases = run
            .phases
            .iter()
            .filter_map(|phase| phase_of(world, &run.id, phase));
        let partial = phases
            .clone()
            .any(|it| it.standing == Standing::Accepted(Outcome::Partial));
        let skipped: Vec<String> = phases
            .filter(|it| it.standing == Standing::Skipped)
            .map(|it| it.phase.id.to_string())
            .collect();
        let notes = match skipped.as_slice() {
            [] => Vec::new(),
            skipped => vec![format!("skipped: {}", skipped.join(", "))],
        };
        let status = if partial || !skipped.is_empty() {
            Outcome::Partial
        } else {
            Outcome::Ok
        };
        let id = run.pilot.clone();
        hand.submit(&Command::BeginClose {
            id: id.clone(),
            at_most: Outcome::Ok,
            notes: None,
            accept_failed: true,
        })?;
        hand.submit(&Command::FinishClose {
            id,
            status,
            files_modified: Vec::new(),
            notes,
            accept_failed: true,
        })?;
        Ok(())
    }
}

pub(crate) fn as_fact(landing: &git::Landing, done: bool) -> Landing {
    Landing {
        target: format!("refs/heads/{}", landing.branch),
        old: landing.old.to_string(),
        new: landing.new.to_string(),
        done,
    }
}
