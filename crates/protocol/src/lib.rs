//! The rules of coordination, as pure functions over facts.

pub mod facts;
