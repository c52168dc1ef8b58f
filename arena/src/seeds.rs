//! Seeds: every seed is derived from the run's seed and a position in the run.

use agon_games::random::mix;

/// The position of a game in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeedPath {
    /// The seed of the run.
    pub run: u64,
    /// The bout.
    pub bout: u64,
    /// The number of the game in the bout.
    pub game: u32,
}

impl SeedPath {
    /// Returns the seed of one ply, for its search or the draw of chance.
    pub fn ply_seed(self, ply: u32) -> u64 {
        mix(self.game_seed(), u64::from(ply))
    }

    /// Returns the seed of the game.
    pub fn game_seed(self) -> u64 {
        mix(mix(mix(self.run, GAMES), self.bout), u64::from(self.game))
    }

    /// Returns the seed of the opening, which all games of the bout share.
    pub fn opening_seed(self) -> u64 {
        mix(mix(self.run, OPENINGS), self.bout)
    }
}

const GAMES: u64 = 1;
const OPENINGS: u64 = 2;
