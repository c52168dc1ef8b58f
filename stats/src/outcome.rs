//! The outcome of a game for one of its two players.

/// The outcome of a game of two seats from one player's view. Payoffs are reduced to their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outcome {
    /// The player lost.
    Loss,
    /// The game was drawn.
    Draw,
    /// The player won.
    Win,
}

impl Outcome {
    /// All outcomes, the worst first.
    pub const ALL: [Outcome; 3] = [Outcome::Loss, Outcome::Draw, Outcome::Win];

    /// Returns the outcome for a player with payoff `own` against one with payoff `other`.
    pub fn of_payoffs(own: i32, other: i32) -> Self {
        match own.cmp(&other) {
            std::cmp::Ordering::Less => Outcome::Loss,
            std::cmp::Ordering::Equal => Outcome::Draw,
            std::cmp::Ordering::Greater => Outcome::Win,
        }
    }

    /// Returns the outcome from the other player's view.
    pub fn reversed(self) -> Self {
        match self {
            Outcome::Loss => Outcome::Win,
            Outcome::Draw => Outcome::Draw,
            Outcome::Win => Outcome::Loss,
        }
    }

    /// Returns the half points: 0, 1 or 2.
    pub fn half_points(self) -> usize {
        self as usize
    }

    /// Returns the score: 0, 1/2 or 1.
    pub fn score(self) -> f64 {
        self.half_points() as f64 / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_of_both_views_sum_to_one() {
        for outcome in Outcome::ALL {
            assert_eq!(outcome.score() + outcome.reversed().score(), 1.0);
        }
        for (own, other) in [(3, -3), (0, 0), (-1, 1)] {
            assert_eq!(Outcome::of_payoffs(own, other).reversed(), Outcome::of_payoffs(other, own));
        }
        assert_eq!(Outcome::of_payoffs(3, -3), Outcome::Win);
    }
}
