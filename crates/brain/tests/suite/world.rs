//! A folder with a brain that nobody else uses.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct World {
    folder: tempfile::TempDir,
    /// The folder that holds the brain and what lies beside it, links followed.
    pub path: PathBuf,
    /// The root of the brain.
    pub main: PathBuf,
}

impl World {
    /// A brain without a repository.
    pub fn bare() -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        let main = path.join("main");
        fs::create_dir_all(main.join(".brain")).unwrap();
        let world = World { folder, path, main };
        world.write(".brain/brain.db", "");
        world
    }

    /// A brain in a repository with `src/auth/a.ts` on `main`.
    pub fn new() -> World {
        let world = World::bare();
        world.write("src/auth/a.ts", "a");
        world.write("agents/x.md", "x");
        world.write(".gitignore", ".brain/\nnode_modules/\n");
        world.repository("");
        world
    }

    /// Makes a repository of what lies in a folder.
    pub fn repository(&self, at: &str) {
        let at = self.main.join(at);
        fs::create_dir_all(&at).unwrap();
        self.git(&at, &["init", "-q", "-b", "main"]);
        self.git(&at, &["add", "."]);
        self.git(&at, &["commit", "-q", "--allow-empty", "-m", "first"]);
    }

    pub fn git(&self, at: &Path, args: &[&str]) {
        let home = self.folder.path();
        let output = Command::new("git")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=Ana", "-c", "user.email=ana@example.org"])
            .args(["-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(at)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    pub fn write(&self, at: &str, text: &str) {
        let at = self.main.join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, text).unwrap();
    }

    pub fn link(&self, to: &str, at: &str) {
        let at = self.main.join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(to, at).unwrap();
    }
}
