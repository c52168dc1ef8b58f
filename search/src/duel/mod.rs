//! Searches of duels without chance: minimax and everything that prunes it.
//!
//! All are negamax in form, but a child is negated only if the seat to move has changed. Each algorithm has its own
//! file; this one has what they share: the state of a search, entering a child, and the horizon.

mod alpha_beta;
mod frontier;
mod minimax;
mod mtd;
mod quiescence;
mod selectivity;

use agon_games::{Deterministic, Duel, Keyed, Noisy, Ordered, Reseat, Seat, Turn};

use crate::budget::{Budget, BudgetExhausted};
use crate::deepening::FixedDepthSearch;
use crate::effort::Effort;
use crate::evaluate::Evaluate;
use crate::ordering::{Order, Ordering, VALUE_PLIES};
use crate::pv::PvTable;
use crate::table::{Known, TranspositionTable};
use crate::value::{INFINITY, MAX_EVALUATION, MAX_PLY, Proof, Score, Value, end_score, proof};

pub use mtd::Driver;

/// The rules that these searches need.
pub trait DuelRules: Duel + Deterministic + Keyed + Ordered + Noisy + Reseat {}
impl<G: Duel + Deterministic + Keyed + Ordered + Noisy + Reseat> DuelRules for G {}

/// The algorithm of an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Full width.
    Minimax,
    /// Fail-soft alpha-beta.
    AlphaBeta,
    /// Principal variation search.
    Pvs,
    /// Memory-enhanced test driver.
    Mtd(Driver),
}

/// The table entries that may replace a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableHits {
    /// Entries of exactly the required depth: values equal those of a search without a table.
    Equal,
    /// Also deeper entries.
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
    /// The table's size in MiB; 0 disables it.
    pub table_mb: usize,
    /// The table entries that may replace a search.
    pub table_hits: TableHits,
    /// Half the width of the window around the previous iteration's value.
    pub aspiration: Option<Score>,
    /// Whether noisy moves are searched beyond the horizon.
    pub quiescence: bool,
    /// Whether a position that fails high after passing is cut off.
    pub null_move: bool,
    /// Whether late moves are searched at reduced depth first.
    pub late_move_reductions: bool,
    /// Whether the table is kept between the moves of a game.
    pub keep: bool,
}

impl Options {
    /// Returns the algorithm's options without table, ordering or extensions.
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

/// A range of moves on the stack.
#[derive(Clone, Copy)]
struct Listed {
    /// The index of the first move.
    start: usize,
    /// Whether the table's move is first and the others are not ranked yet.
    led: bool,
}

/// A search of a duel, with the state it keeps between moves.
pub struct DuelSearch<G: DuelRules, E> {
    options: Options,
    evaluator: E,
    table: Option<TranspositionTable<G::Move>>,
    ordering: Ordering<G>,
    pv: PvTable<G::Move>,
    moves: Vec<G::Move>,
    effort: Effort,
    /// The previous iteration's value.
    guess: Option<Score>,
    /// The root moves that this iteration has searched.
    searched: Vec<G::Move>,
    /// Whether the node that is entered next follows a null move.
    after_null: bool,
}

/// What a pass of an iteration found that failed high: a better move, although its value is only a bound.
#[derive(Debug)]
struct FailedHigh<M> {
    line: Vec<M>,
    /// The root moves that the pass had searched before: they are worse.
    searched: Vec<M>,
}

impl<M> FailedHigh<M> {
    const NOTHING: FailedHigh<M> = FailedHigh { line: Vec::new(), searched: Vec::new() };
}

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// Creates a search.
    pub fn new(options: Options, evaluator: E) -> Self {
        DuelSearch {
            options,
            evaluator,
            table: (options.table_mb > 0).then(|| TranspositionTable::new(options.table_mb)),
            ordering: Ordering::new(options.order),
            pv: PvTable::new(MAX_PLY + 1),
            moves: Vec::with_capacity(1024),
            effort: Effort::idle(),
            guess: None,
            searched: Vec::new(),
            after_null: false,
        }
    }

    /// Enters the position `next` after a move of `seat` and returns its value for `seat`: by `search`, negated if
    /// the turn changed, unless the game or the depth ends.
    ///
    /// Always inlined, because most children are leaves that need no call.
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
        self.pv.clear(ply);
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

    /// Returns the value of a position at the horizon for `seat`.
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
        self.effort.hit_horizon = true;
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

    /// Looks a position up. `Err` carries a value that replaces the search; `Ok` carries the move to try first.
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
        // Bounds that depend on no horizon hold at every greater depth.
        let holds = known.whole && known.depth <= depth;
        let answers = match self.options.table_hits {
            TableHits::Equal => known.depth == depth,
            TableHits::Deeper => known.depth >= depth,
        };
        // The root is always searched, because a move is needed.
        if (answers || holds) && ply > 0 {
            self.effort.hit_horizon |= !holds;
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

    /// Leaves a node: drops its moves and stores the result. `outside` is whether the search met a horizon before it
    /// entered the node.
    #[inline]
    fn leave(
        &mut self,
        listed: Listed,
        key: u64,
        ply: usize,
        outside: bool,
        learnt: impl FnOnce() -> Known<G::Move>,
    ) {
        self.moves.truncate(listed.start);
        if let Some(table) = &mut self.table {
            self.effort.counters.table_stores += 1;
            // Where more than the key decides, an end may be nearer or farther in another position with this key.
            let whole = G::KEY_DECIDES && !self.effort.hit_horizon;
            table.store(key, ply, Known { whole, ..learnt() });
        }
        self.effort.hit_horizon |= outside;
    }

    /// Returns the position's key if there is a table.
    #[inline]
    fn key(&self, position: &G) -> u64 {
        if self.table.is_some() { position.key() } else { 0 }
    }

    /// Lists and ranks the moves. If the table's move leads, the others are ranked only after it was tried, except on
    /// the last ply, where one ranking is cheaper.
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

    /// Returns the best remaining move.
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

    /// Brings the best remaining move to `place`. Not inlined, so that searches without ordering keep their
    /// registers.
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

    /// Notes a searched root move, and values near the root for the next iteration.
    #[inline]
    fn note(&mut self, position: &mut G, mv: G::Move, value: Score, ply: usize) {
        if ply < VALUE_PLIES {
            self.note_near_root(position, mv, value, ply);
        }
    }

    /// Notes a move near the root. Cold, to keep it out of the search loops.
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

    /// Searches `root` to `depth` with a window and returns its value if it lies within; else a bound. Precondition:
    /// the search was started.
    pub fn search_window(
        &mut self,
        root: &mut G,
        depth: u32,
        alpha: Score,
        beta: Score,
    ) -> Result<Score, BudgetExhausted> {
        let Turn::Player(seat) = root.turn() else { return Ok(0) };
        self.moves.clear();
        self.pv.clear(0);
        self.searched.clear();
        self.after_null = false;
        self.effort.enter()?;
        match self.options.algorithm {
            Algorithm::Minimax => self.minimax(root, seat, depth, alpha, beta, 0),
            Algorithm::AlphaBeta | Algorithm::Mtd(_) => {
                self.alpha_beta::<false>(root, seat, depth, alpha, beta, 0)
            }
            Algorithm::Pvs => self.alpha_beta::<true>(root, seat, depth, alpha, beta, 0),
        }
    }

    /// Runs one pass of an iteration that may need several. `held` has what the last pass that failed high found; it
    /// stands if the budget ends in a later pass.
    fn pass(
        &mut self,
        root: &mut G,
        depth: u32,
        alpha: Score,
        beta: Score,
        held: &mut FailedHigh<G::Move>,
    ) -> Result<Score, BudgetExhausted> {
        let outcome = self.search_window(root, depth, alpha, beta);
        match outcome {
            Ok(value) if value >= beta => {
                held.line.clear();
                held.line.extend_from_slice(self.pv.best());
                held.searched.clone_from(&self.searched);
                held.searched.pop();
            }
            Ok(_) => {}
            Err(BudgetExhausted) => {
                // What this pass has searched compares with its own best move only.
                if self.pv.best().is_empty() {
                    self.pv.set_best(&held.line);
                    self.searched.clear();
                }
                self.searched.append(&mut held.searched);
            }
        }
        outcome
    }

    /// Runs an iteration with a window around the previous value. A pass that fails returns a bound, at which the next
    /// window begins; each is four times as wide as the one before.
    fn aspirate(&mut self, root: &mut G, depth: u32) -> Result<Score, BudgetExhausted> {
        // 1. Start around the previous value, unless it is a proven end.
        let (mut alpha, mut beta) = (-INFINITY, INFINITY);
        let mut width = 0;
        if let (Some(half), Some(guess)) = (self.options.aspiration, self.guess)
            && proof(guess).is_none()
        {
            width = half;
            (alpha, beta) = (below(guess, width), above(guess, width));
        }
        let mut held = FailedHigh::NOTHING;
        let mut failed = None;
        loop {
            // 2. Return a value within the window.
            let value = self.pass(root, depth, alpha, beta, &mut held)?;
            let high = value >= beta && beta < INFINITY;
            let low = value <= alpha && alpha > -INFINITY;
            if !high && !low {
                return Ok(value);
            }
            // 3. Move the window to the bound. Bounds that contradict each other, as selective searches may return
            // them, open it.
            width = width.saturating_mul(4);
            (alpha, beta) = match failed.replace(high) {
                Some(before) if before != high => (-INFINITY, INFINITY),
                _ if high => (value - 1, above(value, width)),
                _ => (below(value, width), value + 1),
            };
            self.effort.counters.researches += 1;
        }
    }
}

/// Returns the score this far below another, or the lower end of an open window if no evaluation lies there.
fn below(score: Score, width: Score) -> Score {
    Some(score.saturating_sub(width)).filter(|&alpha| alpha > -MAX_EVALUATION).unwrap_or(-INFINITY)
}

/// Returns the score this far above another, or the upper end of an open window if no evaluation lies there.
fn above(score: Score, width: Score) -> Score {
    -below(-score, width)
}

impl<G: DuelRules, E: Evaluate<G>> FixedDepthSearch<G> for DuelSearch<G, E> {
    fn effort(&mut self) -> &mut Effort {
        &mut self.effort
    }

    fn new_game(&mut self) {
        if let Some(table) = &mut self.table {
            table.clear();
        }
    }

    fn start(&mut self, _root: &G, budget: Budget) {
        self.effort = Effort::new(budget);
        self.guess = None;
        self.ordering.clear();
        self.pv.clear(0);
        if let Some(table) = &mut self.table {
            if self.options.keep {
                table.grow_older();
            } else {
                table.clear();
            }
        }
    }

    fn iterate(&mut self, root: &mut G, depth: u32) -> Result<Value, BudgetExhausted> {
        self.pv.clear(0);
        let value = match self.options.algorithm {
            Algorithm::Mtd(driver) => self.drive(root, depth, driver)?,
            _ => self.aspirate(root, depth)?,
        };
        self.guess = Some(value);
        self.ordering.follow(root, self.pv.best());
        let mut value = Value::from(value);
        if value.proof.is_none() && !self.effort.hit_horizon {
            // Every line ends within the depth, and neither seat can force a win.
            value.proof = Some(Proof::Draw(depth));
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
