//! The rules of the facts, from outside.

mod oracle;
mod path;
mod scope;
mod small_world;
mod stories;
mod tables;
mod zone;
