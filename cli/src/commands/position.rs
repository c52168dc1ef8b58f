//! The arguments that name a position.

use agon_games::{AnyGame, GameSpec, SetupError};
use clap::Args;

use crate::fail;

/// A game, a start position and moves.
#[derive(Args)]
pub struct PositionArgs {
    /// Game: a name, or name:key=value,key=value
    #[arg(value_name = "GAME")]
    game: String,
    /// Moves to play first, separated by spaces
    #[arg(
        long,
        value_name = "MOVES",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub moves: String,
    /// Start from this position (FEN for chess)
    #[arg(long, value_name = "TEXT")]
    pub position: Option<String>,
}

impl PositionArgs {
    /// Parses the game, and prints its note, if it has one, on standard error.
    pub fn game(&self) -> Result<GameSpec, SetupError> {
        let game = GameSpec::parse(&self.game)?;
        if let Some(note) = game.note() {
            fail::note(&format!("note: {note}"));
        }
        Ok(game)
    }

    /// Returns the start position of the game.
    pub fn start(&self, game: &GameSpec) -> Result<Box<dyn AnyGame>, SetupError> {
        game.start(self.position.as_deref())
    }

    /// Returns the position after the moves, and their number.
    pub fn after_moves(&self, game: &GameSpec) -> anyhow::Result<(Box<dyn AnyGame>, usize)> {
        let mut position = self.start(game)?;
        let plies = position.follow(&self.moves)?;
        Ok((position, plies))
    }
}
