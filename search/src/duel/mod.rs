//! Searches of duels without chance: minimax and everything that prunes it.
//!
//! All are negamax in form but ask the position whose turn it is: a child whose mover is the same seat is not negated.
//! Each algorithm has its own file; this one has what they share: the state of a search, entering a child, and what
//! happens at the horizon.

mod alpha_beta;
mod frontier;
mod minimax;
mod mtd;
mod pvs;
mod quiescence;
mod selectivity;

use agon_games::{Deterministic, Duel, Keyed, Noisy, Ordered, Reseat, Seat, Turn};

use crate::budget::{Budget, BudgetExhausted};
use crate::deepening::Iterate;
use crate::effort::Effort;
use crate::evaluate::Evaluate;
use crate::line::Lines;
use crate::ordering::{Order, Ordering, VALUE_PLIES};
use crate::table::{Known, Table};
use crate::value::{INFINITY, MAX_PLY, Score, Value, end_score, proof};

pub use mtd::Driver;

/// What these searches ask of a game.
pub trait DuelRules: Duel + Deterministic + Keyed + Ordered + Noisy + Reseat {}
impl<G: Duel + Deterministic + Keyed + Ordered + Noisy + Reseat> DuelRules for G {}

/// Which algorithm searches an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Full width.
    Minimax,
    /// Fail-soft alpha-beta.
    AlphaBeta,
    /// Principal variation search.
    Pvs,
    /// A memory-enhanced test driver.
    Mtd(Driver),
}

/// Which entries of the table may answer for a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableHits {
    /// Those of exactly the depth that is needed: values equal those of a search without a table.
    Equal,
    /// Also deeper ones.
    Deeper,
}

agon_games::choices!(TableHits { Equal = "equal", Deeper = "deeper" });

/// The options of a duel search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The stages of move ordering.
    pub order: Order,
    /// The table's size; 0 is no table.
    pub table_mb: usize,
    /// Which entries may answer.
    pub table_hits: TableHits,
    /// Half the width of the window around the value of the iteration before.
    pub aspiration: Option<Score>,
    /// Whether noisy moves are followed beyond the horizon.
    pub quiescence: bool,
    /// Whether a position so good that even passing keeps it too good is cut off.
    pub null_move: bool,
    /// Whether late moves are searched less deep at first.
    pub late_move_reductions: bool,
    /// Whether the table is kept from move to move of a game.
    pub keep: bool,
}

impl Options {
    /// The algorithm plain: no table, no ordering, no extras.
    pub fn plain(algorithm: Algorithm) -> Options {
        Options {
            algorithm,
            order: Order::NONE,
            table_mb: 0,
            table_hits: TableHits::Equal,
            aspiration: None,
            quiescence: false,
            null_move: false,
            late_move_reductions: false,
            keep: true,
        }
    }
}

/// Moves listed on the stack.
#[derive(Clone, Copy)]
struct Listed {
    /// Where they start.
    start: usize,
    /// Whether the first is the table's, and the others are ranked only when it has been tried.
    led: bool,
}

/// A search of a duel, with what it keeps from move to move.
pub struct DuelSearch<G: DuelRules, E> {
    options: Options,
    evaluator: E,
    table: Option<Table<G::Move>>,
    ordering: Ordering<G>,
    lines: Lines<G::Move>,
    moves: Vec<G::Move>,
    effort: Effort,
    /// The value of the iteration before.
    guess: Option<Score>,
    /// The root moves searched in this iteration.
    searched: Vec<G::Move>,
    /// Whether the path under way holds a null move.
    after_null: bool,
}

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// A search with these options.
    pub fn new(options: Options, evaluator: E) -> Self {
        DuelSearch {
            options,
            evaluator,
            table: (options.table_mb > 0).then(|| Table::new(options.table_mb)),
            ordering: Ordering::new(options.order),
            lines: Lines::new(MAX_PLY + 1),
            moves: Vec::with_capacity(1024),
            effort: Effort::idle(),
            guess: None,
            searched: Vec::new(),
            after_null: false,
        }
    }

    /// The value for `seat` of the position `next` that its move led to: enters it, and unless the game or the depth
    /// ends there goes on with `search`, negated where the turn has changed.
    ///
    /// Always inlined: most children are leaves, and are done with here, without a call.
    #[inline(always)]
    #[allow(
        clippy::too_many_arguments,
        reason = "the window and the place in the tree, as every textbook passes them"
    )]
    fn child(
        &mut self,
        next: &mut G,
        seat: Seat,
        depth: u32,
        alpha: Score,
        beta: Score,
        ply: usize,
        search: impl Fn(&mut Self, &mut G, Seat, u32, Score, Score, usize) -> Result<Score, BudgetExhausted>,
    ) -> Result<Score, BudgetExhausted> {
        self.effort.enter()?;
        self.lines.clear(ply);
        let Turn::Player(mover) = next.turn() else {
            self.effort.leaf(ply);
            return Ok(end_score(next.payoff(seat), ply));
        };
        if depth == 0 || ply >= MAX_PLY {
            return self.horizon(next, seat, mover, alpha, beta, ply);
        }
        if mover == seat {
            search(self, next, mover, depth, alpha, beta, ply)
        } else {
            Ok(-search(self, next, mover, depth, -beta, -alpha, ply)?)
        }
    }

    /// The value for `seat` of a position at the horizon.
    #[inline]
    fn horizon(
        &mut self,
        position: &mut G,
        seat: Seat,
        mover: Seat,
        alpha: Score,
        beta: Score,
        ply: usize,
    ) -> Result<Score, BudgetExhausted> {
        self.effort.horizon = true;
        if !self.options.quiescence {
            self.effort.leaf(ply);
            return Ok(self.evaluator.evaluate(position, seat));
        }
        self.effort.counters.quiescence_nodes += 1;
        if mover == seat {
            self.quiescence(position, mover, alpha, beta, ply)
        } else {
            Ok(-self.quiescence(position, mover, -beta, -alpha, ply)?)
        }
    }

    /// Looks the position up. `Err` has a value that answers for the whole search; `Ok` has the move to try first.
    #[inline(always)]
    fn look_up(
        &mut self,
        key: u64,
        depth: u32,
        alpha: &mut Score,
        beta: &mut Score,
        ply: usize,
    ) -> Result<Option<G::Move>, Score> {
        let Some(table) = &self.table else { return Ok(None) };
        self.effort.counters.table_probes += 1;
        let Some(known) = table.probe(key, ply) else { return Ok(None) };
        self.effort.counters.table_hits += 1;
        let answers = match self.options.table_hits {
            TableHits::Equal => known.depth == depth,
            TableHits::Deeper => known.depth >= depth,
        };
        // The root is always searched, so that there is a move to play.
        if answers && ply > 0 {
            // What the entry rests on is not known any more.
            self.effort.horizon = true;
            if known.lower >= *beta || known.lower == known.upper {
                return Err(known.lower);
            }
            if known.upper <= *alpha {
                return Err(known.upper);
            }
            *alpha = known.lower.max(*alpha);
            *beta = known.upper.min(*beta);
        }
        Ok(known.best)
    }

    /// Leaves a node whose moves were listed, and stores what was learnt of it.
    #[inline]
    fn leave(&mut self, listed: Listed, key: u64, ply: usize, learnt: impl FnOnce() -> Known<G::Move>) {
        self.moves.truncate(listed.start);
        if let Some(table) = &mut self.table {
            self.effort.counters.table_stores += 1;
            table.store(key, ply, learnt());
        }
    }

    /// The key, where something will be done with it.
    #[inline]
    fn key(&self, position: &G) -> u64 {
        if self.table.is_some() { position.key() } else { 0 }
    }

    /// Lists the moves on the stack and ranks them. Where the table's move comes first it is tried before the others
    /// are ranked, but for the last ply, where ranking costs less than asking twice.
    #[inline(always)]
    fn list(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        ply: usize,
        table_move: Option<G::Move>,
    ) -> Listed {
        let start = self.moves.len();
        position.moves(&mut self.moves);
        let led =
            table_move.is_some() && depth > 1 && self.ordering.lead(&mut self.moves[start..], table_move);
        if !led {
            self.ordering.rank(position, seat, ply, &self.moves, start, table_move);
        }
        Listed { start, led }
    }

    /// The listed move that is the next best.
    #[inline(always)]
    fn next_move(
        &mut self,
        position: &mut G,
        seat: Seat,
        ply: usize,
        listed: Listed,
        index: usize,
    ) -> Option<G::Move> {
        let place = listed.start + index;
        if place >= self.moves.len() {
            return None;
        }
        if self.ordering.is_active() {
            self.pick(position, seat, ply, listed, place);
        }
        Some(self.moves[place])
    }

    /// Brings the next best of the listed moves to its place. A call of its own, so that searches without any ordering
    /// keep their registers.
    #[inline(never)]
    fn pick(&mut self, position: &mut G, seat: Seat, ply: usize, listed: Listed, place: usize) {
        if listed.led && place == listed.start {
            return;
        }
        if listed.led && place == listed.start + 1 {
            self.ordering.rank(position, seat, ply, &self.moves, place, None);
        }
        self.ordering.pick(&mut self.moves, place);
    }

    /// Notes the value of a root move, and of moves near the root for the next iteration.
    #[inline]
    fn note(&mut self, position: &mut G, mv: G::Move, value: Score, ply: usize) {
        if ply < VALUE_PLIES {
            self.note_near_root(position, mv, value, ply);
        }
    }

    /// Kept out of the searches' loops, which it would only make longer.
    #[cold]
    fn note_near_root(&mut self, position: &mut G, mv: G::Move, value: Score, ply: usize) {
        if ply == 0 {
            self.searched.push(mv);
        }
        if self.ordering.notes_values(ply) {
            let key = position.after(mv, |next| next.key());
            self.ordering.note_value(key, value);
        }
    }

    /// Searches `root` to `depth` with a window: the value if it lies within, else a bound of it. Part of a search that
    /// has begun.
    pub fn search_window(
        &mut self,
        root: &mut G,
        depth: u32,
        alpha: Score,
        beta: Score,
    ) -> Result<Score, BudgetExhausted> {
        let Turn::Player(seat) = root.turn() else { return Ok(0) };
        self.moves.clear();
        self.lines.clear(0);
        self.searched.clear();
        self.after_null = false;
        self.effort.enter()?;
        match self.options.algorithm {
            Algorithm::Minimax => self.minimax(root, seat, depth, alpha, beta, 0),
            Algorithm::AlphaBeta | Algorithm::Mtd(_) => self.alpha_beta(root, seat, depth, alpha, beta, 0),
            Algorithm::Pvs => self.pvs(root, seat, depth, alpha, beta, 0),
        }
    }

    /// An iteration with a window around the value of the one before, opened on the side it fails on.
    fn aspirate(&mut self, root: &mut G, depth: u32) -> Result<Score, BudgetExhausted> {
        let (mut alpha, mut beta) = (-INFINITY, INFINITY);
        if let (Some(width), Some(guess)) = (self.options.aspiration, self.guess)
            && proof(guess).is_none()
        {
            (alpha, beta) =
                (guess.saturating_sub(width).max(-INFINITY), guess.saturating_add(width).min(INFINITY));
        }
        loop {
            let value = self.search_window(root, depth, alpha, beta)?;
            if value <= alpha && alpha > -INFINITY {
                alpha = -INFINITY;
            } else if value >= beta && beta < INFINITY {
                beta = INFINITY;
            } else {
                return Ok(value);
            }
            self.effort.counters.researches += 1;
        }
    }
}

impl<G: DuelRules, E: Evaluate<G>> Iterate<G> for DuelSearch<G, E> {
    fn effort(&mut self) -> &mut Effort {
        &mut self.effort
    }

    fn forget(&mut self) {
        if let Some(table) = &mut self.table {
            table.clear();
        }
    }

    fn begin(&mut self, _root: &G, budget: Budget) {
        self.effort = Effort::new(budget);
        self.guess = None;
        self.ordering.clear();
        self.lines.clear(0);
        if let Some(table) = &mut self.table {
            if self.options.keep {
                table.grow_older();
            } else {
                table.clear();
            }
        }
    }

    fn iterate(&mut self, root: &mut G, depth: u32) -> Result<Value, BudgetExhausted> {
        self.lines.clear(0);
        let value = match self.options.algorithm {
            Algorithm::Mtd(driver) => self.drive(root, depth, driver)?,
            _ => self.aspirate(root, depth)?,
        };
        self.guess = Some(value);
        self.ordering.follow(root, self.lines.best());
        Ok(Value::from(value))
    }

    fn line(&self) -> &[G::Move] {
        self.lines.best()
    }

    fn searched(&self, mv: G::Move) -> bool {
        self.searched.contains(&mv)
    }
}
