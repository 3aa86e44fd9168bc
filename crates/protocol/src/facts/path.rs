//! Where a thing is, whatever it was called: the lexical half of a logical path.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Says how two names are compared (protocol, section 2, rule 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fold {
    /// Names are the same when their Unicode NFC is.
    #[default]
    Exact,
    /// Names that differ only in case are the same too: the volume folds case, or git is told so.
    Case,
}

/// Returns the text by which names are compared.
///
/// Letters are folded one by one, never by their neighbours: a final sigma must read the same
/// in a path and in a pattern that stops short of it.
pub(super) fn compared(text: &str, fold: Fold) -> Cow<'_, str> {
    let nfc = nfc(text);
    match fold {
        Fold::Exact => nfc,
        Fold::Case if nfc.chars().all(is_lower) => nfc,
        Fold::Case => Cow::Owned(
            nfc.chars()
                .flat_map(char::to_lowercase)
                .collect::<String>()
                .nfc()
                .collect(),
        ),
    }
}

fn nfc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

fn is_lower(letter: char) -> bool {
    let mut lower = letter.to_lowercase();
    lower.next() == Some(letter) && lower.next().is_none()
}

/// Holds a path relative to the brain root, `/`-separated, without `.`, `..` or empty component
/// (protocol, section 2).
///
/// It is shown as it was first given and compared by [`key`](Self::key): two spellings of one
/// place are equal, sort and hash alike. Links, the working directory and linked worktrees are
/// resolved by the caller before; here `..` is only text. A backslash is an ordinary character.
///
/// Every file that can exist can be named, so a tab or a newline is admitted in a path; only the
/// entries of a scope refuse control characters.
///
/// Stored as a plain string; as `[shown, key]` where case was folded and shows.
#[derive(Clone, Debug)]
pub struct LogicalPath {
    shown: String,
    key: String,
}

/// Says why a text names no place below the brain root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The text is empty: wrong usage.
    Empty,
    /// The path leads out of the root, or is absolute (`path.outside`).
    Outside(String),
    /// A component is `.git` or `.brain`, in any case (`path.reserved`).
    Reserved(String),
    /// The text holds a NUL, which no file name can.
    Control(String),
}

/// Says whether a component is git's or brain's own, in any case.
pub(in crate::facts) fn is_reserved(part: &str) -> bool {
    part.eq_ignore_ascii_case(".git") || part.eq_ignore_ascii_case(".brain")
}

impl LogicalPath {
    /// Returns the brain root itself, shown as `.`, whose key is empty.
    pub fn root() -> Self {
        Self {
            shown: ".".into(),
            key: String::new(),
        }
    }

    /// Reads what a caller typed, made relative to the root beforehand.
    ///
    /// # Errors
    ///
    /// [`PathError`], one case per rule of section 2 that needs no disk.
    pub fn parse(text: &str, fold: Fold) -> Result<Self, PathError> {
        let path = Self::from_tree(text, fold)?;
        match path.reserved() {
            Some(_) => Err(PathError::Reserved(text.into())),
            None => Ok(path),
        }
    }

    /// Reads what git reports, reserved components included.
    ///
    /// A branch may well have committed `.brain/x`: an audit has to name it in order to refuse it,
    /// so it asks [`reserved`](Self::reserved) itself.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), without [`PathError::Reserved`].
    pub fn from_tree(text: &str, fold: Fold) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.contains('\0') {
            return Err(PathError::Control(text.into()));
        }
        if text.starts_with('/') {
            return Err(PathError::Outside(text.into()));
        }
        let mut parts = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or_else(|| PathError::Outside(text.into()))?;
                }
                part => parts.push(part),
            }
        }
        if parts.is_empty() {
            return Ok(Self::root());
        }
        let shown = parts.join("/");
        let key = compared(&shown, fold).into_owned();
        Ok(Self { shown, key })
    }

    /// Reads `text` as seen from this directory; `..` may climb, but not out of the root.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn join(&self, text: &str, fold: Fold) -> Result<Self, PathError> {
        match text {
            "" => Err(PathError::Empty),
            absolute if absolute.starts_with('/') => Err(PathError::Outside(text.into())),
            below => Self::parse(&format!("{}/{below}", self.shown), fold),
        }
    }

    /// Returns the path as it was first given, `.` for the root.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// Returns the text by which paths are compared, empty for the root.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Says whether this is the brain root itself.
    pub fn is_root(&self) -> bool {
        self.key.is_empty()
    }

    /// Returns the first component that is `.git` or `.brain` in any case, as shown.
    pub fn reserved(&self) -> Option<&str> {
        self.components().find(|part| is_reserved(part))
    }

    /// Lists the components as shown, none for the root.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.shown.split('/').filter(|part| *part != ".")
    }

    /// Returns the directory that holds this path, `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        Some(match (self.shown.rsplit_once('/'), self.key.rsplit_once('/')) {
            (Some((shown, _)), Some((key, _))) => Self {
                shown: shown.into(),
                key: key.into(),
            },
            _ => Self::root(),
        })
    }

    /// Lists the keys of this path and of all that hold it, down to the root's empty one.
    ///
    /// A store looks up whatever could guard a path with these, by index.
    pub fn ancestors_or_self(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self.key()), |key| {
            (!key.is_empty()).then(|| key.rsplit_once('/').map_or("", |(above, _)| above))
        })
    }

    /// Says whether this path is `other` or lies below it: `src-old` does not start with `src`.
    pub fn starts_with(&self, other: &Self) -> bool {
        lies_in(&self.key, &other.key)
    }

    /// Returns the key as a side that folds case reads it.
    pub(super) fn folded_key(&self) -> Cow<'_, str> {
        compared(&self.key, Fold::Case)
    }

    /// Says whether case was folded, as far as the letters of this path can tell.
    pub(super) fn is_folded(&self) -> bool {
        !self.is_root() && self.key != nfc(&self.shown)
    }
}

/// Says whether the key `path` is `place` or lies below it, at a component boundary.
pub(super) fn lies_in(path: &str, place: &str) -> bool {
    match path.strip_prefix(place) {
        Some(rest) => place.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

impl fmt::Display for LogicalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl PartialEq for LogicalPath {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for LogicalPath {}

impl PartialOrd for LogicalPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LogicalPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl Hash for LogicalPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored<'a> {
    Plain(Cow<'a, str>),
    Folded(Cow<'a, str>, Cow<'a, str>),
}

impl Serialize for LogicalPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_folded() {
            Stored::Folded(self.as_str().into(), self.key().into())
        } else {
            Stored::Plain(self.as_str().into())
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LogicalPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: &str| Self::from_tree(text, Fold::Exact).map_err(D::Error::custom);
        match Stored::deserialize(deserializer)? {
            Stored::Plain(shown) => read(&shown),
            // The key is taken as it was stored: how letters fold changes with Unicode's versions,
            // and what was equal when it was written stays equal.
            Stored::Folded(shown, key) => Ok(Self {
                shown: read(&shown)?.shown,
                key: read(&key)?.key,
            }),
        }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a path is empty"),
            Self::Outside(path) => write!(f, "{path:?} lies outside the brain root"),
            Self::Reserved(path) => write!(f, "{path:?} goes through .git or .brain"),
            Self::Control(path) => write!(f, "{path:?} holds a NUL"),
        }
    }
}

impl std::error::Error for PathError {}
