//! Ratings from games of many seats: Plackett and Luce's model of rankings with an effect of each seat.
//!
//! A game's seats are drawn place by place, the next always with probability proportional to
//! 10^((strength of the player + effect of the seat) / 400) among those left (Luce, 1959; Plackett, 1975), so that 400
//! means odds of 10, and with two seats the model is Bradley and Terry's. `ranking.rs` reads a game as a ranking,
//! `likelihood.rs` has its logarithm and derivatives, `fit.rs` maximises, `graph.rs` says what can be compared at all,
//! `bootstrap.rs` gives intervals. No draw parameter is fitted: a tie is half of each order.

mod bootstrap;
mod fit;
mod graph;
mod likelihood;
mod ranking;
mod simulate;

pub use bootstrap::Replicas;
pub use fit::{Anchor, Bound, Fit, Strength};
pub use ranking::{Game, LowestPlaces, RankingError};
pub use simulate::{Recovery, Truth, simulate_recovery};

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use likelihood::Kind;

/// The games of a pool, counted: equal games and equal bouts are kept once.
#[derive(Clone, Debug)]
pub struct Pool {
    players: usize,
    seats: usize,
    lowest: LowestPlaces,
    /// The kinds of games, and where each is found.
    kinds: Vec<Kind>,
    places: BTreeMap<Kind, usize>,
    /// For each roster (the sorted players of a bout) its bouts, each as the sorted kinds of its games, with a count.
    rosters: BTreeMap<Vec<usize>, BTreeMap<Vec<usize>, u64>>,
}

impl Pool {
    /// A pool of `players` players, numbered from 0, in a game of `seats` seats.
    pub fn new(players: usize, seats: usize, lowest: LowestPlaces) -> Result<Self, RankingError> {
        if !(ranking::FEWEST_SEATS..=ranking::MOST_SEATS).contains(&seats) {
            return Err(RankingError::Seats { seats });
        }
        let (kinds, places, rosters) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Pool { players, seats, lowest, kinds, places, rosters })
    }

    /// Adds the games of one bout, which are resampled together. Where bouts are not known, a game is a bout.
    pub fn add(&mut self, bout: &[Game]) -> Result<(), RankingError> {
        self.add_bouts(bout, 1)
    }

    /// Adds `count` bouts with the same games.
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

    /// How many players there are.
    pub fn players(&self) -> usize {
        self.players
    }

    /// How many seats the game has.
    pub fn seats(&self) -> usize {
        self.seats
    }

    /// How many bouts were added.
    pub fn bouts(&self) -> u64 {
        self.rosters.values().flat_map(BTreeMap::values).sum()
    }

    /// How often each kind of game was played.
    fn counts(&self) -> Vec<f64> {
        let mut counts = vec![0.0; self.kinds.len()];
        for (bout, &count) in self.rosters.values().flatten() {
            for &game in bout {
                counts[game] += count as f64;
            }
        }
        counts
    }

    /// The strengths of maximal likelihood. Precondition: a player to anchor at is in the pool.
    pub fn fit(&self, anchor: Anchor) -> Fit {
        self.assert_anchor(anchor);
        fit::fit(self, anchor)
    }

    /// The fit of `replicas` pools whose bouts are drawn with replacement within each roster. Precondition as for
    /// [`Pool::fit`].
    pub fn bootstrap(&self, anchor: Anchor, seed: u64, replicas: usize) -> Replicas {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.bootstrap_watched(anchor, seed, replicas, threads, &|| ())
    }

    /// The same over a number of threads, which changes nothing, with a call after each replica from the thread that made
    /// it, for those who show how far it is.
    pub fn bootstrap_watched(
        &self,
        anchor: Anchor,
        seed: u64,
        replicas: usize,
        threads: NonZeroUsize,
        made_one: &(dyn Fn() + Sync),
    ) -> Replicas {
        self.assert_anchor(anchor);
        bootstrap::bootstrap(self, anchor, seed, replicas, threads, made_one)
    }

    fn assert_anchor(&self, anchor: Anchor) {
        if let Anchor::Player(player) = anchor {
            assert!(player < self.players, "the anchor must be one of the pool's {} players", self.players);
        }
    }
}
