//! The arguments that name a position, shared by all commands that start from one.

use std::io::{self, Write};

use agon_games::{AnyGame, GameSpec, SetupError};
use clap::Args;

/// A game and a way into it.
#[derive(Args)]
pub struct PositionArgs {
    /// Game: a name, or name:key=value,key=value
    #[arg(value_name = "GAME")]
    game: String,
    /// Start from this position (FEN for chess)
    #[arg(long, value_name = "TEXT")]
    pub position: Option<String>,
}

impl PositionArgs {
    /// The game that is named.
    pub fn game(&self) -> Result<GameSpec, SetupError> {
        GameSpec::parse(&self.game)
    }

    /// The same, with what a person may want to know of it on standard error.
    pub fn game_with_note(&self) -> Result<GameSpec, SetupError> {
        let game = self.game()?;
        if let Some(note) = game.note() {
            // Where standard error cannot be written, there is nobody left to tell.
            let _ = writeln!(io::stderr(), "note: {note}");
        }
        Ok(game)
    }

    /// The position to start from.
    pub fn start(&self) -> Result<Box<dyn AnyGame>, SetupError> {
        self.game()?.start(self.position.as_deref())
    }

    /// The position after a line of moves, and how many there were.
    pub fn after(&self, moves: &str) -> anyhow::Result<(Box<dyn AnyGame>, usize)> {
        let mut position = self.start()?;
        let plies = position.follow(moves)?;
        Ok((position, plies))
    }
}
