//! Tables of a rated pool: standings, crosstable and residuals.

use std::cmp::Ordering;

use super::fit::{Bound, Fit};
use super::model::Point;
use super::results::Unit;
use super::uncertainty::Uncertainty;

/// A row of the standings.
#[derive(Clone, PartialEq, Debug)]
pub struct Standing {
    /// The rank within the component, from 1. Players who won everything come first, players who lost everything
    /// last.
    pub rank: usize,
    /// The component, from 0; see [`Fit::component_of`].
    pub component: usize,
    /// The name.
    pub name: String,
    /// The rating in Elo, or its bound.
    pub elo: f64,
    /// Whether the rating is only a bound.
    pub bound: Option<Bound>,
    /// The lower end of the 95 % interval: the bound of a player who won everything; `None` for one who lost
    /// everything, for the only player of a reference, and if all bouts had the same result.
    pub low: Option<f64>,
    /// The upper end, correspondingly.
    pub high: Option<f64>,
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
    /// The likelihood of superiority over the next player of the component; `None` for the last, and next to a bound.
    pub los_next: Option<f64>,
}

/// The games of one player against another.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
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

/// Compares two players' ranks, each given by component, bound and rating.
pub(crate) fn compare_ranks(
    one: (usize, Option<Bound>, f64),
    other: (usize, Option<Bound>, f64),
) -> Ordering {
    let class = |bound: Option<Bound>| match bound {
        Some(Bound::AtLeast) => 0,
        None => 1,
        Some(Bound::AtMost) => 2,
    };
    (one.0.cmp(&other.0)).then(class(one.1).cmp(&class(other.1))).then(other.2.total_cmp(&one.2))
}

/// Returns the ends of a rating's interval. A bound has one end; a player without comparable others has none.
pub(crate) fn interval_ends(
    elo: f64,
    bound: Option<Bound>,
    alone: bool,
    estimated: impl FnOnce() -> Option<(f64, f64)>,
) -> (Option<f64>, Option<f64>) {
    match bound {
        Some(Bound::AtLeast) => (Some(elo), None),
        Some(Bound::AtMost) => (None, Some(elo)),
        None if alone => (None, None),
        None => estimated().unzip(),
    }
}

impl Fit {
    /// Returns the standings, component by component, in order of rank.
    pub fn standings(&self, uncertainty: &Uncertainty) -> Vec<Standing> {
        let meetings = self.crosstable();
        let mut order: Vec<usize> = (0..self.names().len()).collect();
        let rank =
            |player: usize| (self.component_of()[player], self.bounds()[player], self.ratings()[player]);
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
            let (elo, bound) = (self.ratings()[player], self.bounds()[player]);
            let alone = self.structure.blocks[self.structure.block_of[player]].len() == 1;
            let (low, high) = interval_ends(elo, bound, alone, || {
                // The anchor's rating is certain.
                if self.anchor == Some(player) { Some((elo, elo)) } else { uncertainty.interval(player) }
            });
            standings.push(Standing {
                rank,
                component,
                name: self.names()[player].clone(),
                elo,
                bound,
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
            let other =
                |other: usize| (one != other).then(|| uncertainty.superiority(self, one, other)).flatten();
            players.clone().map(other).collect()
        };
        players.clone().map(row).collect()
    }

    /// Returns actual and expected points of each pairing within blocks, in the order of the names.
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
        self.inner.iter().map(residual).collect()
    }
}
