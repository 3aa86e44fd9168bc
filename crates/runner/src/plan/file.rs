//! The shape of a plan's file, for editors: the reader's keys as types that make a JSON Schema.
//!
//! Nothing is read through these types, since a reader that stops at its first error is none of ours. A test
//! holds that they and the reader know the same keys and words.

#![expect(dead_code, reason = "the fields are there for the schema alone")]

use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};
use serde_json::{Map, Value, json};

use super::shared::CHAIN_UNUSED;

/// Gives the JSON Schema of a plan's file, for editors (`brain plan schema`).
pub fn schema() -> Value {
    let mut schema = schema_for!(PlanFile).to_value();
    schema["oneOf"] = json!([{ "required": ["phases"] }, { "required": ["chain"] }]);
    let anything =
        |what: &str| json!({ "description": format!("Accepted from the original; {what} has no use here.") });
    let mut step = schema["$defs"]["PhaseFile"].clone();
    if let Some(keys) = step["properties"].as_object_mut() {
        keys.extend(CHAIN_UNUSED.iter().map(|key| ((*key).to_owned(), anything("it"))));
        let id = keys.get("id").cloned().unwrap_or_default();
        keys.insert("step".to_owned(), id);
    }
    step["required"] = json!(["scope"]);
    step["oneOf"] = json!([{ "required": ["step"] }, { "required": ["id"] }]);
    step["description"] = json!("A step of a `chain:` plan of the original.");
    schema["$defs"]["StepFile"] = step;
    let chain = json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/StepFile" } });
    if let Some(keys) = schema["properties"].as_object_mut() {
        keys.extend(
            CHAIN_UNUSED
                .iter()
                .map(|key| ((*key).to_owned(), anything("it")))
                .collect::<Map<_, _>>(),
        );
        keys.insert("chain".to_owned(), chain);
    }
    schema
}

/// One text; what looks like a number or a truth is text as well.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Text {
    Plain(String),
    Number(f64),
    Truth(bool),
}

/// A list; one alone may stand for it.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum OneOrMany {
    One(Text),
    Many(Vec<Text>),
}

/// A plan: a sequence of phases with what they share.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "brain plan")]
struct PlanFile {
    /// What the plan is called; the file's stem when left out.
    name: Option<Text>,
    /// The theme branch, made from the main branch and merged at the end; `theme/<name>` when left out.
    branch: Option<Text>,
    /// How phases are delegated; `manual` when left out.
    mode: Option<ModeWord>,
    /// The branch that the theme is made from and merged into.
    main_branch: Option<Text>,
    /// How many phases may run side by side.
    #[schemars(range(min = 1))]
    jobs: Option<u32>,
    /// The runner of phases that name none.
    runner: Option<Text>,
    /// What makes a fresh worktree fit to work in.
    worktree: Option<WorktreeFile>,
    /// What leaving the kernel zone asks for; `told` when left out.
    kernel_exit: Option<KernelExitWord>,
    /// The projects that phases work in.
    projects: Option<BTreeMap<String, ProjectFile>>,
    /// The places that projects are deployed to.
    targets: Option<BTreeMap<String, Option<TargetFile>>>,
    /// The phases, one after the other unless `needs` says otherwise.
    #[schemars(length(min = 1, max = 20_000))]
    phases: Option<Vec<PhaseFile>>,
}

/// A project.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ProjectFile {
    /// Its folder, relative to the root.
    path: Text,
    /// The target that it is deployed to.
    target: Option<Text>,
    /// The tests of its phases that name none.
    tests: Option<TestsFile>,
}

/// A target; this machine when it has no `ssh`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TargetFile {
    /// The host, as `ssh` takes it.
    ssh: Option<Text>,
}

/// What is done once in a fresh worktree.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct WorktreeFile {
    /// A shell command.
    setup: Option<Text>,
    /// Paths to link from the main checkout.
    link: Option<OneOrMany>,
    /// Paths to copy from the main checkout.
    copy: Option<OneOrMany>,
}

/// A test command, or a command with where and how it reports.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum TestsFile {
    Command(String),
    Full(FullTests),
}

/// A test command with where and how it reports.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct FullTests {
    /// The shell command; nothing may hide its exit status.
    run: Text,
    /// Where it leaves a report.
    report: Option<Text>,
    /// The form of its report or output.
    format: Option<FormatWord>,
}

/// A phase: one piece of work.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PhaseFile {
    /// Its name in the plan.
    id: Text,
    /// What it is called; the id when left out.
    title: Option<Text>,
    /// The project that it works in; the root when left out.
    project: Option<Text>,
    /// What it is for; `code` when left out.
    r#type: Option<TypeWord>,
    /// What it may write, relative to the project: folders, files, globs, `!` to take away.
    scope: OneOrMany,
    /// The agent that is to do it.
    agent: Option<Text>,
    /// The task in one line.
    story_angle: Option<Text>,
    /// The tests that close it.
    tests: Option<TestsFile>,
    /// A runner's name, or a shell command.
    run: Option<Text>,
    /// The phases that come before it; the one above when left out, `[]` for none.
    needs: Option<OneOrMany>,
    /// The same as `needs`.
    depends_on: Option<OneOrMany>,
    /// What is asked before it is delegated; `never` when left out.
    gate: Option<GateWord>,
    /// The names of the secrets that it gets as environment variables.
    secrets: Option<OneOrMany>,
    /// Files that it gets: path to name of the secret.
    secret_files: Option<BTreeMap<String, Text>>,
    /// How a secret's placeholder stands in the brief; `name` when left out.
    inject: Option<InjectWord>,
    /// How long an attempt may take: `30m`.
    timeout: Option<Text>,
    /// How long an attempt may say nothing: `5m`.
    idle: Option<Text>,
    /// How much memory an attempt may use: `2G`.
    memory: Option<Text>,
    /// How much an attempt may print: `10M`.
    output: Option<Text>,
    /// How often a failed attempt is tried again; 0 when left out.
    #[schemars(range(max = 1_000))]
    retries: Option<u32>,
    /// What an `ok` end sets off.
    on_done: Option<OneOrMany>,
    /// What a `partial` end sets off.
    on_partial: Option<OneOrMany>,
    /// What a `failed` end sets off.
    on_fail: Option<OneOrMany>,
    /// Whether its tests are run in the untouched worktree first; `true` when left out.
    baseline: Option<bool>,
    /// What makes its worktree fit to work in; the plan's when left out.
    worktree: Option<WorktreeFile>,
    /// Whether what it reads can be trusted; `trusted` when left out.
    inputs: Option<InputsWord>,
    /// Whether it may reach the network; `true` when left out.
    network: Option<bool>,
    /// Whether it runs in the sandbox; `true` when left out.
    sandbox: Option<bool>,
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ })+) => {
        $($(#[$doc])* #[derive(JsonSchema)] enum $name { $(#[schemars(rename = $word)] $variant),+ })+
    };
}

words! {
    /// How phases are delegated.
    ModeWord { Manual = "manual", Assisted = "assisted", Swarm = "swarm" }
    /// What leaving the kernel zone asks for.
    KernelExitWord { Told = "told", Gate = "gate" }
    /// What is asked before a phase is delegated.
    GateWord { Human = "human", ZeroFailures = "0-failures", Never = "never" }
    /// What a phase is for.
    TypeWord {
        Code = "code", BrainWrite = "brain-write", Test = "test", Deploy = "deploy", Search = "search",
        Domain = "domain"
    }
    /// Whether what a phase reads can be trusted.
    InputsWord { Trusted = "trusted", Untrusted = "untrusted" }
    /// How a secret's placeholder stands in the brief.
    InjectWord { Name = "name", Prompt = "prompt" }
    /// The form of a test report.
    FormatWord {
        Junit = "junit", Tap = "tap", Nextest = "nextest", LibtestJson = "libtest-json", Libtest = "libtest"
    }
}

#[cfg(test)]
mod tests {
    use protocol::facts::report::Format;

    use super::super::phase::PHASE_KEYS;
    use super::super::read::{PLAN_KEYS, PROJECT_KEYS, TARGET_KEYS};
    use super::super::shared::{TESTS_KEYS, WORKTREE_KEYS};
    use super::*;

    fn keys(of: &Value) -> Vec<String> {
        let mut keys: Vec<_> = of["properties"].as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    }

    fn sorted<'a>(keys: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut keys: Vec<_> = keys.into_iter().map(str::to_owned).collect();
        keys.sort();
        keys
    }

    #[test]
    fn the_schema_and_the_reader_know_the_same_keys() {
        let schema = schema();
        let defs = &schema["$defs"];
        assert_eq!(keys(&schema), sorted(PLAN_KEYS.into_iter().chain(CHAIN_UNUSED)));
        assert_eq!(
            keys(&defs["PhaseFile"]),
            sorted(PHASE_KEYS.into_iter().filter(|key| *key != "step"))
        );
        assert_eq!(
            keys(&defs["StepFile"]),
            sorted(PHASE_KEYS.into_iter().chain(CHAIN_UNUSED))
        );
        assert_eq!(keys(&defs["ProjectFile"]), sorted(PROJECT_KEYS));
        assert_eq!(keys(&defs["TargetFile"]), sorted(TARGET_KEYS));
        assert_eq!(keys(&defs["FullTests"]), sorted(TESTS_KEYS));
        assert_eq!(keys(&defs["WorktreeFile"]), sorted(WORKTREE_KEYS));
        for closed in [
            "PhaseFile",
            "StepFile",
            "ProjectFile",
            "TargetFile",
            "FullTests",
            "WorktreeFile",
        ] {
            assert_eq!(defs[closed]["additionalProperties"], json!(false), "{closed}");
        }
        assert_eq!(schema["additionalProperties"], json!(false));
    }

    #[test]
    fn the_schema_and_the_reader_know_the_same_words() {
        let schema = schema();
        let accepted =
            |text: &str| super::super::read(text, "p.yml", &super::super::Known::default()).is_ok();
        let words = |name: &str| -> Vec<String> {
            let words = schema["$defs"][name]["enum"].as_array().unwrap().iter();
            words.map(|word| word.as_str().unwrap().to_owned()).collect()
        };
        for (name, key) in [
            ("GateWord", "gate"),
            ("TypeWord", "type"),
            ("InputsWord", "inputs"),
            ("InjectWord", "inject"),
        ] {
            for word in words(name) {
                assert!(
                    accepted(&format!("phases: [{{id: 1, scope: a, {key}: {word}}}]")),
                    "{key}: {word}"
                );
            }
        }
        for (name, key) in [("ModeWord", "mode"), ("KernelExitWord", "kernel_exit")] {
            for word in words(name) {
                assert!(
                    accepted(&format!("{key}: {word}\nphases: [{{id: 1, scope: a}}]")),
                    "{key}: {word}"
                );
            }
        }
        let formats: Vec<_> = Format::ALL.iter().map(|format| format.as_str()).collect();
        assert_eq!(
            sorted(words("FormatWord").iter().map(String::as_str)),
            sorted(formats)
        );
    }
}
