//! Promised coverage and error rates, by simulation: fixed seeds, and bounds of three standard errors.

use std::num::NonZeroUsize;

use agon_simulation::coverage::{Coverage, EveryResult, coverage_of_pairs, coverage_of_pool, null_claims};
use agon_simulation::sequential::sprt_error_rates;
use agon_simulation::world::World;
use agon_stats::sprt::{Bounds, Model};

fn count(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).expect("positive")
}

/// Returns worlds with draws, an advantage of the first seat and unbalanced openings; without any of them; and with
/// mostly draws.
fn worlds(players: usize, step: f64) -> [World; 3] {
    let ladder = World::ladder(players, step);
    let plain = World { seat_advantage: 0.0, draw_rate: 0.0, openings: vec![0.0], ..ladder.clone() };
    let drawish = World { draw_rate: 0.7, ..ladder.clone() };
    [ladder, plain, drawish]
}

/// Checks that coverage is between 94 and 96 %, within the simulation's error.
#[track_caller]
fn assert_covers(coverage: &Coverage) {
    let spare = 3.0 * coverage.standard_error();
    let share = coverage.share();
    assert!(share > 0.94 - spare && share < 0.96 + spare, "{coverage:?}: {share}");
}

#[test]
fn pair_intervals_cover_truth() {
    for world in worlds(2, -60.0) {
        for bouts in [50, 200, 1000] {
            assert_covers(&coverage_of_pairs(&world, bouts, 3000, 1));
        }
    }
}

/// From 1 to 12 bouts, at scores from 50 to 100 %, and even if both games of a bout always end alike, intervals
/// contain the truth in at least 93 % of the cases, and at most 5 % of equal players are called different.
#[test]
fn few_bouts_are_not_certain() {
    for bouts in [1, 2, 3, 4, 5, 6, 8, 10, 12] {
        let every = EveryResult::new(bouts, count(2));
        for score in [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.999] {
            let alike = [1.0 - score, 0.0, 0.0, 0.0, score];
            let independent = worlds(2, 0.0).map(|world| world.pair_probabilities(score));
            for scores in independent.into_iter().chain([alike]) {
                let coverage = every.coverage(&scores);
                assert!(coverage > 0.93, "{bouts} bouts at {score}: {coverage} {scores:?}");
            }
        }
        for world in worlds(2, 0.0) {
            let equal = world.pair_probabilities(0.5);
            assert!(every.wrong_verdicts(&equal) <= 0.05, "{bouts}");
            for los in [0.6, 0.8, 0.9, 0.95, 0.975, 0.99] {
                assert!(every.reaches(&equal, los) <= 1.0 - los + 0.01, "{bouts} {los}");
            }
        }
        assert_eq!(every.coverage(&[0.0, 0.0, 0.0, 0.0, 1.0]), 1.0);
    }
}

/// Whatever the number of validation bouts, at most 2.5 % of the tunes that change nothing claim a gain.
#[test]
fn tunes_without_effect_rarely_claim_a_gain() {
    let tunes = 400;
    for world in worlds(2, 0.0) {
        for bouts in [1, 2, 3, 5, 6, 7, 8, 50, 1000] {
            let claims = null_claims(&world, bouts, tunes, 3) as f64 / tunes as f64;
            let spare = 3.0 * (0.025 * 0.975 / tunes as f64).sqrt();
            assert!(claims <= 0.025 + spare, "{bouts} bouts: {claims}");
        }
    }
}

#[test]
fn pool_intervals_cover_truth() {
    for world in worlds(4, 60.0) {
        assert_covers(&coverage_of_pool(&world, 50, 1000, 1, count(2)));
    }
    // With few bouts they are too wide rather than too narrow.
    for world in worlds(3, 60.0) {
        for bouts in [2, 3, 5, 10, 20] {
            let coverage = coverage_of_pool(&world, bouts, 1000, 2, count(2));
            assert!(
                coverage.intervals == 3000 && coverage.share() > 0.93,
                "{coverage:?}: {}",
                coverage.share()
            );
        }
    }
}

#[test]
fn sequential_tests_keep_error_rates() {
    for world in worlds(2, 0.0) {
        for model in [Model::Logistic, Model::Normalised] {
            let bounds = Bounds::new(0.0, 40.0, model, 0.05, 0.1).expect("bounds");
            for errors in sprt_error_rates(&world, &bounds, 500, 20_000, 1, count(2)) {
                assert_eq!(errors.unfinished, 0);
                let most = errors.promised + 3.0 * errors.standard_error();
                assert!(errors.rate() <= most, "{model:?} {errors:?}");
                // A test that hardly ever errs is longer than it needs to be.
                assert!(errors.rate() >= errors.promised / 4.0, "{model:?} {errors:?}");
            }
        }
    }
}
