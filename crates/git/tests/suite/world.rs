//! A folder with a home, a configuration and repositories of its own.

use git::{Door, Identity, Message, Oid, Repository, Signature};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

pub struct World {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
    pub main: PathBuf,
}

impl World {
    /// A world without any repository.
    pub fn empty() -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(path.join("home")).unwrap();
        let world = World {
            main: path.join("main"),
            path,
            _folder: folder,
        };
        world.configure("[user]\n\tname = Ana\n\temail = ana@example.org\n[init]\n\tdefaultBranch = main\n");
        world.configure("[protocol \"file\"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n");
        world
    }

    /// A world with a repository `main` that has one commit of `a.txt`.
    pub fn new() -> World {
        let world = World::empty();
        world.init(&world.main);
        world
    }

    pub fn init(&self, at: &Path) {
        fs::create_dir_all(at).unwrap();
        self.git(at, &["init", "-q"]);
        write(&at.join("a.txt"), "one\n");
        self.git(at, &["add", "."]);
        self.git(at, &["commit", "-q", "-m", "first"]);
    }

    /// Adds to the user's configuration.
    pub fn configure(&self, text: &str) {
        let file = self.path.join("home/.gitconfig");
        let before = fs::read_to_string(&file).unwrap_or_default();
        fs::write(file, before + text).unwrap();
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

    pub fn try_git(&self, at: &Path, args: &[&str]) -> Output {
        let mut command = Command::new("git");
        command
            .env_clear()
            .envs(self.environment())
            .env("LC_ALL", "C")
            .current_dir(at)
            .args(args);
        command.output().unwrap()
    }

    /// Runs git and returns what it printed, without the line break at its end.
    pub fn git(&self, at: &Path, args: &[&str]) -> String {
        let output = self.try_git(at, args);
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub fn oid(&self, at: &Path, name: &str) -> Oid {
        Oid::parse(&self.git(at, &["rev-parse", "--verify", name])).unwrap()
    }

    pub fn door_at(&self, at: &Path) -> Door {
        let repository = Repository::find(at).expect("a repository is there");
        Door::user(repository)
            .in_environment(self.environment())
            .with_patience(Duration::from_millis(200))
    }

    pub fn door(&self) -> Door {
        self.door_at(&self.main)
    }

    pub fn coordinator_at(&self, at: &Path) -> Door {
        self.door_at(at).coordinator(&self.path.join("state")).unwrap()
    }

    /// Makes the folder of a commit: writes, stages and commits one file.
    pub fn commit(&self, at: &Path, file: &str, content: &str) -> Oid {
        write(&at.join(file), content);
        self.git(at, &["add", "--", file]);
        self.git(at, &["commit", "-q", "-m", file]);
        self.oid(at, "HEAD")
    }

    /// Installs a hook of the main repository.
    pub fn hook(&self, name: &str, script: &str) {
        let file = self.main.join(".git/hooks").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        write(&file, &format!("#!/bin/sh\n{script}\n"));
        executable(&file);
    }
}

pub fn write(file: &Path, content: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content).unwrap();
}

pub fn executable(file: &Path) {
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

pub fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

pub fn message(text: &str) -> Message {
    Message {
        text: text.to_owned(),
        trailers: vec![("Brain-Session".to_owned(), "sess-1".to_owned())],
    }
}

pub fn signature(seconds: u64) -> Signature {
    let identity = Identity {
        name: "Brain".to_owned(),
        email: "brain@example.org".to_owned(),
    };
    Signature {
        identity: Some(identity),
        seconds,
    }
}
