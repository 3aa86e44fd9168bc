//! The crate against the real git, in folders that nobody else uses.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod audit;
mod commit;
mod coordinator;
mod installed;
mod land;
mod races;
mod refusals;
mod remote;
mod repository;
mod status;
mod worktree;
mod world;
