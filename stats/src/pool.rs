//! Ratings of a pool of players of games of two seats.
//!
//! Every game's expected score is logistic in the difference of two ratings and the first seat's advantage, and draws are
//! split off at that score by Davidson's relation; everything is fitted together by maximum likelihood. Bouts are the
//! units of all errors, because the games of a bout share their opening. More seats are not here: see Plackett and Luce.

mod bootstrap;
mod fit;
mod model;
mod newton;
mod results;
mod sandwich;
mod structure;
mod table;
mod transitivity;
mod uncertainty;

pub use bootstrap::DEFAULT_REPLICAS;
pub use fit::{Bound, Fit, Options, RatingError};
pub use results::{Player, Results, ResultsError};
pub use table::{Meeting, Residual, Standing};
pub use transitivity::Transitivity;
pub use uncertainty::Uncertainty;
pub(crate) use uncertainty::with_spread;
