//! Move ordering in stages, each of which can be switched off to measure its worth.
//!
//! Stages apply in the configured order: a later stage only separates moves that are equal so far. Each stage fills
//! its own bits of a move's key; moves are picked by decreasing key, equal ones in the game's order.

use std::collections::HashMap;

use agon_games::{Keyed, Ordered, Seat};

use crate::value::{MAX_PLY, Score};

/// A stage of move ordering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The best move of the table.
    Table,
    /// The principal variation of the previous iteration.
    Pv,
    /// The previous iteration's values and bounds, at the root and one ply below. Leaving the stage out is no
    /// improvement (`docs/studies/windows.md`), although bounds are ranked as if they were values.
    Values,
    /// Two moves per ply that caused cutoffs at the same distance from the root.
    Killers,
    /// The number of cutoffs by a move, weighted by the square of the depth (Schaeffer 1989).
    History,
    /// The game's own move ordering.
    Static,
}

agon_games::choices!(Stage {
    Table = "table",
    Pv = "pv",
    Values = "values",
    Static = "static",
    Killers = "killers",
    History = "history",
});

impl Stage {
    /// Returns the number of key bits it fills; the sum is at most 64.
    const fn bits(self) -> u32 {
        match self {
            Stage::Table | Stage::Pv => 1,
            Stage::Killers => 2,
            Stage::Values => 12,
            Stage::History => 28,
            Stage::Static => 20,
        }
    }
}

/// The enabled stages and the positions of their bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    shifts: [Option<u32>; 6],
}

impl Order {
    /// No stage: moves in the game's order.
    pub const NONE: Order = Order { shifts: [None; 6] };

    /// Creates an order from stages by precedence.
    pub fn new(stages: &[Stage]) -> Order {
        let mut order = Order::NONE;
        let mut shift = 64;
        for &stage in stages {
            if order.shifts[stage as usize].is_none() {
                shift -= stage.bits();
                order.shifts[stage as usize] = Some(shift);
            }
        }
        order
    }

    /// Returns whether the stage is enabled.
    #[inline]
    pub fn has(&self, stage: Stage) -> bool {
        self.shifts[stage as usize].is_some()
    }

    /// Returns whether the stage has the highest precedence.
    #[inline]
    fn leads(&self, stage: Stage) -> bool {
        self.shifts[stage as usize] == Some(64 - stage.bits())
    }
}

/// The number of plies from the root for which the previous iteration's values are kept.
pub const VALUE_PLIES: usize = 2;

/// What a search has learnt for move ordering.
pub struct Ordering<G: Ordered> {
    order: Order,
    /// Whether any stage is enabled.
    active: bool,
    killers: Vec<[Option<G::Move>; 2]>,
    history: Vec<u32>,
    values: HashMap<u64, Score>,
    /// The keys of the principal variation's positions, each with its move.
    line: Vec<(u64, G::Move)>,
    keys: Vec<u64>,
}

impl<G: Ordered> Ordering<G> {
    /// Creates an ordering without knowledge.
    pub fn new(order: Order) -> Ordering<G> {
        let history = if order.has(Stage::History) { G::SLOTS * G::SEATS } else { 0 };
        Ordering {
            order,
            active: order != Order::NONE,
            killers: vec![[None; 2]; MAX_PLY + 1],
            history: vec![0; history],
            values: HashMap::new(),
            line: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Discards what earlier searches learnt.
    pub fn clear(&mut self) {
        self.killers.fill([None; 2]);
        self.history.fill(0);
        self.values.clear();
        self.line.clear();
        self.keys.clear();
    }

    /// Returns whether the stage is enabled.
    #[inline]
    pub fn has(&self, stage: Stage) -> bool {
        self.order.has(stage)
    }

    /// Returns whether any stage is enabled.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Returns whether values of children at this ply are noted.
    #[inline]
    pub fn notes_values(&self, ply: usize) -> bool {
        ply < VALUE_PLIES && self.has(Stage::Values)
    }

    /// Notes the value of a position near the root for the seat that moved to it.
    pub fn note_value(&mut self, key: u64, value: Score) {
        self.values.insert(key, value);
    }

    /// Notes a move that caused a cutoff.
    #[inline]
    pub fn note_cutoff(&mut self, position: &G, seat: Seat, mv: G::Move, depth: u32, ply: usize) {
        if self.has(Stage::Killers) {
            let killers = &mut self.killers[ply];
            if killers[0] != Some(mv) {
                *killers = [Some(mv), killers[0]];
            }
        }
        if self.has(Stage::History) {
            let slot = seat.index() * G::SLOTS + position.slot(mv);
            let count = &mut self.history[slot];
            *count += depth * depth;
            if *count >= 1 << Stage::History.bits() {
                self.history.iter_mut().for_each(|count| *count /= 2);
            }
        }
    }
}

impl<G: Ordered> Ordering<G> {
    /// Moves the table's move to the front if its stage leads, so that it can be tried before the others are ranked.
    /// Returns whether it was found.
    #[inline]
    pub fn lead(&self, moves: &mut [G::Move], table: Option<G::Move>) -> bool {
        let Some(best) = table.filter(|_| self.order.leads(Stage::Table)) else { return false };
        let Some(place) = moves.iter().position(|&mv| mv == best) else { return false };
        moves[..=place].rotate_right(1);
        true
    }
}

impl<G: Ordered + Keyed> Ordering<G> {
    /// Stores the principal variation of a completed iteration from `root`.
    pub fn follow(&mut self, root: &G, line: &[G::Move]) {
        self.line.clear();
        if self.has(Stage::Pv) {
            let mut position = root.clone();
            for &mv in line {
                self.line.push((position.key(), mv));
                position.play(mv);
            }
        }
    }

    /// Computes the keys of `moves[start..]`. `table` is the table's best move.
    #[inline]
    pub fn rank(
        &mut self,
        position: &mut G,
        seat: Seat,
        ply: usize,
        moves: &[G::Move],
        start: usize,
        table: Option<G::Move>,
    ) {
        if self.active {
            self.rank_by_stages(position, seat, ply, moves, start, table);
        }
    }

    fn rank_by_stages(
        &mut self,
        position: &mut G,
        seat: Seat,
        ply: usize,
        moves: &[G::Move],
        start: usize,
        table: Option<G::Move>,
    ) {
        // Moves below `start` may not have been ranked.
        self.keys.resize(start, 0);
        self.keys.resize(moves.len(), 0);
        let (moves, keys) = (&moves[start..], &mut self.keys[start..]);
        let shift = |stage: Stage| self.order.shifts[stage as usize];

        // 1. Stages that favour single moves.
        let mut favour = |shift: u32, favourite: Option<G::Move>, bits: u64| {
            if let Some(favourite) = favourite
                && let Some(index) = moves.iter().position(|&mv| mv == favourite)
            {
                keys[index] |= bits << shift;
            }
        };
        if let Some(shift) = shift(Stage::Table) {
            favour(shift, table, 1);
        }
        if let (Some(shift), Some(&(key, mv))) = (shift(Stage::Pv), self.line.get(ply))
            && key == position.key()
        {
            favour(shift, Some(mv), 1);
        }
        if let Some(shift) = shift(Stage::Killers) {
            let [first, second] = self.killers[ply];
            favour(shift, first, 2);
            favour(shift, second, 1);
        }

        // 2. Stages that score all moves.
        if let Some(shift) = shift(Stage::History) {
            let history = &self.history[seat.index() * G::SLOTS..][..G::SLOTS];
            for (key, &mv) in keys.iter_mut().zip(moves) {
                *key |= u64::from(history[position.slot(mv)]) << shift;
            }
        }
        if let Some(shift) = shift(Stage::Static) {
            position.promises(moves, |index, promise| keys[index] |= promise_bits(promise) << shift);
        }
        if let Some(shift) = shift(Stage::Values)
            && ply < VALUE_PLIES
        {
            for (key, rank) in keys.iter_mut().zip(value_ranks(&self.values, position, moves)) {
                *key |= rank << shift;
            }
        }
    }

    /// Computes the keys of the noisy moves `moves[start..]` from the game's own ordering, whatever stages are
    /// enabled.
    pub fn rank_noisy(&mut self, position: &G, moves: &[G::Move], start: usize) {
        self.keys.resize(start, 0);
        position.promises(&moves[start..], |_, promise| self.keys.push(promise_bits(promise)));
    }

    /// Brings the best of `moves[index..]` to `index`, keeping the order of the others.
    #[inline]
    pub fn pick(&mut self, moves: &mut [G::Move], index: usize) {
        if self.active {
            self.pick_best(moves, index);
        }
    }

    /// Does the same whatever stages are enabled.
    pub fn pick_best(&mut self, moves: &mut [G::Move], index: usize) {
        let keys = &mut self.keys[..moves.len()];
        let (mut best, mut most) = (index, keys[index]);
        for (other, &key) in keys.iter().enumerate().skip(index + 1) {
            if key > most {
                (best, most) = (other, key);
            }
        }
        // The best is usually near: a few swaps beat a general rotation.
        for place in (index..best).rev() {
            keys.swap(place, place + 1);
            moves.swap(place, place + 1);
        }
    }
}

/// Returns the game's ordering score as key bits.
#[inline]
fn promise_bits(promise: i32) -> u64 {
    let middle = 1 << (Stage::Static.bits() - 1);
    (promise.clamp(-middle, middle - 1) + middle) as u64
}

/// Returns the ranks of moves by their values in the previous iteration: the best has the highest, an unknown one 0.
fn value_ranks<G: Ordered + Keyed>(
    values: &HashMap<u64, Score>,
    position: &mut G,
    moves: &[G::Move],
) -> Vec<u64> {
    let known: Vec<Option<Score>> =
        moves.iter().map(|&mv| position.after(mv, |next| values.get(&next.key()).copied())).collect();
    let mut values: Vec<Score> = known.iter().copied().flatten().collect();
    values.sort_unstable();
    values.dedup();
    let most = (1 << Stage::Values.bits()) - 1;
    let rank = |value: Score| (values.partition_point(|&lower| lower < value) as u64 + 1).min(most);
    known.into_iter().map(|value| value.map_or(0, rank)).collect()
}
