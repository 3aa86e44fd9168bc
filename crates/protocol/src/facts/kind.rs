//! What a claim or a phase is for: `satellite_type` in files, `--kind` on the command line.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The work that a claim or a phase does (protocol, 5): it decides conflicts and what closing demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Writes source code; closing demands green tests.
    #[default]
    Code,
    /// Writes the brain's own notes.
    BrainWrite,
    /// Writes or runs tests; closing demands them green.
    Test,
    /// Deploys or operates.
    Deploy,
    /// Reads; it conflicts with nobody, but for the files that its scope names.
    Search,
    /// Coordinates satellites of its own.
    Domain,
}

impl Kind {
    /// All kinds, in the order of the protocol.
    pub const ALL: [Self; 6] = [
        Self::Code,
        Self::BrainWrite,
        Self::Test,
        Self::Deploy,
        Self::Search,
        Self::Domain,
    ];

    /// Reads a kind by its written name, exactly.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Gives the written name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::BrainWrite => "brain-write",
            Self::Test => "test",
            Self::Deploy => "deploy",
            Self::Search => "search",
            Self::Domain => "domain",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_name_is_the_written_name() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
            assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::parse("Code"), None);
    }
}
