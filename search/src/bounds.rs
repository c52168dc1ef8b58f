//! The bounds of the numbers of a search: what holds for every finished search, whatever its algorithm and limit.
//!
//! A referee applies them to searches that it has not seen. They are the laws of `arena/tests/referee.rs`, which plays
//! every algorithm with every kind of limit. A bound that an honest search may exceed does not belong here.

use std::sync::LazyLock;
use std::time::Duration;

use crate::budget::Limit;
use crate::counters::Counters;
use crate::rate::MAX_RATE;
use crate::value::{MAX_PLY, UNIT, Value, WIN};

/// The numbers of a finished search, as its record has them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SearchNumbers<'a> {
    /// The counters.
    pub counters: Counters,
    /// The last completed depth.
    pub depth: u32,
    /// The greatest distance from the root.
    pub selective_depth: u32,
    /// Nodes of each completed depth alone.
    pub depth_nodes: &'a [u64],
    /// Microseconds of each completed depth alone.
    pub depth_time_us: &'a [u64],
    /// The number of moves of the principal variation.
    pub pv: u64,
    /// The value.
    pub score: f64,
    /// The time taken, in microseconds.
    pub time_us: u64,
    /// The time beyond the limit, in microseconds.
    pub overshoot_us: u64,
}

/// What a search was allowed to spend.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Allowance {
    /// The limit; on a game clock, with the time that was left.
    pub limit: Limit,
    /// Whether the search samples, so that a node limit counts simulations and there is no depth.
    pub samples: bool,
    /// The most playouts, if the player's options limit them.
    pub playouts: Option<u64>,
    /// The bound on the plies of the game.
    pub ply_bound: u32,
    /// The searches and simulations of this player in the game, those of this search included. Each may have added the
    /// moves of one position to a tree that is kept.
    pub expansions: u64,
}

/// A number of a search that exceeds its bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoundExceeded {
    /// The name of the number.
    pub name: &'static str,
    /// The number.
    pub value: u64,
    /// The bound.
    pub most: u64,
    /// What bounds it.
    pub reason: &'static str,
}

impl std::fmt::Display for BoundExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BoundExceeded { name, value, most, reason } = self;
        write!(f, "`{name}` is {value}, and it must be at most {most}: {reason}")
    }
}

impl std::error::Error for BoundExceeded {}

/// The longest time of a search or a game, in microseconds: a year, as the longest time limit.
pub const MAX_DURATION_US: u64 = 365 * 24 * 3600 * 1_000_000;

/// The most moves of a position: a tree of a sampling search holds no more children of a node.
const MAX_MOVES: u64 = u16::MAX as u64;

/// The most plies of a proof: the distances of a sampling search have 16 bits, and other searches are less deep.
const MAX_PROOF: u64 = u16::MAX as u64;

/// The coarsest clock, in microseconds: this time may seem to be none.
pub const CLOCK_TICK_US: u64 = 20_000;

/// The time that may pass between two consecutive readings of a clock, in microseconds. Earlier builds read it once for the
/// time and once for the overshoot.
const BETWEEN_READINGS_US: u64 = 1_000_000;

/// Returns a duration in whole microseconds, rounded down.
fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Allowance {
    /// Returns `bound` for a search that samples, otherwise `other`.
    fn sampled(&self, bound: u64, other: u64) -> u64 {
        if self.samples { bound } else { other }
    }

    /// Returns the node limit. A search may enter one node whatever its limit, because it needs a move.
    fn nodes(&self) -> u64 {
        if let Limit::Nodes(nodes) = self.limit { nodes.max(1) } else { u64::MAX }
    }

    /// Returns the depth limit. A search may complete one ply whatever its limit.
    fn depth(&self) -> u64 {
        if let Limit::Depth(depth) = self.limit { u64::from(depth.max(1)) } else { u64::MAX }
    }

    /// Returns the bound of the time beyond the limit in a search that took `time_us`.
    fn overshoot_us(&self, time_us: u64) -> u64 {
        self.limit
            .time()
            .map_or(0, |time| time_us.saturating_sub(microseconds(time)).saturating_add(BETWEEN_READINGS_US))
    }
}

/// Returns the most nodes that any processor enters in this time.
fn nodes_in(time_us: u64) -> u64 {
    (MAX_RATE / 1e6) as u64 * time_us.saturating_add(CLOCK_TICK_US).min(MAX_DURATION_US)
}

/// Sums numbers; a sum that is too large is the largest number.
fn sum(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |sum, &number| sum.saturating_add(number))
}

macro_rules! bounds {
    (|$numbers:ident, $counters:ident, $given:ident| $($name:ident: $value:expr, $most:expr, $reason:literal;)*) => {
        /// The name of each bounded number and what bounds it.
        pub const BOUNDS: &[(&str, &str)] = &[$((stringify!($name), $reason)),*];

        impl SearchNumbers<'_> {
            /// Checks every bound and returns the first that is exceeded.
            pub fn check(&self, $given: &Allowance) -> Result<(), BoundExceeded> {
                self.check_unlisted()?;
                let ($numbers, $counters) = (self, &self.counters);
                $({
                    let (value, most): (u64, u64) = ($value, $most);
                    if value > most {
                        return Err(BoundExceeded { name: stringify!($name), value, most, reason: $reason });
                    }
                })*
                Ok(())
            }
        }
    };
}

// The number, its value, its bound, and what bounds it.
bounds! { |search, counters, given|
    time_us: search.time_us, MAX_DURATION_US, "a year";
    nodes: counters.nodes, given.sampled(u64::MAX, given.nodes()), "the node limit";
    nodes: counters.nodes, nodes_in(search.time_us), "the time, at a node in each cycle of any processor";
    simulations: counters.simulations, given.sampled(given.nodes(), 0),
        "the node limit of a sampling search, none in others";
    simulations: counters.simulations, given.sampled(given.playouts.unwrap_or(u64::MAX), 0),
        "the playouts that the options allow";
    simulations: counters.simulations, given.sampled(counters.nodes.saturating_sub(1), 0),
        "the nodes besides the root, at least one for each";
    nodes: counters.nodes,
        given.sampled(counters.simulations.saturating_mul(given.ply_bound.into()).saturating_add(1), u64::MAX),
        "the root, and for each simulation the plies of the longest game";
    leaves: counters.leaves, given.sampled(counters.simulations, counters.nodes),
        "the simulations of a sampling search, the nodes of others";
    quiescence_nodes: counters.quiescence_nodes, given.sampled(0, counters.nodes),
        "the nodes, none in a sampling search";
    cutoffs: counters.cutoffs, given.sampled(0, counters.nodes), "the nodes, none in a sampling search";
    first_move_cutoffs: counters.first_move_cutoffs, counters.cutoffs, "the cutoffs";
    table_probes: counters.table_probes, given.sampled(0, counters.nodes.saturating_mul(2)),
        "two for each node, one of them to confirm a null move; none in a sampling search";
    table_hits: counters.table_hits, counters.table_probes, "the table probes";
    table_stores: counters.table_stores, counters.table_probes, "the table probes";
    researches: counters.researches, given.sampled(0, counters.nodes), "the nodes, none in a sampling search";
    playout_plies: counters.playout_plies, given.sampled(counters.nodes.saturating_sub(1), 0),
        "the nodes besides the root of a sampling search, none in others";
    tree_nodes: counters.tree_nodes,
        given.sampled(given.expansions.saturating_mul(MAX_MOVES).saturating_add(1).min(u32::MAX.into()), 0),
        "the moves of a position for each search and simulation of a sampling player in the game, none in others";
    proven_plies: counters.proven_plies, MAX_PROOF, "the longest proof";
    depth: search.depth.into(), given.sampled(0, given.depth()), "the depth limit, 0 in a sampling search";
    depth: search.depth.into(), (MAX_PLY as u64).min(given.ply_bound.into()), "the longest line";
    depth: search.depth.into(), counters.nodes, "the nodes, at least one for each depth";
    selective_depth: search.selective_depth.into(),
        given.sampled(given.ply_bound.into(), MAX_PLY as u64), "the longest line";
    selective_depth: search.selective_depth.into(), counters.nodes, "the nodes";
    depth_nodes: search.depth_nodes.len() as u64, search.depth.into(), "an entry for each completed depth";
    depth_nodes: sum(search.depth_nodes), counters.nodes, "the sum is part of the nodes";
    depth: search.depth.into(), search.depth_nodes.len() as u64, "the entries of `depth_nodes`";
    depth_time_us: search.depth_time_us.len() as u64, search.depth.into(), "an entry for each completed depth";
    depth_time_us: sum(search.depth_time_us), search.time_us, "the sum is part of the time";
    depth: search.depth.into(), search.depth_time_us.len() as u64, "the entries of `depth_time_us`";
    pv: search.pv, given.ply_bound.into(), "the plies of the longest game";
    score: search.score.abs().ceil() as u64, (WIN / UNIT) as u64, "the value of a win";
    overshoot_us: search.overshoot_us, given.overshoot_us(search.time_us), "the time beyond the limit";
}

/// The counters without a bound of their own, by their places in [`Counters::LIST`].
static UNLISTED: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let is_unlisted = |place: &usize| !BOUNDS.iter().any(|(name, _)| *name == Counters::LIST[*place].name);
    (0..Counters::COUNT).filter(is_unlisted).collect()
});

impl SearchNumbers<'_> {
    /// Returns the value with its proof.
    pub fn value(&self) -> Value {
        Value::recorded(self.score, self.counters.proven_plies.try_into().unwrap_or(u32::MAX))
    }

    /// Checks the counters without a bound of their own. They count events, which take time.
    fn check_unlisted(&self) -> Result<(), BoundExceeded> {
        if UNLISTED.is_empty() {
            return Ok(());
        }
        let (values, most) = (self.counters.values(), nodes_in(self.time_us));
        let exceeded = UNLISTED.iter().find(|&&place| values[place] > most);
        exceeded.map_or(Ok(()), |&place| {
            let reason = "the time, at an event in each cycle of any processor";
            Err(BoundExceeded { name: Counters::LIST[place].name, value: values[place], most, reason })
        })
    }
}
