//! Acts: drives plans, closes claims, launches agents.

pub mod base;
pub mod close;
pub mod evidence;
pub mod plan;
