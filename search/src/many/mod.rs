//! Searches of games with any number of seats: paranoid, max-n and best-reply.
//!
//! The seat to move at the root is the hero; the searches differ in their model of the opponents. Each has its own
//! file; this one has what they share. There is no transposition table, which would favour some of the three in
//! comparisons.

mod best_reply;
mod max_n;
mod paranoid;
mod threat;

use agon_games::{Deterministic, Keyed, Ordered, Reseat, Seat, Turn};

use crate::budget::{Budget, BudgetExhausted};
use crate::deepening::FixedDepthSearch;
use crate::effort::Effort;
use crate::evaluate::Evaluate;
use crate::ordering::{Order, Ordering};
use crate::pv::PvTable;
use crate::value::{INFINITY, MAX_PLY, MAX_SEATS, Proof, Score, Value, shared_end_score};

pub use max_n::Values;
pub use threat::{ThreatList, ThreatRule};

/// The rules that these searches need.
pub trait ManyRules: Deterministic + Keyed + Ordered + Reseat {}
impl<G: Deterministic + Keyed + Ordered + Reseat> ManyRules for G {}

/// The algorithm of an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// All opponents play against the hero.
    Paranoid,
    /// Every seat plays for itself.
    MaxN(Values),
    /// Only the most damaging opponent replies to the hero.
    BestReply(ThreatRule),
}

/// A search of a game with any number of seats.
pub struct ManySearch<G: ManyRules, E> {
    algorithm: Algorithm,
    evaluator: E,
    ordering: Ordering<G>,
    pv: PvTable<G::Move>,
    moves: Vec<G::Move>,
    effort: Effort,
    searched: Vec<G::Move>,
    hero: Seat,
    threats: ThreatList,
    /// Whether best-reply search let a seat move that did not have the turn.
    out_of_turn: bool,
}

impl<G: ManyRules, E: Evaluate<G>> ManySearch<G, E> {
    /// Creates a search. The ordering stage `table` has no effect here; max-n with pruning supports static order
    /// only.
    pub fn new(algorithm: Algorithm, order: Order, evaluator: E) -> Self {
        const { assert!(G::SEATS <= MAX_SEATS, "more seats than the searches make room for") };
        ManySearch {
            algorithm,
            evaluator,
            ordering: Ordering::new(order),
            pv: PvTable::new(MAX_PLY + 1),
            moves: Vec::with_capacity(4096),
            effort: Effort::idle(),
            searched: Vec::new(),
            hero: Seat::FIRST,
            threats: ThreatList::new(G::SEATS, Seat::FIRST),
            out_of_turn: false,
        }
    }

    /// Returns the list of opponents after best-reply search.
    pub fn threats(&self) -> &ThreatList {
        &self.threats
    }

    /// Returns the hero's value of a position that is over or at the horizon, `ply` plies from the root.
    #[inline]
    fn leaf(&mut self, position: &G, ply: usize) -> Score {
        self.effort.leaf(ply);
        self.pv.clear(ply);
        if position.turn() == Turn::Over {
            shared_end_score(G::PAYOFFS, position.payoff(self.hero), ply)
        } else {
            self.effort.hit_horizon = true;
            self.evaluator.evaluate(position, self.hero)
        }
    }

    /// Lists and ranks the moves of `seat`, the seat to move, and returns the index of the first.
    #[inline]
    fn list(&mut self, position: &mut G, seat: Seat, ply: usize) -> usize {
        let start = self.moves.len();
        position.moves(&mut self.moves);
        self.ordering.rank(position, seat, ply, &self.moves, start, None);
        start
    }

    /// Returns the best remaining move.
    #[inline]
    fn next_move(&mut self, start: usize, index: usize) -> Option<G::Move> {
        if start + index >= self.moves.len() {
            return None;
        }
        self.ordering.pick(&mut self.moves, start + index);
        Some(self.moves[start + index])
    }

    /// Notes a searched root move, and values near the root for the next iteration.
    #[inline]
    fn note(&mut self, position: &mut G, mv: G::Move, value: Score, ply: usize) {
        if ply == 0 {
            self.searched.push(mv);
        }
        if self.ordering.notes_values(ply) {
            let key = position.after(mv, |next| next.key());
            self.ordering.note_value(key, value);
        }
    }
}

impl<G: ManyRules, E: Evaluate<G>> FixedDepthSearch<G> for ManySearch<G, E> {
    fn effort(&mut self) -> &mut Effort {
        &mut self.effort
    }

    fn start(&mut self, root: &G, budget: Budget) {
        if let Turn::Player(seat) = root.turn() {
            self.hero = seat;
        }
        self.effort = Effort::new(budget);
        self.ordering.clear();
        self.threats = ThreatList::new(G::SEATS, self.hero);
    }

    fn iterate(&mut self, root: &mut G, depth: u32) -> Result<Value, BudgetExhausted> {
        self.pv.clear(0);
        self.moves.clear();
        self.searched.clear();
        self.out_of_turn = false;
        self.effort.enter()?;
        let hero = self.hero;
        let mut value = match self.algorithm {
            Algorithm::Paranoid => Value::from(self.paranoid(root, hero, depth, -INFINITY, INFINITY, 0)?),
            Algorithm::BestReply(rule) => {
                Value::from(self.best_move(root, depth, -INFINITY, INFINITY, 0, rule)?)
            }
            Algorithm::MaxN(values) => {
                let tuple = self.max_n(root, hero, depth, None, 0, values)?;
                values.value(tuple[hero.index()])
            }
        };
        self.ordering.follow(root, self.pv.best());
        if G::SEATS > 2 {
            // Against several opponents only a paranoid win is a proof; a loss to their coalition is not.
            let sure =
                |proof: &Proof| self.algorithm == Algorithm::Paranoid && matches!(proof, Proof::Win(_));
            value.proof = value.proof.filter(sure);
        } else if self.out_of_turn {
            value.proof = None;
        } else if value.proof.is_none() && !self.effort.hit_horizon {
            value.proof = Some(match self.algorithm {
                Algorithm::MaxN(Values::Shares { .. }) => Proof::Exact(depth),
                _ => Proof::Draw(depth),
            });
        }
        Ok(value)
    }

    fn line(&self) -> &[G::Move] {
        self.pv.best()
    }

    fn has_searched(&self, mv: G::Move) -> bool {
        self.searched.contains(&mv)
    }
}
