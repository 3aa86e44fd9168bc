//! Runs of plans from end to end: the real program, real repositories, real processes.

mod house;

mod demo;
mod drift;
mod end;
mod flow;
mod gates;
mod kill;
mod triggers;
mod verbs;
