//! What a search tells of itself: counters, iterations, the answer.

use std::time::Duration;

use crate::value::Value;

/// What a search did, summed over its iterations.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Positions entered: root, leaves and quiescence included.
    pub nodes: u64,
    /// Static evaluations and ends.
    pub leaves: u64,
    /// Positions entered by quiescence search.
    pub quiescence_nodes: u64,
    /// Nodes left early because a move was too good.
    pub cutoffs: u64,
    /// Those of them where it was the first move.
    pub first_move_cutoffs: u64,
    /// Looks into the table.
    pub table_probes: u64,
    /// Looks that found the position.
    pub table_hits: u64,
    /// Entries written.
    pub table_stores: u64,
    /// Searches repeated with another window.
    pub researches: u64,
    /// Playouts or descents of a sampling search.
    pub simulations: u64,
    /// Nodes in the tree of a sampling search at its end.
    pub tree_nodes: u64,
    /// Plies played in playouts.
    pub playout_plies: u64,
    /// The greatest distance from the root.
    pub selective_depth: u32,
}

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
    /// What was done.
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
