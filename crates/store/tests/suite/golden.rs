//! The stored shape of every event and command, frozen: what was written once is read for ever.
//!
//! A file holds one value as it is stored. It must still be read, and be written back byte for byte. With
//! `UPDATE=1` a new variant gets its file from a random script, and a changed shape is written anew: look at
//! that difference as at a change of protocol.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use protocol::command::Command;
use protocol::event::{Entry, Event};
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::Request;
use store::clock::Clock;
use store::conformance::{Model, Script, Step};

/// Every event, as it is stored.
pub const EVENTS: [&str; 40] = [
    "claim_opened",
    "claim_renewed",
    "base_noted",
    "right_given",
    "claim_reaped",
    "claim_failed",
    "claim_paused",
    "claim_resumed",
    "close_began",
    "evidence_taken",
    "close_committed",
    "close_landed",
    "claim_closed",
    "lock_taken",
    "lock_released",
    "work_failed",
    "work_cleared",
    "gate_opened",
    "gate_answered",
    "gate_took_effect",
    "gate_withdrawn",
    "halted",
    "thawed",
    "signal_sent",
    "signal_acked",
    "run_started",
    "phase_set",
    "run_taken",
    "run_adapted",
    "attempt_began",
    "attempt_ended",
    "attempt_judged",
    "phase_accepted",
    "phase_skipped",
    "phase_retried",
    "phase_failed",
    "phase_allowed",
    "launches_ended",
    "run_landed",
    "run_ended",
];

/// Every command, as it is stored.
pub const COMMANDS: [&str; 33] = [
    "open_claim",
    "renew_claim",
    "note_base",
    "reap_claims",
    "acquire_locks",
    "release_locks",
    "cleanup_locks",
    "fail_work",
    "reset_work",
    "open_gate",
    "answer_gate",
    "pause",
    "resume",
    "abort",
    "halt",
    "thaw",
    "send_signal",
    "ack_signals",
    "begin_close",
    "record_evidence",
    "record_commit",
    "record_landing",
    "finish_close",
    "start_run",
    "take_run",
    "begin_attempt",
    "end_attempt",
    "judge_attempt",
    "ask_phase",
    "adapt_run",
    "record_run_landing",
    "end_run",
    "cancel_run",
];

/// Does not compile when an event is new: give it a name above and a file.
fn event_name(event: &Event) -> &'static str {
    match event {
        Event::ClaimOpened(_) => "claim_opened",
        Event::ClaimRenewed { .. } => "claim_renewed",
        Event::BaseNoted { .. } => "base_noted",
        Event::RightGiven { .. } => "right_given",
        Event::ClaimReaped { .. } => "claim_reaped",
        Event::ClaimFailed { .. } => "claim_failed",
        Event::ClaimPaused { .. } => "claim_paused",
        Event::ClaimResumed { .. } => "claim_resumed",
        Event::CloseBegan { .. } => "close_began",
        Event::EvidenceTaken { .. } => "evidence_taken",
        Event::CloseCommitted { .. } => "close_committed",
        Event::CloseLanded { .. } => "close_landed",
        Event::ClaimClosed { .. } => "claim_closed",
        Event::LockTaken(_) => "lock_taken",
        Event::LockReleased { .. } => "lock_released",
        Event::WorkFailed { .. } => "work_failed",
        Event::WorkCleared { .. } => "work_cleared",
        Event::GateOpened(_) => "gate_opened",
        Event::GateAnswered { .. } => "gate_answered",
        Event::GateTookEffect { .. } => "gate_took_effect",
        Event::GateWithdrawn { .. } => "gate_withdrawn",
        Event::Halted { .. } => "halted",
        Event::Thawed => "thawed",
        Event::SignalSent(_) => "signal_sent",
        Event::SignalAcked { .. } => "signal_acked",
        Event::RunStarted(_) => "run_started",
        Event::PhaseSet(_) => "phase_set",
        Event::RunTaken { .. } => "run_taken",
        Event::RunAdapted { .. } => "run_adapted",
        Event::AttemptBegan { .. } => "attempt_began",
        Event::AttemptEnded { .. } => "attempt_ended",
        Event::AttemptJudged { .. } => "attempt_judged",
        Event::PhaseAccepted { .. } => "phase_accepted",
        Event::PhaseSkipped { .. } => "phase_skipped",
        Event::PhaseRetried { .. } => "phase_retried",
        Event::PhaseFailed { .. } => "phase_failed",
        Event::PhaseAllowed { .. } => "phase_allowed",
        Event::LaunchesEnded { .. } => "launches_ended",
        Event::RunLanded { .. } => "run_landed",
        Event::RunEnded { .. } => "run_ended",
    }
}

/// Does not compile when a command is new: give it a name above and a file.
fn command_name(command: &Command) -> &'static str {
    match command {
        Command::OpenClaim(_) => "open_claim",
        Command::RenewClaim { .. } => "renew_claim",
        Command::NoteBase { .. } => "note_base",
        Command::ReapClaims { .. } => "reap_claims",
        Command::AcquireLocks { .. } => "acquire_locks",
        Command::ReleaseLocks { .. } => "release_locks",
        Command::CleanupLocks => "cleanup_locks",
        Command::FailWork { .. } => "fail_work",
        Command::ResetWork { .. } => "reset_work",
        Command::OpenGate(_) => "open_gate",
        Command::AnswerGate { .. } => "answer_gate",
        Command::Pause { .. } => "pause",
        Command::Resume { .. } => "resume",
        Command::Abort { .. } => "abort",
        Command::Halt { .. } => "halt",
        Command::Thaw => "thaw",
        Command::SendSignal { .. } => "send_signal",
        Command::AckSignals { .. } => "ack_signals",
        Command::BeginClose { .. } => "begin_close",
        Command::RecordEvidence { .. } => "record_evidence",
        Command::RecordCommit { .. } => "record_commit",
        Command::RecordLanding { .. } => "record_landing",
        Command::FinishClose { .. } => "finish_close",
        Command::StartRun(_) => "start_run",
        Command::TakeRun { .. } => "take_run",
        Command::BeginAttempt { .. } => "begin_attempt",
        Command::EndAttempt { .. } => "end_attempt",
        Command::JudgeAttempt { .. } => "judge_attempt",
        Command::AskPhase { .. } => "ask_phase",
        Command::AdaptRun { .. } => "adapt_run",
        Command::RecordRunLanding { .. } => "record_run_landing",
        Command::EndRun { .. } => "end_run",
        Command::CancelRun { .. } => "cancel_run",
    }
}

fn file(kind: &str, name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    folder.join(kind).join(format!("{name}.json"))
}

fn pretty<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

/// The longest stored value of each variant that a few scripts meet: the one that says most of its shape.
fn samples() -> (BTreeMap<String, Entry>, BTreeMap<String, Command>) {
    let (mut events, mut commands) = (
        BTreeMap::<String, Entry>::new(),
        BTreeMap::<String, Command>::new(),
    );
    for seed in 0..24 {
        let clock = Clock::by_hand(1_796_047_200_000);
        let mut model = Model::new(clock.clone());
        let mut script = Script::new(seed);
        for _ in 0..500 {
            match script.next(&model.world, model.now()) {
                Step::Turn(ms) => clock.turn(ms),
                Step::Submit { caller, key, command } => {
                    let request = Request {
                        caller: &caller,
                        policy: script.policy(),
                        key: key.as_deref(),
                    };
                    model.submit(request, &command);
                    keep_longest(&mut commands, command_name(&command), command);
                }
                _ => {}
            }
        }
        for entry in model.journal {
            keep_longest(&mut events, event_name(&entry.event), entry);
        }
    }
    (events, commands)
}

fn keep_longest<T: Serialize>(kept: &mut BTreeMap<String, T>, name: &str, value: T) {
    let longer = |old: &T| pretty(&value).len() > pretty(old).len();
    if kept.get(name).is_none_or(longer) {
        kept.insert(name.to_owned(), value);
    }
}

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    kind: &str,
    names: &[&str],
    name_of: impl Fn(&T) -> &'static str,
    fresh: Option<BTreeMap<String, T>>,
) {
    for name in names {
        let file = file(kind, name);
        if let Some(fresh) = &fresh {
            let old = std::fs::read_to_string(&file).ok();
            let old = old.and_then(|text| serde_json::from_str::<T>(&text).ok());
            let Some(value) = old.as_ref().or_else(|| fresh.get(*name)) else {
                panic!("write {} by hand", file.display());
            };
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, pretty(value)).unwrap();
        }
        let stored =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let value: T =
            serde_json::from_str(&stored).unwrap_or_else(|error| panic!("{name} is no longer read: {error}"));
        assert_eq!(pretty(&value), stored, "{name} is no longer written as it was");
        assert_eq!(name_of(&value), *name);
        assert!(
            stored.contains(&format!("\"{name}\"")),
            "{name} is stored under another name"
        );
    }
}

#[test]
fn stored_events_and_commands_keep_their_shape() {
    let (events, commands) = match std::env::var_os("UPDATE") {
        Some(_) => {
            let (events, commands) = samples();
            (Some(events), Some(commands))
        }
        None => (None, None),
    };
    check("event", &EVENTS, |entry: &Entry| event_name(&entry.event), events);
    check("command", &COMMANDS, command_name, commands);
}
