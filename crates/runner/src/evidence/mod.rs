//! Reads test reports: what a close believes besides the exit status (protocol, 11).
//!
//! Whatever the bytes are, a reader never panics and never makes them greener than they are: what a report
//! promises and does not show counts as failed, and what is no report is none.

mod junit;
mod libtest;
mod libtest_json;
mod nextest;
mod tap;
mod text;

use std::borrow::Cow;
use std::fmt;

use protocol::facts::report::{Format, Report};

/// The largest report that is read, in bytes.
pub const BYTES_MAX: usize = 64 << 20;

/// A reader takes clean text and gives nothing when it is not of its form.
type Reader = fn(&str) -> Option<Report>;

/// All forms with their readers, in the order in which an unknown text is tried; a new form is one more line.
///
/// What others quote comes first: a failing test of nextest shows what libtest printed, and prose may hold a line
/// that looks like TAP.
const READERS: [(Format, Reader); 5] = [
    (Format::Junit, junit::read),
    (Format::LibtestJson, libtest_json::read),
    (Format::Nextest, nextest::read),
    (Format::Libtest, libtest::read),
    (Format::Tap, tap::read),
];

/// Finds the report in what a test command printed, when it is of a known form.
///
/// Standard output and error may be mixed, with colours, and other text around.
pub fn detect(output: &[u8]) -> Option<Report> {
    read_file(output, None).ok()
}

/// Reads a report file; `format` is its form where the caller says it, else it is found out.
///
/// # Errors
///
/// [`Unreadable`] when no report can be read from it: there is then no count, which is not a count of zero.
pub fn read_file(bytes: &[u8], format: Option<Format>) -> Result<Report, Unreadable> {
    if bytes.len() > BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let text = String::from_utf8_lossy(bytes);
    let text = if text.contains('\u{1b}') {
        Cow::Owned(text::without_colours(&text))
    } else {
        text
    };
    let mut readers = READERS
        .iter()
        .filter(|(form, _)| format.is_none_or(|format| format == *form));
    readers
        .find_map(|(_, read)| read(&text))
        .ok_or(Unreadable::NotOfForm(format))
}

/// Why no report could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is larger than [`BYTES_MAX`].
    TooLarge,
    /// It is not of the form that was named, or of no known form.
    NotOfForm(Option<Format>),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => f.write_str("the report is larger than 64 MiB"),
            Self::NotOfForm(Some(format)) => write!(f, "no report of the form {format} is in it"),
            Self::NotOfForm(None) => f.write_str("no report of a known form is in it"),
        }
    }
}

impl std::error::Error for Unreadable {}
