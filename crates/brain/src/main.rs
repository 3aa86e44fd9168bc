//! The `brain` command line.

fn main() {}
