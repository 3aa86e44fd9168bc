//! The rules of the facts, from outside.

mod scope;
