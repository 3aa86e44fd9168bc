//! The nouns of the protocol: what can be true, without what may happen.

pub mod kind;
pub mod needs;
pub mod plan;
pub mod report;
pub mod signal_kind;
pub mod size;
pub mod span;
pub mod tests;
pub mod trigger;
