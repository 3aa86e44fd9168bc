//! Which facts each command looks at, so that a store loads those and no more.

use crate::command::Command;
use crate::facts::caller::Caller;
use crate::facts::gate::About;
use crate::facts::id::SessId;
use crate::facts::lock::Holder;
use crate::facts::path::LogicalPath;
use crate::facts::scope::Scope;
use crate::rules::preflight::{Op, Preflight};
use crate::world::{Footprint, Pick, green_key};

/// The picks of a command. A property test holds that deciding on them equals deciding on everything.
pub fn of(command: &Command, caller: &Caller) -> Footprint {
    let mut picks = vec![Pick::Caller(caller.clone())];
    match command {
        Command::OpenClaim(ask) => opening(
            &mut picks,
            ask.id.as_ref(),
            &ask.slug,
            &ask.scope,
            ask.parent.as_ref(),
        ),
        Command::RenewClaim { id } | Command::NoteBase { id, .. } => picks.push(Pick::Claim(id.clone())),
        Command::ReapClaims { .. } => {
            picks.extend([Pick::Live, Pick::AllLocks, Pick::PendingGates, Pick::LiveRuns])
        }
        Command::AcquireLocks { holder, paths, .. } => {
            holder_claim(&mut picks, holder);
            picks.push(Pick::Locks(paths.clone()));
            for path in paths {
                covering(&mut picks, path);
            }
        }
        Command::ReleaseLocks { holder, paths, .. } => {
            holder_claim(&mut picks, holder);
            picks.push(Pick::Locks(paths.clone()));
        }
        Command::CleanupLocks => picks.push(Pick::AllLocks),
        Command::FailWork { id, .. } | Command::ResetWork { id, .. } => {
            picks.push(Pick::Claim(id.clone()));
        }
        Command::OpenGate(ask) => match &ask.about {
            About::Claim(id) => picks.push(Pick::Claim(id.clone())),
            About::Phase(run, _) | About::Run(run) => picks.push(Pick::Run(run.clone())),
        },
        Command::AnswerGate { id, .. } => picks.extend([
            Pick::Gate(id.clone()),
            Pick::LiveRuns,
            Pick::PendingGates,
            Pick::Blockers,
        ]),
        Command::Pause { id, .. } => picks.push(Pick::Claim(id.clone())),
        Command::Resume { id } => picks.extend([
            Pick::Tree(id.clone()),
            Pick::DeferredGates,
            Pick::LiveRuns,
            Pick::PendingGates,
        ]),
        Command::Abort { id, .. } => {
            picks.extend([Pick::Tree(id.clone()), Pick::LiveRuns, Pick::PendingGates])
        }
        Command::Halt { .. } => {}
        Command::Thaw => picks.extend([Pick::DeferredGates, Pick::LiveRuns, Pick::PendingGates]),
        Command::SendSignal { to, from, .. } => {
            picks.extend(from.iter().cloned().map(Pick::Claim));
            match SessId::parse(to) {
                Ok(id) => picks.push(Pick::Claim(id)),
                Err(_) if to == "all" => picks.push(Pick::Live),
                Err(_) => {}
            }
        }
        Command::AckSignals { ids } => picks.push(Pick::Signals(ids.clone())),
        Command::BeginClose { id, .. } | Command::FinishClose { id, .. } => {
            picks.extend([Pick::Tree(id.clone()), Pick::GatesOf(id.clone()), Pick::LiveRuns]);
        }
        Command::RecordEvidence { id, evidence } => picks.extend([
            Pick::Claim(id.clone()),
            Pick::GatesOf(id.clone()),
            Pick::Green(green_key(&evidence.repo, &evidence.command)),
        ]),
        Command::RecordCommit { id, .. } | Command::RecordLanding { id, .. } => {
            picks.extend([Pick::Claim(id.clone()), Pick::GatesOf(id.clone())]);
        }
        Command::StartRun(ask) => {
            picks.push(Pick::RunsOf(ask.plan.clone()));
            let pilot = &ask.pilot;
            match &ask.parent {
                Some(id) => picks.push(Pick::Claim(id.clone())),
                None => opening(
                    &mut picks,
                    pilot.id.as_ref(),
                    &pilot.slug,
                    &pilot.scope,
                    pilot.parent.as_ref(),
                ),
            }
        }
        Command::TakeRun { id, .. } => picks.push(Pick::Run(id.clone())),
        Command::BeginAttempt {
            run, claim, phase, ..
        } => {
            let phases = Pick::Phase(run.clone(), vec![phase.clone()]);
            picks.extend([Pick::Run(run.clone()), phases, Pick::Busy(run.clone())]);
            opening(&mut picks, claim.id.as_ref(), &claim.slug, &claim.scope, None);
        }
        Command::EndAttempt { run, phase, .. } | Command::AskPhase { run, phase, .. } => {
            picks.extend([
                Pick::Run(run.clone()),
                Pick::Phase(run.clone(), vec![phase.clone()]),
            ]);
        }
        Command::JudgeAttempt { run, phase, .. } => {
            picks.extend([
                Pick::Run(run.clone()),
                Pick::Phase(run.clone(), vec![phase.clone()]),
                Pick::PendingGates,
                Pick::Blockers,
            ]);
        }
        Command::AdaptRun { run, .. }
        | Command::RecordRunLanding { run, .. }
        | Command::EndRun { run, .. }
        | Command::CancelRun { run } => {
            picks.extend([
                Pick::Run(run.clone()),
                Pick::Phases(run.clone()),
                Pick::GatesOfRun(run.clone()),
            ]);
            if let Command::CancelRun { .. } | Command::EndRun { .. } = command {
                picks.push(Pick::Crew(run.clone()));
            }
            picks.extend([Pick::PendingGates, Pick::LiveRuns, Pick::Blockers]);
        }
    }
    picks
}

fn opening(picks: &mut Footprint, id: Option<&SessId>, slug: &str, scope: &Scope, parent: Option<&SessId>) {
    picks.push(match id {
        Some(id) => Pick::Claim(id.clone()),
        None => Pick::Ids(crate::facts::id::slug_of(slug)),
    });
    picks.extend(parent.cloned().map(Pick::Claim));
    picks.push(Pick::Rivals {
        scope: scope.clone(),
        trees: true,
    });
    picks.push(Pick::Work(scope.clone()));
    // What is superseded may be the pilot of a run.
    picks.extend([Pick::LiveRuns, Pick::PendingGates]);
}

fn holder_claim(picks: &mut Footprint, holder: &Holder) {
    if let Holder::Claim(id) = holder {
        picks.push(Pick::Claim(id.clone()));
    }
}

fn covering(picks: &mut Footprint, path: &LogicalPath) {
    // A path with a name that no scope entry can hold meets every claim that might cover it: the whole root.
    let scope = Scope::from_path(path).or_else(|_| Scope::from_path(&LogicalPath::root()));
    picks.extend(scope.ok().map(|scope| Pick::Rivals { scope, trees: false }));
}

/// The picks of a preflight.
pub fn of_preflight(ask: &Preflight, caller: &Caller) -> Footprint {
    let mut picks: Footprint = ask.id.iter().cloned().map(Pick::Claim).collect();
    // Whose process the caller descends from decides whether it may renew, and what it may read.
    picks.push(Pick::Caller(caller.clone()));
    if ask.op == Op::Read {
        return picks;
    }
    let paths: Vec<LogicalPath> = ask
        .paths
        .iter()
        .filter_map(|path| path.path.clone().ok())
        .collect();
    for path in &paths {
        covering(&mut picks, path);
    }
    picks.push(Pick::Locks(paths));
    picks
}
