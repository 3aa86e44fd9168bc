//! Repositories: identity, worktrees, audit of a diff, commits, landing.
//!
//! No other crate starts git. This one decides no rule: it reports facts (what differs, who committed it,
//! where a branch is checked out) and acts (commits these paths, lands that branch) or says with a typed
//! [`Kind`] why it did not. Whose a change is and whether it may land is for the rules to say.
//!
//! Every operation is a method of [`Door`]: the one type that knows how git is started. Behind
//! [`Door::user`] it runs as the user would run it, hooks and signing included; behind
//! [`Door::coordinator`] nothing that an agent could write into a repository's configuration, hooks or
//! attributes is ever executed.

mod audit;
mod branch;
mod clean;
mod command;
mod commit;
mod config;
mod door;
mod error;
mod fingerprint;
mod head;
mod index;
mod installed;
mod land;
mod make;
mod oid;
mod push;
mod rebase;
mod reflog;
mod repository;
mod status;
mod worktree;

pub use audit::{AtOpening, Audit, Change, Committed, Opening};
pub use commit::{Commit, Identity, Message, Signature};
pub use door::Door;
pub use error::{Error, Kind};
pub use fingerprint::Fingerprint;
pub use installed::{Version, knows_committer, version};
pub use land::{Landing, Way};
pub use oid::{Blob, Oid};
pub use reflog::Made;
pub use repository::{Head, Repository, logical};
pub use status::{Entry, Side, Status, Submodule};
pub use worktree::Worktree;

/// The trailer that names the session a commit belongs to.
pub const SESSION_TRAILER: &str = "Brain-Session";
