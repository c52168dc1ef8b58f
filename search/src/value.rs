//! Values of positions: integers inside a search, decimals and proofs outside.
//!
//! A score is a linear evaluation in ten-thousandths of the game's unit, from a seat's view. Ends of the game lie
//! beyond all evaluations and include their distance, so that shorter wins and longer losses are better.

use agon_games::Payoffs;

/// A value inside a search.
pub type Score = i32;

/// One unit of the evaluation in scores.
pub const UNIT: Score = 10_000;

/// The most seats a game can have.
pub const MAX_SEATS: usize = 8;

/// An immediate win. A win in `n` plies is `WIN - n`.
pub const WIN: Score = 1_000_000_000;

/// Larger than every score; a window from `-INFINITY` to `INFINITY` is open.
pub const INFINITY: Score = WIN + 1;

/// The largest evaluation. Scores beyond it are proven wins or losses.
pub const MAX_EVALUATION: Score = 900_000_000;

/// The longest line of a search, including quiescence.
pub const MAX_PLY: usize = 250;

/// Returns the score of an end for a seat with this payoff, `ply` plies from the root.
#[inline]
pub fn end_score(payoff: i32, ply: usize) -> Score {
    payoff.signum() * (WIN - ply as Score)
}

/// Returns the score of an end with many seats, `ply` plies from the root: the best payoff is a win, the worst a
/// loss, and a shared one lies between, within one unit of 0.
#[inline]
pub fn shared_end_score(payoffs: Payoffs, payoff: i32, ply: usize) -> Score {
    let (above, below) = (payoff - payoffs.min, payoffs.max - payoff);
    if below == 0 || above == 0 {
        end_score(above - below, ply)
    } else {
        UNIT * (above - below) / (above + below)
    }
}

/// Converts a score from the root's view to that of a node `ply` plies below.
#[inline]
pub fn to_node(score: Score, ply: usize) -> Score {
    match score {
        score if score > MAX_EVALUATION => score + ply as Score,
        score if score < -MAX_EVALUATION => score - ply as Score,
        score => score,
    }
}

/// Converts a score from a node's view to the root's: the inverse of [`to_node`].
#[inline]
pub fn to_root(score: Score, ply: usize) -> Score {
    match score {
        score if score > MAX_EVALUATION => score - ply as Score,
        score if score < -MAX_EVALUATION => score + ply as Score,
        score => score,
    }
}

/// A result that holds against any play.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// The seat wins in this many plies.
    Win(u32),
    /// The seat loses in this many plies.
    Loss(u32),
}

/// Returns the proof that a score implies, if any.
pub fn proof(score: Score) -> Option<Proof> {
    if score > MAX_EVALUATION {
        Some(Proof::Win((WIN - score) as u32))
    } else if score < -MAX_EVALUATION {
        Some(Proof::Loss((WIN + score) as u32))
    } else {
        None
    }
}

/// A reported value: a number in evaluation units (in sampling searches the mean payoff), with a proof if there is
/// one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Value {
    /// The number, from the view of the seat that searched.
    pub number: f64,
    /// The proof, if any.
    pub proof: Option<Proof>,
}

impl Value {
    /// Returns the value with this number and the proof it implies. Precondition: some value has this number.
    pub fn from_number(number: f64) -> Value {
        Value { number, proof: proof((number * f64::from(UNIT)).round() as Score) }
    }
}

impl From<Score> for Value {
    fn from(score: Score) -> Value {
        Value { number: f64::from(score) / f64::from(UNIT), proof: proof(score) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_follows_from_number() {
        for score in [0, 1, -UNIT, MAX_EVALUATION, WIN, WIN - 3, 4 - WIN, WIN - MAX_PLY as Score] {
            assert_eq!(Value::from_number(Value::from(score).number), Value::from(score));
        }
    }

    #[test]
    fn ends_include_distance() {
        assert!(end_score(1, 3) > end_score(1, 5) && end_score(-1, 5) > end_score(-1, 3));
        assert_eq!(end_score(0, 3), 0);
        assert_eq!(proof(end_score(1, 3)), Some(Proof::Win(3)));
        assert_eq!(proof(end_score(-3, 4)), Some(Proof::Loss(4)));
        assert_eq!(proof(MAX_EVALUATION), None);
    }

    #[test]
    fn shared_win_lies_between_win_and_loss() {
        let score = |payoff| shared_end_score(Payoffs::SHARED, payoff, 3);
        assert_eq!((score(60), score(0), score(30), score(15)), (WIN - 3, 3 - WIN, 0, -UNIT / 2));
        for payoff in -1..=1 {
            assert_eq!(shared_end_score(Payoffs::DUEL, payoff, 4), end_score(payoff, 4));
        }
    }

    #[test]
    fn table_scores_round_trip_between_views() {
        for score in [end_score(1, 9), end_score(-1, 9), 17, -17, 0] {
            assert_eq!(to_root(to_node(score, 4), 4), score);
        }
        assert_eq!(to_node(end_score(1, 9), 4), end_score(1, 5));
    }
}
