//! What the rules say of the position that a probe searches.

use agon_arena::{Opening, PlayError};
use agon_games::line::follow;
use agon_games::{Complete, GameSpec, Parameters, Turn, UniformVisitor};

/// The decision behind an opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decision {
    /// The seat that decides; none where nobody does.
    pub(crate) seat: Option<usize>,
    /// How many moves it has.
    pub(crate) legal: u64,
    /// Whether the move that was asked about is one of them.
    pub(crate) has_move: bool,
}

/// Follows an opening and asks the rules about a move.
pub(crate) fn decision(game: &GameSpec, opening: &Opening, mv: &str) -> Result<Decision, PlayError> {
    game.visit_any(Ask { opening, mv })
}

struct Ask<'a> {
    opening: &'a Opening,
    mv: &'a str,
}

impl UniformVisitor for Ask<'_> {
    type Output = Result<Decision, PlayError>;

    fn visit<G: Complete>(self, parameters: &Parameters) -> Self::Output {
        let mut position = match &self.opening.position {
            Some(text) => G::from_position(parameters, text)?,
            None => G::initial(parameters)?,
        };
        follow(&mut position, &self.opening.moves)?;
        let seat = if let Turn::Player(seat) = position.turn() { Some(seat.index()) } else { None };
        Ok(Decision {
            seat,
            legal: position.count(&mut Vec::new()),
            has_move: position.parse_move(self.mv).is_some(),
        })
    }
}
