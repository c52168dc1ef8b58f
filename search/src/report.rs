//! Results of a search and of its iterations.

use std::time::Duration;

use crate::budget::Budget;
use crate::counters::Counters;
use crate::value::Value;

/// A completed iteration of deepening. Nodes and time are those of this iteration alone.
#[derive(Clone, PartialEq, Debug)]
pub struct Iteration<M> {
    /// The depth.
    pub depth: u32,
    /// The greatest distance from the root so far.
    pub selective_depth: u32,
    /// Nodes entered.
    pub nodes: u64,
    /// Time taken.
    pub time: Duration,
    /// The principal variation.
    pub line: Vec<M>,
    /// The value.
    pub value: Value,
}

/// The result of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchResult<M> {
    /// The move to play.
    pub best: M,
    /// The value of the position for the seat to move.
    pub value: Value,
    /// The last completed depth; 0 if no iteration was completed.
    pub depth: u32,
    /// The greatest distance from the root.
    pub selective_depth: u32,
    /// The counters.
    pub counters: Counters,
    /// The principal variation; begins with `best`.
    pub line: Vec<M>,
    /// The completed iterations.
    pub iterations: Vec<Iteration<M>>,
    /// Time taken.
    pub time: Duration,
    /// The time beyond the limit.
    pub overshoot: Duration,
}

impl<M: Copy> SearchResult<M> {
    /// Creates a result without iterations, timed by `budget`, and counts the plies of its proof.
    pub(crate) fn without_iterations(
        best: M,
        value: Value,
        counters: Counters,
        budget: &Budget,
    ) -> SearchResult<M> {
        // One reading of the clock, so that the overshoot is a part of the time.
        let time = budget.elapsed();
        let proven_plies = value.proof.map_or(0, |proof| u64::from(proof.plies()));
        SearchResult {
            best,
            value,
            depth: 0,
            selective_depth: 0,
            counters: Counters { proven_plies, ..counters },
            line: vec![best],
            iterations: Vec::new(),
            time,
            overshoot: budget.overshoot(time),
        }
    }
}
