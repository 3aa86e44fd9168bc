//! What a run of tests reported: counts, and the names of what failed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The counts of one test report, read by us and never taken from an agent's words (protocol, 11).
///
/// `total` is always `passed + failed + skipped`: what a report promised and did not show counts as failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The form that it was read from.
    pub format: Format,
    /// All tests that were reported or promised.
    pub total: u64,
    /// Those that ran and succeeded, a flaky one that succeeded in the end included.
    pub passed: u64,
    /// Those that failed, erred, or were promised and are missing.
    pub failed: u64,
    /// Those that did not run on purpose: skipped, ignored, to do.
    pub skipped: u64,
    /// The names of the first [`Report::FAILURES_MAX`] that failed, each at most
    /// [`Report::NAME_MAX`] characters.
    pub failures: Vec<String>,
}

impl Report {
    /// How many names of failures are kept.
    pub const FAILURES_MAX: usize = 100;

    /// How many characters of a name are kept.
    pub const NAME_MAX: usize = 200;

    /// Makes a report without any test.
    pub const fn empty(format: Format) -> Self {
        Self {
            format,
            total: 0,
            passed: 0,
            failed: 0,
            skipped: 0,
            failures: Vec::new(),
        }
    }

    /// Counts tests that succeeded.
    pub const fn pass(&mut self, count: u64) {
        self.passed = self.passed.saturating_add(count);
        self.total = self.total.saturating_add(count);
    }

    /// Counts tests that did not run on purpose.
    pub const fn skip(&mut self, count: u64) {
        self.skipped = self.skipped.saturating_add(count);
        self.total = self.total.saturating_add(count);
    }

    /// Counts tests that failed, without their names.
    pub const fn fail(&mut self, count: u64) {
        self.failed = self.failed.saturating_add(count);
        self.total = self.total.saturating_add(count);
    }

    /// Keeps the name of a test that failed, as far as there is room.
    pub fn name_failure(&mut self, name: &str) {
        if self.failures.len() < Self::FAILURES_MAX {
            self.failures.push(name.chars().take(Self::NAME_MAX).collect());
        }
    }

    /// Tells whether at least one test succeeded and none failed; a report of nothing is not green.
    pub const fn is_green(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

/// The forms that a test report may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JUnit XML.
    Junit,
    /// TAP 12, 13 or 14.
    Tap,
    /// What `cargo nextest` prints.
    Nextest,
    /// The JSON lines of libtest and of nextest's `libtest-json`.
    LibtestJson,
    /// What `cargo test` prints.
    Libtest,
}

impl Format {
    /// All forms, in the order in which an unknown output is tried against them.
    pub const ALL: [Self; 5] = [
        Self::Junit,
        Self::LibtestJson,
        Self::Nextest,
        Self::Libtest,
        Self::Tap,
    ];

    /// Reads a form by its written name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == text)
    }

    /// Gives the written name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Junit => "junit",
            Self::Tap => "tap",
            Self::Nextest => "nextest",
            Self::LibtestJson => "libtest-json",
            Self::Libtest => "libtest",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o_16_a_report_of_nothing_is_not_green() {
        let mut report = Report::empty(Format::Tap);
        assert!(!report.is_green());
        report.skip(3);
        assert!(!report.is_green());
        report.pass(1);
        assert!(report.is_green());
        report.fail(1);
        assert!(!report.is_green());
        assert_eq!(report.total, 5);
    }

    #[test]
    fn the_stored_name_of_a_form_is_the_written_one() {
        for format in Format::ALL {
            assert_eq!(serde_json::to_string(&format).unwrap(), format!("\"{format}\""));
            assert_eq!(Format::parse(format.as_str()), Some(format));
        }
    }

    #[test]
    fn the_names_of_failures_are_capped() {
        let mut report = Report::empty(Format::Tap);
        for _ in 0..1000 {
            report.name_failure(&"é".repeat(1000));
        }
        assert_eq!(report.failures.len(), Report::FAILURES_MAX);
        assert_eq!(report.failures[0].chars().count(), Report::NAME_MAX);
    }
}
