//! Acts: drives plans, closes claims, launches agents.

pub mod base;
pub mod close;
pub mod drive;
pub mod evidence;
pub mod launch;
pub mod plan;
pub mod random;
pub mod token;
