//! A folder with a brain in a repository, in which plans are run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use brain::config::Config;
use brain::human::{Demo, MacKey};
use serde_json::Value;

/// Longer than anything here takes on a machine in distress.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct House {
    _folder: tempfile::TempDir,
    /// What lies beside the brain.
    pub top: PathBuf,
    /// The brain's root.
    pub root: PathBuf,
}

/// How a program ended, and what it said.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl House {
    /// A brain in a repository with one commit on `main`; gates in it are answered by a key of its own.
    pub fn new() -> House {
        House::with("")
    }

    /// The same with these lines in its configuration.
    pub fn with(config: &str) -> House {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        let root = top.join("repo");
        let house = House {
            _folder: folder,
            top,
            root,
        };
        house.repository("");
        house.write("README.md", "hello\n");
        house.write("tests/green.sh", "echo 1..1\necho ok 1\n");
        house.write("tests/red.sh", "echo 1..1\necho not ok 1\nexit 1\n");
        let made = house.brain(&["init"]);
        assert_eq!(made.code, 0, "{}", made.err);
        if !config.is_empty() {
            let written = fs::read_to_string(house.root.join("brain.yml")).unwrap();
            house.write("brain.yml", &format!("{written}\n{config}\n"));
        }
        house.commit_all("", "first");
        let key = MacKey::open(&house.top.join("state/brain/mac.key"), &house.root).unwrap();
        let id = Config::load(&house.root).unwrap().brain.unwrap_or_default();
        Demo::make(&house.root, &id, &key).unwrap();
        house
    }

    /// Makes a repository below the root.
    pub fn repository(&self, at: &str) {
        let at = self.root.join(at);
        fs::create_dir_all(&at).unwrap();
        self.git_in(&at, &["init", "-q", "-b", "main"]);
        self.git_in(&at, &["config", "user.name", "Ana"]);
        self.git_in(&at, &["config", "user.email", "ana@example.org"]);
    }

    pub fn commit_all(&self, at: &str, text: &str) {
        let at = self.root.join(at);
        self.git_in(&at, &["add", "-A"]);
        self.git_in(&at, &["commit", "-q", "-m", text]);
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).symlink_metadata().is_ok()
    }

    /// A file beside the brain, to which agents write what a test wants to know.
    pub fn note(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    pub fn notes(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.note(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Writes the plan `p`, on `theme/p`, in swarm mode; `TOP` stands for the folder beside the brain.
    pub fn plan(&self, phases: &str) {
        self.write(
            "p.yml",
            &self.filled(&format!(
                "name: p\nbranch: theme/p\nmode: swarm\nphases:\n{phases}"
            )),
        );
    }

    pub fn filled(&self, text: &str) -> String {
        text.replace("TOP", &self.top.display().to_string())
            .replace("BRAIN ", &format!("{} ", program()))
    }

    /// A program that knows nothing of who started the tests.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.top.join("home"))
            .env("XDG_STATE_HOME", self.top.join("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(&self.root)
            .stdin(Stdio::null());
        command
    }

    pub fn program(&self, args: &[&str]) -> Command {
        let mut command = self.command(&program());
        command.args(args);
        command
    }

    pub fn brain(&self, args: &[&str]) -> Said {
        said(self.program(args).output().unwrap())
    }

    /// Runs `brain` with `--json` and reads what it answers.
    pub fn json(&self, args: &[&str]) -> Value {
        let said = self.brain(&[args, &["--json"]].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", said.out, said.err))
    }

    /// Starts `brain` and lets it run; what it says goes into files beside the brain.
    pub fn start(&self, args: &[&str]) -> Running<'_> {
        let log = self
            .top
            .join(format!("said-{}", args.join("-").replace('/', "-")));
        let (out, err) = (
            fs::File::create(log.with_extension("out")),
            fs::File::create(log.with_extension("err")),
        );
        let child = self
            .program(args)
            .stdout(out.unwrap())
            .stderr(err.unwrap())
            .spawn()
            .unwrap();
        Running {
            house: self,
            child,
            log,
            reaped: false,
        }
    }

    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.root, args)
    }

    pub fn git_in(&self, at: &Path, args: &[&str]) -> String {
        let output = self.command("git").current_dir(at).args(args).output().unwrap();
        let said = said(output);
        assert_eq!(said.code, 0, "git {args:?}: {}", said.err);
        said.out.trim_end().to_owned()
    }

    /// What the programs that run beside the test have said, and what the journal says.
    fn all_said(&self) -> String {
        let files = fs::read_dir(&self.top)
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let said = files.filter(|path| path.extension().is_some_and(|end| end == "err"));
        let said: String = said
            .map(|path| fs::read_to_string(path).unwrap_or_default())
            .collect();
        said + &self.brain(&["status"]).out + &self.brain(&["log"]).out
    }

    /// Waits until something is so.
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "waited in vain until {what}\n{}",
                self.all_said()
            );
            thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits for a gate that is open; gives its id and kind.
    pub fn gate(&self) -> (String, String) {
        self.until("a gate waits", || {
            let gates = self.json(&["gate", "list"]);
            let gate = gates["gates"].get(0)?;
            Some((
                gate["gate"].as_str()?.to_owned(),
                gate["kind"].as_str()?.to_owned(),
            ))
        })
    }

    pub fn answer(&self, gate: &str, choice: &str) {
        let said = self.brain(&["gate", "answer", gate, choice]);
        assert_eq!(said.code, 0, "{}", said.err);
    }

    /// Waits for a gate of this kind and answers it.
    pub fn settle(&self, kind: &str, choice: &str) -> String {
        let (gate, found) = self.gate();
        let told = || self.brain(&["gate", "show", &gate]).out + &self.brain(&["log"]).out;
        assert_eq!(found, kind, "{}", told());
        let shown = self.brain(&["gate", "show", &gate]).out;
        self.answer(&gate, choice);
        shown
    }

    /// Waits until agents have noted so many lines.
    pub fn noted(&self, name: &str, lines: usize) -> Vec<String> {
        self.until(&format!("{name} has {lines} lines"), || {
            Some(self.notes(name)).filter(|notes| notes.len() >= lines)
        })
    }

    /// The claim that a phase works under.
    pub fn claim_of(&self, phase: &str) -> String {
        self.until(&format!("phase {phase} has a claim"), || {
            let status = self.json(&["run", "status"]);
            let phases = status["run"]["phases"].as_array()?.clone();
            let it = phases.into_iter().find(|it| it["phase"] == phase)?;
            Some(it["attempts"].as_array()?.last()?["claim"].as_str()?.to_owned())
        })
    }

    /// How the phases of the last run stand: `1 accepted ok`.
    pub fn standing(&self) -> Vec<String> {
        let status = self.json(&["run", "status"]);
        let phases = status["run"]["phases"].as_array().cloned().unwrap_or_default();
        phases
            .iter()
            .map(|it| {
                let word = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
                format!("{} {} {}", word("phase"), word("state"), word("outcome"))
                    .trim_end()
                    .to_owned()
            })
            .collect()
    }

    /// The worktrees and processes that are left.
    pub fn worktrees(&self) -> usize {
        self.git(&["worktree", "list"]).lines().count() - 1
    }
}

fn said(output: Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A program that runs beside the test; what is left of it at the end of the test is ended.
pub struct Running<'h> {
    house: &'h House,
    pub child: Child,
    log: PathBuf,
    reaped: bool,
}

impl Running<'_> {
    pub fn err(&self) -> String {
        fs::read_to_string(self.log.with_extension("err")).unwrap_or_default()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        let house = self.house;
        let status = house.until("the program ends", || self.child.try_wait().unwrap());
        self.reaped = true;
        Said {
            code: status.code().unwrap_or(-1),
            out: fs::read_to_string(self.log.with_extension("out")).unwrap(),
            err: self.err(),
        }
    }

    /// Kills it as nobody can prevent.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reaped = true;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // A test that failed may leave agents; each has the folder's name in its environment.
        let mark = self.top.display().to_string();
        for process in processes(&mark) {
            if let Some(pid) = rustix::process::Pid::from_raw(process) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// The program under test; `BRAIN_TEST_PROGRAM` names another, for a long test beside which one builds on.
fn program() -> String {
    std::env::var("BRAIN_TEST_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_brain").to_owned())
}

/// The processes that have a folder in their environment.
pub fn processes(mark: &str) -> Vec<i32> {
    let own = std::process::id() as i32;
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folders.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let marked = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(mark)
    };
    pids.filter(|pid| *pid != own).filter(marked).collect()
}
