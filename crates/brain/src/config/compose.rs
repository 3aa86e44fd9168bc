//! What is read of the original's `brain-compose.yml` and `brain-compose.local.yml`.
//!
//! Their readers went line by line, so files that are no YAML worked: those are read so here, and reported.

use super::at::At;
use super::problem::Source;
use super::tree::{self, Dialect, Entry, Node, Value};
use super::{Tier, bare};

/// Gathers what both files say.
#[derive(Default)]
pub(super) struct Compose {
    tier: Option<Tier>,
    active: Option<Tier>,
    pub(super) notices: Vec<String>,
}

impl Compose {
    /// The tier of the active instance, else that of the top.
    pub(super) fn tier(&self) -> Tier {
        self.active.or(self.tier).unwrap_or_default()
    }

    /// Reads one file into a tree of our own keys, which keep their places in it.
    pub(super) fn read(&mut self, source: &Source, file: usize) -> Node {
        let (kerneluser, fails) = match tree::read(bare(&source.text), file, Dialect::Lenient) {
            Ok(tree) => {
                self.read_tiers(&tree);
                let breaker = tree
                    .get("modes")
                    .and_then(|modes| modes.get("rendering")?.get("circuit_breaker"));
                let fails = breaker.and_then(|breaker| breaker.get("max_consecutive_fails"));
                (tree.get("kerneluser").cloned(), fails.cloned())
            }
            Err(flaw) => {
                self.notices.push(format!(
                    "{}:{}: {}; it was read line by line, as the original does",
                    source.name, flaw.at.line, flaw.message
                ));
                let lines = |key: &str| by_line(&source.text, key, file);
                (lines("kerneluser:"), lines("max_consecutive_fails:"))
            }
        };
        let start = At {
            file,
            line: 1,
            column: 1,
        };
        let mut entries = Vec::new();
        if let Some(node) = kerneluser {
            let text = if is_true(&node, &source.text) {
                "true"
            } else {
                "false"
            };
            let value = Value::Text {
                text: text.to_owned(),
                quoted: false,
            };
            entries.push(entry("kerneluser", Node { at: node.at, value }));
        }
        if let Some(node) = fails {
            let at = node.at;
            let value = Value::Map(vec![entry("max_consecutive_fails", node)]);
            entries.push(entry("circuit_breaker", Node { at, value }));
        }
        Node {
            at: start,
            value: Value::Map(entries),
        }
    }

    fn read_tiers(&mut self, tree: &Node) {
        let of = |node: &Node| {
            let set = node.get("feature_set")?;
            tier(set.get("tier").unwrap_or(set).text()?)
        };
        self.tier = of(tree).or(self.tier);
        let Some(Value::Map(instances)) = tree.get("instances").map(|node| &node.value) else {
            return;
        };
        let active = instances
            .iter()
            .find(|instance| instance.node.get("active").and_then(Node::text) == Some("true"));
        if let Some(active) = active {
            self.active = Some(of(&active.node).unwrap_or_default());
        }
    }
}

fn entry(key: &str, node: Node) -> Entry {
    Entry {
        key: key.to_owned(),
        at: node.at,
        node,
    }
}

fn tier(word: &str) -> Option<Tier> {
    Some(match word {
        "free" => Tier::Free,
        "featured" => Tier::Featured,
        "pro" => Tier::Pro,
        "full" => Tier::Full,
        _ => return None,
    })
}

/// Only the bare or double-quoted word `true` is true there.
fn is_true(node: &Node, text: &str) -> bool {
    let line = text.lines().nth(node.at.line - 1).unwrap_or_default();
    node.text() == Some("true") && line.chars().nth(node.at.column - 1) != Some('\'')
}

/// Finds the first line that begins with a key, blanks aside, and takes the rest of it as its value.
fn by_line(text: &str, key: &str, file: usize) -> Option<Node> {
    let (number, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.trim_start().starts_with(key))?;
    let (_, rest) = line.split_once(':')?;
    let rest = rest.split(" #").next().unwrap_or_default().trim();
    let unquoted = rest
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(rest);
    Some(Node {
        at: At {
            file,
            line: number + 1,
            column: 1 + line.chars().take_while(|letter| letter.is_whitespace()).count(),
        },
        value: Value::Text {
            text: unquoted.to_owned(),
            quoted: unquoted != rest,
        },
    })
}
