//! Processes as the kernel lists them: who is who, what is below whom, and signals to all of it.

use std::path::Path;

use protocol::facts::caller::Process;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::files::Started;

/// Names a running process so that no later one with its number is mistaken for it; `None` when there is
/// none. Where the kernel does not tell a start time it is 0.
pub fn identify(pid: u32) -> Option<Process> {
    Some(Process {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        boot: store::clock::boot_id(),
        pid_ns: pid_namespace(),
        pid,
        start: start_time(pid)?,
    })
}

/// Whether exactly this process is there; a zombie still is.
pub fn is_there(process: &Process) -> bool {
    identify(process.pid).as_ref() == Some(process)
}

/// Milliseconds of the boot clock, which no one can set and which runs on while the machine sleeps.
pub(super) fn boot_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    #[cfg(not(target_os = "linux"))]
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// Sends a signal to one process, which may be gone.
pub(super) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = as_pid(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to a process group, which may be gone.
pub(super) fn signal_group(leader: u32, signal: Signal) {
    if let Some(leader) = as_pid(leader) {
        let _ = kill_process_group(leader, signal);
    }
}

/// The number as the system calls want it; 0 and 1 are nobody's child.
pub(super) fn as_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid)
        .ok()
        .filter(|pid| *pid > 1)
        .and_then(Pid::from_raw)
}

/// Stops the group and everything below the shim, until nothing is found that still runs.
///
/// What is below is looked up again after each pass: a process may fork while it is being stopped, and a
/// child that detached itself from the group is to be stopped as well (O-13).
pub(super) fn stop_all(started: &Started) {
    signal_group(started.child.pid, Signal::STOP);
    // Each pass stops what it finds, so only forks in between can make another one needed.
    for _ in 0..100 {
        let running: Vec<_> = below(started.shim.pid)
            .into_iter()
            .filter(|process| !matches!(process.state, b'T' | b't' | b'Z' | b'X'))
            .collect();
        if running.is_empty() {
            return;
        }
        for process in running {
            signal(process.pid, Signal::STOP);
        }
    }
}

/// Lets the group and everything below the shim go on.
pub(super) fn continue_all(started: &Started) {
    for process in below(started.shim.pid) {
        signal(process.pid, Signal::CONT);
    }
    signal_group(started.child.pid, Signal::CONT);
}

/// Kills what a shim left that died without a word (R43).
///
/// The kernel killed the child with its shim; the child's own children live on. They are found by the
/// shim's session, whose number is taken for as long as one of them is there, and by [`super::MARK`] in
/// their environment, which a child that began a session of its own still has.
pub(super) fn sweep(started: &Started, mark: &Path) {
    if started.shim.boot != store::clock::boot_id() || started.shim.pid_ns != pid_namespace() {
        return;
    }
    // A killed process may be listed for a moment more; one that the kernel cannot kill stays for ever.
    for _ in 0..200 {
        let mine = std::process::id();
        let left: Vec<_> = table()
            .into_iter()
            .filter(|process| process.pid != mine && !process.is_dead())
            .filter(|process| process.start >= started.shim.start)
            .filter(|process| process.session == started.shim.pid || has_mark(process.pid, mark))
            .collect();
        if left.is_empty() {
            return;
        }
        for process in left {
            signal(process.pid, Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A line of the process table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub pid: u32,
    pub parent: u32,
    pub session: u32,
    /// The kernel's letter for what it does: `R` runs, `T` is stopped, `Z` is dead and unburied …
    pub state: u8,
    /// Clock ticks since boot.
    pub start: u64,
}

impl Row {
    /// Whether it runs no more and only waits for its parent to notice.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Gives everything below a process, children before their children.
pub(super) fn below(root: u32) -> Vec<Row> {
    let table = table();
    let mut found: Vec<Row> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for row in table.iter().filter(|row| row.parent == parent) {
            found.push(*row);
            parents.push(row.pid);
        }
    }
    found
}

#[cfg(target_os = "linux")]
fn table() -> Vec<Row> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(row)
        .collect()
}

#[cfg(target_os = "linux")]
fn row(pid: u32) -> Option<Row> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &stat)
}

/// Reads a line of `/proc/PID/stat`. The second field is the program's name in parentheses, and a program
/// may have parentheses and blanks in its name: what counts comes after the last one.
#[cfg(target_os = "linux")]
fn parse_stat(pid: u32, stat: &[u8]) -> Option<Row> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<_> = std::str::from_utf8(&stat[name_end + 1..])
        .ok()?
        .split_ascii_whitespace()
        .collect();
    Some(Row {
        pid,
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(target_os = "linux")]
fn start_time(pid: u32) -> Option<u64> {
    row(pid).map(|row| row.start)
}

#[cfg(target_os = "linux")]
fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

#[cfg(target_os = "linux")]
fn has_mark(pid: u32, mark: &Path) -> bool {
    let value = |pair: &[u8]| {
        pair.strip_prefix(super::MARK.as_bytes())?
            .strip_prefix(b"=")
            .map(<[u8]>::to_vec)
    };
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
        let mut values = environ.split(|byte| *byte == 0).filter_map(value);
        values.any(|value| value == mark.as_os_str().as_encoded_bytes())
    })
}

#[cfg(not(target_os = "linux"))]
fn table() -> Vec<Row> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn start_time(pid: u32) -> Option<u64> {
    let pid = as_pid(pid)?;
    rustix::process::test_kill_process(pid).is_ok().then_some(0)
}

#[cfg(not(target_os = "linux"))]
fn pid_namespace() -> u64 {
    0
}

#[cfg(not(target_os = "linux"))]
fn has_mark(_pid: u32, _mark: &Path) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_shifts_no_field() {
        let stat = b"42 (a) Z 1 (x)) S 7 42 9 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 12345 9 9";
        assert_eq!(
            parse_stat(42, stat),
            Some(Row {
                pid: 42,
                parent: 7,
                session: 9,
                state: b'S',
                start: 12345
            })
        );
        assert_eq!(parse_stat(42, b"42 (sh"), None);
    }

    #[test]
    fn a_process_is_there_until_another_has_its_number() {
        let here = identify(std::process::id()).unwrap();
        assert!(is_there(&here));
        assert!(!is_there(&Process {
            start: here.start + 1,
            ..here
        }));
    }
}
