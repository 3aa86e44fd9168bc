//! Reading the keys of one map: each value as what it must be, or a problem with its place.

use std::fmt::Display;

use protocol::facts::size::Size;
use protocol::facts::span::Span;

use super::at::At;
use super::problem::Sink;
use super::tree::{Entry, Node, Value};

/// A text and where it stands.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) at: At,
    /// How far its first character is from `at`, when its columns are known.
    inset: Option<usize>,
}

impl Text {
    /// Gives the place of a character of the text, counted from 1.
    pub(super) fn column(&self, column: usize) -> At {
        match self.inset {
            Some(inset) => At {
                column: self.at.column + inset + column - 1,
                ..self.at
            },
            None => self.at,
        }
    }
}

/// The entries of a map that is known by a name, and whose keys are known.
pub(super) struct Fields<'n> {
    pub(super) at: At,
    entries: &'n [Entry],
}

/// Words that people know under another name.
const ALIASES: [(&str, &str); 6] = [
    ("step", "id"),
    ("satellite_type", "type"),
    ("task", "story_angle"),
    ("command", "run"),
    ("depends", "needs"),
    ("after", "needs"),
];

impl<'n> Fields<'n> {
    /// Takes a map apart; reports what is none, and every key that is neither in `keys` nor in `unused`.
    pub(super) fn of(
        node: &'n Node,
        what: &str,
        keys: &[&str],
        unused: &[&str],
        sink: &mut Sink<'_>,
    ) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            let fix = format!("write {what} as `key: value` lines");
            sink.problem("plan.bad_shape", node.at, format!("{what} is a map"), fix);
            return None;
        };
        for Entry { key, at, .. } in entries {
            if unused.contains(&key.as_str()) {
                sink.notice(
                    "plan.unused_key",
                    *at,
                    format!("`{key}` is accepted and has no use here"),
                );
            } else if !keys.contains(&key.as_str()) {
                let alias = ALIASES
                    .iter()
                    .find(|(name, ours)| name == key && keys.contains(ours));
                let meant = alias
                    .map(|(_, ours)| *ours)
                    .or_else(|| sink.nearest(key, keys.iter().copied()));
                let fix = match meant {
                    Some(meant) => format!("write `{meant}`, if that is meant"),
                    None => format!("the keys of {what} are: {}", keys.join(", ")),
                };
                sink.problem(
                    "plan.unknown_key",
                    *at,
                    format!("`{key}` is no key of {what}"),
                    fix,
                );
            }
        }
        Some(Self { at: node.at, entries })
    }

    /// Finds an entry by its key; null is missing.
    pub(super) fn get(&self, key: &str) -> Option<&'n Entry> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (!matches!(entry.node.value, Value::Null)).then_some(entry)
    }

    /// Finds where a key stands, with a value or without.
    pub(super) fn place(&self, key: &str) -> At {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map_or(self.at, |entry| entry.at)
    }

    /// Reads a text that must not be empty.
    pub(super) fn text(&self, key: &str, sink: &mut Sink<'_>) -> Option<Text> {
        one(key, &self.get(key)?.node, sink)
    }

    /// Reads a text whose place does not matter.
    pub(super) fn string(&self, key: &str, sink: &mut Sink<'_>) -> Option<String> {
        self.text(key, sink).map(|text| text.text.trim_end().to_owned())
    }

    /// Reads a list of texts; one alone may stand for its list. Gives nothing when the key is missing.
    pub(super) fn texts(&self, key: &str, sink: &mut Sink<'_>) -> Option<Vec<Text>> {
        let node = &self.get(key)?.node;
        Some(match &node.value {
            Value::List(nodes) => nodes.iter().filter_map(|node| one(key, node, sink)).collect(),
            _ => one(key, node, sink).into_iter().collect(),
        })
    }

    /// Reads a list of texts whose places do not matter.
    pub(super) fn strings(&self, key: &str, sink: &mut Sink<'_>) -> Vec<String> {
        self.texts(key, sink)
            .unwrap_or_default()
            .into_iter()
            .map(|text| text.text)
            .collect()
    }

    /// Reads one of a few words.
    pub(super) fn word<T: Copy>(
        &self,
        key: &str,
        code: &'static str,
        words: &[(&str, T)],
        sink: &mut Sink<'_>,
    ) -> Option<T> {
        let text = self.text(key, sink)?;
        let found = words.iter().find(|(word, _)| *word == text.text);
        if found.is_none() {
            let all: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let fix = match sink.nearest(&text.text, words.iter().map(|(word, _)| *word)) {
                Some(meant) => format!(
                    "write `{key}: {meant}`, if that is meant; the words are {}",
                    all.join(", ")
                ),
                None => format!("write one of {}", all.join(", ")),
            };
            sink.problem(
                code,
                text.at,
                format!("`{}` is no word for `{key}`", text.text),
                fix,
            );
        }
        found.map(|(_, value)| *value)
    }

    /// Reads `true` or `false`: no other word is a yes or a no.
    pub(super) fn truth(&self, key: &str, sink: &mut Sink<'_>) -> Option<bool> {
        self.word(key, "plan.bad_word", &[("true", true), ("false", false)], sink)
    }

    /// Reads a time with its unit.
    pub(super) fn span(&self, key: &str, sink: &mut Sink<'_>) -> Option<Span> {
        let text = self.text(key, sink)?;
        text.read(
            sink,
            "plan.bad_time",
            Span::parse,
            "write a number and ms, s, m, h or d: `30m`",
        )
    }

    /// Reads an amount of bytes.
    pub(super) fn size(&self, key: &str, sink: &mut Sink<'_>) -> Option<Size> {
        let parse =
            |text: &str| Size::parse(text).ok_or("an amount is a whole number of bytes, K, M, G or T");
        self.text(key, sink)?
            .read(sink, "plan.bad_size", parse, "write it like `512M` or `2G`")
    }

    /// Reads a whole number within bounds.
    pub(super) fn number(&self, key: &str, least: u32, most: u32, sink: &mut Sink<'_>) -> Option<u32> {
        let parse = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text
                .parse()
                .ok()
                .filter(|number| digits && (least..=most).contains(number));
            number.ok_or("it is no whole number in its bounds")
        };
        self.text(key, sink)?.read(
            sink,
            "plan.bad_number",
            parse,
            format!("write a whole number from {least} to {most}"),
        )
    }
}

impl Text {
    /// Reads the text as something else, reporting why it is none.
    pub(super) fn read<T, E: Display>(
        &self,
        sink: &mut Sink<'_>,
        code: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
        fix: impl Into<String>,
    ) -> Option<T> {
        parse(&self.text)
            .map_err(|why| sink.problem(code, self.at, format!("`{}`: {why}", self.text), fix))
            .ok()
    }
}

/// Reads a node as one text that is not empty.
pub(super) fn one(key: &str, node: &Node, sink: &mut Sink<'_>) -> Option<Text> {
    match &node.value {
        Value::Text(text, inset) if !text.trim().is_empty() => Some(Text {
            text: text.clone(),
            at: node.at,
            inset: *inset,
        }),
        Value::Text(..) | Value::Null => {
            let fix = format!("say it, or leave `{key}` out");
            sink.problem(
                "plan.empty_value",
                node.at,
                format!("a value of `{key}` is empty"),
                fix,
            );
            None
        }
        Value::List(_) | Value::Map(_) => {
            let fix = "write it in one line; quote it when it holds `: ` or begins with `[`, `{`, `*` or `&`";
            sink.problem(
                "plan.bad_shape",
                node.at,
                format!("`{key}` is a text, not a list or a map"),
                fix,
            );
            None
        }
    }
}
