//! The rules of coordination, as pure functions over facts.
//!
//! Everything that may change is one [`command::Command`], decided by [`rules::decide`] into
//! [`event::Event`]s that [`world::World::apply`] folds. No I/O, clock, environment or randomness passes
//! this crate's wall.

pub mod command;
pub mod event;
pub mod facts;
mod fold;
pub mod refusal;
pub mod rules;
pub mod world;

pub use fold::DRIVER_TTL;
