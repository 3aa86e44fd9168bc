//! The faces of brain, and what stands between a face and the rules: configuration, root, places, callers
//! and proofs.

pub mod caller;
pub mod config;
pub mod human;
pub mod place;
mod random;
pub mod root;
pub mod token;
