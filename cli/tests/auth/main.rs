//! Authentication, authorization and limits, tested with real processes over real sockets. Rejected calls must not change
//! the state. The printed lines are the source of the table in docs/ops/security.md.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

mod certificates;
mod crowds;
mod names;
mod secured_cluster;
mod settings;
mod tokens;
mod verdict;
mod wire;
