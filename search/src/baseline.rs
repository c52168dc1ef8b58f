//! The baselines: a random player and a greedy one that looks one ply ahead.

use agon_games::random::seeded;
use agon_games::{Game, Seat, Turn};

use crate::budget::Budget;
use crate::counters::Counters;
use crate::effort::Effort;
use crate::evaluate::Evaluate;
use crate::report::{Answer, Iteration};
use crate::searcher::Searcher;
use crate::value::{Score, Value, shared_end_score};

/// Plays any legal move, each as likely as the other.
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
    ) -> Answer<G::Move> {
        let best = root.sample(&mut seeded(seed), &mut Vec::new());
        Answer {
            best,
            value: Value { number: 0.0, proof: None },
            depth: 0,
            selective_depth: 0,
            counters: Counters { nodes: 1, ..Counters::default() },
            line: vec![best],
            iterations: Vec::new(),
            time: budget.elapsed(),
            overshoot: budget.overshoot(),
        }
    }
}

/// Plays the move after which the static evaluation is best, the first of equal ones.
#[derive(Clone, Debug)]
pub struct Greedy<E> {
    evaluator: E,
}

impl<E> Greedy<E> {
    /// A greedy player with this evaluation.
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
    ) -> Answer<G::Move> {
        let Turn::Player(seat) = root.turn() else { unreachable!("a search starts where a player moves") };
        let mut effort = Effort::new(budget);
        let mut position = root.clone();
        let mut moves = Vec::new();
        position.moves(&mut moves);
        let mut best: Option<(G::Move, Score)> = None;
        // The root, then each child, as far as the budget goes.
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
        let (value, line, time) = (Value::from(score), vec![best], effort.budget.elapsed());
        let mut iterations = Vec::new();
        if finished {
            iterations.push(Iteration {
                depth: 1,
                nodes: effort.counters.nodes,
                time,
                line: line.clone(),
                value,
            });
            iterations.iter().for_each(report);
        }
        Answer {
            best,
            value,
            depth: u32::from(finished),
            selective_depth: effort.selective_depth,
            counters: effort.counters,
            line,
            iterations,
            time,
            overshoot: effort.budget.overshoot(),
        }
    }
}
