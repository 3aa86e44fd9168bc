//! Reads typed values out of a tree and collects every mistake on the way.

use protocol::facts::span::Span;

use super::nearest::nearest;
use super::problem::Flaw;
use super::tree::{Entry, Node, Value};

/// Collects what is wrong; each read gives `None` where it was.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) flaws: Vec<Flaw>,
}

impl Reader {
    pub(super) fn flaw(&mut self, node: &Node, message: impl Into<String>, fix: impl Into<String>) {
        self.flaws.push(Flaw::new(node.at, message, fix));
    }

    /// Takes a section of ours: a map that has no other keys than these.
    pub(super) fn section<'n>(&mut self, node: &'n Node, name: &str, keys: &[&str]) -> Option<&'n Node> {
        for entry in self.map(node, name)? {
            if !keys.contains(&entry.key.as_str()) {
                let fix = match nearest(&entry.key, keys) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("`{name}` has {}", listed(keys, "and")),
                };
                let message = format!("`{name}` has no key `{}`", entry.key);
                self.flaws.push(Flaw::new(entry.at, message, fix));
            }
        }
        Some(node)
    }

    /// Takes a map whose keys are names of the writer's own.
    pub(super) fn map<'n>(&mut self, node: &'n Node, name: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            _ => {
                self.flaw(
                    node,
                    format!("`{name}` is a map"),
                    format!("write `{name}:` and its keys indented below it"),
                );
                None
            }
        }
    }

    pub(super) fn text(&mut self, node: &Node, name: &str) -> Option<String> {
        match &node.value {
            Value::Text { text, .. } if !text.trim().is_empty() => Some(text.clone()),
            _ => {
                let message = match &node.value {
                    Value::Text { .. } => format!("`{name}` is empty"),
                    _ => format!("`{name}` is a text"),
                };
                self.flaw(node, message, format!("write it in one line: `{name}: …`"));
                None
            }
        }
    }

    /// Reads a list of texts; one text is a list of one.
    pub(super) fn texts(&mut self, node: &Node, name: &str) -> Option<Vec<String>> {
        match &node.value {
            Value::List(nodes) => nodes.iter().map(|node| self.text(node, name)).collect(),
            _ => Some(vec![self.text(node, name)?]),
        }
    }

    pub(super) fn truth(&mut self, node: &Node, name: &str) -> Option<bool> {
        match &node.value {
            Value::Text { text, quoted: false } if text == "true" => Some(true),
            Value::Text { text, quoted: false } if text == "false" => Some(false),
            _ => {
                self.flaw(
                    node,
                    format!("`{name}` is true or false, without quotes"),
                    format!("write `{name}: true` or `{name}: false`"),
                );
                None
            }
        }
    }

    /// Reads a whole number from `least` to `most`. A quoted one is refused: whoever compared it as a number
    /// would never reach it.
    pub(super) fn number(&mut self, node: &Node, name: &str, least: u32, most: u32) -> Option<u32> {
        let fix = format!("write a whole number from {least} to {most}, as in `{name}: 3`");
        let Value::Text { text, quoted } = &node.value else {
            self.flaw(node, format!("`{name}` is a number"), fix);
            return None;
        };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u32>() {
            Ok(number) if digits && !quoted && (least..=most).contains(&number) => Some(number),
            Ok(number) if digits && *quoted => {
                let message = format!("`{name}` is a number, and a quoted one is a text");
                self.flaw(node, message, format!("write `{name}: {number}`"));
                None
            }
            _ => {
                self.flaw(node, format!("`{name}` cannot be {text:?}"), fix);
                None
            }
        }
    }

    pub(super) fn span(&mut self, node: &Node, name: &str) -> Option<Span> {
        let text = self.text(node, name)?;
        match Span::parse(&text) {
            Ok(span) => Some(span),
            Err(error) => {
                let message = format!("`{name}` is a duration, and {text:?} is none: {error}");
                self.flaw(node, message, "write a number with its unit: 90s, 30m, 4h or 2d");
                None
            }
        }
    }

    /// Reads one of a few words.
    pub(super) fn word<T: Copy>(&mut self, node: &Node, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, name)?;
        let found = words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, value)| *value);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let fix = match nearest(&text, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write {}", listed(&names, "or")),
            };
            self.flaw(node, format!("`{name}` cannot be {text:?}"), fix);
        }
        found
    }
}

/// Lists words: `a`, `b` and `c`, or whatever stands before the last.
fn listed(words: &[&str], before_last: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {before_last} {last}", rest.join(", ")),
        None => String::new(),
    }
}
