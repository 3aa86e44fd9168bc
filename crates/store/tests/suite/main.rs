//! The store, from outside.

mod conformance;
mod golden;
