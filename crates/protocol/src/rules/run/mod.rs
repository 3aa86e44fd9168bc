//! The pure half of a run: which phase is next, and what a result does (`hypervisor.md`, 6 and 10).

mod begin;
mod change;
mod find;
mod judge;
mod next;

pub(crate) use begin::{begin_attempt, end_attempt, start, take};
pub(crate) use change::{adapt, cancel, end, record_landing};
pub use find::phase_of;
pub use judge::said_by;
pub(crate) use judge::{answered, ask_phase, judge_attempt};
pub use next::{Question, Step, may_be_said_before, next};
