//! A plan and its phases as facts: checked, with every default filled in, without positions.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::needs;
use super::size::Size;
use super::span::Span;
use super::tests::Tests;
use super::trigger::Trigger;

/// The name of a phase in its plan, compared as text: `1` is `"1"`, and `1.0` is another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PhaseId(String);

impl PhaseId {
    /// How many characters an id may have.
    pub const MAX: usize = 64;

    /// Reads an id: letters, digits, `-`, `_` and `.`, at most [`PhaseId::MAX`]; `next` belongs to triggers.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let fits = !text.is_empty() && text.chars().count() <= Self::MAX && text.chars().all(plain);
        (fits && text != "next").then(|| Self(text.to_owned()))
    }

    /// Gives the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PhaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sequence of phases with what they share (hypervisor, 1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What the plan is called; the file's stem when it does not say.
    pub name: String,
    /// The theme branch that the work lands on.
    pub branch: String,
    /// How phases are delegated.
    pub mode: Mode,
    /// The branch that the theme is made from and merged into; the configuration's when absent.
    pub main_branch: Option<String>,
    /// How many phases may run side by side.
    pub jobs: Option<u32>,
    /// The runner of phases that name none; the configuration's when absent.
    pub runner: Option<String>,
    /// What makes a fresh worktree fit to work in.
    pub worktree: Option<WorktreeSetup>,
    /// What leaving the kernel zone asks for.
    pub kernel_exit: KernelExit,
    /// The projects that the plan itself names.
    pub projects: BTreeMap<String, Project>,
    /// The targets that the plan itself names.
    pub targets: BTreeMap<String, Target>,
    /// The phases, in the file's order; at least one.
    pub phases: Vec<Phase>,
    /// Whether it is a `chain:` plan of the original.
    pub chain: bool,
}

impl Plan {
    /// Finds a phase by its id.
    pub fn phase(&self, id: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.id.as_str() == id)
    }

    /// Gives the phases in an order in which each comes after all it needs, otherwise as written.
    ///
    /// Gives nothing for a circle or a need that is no phase; a plan that was read has neither.
    pub fn order(&self) -> Option<Vec<&Phase>> {
        let order = needs::order(&self.needs()?)?;
        Some(order.into_iter().map(|at| &self.phases[at]).collect())
    }

    /// Gives the needs of each phase as positions; nothing when one of them is no phase.
    pub fn needs(&self) -> Option<Vec<Vec<usize>>> {
        let places: BTreeMap<&PhaseId, usize> = self
            .phases
            .iter()
            .enumerate()
            .map(|(at, phase)| (&phase.id, at))
            .collect();
        let of = |phase: &Phase| phase.needs.iter().map(|need| places.get(need).copied()).collect();
        self.phases.iter().map(of).collect()
    }
}

/// How the phases of a plan are delegated (hypervisor, 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A human opens each window and works or pastes there.
    #[default]
    Manual,
    /// The same, with claim, worktree and window prepared.
    Assisted,
    /// The hypervisor starts the runners.
    Swarm,
}

/// What a phase that leaves the kernel zone asks for (hypervisor, 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelExit {
    /// It is told, and goes on.
    #[default]
    Told,
    /// A human is asked.
    Gate,
}

/// What is done once in a fresh worktree.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorktreeSetup {
    /// The shell command.
    pub setup: Option<String>,
    /// Paths that are linked from the main checkout.
    pub link: Vec<String>,
    /// Paths that are copied from the main checkout.
    pub copy: Vec<String>,
}

/// A project that a plan names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its folder, relative to the root; empty is the root.
    pub path: String,
    /// The target that it is deployed to.
    pub target: Option<String>,
    /// The tests of its phases that name none.
    pub tests: Option<Tests>,
}

/// A place that a project is deployed to.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Target {
    /// The host as the system's `ssh` takes it; this machine when absent.
    pub ssh: Option<String>,
}

/// One piece of work, delegated as a whole (hypervisor, 1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name in the plan.
    pub id: PhaseId,
    /// What it is called for humans; the id when it does not say.
    pub title: String,
    /// The project that it works in; the root when absent.
    pub project: Option<String>,
    /// What it is for.
    pub kind: Kind,
    /// The entries of its scope as written, relative to the project; at least one.
    pub scope_written: Vec<String>,
    /// The same entries relative to the root.
    pub scope: Vec<String>,
    /// The agent that is to do it.
    pub agent: Option<String>,
    /// The task in one line.
    pub story_angle: Option<String>,
    /// The tests that close it; the project's when absent.
    pub tests: Option<Tests>,
    /// What does it; the plan's runner when absent.
    pub run: Option<Launch>,
    /// The phases that come before it, without doubles, in the order written.
    pub needs: Vec<PhaseId>,
    /// What is asked before it is delegated.
    pub gate: PhaseGate,
    /// Whether a human is asked after it: a step of a `chain:` that says `gate: never` meant the end there.
    pub gate_after: bool,
    /// The names of the secrets that it gets.
    pub secrets: Vec<String>,
    /// The files that it gets, each with the name of its secret.
    pub secret_files: BTreeMap<String, String>,
    /// How `{{secret.NAME}}` stands in its brief.
    pub inject: Inject,
    /// How long an attempt may take.
    pub timeout: Option<Span>,
    /// How long an attempt may say nothing.
    pub idle: Option<Span>,
    /// How much memory an attempt may use.
    pub memory: Option<Size>,
    /// How much an attempt may print.
    pub output: Option<Size>,
    /// How often a failed attempt is tried again.
    pub retries: u32,
    /// What an `ok` end sets off.
    pub on_done: Vec<Trigger>,
    /// What a `partial` end sets off.
    pub on_partial: Vec<Trigger>,
    /// What a `failed` end sets off.
    pub on_fail: Vec<Trigger>,
    /// Whether its tests are run in the untouched worktree first.
    pub baseline: bool,
    /// What makes its worktree fit to work in; the plan's when absent.
    pub worktree: Option<WorktreeSetup>,
    /// Whether what it reads can be trusted.
    pub inputs: Inputs,
    /// Whether it may reach the network.
    pub network: bool,
    /// Whether it runs in the sandbox where there is one.
    pub sandbox: bool,
}

/// What does a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Launch {
    /// A configured or built-in runner by its name.
    Runner(String),
    /// A shell command.
    Shell(String),
}

/// What is asked before a phase is delegated (hypervisor, 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseGate {
    /// A human, always.
    Human,
    /// A human, when tests before it were skipped or not counted; red ones refuse as ever.
    #[serde(rename = "0-failures")]
    ZeroFailures,
    /// Nobody; drift, zone and failure gates stand.
    #[default]
    Never,
}

/// Whether what a phase reads can be trusted (hypervisor, 2: the rule of two).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inputs {
    /// Written by people who may give it orders.
    #[default]
    Trusted,
    /// Written by anybody.
    Untrusted,
}

/// How a secret's placeholder stands in a brief (hypervisor, 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inject {
    /// As the name of the environment variable.
    #[default]
    Name,
    /// As the value itself.
    Prompt,
}

impl Phase {
    /// Makes a phase of an id and a scope, all else as it is when left out.
    pub fn new(id: PhaseId, scope: Vec<String>) -> Self {
        Self {
            title: id.as_str().to_owned(),
            id,
            project: None,
            kind: Kind::default(),
            scope_written: scope.clone(),
            scope,
            agent: None,
            story_angle: None,
            tests: None,
            run: None,
            needs: Vec::new(),
            gate: PhaseGate::default(),
            gate_after: false,
            secrets: Vec::new(),
            secret_files: BTreeMap::new(),
            inject: Inject::default(),
            timeout: None,
            idle: None,
            memory: None,
            output: None,
            retries: 0,
            on_done: Vec::new(),
            on_partial: Vec::new(),
            on_fail: Vec::new(),
            baseline: true,
            worktree: None,
            inputs: Inputs::default(),
            network: true,
            sandbox: true,
        }
    }

    /// Writes what the phase means as stable text, for hashes and differences (hypervisor, 1 and 9).
    ///
    /// One line per value. Comments, spacing, the order of keys, and whether a default was written do not
    /// count; a key that is added later changes no text while it has its default. Needs and secrets are sets
    /// and are sorted; the scope keeps its order and is the one relative to the root.
    pub fn canonical(&self) -> String {
        let plain = Self::new(self.id.clone(), Vec::new());
        let mut form = Form::default();
        form.line("id", self.id.as_str());
        form.unless(self.title == plain.title, "title", &self.title);
        form.some("project", self.project.as_ref());
        form.unless(self.kind == plain.kind, "type", self.kind);
        self.scope.iter().for_each(|entry| form.line("scope", entry));
        form.some("agent", self.agent.as_ref());
        form.some("story_angle", self.story_angle.as_ref());
        if let Some(Tests { run, report, format }) = &self.tests {
            form.line("tests.run", run);
            form.some("tests.report", report.as_ref());
            form.some("tests.format", format.as_ref());
        }
        match &self.run {
            Some(Launch::Runner(name)) => form.line("run.runner", name),
            Some(Launch::Shell(command)) => form.line("run.shell", command),
            None => {}
        }
        form.set("needs", self.needs.iter().map(PhaseId::as_str));
        form.unless(
            self.gate == plain.gate,
            "gate",
            match self.gate {
                PhaseGate::Human => "human",
                PhaseGate::ZeroFailures => "0-failures",
                PhaseGate::Never => "never",
            },
        );
        form.unless(!self.gate_after, "gate_after", self.gate_after);
        form.set("secrets", self.secrets.iter().map(String::as_str));
        for (path, name) in &self.secret_files {
            form.line("secret_files.path", path);
            form.line("secret_files.name", name);
        }
        form.unless(self.inject == plain.inject, "inject", "prompt");
        form.some("timeout", self.timeout.as_ref());
        form.some("idle", self.idle.as_ref());
        form.some("memory", self.memory.as_ref());
        form.some("output", self.output.as_ref());
        form.unless(self.retries == 0, "retries", self.retries);
        for (key, triggers) in [
            ("on_done", &self.on_done),
            ("on_partial", &self.on_partial),
            ("on_fail", &self.on_fail),
        ] {
            triggers.iter().for_each(|trigger| form.line(key, trigger));
        }
        form.unless(self.baseline, "baseline", self.baseline);
        if let Some(WorktreeSetup { setup, link, copy }) = &self.worktree {
            form.line("worktree", true);
            form.some("worktree.setup", setup.as_ref());
            link.iter().for_each(|path| form.line("worktree.link", path));
            copy.iter().for_each(|path| form.line("worktree.copy", path));
        }
        form.unless(self.inputs == plain.inputs, "inputs", "untrusted");
        form.unless(self.network, "network", self.network);
        form.unless(self.sandbox, "sandbox", self.sandbox);
        form.0
    }
}

/// The lines of a canonical form: a key, a quoted value in which no line break stands raw.
#[derive(Default)]
struct Form(String);

impl Form {
    fn line(&mut self, key: &str, value: impl fmt::Display) {
        self.0.push_str(key);
        self.0.push_str(" \"");
        for c in value.to_string().chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                '\n' => self.0.push_str("\\n"),
                // Writing into a String cannot fail.
                c if c.is_control() => drop(write!(self.0, "\\u{{{:x}}}", u32::from(c))),
                c => self.0.push(c),
            }
        }
        self.0.push_str("\"\n");
    }

    fn some(&mut self, key: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.line(key, value);
        }
    }

    fn unless(&mut self, default: bool, key: &str, value: impl fmt::Display) {
        if !default {
            self.line(key, value);
        }
    }

    fn set<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        let mut values: Vec<_> = values.collect();
        values.sort_unstable();
        values.into_iter().for_each(|value| self.line(key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> PhaseId {
        PhaseId::parse(text).unwrap()
    }

    #[test]
    fn ids_are_text() {
        for text in ["1", "1e3", "no", "2a", "1.10", "étape-2", "_"] {
            assert_eq!(PhaseId::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "next",
            "a b",
            "a/b",
            "1+1",
            "a\n",
            "é\u{301}".repeat(40).as_str(),
        ] {
            assert_eq!(PhaseId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_canonical_form_is_frozen() {
        let mut phase = Phase::new(id("1"), vec!["app/src/".to_owned(), "!app/src/x".to_owned()]);
        assert_eq!(
            phase.canonical(),
            "id \"1\"\nscope \"app/src/\"\nscope \"!app/src/x\"\n"
        );
        phase.needs = vec![id("b"), id("a")];
        phase.gate = PhaseGate::ZeroFailures;
        phase.story_angle = Some("say \"go\"\nscope \"etc/\"".to_owned());
        phase.timeout = Some(Span::from_ms(1_800_000));
        phase.on_done = vec![Trigger::Next];
        phase.network = false;
        let text = "id \"1\"\nscope \"app/src/\"\nscope \"!app/src/x\"\n\
                    story_angle \"say \\\"go\\\"\\nscope \\\"etc/\\\"\"\nneeds \"a\"\nneeds \"b\"\n\
                    gate \"0-failures\"\ntimeout \"30m\"\non_done \"trigger:next\"\nnetwork \"false\"\n";
        assert_eq!(phase.canonical(), text);
    }

    #[test]
    fn every_value_of_a_phase_is_in_its_canonical_form() {
        type Change = fn(&mut Phase);
        let changes: [Change; 27] = [
            |phase| phase.title = "x".to_owned(),
            |phase| phase.project = Some("x".to_owned()),
            |phase| phase.kind = Kind::Deploy,
            |phase| phase.scope = vec!["agents/".to_owned()],
            |phase| phase.agent = Some("x".to_owned()),
            |phase| phase.story_angle = Some("x".to_owned()),
            |phase| {
                phase.tests = Some(Tests {
                    run: "x".to_owned(),
                    report: None,
                    format: None,
                })
            },
            |phase| phase.run = Some(Launch::Runner("x".to_owned())),
            |phase| phase.run = Some(Launch::Shell("x".to_owned())),
            |phase| phase.needs = vec![id("x")],
            |phase| phase.gate = PhaseGate::Human,
            |phase| phase.gate_after = true,
            |phase| phase.secrets = vec!["X".to_owned()],
            |phase| phase.secret_files = BTreeMap::from([("x".to_owned(), "X".to_owned())]),
            |phase| phase.inject = Inject::Prompt,
            |phase| phase.timeout = Some(Span::from_ms(1)),
            |phase| phase.idle = Some(Span::from_ms(1)),
            |phase| phase.memory = Some(Size::from_bytes(1)),
            |phase| phase.output = Some(Size::from_bytes(1)),
            |phase| phase.retries = 1,
            |phase| phase.on_done = vec![Trigger::Abort],
            |phase| phase.on_partial = vec![Trigger::Abort],
            |phase| phase.on_fail = vec![Trigger::Abort],
            |phase| phase.baseline = false,
            |phase| phase.worktree = Some(WorktreeSetup::default()),
            |phase| phase.inputs = Inputs::Untrusted,
            |phase| (phase.network, phase.sandbox) = (false, false),
        ];
        let plain = Phase::new(id("1"), vec!["src/".to_owned()]);
        let mut forms = vec![plain.canonical()];
        for change in changes {
            let mut phase = plain.clone();
            change(&mut phase);
            forms.push(phase.canonical());
        }
        let count = forms.len();
        forms.sort();
        forms.dedup();
        assert_eq!(forms.len(), count, "two different phases have one canonical form");
    }

    #[test]
    fn a_plan_gives_its_phases_in_order() {
        let mut first = Phase::new(id("1"), vec!["a".to_owned()]);
        first.needs = vec![id("2")];
        let second = Phase::new(id("2"), vec!["b".to_owned()]);
        let mut plan = Plan {
            name: "p".to_owned(),
            branch: "theme/p".to_owned(),
            mode: Mode::default(),
            main_branch: None,
            jobs: None,
            runner: None,
            worktree: None,
            kernel_exit: KernelExit::default(),
            projects: BTreeMap::new(),
            targets: BTreeMap::new(),
            phases: vec![first, second],
            chain: false,
        };
        let order: Vec<_> = plan
            .order()
            .unwrap()
            .into_iter()
            .map(|phase| phase.id.as_str())
            .collect();
        assert_eq!(order, ["2", "1"]);
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
        plan.phases[1].needs = vec![id("ghost")];
        assert_eq!(plan.order(), None);
        plan.phases[1].needs = vec![id("1")];
        assert_eq!(plan.order(), None);
    }
}
