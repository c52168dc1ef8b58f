//! Results of many files, counted as they are read: who met whom from which seat, and nothing of single games.

use std::collections::HashMap;

use agon_stats::outcome::Outcome;
use agon_stats::pool;

/// Counts of games, by who had the first seat and who the second.
#[derive(Default)]
pub struct Tallies {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// The same players by the bytes of their names as files have them, which need not be UTF-8.
    by_bytes: HashMap<Vec<u8>, u32>,
    /// For the first seat's player and the second's: games the first lost, drew and won.
    pub(super) counts: HashMap<(u32, u32), [u64; 3]>,
}

impl Tallies {
    /// The player with this name.
    pub fn player(&mut self, name: &[u8]) -> u32 {
        if let Some(&player) = self.by_bytes.get(name) {
            return player;
        }
        let text = decoded(name);
        let next = u32::try_from(self.names.len()).expect("fewer players than memory for their names");
        let player = *self.by_name.entry(text.clone()).or_insert(next);
        if player == next {
            self.names.push(text);
        }
        self.by_bytes.insert(name.to_vec(), player);
        player
    }

    /// The name of a player.
    pub fn name(&self, player: u32) -> &str {
        &self.names[player as usize]
    }

    /// Counts games by the outcome for the first seat.
    pub fn add(&mut self, first: u32, second: u32, outcome: Outcome, games: u64) {
        if games > 0 {
            self.counts.entry((first, second)).or_default()[outcome.half_points()] += games;
        }
    }

    /// The players with at least so many games among themselves: whoever has fewer is left out, then whoever has fewer
    /// without them, and so on. Returns how many were left out.
    pub fn keep_players_of(&mut self, least: u64) -> usize {
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

    /// How many players have games.
    pub fn players(&self) -> usize {
        let mut players: Vec<u32> = self.counts.keys().flat_map(|&(first, second)| [first, second]).collect();
        players.sort_unstable();
        players.dedup();
        players.len()
    }

    /// Whether a player of this name has games.
    pub fn has_games(&self, name: &str) -> bool {
        let has =
            |player: &u32| self.counts.keys().any(|&(first, second)| first == *player || second == *player);
        self.by_name.get(name).is_some_and(has)
    }

    /// The results as the statistics take them.
    pub fn results(&self) -> pool::Results {
        let mut results = pool::Results::default();
        for (&(first, second), counts) in &self.counts {
            let (first, second) = (results.player(self.name(first)), results.player(self.name(second)));
            for (outcome, &count) in Outcome::ALL.into_iter().zip(counts) {
                let added = results.add_games(first, second, outcome, count);
                added.expect("whoever counts games has seen to it that the players differ");
            }
        }
        results
    }
}

/// A name as text: UTF-8, or Latin-1 where it is not, which every byte is.
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
        let mut tallies = Tallies::default();
        let player = tallies.player("Müller".as_bytes());
        assert_eq!(tallies.player(b"M\xfcller"), player);
        assert_eq!(tallies.name(player), "Müller");
        assert_ne!(tallies.player(b"Muller"), player);
    }

    /// Without c, whose single game is too few, b has one game less and goes too, and then d.
    #[test]
    fn players_of_few_games_are_left_out_together() {
        let mut tallies = Tallies::default();
        let [a, b, c, d, e] = [b"a", b"b", b"c", b"d", b"e"].map(|name| tallies.player(name));
        tallies.add(a, e, Outcome::Win, 5);
        tallies.add(b, c, Outcome::Win, 1);
        tallies.add(b, d, Outcome::Draw, 1);
        tallies.add(d, a, Outcome::Draw, 1);
        assert_eq!(tallies.keep_players_of(2), 3);
        assert_eq!((tallies.players(), tallies.counts.len()), (2, 1));
        assert_eq!(tallies.keep_players_of(2), 3);
    }
}
