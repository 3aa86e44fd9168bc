//! The shim's watch over its child: clocks, limits, and the end of everything below it.

use std::io::{self, BufRead as _, BufReader};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use protocol::facts::run::Exit;
use protocol::facts::span::Span;
use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};

use super::Limits;
use super::process::{Row, as_pid, below, boot_ms, signal, signal_group};

/// What a shim is told by its threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The child was stopped, by us or by anyone.
    Stopped,
    /// It goes on.
    Continued,
    /// It ended by itself, or by a signal.
    Exited(Exit),
    /// It printed something.
    Printed,
    /// It printed more than it may.
    TooMuch,
    /// Somebody asks for its end, with this grace.
    End(Span),
    /// Its starter is gone, and it was tied to it.
    Orphaned,
}

/// The longest that a shim sleeps. Its sleep is measured in a clock that stands still while the machine
/// sleeps and its limits in one that does not: so soon after a wake-up it notices.
const NAP: u64 = 5_000;

/// How long a shim goes on killing what will not die: it hangs in the kernel, on a dead disk.
const DESPAIR: u64 = 10_000;

/// How a child ended and how long it ran.
pub(super) struct Watched {
    pub exit: Exit,
    pub ran_ms: u64,
    pub suspended_ms: u64,
}

/// Watches a child until it has ended and nothing is left below this process.
pub(super) fn watch(child: u32, limits: &Limits, events: &Receiver<Event>) -> Watched {
    let mut clock = Stopwatch::start(boot_ms());
    let mut printed_at = 0;
    let mut verdict = None;
    // When TERM becomes KILL, once TERM was sent.
    let mut kill_at: Option<u64> = None;
    let exit = loop {
        let now = boot_ms();
        let ran = clock.ran(now);
        if kill_at.is_none() {
            verdict = passed(limits, ran, ran - printed_at);
            if verdict.is_some() {
                kill_at = Some(terminate(child, now, limits.grace));
            }
        }
        let nap = match kill_at {
            Some(at) if at <= now => {
                kill_everything(child);
                50
            }
            Some(at) => at - now,
            None if clock.is_stopped() => NAP,
            None => until_limit(limits, ran, ran - printed_at).min(NAP),
        };
        match events.recv_timeout(Duration::from_millis(nap)) {
            Ok(Event::Stopped) => clock.stop(boot_ms()),
            Ok(Event::Continued) => clock.go_on(boot_ms()),
            Ok(Event::Printed) => printed_at = clock.ran(boot_ms()),
            Ok(Event::TooMuch) if kill_at.is_none() => {
                verdict = Some(Exit::TooMuchOutput);
                kill_at = Some(terminate(child, boot_ms(), limits.grace));
            }
            Ok(Event::TooMuch) => {}
            Ok(Event::End(grace)) => {
                let asked = match kill_at {
                    Some(_) => boot_ms() + grace.as_ms(),
                    None => terminate(child, boot_ms(), grace),
                };
                kill_at = Some(kill_at.map_or(asked, |at| at.min(asked)));
            }
            Ok(Event::Orphaned) => kill_at = Some(boot_ms()),
            Ok(Event::Exited(exit)) => break exit,
            Err(RecvTimeoutError::Timeout) => bury_strays(child),
            // The thread that waits for the child never leaves without its exit.
            Err(RecvTimeoutError::Disconnected) => break Exit::Vanished,
        }
    };
    let now = boot_ms();
    let (ran_ms, suspended_ms) = (clock.ran(now), clock.stood(now));
    clear_away(child, kill_at, limits.grace);
    Watched {
        exit: verdict.unwrap_or(exit),
        ran_ms,
        suspended_ms,
    }
}

/// Which limit is passed.
fn passed(limits: &Limits, ran: u64, silent: u64) -> Option<Exit> {
    let is_over = |limit: Option<Span>, value| limit.is_some_and(|limit| value >= limit.as_ms());
    if is_over(limits.time, ran) {
        Some(Exit::TimedOut)
    } else if is_over(limits.idle, silent) {
        Some(Exit::Idle)
    } else {
        None
    }
}

/// How long the next limit is away.
fn until_limit(limits: &Limits, ran: u64, silent: u64) -> u64 {
    let left = |limit: Option<Span>, value| limit.map_or(NAP, |limit| limit.as_ms().saturating_sub(value));
    left(limits.time, ran).min(left(limits.idle, silent))
}

/// A clock that stands still while the child is stopped. Milliseconds.
struct Stopwatch {
    began: u64,
    stopped_at: Option<u64>,
    /// What earlier stops came to.
    stood: u64,
}

impl Stopwatch {
    fn start(now: u64) -> Stopwatch {
        Stopwatch {
            began: now,
            stopped_at: None,
            stood: 0,
        }
    }

    fn stop(&mut self, now: u64) {
        self.stopped_at.get_or_insert(now);
    }

    fn go_on(&mut self, now: u64) {
        self.stood = self.stood(now);
        self.stopped_at = None;
    }

    fn is_stopped(&self) -> bool {
        self.stopped_at.is_some()
    }

    fn stood(&self, now: u64) -> u64 {
        self.stood + self.stopped_at.map_or(0, |at| now.saturating_sub(at))
    }

    fn ran(&self, now: u64) -> u64 {
        (now - self.began).saturating_sub(self.stood(now))
    }
}

/// Asks the child and all below this process to end; says when asking is over.
fn terminate(child: u32, now: u64, grace: Span) -> u64 {
    let living = living(child);
    // What is stopped cannot take leave: TERM waits for it, and it goes on into TERM.
    for sign in [Signal::TERM, Signal::CONT] {
        signal_group(child, sign);
        for row in &living {
            signal(row.pid, sign);
        }
    }
    now + grace.as_ms()
}

fn kill_everything(child: u32) {
    signal_group(child, Signal::KILL);
    for row in living(child) {
        signal(row.pid, Signal::KILL);
    }
}

/// What lives below this process besides the child and its dead: also what detached itself, for on Linux a
/// shim is the parent of all orphans below it.
fn living(child: u32) -> Vec<Row> {
    let mut rows = below(std::process::id());
    rows.retain(|row| !row.is_dead() && row.pid != child);
    rows
}

/// Ends what a child left running: TERM, KILL when the grace is over, and no way out (R43).
fn clear_away(child: u32, kill_at: Option<u64>, grace: Span) {
    // The dead child keeps its number until this process ends, so its group is nobody else's.
    let group_left =
        || as_pid(child).is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok());
    let mut kill_at = kill_at;
    loop {
        bury_strays(child);
        let left = !living(child).is_empty() || (cfg!(not(target_os = "linux")) && group_left());
        if !left {
            return;
        }
        let now = boot_ms();
        let at = *kill_at.get_or_insert_with(|| terminate(child, now, grace));
        if now >= at {
            kill_everything(child);
        }
        if now >= at + DESPAIR {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Buries the dead among the orphans that this process was made the parent of; never the child itself.
fn bury_strays(child: u32) {
    let me = std::process::id();
    for row in below(me) {
        if row.parent == me
            && row.pid != child
            && row.is_dead()
            && let Some(pid) = as_pid(row.pid)
        {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

/// Tells of the child's stops and of its end, and leaves it dead and unburied: its number stays taken.
pub(super) fn tell_states(child: u32, events: &Sender<Event>) {
    let Some(pid) = as_pid(child) else { return };
    let any = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED;
    loop {
        let status = match waitid(WaitId::Pid(pid), any | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => status,
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            Err(_) => {
                let _ = events.send(Event::Exited(Exit::Vanished));
                return;
            }
        };
        if let Some(status) = status.exit_status() {
            let _ = events.send(Event::Exited(Exit::Status(status)));
            return;
        }
        if let Some(signal) = status.terminating_signal() {
            let _ = events.send(Event::Exited(Exit::Interrupt(signal)));
            return;
        }
        let event = if status.stopped() {
            Event::Stopped
        } else {
            Event::Continued
        };
        let _ = events.send(event);
        // Takes what was looked at, unless the child has died since: then the next look tells.
        let stops = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED;
        let _ = waitid(WaitId::Pid(pid), stops | WaitIdOptions::NOHANG);
    }
}

/// Tells of the requests that come in through the control pipe. A line that is none is nobody's.
pub(super) fn tell_requests(control: impl io::Read, events: &Sender<Event>) {
    for line in BufReader::new(control).lines().map_while(Result::ok) {
        let grace = line.strip_prefix("end ").and_then(|ms| ms.parse().ok());
        if let Some(grace) = grace {
            let _ = events.send(Event::End(Span::from_ms(grace)));
        }
    }
}

/// Tells when the starter, which holds the other end, is gone.
pub(super) fn tell_orphaned(mut tie: impl io::Read, events: &Sender<Event>) {
    let mut byte = [0];
    while matches!(tie.read(&mut byte), Ok(1)) {}
    let _ = events.send(Event::Orphaned);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopwatch_stands_still_while_the_child_does() {
        let mut clock = Stopwatch::start(1_000);
        assert_eq!((clock.ran(1_500), clock.stood(1_500)), (500, 0));
        clock.stop(1_500);
        clock.stop(1_700);
        assert_eq!((clock.ran(9_000), clock.stood(9_000)), (500, 7_500));
        clock.go_on(9_500);
        clock.go_on(9_600);
        assert_eq!((clock.ran(9_700), clock.stood(9_700)), (700, 8_000));
    }

    #[test]
    fn the_nearer_limit_wakes_the_shim_and_the_time_limit_is_named_first() {
        let limits = Limits {
            time: Some(Span::from_ms(1_000)),
            idle: Some(Span::from_ms(300)),
            ..Limits::default()
        };
        assert_eq!(until_limit(&limits, 100, 100), 200);
        assert_eq!(until_limit(&limits, 950, 0), 50);
        assert_eq!(until_limit(&Limits::default(), 0, 0), NAP);
        assert_eq!(passed(&limits, 999, 299), None);
        assert_eq!(passed(&limits, 999, 300), Some(Exit::Idle));
        assert_eq!(passed(&limits, 1_000, 300), Some(Exit::TimedOut));
    }
}
