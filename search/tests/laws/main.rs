//! The laws of the searches, on made-up trees and on every game that fits.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod chance;
mod deepening;
mod duel;
mod many;
mod sampling;
mod selective;
mod solved;
mod textbook;
mod threat;
mod tree;
