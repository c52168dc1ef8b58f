//! Writer for checkers as PDN (Wesselink and Halbersma 2013, "PDN 3.0"): game type 21, English draughts.
//!
//! Black is seat 0 and moves first; results have White's points first. A capture is written with its first and last square,
//! or with all squares if the short form is ambiguous. Comments are those of PGN.

use super::movetext::{MoveText, Numbering, Sides, comment};
use super::{ScoreSheet, WriteError, first, legal, tags};
use crate::checkers::Checkers;
use crate::game::{Game, Notation, Seat, Turn};
use crate::setup::Parameters;

const SIDES: Sides = Sides { white: 1, black: 0 };
/// English draughts, with the squares numbered from Black's right.
const GAME_TYPE: &str = "21";

pub(super) fn write(
    parameters: &Parameters,
    sheet: &ScoreSheet<'_>,
    out: &mut String,
) -> Result<(), WriteError> {
    let mut position = first::<Checkers>(parameters, sheet)?;
    SIDES.roster(sheet, out);
    tags::write("GameType", GAME_TYPE, out);
    if let Some(text) = sheet.position {
        // The clock after the position is not part of PDN.
        let (fen, _) = text.split_once(' ').unwrap_or((text, ""));
        tags::write("SetUp", "1", out);
        tags::write("FEN", fen, out);
    }
    SIDES.details(sheet, out);
    let white_moves = position.turn() == Turn::Player(Seat::SECOND);
    let mut text = MoveText::new(usize::from(white_moves), Numbering::Sparse, out);
    for (index, ply) in sheet.plies.iter().enumerate() {
        let mv = legal(&position, index, ply)?;
        let mut comment = comment(ply.search);
        if index + 1 == sheet.plies.len() {
            comment.push_str(", ");
            comment.push_str(sheet.ending);
        }
        let whole = position.move_text(mv);
        let short = short_form(&whole).filter(|short| position.parse_move(short) == Some(mv));
        text.play(short.as_deref().unwrap_or(&whole), &comment);
        position.play(mv);
    }
    text.end(SIDES.result(sheet));
    Ok(())
}

/// Returns the short form of a capture: its first and last square.
fn short_form(mv: &str) -> Option<String> {
    let (from, rest) = mv.split_once('x')?;
    let (_, to) = rest.rsplit_once('x')?;
    Some(format!("{from}x{to}"))
}
