//! A session's hold on a path (section 8).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::claim::{Fence, Owner};
use super::id::SessId;
use super::path::LogicalPath;
use super::span::Span;
use super::time::Instant;

/// In whose name a lock stands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// A session with a claim.
    Claim(SessId),
    /// A session without one, under any name that is not a claim's.
    Name(String),
}

impl Holder {
    /// The name to show and to type.
    pub fn as_str(&self) -> &str {
        match self {
            Holder::Claim(id) => id.as_str(),
            Holder::Name(name) => name,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A hold on a path and on everything below it. Its expiry is a lease, not part of this fact.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// The path held.
    pub path: LogicalPath,
    /// In whose name.
    pub holder: Holder,
    /// Who took it; decides who may release a lock without a claim.
    pub owner: Owner,
    /// Larger than that of every earlier lock.
    pub fence: Fence,
    /// When it was taken, or last renewed by a command.
    pub taken_at: Instant,
    /// How long it lasts without a sign of life.
    pub ttl: Span,
}
