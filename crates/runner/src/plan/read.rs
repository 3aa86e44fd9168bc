//! Reading the plan itself: what its phases share, and what holds between them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use protocol::facts::needs;
use protocol::facts::plan::{KernelExit, Mode, Phase, PhaseId, Plan, Project, Target};
use protocol::facts::trigger::Trigger;

use super::at::At;
use super::fields::Fields;
use super::phase::{self, Draft};
use super::problem::Sink;
use super::shared::{CHAIN_UNUSED, Context, tests, worktree};
use super::tree::{Entry, Node, Value};
use super::{Conflict, Known, PHASES_MAX, branch, conflict, empty, scope};

/// The keys of a plan, besides `phases` or `chain`.
pub(super) const PLAN_KEYS: [&str; 12] = [
    "name",
    "branch",
    "mode",
    "main_branch",
    "jobs",
    "runner",
    "worktree",
    "kernel_exit",
    "projects",
    "targets",
    "phases",
    "chain",
];
pub(super) const PROJECT_KEYS: [&str; 3] = ["path", "target", "tests"];
pub(super) const TARGET_KEYS: [&str; 1] = ["ssh"];

/// Reads a plan; gives nothing when it has a problem.
pub(super) fn plan(root: &Node, file: &str, known: &Known<'_>, sink: &mut Sink<'_>) -> Option<Plan> {
    if matches!(root.value, Value::Null) {
        empty(sink);
        return None;
    }
    let chain = matches!(&root.value, Value::Map(entries)
        if entries.iter().any(|entry| entry.key == "chain") && !entries.iter().any(|entry| entry.key == "phases"));
    let unused: &[&str] = if chain { &CHAIN_UNUSED } else { &[] };
    let fields = Fields::of(root, "a plan", &PLAN_KEYS, unused, sink)?;
    if !chain && let Some(entry) = fields.get("chain") {
        sink.problem(
            "plan.both_forms",
            entry.at,
            "a plan has `phases` or `chain`, not both",
            "keep one of them",
        );
    }

    let (name, branch) = name(&fields, file, sink);
    let targets = targets(&fields, sink);
    let projects = projects(&fields, &targets, known, sink);
    let mut folders = known.projects.cloned().unwrap_or_default();
    folders.extend(
        projects
            .iter()
            .map(|(name, project)| (name.clone(), project.path.clone())),
    );
    let context = Context {
        known,
        projects: folders,
    };
    let runner = fields.text("runner", sink).map(|text| {
        if !context.runners().any(|runner| runner == text.text) {
            context.unknown_runner(&text.text, text.at, sink);
        }
        text.text
    });
    let mode = [
        ("manual", Mode::Manual),
        ("assisted", Mode::Assisted),
        ("swarm", Mode::Swarm),
    ];
    let kernel_exit = [("told", KernelExit::Told), ("gate", KernelExit::Gate)];
    let mut plan = Plan {
        name,
        branch,
        mode: fields
            .word("mode", "plan.bad_mode", &mode, sink)
            .unwrap_or_default(),
        main_branch: branch_name(&fields, "main_branch", sink),
        jobs: fields.number("jobs", 1, 10_000, sink),
        runner,
        worktree: worktree(&fields, sink),
        kernel_exit: fields
            .word("kernel_exit", "plan.bad_word", &kernel_exit, sink)
            .unwrap_or_default(),
        projects,
        targets,
        phases: Vec::new(),
        chain,
    };
    let drafts = drafts(&fields, chain, &context, sink);
    plan.phases = connected(drafts, sink);
    sink.is_clean().then_some(plan)
}

/// Reads the plan's name and branch: the file's stem, and a theme of that name, when it says none.
fn name(fields: &Fields<'_>, file: &str, sink: &mut Sink<'_>) -> (String, String) {
    let said = fields.text("name", sink);
    let at = said.as_ref().map_or(At::START, |text| text.at);
    let stem = || {
        Path::new(file)
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
    };
    let name = said.map(|text| text.text).or_else(stem).unwrap_or_default();
    if name.contains(|c: char| c.is_control() || c == '/' || c == '\\') || name.trim().is_empty() {
        sink.problem(
            "plan.bad_name",
            at,
            format!("`{name}` is no name for a plan"),
            "write `name:` with plain words",
        );
        return (name, String::new());
    }
    let branch = branch_name(fields, "branch", sink).unwrap_or_else(|| {
        let theme = format!("theme/{name}");
        if fields.get("branch").is_none()
            && let Some(why) = branch::fault(&theme)
        {
            let message = format!("`{theme}` is no branch: {why}");
            sink.problem(
                "plan.bad_branch",
                at,
                message,
                "write `branch:`, or a name that makes one",
            );
        }
        theme
    });
    (name, branch)
}

fn branch_name(fields: &Fields<'_>, key: &str, sink: &mut Sink<'_>) -> Option<String> {
    let check = |name: &str| branch::fault(name).map_or_else(|| Ok(name.to_owned()), Err);
    fields.text(key, sink)?.read(
        sink,
        "plan.bad_branch",
        check,
        "write a name that git takes for a branch",
    )
}

/// Gives the entries of a map from names to maps.
fn named<'n>(fields: &Fields<'n>, key: &str, sink: &mut Sink<'_>) -> &'n [Entry] {
    match fields.get(key).map(|entry| &entry.node) {
        None => &[],
        Some(Node {
            value: Value::Map(entries),
            ..
        }) => entries,
        Some(node) => {
            let fix = format!("write `{key}: {{NAME: {{…}}}}`");
            sink.problem(
                "plan.bad_shape",
                node.at,
                format!("`{key}` is a map from names"),
                fix,
            );
            &[]
        }
    }
}

fn targets(fields: &Fields<'_>, sink: &mut Sink<'_>) -> BTreeMap<String, Target> {
    let mut targets = BTreeMap::new();
    for Entry { key, node, .. } in named(fields, "targets", sink) {
        let target = match node.value {
            Value::Null => Some(Target::default()),
            _ => Fields::of(node, "a target", &TARGET_KEYS, &[], sink).map(|fields| Target {
                ssh: fields.string("ssh", sink),
            }),
        };
        targets.extend(target.map(|target| (key.clone(), target)));
    }
    targets
}

fn projects(
    fields: &Fields<'_>,
    targets: &BTreeMap<String, Target>,
    known: &Known<'_>,
    sink: &mut Sink<'_>,
) -> BTreeMap<String, Project> {
    let mut projects = BTreeMap::new();
    for Entry { key, at, node } in named(fields, "projects", sink) {
        let Some(fields) = Fields::of(node, "a project", &PROJECT_KEYS, &[], sink) else {
            continue;
        };
        let Some(path) = fields.text("path", sink) else {
            if fields.get("path").is_none() {
                let message = format!("the project `{key}` has no `path`");
                sink.problem(
                    "plan.missing_key",
                    *at,
                    message,
                    "say its folder, relative to the root",
                );
            }
            continue;
        };
        let path = scope::normal(&path.text).unwrap_or_else(|_| {
            let message = format!("`{}` lies outside the root", path.text);
            sink.problem(
                "plan.bad_path",
                path.at,
                message,
                "write the folder relative to the root",
            );
            String::new()
        });
        let target = fields.text("target", sink).map(|target| {
            let name = target.text;
            let known_here = targets.contains_key(&name) || known.targets.contains(&name);
            if !known_here && name != "local" {
                let all = targets
                    .keys()
                    .chain(known.targets)
                    .map(String::as_str)
                    .chain(["local"]);
                let fix = match sink.nearest(&name, all) {
                    Some(meant) => format!("write `{meant}`, if that is meant"),
                    None => "add it under `targets:`".to_owned(),
                };
                sink.problem(
                    "plan.unknown_target",
                    target.at,
                    format!("`{name}` is no target"),
                    fix,
                );
            }
            name
        });
        projects.insert(
            key.clone(),
            Project {
                path,
                target,
                tests: tests(&fields, sink),
            },
        );
    }
    projects
}

/// Reads each phase by itself.
fn drafts(fields: &Fields<'_>, chain: bool, context: &Context<'_>, sink: &mut Sink<'_>) -> Vec<Draft> {
    let key = if chain { "chain" } else { "phases" };
    let no_phase = |sink: &mut Sink<'_>| {
        let message = "the plan has no phase: there is nothing to run";
        sink.problem(
            "plan.no_phase",
            fields.place(key),
            message,
            "write `phases:` with at least one phase",
        );
    };
    let Some(entry) = fields.get(key) else {
        no_phase(sink);
        return Vec::new();
    };
    let Value::List(nodes) = &entry.node.value else {
        let fix = "write each phase as `- id: …`";
        sink.problem(
            "plan.bad_shape",
            entry.node.at,
            format!("`{key}` is a list of phases"),
            fix,
        );
        return Vec::new();
    };
    if nodes.is_empty() {
        no_phase(sink);
    }
    if nodes.len() > PHASES_MAX {
        let message = format!("the plan has {} phases", nodes.len());
        sink.problem(
            "plan.too_many_phases",
            nodes[PHASES_MAX].at,
            message,
            "split it: at most 20,000",
        );
        return Vec::new();
    }
    nodes
        .iter()
        .filter_map(|node| phase::draft(node, chain, context, sink))
        .collect()
}

/// Checks what holds between phases, and fills in their needs.
fn connected(drafts: Vec<Draft>, sink: &mut Sink<'_>) -> Vec<Phase> {
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(drafts.len());
    for (place, draft) in drafts.iter().enumerate() {
        let Some((id, at)) = &draft.id else { continue };
        if let Some(first) = places.get(id.as_str()) {
            let line = drafts[*first].id.as_ref().map_or(0, |(_, at)| at.line);
            let message = format!(
                "two phases have the id `{id}`: in line {line} and in line {}",
                at.line
            );
            sink.problem(
                "plan.duplicate_phase",
                *at,
                message,
                "give one of them another id",
            );
        } else {
            places.insert(id.as_str(), place);
        }
    }
    let find = |id: &str, at: At, key: &str, sink: &mut Sink<'_>| {
        let found = places.get(id).copied();
        if found.is_none() {
            let ids = drafts
                .iter()
                .filter_map(|draft| Some(draft.id.as_ref()?.0.as_str()));
            let fix = match sink.nearest(id, ids) {
                Some(meant) => format!("write `{meant}`, if that is meant"),
                None => "write the id of a phase of this plan".to_owned(),
            };
            sink.problem(
                "plan.unknown_phase",
                at,
                format!("`{key}` names `{id}`, which is no phase"),
                fix,
            );
        }
        found
    };
    let mut needs: Vec<Vec<usize>> = Vec::with_capacity(drafts.len());
    for (place, draft) in drafts.iter().enumerate() {
        needs.push(match &draft.needs {
            None => place.checked_sub(1).into_iter().collect(),
            Some(texts) => {
                let mut found = Vec::with_capacity(texts.len());
                for text in texts {
                    found.extend(find(&text.text, text.at, "needs", sink));
                }
                let mut seen = HashSet::new();
                found.retain(|need| seen.insert(*need));
                found
            }
        });
        for (trigger, at) in &draft.triggers {
            if let Trigger::Phase(id) = trigger {
                find(id, *at, "trigger", sink);
            }
        }
    }
    tell_cycles(&drafts, &needs, sink);
    let ids: Vec<Option<PhaseId>> = drafts
        .iter()
        .map(|draft| Some(draft.id.as_ref()?.0.clone()))
        .collect();
    let phases = drafts.into_iter().zip(needs);
    phases
        .map(|(draft, needs)| {
            let mut phase = draft.phase;
            phase.needs = needs.into_iter().filter_map(|need| ids[need].clone()).collect();
            phase
        })
        .collect()
}

fn tell_cycles(drafts: &[Draft], needs: &[Vec<usize>], sink: &mut Sink<'_>) {
    let name = |at: &usize| drafts[*at].phase.id.as_str();
    for cycle in needs::cycles(needs) {
        let circle = cycle
            .members
            .iter()
            .chain(cycle.members.first())
            .map(name)
            .collect::<Vec<_>>()
            .join(" → ");
        let mut message = format!("these phases wait for each other: {circle}");
        for (others, what) in [
            (&cycle.knotted, "knotted with it"),
            (&cycle.waiting, "waiting for it"),
        ] {
            if !others.is_empty() {
                message += &format!(
                    "; {what}: {}",
                    others.iter().map(name).collect::<Vec<_>>().join(", ")
                );
            }
        }
        let at = drafts[cycle.members[0]].needs_at;
        sink.problem(
            "plan.cycle",
            at,
            message,
            "take one of these needs away (`needs: []` is none)",
        );
    }
}

/// Tells which phases could run at once and will not.
pub(super) fn tell_conflicts(plan: &Plan, conflict: Conflict<'_>, sink: &mut Sink<'_>) {
    for (first, second) in conflict::side_by_side(plan, conflict) {
        let (first, second) = (&plan.phases[first].id, &plan.phases[second].id);
        let message =
            format!("phases `{first}` and `{second}` could run at once and conflict: `{second}` will wait");
        sink.notice("plan.conflict", At::START, message);
    }
}
