//! Who is let in: a table of cases over real sockets with real processes, and that nothing changed afterwards.
//!
//! `house` is a coordinator behind closed doors, `certificates` and `tokens` have those who show the wrong thing or nothing,
//! `names` those who act in the name of another, `crowds` floods and the slow, `settings` where settings come from, `wire` speaks by hand. What
//! each of them got stands in docs/security.md.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../binary/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod binary;
#[path = "../processes/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod processes;
#[path = "../faults/rogue.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod rogue;

mod certificates;
mod crowds;
mod house;
mod names;
mod settings;
mod tokens;
mod wire;
