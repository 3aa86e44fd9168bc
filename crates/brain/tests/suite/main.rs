//! The faces' foundations, each against real files, links, repositories and processes.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod caller;
#[cfg(feature = "testkit")]
mod cli;
mod codes;
mod config;
#[cfg(feature = "testkit")]
mod fill;
mod human;
mod place;
mod root;
mod run;
mod token;
mod world;
