//! The store, from outside.

mod conformance;
