//! Starts git: a clean environment, bounded waiting for locks, and its failures by name.

use crate::door::Door;
use crate::{Error, Kind};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Variables of git's that say where the user's configuration and programs are. All others are
/// withheld: they point an inherited git at somebody else's repository, index or objects.
const KEPT: [&str; 4] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
];

/// What the user may have set for git on the network and for a name; kept only in the user's own checkout.
const KEPT_FOR_USER: [&str; 11] = [
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_ASKPASS",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_NO_VERIFY",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

/// How long to sleep between two looks at a lock that somebody else holds.
const LOCK_PAUSE: Duration = Duration::from_millis(40);

/// How long to sleep between two looks at a turn of our own: it is held for one start of git.
const TURN_PAUSE: Duration = Duration::from_millis(10);

/// How long the turn of the worktrees is waited for at least: every satellite of a run may be before us.
const WORKTREE_TURN: Duration = Duration::from_secs(60);

/// One call of git that is being put together.
pub(crate) struct Git<'d> {
    door: &'d Door,
    doing: &'static str,
    command: Command,
    input: Option<Vec<u8>>,
}

impl Door {
    /// Begins a call of git through this door.
    pub(crate) fn git(&self, doing: &'static str) -> Git<'_> {
        Git::new(self, doing)
    }

    /// Takes the turn to write this checkout's index, until the file is dropped or the process dies.
    ///
    /// `git commit <paths>` reads the index before it locks it: of two at once, one would drop what the
    /// other has just written. Strangers' commits are not held up by this; ours wait for each other.
    pub(crate) fn take_turn(&self, doing: &'static str) -> Result<File, Error> {
        let path = self.repository().git_dir().join("brain-turn");
        self.turn_at(doing, path, self.patience())
    }

    /// Takes the turn to make or remove a worktree of this repository, until the file is dropped or the
    /// process dies.
    ///
    /// Git writes what it notes of a worktree file by file, and whoever lists worktrees meanwhile fails on one
    /// that is half made, which `git worktree add` and `remove` do themselves.
    pub(crate) fn take_worktree_turn(&self, doing: &'static str) -> Result<File, Error> {
        let path = self.repository().common_dir().join("brain-worktrees");
        self.turn_at(doing, path, WORKTREE_TURN.max(self.patience()))
    }

    fn turn_at(&self, doing: &'static str, path: PathBuf, patience: Duration) -> Result<File, Error> {
        let open = File::options().create(true).append(true).open(&path);
        let file = open.map_err(|e| Error::io(doing, &path, e))?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(TURN_PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(self.error(doing, Kind::Locked { path, age: None }));
                }
                Err(TryLockError::Error(e)) => return Err(Error::io(doing, &path, e)),
            }
        }
    }
}

impl<'d> Git<'d> {
    pub fn new(door: &'d Door, doing: &'static str) -> Git<'d> {
        let environment = door.base_environment();
        let mut command = Command::new(program(&environment));
        command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let for_user = |name: &str| !door.is_coordinator() && KEPT_FOR_USER.contains(&name);
        for (name, value) in environment {
            let text = name.to_string_lossy();
            if text.starts_with("GIT_") && !KEPT.contains(&&*text) && !for_user(&text) {
                continue;
            }
            command.env(name, value);
        }
        command.envs([
            ("LC_ALL", "C"),
            ("LANGUAGE", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"), // a replaced object would hide a change from the audit
            ("GIT_EDITOR", ":"),
        ]);
        command.args(["--no-pager", "--literal-pathspecs"]);
        command.current_dir(door.repository().folder());
        door.prepare(&mut command);
        Git {
            door,
            doing,
            command,
            input: None,
        }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Keeps the repository's hooks and its file monitor from running. Comes before any argument.
    pub fn without_hooks(mut self) -> Self {
        self.command
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
        self
    }

    /// Runs on the directory that all checkouts share, without hooks: for what the coordinator's private
    /// directory cannot know, which is the list of worktrees.
    pub fn on_shared_dir(mut self) -> Self {
        let shared = self.door.repository().common_dir();
        self.command.env("GIT_DIR", shared).current_dir(shared); // the checkout itself may be going away
        self.command
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE");
        self.without_hooks()
    }

    pub fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    /// Gives paths on standard input, each ended by NUL.
    pub fn input_paths<P: AsRef<Path>>(self, paths: impl IntoIterator<Item = P>) -> Self {
        let mut bytes = Vec::new();
        for path in paths {
            bytes.extend_from_slice(path.as_ref().as_os_str().as_bytes());
            bytes.push(0);
        }
        self.input(bytes)
    }

    /// Runs it, and waits for a lock that somebody else holds; any exit code is an answer.
    pub fn output(self) -> Result<Output, Error> {
        self.output_unless(|| false)
    }

    /// Does the same, but takes a failure for an answer, lock or not, when `answered` says so.
    pub fn output_unless(mut self, answered: impl Fn() -> bool) -> Result<Output, Error> {
        let deadline = Instant::now() + self.door.patience();
        loop {
            let output = self.once()?;
            let failed = !output.status.success() && !answered();
            let held = failed.then(|| held_lock(&output.stderr)).flatten();
            let Some(lock) = held else { return Ok(output) };
            if Instant::now() >= deadline {
                let age = lock_age(&lock);
                let kind = Kind::Locked { path: lock, age };
                return Err(self.error(kind).with_stderr(&output.stderr));
            }
            pause();
        }
    }

    /// Runs it and returns what it printed; a failure is named as well as git's words allow.
    pub fn run(self) -> Result<Vec<u8>, Error> {
        let (doing, target) = (self.doing, self.door.repository().folder().to_owned());
        let output = self.output()?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(failure(doing, &target, &output)),
        }
    }

    fn once(&mut self) -> Result<Output, Error> {
        let Some(input) = &self.input else {
            return self.command.output().map_err(|e| self.spawn_error(e));
        };
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|e| self.spawn_error(e))?;
        let pipe = child.stdin.take();
        // Git may answer before it has read all: reading and writing go on side by side.
        let output = thread::scope(|scope| {
            scope.spawn(move || pipe.map(|mut pipe| pipe.write_all(input)));
            child.wait_with_output()
        });
        output.map_err(|e| Error::io(self.doing, self.door.repository().folder(), e))
    }

    fn spawn_error(&self, e: io::Error) -> Error {
        unstarted(self.doing, self.door.repository().folder(), e)
    }

    fn error(&self, kind: Kind) -> Error {
        Error::new(self.doing, self.door.repository().folder(), kind)
    }
}

/// Finds git where the environment's `PATH` has it.
///
/// Named by its bare name, a program whose environment is set could only be started by a fork, which copies
/// the page tables of a driver with fifty threads each time; by its path it is spawned without. Entries that
/// are relative would lead into the repository and are passed over.
fn program(environment: &[(OsString, OsString)]) -> PathBuf {
    let path = environment.iter().find(|(name, _)| name == "PATH");
    path.into_iter()
        .flat_map(|(_, value)| std::env::split_paths(value))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("git"))
        .find(|file| is_executable(file))
        .unwrap_or_else(|| PathBuf::from("git"))
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A git that is asked about itself and its user, in whatever folder.
pub(crate) fn bare(folder: &Path) -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("GIT_") && !KEPT.contains(&&*text) && !KEPT_FOR_USER.contains(&&*text) {
            command.env_remove(&name);
        }
    }
    command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .current_dir(folder);
    command
}

/// Names what kept git from starting.
pub(crate) fn unstarted(doing: &'static str, folder: &Path, e: io::Error) -> Error {
    let kind = match e.kind() {
        io::ErrorKind::NotFound if folder.is_dir() => Kind::Missing,
        io::ErrorKind::NotFound => Kind::NotARepository,
        _ => Kind::Io(e),
    };
    Error::new(doing, folder, kind)
}

/// Names a failure by what git said.
pub(crate) fn failure(doing: &'static str, target: &Path, output: &Output) -> Error {
    let said = String::from_utf8_lossy(&output.stderr);
    let says = |words: &str| said.contains(words);
    let kind = if says("not a git repository") || says("dubious ownership") {
        Kind::NotARepository
    } else if says("Please tell me who you are") || says("empty ident name") || says("auto-detect") {
        Kind::NoIdentity
    } else if says("failed to sign the data") || says("failed to write commit object") && says("sign") {
        Kind::KeyRefused
    } else {
        Kind::Failed {
            status: output.status.code(),
        }
    };
    Error::new(doing, target, kind).with_stderr(&output.stderr)
}

/// Finds the lock file that git says somebody holds: `Unable to create '….lock': File exists.`
fn held_lock(stderr: &[u8]) -> Option<PathBuf> {
    const BEFORE: &[u8] = b"nable to create '";
    const AFTER: &[u8] = b".lock': File exists";
    let start = find(stderr, BEFORE)? + BEFORE.len();
    let length = find(&stderr[start..], AFTER)? + ".lock".len();
    Some(PathBuf::from(OsStr::from_bytes(&stderr[start..start + length])))
}

fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|window| window == needle)
}

fn lock_age(lock: &Path) -> Option<Duration> {
    SystemTime::now()
        .duration_since(lock.symlink_metadata().ok()?.modified().ok()?)
        .ok()
}

/// Sleeps for a moment before the next look at a lock.
pub(crate) fn pause() {
    thread::sleep(LOCK_PAUSE + jitter());
}

/// A few milliseconds that differ between processes, so that waiters do not march in step.
fn jitter() -> Duration {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Duration::from_micros(u64::from(now.subsec_nanos() ^ std::process::id().wrapping_mul(0x9e37)) % 10_000)
}

/// Splits what git printed with `-z`: each piece is ended by NUL.
pub(crate) fn split_nul(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split_inclusive(|b| *b == 0)
        .map(|piece| piece.strip_suffix(b"\0").unwrap_or(piece))
}

pub(crate) fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
