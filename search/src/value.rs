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
    /// A draw with best play, after at most this many plies.
    Draw(u32),
    /// The number is the value with best play: every line was searched to its end, after at most this many plies.
    Exact(u32),
}

impl Proof {
    /// Returns the plies after which the game is over with best play: exact for wins and losses, else at most.
    pub fn plies(self) -> u32 {
        match self {
            Proof::Win(plies) | Proof::Loss(plies) | Proof::Draw(plies) | Proof::Exact(plies) => plies,
        }
    }
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
    /// Returns the value with this number that is proven within this many plies, or not proven with 0 plies. A number
    /// beyond every evaluation implies its proof.
    pub fn recorded(number: f64, plies: u32) -> Value {
        let implied = proof((number * f64::from(UNIT)).round() as Score);
        let stated = (plies > 0).then_some(match number {
            1.0 => Proof::Win(plies),
            0.0 => Proof::Draw(plies),
            -1.0 => Proof::Loss(plies),
            _ => Proof::Exact(plies),
        });
        Value { number, proof: implied.or(stated) }
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
    fn recorded_values_keep_their_proofs() {
        for score in [0, 1, -UNIT, MAX_EVALUATION, WIN, WIN - 3, 4 - WIN, WIN - MAX_PLY as Score] {
            let value = Value::from(score);
            let plies = value.proof.map_or(0, Proof::plies);
            assert_eq!(Value::recorded(value.number, plies), value);
            assert_eq!(Value::recorded(value.number, 0), value, "datasets without the plies");
        }
        let sampled = |number, proof| Value { number, proof: Some(proof) };
        for value in [
            sampled(1.0, Proof::Win(5)),
            sampled(-1.0, Proof::Loss(4)),
            sampled(0.0, Proof::Draw(9)),
            sampled(0.25, Proof::Exact(3)),
        ] {
            assert_eq!(Value::recorded(value.number, value.proof.unwrap().plies()), value);
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
