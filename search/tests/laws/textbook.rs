//! Small trees from textbooks, and theorems about families of trees.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use agon_games::random::{below, mix, seeded};
use agon_search::clock::WallClock;
use agon_search::deepening::FixedDepthSearch;
use agon_search::duel::{Algorithm, Driver, DuelSearch, Options};
use agon_search::value::{INFINITY, UNIT};
use agon_search::{Budget, Limit, Score};

use crate::tree::{Listed, Seen, Uniform};

/// Returns a started search of a tree with given leaves, and a record of the leaves it evaluates.
fn prepare(
    widths: &[usize],
    values: &[Score],
    options: Options,
) -> (DuelSearch<Uniform, Listed>, Uniform, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let evaluator = Listed { values: values.to_vec(), seen: Arc::clone(&seen) };
    let budget = Budget::start(Limit::Depth(widths.len() as u32), Arc::new(WallClock::start()));
    let mut search = DuelSearch::new(options, evaluator);
    let root = Uniform::new(widths);
    search.start(&root, budget);
    (search, root, seen)
}

/// Searches a tree to its full depth and returns the value, the number of evaluations and the evaluated leaves.
fn search(widths: &[usize], values: &[Score], options: Options) -> (Score, usize, BTreeSet<usize>) {
    let (mut search, mut root, seen) = prepare(widths, values, options);
    let value = search.iterate(&mut root, widths.len() as u32).unwrap();
    let seen = seen.lock().unwrap();
    ((value.number * f64::from(UNIT)).round() as Score, seen.times, seen.leaves.clone())
}

fn plain(algorithm: Algorithm) -> Options {
    Options::plain(algorithm)
}

/// Returns options with a table that holds the whole tree.
fn with_memory(driver: Driver) -> Options {
    Options { table_mb: 4, ..Options::plain(Algorithm::Mtd(driver)) }
}

#[test]
fn textbook_trees_visit_stated_leaves() {
    let visits = |widths: &[usize], values: &[Score]| {
        let (value, times, _) = search(widths, values, plain(Algorithm::AlphaBeta));
        (value, times)
    };
    assert_eq!(visits(&[2, 2, 2], &[3, 4, 1, 2, 7, 8, 5, 6]), (6, 8));
    assert_eq!(visits(&[2, 2, 2], &[6, 5, 8, 7, 2, 1, 3, 4]), (6, 5));
    assert_eq!(visits(&[3, 3], &[3, 12, 8, 2, 4, 6, 14, 5, 2]), (3, 7));
}

#[test]
fn fail_soft_bound_lies_outside_window() {
    let (mut search, mut root, seen) = prepare(&[3, 2], &[4, 3, 2, 9, 7, 1], plain(Algorithm::AlphaBeta));
    assert_eq!(search.search_window(&mut root, 2, -INFINITY, INFINITY), Ok(3));
    seen.lock().unwrap().times = 0;
    assert_eq!(search.search_window(&mut root, 2, 9, 11), Ok(7));
    assert_eq!(seen.lock().unwrap().times, 3);
}

/// Returns the leaves of a uniform tree whose subtrees hold disjoint intervals of values. With `best_first` the best
/// child comes first everywhere; else the worst does: ascending at max, descending at min.
fn sorted_leaves(width: usize, depth: usize, best_first: bool) -> Vec<Score> {
    let leaf_value = |mut leaf: usize| {
        let digits: Vec<usize> = (0..depth)
            .map(|_| {
                let digit = leaf % width;
                leaf /= width;
                digit
            })
            .collect();
        // From the root down; max moves at even plies and wants large digits.
        digits.iter().rev().enumerate().fold(0, |value, (ply, &digit)| {
            let ascending = (ply % 2 == 0) != best_first;
            value * width + if ascending { digit } else { width - 1 - digit }
        }) as Score
    };
    (0..width.pow(depth as u32)).map(leaf_value).collect()
}

#[test]
fn leaf_counts_match_knuth_and_moore() {
    for width in 2..=5usize {
        for depth in 1..=6usize {
            let widths = vec![width; depth];
            let (_, times, _) =
                search(&widths, &sorted_leaves(width, depth, true), plain(Algorithm::AlphaBeta));
            let minimal = width.pow(depth.div_ceil(2) as u32) + width.pow((depth / 2) as u32) - 1;
            assert_eq!(times, minimal, "best first, width {width}, depth {depth}");
            let (_, times, _) =
                search(&widths, &sorted_leaves(width, depth, false), plain(Algorithm::AlphaBeta));
            assert_eq!(times, width.pow(depth as u32), "worst first, width {width}, depth {depth}");
        }
    }
}

#[test]
fn dominated_searches_visit_only_alpha_beta_leaves() {
    let mut checked = 0;
    for seed in 0..400 {
        let mut random = seeded(mix(77, seed));
        let depth = 1 + below(&mut random, 6);
        let widths: Vec<usize> = (0..depth).map(|_| 1 + below(&mut random, 4)).collect();
        let leaves: usize = widths.iter().product();
        let spread = if seed % 2 == 0 { 10 } else { 10_000 };
        let values: Vec<Score> = (0..leaves).map(|_| below(&mut random, spread) as Score).collect();
        let (value, _, of_alpha_beta) = search(&widths, &values, plain(Algorithm::AlphaBeta));
        let others = [plain(Algorithm::Pvs), with_memory(Driver::Sss), with_memory(Driver::Dual)];
        for options in others {
            let (same, _, leaves) = search(&widths, &values, options);
            assert_eq!(same, value, "seed {seed}, {:?}", options.algorithm);
            assert!(
                leaves.is_subset(&of_alpha_beta),
                "seed {seed}, {:?}, widths {widths:?}",
                options.algorithm
            );
            checked += 1;
        }
    }
    println!("{checked} trees");
}
