//! The store, from outside.

mod child;
mod conformance;
mod fairness;
mod golden;
mod kill;
mod race;
mod sqlite;
