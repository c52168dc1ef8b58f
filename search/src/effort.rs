//! What every search carries along: its budget and its counters.

use std::sync::Arc;

use crate::budget::{Budget, Limit, Stopped};
use crate::clock::StoppedClock;
use crate::report::Counters;

/// The budget and the counters of one search.
pub struct Effort {
    /// What may be spent.
    pub budget: Budget,
    /// What was done.
    pub counters: Counters,
    /// Whether a value of this iteration rests on a static evaluation or on the table, and not on ends alone. A
    /// deepening search that never met its horizon has seen the whole tree.
    pub horizon: bool,
}

impl Effort {
    /// A search that begins with this budget.
    pub fn new(budget: Budget) -> Effort {
        Effort { budget, counters: Counters::default(), horizon: false }
    }

    /// No search: nothing may be spent.
    pub fn idle() -> Effort {
        Effort::new(Budget::start(Limit::Nodes(0), Arc::new(StoppedClock)))
    }

    /// Enters a position, or stops.
    #[inline]
    pub fn enter(&mut self) -> Result<(), Stopped> {
        self.budget.spend(self.counters.nodes)?;
        self.counters.nodes += 1;
        Ok(())
    }

    /// How many of so many leaves may be entered before this must be asked again: at least one. They are counted by
    /// [`Effort::leaves`].
    #[inline]
    pub fn grant(&mut self, wanted: usize) -> Result<usize, Stopped> {
        Ok(self.budget.grant(self.counters.nodes, wanted as u64)? as usize)
    }

    /// Counts so many leaves that were granted and entered, at this distance from the root.
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
        if ply as u32 > self.counters.selective_depth {
            self.counters.selective_depth = ply as u32;
        }
    }

    /// Counts a cutoff by the move with this index.
    #[inline]
    pub fn cutoff(&mut self, index: usize) {
        self.counters.cutoffs += 1;
        self.counters.first_move_cutoffs += u64::from(index == 0);
    }
}
