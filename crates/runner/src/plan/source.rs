//! The bytes and lines of a plan, before they are YAML: what is refused in any file.

use std::borrow::Cow;

use super::at::At;
use super::problem::Sink;

/// The largest plan that is read, in bytes.
pub(super) const BYTES_MAX: usize = 8 << 20;

/// Decodes the bytes of a plan: UTF-8, a byte order mark in front accepted and taken away.
///
/// # Errors
///
/// The line at which they stop being UTF-8, and what they are.
pub(super) fn decode(bytes: &[u8]) -> Result<&str, (usize, &'static str)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    // UTF-16 without its mark: every second byte of plain text is zero.
    if wide || bytes.iter().take(64).filter(|byte| **byte == 0).count() * 3 > bytes.len().min(64) {
        return Err((1, "the file is UTF-16"));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let good = &bytes[..error.valid_up_to()];
        (
            1 + good.iter().filter(|byte| **byte == b'\n').count(),
            "the file is not UTF-8",
        )
    })
}

/// Reports every character that no plan may hold, and gives the text with blanks in their place.
///
/// One character stays one character, so that every later position still holds.
pub(super) fn without_traps<'a>(text: &'a str, sink: &mut Sink<'_>) -> Cow<'a, str> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut block = Block::default();
    for (number, raw) in text.split_inclusive('\n').enumerate() {
        let line = raw
            .strip_suffix('\n')
            .map_or(raw, |line| line.strip_suffix('\r').unwrap_or(line));
        let end = &raw[line.len()..];
        let in_block = block.holds(line);
        let content = line.trim_start_matches([' ', '\t']);
        let indent = line.len() - content.len();
        for (column, c) in line.chars().enumerate() {
            let at = At {
                line: number + 1,
                column: column + 1,
            };
            let trap = match c {
                '\r' => Some((
                    "plan.lone_cr",
                    "a carriage return stands alone",
                    "end lines with LF or CRLF",
                )),
                '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{feff}' => Some((
                    "plan.no_break_space",
                    "a no-break space looks like a blank and is none",
                    "put a plain blank",
                )),
                '\t' if column < indent && !in_block && !content.is_empty() => {
                    Some(("plan.tab_indent", "a tab indents this line", "indent with blanks"))
                }
                '\t' => None,
                c if c.is_control() => Some((
                    "plan.control_character",
                    "a control character stands here",
                    "take it away",
                )),
                _ => None,
            };
            match trap {
                Some((code, message, fix)) => {
                    sink.problem(code, at, message, fix);
                    clean.push(' ');
                }
                None => clean.push(c),
            }
        }
        clean.push_str(end);
    }
    Cow::Owned(clean)
}

/// Follows block scalars (`|`, `>`) line by line: their text is nobody's structure.
#[derive(Default)]
struct Block {
    /// The indentation of the line that opened the block that is being passed.
    open: Option<usize>,
}

impl Block {
    /// Takes the next line and tells whether it is the text of a block.
    fn holds(&mut self, line: &str) -> bool {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        if content.trim().is_empty() {
            return self.open.is_some();
        }
        if self.open.is_some_and(|open| indent > open) {
            return true;
        }
        let head = content
            .trim_end()
            .trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'));
        self.open = [": |", ": >", "- |", "- >"]
            .iter()
            .any(|end| head.ends_with(end))
            .then_some(indent);
        false
    }
}

/// Quotes triggers that are written bare and hold `: ` within their own quotes; gives nothing when there are none.
///
/// `on_partial: gate:human → "low: go on?"` is how people write it, and it is no YAML: `: ` ends a bare text.
/// The reader falls back on this only when the file does not parse. Only the keys `on_done`, `on_partial` and
/// `on_fail` are looked at, and never inside a block scalar. Gives the new text and the lines it changed.
pub(super) fn with_quoted_triggers(text: &str) -> Option<(String, Vec<usize>)> {
    let mut quoted = String::with_capacity(text.len() + 64);
    let mut changed = Vec::new();
    let mut block = Block::default();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let in_block = block.holds(line.trim_end_matches(['\r', '\n']));
        match bare_trigger(line).filter(|_| !in_block) {
            Some((start, end)) => {
                quoted.push_str(&line[..start]);
                quoted.push('\'');
                quoted.push_str(&line[start..end].replace('\'', "''"));
                quoted.push('\'');
                quoted.push_str(&line[end..]);
                changed.push(number + 1);
            }
            None => quoted.push_str(line),
        }
    }
    (!changed.is_empty()).then_some((quoted, changed))
}

/// Finds the bytes of a bare trigger that ends in double quotes with a `: ` between them.
fn bare_trigger(line: &str) -> Option<(usize, usize)> {
    let content = line.trim_start_matches([' ', '-']);
    let (key, value) = content.split_once(':')?;
    if !matches!(key, "on_done" | "on_partial" | "on_fail") || !value.starts_with(' ') {
        return None;
    }
    let value = value.trim_start();
    let start = line.len() - value.len();
    let open = value.find('"')?;
    if !value.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let close = open + 1 + value[open + 1..].find('"')?;
    let rest = value[close + 1..].trim();
    let comment = rest.is_empty() || rest.starts_with('#');
    (comment && value[open..close].contains(": ")).then_some((start, start + close + 1))
}
