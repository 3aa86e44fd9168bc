//! What a plan and its phases have in common: the known runners, `tests:` and `worktree:`.

use std::collections::BTreeMap;

use protocol::facts::plan::WorktreeSetup;
use protocol::facts::report::Format;
use protocol::facts::tests::{Tests, hides_status};

use super::at::At;
use super::fields::{Fields, one};
use super::problem::Sink;
use super::tree::Value;
use super::{BUILT_IN_RUNNERS, Known};

pub(super) const TESTS_KEYS: [&str; 3] = ["run", "report", "format"];
pub(super) const WORKTREE_KEYS: [&str; 3] = ["setup", "link", "copy"];

/// What a `chain:` plan of the original may hold and ours has no use for, in the plan or in a step.
pub(super) const CHAIN_UNUSED: [&str; 6] = [
    "pilote",
    "swarm_ready",
    "status",
    "note",
    "agents",
    "input_contract",
];

/// What phases are read against.
pub(super) struct Context<'a> {
    pub(super) known: &'a Known<'a>,
    /// The folder of each project that is known, relative to the root.
    pub(super) projects: BTreeMap<String, String>,
}

impl Context<'_> {
    /// All runners by name, the built-in ones first.
    pub(super) fn runners(&self) -> impl Iterator<Item = &str> {
        BUILT_IN_RUNNERS
            .into_iter()
            .chain(self.known.runners.iter().map(String::as_str))
    }

    /// Reports a runner that nobody knows.
    pub(super) fn unknown_runner(&self, name: &str, at: At, sink: &mut Sink<'_>) {
        let fix = match sink.nearest(name, self.runners()) {
            Some(meant) => format!("write `{meant}`, if that is meant, or a whole command"),
            None => format!(
                "configure it under `runners:`; known are {}",
                self.runners().collect::<Vec<_>>().join(", ")
            ),
        };
        sink.problem(
            "plan.unknown_runner",
            at,
            format!("`{name}` is no known runner and no command"),
            fix,
        );
    }
}

/// Reads `worktree:` of a plan or a phase.
pub(super) fn worktree(fields: &Fields<'_>, sink: &mut Sink<'_>) -> Option<WorktreeSetup> {
    let fields = Fields::of(
        &fields.get("worktree")?.node,
        "`worktree`",
        &WORKTREE_KEYS,
        &[],
        sink,
    )?;
    Some(WorktreeSetup {
        setup: fields.string("setup", sink),
        link: fields.strings("link", sink),
        copy: fields.strings("copy", sink),
    })
}

/// Reads `tests:` of a project or a phase: a command, or a map; its status must be its own (protocol, 11).
pub(super) fn tests(fields: &Fields<'_>, sink: &mut Sink<'_>) -> Option<Tests> {
    let node = &fields.get("tests")?.node;
    let (run, report, format) = match &node.value {
        Value::Map(_) => {
            let inner = Fields::of(node, "`tests`", &TESTS_KEYS, &[], sink)?;
            if inner.get("run").is_none() {
                sink.problem(
                    "plan.missing_key",
                    node.at,
                    "`tests` has no `run`",
                    "write the command under `run:`",
                );
            }
            let words = Format::ALL.map(|format| (format.as_str(), format));
            let report = inner.string("report", sink);
            (
                inner.text("run", sink)?,
                report,
                inner.word("format", "plan.bad_word", &words, sink),
            )
        }
        _ => (one("tests", node, sink)?, None, None),
    };
    if let Some(hides) = hides_status(&run.text) {
        let message = format!("the `{}` hides whether the tests passed", hides.what);
        let fix = "write the plain test command; join commands with `&&`, redirect with `>`";
        sink.problem("plan.status_hidden", run.column(hides.column), message, fix);
    }
    Some(Tests {
        run: run.text.trim_end().to_owned(),
        report,
        format,
    })
}
