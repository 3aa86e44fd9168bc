//! Places in the source of a plan.

use saphyr_parser::Span;

/// A place in the source: line and column in characters, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl At {
    pub(super) const START: Self = Self { line: 1, column: 1 };

    pub(super) fn of(span: Span) -> Self {
        Self {
            line: span.start.line(),
            column: span.start.col() + 1,
        }
    }
}
