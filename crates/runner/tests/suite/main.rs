//! What the runner promises, from the outside.

#[cfg(test)]
mod launch;
