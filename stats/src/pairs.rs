//! Differences of two players from a fixed number of bouts.
//!
//! A bout of two seats is a pair of games, one from each seat, with one of five scores. Pairs, not games, are
//! independent, because both games share their opening. Results without pairs are single games with three scores.
//! When to stop is decided by the sequential test.

use crate::distribution::{Z95, normal_cdf};
use crate::elo::{self, LEAST_SCORE, NORMALISED_UNIT};
use crate::outcome::Outcome;

/// The number of pairs by the first player's score: 0, 1/4, 1/2, 3/4 and 1 of the two points.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pairs(pub [u64; 5]);

impl Pairs {
    /// Counts one pair.
    pub fn add(&mut self, pair: PairScore) {
        self.0[usize::from(pair.0)] += 1;
    }
}

/// The score of one pair in half points, 0 to 4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PairScore(u8);

impl PairScore {
    /// Creates the score from the outcomes of both games for the same player.
    pub fn of(one: Outcome, other: Outcome) -> Self {
        PairScore((one.half_points() + other.half_points()) as u8)
    }

    /// Creates the score from half points, at most four.
    pub fn from_half_points(points: u8) -> Option<Self> {
        (points <= 4).then_some(PairScore(points))
    }

    /// Returns the half points, 0 to 4.
    pub fn half_points(self) -> u8 {
        self.0
    }
}

/// Results of single games, from one player's view.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Games {
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
}

/// The number of units by score, in equal steps from 0 to 1: the common form of [`Pairs`] and [`Games`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scores {
    counts: [u64; 5],
    kinds: usize,
    games: f64,
}

impl From<Pairs> for Scores {
    fn from(pairs: Pairs) -> Self {
        Scores { counts: pairs.0, kinds: 5, games: 2.0 }
    }
}

impl From<Games> for Scores {
    fn from(games: Games) -> Self {
        Scores { counts: [games.losses, games.draws, games.wins, 0, 0], kinds: 3, games: 1.0 }
    }
}

/// A value with its interval of 95 %.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Half the width of the interval.
    pub error: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// Whether the score or an end of its interval was clamped to [`LEAST_SCORE`]: then the true interval is wider.
    pub clamped: bool,
}

impl Scores {
    /// Returns the counts, by score from 0 to 1.
    pub fn counts(&self) -> &[u64] {
        &self.counts[..self.kinds]
    }

    /// Returns the number of games per unit: 2 in a pair, 1 in a game.
    pub fn games_per_unit(&self) -> f64 {
        self.games
    }

    /// Returns the number of units, N.
    pub fn units(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the mean score; `None` without data.
    pub fn mean(&self) -> Option<f64> {
        let units = self.units();
        (units > 0).then(|| {
            let half_points: u64 = self.counts().iter().zip(0..).map(|(&count, points)| count * points).sum();
            half_points as f64 / (units as f64 * (self.kinds - 1) as f64)
        })
    }

    /// Returns the variance of one unit's score about the mean; `None` without data, 0 if all units scored the same.
    pub fn variance(&self) -> Option<f64> {
        let mean = self.mean()?;
        let step = 1.0 / (self.kinds - 1) as f64;
        let squares = self
            .counts()
            .iter()
            .enumerate()
            .map(|(i, &count)| count as f64 * (i as f64 * step - mean).powi(2));
        Some(squares.sum::<f64>() / self.units() as f64)
    }

    /// Returns the Elo difference at the mean score, E(mu), with error (E(mu + e) - E(mu - e)) / 2 where e = z sqrt(v
    /// / N). `None` without data. If all units scored the same, the error is 0, because it cannot be estimated.
    pub fn elo(&self) -> Option<Estimate> {
        let mean = self.mean()?;
        let error = Z95 * (self.variance()? / self.units() as f64).sqrt();
        let (low, high) = (elo::difference(mean - error), elo::difference(mean + error));
        Some(Estimate {
            value: elo::difference(mean),
            error: (high - low) / 2.0,
            low,
            high,
            clamped: mean - error < LEAST_SCORE || mean + error > 1.0 - LEAST_SCORE,
        })
    }

    /// Returns normalised Elo: the distance of the mean from 1/2 in standard deviations of one *game's* score, in
    /// units of [`NORMALISED_UNIT`] (Van den Bergh, "Normalized Elo").
    ///
    /// A pair's score is the mean of two games', so that the deviation of a game is sqrt(2 v), as if the two were
    /// independent; of a single game it is sqrt(v). The error is that of the mean alone, z / sqrt(games) in units.
    /// `None` without data, and if all units scored the same, because there is no deviation.
    pub fn normalised_elo(&self) -> Option<Estimate> {
        let mean = self.mean()?;
        let deviation = (self.games * self.variance()?).sqrt();
        if deviation == 0.0 {
            return None;
        }
        let value = (mean - 0.5) / deviation * NORMALISED_UNIT;
        let error = Z95 * NORMALISED_UNIT / (self.games * self.units() as f64).sqrt();
        Some(Estimate { value, error, low: value - error, high: value + error, clamped: false })
    }

    /// Returns the likelihood of superiority, Phi((mu - 1/2) / sqrt(v / N)). `None` without data. If all units scored
    /// the same it is the limit: 0, 1/2 or 1.
    pub fn superiority(&self) -> Option<f64> {
        let excess = self.mean()? - 0.5;
        let deviation = (self.variance()? / self.units() as f64).sqrt();
        if excess == 0.0 {
            return Some(0.5);
        }
        Some(normal_cdf(if deviation > 0.0 { excess / deviation } else { excess * f64::INFINITY }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: Option<f64>, expected: f64, tolerance: f64) {
        let got = got.expect("data");
        assert!((got - expected).abs() <= tolerance, "{got} is not {expected}");
    }

    fn scores(pairs: [u64; 5]) -> Scores {
        Pairs(pairs).into()
    }

    /// Published values: output of fastchess and fishtest.
    #[test]
    fn matches_published_pentanomials() {
        let data = scores([13, 37, 50, 25, 3]);
        near(data.normalised_elo().map(|e| e.value), -63.97, 0.01);
        near(data.elo().map(|e| e.value), -43.658, 0.001);

        let data = scores([34, 54, 63, 64, 75]);
        near(data.normalised_elo().map(|e| e.value), 57.94, 0.01);
        near(data.normalised_elo().map(|e| e.error), 28.28, 0.01);
        near(data.elo().map(|e| e.value), 55.58, 0.01);
        near(data.elo().map(|e| e.error), 27.65, 0.01);

        let data = scores([30, 5872, 17820, 6261, 17]);
        near(data.elo().map(|e| e.value), 2.10, 0.01);
        near(data.elo().map(|e| e.error), 1.3, 0.05);
        near(data.normalised_elo().map(|e| e.value), 4.64, 0.01);
        near(data.normalised_elo().map(|e| e.error), 2.8, 0.05);
    }

    #[test]
    fn single_games() {
        let data = Scores::from(Games { wins: 60, draws: 30, losses: 10 });
        near(data.mean(), 0.75, 1e-15);
        near(data.elo().map(|e| e.value), 190.85, 0.005);
        // v = .6 + .3/4 - .75^2, by hand.
        near(data.variance(), 0.1125, 1e-12);
        near(data.normalised_elo().map(|e| e.value), 0.25 / 0.1125f64.sqrt() * NORMALISED_UNIT, 1e-9);
    }

    /// Pairs of independent games give the same mean and, for many games, the same normalised Elo and error as single
    /// games. This is the reason for the factor 2.
    #[test]
    fn independent_pairs_match_single_games() {
        let (win, draw, loss) = (0.5, 0.3, 0.2);
        let games = 2_000_000.0;
        let pairs =
            [loss * loss, 2.0 * loss * draw, 2.0 * loss * win + draw * draw, 2.0 * draw * win, win * win];
        let paired = scores(pairs.map(|share: f64| (share * games / 2.0).round() as u64));
        let single = Scores::from(Games {
            wins: (win * games) as u64,
            draws: (draw * games) as u64,
            losses: (loss * games) as u64,
        });
        let (paired, single) = (paired.normalised_elo().unwrap(), single.normalised_elo().unwrap());
        assert!((paired.value - single.value).abs() < 1e-6);
        assert!((paired.error - single.error).abs() < 1e-9);
    }

    #[test]
    fn degenerate_scores_are_finite_or_none() {
        let empty = scores([0; 5]);
        assert_eq!((empty.mean(), empty.variance(), empty.superiority()), (None, None, None));
        assert_eq!((empty.elo(), empty.normalised_elo()), (None, None));
        for (kind, superiority) in [(0, 0.0), (1, 0.0), (2, 0.5), (3, 1.0), (4, 1.0)] {
            let mut counts = [0; 5];
            counts[kind] = 7;
            let data = scores(counts);
            let elo = data.elo().unwrap();
            assert!(elo.value.is_finite() && elo.error == 0.0);
            assert_eq!(elo.clamped, kind == 0 || kind == 4);
            assert_eq!(data.normalised_elo(), None);
            assert_eq!(data.superiority(), Some(superiority));
        }
        let wide = scores([0, 0, 0, 1, 40]).elo().unwrap();
        assert!(wide.clamped && wide.high == elo::difference(1.0) && wide.low < wide.value);
        let wide = scores([40, 1, 0, 0, 0]).elo().unwrap();
        assert!(wide.clamped && wide.low == elo::difference(0.0) && wide.high > wide.value);
        assert!(!scores([5, 17, 20, 9, 2]).elo().unwrap().clamped);
    }

    /// The two players' views have opposite signs.
    #[test]
    fn views_are_opposite() {
        let data = [5u64, 17, 20, 9, 2];
        let mut reversed = data;
        reversed.reverse();
        let (one, other) = (scores(data), scores(reversed));
        assert!((one.elo().unwrap().value + other.elo().unwrap().value).abs() < 1e-9);
        assert!((one.elo().unwrap().error - other.elo().unwrap().error).abs() < 1e-9);
        assert!((one.superiority().unwrap() + other.superiority().unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn pairs_by_outcomes() {
        let mut pairs = Pairs::default();
        for one in Outcome::ALL {
            for other in Outcome::ALL {
                pairs.add(PairScore::of(one, other));
            }
        }
        assert_eq!(pairs, Pairs([1, 2, 3, 2, 1]));
        assert_eq!(PairScore::from_half_points(5), None);
        assert_eq!(PairScore::from_half_points(4).map(PairScore::half_points), Some(4));
    }
}
