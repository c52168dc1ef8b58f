//! From text to a position: a game's name, its parameters and their limits.
//!
//! A game is named as `name` or `name:key=value,key=value`. Values are checked here, once, against what the game
//! declares; a game's constructor only sees values within their domains.

use crate::game::Game;
use crate::registry::GAMES;
use crate::schema::{self, ConfigError, hint};

pub use crate::schema::Domain;

/// A parameter that a game declares.
pub type Parameter = schema::Key;

/// A value for each parameter that a game declares. Its text is the canonical name of the variant.
pub type Parameters = schema::Values;

/// What the turn order of a game promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turns {
    /// Seats follow each other in rotation, always; who cannot move passes.
    Rotate,
    /// Seats follow each other in rotation; a seat that is out is skipped and never moves again.
    RotateSkippingOut,
    /// A seat may move several times in a row.
    MoveAgain,
    /// Chance decides some plies; between them a seat may move several times in a row.
    Dice,
}

/// How a game is named and begun.
pub trait Setup: Game {
    /// The name in calls and files: lower case, words joined by `-`.
    const NAME: &'static str;
    /// The rules in one line of at most 100 characters.
    const SUMMARY: &'static str;
    /// The parameters. A game for several numbers of seats has `seats` first, a [`Domain::OneOf`] or a
    /// [`Domain::Integer`] of exactly the numbers that the registry lists for it, 2 included.
    const PARAMETERS: &'static [Parameter];
    /// What the turn order promises.
    const TURNS: Turns;

    /// What a person who asks for these parameters may want to know, if anything.
    fn note(_parameters: &Parameters) -> Option<&'static str> {
        None
    }

    /// The first position. Parameters that do not go together are a [`SetupError::Conflict`].
    fn initial(parameters: &Parameters) -> Result<Self, SetupError>;

    /// The position that a text of [`Notation::position`] describes, every part of it checked.
    ///
    /// [`Notation::position`]: crate::game::Notation::position
    fn from_position(parameters: &Parameters, text: &str) -> Result<Self, SetupError>;
}

/// Why a text names no game or no position.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// An unknown game.
    #[error("there is no game `{name}`{} `agon list-games` lists them", hint(name, GAMES.iter().map(|info| info.name)))]
    UnknownGame {
        /// The name that was given.
        name: String,
    },
    /// Parameters that the game does not have, or values that it does not allow.
    #[error(transparent)]
    Parameters(#[from] ConfigError),
    /// Parameters that do not go together.
    #[error("{game}: {reason}")]
    Conflict {
        /// The game.
        game: &'static str,
        /// A sentence with the remedy.
        reason: String,
    },
    /// A position text that describes no position.
    #[error("{game}: the position is not valid: {reason}; the form is: {form}")]
    Position {
        /// The game.
        game: &'static str,
        /// What is wrong.
        reason: String,
        /// What a position text looks like.
        form: &'static str,
    },
}
