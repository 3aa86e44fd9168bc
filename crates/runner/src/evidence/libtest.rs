//! What `cargo test` prints: one `running N tests` and one `test result:` per binary, summed.

use protocol::facts::report::{Format, Report};

use super::text::number;

/// Reads the results of all test binaries; a binary that announced tests and gave no result failed them all.
pub(super) fn read(text: &str) -> Option<Report> {
    let mut report = Report::empty(Format::Libtest);
    let mut found = false;
    // The tests that a binary announced and has not accounted for.
    let mut announced: Option<u64> = None;
    // Within the captured output of failed tests, which may hold whole outputs of other tests.
    let mut quoting = false;
    for line in text.lines() {
        if let Some(count) = running(line) {
            if !quoting {
                found = true;
                cut_short(&mut report, announced.replace(count));
            }
        } else if let Some(result) = line.strip_prefix("test result: ").and_then(Counts::read) {
            let counted = result.passed + result.failed + result.ignored;
            if quoting && announced != Some(counted) {
                continue;
            }
            found = true;
            report.pass(result.passed);
            report.skip(result.ignored);
            report.fail(result.failed.max(u64::from(result.red)));
            report.fail(announced.take().map_or(0, |count| count.saturating_sub(counted)));
            quoting = false;
        } else if announced.is_some() && matches!(line, "failures:" | "successes:") {
            quoting = true;
        } else if !quoting && let Some(name) = failed(line) {
            report.name_failure(name);
        }
    }
    cut_short(&mut report, announced);
    found.then_some(report)
}

/// Counts the tests of a binary that ended without its result.
fn cut_short(report: &mut Report, announced: Option<u64>) {
    if let Some(count) = announced.filter(|count| *count > 0) {
        report.fail(count);
        report.name_failure("(a test binary ended without its result)");
    }
}

fn running(line: &str) -> Option<u64> {
    let (count, rest) = number(line.strip_prefix("running ")?)?;
    matches!(rest.trim_end(), " test" | " tests").then_some(count)
}

/// Gives the name in `test NAME ... FAILED`, or `NAME --- FAILED` of the quiet form.
fn failed(line: &str) -> Option<&str> {
    let loud = line
        .strip_prefix("test ")
        .and_then(|line| line.strip_suffix(" ... FAILED"));
    loud.or_else(|| line.strip_suffix(" --- FAILED"))
}

struct Counts {
    red: bool,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Counts {
    /// Reads `ok. 2 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s`.
    fn read(text: &str) -> Option<Self> {
        let (word, counts) = text.split_once(". ")?;
        let mut result = Self {
            red: word != "ok",
            passed: 0,
            failed: 0,
            ignored: 0,
        };
        let mut known = 0;
        for part in counts.split(';') {
            let Some((count, what)) = number(part.trim()) else {
                continue;
            };
            // Sums of three such counts stay far from the end of 64 bits.
            let count = count.min(u64::from(u32::MAX));
            match what.trim() {
                "passed" => (result.passed, known) = (result.passed + count, known + 1),
                "failed" => (result.failed, known) = (count, known + 1),
                "ignored" => result.ignored = count,
                "measured" => result.passed += count,
                _ => {}
            }
        }
        (known == 2).then_some(result)
    }
}
