//! The linear evaluation: a weighted sum of a game's features, in integers.

use agon_games::{FeatureSet, Features, Seat};

use crate::value::{MAX_EVALUATION, Score, UNIT};

/// The resolution of weights: parts of a unit.
pub const WEIGHT_UNIT: i64 = 1_000_000;

/// A static evaluation.
pub trait Evaluate<G>: Send {
    /// Returns the value of a position for `seat`, within plus or minus [`MAX_EVALUATION`]. Precondition: the game is
    /// not over.
    fn evaluate(&mut self, position: &G, seat: Seat) -> Score;
}

/// A weighted sum of features. Weights are integers in millionths, so that results are the same on every machine.
#[derive(Clone, Debug)]
pub struct Linear {
    weights: Vec<i64>,
    values: Vec<i32>,
    wanted: FeatureSet,
}

impl Linear {
    /// Creates an evaluation with one weight per feature, in the order of [`Features::FEATURES`].
    pub fn new(weights: &[f64]) -> Linear {
        let weights: Vec<i64> =
            weights.iter().map(|weight| (weight * WEIGHT_UNIT as f64).round() as i64).collect();
        let used = weights.iter().enumerate().filter(|(_, weight)| **weight != 0);
        let wanted = used.fold(FeatureSet::NONE, |set, (index, _)| set.with(index));
        Linear { values: vec![0; weights.len()], weights, wanted }
    }

    /// Creates an evaluation with the game's default weights.
    pub fn default_of<G: Features>() -> Linear {
        let weights: Vec<f64> = G::FEATURES.iter().map(|feature| feature.weight).collect();
        Linear::new(&weights)
    }
}

impl<G: Features> Evaluate<G> for Linear {
    #[inline]
    fn evaluate(&mut self, position: &G, seat: Seat) -> Score {
        if self.wanted == FeatureSet::NONE {
            return 0;
        }
        position.features(seat, self.wanted, &mut self.values);
        let sum: i64 =
            self.weights.iter().zip(&self.values).map(|(weight, value)| weight * i64::from(*value)).sum();
        let score = sum / (WEIGHT_UNIT / i64::from(UNIT));
        score.clamp(-i64::from(MAX_EVALUATION), i64::from(MAX_EVALUATION)) as Score
    }
}

#[cfg(test)]
mod tests {
    use agon_games::line::follow;
    use agon_games::tic_tac_toe::TicTacToe;
    use agon_games::{Parameters, Setup};

    use super::*;

    #[test]
    fn weight_of_one_is_one_unit() {
        let mut position = TicTacToe::initial(&Parameters::defaults(&[])).unwrap();
        follow(&mut position, "b2 b1").unwrap();
        // The crosses have two more open lines, whichever side moves.
        for (weights, units) in
            [([1.0, 0.0, 0.0], 2.0), ([-0.5, 0.0, 0.0], -1.0), ([0.000_1, 9.0, 9.0], 0.000_2)]
        {
            let mut linear = Linear::new(&weights);
            let score = (units * f64::from(UNIT)) as Score;
            assert_eq!(linear.evaluate(&position, Seat::FIRST), score);
            assert_eq!(linear.evaluate(&position, Seat::SECOND), -score);
        }
    }
}
