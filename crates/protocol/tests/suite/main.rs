//! The rules of the facts, from outside.

mod oracle;
mod path;
mod scope;
mod stories;
mod zone;
