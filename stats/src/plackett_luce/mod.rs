//! Ratings from games of many seats: the Plackett-Luce model of rankings with seat effects.
//!
//! Seats are drawn place by place, each with probability proportional to 10^((strength of the player + effect of the
//! seat) / 400) among the remaining (Luce, 1959; Plackett, 1975), so that 400 means odds of 10, and with two seats
//! the model is Bradley and Terry's. There is no draw parameter: a tie is half of each order.
//!
//! `ranking.rs` reads a game as a ranking, `likelihood.rs` has its derivatives, `fit.rs` maximises, `graph.rs` finds
//! comparable players, `bootstrap.rs` computes intervals.

mod bootstrap;
mod fit;
mod graph;
mod likelihood;
mod ranking;

pub use bootstrap::{DEFAULT_REPLICAS, Replicas};
pub use fit::{Anchor, Fit, Strength};
pub use ranking::{Game, LowestPlaces, RankingError};

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use likelihood::Kind;

/// The games of a pool. Equal games and equal bouts are stored once, with counts.
#[derive(Clone, Debug)]
pub struct Pool {
    players: usize,
    seats: usize,
    lowest: LowestPlaces,
    /// The distinct games, and the index of each.
    kinds: Vec<Kind>,
    places: BTreeMap<Kind, usize>,
    /// For each roster (the sorted players of a bout) its bouts, as the sorted indices of their games, with counts.
    rosters: BTreeMap<Vec<usize>, BTreeMap<Vec<usize>, u64>>,
}

impl Pool {
    /// Creates an empty pool of `players` players, numbered from 0, in a game of `seats` seats.
    pub fn new(players: usize, seats: usize, lowest: LowestPlaces) -> Result<Self, RankingError> {
        if !(ranking::FEWEST_SEATS..=ranking::MOST_SEATS).contains(&seats) {
            return Err(RankingError::Seats { seats });
        }
        let (kinds, places, rosters) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Pool { players, seats, lowest, kinds, places, rosters })
    }

    /// Adds the games of one bout, which are resampled together. If bouts are unknown, each game is a bout.
    pub fn add(&mut self, bout: &[Game]) -> Result<(), RankingError> {
        self.add_bouts(bout, 1)
    }

    /// Adds `count` bouts with these games.
    pub fn add_bouts(&mut self, bout: &[Game], count: u64) -> Result<(), RankingError> {
        let read = |game: &Game| ranking::read(game, self.players, self.seats, self.lowest);
        let read: Vec<Kind> = bout.iter().map(read).collect::<Result<_, _>>()?;
        let mut roster: Vec<usize> = bout.iter().flat_map(|game| game.players.iter().copied()).collect();
        roster.sort_unstable();
        roster.dedup();
        let mut games: Vec<usize> = read.into_iter().map(|kind| self.place_of(kind)).collect();
        games.sort_unstable();
        *self.rosters.entry(roster).or_default().entry(games).or_insert(0) += count;
        Ok(())
    }

    fn place_of(&mut self, kind: Kind) -> usize {
        if let Some(&place) = self.places.get(&kind) {
            return place;
        }
        let place = self.kinds.len();
        self.places.insert(kind.clone(), place);
        self.kinds.push(kind);
        place
    }

    /// Returns the number of players.
    pub fn players(&self) -> usize {
        self.players
    }

    /// Returns the number of seats.
    pub fn seats(&self) -> usize {
        self.seats
    }

    /// Returns the number of bouts.
    pub fn bouts(&self) -> u64 {
        self.rosters.values().flat_map(BTreeMap::values).sum()
    }

    /// Returns the count of each distinct game.
    fn counts(&self) -> Vec<f64> {
        let mut counts = vec![0.0; self.kinds.len()];
        for (bout, &count) in self.rosters.values().flatten() {
            for &game in bout {
                counts[game] += count as f64;
            }
        }
        counts
    }

    /// Fits strengths of maximum likelihood. Precondition: an anchor player is in the pool.
    pub fn fit(&self, anchor: Anchor) -> Fit {
        self.assert_anchor(anchor);
        fit::fit(self, anchor)
    }

    /// Fits `replicas` pools whose bouts are drawn with replacement within each roster. Precondition as for
    /// [`Pool::fit`].
    pub fn bootstrap(&self, anchor: Anchor, seed: u64, replicas: usize) -> Replicas {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.bootstrap_with_progress(anchor, seed, replicas, threads, &|| ())
    }

    /// Does the same on a number of threads, which does not change the result, and calls `on_replica` after each
    /// replica on its thread, to show progress.
    pub fn bootstrap_with_progress(
        &self,
        anchor: Anchor,
        seed: u64,
        replicas: usize,
        threads: NonZeroUsize,
        on_replica: &(dyn Fn() + Sync),
    ) -> Replicas {
        self.assert_anchor(anchor);
        bootstrap::bootstrap(self, anchor, seed, replicas, threads, on_replica)
    }

    fn assert_anchor(&self, anchor: Anchor) {
        if let Anchor::Player(player) = anchor {
            assert!(player < self.players, "the anchor must be one of the pool's {} players", self.players);
        }
    }
}
