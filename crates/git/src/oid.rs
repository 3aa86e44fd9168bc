//! Names of objects.

use std::fmt;

/// The full name of an object: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(String);

impl Oid {
    /// Reads a full object name; `None` for anything else, an abbreviation too.
    pub fn parse(text: &str) -> Option<Oid> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (matches!(text.len(), 40 | 64) && text.bytes().all(hex)).then(|| Oid(text.to_owned()))
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Oid> {
        Oid::parse(std::str::from_utf8(bytes).ok()?.trim_end())
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether this is the null name, by which git means "no object".
    pub fn is_zero(&self) -> bool {
        self.0.bytes().all(|b| b == b'0')
    }

    /// Returns the null name of the same hash function.
    pub(crate) fn zero(&self) -> Oid {
        Oid("0".repeat(self.0.len()))
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a tree or the index holds under a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The mode as git writes it, in octal: `100644`, `100755`, `120000` (link), `160000` (submodule).
    pub mode: u32,
    /// The object: a blob, or a submodule's commit.
    pub oid: Oid,
}

impl Blob {
    /// Reads the two columns of a raw diff; `None` where the side does not exist.
    pub(crate) fn of(mode: &[u8], oid: &[u8]) -> Option<Blob> {
        let mode = parse_mode(mode)?;
        let oid = Oid::from_bytes(oid)?;
        (mode != 0).then_some(Blob { mode, oid })
    }
}

pub(crate) fn parse_mode(octal: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(octal).ok()?, 8).ok()
}
