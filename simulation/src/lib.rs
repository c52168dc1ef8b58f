//! Simulations whose truth is known, which check what the statistics promise: coverage of intervals, error rates of
//! sequential tests, recovery of strengths, detection of fabricated outcomes, convergence of tunes.
//!
//! Tests run few simulations with fixed seeds; `agon-bench stats` runs many. Nothing here is linked into the binary.

pub mod coverage;
pub mod fleets;
pub mod rankings;
pub mod sequential;
pub mod tuning;
pub mod world;
