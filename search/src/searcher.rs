//! The interface of all searches: a position and a budget in, a result out.
//!
//! Only this interface may be used as `dyn`: it is called once per move, never per node.

use agon_games::Game;

use crate::budget::Budget;
use crate::deepening::{FixedDepthSearch, deepen};
use crate::report::{Iteration, SearchResult};

/// A search of one game, with the state it keeps from move to move.
pub trait Searcher<G: Game>: Send {
    /// Discards everything learnt in earlier games.
    fn new_game(&mut self);

    /// Follows a move played in the game by any seat.
    fn observe(&mut self, _mv: G::Move) {}

    /// Chooses a move. `seed` is the only source of randomness; `report` receives each completed iteration.
    /// Precondition: a player is to move.
    fn search(
        &mut self,
        root: &G,
        budget: Budget,
        seed: u64,
        report: &mut dyn FnMut(&Iteration<G::Move>),
    ) -> SearchResult<G::Move>;
}

/// A fixed-depth search that answers by iterative deepening.
pub struct Deepening<S>(pub S);

impl<G: Game, S: FixedDepthSearch<G> + Send> Searcher<G> for Deepening<S> {
    fn new_game(&mut self) {
        self.0.new_game();
    }

    fn search(
        &mut self,
        root: &G,
        budget: Budget,
        _seed: u64,
        report: &mut dyn FnMut(&Iteration<G::Move>),
    ) -> SearchResult<G::Move> {
        deepen(&mut self.0, root, budget, report)
    }
}
