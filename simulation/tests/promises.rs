//! Promised coverage and error rates, by simulation: fixed seeds, and bounds of three standard errors.

use std::num::NonZeroUsize;

use agon_simulation::coverage::{Coverage, coverage_of_pairs, coverage_of_pool};
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
        // With few bouts the interval is somewhat too narrow.
        assert!(coverage_of_pairs(&world, 10, 3000, 1).share() > 0.85);
    }
}

#[test]
fn pool_intervals_cover_truth() {
    for world in worlds(4, 60.0) {
        for coverage in coverage_of_pool(&world, 50, 300, count(200), 1, count(2)) {
            assert_covers(&coverage);
        }
        for coverage in coverage_of_pool(&world, 10, 200, count(200), 2, count(2)) {
            assert!(coverage.share() > 0.9, "{coverage:?}");
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
