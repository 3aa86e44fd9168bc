//! Starting an attempt once, and taking it back (R39, R42).

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{self, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

use super::files::{Order, Place, Started, tail};
use super::parcel::Parcel;
use super::process::sweep;
use super::{Child, Ending, Error, Spec};
use protocol::facts::run::Exit;

/// What an attempt's folder says.
#[derive(Debug)]
pub enum Adopted {
    /// The child runs, and is yours.
    Running(Child),
    /// It has ended, and said how.
    Ended(Ending),
    /// Nothing was ever started here; [`start`] may.
    NeverStarted,
    /// It was started and is gone without a word. What it left running was killed.
    Vanished,
}

/// How long a shim may take to say that it has started. Milliseconds are usual; only a machine in great
/// distress takes seconds.
const HANDSHAKE: Duration = Duration::from_secs(60);

/// Starts a child, unless this attempt was ever started: then it gives the one that was.
///
/// It comes back when the child's start is on the disk. A child that could not be started is one that ended
/// with `Exit::NotStarted`.
///
/// # Errors
///
/// [`Error`] when no shim came up. Nothing runs then, and the same call may be made again.
pub fn start(spec: &Spec) -> Result<Child, Error> {
    begin(spec, false)
}

/// Starts a child; a tied one is ended as soon as this process is gone or drops it.
pub(super) fn begin(spec: &Spec, tied: bool) -> Result<Child, Error> {
    // The shim works at the root of the file system.
    for path in [&spec.dir, &spec.cwd] {
        if !path.is_absolute() {
            return Err(Error::Spec(format!("{} is no absolute path", path.display())));
        }
    }
    let place = Place::new(&spec.dir);
    place.make()?;
    let parcel = Parcel::pack(spec, place.mark())?;
    let deadline = Instant::now() + HANDSHAKE;
    loop {
        if let Some(alive) = place.open_alive(true)?
            && place.lock(&alive, FlockOperation::NonBlockingLockExclusive)?
        {
            // Nobody else can start it from here on, and no shim of an earlier try is alive.
            return match judge(&place)? {
                Adopted::NeverStarted => launch(spec, &place, alive, &parcel, tied),
                Adopted::Ended(ending) => Ok(Child::ended(place, ending)),
                Adopted::Vanished => Ok(Child::ended(place, Ending::unmeasured(Exit::Vanished))),
                Adopted::Running(child) => Ok(child),
            };
        }
        // A shim has it, another starter, or for an instant somebody who looks.
        if let Some(child) = running(&place)? {
            return Ok(child);
        }
        nap(&place, deadline)?;
    }
}

/// Says how an attempt stands, and takes its child back when it runs.
///
/// Any number of callers may look at once; all get the same answer.
///
/// # Errors
///
/// [`Error`] when the folder cannot be read, or when an attempt stays between locked and started.
pub fn adopt(dir: &Path) -> Result<Adopted, Error> {
    let place = Place::new(dir);
    let deadline = Instant::now() + HANDSHAKE;
    loop {
        let Some(alive) = place.open_alive(false)? else {
            return Ok(Adopted::NeverStarted);
        };
        // Shared, so that two who look do not take each other for a shim.
        if place.lock(&alive, FlockOperation::NonBlockingLockShared)? {
            return judge(&place);
        }
        if let Some(child) = running(&place)? {
            return Ok(Adopted::Running(child));
        }
        nap(&place, deadline)?;
    }
}

/// Reads how an attempt stands whose lock the caller holds: never running.
pub(super) fn judge(place: &Place) -> Result<Adopted, Error> {
    if let Some(ending) = place.read(&place.result())? {
        return Ok(Adopted::Ended(ending));
    }
    match place.read::<Started>(&place.started())? {
        Some(started) => {
            sweep(&started, &place.mark());
            Ok(Adopted::Vanished)
        }
        None => Ok(Adopted::NeverStarted),
    }
}

/// Gives the child of an attempt that somebody has locked, once its shim said that it started it.
fn running(place: &Place) -> Result<Option<Child>, Error> {
    match place.read(&place.started())? {
        Some(started) => Child::running(place.clone(), started, None, None).map(Some),
        None => Ok(None),
    }
}

/// Waits a moment for the other side of a handshake.
fn nap(place: &Place, deadline: Instant) -> Result<(), Error> {
    if Instant::now() > deadline {
        return Err(no_shim(place));
    }
    thread::sleep(Duration::from_millis(2));
    Ok(())
}

/// Starts the shim, handing it the lock, and waits until it has said that the child is on its way.
fn launch(spec: &Spec, place: &Place, alive: File, parcel: &Parcel, tied: bool) -> Result<Child, Error> {
    place.write(
        &place.spec(),
        &Order {
            limits: spec.limits.clone(),
            tied,
            masked: spec.masked.clone(),
        },
    )?;
    let [program, words @ ..] = &spec.shim[..] else {
        return Err(Error::Spec("a shim without a program".to_owned()));
    };
    let mut shim = process::Command::new(program)
        .args(words)
        .arg(place.dir())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(alive)
        .stderr(place.append(&place.shim_log())?)
        .spawn()
        .map_err(Error::system("start", Path::new(program)))?;
    // The command and with it our hold of the lock are gone: it is the shim's alone.
    let sent = match &mut shim.stdin {
        Some(pipe) => parcel.send(pipe),
        None => Ok(()),
    };
    let tie = shim.stdin.take().filter(|_| tied);
    match sent {
        // A shim that died has its say below.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            // It waits for the rest of the parcel, and must not be left holding the lock.
            let _ = shim.kill();
            let _ = shim.wait();
            return Err(Error::system("write to the shim of", place.dir())(error));
        }
        _ => {}
    }
    let deadline = Instant::now() + HANDSHAKE;
    loop {
        if let Some(started) = place.read(&place.started())? {
            return Child::running(place.clone(), started, Some(shim), tie);
        }
        let gone = shim.try_wait().map_err(Error::system("wait for", place.dir()))?;
        if gone.is_some() {
            return match judge(place)? {
                Adopted::Ended(ending) => Ok(Child::ended(place.clone(), ending)),
                Adopted::Vanished => Ok(Child::ended(place.clone(), Ending::unmeasured(Exit::Vanished))),
                Adopted::Running(child) => Ok(child),
                Adopted::NeverStarted => Err(no_shim(place)),
            };
        }
        if let Err(late) = nap(place, deadline) {
            let _ = shim.kill();
            let _ = shim.wait();
            return Err(late);
        }
    }
}

fn no_shim(place: &Place) -> Error {
    Error::Shim {
        dir: place.dir().to_owned(),
        said: tail(&place.shim_log(), 5)
            .unwrap_or_default()
            .trim_end()
            .to_owned(),
    }
}
