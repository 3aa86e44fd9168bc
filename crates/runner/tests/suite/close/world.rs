//! A brain root with real repositories, a store in memory, and sessions that close.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use protocol::command::{Command, OpenClaim};
use protocol::event::{Entry, Event};
use protocol::facts::caller::{Caller, Nature, Proof, TokenDigest};
use protocol::facts::claim::{Claim, ClaimResult, Outcome, Owner};
use protocol::facts::gate::Choice;
use protocol::facts::id::{GateId, SessId};
use protocol::facts::kind::Kind;
use protocol::facts::path::Fold;
use protocol::facts::policy::Policy;
use protocol::facts::scope::Scope;
use protocol::facts::span::Span;
use protocol::facts::tests::Tests;
use protocol::facts::zone::{ZoneLists, Zones};
use protocol::refusal::Refusal;
use protocol::world::{Pick, World as Facts};
use runner::close::{CloseAsk, CloseError, Closed, Door, Fuse, Settings, close};
use store::clock::Clock;
use store::{Memory, Request, Store};

pub struct World {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
    pub root: PathBuf,
    pub store: Memory,
    pub clock: Clock,
    pub settings: Settings,
    pub policy: Policy,
    pub projects: Vec<PathBuf>,
}

/// What a claim is opened with, beside its id and scope.
pub struct Ask {
    pub kind: Kind,
    pub tests: Option<String>,
    pub change: fn(&mut OpenClaim),
}

pub fn notes() -> Ask {
    Ask {
        kind: Kind::BrainWrite,
        tests: None,
        change: |_| {},
    }
}

pub fn code(tests: impl Into<String>) -> Ask {
    Ask {
        kind: Kind::Code,
        tests: Some(tests.into()),
        change: |_| {},
    }
}

/// Prints what a green suite of so many tests prints.
pub const GREEN: &str = "printf 'TAP version 13\\n1..2\\nok 1 - a\\nok 2 - b\\n'";

impl World {
    /// A root that is a repository with one commit.
    pub fn new() -> World {
        let world = World::empty();
        world.init(&world.root);
        world
    }

    pub fn empty() -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        let root = path.join("root");
        fs::create_dir_all(path.join("home")).unwrap();
        fs::create_dir_all(&root).unwrap();
        let config = "[user]\n\tname = Ana\n\temail = ana@example.org\n[init]\n\tdefaultBranch = main\n\
                      [protocol \"file\"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n";
        fs::write(path.join("home/.gitconfig"), config).unwrap();
        let clock = Clock::by_hand(1_796_000_000_000);
        World {
            _folder: folder,
            path,
            root,
            store: Memory::new(clock.clone()),
            clock,
            settings: Settings::default(),
            policy: policy(),
            projects: Vec::new(),
        }
    }

    pub fn init(&self, at: &Path) {
        fs::create_dir_all(at).unwrap();
        self.git(at, &["init", "-q"]);
        self.write_at(at, "src/a.rs", "one\n");
        self.write_at(at, "docs/a.md", "one\n");
        self.write_at(at, ".gitignore", ".env\nignored/\n");
        self.git(at, &["add", "."]);
        self.git(at, &["commit", "-q", "-m", "first"]);
    }

    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let home = self.path.join("home");
        let pairs: [(&str, OsString); 5] = [
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("HOME", home.clone().into()),
            ("XDG_CONFIG_HOME", home.join("xdg").into()),
            ("GIT_CONFIG_GLOBAL", home.join(".gitconfig").into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ];
        pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect()
    }

    pub fn git(&self, at: &Path, args: &[&str]) -> String {
        let mut command = std::process::Command::new("git");
        let output = command
            .env_clear()
            .envs(self.environment())
            .env("LC_ALL", "C")
            .current_dir(at)
            .args(args)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Runs git in the root.
    pub fn root_git(&self, args: &[&str]) -> String {
        self.git(&self.root, args)
    }

    pub fn write(&self, file: &str, content: &str) {
        self.write_at(&self.root, file, content);
    }

    pub fn write_at(&self, at: &Path, file: &str, content: &str) {
        let file = at.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    /// Installs a script, a hook for example.
    pub fn script(&self, file: &Path, text: &str) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Writes the suite that [`World::suite`] runs.
    pub fn write_suite(&self, text: &str) {
        self.script(&self.path.join("suite.sh"), text);
    }

    /// The command that runs a suite outside of every checkout.
    pub fn suite(&self) -> String {
        format!("sh {}", self.path.join("suite.sh").display())
    }

    pub fn id(&self, slug: &str) -> SessId {
        SessId::parse(&format!("sess-20261130-1030-{slug}")).unwrap()
    }

    /// Opens a claim on what is there now.
    pub fn open(&mut self, slug: &str, scope: &[&str], ask: Ask) -> SessId {
        self.try_open(slug, scope, ask).unwrap()
    }

    pub fn try_open(&mut self, slug: &str, scope: &[&str], ask: Ask) -> Result<SessId, Refusal> {
        let environment = self.environment();
        let open = |repository| git::Door::user(repository).in_environment(environment.iter().cloned());
        let projects: Vec<&Path> = self.projects.iter().map(PathBuf::as_path).collect();
        let base = runner::base::bases(&self.root, projects, &self.policy, &open).unwrap();
        let mut wanted = OpenClaim {
            id: Some(self.id(slug)),
            satellite_type: ask.kind,
            tests: ask.tests.as_deref().map(tests),
            base,
            ..plainly(slug, scope)
        };
        (ask.change)(&mut wanted);
        self.try_submit(&self.plain(), &Command::OpenClaim(wanted))?;
        self.clock.turn(5);
        Ok(self.id(slug))
    }

    /// Opens a satellite's claim on a worktree of its own, whose work lands in `theme`.
    pub fn open_in_worktree(&mut self, slug: &str, scope: &[&str], ask: Ask) -> (SessId, PathBuf) {
        let at = self.path.join("root/.brain/worktrees").join(slug);
        let branch = format!("brain/{slug}");
        self.root_git(&[
            "worktree",
            "add",
            "-q",
            "-b",
            &branch,
            at.to_str().unwrap(),
            "theme",
        ]);
        let environment = self.environment();
        let checkout = runner::base::Checkout::find(&self.root, &at).unwrap();
        let door = git::Door::user(checkout.repository.clone()).in_environment(environment);
        let base = runner::base::base(&checkout, &door, &self.policy).unwrap();
        assert_eq!(checkout.repo, ".");
        let mut wanted = OpenClaim {
            id: Some(self.id(slug)),
            satellite_type: ask.kind,
            branch: Some(branch),
            theme_branch: Some("theme".to_owned()),
            worktree: Some(at.to_str().unwrap().to_owned()),
            tests: ask.tests.as_deref().map(tests),
            base: [(checkout.repo, base)].into(),
            ..plainly(slug, scope)
        };
        (ask.change)(&mut wanted);
        self.submit(&self.plain(), &Command::OpenClaim(wanted));
        self.clock.turn(5);
        (self.id(slug), at)
    }

    pub fn plain(&self) -> Caller {
        Caller::plain("ana", "here")
    }

    pub fn human(&self) -> Caller {
        let terminal = "/dev/pts/1".to_owned();
        Caller {
            nature: Nature::Human(Proof::Typed { terminal }),
            ..self.plain()
        }
    }

    /// The agent that owns a claim.
    pub fn agent(&self, slug: &str) -> Caller {
        Caller {
            nature: Nature::Agent {
                by: "a test".to_owned(),
            },
            token: Some(TokenDigest(slug.to_owned())),
            ..self.plain()
        }
    }

    pub fn try_submit(&mut self, caller: &Caller, command: &Command) -> Result<Vec<Entry>, Refusal> {
        let request = Request {
            caller,
            policy: &self.policy,
            key: None,
        };
        match store::submit(&mut self.store, request, command).unwrap() {
            store::Outcome::Committed(entries) | store::Outcome::Repeated(entries) => Ok(entries),
            store::Outcome::Refused(refusal) => Err(refusal),
        }
    }

    pub fn submit(&mut self, caller: &Caller, command: &Command) -> Vec<Entry> {
        self.try_submit(caller, command).unwrap()
    }

    /// A human lets a gate go on.
    pub fn answer(&mut self, gate: &GateId, choice: Choice) {
        let (facts, _) = self.store.look(&vec![Pick::Gate(gate.clone())]).unwrap();
        let shown = facts.gates[gate].shown.clone();
        self.submit(
            &self.human(),
            &Command::AnswerGate {
                id: gate.clone(),
                choice,
                words: String::new(),
                shown,
                mac: String::new(),
            },
        );
    }

    pub fn facts(&mut self) -> Facts {
        self.store.look(&vec![Pick::AllClaims, Pick::AllMail]).unwrap().0
    }

    pub fn claim(&mut self, id: &SessId) -> Claim {
        self.facts().claims[id].clone()
    }

    pub fn events(&mut self) -> Vec<Event> {
        let entries = self
            .store
            .journal(0, usize::MAX, &store::Only::default())
            .unwrap();
        entries.into_iter().map(|entry| entry.event).collect()
    }

    pub fn close_as(&mut self, caller: &Caller, ask: &CloseAsk, fuse: Fuse) -> Result<Closed, CloseError> {
        let environment = self.environment();
        let state = self.path.join("root/.brain");
        let shim = [env!("CARGO_BIN_EXE_runner-attempt").into(), "__attempt".into()];
        let mut door = Door {
            store: &mut self.store,
            caller,
            policy: &self.policy,
            root: &self.root,
            state: &state,
            shim: &shim,
            environment: Some(&environment),
            settings: &self.settings,
            fuse,
        };
        close(&mut door, ask)
    }

    pub fn close(&mut self, id: &SessId) -> Result<Closed, CloseError> {
        self.close_as(&self.plain(), &CloseAsk::of(id.clone()), Fuse::default())
    }

    /// Closes, and it is done.
    pub fn done(&mut self, id: &SessId) -> ClaimResult {
        match self.close(id) {
            Ok(Closed::Done(result, _)) => result,
            other => panic!("{other:?}"),
        }
    }

    /// Closes, and it is refused.
    pub fn refused(&mut self, id: &SessId) -> Refusal {
        match self.close(id) {
            Err(CloseError::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    }

    /// Closes, and it waits; with the gate's subject and why.
    pub fn waits(&mut self, id: &SessId) -> (GateId, String, String) {
        match self.close(id) {
            Ok(Closed::Waiting(gate)) => {
                let (facts, _) = self.store.look(&vec![Pick::Gate(gate.clone())]).unwrap();
                let it = &facts.gates[&gate];
                (gate.clone(), it.subject.clone(), it.why.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Closes, and it is refused for these strays.
    pub fn strays(&mut self, id: &SessId) -> Vec<String> {
        match self.refused(id) {
            Refusal::OutOfScope { strays, .. } => strays
                .iter()
                .map(|stray| stray.path.as_str().to_owned())
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    /// How many commits a branch of the root has.
    pub fn commits(&self, branch: &str) -> usize {
        self.root_git(&["rev-list", "--count", branch]).parse().unwrap()
    }

    /// The files of the last commit of a branch against the one before, quoted by git only for what it must.
    pub fn changed(&self, commit: &str) -> Vec<String> {
        let range = format!("{commit}^!");
        let out = self.root_git(&["diff", "--no-renames", "--name-only", "-z", &range]);
        out.split('\0')
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect()
    }

    pub fn dirty(&self) -> Vec<String> {
        let out = self.root_git(&["status", "--porcelain", "--untracked-files=all", "--no-renames"]);
        out.lines()
            .filter(|it| !it.contains(".brain/"))
            .map(str::to_owned)
            .collect()
    }
}

pub fn tests(run: &str) -> Tests {
    Tests {
        run: run.to_owned(),
        report: None,
        format: None,
    }
}

pub fn policy() -> Policy {
    Policy {
        zones: Zones::new(&ZoneLists::default(), false, &[], Fold::Exact).unwrap(),
        kerneluser: true,
        fails_max: 3,
        exit_is_enough: Vec::new(),
        stale_grace: Span::from_ms(86_400_000),
        fold: Fold::Exact,
        digest: "policy".to_owned(),
    }
}

/// Everything but the outcome of a result that a test compares.
pub fn short(result: &ClaimResult) -> (Outcome, Vec<&str>) {
    (
        result.status,
        result.files_modified.iter().map(String::as_str).collect(),
    )
}

/// What a session of this name asks for where a test says nothing else.
fn plainly(slug: &str, scope: &[&str]) -> OpenClaim {
    OpenClaim::new(
        slug,
        format!("the work of {slug}"),
        Scope::parse(scope, Fold::Exact).unwrap(),
        "test",
        Owner {
            user: "ana".to_owned(),
            host: "here".to_owned(),
            process: None,
            host_session: Some(slug.to_owned()),
        },
        TokenDigest(slug.to_owned()),
    )
}
