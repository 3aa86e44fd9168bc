//! A configuration's YAML as a small tree in which every value knows its place.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::at::At;
use super::problem::Flaw;

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub at: At,
    /// What it is.
    pub value: Value,
}

/// What a value is; scalars are text, and know whether they were quoted.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing, `~` or `null`, bare: as if the key were missing.
    Null,
    /// A scalar.
    Text {
        /// Without its quotes.
        text: String,
        /// Whether it had some: a quoted number is no number.
        quoted: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// A map, in the order in which it was written.
    Map(Vec<Entry>),
}

/// A key of a map and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub at: At,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// Returns the value of a key, when this is a map that has it and it is not null.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key)?;
        (entry.node.value != Value::Null).then_some(&entry.node)
    }

    /// Returns the text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Lays another tree over this one: maps are merged key by key, all else is replaced.
    pub(super) fn overlay(&mut self, over: Node) {
        match (&mut self.value, over) {
            (
                _,
                Node {
                    value: Value::Null, ..
                },
            ) => {}
            (
                Value::Map(mine),
                Node {
                    value: Value::Map(theirs),
                    ..
                },
            ) => {
                for entry in theirs {
                    match mine.iter_mut().find(|own| own.key == entry.key) {
                        Some(own) => {
                            own.at = entry.at;
                            own.node.overlay(entry.node);
                        }
                        None => mine.push(entry),
                    }
                }
            }
            (_, over) => *self = over,
        }
    }
}

/// How deep lists and maps may lie in each other.
const DEPTH_MAX: usize = 32;

/// What a bare word must be to be nothing.
const NULL: [&str; 5] = ["", "~", "null", "Null", "NULL"];

/// What is read of YAML: ours, or a file of the original's that only has to be understood.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Anchors, aliases, tags and merge keys are mistakes.
    Strict,
    /// They are passed over.
    Lenient,
}

/// Reads one document into a tree; an empty one is an empty map.
pub(super) fn read(text: &str, file: usize, dialect: Dialect) -> Result<Node, Flaw> {
    let start = At {
        file,
        line: 1,
        column: 1,
    };
    let mut root = None;
    let mut open: Vec<Open> = Vec::new();
    let mut documents = 0;
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let mark = error.marker();
            let at = At {
                file,
                line: mark.line().max(1),
                column: mark.col() + 1,
            };
            Flaw::new(at, format!("this is no YAML: {}", error.info()), "mend the line")
        })?;
        let at = At::of(file, span);
        let strictly = |what: &str, found: bool| match found && dialect == Dialect::Strict {
            true => Err(Flaw::new(
                at,
                format!("{what} is not read in a configuration"),
                "write the value out",
            )),
            false => Ok(()),
        };
        let done = match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err(Flaw::new(
                        at,
                        "a second document begins here",
                        "keep one document",
                    ));
                }
                None
            }
            Event::Alias(_) => {
                strictly("an alias", true)?;
                Some(Node {
                    at,
                    value: Value::Null,
                })
            }
            Event::Scalar(text, style, anchor, tag) => {
                strictly("an anchor", anchor != 0)?;
                strictly("a tag", tag.is_some())?;
                let quoted = style != ScalarStyle::Plain;
                let value = match !quoted && NULL.contains(&text.as_ref()) {
                    true => Value::Null,
                    false => Value::Text {
                        text: text.into_owned(),
                        quoted,
                    },
                };
                Some(Node { at, value })
            }
            Event::SequenceStart(anchor, tag) => {
                strictly("an anchor", anchor != 0)?;
                strictly("a tag", tag.is_some())?;
                open.push(Open {
                    at,
                    what: What::List(Vec::new()),
                });
                None
            }
            Event::MappingStart(anchor, tag) => {
                strictly("an anchor", anchor != 0)?;
                strictly("a tag", tag.is_some())?;
                open.push(Open {
                    at,
                    what: What::Map(Vec::new(), None),
                });
                None
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(open) => Some(open.close(dialect)?),
                None => None,
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => None,
        };
        if open.len() > DEPTH_MAX {
            return Err(Flaw::new(
                at,
                "lists and maps lie too deep in each other",
                "flatten it",
            ));
        }
        if let Some(node) = done {
            match open.last_mut() {
                Some(parent) => parent.take(node)?,
                None => root = Some(node),
            }
        }
    }
    match root {
        None
        | Some(Node {
            value: Value::Null, ..
        }) => Ok(Node {
            at: start,
            value: Value::Map(Vec::new()),
        }),
        Some(node) if matches!(node.value, Value::Map(_)) => Ok(node),
        Some(node) => Err(Flaw::new(
            node.at,
            "a configuration is a list of `key: value` lines",
            "write `key: value`",
        )),
    }
}

/// A list or map whose end was not met yet.
struct Open {
    at: At,
    what: What,
}

enum What {
    List(Vec<Node>),
    /// The entries, and the key whose value comes next.
    Map(Vec<Entry>, Option<(String, At)>),
}

impl Open {
    fn take(&mut self, node: Node) -> Result<(), Flaw> {
        match &mut self.what {
            What::List(nodes) => nodes.push(node),
            What::Map(entries, key) => match (key.take(), node) {
                (Some((key, at)), node) => entries.push(Entry { key, at, node }),
                (
                    None,
                    Node {
                        at,
                        value: Value::Text { text, .. },
                    },
                ) => *key = Some((text, at)),
                (None, node) => return Err(Flaw::new(node.at, "a key is one word", "write `key: value`")),
            },
        }
        Ok(())
    }

    fn close(self, dialect: Dialect) -> Result<Node, Flaw> {
        let value = match self.what {
            What::List(nodes) => Value::List(nodes),
            What::Map(entries, _) => {
                if dialect == Dialect::Strict {
                    no_doubles(&entries)?;
                }
                Value::Map(entries)
            }
        };
        Ok(Node { at: self.at, value })
    }
}

/// Refuses a key that stands twice: the last one would silently win.
fn no_doubles(entries: &[Entry]) -> Result<(), Flaw> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.key.cmp(&b.key)); // stable: the second one is the later one
    match sorted.windows(2).find(|pair| pair[0].key == pair[1].key) {
        Some(pair) => Err(Flaw::new(
            pair[1].at,
            format!(
                "the key `{}` stands in line {} already",
                pair[1].key, pair[0].at.line
            ),
            "keep the one that is meant",
        )),
        None => Ok(()),
    }
}
