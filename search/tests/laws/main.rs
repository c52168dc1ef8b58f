//! Laws of the searches, on random trees and on every suitable game.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod chance;
mod deepening;
mod duel;
mod many;
mod proofs;
mod sampling;
mod selective;
mod solved;
mod textbook;
mod threat;
mod tree;

use agon_games::{ChanceGame, DuelGame, ManyGame, Parameters, Visitor};

/// Code that is generic in the duel.
trait DuelVisitor {
    type Output;
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> Self::Output;
}

/// A visitor of duels only.
struct Duels<V>(V);

impl<V: DuelVisitor> Visitor for Duels<V> {
    type Output = V::Output;
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> V::Output {
        self.0.duel::<G>(parameters)
    }
    fn many<G: ManyGame>(self, _: &Parameters) -> V::Output {
        unreachable!("the game is a duel")
    }
    fn chance<G: ChanceGame>(self, _: &Parameters) -> V::Output {
        unreachable!("the game is a duel")
    }
}
