//! What is wrong in a plan, and where: collected first, shown together.

use std::fmt::Write as _;

use super::at::At;
use super::nearest::nearest;

/// One thing wrong in a plan (hypervisor, 1); a plan is refused with all of them at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The stable dotted code.
    pub code: &'static str,
    /// The file as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The source line, its control characters made visible; empty when it is too long to show.
    pub excerpt: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl Problem {
    /// Makes a problem of a file whose text cannot be shown.
    pub(super) fn alone(code: &'static str, file: &str, line: usize, message: &str, fix: &str) -> Self {
        let (file, message, fix) = (file.to_owned(), message.to_owned(), fix.to_owned());
        Self {
            code,
            file,
            line,
            column: 1,
            excerpt: String::new(),
            message,
            fix,
        }
    }
}

/// Something in a plan that is worth telling and stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The stable dotted code.
    pub code: &'static str,
    /// The file as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What there is to know.
    pub message: String,
}

/// A longer source line is not shown: it is no help, and each problem would carry a copy.
const EXCERPT_MAX: usize = 400;

/// Where everything that is found while reading one plan goes.
pub(super) struct Sink<'a> {
    file: &'a str,
    lines: Vec<&'a str>,
    problems: Vec<Problem>,
    notices: Vec<Notice>,
    /// How many more words may be looked at for a suggestion.
    looks: usize,
}

/// Each suggestion costs a look at every candidate: a plan gets them for its first slips, whatever its size.
const LOOKS_MAX: usize = 100_000;

impl<'a> Sink<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self {
            file,
            lines: text.lines().collect(),
            problems: Vec::new(),
            notices: Vec::new(),
            looks: LOOKS_MAX,
        }
    }

    pub(super) fn problem(
        &mut self,
        code: &'static str,
        at: At,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let at = At {
            line: at.line.clamp(1, self.lines.len().max(1)),
            ..at
        };
        let line = self.lines.get(at.line - 1).copied().unwrap_or_default();
        let excerpt = if line.len() > EXCERPT_MAX {
            String::new()
        } else {
            visible(line)
        };
        self.problems.push(Problem {
            code,
            file: self.file.to_owned(),
            line: at.line,
            column: at.column,
            excerpt,
            message: message.into(),
            fix: fix.into(),
        });
    }

    pub(super) fn notice(&mut self, code: &'static str, at: At, message: impl Into<String>) {
        self.notices.push(Notice {
            code,
            file: self.file.to_owned(),
            line: at.line,
            column: at.column,
            message: message.into(),
        });
    }

    /// Finds the candidate that was probably meant, while there are looks left.
    pub(super) fn nearest<'c>(
        &mut self,
        word: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        let looks = &mut self.looks;
        nearest(
            word,
            candidates
                .into_iter()
                .take(*looks)
                .inspect(|_| *looks = looks.saturating_sub(1)),
        )
    }

    /// Marks how much was found so far, for [`Sink::rewind`].
    pub(super) fn mark(&self) -> usize {
        self.problems.len()
    }

    /// Forgets the problems that were found since the mark.
    pub(super) fn rewind(&mut self, mark: usize) {
        self.problems.truncate(mark);
    }

    pub(super) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Gives the notices when there is no problem, else all problems; both by position.
    pub(super) fn close(mut self) -> Result<Vec<Notice>, Vec<Problem>> {
        if self.problems.is_empty() {
            self.notices.sort_by_key(|notice| (notice.line, notice.column));
            return Ok(self.notices);
        }
        self.problems
            .sort_by_key(|problem| (problem.line, problem.column));
        Err(self.problems)
    }
}

/// Replaces what would move the cursor or hide text on a terminal; one character stays one character.
fn visible(line: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    line.chars()
        .map(|c| match c {
            '\t' | '\u{a0}' | '\u{2007}' | '\u{202f}' => ' ',
            c if hidden(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Writes problems for a terminal without colour, each with its place, its source line and the fix.
pub fn render(problems: &[Problem]) -> String {
    let mut out = String::new();
    for problem in problems {
        let Problem {
            code,
            file,
            line,
            column,
            excerpt,
            message,
            fix,
        } = problem;
        let margin = " ".repeat(line.to_string().len());
        // Writing into a String cannot fail.
        let _ = writeln!(
            out,
            "error[{code}]: {message}\n{margin}--> {file}:{line}:{column}"
        );
        if !excerpt.is_empty() {
            let caret = " ".repeat(column.saturating_sub(1).min(EXCERPT_MAX));
            let _ = writeln!(out, "{margin} |\n{line} | {excerpt}\n{margin} | {caret}^");
        }
        let _ = writeln!(out, "{margin} = fix: {fix}\n");
    }
    let count = problems.len();
    let _ = writeln!(
        out,
        "error: {count} problem{} in the plan",
        if count == 1 { "" } else { "s" }
    );
    out
}
