//! Coverage of 95 % intervals, and how often a verdict is wrong.
//!
//! With two players and few bouts both are exact: all possible results are enumerated.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use crate::world::World;
use agon_stats::comparison::{Comparison, Verdict};
use agon_stats::distribution::seeded;
use agon_stats::elo;
use agon_stats::pairs::{Pairs, Scores};
use agon_stats::parallel;
use agon_stats::pool::{Fit, Options};

/// The coverage of one kind of interval.
#[derive(Clone, PartialEq, Debug)]
pub struct Coverage {
    /// The kind of interval.
    pub method: String,
    /// Bouts per pairing.
    pub bouts: u64,
    /// The number of intervals: in a pool, one for each pair of players of a simulation.
    pub intervals: u64,
    /// The number of independent simulations.
    pub simulations: u64,
    /// The number of intervals that contained the truth.
    pub covered: u64,
}

impl Coverage {
    /// Returns the share of intervals that contained the truth.
    pub fn share(&self) -> f64 {
        self.covered as f64 / self.intervals.max(1) as f64
    }

    /// Returns the standard error of the share at 95 %, with simulations as independent units. It is an upper bound
    /// for pools, which have several intervals per simulation.
    pub fn standard_error(&self) -> f64 {
        (0.95 * 0.05 / self.simulations.max(1) as f64).sqrt()
    }
}

/// All results of a small number of bouts between two players.
#[derive(Clone, Debug)]
pub struct EveryResult {
    /// The counts of bouts by score, the logarithm of the number of orders in which they may occur, and what they say.
    results: Vec<([u64; 5], f64, Comparison)>,
}

impl EveryResult {
    /// Compares the players after each possible result of this many bouts.
    pub fn new(bouts: u64, threads: NonZeroUsize) -> EveryResult {
        let mut counts = Vec::new();
        for first in 0..=bouts {
            for second in 0..=bouts - first {
                for third in 0..=bouts - first - second {
                    for fourth in 0..=bouts - first - second - third {
                        counts.push([first, second, third, fourth, bouts - first - second - third - fourth]);
                    }
                }
            }
        }
        let factorial = |count: u64| (1..=count).map(|factor| (factor as f64).ln()).sum::<f64>();
        let results = parallel::map(counts.len() as u64, threads, |index| {
            let pairs = counts[index as usize];
            let orders = factorial(bouts) - pairs.into_iter().map(factorial).sum::<f64>();
            (pairs, orders, Scores::from(Pairs(pairs)).compare().expect("there are bouts"))
        });
        EveryResult { results }
    }

    /// Returns the probability of the results for which `holds`, given that of each score of a bout.
    fn probability(&self, scores: &[f64; 5], holds: impl Fn(&Comparison) -> bool) -> f64 {
        let log_probability = |pairs: &[u64; 5]| -> f64 {
            let occurred = pairs.iter().zip(scores).filter(|(count, _)| **count > 0);
            occurred.map(|(&count, probability)| count as f64 * probability.ln()).sum()
        };
        let held = self.results.iter().filter(|(.., comparison)| holds(comparison));
        held.fold(0.0, |sum, (pairs, orders, _)| sum + (orders + log_probability(pairs)).exp())
    }

    /// Returns how often the interval contains the true difference.
    pub fn coverage(&self, scores: &[f64; 5]) -> f64 {
        let truth = elo::difference(mean(scores));
        self.probability(scores, |comparison| contains((comparison.low, comparison.high), truth))
    }

    /// Returns how often a player is called stronger who is not.
    pub fn wrong_verdicts(&self, scores: &[f64; 5]) -> f64 {
        let truth = mean(scores) - 0.5;
        self.probability(scores, |comparison| match comparison.verdict() {
            Verdict::Stronger => truth <= 1e-12,
            Verdict::Weaker => truth >= -1e-12,
            _ => false,
        })
    }

    /// Returns how often the likelihood of superiority is `los` or more.
    pub fn reaches(&self, scores: &[f64; 5], los: f64) -> f64 {
        self.probability(scores, |comparison| comparison.los >= los)
    }
}

/// Returns the expected score of a bout.
fn mean(scores: &[f64; 5]) -> f64 {
    scores.iter().zip(0..).map(|(probability, quarters)| probability * f64::from(quarters) / 4.0).sum()
}

/// Returns in how many of `tunes` tunes without effect a validation of `bouts` bouts calls the tuned player stronger.
pub fn null_claims(world: &World, bouts: u64, tunes: u64, seed: u64) -> u64 {
    let stronger = |pairs: Pairs| {
        Scores::from(pairs).compare().is_some_and(|compared| compared.verdict() == Verdict::Stronger)
    };
    // Comparisons of few bouts are slow, but few are different.
    let mut known: HashMap<[u64; 5], bool> = HashMap::new();
    let claims = (0..tunes).filter(|tune| {
        let pairs = world.pairs(0, 1, bouts, &mut seeded(seed, *tune));
        *known.entry(pairs.0).or_insert_with(|| stronger(pairs))
    });
    claims.count() as u64
}

/// Measures the coverage of two players' Elo difference from pairs.
pub fn coverage_of_pairs(world: &World, bouts: u64, simulations: u64, seed: u64) -> Coverage {
    let truth = elo::difference(world.score(0, 1));
    let mut coverage = Coverage { method: "pairs".to_string(), bouts, intervals: 0, simulations, covered: 0 };
    for simulation in 0..simulations {
        let pairs = world.pairs(0, 1, bouts, &mut seeded(seed, simulation));
        if let Some(estimate) = Scores::from(pairs).compare() {
            coverage.intervals += 1;
            coverage.covered += u64::from(contains((estimate.low, estimate.high), truth));
        }
    }
    coverage
}

/// Measures the coverage of pool ratings, without those whose interval is not estimable.
///
/// The truth is the fit of infinitely many results: unbalanced openings bend the curve of expected scores a little,
/// so that fitted ratings are not the world's strengths.
pub fn coverage_of_pool(
    world: &World,
    bouts: u64,
    simulations: u64,
    seed: u64,
    threads: NonZeroUsize,
) -> Coverage {
    let options = Options::default();
    let rate = |results| Fit::new(&results, &options).expect("default options fit every pool");
    let endless = rate(world.expected_tournament(1e12));
    let counts = parallel::map(simulations, threads, |simulation| {
        let fit = rate(world.tournament(bouts, &mut seeded(seed, simulation)));
        let (mut intervals, mut covered) = (0, 0);
        let uncertainty = fit.uncertainty();
        for one in 0..world.ratings.len() {
            for other in 0..one {
                let Some(comparison) = uncertainty.compare(&fit, one, other) else { continue };
                let truth = endless.ratings()[one] - endless.ratings()[other];
                intervals += 1;
                covered += u64::from(contains((comparison.low, comparison.high), truth));
            }
        }
        (intervals, covered)
    });
    let (intervals, covered) =
        (counts.iter().map(|both| both.0).sum(), counts.iter().map(|both| both.1).sum());
    Coverage { method: format!("pool of {}", world.ratings.len()), bouts, intervals, simulations, covered }
}

/// Returns whether an interval, whose ends may be open, contains a value.
fn contains((low, high): (Option<f64>, Option<f64>), value: f64) -> bool {
    low.is_none_or(|low| low <= value) && high.is_none_or(|high| value <= high)
}
