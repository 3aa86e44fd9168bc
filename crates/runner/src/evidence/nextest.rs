//! What `cargo nextest run` prints: one `Starting` and one `Summary` per run, summed.

use protocol::facts::report::{Format, Report};

use super::text::number;

/// Reads the summaries; what a run started and did not sum up failed.
pub(super) fn read(text: &str) -> Option<Report> {
    let mut report = Report::empty(Format::Nextest);
    let mut found = false;
    let mut started: Option<u64> = None;
    let mut summed_up = false;
    for line in text.lines() {
        // What tests printed is shown further in: only nextest's own lines stand so.
        if let Some(rest) = line.strip_prefix("    Starting ") {
            if let Some((count, rest)) = number(rest)
                && rest.starts_with(" test")
            {
                found = true;
                cut_short(&mut report, started.replace(count));
                summed_up = false;
            }
        } else if let Some(run) = line.strip_prefix("     Summary [").and_then(Summary::read) {
            found = true;
            summed_up = true;
            started = None;
            report.pass(run.passed);
            report.skip(run.skipped);
            report.fail(run.total.saturating_sub(run.passed).max(run.failed));
        } else if summed_up && let Some(name) = failed(line) {
            report.name_failure(name);
        }
    }
    cut_short(&mut report, started);
    found.then_some(report)
}

fn cut_short(report: &mut Report, started: Option<u64>) {
    if let Some(count) = started.filter(|count| *count > 0) {
        report.fail(count);
        report.name_failure("(a run ended without its summary)");
    }
}

/// Gives the test of a line that follows the summary: `        FAIL [   0.1s] (4/4) crate test::name`.
fn failed(line: &str) -> Option<&str> {
    let (what, rest) = line.split_once(" [")?;
    let (_, name) = rest.split_once("] ")?;
    let name = name.trim_start();
    let name = name
        .strip_prefix('(')
        .and_then(|name| name.split_once(") "))
        .map_or(name, |(_, name)| name);
    let status = what.trim_start();
    let is_status = status
        .chars()
        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == ' ');
    let passed = ["PASS", "FLAKY", "LEAK", "SLOW"]
        .iter()
        .any(|word| status.contains(word));
    (is_status && !passed).then_some(name)
}

struct Summary {
    total: u64,
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Summary {
    /// Reads `   0.2s] 4/5 tests run: 3 passed (1 flaky), 1 failed, 1 timed out, 1 skipped`.
    ///
    /// Of `4/5` the larger counts: a run that was cancelled did not pass what it did not run.
    fn read(text: &str) -> Option<Self> {
        let (_, text) = text.split_once("] ")?;
        let (total, rest) = number(text)?;
        let (total, rest) = rest.strip_prefix('/').and_then(number).unwrap_or((total, rest));
        let rest = rest
            .strip_prefix(" tests run:")
            .or_else(|| rest.strip_prefix(" test run:"))?;
        let mut summary = Self {
            total,
            passed: 0,
            failed: 0,
            skipped: 0,
        };
        let mut depth = 0_usize;
        let parts = rest.split(|c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        for part in parts {
            let Some((count, what)) = number(part.trim()) else {
                continue;
            };
            let what = what.split('(').next().unwrap_or_default().trim();
            match what {
                "passed" => summary.passed = count,
                "skipped" => summary.skipped = count,
                _ => summary.failed = summary.failed.saturating_add(count),
            }
        }
        Some(summary)
    }
}
