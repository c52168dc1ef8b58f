//! Bouts counted by their games. Counts stay small however many bouts there are, and do not depend on their order.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::outcome::Outcome;
use crate::pairs::{PairScore, Pairs};
use crate::plackett_luce::{Game, LowestPlaces, Pool, RankingError};
use crate::pool::{Meeting, Results};

/// A rejected bout.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum BoutCountsError {
    /// A game with another number of seats than earlier ones.
    #[error("a game has {players} players and {payoffs} payoffs, and {seats} seats are expected")]
    Shape {
        /// The number of players.
        players: usize,
        /// The number of payoffs.
        payoffs: usize,
        /// The number of seats of earlier games.
        seats: usize,
    },
    /// An unknown player.
    #[error("player {player} is unknown: there are {players} players, numbered from 0")]
    Player {
        /// The player's number.
        player: usize,
        /// The number of players.
        players: usize,
    },
}

/// The bouts of a tournament: each distinct bout once, with its count.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BoutCounts {
    names: Vec<String>,
    bouts: BTreeMap<Vec<Game>, u64>,
}

/// The results of one player.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Record {
    /// Games, one for each seat of the player.
    pub games: u64,
    /// Games won alone.
    pub wins: u64,
    /// Games with a shared first place.
    pub draws: u64,
    /// Games won by others.
    pub losses: u64,
    /// The player's shares of the one point per game, summed.
    pub points: f64,
}

impl BoutCounts {
    /// Creates empty counts for these players.
    pub fn new(names: Vec<String>) -> BoutCounts {
        BoutCounts { names, bouts: BTreeMap::new() }
    }

    /// Returns the players' names, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the number of seats; `None` before the first game.
    pub fn seats(&self) -> Option<usize> {
        self.bouts.keys().flatten().next().map(|game| game.players.len())
    }

    /// Adds `count` bouts with these games, in scheduled order.
    pub fn add(&mut self, games: &[Game], count: u64) -> Result<(), BoutCountsError> {
        let seats = self.seats().or_else(|| games.first().map(|game| game.players.len())).unwrap_or(0);
        for Game { players, payoffs } in games {
            if players.len() != seats || payoffs.len() != seats {
                let (players, payoffs) = (players.len(), payoffs.len());
                return Err(BoutCountsError::Shape { players, payoffs, seats });
            }
            if let Some(&player) = players.iter().find(|&&player| player >= self.names.len()) {
                return Err(BoutCountsError::Player { player, players: self.names.len() });
            }
        }
        if games.is_empty() || count == 0 {
            return Ok(());
        }
        match self.bouts.get_mut(games) {
            Some(known) => *known += count,
            None => {
                self.bouts.insert(games.to_vec(), count);
            }
        }
        Ok(())
    }

    /// Adds the bouts of other counts. Players of the same name are the same.
    pub fn merge(&mut self, other: &BoutCounts) -> Result<(), BoutCountsError> {
        let number = |name: &String| match self.names.iter().position(|known| known == name) {
            Some(number) => number,
            None => {
                self.names.push(name.clone());
                self.names.len() - 1
            }
        };
        let numbers: Vec<usize> = other.names.iter().map(number).collect();
        for (games, &count) in &other.bouts {
            let renumbered = |game: &Game| Game {
                players: game.players.iter().map(|&player| numbers[player]).collect(),
                payoffs: game.payoffs.clone(),
            };
            self.add(&games.iter().map(renumbered).collect::<Vec<_>>(), count)?;
        }
        Ok(())
    }

    /// Removes the bouts of players with fewer than `least` games, repeatedly, because opponents lose games too.
    /// Returns the number of players removed.
    pub fn remove_players_below(&mut self, least: u64) -> usize {
        let played = |tally: &BoutCounts| tally.records().iter().filter(|record| record.games > 0).count();
        let before = played(self);
        loop {
            let records = self.records();
            let few = |player: &usize| records[*player].games < least;
            let kinds = self.bouts.len();
            self.bouts.retain(|games, _| !games.iter().flat_map(|game| &game.players).any(few));
            if self.bouts.len() == kinds {
                return before - played(self);
            }
        }
    }

    /// Returns the distinct bouts with their counts, in a canonical order.
    pub fn kinds(&self) -> impl Iterator<Item = (&[Game], u64)> {
        self.bouts.iter().map(|(games, &count)| (&games[..], count))
    }

    /// Returns the number of bouts.
    pub fn bouts(&self) -> u64 {
        self.bouts.values().sum()
    }

    /// Returns the number of games.
    pub fn games(&self) -> u64 {
        self.kinds().map(|(games, count)| games.len() as u64 * count).sum()
    }

    /// Returns the results of each player, by number.
    pub fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::default(); self.names.len()];
        for (games, count) in self.kinds() {
            for (player, share) in games.iter().flat_map(Game::shares) {
                let record = &mut records[player];
                record.games += count;
                record.points += share * count as f64;
                let kind = if share == 0.0 {
                    &mut record.losses
                } else if share == 1.0 {
                    &mut record.wins
                } else {
                    &mut record.draws
                };
                *kind += count;
            }
        }
        records
    }

    /// Returns each player's results against each opponent. With many seats, a game in which neither of two was paid
    /// does not compare them and is not counted.
    pub fn crosstable(&self) -> Vec<Vec<Meeting>> {
        let mut table = vec![vec![Meeting::default(); self.names.len()]; self.names.len()];
        for (games, count) in self.kinds() {
            for Game { players, payoffs } in games {
                let least = payoffs.iter().min();
                let tied = least == payoffs.iter().max();
                for (one, own) in players.iter().zip(payoffs) {
                    for (other, payoff) in players.iter().zip(payoffs).filter(|(other, _)| *other != one) {
                        let meeting = &mut table[*one][*other];
                        match Outcome::of_payoffs(*own, *payoff) {
                            Outcome::Win => meeting.wins += count,
                            Outcome::Loss => meeting.losses += count,
                            Outcome::Draw if tied || Some(own) != least => meeting.draws += count,
                            Outcome::Draw => {}
                        }
                    }
                }
            }
        }
        table
    }

    /// Returns the bouts of two players by the score of `one`, if they met in pairs of games.
    pub fn pairs(&self, one: usize, other: usize) -> Pairs {
        let mut pairs = Pairs::default();
        for (games, count) in self.kinds() {
            if let Some(score) = pair_score(games, one, other) {
                pairs.0[usize::from(score.half_points())] += count;
            }
        }
        pairs
    }

    /// Converts the bouts to results of two seats. Games without a partner are single games; games of a player
    /// against itself are skipped.
    pub(super) fn results(&self) -> Results {
        let mut results = Results::default();
        for (games, count) in self.kinds() {
            if let Some(([one, other], [first, second])) = pair_of(games) {
                let [one, other] = [one, other].map(|player| results.player(&self.names[player]));
                let _ = results.add_bouts(one, other, first, second, count);
                continue;
            }
            for game in games {
                if let (&[one, other], &[own, payoff]) = (&game.players[..], &game.payoffs[..])
                    && one != other
                {
                    let [one, other] = [one, other].map(|player| results.player(&self.names[player]));
                    let _ = results.add_games(one, other, Outcome::of_payoffs(own, payoff), count);
                }
            }
        }
        results
    }

    /// Converts the bouts to rankings, and returns the numbers of the players with games.
    pub(super) fn rankings(&self, seats: usize) -> Result<(Pool, Vec<usize>), RankingError> {
        let records = self.records();
        let played: Vec<usize> = (0..records.len()).filter(|&player| records[player].games > 0).collect();
        let mut pool = Pool::new(played.len(), seats, LowestPlaces::Undecided)?;
        for (games, count) in self.kinds() {
            let number = |player: &usize| played.partition_point(|known| known < player);
            let renumbered = |game: &Game| Game {
                players: game.players.iter().map(number).collect(),
                payoffs: game.payoffs.clone(),
            };
            pool.add_bouts(&games.iter().map(renumbered).collect::<Vec<_>>(), count)?;
        }
        Ok((pool, played))
    }
}

impl Game {
    /// Returns each player with its share of the game's one point, which the winners share.
    pub fn shares(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let best = self.payoffs.iter().max().copied();
        let winners = self.payoffs.iter().filter(|payoff| Some(**payoff) == best).count() as f64;
        let share = move |payoff: &i32| if Some(*payoff) == best { 1.0 / winners } else { 0.0 };
        self.players.iter().copied().zip(self.payoffs.iter().map(share))
    }
}

/// Returns the players of a bout of two seats, the one who began the first game first, with that player's outcomes in
/// the game it began and in the other.
pub fn pair_of(games: &[Game]) -> Option<([usize; 2], [Outcome; 2])> {
    let [first, second] = games else { return None };
    let (&[one, other], &[second_one, second_other]) = (&first.players[..], &second.players[..]) else {
        return None;
    };
    let (&[own, payoff], &[second_payoff, second_own]) = (&first.payoffs[..], &second.payoffs[..]) else {
        return None;
    };
    let outcomes = [Outcome::of_payoffs(own, payoff), Outcome::of_payoffs(second_own, second_payoff)];
    ((one, other) == (second_other, second_one) && one != other).then_some(([one, other], outcomes))
}

/// Returns the score of `one` against `other` if the bout is a pair of their games.
pub fn pair_score(games: &[Game], one: usize, other: usize) -> Option<PairScore> {
    let (players, [first, second]) = pair_of(games)?;
    if players == [one, other] {
        Some(PairScore::of(first, second))
    } else if players == [other, one] {
        Some(PairScore::of(first.reversed(), second.reversed()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;
    use rand::seq::SliceRandom as _;

    use super::*;
    use crate::distribution::seeded;
    use crate::pool::{Fit, Options};

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("p{number}")).collect()
    }

    /// Draws bouts with random results.
    fn bouts(seed: u64, players: usize, seats: usize) -> Vec<Vec<Game>> {
        let mut random = seeded(seed, 0);
        let mut bout = || {
            let mut circle: Vec<usize> = (0..players).collect();
            circle.shuffle(&mut random);
            circle.truncate(seats);
            let mut game = |rotation: usize| {
                let players = (0..seats).map(|seat| circle[(seat + rotation) % seats]).collect();
                let payoffs = match seats {
                    2 => {
                        let payoff = random.random_range(-1..=1);
                        vec![payoff, -payoff]
                    }
                    _ => (0..seats).map(|_| random.random_range(0..3)).collect(),
                };
                Game { players, payoffs }
            };
            (0..seats).map(&mut game).collect::<Vec<Game>>()
        };
        (0..60).map(|_| bout()).collect()
    }

    /// Counts equal those of a loop over single games.
    #[test]
    fn counts_match_single_games() {
        for (seed, seats) in [(1, 2), (2, 3), (3, 4)] {
            let bouts = bouts(seed, 5, seats);
            let mut tally = BoutCounts::new(names(5));
            bouts.iter().for_each(|bout| tally.add(bout, 1).unwrap());
            assert_eq!((tally.bouts(), tally.games()), (60, 60 * seats as u64));
            let table = tally.crosstable();
            for (player, record) in tally.records().iter().enumerate() {
                let games: Vec<&Game> =
                    bouts.iter().flatten().filter(|game| game.players.contains(&player)).collect();
                let own = |game: &Game| {
                    let seat = game.players.iter().position(|other| *other == player).unwrap();
                    (game.payoffs[seat], seat)
                };
                let best = |game: &Game| *game.payoffs.iter().max().unwrap();
                let on_top =
                    |game: &Game| game.payoffs.iter().filter(|payoff| **payoff == best(game)).count();
                let first = |game: &&&Game| own(game).0 == best(game);
                let wins = games.iter().filter(first).filter(|game| on_top(game) == 1).count() as u64;
                let draws = games.iter().filter(first).count() as u64 - wins;
                assert_eq!((record.games, record.wins, record.draws), (games.len() as u64, wins, draws));
                assert_eq!(record.losses, record.games - wins - draws);
                for other in (0..5).filter(|&other| other != player) {
                    let meeting = table[player][other];
                    assert_eq!(meeting.wins, table[other][player].losses);
                    assert_eq!(meeting.draws, table[other][player].draws);
                    let above = games.iter().filter(|game| {
                        let seat = game.players.iter().position(|name| *name == other);
                        seat.is_some_and(|seat| game.payoffs[seat] < own(game).0)
                    });
                    assert_eq!(meeting.wins, above.count() as u64);
                }
            }
        }
    }

    /// Counts depend neither on the order of bouts, nor on how they are merged, nor on the order of players.
    #[test]
    fn counts_merge_in_any_order() {
        let mut all = bouts(4, 4, 2);
        let mut whole = BoutCounts::new(names(4));
        all.iter().for_each(|bout| whole.add(bout, 1).unwrap());
        all.shuffle(&mut seeded(4, 1));
        let mut reversed = names(4);
        reversed.reverse();
        let mut parts = [BoutCounts::new(names(4)), BoutCounts::new(reversed)];
        for (index, bout) in all.iter().enumerate() {
            let renumbered = |game: &Game| Game {
                players: game.players.iter().map(|player| 3 - player).collect(),
                payoffs: game.payoffs.clone(),
            };
            let bout = if index % 2 == 0 { bout.clone() } else { bout.iter().map(renumbered).collect() };
            parts[index % 2].add(&bout, 1).unwrap();
        }
        let [mut sum, other] = parts;
        sum.merge(&other).unwrap();
        assert_eq!(sum, whole);
    }

    /// Without c, who has too few games, b has too few as well.
    #[test]
    fn removes_players_with_few_games_repeatedly() {
        let mut tally = BoutCounts::new(names(5));
        let bout = |one: usize, other: usize| {
            [vec![one, other], vec![other, one]].map(|players| Game { players, payoffs: vec![0, 0] })
        };
        tally.add(&bout(0, 1), 3).unwrap();
        tally.add(&bout(0, 2), 1).unwrap();
        tally.add(&bout(2, 3), 1).unwrap();
        assert_eq!(tally.remove_players_below(3), 2);
        assert_eq!((tally.bouts(), tally.records()[2].games), (3, 0));
        assert_eq!(tally.remove_players_below(3), 0);
    }

    /// For two seats the crosstable and the pairs equal those of the pool.
    #[test]
    fn two_seats_match_pool_tables() {
        let mut tally = BoutCounts::new(names(4));
        bouts(5, 4, 2).iter().for_each(|bout| tally.add(bout, 2).unwrap());
        let fit = Fit::new(&tally.results(), &Options::default()).unwrap();
        assert_eq!(fit.crosstable(), tally.crosstable());
        assert!(fit.bouts_only());
        for (one, row) in tally.crosstable().iter().enumerate() {
            for (other, meeting) in row.iter().enumerate().filter(|(other, _)| *other != one) {
                let Pairs(pairs) = tally.pairs(one, other);
                let half_points: u64 = pairs.iter().zip(0..).map(|(count, points)| count * points).sum();
                assert_eq!(half_points, 2 * meeting.wins + meeting.draws);
                assert_eq!(2 * pairs.iter().sum::<u64>(), meeting.games());
            }
        }
    }

    #[test]
    fn rejects_mismatched_games() {
        let game = |players: &[usize], payoffs: &[i32]| Game {
            players: players.to_vec(),
            payoffs: payoffs.to_vec(),
        };
        let mut tally = BoutCounts::new(names(2));
        tally.add(&[game(&[0, 1], &[1, -1])], 1).unwrap();
        let refused = |tally: &mut BoutCounts, game: Game| tally.add(&[game], 1).unwrap_err().to_string();
        assert!(
            refused(&mut tally, game(&[0, 2], &[1, -1]))
                .starts_with("player 2 is unknown: there are 2 players")
        );
        assert!(refused(&mut tally, game(&[0, 1, 0], &[1, 0, 0])).starts_with("a game has 3 players"));
        assert!(refused(&mut tally, game(&[0, 1], &[1])).starts_with("a game has 2 players and 1 payoffs"));
        assert_eq!((tally.bouts(), tally.seats()), (1, Some(2)));
    }
}
