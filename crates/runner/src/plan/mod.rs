//! Reads plans: strictly, and with every error in one go (hypervisor, 1).

mod at;
mod branch;
mod conflict;
mod fields;
mod file;
mod nearest;
mod phase;
mod problem;
mod read;
mod scope;
mod shared;
mod source;
mod tree;

use std::collections::BTreeMap;

use protocol::facts::plan::Plan;

pub use file::schema;
pub use problem::{Notice, Problem, render};

use at::At;
use problem::Sink;

/// How many phases a plan may have.
pub const PHASES_MAX: usize = 20_000;

/// The runners that need no configuration (hypervisor, 8).
pub const BUILT_IN_RUNNERS: [&str; 5] = ["shell", "claude", "codex", "gemini", "opencode"];

/// Whether a thing of this name exists.
pub type Exists<'a> = &'a dyn Fn(&str) -> bool;

/// Whether two scopes, relative to the root, cannot be written at the same time.
pub type Conflict<'a> = &'a dyn Fn(&[String], &[String]) -> bool;

/// What the reader may rely on besides the file: the configuration, and what only the caller can look up.
///
/// What is left out is not checked.
#[derive(Clone, Copy, Default)]
pub struct Known<'a> {
    /// The names of the configured runners; the built-in ones are always known.
    pub runners: &'a [String],
    /// The configured projects, each with its folder relative to the root.
    pub projects: Option<&'a BTreeMap<String, String>>,
    /// The names of the configured targets; `local` is always known.
    pub targets: &'a [String],
    /// Whether a secret exists.
    pub secret: Option<Exists<'a>>,
    /// Whether a word is a program that this machine could start.
    pub program: Option<Exists<'a>>,
    /// Whether two scopes conflict; asked for phases that could run at once.
    pub conflict: Option<Conflict<'a>>,
}

/// Reads a YAML plan from its bytes, as [`read()`] does; a byte order mark is accepted.
///
/// # Errors
///
/// As [`read()`]; one problem alone for what is not UTF-8.
pub fn read_bytes(bytes: &[u8], file: &str, known: &Known<'_>) -> Result<(Plan, Vec<Notice>), Vec<Problem>> {
    if bytes.len() > source::BYTES_MAX {
        return Err(too_large(file));
    }
    let text = source::decode(bytes).map_err(|(line, what)| {
        vec![Problem::alone(
            "plan.not_utf8",
            file,
            line,
            what,
            "save it as UTF-8",
        )]
    })?;
    read(text, file, known)
}

/// Reads a YAML plan: its facts with every default filled in, and what is worth telling about it.
///
/// `file` is how the caller names it; its stem is the plan's name when the file says none. A `run` is a runner
/// when it is the name of one; else a shell command when it holds a blank, a `/` or a sign of the shell, or
/// `known.program` knows it; else an unknown runner.
///
/// # Errors
///
/// Every problem of the plan, by position. After text that is no YAML nothing more can be found.
pub fn read(text: &str, file: &str, known: &Known<'_>) -> Result<(Plan, Vec<Notice>), Vec<Problem>> {
    if text.len() > source::BYTES_MAX {
        return Err(too_large(file));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut sink = Sink::new(file, text);
    let plan = document(text, &mut sink).and_then(|root| read::plan(&root, file, known, &mut sink));
    if let (Some(plan), Some(conflict)) = (&plan, known.conflict) {
        read::tell_conflicts(plan, conflict, &mut sink);
    }
    let notices = sink.close()?;
    // Without a problem there is a plan; were there none, an empty list of problems would still refuse.
    plan.map(|plan| (plan, notices)).ok_or_else(Vec::new)
}

/// Turns the text into its tree, or reports why it has none.
fn document(text: &str, sink: &mut Sink<'_>) -> Option<tree::Node> {
    let clean = source::without_traps(text, sink);
    let before = sink.mark();
    let mut root = tree::read(&clean, &[], sink);
    // What people write for a trigger and YAML does not take: read once more with it quoted.
    if root.is_err()
        && let Some((quoted, bare)) = source::with_quoted_triggers(&clean)
    {
        sink.rewind(before);
        for line in &bare {
            let at = At {
                line: *line,
                column: 1,
            };
            let message = "other readers of YAML stop at the `: ` in this trigger: put it into single quotes";
            sink.notice("plan.unquoted_trigger", at, message);
        }
        root = tree::read(&quoted, &bare, sink);
    }
    match root {
        Ok(root) => root.or_else(|| {
            if sink.is_clean() {
                empty(sink);
            }
            None
        }),
        Err(error) => {
            // A trap that was taken out may be all that is wrong: what follows from it is not told.
            if sink.is_clean() {
                sink.not_yaml(&error);
            }
            None
        }
    }
}

fn empty(sink: &mut Sink<'_>) {
    sink.problem(
        "plan.empty",
        At::START,
        "the file holds no plan",
        "write `phases:` with at least one phase",
    );
}

fn too_large(file: &str) -> Vec<Problem> {
    vec![Problem::alone(
        "plan.too_large",
        file,
        1,
        "the file is larger than 8 MiB",
        "split the plan",
    )]
}
