//! What tests share: the rules on a stage of their own, stories told to them, and the laws that must hold.

pub mod laws;
pub mod stage;
pub mod story;
