//! The faces of brain, and what stands between a face and the rules: configuration, root, places, callers
//! and proofs.

pub mod config;
pub mod place;
pub mod root;
