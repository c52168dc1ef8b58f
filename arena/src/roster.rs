//! Maps the number of a bout to its players by seat.
//!
//! A circle is the cyclic order in which the players of a bout sit. The games of the bout are the rotations of its circle, so
//! that each player sits in every seat. With at least as many players as seats, a pairing is a group of different players,
//! which play in another of their circles at each opening. With fewer players, a pairing is one circle in which each player
//! has at least one seat. Not here: the openings, which `agon-schedule` draws.

use crate::bout::Bout;

/// Why a roster is impossible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RosterError {
    /// There are no players.
    #[error("there is no player; name at least one")]
    NoPlayers,
    /// There are more groups than can be numbered.
    #[error("{players} players make too many groups of {seats}; name fewer players")]
    TooManyGroups {
        /// The number of players.
        players: usize,
        /// The number of seats.
        seats: usize,
    },
    /// The hero of a gauntlet does not exist.
    #[error("the hero is player {hero}, and there are {players}, counted from 0")]
    NoHero {
        /// The number of the hero.
        hero: usize,
        /// The number of players.
        players: usize,
    },
}

/// All bouts between the players of a run, in order.
#[derive(Clone, Debug)]
pub struct Roster {
    groups: Groups,
    /// All circles, each in one of its rotations: indices of the players of a group.
    circles: Vec<Vec<usize>>,
}

/// The groups of players that play each other.
#[derive(Clone, Copy, Debug)]
enum Groups {
    /// One group of all players, who are fewer than the seats. Each circle is a pairing.
    Whole,
    /// `count` groups, each a pairing: `size` of the `others`, and the hero if there is one.
    Subsets { count: u64, size: usize, others: usize, hero: Option<usize> },
}

impl Roster {
    /// Creates a roster of all groups of players. Precondition: there is at least one seat.
    pub fn round_robin(seats: usize, players: usize) -> Result<Roster, RosterError> {
        Roster::new(seats, players, None)
    }

    /// Creates a roster of all groups that contain the player `hero`. Precondition: there is at least one seat.
    pub fn gauntlet(seats: usize, players: usize, hero: usize) -> Result<Roster, RosterError> {
        Roster::new(seats, players, Some(hero))
    }

    fn new(seats: usize, players: usize, hero: Option<usize>) -> Result<Roster, RosterError> {
        if players == 0 {
            return Err(RosterError::NoPlayers);
        }
        if let Some(hero) = hero.filter(|&hero| hero >= players) {
            return Err(RosterError::NoHero { hero, players });
        }
        if players < seats {
            return Ok(Roster { groups: Groups::Whole, circles: circles_with_repeats(seats, players) });
        }
        let heroes = usize::from(hero.is_some());
        let (size, others) = (seats - heroes, players - heroes);
        let count = binomial(others, size).ok_or(RosterError::TooManyGroups { players, seats })?;
        let groups = Groups::Subsets { count, size, others, hero };
        Ok(Roster { groups, circles: circles_without_repeats(seats) })
    }

    /// Returns the number of pairings, which is the number of bouts with the same opening.
    pub fn pairings(&self) -> u64 {
        match self.groups {
            Groups::Whole => self.circles.len() as u64,
            Groups::Subsets { count, .. } => count,
        }
    }

    /// Returns the number of openings after which the circles repeat, and the seats and neighbours of players are balanced.
    pub fn cycle(&self) -> u64 {
        match self.groups {
            Groups::Whole => 1,
            Groups::Subsets { .. } => self.circles.len() as u64,
        }
    }

    /// Returns the bout with this number. All pairings play the first opening before any plays the second.
    pub fn bout(&self, index: u64) -> Bout<u64> {
        let (opening, pairing) = (index / self.pairings(), index % self.pairings());
        let players = match self.groups {
            Groups::Whole => self.circles[pairing as usize].clone(),
            Groups::Subsets { size, others, hero, .. } => {
                let group = group(pairing, size, others, hero);
                let circle = &self.circles[(opening % self.cycle()) as usize];
                circle.iter().map(|&index| group[index]).collect()
            }
        };
        Bout { index, players, opening, values: Vec::new() }
    }

    /// Returns the least number of bouts, from the first on, with at least `games` games.
    pub fn bouts_for(&self, games: u64) -> u64 {
        // The games of consecutive bouts, until the numbers repeat.
        let games_by_bout: Vec<u64> = match self.groups {
            Groups::Whole => self.circles.iter().map(|circle| period(circle) as u64).collect(),
            Groups::Subsets { .. } => vec![self.circles[0].len() as u64],
        };
        let sum: u64 = games_by_bout.iter().sum();
        let (mut bouts, mut missing) = (games / sum * games_by_bout.len() as u64, games % sum);
        for played in games_by_bout {
            if missing == 0 {
                break;
            }
            bouts += 1;
            missing = missing.saturating_sub(played);
        }
        bouts
    }
}

/// Returns the different seatings of a bout, one for each game. From one to the next, the player of the first seat moves to
/// the last and each other player moves to the seat before. A circle that repeats itself, such as ABAB, has fewer rotations
/// than seats.
pub fn rotations(circle: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..period(circle)).map(|rotation| rotated(circle, rotation))
}

fn rotated(circle: &[usize], rotation: usize) -> Vec<usize> {
    let mut seats = circle.to_vec();
    seats.rotate_left(rotation);
    seats
}

/// Returns the number of rotations after which a circle repeats.
fn period(circle: &[usize]) -> usize {
    (1..circle.len()).find(|&rotation| rotated(circle, rotation) == circle).unwrap_or(circle.len())
}

/// Returns all `(seats - 1)!` circles of different players. Each is followed by its reverse, so that after both of them each of
/// two neighbours has played equally often directly after the other.
fn circles_without_repeats(seats: usize) -> Vec<Vec<usize>> {
    let mut circles = Vec::new();
    for tail in sequences(seats, seats - 1) {
        let different = tail.iter().enumerate().all(|(index, player)| !tail[..index].contains(player));
        // Player 0 is first, because rotations are the same circle. A reverse is added with its original.
        if different && !tail.contains(&0) && tail.first() <= tail.last() {
            let circle = |tail: &mut dyn Iterator<Item = usize>| [0].into_iter().chain(tail).collect();
            circles.push(circle(&mut tail.iter().copied()));
            if tail.len() > 1 {
                circles.push(circle(&mut tail.iter().rev().copied()));
            }
        }
    }
    circles
}

/// Returns all circles in which each player has at least one seat. Those with the most even numbers of seats are first, so
/// that a run that ends early is fair.
fn circles_with_repeats(seats: usize, players: usize) -> Vec<Vec<usize>> {
    let seats_of = |circle: &[usize], player| circle.iter().filter(|&&other| other == player).count();
    let unevenness = |circle: &Vec<usize>| {
        let counts = || (0..players).map(|player| seats_of(circle, player));
        counts().max().unwrap_or(0) - counts().min().unwrap_or(0)
    };
    let mut circles: Vec<Vec<usize>> = sequences(players, seats)
        .into_iter()
        .filter(|circle| (0..players).all(|player| seats_of(circle, player) > 0))
        // Of the rotations of a circle, only the least.
        .filter(|circle| rotations(circle).all(|rotation| *circle <= rotation))
        .collect();
    circles.sort_by_key(unevenness);
    circles
}

/// Returns all sequences of `length` numbers below `bound`, in order.
fn sequences(bound: usize, length: usize) -> Vec<Vec<usize>> {
    (0..length).fold(vec![Vec::new()], |shorter, _| {
        let longer = |sequence: Vec<usize>| {
            (0..bound).map(move |number| sequence.iter().copied().chain([number]).collect())
        };
        shorter.into_iter().flat_map(longer).collect()
    })
}

/// Returns the group with this rank in lexicographic order: the hero if there is one, and `size` of the `others`.
fn group(mut rank: u64, size: usize, others: usize, hero: Option<usize>) -> Vec<usize> {
    let mut group: Vec<usize> = hero.into_iter().collect();
    let mut missing = size;
    for other in 0..others {
        if missing == 0 {
            break;
        }
        // The groups that contain this player, of those that contain the players chosen so far.
        let containing = binomial(others - other - 1, missing - 1).expect("a subset has fewer groups");
        if rank < containing {
            // The others are numbered without the hero.
            group.push(other + usize::from(hero.is_some_and(|hero| hero <= other)));
            missing -= 1;
        } else {
            rank -= containing;
        }
    }
    group
}

/// Returns the number of groups of `size` players among `players`; `None` if it overflows.
fn binomial(players: usize, size: usize) -> Option<u64> {
    if size > players {
        return Some(0);
    }
    let mut groups: u128 = 1;
    for step in 0..size {
        // The division is exact: the quotient is the number of groups of `step + 1` players.
        groups = groups.checked_mul((players - step) as u128)? / (step + 1) as u128;
    }
    u64::try_from(groups).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns every game of a cycle.
    fn games(roster: &Roster) -> Vec<Vec<usize>> {
        let bouts = roster.cycle() * roster.pairings();
        (0..bouts).flat_map(|bout| rotations(&roster.bout(bout).players).collect::<Vec<_>>()).collect()
    }

    /// Returns whether a count is the same for all items.
    fn balanced<T>(items: impl IntoIterator<Item = T>, count: impl Fn(T) -> usize) -> bool {
        items.into_iter().map(count).collect::<BTreeSet<_>>().len() <= 1
    }

    #[test]
    fn a_cycle_has_every_seating_once_and_is_balanced() {
        for seats in 2..=6 {
            for players in 1..=8 {
                let roster = Roster::round_robin(seats, players).unwrap();
                let games = games(&roster);
                // 1. By definition: every seating of different players, or every one in which all take part.
                let expected: BTreeSet<Vec<usize>> = sequences(players, seats)
                    .into_iter()
                    .filter(|seating| {
                        let different = seating.iter().collect::<BTreeSet<_>>().len();
                        different == seats.min(players)
                    })
                    .collect();
                assert_eq!(games.len(), expected.len(), "{players} players in {seats} seats");
                assert_eq!(games.iter().cloned().collect::<BTreeSet<_>>(), expected);
                // 2. Everybody sits in each seat equally often.
                let pairs = |first: usize, second: usize| {
                    (0..first).flat_map(move |one| (0..second).map(move |other| (one, other)))
                };
                let sits =
                    |(player, seat): (usize, usize)| games.iter().filter(|game| game[seat] == player).count();
                assert!(balanced(pairs(players, seats), sits), "{players} players in {seats} seats");
                // 3. Everybody follows everybody else equally often.
                let follows = |(one, other): (usize, usize)| {
                    let places = games.iter().flat_map(|game| (0..seats).map(move |seat| (game, seat)));
                    places
                        .filter(|(game, seat)| game[*seat] == one && game[(seat + 1) % seats] == other)
                        .count()
                };
                let different = pairs(players, players).filter(|(one, other)| one != other);
                assert!(balanced(different, follows), "{players} players in {seats} seats");
            }
        }
    }

    #[test]
    fn known_rosters() {
        let circles = |seats, players, bouts: u64| {
            let roster = Roster::round_robin(seats, players).unwrap();
            (0..bouts).map(|bout| roster.bout(bout).players).collect::<Vec<_>>()
        };
        assert_eq!(circles(2, 3, 4), [[0, 1], [0, 2], [1, 2], [0, 1]]);
        assert_eq!(circles(3, 3, 3), [[0, 1, 2], [0, 2, 1], [0, 1, 2]]);
        assert_eq!(circles(4, 4, 2), [[0, 1, 2, 3], [0, 3, 2, 1]]);
        assert_eq!(circles(4, 2, 4), [[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], [0, 1, 1, 1]]);
        assert_eq!(rotations(&[0, 1, 0, 1]).collect::<Vec<_>>(), [[0, 1, 0, 1], [1, 0, 1, 0]]);
        for seats in 3..=6 {
            let games = games(&Roster::round_robin(seats, 2).unwrap()).len();
            assert_eq!(games, (1 << seats) - 2, "two types in {seats} seats");
        }
    }

    #[test]
    fn all_pairings_play_an_opening_before_the_next() {
        for (seats, players) in [(2, 5), (3, 5), (4, 2), (6, 4)] {
            let roster = Roster::round_robin(seats, players).unwrap();
            for bout in 0..5 * roster.pairings() {
                let entry = roster.bout(bout);
                assert_eq!((entry.index, entry.opening), (bout, bout / roster.pairings()));
                let members = |bout: &Bout<u64>| bout.players.iter().copied().collect::<BTreeSet<_>>();
                let first = roster.bout(bout % roster.pairings());
                assert_eq!(members(&entry), members(&first), "a pairing keeps its players");
            }
        }
    }

    #[test]
    fn gauntlet_is_the_part_of_a_round_robin_with_its_hero() {
        for (seats, players) in [(2, 2), (2, 5), (3, 5), (4, 4), (4, 6), (4, 3)] {
            let all: BTreeSet<_> = games(&Roster::round_robin(seats, players).unwrap()).into_iter().collect();
            for hero in 0..players {
                let gauntlet = games(&Roster::gauntlet(seats, players, hero).unwrap());
                let set: BTreeSet<_> = gauntlet.iter().cloned().collect();
                let expected: BTreeSet<_> = all.iter().filter(|game| game.contains(&hero)).cloned().collect();
                assert_eq!((gauntlet.len(), &set), (expected.len(), &expected), "hero {hero} of {players}");
            }
        }
    }

    #[test]
    fn bouts_for_a_number_of_games() {
        for (seats, players) in [(2, 2), (2, 5), (3, 3), (4, 2), (6, 2), (6, 4), (3, 1)] {
            let roster = Roster::round_robin(seats, players).unwrap();
            let mut played = vec![0];
            for bout in 0..200 {
                played.push(played[bout as usize] + rotations(&roster.bout(bout).players).count() as u64);
            }
            for games in 0..played[199] {
                let least = played.iter().position(|&sum| sum >= games).unwrap() as u64;
                assert_eq!(
                    roster.bouts_for(games),
                    least,
                    "{games} games of {players} players in {seats} seats"
                );
            }
        }
    }

    #[test]
    fn large_rosters_are_indexed_without_enumeration() {
        let roster = Roster::round_robin(6, 1000).unwrap();
        assert_eq!(roster.pairings(), 1_368_173_298_991_500);
        assert_eq!(roster.bout(0).players, [0, 1, 2, 3, 4, 5]);
        assert_eq!(roster.bout(roster.pairings() - 1).players, [994, 995, 996, 997, 998, 999]);
        let error = Roster::round_robin(6, 1_000_000).unwrap_err();
        assert_eq!(error, RosterError::TooManyGroups { players: 1_000_000, seats: 6 });
        assert_eq!(Roster::round_robin(2, 0).unwrap_err(), RosterError::NoPlayers);
        assert_eq!(Roster::gauntlet(2, 3, 3).unwrap_err(), RosterError::NoHero { hero: 3, players: 3 });
    }
}
