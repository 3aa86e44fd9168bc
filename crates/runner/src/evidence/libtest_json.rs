//! The JSON lines of libtest (`--format json`) and of nextest's `libtest-json` forms.

use protocol::facts::report::{Format, Report};
use serde::Deserialize;

/// One line; what it holds besides is of no use here.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    what: &'a str,
    event: &'a str,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    failed: u64,
}

/// Counts the ends of tests, not the sums of suites: nextest shows one suite in several parts.
///
/// A test that started and did not end failed, and so does a suite that did not end.
pub(super) fn read(text: &str) -> Option<Report> {
    let mut report = Report::empty(Format::LibtestJson);
    let (mut suites, mut open_suites, mut open_tests) = (0_u64, 0_u64, 0_u64);
    let mut red = 0_u64;
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let Ok(Line {
            what,
            event,
            name,
            failed,
        }) = serde_json::from_str(line)
        else {
            continue;
        };
        match (what, event) {
            ("suite", "started") => (suites, open_suites) = (suites + 1, open_suites + 1),
            ("suite", "ok" | "failed") => {
                open_suites = open_suites.saturating_sub(1);
                red = red.saturating_add(failed.max(u64::from(event == "failed")));
            }
            ("test", "started") => open_tests += 1,
            ("test", end) => {
                let ended = match end {
                    "ok" => Report::pass,
                    "ignored" => Report::skip,
                    "failed" => Report::fail,
                    // `timeout` only warns that a test is slow.
                    _ => continue,
                };
                ended(&mut report, 1);
                if end == "failed" {
                    report.name_failure(name.as_deref().unwrap_or("(no name)"));
                }
                open_tests = open_tests.saturating_sub(1);
            }
            ("bench", _) => report.pass(1),
            _ => {}
        }
    }
    let unshown = red.saturating_sub(report.failed).max(open_tests).max(open_suites);
    if unshown > 0 {
        report.fail(unshown);
        report.name_failure("(tests without an end)");
    }
    (suites > 0).then_some(report)
}
