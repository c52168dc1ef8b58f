//! Creation of positions from text: a game's name, its parameters and their domains.
//!
//! A game is named as `name` or `name:key=value,key=value`. Values are checked once, against the declared domains;
//! constructors only receive valid values.

use crate::game::Game;
use crate::registry::GAMES;
use crate::schema::{self, ConfigError, hint};

pub use crate::schema::Domain;

/// A parameter that a game declares.
pub type Parameter = schema::Key;

/// A value for each declared parameter. Displays as the canonical name of the variant.
pub type Parameters = schema::Values;

/// The turn order that a game guarantees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turns {
    /// Seats move in strict rotation; a seat that cannot move passes.
    Rotate,
    /// Seats move in rotation; a seat that is out is skipped and never moves again.
    RotateSkippingOut,
    /// A seat may move several times in a row.
    MoveAgain,
    /// Chance decides some plies; between them a seat may move several times in a row.
    Dice,
}

/// The name, the parameters and the constructors of a game.
pub trait Setup: Game {
    /// The name on the command line and in files: lower case, words joined by `-`.
    const NAME: &'static str;
    /// The rules in one line of at most 100 characters.
    const SUMMARY: &'static str;
    /// The parameters. A game for several numbers of seats has `seats` first, a [`Domain::OneOf`] or a
    /// [`Domain::Integer`] of exactly the numbers that the registry lists for it, 2 included.
    const PARAMETERS: &'static [Parameter];
    /// The turn order.
    const TURNS: Turns;
    /// The form of a position text, with an example.
    const POSITION_FORM: &'static str;

    /// Returns a remark for users of these parameters, if there is one.
    fn note(_parameters: &Parameters) -> Option<&'static str> {
        None
    }

    /// Returns the first position, or [`SetupError::Conflict`] for parameters that contradict each other.
    fn initial(parameters: &Parameters) -> Result<Self, SetupError>;

    /// Reads a text of [`Notation::position`] and checks every part of it.
    ///
    /// [`Notation::position`]: crate::game::Notation::position
    fn from_position(parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        let start = Self::initial(parameters)?;
        let position = Self::read_position(&start, text);
        position.map_err(|reason| SetupError::Position {
            game: Self::NAME,
            reason,
            form: Self::POSITION_FORM,
        })
    }

    /// Reads a position of the game that begins with `start`, or returns the reason for a rejection.
    fn read_position(start: &Self, text: &str) -> Result<Self, String>;
}

/// The reason why a text does not name a game or a position.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// An unknown game.
    #[error("there is no game `{name}`{} `agon list-games` lists them", hint(name, GAMES.iter().map(|info| info.name)))]
    UnknownGame {
        /// The given name.
        name: String,
    },
    /// Unknown parameters, or values outside their domains.
    #[error(transparent)]
    Parameters(#[from] ConfigError),
    /// Parameters that contradict each other.
    #[error("{game}: {reason}")]
    Conflict {
        /// The game.
        game: &'static str,
        /// A sentence with the remedy.
        reason: String,
    },
    /// An invalid position text.
    #[error("{game}: the position is not valid: {reason}; the form is: {form}")]
    Position {
        /// The game.
        game: &'static str,
        /// The reason for the rejection.
        reason: String,
        /// The form of a position text.
        form: &'static str,
    },
}
