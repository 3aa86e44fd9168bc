//! What the runner promises, from the outside.

mod evidence;
mod plan;
mod readme;
mod launch;
