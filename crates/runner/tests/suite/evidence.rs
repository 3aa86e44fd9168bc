//! Test reports are read as they really look, and nothing is greener than it is.
//!
//! The files in `evidence/` are what the tools printed (cargo 1.95, nextest 0.9.143, node 20, perl 5), shortened
//! by their stack traces alone.

use proptest::prelude::*;
use protocol::facts::report::{Format, Report};
use runner::evidence::{Unreadable, detect, read_file};

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!("evidence/", $name)).as_slice()
    };
}

/// The counts in short: `form total: passed failed skipped`, and the names of failures.
fn short(report: &Report) -> String {
    let Report {
        format,
        total,
        passed,
        failed,
        skipped,
        failures,
    } = report;
    assert_eq!(*total, passed + failed + skipped, "{report:?}");
    format!("{format} {total}: {passed} {failed} {skipped} {failures:?}")
}

fn found(output: impl AsRef<[u8]>) -> String {
    detect(output.as_ref())
        .as_ref()
        .map_or_else(|| "nothing".to_owned(), short)
}

#[test]
fn real_outputs_are_read() {
    for (name, output, expected) in [
        (
            "cargo test",
            sample!("cargo-test.txt"),
            r#"libtest 6: 4 1 1 ["tests::subtracts"]"#,
        ),
        (
            "cargo test, colours",
            sample!("cargo-test-colour.txt"),
            r#"libtest 6: 4 1 1 ["tests::subtracts"]"#,
        ),
        (
            "cargo test -q",
            sample!("cargo-test-quiet.txt"),
            r#"libtest 6: 4 1 1 ["tests::subtracts"]"#,
        ),
        (
            "cargo test, green",
            sample!("cargo-test-green.txt"),
            "libtest 2: 2 0 0 []",
        ),
        (
            "cargo test, nothing",
            sample!("cargo-test-zero.txt"),
            "libtest 0: 0 0 0 []",
        ),
        (
            "nextest, a retry",
            sample!("nextest.txt"),
            r#"nextest 5: 3 1 1 ["tiny tests::subtracts"]"#,
        ),
        (
            "nextest, colours",
            sample!("nextest-colour.txt"),
            r#"nextest 5: 3 1 1 ["tiny tests::subtracts"]"#,
        ),
        (
            "nextest, green",
            sample!("nextest-green.txt"),
            "nextest 2: 2 0 0 []",
        ),
        (
            "nextest, nothing",
            sample!("nextest-zero.txt"),
            "nextest 5: 0 0 5 []",
        ),
        (
            "nextest json",
            sample!("nextest-libtest.jsonl"),
            r#"libtest-json 5: 3 1 1 ["tiny::tiny$tests::subtracts"]"#,
        ),
        (
            "nextest junit",
            sample!("nextest-junit.xml"),
            r#"junit 4: 3 1 0 ["tiny::tests::subtracts"]"#,
        ),
        (
            "node junit",
            sample!("node-junit.xml"),
            r#"junit 6: 2 2 2 ["test::subtracts", "test::inner two"]"#,
        ),
        (
            "node junit, nothing",
            sample!("node-empty-junit.xml"),
            "junit 0: 0 0 0 []",
        ),
        (
            "node tap",
            sample!("node.tap"),
            r#"tap 6: 2 2 2 ["subtracts", "inner two"]"#,
        ),
        ("node tap, nothing", sample!("node-empty.tap"), "tap 0: 0 0 0 []"),
        ("perl", sample!("perl.tap"), r#"tap 4: 1 1 2 ["second"]"#),
        ("perl, subtests", sample!("perl-subtests.tap"), "tap 3: 3 0 0 []"),
        (
            "prove -v",
            sample!("prove-verbose.txt"),
            r#"tap 4: 1 1 2 ["second"]"#,
        ),
        ("prove", sample!("prove-summary.txt"), "nothing"),
        (
            "prove -v, two green files",
            sample!("prove-verbose-green.txt"),
            "tap 5: 5 0 0 []",
        ),
        (
            "perl, bail out",
            sample!("perl-bail-out.tap"),
            r#"tap 4: 1 3 0 ["Bail out!  disk full", "(2 of 3 planned tests are missing)"]"#,
        ),
        (
            "perl, died",
            sample!("perl-died.tap"),
            r#"tap 3: 1 2 0 ["(2 of 3 planned tests are missing)"]"#,
        ),
    ] {
        assert_eq!(found(output), expected, "{name}");
    }
}

#[test]
fn o_16_nothing_that_ran_no_test_is_green() {
    let empty = [
        sample!("node-empty.tap"),
        sample!("node-empty-junit.xml"),
        sample!("cargo-test-zero.txt"),
        sample!("nextest-zero.txt"),
        sample!("perl-skip-all.tap"),
        b"TAP version 14\n1..0 # skipped: none\n",
        b"<testsuites/>",
        b"<testsuite name='x' tests='12' failures='0'></testsuite>",
    ];
    for output in empty {
        let report = detect(output).unwrap();
        assert_eq!((report.passed, report.failed), (0, 0), "{report:?}");
        assert!(!report.is_green());
    }
    let no_report: [&[u8]; 5] = [
        b"",
        b"No tests found, exiting with code 0\n",
        b"\n> echo \"Error: no test specified\" && exit 1\n\nError: no test specified\n",
        b"============ no tests ran in 0.01s ============\n",
        b"14 passed\n",
    ];
    for output in no_report {
        assert_eq!(found(output), "nothing");
    }
}

#[test]
fn junit_is_read_as_its_many_writers_write_it() {
    for (xml, expected) in [
        // A root suite, no name, a time without zone.
        (
            "<testsuite timestamp='2026-11-30T10:00:00'><testcase name='a'/></testsuite>",
            "junit 1: 1 0 0 []",
        ),
        (
            "<testsuites><testsuite><testsuite><testcase name='a' classname='C'><error/></testcase></testsuite>\
             <testcase name='b'/></testsuite></testsuites>",
            r#"junit 2: 1 1 0 ["C::a"]"#,
        ),
        (
            "<testsuite tests='9' failures='9'><testcase name='a'/></testsuite>",
            "junit 1: 1 0 0 []",
        ),
        (
            "<testsuite><testcase name='a'><flakyFailure/><system-out>failure</system-out></testcase></testsuite>",
            "junit 1: 1 0 0 []",
        ),
        (
            "<testsuite><testcase name='a'><failure/><rerunFailure/></testcase></testsuite>",
            r#"junit 1: 0 1 0 ["a"]"#,
        ),
        (
            "<testsuite><testcase name='a'><failure/><error/><failure/></testcase></testsuite>",
            r#"junit 1: 0 1 0 ["a"]"#,
        ),
        (
            "<testsuite><testcase name='a'><skipped/></testcase><testcase name='b' status='notrun'/></testsuite>",
            "junit 2: 0 0 2 []",
        ),
        (
            "<testsuite><testcase name='a'><skipped/><failure/></testcase></testsuite>",
            r#"junit 1: 0 1 0 ["a"]"#,
        ),
        (
            "<testsuite><testcase name='a &lt;b&gt; &quot;'><failure/></testcase></testsuite>",
            r#"junit 1: 0 1 0 ["a <b> \""]"#,
        ),
        (
            "<testsuite><error>collection failed</error></testsuite>",
            r#"junit 1: 0 1 0 ["(a whole suite)"]"#,
        ),
        (
            "<testsuite><testcase name='a'><properties><failure/></properties></testcase></testsuite>",
            "junit 1: 1 0 0 []",
        ),
        (
            "\u{feff}<?xml version='1.0'?>\n<x:testsuite xmlns:x='u'><x:testcase name='a'/></x:testsuite>",
            "junit 1: 1 0 0 []",
        ),
        (
            "> app@1 test\n> node --test\n\n<?xml version='1.0'?><testsuite><testcase name='a'/></testsuite>\nbye",
            "junit 1: 1 0 0 []",
        ),
        ("<html><testcase name='a'/></html>", "nothing"),
        ("<?xml version='1.0'?>", "nothing"),
    ] {
        assert_eq!(found(xml), expected, "{xml}");
    }
}

#[test]
fn a_report_that_ends_early_is_never_green() {
    let whole: [&[u8]; 4] = [
        b"<testsuite><testcase name='a'/><testcase name='b'/></testsuite>",
        b"TAP version 13\n1..3\nok 1 - a\nok 2 - b\nok 3 - c\n",
        b"\nrunning 3 tests\ntest a ... ok\ntest b ... ok\ntest c ... ok\n\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        sample!("nextest-green.txt"),
    ];
    for text in whole {
        let all = detect(text).unwrap();
        assert!(all.is_green());
        let mut red = 0;
        for cut in 0..text.len() {
            // Green is what already says all that the whole says.
            match detect(&text[..cut]) {
                Some(report) if report.is_green() => {
                    assert_eq!(report, all, "{}", String::from_utf8_lossy(&text[..cut]))
                }
                Some(_) => red += 1,
                None => {}
            }
        }
        assert!(red > 0, "no cut was seen to be one");
    }
}

#[test]
fn hostile_xml_is_neither_expanded_nor_believed() {
    let bomb = "<!DOCTYPE t [<!ENTITY a 'x'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY f SYSTEM 'file:///etc/passwd'>]>\
                <testsuite><testcase name='&b;&f;'><failure>&b;&f;</failure></testcase></testsuite>";
    assert_eq!(found(bomb), r#"junit 1: 0 1 0 ["&b;&f;"]"#);
    let deep = "<testsuite>".repeat(300_000);
    assert_eq!(found(&deep), r#"junit 1: 0 1 0 ["(the report ends early)"]"#);
    let wide = format!(
        "<testsuite>{}</testsuite>",
        "<testcase name='a'><failure/></testcase>".repeat(100_000)
    );
    let report = detect(wide.as_bytes()).unwrap();
    assert_eq!(
        (report.failed, report.failures.len()),
        (100_000, Report::FAILURES_MAX)
    );
    assert_eq!(
        found("<testsuite><testcase name='a'/></testcase></testsuite>"),
        r#"junit 2: 1 1 0 ["(the report ends early)"]"#
    );
}

#[test]
fn tap_is_read_by_its_rules() {
    for (tap, expected) in [
        ("1..2\nok\nok\n", "tap 2: 2 0 0 []"),
        ("ok 1\nok 2\n1..2\n", "tap 2: 2 0 0 []"),
        (
            "1..2\nok 1 - a # Skip no net\nnot ok 2 - b # todo later\n",
            "tap 2: 0 0 2 []",
        ),
        ("1..1\nok 1 - a \\# skip this\n", "tap 1: 1 0 0 []"),
        ("1..1\nnot ok 1 - issue #12\n", r#"tap 1: 0 1 0 ["issue #12"]"#),
        (
            "1..1\nok 1 - a\nok 2 - b\n",
            r#"tap 3: 2 1 0 ["(more tests than planned)"]"#,
        ),
        (
            "TAP version 14\nok 1 - a\n",
            r#"tap 2: 1 1 0 ["(the plan is missing)"]"#,
        ),
        (
            "TAP version 14\n1..1\nok 1\n  ---\n  log: |\n    not ok 1 - quoted\n  ...\n",
            "tap 1: 1 0 0 []",
        ),
        (
            "1..1\n    1..2\n    ok 1 - a\nok 1 - outer\n",
            r#"tap 2: 1 1 0 ["(1 of 2 planned tests are missing)"]"#,
        ),
        (
            "1..1\n    ok 1 - a\n    not ok 2 - b\n    1..2\nnot ok 1 - outer # TODO\n",
            "tap 2: 1 0 1 []",
        ),
        (
            "1..1\n    not ok 1 - b\n    1..1\nok 1 - outer\n",
            r#"tap 1: 0 1 0 ["b"]"#,
        ),
        (
            "1..1\n    ok 1 - a\n    1..1\nnot ok 1 - outer\n",
            r#"tap 2: 1 1 0 ["outer"]"#,
        ),
        (
            "a.t ..\n1..1\nok 1\nok\nb.t ..\n1..1\nnot ok 1 - x\nFailed 1/1 subtests\n",
            r#"tap 2: 1 1 0 ["x"]"#,
        ),
        (
            "TAP version 13\nok 1\n1..1\nTAP version 13\nok 1\n1..1\n",
            "tap 2: 2 0 0 []",
        ),
        (
            "1..18446744073709551615\nok 1\n",
            r#"tap 18446744073709551615: 1 18446744073709551614 0 ["(18446744073709551614 of 18446744073709551615 planned tests are missing)"]"#,
        ),
        ("ok 1 - prose\nok then\n", "nothing"),
        ("1..10\n", "nothing"),
    ] {
        assert_eq!(found(tap), expected, "{tap}");
    }
}

#[test]
fn cargo_is_read_beyond_its_plain_case() {
    let result = |word: &str, passed: u64, failed: u64| {
        format!(
            "test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
        )
    };
    // A failed test shows the whole output of another run: it is quoted, not counted.
    let quoted = format!(
        "running 2 tests\ntest a ... FAILED\ntest b ... ok\n\nfailures:\n\n---- a stdout ----\nrunning 5 tests\n{}\nfailures:\n    a\n\n{}",
        result("ok", 5, 0),
        result("FAILED", 1, 1)
    );
    assert_eq!(found(quoted), r#"libtest 2: 1 1 0 ["a"]"#);
    let killed = format!(
        "running 2 tests\n{}\nrunning 3 tests\ntest x ... ok\nerror: test failed (signal: 6)\n",
        result("ok", 2, 0)
    );
    assert_eq!(
        found(killed),
        r#"libtest 5: 2 3 0 ["(a test binary ended without its result)"]"#
    );
    assert_eq!(found(result("FAILED", 3, 0)), "libtest 4: 3 1 0 []");
    assert_eq!(
        found(format!("running 3 tests\n{}", result("ok", 1, 0))),
        "libtest 3: 1 2 0 []"
    );
    assert_eq!(found(format!("    {}", result("ok", 1, 0))), "nothing");
}

#[test]
fn nextest_is_read_beyond_its_plain_case() {
    for (summary, expected) in [
        (
            "3 tests run: 3 passed (1 slow, 1 flaky), 0 skipped",
            "nextest 3: 3 0 0 []",
        ),
        (
            "4 tests run: 1 passed, 1 failed, 1 timed out, 1 exec failed, 2 skipped",
            "nextest 6: 1 3 2 []",
        ),
        ("2/5 tests run: 2 passed, 3 skipped", "nextest 8: 2 3 3 []"),
        ("1 test run: 1 passed, 0 skipped", "nextest 1: 1 0 0 []"),
    ] {
        assert_eq!(
            found(format!("     Summary [   0.015s] {summary}\n")),
            expected,
            "{summary}"
        );
    }
    let killed = "    Starting 4 tests across 2 binaries\n        PASS [   0.016s] (1/4) tiny tests::adds\n";
    assert_eq!(
        found(killed),
        r#"nextest 4: 0 4 0 ["(a run ended without its summary)"]"#
    );
    let twice = [sample!("nextest-green.txt"), sample!("nextest.txt")].concat();
    assert_eq!(found(twice), r#"nextest 7: 5 1 1 ["tiny tests::subtracts"]"#);
}

#[test]
fn json_lines_that_stop_are_not_green() {
    let lines: Vec<_> = std::str::from_utf8(sample!("nextest-libtest.jsonl"))
        .unwrap()
        .lines()
        .collect();
    for count in 1..lines.len() {
        assert!(
            !detect(lines[..count].join("\n").as_bytes()).unwrap().is_green() || count == lines.len(),
            "{count}"
        );
    }
    let red = "{\"type\":\"suite\",\"event\":\"started\"}\n{\"type\":\"suite\",\"event\":\"failed\",\"failed\":2}\n";
    assert_eq!(found(red), r#"libtest-json 2: 0 2 0 ["(tests without an end)"]"#);
    assert_eq!(
        found("{\"type\":\"test\",\"event\":\"ok\",\"name\":\"a\"}\n"),
        "nothing"
    );
}

#[test]
fn a_file_is_read_by_the_form_that_is_named() {
    let tap = sample!("perl.tap");
    assert_eq!(read_file(tap, Some(Format::Tap)).unwrap().total, 4);
    assert_eq!(read_file(tap, None).unwrap().total, 4);
    assert_eq!(
        read_file(tap, Some(Format::Junit)),
        Err(Unreadable::NotOfForm(Some(Format::Junit)))
    );
    assert_eq!(
        read_file(&vec![b' '; runner::evidence::BYTES_MAX + 1], None),
        Err(Unreadable::TooLarge)
    );
    for name in Format::ALL {
        assert!(read_file(b"\xff\xfe\x00garbage", Some(name)).is_err());
    }
}

const PIECES: &str = "(1\\.\\.[0-9]{0,3}|ok|not ok| [0-9]|TAP version 13|\n|    |  ---|  \\.\\.\\.|# (SKIP|TODO)|Bail out!|running [0-9]+ tests|test result: ok\\. 1 passed; 0 failed; |failures:|    Starting 3 tests|     Summary \\[ 1s\\] [0-9](/[0-9])? tests run: 1 passed|<testsuite>|<testcase name='a'|/?>|</testcase>|</testsuite>|<failure/>|\\{\"type\":\"suite\",\"event\":\"started\"\\}|&x;|\u{1b}\\[3|.){0,30}";

proptest! {
    #[test]
    fn no_output_panics_a_reader(output in PIECES) {
        for format in Format::ALL.map(Some).into_iter().chain([None]) {
            if let Ok(report) = read_file(output.as_bytes(), format) {
                prop_assert_eq!(report.total, report.passed + report.failed + report.skipped);
            }
        }
    }

    #[test]
    fn no_bytes_panic_a_reader(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for format in Format::ALL {
            let _ = read_file(&bytes, Some(format));
        }
    }
}
