//! Places in the files that were read.

use saphyr_parser::Span;

/// A place in one of the files that were read: line and column in characters, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Which of the files, in the order in which they were read.
    pub file: usize,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl At {
    pub(super) fn of(file: usize, span: Span) -> Self {
        Self {
            file,
            line: span.start.line(),
            column: span.start.col() + 1,
        }
    }
}
