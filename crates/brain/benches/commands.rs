//! Whole commands against the least that could do their work, in turns; `docs/performance.md` has the bars.
//!
//! `cargo bench -p brain --profile ci --bench commands [-- [--rounds N] [WORD …]]`: only the rows that a word
//! names. Files lie below the target folder, on a real disk.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use store::{Sqlite, SqliteOptions, Store};

#[path = "../tests/suite/fill.rs"]
mod fill;

/// The folders of the repository, and the files in each: 5,000 files.
const FOLDERS: usize = 100;
const FILES: usize = 50;
/// What lies in the big store.
const BIG: fill::Size = fill::Size {
    claims: 10_000,
    locks: 100_000,
    events: 1_000_000,
};
/// Phases of the plan that is checked.
const PHASES: usize = 1_000;

/// The session whose writes are checked.
const SESSION: &str = "sess-20261130-1200-bench";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Everything but `cargo bench` only wants to know that it builds.
    if !words.iter().any(|word| word == "--bench") {
        return;
    }
    let rounds = words
        .iter()
        .position(|word| word == "--rounds")
        .and_then(|at| words.get(at + 1)?.parse().ok());
    let names = words
        .iter()
        .filter(|word| !word.starts_with("--") && word.parse::<usize>().is_err());
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let bench = Bench {
        programs: programs(home.path()),
        home,
        names: names.cloned().collect(),
        rounds,
    };
    println!(
        "{:<62} {:>8} {:>8} {:>8}   µs: min, median, 90 of 100",
        machine(),
        "min",
        "median",
        "p90"
    );
    bench.preflight();
    bench.preflight_of_a_big_store();
    bench.claim_open();
    bench.close();
}

/// Builds the programs that are measured against, with the profile of this one, and copies all of them as an
/// installation does: the kernel keeps a file that was written in one go in larger pieces than a linker's.
fn programs(home: &Path) -> PathBuf {
    let this = std::env::current_exe().expect("this program");
    let target = this.ancestors().nth(2).expect("the folder of the profile");
    let profile = target.file_name().and_then(OsStr::to_str).expect("its name");
    let profile = if profile == "debug" { "dev" } else { profile };
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "-p", "store", "--profile", profile])
        .args(["--example", "empty", "--example", "bare_insert"])
        .status();
    assert!(
        built.expect("cargo").success(),
        "the programs to compare with were not built"
    );
    let programs = home.join("bin");
    fs::create_dir(&programs).expect("a folder");
    let examples = target.join("examples");
    for from in [
        &examples.join("empty"),
        &examples.join("bare_insert"),
        Path::new(env!("CARGO_BIN_EXE_brain")),
    ] {
        fs::copy(from, programs.join(from.file_name().unwrap_or_default())).expect("a copy");
    }
    programs
}

fn machine() -> String {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores, kernel {}, load {load}", kernel.trim())
}

struct Bench {
    home: tempfile::TempDir,
    programs: PathBuf,
    names: Vec<String>,
    rounds: Option<usize>,
}

/// What is measured: prepared outside the time, then started and waited for.
type Act<'a> = Box<dyn Fn() -> Duration + 'a>;

impl Bench {
    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|word| name.contains(word.as_str()))
    }

    /// Lets two acts take turns and shows both, their ratio and the bar.
    fn compare(
        &self,
        name: &str,
        bar: f64,
        rounds: usize,
        (what, act): (&str, Act<'_>),
        (other, against): (&str, Act<'_>),
    ) {
        let rounds = self.rounds.unwrap_or(rounds);
        let (mut mine, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds + 3 {
            let (a, b) = if round % 2 == 0 {
                let a = act();
                (a, against())
            } else {
                let b = against();
                (act(), b)
            };
            // The first rounds fill caches.
            if round >= 3 {
                mine.push(micros(a));
                theirs.push(micros(b));
                ratios.push(micros(a) / micros(b));
            }
        }
        println!("\n{name}, {rounds} rounds");
        show(what, &mut mine);
        show(other, &mut theirs);
        let ratio = at(&mut ratios, 0.5);
        let verdict = if ratio <= bar { "PASS" } else { "MISS" };
        println!(
            "  ratio of each round, median {ratio:.2} (of medians {:.2}); bar {bar:.1}: {verdict}",
            at(&mut mine, 0.5) / at(&mut theirs, 0.5)
        );
    }

    fn peak(&self, name: &str, command: impl Fn() -> Command) {
        if !Path::new("/usr/bin/time").exists() {
            return println!("  peak memory of {name}: /usr/bin/time is not there");
        }
        let note = self.home.path().join("peak");
        let most = (0..3).map(|_| {
            let inner = command();
            let mut outer = Command::new("/usr/bin/time");
            outer
                .args(["-f", "%M", "-o"])
                .arg(&note)
                .arg(inner.get_program())
                .args(inner.get_args());
            outer
                .env_clear()
                .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
            outer.current_dir(inner.get_current_dir().expect("a folder"));
            timed(&mut outer);
            let said = fs::read_to_string(&note).expect("what time says");
            said.lines()
                .next_back()
                .and_then(|line| line.parse::<f64>().ok())
                .expect("a number of KiB")
        });
        let most = most.fold(0.0, f64::max) / 1024.0;
        let verdict = if most <= 12.0 { "PASS" } else { "MISS" };
        println!("  peak memory of {name}: {most:.1} MiB; bar 12: {verdict}");
    }

    fn empty(&self) -> Act<'_> {
        Box::new(|| timed(&mut Command::new(self.programs.join("empty"))))
    }

    fn insert(&self) -> Duration {
        timed(Command::new(self.programs.join("bare_insert")).arg(self.home.path().join("bare.db")))
    }

    /// Makes a brain over a repository with one session.
    fn brain(&self, name: &str) -> Brain {
        let root = self.home.path().join(name);
        repository(&root);
        let program = self.programs.join("brain");
        let brain = Brain {
            program,
            root,
            count: Cell::new(0),
        };
        run(brain.command().arg("init"));
        git(&brain.root, &["add", "brain.yml"]);
        git(&brain.root, &["commit", "-qm", "brain"]);
        brain.open(&["--id", SESSION, "--scope", "src/", "--ttl", "2d"]);
        brain
    }

    fn preflight(&self) {
        if !self.wants("preflight") {
            return;
        }
        let brain = self.brain("small");
        self.compare(
            "preflight check",
            2.4,
            400,
            ("brain preflight check", brain.check(None)),
            ("empty program", self.empty()),
        );
        let token = fs::read_to_string(brain.root.join(".brain/tokens").join(SESSION)).expect("the token");
        self.compare(
            "preflight check with a token",
            2.4,
            400,
            ("brain preflight check", brain.check(Some(token.trim()))),
            ("empty program", self.empty()),
        );
        let mut held = Sqlite::open(&brain.store(), SqliteOptions::default()).expect("the store");
        held.look(&vec![]).expect("a look");
        self.compare(
            "preflight check, store held open",
            2.1,
            400,
            ("brain preflight check", brain.check(None)),
            ("empty program", self.empty()),
        );
        drop(held);
        self.peak("preflight check", || brain.checking(None));
        self.peak("claim open", || {
            brain.opening(&["--scope", "docs/", "--key", "once"])
        });
        let plan = brain.root.join("plan.yml");
        let phase = |n: usize| format!("  - id: p{n}\n    scope: out/p{n}/\n    type: code\n");
        fs::write(
            &plan,
            format!("phases:\n{}", (0..PHASES).map(phase).collect::<String>()),
        )
        .expect("a plan");
        self.peak("plan check of 1,000 phases", || {
            let mut command = brain.command();
            command.args(["plan", "check", "plan.yml"]);
            command
        });
    }

    fn preflight_of_a_big_store(&self) {
        if !self.wants("big") {
            return;
        }
        let (small, big) = (self.brain("little"), self.brain("big"));
        let began = Instant::now();
        fill::fill(&big.store(), SESSION, SqliteOptions::default(), BIG);
        let size = fs::metadata(big.store()).map_or(0, |it| it.len()) >> 20;
        println!(
            "\n  (filling: {:.0} s, {size} MiB)",
            began.elapsed().as_secs_f64()
        );
        self.compare(
            "preflight check, big store",
            1.2,
            400,
            ("10,000 claims, 100,000 locks, 1,000,000 events", big.check(None)),
            ("empty store", small.check(None)),
        );
        self.peak("preflight check, big store", || big.checking(None));
        self.peak("claim open, big store", || {
            big.opening(&["--scope", "docs/", "--key", "once"])
        });
        for words in [
            &["status"][..],
            &["status", "--json"],
            &["claim", "list"],
            &["claim", "list", "--all", "--json"],
            &["lock", "list"],
            &["lock", "list", "--json"],
            &["log"],
            &["log", "--json"],
            &["gate", "list"],
            &["signal", "list"],
            &["doctor"],
            &["claim", "show", "bench-1234"],
            &["stop"],
            &["thaw"],
        ] {
            self.peak(&format!("{}, big store", words.join(" ")), || {
                let mut command = big.command();
                command.args(words);
                command
            });
        }
    }

    fn claim_open(&self) {
        if !self.wants("open") {
            return;
        }
        let brain = self.brain("opening");
        let act = || {
            let n = brain.next();
            timed(&mut brain.opening(&["--scope", &format!("new/n{n}/")]))
        };
        let against = || timed(&mut git_command(&brain.root, &["status", "--porcelain"])) + self.insert();
        self.compare(
            "claim open",
            1.3,
            200,
            ("brain claim open", Box::new(act)),
            ("git status, bare insert", Box::new(against)),
        );
    }

    fn close(&self) {
        if !self.wants("close") {
            return;
        }
        let brain = self.brain("closing");
        let plain = self.home.path().join("plain");
        repository(&plain);
        let file = |n: usize| format!("d{}/f{}.txt", n % FOLDERS, n / FOLDERS % FILES);
        let act = || {
            let n = brain.next();
            let file = file(n);
            let id = brain.open(&["--scope", &file, "--kind", "deploy"]);
            fs::write(brain.root.join(&file), format!("brain {n}\n")).expect("a change");
            timed(brain.command().args(["close", id.trim()]))
        };
        let count = Cell::new(0);
        let against = || {
            let n = count.replace(count.get() + 1);
            let file = file(n);
            fs::write(plain.join(&file), format!("plain {n}\n")).expect("a change");
            [
                &["status", "--porcelain"][..],
                &["write-tree"],
                &["commit", "-qm", "work", "--", &file],
            ]
            .iter()
            .map(|args| timed(&mut git_command(&plain, args)))
            .sum::<Duration>()
                + self.insert()
        };
        self.compare(
            "close at tier 1",
            1.5,
            100,
            ("brain close", Box::new(act)),
            ("git status, write-tree, commit, bare insert", Box::new(against)),
        );
    }
}

/// A brain on the disk.
struct Brain {
    program: PathBuf,
    root: PathBuf,
    count: Cell<usize>,
}

impl Brain {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        clean(&mut command, &self.root);
        command
    }

    fn store(&self) -> PathBuf {
        self.root.join(".brain/brain.db")
    }

    fn next(&self) -> usize {
        self.count.replace(self.count.get() + 1)
    }

    fn opening(&self, args: &[&str]) -> Command {
        let mut command = self.command();
        command.args(["claim", "open", "--task", "a bench"]).args(args);
        command
    }

    fn open(&self, args: &[&str]) -> String {
        String::from_utf8(output(&mut self.opening(args))).expect("an id")
    }

    fn checking(&self, token: Option<&str>) -> Command {
        let mut command = self.command();
        command.args(["preflight", "check", SESSION, "src/main.rs"]);
        command.envs(token.map(|token| ("BRAIN_TOKEN", token)));
        command
    }

    fn check<'b>(&'b self, token: Option<&'b str>) -> Act<'b> {
        Box::new(move || timed(&mut self.checking(token)))
    }
}

/// Makes a repository of many small files.
fn repository(root: &Path) {
    for folder in 0..FOLDERS {
        let folder = root.join(format!("d{folder}"));
        fs::create_dir_all(&folder).expect("a folder");
        (0..FILES)
            .for_each(|n| fs::write(folder.join(format!("f{n}.txt")), format!("{n}\n")).expect("a file"));
    }
    fs::create_dir_all(root.join("src")).expect("a folder");
    fs::write(root.join("src/main.rs"), "fn main() {}\n").expect("a file");
    git(root, &["init", "-q", "-b", "main"]);
    for (key, value) in [
        ("user.name", "Bench"),
        ("user.email", "bench@example.org"),
        ("gc.auto", "0"),
    ] {
        git(root, &["config", key, value]);
    }
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "files"]);
    git(root, &["gc", "-q"]);
}

fn git_command(root: &Path, args: &[&str]) -> Command {
    // By its path: a bare name beside a PATH of its own is started by a fork, which copies the tables of all the
    // memory that this bench holds.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join("git"));
    let mut command = Command::new(places.find(|git| git.is_file()).expect("git"));
    clean(&mut command, root);
    command.args(args);
    command
}

fn git(root: &Path, args: &[&str]) {
    run(&mut git_command(root, args));
}

/// Starts in a folder with nothing inherited but where programs are.
fn clean(command: &mut Command, root: &Path) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", root)
        .current_dir(root);
}

fn run(command: &mut Command) {
    drop(output(command));
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.stdin(Stdio::null()).output().expect("a program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output.stdout
}

/// From the start to the end of a process.
fn timed(command: &mut Command) -> Duration {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let began = Instant::now();
    let ended = command
        .spawn()
        .and_then(|mut child| child.wait())
        .expect("a program");
    let took = began.elapsed();
    assert!(ended.success(), "{command:?}: {ended}");
    took
}

fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

fn at(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

fn show(what: &str, values: &mut [f64]) {
    println!(
        "  {what:<60} {:>8.0} {:>8.0} {:>8.0}",
        at(values, 0.0),
        at(values, 0.5),
        at(values, 0.9)
    );
}
