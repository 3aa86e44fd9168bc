//! What a person or a program sees: the answer on standard output, words about it on standard error.

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};

use crate::cli::{ColorWhen, Globals};
use crate::failure::Failure;

/// How answers are shown.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    /// One JSON document.
    pub json: bool,
    quiet: bool,
    color: bool,
    color_answers: bool,
}

impl Out {
    /// Follows the flags and the environment.
    pub fn new(globals: &Globals) -> Out {
        let wanted = |is_terminal: &dyn Fn() -> bool| match globals.color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => wants_color(is_terminal),
        };
        Out {
            json: globals.json,
            quiet: globals.quiet,
            color: wanted(&|| std::io::stderr().is_terminal()),
            color_answers: wanted(&|| std::io::stdout().is_terminal()),
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

    /// Prints an answer that is no plain yes: its document says `ok` only for exit 0.
    pub fn verdict(&self, exit: u8, fields: Value, text: &[String], empty: &str) -> u8 {
        if self.json {
            let mut document = crate::wire::answer(json!({ "exit": exit }));
            document["ok"] = (exit == 0).into();
            if let (Value::Object(document), Value::Object(fields)) = (&mut document, fields) {
                document.extend(fields);
            }
            line(&document.to_string());
        } else if text.is_empty() {
            self.note(empty);
        } else {
            text.iter().for_each(|text| line(text));
        }
        exit
    }

    /// Prints a document that is whole already.
    pub fn document(&self, document: &Value) {
        line(&document.to_string());
    }

    /// Prints a text that is the whole answer, as it is.
    pub fn text(&self, name: &str, text: &str) {
        self.answer(json!({ name: text }), text);
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

    /// A text for standard error in a colour, where colours are wanted.
    pub fn paint(&self, code: &str, text: &str) -> String {
        painted(self.color, code, text)
    }

    /// A text for standard output in a colour, where colours are wanted there.
    pub fn paint_answer(&self, code: &str, text: &str) -> String {
        painted(self.color_answers, code, text)
    }
}

fn painted(color: bool, code: &str, text: &str) -> String {
    if color {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// What the environment says about colours: `NO_COLOR` with anything in it, `CLICOLOR=0`, `CLICOLOR_FORCE`.
fn wants_color(is_terminal: &dyn Fn() -> bool) -> bool {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let forced = |name: &str| var(name).is_some_and(|value| value != "0");
    if var("NO_COLOR").is_some() {
        return false;
    }
    if forced("CLICOLOR_FORCE") || forced("FORCE_COLOR") {
        return true;
    }
    let off =
        var("CLICOLOR").is_some_and(|value| value == "0") || var("TERM").is_some_and(|term| term == "dumb");
    !off && is_terminal()
}

/// A reader that went away is no failure of the command, which has done its work.
fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn word(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
