//! Children as real processes: what they are given, how they end, and what a crash leaves.

mod crash;
mod given;
mod limits;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use protocol::facts::run::Exit;
use protocol::facts::span::Span;
use runner::launch::{Base, Brief, Child, Command, Ending, Limits, Spec, start};
use tempfile::TempDir;

/// Longer than anything here takes on a loaded machine: whoever waits for it has found a defect.
const FOREVER: Duration = Duration::from_secs(60);

/// A folder to work in, with an attempt `a` in it.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A shell text to be run as attempt `a`.
    fn spec(&self, text: &str) -> Spec {
        Spec {
            dir: self.path("a"),
            shim: shim("__attempt"),
            command: Command::Shell(text.to_owned()),
            cwd: self.dir.path().to_owned(),
            base: Base::Fixed,
            env: Vec::new(),
            masked: Vec::new(),
            brief: Brief::None,
            limits: Limits::default(),
        }
    }

    /// A hypervisor of its own process, to be killed: `start` or `quiet`.
    fn hypervisor(&self, how: &str, text: &str) -> process::Child {
        process::Command::new(program())
            .args([how.as_ref(), self.path("a").as_os_str(), text.as_ref()])
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Waits until a file is there and is not empty; gives its text.
    fn await_text(&self, name: &str) -> String {
        await_that(name, || {
            fs::read_to_string(self.path(name))
                .ok()
                .filter(|text| text.ends_with('\n'))
        })
    }

    /// Lets a child go on that waits with [`until`].
    fn touch(&self, name: &str) {
        fs::write(self.path(name), "\n").unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_runner-attempt"))
}

fn shim(word: &str) -> Vec<OsString> {
    vec![program().into(), word.into()]
}

/// A shell text that waits for a file.
fn until(name: &str) -> String {
    format!("until [ -e {name} ]; do sleep 0.02; done")
}

/// A shell text that leaves a process behind which is in no group of ours, ignores TERM and tells its id.
fn daemon(tells: &str) -> String {
    format!(
        "setsid sh -c 'trap \"\" TERM HUP; (echo $$ > {tells}; while :; do sleep 0.1; echo . >> {tells}.on; done) & wait' & \
         until [ -s {tells} ]; do sleep 0.02; done"
    )
}

fn ms(ms: u64) -> Option<Span> {
    Some(Span::from_ms(ms))
}

/// Waits until something is so.
#[track_caller]
fn await_that<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + FOREVER;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for the end of a child.
#[track_caller]
fn end_of(child: &Child) -> Ending {
    match child.wait(Some(Instant::now() + FOREVER)) {
        Some(ending) => ending,
        None => {
            let _ = child.end(Span::from_ms(0));
            panic!("it never ended: {child:?}");
        }
    }
}

/// Runs a spec to its end; gives how it ended and what it printed.
#[track_caller]
fn run(spec: &Spec) -> (Exit, String) {
    let child = start(spec).unwrap();
    let ending = end_of(&child);
    (ending.exit, child.tail(usize::MAX).unwrap())
}

/// The kernel's letter for the state of a process; none when it is gone or dead.
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    (state != 'Z' && state != 'X').then_some(state)
}

fn pid_in(text: &str) -> u32 {
    text.trim().parse().unwrap()
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
