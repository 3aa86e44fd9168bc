//! `brain init`: makes a brain, and nothing that was not asked for.

use std::io::Write;
use std::path::Path;

use runner::random;
use serde_json::json;
use store::{Sqlite, SqliteOptions};

use crate::cli::{Globals, Init};
use crate::config;
use crate::failure::{Failure, Trouble};
use crate::out::Out;
use crate::root::Root;

/// Hides from git what is this machine's alone: all of it.
const IGNORE: &str = "*\n";

/// Carries out `brain init`.
pub fn init(globals: &Globals, args: &Init) -> Result<u8, Failure> {
    let out = Out::new(globals);
    if let Some(host) = args.hooks.first() {
        return Err(
            Trouble::usage(format!("--hooks {host}: this version installs no hooks yet"))
                .hint("leave --hooks out; `brain preflight check` can be called from a hook of your own")
                .into(),
        );
    }
    let cwd = std::env::current_dir().map_err(|_| Trouble::usage("the current folder is gone"))?;
    let asked = globals
        .root
        .clone()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(cwd);
    let root = Root::named(&asked).map_err(|error| crate::context::no_root(&error))?;
    make(&root, out)
}

/// Makes a brain of this folder; twice changes nothing.
///
/// # Errors
///
/// What cannot be written.
pub fn make(root: &Root, out: Out) -> Result<u8, Failure> {
    // A configuration that does not read would keep every command from working: nothing is made over it.
    crate::context::configuration(root)?;
    let state = root.state();
    for folder in [
        state.clone(),
        state.join("tokens"),
        state.join("worktrees"),
        state.join("attempts"),
    ] {
        std::fs::create_dir_all(&folder).map_err(|error| Trouble::io("cannot make", &folder, &error))?;
    }
    write_new(&state.join(".gitignore"), IGNORE)?;
    let compose = root.dir().join(config::COMPOSE).is_file();
    let file = root.dir().join(config::FILE);
    let fresh = !compose && write_new(&file, &config::template(&brain_id()?))?;
    drop(Sqlite::create(
        &state.join(crate::root::DATABASE),
        SqliteOptions {
            clock: crate::clock(),
            ..Default::default()
        },
    )?);
    root.leave_mark().map_err(|error| {
        Trouble::io(
            "cannot leave the mark in the git directory of",
            root.dir(),
            &error,
        )
    })?;
    let shown = root.dir().display().to_string();
    out.answer(json!({ "root": shown, "made": fresh }), "");
    out.note(format!("{shown} is a brain"));
    if fresh && root.repository().is_some() {
        out.note("commit its configuration: git add brain.yml && git commit -m 'brain: this repository is coordinated'");
    }
    if root.repository().is_none() {
        out.note(
            "the folder lies in no git repository: claims and locks work, closing has nothing to commit",
        );
    }
    Ok(0)
}

/// Writes a file that is not there yet; says whether it did.
fn write_new(path: &Path, text: &str) -> Result<bool, Failure> {
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    match made.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Trouble::io("cannot write", path, &error).into()),
    }
}

/// A fresh id that keeps this brain apart from others in a shared store.
fn brain_id() -> Result<String, Failure> {
    let bytes = random::bytes::<8>()
        .map_err(|error| Trouble::io("cannot read", Path::new("/dev/urandom"), &error))?;
    Ok(random::hex(&bytes))
}
