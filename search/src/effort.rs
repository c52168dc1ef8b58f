//! The budget and the counters of a running search.

use std::sync::Arc;

use crate::budget::{Budget, BudgetExhausted, Limit};
use crate::clock::StoppedClock;
use crate::counters::Counters;

/// The budget and the counters of one search.
pub struct Effort {
    /// The remaining budget.
    pub budget: Budget,
    /// The counters.
    pub counters: Counters,
    /// The greatest distance from the root.
    pub selective_depth: u32,
    /// Whether a value of this iteration depends on a static evaluation or a table entry. If not, the iteration has
    /// searched the whole tree.
    pub hit_horizon: bool,
}

impl Effort {
    /// Starts counting against a budget.
    pub fn new(budget: Budget) -> Effort {
        Effort { budget, counters: Counters::default(), selective_depth: 0, hit_horizon: false }
    }

    /// Returns a placeholder with an empty budget, for a search that has not started.
    pub fn idle() -> Effort {
        Effort::new(Budget::start(Limit::Nodes(0), Arc::new(StoppedClock)))
    }

    /// Enters a position unless the budget is exhausted.
    #[inline]
    pub fn enter(&mut self) -> Result<(), BudgetExhausted> {
        self.budget.spend(self.counters.nodes)?;
        self.counters.nodes += 1;
        Ok(())
    }

    /// Returns how many of `wanted` leaves may be entered before the next call: at least one. Count them with
    /// [`Effort::leaves`].
    #[inline]
    pub fn grant(&mut self, wanted: usize) -> Result<usize, BudgetExhausted> {
        Ok(self.budget.grant(self.counters.nodes, wanted as u64)? as usize)
    }

    /// Counts granted leaves that were entered at this distance from the root.
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
        // Rarely true: a branch is cheaper than writing the maximum back every time.
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
