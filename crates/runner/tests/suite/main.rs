//! What the runner promises, from the outside.

mod launch;
