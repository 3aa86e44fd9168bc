//! The least that a Rust program can be: what a whole command is measured against.

fn main() {}
