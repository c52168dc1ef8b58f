//! Games picked out of a dataset, with or without their moves, in the order of bout and game.
//!
//! The rows of `games` of one part are held at a time, and the moves of one game: moves are read as they go by. Parts that
//! cannot have what is asked for are not read: their names say which bouts they have, their directories how long their
//! games are. Deliberately not here: what the moves mean by the rules.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use agon_records::{GameRow, MoveRow, Rows, Table, Wanted};

use crate::dataset::{Dataset, DatasetError, Part, Run};
use crate::scan::whole_range;

/// How a game ended for a player.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GameResult {
    /// Nobody got more, and somebody got less.
    Win,
    /// Everybody got the same.
    Draw,
    /// Somebody got more.
    Loss,
}

/// Which games are asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query {
    /// The bouts; all where none are named.
    pub bouts: Option<RangeInclusive<u64>>,
    /// The game of a bout.
    pub game: Option<u16>,
    /// Players who must all have played.
    pub players: Vec<String>,
    /// Who must have won.
    pub winner: Option<String>,
    /// How it must have ended for the first of the players.
    pub result: Option<GameResult>,
    /// What the words of the ending must contain, in capitals or not.
    pub ending: Option<String>,
    /// The number of plies; any where none is named.
    pub plies: Option<RangeInclusive<u32>>,
}

impl Query {
    /// Whether a game is asked for.
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

    fn wanted(&self) -> Wanted {
        let all = Wanted::default();
        Wanted {
            bouts: self.bouts.clone().unwrap_or(all.bouts),
            plies: self.plies.clone().unwrap_or(all.plies),
        }
    }
}

/// How a game ended for a player; none where it did not play. In several seats it has the best of their payoffs.
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

/// The games of a run that are asked for. Bouts that do not count are left out.
pub struct Games<'a> {
    run: &'a Run,
    query: &'a Query,
    parts: VecDeque<Part>,
    /// Of the part that was read last.
    rows: std::vec::IntoIter<GameRow>,
}

impl<'a> Games<'a> {
    /// Finds the parts of a run; one that should have a bout that is asked for and is not there is an error.
    pub fn new(dataset: &Dataset, run: &'a Run, query: &'a Query) -> Result<Games<'a>, DatasetError> {
        let mut parts: VecDeque<Part> =
            whole_range(dataset, run, Table::Games, &query.wanted().bouts)?.into();
        parts.retain(|part| may_have(part, query));
        Ok(Games { run, query, parts, rows: Vec::new().into_iter() })
    }

    /// Reads the next part that has a game, if there is one, and says which it is.
    fn next_part(&mut self) -> Result<Option<Part>, DatasetError> {
        while let Some(part) = self.parts.pop_front() {
            let file = part.open()?;
            let mut found = Vec::new();
            part.attempt(|| {
                for rows in agon_records::stream_games(file, &self.query.wanted())? {
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

fn may_have(part: &Part, query: &Query) -> bool {
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
    /// Every ply of it.
    pub moves: Vec<MoveRow>,
}

impl Recording {
    /// How many of its moves were played: a move that came too late for the clock was not.
    pub fn played(&self) -> usize {
        let late = self.game.ending == agon_arena::TIME_FORFEIT;
        self.moves.len() - usize::from(late && !self.moves.is_empty())
    }

    /// The position that it starts from, which stands in brackets in its opening; none where it is the game's first.
    pub fn opening_position(&self) -> Option<&str> {
        self.game.opening.strip_prefix('[')?.split_once(']').map(|(position, _)| position)
    }
}

/// The games of a run that are asked for, with their moves.
pub struct Recordings<'a> {
    games: Games<'a>,
    /// Parts of moves.
    parts: Vec<Part>,
    moves: Option<Moves>,
}

/// The moves of a part as they go by.
struct Moves {
    part: Part,
    batches: Rows<MoveRow>,
    /// What is left of the last batch.
    rows: std::iter::Peekable<std::vec::IntoIter<MoveRow>>,
}

impl<'a> Recordings<'a> {
    /// Finds the parts of a run.
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

    /// Opens the moves of the games that were just found in a part.
    fn open(&self, games: &Part) -> Result<Option<Moves>, DatasetError> {
        let rows = self.games.rows.as_slice();
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
        let wanted = Wanted { bouts: first.bout..=last.bout, ..Wanted::default() };
        let Some(part) = self.parts.iter().find(|part| part.file_name() == games.file_name()) else {
            return Ok(None);
        };
        let file = part.open()?;
        let batches = part.attempt(|| agon_records::stream_moves(file, &wanted))?;
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
    /// The moves of a game. Precondition: it comes after all games that were asked for before.
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
            match self.part.attempt(|| batches.next().transpose())? {
                Some(rows) => self.rows = rows.into_iter().peekable(),
                None => return Ok(found),
            }
        }
    }
}
