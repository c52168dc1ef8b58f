//! Bouts and the games that they consist of.

use std::time::Duration;

use agon_search::Limit;

use crate::adjudication::Adjudication;
use crate::roster::rotations;
use crate::seeds::SeedPath;
use crate::spec::Values;

/// The start of a game.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Opening {
    /// The position; none for the game's first.
    pub position: Option<String>,
    /// The moves from there, separated by spaces.
    pub moves: String,
}

impl Opening {
    /// Returns the moves after those of `before`, if both begin alike.
    pub(crate) fn since(&self, before: &Opening) -> Option<&str> {
        let next = self.moves.strip_prefix(&before.moves).filter(|_| self.position == before.position)?;
        (next.is_empty() || before.moves.is_empty() || next.starts_with(' ')).then_some(next)
    }
}

/// A request for one game.
#[derive(Clone, PartialEq, Debug)]
pub struct GameRequest {
    /// The opening.
    pub opening: Opening,
    /// The number of the player in each seat.
    pub seats: Vec<usize>,
    /// The limit of each player, by number.
    pub limits: Vec<Limit>,
    /// The margin beyond its limit of time for each engine, by the number of the player; none for built-in players.
    pub engines: Vec<Option<Duration>>,
    /// When the game ends before the rules end it.
    pub adjudication: Adjudication,
    /// The source of its seeds.
    pub seed_path: SeedPath,
}

/// A bout of a run: one opening, played once in each rotation of its players, or the position of a probe. A roster and a
/// tuning know only the number of the opening.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bout<O = Opening> {
    /// The number in the run.
    pub index: u64,
    /// The players of the first game by seat, as numbers of the spec; in a probe, the players that search.
    pub players: Vec<usize>,
    /// The opening of its games; in a probe, the position.
    pub opening: O,
    /// In a tuning run, the players whose values differ from the spec.
    pub values: Vec<(usize, Values)>,
}

impl Bout<u64> {
    /// Returns the bout with the opening of its number.
    pub fn with_opening(self, opening: Opening) -> Bout {
        Bout { index: self.index, players: self.players, opening, values: self.values }
    }
}

impl Bout {
    /// Returns the games: in game `r` each player sits `r` seats further back, until the seating repeats. `limits` has the
    /// limit of each player by number, `engines` the margin of each engine.
    pub fn games(
        &self,
        run_seed: u64,
        limits: Vec<Limit>,
        engines: Vec<Option<Duration>>,
        adjudication: Adjudication,
    ) -> impl Iterator<Item = GameRequest> + '_ {
        rotations(&self.players).enumerate().map(move |(rotation, seats)| GameRequest {
            opening: self.opening.clone(),
            seats,
            limits: limits.clone(),
            engines: engines.clone(),
            adjudication,
            seed_path: SeedPath { run: run_seed, bout: self.index, game: rotation as u32 },
        })
    }
}
