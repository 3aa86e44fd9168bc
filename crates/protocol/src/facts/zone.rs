//! Whose a path is: the zones, and what a scope may claim across them.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::path::{Fold, LogicalPath, compared};
use super::scope::{Entry, Machine, Scope, ScopeError, can_be_taken, find};

/// Names the zone of a path (protocol, section 4), ordered by strictness.
///
/// Kernel is stricter than personal: a gate is enough for a personal file, while a kernel file can
/// be closed to everybody, and is never deleted on the right to write alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zone {
    /// The work itself; whatever no pattern names.
    Project,
    /// What belongs to the human: written after a gate.
    Personal,
    /// What governs the agents: written by human claims that name it, or after a gate.
    Kernel,
    /// Never written through the protocol.
    Secret,
}

/// Holds the patterns that a configuration gives per zone, in the grammar of scopes and relative to
/// the root. What is given replaces the built-in list of that zone; `secret` is added to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneLists {
    /// Paths that a wider pattern of another zone is not to take.
    pub project: Option<Vec<String>>,
    /// In place of `profil/capital.md`, `profil/objectifs.md` and `progression/`.
    pub personal: Option<Vec<String>>,
    /// In place of `KERNEL.md` and what goes with it; the list that is always kernel stays.
    pub kernel: Option<Vec<String>>,
    /// Besides `MYSECRETS`, `brain-secrets/`, `.env` and `.env.*`.
    pub secret: Option<Vec<String>>,
}

/// Says why a list of zone patterns was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneError {
    /// A pattern is no scope entry.
    Pattern {
        /// The list it stands in.
        zone: Zone,
        /// What is wrong with it.
        error: ScopeError,
    },
    /// A pattern starts with `!`; what is to be left out goes into the list of its own zone.
    Exclusion {
        /// The list it stands in.
        zone: Zone,
        /// The pattern as it was given.
        pattern: String,
    },
    /// The patterns together grow past the fixed size that exact answers need.
    TooComplex,
}

/// Says how a scope stands to a path once zones are minded: checks 2 and 3 of the preflight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// No entry covers the path (check 2 fails).
    No,
    /// An entry would, but it is of another zone than the path, whose zone this is (check 3 fails).
    OtherZone(Zone),
    /// An entry of the path's own zone covers it.
    Yes,
}

/// Holds the zone policy of a brain: every path has one zone (protocol, section 4).
#[derive(Clone, Debug)]
pub struct Zones {
    /// The rule that wins comes first.
    rules: Vec<Rule>,
    fold: Fold,
}

#[derive(Clone, Debug)]
struct Rule {
    zone: Zone,
    entry: Entry,
}

const KERNEL_ALWAYS: [&str; 9] = [
    "brain.yml",
    "brain.local.yml",
    "brain-compose*.yml",
    ".claude/settings*.json",
    ".codex/",
    ".gemini/settings.json",
    ".cursor/hooks.json",
    ".opencode/",
    ".mcp.json",
];
const KERNEL: [&str; 6] = [
    "KERNEL.md",
    "CLAUDE.md",
    "AGENTS.md",
    "PATHS.md",
    "brain-constitution.md",
    "BRAIN-INDEX.md",
];
const KERNEL_LEGACY: [&str; 3] = ["agents/", "profil/", "scripts/"];
const PERSONAL: [&str; 3] = ["profil/capital.md", "profil/objectifs.md", "progression/"];
const SECRET_NAMES: [&str; 3] = ["MYSECRETS", "brain-secrets", ".env"];

impl Zones {
    /// Builds the policy from the built-in lists and what the configuration puts in their place.
    ///
    /// `legacy_layout` says that `KERNEL.md` or `brain-compose.yml` stands at the root; then the
    /// folders of such a brain are kernel. `hooks` are the folders of the git hooks.
    ///
    /// # Errors
    ///
    /// [`ZoneError`] for the first pattern that is refused.
    pub fn new(
        lists: &ZoneLists,
        legacy_layout: bool,
        hooks: &[LogicalPath],
        fold: Fold,
    ) -> Result<Self, ZoneError> {
        let mut zones = Self {
            rules: Vec::new(),
            fold,
        };
        zones.add(Zone::Kernel, KERNEL_ALWAYS)?;
        for hooks in hooks.iter().filter(|hooks| !hooks.is_root()) {
            let scope = Scope::from_path(hooks);
            let scope = scope.map_err(|error| ZoneError::Pattern {
                zone: Zone::Kernel,
                error,
            })?;
            zones.add(Zone::Kernel, scope.to_strings())?;
        }
        match &lists.kernel {
            Some(given) => zones.add(Zone::Kernel, given)?,
            None => {
                zones.add(Zone::Kernel, KERNEL)?;
                zones.add(Zone::Kernel, KERNEL_LEGACY.iter().filter(|_| legacy_layout))?;
            }
        }
        match &lists.personal {
            Some(given) => zones.add(Zone::Personal, given)?,
            None => zones.add(Zone::Personal, PERSONAL)?,
        }
        zones.add(Zone::Project, lists.project.iter().flatten())?;
        zones.add(Zone::Secret, lists.secret.iter().flatten())?;
        // Names only add up, and the built-in patterns are known to be small: configured globs multiply.
        let configured = [&lists.kernel, &lists.personal, &lists.project, &lists.secret];
        let configured: Vec<_> = configured.into_iter().flatten().flatten().collect();
        let globs = zones
            .rules
            .iter()
            .map(|rule| &rule.entry)
            .filter(|entry| entry.is_glob());
        let globs = globs.filter(|entry| configured.iter().any(|pattern| *pattern == entry.as_str()));
        if !can_be_taken(globs) {
            return Err(ZoneError::TooComplex);
        }
        let names = SECRET_NAMES.iter().map(|name| Entry::at_any_depth(name, None));
        for entry in names.chain([Entry::at_any_depth(".env.", Some("example"))]) {
            let entry = if fold == Fold::Case { entry.folded() } else { entry };
            zones.rules.push(Rule {
                zone: Zone::Secret,
                entry,
            });
        }
        let secret = |rule: &Rule| rule.zone == Zone::Secret;
        zones.rules.sort_by(|a, b| {
            let weight = |rule: &Rule| (secret(rule), rule.entry.depth(), rule.zone);
            weight(b).cmp(&weight(a))
        });
        Ok(zones)
    }

    fn add<I>(&mut self, zone: Zone, patterns: I) -> Result<(), ZoneError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        for pattern in patterns {
            let pattern = pattern.as_ref();
            if pattern.starts_with('!') {
                return Err(ZoneError::Exclusion {
                    zone,
                    pattern: pattern.into(),
                });
            }
            let entry =
                Entry::parse(pattern, self.fold).map_err(|error| ZoneError::Pattern { zone, error })?;
            self.rules.push(Rule { zone, entry });
        }
        Ok(())
    }

    /// Returns the zone of a path: a secret pattern always wins; among the others the one with most
    /// components, then the stricter. `**` counts as no component, since it may stand for none.
    pub fn zone_of(&self, path: &LogicalPath) -> Zone {
        let fold = if path.is_folded() { Fold::Case } else { Fold::Exact };
        self.folded(fold).zone_of_key(path.key())
    }

    /// Returns the zone of an entry: that of its literal part before the first special character.
    ///
    /// Of a folder that may be told by what lies in it alone: `agents/**` leaves the name `agents` out, and an
    /// entry `agents/` names nothing but paths of that zone.
    pub fn zone_of_entry(&self, entry: &Entry) -> Zone {
        let zones = self.folded(entry.fold());
        let place = compared(&entry.literal_part(), zones.fold).into_owned();
        zones.zone_by(|rule| rule.matches(&place) || rule.holds_all_below(&place))
    }

    /// Lists the entries of a scope that add paths, each with its zone: what the claim names.
    pub fn entry_zones<'a>(&self, scope: &'a Scope) -> Vec<(&'a Entry, Zone)> {
        scope
            .additions()
            .map(|entry| (entry, self.zone_of_entry(entry)))
            .collect()
    }

    fn zone_of_key(&self, key: &str) -> Zone {
        let key = compared(key, self.fold);
        self.zone_by(|rule| rule.matches(&key))
    }

    fn zone_by(&self, holds: impl Fn(&Entry) -> bool) -> Zone {
        let first = self.rules.iter().find(|rule| holds(&rule.entry));
        first.map_or(Zone::Project, |rule| rule.zone)
    }

    /// Returns the policy with at least this folding: where one side folds case, both do.
    fn folded(&self, fold: Fold) -> Cow<'_, Self> {
        if fold <= self.fold {
            return Cow::Borrowed(self);
        }
        let fold_rule = |rule: &Rule| Rule {
            zone: rule.zone,
            entry: rule.entry.folded(),
        };
        Cow::Owned(Self {
            rules: self.rules.iter().map(fold_rule).collect(),
            fold,
        })
    }

    /// Says whether an entry of the path's own zone covers it, or only one of another zone.
    pub fn coverage(&self, scope: &Scope, path: &LogicalPath) -> Coverage {
        let (compared, key) = scope.compared_with(path);
        if compared.takes_away(&key) {
            return Coverage::No;
        }
        let zone = self.zone_of(path);
        let mut coverage = Coverage::No;
        for entry in compared.additions().filter(|entry| entry.matches(&key)) {
            if self.zone_of_entry(entry) == zone {
                return Coverage::Yes;
            }
            coverage = Coverage::OtherZone(zone);
        }
        coverage
    }

    /// Says exactly whether two scopes share a path that both cover within its own zone.
    ///
    /// `.` and `KERNEL.md` share none: the first covers no kernel path.
    pub fn overlap(&self, mine: &Scope, theirs: &Scope) -> bool {
        let fold = self.fold.max(mine.fold()).max(theirs.fold());
        let (zones, mine, theirs) = (self.folded(fold), mine.folded(fold), theirs.folded(fold));
        let named = zones.entry_zones(&theirs);
        zones.entry_zones(&mine).into_iter().any(|(a, zone)| {
            let same_zone = named.iter().filter(|(_, other)| *other == zone);
            same_zone.into_iter().any(|(b, _)| {
                a.literals_meet(b) != Some(false)
                    && a.may_overlap(b)
                    && zones.meet_in(zone, (a, b), &mine.taken_between(a, &theirs, b))
            })
        })
    }

    fn meet_in(&self, zone: Zone, (a, b): (&Entry, &Entry), taken: &[&Machine]) -> bool {
        // Most often the first common path that comes to hand is of the zone: then it settles the question.
        let deeper = || Some(a.literal_key()?.max(b.literal_key()?).to_string());
        let wanted = [a.machine(), b.machine()];
        let common = match deeper() {
            Some(deeper) if taken.is_empty() => Some(deeper),
            _ => first(&wanted, taken),
        };
        match common {
            None => return false,
            Some(path) if self.zone_of_key(&path) == zone => return true,
            Some(_) => {}
        }
        let near = || {
            self.rules
                .iter()
                .filter(|rule| rule.entry.may_overlap(a) && rule.entry.may_overlap(b))
        };
        let mut taken = taken.to_vec();
        for rule in near() {
            if rule.zone != zone {
                taken.push(rule.entry.machine());
            } else if first(&[a.machine(), b.machine(), rule.entry.machine()], &taken).is_some() {
                return true;
            }
        }
        zone == Zone::Project && first(&wanted, &taken).is_some()
    }

    /// Returns the policy as text, the same for the same policy: what a claim's policy hash is made of.
    pub fn canonical(&self) -> String {
        let line = |rule: &Rule| {
            let (_, glob, key, directory) = rule.entry.canonical();
            let kind = if glob { "glob" } else { "path" };
            format!("{} {kind} {key}{}\n", rule.zone, if directory { "/" } else { "" })
        };
        let mut lines: Vec<_> = self.rules.iter().map(line).collect();
        lines.sort_unstable();
        lines.dedup();
        let fold = match self.fold {
            Fold::Exact => "exact\n",
            Fold::Case => "fold\n",
        };
        fold.to_string() + &lines.concat()
    }
}

/// Returns a path of all `wanted` and none of `taken`; both are bounded since they were parsed.
fn first(wanted: &[&Machine], taken: &[&Machine]) -> Option<String> {
    find(wanted, taken, usize::MAX).ok().flatten()
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Project => "project",
            Self::Personal => "personal",
            Self::Kernel => "kernel",
            Self::Secret => "secret",
        })
    }
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern { zone, error } => write!(f, "zone {zone}: {error}"),
            Self::Exclusion { zone, pattern } => {
                write!(
                    f,
                    "zone {zone}: {pattern:?} takes paths away; list them in the zone they belong to"
                )
            }
            Self::TooComplex => f.write_str("the patterns of the zones are too complex together"),
        }
    }
}

impl std::error::Error for ZoneError {}
