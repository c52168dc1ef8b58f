//! The results of a pool: counts of units by pairing.
//!
//! A unit is a whole bout, or a single game if bouts are unknown (PGN, CSV). Counts suffice: ratings need the games,
//! errors need to know which games belong together.

use std::collections::{BTreeMap, HashMap};

use thiserror::Error;

use crate::outcome::Outcome;

/// The number of unit kinds: nine of bouts, three of games in either seat.
pub(super) const KINDS: usize = 15;

/// A player of the pool, as returned by [`Results::player`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Player(u32);

/// A rejected result.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// A player cannot meet itself.
    #[error("`{0}` is on both sides; a rating needs results between two different players")]
    Itself(String),
}

/// One unit of evidence, with outcomes from one player's view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// Two games of one opening: with the first seat, and with the second.
    Bout(Outcome, Outcome),
    /// A single game with the first seat.
    First(Outcome),
    /// A single game with the second seat.
    Second(Outcome),
}

impl Unit {
    /// Returns the index of the kind.
    pub fn kind(self) -> usize {
        match self {
            Unit::Bout(first, second) => 3 * first.half_points() + second.half_points(),
            Unit::First(outcome) => 9 + outcome.half_points(),
            Unit::Second(outcome) => 12 + outcome.half_points(),
        }
    }

    /// Returns the unit of a kind.
    pub fn of_kind(kind: usize) -> Self {
        match kind {
            0..9 => Unit::Bout(Outcome::ALL[kind / 3], Outcome::ALL[kind % 3]),
            9..12 => Unit::First(Outcome::ALL[kind - 9]),
            _ => Unit::Second(Outcome::ALL[kind - 12]),
        }
    }

    /// Returns the unit from the other player's view.
    fn reversed(self) -> Self {
        match self {
            Unit::Bout(first, second) => Unit::Bout(second.reversed(), first.reversed()),
            Unit::First(outcome) => Unit::Second(outcome.reversed()),
            Unit::Second(outcome) => Unit::First(outcome.reversed()),
        }
    }

    /// Returns the outcome with the first seat, if there is such a game.
    pub fn first(self) -> Option<Outcome> {
        match self {
            Unit::Bout(outcome, _) | Unit::First(outcome) => Some(outcome),
            Unit::Second(_) => None,
        }
    }

    /// Returns the outcome with the second seat, if there is such a game.
    pub fn second(self) -> Option<Outcome> {
        match self {
            Unit::Bout(_, outcome) | Unit::Second(outcome) => Some(outcome),
            Unit::First(_) => None,
        }
    }

    /// Returns the player's points.
    pub fn points(self) -> f64 {
        self.first().map_or(0.0, Outcome::score) + self.second().map_or(0.0, Outcome::score)
    }
}

/// The results of a pool.
#[derive(Clone, Default, Debug)]
pub struct Results {
    names: Vec<String>,
    players: HashMap<String, Player>,
    pairings: BTreeMap<(Player, Player), [u64; KINDS]>,
}

impl Results {
    /// Returns the player with this name, adding it if it is new.
    pub fn player(&mut self, name: &str) -> Player {
        if let Some(&player) = self.players.get(name) {
            return player;
        }
        let player = Player(u32::try_from(self.names.len()).expect("fewer players than 2^32"));
        self.names.push(name.to_owned());
        self.players.insert(name.to_owned(), player);
        player
    }

    /// Adds `count` bouts of `one` against `other`, with the outcomes of `one`: `first` with the first seat, `second`
    /// with the second.
    pub fn add_bouts(
        &mut self,
        one: Player,
        other: Player,
        first: Outcome,
        second: Outcome,
        count: u64,
    ) -> Result<(), ResultsError> {
        self.add(one, other, Unit::Bout(first, second), count)
    }

    /// Adds `count` single games in which `first` had the first seat and got `outcome`.
    pub fn add_games(
        &mut self,
        first: Player,
        second: Player,
        outcome: Outcome,
        count: u64,
    ) -> Result<(), ResultsError> {
        self.add(first, second, Unit::First(outcome), count)
    }

    fn add(&mut self, one: Player, other: Player, unit: Unit, count: u64) -> Result<(), ResultsError> {
        if one == other {
            return Err(ResultsError::Itself(self.names[one.0 as usize].clone()));
        }
        let (pairing, unit) =
            if one < other { ((one, other), unit) } else { ((other, one), unit.reversed()) };
        self.pairings.entry(pairing).or_insert([0; KINDS])[unit.kind()] += count;
        Ok(())
    }

    /// Returns the results with players sorted by name, so that the order of arrival does not matter.
    pub(super) fn sorted(&self) -> Sorted {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by(|&a, &b| self.names[a].cmp(&self.names[b]));
        let mut place = vec![0; order.len()];
        for (index, &player) in order.iter().enumerate() {
            place[player] = index;
        }
        let mut pairings: Vec<Pairing> = self
            .pairings
            .iter()
            .filter(|(_, counts)| counts.iter().any(|&count| count > 0))
            .map(|(&(one, other), counts)| {
                let (one, other) = (place[one.0 as usize], place[other.0 as usize]);
                let mut units = *counts;
                if one > other {
                    for (kind, &count) in counts.iter().enumerate() {
                        units[Unit::of_kind(kind).reversed().kind()] = count;
                    }
                }
                Pairing { one: one.min(other), other: one.max(other), units }
            })
            .collect();
        pairings.sort_by_key(|pairing| (pairing.one, pairing.other));
        Sorted { names: order.iter().map(|&player| self.names[player].clone()).collect(), pairings }
    }
}

/// Results in canonical order.
#[derive(Clone, Debug)]
pub(super) struct Sorted {
    /// The names in ascending order; players are indices into it.
    pub names: Vec<String>,
    /// The pairings in ascending order of players.
    pub pairings: Vec<Pairing>,
}

/// All units between two players, from the view of `one`.
#[derive(Clone, Debug)]
pub(super) struct Pairing {
    /// The player with the smaller name.
    pub one: usize,
    /// The other.
    pub other: usize,
    /// Counts by [`Unit::kind`].
    pub units: [u64; KINDS],
}

/// Games between two players by outcome, loss first, from the view of `one`.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct GameCounts {
    /// Games in which `one` had the first seat.
    pub first: [f64; 3],
    /// Games in which `one` had the second seat.
    pub second: [f64; 3],
}

impl GameCounts {
    /// Counts the games of units, whose counts need not be integers.
    pub fn of(units: &[f64; KINDS]) -> Self {
        let mut tally = GameCounts::default();
        for (kind, &count) in units.iter().enumerate() {
            let unit = Unit::of_kind(kind);
            if let Some(outcome) = unit.first() {
                tally.first[outcome.half_points()] += count;
            }
            if let Some(outcome) = unit.second() {
                tally.second[outcome.half_points()] += count;
            }
        }
        tally
    }

    /// Returns the games by outcome.
    pub fn total(&self) -> [f64; 3] {
        std::array::from_fn(|outcome| self.first[outcome] + self.second[outcome])
    }
}

impl Pairing {
    /// Returns the games of the units.
    pub fn tally(&self) -> GameCounts {
        GameCounts::of(&self.units.map(|count| count as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_kinds_round_trip_and_reverse() {
        for kind in 0..KINDS {
            let unit = Unit::of_kind(kind);
            assert_eq!(unit.kind(), kind);
            assert_eq!(unit.reversed().reversed(), unit);
            let games = [unit.first(), unit.second()].into_iter().flatten().count() as f64;
            assert_eq!(unit.points() + unit.reversed().points(), games);
            assert_eq!(unit.reversed().first(), unit.second().map(Outcome::reversed));
        }
    }

    /// Results do not depend on the order or the side in which they are added.
    #[test]
    fn arrival_order_does_not_matter() {
        let mut one = Results::default();
        let (a, b) = (one.player("a"), one.player("b"));
        one.add_bouts(a, b, Outcome::Win, Outcome::Draw, 3).unwrap();
        one.add_games(b, a, Outcome::Win, 2).unwrap();
        let mut other = Results::default();
        let (b, a) = (other.player("b"), other.player("a"));
        other.add_games(b, a, Outcome::Win, 2).unwrap();
        other.add_bouts(b, a, Outcome::Draw, Outcome::Loss, 3).unwrap();
        let (one, other) = (one.sorted(), other.sorted());
        assert_eq!(one.names, other.names);
        assert_eq!(one.pairings[0].units, other.pairings[0].units);
        let tally = one.pairings[0].tally();
        assert_eq!((tally.first, tally.second), ([0.0, 0.0, 3.0], [2.0, 3.0, 0.0]));
    }

    #[test]
    fn rejects_player_against_itself() {
        let mut results = Results::default();
        let a = results.player("a");
        assert_eq!(results.add_games(a, a, Outcome::Win, 1), Err(ResultsError::Itself("a".into())));
    }
}
