//! Processes: which one this is, whose child it is, and whether another one still lives.

use std::io;

use protocol::facts::caller::Process;

/// Whether a process that was met once still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Alive,
    /// It ended, or its machine was started anew.
    Gone,
    /// It is out of sight: on another machine or in another namespace.
    Unknown,
}

/// What a walk needs to know of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) session: u32,
    pub(super) start: u64,
    pub(super) name: String,
    pub(super) ended: bool,
}

/// Where process ids count: the machine, its boot and the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Realm {
    host: String,
    boot: String,
    pid_ns: u64,
}

impl Realm {
    /// Finds out where this process runs.
    ///
    /// The boot is written as `machine/boot`: two machines of one name are not one that was started anew.
    pub(super) fn here() -> Self {
        Self {
            host: host(),
            boot: format!("{}/{}", system::machine(), system::boot()),
            pid_ns: system::pid_namespace(),
        }
    }

    pub(super) fn process(&self, seen: &Seen) -> Process {
        Process {
            host: self.host.clone(),
            boot: self.boot.clone(),
            pid_ns: self.pid_ns,
            pid: seen.pid,
            start: seen.start,
        }
    }

    fn life(&self, process: &Process) -> Life {
        if process.host != self.host {
            return Life::Unknown;
        }
        if process.boot != self.boot {
            let machine = |boot: &str| boot.split_once('/').map(|(machine, _)| machine.to_owned());
            let same = machine(&process.boot) == machine(&self.boot);
            return match machine(&self.boot) {
                Some(machine) if same && !machine.is_empty() => Life::Gone,
                _ => Life::Unknown,
            };
        }
        if process.pid_ns != self.pid_ns {
            return Life::Unknown;
        }
        match look(process.pid) {
            Ok(Some(seen)) if seen.start == process.start && !seen.ended => Life::Alive,
            Ok(Some(_)) => Life::Gone,
            Ok(None) | Err(_) => system::asked_by_signal(process.pid),
        }
    }
}

/// Says whether a process still runs: the same host, boot, namespace, id and start.
pub fn life(process: &Process) -> Life {
    #[cfg(feature = "testkit")]
    if let Some(life) = super::testkit::life(process) {
        return life;
    }
    Realm::here().life(process)
}

/// Returns the machine's name.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Looks at one process; `None` when there is none.
pub(super) fn look(pid: u32) -> io::Result<Option<Seen>> {
    system::look(pid)
}

/// Returns the words with which a process was started.
pub(super) fn arguments(pid: u32) -> Vec<String> {
    system::arguments(pid)
}

#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    pub(super) fn machine() -> String {
        let id = fs::read("/etc/machine-id").unwrap_or_default();
        match id.trim_ascii() {
            [] => String::new(),
            // The id itself is not to be shown, says machine-id(5).
            id => blake3::hash(id).to_hex()[..12].to_owned(),
        }
    }

    pub(super) fn boot() -> String {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    }

    pub(super) fn pid_namespace() -> u64 {
        fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
    }

    pub(super) fn look(pid: u32) -> io::Result<Option<Seen>> {
        match fs::read(format!("/proc/{pid}/stat")) {
            Ok(stat) => parse(&stat)
                .map(Some)
                .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a line of `/proc/PID/stat`; the name stands in parentheses and may hold any character.
    pub(super) fn parse(stat: &[u8]) -> Option<Seen> {
        let open = stat.iter().position(|byte| *byte == b'(')?;
        let close = stat.iter().rposition(|byte| *byte == b')')?;
        let number = |field: &str| field.parse::<u32>().ok();
        let pid = number(std::str::from_utf8(&stat[..open]).ok()?.trim())?;
        let fields = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X" | "x");
        let parent = number(fields.next()?)?;
        let session = fields.nth(1)?.parse().unwrap_or(0);
        let start = fields.nth(15)?.parse().ok()?;
        Some(Seen {
            pid,
            parent,
            session,
            start,
            name: String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned(),
            ended,
        })
    }

    pub(super) fn arguments(pid: u32) -> Vec<String> {
        let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        bytes
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    }

    /// `/proc` may hide the processes of others: who cannot be seen can still be asked for.
    pub(super) fn asked_by_signal(pid: u32) -> Life {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        match pid.map(test_kill_process) {
            None | Some(Err(Errno::SRCH)) => Life::Gone,
            _ => Life::Unknown,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::parse;

        #[test]
        fn a_name_may_hold_what_it_likes() {
            let stat = b"20568 (a) R 1 (b) S 20310 20310 1317 0 -1 4194304 101 0 0 0 0 0 0 0 20 0 1 0 302441 3133440\n";
            let seen = parse(stat).unwrap();
            assert_eq!((seen.pid, seen.parent, seen.session), (20568, 20310, 1317));
            assert_eq!(
                (seen.start, seen.name.as_str(), seen.ended),
                (302_441, "a) R 1 (b", false)
            );
            assert!(
                parse(b"1 (x) Z 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5")
                    .unwrap()
                    .ended
            );
            for bad in [
                "",
                "1",
                "1 (",
                "1 )(",
                "1 (x)",
                "1 (x) S",
                "x (x) S 1 1 1",
                ")1 (",
            ] {
                assert_eq!(parse(bad.as_bytes()), None, "{bad}");
            }
        }
    }
}

/// Without `/proc` the system's `ps` is asked; nothing here stands on the path of a preflight with a token.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::*;
    use std::process::Command;

    fn told(program: &str, words: &[&str]) -> Option<String> {
        let output = Command::new(program)
            .args(words)
            .env("LC_ALL", "C")
            .output()
            .ok()?;
        let text = output.status.success().then_some(output.stdout)?;
        Some(String::from_utf8_lossy(&text).trim().to_owned())
    }

    pub(super) fn machine() -> String {
        let id = told("sysctl", &["-n", "kern.uuid"]).unwrap_or_default();
        match id.as_str() {
            "" => String::new(),
            id => blake3::hash(id.as_bytes()).to_hex()[..12].to_owned(),
        }
    }

    pub(super) fn boot() -> String {
        told("sysctl", &["-n", "kern.bootsessionuuid"]).unwrap_or_default()
    }

    pub(super) fn pid_namespace() -> u64 {
        0
    }

    pub(super) fn look(pid: u32) -> io::Result<Option<Seen>> {
        let words = ["-o", "ppid=,sess=,stat=,lstart=,ucomm=", "-p", &pid.to_string()];
        Ok(told("ps", &words).and_then(|line| parse(pid, &line)))
    }

    fn parse(pid: u32, line: &str) -> Option<Seen> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [parent, _, state, when @ ..] = words.as_slice() else {
            return None;
        };
        let (when, name) = when.split_at_checked(5)?;
        // The time is only ever compared: its digest does.
        let digest = blake3::hash(when.join(" ").as_bytes());
        let start = digest
            .as_bytes()
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes))?;
        Some(Seen {
            pid,
            parent: parent.parse().ok()?,
            session: 0,
            start,
            name: name.join(" "),
            ended: state.starts_with('Z'),
        })
    }

    pub(super) fn arguments(pid: u32) -> Vec<String> {
        let line = told("ps", &["-o", "command=", "-p", &pid.to_string()]).unwrap_or_default();
        line.split(' ').map(str::to_owned).collect()
    }

    pub(super) fn asked_by_signal(_: u32) -> Life {
        Life::Gone
    }
}
