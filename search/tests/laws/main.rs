//! Laws of the searches, on random trees and on every suitable game.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod chance;
mod deepening;
mod duel;
mod many;
mod proofs;
mod sampling;
mod selective;
mod solved;
mod textbook;
mod threat;
mod tree;
