//! Error rates of sequential tests.

use std::num::NonZeroUsize;

use crate::world::World;
use agon_stats::distribution::seeded;
use agon_stats::elo::{NORMALISED_UNIT, difference};
use agon_stats::parallel;
use agon_stats::sprt::{Bounds, BoutResult, Model, SequentialTest, Verdict};

/// The error rate of a test whose hypothesis is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SprtErrors {
    /// The true hypothesis.
    pub truth: Verdict,
    /// The promised error rate.
    pub promised: f64,
    /// The number of tests.
    pub tests: u64,
    /// Tests that accepted the other hypothesis.
    pub errors: u64,
    /// Tests without a decision at the maximum length.
    pub unfinished: u64,
    /// The mean length in bouts.
    pub mean_bouts: f64,
}

impl SprtErrors {
    /// Returns the share of tests that erred.
    pub fn rate(&self) -> f64 {
        self.errors as f64 / self.tests.max(1) as f64
    }

    /// Returns the standard error of the promised rate.
    pub fn standard_error(&self) -> f64 {
        (self.promised * (1.0 - self.promised) / self.tests.max(1) as f64).sqrt()
    }
}

/// Runs tests on simulated bouts between two players like those of `world`, once with `elo0` true and once with
/// `elo1` true. A test is unfinished after `longest` bouts.
pub fn sprt_error_rates(
    world: &World,
    bounds: &Bounds,
    tests: u64,
    longest: u64,
    seed: u64,
    threads: NonZeroUsize,
) -> [SprtErrors; 2] {
    let truths = [(Verdict::H0, bounds.elo0(), bounds.alpha()), (Verdict::H1, bounds.elo1(), bounds.beta())];
    truths.map(|(truth, elo, promised)| {
        let world = with_difference(world, bounds.model(), elo);
        let stream = |test: u64| 2 * test + u64::from(truth == Verdict::H1);
        let ended = parallel::map(tests, threads, |test| {
            let mut fold = SequentialTest::new(*bounds);
            for (index, pair) in (0..longest).zip(world.bouts(0, 1, seeded(seed, stream(test)))) {
                let decision = fold.record(index, BoutResult::Pair(pair)).expect("each bout comes once");
                if let Some(decision) = decision {
                    return (decision.verdict, index + 1);
                }
            }
            (Verdict::Continue, longest)
        });
        let count = |wanted: fn(Verdict, Verdict) -> bool| {
            ended.iter().filter(|(verdict, _)| wanted(*verdict, truth)).count() as u64
        };
        SprtErrors {
            truth,
            promised,
            tests,
            errors: count(|verdict, truth| verdict != truth && verdict != Verdict::Continue),
            unfinished: count(|verdict, _| verdict == Verdict::Continue),
            mean_bouts: ended.iter().map(|(_, bouts)| *bouts as f64).sum::<f64>() / tests.max(1) as f64,
        }
    })
}

/// Returns a world of two players whose bouts have exactly this difference in the test's model, by bisection.
/// Openings and draws make it differ from the difference of strengths.
fn with_difference(world: &World, model: Model, elo: f64) -> World {
    let (mut low, mut high) = (-2000.0, 2000.0);
    let at = |strength: f64| World { ratings: vec![strength, 0.0], ..world.clone() };
    for _ in 0..100 {
        let middle = low + (high - low) / 2.0;
        if model_difference(&at(middle), model) < elo {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(low)
}

/// Returns the difference of the first two players in a model.
fn model_difference(world: &World, model: Model) -> f64 {
    let mean = world.score(0, 1);
    match model {
        Model::Logistic => difference(mean),
        Model::Normalised => {
            let probabilities = world.bout_probabilities(0, 1).into_iter().enumerate();
            let square = |kind: usize| ((kind / 3 + kind % 3) as f64 / 4.0 - mean).powi(2);
            let variance: f64 = probabilities.map(|(kind, probability)| probability * square(kind)).sum();
            (mean - 0.5) / (2.0 * variance).sqrt() * NORMALISED_UNIT
        }
    }
}
