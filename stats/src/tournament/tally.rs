//! Bouts counted by what happened in them. A tally forgets which bout was which, so that it stays small however many there
//! are, and does not depend on the order in which they come.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::outcome::Outcome;
use crate::pairs::{PairScore, Pairs};
use crate::plackett_luce::{Game, LowestPlaces, Pool, RankingError};
use crate::pool::{Meeting, Results};

/// Why a bout is not counted.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum TallyError {
    /// A game of another shape than those before.
    #[error("a game has {players} players and {payoffs} payoffs, and {seats} seats are expected")]
    Shape {
        /// How many players it has.
        players: usize,
        /// How many payoffs.
        payoffs: usize,
        /// How many seats the games before had.
        seats: usize,
    },
    /// A player who is not known.
    #[error("player {player} is none of the {players} players, who are numbered from 0")]
    Player {
        /// The number as given.
        player: usize,
        /// How many players there are.
        players: usize,
    },
}

/// The bouts of a tournament: each kind once, with its count.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    names: Vec<String>,
    bouts: BTreeMap<Vec<Game>, u64>,
}

/// What one player made of its games.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Record {
    /// Games, one for each seat that it sat in.
    pub games: u64,
    /// Games that it won alone.
    pub wins: u64,
    /// Games whose first place it shared.
    pub draws: u64,
    /// Games that somebody else won.
    pub losses: u64,
    /// Its shares of the one point that a game has, summed.
    pub points: f64,
}

impl Tally {
    /// No bouts of these players.
    pub fn new(names: Vec<String>) -> Tally {
        Tally { names, bouts: BTreeMap::new() }
    }

    /// The players' names, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many seats the games have; none before the first.
    pub fn seats(&self) -> Option<usize> {
        self.bouts.keys().flatten().next().map(|game| game.players.len())
    }

    /// Counts bouts with these games, in the order in which they were scheduled.
    pub fn add(&mut self, games: &[Game], count: u64) -> Result<(), TallyError> {
        let seats = self.seats().or_else(|| games.first().map(|game| game.players.len())).unwrap_or(0);
        for Game { players, payoffs } in games {
            if players.len() != seats || payoffs.len() != seats {
                let (players, payoffs) = (players.len(), payoffs.len());
                return Err(TallyError::Shape { players, payoffs, seats });
            }
            if let Some(&player) = players.iter().find(|&&player| player >= self.names.len()) {
                return Err(TallyError::Player { player, players: self.names.len() });
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

    /// Counts the bouts of another tally too. Players of the same name are the same.
    pub fn merge(&mut self, other: &Tally) -> Result<(), TallyError> {
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

    /// Leaves out the bouts of players with fewer games, then of whoever has fewer without them, and so on. Returns how many
    /// of those who had games were left out.
    pub fn keep_players_of(&mut self, least: u64) -> usize {
        let played = |tally: &Tally| tally.records().iter().filter(|record| record.games > 0).count();
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

    /// The kinds of bouts with their counts, in an order of their own.
    pub fn kinds(&self) -> impl Iterator<Item = (&[Game], u64)> {
        self.bouts.iter().map(|(games, &count)| (&games[..], count))
    }

    /// How many bouts were counted.
    pub fn bouts(&self) -> u64 {
        self.bouts.values().sum()
    }

    /// How many games they have.
    pub fn games(&self) -> u64 {
        self.kinds().map(|(games, count)| games.len() as u64 * count).sum()
    }

    /// What each player made of its games, by number.
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

    /// Who did what against whom: a row for each player, a column for each opponent. With many seats a game in which neither
    /// of two was paid says nothing of them and is not counted there.
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

    /// The bouts of two players by the score of `one`, where they met in pairs of games.
    pub fn pairs(&self, one: usize, other: usize) -> Pairs {
        let mut pairs = Pairs::default();
        for (games, count) in self.kinds() {
            if let Some(score) = pair_score(games, one, other) {
                pairs.0[usize::from(score.half_points())] += count;
            }
        }
        pairs
    }

    /// The same bouts as results of two seats. Games without a partner are evidence of their own; a player that met itself
    /// says nothing.
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

    /// The same bouts as rankings, with the numbers of those players who have games.
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
    /// Each player with its share of the one point that a game has: the winners share it.
    pub fn shares(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let best = self.payoffs.iter().max().copied();
        let winners = self.payoffs.iter().filter(|payoff| Some(**payoff) == best).count() as f64;
        let share = move |payoff: &i32| if Some(*payoff) == best { 1.0 / winners } else { 0.0 };
        self.players.iter().copied().zip(self.payoffs.iter().map(share))
    }
}

/// The players of a bout of two seats, the one who began its first game first, with the outcomes for that one: in the game
/// where it began, and in the other.
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

/// The score of `one` in a pair of games against `other`, if the bout is one.
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

    /// Bouts of random results.
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

    /// Every count is what going through the bouts one by one finds.
    #[test]
    fn counts_are_those_of_single_games() {
        for (seed, seats) in [(1, 2), (2, 3), (3, 4)] {
            let bouts = bouts(seed, 5, seats);
            let mut tally = Tally::new(names(5));
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

    /// Neither the order of bouts nor in how many tallies they were counted, with players in whatever order, matters.
    #[test]
    fn tallies_are_sums() {
        let mut all = bouts(4, 4, 2);
        let mut whole = Tally::new(names(4));
        all.iter().for_each(|bout| whole.add(bout, 1).unwrap());
        all.shuffle(&mut seeded(4, 1));
        let mut reversed = names(4);
        reversed.reverse();
        let mut parts = [Tally::new(names(4)), Tally::new(reversed)];
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

    /// Without c, whose two games are too few, b has too few and goes too.
    #[test]
    fn players_of_few_games_are_left_out_together() {
        let mut tally = Tally::new(names(5));
        let bout = |one: usize, other: usize| {
            [vec![one, other], vec![other, one]].map(|players| Game { players, payoffs: vec![0, 0] })
        };
        tally.add(&bout(0, 1), 3).unwrap();
        tally.add(&bout(0, 2), 1).unwrap();
        tally.add(&bout(2, 3), 1).unwrap();
        assert_eq!(tally.keep_players_of(3), 2);
        assert_eq!((tally.bouts(), tally.records()[2].games), (3, 0));
        assert_eq!(tally.keep_players_of(3), 0);
    }

    /// The crosstable and the pairs of two seats are those of the pool.
    #[test]
    fn two_seats_agree_with_the_pool() {
        let mut tally = Tally::new(names(4));
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
    fn what_does_not_fit_is_refused() {
        let game = |players: &[usize], payoffs: &[i32]| Game {
            players: players.to_vec(),
            payoffs: payoffs.to_vec(),
        };
        let mut tally = Tally::new(names(2));
        tally.add(&[game(&[0, 1], &[1, -1])], 1).unwrap();
        let refused = |tally: &mut Tally, game: Game| tally.add(&[game], 1).unwrap_err().to_string();
        assert!(refused(&mut tally, game(&[0, 2], &[1, -1])).starts_with("player 2 is none of the 2"));
        assert!(refused(&mut tally, game(&[0, 1, 0], &[1, 0, 0])).starts_with("a game has 3 players"));
        assert!(refused(&mut tally, game(&[0, 1], &[1])).starts_with("a game has 2 players and 1 payoffs"));
        assert_eq!((tally.bouts(), tally.seats()), (1, Some(2)));
    }
}
