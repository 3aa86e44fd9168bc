//! `brain plan …`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::facts::plan::{PhaseGate, Plan as Fact};
use protocol::facts::policy::Policy;
use protocol::facts::scope::Scope;
use protocol::rules::drift;
use runner::plan::{Known, Notice, Problem, read_bytes, render, schema};
use serde_json::json;

use crate::cli::{Globals, Plan};
use crate::config::Config;
use crate::failure::{Failure, Trouble};
use crate::out::Out;
use crate::{context, exit};

/// Carries out `brain plan …`.
pub fn plan(globals: &Globals, verb: &Plan) -> Result<u8, Failure> {
    let out = Out::new(globals);
    match verb {
        Plan::Schema => {
            let text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
            out.answer(json!({ "schema": schema() }), text);
            Ok(0)
        }
        Plan::Check { plan } => {
            let (config, policy) = surroundings(globals)?;
            let (plan, notices) = read(&config, &policy, plan)?;
            notices.iter().for_each(|notice| out.note(notice_line(notice)));
            out.answer(json!({ "plan": plan.name, "phases": plan.phases.len() }), "");
            out.note(map_line(&policy, &plan));
            Ok(0)
        }
        Plan::Show { plan } => {
            let (config, policy) = surroundings(globals)?;
            let (plan, _) = read(&config, &policy, plan)?;
            out.answer(document(&policy, &plan), show(&policy, &plan));
            Ok(0)
        }
    }
}

/// The configuration of the brain here, or the defaults outside of one: a plan can be checked anywhere.
fn surroundings(globals: &Globals) -> Result<(Config, Policy), Failure> {
    let cwd = std::env::current_dir().map_err(|_| Trouble::usage("the current folder is gone"))?;
    match context::find_root(globals, &cwd) {
        Ok(root) => context::configuration(&root),
        Err(_) if globals.root.is_none() => {
            let config = Config::read(Vec::new()).map_err(|error| context::bad_config(&error))?;
            let policy = config
                .policy(&Default::default())
                .map_err(|error| context::bad_config(&error))?;
            Ok((config, policy))
        }
        Err(failure) => Err(failure),
    }
}

/// Reads and checks a plan against this configuration.
///
/// # Errors
///
/// Every mistake in it, in one go.
pub fn read(config: &Config, policy: &Policy, path: &Path) -> Result<(Fact, Vec<Notice>), Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Trouble::new(
            exit::UNREADABLE,
            "plan.unreadable",
            format!("cannot read {}: {error}", path.display()),
        )
        .hint("name the file that holds the plan, seen from here")
    })?;
    let shown = path.display().to_string();
    known_to(config, policy, |known| read_bytes(&bytes, &shown, known))
        .map_err(|problems| bad(&shown, &problems))
}

/// Hands a reader what this configuration knows.
fn known_to<T>(config: &Config, policy: &Policy, read: impl FnOnce(&Known<'_>) -> T) -> T {
    let runners: Vec<String> = config.runners.keys().cloned().collect();
    let targets: Vec<String> = config.targets.keys().cloned().collect();
    let projects: BTreeMap<String, String> = config
        .projects
        .iter()
        .map(|(name, project)| (name.clone(), project.path.clone()))
        .collect();
    let conflict = |a: &[String], b: &[String]| {
        let parse = |entries: &[String]| Scope::parse(entries, policy.fold).ok();
        matches!((parse(a), parse(b)), (Some(a), Some(b)) if policy.zones.overlap(&a, &b))
    };
    let program = |name: &str| {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file()))
    };
    read(&Known {
        runners: &runners,
        projects: Some(&projects),
        targets: &targets,
        secret: None,
        program: Some(&program),
        conflict: Some(&conflict),
    })
}

fn bad(file: &str, problems: &[Problem]) -> Failure {
    let code = problems.first().map_or("plan.bad", |problem| problem.code);
    let facts: Vec<_> = problems
        .iter()
        .map(|it| {
            json!({ "code": it.code, "file": it.file, "line": it.line, "column": it.column, "excerpt": it.excerpt,
                    "message": it.message, "fix": it.fix })
        })
        .collect();
    let many = if problems.len() == 1 {
        "one error".to_owned()
    } else {
        format!("{} errors", problems.len())
    };
    let rendered = render(problems);
    // The count stands on the first line already.
    let detail = rendered
        .trim_end()
        .rsplit_once("\n\n")
        .map_or("", |(problems, _)| problems)
        .to_owned();
    Trouble::new(exit::UNREADABLE, code, format!("{file} has {many}"))
        .detail(detail)
        .facts(json!({ "problems": facts }))
        .into()
}

/// A notice on a line.
pub fn notice_line(notice: &Notice) -> String {
    format!(
        "note: {}:{}:{}: {} [{}]",
        notice.file, notice.line, notice.column, notice.message, notice.code
    )
}

/// The plan in one line: phases, zones, human gates.
pub fn map_line(policy: &Policy, plan: &Fact) -> String {
    let mut zones: BTreeMap<String, usize> = BTreeMap::new();
    for phase in &plan.phases {
        for zone in drift::zones_of(policy, phase) {
            *zones.entry(zone.to_string()).or_default() += 1;
        }
    }
    let zones: Vec<String> = zones
        .iter()
        .map(|(zone, count)| format!("{zone} ×{count}"))
        .collect();
    let gates: Vec<String> = plan
        .phases
        .iter()
        .filter(|phase| phase.gate == PhaseGate::Human)
        .map(|phase| format!("phase {}", phase.id))
        .collect();
    let gates = if gates.is_empty() {
        "0".to_owned()
    } else {
        format!("{} ({})", gates.len(), gates.join(", "))
    };
    format!(
        "Plan loaded: {} phases, zones: {}, human gates: {gates}",
        plan.phases.len(),
        zones.join(", ")
    )
}

fn document(policy: &Policy, plan: &Fact) -> serde_json::Value {
    let phases: Vec<_> = plan
        .phases
        .iter()
        .map(|phase| {
            json!({
                "id": phase.id.as_str(),
                "title": phase.title,
                "type": phase.kind.as_str(),
                "scope": phase.scope,
                "zones": drift::zones_of(policy, phase).iter().map(ToString::to_string).collect::<Vec<_>>(),
                "needs": phase.needs.iter().map(|need| need.as_str()).collect::<Vec<_>>(),
                "tests": phase.tests.as_ref().map(|tests| &tests.run),
            })
        })
        .collect();
    json!({ "plan": plan.name, "branch": plan.branch, "phases": phases })
}

fn show(policy: &Policy, plan: &Fact) -> String {
    let mut lines = vec![map_line(policy, plan), format!("  on {}", plan.branch)];
    for phase in plan.order().unwrap_or_default() {
        let zones: Vec<String> = drift::zones_of(policy, phase)
            .iter()
            .map(ToString::to_string)
            .collect();
        let needs: Vec<&str> = phase.needs.iter().map(|need| need.as_str()).collect();
        let after = if needs.is_empty() {
            String::new()
        } else {
            format!("  after {}", needs.join(", "))
        };
        lines.push(format!(
            "  {}  {} | zone: {} | type: {} | {}{after}",
            phase.id,
            phase.title,
            zones.join(", "),
            phase.kind,
            phase.scope.join(" "),
        ));
    }
    lines.join("\n")
}

/// Where a plan that was named lies: a path, or the source of a run of that name.
pub fn path_of(name: &Path) -> PathBuf {
    std::path::absolute(name).unwrap_or_else(|_| name.to_owned())
}
