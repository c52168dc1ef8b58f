//! Ratings of a pool of players in games of two seats.
//!
//! A game's expected score is logistic in the difference of two ratings and the first seat's advantage; draws are
//! split off by Davidson's relation; everything is fitted together by maximum likelihood. Errors treat bouts as
//! units, because the games of a bout share their opening. Games of more seats are in
//! [`plackett_luce`](crate::plackett_luce).

mod fit;
mod model;
mod newton;
mod results;
mod sandwich;
mod structure;
mod table;
mod transitivity;
mod uncertainty;

pub use fit::{Bound, Fit, Options, RatingError};
pub use results::{Player, Results, ResultsError};
pub(crate) use table::compare_ranks;
pub use table::{Meeting, Residual, Standing};
pub use transitivity::Transitivity;
pub use uncertainty::Uncertainty;
pub(crate) use uncertainty::with_spread;
