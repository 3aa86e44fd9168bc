//! The nouns of the protocol: what can be true, without what may happen.

pub mod caller;
pub mod claim;
pub mod gate;
pub mod id;
pub mod kind;
pub mod lock;
pub mod needs;
pub mod path;
pub mod plan;
pub mod policy;
pub mod report;
pub mod run;
pub mod scope;
pub mod signal;
pub mod signal_kind;
pub mod size;
pub mod span;
pub mod tests;
pub mod time;
pub mod trigger;
pub mod work;
pub mod zone;
