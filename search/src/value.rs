//! Values of positions: whole numbers inside, decimals and proofs outside.
//!
//! A score is a linear evaluation in ten-thousandths of the game's unit, from the view of a seat. Ends of the game lie
//! beyond every evaluation and know their distance, so that a shorter win is better and a longer loss is.

use agon_games::Payoffs;

/// A value inside a search.
pub type Score = i32;

/// One unit of the evaluation in scores.
pub const UNIT: Score = 10_000;

/// The most seats a game can have.
pub const MAX_SEATS: usize = 8;

/// A win on the spot. A win in `n` plies is `WIN - n`.
pub const WIN: Score = 1_000_000_000;

/// Larger than every score; a window from `-INFINITY` to `INFINITY` is open.
pub const INFINITY: Score = WIN + 1;

/// The largest evaluation. Scores beyond it are proven wins or losses.
pub const MAX_EVALUATION: Score = 900_000_000;

/// The longest line a search follows, quiescence included.
pub const MAX_PLY: usize = 250;

/// The score of an end for a seat with this payoff, `ply` plies from the root.
#[inline]
pub fn end_score(payoff: i32, ply: usize) -> Score {
    payoff.signum() * (WIN - ply as Score)
}

/// The score of an end of a game of many seats, `ply` plies from the root: the best payoff is a win, the worst a loss, and
/// a shared one lies between, within one unit of nothing.
#[inline]
pub fn shared_end_score(payoffs: Payoffs, payoff: i32, ply: usize) -> Score {
    let (above, below) = (payoff - payoffs.min, payoffs.max - payoff);
    if below == 0 || above == 0 {
        end_score(above - below, ply)
    } else {
        UNIT * (above - below) / (above + below)
    }
}

/// A score as seen from the root made one as seen from a node `ply` plies below, for the table.
#[inline]
pub fn to_node(score: Score, ply: usize) -> Score {
    match score {
        score if score > MAX_EVALUATION => score + ply as Score,
        score if score < -MAX_EVALUATION => score - ply as Score,
        score => score,
    }
}

/// The reverse of [`to_node`].
#[inline]
pub fn to_root(score: Score, ply: usize) -> Score {
    match score {
        score if score > MAX_EVALUATION => score - ply as Score,
        score if score < -MAX_EVALUATION => score + ply as Score,
        score => score,
    }
}

/// A result that holds whatever the opponents do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// The seat wins in this many plies.
    Win(u32),
    /// The seat loses in this many plies.
    Loss(u32),
}

/// The proof that a score states, if it states one.
pub fn proof(score: Score) -> Option<Proof> {
    if score > MAX_EVALUATION {
        Some(Proof::Win((WIN - score) as u32))
    } else if score < -MAX_EVALUATION {
        Some(Proof::Loss((WIN + score) as u32))
    } else {
        None
    }
}

/// A value as it is reported: a number in the game's evaluation units (for sampling searches the mean payoff), with
/// the proof beside it where there is one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Value {
    /// The number, from the view of the seat that searched.
    pub number: f64,
    /// What is proven.
    pub proof: Option<Proof>,
}

impl Value {
    /// The value that is reported as this number, with what it proves. Precondition: it is a number that some value has.
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
    fn a_number_tells_its_proof() {
        for score in [0, 1, -UNIT, MAX_EVALUATION, WIN, WIN - 3, 4 - WIN, WIN - MAX_PLY as Score] {
            assert_eq!(Value::from_number(Value::from(score).number), Value::from(score));
        }
    }

    #[test]
    fn ends_know_their_distance() {
        assert!(end_score(1, 3) > end_score(1, 5) && end_score(-1, 5) > end_score(-1, 3));
        assert_eq!(end_score(0, 3), 0);
        assert_eq!(proof(end_score(1, 3)), Some(Proof::Win(3)));
        assert_eq!(proof(end_score(-3, 4)), Some(Proof::Loss(4)));
        assert_eq!(proof(MAX_EVALUATION), None);
    }

    #[test]
    fn a_shared_win_lies_between() {
        let score = |payoff| shared_end_score(Payoffs::SHARED, payoff, 3);
        assert_eq!((score(60), score(0), score(30), score(15)), (WIN - 3, 3 - WIN, 0, -UNIT / 2));
        for payoff in -1..=1 {
            assert_eq!(shared_end_score(Payoffs::DUEL, payoff, 4), end_score(payoff, 4));
        }
    }

    #[test]
    fn a_score_in_the_table_is_seen_from_its_node() {
        for score in [end_score(1, 9), end_score(-1, 9), 17, -17, 0] {
            assert_eq!(to_root(to_node(score, 4), 4), score);
        }
        assert_eq!(to_node(end_score(1, 9), 4), end_score(1, 5));
    }
}
