//! The faces' foundations, each against real files, links, repositories and processes.

mod config;
