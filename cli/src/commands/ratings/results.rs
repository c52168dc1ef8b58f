//! Counts of results by the pair of players and their seats, without single games.

use std::collections::HashMap;

use agon_games::printable::printable;
use agon_stats::outcome::Outcome;
use agon_stats::pairs::Games;
use agon_stats::pool;

/// Counts of games by the players of the first and the second seat.
#[derive(Default)]
pub struct ResultCounts {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// The players by the bytes of their names in files, which need not be UTF-8.
    by_bytes: HashMap<Vec<u8>, u32>,
    /// The losses, draws and wins of the first seat's player against the second's.
    pub(super) counts: HashMap<(u32, u32), [u64; 3]>,
}

impl ResultCounts {
    /// Returns the player with this name, whose printable form is kept.
    pub fn player(&mut self, name: &[u8]) -> u32 {
        if let Some(&player) = self.by_bytes.get(name) {
            return player;
        }
        let text = printable(&decoded(name)).into_owned();
        let next = u32::try_from(self.names.len()).expect("fewer players than memory for their names");
        let player = *self.by_name.entry(text.clone()).or_insert(next);
        if player == next {
            self.names.push(text);
        }
        self.by_bytes.insert(name.to_vec(), player);
        player
    }

    /// Returns the name of a player.
    pub fn name(&self, player: u32) -> &str {
        &self.names[player as usize]
    }

    /// Counts games by the outcome for the first seat.
    pub fn add(&mut self, first: u32, second: u32, outcome: Outcome, games: u64) {
        if games > 0 {
            self.counts.entry((first, second)).or_default()[outcome.half_points()] += games;
        }
    }

    /// Leaves out players with fewer than `least` games, then those with fewer games against the others, and so on. Returns
    /// the number of players left out.
    pub fn remove_players_below(&mut self, least: u64) -> usize {
        let mut left_out = vec![false; self.names.len()];
        loop {
            let mut games = vec![0; self.names.len()];
            for (&(first, second), counts) in &self.counts {
                let count: u64 = counts.iter().sum();
                games[first as usize] += count;
                games[second as usize] += count;
            }
            let mut changed = false;
            for (out, &count) in left_out.iter_mut().zip(&games) {
                changed |= !*out && count < least;
                *out |= count < least;
            }
            if !changed {
                return left_out.iter().filter(|&&out| out).count();
            }
            self.counts.retain(|&(first, second), _| !left_out[first as usize] && !left_out[second as usize]);
        }
    }

    /// Returns the number of players with games.
    pub fn players(&self) -> usize {
        let mut players: Vec<u32> = self.counts.keys().flat_map(|&(first, second)| [first, second]).collect();
        players.sort_unstable();
        players.dedup();
        players.len()
    }

    /// Returns the names of the only two players, the one first who was found first, with their games.
    pub fn of_two(&self) -> Option<([String; 2], Games)> {
        let [one, other] = &self.names[..] else { return None };
        let count = |seats| self.counts.get(&seats).copied().unwrap_or_default();
        let ([lost, drawn, won], [won_after, drawn_after, lost_after]) = (count((0, 1)), count((1, 0)));
        let games = Games { wins: won + won_after, draws: drawn + drawn_after, losses: lost + lost_after };
        (games.wins + games.draws + games.losses > 0).then(|| ([one.clone(), other.clone()], games))
    }

    /// Returns whether a player of this name has games.
    pub fn has_games(&self, name: &str) -> bool {
        let has =
            |player: &u32| self.counts.keys().any(|&(first, second)| first == *player || second == *player);
        self.by_name.get(name).is_some_and(has)
    }

    /// Returns the results for rating.
    pub fn results(&self) -> pool::Results {
        let mut results = pool::Results::default();
        for (&(first, second), counts) in &self.counts {
            let (first, second) = (results.player(self.name(first)), results.player(self.name(second)));
            for (outcome, &count) in Outcome::ALL.into_iter().zip(counts) {
                let added = results.add_games(first, second, outcome, count);
                added.expect("the readers reject games of a player against itself");
            }
        }
        results
    }
}

/// Decodes a name as UTF-8, or as Latin-1, which accepts every byte.
fn decoded(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_string(),
        Err(_) => name.iter().map(|&byte| char::from(byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_in_two_encodings_is_one_player() {
        let mut counts = ResultCounts::default();
        let player = counts.player("Müller".as_bytes());
        assert_eq!(counts.player(b"M\xfcller"), player);
        assert_eq!(counts.name(player), "Müller");
        assert_ne!(counts.player(b"Muller"), player);
    }

    /// Leaving out c leaves b with one game, and leaving out b leaves d with one.
    #[test]
    fn leaves_out_players_with_few_games_repeatedly() {
        let mut counts = ResultCounts::default();
        let [a, b, c, d, e] = [b"a", b"b", b"c", b"d", b"e"].map(|name| counts.player(name));
        counts.add(a, e, Outcome::Win, 5);
        counts.add(b, c, Outcome::Win, 1);
        counts.add(b, d, Outcome::Draw, 1);
        counts.add(d, a, Outcome::Draw, 1);
        assert_eq!(counts.remove_players_below(2), 3);
        assert_eq!((counts.players(), counts.counts.len()), (2, 1));
        assert_eq!(counts.remove_players_below(2), 3);
    }
}
