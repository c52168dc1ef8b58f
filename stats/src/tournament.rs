//! From the bouts of a tournament to everything that is asked of them: the one way, live and from a dataset.
//!
//! A [`Tally`] counts bouts that are alike, an [`Answer`] rates them: two seats by [`pool`](crate::pool), more by
//! [`plackett_luce`](crate::plackett_luce). Whoever has results without bouts asks [`Answer::of_duels`]. Nothing here
//! knows where bouts come from, and players are names and numbers.

mod answer;
mod tally;

pub use answer::{Answer, AnswerError, Effect, Errors, Options};
pub use tally::{Record, Tally, TallyError, pair_of, pair_score};

pub use crate::plackett_luce::Game;
