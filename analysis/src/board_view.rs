//! The boards of a recorded game, replayed by the rules without searching.

use std::ops::RangeInclusive;

use agon_games::{AnyGame, GameSpec};
use serde::Serialize;

use crate::games::Recording;

/// A position, as `agon show` prints it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BoardView {
    /// The board as text.
    pub board: String,
    /// The position as text that parses back.
    pub position: String,
}

/// Boards around a range of plies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GameBoards {
    /// Before the first ply of the range.
    pub start: BoardView,
    /// After each ply of the range.
    pub after: Vec<BoardView>,
}

/// A recorded game that the rules reject.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("bout {bout}, game {game} cannot be played: {reason}; run `agon verify` for details")]
pub struct UnplayableGame {
    /// The bout.
    pub bout: u64,
    /// The game.
    pub game: u16,
    /// The error from the rules.
    pub reason: String,
}

impl UnplayableGame {
    /// Attaches the game's place in the run to an error from the rules.
    pub(crate) fn new(recording: &Recording, reason: &impl ToString) -> UnplayableGame {
        UnplayableGame { bout: recording.game.bout, game: recording.game.game, reason: reason.to_string() }
    }
}

/// Replays a game and returns its boards around the given plies.
pub fn game_boards(recording: &Recording, plies: RangeInclusive<u64>) -> Result<GameBoards, UnplayableGame> {
    let row = &recording.game;
    let spec = GameSpec::parse(&format!("{}:{}", row.rules, row.variant))
        .map_err(|error| UnplayableGame::new(recording, &error))?;
    let mut position =
        spec.start(recording.opening_position()).map_err(|error| UnplayableGame::new(recording, &error))?;
    let played = recording.played();
    let mut start = None;
    let mut after = Vec::new();
    for (index, row) in recording.moves.iter().enumerate() {
        let shown = plies.contains(&(index as u64));
        if shown {
            start.get_or_insert_with(|| view(&*position));
        }
        if index < played {
            position.play(index + 1, &row.mv).map_err(|error| UnplayableGame::new(recording, &error))?;
        }
        if shown {
            after.push(view(&*position));
        }
    }
    Ok(GameBoards { start: start.unwrap_or_else(|| view(&*position)), after })
}

fn view(position: &dyn AnyGame) -> BoardView {
    BoardView { board: position.board(), position: position.position() }
}
