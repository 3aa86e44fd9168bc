//! The nouns of the protocol: what can be true, without what may happen.

pub mod path;
pub mod scope;
pub mod zone;
