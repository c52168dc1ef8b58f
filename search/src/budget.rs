//! Search budgets: what a search may spend, and when it must stop.
//!
//! A search asks the budget at every node. A node limit is exact; the clock, which the caller provides, is read about
//! ten thousand times a second, and time spent beyond the limit is recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Clock;
use crate::value::MAX_PLY;

/// The limit of one search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Wall time.
    Wall(Duration),
    /// Processor time of the thread.
    Cpu(Duration),
    /// Positions entered; in sampling searches, simulations.
    Nodes(u64),
    /// Plies searched to the full width.
    Depth(u32),
    /// A game clock.
    Clock {
        /// The time left before the move.
        remaining: Duration,
        /// The time added after the move.
        increment: Duration,
    },
}

impl Limit {
    /// Returns the time that a move may take, if time is limited.
    ///
    /// On a game clock: a thirtieth of the remaining time plus four fifths of the increment, at most half of the
    /// remaining time.
    pub fn time(self) -> Option<Duration> {
        match self {
            Limit::Wall(time) | Limit::Cpu(time) => Some(time),
            Limit::Clock { remaining, increment } => {
                Some((remaining / 30 + increment * 4 / 5).min(remaining / 2))
            }
            Limit::Nodes(_) | Limit::Depth(_) => None,
        }
    }
}

/// The error with which a search unwinds when its budget is exhausted; its last result stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BudgetExhausted;

/// The state that a search shares with the thread that controls it.
#[derive(Default, Debug)]
pub struct SearchControl {
    interrupt: AtomicBool,
    pulse: AtomicU64,
}

impl SearchControl {
    /// Ends the current search, and later ones, at their next clock reading.
    pub fn interrupt(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
    }

    /// Allows searches to run again.
    pub fn resume(&self) {
        self.interrupt.store(false, Ordering::Relaxed);
    }

    /// Returns whether searches must end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Shows that a search outside of this process is running.
    pub fn show_progress(&self) {
        self.pulse.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a counter that increases while a search is running.
    pub fn pulse(&self) -> u64 {
        self.pulse.load(Ordering::Relaxed)
    }
}

/// The remaining budget of one search.
pub struct Budget {
    clock: Arc<dyn Clock>,
    control: Option<Arc<SearchControl>>,
    limit: Limit,
    start: Duration,
    deadline: Option<Duration>,
    last_node: u64,
    next_look: u64,
    /// Nodes between the next two clock readings.
    stride: u64,
    last_look: Duration,
}

/// The target time between two clock readings. The number of nodes between them adapts to the game's speed.
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);
const LEAST_STRIDE: u64 = 8;
const GREATEST_STRIDE: u64 = 4096;

impl Budget {
    /// Starts a budget. [`Limit::Cpu`] requires the clock of a thread.
    pub fn start(limit: Limit, clock: Arc<dyn Clock>) -> Budget {
        let start = clock.now();
        let last_node = if let Limit::Nodes(nodes) = limit { nodes } else { u64::MAX };
        let deadline = limit.time().map(|time| start + time);
        Budget {
            clock,
            control: None,
            limit,
            start,
            deadline,
            last_node,
            next_look: 0,
            stride: LEAST_STRIDE,
            last_look: start,
        }
    }

    /// Returns the budget with a control, which can interrupt it and sees its progress.
    pub fn controlled_by(self, control: Arc<SearchControl>) -> Budget {
        Budget { control: Some(control), ..self }
    }

    /// Returns whether another node may be entered after `nodes`.
    #[inline]
    pub fn spend(&mut self, nodes: u64) -> Result<(), BudgetExhausted> {
        if nodes < self.next_look { Ok(()) } else { self.look(nodes) }
    }

    /// Returns how many of `wanted` nodes may be entered after `nodes` before the next call: at least one.
    /// Precondition: `wanted` is not 0.
    #[inline]
    pub fn grant(&mut self, nodes: u64, wanted: u64) -> Result<u64, BudgetExhausted> {
        if nodes + wanted > self.next_look {
            self.look(nodes)?;
        }
        Ok(wanted.min(self.next_look - nodes))
    }

    /// Returns whether another simulation may start after `simulations`, which entered `positions`. A node limit
    /// counts simulations here; a depth limit does not apply and allows none.
    #[inline]
    pub fn simulate(&mut self, simulations: u64, positions: u64) -> Result<(), BudgetExhausted> {
        if simulations >= self.last_node || matches!(self.limit, Limit::Depth(_)) {
            return Err(BudgetExhausted);
        }
        if positions < self.next_look {
            return Ok(());
        }
        let last_node = std::mem::replace(&mut self.last_node, u64::MAX);
        let outcome = self.look(positions);
        self.last_node = last_node;
        outcome
    }

    #[cold]
    fn look(&mut self, nodes: u64) -> Result<(), BudgetExhausted> {
        let late = self.deadline.is_some_and(|deadline| {
            let now = self.clock.now();
            let since = now.saturating_sub(self.last_look);
            self.last_look = now;
            self.stride = if since < BETWEEN_LOOKS / 2 { self.stride * 2 } else { self.stride };
            self.stride = if since > BETWEEN_LOOKS { self.stride / 2 } else { self.stride };
            self.stride = self.stride.clamp(LEAST_STRIDE, GREATEST_STRIDE);
            now >= deadline
        });
        if let Some(control) = &self.control {
            control.pulse.fetch_add(1, Ordering::Relaxed);
        }
        if late || self.is_interrupted() || nodes >= self.last_node {
            // Make the next call fail too.
            self.next_look = 0;
            return Err(BudgetExhausted);
        }
        let stride = if self.deadline.is_some() { self.stride } else { GREATEST_STRIDE };
        self.next_look = (nodes + stride).min(self.last_node);
        Ok(())
    }

    /// Returns whether the control has interrupted the search.
    pub fn is_interrupted(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.is_interrupted())
    }

    /// Returns the greatest depth that the limit allows.
    pub fn depth(&self) -> u32 {
        if let Limit::Depth(depth) = self.limit { depth.min(MAX_PLY as u32) } else { MAX_PLY as u32 }
    }

    /// Returns the limit.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Returns the elapsed time.
    pub fn elapsed(&self) -> Duration {
        self.clock.now().saturating_sub(self.start)
    }

    /// Returns the part of the elapsed time that is beyond the limit, if time is limited.
    pub fn overshoot(&self, elapsed: Duration) -> Duration {
        self.limit.time().map_or(Duration::ZERO, |time| elapsed.saturating_sub(time))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A clock set by hand.
    struct Held(Mutex<Duration>);

    impl Held {
        fn at(time: Duration) -> Arc<Held> {
            Arc::new(Held(Mutex::new(time)))
        }

        fn set(&self, time: Duration) {
            *self.0.lock().unwrap() = time;
        }
    }

    impl Clock for Held {
        fn now(&self) -> Duration {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn node_limit_is_exact() {
        let clock = Held::at(Duration::ZERO);
        for limit in [0, 1, 1023, 1024, 1025, 5000] {
            let mut budget = Budget::start(Limit::Nodes(limit), clock.clone());
            let entered = (0..).find(|&nodes| budget.spend(nodes).is_err()).unwrap();
            assert_eq!(entered, limit);
            assert_eq!(budget.spend(entered), Err(BudgetExhausted));

            let mut budget = Budget::start(Limit::Nodes(limit), clock.clone());
            let mut entered = 0;
            while let Ok(granted) = budget.grant(entered, 1 + entered % 37) {
                assert!((1..=1 + entered % 37).contains(&granted));
                entered += granted;
            }
            assert_eq!(entered, limit);
        }
    }

    #[test]
    fn time_limit_stops_within_few_nodes() {
        let clock = Held::at(Duration::from_secs(7));
        let mut budget = Budget::start(Limit::Wall(Duration::from_millis(50)), clock.clone());
        let mut nodes = 0;
        while budget.spend(nodes).is_ok() {
            nodes += 1;
            clock.set(Duration::from_secs(7) + Duration::from_micros(nodes));
        }
        // At one node per microsecond the clock is read about every hundred nodes.
        assert!((50_000..=50_200).contains(&nodes), "{nodes}");
        assert_eq!(budget.overshoot(budget.elapsed()), Duration::from_micros(nodes - 50_000));
    }

    #[test]
    fn interrupt_stops_search() {
        let clock = Held::at(Duration::ZERO);
        let control = Arc::new(SearchControl::default());
        let mut budget = Budget::start(Limit::Depth(9), clock).controlled_by(Arc::clone(&control));
        assert_eq!((budget.spend(0), control.pulse()), (Ok(()), 1));
        control.interrupt();
        assert_eq!((budget.spend(GREATEST_STRIDE), control.pulse()), (Err(BudgetExhausted), 2));
    }

    #[test]
    fn time_manager_spends_at_most_half() {
        for remaining in [0, 1, 10, 1000, 60_000] {
            for increment in [0, 5, 100, 10_000] {
                let [remaining, increment] = [remaining, increment].map(Duration::from_millis);
                let time = Limit::Clock { remaining, increment }.time().unwrap();
                assert!(time <= remaining / 2);
            }
        }
        let limit =
            Limit::Clock { remaining: Duration::from_secs(30), increment: Duration::from_millis(100) };
        assert_eq!(limit.time(), Some(Duration::from_millis(1080)));
    }
}
