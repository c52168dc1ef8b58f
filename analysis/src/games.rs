//! Queries for recorded games, with or without their moves, in the order of bout and game.
//!
//! At most the `games` rows of one part and the moves of one game are in memory. Part names and row-group statistics are
//! used to skip data that cannot match. Deliberately not here: the meaning of the moves by the rules.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use agon_records::{GameRow, MoveRow, RowRange, Rows, Table};

use crate::dataset::{Dataset, DatasetError, Part, Run};
use crate::scan::whole_range;

/// The result of a game for one player.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GameResult {
    /// The highest payoff, and not all payoffs are equal.
    Win,
    /// All payoffs are equal.
    Draw,
    /// Another player has a higher payoff.
    Loss,
}

/// A filter for games; an empty field matches all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query {
    /// Bouts.
    pub bouts: Option<RangeInclusive<u64>>,
    /// Game number within the bout.
    pub game: Option<u16>,
    /// Players that all took part.
    pub players: Vec<String>,
    /// The winner.
    pub winner: Option<String>,
    /// Result for the first of `players`.
    pub result: Option<GameResult>,
    /// Text contained in the ending, case-insensitively.
    pub ending: Option<String>,
    /// Number of plies.
    pub plies: Option<RangeInclusive<u32>>,
}

impl Query {
    /// Returns whether a game matches.
    pub fn matches(&self, row: &GameRow) -> bool {
        let Query { bouts, game, players, winner, result, ending, plies } = self;
        bouts.as_ref().is_none_or(|bouts| bouts.contains(&row.bout))
            && game.is_none_or(|game| game == row.game)
            && plies.as_ref().is_none_or(|plies| plies.contains(&row.plies))
            && players.iter().all(|name| row.players.contains(name))
            && winner.as_ref().is_none_or(|name| result_for(row, name) == Some(GameResult::Win))
            && result
                .is_none_or(|result| players.first().and_then(|name| result_for(row, name)) == Some(result))
            && ending.as_ref().is_none_or(|words| row.ending.to_lowercase().contains(&words.to_lowercase()))
    }

    fn row_range(&self) -> RowRange {
        let all = RowRange::default();
        RowRange {
            bouts: self.bouts.clone().unwrap_or(all.bouts),
            plies: self.plies.clone().unwrap_or(all.plies),
        }
    }
}

/// Returns the result of a game for a player, or `None` if it did not play. In several seats its best payoff counts.
pub fn result_for(row: &GameRow, player: &str) -> Option<GameResult> {
    let seats = row.players.iter().zip(&row.payoffs);
    let own = seats.filter(|(name, _)| *name == player).map(|(_, &payoff)| payoff).max()?;
    let (least, most) = (row.payoffs.iter().min()?, row.payoffs.iter().max()?);
    Some(if own < *most {
        GameResult::Loss
    } else if least == most {
        GameResult::Draw
    } else {
        GameResult::Win
    })
}

/// Iterator over the matching games of a run, without voided bouts.
pub struct Games<'a> {
    run: &'a Run,
    query: &'a Query,
    parts: VecDeque<Part>,
    /// Remaining rows of the current part.
    rows: std::vec::IntoIter<GameRow>,
}

impl<'a> Games<'a> {
    /// Lists the parts to read; a missing part with matching bouts is an error.
    pub fn new(dataset: &Dataset, run: &'a Run, query: &'a Query) -> Result<Games<'a>, DatasetError> {
        let mut parts: VecDeque<Part> =
            whole_range(dataset, run, Table::Games, &query.row_range().bouts)?.into();
        parts.retain(|part| overlaps(part, query));
        Ok(Games { run, query, parts, rows: Vec::new().into_iter() })
    }

    /// Reads the next part with a matching game and returns it.
    fn next_part(&mut self) -> Result<Option<Part>, DatasetError> {
        while let Some(part) = self.parts.pop_front() {
            let file = part.open()?;
            let mut found = Vec::new();
            part.decode(|| {
                for rows in agon_records::stream_games(file, &self.query.row_range())? {
                    let counts = |row: &GameRow| !self.run.voided.contains(&row.bout);
                    found.extend(rows?.into_iter().filter(|row| self.query.matches(row) && counts(row)));
                }
                Ok(())
            })?;
            if !found.is_empty() {
                self.rows = found.into_iter();
                return Ok(Some(part));
            }
        }
        Ok(None)
    }
}

impl Iterator for Games<'_> {
    type Item = Result<GameRow, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(row));
            }
            match self.next_part() {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn overlaps(part: &Part, query: &Query) -> bool {
    match (&part.bouts, &query.bouts) {
        (Some((first, last)), Some(bouts)) => first <= bouts.end() && bouts.start() <= last,
        _ => true,
    }
}

/// A game with its moves.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// The game.
    pub game: GameRow,
    /// All plies.
    pub moves: Vec<MoveRow>,
}

impl Recording {
    /// Returns the number of moves played, which excludes a last move made after the clock ran out.
    pub fn played(&self) -> usize {
        self.moves.len() - usize::from(self.game.has_late_ply() && !self.moves.is_empty())
    }

    /// Returns the start position from the brackets in the opening, or `None` for the standard one.
    pub fn opening_position(&self) -> Option<&str> {
        self.game.opening.strip_prefix('[')?.split_once(']').map(|(position, _)| position)
    }
}

/// Iterator over the matching games of a run with their moves.
pub struct Recordings<'a> {
    games: Games<'a>,
    /// Parts of `moves`.
    parts: Vec<Part>,
    moves: Option<Moves>,
}

/// A reader of the moves of one part.
struct Moves {
    part: Part,
    batches: Rows<MoveRow>,
    /// Remaining rows of the current batch.
    rows: std::iter::Peekable<std::vec::IntoIter<MoveRow>>,
}

impl<'a> Recordings<'a> {
    /// Lists the parts to read.
    pub fn new(dataset: &Dataset, run: &'a Run, query: &'a Query) -> Result<Recordings<'a>, DatasetError> {
        let parts = dataset.parts(run, Table::Moves)?;
        Ok(Recordings { games: Games::new(dataset, run, query)?, parts, moves: None })
    }

    fn advance(&mut self) -> Result<Option<Recording>, DatasetError> {
        let game = match self.games.rows.next() {
            Some(game) => game,
            None => {
                let Some(part) = self.games.next_part()? else { return Ok(None) };
                self.moves = self.open(&part)?;
                let Some(game) = self.games.rows.next() else { return Ok(None) };
                game
            }
        };
        let moves = match &mut self.moves {
            Some(moves) => moves.of_game(game.bout, game.game)?,
            None => Vec::new(),
        };
        if moves.len() as u64 != u64::from(game.plies) {
            let GameRow { bout, game, plies, .. } = game;
            return Err(DatasetError::MissingMoves { bout, game, found: moves.len(), plies });
        }
        Ok(Some(Recording { game, moves }))
    }

    /// Opens the moves of the matching games of a part.
    fn open(&self, games: &Part) -> Result<Option<Moves>, DatasetError> {
        let rows = self.games.rows.as_slice();
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
        let range = RowRange { bouts: first.bout..=last.bout, ..RowRange::default() };
        let Some(part) = self.parts.iter().find(|part| part.file_name() == games.file_name()) else {
            return Ok(None);
        };
        let file = part.open()?;
        let batches = part.decode(|| agon_records::stream_moves(file, &range))?;
        Ok(Some(Moves { part: part.clone(), batches, rows: Vec::new().into_iter().peekable() }))
    }
}

impl Iterator for Recordings<'_> {
    type Item = Result<Recording, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

impl Moves {
    /// Reads the moves of a game. Precondition: games are requested in ascending order.
    fn of_game(&mut self, bout: u64, game: u16) -> Result<Vec<MoveRow>, DatasetError> {
        let mut found = Vec::new();
        loop {
            while let Some(row) = self.rows.next_if(|row| (row.bout, row.game) <= (bout, game)) {
                if (row.bout, row.game) == (bout, game) {
                    found.push(row);
                }
            }
            if self.rows.peek().is_some() {
                return Ok(found);
            }
            let batches = &mut self.batches;
            match self.part.decode(|| batches.next().transpose())? {
                Some(rows) => self.rows = rows.into_iter().peekable(),
                None => return Ok(found),
            }
        }
    }
}
