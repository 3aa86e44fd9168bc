//! What a person or a program sees: the answer on standard output, words about it on standard error.

use std::io::{IsTerminal, Write};

use serde_json::Value;

use crate::cli::{ColorWhen, Globals};
use crate::failure::Failure;

/// How answers are shown.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    /// One JSON document.
    pub json: bool,
    quiet: bool,
    color: bool,
}

impl Out {
    /// Follows the flags and the environment.
    pub fn new(globals: &Globals) -> Out {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
        let color = match globals.color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => {
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                let forced = set("CLICOLOR_FORCE") || set("FORCE_COLOR");
                !set("NO_COLOR") && (forced || !dumb && std::io::stderr().is_terminal())
            }
        };
        Out {
            json: globals.json,
            quiet: globals.quiet,
            color,
        }
    }

    /// Prints the answer: the document, or the text.
    pub fn answer(&self, document: Value, text: impl AsRef<str>) {
        if self.json {
            line(&crate::wire::answer(document).to_string());
        } else if !text.as_ref().is_empty() {
            line(text.as_ref().trim_end_matches('\n'));
        }
    }

    /// Prints a document a line, or the text of a list, which says so when it is empty.
    pub fn list(&self, jsonl: bool, name: &str, items: Vec<Value>, text: &[String], empty: &str) {
        if jsonl {
            items.iter().for_each(|item| line(&item.to_string()));
        } else if self.json {
            let mut fields = serde_json::Map::new();
            fields.insert(name.to_owned(), Value::Array(items));
            line(&crate::wire::answer(Value::Object(fields)).to_string());
        } else if text.is_empty() {
            self.note(empty);
        } else {
            text.iter().for_each(|text| line(text));
        }
    }

    /// Says something about the answer, to people only.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet && !self.json {
            word(text.as_ref());
        }
    }

    /// Shows a failure; gives its exit code.
    pub fn fail(&self, failure: &Failure) -> u8 {
        let shown = failure.shown();
        if self.json {
            line(&shown.document().to_string());
        } else {
            for (at, text) in shown.lines().iter().enumerate() {
                match (at, text.strip_prefix("error: ")) {
                    (0, Some(rest)) => word(&format!("{} {rest}", self.paint("31;1", "error:"))),
                    _ => word(text),
                }
            }
        }
        shown.exit
    }

    /// A text in a colour, where colours are wanted.
    pub fn paint(&self, code: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A reader that went away is no failure of the command, which has done its work.
fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn word(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
