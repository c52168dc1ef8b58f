//! Intact datasets pass all checks; each kind of damage is reported.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

mod dataset;
mod pruning;
mod replay;
mod report;
mod results;
mod verify;
