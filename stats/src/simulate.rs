//! Made-up worlds whose truth is known, and how often what is told of them is true.
//!
//! A world has players of known strengths, a first seat's advantage, a draw rate, and openings that favour one seat or
//! the other: both games of a bout share the opening, so that they depend on each other. Tests simulate little, with a
//! fixed seed; `agon-bench stats` the same at length.

mod coverage;
mod errors;
mod world;

pub use coverage::{Coverage, coverage_of_pairs, coverage_of_pool};
pub use errors::{SprtErrors, sprt_error_rates};
pub use world::World;
