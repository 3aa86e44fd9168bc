//! What is wrong with a configuration, where, and how to mend it.

use std::fmt;

use super::at::At;

/// One mistake, shown where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, by its name at the root.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The line itself; empty where it may hold a password.
    pub excerpt: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

/// Says that a brain's configuration cannot be used (exit 78): every mistake in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The mistakes, in the order of the file.
    pub problems: Vec<Problem>,
}

/// A mistake that does not know the text around it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) at: At,
    pub(super) message: String,
    pub(super) fix: String,
}

impl Flaw {
    pub(super) fn new(at: At, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            fix: fix.into(),
        }
    }
}

/// A file that was read: kept for the excerpts of what is found wrong later.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// Longer lines are cut: an excerpt is for the eye.
const EXCERPT_MAX: usize = 100;

/// Puts the flaws into the order of the files and shows each in its line.
pub(super) fn report(sources: &[Source], mut flaws: Vec<Flaw>) -> ConfigError {
    flaws.sort_by_key(|flaw| (flaw.at.file, flaw.at.line, flaw.at.column));
    let problem = |flaw: Flaw| {
        let source = sources.get(flaw.at.file);
        let line = source.and_then(|source| source.text.lines().nth(flaw.at.line.saturating_sub(1)));
        Problem {
            file: source.map_or("brain.yml", |source| source.name).to_owned(),
            line: flaw.at.line,
            column: flaw.at.column,
            // A store's address holds its password.
            excerpt: line
                .filter(|line| !line.contains("://"))
                .map(|line| line.chars().take(EXCERPT_MAX).collect())
                .unwrap_or_default(),
            message: flaw.message,
            fix: flaw.fix,
        }
    };
    ConfigError {
        problems: flaws.into_iter().map(problem).collect(),
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        if !self.excerpt.is_empty() {
            let number = self.line.to_string();
            writeln!(f, " {number} | {}", self.excerpt.replace('\t', " "))?;
            if self.column <= EXCERPT_MAX {
                let space = number.len() + self.column + 3;
                writeln!(f, "{:>space$}^", "")?;
            }
        }
        write!(f, "   fix: {}", self.fix)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
