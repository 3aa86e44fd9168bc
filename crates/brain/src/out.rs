//! What a person or a program sees: the answer on standard output, words about it on standard error.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::cli::{ColorWhen, Globals};
use crate::failure::{Failure, Trouble};

/// Why some of the answer did not reach standard output. It belongs to the process, as standard output does.
static LOST: OnceLock<io::Error> = OnceLock::new();

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
            color: wanted(&|| io::stderr().is_terminal()),
            color_answers: wanted(&|| io::stdout().is_terminal()),
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

    /// Begins an answer whose parts are printed as they come, so that none has to be in memory whole. To people it
    /// prints nothing.
    pub fn stream(&self) -> Stream {
        Stream {
            out: self.json.then(|| BufWriter::new(io::stdout())),
            begun: false,
            items: None,
            is_read: true,
        }
    }

    /// Begins a list whose items are printed as they come: documents a line, one document, or text.
    pub fn listing(&self, jsonl: bool, name: &'static str) -> Listing {
        Listing {
            stream: Out { json: true, ..*self }.stream(),
            form: match (jsonl, self.json) {
                (true, _) => Form::Lines,
                (false, true) => Form::Document(name),
                (false, false) => Form::Text,
            },
            empty: true,
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

    /// Ends a command with this exit code; with another one, and a word on standard error, where its answer is not
    /// whole. What was refused or failed has the code that says what to do now, and keeps it.
    pub fn finish(&self, exit: u8) -> u8 {
        let Some(error) = LOST.get() else {
            return exit;
        };
        // Standard output has no room for a document, whatever was asked for.
        let trouble = Trouble::io("cannot write the answer to", Path::new("standard output"), error);
        let failure = Failure::from(trouble);
        let shown = failure.shown();
        let text = Out { json: false, ..*self };
        text.fail(&failure);
        if exit == 0 { shown.exit } else { exit }
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

/// An answer that is printed part by part. Nothing is printed before the first part is there.
pub struct Stream {
    out: Option<BufWriter<Stdout>>,
    begun: bool,
    /// How many items the list that is being printed has so far.
    items: Option<usize>,
    is_read: bool,
}

impl Stream {
    /// Whether anybody reads on; who went away is no failure, but need not be told more.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    fn put(&mut self, text: &str) {
        if let Some(out) = &mut self.out {
            self.is_read &= written(out.write_all(text.as_bytes()));
        }
    }

    fn name(&mut self, name: &str) {
        self.end_list();
        let version = crate::wire::VERSION;
        let before = if self.begun {
            ",".to_owned()
        } else {
            format!("{{\"v\":{version},\"ok\":true,")
        };
        self.begun = true;
        self.put(&format!("{before}{}:", Value::from(name)));
    }

    /// Prints one field.
    pub fn field(&mut self, name: &str, value: impl Into<Value>) {
        if self.out.is_some() {
            self.name(name);
            self.put(&value.into().to_string());
        }
    }

    /// Begins a list, and ends the one before.
    pub fn list(&mut self, name: &str) {
        self.name(name);
        self.put("[");
        self.items = Some(0);
    }

    /// Prints an item of the list that was begun.
    pub fn item(&mut self, item: impl FnOnce() -> Value) {
        if self.out.is_some() {
            let comma = if self.items.is_some_and(|it| it > 0) {
                ","
            } else {
                ""
            };
            self.put(&format!("{comma}{}", item()));
            self.items = self.items.map(|items| items + 1);
        }
    }

    fn end_list(&mut self) {
        if self.items.take().is_some() {
            self.put("]");
        }
    }

    fn flush(&mut self) {
        if let Some(out) = &mut self.out
            && self.is_read
        {
            written(out.flush());
        }
    }

    /// Ends the answer.
    pub fn end(mut self) {
        self.end_list();
        self.put("}\n");
        self.flush();
    }
}

#[derive(Clone, Copy)]
enum Form {
    Lines,
    Document(&'static str),
    Text,
}

/// A list that is printed while it is read.
pub struct Listing {
    stream: Stream,
    form: Form,
    empty: bool,
}

impl Listing {
    /// Prints an item in the form that was asked for; says whether anybody reads on.
    pub fn add(&mut self, item: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> bool {
        match self.form {
            Form::Lines => self.stream.put(&format!("{}\n", item())),
            Form::Text => self.stream.put(&format!("{}\n", text())),
            Form::Document(name) => {
                if self.empty {
                    self.stream.list(name);
                }
                self.stream.item(item);
            }
        }
        self.empty = false;
        self.stream.is_read()
    }

    /// Ends the list; one that is empty says so.
    pub fn end(mut self, out: &Out, empty: &str) {
        match self.form {
            Form::Document(name) => {
                if self.empty {
                    self.stream.list(name);
                }
                self.stream.end();
            }
            Form::Text if self.empty => out.note(empty),
            Form::Text | Form::Lines => self.stream.flush(),
        }
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

fn line(text: &str) {
    let mut out = io::stdout().lock();
    written(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// Notes what became of a write to standard output; says whether it got there.
///
/// A reader that went away is no failure of the command, which has done its work. A disk that is full is one: who
/// reads the file later would take a part for the whole.
pub fn written(done: io::Result<()>) -> bool {
    match done {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                // The first reason is the one that is told.
                let _ = LOST.set(error);
            }
            false
        }
    }
}

fn word(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
