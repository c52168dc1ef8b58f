//! What people ask of a rated pool: the standings, who did what against whom, and where the model is surprised.

use super::fit::{Bound, Fit};
use super::model::Point;
use super::results::Unit;
use super::uncertainty::Uncertainty;

/// A player's row of the standings.
#[derive(Clone, PartialEq, Debug)]
pub struct Standing {
    /// The place within the component, from 1. Players who won everything come before those with an estimate, players who
    /// lost everything after.
    pub rank: usize,
    /// The component, from 0; see [`Fit::component_of`].
    pub component: usize,
    /// The name.
    pub name: String,
    /// The rating in Elo, or its bound.
    pub elo: f64,
    /// Whether the rating is only a bound.
    pub bound: Option<Bound>,
    /// The lower end of the interval of 95 %; the bound itself for who won everything, nothing for who lost everything, nor
    /// for whom the bounds of all others are measured from, nor where all bouts came out alike.
    pub low: Option<f64>,
    /// The upper end, likewise.
    pub high: Option<f64>,
    /// Games played.
    pub games: u64,
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
    /// Points a game, or nothing without games.
    pub score: Option<f64>,
    /// The likelihood of superiority over the next of the component; nothing for the last, and next to a bound.
    pub los_next: Option<f64>,
}

/// Games of one player against another.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Meeting {
    /// Games won by the one.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost by the one.
    pub losses: u64,
}

impl Meeting {
    /// Games played.
    pub fn games(&self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// Points a game, or nothing without games.
    pub fn score(&self) -> Option<f64> {
        let games = self.games();
        (games > 0).then(|| (self.wins as f64 + 0.5 * self.draws as f64) / games as f64)
    }
}

/// How a pairing compares with what the ratings expect of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Residual {
    /// The player from whose view it is told, as an index of the fit's names.
    pub one: usize,
    /// The other.
    pub other: usize,
    /// Games played.
    pub games: u64,
    /// Points made.
    pub observed: f64,
    /// Points expected.
    pub expected: f64,
    /// The difference in standard deviations of its own, estimated from how much the units of this pairing vary, or
    /// nothing if there are fewer than two or they all scored the same.
    pub deviations: Option<f64>,
}

impl Fit {
    /// The standings, component by component, each from the first rank to the last.
    pub fn standings(&self, uncertainty: &Uncertainty) -> Vec<Standing> {
        let meetings = self.crosstable();
        let class = |player: usize| match self.bounds()[player] {
            Some(Bound::AtLeast) => 0,
            None => 1,
            Some(Bound::AtMost) => 2,
        };
        let mut order: Vec<usize> = (0..self.names().len()).collect();
        order.sort_by(|&a, &b| {
            let ratings = self.ratings();
            (self.component_of()[a].cmp(&self.component_of()[b]))
                .then(class(a).cmp(&class(b)))
                .then(ratings[b].total_cmp(&ratings[a]))
                .then(a.cmp(&b))
        });
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
            let (low, high) = match bound {
                Some(Bound::AtLeast) => (Some(elo), None),
                Some(Bound::AtMost) => (None, Some(elo)),
                None if alone => (None, None),
                // The anchor's rating is given, and certain.
                None if self.anchor == Some(player) => (Some(elo), Some(elo)),
                None => uncertainty.interval(player).unzip(),
            };
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

    /// Who did what against whom: a row for each player, a column for each opponent, in the order of the names.
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

    /// The likelihoods of superiority of each player (row) over each other (column), nothing where they cannot be told.
    pub fn superiority(&self, uncertainty: &Uncertainty) -> Vec<Vec<Option<f64>>> {
        let players = 0..self.names().len();
        let row = |one: usize| -> Vec<Option<f64>> {
            let other =
                |other: usize| (one != other).then(|| uncertainty.superiority(self, one, other)).flatten();
            players.clone().map(other).collect()
        };
        players.clone().map(row).collect()
    }

    /// Points made against points expected, of each pairing within blocks, in the order of the names.
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
            // Units vary about their mean, n / (n - 1) times as much as their mean square says.
            let variance = (squares - excess * excess / units) * units / (units - 1.0);
            let deviations = (units > 1.0 && variance > 1e-9 * units).then(|| excess / variance.sqrt());
            Residual { one: pairing.one, other: pairing.other, games, observed, expected, deviations }
        };
        self.inner.iter().map(residual).collect()
    }
}
