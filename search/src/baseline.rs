//! Baselines: a random player, and a greedy one that looks one ply ahead.

use agon_games::random::seeded;
use agon_games::{Game, Seat, Turn};

use crate::budget::Budget;
use crate::counters::Counters;
use crate::effort::Effort;
use crate::evaluate::Evaluate;
use crate::report::{Iteration, SearchResult};
use crate::searcher::Searcher;
use crate::value::{Proof, Score, Value, shared_end_score};

/// Plays a uniformly random legal move.
#[derive(Clone, Copy, Debug)]
pub struct RandomPlayer;

impl<G: Game> Searcher<G> for RandomPlayer {
    fn new_game(&mut self) {}

    fn search(
        &mut self,
        root: &G,
        budget: Budget,
        seed: u64,
        _report: &mut dyn FnMut(&Iteration<G::Move>),
    ) -> SearchResult<G::Move> {
        let best = root.sample(&mut seeded(seed), &mut Vec::new());
        let counters = Counters { nodes: 1, ..Counters::default() };
        SearchResult::without_iterations(best, Value { number: 0.0, proof: None }, counters, &budget)
    }
}

/// Plays the move after which the static evaluation is best, the first of equal ones.
#[derive(Clone, Debug)]
pub struct Greedy<E> {
    evaluator: E,
}

impl<E> Greedy<E> {
    /// Creates a greedy player with this evaluation.
    pub fn new(evaluator: E) -> Greedy<E> {
        Greedy { evaluator }
    }

    fn value<G: Game>(&mut self, next: &G, seat: Seat) -> Score
    where
        E: Evaluate<G>,
    {
        match next.turn() {
            Turn::Over => shared_end_score(G::PAYOFFS, next.payoff(seat), 1),
            _ => self.evaluator.evaluate(next, seat),
        }
    }
}

impl<G: Game, E: Evaluate<G>> Searcher<G> for Greedy<E> {
    fn new_game(&mut self) {}

    fn search(
        &mut self,
        root: &G,
        budget: Budget,
        _seed: u64,
        report: &mut dyn FnMut(&Iteration<G::Move>),
    ) -> SearchResult<G::Move> {
        let Turn::Player(seat) = root.turn() else { unreachable!("a search starts where a player moves") };
        let mut effort = Effort::new(budget);
        let mut position = root.clone();
        let mut moves = Vec::new();
        position.moves(&mut moves);
        let mut best: Option<(G::Move, Score)> = None;
        // Search the root, then each child, until the budget is exhausted.
        let mut finished = effort.enter().is_ok();
        for &mv in &moves {
            finished = finished && effort.enter().is_ok();
            if !finished {
                break;
            }
            effort.leaf(1);
            let value = position.after(mv, |next| self.value(next, seat));
            if best.is_none_or(|(_, most)| value > most) {
                best = Some((mv, value));
            }
        }
        let (best, score) = best.unwrap_or((moves[0], 0));
        let mut value = Value::from(score);
        // A move that was not looked at may still avoid the loss.
        value.proof = value.proof.filter(|proof| finished || matches!(proof, Proof::Win(_)));
        let mut answer = SearchResult::without_iterations(best, value, effort.counters, &effort.budget);
        answer.selective_depth = effort.selective_depth;
        if finished {
            answer.depth = 1;
            let (nodes, time, line) = (effort.counters.nodes, answer.time, answer.line.clone());
            let value = answer.value;
            answer.iterations.push(Iteration { depth: 1, selective_depth: 1, nodes, time, line, value });
            answer.iterations.iter().for_each(report);
        }
        answer
    }
}
