//! The components of an entry: names and patterns.

use crate::facts::path::{self, Fold};

/// One component of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    Pattern(Vec<Piece>),
    /// `**` as a whole component; last, it stands for one component or more.
    Deep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Char(char),
    /// `?`
    One,
    /// `*`
    Run,
    /// Any end of a component but this one. No entry can say it; the built-in zones can.
    But(&'static str),
}

impl Part {
    pub(super) fn parse(text: &str) -> Self {
        let mut pieces = Vec::with_capacity(text.len());
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let piece = match letter {
                // Before any other character a backslash is part of the name.
                '\\' => Piece::Char(letters.next_if(|next| "*?!\\".contains(*next)).unwrap_or('\\')),
                '?' => Piece::One,
                '*' if pieces.last() == Some(&Piece::Run) => continue,
                '*' => Piece::Run,
                plain => Piece::Char(plain),
            };
            pieces.push(piece);
        }
        match pieces.iter().map(Piece::letter).collect() {
            Some(name) => Self::Literal(name),
            None => Self::Pattern(pieces),
        }
    }

    pub(super) fn folded(&self) -> Self {
        let fold = |text: &str| path::compared(text, Fold::Case).into_owned();
        let Self::Pattern(pieces) = self else {
            return match self {
                Self::Literal(name) => Self::Literal(fold(name)),
                part => part.clone(),
            };
        };
        let alike = |a: &Piece, b: &Piece| matches!((a, b), (Piece::Char(_), Piece::Char(_)));
        let runs = pieces.chunk_by(alike).flat_map(|run| match run {
            [Piece::Char(_), ..] => {
                let text: String = run.iter().filter_map(Piece::letter).collect();
                fold(&text).chars().map(Piece::Char).collect()
            }
            special => special.to_vec(),
        });
        Self::Pattern(runs.collect())
    }

    /// Returns the characters before the first special one.
    pub(super) fn plain(&self) -> String {
        match self {
            Self::Literal(name) => name.clone(),
            Self::Deep => String::new(),
            Self::Pattern(pieces) => pieces.iter().map_while(Piece::letter).collect(),
        }
    }

    pub(super) fn escaped(&self) -> String {
        match self {
            Self::Literal(name) => name.chars().map(|letter| Piece::Char(letter).escaped()).collect(),
            Self::Deep => "**".into(),
            Self::Pattern(pieces) => pieces.iter().map(Piece::escaped).collect(),
        }
    }

    pub(super) fn may_meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Literal(mine), Self::Literal(theirs)) => mine == theirs,
            (Self::Literal(name), Self::Pattern(pieces)) | (Self::Pattern(pieces), Self::Literal(name)) => {
                agree(name.chars().map(Piece::Char), pieces.iter().copied())
                    && agree(name.chars().rev().map(Piece::Char), pieces.iter().rev().copied())
            }
            (Self::Pattern(mine), Self::Pattern(theirs)) => {
                agree(mine.iter().copied(), theirs.iter().copied())
                    && agree(mine.iter().rev().copied(), theirs.iter().rev().copied())
            }
            (Self::Deep, _) | (_, Self::Deep) => true,
        }
    }
}

/// Says whether two components read alike up to the first run of either.
fn agree(mine: impl Iterator<Item = Piece>, theirs: impl Iterator<Item = Piece>) -> bool {
    for pair in mine.zip(theirs) {
        match pair {
            (Piece::Run | Piece::But(_), _) | (_, Piece::Run | Piece::But(_)) => return true,
            (Piece::Char(a), Piece::Char(b)) if a != b => return false,
            _ => {}
        }
    }
    true
}

impl Piece {
    fn letter(&self) -> Option<char> {
        match self {
            Self::Char(letter) => Some(*letter),
            Self::One | Self::Run | Self::But(_) => None,
        }
    }

    fn escaped(&self) -> String {
        match self {
            Self::Char(letter @ ('*' | '?' | '\\')) => format!("\\{letter}"),
            Self::Char(letter) => letter.to_string(),
            Self::One => "?".into(),
            Self::Run => "*".into(),
            Self::But(end) => format!("*(not {end})"),
        }
    }
}
