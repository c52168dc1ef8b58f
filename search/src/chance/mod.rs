//! Searches of duels with chance: expectiminimax, and Star1 and Star2, which prune it.
//!
//! Values are expected payoffs as `f64`, summed in a fixed order, so that they are the same on every machine. A
//! chance ply counts as a ply of depth. There is no transposition table: the values of chance nodes are rarely bounds
//! that another window could use.

mod expectiminimax;
mod star;

use agon_games::{Chance, Duel, Keyed, Ordered, Seat, Turn};

use crate::budget::{Budget, BudgetExhausted};
use crate::deepening::FixedDepthSearch;
use crate::effort::Effort;
use crate::evaluate::Evaluate;
use crate::ordering::{Order, Ordering};
use crate::pv::PvTable;
use crate::value::{MAX_PLY, Proof, UNIT, Value};

/// The rules that these searches need.
pub trait ChanceRules: Duel + Chance + Keyed + Ordered {}
impl<G: Duel + Chance + Keyed + Ordered> ChanceRules for G {}

/// The algorithm of an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Full width.
    Expectiminimax,
    /// Chance nodes are cut off when the remaining outcomes cannot change the decision.
    Star1,
    /// Star1, after probing one move below each outcome.
    Star2,
}

/// A search of a duel with chance.
pub struct ChanceSearch<G: ChanceRules, E> {
    algorithm: Algorithm,
    evaluator: E,
    ordering: Ordering<G>,
    pv: PvTable<G::Move>,
    moves: Vec<G::Move>,
    /// The bounds of the outcomes of the chance nodes on the path, as a stack.
    probes: Vec<Probe<G::Move>>,
    effort: Effort,
    searched: Vec<G::Move>,
}

/// The bounds of an outcome before its search.
#[derive(Clone, Copy, Debug)]
struct Probe<M> {
    /// The bounds of its value.
    bounds: (f64, f64),
    /// The move that was probed below it, with the value or the bound that the search of the move returned.
    probed: Option<(M, f64)>,
}

/// Returns the bounds of every value: the range of payoffs.
fn bounds<G: ChanceRules>() -> (f64, f64) {
    (f64::from(G::PAYOFFS.min), f64::from(G::PAYOFFS.max))
}

impl<G: ChanceRules, E: Evaluate<G>> ChanceSearch<G, E> {
    /// Creates a search. The ordering stages `table` and `values` have no effect here.
    pub fn new(algorithm: Algorithm, order: Order, evaluator: E) -> Self {
        ChanceSearch {
            algorithm,
            evaluator,
            ordering: Ordering::new(order),
            pv: PvTable::new(MAX_PLY + 1),
            moves: Vec::with_capacity(1024),
            probes: Vec::new(),
            effort: Effort::idle(),
            searched: Vec::new(),
        }
    }

    /// Returns the static evaluation for `seat` as an expected payoff within the bounds.
    #[inline]
    fn evaluate(&mut self, position: &G, seat: Seat) -> f64 {
        let (least, most) = bounds::<G>();
        (f64::from(self.evaluator.evaluate(position, seat)) / f64::from(UNIT)).clamp(least, most)
    }

    /// Enters the position `next` after a move or an outcome and returns its value for `seat`.
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
        self.pv.clear(ply);
        match next.turn() {
            Turn::Over => {
                self.effort.leaf(ply);
                Ok(f64::from(next.payoff(seat)))
            }
            _ if depth == 0 || ply >= MAX_PLY => {
                self.effort.leaf(ply);
                self.effort.hit_horizon = true;
                Ok(self.evaluate(next, seat))
            }
            Turn::Chance => match self.algorithm {
                Algorithm::Expectiminimax => self.expectation(next, seat, depth, ply),
                Algorithm::Star1 | Algorithm::Star2 => self.star(next, seat, depth, alpha, beta, ply),
            },
            Turn::Player(mover) if mover == seat => self.decide(next, mover, depth, alpha, beta, ply, None),
            Turn::Player(mover) => Ok(-self.decide(next, mover, depth, -beta, -alpha, ply, None)?),
        }
    }

    /// Returns the value of a decision for `seat`, the seat to move, by fail-soft alpha-beta. Expectiminimax never
    /// narrows the window, so that nothing is cut off. `probed` is a move that was searched before, with a window that
    /// contains this one, and its value.
    #[allow(
        clippy::too_many_arguments,
        reason = "the window and the place in the tree, as every textbook passes them"
    )]
    fn decide(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        alpha: f64,
        beta: f64,
        ply: usize,
        probed: Option<(G::Move, f64)>,
    ) -> Result<f64, BudgetExhausted> {
        // 1. A probed move comes first and is not searched again.
        self.pv.clear(ply);
        let mut best = f64::NEG_INFINITY;
        let mut low = alpha;
        if let Some((mv, value)) = probed {
            best = value;
            if value >= beta {
                self.effort.cutoff(0);
                self.ordering.note_cutoff(position, seat, mv, depth, ply);
                return Ok(best);
            }
            low = low.max(value);
        }

        // 2. List and rank the moves.
        let start = self.moves.len();
        position.moves(&mut self.moves);
        if let Some((probed, _)) = probed {
            let place = self.moves[start..].iter().position(|&mv| mv == probed);
            self.moves.remove(start + place.expect("a probed move is legal"));
        }
        self.ordering.rank(position, seat, ply, &self.moves, start, None);

        // 3. Search the children, each with the rest of the window.
        let full_width = self.algorithm == Algorithm::Expectiminimax;
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
                    self.pv.extend(ply, mv);
                }
                if value >= beta {
                    self.effort.cutoff(index + usize::from(probed.is_some()));
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

impl<G: ChanceRules, E: Evaluate<G>> FixedDepthSearch<G> for ChanceSearch<G, E> {
    fn effort(&mut self) -> &mut Effort {
        &mut self.effort
    }

    fn start(&mut self, _root: &G, budget: Budget) {
        self.effort = Effort::new(budget);
        self.ordering.clear();
    }

    fn iterate(&mut self, root: &mut G, depth: u32) -> Result<Value, BudgetExhausted> {
        self.pv.clear(0);
        self.moves.clear();
        self.probes.clear();
        self.searched.clear();
        self.effort.enter()?;
        let Turn::Player(seat) = root.turn() else { return Ok(Value { number: 0.0, proof: None }) };
        let number = self.decide(root, seat, depth, f64::NEG_INFINITY, f64::INFINITY, 0, None)?;
        self.ordering.follow(root, self.pv.best());
        let proof = (!self.effort.hit_horizon).then_some(Proof::Exact(depth));
        Ok(Value { number, proof })
    }

    fn line(&self) -> &[G::Move] {
        self.pv.best()
    }

    fn has_searched(&self, mv: G::Move) -> bool {
        self.searched.contains(&mv)
    }
}
