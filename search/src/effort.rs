//! The budget and the counters of a search under way.

use std::sync::Arc;

use crate::budget::{Budget, BudgetExhausted, Limit};
use crate::clock::StoppedClock;
use crate::counters::Counters;

/// The budget and the counters of one search.
pub struct Effort {
    /// What may be spent.
    pub budget: Budget,
    /// What was done.
    pub counters: Counters,
    /// The greatest distance from the root.
    pub selective_depth: u32,
    /// Whether a value of this iteration rests on a static evaluation or on the table, and not on ends alone. A
    /// deepening search that never met its horizon has seen the whole tree.
    pub horizon: bool,
}

impl Effort {
    /// A search that begins with this budget.
    pub fn new(budget: Budget) -> Effort {
        Effort { budget, counters: Counters::default(), selective_depth: 0, horizon: false }
    }

    /// No search: nothing may be spent.
    pub fn idle() -> Effort {
        Effort::new(Budget::start(Limit::Nodes(0), Arc::new(StoppedClock)))
    }

    /// Enters a position, or stops.
    #[inline]
    pub fn enter(&mut self) -> Result<(), BudgetExhausted> {
        self.budget.spend(self.counters.nodes)?;
        self.counters.nodes += 1;
        Ok(())
    }

    /// Returns how many of `wanted` leaves may be entered before the next call: at least one. They are counted by
    /// [`Effort::leaves`].
    #[inline]
    pub fn grant(&mut self, wanted: usize) -> Result<usize, BudgetExhausted> {
        Ok(self.budget.grant(self.counters.nodes, wanted as u64)? as usize)
    }

    /// Counts leaves that were granted and entered, at this distance from the root.
    #[inline]
    pub fn leaves(&mut self, count: usize, ply: usize) {
        self.counters.nodes += count as u64;
        self.counters.leaves += count as u64 - 1;
        self.leaf(ply);
    }

    /// Counts a leaf at this distance from the root.
    #[inline]
    pub fn leaf(&mut self, ply: usize) {
        self.counters.leaves += 1;
        // Seldom true, so that a branch is cheaper than writing the maximum back every time.
        if ply as u32 > self.selective_depth {
            self.selective_depth = ply as u32;
        }
    }

    /// Counts a cutoff by the move with this index.
    #[inline]
    pub fn cutoff(&mut self, index: usize) {
        self.counters.cutoffs += 1;
        self.counters.first_move_cutoffs += u64::from(index == 0);
    }
}
