//! What the runner promises, from the outside.

mod close;
mod evidence;
mod plan;
