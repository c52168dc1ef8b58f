//! A test whether a single rating per player suffices, against a free strength for each pairing.
//!
//! The statistic is twice the difference of the log-likelihoods. Its expectation under the ratings is the number of
//! pairings beyond a spanning tree of comparisons. Because the games of a bout are not independent, it is divided by
//! the mean, over pairings, of the variance of bouts relative to independent games (the first order correction of Rao
//! and Scott 1981 and 1984).

use nalgebra::DVector;

use super::fit::Fit;
use super::model::PairingTerms;
use super::newton::Parameters;
use super::results::GameCounts;
use super::sandwich::unit_gradients;
use crate::distribution::chi_square_tail;
use crate::elo::{LARGEST_DIFFERENCE, POINTS_PER_LOGIT};

/// The largest free strength, in log-odds: that of a score of 0.999.
const LARGEST: f64 = LARGEST_DIFFERENCE / POINTS_PER_LOGIT;

/// The mean number of units per pairing from which the likelihood ratio follows chi-square well enough.
const FEWEST_UNITS: f64 = 10.0;

/// The iteration limit of the free fit; a handful is usual.
const TURNS: usize = 50;

/// The result of the test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transitivity {
    /// Twice the difference of the log-likelihoods, as if all games were independent.
    pub likelihood_ratio: f64,
    /// The variance of bouts relative to independent games, which divides the ratio.
    pub overdispersion: f64,
    /// Degrees of freedom.
    pub degrees: usize,
    /// The probability of such a ratio if a single rating per player suffices; `None` without degrees of freedom and
    /// with fewer than ten units per pairing, where chi-square does not hold.
    pub p_value: Option<f64>,
}

impl Fit {
    /// Tests whether the pairings need more than a single rating per player, as in rock-paper-scissors. With a prior
    /// the ratings do not maximise the likelihood, and the ratio is larger accordingly.
    pub fn transitivity(&self) -> Transitivity {
        let connected =
            self.structure.components.iter().map(|component| component.members.len() - 1).sum::<usize>();
        // If each pairing always had the same seats, free differences absorb the first seat's advantage.
        let both_ways = |tally: &GameCounts| {
            [tally.first, tally.second].iter().all(|seat| seat.iter().sum::<f64>() > 0.0)
        };
        let taken_in = self.problem.advantage && !self.tallies.iter().any(both_ways);
        let degrees = self.results.pairings.len().saturating_sub(connected + usize::from(taken_in));
        let rated = summed(&self.differences(), &self.parameters, &self.tallies).value;
        let free = FreePairings::fit(self);
        let likelihood_ratio = (2.0 * (free.value - rated)).max(0.0);
        let overdispersion = self.overdispersion(&free);
        let units: u64 = self.results.pairings.iter().flat_map(|pairing| pairing.units).sum();
        let enough = units as f64 >= FEWEST_UNITS * self.results.pairings.len() as f64;
        let p_value = (degrees > 0 && enough)
            .then(|| chi_square_tail(likelihood_ratio / overdispersion, degrees as f64));
        Transitivity { likelihood_ratio, overdispersion, degrees, p_value }
    }

    /// Returns the rating difference of each pairing, in log-odds.
    fn differences(&self) -> Vec<f64> {
        let ratings = &self.parameters.ratings;
        self.problem.pairings.iter().map(|&(one, other)| ratings[one] - ratings[other]).collect()
    }

    /// Returns the variance of bouts about the free differences relative to independent games.
    fn overdispersion(&self, free: &FreePairings) -> f64 {
        let (mut sum, mut pairings) = (0.0, 0.0);
        for ((pairing, tally), &difference) in
            self.results.pairings.iter().zip(&self.tallies).zip(&free.differences)
        {
            let units: f64 = pairing.units.iter().sum::<u64>() as f64;
            let gradients = unit_gradients(difference, free.advantage, free.rate);
            let squares: f64 =
                gradients.iter().zip(&pairing.units).map(|(g, &count)| count as f64 * g[0] * g[0]).sum();
            let information = -PairingTerms::new(difference, free.advantage, free.rate, tally).expected[0][0];
            // Pairings at the limit have lost their variance.
            if units > 1.0 && difference.abs() < LARGEST && squares > 0.0 && information > 0.0 {
                sum += squares / information * units / (units - 1.0);
                pairings += 1.0;
            }
        }
        if pairings > 0.0 { sum / pairings } else { 1.0 }
    }
}

/// The maximum likelihood with a free difference for each pairing.
struct FreePairings {
    differences: Vec<f64>,
    advantage: f64,
    rate: f64,
    value: f64,
}

impl FreePairings {
    /// Fits alternately all differences and the shared parameters, which hardly depend on each other, so that few
    /// turns are needed.
    fn fit(fit: &Fit) -> Self {
        let tallies = &fit.tallies[..];
        let mut differences = fit.differences();
        differences.iter_mut().for_each(|difference| *difference = difference.clamp(-LARGEST, LARGEST));
        let mut shared = fit.parameters.clone();
        let mut value = summed(&differences, &shared, tallies).value;
        for _ in 0..TURNS {
            for (difference, tally) in differences.iter_mut().zip(tallies) {
                *difference = best_difference(*difference, &shared, tally);
            }
            let terms = summed(&differences, &shared, tallies);
            let mut step = DVector::zeros(fit.problem.players + 2);
            for (index, fitted) in [(1, fit.problem.advantage), (2, fit.problem.draws)] {
                if fitted && terms.expected[index][index] < 0.0 {
                    step[fit.problem.players + index - 1] =
                        -terms.gradient[index] / terms.expected[index][index];
                }
            }
            let next = shared.moved(&step);
            let gain = summed(&differences, &next, tallies).value - value;
            if gain < 1e-9 {
                break;
            }
            value += gain;
            shared = next;
        }
        let value = summed(&differences, &shared, tallies).value;
        FreePairings { differences, advantage: shared.advantage, rate: shared.draw_rate(), value }
    }
}

/// Returns the sum of the terms of all pairings.
fn summed(differences: &[f64], shared: &Parameters, tallies: &[GameCounts]) -> PairingTerms {
    let rate = shared.draw_rate();
    let mut sum = PairingTerms::default();
    for (&difference, tally) in differences.iter().zip(tallies) {
        let terms = PairingTerms::new(difference, shared.advantage, rate, tally);
        sum.value += terms.value;
        for i in 0..3 {
            sum.gradient[i] += terms.gradient[i];
            for j in 0..3 {
                sum.hessian[i][j] += terms.hessian[i][j];
                sum.expected[i][j] += terms.expected[i][j];
            }
        }
    }
    sum
}

/// Returns the most likely difference of one pairing, by Newton's method with bisection.
fn best_difference(start: f64, shared: &Parameters, tally: &GameCounts) -> f64 {
    let rate = shared.draw_rate();
    let (mut low, mut high) = (-LARGEST, LARGEST);
    let mut difference = start;
    for _ in 0..100 {
        let terms = PairingTerms::new(difference, shared.advantage, rate, tally);
        if terms.gradient[0] > 0.0 {
            low = difference;
        } else {
            high = difference;
        }
        let step = difference - terms.gradient[0] / terms.hessian[0][0];
        let next = if step > low && step < high { step } else { low + (high - low) / 2.0 };
        let change = (next - difference).abs();
        difference = next;
        if change < 1e-10 {
            break;
        }
    }
    difference
}
