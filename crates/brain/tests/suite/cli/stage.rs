//! A brain of its own, and the real program in an environment that holds nothing else.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// 30 November 2026, 10:00 UTC.
const MORNING: i64 = 1_796_032_800_000;

/// The exit codes that the program may end with, but for what `lock run` passes on.
pub const EXITS: &[i32] = &[
    0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 20, 21, 22, 64, 65, 69, 75, 78,
];

/// A claim that anybody may open.
pub const OPEN: [&str; 6] = ["claim", "open", "--scope", "docs", "--task", "x"];

/// One message: its first line is the error with its code, and no other error follows.
pub fn is_one_message(err: &str) {
    assert!(err.starts_with("error: ") && err.contains(']'), "{err}");
    assert_eq!(err.matches("error: ").count(), 1, "{err}");
    assert!(err.lines().count() <= 12, "{err}");
}

/// A folder with a home, a brain's root, and a clock.
pub struct Stage {
    folder: tempfile::TempDir,
    /// Where everything lies, links followed.
    pub path: PathBuf,
    /// The root.
    pub root: PathBuf,
    /// Where commands are typed.
    pub cwd: PathBuf,
    /// What stands in the environment besides the bare minimum.
    pub variables: Vec<(String, String)>,
    tick: u64,
}

/// What a command came to.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Stage {
    /// A folder in which nothing was made yet.
    pub fn empty() -> Stage {
        let folder = tempfile::Builder::new().prefix("brain-cli-").tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        let root = path.join("shop");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(path.join("home")).unwrap();
        // The suite may be run by a user whom git does not know.
        let identity = "[user]\n\tname = Ana\n\temail = ana@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(path.join("home/gitconfig"), identity).unwrap();
        let variables = vec![("BRAIN_TEST_CALLER".to_owned(), "plain".to_owned())];
        Stage {
            folder,
            path,
            cwd: root.clone(),
            root,
            variables,
            tick: 0,
        }
    }

    /// A repository with a few files, committed, on `main`; no brain yet.
    pub fn repository() -> Stage {
        let stage = Stage::empty();
        stage.sh(
            "git init -q && mkdir -p src/auth src/auth-legacy agents docs && echo a >src/auth/a.ts && \
             echo l >src/auth-legacy/a.ts && echo x >agents/x.md && echo k >KERNEL.md && echo d >docs/ok.md && \
             git add . && git commit -qm first",
        );
        stage
    }

    /// A brain in such a repository.
    pub fn brain() -> Stage {
        let stage = Stage::repository();
        fs::write(stage.root.join("brain.yml"), "brain: shop\n").unwrap();
        stage.ok(&["init"]);
        stage.sh("git add brain.yml && git commit -qm brain");
        stage
    }

    /// Sets or, with an empty value, takes away a variable.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// The same stage for another caller: `plain`, `human`, `agent:SESSION`.
    pub fn called_by(&mut self, caller: &str) -> &mut Stage {
        self.set("BRAIN_TEST_CALLER", caller);
        self
    }

    /// Turns the clock on.
    pub fn turn(&mut self, ms: u64) {
        self.tick += ms;
    }

    /// The clock as the program reads it.
    pub fn clock(&self) -> String {
        let wall = MORNING + i64::try_from(self.tick).unwrap();
        format!("test {} {wall}", 1_000_000 + self.tick)
    }

    /// What every process of this stage has in its environment.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let home = self.path.join("home");
        let mut all: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("HOME".into(), home.clone().into()),
            ("XDG_STATE_HOME".into(), home.join("state").into()),
            ("GIT_CONFIG_GLOBAL".into(), home.join("gitconfig").into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("TMPDIR".into(), self.folder.path().into()),
            ("LC_ALL".into(), "C".into()),
            ("BRAIN_TEST_CLOCK".into(), self.clock().into()),
        ];
        for (name, value) in &self.variables {
            all.retain(|(known, _)| known != name.as_str());
            all.push((name.into(), value.into()));
        }
        all.retain(|(_, value)| !value.is_empty());
        all
    }

    /// The program, ready to be started here.
    pub fn command<A: AsRef<std::ffi::OsStr>>(&self, args: &[A]) -> Command {
        self.process(Path::new(env!("CARGO_BIN_EXE_brain")), args)
    }

    /// Any program, ready to be started here.
    pub fn process<A: AsRef<std::ffi::OsStr>>(&self, program: &Path, args: &[A]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .envs(self.environment())
            .current_dir(&self.cwd)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program and holds it to what every answer must keep.
    pub fn run<A: AsRef<std::ffi::OsStr>>(&self, args: &[A]) -> Ran {
        let ran = Ran::of(self.command(args).output().unwrap());
        let json = args
            .iter()
            .take_while(|arg| arg.as_ref() != "--")
            .any(|arg| arg.as_ref() == "--json");
        let passes_on = args.iter().any(|arg| arg.as_ref() == "--");
        ran.keeps_its_word(json && !passes_on, passes_on);
        ran
    }

    /// Runs the program, which must succeed; gives its standard output.
    pub fn ok<A: AsRef<std::ffi::OsStr> + std::fmt::Debug>(&self, args: &[A]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
        ran.out.trim_end().to_owned()
    }

    /// Runs the program, which must refuse with this code; gives its standard error.
    pub fn no<A: AsRef<std::ffi::OsStr> + std::fmt::Debug>(
        &self,
        code: i32,
        dotted: &str,
        args: &[A],
    ) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.out, ran.err);
        assert!(
            ran.err.contains(&format!("[{dotted}")),
            "{args:?}: wanted [{dotted}]: {}",
            ran.err
        );
        ran.err
    }

    /// Runs a script here, which must succeed.
    pub fn sh(&self, script: &str) -> String {
        let output = self
            .process(Path::new("/bin/sh"), &["-c", script])
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {err}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The number of events in the store: what it was is what a refusal must leave.
    pub fn head(&self) -> u64 {
        let ran = self.run(&["log", "--json", "--root", self.root.to_str().unwrap()]);
        let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        document["entries"].as_array().map_or(0, |all| all.len() as u64)
    }

    /// The name of the one worktree that a claim made; its end is different in every run.
    pub fn worktree(&self) -> String {
        let made = fs::read_dir(self.root.join(".brain/worktrees"))
            .into_iter()
            .flatten()
            .flatten();
        made.map(|entry| entry.file_name().to_string_lossy().into_owned())
            .next()
            .unwrap_or_else(|| "WORKTREE".to_owned())
    }

    /// Puts names in the place of what is different in every run.
    pub fn plain(&self, text: &str) -> String {
        let text = text
            .replace(&self.worktree(), "WORKTREE")
            .replace(self.root.to_str().unwrap(), "ROOT")
            .replace(self.path.to_str().unwrap(), "TMP");
        let named = hashes_named(&text);
        // A short one is told by what stands before it.
        let short = |line: &str| match line.split_once("Commit    : ") {
            Some((before, hash)) if hash != "none" => format!("{before}Commit    : SHORT"),
            _ => line.to_owned(),
        };
        named.lines().map(short).collect::<Vec<_>>().join("\n")
    }
}

/// Puts `HASH` in the place of each run of 40 or 64 hexadecimal digits.
fn hashes_named(text: &str) -> String {
    let mut named = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_digit() || ('a'..='f').contains(&c) {
            word.push(c);
            continue;
        }
        named.push_str(if matches!(word.len(), 40 | 64) {
            "HASH"
        } else {
            &word
        });
        word.clear();
        if c != '\0' {
            named.push(c);
        }
    }
    named
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The one document on standard output.
    pub fn document(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {:?} {}", self.out, self.err))
    }

    /// No panic, a code of the table, and with `--json` one document and not a word to people.
    pub fn keeps_its_word(&self, json: bool, passes_on: bool) {
        assert!(!self.err.contains("panicked at"), "{}", self.err);
        assert!(
            passes_on || EXITS.contains(&self.code),
            "exit {}: {}{}",
            self.code,
            self.out,
            self.err
        );
        if !json {
            return;
        }
        let document = self.document();
        assert_eq!(self.err, "", "words to people beside {document}");
        assert_eq!(document["v"], 1, "{document}");
        assert_eq!(document["ok"], self.code == 0, "exit {}: {document}", self.code);
        if let Some(error) = document.get("error") {
            assert_eq!(error["exit"], self.code, "{document}");
            assert!(
                error["code"].as_str().is_some_and(|code| !code.is_empty()),
                "{document}"
            );
            assert!(
                error["message"].as_str().is_some_and(|words| !words.is_empty()),
                "{document}"
            );
            assert!(error["facts"].is_object(), "{document}");
        }
    }
}
