//! How git is started: as the user would, or as the coordinator must.

use crate::config::{Config, quote};
use crate::{Error, Kind, Repository};
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::{self};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long a foreign lock is waited for, when nobody says otherwise.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way into one checkout (or bare repository); every operation of this crate goes through one.
#[derive(Clone, Debug)]
pub struct Door {
    repository: Repository,
    private: Option<Private>,
    patience: Duration,
    environment: Option<Vec<(OsString, OsString)>>,
    /// What git says of its configuration behind this door, once somebody asked.
    pub(crate) configuration: Arc<OnceLock<Config>>,
}

/// The coordinator's own git directory for one checkout.
#[derive(Clone, Debug)]
struct Private {
    state: PathBuf,
    git_dir: PathBuf,
}

impl Door {
    /// Opens a checkout as its user does: configuration, hooks and signing are the repository's.
    ///
    /// Starts nothing. Inherited variables like `GIT_DIR` are withheld from git in any case.
    pub fn user(repository: Repository) -> Door {
        Door {
            repository,
            private: None,
            patience: PATIENCE,
            environment: None,
            configuration: Arc::default(),
        }
    }

    /// Opens it as the coordinator must where an agent can write: nothing of the repository's is executed.
    ///
    /// Git runs with a git directory of our own below `state`, whose objects, refs and logs lead to the
    /// real ones. Of the repository's configuration only `user.*`, line endings and what the volume can
    /// do are taken over: no hook, filter, alias, helper, driver, include or program that it names.
    /// Filters come from the system's and the user's configuration, so Git LFS still works
    /// (`reliability.md`, T10).
    ///
    /// # Errors
    ///
    /// [`Kind::Unsupported`] for refs kept in tables, [`Kind::Io`] when `state` cannot be written.
    pub fn coordinator(self, state: &Path) -> Result<Door, Error> {
        let mut hasher = DefaultHasher::new();
        self.repository.git_dir().hash(&mut hasher);
        let git_dir = state.join(format!("git-{:016x}", hasher.finish()));
        lay_private(&self.repository, &git_dir)?;
        Ok(Door {
            private: Some(Private {
                state: state.to_owned(),
                git_dir,
            }),
            configuration: Arc::default(),
            ..self
        })
    }

    /// Waits at most this long for a lock that somebody else holds (5 s otherwise).
    pub fn with_patience(self, patience: Duration) -> Door {
        Door { patience, ..self }
    }

    /// Starts git with these variables instead of the ones of this process.
    pub fn in_environment(self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Door {
        Door {
            environment: Some(variables.into_iter().collect()),
            configuration: Arc::default(),
            ..self
        }
    }

    /// Opens another checkout in the same way.
    ///
    /// # Errors
    ///
    /// Those of [`Door::coordinator`].
    pub fn to(&self, other: Repository) -> Result<Door, Error> {
        let door = Door {
            repository: other,
            private: None,
            configuration: Arc::default(),
            ..self.clone()
        };
        match &self.private {
            Some(private) => door.coordinator(&private.state),
            None => Ok(door),
        }
    }

    /// Opens the same checkout as its user does.
    pub(crate) fn as_user(&self) -> Door {
        Door {
            private: None,
            configuration: Arc::default(),
            ..self.clone()
        }
    }

    /// Returns the checkout it leads to.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Tells whether nothing of the repository's is executed behind it.
    pub fn is_coordinator(&self) -> bool {
        self.private.is_some()
    }

    pub(crate) fn error(&self, doing: &'static str, kind: Kind) -> Error {
        Error::new(doing, self.repository.folder(), kind)
    }

    pub(crate) fn garbled(&self, doing: &'static str) -> Error {
        self.error(doing, Kind::Garbled)
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    pub(crate) fn base_environment(&self) -> Vec<(OsString, OsString)> {
        self.environment
            .clone()
            .unwrap_or_else(|| std::env::vars_os().collect())
    }

    /// Returns the checkout's own index file.
    pub(crate) fn index_file(&self) -> PathBuf {
        self.repository.git_dir().join("index")
    }

    /// Returns a name for a temporary file that no other process or thread uses.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = self
            .private
            .as_ref()
            .map_or(self.repository.git_dir(), |own| &own.git_dir);
        folder.join(format!("brain-{name}-{}-{count}", std::process::id()))
    }

    /// Points git at the checkout.
    pub(crate) fn prepare(&self, command: &mut Command) {
        match (&self.private, self.repository.toplevel()) {
            (Some(own), toplevel) => {
                // The checkout may have gone to another branch since; git itself finds out if it is gone.
                let _ = copy_head(&self.repository, &own.git_dir);
                command
                    .env("GIT_DIR", &own.git_dir)
                    .env("GIT_INDEX_FILE", self.index_file());
                command.env("GIT_NO_LAZY_FETCH", "1");
                if let Some(toplevel) = toplevel {
                    command.env("GIT_WORK_TREE", toplevel);
                }
            }
            (None, None) => {
                command.env("GIT_DIR", self.repository.git_dir());
            }
            (None, Some(_)) => {}
        }
    }
}

/// Makes the coordinator's git directory, or brings it up to date.
fn lay_private(repository: &Repository, own: &Path) -> Result<(), Error> {
    const DOING: &str = "preparing the coordinator's git directory";
    let wrong = |kind| Error::new(DOING, own, kind);
    if repository.has_reftable() {
        return Err(wrong(Kind::Unsupported {
            what: "a repository with reftable",
        }));
    }
    let lay = || -> io::Result<()> {
        let (common, git_dir) = (repository.common_dir(), repository.git_dir());
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(own.join("logs"))?;
        builder.create(own.join("info"))?;
        // Git makes folders for its logs, but not through a link that leads nowhere.
        fs::create_dir_all(common.join("logs/refs"))?;
        fs::create_dir_all(git_dir.join("logs"))?;
        for shared in [
            "objects",
            "refs",
            "packed-refs",
            "shallow",
            "logs/refs",
            "info/exclude",
            "info/attributes",
        ] {
            link(&common.join(shared), &own.join(shared))?;
        }
        // HEAD and its log belong to the checkout. HEAD is copied: git takes no link for it.
        link(&git_dir.join("logs/HEAD"), &own.join("logs/HEAD"))?;
        copy_head(repository, own)?;
        replace(&own.join("config"), private_config(repository).as_bytes())
    };
    lay().map_err(|e| wrong(Kind::Io(e)))
}

fn copy_head(repository: &Repository, own: &Path) -> io::Result<()> {
    replace(&own.join("HEAD"), &fs::read(repository.git_dir().join("HEAD"))?)
}

fn link(to: &Path, at: &Path) -> io::Result<()> {
    match fs::read_link(at) {
        Ok(found) if found == to => Ok(()),
        Ok(_) => fs::remove_file(at).and_then(|()| symlink(to, at)),
        Err(_) => match symlink(to, at) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && fs::read_link(at).is_ok() => Ok(()),
            done => done,
        },
    }
}

/// Writes a file whole or not at all, and not when it already says so.
fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(file).is_ok_and(|found| found == content) {
        return Ok(());
    }
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let part = file.with_extension(format!(
        "{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    fs::write(&part, content)?;
    fs::rename(part, file)
}

/// Composes the configuration: only values whose meaning ends with themselves.
fn private_config(repository: &Repository) -> String {
    let theirs = Config::read(&repository.common_dir().join("config"));
    let sha256 = theirs.get("extensions.objectformat") == Some("sha256");
    let mut text = format!(
        "[core]\n\trepositoryformatversion = {}\n\tbare = {}\n\thooksPath = /dev/null\n\tfsmonitor = false\n",
        u8::from(sha256),
        repository.toplevel().is_none(),
    );
    for key in ["filemode", "symlinks", "ignorecase", "precomposeunicode"] {
        if let Some(value) = theirs.flag(&format!("core.{key}")) {
            text += &format!("\t{key} = {value}\n");
        }
    }
    for (key, allowed) in [
        ("autocrlf", &["true", "false", "input"][..]),
        ("eol", &["lf", "crlf", "native"][..]),
    ] {
        if let Some(value) = theirs
            .get(&format!("core.{key}"))
            .filter(|value| allowed.contains(value))
        {
            text += &format!("\t{key} = {value}\n");
        }
    }
    if sha256 {
        text += "[extensions]\n\tobjectformat = sha256\n";
    }
    text += "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[user]\n";
    for key in ["name", "email", "signingkey"] {
        if let Some(value) = theirs.get(&format!("user.{key}")) {
            text += &format!("\t{key} = {}\n", quote(value));
        }
    }
    text
}
