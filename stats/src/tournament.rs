//! Ratings of tournaments with any number of seats, the same live and from a dataset.
//!
//! [`BoutCounts`] counts equal bouts and [`TournamentRatings`] rates them: two seats by [`pool`](crate::pool), more
//! by [`plackett_luce`](crate::plackett_luce). For results without bouts use [`TournamentRatings::of_duels`]. The
//! source of the bouts does not matter here; players are names and numbers.

mod bout_counts;
mod conclusion;
mod ratings;

pub use bout_counts::{BoutCounts, BoutCountsError, Record, pair_of, pair_score};
pub use conclusion::Conclusion;
pub use ratings::{Effect, Options, Resampling, TournamentError, TournamentRatings};

pub use crate::plackett_luce::Game;
