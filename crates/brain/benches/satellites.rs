//! Satellites side by side against a script that does the same git work; `docs/performance.md` has the bar.
//!
//! `cargo bench -p brain --profile ci --bench satellites [-- [--rounds N] [--phases N] [--in FOLDER]]`: each
//! satellite writes a file and sleeps a second. The script makes a worktree for each, commits in it and merges it into a
//! branch under a lock, all at once. Then the cost of one phase of a run of many, early and late.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many work side by side.
const SATELLITES: usize = 50;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Everything but `cargo bench` only wants to know that it builds.
    if !words.iter().any(|word| word == "--bench") {
        return;
    }
    let number = |name: &str, otherwise: usize| {
        let at = words.iter().position(|word| word == name);
        at.and_then(|at| words.get(at + 1)?.parse().ok())
            .unwrap_or(otherwise)
    };
    let at = words.iter().position(|word| word == "--in");
    let folder = at.and_then(|at| words.get(at + 1)).map(String::as_str);
    let folder = Path::new(folder.unwrap_or(env!("CARGO_TARGET_TMPDIR")));
    let mut ratios = Vec::new();
    // Nothing is removed until the end: a file system may be slow at making files where many were just removed.
    let mut places = Vec::new();
    for round in 0..number("--rounds", 3) {
        let (by_script, by_brain) = (Place::new(folder), Place::new(folder));
        let script = script(&by_script);
        let brain = satellites(&by_brain);
        places.extend([by_script, by_brain]);
        let ratio = brain.as_secs_f64() / script.as_secs_f64();
        println!("round {round}: {SATELLITES} by script {script:.2?}, by brain {brain:.2?}: {ratio:.2}");
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    if let Some(median) = ratios.get(ratios.len() / 2) {
        println!("median {median:.2}, bar 1.30");
    }
    let phases = number("--phases", 0);
    if phases > 0 {
        many(&Place::new(folder), phases);
    }
}

struct Place {
    _folder: tempfile::TempDir,
    top: PathBuf,
    repo: PathBuf,
}

impl Place {
    fn new(folder: &Path) -> Place {
        let folder = tempfile::tempdir_in(folder).expect("a folder");
        let top = fs::canonicalize(folder.path()).expect("a folder");
        let repo = top.join("repo");
        fs::create_dir(&repo).expect("a folder");
        let place = Place {
            _folder: folder,
            top,
            repo,
        };
        place.git(&["init", "-q", "-b", "main"]);
        place.git(&["config", "user.name", "Ana"]);
        place.git(&["config", "user.email", "ana@example.org"]);
        for n in 0..200 {
            let at = place.repo.join(format!("src/{}/f{n}", n % 20));
            fs::create_dir_all(at.parent().expect("a folder")).expect("a folder");
            fs::write(at, format!("{n}\n")).expect("a file");
        }
        place.git(&["add", "-A"]);
        place.git(&["commit", "-q", "-m", "first"]);
        place
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.top.join("home"))
            .env("XDG_STATE_HOME", self.top.join("state"))
            .current_dir(&self.repo)
            .stdin(Stdio::null());
        command
    }

    fn git(&self, args: &[&str]) {
        let status = self.command("git").args(args).status().expect("git");
        assert!(status.success(), "git {args:?}");
    }

    fn brain(&self, args: &[&str]) {
        let output = self
            .command(env!("CARGO_BIN_EXE_brain"))
            .args(args)
            .output()
            .expect("brain");
        assert!(
            output.status.success(),
            "brain {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Whether the branch holds what every satellite wrote.
    fn holds(&self, branch: &str, satellites: usize) {
        let listed = self
            .command("git")
            .args(["ls-tree", "-r", "--name-only", branch, "out/"])
            .output()
            .expect("git");
        let files = String::from_utf8_lossy(&listed.stdout).lines().count();
        assert_eq!(files, satellites, "no output is lost");
    }
}

fn script(place: &Place) -> Duration {
    let text = format!(
        r#"git branch theme
one() {{
    # Two at once read each other's half-made worktrees and fail.
    flock 8 git worktree add -q -b "s$1" ../w$1 theme || exit
    (
        cd ../w$1 || exit
        mkdir -p out/$1
        echo $1 > out/$1/f
        sleep 1
        git add -A
        git commit -q -m "$1"
    )
    (
        flock 9
        if git merge-base --is-ancestor theme s$1; then
            git update-ref refs/heads/theme s$1
        else
            tree=$(git merge-tree --write-tree theme s$1) || exit
            git update-ref refs/heads/theme $(git commit-tree -p theme -p s$1 -m "merge $1" $tree)
        fi
    ) 9> ../lock
    flock 8 git worktree remove ../w$1
}}
for n in $(seq {SATELLITES}); do one $n 8> ../worktrees.lock & done
wait
git merge -q theme
"#
    );
    let began = Instant::now();
    let status = place
        .command("sh")
        .args(["-c", &text])
        .stderr(Stdio::null())
        .status();
    let took = began.elapsed();
    assert!(status.expect("sh").success());
    place.holds("main", SATELLITES);
    took
}

fn plan(at: &Path, satellites: usize, run: &str, needs: &str) {
    let mut text = "name: p\nbranch: theme/p\nmode: swarm\nphases:\n".to_owned();
    for n in 0..satellites {
        text.push_str(&format!(
            "  - {{id: {n}, type: deploy, scope: out/{n}/, {needs} run: 'mkdir -p out/{n}; echo {n} > out/{n}/f; {run}'}}\n"
        ));
    }
    fs::write(at, text).expect("a plan");
}

fn satellites(place: &Place) -> Duration {
    place.brain(&["init"]);
    plan(&place.repo.join("p.yml"), SATELLITES, "sleep 1", "needs: [],");
    let began = Instant::now();
    place.brain(&["run", "p.yml", "--jobs", "50"]);
    let took = began.elapsed();
    place.holds("main", SATELLITES);
    took
}

/// The first and the last hundred phases of a long run.
fn many(place: &Place, phases: usize) {
    place.brain(&["init"]);
    plan(&place.repo.join("p.yml"), phases, "date +%s%N >> ../../times", "");
    let began = Instant::now();
    place.brain(&["run", "p.yml", "--jobs", "1"]);
    let took = began.elapsed();
    place.holds("main", phases);
    let times = fs::read_to_string(place.repo.join(".brain/times")).unwrap_or_default();
    let times: Vec<u64> = times.lines().filter_map(|line| line.parse().ok()).collect();
    let each = |of: &[u64]| match (of.first(), of.last()) {
        (Some(first), Some(last)) => (last - first) / (of.len() as u64 - 1) / 1_000_000,
        _ => 0,
    };
    let part = (phases / 10).max(2);
    println!(
        "{phases} phases in {took:.1?}: {} ms each at first, {} ms each at last",
        each(&times[..part]),
        each(&times[times.len() - part..]),
    );
}
