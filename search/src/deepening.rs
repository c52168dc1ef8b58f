//! Iterative deepening: depth after depth until the budget is spent.
//!
//! The last completed iteration answers. A better move of the unfinished iteration replaces it only when the answer's
//! own move has been searched again in that iteration, so that the two were compared at the same depth.

use agon_games::Game;

use crate::budget::{Budget, BudgetExhausted, Limit};
use crate::effort::Effort;
use crate::report::{Answer, Iteration};
use crate::value::Value;

/// A search to a fixed depth, which deepening repeats.
pub trait Iterate<G: Game> {
    /// The budget and counters of the search under way.
    fn effort(&mut self) -> &mut Effort;

    /// Forgets everything that was learnt in earlier games.
    fn forget(&mut self);

    /// A new search with this budget begins at `root`.
    fn begin(&mut self, root: &G, budget: Budget);

    /// Searches `root` to `depth`, at least 1.
    fn iterate(&mut self, root: &mut G, depth: u32) -> Result<Value, BudgetExhausted>;

    /// The best line found by the current iteration so far.
    fn line(&self) -> &[G::Move];

    /// Whether this root move has been searched in the current iteration.
    fn searched(&self, mv: G::Move) -> bool;
}

/// Searches `root` deeper and deeper. `report` sees each completed iteration. Precondition: the game is not over.
pub fn deepen<G: Game, S: Iterate<G>>(
    search: &mut S,
    root: &G,
    budget: Budget,
    report: &mut dyn FnMut(&Iteration<G::Move>),
) -> Answer<G::Move> {
    let mut position = root.clone();
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let timed = matches!(budget.limit(), Limit::Wall(_) | Limit::Cpu(_) | Limit::Clock { .. });
    // No line is longer than the game.
    let deepest = budget.depth().min(root.ply_bound());
    search.begin(root, budget);

    // Without a completed iteration the first legal move answers.
    let mut best = moves[0];
    let mut line = vec![best];
    let mut value = Value { number: 0.0, proof: None };
    let mut iterations: Vec<Iteration<G::Move>> = Vec::new();
    for depth in 1..=deepest {
        let (nodes, time) = (search.effort().counters.nodes, search.effort().budget.elapsed());
        search.effort().horizon = false;
        let outcome = search.iterate(&mut position, depth);
        let finished = outcome.is_ok();
        if let Some(&found) = search.line().first()
            && (finished || iterations.is_empty() || (found != best && search.searched(best)))
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
            nodes: effort.counters.nodes - nodes,
            time: effort.budget.elapsed().saturating_sub(time),
            line: line.clone(),
            value,
        };
        report(&iteration);
        iterations.push(iteration);
        // A proven result and a tree seen whole do not change; nor does a forced move, if time is what counts.
        if value.proof.is_some() || !effort.horizon || (timed && moves.len() == 1) {
            break;
        }
    }
    let effort = search.effort();
    Answer {
        best,
        value,
        depth: iterations.last().map_or(0, |iteration| iteration.depth),
        selective_depth: effort.selective_depth,
        counters: effort.counters,
        line,
        iterations,
        time: effort.budget.elapsed(),
        overshoot: effort.budget.overshoot(),
    }
}
