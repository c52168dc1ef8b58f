//! Iterative deepening: depth after depth until the budget is exhausted.
//!
//! The last completed iteration decides. A better move from the unfinished iteration replaces its move only if that
//! move was searched again there, so that the two were compared at the same depth.

use agon_games::Game;

use crate::budget::{Budget, BudgetExhausted, Limit};
use crate::effort::Effort;
use crate::report::{Iteration, SearchResult};
use crate::value::Value;

/// A search to a fixed depth, repeated by [`deepen`].
pub trait FixedDepthSearch<G: Game> {
    /// Returns the budget and counters of the current search.
    fn effort(&mut self) -> &mut Effort;

    /// Discards everything learnt in earlier games.
    fn new_game(&mut self) {}

    /// Prepares a new search from `root` with this budget.
    fn start(&mut self, root: &G, budget: Budget);

    /// Searches `root` to `depth`, at least 1.
    fn iterate(&mut self, root: &mut G, depth: u32) -> Result<Value, BudgetExhausted>;

    /// Returns the best line that the current iteration has found so far.
    fn line(&self) -> &[G::Move];

    /// Returns whether the current iteration has searched this root move.
    fn has_searched(&self, mv: G::Move) -> bool;
}

/// Searches `root` deeper and deeper. `report` receives each completed iteration. Precondition: the game is not over.
pub fn deepen<G: Game, S: FixedDepthSearch<G>>(
    search: &mut S,
    root: &G,
    budget: Budget,
    report: &mut dyn FnMut(&Iteration<G::Move>),
) -> SearchResult<G::Move> {
    let mut position = root.clone();
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let timed = matches!(budget.limit(), Limit::Wall(_) | Limit::Cpu(_) | Limit::Clock { .. });
    // No line is longer than the game.
    let deepest = budget.depth().min(root.ply_bound());
    search.start(root, budget);

    // Without a completed iteration the first legal move is played.
    let mut best = moves[0];
    let mut line = vec![best];
    let mut value = Value { number: 0.0, proof: None };
    let mut iterations: Vec<Iteration<G::Move>> = Vec::new();
    for depth in 1..=deepest {
        let (nodes, time) = (search.effort().counters.nodes, search.effort().budget.elapsed());
        search.effort().hit_horizon = false;
        let outcome = search.iterate(&mut position, depth);
        let finished = outcome.is_ok();
        if let Some(&found) = search.line().first()
            && (finished || iterations.is_empty() || (found != best && search.has_searched(best)))
        {
            best = found;
            line.clear();
            line.extend_from_slice(search.line());
        }
        let Ok(found) = outcome else { break };
        value = found;
        let effort = search.effort();
        let iteration = Iteration {
            depth,
            selective_depth: effort.selective_depth,
            nodes: effort.counters.nodes - nodes,
            time: effort.budget.elapsed().saturating_sub(time),
            line: line.clone(),
            value,
        };
        report(&iteration);
        iterations.push(iteration);
        // More depth cannot change a proven result or a fully searched tree, and a forced move needs no more time.
        let is_final = value.proof.is_some() || !effort.hit_horizon || (timed && moves.len() == 1);
        // The receiver of the report may have interrupted the search.
        if is_final || effort.budget.is_interrupted() {
            break;
        }
    }
    let effort = search.effort();
    SearchResult {
        depth: iterations.last().map_or(0, |iteration| iteration.depth),
        selective_depth: effort.selective_depth,
        line,
        iterations,
        ..SearchResult::without_iterations(best, value, effort.counters, &effort.budget)
    }
}
