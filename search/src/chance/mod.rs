//! Searches of duels with chance: expectiminimax, and Star1 and Star2, which prune it.
//!
//! Values are expected payoffs as `f64`, summed in the order of the outcomes, so that they are the same everywhere. A
//! chance ply counts as a ply of depth. There is no transposition table here: the values of chance nodes are rarely
//! bounds that another window could use.

mod expectiminimax;
mod star;

use agon_games::{Chance, Duel, Keyed, Ordered, Seat, Turn};

use crate::budget::{Budget, BudgetExhausted};
use crate::deepening::Iterate;
use crate::effort::Effort;
use crate::evaluate::Evaluate;
use crate::line::Lines;
use crate::ordering::{Order, Ordering};
use crate::value::{MAX_PLY, UNIT, Value};

/// What these searches ask of a game.
pub trait ChanceRules: Duel + Chance + Keyed + Ordered {}
impl<G: Duel + Chance + Keyed + Ordered> ChanceRules for G {}

/// Which algorithm searches an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Full width.
    Expectiminimax,
    /// Chance nodes are left when the outcomes seen decide whatever the others bring.
    Star1,
    /// As Star1, after looking at one move below each outcome.
    Star2,
}

/// A search of a duel with chance.
pub struct ChanceSearch<G: ChanceRules, E> {
    algorithm: Algorithm,
    evaluator: E,
    ordering: Ordering<G>,
    lines: Lines<G::Move>,
    moves: Vec<G::Move>,
    /// Bounds of the outcomes of the chance nodes under way, a stack.
    bounds: Vec<(f64, f64)>,
    effort: Effort,
    searched: Vec<G::Move>,
}

/// The bounds of every value: the range of the payoffs.
fn bounds<G: ChanceRules>() -> (f64, f64) {
    (f64::from(G::PAYOFFS.min), f64::from(G::PAYOFFS.max))
}

impl<G: ChanceRules, E: Evaluate<G>> ChanceSearch<G, E> {
    /// A search by this algorithm. The stages `table` and `values` have nothing to go by here.
    pub fn new(algorithm: Algorithm, order: Order, evaluator: E) -> Self {
        ChanceSearch {
            algorithm,
            evaluator,
            ordering: Ordering::new(order),
            lines: Lines::new(MAX_PLY + 1),
            moves: Vec::with_capacity(1024),
            bounds: Vec::new(),
            effort: Effort::idle(),
            searched: Vec::new(),
        }
    }

    /// The expected payoff that the evaluation promises `seat`, within the bounds.
    #[inline]
    fn evaluate(&mut self, position: &G, seat: Seat) -> f64 {
        let (least, most) = bounds::<G>();
        (f64::from(self.evaluator.evaluate(position, seat)) / f64::from(UNIT)).clamp(least, most)
    }

    /// Enters the position `next` that a move or an outcome led to and returns its value for `seat`.
    #[inline]
    fn child(
        &mut self,
        next: &mut G,
        seat: Seat,
        depth: u32,
        alpha: f64,
        beta: f64,
        ply: usize,
    ) -> Result<f64, BudgetExhausted> {
        self.effort.enter()?;
        self.lines.clear(ply);
        match next.turn() {
            Turn::Over => {
                self.effort.leaf(ply);
                Ok(f64::from(next.payoff(seat)))
            }
            _ if depth == 0 || ply >= MAX_PLY => {
                self.effort.leaf(ply);
                self.effort.horizon = true;
                Ok(self.evaluate(next, seat))
            }
            Turn::Chance => match self.algorithm {
                Algorithm::Expectiminimax => self.expectation(next, seat, depth, ply),
                Algorithm::Star1 | Algorithm::Star2 => self.star(next, seat, depth, alpha, beta, ply),
            },
            Turn::Player(mover) if mover == seat => self.decide(next, mover, depth, alpha, beta, ply),
            Turn::Player(mover) => Ok(-self.decide(next, mover, depth, -beta, -alpha, ply)?),
        }
    }

    /// The value of a decision for `seat`, whose turn it is: alpha-beta, fail-soft; for expectiminimax with a window that
    /// stays open, so that nothing is cut off.
    fn decide(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        alpha: f64,
        beta: f64,
        ply: usize,
    ) -> Result<f64, BudgetExhausted> {
        // 1. List and rank the moves.
        self.lines.clear(ply);
        let start = self.moves.len();
        position.moves(&mut self.moves);
        self.ordering.rank(position, seat, ply, &self.moves, start, None);

        // 2. The best of the children, each with what the others have left of the window.
        let full_width = self.algorithm == Algorithm::Expectiminimax;
        let mut best = f64::NEG_INFINITY;
        let mut low = alpha;
        let mut index = 0;
        while start + index < self.moves.len() {
            self.ordering.pick(&mut self.moves, start + index);
            let mv = self.moves[start + index];
            let value = position.after(mv, |next| self.child(next, seat, depth - 1, low, beta, ply + 1))?;
            if ply == 0 {
                self.searched.push(mv);
            }
            if value > best {
                best = value;
                if value > low {
                    low = if full_width { low } else { value };
                    self.lines.extend(ply, mv);
                }
                if value >= beta {
                    self.effort.cutoff(index);
                    self.ordering.note_cutoff(position, seat, mv, depth, ply);
                    break;
                }
            }
            index += 1;
        }
        self.moves.truncate(start);
        Ok(best)
    }
}

impl<G: ChanceRules, E: Evaluate<G>> Iterate<G> for ChanceSearch<G, E> {
    fn effort(&mut self) -> &mut Effort {
        &mut self.effort
    }

    fn forget(&mut self) {}

    fn begin(&mut self, _root: &G, budget: Budget) {
        self.effort = Effort::new(budget);
        self.ordering.clear();
    }

    fn iterate(&mut self, root: &mut G, depth: u32) -> Result<Value, BudgetExhausted> {
        self.lines.clear(0);
        self.moves.clear();
        self.bounds.clear();
        self.searched.clear();
        self.effort.enter()?;
        let Turn::Player(seat) = root.turn() else { return Ok(Value { number: 0.0, proof: None }) };
        let number = self.decide(root, seat, depth, f64::NEG_INFINITY, f64::INFINITY, 0)?;
        self.ordering.follow(root, self.lines.best());
        Ok(Value { number, proof: None })
    }

    fn line(&self) -> &[G::Move] {
        self.lines.best()
    }

    fn searched(&self, mv: G::Move) -> bool {
        self.searched.contains(&mv)
    }
}
