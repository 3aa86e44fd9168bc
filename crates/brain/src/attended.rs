//! A program that is waited for, and that ends in the place of this one when somebody wants an end.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// A program that runs.
pub struct Attended {
    end: Receiver<()>,
    waiter: JoinHandle<io::Result<ExitStatus>>,
}

/// Starts a program. Until it has ended nothing but a kill ends this process: of what is meant to, those signals
/// that `passed` names end the program, and the others are only heard. A terminal's interrupt reaches it by itself.
///
/// # Errors
///
/// The program cannot be started.
pub fn attend(command: &mut Command, passed: &'static [i32]) -> io::Result<Attended> {
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let deaf = signals.handle();
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    let passing = spawn(move || {
        for signal in signals.forever() {
            if passed.contains(&signal) {
                // It may have ended already.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    });
    let (ended, end) = channel();
    let waiter = spawn(move || {
        // Its number stays its own until the wait below, which comes when no signal is passed on any more.
        let only_look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), only_look));
        deaf.close();
        let _ = passing.join();
        let status = child.wait();
        // Nobody listens any more only when this process ends.
        let _ = ended.send(());
        status
    });
    Ok(Attended { end, waiter })
}

impl Attended {
    /// Waits for at most so long; says whether it runs still.
    pub fn runs_after(&self, at_most: Duration) -> bool {
        self.end.recv_timeout(at_most) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// The operating system does not tell how it ended.
    pub fn status(self) -> io::Result<ExitStatus> {
        self.waiter
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the wait for it ended")))
    }
}

/// The exit code that stands for how a program ended, as a shell says it.
pub fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|number| 128 + number))
        .unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
