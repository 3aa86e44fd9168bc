//! Who is calling: found from what surrounds the process, never from an option (protocol, section 5).
//!
//! What stands in the environment costs nothing and comes first; the walk through the processes is done only
//! when a rule needs it. A valid token needs none.

mod hosts;
mod process;
#[cfg(feature = "testkit")]
mod testkit;

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fmt;
use std::fs;

use protocol::facts::caller::{Caller, Nature, Process, Proof, TokenDigest};

use process::{Realm, Seen};
use runner::token::Token;

pub use hosts::{HOSTS, Host};
pub use process::{Life, life};

/// The variable in which a launched child has its session's token.
pub const TOKEN: &str = "BRAIN_TOKEN";
/// The variable in which a launched child has the attempt that it works on.
pub const ATTEMPT: &str = "BRAIN_ATTEMPT";

/// Reads a variable of the environment.
pub type Variables = fn(&str) -> Option<OsString>;

/// Finds out who is calling, as much of it as is asked for.
pub struct Probe {
    variables: Variables,
    owner_pid: Option<u32>,
    attempt: Option<Process>,
    walked: OnceCell<Line>,
}

/// Says why the process that was named cannot own anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerError {
    /// No such process runs here.
    Gone(u32),
    /// The first process of a machine never ends, and everyone descends from it.
    Everyone(u32),
}

/// The chain of parents, and where in it a host stands.
#[derive(Debug)]
struct Line {
    realm: Realm,
    chain: Vec<Process>,
    /// The nearest known host: its place in the chain.
    host: Option<(usize, &'static Host)>,
}

/// Chains are short; a circle, which only a torn `/proc` could show, ends here.
const CHAIN_MAX: usize = 64;

impl Default for Probe {
    fn default() -> Self {
        Self::new()
    }
}

impl Probe {
    /// Looks at this process.
    pub fn new() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    /// Looks at this process in another environment.
    pub fn of(variables: Variables) -> Self {
        Self {
            variables,
            owner_pid: None,
            attempt: None,
            walked: OnceCell::new(),
        }
    }

    /// Takes the process that `--owner-pid` names for the owner.
    #[must_use]
    pub fn owned_by(mut self, pid: u32) -> Self {
        self.owner_pid = Some(pid);
        self
    }

    /// Takes the process that the runner recorded for [`Probe::attempt`] for one that it started.
    #[must_use]
    pub fn started_as(mut self, process: Process) -> Self {
        self.attempt = Some(process);
        self
    }

    /// Returns the attempt that the environment names: a hint where to look, and no proof.
    pub fn attempt(&self) -> Option<String> {
        self.text(ATTEMPT)
    }

    /// Returns the digest of the session token in the environment.
    pub fn token(&self) -> Option<TokenDigest> {
        Token::read(&self.text(TOKEN)?).map(|token| token.digest())
    }

    /// Returns the session id that the agent's host gave.
    pub fn host_session(&self) -> Option<String> {
        HOSTS
            .iter()
            .filter_map(|host| host.session)
            .find_map(|name| self.text(name))
    }

    /// Tells what the environment alone can tell: enough for whoever has a token that the store knows.
    ///
    /// Its chain is empty, so it owns by token or host session only.
    pub fn near(&self) -> Caller {
        #[cfg(feature = "testkit")]
        if let Some(caller) = testkit::caller(self) {
            return caller;
        }
        Caller {
            user: user(),
            host: process::host(),
            ..self.unnamed()
        }
    }

    /// Tells what [`Probe::near`] does but for the names of user and machine, which only what is written bears:
    /// enough to look.
    pub fn unnamed(&self) -> Caller {
        #[cfg(feature = "testkit")]
        if let Some(caller) = testkit::caller(self) {
            return caller;
        }
        let mark = self.mark();
        let token = self.token();
        let nature = match (&token, &mark) {
            (Some(_), _) => Nature::Agent {
                by: "a session token in its environment".to_owned(),
            },
            (None, Some((name, _))) => Nature::Agent {
                by: format!("the mark {name} in its environment"),
            },
            (None, None) => Nature::Plain,
        };
        Caller {
            nature,
            token,
            host_session: self.host_session(),
            chain: Vec::new(),
            owner: None,
            user: String::new(),
            host: String::new(),
            agent: mark.map(|(_, agent)| agent),
        }
    }

    /// Tells all: what [`Probe::near`] does, the chain of parents, and the owner process.
    ///
    /// # Errors
    ///
    /// [`OwnerError`] when `--owner-pid` names no process that can own.
    pub fn whole(&self) -> Result<Caller, OwnerError> {
        let mut caller = self.near();
        #[cfg(feature = "testkit")]
        if testkit::caller(self).is_some() {
            return Ok(caller);
        }
        let line = self.walked.get_or_init(|| Line::walk(std::process::id()));
        caller.chain.clone_from(&line.chain);
        if let Some((at, host)) = line.host {
            caller.agent.get_or_insert_with(|| host.agent.to_owned());
            if caller.nature == Nature::Plain {
                caller.nature = Nature::Agent {
                    by: format!("its descent from process {} ({})", line.chain[at].pid, host.agent),
                };
            }
        }
        caller.owner = match self.owner_pid {
            Some(pid) => Some(line.named(pid)?),
            None => line.owner(self.attempt.as_ref()).cloned(),
        };
        Ok(caller)
    }

    /// Finds the first mark of a host, and what its agent is called.
    fn mark(&self) -> Option<(&'static str, String)> {
        let is_set = |name: &&'static str| self.text(name).is_some();
        let known = HOSTS.iter().find_map(|host| {
            Some((
                *host.marks.iter().find(|name| is_set(name))?,
                host.agent.to_owned(),
            ))
        });
        known.or_else(|| {
            let value = self.text(hosts::ANY_AGENT)?;
            let name = value.split('_').next().unwrap_or(&value);
            Some((hosts::ANY_AGENT, name.to_owned()))
        })
    }

    fn text(&self, name: &str) -> Option<String> {
        let value = (self.variables)(name)?;
        (!value.is_empty()).then(|| value.to_string_lossy().into_owned())
    }
}

/// Makes a human of a caller that is plain; an agent stays one, whatever it can sign, but in a demo.
pub fn proven(mut caller: Caller, proof: Proof) -> Caller {
    if caller.nature == Nature::Plain || proof == Proof::Demo {
        caller.nature = Nature::Human(proof);
    }
    caller
}

impl Line {
    /// Walks up from a process. Whoever lost its parents is still known by the leader of its session, when that
    /// is a host or below one.
    fn walk(pid: u32) -> Self {
        let mut line = Self {
            realm: Realm::here(),
            chain: Vec::with_capacity(8),
            host: None,
        };
        let session = line.climb(pid);
        if line.host.is_none() && session > 1 && line.chain.iter().all(|process| process.pid != session) {
            let known = line.chain.len();
            line.climb(session);
            if line.host.is_none() {
                line.chain.truncate(known);
            }
        }
        line
    }

    /// Adds a process and its parents; gives the session of the first.
    fn climb(&mut self, first: u32) -> u32 {
        let (mut pid, mut child_start, mut session) = (first, u64::MAX, 0);
        while pid != 0 && self.chain.len() < CHAIN_MAX {
            let Ok(Some(seen)) = process::look(pid) else {
                break;
            };
            // A parent is older: a younger one has the number of one that ended in between.
            if cfg!(target_os = "linux") && seen.start > child_start {
                break;
            }
            let host = recognise(&seen);
            // Everyone descends from the first process; only a container's can be an agent.
            if pid == 1 && host.is_none() {
                break;
            }
            if pid == first {
                session = seen.session;
            }
            if let (None, Some(host)) = (self.host, host) {
                self.host = Some((self.chain.len(), host));
            }
            self.chain.push(self.realm.process(&seen));
            (pid, child_start) = (seen.parent, seen.start);
        }
        session
    }

    /// Returns the nearest of the chain that is a host or was started by the runner.
    fn owner(&self, attempt: Option<&Process>) -> Option<&Process> {
        let host = self.host.map(|(at, _)| at);
        let started = self.chain.iter().position(|process| Some(process) == attempt);
        let at = host.into_iter().chain(started).min()?;
        self.chain.get(at)
    }

    fn named(&self, pid: u32) -> Result<Process, OwnerError> {
        if let Some(process) = self.chain.iter().find(|process| process.pid == pid) {
            return Ok(process.clone());
        }
        match process::look(pid) {
            _ if pid <= 1 => Err(OwnerError::Everyone(pid)),
            Ok(Some(seen)) if !seen.ended => Ok(self.realm.process(&seen)),
            _ => Err(OwnerError::Gone(pid)),
        }
    }
}

fn recognise(seen: &Seen) -> Option<&'static Host> {
    hosts::recognise(&seen.name, || process::arguments(seen.pid))
}

/// Returns the name of the user that this process runs as; the environment has no say in it.
fn user() -> String {
    let id = rustix::process::getuid().as_raw().to_string();
    let known = fs::read_to_string("/etc/passwd").ok().and_then(|users| {
        let of = |line: &str| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == id).then(|| name.to_owned())
        };
        users.lines().find_map(of)
    });
    known.or_else(asked_user).unwrap_or_else(|| format!("uid-{id}"))
}

/// Asks the system for a user that stands in no file of its own.
fn asked_user() -> Option<String> {
    let output = std::process::Command::new("id").arg("-un").output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !name.is_empty()).then_some(name)
}

impl fmt::Display for OwnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(pid) => write!(
                f,
                "--owner-pid {pid}: no such process runs here; name one that lives as long as the work, such as $$"
            ),
            Self::Everyone(pid) => write!(
                f,
                "--owner-pid {pid}: everyone descends from this process; name the one that does the work, such as $$"
            ),
        }
    }
}

impl std::error::Error for OwnerError {}

#[cfg(test)]
mod tests {
    use super::hosts::recognise;

    #[test]
    fn a_host_is_known_by_its_program_or_its_script() {
        let agent = |name: &str, line: &str| {
            let words = || line.split(' ').map(str::to_owned).collect();
            recognise(name, words).map(|host| host.agent)
        };
        assert_eq!(agent("claude", ""), Some("claude-code"));
        assert_eq!(agent("cursor-agent", ""), Some("cursor"));
        let npm = "node --no-warnings /usr/lib/node_modules/@google/gemini-cli/dist/index.js -p hi";
        assert_eq!(agent("node", npm), Some("gemini"));
        assert_eq!(agent("MainThread", "node /home/a/.npm/bin/codex"), Some("codex"));
        assert_eq!(
            agent("python3.12", "/usr/bin/python3.12 /home/a/.local/bin/aider"),
            Some("aider")
        );
        // Not what is only mentioned, and no editor.
        assert_eq!(agent("node", "node server.js /x/@google/gemini-cli/y"), None);
        assert_eq!(agent("bash", "bash /usr/bin/claude"), None);
        assert_eq!(agent("cursor", ""), None);
        assert_eq!(agent("code", ""), None);
    }
}
