//! What is promised of intervals and tests, by simulation: fixed seeds, and bounds of three standard errors.

use std::num::NonZeroUsize;

use agon_stats::simulate::{World, coverage_of_pairs, coverage_of_pool, sprt_error_rates};
use agon_stats::sprt::{Bounds, Model};

fn threads() -> NonZeroUsize {
    NonZeroUsize::new(2).expect("two")
}

#[test]
fn scratch() {
    for bouts in [5, 10, 20, 50, 100, 400] {
        let c = coverage_of_pairs(&World::ladder(2, -60.0), bouts, 10000, 1);
        println!("{bouts} {} {}", c.method, c.share());
        for c in coverage_of_pool(
            &World::ladder(4, 60.0),
            bouts,
            1000,
            NonZeroUsize::new(400).unwrap(),
            1,
            threads(),
        ) {
            println!("{bouts} {} {} of {}", c.method, c.share(), c.intervals);
        }
    }
    for model in [Model::Logistic, Model::Normalised] {
        let bounds = Bounds::new(0.0, 30.0, model, 0.05, 0.05).unwrap();
        println!("{:?}", sprt_error_rates(&World::ladder(2, 0.0), &bounds, 2000, 100_000, 1, threads()));
    }
}
