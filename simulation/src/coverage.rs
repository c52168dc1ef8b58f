//! Coverage of 95 % intervals.

use std::num::NonZeroUsize;

use crate::world::World;
use agon_stats::distribution::seeded;
use agon_stats::elo;
use agon_stats::pairs::Scores;
use agon_stats::parallel;
use agon_stats::pool::{Fit, Options, Uncertainty};

/// The coverage of one kind of interval.
#[derive(Clone, PartialEq, Debug)]
pub struct Coverage {
    /// The kind of interval.
    pub method: &'static str,
    /// Bouts per pairing.
    pub bouts: u64,
    /// The number of intervals: in a pool, one for each rated player of a simulation.
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

/// Measures the coverage of two players' Elo difference from pairs.
pub fn coverage_of_pairs(world: &World, bouts: u64, simulations: u64, seed: u64) -> Coverage {
    let truth = elo::difference(world.score(0, 1));
    let mut coverage = Coverage { method: "pairs", bouts, intervals: 0, simulations, covered: 0 };
    for simulation in 0..simulations {
        let pairs = world.pairs(0, 1, bouts, &mut seeded(seed, simulation));
        if let Some(estimate) = Scores::from(pairs).elo() {
            coverage.intervals += 1;
            coverage.covered += u64::from(estimate.low <= truth && truth <= estimate.high);
        }
    }
    coverage
}

/// Measures the coverage of pool ratings by the sandwich and by the bootstrap, over the same simulated tournaments,
/// without bounds.
///
/// The truth is the fit of infinitely many results: unbalanced openings bend the curve of expected scores a little,
/// so that fitted ratings are not the world's strengths.
pub fn coverage_of_pool(
    world: &World,
    bouts: u64,
    simulations: u64,
    replicas: NonZeroUsize,
    seed: u64,
    threads: NonZeroUsize,
) -> [Coverage; 2] {
    let options = Options::default();
    let rate = |results| Fit::new(&results, &options).expect("default options fit every pool");
    let endless = rate(world.expected_tournament(1e12));
    let truth = endless.ratings();
    let counts = parallel::map(simulations, threads, |simulation| {
        let fit = rate(world.tournament(bouts, &mut seeded(seed, simulation)));
        let resampled = fit.bootstrap(replicas, seed ^ simulation.rotate_left(40), NonZeroUsize::MIN);
        [fit.sandwich(), resampled].map(|uncertainty| counted(&fit, &uncertainty, truth))
    });
    let row = |index: usize, method| Coverage {
        method,
        bouts,
        intervals: counts.iter().map(|both| both[index].0).sum(),
        simulations,
        covered: counts.iter().map(|both| both[index].1).sum(),
    };
    [row(0, "pool, sandwich"), row(1, "pool, bootstrap")]
}

/// Returns the number of intervals and the number that contain the truth.
fn counted(fit: &Fit, uncertainty: &Uncertainty, truth: &[f64]) -> (u64, u64) {
    let estimated = fit.bounds().iter().enumerate().filter(|(_, bound)| bound.is_none());
    estimated.fold((0, 0), |(intervals, covered), (player, _)| {
        let inside = uncertainty.low[player] <= truth[player] && truth[player] <= uncertainty.high[player];
        (intervals + 1, covered + u64::from(inside))
    })
}
