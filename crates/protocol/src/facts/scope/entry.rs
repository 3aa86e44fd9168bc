//! One entry of a scope: its grammar, and what can be told about it without the engine.

use std::sync::OnceLock;

use super::engine::{Machine, find};
use super::part::{Part, Piece};
use super::{ScopeError, limits};
use crate::facts::path::{self, Fold, LogicalPath};

/// Holds one entry of a scope: a directory, a file or a glob, or what a leading `!` takes away
/// (protocol, section 3).
#[derive(Clone, Debug)]
pub struct Entry {
    text: String,
    minus: bool,
    directory: bool,
    fold: Fold,
    parts: Vec<Part>,
    /// What tells patterns apart: the plain names, or, for a glob, the escaped components.
    key: String,
    machine: OnceLock<Machine>,
}

impl Entry {
    pub(in crate::facts) fn parse(text: &str, fold: Fold) -> Result<Self, ScopeError> {
        if text.chars().any(char::is_control) {
            return Err(ScopeError::Control(text.into()));
        }
        if text.len() > limits::ENTRY_BYTES {
            return Err(ScopeError::TooComplex(text.into()));
        }
        let (minus, pattern) = match text.strip_prefix('!') {
            Some(pattern) => (true, pattern),
            None => (false, text),
        };
        if pattern.is_empty() {
            return Err(ScopeError::Empty(text.into()));
        }
        if let Some(absolute) = pattern.strip_prefix('/') {
            return Err(match absolute.split('/').all(|part| matches!(part, "" | ".")) {
                true => ScopeError::Root(text.into()),
                false => ScopeError::Absolute(text.into()),
            });
        }
        let mut parts = Vec::new();
        for part in path::compared(pattern, fold).split('/') {
            match part {
                "" | "." => {}
                // What `..` undoes must be a name: after a pattern it has no place to lead to.
                ".." => match parts.pop() {
                    Some(Part::Literal(_)) => {}
                    _ => return Err(ScopeError::Climbs(text.into())),
                },
                "**" if parts.last() == Some(&Part::Deep) => {}
                "**" => parts.push(Part::Deep),
                part => parts.push(Part::parse(part)),
            }
        }
        let entry = Self::new(text.into(), minus, pattern.ends_with('/'), fold, parts);
        if entry.is_glob() && entry.key.chars().count() > limits::GLOB_CHARS {
            return Err(ScopeError::TooComplex(text.into()));
        }
        Ok(entry)
    }

    /// Builds a name at any depth, with all below; with `but`, any name that starts so and does not
    /// go on like that.
    pub(in crate::facts) fn at_any_depth(name: &str, but: Option<&'static str>) -> Self {
        let (text, last) = match but {
            None => (format!("**/{name}/"), Part::Literal(name.into())),
            Some(end) => {
                let pieces = name.chars().map(Piece::Char).chain([Piece::But(end)]).collect();
                (format!("**/{name}*/"), Part::Pattern(pieces))
            }
        };
        Self::new(text, false, true, Fold::Exact, vec![Part::Deep, last])
    }

    /// Returns the entry as a side that folds case reads it.
    pub(in crate::facts) fn folded(&self) -> Self {
        let parts = self.parts.iter().map(Part::folded).collect();
        Self::new(self.text.clone(), self.minus, self.directory, Fold::Case, parts)
    }

    fn new(text: String, minus: bool, directory: bool, fold: Fold, parts: Vec<Part>) -> Self {
        let names = parts.iter().map(|part| match part {
            Part::Literal(name) => Some(name.as_str()),
            Part::Pattern(_) | Part::Deep => None,
        });
        let key = match names.collect::<Option<Vec<_>>>() {
            Some(names) => names.join("/"),
            None => parts.iter().map(Part::escaped).collect::<Vec<_>>().join("/"),
        };
        Self {
            text,
            minus,
            directory,
            fold,
            parts,
            key,
            machine: OnceLock::new(),
        }
    }

    /// Returns the entry as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Says whether each path that it covers goes through `.git` or `.brain`: such a path is refused whatever the
    /// scope (section 2).
    pub fn is_reserved(&self) -> bool {
        let reserved = |part: &Part| matches!(part, Part::Literal(name) if path::is_reserved(name));
        self.parts.iter().any(reserved)
    }

    /// Says whether the entry is written as a file: no glob, no trailing slash.
    pub fn names_a_file(&self) -> bool {
        !self.minus && !self.directory && !self.is_glob() && !self.parts.is_empty()
    }

    /// Returns whether the entry's comparison folds case.
    pub fn fold(&self) -> Fold {
        self.fold
    }

    /// Says whether the entry takes paths away: `!src/gen/`.
    pub fn is_exclusion(&self) -> bool {
        self.minus
    }

    /// Says whether an unescaped `*` or `?` makes it a pattern.
    pub fn is_glob(&self) -> bool {
        !self.parts.iter().all(|part| matches!(part, Part::Literal(_)))
    }

    /// Returns how many components the entry names; `**` stands for any number, so it counts none.
    pub fn depth(&self) -> usize {
        self.parts.iter().filter(|part| **part != Part::Deep).count()
    }

    /// Says whether the entry is this very path, written as a file: no pattern, no `/` at the end.
    pub fn names_file_exactly(&self, path: &LogicalPath) -> bool {
        !self.minus && self.is_file(path.key())
    }

    pub(super) fn is_file(&self, key: &str) -> bool {
        !self.directory && !key.is_empty() && self.literal_key() == Some(key)
    }

    /// Says cheaply whether some path could lie under both entries, a leading `!` left aside.
    ///
    /// A no is certain, a yes is not: it is what an index may answer before the exact question.
    pub fn may_overlap(&self, other: &Self) -> bool {
        let mut index = 0;
        loop {
            match (self.parts.get(index), other.parts.get(index)) {
                (Some(Part::Deep), _) | (_, Some(Part::Deep)) | (None, None) => return true,
                (None, Some(_)) => return self.reaches_below(),
                (Some(_), None) => return other.reaches_below(),
                (Some(mine), Some(theirs)) if !mine.may_meet(theirs) => return false,
                _ => index += 1,
            }
        }
    }

    /// Returns the key of the literal components before the first with a pattern in it.
    pub fn literal_prefix(&self) -> String {
        let literal = |part: &Part| matches!(part, Part::Literal(_));
        let parts = self.parts.iter().take_while(|part| literal(part));
        parts.map(Part::plain).collect::<Vec<_>>().join("/")
    }

    /// Returns the key of what stands before the first special character, mid-component or not:
    /// the part that gives the entry its zone (protocol, section 3). Empty for `.` and `*`.
    pub fn literal_part(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            if *part != Part::Deep && !text.is_empty() {
                text.push('/');
            }
            text += &part.plain();
            if !matches!(part, Part::Literal(_)) {
                break;
            }
        }
        text.truncate(text.trim_end_matches('/').len());
        text
    }

    /// Says whether the path lies under the pattern, a leading `!` left aside.
    pub(in crate::facts) fn matches(&self, key: &str) -> bool {
        match self.literal_key() {
            Some(place) => path::lies_in(key, place),
            None => self.machine().accepts(key),
        }
    }

    /// Says exactly whether a pattern holds all below a folder other than the root.
    pub(in crate::facts) fn holds_all_below(&self, folder: &str) -> bool {
        // A name that no pattern spells out rules nearly all of them out.
        if folder.is_empty() || !self.is_glob() || !self.matches(&format!("{folder}/\u{1}")) {
            return false;
        }
        let names = folder.split('/').map(|name| Part::Literal(name.into()));
        let below = Machine::new(&names.chain([Part::Deep]).collect::<Vec<_>>(), false);
        // Bounded, since the pattern was when it was parsed.
        let left = find(&[&below], &[self.machine()], usize::MAX);
        left.ok().flatten().is_none()
    }

    /// Says whether every path of `other` certainly lies under this entry; a no is not certain.
    pub(super) fn plainly_holds(&self, other: &Self) -> bool {
        match self.literal_key() {
            Some("") => true,
            Some(place) => path::lies_in(&other.literal_prefix(), place),
            None => self.parts == other.parts && self.reaches_below() == other.reaches_below(),
        }
    }

    /// Says exactly whether two entries without a pattern share a path; `None` if one has any.
    pub(in crate::facts) fn literals_meet(&self, other: &Self) -> Option<bool> {
        let (mine, theirs) = (self.literal_key()?, other.literal_key()?);
        Some(path::lies_in(mine, theirs) || path::lies_in(theirs, mine))
    }

    /// Returns the compiled pattern, made when it is first asked for: most pairs never need it.
    pub(in crate::facts) fn machine(&self) -> &Machine {
        self.machine
            .get_or_init(|| Machine::new(&self.parts, self.reaches_below()))
    }

    /// Returns what tells entries apart: exclusion, glob, compared text, written as a directory.
    pub(in crate::facts) fn canonical(&self) -> (bool, bool, &str, bool) {
        (self.minus, self.is_glob(), &self.key, self.directory)
    }

    /// Returns the compared key of an entry without a pattern.
    pub(in crate::facts) fn literal_key(&self) -> Option<&str> {
        (!self.is_glob()).then_some(&self.key)
    }

    fn reaches_below(&self) -> bool {
        self.directory || !self.is_glob()
    }
}

/// Writes a path as an entry that names it and nothing else.
pub(super) fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for (at, letter) in path.char_indices() {
        if matches!(letter, '*' | '?' | '\\') || (letter == '!' && at == 0) {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}
