//! Tables of a rated pool: standings, crosstable and residuals.

use std::cmp::Ordering;

use serde::Serialize;

use super::fit::{Bound, Fit};
use super::model::Point;
use super::results::Unit;
use super::uncertainty::Uncertainty;

/// A row of the standings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Standing {
    /// The rank within the component by rating, from 1.
    pub rank: usize,
    /// The component, from 0; see [`Fit::component_of`].
    pub component: usize,
    /// The name.
    pub name: String,
    /// The rating in Elo, always finite.
    pub elo: f64,
    /// The lower end of the 95 % interval; `None` for a player who lost everything, and for all if there are too few
    /// bouts.
    pub low: Option<f64>,
    /// The upper end; `None` for a player who won everything, and for all if there are too few bouts.
    pub high: Option<f64>,
    /// The open side of the interval, for a player who won or lost everything.
    pub bound: Option<Bound>,
    /// Games played.
    pub games: u64,
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
    /// Points per game; `None` without games.
    pub score: Option<f64>,
    /// The likelihood of superiority over the next player of the component; `None` for the last, and if there are too few
    /// bouts.
    pub los_next: Option<f64>,
}

/// The games of one player against another.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Meeting {
    /// Games won by the first.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost by the first.
    pub losses: u64,
}

impl Meeting {
    /// Returns the number of games.
    pub fn games(&self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// Returns the points per game; `None` without games.
    pub fn score(&self) -> Option<f64> {
        let games = self.games();
        (games > 0).then(|| (self.wins as f64 + 0.5 * self.draws as f64) / games as f64)
    }
}

/// The results of a pairing compared with the expectation of the ratings.
#[derive(Clone, PartialEq, Debug)]
pub struct Residual {
    /// The player whose points are given, as an index of the fit's names.
    pub one: usize,
    /// The opponent.
    pub other: usize,
    /// Games played.
    pub games: u64,
    /// Points made.
    pub observed: f64,
    /// Points expected.
    pub expected: f64,
    /// The difference in its standard deviations, estimated from the pairing's own units; `None` with fewer than two
    /// units or if all scored the same.
    pub deviations: Option<f64>,
}

/// Compares two players' ranks, each given by component and rating.
pub(crate) fn compare_ranks(one: (usize, f64), other: (usize, f64)) -> Ordering {
    one.0.cmp(&other.0).then(other.1.total_cmp(&one.1))
}

impl Fit {
    /// Returns the standings, component by component, in order of rank.
    pub fn standings(&self, uncertainty: &Uncertainty) -> Vec<Standing> {
        let meetings = self.crosstable();
        let mut order: Vec<usize> = (0..self.names().len()).collect();
        let rank = |player: usize| (self.component_of()[player], self.ratings()[player]);
        order.sort_by(|&a, &b| compare_ranks(rank(a), rank(b)).then(a.cmp(&b)));
        let mut rank = 0;
        let mut standings = Vec::with_capacity(order.len());
        for (index, &player) in order.iter().enumerate() {
            let component = self.component_of()[player];
            let starts = index == 0 || self.component_of()[order[index - 1]] != component;
            rank = if starts { 1 } else { rank + 1 };
            let next = order.get(index + 1).filter(|&&next| self.component_of()[next] == component);
            let sum = |part: fn(&Meeting) -> u64| meetings[player].iter().map(part).sum::<u64>();
            let all = Meeting {
                wins: sum(|meeting| meeting.wins),
                draws: sum(|meeting| meeting.draws),
                losses: sum(|meeting| meeting.losses),
            };
            let (low, high) = uncertainty.intervals[player];
            standings.push(Standing {
                rank,
                component,
                name: self.names()[player].clone(),
                elo: self.ratings()[player],
                bound: self.bound(player),
                low,
                high,
                games: all.games(),
                wins: all.wins,
                draws: all.draws,
                losses: all.losses,
                score: all.score(),
                los_next: next.and_then(|&next| uncertainty.superiority(self, player, next)),
            });
        }
        standings
    }

    /// Returns each player's games against each opponent, in the order of the names.
    pub fn crosstable(&self) -> Vec<Vec<Meeting>> {
        let players = self.names().len();
        let mut table = vec![vec![Meeting::default(); players]; players];
        for pairing in &self.results.pairings {
            let mut meeting = Meeting::default();
            for (kind, &count) in pairing.units.iter().enumerate() {
                let unit = Unit::of_kind(kind);
                for outcome in [unit.first(), unit.second()].into_iter().flatten() {
                    match outcome.half_points() {
                        0 => meeting.losses += count,
                        1 => meeting.draws += count,
                        _ => meeting.wins += count,
                    }
                }
            }
            table[pairing.one][pairing.other] = meeting;
            table[pairing.other][pairing.one] =
                Meeting { wins: meeting.losses, draws: meeting.draws, losses: meeting.wins };
        }
        table
    }

    /// Returns the likelihood of superiority of each player (row) over each other (column); `None` if they are not
    /// comparable.
    pub fn superiority(&self, uncertainty: &Uncertainty) -> Vec<Vec<Option<f64>>> {
        let players = 0..self.names().len();
        let row = |one: usize| -> Vec<Option<f64>> {
            let other = |other: usize| uncertainty.superiority(self, one, other);
            players.clone().map(other).collect()
        };
        players.clone().map(row).collect()
    }

    /// Returns actual and expected points of each pairing, in the order of the names.
    pub fn residuals(&self) -> Vec<Residual> {
        let residual = |pairing: &super::results::Pairing| {
            let difference = self.parameters.ratings[pairing.one] - self.parameters.ratings[pairing.other];
            let rate = self.draw_rate();
            let first = Point::new(self.parameters.advantage + difference, rate).score();
            let second = 1.0 - Point::new(self.parameters.advantage - difference, rate).score();
            let (mut games, mut units, mut observed, mut expected, mut excess, mut squares) =
                (0, 0.0, 0.0, 0.0, 0.0, 0.0);
            for (kind, &count) in pairing.units.iter().enumerate() {
                let unit = Unit::of_kind(kind);
                let hoped = unit.first().map_or(0.0, |_| first) + unit.second().map_or(0.0, |_| second);
                let weight = count as f64;
                games += count * [unit.first(), unit.second()].into_iter().flatten().count() as u64;
                units += weight;
                observed += weight * unit.points();
                expected += weight * hoped;
                excess += weight * (unit.points() - hoped);
                squares += weight * (unit.points() - hoped).powi(2);
            }
            // The unbiased variance of n units about their mean, by n / (n - 1).
            let variance = (squares - excess * excess / units) * units / (units - 1.0);
            let deviations = (units > 1.0 && variance > 1e-9 * units).then(|| excess / variance.sqrt());
            Residual { one: pairing.one, other: pairing.other, games, observed, expected, deviations }
        };
        self.results.pairings.iter().map(residual).collect()
    }
}
