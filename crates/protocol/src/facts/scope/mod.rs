//! What a claim may write, and whether two claims could meet: one engine answers both.

mod engine;
mod entry;
mod part;

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) use engine::{Machine, find};
pub use entry::Entry;

use super::path::{Fold, LogicalPath};

/// What a scope may be made of before it is refused as too complex (protocol, section 3).
///
/// They bound every later question about two accepted scopes, and may grow but never shrink: a
/// stored scope has to be read for ever.
mod limits {
    /// Bytes of one entry: the longest path that Linux takes.
    pub const ENTRY_BYTES: usize = 4096;
    /// Characters of one entry with a pattern in it.
    pub const GLOB_CHARS: usize = 1024;
    /// Entries of a scope.
    pub const ENTRIES: usize = 2048;
    /// Bytes of all entries of a scope.
    pub const SCOPE_BYTES: usize = 64 * 1024;
    /// Characters of all entries with a pattern.
    pub const GLOBS_CHARS: usize = 8 * 1024;
    /// Sets of states to which the exclusions may be determinised.
    pub const SETS: usize = 16 * 1024;
    /// States of the entries with their exclusions that one word alone reaches.
    pub const WORDS: usize = 64 * 1024;
    /// Such states that many words reach; two scopes meet in at most the square of it.
    pub const LOOPS: usize = 2048;
}

/// Holds one or more entries: which paths a claim may write (protocol, section 3).
///
/// What `!` takes away is taken from all other entries, wherever it stands. Scopes are equal when
/// their entries are, in any order.
///
/// Stored as the list of its entries as they were given; as `{"fold": true, "entries": […]}` where
/// case is folded.
#[derive(Clone, Debug)]
pub struct Scope {
    entries: Vec<Entry>,
    fold: Fold,
}

/// Says why a list of entries is no scope; each case carries the offending entry (exit 64).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeError {
    /// The entry is empty, or nothing in the scope adds a path (then the text is empty).
    Empty(String),
    /// The entry is `/`; the whole root is written `.`.
    Root(String),
    /// The entry starts with `/`: it would lie outside the root.
    Absolute(String),
    /// The entry climbs out of the root, or out of a pattern.
    Climbs(String),
    /// The entry holds a control character.
    Control(String),
    /// The entry makes the scope grow past a fixed size (`scope.too_complex`).
    TooComplex(String),
    /// In a union, this exclusion would take away what the other scope adds.
    Entangled(String),
}

impl Scope {
    /// Reads the entries of a scope; `.` is the whole root.
    ///
    /// # Errors
    ///
    /// [`ScopeError`] for the first entry that is refused.
    pub fn parse<I>(entries: I, fold: Fold) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let mut scope = Self {
            entries: Vec::new(),
            fold,
        };
        let (mut bytes, mut globs) = (0, 0);
        for text in entries {
            let text = text.as_ref();
            let entry = Entry::parse(text, fold)?;
            bytes += text.len();
            if entry.is_glob() {
                globs += text.chars().count();
            }
            scope.entries.push(entry);
            let entries = scope.entries.len();
            if entries > limits::ENTRIES || bytes > limits::SCOPE_BYTES || globs > limits::GLOBS_CHARS {
                return Err(ScopeError::TooComplex(text.into()));
            }
        }
        if scope.additions().next().is_none() {
            return Err(ScopeError::Empty(String::new()));
        }
        scope.bounded()
    }

    /// Refuses a scope whose exclusions would make later questions grow without bound.
    fn bounded(self) -> Result<Self, ScopeError> {
        let (mut words, mut loops) = (0, 0);
        for entry in self.additions() {
            let taken: Vec<_> = self
                .exclusions()
                .filter(|taken| taken.may_overlap(entry))
                .map(Entry::machine)
                .collect();
            if taken.is_empty() {
                continue;
            }
            let room = limits::WORDS + limits::LOOPS;
            let too_complex = |_| ScopeError::TooComplex(entry.as_str().into());
            let (by_word, by_many) =
                engine::measure(entry.machine(), &taken, limits::SETS, room).map_err(too_complex)?;
            words += by_word;
            loops += by_many;
            if words > limits::WORDS || loops > limits::LOOPS {
                return Err(ScopeError::TooComplex(entry.as_str().into()));
            }
        }
        Ok(self)
    }

    /// Builds the scope of a directory: the path and all below it.
    ///
    /// # Errors
    ///
    /// [`ScopeError::Control`] if the path holds a control character, which no entry may;
    /// [`ScopeError::TooComplex`] if it is longer than an entry can be.
    pub fn from_path(path: &LogicalPath) -> Result<Self, ScopeError> {
        Self::of_path(path, "/")
    }

    /// Builds the scope of one file, named exactly. If it turns out a directory, all below is covered.
    ///
    /// # Errors
    ///
    /// As [`from_path`](Self::from_path).
    pub fn from_file(path: &LogicalPath) -> Result<Self, ScopeError> {
        Self::of_path(path, "")
    }

    fn of_path(path: &LogicalPath, end: &str) -> Result<Self, ScopeError> {
        let fold = if path.is_folded() { Fold::Case } else { Fold::Exact };
        Self::parse([entry::escaped(path.as_str()) + end], fold)
    }

    /// Says whether the scope lets this path be written: some entry covers it and none takes it away.
    pub fn covers(&self, path: &LogicalPath) -> bool {
        let (scope, key) = self.compared_with(path);
        scope.additions().any(|entry| entry.matches(&key)) && !scope.takes_away(&key)
    }

    /// Returns scope and key as they compare: where one side folds case, both do.
    pub(super) fn compared_with<'a>(&'a self, path: &'a LogicalPath) -> (Cow<'a, Self>, Cow<'a, str>) {
        match self.fold {
            Fold::Case => (Cow::Borrowed(self), path.folded_key()),
            Fold::Exact if path.is_folded() => (self.folded(Fold::Case), path.folded_key()),
            Fold::Exact => (Cow::Borrowed(self), Cow::Borrowed(path.key())),
        }
    }

    pub(super) fn takes_away(&self, key: &str) -> bool {
        self.exclusions().any(|entry| entry.matches(key))
    }

    /// Returns the scope with at least this folding.
    pub(super) fn folded(&self, fold: Fold) -> Cow<'_, Self> {
        if fold <= self.fold {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            entries: self.entries.iter().map(Entry::folded).collect(),
            fold,
        })
    }

    pub(super) fn fold(&self) -> Fold {
        self.fold
    }

    /// Says whether some path is covered by both scopes: exactly, for globs and `!` too.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.folded(other.fold), other.folded(self.fold));
        mine.additions()
            .any(|a| theirs.additions().any(|b| mine.meets_at(a, &theirs, b)))
    }

    fn meets_at(&self, mine: &Entry, other: &Self, theirs: &Entry) -> bool {
        if mine.literals_meet(theirs) == Some(false) || !mine.may_overlap(theirs) {
            return false;
        }
        let taken = self.taken_between(mine, other, theirs);
        if taken.is_empty() && mine.literals_meet(theirs) == Some(true) {
            return true;
        }
        // Bounded when the scopes were opened: no limit can be passed here.
        matches!(
            find(&[mine.machine(), theirs.machine()], &taken, usize::MAX),
            Ok(Some(_))
        )
    }

    /// Lists what either scope takes away that could matter where these two entries meet.
    pub(super) fn taken_between<'a>(
        &'a self,
        mine: &Entry,
        other: &'a Self,
        theirs: &Entry,
    ) -> Vec<&'a Machine> {
        self.exclusions()
            .chain(other.exclusions())
            .filter(|taken| taken.may_overlap(mine) && taken.may_overlap(theirs))
            .map(Entry::machine)
            .collect()
    }

    /// Says whether every path that `other` covers is covered by this scope: a child inside its
    /// domain, a plan inside its project.
    ///
    /// A yes is certain. The question is harder than [`overlaps`](Self::overlaps), as the globs of this
    /// scope must be determinised; past the fixed size the answer is no, which refuses.
    pub fn contains(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.folded(other.fold), other.folded(self.fold));
        theirs.additions().all(|entry| mine.holds(entry, &theirs))
    }

    fn holds(&self, wanted: &Entry, other: &Self) -> bool {
        let near = |entry: &&Entry| entry.may_overlap(wanted);
        let given: Vec<_> = other.exclusions().filter(near).map(Entry::machine).collect();
        let none = |wanted: &[&Machine], taken: &[&Machine]| find(wanted, taken, limits::SETS) == Ok(None);
        let mut denied = self.exclusions().filter(near);
        if denied.any(|entry| !none(&[wanted.machine(), entry.machine()], &given)) {
            return false;
        }
        if self.additions().any(|entry| entry.plainly_holds(wanted)) {
            return true;
        }
        let mut taken = given;
        taken.extend(self.additions().filter(near).map(Entry::machine));
        none(&[wanted.machine()], &taken)
    }

    /// Builds the scope that covers what either covers.
    ///
    /// # Errors
    ///
    /// [`ScopeError::Entangled`] if an exclusion of one takes away what the other adds: no list of
    /// entries says that. [`ScopeError::TooComplex`] as [`parse`](Self::parse).
    pub fn union(&self, other: &Self) -> Result<Self, ScopeError> {
        let (mine, theirs) = (self.folded(other.fold), other.folded(self.fold));
        for (scope, rival) in [(&mine, &theirs), (&theirs, &mine)] {
            for taken in scope.exclusions() {
                let meets = |entry: &Entry| {
                    let known: Vec<_> = rival.exclusions().map(Entry::machine).collect();
                    entry.may_overlap(taken)
                        && find(&[entry.machine(), taken.machine()], &known, limits::SETS) != Ok(None)
                };
                if rival.additions().any(meets) {
                    return Err(ScopeError::Entangled(taken.as_str().into()));
                }
            }
        }
        let texts = mine.entries.iter().chain(&theirs.entries).map(Entry::as_str);
        Self::parse(texts, mine.fold)
    }

    /// Lists the entries in the order given, exclusions among them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Lists the entries that add paths.
    pub fn additions(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_exclusion())
    }

    /// Lists the entries that take paths away.
    pub fn exclusions(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_exclusion())
    }

    /// Returns the entries as they were given.
    pub fn to_strings(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.as_str().into()).collect()
    }

    /// Returns, for each entry that adds paths, the key of its literal components before the first
    /// special one: `src` for `src/*.rs`, empty for `.`, `*` and `**/x`.
    ///
    /// Two entries can only meet if one of these holds the other, so a store finds rivals by index.
    pub fn literal_prefixes(&self) -> Vec<String> {
        self.additions().map(Entry::literal_prefix).collect()
    }

    /// Says whether some entry is this very path, written as a file, and nothing takes it away.
    pub fn names_file_exactly(&self, path: &LogicalPath) -> bool {
        let (scope, key) = self.compared_with(path);
        scope.additions().any(|entry| entry.is_file(&key)) && !scope.takes_away(&key)
    }

    /// Returns the entries that name files, without the folders and globs; `None` when there is none.
    pub fn files(&self) -> Option<Self> {
        let kept = self
            .entries
            .iter()
            .filter(|entry| entry.is_exclusion() || entry.names_a_file());
        Self::parse(kept.map(Entry::as_str), self.fold).ok()
    }

    fn canonical(&self) -> Vec<(bool, bool, &str, bool)> {
        let mut entries: Vec<_> = self.entries.iter().map(Entry::canonical).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }
}

/// Says whether these entries can be taken away from anything without passing the limits.
pub(super) fn can_be_taken<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> bool {
    let taken: Vec<_> = entries.into_iter().map(Entry::machine).collect();
    let root = Machine::new(&[], true);
    engine::measure(&root, &taken, limits::SETS, limits::WORDS)
        .is_ok_and(|(_, by_many)| by_many <= limits::LOOPS)
}

impl PartialEq for Scope {
    fn eq(&self, other: &Self) -> bool {
        self.fold == other.fold && self.canonical() == other.canonical()
    }
}

impl Eq for Scope {}

impl Hash for Scope {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fold.hash(state);
        self.canonical().hash(state);
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_strings().join(" "))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Exact(Vec<String>),
    Folded { fold: bool, entries: Vec<String> },
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.fold {
            Fold::Exact => Stored::Exact(self.to_strings()),
            Fold::Case => Stored::Folded {
                fold: true,
                entries: self.to_strings(),
            },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (entries, fold) = match Stored::deserialize(deserializer)? {
            Stored::Exact(entries) | Stored::Folded { fold: false, entries } => (entries, Fold::Exact),
            Stored::Folded { fold: true, entries } => (entries, Fold::Case),
        };
        Self::parse(entries, fold).map_err(D::Error::custom)
    }
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty(entry) if entry.is_empty() => f.write_str("a scope needs an entry that adds paths"),
            Self::Empty(entry) => write!(f, "scope entry {entry:?} is empty"),
            Self::Root(entry) => write!(f, "scope entry {entry:?} is the file system's root"),
            Self::Absolute(entry) => write!(f, "scope entry {entry:?} is not relative to the brain root"),
            Self::Climbs(entry) => write!(f, "scope entry {entry:?} climbs out of what it names"),
            Self::Control(entry) => write!(f, "scope entry {entry:?} holds a control character"),
            Self::TooComplex(entry) => write!(f, "scope entry {entry:?} makes the scope too complex"),
            Self::Entangled(entry) => write!(f, "scope entry {entry:?} takes away what the other scope adds"),
        }
    }
}

impl std::error::Error for ScopeError {}
