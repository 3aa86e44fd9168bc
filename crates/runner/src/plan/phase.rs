//! Reading one phase by itself.

use std::collections::{BTreeMap, HashSet};

use protocol::facts::kind::Kind;
use protocol::facts::plan::{Inject, Inputs, Launch, Phase, PhaseGate, PhaseId};
use protocol::facts::trigger::Trigger;

use super::at::At;
use super::fields::{Fields, Text, one};
use super::problem::Sink;
use super::scope::{self, Astray};
use super::shared::{CHAIN_UNUSED, Context, tests, worktree};
use super::tree::{Entry, Node, Value};

/// The keys of a phase; a step of a `chain:` has `step` besides `id`.
pub(super) const PHASE_KEYS: [&str; 29] = [
    "id",
    "title",
    "project",
    "type",
    "scope",
    "agent",
    "story_angle",
    "tests",
    "run",
    "needs",
    "depends_on",
    "gate",
    "secrets",
    "secret_files",
    "inject",
    "timeout",
    "idle",
    "memory",
    "output",
    "retries",
    "on_done",
    "on_partial",
    "on_fail",
    "baseline",
    "worktree",
    "inputs",
    "network",
    "sandbox",
    "step",
];

/// A phase that was read by itself, and what only the whole plan can judge.
pub(super) struct Draft {
    pub(super) phase: Phase,
    /// Its id and where it stands; nothing when it has none that is one.
    pub(super) id: Option<(PhaseId, At)>,
    /// Its needs as written; nothing when it says none.
    pub(super) needs: Option<Vec<Text>>,
    /// Where its needs stand, or itself.
    pub(super) needs_at: At,
    /// Its triggers, each with where it stands.
    pub(super) triggers: Vec<(Trigger, At)>,
}

/// Reads a phase; gives nothing when it is no map.
pub(super) fn draft(node: &Node, chain: bool, context: &Context<'_>, sink: &mut Sink<'_>) -> Option<Draft> {
    let (keys, unused): (&[&str], &[&str]) = match chain {
        true => (&PHASE_KEYS, &CHAIN_UNUSED),
        false => (&PHASE_KEYS[..PHASE_KEYS.len() - 1], &[]),
    };
    let what = if chain { "a step" } else { "a phase" };
    let fields = Fields::of(node, what, keys, unused, sink)?;
    let id = id(&fields, chain, sink);
    // A phase without an id is reported; the rest of it is still to be checked.
    let known = id
        .as_ref()
        .map(|(id, _)| id.clone())
        .or_else(|| PhaseId::parse("_"))?;
    let (project, folder) = project(&fields, context, sink);
    let (scope_written, scope) = scope(&fields, &folder, project.as_deref(), sink);
    let needs_key = needs_key(&fields, sink);
    let mut triggers = Vec::new();
    let mut phase = Phase::new(known, scope);
    phase.scope_written = scope_written;
    phase.project = project;
    if let Some(title) = fields.string("title", sink) {
        phase.title = title;
    }
    let kinds = Kind::ALL.map(|kind| (kind.as_str(), kind));
    phase.kind = fields
        .word("type", "plan.bad_type", &kinds, sink)
        .unwrap_or_default();
    phase.agent = fields.string("agent", sink);
    phase.story_angle = fields.string("story_angle", sink);
    phase.tests = tests(&fields, sink);
    phase.run = launch(&fields, context, sink);
    let gates = [
        ("human", PhaseGate::Human),
        ("0-failures", PhaseGate::ZeroFailures),
        ("never", PhaseGate::Never),
    ];
    let gate = fields.word("gate", "plan.bad_gate", &gates, sink);
    phase.gate = gate.unwrap_or_default();
    phase.gate_after = chain && gate == Some(PhaseGate::Never);
    phase.secrets = secrets(&fields, context, sink);
    phase.secret_files = secret_files(&fields, context, sink);
    let inject = [("name", Inject::Name), ("prompt", Inject::Prompt)];
    phase.inject = fields
        .word("inject", "plan.bad_word", &inject, sink)
        .unwrap_or_default();
    phase.timeout = fields.span("timeout", sink);
    phase.idle = fields.span("idle", sink);
    phase.memory = fields.size("memory", sink);
    phase.output = fields.size("output", sink);
    phase.retries = fields.number("retries", 0, 1_000, sink).unwrap_or_default();
    phase.on_done = exits(&fields, "on_done", &mut triggers, sink);
    phase.on_partial = exits(&fields, "on_partial", &mut triggers, sink);
    phase.on_fail = exits(&fields, "on_fail", &mut triggers, sink);
    phase.baseline = fields.truth("baseline", sink).unwrap_or(true);
    phase.worktree = worktree(&fields, sink);
    let inputs = [("trusted", Inputs::Trusted), ("untrusted", Inputs::Untrusted)];
    phase.inputs = fields
        .word("inputs", "plan.bad_word", &inputs, sink)
        .unwrap_or_default();
    phase.network = fields.truth("network", sink).unwrap_or(true);
    phase.sandbox = fields.truth("sandbox", sink).unwrap_or(true);
    let needs = needs_key.and_then(|key| fields.texts(key, sink));
    let needs_at = fields.place(needs_key.unwrap_or("id"));
    Some(Draft {
        phase,
        id,
        needs,
        needs_at,
        triggers,
    })
}

fn id(fields: &Fields<'_>, chain: bool, sink: &mut Sink<'_>) -> Option<(PhaseId, At)> {
    let key = if chain && fields.get("step").is_some() {
        "step"
    } else {
        "id"
    };
    if key == "step"
        && let Some(other) = fields.get("id")
    {
        sink.problem(
            "plan.both_forms",
            other.at,
            "a step has `step` or `id`, not both",
            "keep one of them",
        );
    }
    if fields.get(key).is_none() {
        let key = if chain { "step" } else { "id" };
        sink.problem(
            "plan.missing_key",
            fields.at,
            format!("the phase has no `{key}`"),
            "give it one: `id: 1`",
        );
        return None;
    }
    let text = fields.text(key, sink)?;
    let id = PhaseId::parse(&text.text);
    if id.is_none() {
        let message = format!("`{}` is no id", text.text);
        let fix = "write letters, digits, `-`, `_` or `.`, at most 64, and not `next`";
        sink.problem("plan.bad_id", text.at, message, fix);
    }
    id.map(|id| (id, text.at))
}

/// Reads the project's name, and finds its folder.
fn project(fields: &Fields<'_>, context: &Context<'_>, sink: &mut Sink<'_>) -> (Option<String>, String) {
    let Some(text) = fields.text("project", sink) else {
        return (None, String::new());
    };
    let folder = context.projects.get(&text.text).cloned().unwrap_or_else(|| {
        let fix = match sink.nearest(&text.text, context.projects.keys().map(String::as_str)) {
            Some(meant) => format!("write `{meant}`, if that is meant"),
            None => "add it under `projects:` with its path".to_owned(),
        };
        sink.problem(
            "plan.unknown_project",
            text.at,
            format!("`{}` is no project", text.text),
            fix,
        );
        String::new()
    });
    (Some(text.text), folder)
}

/// Reads the scope, as written and joined to the folder of its project.
fn scope(
    fields: &Fields<'_>,
    folder: &str,
    project: Option<&str>,
    sink: &mut Sink<'_>,
) -> (Vec<String>, Vec<String>) {
    let texts = fields.texts("scope", sink);
    let missing = match &fields.get("scope").map(|entry| &entry.node.value) {
        None => true,
        Some(Value::List(nodes)) => nodes.is_empty(),
        Some(_) => false,
    };
    if missing {
        let fix = "say what it may write: folders, files or globs; `.` is the whole project";
        sink.problem(
            "plan.missing_key",
            fields.place("scope"),
            "the phase has no `scope`",
            fix,
        );
    }
    let (mut written, mut joined) = (Vec::new(), Vec::new());
    for Text { text, at, .. } in texts.unwrap_or_default() {
        match scope::join(folder, &text) {
            Ok(entry) => {
                joined.push(entry);
                written.push(text);
            }
            Err(Astray::Outside) => {
                let whose =
                    project.map_or_else(|| "the root".to_owned(), |name| format!("the project `{name}`"));
                let fix = format!("write it relative to {whose}");
                sink.problem(
                    "plan.scope_outside",
                    at,
                    format!("`{text}` lies outside {whose}"),
                    fix,
                );
            }
            Err(Astray::Empty | Astray::Control) => {
                let message = "an entry is a path without control characters";
                sink.problem("plan.bad_scope", at, message, "write a folder, a file or a glob");
            }
        }
    }
    if !written.is_empty() && written.iter().all(|entry| entry.starts_with('!')) {
        let message = "the scope takes away from nothing";
        sink.problem(
            "plan.bad_scope",
            fields.place("scope"),
            message,
            "name first what it covers: `.` is all",
        );
    }
    (written, joined)
}

/// Finds under which of its two names the needs are written; not under both.
fn needs_key(fields: &Fields<'_>, sink: &mut Sink<'_>) -> Option<&'static str> {
    match (fields.get("needs"), fields.get("depends_on")) {
        (Some(_), Some(other)) => {
            let message = "`needs` and `depends_on` are the same key";
            sink.problem("plan.duplicate_key", other.at, message, "keep one of them");
            Some("needs")
        }
        (Some(_), None) => Some("needs"),
        (None, Some(_)) => Some("depends_on"),
        (None, None) => None,
    }
}

/// Reads what does the phase: the name of a runner, or a command for the shell.
fn launch(fields: &Fields<'_>, context: &Context<'_>, sink: &mut Sink<'_>) -> Option<Launch> {
    let text = fields.text("run", sink)?;
    let run = text.text.trim_end();
    if context.runners().any(|runner| runner == run) {
        return Some(Launch::Runner(run.to_owned()));
    }
    let of_the_shell = |c: char| c.is_whitespace() || "/|&;<>()$`\\\"'*?[]#~=%{}!".contains(c);
    if run.contains(of_the_shell) || context.known.program.is_some_and(|exists| exists(run)) {
        return Some(Launch::Shell(run.to_owned()));
    }
    context.unknown_runner(run, text.at, sink);
    None
}

fn secrets(fields: &Fields<'_>, context: &Context<'_>, sink: &mut Sink<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for text in fields.texts("secrets", sink).unwrap_or_default() {
        check_secret(&text, context, sink);
        if seen.insert(text.text.clone()) {
            names.push(text.text);
        }
    }
    names
}

fn secret_files(fields: &Fields<'_>, context: &Context<'_>, sink: &mut Sink<'_>) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let Some(Entry { node, .. }) = fields.get("secret_files") else {
        return files;
    };
    let Value::Map(entries) = &node.value else {
        let message = "`secret_files` is a map from paths to names of secrets";
        sink.problem(
            "plan.bad_shape",
            node.at,
            message,
            "write `secret_files: {PATH: NAME}`",
        );
        return files;
    };
    for Entry { key, node, .. } in entries {
        if let Some(text) = one("secret_files", node, sink) {
            check_secret(&text, context, sink);
            files.insert(key.clone(), text.text);
        }
    }
    files
}

/// Reports a name that no environment variable can have, and one that no source knows.
fn check_secret(Text { text, at, .. }: &Text, context: &Context<'_>, sink: &mut Sink<'_>) {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !plain || text.starts_with(|c: char| c.is_ascii_digit()) {
        let fix = "write letters, digits and `_`, a digit not first";
        sink.problem(
            "plan.bad_secret",
            *at,
            format!("`{text}` is no name of a variable"),
            fix,
        );
    } else if context.known.secret.is_some_and(|exists| !exists(text)) {
        let fix = "add it to a source of secrets: `brain secrets check` says which";
        sink.problem(
            "plan.unknown_secret",
            *at,
            format!("the secret `{text}` does not exist"),
            fix,
        );
    }
}

/// Reads the triggers of one end.
fn exits(fields: &Fields<'_>, key: &str, all: &mut Vec<(Trigger, At)>, sink: &mut Sink<'_>) -> Vec<Trigger> {
    let mut triggers = Vec::new();
    for text in fields.texts(key, sink).unwrap_or_default() {
        match Trigger::parse(text.text.trim_end()) {
            Ok(trigger) => {
                all.push((trigger.clone(), text.at));
                triggers.push(trigger);
            }
            Err(error) => {
                let fix = "write it like `signal → BLOCKED_ON pilot`, the whole in single quotes when it holds `: ` or ` #`";
                sink.problem(
                    "plan.bad_trigger",
                    text.column(error.column),
                    error.kind.to_string(),
                    fix,
                );
            }
        }
    }
    triggers
}
