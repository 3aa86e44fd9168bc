//! An amount of bytes, as limits of a phase carry it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of bytes, written `512M`, `2G`, `64KiB`; the units are powers of 1024.
///
/// It is stored as its number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Size(u64);

const UNITS: [(&str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];

impl Size {
    /// Makes a size of so many bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Gives the size in bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }

    /// Reads a whole number and `K`, `M`, `G` or `T`, which `B` or `iB` may follow; a bare number is bytes.
    ///
    /// Gives nothing for zero, for what is no such text, and for what 64 bits cannot hold.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = text[..digits].parse().ok()?;
        let unit = text[digits..].trim_start();
        let unit = unit
            .strip_suffix("iB")
            .or_else(|| unit.strip_suffix('B'))
            .unwrap_or(unit);
        let shift = match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, shift)) => *shift,
            None if unit.is_empty() => 0,
            None => return None,
        };
        number
            .checked_mul(1 << shift)
            .filter(|bytes| *bytes > 0)
            .map(Self)
    }
}

impl fmt::Display for Size {
    /// Writes the size with the largest unit that leaves a whole number, so that it reads back the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS
            .iter()
            .find(|(_, shift)| self.0 != 0 && self.0.is_multiple_of(1 << shift))
        {
            Some((unit, shift)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1024_and_written_back() {
        for (text, bytes, back) in [
            ("512M", 512 << 20, "512M"),
            ("2GiB", 2 << 30, "2G"),
            ("64KB", 64 << 10, "64K"),
            ("1000", 1000, "1000"),
        ] {
            let size = Size::parse(text).unwrap();
            assert_eq!((size.as_bytes(), size.to_string().as_str()), (bytes, back));
        }
        for text in [
            "",
            "0",
            "0G",
            "-1M",
            "1.5G",
            "1e9",
            "M",
            "2X",
            "iB",
            "99999999T",
            "99999999999999999999",
        ] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }
}
