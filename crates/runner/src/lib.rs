//! Acts: drives plans, closes claims, launches agents.

pub mod launch;
