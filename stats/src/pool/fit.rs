//! Fitted ratings of a pool.
//!
//! Players of the same block get estimates; whole blocks above or below their component's reference get bounds.
//! Errors are computed in `sandwich` and `bootstrap`, tables in `table`.

use thiserror::Error;

use super::model::Point;
use super::newton::{Parameters, Problem};
use super::results::{GameCounts, Pairing, Results, Sorted, Unit};
use super::structure::{Component, Structure, advantage_is_identifiable};
use crate::elo::POINTS_PER_LOGIT;

/// The probability of such a one-sided result at a bound: bounds are one-sided at 95 %.
const BOUND_PROBABILITY: f64 = 0.05;

/// The largest bound in log-odds from the reference.
const LARGEST_BOUND: f64 = 40.0;

/// The options of a fit.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The player whose rating is zero. Without it, zero is the mean of each component's reference block or, with a
    /// prior, the imaginary opponent.
    pub anchor: Option<String>,
    /// Whether to fit the first seat's advantage, if it is identifiable.
    pub seat_advantage: bool,
    /// Imaginary wins, and as many losses, of each player against an opponent rated zero; 0 for none. They have no
    /// draws and no seats, and connect all players.
    pub prior: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options { anchor: None, seat_advantage: true, prior: 0.0 }
    }
}

/// Options that do not fit the pool.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum RatingError {
    /// The anchor did not play.
    #[error("the anchor `{anchor}` is not among the players: {}", players.join(", "))]
    UnknownAnchor {
        /// The anchor as given.
        anchor: String,
        /// The players of the pool.
        players: Vec<String>,
    },
    /// An invalid prior.
    #[error("the prior is {0}; it is a number of games, zero for none")]
    Prior(f64),
}

/// The side on which the rating lies of a player who won or lost everything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    /// The player won everything: the rating is at least the value.
    AtLeast,
    /// The player lost everything: the rating is at most the value.
    AtMost,
}

/// A rated pool. Players are sorted by name.
#[derive(Clone, Debug)]
pub struct Fit {
    pub(super) results: Sorted,
    pub(super) structure: Structure,
    pub(super) problem: Problem,
    /// The pairings within blocks and their games, in the problem's order.
    pub(super) inner: Vec<Pairing>,
    pub(super) tallies: Vec<GameCounts>,
    pub(super) parameters: Parameters,
    pub(super) anchor: Option<usize>,
    ratings: Vec<f64>,
    bounds: Vec<Option<Bound>>,
    component_of: Vec<usize>,
}

impl Fit {
    /// Rates a pool.
    pub fn new(results: &Results, options: &Options) -> Result<Self, RatingError> {
        if !(options.prior >= 0.0 && options.prior.is_finite()) {
            return Err(RatingError::Prior(options.prior));
        }
        let results = results.sorted();
        let anchor = match &options.anchor {
            None => None,
            Some(anchor) => Some(results.names.binary_search(anchor).map_err(|_| {
                RatingError::UnknownAnchor { anchor: anchor.clone(), players: results.names.clone() }
            })?),
        };
        let players = results.names.len();
        let structure =
            if options.prior > 0.0 { Structure::joined(players) } else { Structure::new(&results, anchor) };
        let within =
            |pairing: &&Pairing| structure.block_of[pairing.one] == structure.block_of[pairing.other];
        let inner: Vec<Pairing> = results.pairings.iter().filter(within).cloned().collect();
        let tallies: Vec<GameCounts> = inner.iter().map(Pairing::tally).collect();
        let met = inner.iter().zip(&tallies).map(|(pairing, tally)| (pairing.one, pairing.other, tally));
        let problem = Problem {
            players,
            pairings: inner.iter().map(|pairing| (pairing.one, pairing.other)).collect(),
            blocks: structure.blocks.clone(),
            advantage: options.seat_advantage && advantage_is_identifiable(players, met),
            draws: tallies.iter().any(|tally| tally.total()[1] > 0.0),
            prior: options.prior,
        };
        let parameters = problem.maximise(&tallies, problem.start(&tallies));
        let mut fit = Fit {
            ratings: vec![0.0; players],
            bounds: vec![None; players],
            component_of: vec![0; players],
            results,
            structure,
            problem,
            inner,
            tallies,
            parameters,
            anchor,
        };
        fit.place();
        Ok(fit)
    }

    /// Returns the sorted names of the players.
    pub fn names(&self) -> &[String] {
        &self.results.names
    }

    /// Returns the ratings in Elo, or the bounds.
    pub fn ratings(&self) -> &[f64] {
        &self.ratings
    }

    /// Returns the bounds of players who won or lost everything against those they are compared with. At the bound
    /// such a result has a probability of 5 %, given the other ratings.
    pub fn bounds(&self) -> &[Option<Bound>] {
        &self.bounds
    }

    /// Returns the component of each player. No results connect different components, so their ratings cannot be
    /// compared.
    pub fn component_of(&self) -> &[usize] {
        &self.component_of
    }

    /// Returns the number of components.
    pub fn components(&self) -> usize {
        self.structure.components.len()
    }

    /// Returns the first seat's advantage in Elo, if it was fitted.
    pub fn seat_advantage(&self) -> Option<f64> {
        self.problem.advantage.then_some(self.parameters.advantage * POINTS_PER_LOGIT)
    }

    /// Returns the share of draws between equal players.
    pub fn draw_rate(&self) -> f64 {
        self.parameters.draw_rate()
    }

    /// Returns whether all results were whole bouts; single games count as independent.
    pub fn bouts_only(&self) -> bool {
        self.results.pairings.iter().all(|pairing| {
            let singles = pairing.units.iter().enumerate().filter(|&(_, &count)| count > 0);
            singles.map(|(kind, _)| Unit::of_kind(kind)).all(|unit| matches!(unit, Unit::Bout(..)))
        })
    }

    /// Shifts the blocks of each component to one scale, and the anchor to zero.
    fn place(&mut self) {
        let mut ratings = self.parameters.ratings.clone();
        for (index, component) in self.structure.components.iter().enumerate() {
            let mut placed = vec![component.reference];
            for (blocks, bound) in [(&component.above, Bound::AtLeast), (&component.below, Bound::AtMost)] {
                // A lower bound bounds no other player from above, so each side is placed against the reference
                // alone.
                placed.truncate(1);
                for &block in blocks {
                    let offset = self.bound(block, &placed, &ratings, bound);
                    for &player in &self.structure.blocks[block] {
                        ratings[player] += offset;
                        self.bounds[player] = Some(bound);
                    }
                    placed.push(block);
                }
            }
            for player in self.members(component) {
                self.component_of[player] = index;
            }
        }
        if let Some(anchor) = self.anchor {
            let (zero, component) = (ratings[anchor], self.component_of[anchor]);
            for (rating, &of) in ratings.iter_mut().zip(&self.component_of) {
                if of == component {
                    *rating -= zero;
                }
            }
        }
        self.ratings = ratings.into_iter().map(|rating| rating * POINTS_PER_LOGIT).collect();
    }

    /// Returns the players of a component.
    pub(super) fn members(&self, component: &Component) -> Vec<usize> {
        let blocks = component.above.iter().chain(&component.below).chain([&component.reference]);
        blocks.flat_map(|&block| self.structure.blocks[block].iter().copied()).collect()
    }

    /// Returns the offset at which a block's wins (or losses) against the placed blocks have a probability of 5 %.
    /// Games count as independent.
    fn bound(&self, block: usize, placed: &[usize], ratings: &[f64], bound: Bound) -> f64 {
        let rate = self.parameters.draw_rate();
        let sign = if bound == Bound::AtLeast { 1.0 } else { -1.0 };
        let games: Vec<(f64, f64)> = self
            .results
            .pairings
            .iter()
            .filter_map(|pairing| {
                let (one, other) =
                    (self.structure.block_of[pairing.one], self.structure.block_of[pairing.other]);
                let (own, side) = match (one == block, other == block) {
                    (true, false) if placed.contains(&other) => (pairing.one, 1.0),
                    (false, true) if placed.contains(&one) => (pairing.other, -1.0),
                    _ => return None,
                };
                let opponent = if own == pairing.one { pairing.other } else { pairing.one };
                let tally = pairing.tally();
                let (first, second): (f64, f64) = (tally.first.iter().sum(), tally.second.iter().sum());
                let (first, second) = if side > 0.0 { (first, second) } else { (second, first) };
                let lead = sign * (ratings[own] - ratings[opponent]);
                let advantage = sign * self.parameters.advantage;
                Some([(lead + advantage, first), (lead - advantage, second)])
            })
            .flatten()
            .collect();
        let log_probability = |offset: f64| -> f64 {
            let win = |lead: f64| Point::new(lead + offset, rate).probabilities()[2];
            games.iter().filter(|(_, count)| *count > 0.0).map(|&(lead, count)| count * win(lead).ln()).sum()
        };
        // The probability increases with the offset: bisect.
        let (mut low, mut high) = (-LARGEST_BOUND, LARGEST_BOUND);
        for _ in 0..100 {
            let middle = low + (high - low) / 2.0;
            if log_probability(middle) < BOUND_PROBABILITY.ln() {
                low = middle;
            } else {
                high = middle;
            }
        }
        sign * high
    }
}
