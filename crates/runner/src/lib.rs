//! Acts: drives plans, closes claims, launches agents.

pub mod evidence;
pub mod plan;
