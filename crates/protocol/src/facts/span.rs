//! A stretch of time, in whole milliseconds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A stretch of time in milliseconds, as commands and plans carry it (`90s`, `30m`, `4h`, `2d`, `500ms`).
///
/// Instants are the store's alone; whatever a caller writes down is a span. It is stored as its number of
/// milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(u64);

/// The units that a written span may have, from the longest to the shortest, with their milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

impl Span {
    /// The longest span that can be written: 366 days. What is longer is a slip, not a wish.
    pub const MAX: Self = Self(366 * 86_400_000);

    /// Makes a span of so many milliseconds, unchecked: only text is bounded.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Gives the span in milliseconds.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// Reads a span with its unit: a whole number and `ms`, `s`, `m`, `h` or `d`.
    ///
    /// # Errors
    ///
    /// [`SpanError`] says why the text is no span; zero and negative ones are none (`0`, `-5`, `abc`, `1e9`).
    pub fn parse(text: &str) -> Result<Self, SpanError> {
        let (number, unit) = split(text)?;
        if unit.is_empty() {
            // Zero is wrong with any unit: say that first.
            return Err(if number == 0 {
                SpanError::Zero
            } else {
                SpanError::NoUnit
            });
        }
        Self::of(number, unit)
    }

    /// Reads a span, a bare number counting minutes: for the places where the original scripts meant minutes.
    ///
    /// # Errors
    ///
    /// As for [`Span::parse`].
    pub fn parse_minutes_bare(text: &str) -> Result<Self, SpanError> {
        let (number, unit) = split(text)?;
        Self::of(number, if unit.is_empty() { "m" } else { unit })
    }

    fn of(number: u64, unit: &str) -> Result<Self, SpanError> {
        let (_, ms) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or(SpanError::UnknownUnit)?;
        if number == 0 {
            return Err(SpanError::Zero);
        }
        match number.checked_mul(*ms).map(Self) {
            Some(span) if span <= Self::MAX => Ok(span),
            _ => Err(SpanError::TooLong),
        }
    }
}

/// Splits `30m` into its number and its unit, which may be missing.
fn split(text: &str) -> Result<(u64, &str), SpanError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(SpanError::Empty);
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 {
        return Err(if text.starts_with('-') {
            SpanError::Negative
        } else {
            SpanError::NotANumber
        });
    }
    let number = text[..digits].parse().map_err(|_| SpanError::TooLong)?;
    Ok((number, text[digits..].trim_start()))
}

impl fmt::Display for Span {
    /// Writes the span with the longest unit that leaves a whole number, so that it reads back the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS
            .iter()
            .find(|(_, ms)| self.0 != 0 && self.0.is_multiple_of(*ms));
        match whole {
            Some((unit, ms)) => write!(f, "{}{unit}", self.0 / ms),
            None => write!(f, "{}ms", self.0),
        }
    }
}

/// Why a text is no [`Span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanError {
    /// Nothing is written.
    Empty,
    /// It does not begin with a whole number.
    NotANumber,
    /// It begins with a minus.
    Negative,
    /// The number has no unit.
    NoUnit,
    /// What follows the number is none of the units.
    UnknownUnit,
    /// It is zero.
    Zero,
    /// It is longer than [`Span::MAX`].
    TooLong,
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "no time is written",
            Self::NotANumber => "a time begins with a whole number",
            Self::Negative => "a time is more than zero",
            Self::NoUnit => "the number has no unit",
            Self::UnknownUnit => "the unit is none of ms, s, m, h, d",
            Self::Zero => "a time is more than zero",
            Self::TooLong => "a time is at most 366d",
        })
    }
}

impl std::error::Error for SpanError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_written_back() {
        for (text, ms) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("30m", 1_800_000),
            ("4h", 14_400_000),
            ("2d", 172_800_000),
            ("366d", Span::MAX.as_ms()),
        ] {
            let span = Span::parse(text).unwrap();
            assert_eq!(span.as_ms(), ms, "{text}");
            assert_eq!(span.to_string(), text);
        }
        assert_eq!(Span::parse("60m").unwrap().to_string(), "1h");
        assert_eq!(Span::from_ms(0).to_string(), "0ms");
    }

    #[test]
    fn o_11_a_bad_time_is_an_error_and_never_a_span() {
        for (text, why) in [
            ("0", SpanError::Zero),
            ("0m", SpanError::Zero),
            ("-5", SpanError::Negative),
            ("-5m", SpanError::Negative),
            ("abc", SpanError::NotANumber),
            ("m", SpanError::NotANumber),
            ("1e9", SpanError::UnknownUnit),
            ("2.5h", SpanError::UnknownUnit),
            ("5 M", SpanError::UnknownUnit),
            ("", SpanError::Empty),
            ("367d", SpanError::TooLong),
            ("99999999999999999999s", SpanError::TooLong),
            ("18446744073709551615d", SpanError::TooLong),
        ] {
            assert_eq!(Span::parse(text), Err(why), "{text}");
            assert_eq!(Span::parse_minutes_bare(text), Err(why), "{text}");
        }
        assert_eq!(Span::parse("30"), Err(SpanError::NoUnit));
    }

    #[test]
    fn a_bare_number_means_minutes_only_where_that_is_asked_for() {
        assert_eq!(Span::parse_minutes_bare("30"), Span::parse("30m"));
        assert_eq!(Span::parse_minutes_bare("30s"), Span::parse("30s"));
    }

    #[test]
    fn a_span_is_stored_as_its_milliseconds() {
        let span = Span::parse("90s").unwrap();
        assert_eq!(serde_json::to_string(&span).unwrap(), "90000");
        assert_eq!(serde_json::from_str::<Span>("90000").unwrap(), span);
    }
}
