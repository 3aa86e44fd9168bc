//! The work that a circuit breaker counts failures of (section 9).

use serde::{Deserialize, Serialize};

use super::scope::Scope;
use super::time::Instant;

/// Names a piece of work: a plan's phase, else the scope of the claim that first failed at it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkKey(pub String);

impl WorkKey {
    /// The work of a plan's phase; it outlives any run of that plan.
    pub fn of_phase(plan: &str, phase: &str) -> WorkKey {
        WorkKey(format!("phase:{plan}/{phase}"))
    }

    /// The work that starts with a claim of its own.
    pub fn of_claim(claim: &super::id::SessId) -> WorkKey {
        WorkKey(format!("scope:{claim}"))
    }
}

/// The failures of one piece of work since its last success.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Work {
    /// Its name.
    pub key: WorkKey,
    /// Where it writes; a new claim that overlaps it inherits the count.
    pub scope: Scope,
    /// Consecutive failures.
    pub fails: u32,
    /// Why it last failed.
    pub last: Option<String>,
    /// When it last failed.
    pub last_at: Option<Instant>,
    /// The claim that counted the last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_by: Option<super::id::SessId>,
    /// Whether the limit was met; only a human's reset clears that.
    pub tripped: bool,
}
