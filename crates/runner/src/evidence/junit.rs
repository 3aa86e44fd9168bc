//! JUnit XML, as its many writers write it: test cases are counted, sums in attributes are not believed.

use protocol::facts::report::{Format, Report};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// Reads the first JUnit document in the text; gives nothing when there is none.
///
/// No entity is ever expanded but XML's own five. What ends early, or stops being XML, is one failure more.
pub(super) fn read(text: &str) -> Option<Report> {
    let mut reader = Reader::from_str(document(text)?);
    let mut suite = Suite {
        report: Report::empty(Format::Junit),
        depth: 0,
        case: None,
    };
    loop {
        let whole = match reader.read_event() {
            Ok(Event::Start(tag)) => suite.open(&tag)?,
            Ok(Event::Empty(tag)) => {
                suite.open(&tag)?;
                suite.close()
            }
            Ok(Event::End(_)) => suite.close(),
            Ok(Event::Eof) | Err(_) => {
                if suite.depth == 0 {
                    return None;
                }
                suite.report.fail(1);
                suite.report.name_failure("(the report ends early)");
                true
            }
            Ok(_) => false,
        };
        if whole {
            return Some(suite.report);
        }
    }
}

/// Finds where a document begins: at the start, or at the start of a line after other output.
fn document(text: &str) -> Option<&str> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let begins = |text: &str| text.starts_with("<?xml") || text.starts_with("<testsuite");
    if begins(text) || text.starts_with("<!") {
        return Some(text);
    }
    text.match_indices('\n')
        .map(|(at, _)| &text[at + 1..])
        .find(|text| begins(text))
}

struct Suite {
    report: Report,
    /// How many elements are open.
    depth: usize,
    case: Option<Case>,
}

/// The test case that is open.
struct Case {
    name: String,
    depth: usize,
    failed: bool,
    skipped: bool,
    /// Skipped because it is still to do: a failure is then expected.
    to_do: bool,
}

impl Suite {
    /// Takes an opening tag; gives nothing when the root is not JUnit's, else that the report goes on.
    fn open(&mut self, tag: &BytesStart<'_>) -> Option<bool> {
        let name = tag.local_name();
        let name = name.as_ref();
        if self.depth == 0 && !matches!(name, "testsuites" | "testsuite") {
            return None;
        }
        self.depth += 1;
        let Some(case) = &mut self.case else {
            match name {
                "testcase" => self.case = Some(Case::of(tag, self.depth)),
                // A suite that failed by itself, before or after its cases.
                "failure" | "error" => {
                    self.report.fail(1);
                    self.report.name_failure("(a whole suite)");
                }
                _ => {}
            }
            return Some(false);
        };
        if self.depth == case.depth + 1 {
            match name {
                "failure" | "error" => case.failed = true,
                "skipped" => {
                    case.skipped = true;
                    case.to_do |= attribute(tag, "type").as_deref() == Some("todo");
                }
                // `flakyFailure` passed in the end; `rerunFailure` stands beside a `failure`.
                _ => {}
            }
        }
        Some(false)
    }

    /// Takes a closing tag; tells whether the root is closed.
    fn close(&mut self) -> bool {
        if let Some(case) = self.case.take_if(|case| case.depth == self.depth) {
            match case {
                Case {
                    failed: true,
                    to_do: false,
                    name,
                    ..
                } => {
                    self.report.fail(1);
                    self.report.name_failure(&name);
                }
                Case { skipped: true, .. } => self.report.skip(1),
                _ => self.report.pass(1),
            }
        }
        self.depth = self.depth.saturating_sub(1);
        self.depth == 0
    }
}

impl Case {
    fn of(tag: &BytesStart<'_>, depth: usize) -> Self {
        let name = [attribute(tag, "classname"), attribute(tag, "name")];
        let name: Vec<_> = name
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        let skipped = matches!(
            attribute(tag, "status").as_deref(),
            Some("notrun" | "disabled" | "skipped")
        );
        Self {
            name: name.join("::"),
            depth,
            failed: false,
            skipped,
            to_do: false,
        }
    }
}

/// Gives an attribute, its entities resolved where they are XML's own.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag
        .attributes()
        .flatten()
        .find(|attribute| attribute.key.as_ref() == name)?;
    Some(
        found
            .normalized_value(XmlVersion::Implicit1_0)
            .unwrap_or(found.value)
            .into_owned(),
    )
}
