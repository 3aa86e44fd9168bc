//! Other processes: this test binary again, told by its environment what to be.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use protocol::facts::caller::Caller;
use store::{Sqlite, SqliteOptions, Store};

/// What a child is, and on which store.
const ROLE: &str = "STORE_CHILD_ROLE";
const PLACE: &str = "STORE_CHILD_PLACE";
const NAME: &str = "STORE_CHILD_NAME";

/// A process that works on a store and says one line at a time.
pub struct Worker {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Worker {
    /// Starts one. `before` may change the command: its user, its limits.
    pub fn start_with(role: &str, place: &Path, name: &str, before: impl FnOnce(&mut Command)) -> Worker {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "child::other_processes_work_here",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, role)
            .env(PLACE, place)
            .env(NAME, name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        before(&mut command);
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // What the test harness prints besides is no answer.
                if let Some((_, said)) = line.split_once('@')
                    && send.send(said.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Worker { child, stdin, lines }
    }

    pub fn start(role: &str, place: &Path, name: &str) -> Worker {
        Worker::start_with(role, place, name, |_| {})
    }

    /// Tells it a line.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Hears its next line.
    pub fn hear(&self) -> String {
        self.lines
            .recv_timeout(Duration::from_secs(60))
            .expect("a worker says something")
    }

    /// Lets it end by itself.
    pub fn end(mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// Kills it without a word.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Says a line to the one who started this process, in one write.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("@{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

pub fn ana() -> Caller {
    Caller::plain("ana", "box")
}

pub fn open(path: &Path) -> Sqlite {
    Sqlite::open(path, SqliteOptions::default()).unwrap()
}

/// An ordinary test run passes here; a process that was told its role works.
#[test]
fn other_processes_work_here() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let place = PathBuf::from(std::env::var_os(PLACE).unwrap());
    let name = std::env::var(NAME).unwrap();
    match role.as_str() {
        "racer" => crate::race::racer(&place, &name),
        "writer" => crate::kill::writer(&place, &name),
        "committer" => crate::fairness::committer(&place, &name),
        "reader" => crate::fairness::reader(&place),
        "prober" => crate::sqlite::prober(&place, &name),
        other => panic!("no such role: {other}"),
    }
}

/// Every line that is told to this process.
pub fn told() -> impl Iterator<Item = String> {
    std::io::stdin().lines().map_while(Result::ok)
}

/// A store of its own in a folder of its own.
pub fn fresh() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    Sqlite::create(&path, SqliteOptions::default()).unwrap();
    (folder, path)
}

/// A store where the disk's other users do not count: what is measured is who gets the turn, and when.
pub fn fresh_in_memory() -> (tempfile::TempDir, PathBuf) {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    };
    let path = folder.path().join("store.db");
    Sqlite::create(&path, SqliteOptions::default()).unwrap();
    (folder, path)
}

/// The journal's head.
pub fn head(store: &mut dyn Store) -> u64 {
    store.look(&Vec::new()).unwrap().0.head
}
