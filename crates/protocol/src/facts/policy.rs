//! What the configuration says that rules need.

use super::path::Fold;
use super::span::Span;
use super::zone::Zones;

/// The rules' share of `brain.yml`, read by the face and handed in with every command.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The zones of paths (section 4).
    pub zones: Zones,
    /// Whether a human claim may write the kernel paths that it names.
    pub kerneluser: bool,
    /// Consecutive failures at which the breaker stops the work (section 9).
    pub fails_max: u32,
    /// Test commands whose exit status alone a human called enough (section 11, step 2).
    pub exit_is_enough: Vec<String>,
    /// How long a stale claim may still be renewed (section 6).
    pub stale_grace: Span,
    /// Whether comparison of paths folds case.
    pub fold: Fold,
    /// The hash of the policy, which a claim records.
    pub digest: String,
}

/// The default for [`Policy::fails_max`].
pub const FAILS_MAX: u32 = 3;
