//! Reads one file of git's configuration without starting git.
//!
//! Enough of the syntax for the few keys that decide what a repository is: no includes (they could lead
//! anywhere), and a file that breaks the syntax ends where it breaks.

use std::fs;
use std::path::Path;

/// The entries of one configuration file, in order.
#[derive(Debug, Default)]
pub(crate) struct Config(Vec<(String, String)>);

impl Config {
    /// Reads `file`; one that is missing or unreadable is empty.
    pub fn read(file: &Path) -> Config {
        fs::read(file)
            .map(|bytes| Config::parse(&String::from_utf8_lossy(&bytes)))
            .unwrap_or_default()
    }

    /// Reads what `git config --list -z` printed.
    pub fn from_list(listed: &[u8]) -> Config {
        let entry = |entry: &[u8]| {
            let text = String::from_utf8_lossy(entry).into_owned();
            match text.split_once('\n') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                None => (text, "true".to_owned()),
            }
        };
        Config(
            listed
                .split(|b| *b == 0)
                .filter(|e| !e.is_empty())
                .map(entry)
                .collect(),
        )
    }

    pub fn parse(text: &str) -> Config {
        let mut entries = Vec::new();
        let mut section = String::new();
        let mut lines = text.trim_start_matches('\u{feff}').lines();
        while let Some(line) = lines.next() {
            let mut line = line.trim_start();
            if let Some(header) = line.strip_prefix('[') {
                let Some((name, rest)) = parse_header(header) else {
                    break;
                };
                (section, line) = (name, rest.trim_start());
            }
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let key_end = line
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .unwrap_or(line.len());
            let (key, rest) = line.split_at(key_end);
            if key.is_empty() || section.is_empty() {
                break;
            }
            let rest = rest.trim_start();
            let value = match rest.strip_prefix('=') {
                Some(value) => parse_value(value, &mut lines),
                None if rest.is_empty() || rest.starts_with(['#', ';']) => Some("true".to_owned()),
                None => None,
            };
            let Some(value) = value else { break };
            entries.push((format!("{section}.{}", key.to_ascii_lowercase()), value));
        }
        Config(entries)
    }

    /// Returns the last value of `key` (`section.key`, lower case).
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns a boolean as git reads it; `None` when it is unset or no boolean.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" | "" => Some(false),
            _ => None,
        }
    }
}

/// Reads `name]` or `name "sub"]`, and returns what follows.
fn parse_header(text: &str) -> Option<(String, &str)> {
    let end = text.find([']', '"'])?;
    let name = text[..end].trim().to_ascii_lowercase();
    if text.as_bytes()[end] == b']' {
        return Some((name, &text[end + 1..]));
    }
    let mut sub = String::new();
    let mut chars = text[end + 1..].char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => sub.push(chars.next()?.1),
            '"' => {
                let rest = text[end + 1 + at + 1..].strip_prefix(']')?;
                return Some((format!("{name}.{sub}"), rest));
            }
            c => sub.push(c),
        }
    }
    None
}

/// Reads a value with its quotes, escapes, comment and continued lines.
fn parse_value<'a>(first: &'a str, lines: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    let mut value = String::new();
    let mut keep = 0; // blanks after this many bytes are dropped at the end
    let mut quoted = false;
    let mut line = first.trim_start();
    'lines: loop {
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => quoted = !quoted,
                '#' | ';' if !quoted => break 'lines,
                '\\' => match chars.next() {
                    None => {
                        line = lines.next()?;
                        continue 'lines;
                    }
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some('b') => value.push('\u{8}'),
                    Some(c @ ('"' | '\\')) => value.push(c),
                    Some(_) => return None,
                },
                c => value.push(c),
            }
            if quoted || !c.is_whitespace() {
                keep = value.len();
            }
        }
        break;
    }
    value.truncate(keep);
    (!quoted).then_some(value)
}

/// Writes a value so that git reads it back unchanged.
pub(crate) fn quote(value: &str) -> String {
    let escaped = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\t', "\\t");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_with_its_quotes_escapes_comments_and_continued_lines() {
        let text = "[core]\n\tbare = false ; why\n ignoreCase\n[user] name = \"A # B\" \\\n C  \n\
                    [branch \"a.\\\"b\"]\n merge = x\\ty\n";
        let config = Config::parse(text);
        assert_eq!(config.flag("core.bare"), Some(false));
        assert_eq!(config.flag("core.ignorecase"), Some(true));
        assert_eq!(config.get("user.name"), Some("A # B  C"));
        assert_eq!(config.get("branch.a.\"b.merge"), Some("x\ty"));
    }

    #[test]
    fn the_last_value_of_a_key_counts_in_its_own_section_alone() {
        let text = "[core]\n\thooksPath = .old\n[other]\nhookspath = x\n[Core]\nHOOKSPATH = \".husky\"\n\
                    [core \"x\"]\nhooksPath = y\n";
        assert_eq!(Config::parse(text).get("core.hookspath"), Some(".husky"));
        assert_eq!(
            Config::parse("[core \"x\"]\nhooksPath = y\n").get("core.hookspath"),
            None
        );
    }

    #[test]
    fn a_quoted_value_reads_back_unchanged() {
        let wild = "a \"b\" \\ # ; c\n\td ";
        let config = Config::parse(&format!("[user]\n\tname = {}\n", quote(wild)));
        assert_eq!(config.get("user.name"), Some(wild));
    }
}
