//! What is promised of intervals and tests, by simulation: fixed seeds, and bounds of three standard errors.

use std::num::NonZeroUsize;

use agon_stats::simulate::{Coverage, World, coverage_of_pairs, coverage_of_pool, sprt_error_rates};
use agon_stats::sprt::{Bounds, Model};

fn count(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).expect("positive")
}

/// Worlds with draws, an advantage of the first seat and lopsided openings; without any of them; and with mostly draws.
fn worlds(players: usize, step: f64) -> [World; 3] {
    let ladder = World::ladder(players, step);
    let plain = World { seat_advantage: 0.0, draw_rate: 0.0, openings: vec![0.0], ..ladder.clone() };
    let drawish = World { draw_rate: 0.7, ..ladder.clone() };
    [ladder, plain, drawish]
}

/// Between 94 and 96 %, as far as the simulations can tell.
#[track_caller]
fn assert_covers(coverage: &Coverage) {
    let spare = 3.0 * coverage.standard_error();
    let share = coverage.share();
    assert!(share > 0.94 - spare && share < 0.96 + spare, "{coverage:?}: {share}");
}

#[test]
fn intervals_of_pairs_contain_the_truth() {
    for world in worlds(2, -60.0) {
        for bouts in [50, 200, 1000] {
            assert_covers(&coverage_of_pairs(&world, bouts, 3000, 1));
        }
        // Few bouts are few: the interval is honest about most, not about all of what it does not know.
        assert!(coverage_of_pairs(&world, 10, 3000, 1).share() > 0.85);
    }
}

#[test]
fn intervals_of_pools_contain_the_truth() {
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
fn tests_err_as_rarely_as_promised() {
    for world in worlds(2, 0.0) {
        for model in [Model::Logistic, Model::Normalised] {
            let bounds = Bounds::new(0.0, 40.0, model, 0.05, 0.1).expect("bounds");
            for errors in sprt_error_rates(&world, &bounds, 500, 20_000, 1, count(2)) {
                assert_eq!(errors.unfinished, 0);
                let most = errors.promised + 3.0 * errors.standard_error();
                assert!(errors.rate() <= most, "{model:?} {errors:?}");
                // A test that never errs is not the one that was asked for.
                assert!(errors.rate() >= errors.promised / 4.0, "{model:?} {errors:?}");
            }
        }
    }
}
