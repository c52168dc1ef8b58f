//! A recorded game played again by the rules, to look at its boards. Nothing is searched.

use std::ops::RangeInclusive;

use agon_games::{AnyGame, GameSpec};
use serde::Serialize;

use crate::games::Recording;

/// A position as `agon show` has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Sight {
    /// The board as text.
    pub board: String,
    /// The position as text that reads back.
    pub position: String,
}

/// Some boards of a game.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Boards {
    /// Before the first ply that was asked for.
    pub start: Sight,
    /// After each of the plies that were asked for.
    pub after: Vec<Sight>,
}

/// Why a recorded game has no boards.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("bout {bout}, game {game} cannot be played; `agon verify` says more: {reason}")]
pub struct BoardsError {
    /// The bout.
    pub bout: u64,
    /// The game.
    pub game: u16,
    /// What the rules say.
    pub reason: String,
}

/// The boards around some plies of a game.
pub fn boards(recording: &Recording, plies: RangeInclusive<u64>) -> Result<Boards, BoardsError> {
    let row = &recording.game;
    follow(recording, plies).map_err(|reason| BoardsError { bout: row.bout, game: row.game, reason })
}

fn follow(recording: &Recording, plies: RangeInclusive<u64>) -> Result<Boards, String> {
    let row = &recording.game;
    let spec =
        GameSpec::parse(&format!("{}:{}", row.rules, row.variant)).map_err(|error| error.to_string())?;
    let mut position = spec.start(recording.opening_position()).map_err(|error| error.to_string())?;
    let played = recording.played();
    let mut start = None;
    let mut after = Vec::new();
    for (index, row) in recording.moves.iter().enumerate() {
        let shown = plies.contains(&(index as u64));
        if shown {
            start.get_or_insert_with(|| look(&*position));
        }
        if index < played {
            position.play(index + 1, &row.mv).map_err(|error| error.to_string())?;
        }
        if shown {
            after.push(look(&*position));
        }
    }
    Ok(Boards { start: start.unwrap_or_else(|| look(&*position)), after })
}

fn look(position: &dyn AnyGame) -> Sight {
    Sight { board: position.board(), position: position.position() }
}
