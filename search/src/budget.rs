//! What a search may spend, and when it must stop.
//!
//! Every node asks the budget, which reads the clock about ten thousand times a second; a limit of nodes is exact. The caller
//! provides the clock. Time spent beyond the limit is recorded.

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
    /// Positions entered; for sampling searches, simulations.
    Nodes(u64),
    /// Plies searched to the full width.
    Depth(u32),
    /// A game clock: what is left on it and what is added after the move.
    Clock {
        /// What is left before the move.
        remaining: Duration,
        /// What is added after it.
        increment: Duration,
    },
}

impl Limit {
    /// The time that a move may take, if the limit is one of time.
    ///
    /// The time manager of a game clock: a thirtieth of what is left and four fifths of the increment, and never more
    /// than half of what is left.
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

/// The budget is spent: the search unwinds with this and its last answer stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BudgetExhausted;

/// The state that a search shares with the thread that controls it.
#[derive(Default, Debug)]
pub struct SearchControl {
    interrupt: AtomicBool,
    pulse: AtomicU64,
}

impl SearchControl {
    /// Ends the search, and those after it, as soon as they look.
    pub fn interrupt(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
    }

    /// Lets searches run again.
    pub fn resume(&self) {
        self.interrupt.store(false, Ordering::Relaxed);
    }

    /// Whether searches are to end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// A number that grows while a search is running.
    pub fn pulse(&self) -> u64 {
        self.pulse.load(Ordering::Relaxed)
    }
}

/// What is left to spend in one search.
pub struct Budget {
    clock: Arc<dyn Clock>,
    control: Option<Arc<SearchControl>>,
    limit: Limit,
    start: Duration,
    deadline: Option<Duration>,
    last_node: u64,
    next_look: u64,
    /// Nodes until the look after the next one.
    stride: u64,
    last_look: Duration,
}

/// The time between two readings of the clock. The number of nodes between them adapts: few in a game whose nodes are slow,
/// many where they are fast.
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);
const LEAST_STRIDE: u64 = 8;
const GREATEST_STRIDE: u64 = 4096;

impl Budget {
    /// A budget that starts now. For [`Limit::Cpu`] the clock must be a thread's.
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

    /// The same budget, which also ends when it is interrupted, and shows that it is spent.
    pub fn controlled_by(self, control: Arc<SearchControl>) -> Budget {
        Budget { control: Some(control), ..self }
    }

    /// Whether one more node may be entered after `nodes` of them.
    #[inline]
    pub fn spend(&mut self, nodes: u64) -> Result<(), BudgetExhausted> {
        if nodes < self.next_look { Ok(()) } else { self.look(nodes) }
    }

    /// How many of `wanted` nodes may be entered after `nodes` of them before the budget must be asked again: at least
    /// one. Precondition: `wanted` is not 0.
    #[inline]
    pub fn grant(&mut self, nodes: u64, wanted: u64) -> Result<u64, BudgetExhausted> {
        if nodes + wanted > self.next_look {
            self.look(nodes)?;
        }
        Ok(wanted.min(self.next_look - nodes))
    }

    /// Returns whether one more simulation may start after `simulations`, which entered `positions`. A limit of nodes
    /// counts simulations here; a limit of depth means nothing and allows none.
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
        let interrupted = self.control.as_ref().is_some_and(|control| {
            control.pulse.fetch_add(1, Ordering::Relaxed);
            control.is_interrupted()
        });
        if late || interrupted || nodes >= self.last_node {
            // The next call ends here too.
            self.next_look = 0;
            return Err(BudgetExhausted);
        }
        let stride = if self.deadline.is_some() { self.stride } else { GREATEST_STRIDE };
        self.next_look = (nodes + stride).min(self.last_node);
        Ok(())
    }

    /// The deepest iteration that the limit allows.
    pub fn depth(&self) -> u32 {
        if let Limit::Depth(depth) = self.limit { depth.min(MAX_PLY as u32) } else { MAX_PLY as u32 }
    }

    /// The limit.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.clock.now().saturating_sub(self.start)
    }

    /// The time beyond the limit, if the limit is one of time.
    pub fn overshoot(&self) -> Duration {
        self.limit.time().map_or(Duration::ZERO, |time| self.elapsed().saturating_sub(time))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A clock that shows the time that was set.
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
    fn a_limit_of_nodes_is_exact() {
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
    fn a_limit_of_time_is_seen_within_so_many_nodes() {
        let clock = Held::at(Duration::from_secs(7));
        let mut budget = Budget::start(Limit::Wall(Duration::from_millis(50)), clock.clone());
        let mut nodes = 0;
        while budget.spend(nodes).is_ok() {
            nodes += 1;
            clock.set(Duration::from_secs(7) + Duration::from_micros(nodes));
        }
        // A node a microsecond: the looks are some hundred nodes apart.
        assert!((50_000..=50_200).contains(&nodes), "{nodes}");
        assert_eq!(budget.overshoot(), Duration::from_micros(nodes - 50_000));
    }

    #[test]
    fn an_interrupt_is_seen() {
        let clock = Held::at(Duration::ZERO);
        let control = Arc::new(SearchControl::default());
        let mut budget = Budget::start(Limit::Depth(9), clock).controlled_by(Arc::clone(&control));
        assert_eq!((budget.spend(0), control.pulse()), (Ok(()), 1));
        control.interrupt();
        assert_eq!((budget.spend(GREATEST_STRIDE), control.pulse()), (Err(BudgetExhausted), 2));
    }

    #[test]
    fn the_time_manager_never_spends_more_than_half() {
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
