//! The process between a hypervisor and its child, and the child before it is itself.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use protocol::facts::run::Exit;
use rustix::process::{Resource, Rlimit, setrlimit};

use super::descriptors::close_inherited;
use super::files::{Order, Place, Started};
use super::output::{NewFilter, copy};
use super::parcel::Parcel;
use super::process::identify;
use super::watch::{tell_orphaned, tell_requests, tell_states, watch};
use super::{Ending, Error};

/// How long the log is waited for once nobody is left to print: what the pipe still holds.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What follows the folder when the child's image is meant, not the shim.
const CHILD: &str = "child";

/// Carries out the hidden command that `Spec.shim` leads to; `args` are the words after those.
///
/// The caller does nothing before that opens a file, starts a thread or prints: standard output is the lock.
pub fn main(args: impl IntoIterator<Item = OsString>, filter: NewFilter) -> ExitCode {
    close_inherited();
    let mut args = args.into_iter();
    let Some(dir) = args.next() else {
        return ExitCode::from(64);
    };
    let place = Place::new(&PathBuf::from(dir));
    match args.next() {
        Some(role) if role == CHILD => become_child(&place, args),
        Some(_) => ExitCode::from(64),
        None => match attend(&place, filter) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // Its standard error is `shim.log`.
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Starts the child of an attempt and stays until it has ended.
fn attend(place: &Place, filter: NewFilter) -> Result<(), Error> {
    // Already a leader when a person starts it by hand; then it stays in that session.
    let _ = rustix::process::setsid();
    keep_to_oneself();
    let parcel = Parcel::receive(&mut io::stdin().lock())
        .map_err(Error::system("receive the child of", place.dir()))?;
    let order: Order = place
        .read(&place.spec())?
        .ok_or_else(|| Error::Spec("there is no spec.json".to_owned()))?;
    // The lock that was handed over rules this out; starting twice would be the worst that can happen.
    if place.started().exists() || place.result().exists() {
        return Err(Error::Spec("this attempt was started before".to_owned()));
    }
    let log = place.append(&place.log())?;
    let control = open_control(place)?;

    let (printed, printer) = io::pipe().map_err(Error::system("make a pipe for", place.dir()))?;
    let mut child = match spawn(&parcel, &order, printer) {
        Ok(child) => child,
        Err(why) => return place.write(&place.result(), &Ending::unmeasured(Exit::NotStarted(why))),
    };
    let pid = child.id();
    let (Some(shim), Some(leader)) = (identify(std::process::id()), identify(pid)) else {
        return Err(Error::Spec(
            "the process table does not list its own processes".to_owned(),
        ));
    };
    place.write(&place.started(), &Started { shim, child: leader })?;

    let (events, told) = mpsc::channel();
    let secrets: Vec<_> = parcel
        .env
        .iter()
        .filter(|(name, _)| is_masked(&order, name))
        .cloned()
        .collect();
    let stdin = child.stdin.take();
    spawn_thread("launch-brief", move || feed(stdin, &parcel.stdin))?;
    spawn_thread("launch-state", {
        let events = events.clone();
        move || tell_states(pid, &events)
    })?;
    spawn_thread("launch-control", {
        let events = events.clone();
        move || tell_requests(control, &events)
    })?;
    if order.tied {
        let events = events.clone();
        spawn_thread("launch-tie", move || tell_orphaned(io::stdin(), &events))?;
    }
    let (count, counted) = mpsc::channel();
    let most = order.limits.output;
    spawn_thread("launch-log", move || {
        let _ = count.send(copy(printed, log, filter(&secrets), most, &events));
    })?;

    let watched = watch(pid, &order.limits, &told);
    let output_bytes = counted.recv_timeout(LAST_WORDS).unwrap_or_default();
    let exit = match place.read(&place.refused())? {
        Some(why) => Exit::NotStarted(why),
        None => watched.exit,
    };
    place.write(
        &place.result(),
        &Ending {
            exit,
            ran_ms: watched.ran_ms,
            suspended_ms: watched.suspended_ms,
            output_bytes,
        },
    )
}

fn is_masked(order: &Order, name: &OsStr) -> bool {
    order.masked.iter().any(|masked| name == masked.as_str())
}

/// Makes this process the parent of every orphan below it, and its memory, which holds secrets, unreadable.
fn keep_to_oneself() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior};
        let _ = set_child_subreaper(Some(getpid()));
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Opens the control pipe for both directions, so that it does not end with the first who writes to it.
fn open_control(place: &Place) -> Result<std::fs::File, Error> {
    let path = place.control();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    #[cfg(target_os = "linux")]
    let made = rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0);
    #[cfg(not(target_os = "linux"))]
    let made = rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode);
    match made {
        // Left by a shim that died before it started anything.
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(Error::system("make", &path)(error)),
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(Error::system("open", &path))
}

/// Starts the child's image, which waits for its first byte; the reason when that cannot be.
fn spawn(parcel: &Parcel, order: &Order, printer: io::PipeWriter) -> Result<Child, String> {
    let cwd = &parcel.cwd;
    // A failed start does not say which of its steps failed.
    match std::fs::metadata(cwd) {
        Ok(folder) if folder.is_dir() => {}
        Ok(_) => return Err(format!("{} is no folder", cwd.display())),
        Err(error) => return Err(format!("{}: {error}", cwd.display())),
    }
    let memory = order
        .limits
        .memory
        .map_or_else(String::new, |bytes| bytes.to_string());
    let start = || {
        Command::new(this_program()?)
            // The hidden command and the folder, as this process was given them.
            .args(std::env::args_os().skip(1))
            .args([CHILD, &std::process::id().to_string(), &memory])
            .args(&parcel.argv)
            .env_clear()
            .envs(parcel.env.iter().map(|(name, value)| (name, value)))
            .current_dir(cwd)
            .process_group(0)
            .stdin(Stdio::piped())
            .stderr(printer.try_clone()?)
            .stdout(printer)
            .spawn()
    };
    start().map_err(|error| error.to_string())
}

/// This program as it runs, even when another version has taken its place meanwhile.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe()
    }
}

/// Lets the child's image go, and hands it its brief.
fn feed(stdin: Option<std::process::ChildStdin>, brief: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A child need not read its brief.
        let _ = stdin.write_all(b"!").and_then(|()| stdin.write_all(brief));
    }
}

fn spawn_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(drop)
        .map_err(Error::system("start a thread for", name.as_ref()))
}

/// The child's image: ties itself to the shim, waits for its word, and becomes the child.
///
/// That it is a program of its own, and not code between `fork` and `exec`, lets `started.json` name it
/// before it is let go, and needs no `unsafe`.
fn become_child(place: &Place, mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let shim = args.next().and_then(|pid| pid.to_str()?.parse().ok());
    let memory = args.next().and_then(|bytes| bytes.to_str()?.parse().ok());
    let Some(program) = args.next() else {
        return ExitCode::from(64);
    };
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    // A shim that died before the line above has told nobody.
    if shim != Some(parent_id()) {
        return ExitCode::FAILURE;
    }
    // Unbuffered: what follows the byte is the child's.
    let mut byte = [0];
    if !matches!(rustix::io::read(io::stdin(), &mut byte), Ok(1)) {
        return ExitCode::FAILURE;
    }
    // A core dump would put the environment on the disk.
    let limits = [(Resource::Core, Some(0)), (Resource::Data, memory)];
    for (resource, limit) in limits {
        if limit.is_some() {
            let _ = setrlimit(
                resource,
                Rlimit {
                    current: limit,
                    maximum: limit,
                },
            );
        }
    }
    let error = Command::new(&program).args(args).exec();
    let why = format!("{}: {error}", program.display());
    let _ = place.write(&place.refused(), &why);
    ExitCode::from(127)
}
