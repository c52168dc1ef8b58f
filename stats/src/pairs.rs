//! Differences of two players from a fixed number of bouts.
//!
//! A bout of two seats is a pair of games, one from each seat, with one of five scores. Pairs, not games, are
//! independent, because both games share their opening. Results without pairs are single games with three scores.
//! When to stop is decided by the sequential test.
//!
//! Interval and likelihood of superiority come from one distribution of the expected score: that of the mean with
//! Dirichlet weights, one for each unit and one more that is shared between a score of 0 and one of 1. If the
//! additional unit counts wholly against the statement, this is Gaffke's bound for the mean of any bounded variable
//! (Gaffke 2005; Phan, Thomas and Learned-Miller 2021, "Towards practical mean bounds for small samples"), which for
//! scores of 0 and 1 is the exact one of Clopper and Pearson; if it is halved, it is Jeffreys's (Brown, Cai and
//! DasGupta 2001, "Interval estimation for a binomial proportion"). The former never covers too little but is wide,
//! the latter is right for many units: [`Scores`] goes from one to the other.

use crate::comparison::{Comparison, SURE};
use crate::dirichlet::DirichletMean;
use crate::elo::{self, LARGEST_DIFFERENCE, NORMALISED_UNIT, POINTS_PER_LOGIT};
use crate::outcome::Outcome;

/// The number of units at which the additional unit is half way from counting against the statement to being halved.
/// Chosen by the exact coverage of 1 to 20 units, which `agon-bench stats` prints.
const FEW: f64 = 16.0;

/// A likelihood of superiority just below certainty.
const JUST_UNSURE: f64 = SURE - 1e-6;

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

/// A value with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The interval's lower end; `None` if the results do not bound it.
    pub low: Option<f64>,
    /// The interval's upper end; `None` if the results do not bound it.
    pub high: Option<f64>,
}

impl Estimate {
    /// Returns half the width of the interval; `None` if an end is open.
    pub fn error(&self) -> Option<f64> {
        self.low.zip(self.high).map(|(low, high)| (high - low) / 2.0)
    }
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

    /// Compares the two players: the Elo difference at the mean score with its interval, and the likelihood of
    /// superiority. `None` without data.
    ///
    /// If all units have the score 0 or 1, the estimate is the median of Jeffreys's distribution and the interval is
    /// open on that side, as it is beyond [`LARGEST_DIFFERENCE`].
    pub fn compare(&self) -> Option<Comparison> {
        let mean = self.mean()?;
        let units = self.units() as f64;
        let elo = if mean > 0.0 && mean < 1.0 {
            elo::difference(mean)
        } else {
            let median = self.evidence().weighted(0.5, |score| score.quantile_log_odds(0.5));
            (median * POINTS_PER_LOGIT).clamp(-LARGEST_DIFFERENCE, LARGEST_DIFFERENCE)
        };
        let bounded = [mean > 0.0, mean < 1.0];
        Some(self.evidence().compare(elo, bounded, LARGEST_DIFFERENCE, units))
    }

    fn evidence(&self) -> Evidence {
        let counts = self.counts.map(|count| count as f64);
        Evidence { counts, kinds: self.kinds }
    }

    /// Returns the likelihood of superiority; `None` without data.
    pub fn superiority(&self) -> Option<f64> {
        self.mean().map(|mean| self.evidence().superiority(mean - 0.5, [true; 2], self.units() as f64))
    }

    /// Returns normalised Elo: the distance of the mean from 1/2 in standard deviations of one *game's* score, in
    /// units of [`NORMALISED_UNIT`] (Van den Bergh, "Normalized Elo").
    ///
    /// A pair's score is the mean of two games', so that the deviation of a game is sqrt(2 v), as if the two were
    /// independent; of a single game it is sqrt(v). The interval is that of the mean alone, in the same deviations:
    /// with many units its error is 1.96 / sqrt(games) in units. `None` without data, and if all units scored the
    /// same, because there is no deviation.
    pub fn normalised_elo(&self) -> Option<Estimate> {
        let deviation = (self.games * self.variance()?).sqrt();
        let normalised = |score: f64| (score - 0.5) / deviation * NORMALISED_UNIT;
        let Comparison { low, high, .. } = self.compare()?;
        let end = |elo: f64| normalised(elo::expected_score(elo));
        let (low, high) = (low.map(end), high.map(end));
        (deviation > 0.0).then_some(Estimate { value: normalised(self.mean()?), low, high })
    }
}

/// The least variance of an estimate, in squared Elo: differences of 0.1 Elo are certain.
const LEAST_VARIANCE: f64 = 1e-3;

/// Units by score, which need not be whole: the evidence of one comparison.
struct Evidence {
    counts: [f64; 5],
    kinds: usize,
}

impl Evidence {
    /// Returns as many units of score 0 or 1 as give an estimate this variance, which may be 0.
    fn of_estimate(elo: f64, variance: f64) -> (Evidence, f64) {
        let score = elo::expected_score(elo);
        let units = POINTS_PER_LOGIT.powi(2) / (variance.max(LEAST_VARIANCE) * score * (1.0 - score));
        (Evidence { counts: [units * (1.0 - score), units * score, 0.0, 0.0, 0.0], kinds: 2 }, units)
    }

    /// Compares two players, given the estimate in Elo, on which sides the results bound it, and the number of units.
    /// Ends beyond `largest` are open.
    fn compare(&self, elo: f64, bounded: [bool; 2], largest: f64, units: f64) -> Comparison {
        let share = share_against(units);
        let end = |share: f64, probability: f64| {
            self.weighted(share, |score| score.quantile_log_odds(probability)) * POINTS_PER_LOGIT
        };
        let low = bounded[0].then(|| end(share, 1.0 - SURE).min(largest)).filter(|low| *low > -largest);
        let high = bounded[1].then(|| end(1.0 - share, SURE).max(-largest)).filter(|high| *high < largest);
        let los = self.superiority(elo, bounded, units);
        Comparison { elo, low, high, los, enough: sweep_superiority(units) >= SURE }
    }

    /// Returns the likelihood of superiority: the probability that the expected score exceeds 1/2 if the additional
    /// unit counts against the player who is ahead, and 1/2 if that would turn the lead.
    fn superiority(&self, lead: f64, [low, high]: [bool; 2], units: f64) -> f64 {
        let share = share_against(units);
        let above = |share: f64| self.weighted(share, |score| 1.0 - score.probability_below(0.5));
        // A difference without an end is not certain on that side.
        if lead > 0.0 {
            above(share).clamp(0.5, if low { 1.0 } else { JUST_UNSURE })
        } else if lead < 0.0 {
            above(1.0 - share).clamp(if high { 0.0 } else { 1.0 - JUST_UNSURE }, 0.5)
        } else {
            0.5
        }
    }

    /// Calls `answer` with the distribution of the expected score, of whose additional unit this share has score 0.
    fn weighted<T>(&self, share_of_zero: f64, answer: impl Fn(DirichletMean<'_>) -> T) -> T {
        let last = self.kinds - 1;
        let mut weights = self.counts;
        weights[0] += share_of_zero;
        weights[last] += 1.0 - share_of_zero;
        let values: [f64; 5] = std::array::from_fn(|index| index as f64 / last as f64);
        answer(DirichletMean { values: &values[..self.kinds], weights: &weights[..self.kinds] })
    }
}

/// Compares two players of whose Elo difference an estimate and its variance (in squared Elo) are known, such as those
/// of a pool: as after as many units of score 0 or 1 as give this variance.
///
/// Unlike a normal distribution on the Elo scale this holds for lopsided results too, whose variance says how far the
/// difference may lie beyond the estimate, but not how close it may be to 0.
pub(crate) fn compare_estimate(elo: f64, variance: f64, bounded: [bool; 2]) -> Comparison {
    // The smaller score is computed precisely.
    if elo > 0.0 {
        return compare_estimate(-elo, variance, [bounded[1], bounded[0]]).reversed();
    }
    let (evidence, units) = Evidence::of_estimate(elo, variance);
    evidence.compare(elo, bounded, f64::INFINITY, units)
}

/// Returns the likelihood of superiority of [`compare_estimate`] without its interval, which takes longer.
pub(crate) fn superiority_of_estimate(elo: f64, variance: f64, bounded: [bool; 2]) -> f64 {
    if elo > 0.0 {
        return 1.0 - superiority_of_estimate(-elo, variance, [bounded[1], bounded[0]]);
    }
    let (evidence, units) = Evidence::of_estimate(elo, variance);
    evidence.superiority(elo, bounded, units)
}

/// Returns the share of the additional unit that counts against a statement: 1 for few units, 1/2 for many.
fn share_against(units: f64) -> f64 {
    0.5 + 0.5 / (1.0 + (units / FEW).powi(2))
}

/// Returns the likelihood of superiority of a player who won everything in this many units.
pub(crate) fn sweep_superiority(units: f64) -> f64 {
    Evidence { counts: [0.0, units, 0.0, 0.0, 0.0], kinds: 2 }.superiority(1.0, [true; 2], units)
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
        near(data.compare().map(|e| e.elo), -43.658, 0.001);

        let data = scores([34, 54, 63, 64, 75]);
        near(data.normalised_elo().map(|e| e.value), 57.94, 0.01);
        near(data.normalised_elo().and_then(|e| e.error()), 28.28, 0.28);
        near(data.compare().map(|e| e.elo), 55.58, 0.01);
        near(data.compare().and_then(|e| e.error()), 27.65, 0.27);

        let data = scores([30, 5872, 17820, 6261, 17]);
        near(data.compare().map(|e| e.elo), 2.10, 0.01);
        near(data.compare().and_then(|e| e.error()), 1.3, 0.05);
        near(data.normalised_elo().map(|e| e.value), 4.64, 0.01);
        near(data.normalised_elo().and_then(|e| e.error()), 2.8, 0.05);
    }

    /// A player compared with itself has no variance, nor have players whose results never vary.
    #[test]
    fn estimates_without_variance_are_certain() {
        for (elo, los) in [(-30.0, 0.0), (0.0, 0.5), (30.0, 1.0)] {
            for variance in [0.0, -1e-12] {
                let compared = compare_estimate(elo, variance, [true; 2]);
                near(Some(compared.los), los, 1e-9);
                near(compared.low, elo, 0.1);
                near(compared.high, elo, 0.1);
                near(Some(superiority_of_estimate(elo, variance, [true; 2])), los, 1e-9);
            }
        }
    }

    #[test]
    fn single_games() {
        let data = Scores::from(Games { wins: 60, draws: 30, losses: 10 });
        near(data.mean(), 0.75, 1e-15);
        near(data.compare().map(|e| e.elo), 190.85, 0.005);
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
        let (paired, single) = (paired.error().unwrap(), single.error().unwrap());
        assert!((paired / single - 1.0).abs() < 1e-4, "{paired} {single}");
    }

    #[test]
    fn degenerate_scores_are_finite_or_none() {
        let empty = scores([0; 5]);
        assert_eq!((empty.mean(), empty.variance(), empty.superiority()), (None, None, None));
        assert_eq!((empty.compare(), empty.normalised_elo()), (None, None));
        for kind in 0..5 {
            let mut counts = [0; 5];
            counts[kind] = 7;
            let data = scores(counts);
            let comparison = data.compare().unwrap();
            assert!(comparison.elo.is_finite() && comparison.los > 0.0 && comparison.los < 1.0);
            assert_eq!((comparison.low.is_none(), comparison.high.is_none()), (kind == 0, kind == 4));
            assert_eq!(data.normalised_elo(), None);
        }
        let many = scores([0, 0, 0, 0, 1_000_000_000]).compare().unwrap();
        assert_eq!((many.los, many.high), (1.0, None));
        assert!(many.elo >= many.low.unwrap() && many.elo.is_finite());
    }

    /// A win and a draw are no proof, and four wins are not either; the size of the lead is never below 0 for the
    /// winner.
    #[test]
    fn few_bouts_do_not_prove_strength() {
        let one = scores([0, 0, 0, 1, 0]).compare().unwrap();
        assert!(one.los < 0.75 && one.elo > 0.0 && !one.enough, "{one:?}");
        let two = scores([0, 0, 0, 0, 2]).compare().unwrap();
        assert!(two.los > 0.6 && two.los < 0.9 && two.elo > 100.0 && two.low.unwrap() < 0.0, "{two:?}");
        assert_eq!(two.sentence("a", "b"), "too few results to call a or b stronger");
        let enough = (1..20).find(|&units| sweep_superiority(f64::from(units)) >= SURE).unwrap();
        assert_eq!(enough, 6, "half to the power of five is more than 2.5 %");
        let six = scores([0, 0, 0, 0, 6]).compare().unwrap();
        assert!(six.enough && six.low.unwrap() > 0.0 && six.sentence("a", "b") == "a is stronger than b");
    }

    /// The interval excludes 0 exactly if the likelihood of superiority is 97.5 % or more, the estimate lies within it,
    /// and more points give a larger estimate.
    #[test]
    fn interval_superiority_and_estimate_agree() {
        let mut compared = 0;
        for units in 1..=7u64 {
            let mut by_points: Vec<(u64, f64)> = Vec::new();
            for first in 0..=units {
                for second in 0..=units - first {
                    for third in 0..=units - first - second {
                        for fourth in 0..=units - first - second - third {
                            let last = units - first - second - third - fourth;
                            let counts = [first, second, third, fourth, last];
                            let data = scores(counts);
                            let Comparison { elo, low, high, los, .. } = data.compare().unwrap();
                            assert_eq!(los >= SURE, low.is_some_and(|low| low >= 0.0), "{counts:?}");
                            assert_eq!(los <= 1.0 - SURE, high.is_some_and(|high| high <= 0.0), "{counts:?}");
                            assert!(low.is_none_or(|low| low < elo) && high.is_none_or(|high| elo < high));
                            assert!(elo * (los - 0.5) >= 0.0, "{counts:?}");
                            if let Some(normalised) = data.normalised_elo() {
                                assert_eq!(normalised.low >= Some(0.0), los >= SURE, "{counts:?}");
                            }
                            by_points.push((second + 2 * third + 3 * fourth + 4 * last, elo));
                            compared += 1;
                        }
                    }
                }
            }
            by_points.sort_by_key(|point| point.0);
            assert!(by_points.windows(2).all(|pair| pair[0].1 <= pair[1].1 + 1e-9), "{by_points:?}");
        }
        assert!(compared > 700);
    }

    /// The two players' views have opposite signs.
    #[test]
    fn views_are_opposite() {
        for data in [[5u64, 17, 20, 9, 2], [0, 0, 0, 1, 3], [0, 1, 0, 0, 1]] {
            let mut reversed = data;
            reversed.reverse();
            let (one, other) =
                (scores(data).compare().unwrap(), scores(reversed).compare().unwrap().reversed());
            assert!((one.elo - other.elo).abs() < 1e-5 && (one.los - other.los).abs() < 1e-9);
            for (one, other) in [(one.low, other.low), (one.high, other.high)] {
                assert_eq!(one.is_some(), other.is_some());
                assert!(
                    one.zip(other).is_none_or(|(one, other)| (one - other).abs() < 1e-5),
                    "{one:?} {other:?}"
                );
            }
        }
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
