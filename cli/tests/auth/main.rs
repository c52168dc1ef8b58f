//! Who is let in: a table of cases over real sockets with real processes, and that nothing changed afterwards.
//!
//! `secured` is a coordinator with TLS, client certificates and tokens, `certificates` and `tokens` have those who show the wrong thing or nothing,
//! `names` those who act in the name of another, `crowds` floods and the slow, `settings` where settings come from, `wire` speaks by hand. What
//! each of them got stands in docs/security.md.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_testing::{binary, processes, scripted_worker};

mod certificates;
mod crowds;
mod names;
mod secured_cluster;
mod settings;
mod tokens;
mod wire;
