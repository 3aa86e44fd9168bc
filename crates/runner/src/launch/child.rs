//! A child from the outside: waiting for its end, stopping it, asking it to end.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{self, ChildStdin};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use protocol::facts::caller::Process;
use protocol::facts::run::Exit;
use protocol::facts::span::Span;
use rustix::fs::{FlockOperation, OFlags};

use super::files::{Place, Started, tail};
use super::process::{continue_all, stop_all};
use super::start::{Adopted, judge};
use super::{Ending, Error};

/// A child that was started, by this process or another one. Dropping it leaves the child alone.
pub struct Child {
    place: Place,
    /// Nothing for a child that could not be started.
    started: Option<Started>,
    end: Arc<End>,
    /// While it is open the shim of a tied child knows that we live.
    _tie: Option<ChildStdin>,
}

/// Where the thread that waits for the lock leaves what it learnt.
#[derive(Default)]
struct End {
    ending: Mutex<Option<Ending>>,
    came: Condvar,
}

impl End {
    fn lock(&self) -> MutexGuard<'_, Option<Ending>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Child {
    /// A child whose attempt is locked. `shim` is given by its parent, to bury it.
    pub(super) fn running(
        place: Place,
        started: Started,
        shim: Option<process::Child>,
        tie: Option<ChildStdin>,
    ) -> Result<Child, Error> {
        let end = Arc::new(End::default());
        let waits = thread::Builder::new()
            .name("launch-wait".to_owned())
            .stack_size(256 * 1024)
            .spawn({
                let (place, end) = (place.clone(), Arc::clone(&end));
                move || {
                    let ending = await_end(&place);
                    // The lock is let go by dying, so this comes back at once.
                    if let Some(mut shim) = shim {
                        let _ = shim.wait();
                    }
                    *end.lock() = Some(ending);
                    end.came.notify_all();
                }
            });
        waits.map_err(Error::system("start a thread for", place.dir()))?;
        Ok(Child {
            place,
            started: Some(started),
            end,
            _tie: tie,
        })
    }

    /// A child that has ended.
    pub(super) fn ended(place: Place, ending: Ending) -> Child {
        let started = place.read(&place.started()).ok().flatten();
        Child {
            place,
            started,
            end: Arc::new(End {
                ending: Mutex::new(Some(ending)),
                came: Condvar::new(),
            }),
            _tie: None,
        }
    }

    /// Waits for the end, at most until a moment; `None` when the child still runs then.
    pub fn wait(&self, until: Option<Instant>) -> Option<Ending> {
        let mut ending = self.end.lock();
        loop {
            if ending.is_some() {
                return ending.clone();
            }
            ending = match until {
                None => self.end.came.wait(ending).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.checked_duration_since(Instant::now())?;
                    let woken = self.end.came.wait_timeout(ending, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Gives the end when it has come.
    pub fn try_wait(&self) -> Option<Ending> {
        self.end.lock().clone()
    }

    /// Stops the child and all below it, however deep; its limits stand still. A stopped child stays so.
    ///
    /// Says whether it still ran.
    ///
    /// # Errors
    ///
    /// [`Error`] when the attempt's lock cannot be looked at.
    pub fn suspend(&self) -> Result<bool, Error> {
        self.with_running(stop_all)
    }

    /// Lets the child and all below it go on. Says whether it still ran.
    ///
    /// # Errors
    ///
    /// [`Error`] when the attempt's lock cannot be looked at.
    pub fn resume(&self) -> Result<bool, Error> {
        self.with_running(continue_all)
    }

    /// Asks for the end: TERM to the child and all below it, after the grace KILL.
    ///
    /// The shim does it, so the caller need not stay; [`Child::wait`] tells when nothing of it is left. A
    /// stopped child is let go on for its grace. Asking twice shortens the grace and never lengthens it.
    ///
    /// # Errors
    ///
    /// [`Error`] when the request cannot be written.
    pub fn end(&self, grace: Span) -> Result<(), Error> {
        let path = self.place.control();
        let asked = OpenOptions::new()
            .write(true)
            // Without it the opening would wait for a shim that is gone.
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .and_then(|mut control| control.write_all(format!("end {}\n", grace.as_ms()).as_bytes()));
        match asked {
            Err(error) if is_gone(&error) => Ok(()),
            asked => asked.map_err(Error::system("write", &path)),
        }
    }

    /// The shim, which owns what the child claims: it lives exactly as long as the attempt. Nothing for a
    /// child that could not be started.
    pub fn process(&self) -> Option<&Process> {
        self.started.as_ref().map(|started| &started.shim)
    }

    /// The child itself, the leader of its process group.
    pub fn leader(&self) -> Option<&Process> {
        self.started.as_ref().map(|started| &started.child)
    }

    /// The file with all that the child prints, on both streams, in the order of printing.
    pub fn log_path(&self) -> PathBuf {
        self.place.log()
    }

    /// The last lines of the log, at most 256 KiB.
    ///
    /// # Errors
    ///
    /// [`Error`] when the log cannot be read.
    pub fn tail(&self, lines: usize) -> Result<String, Error> {
        tail(&self.place.log(), lines)
    }

    /// Acts on a child of which the lock says that its shim lives, so that its numbers are its own.
    fn with_running(&self, act: fn(&Started)) -> Result<bool, Error> {
        let (Some(started), Some(alive)) = (&self.started, self.place.open_alive(false)?) else {
            return Ok(false);
        };
        let runs = !self.place.lock(&alive, FlockOperation::NonBlockingLockShared)?;
        if runs {
            act(started);
        }
        Ok(runs)
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("dir", &self.place.dir())
            .field("started", &self.started)
            .field("ending", &self.try_wait())
            .finish()
    }
}

/// Sleeps in the kernel until the shim lets the lock go, then reads what it left.
///
/// What cannot be read counts as never said: a failed attempt is the safe side.
fn await_end(place: &Place) -> Ending {
    let judged = match place.open_alive(false) {
        Ok(Some(alive)) => place
            .lock(&alive, FlockOperation::LockShared)
            .and_then(|_| judge(place)),
        Ok(None) => Ok(Adopted::NeverStarted),
        Err(error) => Err(error),
    };
    match judged {
        Ok(Adopted::Ended(ending)) => ending,
        _ => Ending::unmeasured(Exit::Vanished),
    }
}

/// Whether nobody reads the control pipe any more: the child has ended, as was asked.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.kind() == io::ErrorKind::BrokenPipe
        || error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}
