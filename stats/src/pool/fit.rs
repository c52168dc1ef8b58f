//! Fitted ratings of a pool.
//!
//! Ratings are those of maximum likelihood, where it has a maximum. Where results are separated (a player, or a seat,
//! never lost), a few imaginary bouts are added, which make all estimates finite: the imaginary bouts of a pairing are
//! won by either player from both seats, so that they favour neither a player nor a seat (an instance of the priors of
//! Clogg et al. 1991, close to Firth's correction of 1993). Intervals are in `sandwich`; with two players the difference
//! and its interval are those of [`Scores::compare`](crate::pairs::Scores::compare).

use serde::Serialize;
use thiserror::Error;

use super::newton::{Parameters, Problem};
use super::results::{GameCounts, KINDS, Pairing, Results, Sorted, Unit};
use super::structure::{Component, Structure, advantage_is_identifiable};
use crate::comparison::Comparison;
use crate::elo::POINTS_PER_LOGIT;
use crate::outcome::Outcome;
use crate::pairs::{Games, PairScore, Pairs, Scores};

/// The imaginary bouts of a player, shared among its pairings.
const IMAGINARY: f64 = 0.5;

/// Kinds of the imaginary bouts: lost from both seats, and won from both seats.
pub(super) const SWEEPS: [usize; 2] = [0, 8];

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

/// The open side of a rating's interval: a player who won or lost everything could be any amount stronger or weaker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The interval has a lower end only.
    AtLeast,
    /// The interval has an upper end only.
    AtMost,
}

/// A rated pool. Players are sorted by name.
#[derive(Clone, Debug)]
pub struct Fit {
    pub(super) results: Sorted,
    pub(super) structure: Structure,
    pub(super) problem: Problem,
    /// The games of each pairing, including the imaginary ones if results are separated.
    pub(super) tallies: Vec<GameCounts>,
    pub(super) parameters: Parameters,
    /// The players whose mean rating is zero, by component.
    pub(super) zeros: Vec<Vec<usize>>,
    pub(super) anchor: Option<usize>,
    /// The comparison of the first of two players with the other.
    pub(super) pair: Option<Comparison>,
    separated: bool,
    ratings: Vec<f64>,
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
        let structure = Structure::new(&results, anchor, options.prior > 0.0);
        let pairings = &results.pairings;
        let mut tallies: Vec<GameCounts> = pairings.iter().map(Pairing::tally).collect();
        let met = pairings.iter().zip(&tallies).map(|(pairing, tally)| (pairing.one, pairing.other, tally));
        let problem = Problem {
            players,
            pairings: pairings.iter().map(|pairing| (pairing.one, pairing.other)).collect(),
            components: structure.components.iter().map(|component| component.members.clone()).collect(),
            advantage: options.seat_advantage && advantage_is_identifiable(players, met),
            draws: tallies.iter().any(|tally| tally.total()[1] > 0.0),
            prior: options.prior,
        };
        let mut separated = structure.is_separated();
        let mut parameters = None;
        if !separated {
            let found = problem.maximise(&tallies, problem.start(&tallies));
            separated = problem.diverged(&found);
            parameters = Some(found);
        }
        if separated {
            let imaginary = imaginary_bouts(players, pairings);
            tallies =
                pairings.iter().zip(imaginary).map(|(pairing, bouts)| pairing.tally_with(bouts)).collect();
            parameters = None;
        }
        let parameters = parameters.unwrap_or_else(|| problem.maximise(&tallies, problem.start(&tallies)));
        let zero = |component: &Component| match anchor {
            Some(anchor) if component.members.contains(&anchor) => vec![anchor],
            _ if options.prior > 0.0 => Vec::new(),
            _ => component.zero.clone(),
        };
        let mut fit = Fit {
            ratings: Vec::new(),
            zeros: structure.components.iter().map(zero).collect(),
            pair: pair_scores(&results).filter(|_| options.prior == 0.0).and_then(|scores| scores.compare()),
            results,
            structure,
            problem,
            tallies,
            parameters,
            anchor,
            separated,
        };
        fit.ratings = fit.relative_to_zero();
        Ok(fit)
    }

    /// Returns the ratings in Elo relative to the zero of each component.
    fn relative_to_zero(&self) -> Vec<f64> {
        let raw: Vec<f64> = match self.pair {
            Some(pair) => vec![pair.elo / 2.0, -pair.elo / 2.0],
            None => self.parameters.ratings.iter().map(|rating| rating * POINTS_PER_LOGIT).collect(),
        };
        let mut ratings = raw.clone();
        for (component, zero) in self.structure.components.iter().zip(&self.zeros) {
            let mean = zero.iter().map(|&player| raw[player]).sum::<f64>() / zero.len().max(1) as f64;
            component.members.iter().for_each(|&player| ratings[player] -= mean);
        }
        ratings
    }

    /// Returns the sorted names of the players.
    pub fn names(&self) -> &[String] {
        &self.results.names
    }

    /// Returns the ratings in Elo.
    pub fn ratings(&self) -> &[f64] {
        &self.ratings
    }

    /// Returns the open side of a rating's interval if results bound it on one side only.
    pub fn bound(&self, player: usize) -> Option<Bound> {
        match self.structure.bounded[player] {
            [true, false] => Some(Bound::AtLeast),
            [false, true] => Some(Bound::AtMost),
            _ => None,
        }
    }

    /// Returns whether a player or a seat never lost, so that estimates need imaginary bouts to be finite.
    pub fn is_separated(&self) -> bool {
        self.separated
    }

    /// Returns the component of each player. No results connect different components, so their ratings cannot be
    /// compared.
    pub fn component_of(&self) -> &[usize] {
        &self.structure.component_of
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
}

/// Returns the imaginary bouts of each pairing: the player with fewer pairings has [`IMAGINARY`] of them in all.
pub(super) fn imaginary_bouts(players: usize, pairings: &[Pairing]) -> Vec<f64> {
    let mut met = vec![0_u32; players];
    for pairing in pairings {
        met[pairing.one] += 1;
        met[pairing.other] += 1;
    }
    pairings.iter().map(|pairing| IMAGINARY / f64::from(met[pairing.one].min(met[pairing.other]))).collect()
}

impl Pairing {
    /// Returns the games of the units and of `bouts` imaginary bouts.
    pub(super) fn tally_with(&self, bouts: f64) -> GameCounts {
        let mut units: [f64; KINDS] = self.units.map(|count| count as f64);
        SWEEPS.iter().for_each(|&sweep| units[sweep] += bouts / 2.0);
        GameCounts::of(&units)
    }
}

/// Returns the results of the first of two players. `None` with another number of players, and where seats must be
/// accounted for: with bouts and single games, or with single games from both seats in different numbers.
fn pair_scores(results: &Sorted) -> Option<Scores> {
    let ([_, _], [pairing]) = (&results.names[..], &results.pairings[..]) else { return None };
    let count = |kinds: std::ops::Range<usize>| pairing.units[kinds].iter().sum::<u64>();
    let [bouts, first, second] = [count(0..9), count(9..12), count(12..15)];
    if bouts == 0 && (first == second || first == 0 || second == 0) {
        let games = |outcome: Outcome| {
            pairing.units[9 + outcome.half_points()] + pairing.units[12 + outcome.half_points()]
        };
        let [losses, draws, wins] = Outcome::ALL.map(games);
        return Some(Games { wins, draws, losses }.into());
    }
    if first + second > 0 {
        return None;
    }
    let mut pairs = Pairs::default();
    for (kind, count) in pairing.units.iter().enumerate().take(9) {
        let score = PairScore::of(Outcome::ALL[kind / 3], Outcome::ALL[kind % 3]);
        pairs.0[usize::from(score.half_points())] += count;
    }
    Some(pairs.into())
}
