//! A plan's YAML as a small tree in which everything knows its place, and nothing is guessed.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use super::at::At;
use super::problem::Sink;

/// A value and where it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) value: Value,
}

/// What a value is: scalars are text, whatever they look like.
#[derive(Debug)]
pub(super) enum Value {
    /// Nothing, `~` or `null`, bare: as if the key were missing.
    Null,
    /// A text, and how far its first character stands from where the value begins, when that is known.
    Text(String, Option<usize>),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map, where it stands, and its value.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: At,
    pub(super) node: Node,
}

/// How deep lists and maps may lie in each other: a plan needs six.
const DEPTH_MAX: usize = 32;

/// What a bare word must be to be nothing.
const NULL: [&str; 5] = ["", "~", "null", "Null", "NULL"];

/// Reads one document into a tree, reporting what YAML allows and a plan does not.
///
/// `bare` are the lines whose quoted text stands without its quotes in the source.
///
/// # Errors
///
/// The first place where the text is no YAML.
pub(super) fn read(text: &str, bare: &[usize], sink: &mut Sink<'_>) -> Result<Option<Node>, ScanError> {
    let mut build = Build {
        sink,
        open: Vec::new(),
        root: None,
    };
    let mut documents = 0;
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event?;
        let at = At::of(span);
        match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    build.sink.problem(
                        "plan.second_document",
                        at,
                        "a second document begins here",
                        "put each plan into a file of its own",
                    );
                    break;
                }
            }
            Event::Alias(_) => {
                build.sink.alias(at);
                build.done(Node {
                    at,
                    value: Value::Null,
                });
            }
            Event::Scalar(text, style, anchor, tag) => {
                build.plain(at, anchor, tag.is_some());
                let one_line = span.start.line() == span.end.line();
                let inset = match style {
                    // Where a text runs over several lines its inner columns are nobody's guess.
                    _ if !one_line => None,
                    ScalarStyle::Plain => Some(0),
                    ScalarStyle::SingleQuoted if bare.binary_search(&at.line).is_ok() => Some(0),
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Some(1),
                    ScalarStyle::Literal | ScalarStyle::Folded => None,
                };
                let null = style == ScalarStyle::Plain && NULL.contains(&text.as_ref());
                let value = if null {
                    Value::Null
                } else {
                    Value::Text(text.into_owned(), inset)
                };
                build.done(Node { at, value });
            }
            Event::SequenceStart(anchor, tag) => {
                build.plain(at, anchor, tag.is_some());
                build.open.push(Open {
                    at,
                    what: What::List(Vec::new()),
                });
            }
            Event::MappingStart(anchor, tag) => {
                build.plain(at, anchor, tag.is_some());
                let what = What::Map {
                    entries: Vec::new(),
                    lines: HashMap::new(),
                    key: None,
                };
                build.open.push(Open { at, what });
            }
            Event::SequenceEnd | Event::MappingEnd => build.close(),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        if build.open.len() > DEPTH_MAX {
            build.sink.problem(
                "plan.too_deep",
                at,
                "lists and maps lie too deep in each other",
                "flatten it",
            );
            return Ok(None);
        }
    }
    Ok(build.root)
}

struct Build<'s, 'a> {
    sink: &'s mut Sink<'a>,
    open: Vec<Open>,
    root: Option<Node>,
}

/// A list or map whose end was not met yet.
struct Open {
    at: At,
    what: What,
}

enum What {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        /// The line of each key, for a double of it.
        lines: HashMap<String, usize>,
        /// The key whose value comes next; `None` within it for one that was reported and is dropped.
        key: Option<(Option<String>, At)>,
    },
}

impl Build<'_, '_> {
    fn plain(&mut self, at: At, anchor: usize, tag: bool) {
        if anchor != 0 {
            self.sink.problem(
                "plan.anchor",
                at,
                "an anchor names this value",
                "write it out where it is used",
            );
        }
        if tag {
            self.sink.problem(
                "plan.tag",
                at,
                "a tag gives this value a type",
                "take it away, all is text; quote an entry that begins with `!`",
            );
        }
    }

    fn close(&mut self) {
        let Some(Open { at, what }) = self.open.pop() else {
            return;
        };
        let value = match what {
            What::List(nodes) => Value::List(nodes),
            What::Map { entries, .. } => Value::Map(entries),
        };
        self.done(Node { at, value });
    }

    /// Puts a finished value where it belongs: a key, a value of a map, an entry of a list, or the root.
    fn done(&mut self, node: Node) {
        match self.open.last_mut().map(|open| &mut open.what) {
            None => self.root = self.root.take().or(Some(node)),
            Some(What::List(nodes)) => nodes.push(node),
            Some(What::Map { entries, lines, key }) => match key.take() {
                Some((Some(name), at)) => entries.push(Entry { key: name, at, node }),
                Some((None, _)) => {}
                None => {
                    let at = node.at;
                    *key = Some((self.sink.key(node, lines), at));
                }
            },
        }
    }
}

impl Sink<'_> {
    /// Reports an alias, which a bare glob is as well.
    fn alias(&mut self, at: At) {
        let fix = "write it out; quote a glob that begins with `*`";
        self.problem("plan.alias", at, "an alias repeats what stands elsewhere", fix);
    }

    /// Reports what is no YAML.
    pub(super) fn not_yaml(&mut self, error: &ScanError) {
        let at = At {
            line: error.marker().line(),
            column: error.marker().col() + 1,
        };
        if error.info().contains("unknown anchor") {
            return self.alias(at);
        }
        let fix = "mend the YAML here: indentation, quotes around a text with `: `, closing brackets";
        self.problem("plan.not_yaml", at, error.info(), fix);
    }

    /// Checks a key, and gives it unless its value is to be dropped.
    fn key(&mut self, node: Node, lines: &mut HashMap<String, usize>) -> Option<String> {
        let at = node.at;
        match node.value {
            Value::Text(key, Some(0)) if key == "<<" => {
                self.problem(
                    "plan.merge_key",
                    at,
                    "a merge key takes in another map",
                    "write its keys out",
                );
                None
            }
            Value::Text(key, _) => match lines.get(&key) {
                Some(first) => {
                    self.problem(
                        "plan.duplicate_key",
                        at,
                        format!(
                            "the key `{key}` stands twice: in line {first} and in line {}",
                            at.line
                        ),
                        "keep the one that is meant",
                    );
                    None
                }
                None => {
                    lines.insert(key.clone(), at.line);
                    Some(key)
                }
            },
            Value::Null | Value::List(_) | Value::Map(_) => {
                self.problem("plan.bad_key", at, "a key is one word", "write `key: value`");
                None
            }
        }
    }
}
