//! The store, from outside.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod child;
mod conformance;
mod fairness;
mod golden;
mod kill;
mod race;
mod sqlite;
mod trusting;
