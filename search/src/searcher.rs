//! The boundary of a move: whatever the algorithm, a position and a budget go in and an answer comes out.
//!
//! This is the one place where a search may be behind `dyn`: once a move, never once a node.

use agon_games::Game;

use crate::budget::Budget;
use crate::deepening::{Iterate, deepen};
use crate::report::{Answer, Iteration};

/// A search of one game, with what it keeps from move to move.
pub trait Searcher<G: Game>: Send {
    /// A new game begins: everything learnt in earlier ones is forgotten.
    fn new_game(&mut self);

    /// A move, anybody's, was played in the game; what is kept from move to move may follow it.
    fn observe(&mut self, _mv: G::Move) {}

    /// Chooses a move. `seed` is the only source of randomness; `report` sees each completed iteration.
    /// Precondition: the turn is a player's.
    fn search(
        &mut self,
        root: &G,
        budget: Budget,
        seed: u64,
        report: &mut dyn FnMut(&Iteration<G::Move>),
    ) -> Answer<G::Move>;
}

/// Whatever can search to a fixed depth answers by deepening.
pub struct Deepening<S>(pub S);

impl<G: Game, S: Iterate<G> + Send> Searcher<G> for Deepening<S> {
    fn new_game(&mut self) {
        self.0.forget();
    }

    fn search(
        &mut self,
        root: &G,
        budget: Budget,
        _seed: u64,
        report: &mut dyn FnMut(&Iteration<G::Move>),
    ) -> Answer<G::Move> {
        deepen(&mut self.0, root, budget, report)
    }
}
