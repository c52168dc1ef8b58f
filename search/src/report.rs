//! What a search reports: its iterations and its answer.

use std::time::Duration;

use crate::counters::Counters;
use crate::value::Value;

/// A completed iteration of deepening. Nodes and time are those of this iteration alone.
#[derive(Clone, PartialEq, Debug)]
pub struct Iteration<M> {
    /// Its depth.
    pub depth: u32,
    /// Nodes entered.
    pub nodes: u64,
    /// Time taken.
    pub time: Duration,
    /// The principal variation: the best move and what is expected to follow it.
    pub line: Vec<M>,
    /// The value.
    pub value: Value,
}

/// The answer of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer<M> {
    /// The move to play.
    pub best: M,
    /// The value of the position for the seat that moves.
    pub value: Value,
    /// The last completed depth; 0 where there is none.
    pub depth: u32,
    /// The greatest distance from the root.
    pub selective_depth: u32,
    /// What was counted.
    pub counters: Counters,
    /// The principal variation, from the root; it begins with `best`.
    pub line: Vec<M>,
    /// The completed iterations.
    pub iterations: Vec<Iteration<M>>,
    /// The time taken.
    pub time: Duration,
    /// The part of it beyond the limit.
    pub overshoot: Duration,
}
