//! Where randomness comes from: every seed is a function of the run's seed and a place in it.

use agon_games::random::mix;

/// A place in a run: which bout, which game of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeedPath {
    /// The seed of the run.
    pub run: u64,
    /// The bout.
    pub bout: u64,
    /// The game of the bout.
    pub game: u32,
}

impl SeedPath {
    /// The seed of one ply of the game: of its search, or of chance's draw.
    pub fn ply_seed(self, ply: u32) -> u64 {
        mix(self.game_seed(), u64::from(ply))
    }

    /// The seed of the game.
    pub fn game_seed(self) -> u64 {
        mix(mix(mix(self.run, GAMES), self.bout), u64::from(self.game))
    }

    /// The seed of the opening, which all games of the bout share.
    pub fn opening_seed(self) -> u64 {
        mix(mix(self.run, OPENINGS), self.bout)
    }
}

const GAMES: u64 = 1;
const OPENINGS: u64 = 2;
