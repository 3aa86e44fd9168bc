//! `brain.yml`: how one brain judges, read once per command (protocol, section 1).
//!
//! This stands before every write of every agent, so it reads parser events and nothing more: no schema, no
//! reflection, no globs. A mistake is never passed over: all are shown in one go (exit 78).

mod at;
mod compose;
mod fields;
mod nearest;
mod problem;
mod read;
mod template;
mod tree;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::plan::{Target, WorktreeSetup};
use protocol::facts::policy::Policy;
use protocol::facts::span::Span;
use protocol::facts::tests::Tests;
use protocol::facts::zone::{Zone, ZoneError, ZoneLists, Zones};

pub use at::At;
pub use problem::{ConfigError, Problem};
pub use template::template;
pub use tree::{Entry, Node, Value};

use problem::{Flaw, Source, report};
use tree::Dialect;

/// The file that is versioned.
pub const FILE: &str = "brain.yml";
/// The file that overrides it on one machine.
pub const LOCAL: &str = "brain.local.yml";
/// What the original read, and what is read where there is no [`FILE`].
pub const COMPOSE: &str = "brain-compose.yml";
const COMPOSE_LOCAL: &str = "brain-compose.local.yml";

/// The configuration of a brain, every key with its default where it is not written.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The id that keeps brains apart in a shared store.
    pub brain: Option<String>,
    /// Whether a human claim may write the kernel paths that it names.
    pub kerneluser: bool,
    /// The patterns per zone; [`Config::policy`] makes the zones.
    pub zones: ZoneLists,
    /// Consecutive failures at which the breaker stops the work.
    pub fails_max: u32,
    /// How long a stale claim may still be renewed.
    pub stale_grace: Span,
    /// The branch that themes are made from and merged into.
    pub main_branch: Option<String>,
    /// Whether a merged branch is pushed.
    pub push: bool,
    /// The tests of claims that name none.
    pub tests: Option<Tests>,
    /// Test commands whose exit status is enough without a count.
    pub exit_is_enough: Vec<String>,
    /// Where evidence is taken.
    pub evidence: Evidence,
    /// How gates are answered.
    pub gates: Gates,
    /// The git journal, as written.
    pub journal: Option<Node>,
    /// The agents' hooks, as written.
    pub hooks: Option<Node>,
    /// The projects of the brain by name.
    pub projects: BTreeMap<String, Project>,
    /// The places that projects are deployed to.
    pub targets: BTreeMap<String, Target>,
    /// The sources, as written.
    pub sources: Option<Node>,
    /// What makes a fresh worktree fit to work in.
    pub worktree: WorktreeSetup,
    /// The runner of phases that name none.
    pub runner: Option<String>,
    /// The runners of this brain by name, besides those that are built in.
    pub runners: BTreeMap<String, Runner>,
    /// Paths whose change asks a gate `architecture`.
    pub risk: Vec<String>,
    /// The context that an agent gets, as written.
    pub context: Option<Node>,
    /// Where secrets come from, as written.
    pub secrets: Option<Node>,
    /// The sandbox, as written.
    pub sandbox: Option<Node>,
    /// The tier of the original's configuration; `free` without one.
    pub tier: Tier,
    /// What was passed over and deserves a word from `doctor`.
    pub notices: Vec<String>,
    sources_read: Vec<Source>,
    zone_places: Vec<(Zone, String, At)>,
}

/// Where the evidence of a close is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Evidence {
    /// In the claim's checkout, as it is.
    #[default]
    Checkout,
    /// In a worktree of exactly the tree that is committed.
    Clean,
}

/// How gates are answered.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Gates {
    /// Whether an answer needs an SSH signature of a listed key.
    pub signed: bool,
    /// The file that lists the keys, relative to the root.
    pub signers: Option<String>,
    /// When an unanswered gate becomes an abort.
    pub timeout: Option<Span>,
    /// Whether an answer within an agent's host counts.
    pub elicitation: bool,
}

/// A project of the brain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its folder, relative to the root.
    pub path: String,
    /// Its tests.
    pub tests: Option<Tests>,
    /// The target that it is deployed to.
    pub target: Option<String>,
}

/// A runner of the brain's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// The shell command that starts it.
    pub command: String,
    /// How it gets its brief.
    pub brief: Brief,
}

/// How a runner gets its brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Brief {
    /// On standard input.
    #[default]
    Stdin,
    /// As its last argument.
    Argument,
}

/// How much of the toolkit an agent gets, in the original's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Tier {
    /// The root's rules and the agent's own file.
    #[default]
    Free,
    /// As free.
    Featured,
    /// Also the toolkit of the domain.
    Pro,
    /// Also the best passages of the brain.
    Full,
}

/// What the root says that a policy depends on besides the configuration.
#[derive(Clone, Debug, Default)]
pub struct RootFacts {
    /// Whether `KERNEL.md` or `brain-compose.yml` stands at the root.
    pub legacy_layout: bool,
    /// The folders of the git hooks that lie below the root.
    pub hooks: Vec<LogicalPath>,
    /// Whether comparison of paths folds case.
    pub fold: Fold,
}

/// A configuration is written by hand: what is larger is something else.
const BYTES_MAX: u64 = 1 << 20;

impl Config {
    /// Reads the configuration of the brain at `root`; only the root checkout's counts.
    ///
    /// A root without any file has the defaults.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with every mistake found (exit 78).
    pub fn load(root: &Path) -> Result<Self, ConfigError> {
        let mut texts = Vec::with_capacity(2);
        let file = text(root, FILE)?;
        let names = match &file {
            Some(_) => [None, Some(LOCAL)],
            None => [Some(COMPOSE_LOCAL), Some(LOCAL)],
        };
        let first = match file {
            Some(text) => Some((FILE, text)),
            None => text(root, COMPOSE)?.map(|text| (COMPOSE, text)),
        };
        texts.extend(first);
        for name in names.into_iter().flatten() {
            texts.extend(text(root, name)?.map(|text| (name, text)));
        }
        Self::read(texts)
    }

    /// Reads a configuration from the texts of its files, each with its name, the overriding one last.
    ///
    /// # Errors
    ///
    /// As for [`Config::load`].
    pub fn read(texts: Vec<(&'static str, String)>) -> Result<Self, ConfigError> {
        let sources: Vec<Source> = texts
            .into_iter()
            .map(|(name, text)| Source { name, text })
            .collect();
        let mut whole: Option<Node> = None;
        let mut compose = compose::Compose::default();
        for (at, source) in sources.iter().enumerate() {
            let tree = match source.name {
                COMPOSE | COMPOSE_LOCAL => compose.read(source, at),
                _ => tree::read(bare(&source.text), at, Dialect::Strict)
                    .map_err(|flaw| report(&sources, vec![flaw]))?,
            };
            match &mut whole {
                Some(whole) => whole.overlay(tree),
                None => whole = Some(tree),
            }
        }
        let mut reader = fields::Reader::default();
        let mut config = read::config(whole.as_ref(), &mut reader);
        if !reader.flaws.is_empty() {
            return Err(report(&sources, reader.flaws));
        }
        config.tier = compose.tier();
        config.notices.extend(compose.notices);
        config.sources_read = sources;
        Ok(config)
    }

    /// Makes the rules' share of this configuration, with the hash that a claim records.
    ///
    /// The list of signers is kernel as the git hooks are: whoever writes there answers every gate.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a zone pattern that is none.
    pub fn policy(&self, facts: &RootFacts) -> Result<Policy, ConfigError> {
        let mut policy = self.rules(facts)?;
        policy.digest = digest(&policy);
        Ok(policy)
    }

    /// Makes the same without the hash: enough to look by, not to open a claim under.
    ///
    /// # Errors
    ///
    /// As for [`Config::policy`].
    pub fn rules(&self, facts: &RootFacts) -> Result<Policy, ConfigError> {
        let mut always = facts.hooks.clone();
        let signers = self.gates.signers.as_deref();
        always.extend(signers.and_then(|file| LogicalPath::parse(file, facts.fold).ok()));
        let zones = Zones::new(&self.zones, facts.legacy_layout, &always, facts.fold)
            .map_err(|error| report(&self.sources_read, vec![self.zone_flaw(&error)]))?;
        Ok(Policy {
            zones,
            kerneluser: self.kerneluser,
            fails_max: self.fails_max,
            exit_is_enough: self.exit_is_enough.clone(),
            stale_grace: self.stale_grace,
            fold: facts.fold,
            digest: String::new(),
        })
    }

    /// Shows a mistake that was found later in a section that is kept as written.
    pub fn problem(&self, at: At, message: &str, fix: &str) -> ConfigError {
        report(&self.sources_read, vec![Flaw::new(at, message, fix)])
    }

    fn zone_flaw(&self, error: &ZoneError) -> Flaw {
        let in_zone = |zone: Zone| self.zone_places.iter().filter(move |(of, ..)| *of == zone);
        let place = match error {
            ZoneError::Exclusion { zone, pattern } => in_zone(*zone).find(|(_, text, _)| text == pattern),
            ZoneError::Pattern { zone, error } => {
                // The error carries its own entry's words: the pattern whose own reading gives it is meant.
                in_zone(*zone).find(|(_, text, _)| read::pattern_error(text).as_ref() == Some(error))
            }
            ZoneError::TooComplex => self.zone_places.first(),
        };
        let start = At {
            file: 0,
            line: 1,
            column: 1,
        };
        Flaw::new(
            place.map_or(start, |(.., at)| *at),
            error.to_string(),
            "write a path or a pattern relative to the root, such as `docs/law/` or `agents/*.md`",
        )
    }
}

/// The hash of a policy, by which claims that were opened under different ones are told apart.
pub fn digest(policy: &Policy) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(policy.zones.canonical().as_bytes());
    let limits = format!(
        "kerneluser {}\nfails_max {}\nstale_grace {}\n",
        policy.kerneluser,
        policy.fails_max,
        policy.stale_grace.as_ms()
    );
    hash.update(limits.as_bytes());
    hash.finalize().to_hex()[..DIGEST].to_owned()
}

/// How much of the hash is kept: it tells two policies apart and proves nothing.
const DIGEST: usize = 32;

/// Takes the byte order mark away.
fn bare(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Reads a file at the root; `None` when there is none.
fn text(root: &Path, name: &'static str) -> Result<Option<String>, ConfigError> {
    let wrong = |line: usize, message: String, fix: &str| {
        let at = At {
            file: 0,
            line,
            column: 1,
        };
        let source = Source {
            name,
            text: String::new(),
        };
        Err(report(&[source], vec![Flaw::new(at, message, fix)]))
    };
    let mut file = match File::open(root.join(name)) {
        Ok(file) => file.take(BYTES_MAX + 1),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return wrong(1, format!("cannot be read: {error}"), "make it readable"),
    };
    let mut bytes = Vec::with_capacity(4096);
    if let Err(error) = file.read_to_end(&mut bytes) {
        return wrong(1, format!("cannot be read: {error}"), "make it readable");
    }
    if bytes.len() as u64 > BYTES_MAX {
        return wrong(1, "is larger than 1 MiB".to_owned(), "put data elsewhere");
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            wrong(line, "is not UTF-8 from here on".to_owned(), "save it as UTF-8")
        }
    }
}
