//! From the tree to the typed configuration, section by section.

use std::collections::BTreeMap;

use protocol::facts::path::Fold;
use protocol::facts::plan::{Target, WorktreeSetup};
use protocol::facts::policy::FAILS_MAX;
use protocol::facts::report::Format;
use protocol::facts::scope::{Scope, ScopeError};
use protocol::facts::span::Span;
use protocol::facts::tests::{Tests, hides_status};
use protocol::facts::zone::Zone;

use super::fields::Reader;
use super::nearest::nearest;
use super::tree::{Entry, Node, Value};
use super::{Brief, Config, Evidence, Gates, Project, Runner};

const KEYS: [&str; 23] = [
    "brain",
    "store",
    "kerneluser",
    "zones",
    "circuit_breaker",
    "stale_grace",
    "main_branch",
    "push",
    "tests",
    "evidence",
    "gates",
    "journal",
    "hooks",
    "projects",
    "targets",
    "sources",
    "worktree",
    "runner",
    "runners",
    "risk",
    "context",
    "secrets",
    "sandbox",
];

/// How long a stale claim may still be renewed when nothing is said.
const STALE_GRACE: Span = Span::from_ms(24 * 3_600_000);

/// More failures in a row than this are no limit.
const FAILS_LIMIT: u32 = 1_000;

pub(super) fn config(root: Option<&Node>, reader: &mut Reader) -> Config {
    let mut config = Config {
        brain: None,
        kerneluser: true,
        zones: Default::default(),
        fails_max: FAILS_MAX,
        stale_grace: STALE_GRACE,
        main_branch: None,
        push: false,
        tests: None,
        exit_is_enough: Vec::new(),
        evidence: Evidence::default(),
        gates: Gates::default(),
        journal: None,
        hooks: None,
        projects: BTreeMap::new(),
        targets: BTreeMap::new(),
        sources: None,
        worktree: WorktreeSetup::default(),
        runner: None,
        runners: BTreeMap::new(),
        risk: Vec::new(),
        context: None,
        secrets: None,
        sandbox: None,
        tier: Default::default(),
        notices: Vec::new(),
        sources_read: Vec::new(),
        zone_places: Vec::new(),
    };
    let Some(Value::Map(entries)) = root.map(|root| &root.value) else {
        return config;
    };
    for Entry { key, at, node } in entries {
        if node.value == Value::Null {
            continue;
        }
        let key = key.as_str();
        match key {
            "brain" => config.brain = brain_id(node, reader),
            // Passed over, it would leave two machines that think they are coordinated.
            "store" => reader.flaw(
                node,
                "`store` names a shared store, and this brain keeps its own in `.brain/brain.db`",
                "take the line out, and let the work of one machine alone into this brain",
            ),
            "kerneluser" => set(&mut config.kerneluser, reader.truth(node, key)),
            "zones" => zones(node, &mut config, reader),
            "circuit_breaker" => {
                let section = reader.section(node, key, &["max_consecutive_fails"]);
                if let Some(most) = section.and_then(|section| section.get("max_consecutive_fails")) {
                    let most = reader.number(most, "max_consecutive_fails", 1, FAILS_LIMIT);
                    set(&mut config.fails_max, most);
                }
            }
            "stale_grace" => set(&mut config.stale_grace, reader.span(node, key)),
            "main_branch" => config.main_branch = reader.text(node, key),
            "push" => set(&mut config.push, reader.truth(node, key)),
            "tests" => {
                config.tests = tests(node, &["run", "report", "format", "exit_is_enough"], reader);
                if let Some(enough) = node.get("exit_is_enough") {
                    set(&mut config.exit_is_enough, reader.texts(enough, "exit_is_enough"));
                }
            }
            "evidence" => {
                let words = [("clean", Evidence::Clean), ("checkout", Evidence::Checkout)];
                set(&mut config.evidence, reader.word(node, key, &words));
            }
            "gates" => set(&mut config.gates, gates(node, reader)),
            "journal" => config.journal = Some(node.clone()),
            "hooks" => config.hooks = Some(node.clone()),
            "projects" => config.projects = named(node, key, reader, project),
            "targets" => config.targets = named(node, key, reader, target),
            "sources" => config.sources = Some(node.clone()),
            "worktree" => set(&mut config.worktree, worktree(node, reader)),
            "runner" => config.runner = reader.text(node, key),
            "runners" => config.runners = named(node, key, reader, runner),
            "risk" => set(&mut config.risk, risk(node, reader)),
            "context" => config.context = Some(node.clone()),
            "secrets" => config.secrets = Some(node.clone()),
            "sandbox" => config.sandbox = Some(node.clone()),
            // Whoever keeps something of their own here may; what looks like a slip is told by `doctor`.
            other => {
                if let Some(near) = nearest(other, &KEYS) {
                    let line = at.line;
                    config.notices.push(format!(
                        "line {line}: `{other}` is no key of ours and is ignored; `{near}` is one"
                    ));
                }
            }
        }
    }
    config
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// Reads a map whose keys are names.
fn named<T>(
    node: &Node,
    name: &str,
    reader: &mut Reader,
    read: fn(&str, &Node, &mut Reader) -> Option<T>,
) -> BTreeMap<String, T> {
    let entries = reader.map(node, name).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| Some((entry.key.clone(), read(&entry.key, &entry.node, reader)?)))
        .collect()
}

fn brain_id(node: &Node, reader: &mut Reader) -> Option<String> {
    let id = reader.text(node, "brain")?;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if id.len() <= 64 && id.bytes().all(good) {
        return Some(id);
    }
    let message = format!("{id:?} is no brain id");
    reader.flaw(
        node,
        message,
        "write at most 64 letters, digits, `-` and `_`, as `brain init` did",
    );
    None
}

fn zones(node: &Node, config: &mut Config, reader: &mut Reader) {
    let all = [Zone::Project, Zone::Personal, Zone::Kernel, Zone::Secret];
    let Some(section) = reader.section(node, "zones", &["project", "personal", "kernel", "secret"]) else {
        return;
    };
    for zone in all {
        let name = zone.to_string();
        let Some(list) = section.get(&name) else {
            continue;
        };
        let patterns = reader.texts(list, &name);
        let nodes = match &list.value {
            Value::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(list),
        };
        let places = nodes
            .iter()
            .filter_map(|node| Some((zone, node.text()?.to_owned(), node.at)));
        config.zone_places.extend(places);
        match zone {
            Zone::Project => config.zones.project = patterns,
            Zone::Personal => config.zones.personal = patterns,
            Zone::Kernel => config.zones.kernel = patterns,
            Zone::Secret => config.zones.secret = patterns,
        }
    }
}

/// Says what is wrong with one pattern.
pub(super) fn pattern_error(pattern: &str) -> Option<ScopeError> {
    Scope::parse(&[pattern], Fold::Exact).err()
}

/// Reads tests written as a command, or as its parts.
fn tests(node: &Node, keys: &[&str], reader: &mut Reader) -> Option<Tests> {
    if node.text().is_some() {
        return Some(Tests {
            run: command(node, "tests", reader)?,
            report: None,
            format: None,
        });
    }
    let section = reader.section(node, "tests", keys)?;
    let report = section.get("report").and_then(|node| reader.text(node, "report"));
    let format = section.get("format").and_then(|node| {
        reader.word(
            node,
            "format",
            &Format::ALL.map(|format| (format.as_str(), format)),
        )
    });
    let run = command(section.get("run")?, "run", reader)?;
    Some(Tests { run, report, format })
}

/// Reads a test command, whose own exit status must be the one that counts.
fn command(node: &Node, name: &str, reader: &mut Reader) -> Option<String> {
    let run = reader.text(node, name)?;
    if let Some(hides) = hides_status(&run) {
        let message = format!("`{}` lets another status stand for that of the tests", hides.what);
        reader.flaw(
            node,
            message,
            "write the test command alone, or put the rest into a script",
        );
        return None;
    }
    Some(run)
}

fn gates(node: &Node, reader: &mut Reader) -> Option<Gates> {
    let keys = ["signed", "signers", "timeout", "elicitation"];
    let section = reader.section(node, "gates", &keys)?;
    let signed = section.get("signed");
    let gates = Gates {
        signed: signed
            .and_then(|node| reader.truth(node, "signed"))
            .unwrap_or_default(),
        signers: section
            .get("signers")
            .and_then(|node| reader.text(node, "signers")),
        timeout: section
            .get("timeout")
            .and_then(|node| reader.span(node, "timeout")),
        elicitation: section
            .get("elicitation")
            .and_then(|node| reader.truth(node, "elicitation"))
            .unwrap_or_default(),
    };
    match signed {
        Some(node) if gates.signed && gates.signers.is_none() => {
            reader.flaw(
                node,
                "`signed` needs to know whose signatures count",
                "add `signers: FILE`, an allowed-signers file as `ssh-keygen` reads it",
            );
            None
        }
        _ => Some(gates),
    }
}

fn project(name: &str, node: &Node, reader: &mut Reader) -> Option<Project> {
    let before = reader.flaws.len();
    let section = reader.section(node, name, &["path", "tests", "target"])?;
    let path = match section.get("path") {
        Some(node) => reader.text(node, "path")?,
        None if reader.flaws.len() > before => return None,
        None => {
            reader.flaw(
                node,
                format!("the project `{name}` has no `path`"),
                "add `path: FOLDER`",
            );
            return None;
        }
    };
    Some(Project {
        path,
        tests: section
            .get("tests")
            .and_then(|node| tests(node, &["run", "report", "format"], reader)),
        target: section.get("target").and_then(|node| reader.text(node, "target")),
    })
}

fn target(name: &str, node: &Node, reader: &mut Reader) -> Option<Target> {
    let section = reader.section(node, name, &["ssh"])?;
    let ssh = section.get("ssh").and_then(|node| reader.text(node, "ssh"));
    Some(Target { ssh })
}

fn worktree(node: &Node, reader: &mut Reader) -> Option<WorktreeSetup> {
    let section = reader.section(node, "worktree", &["setup", "link", "copy"])?;
    let mut list = |key: &str| match section.get(key) {
        Some(node) => reader.texts(node, key).unwrap_or_default(),
        None => Vec::new(),
    };
    let (link, copy) = (list("link"), list("copy"));
    let setup = section.get("setup").and_then(|node| reader.text(node, "setup"));
    Some(WorktreeSetup { setup, link, copy })
}

fn runner(name: &str, node: &Node, reader: &mut Reader) -> Option<Runner> {
    let before = reader.flaws.len();
    let section = reader.section(node, name, &["command", "brief"])?;
    let words = [("stdin", Brief::Stdin), ("argument", Brief::Argument)];
    let brief = section
        .get("brief")
        .and_then(|node| reader.word(node, "brief", &words))
        .unwrap_or_default();
    match section.get("command") {
        Some(command) => Some(Runner {
            command: reader.text(command, "command")?,
            brief,
        }),
        // A key that was told already is probably the one that is missing.
        None if reader.flaws.len() > before => None,
        None => {
            reader.flaw(
                node,
                format!("the runner `{name}` has no `command`"),
                "add `command: CMD`",
            );
            None
        }
    }
}

fn risk(node: &Node, reader: &mut Reader) -> Option<Vec<String>> {
    let list = reader.section(node, "risk", &["paths"])?.get("paths")?;
    let paths = reader.texts(list, "paths")?;
    for path in &paths {
        if let Some(error) = pattern_error(path) {
            reader.flaw(
                list,
                format!("`paths`: {error}"),
                "write paths or patterns relative to the root",
            );
        }
    }
    Some(paths)
}
