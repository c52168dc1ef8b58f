//! Agon as an engine of other programs, and bots of other languages.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

mod bots;
mod check;
mod gtp;
mod python;
mod session;
mod uci;
