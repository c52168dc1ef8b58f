//! Reading and writing PDN moves, PDN positions and boards.

use super::{Board, CROWN, Checkers, Move, QUIET_LIMIT, SQUARES, bit, by_seat, number, row};
use crate::game::{Game, Notation, Seat};
use crate::setup::{Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::read_mover;

impl Notation for Checkers {
    const MARKS: &'static [&'static str] = &["b (black, kings B)", "w (white, kings W)"];

    fn write_move(&self, mv: Move, out: &mut String) {
        let (from, captured) = (1 << mv.from(), mv.captured());
        out.push_str(&number(mv.from()).to_string());
        if captured == 0 {
            out.push('-');
            out.push_str(&number(mv.to()).to_string());
            return;
        }
        let mut path = Vec::new();
        path_through(from, captured, 1 << mv.to(), &mut path);
        for square in path {
            out.push('x');
            out.push_str(&number(square).to_string());
        }
    }

    fn parse_move(&self, text: &str) -> Option<Move> {
        let capture = text.contains('x');
        let parts = text.split(if capture { 'x' } else { '-' });
        let squares = parts.map(square).collect::<Option<Vec<u32>>>()?;
        let (from, to) = match *squares.as_slice() {
            [from, to] => (from, to),
            [from, .., to] if capture => (from, to),
            _ => return None,
        };
        let mut moves = Vec::new();
        self.moves(&mut moves);
        moves.retain(|mv| (mv.from(), mv.to(), mv.captured() != 0) == (from, to, capture));
        let captured = if capture { jumped(&squares) } else { Some(0) };
        // Full paths take precedence: the short form of a move may be the full path of another.
        let whole = moves.iter().find(|mv| Some(mv.captured()) == captured);
        let short = moves.first().filter(|_| moves.len() == 1);
        if capture && squares.len() > 2 { whole } else { whole.or(short) }.copied()
    }

    fn board(&self) -> String {
        let mut text = String::new();
        for row in 0..8 {
            text.push_str(&format!("{:>2} ", 4 * row + 1));
            for column in 0..8 {
                let dark = (row + column) % 2 == 1;
                text.push(' ');
                text.push(if dark { self.symbol(bit(4 * row + column / 2 + 1)) } else { ' ' });
            }
            text.push_str(&format!("  {}\n", 4 * row + 4));
        }
        text.pop();
        text
    }

    fn position(&self) -> String {
        let Board { kings, mover, quiet, .. } = self.board;
        let list = |pieces: u64| {
            let squares = (1..=32).filter(|&number| pieces >> bit(number) & 1 == 1);
            let texts = squares.map(|number| {
                let king = if kings >> bit(number) & 1 == 1 { "K" } else { "" };
                format!("{king}{number}")
            });
            texts.collect::<Vec<String>>().join(",")
        };
        format!(
            "{}:W{}:B{} {quiet}",
            LETTERS[mover.index()],
            list(self.board.pieces(Seat::SECOND)),
            list(self.board.pieces(Seat::FIRST))
        )
    }

    fn ending(&self) -> &'static str {
        if self.board.own == 0 {
            "no piece left"
        } else if !self.board.can_move() {
            "no move left"
        } else if self.board.quiet == QUIET_LIMIT {
            "forty quiet moves a side"
        } else {
            "threefold repetition"
        }
    }
}

/// The sides' letters in position texts.
const LETTERS: [char; 2] = ['B', 'W'];

/// Reads the number of a square and returns its bit.
fn square(text: &str) -> Option<u32> {
    crate::text::number(text).filter(|number| (1..=32).contains(number)).map(bit)
}

/// Returns the squares that a path of jumps captures, or `None` for other paths.
fn jumped(path: &[u32]) -> Option<u64> {
    path.windows(2).try_fold(0, |captured, jump| {
        let middle = match jump[0].abs_diff(jump[1]) {
            8 | 10 => 1u64 << ((jump[0] + jump[1]) / 2),
            _ => return None,
        };
        (captured & middle == 0).then_some(captured | middle)
    })
}

/// Finds the lexicographically first path from `at` over every piece of `captured` to `to` and appends its landing
/// squares. They need no check for being empty: all paths land on the same squares, because a jumper can approach a piece
/// on only one of its two diagonals.
fn path_through(at: u64, captured: u64, to: u64, path: &mut Vec<u32>) -> bool {
    if captured == 0 {
        return at == to;
    }
    let jumps = [(at >> 5, at >> 10), (at >> 4, at >> 8), (at << 4, at << 8), (at << 5, at << 10)];
    for (over, landing) in jumps {
        if captured & over != 0 && landing & SQUARES != 0 {
            path.push(landing.trailing_zeros());
            if path_through(landing, captured & !over, to, path) {
                return true;
            }
            path.pop();
        }
    }
    false
}

impl Checkers {
    /// Returns `b` and `w` for men, `B` and `W` for kings.
    fn symbol(&self, bit: u32) -> char {
        let held = |seat: &Seat| self.board.pieces(*seat) >> bit & 1 == 1;
        let letter = Seat::all(2).find(held).map_or('.', |seat| LETTERS[seat.index()]);
        if self.board.kings >> bit & 1 == 1 { letter } else { letter.to_ascii_lowercase() }
    }
}

impl Setup for Checkers {
    const NAME: &'static str = "checkers";
    const SUMMARY: &'static str = "English draughts: forced captures, multiple jumps, short kings";
    const PARAMETERS: &'static [Parameter] = &[];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str =
        "side to move, White's and Black's squares, quiet plies, as in W:W21,22,K9:B1,K30 4";

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        let [own, other] = by_seat(row(0) | row(1) | row(2));
        Ok(Checkers::new(own, other, 0, Seat::FIRST, 0))
    }

    fn read_position(_start: &Self, text: &str) -> Result<Self, String> {
        read_position(text)
    }
}

fn read_position(text: &str) -> Result<Checkers, String> {
    let (fen, clock) = text.split_once(' ').unwrap_or((text, "0"));
    let quiet = crate::text::number(clock)
        .filter(|&quiet| quiet <= QUIET_LIMIT)
        .ok_or("the number of quiet plies must be a whole number from 0 to 80")?;
    let parts: Vec<&str> = fen.split(':').collect();
    let &[mover, first, second] = parts.as_slice() else {
        return Err("there must be three parts separated by :".to_string());
    };
    let mover = read_mover(mover, &LETTERS)?;
    let mut pieces = [0u64; 2];
    let mut kings = 0;
    let mut listed = [false; 2];
    for part in [first, second] {
        let letter = part.get(..1).and_then(|letter| read_mover(letter, &LETTERS).ok());
        let seat = letter.ok_or("a side's squares begin with its letter, B or W")?.index();
        if std::mem::replace(&mut listed[seat], true) {
            return Err("a side is listed twice".to_string());
        }
        for item in part[1..].split(',').filter(|_| part.len() > 1) {
            let name = item.strip_prefix('K').unwrap_or(item);
            let at = 1 << square(name).ok_or_else(|| format!("`{item}` is not a square from 1 to 32"))?;
            if (pieces[0] | pieces[1]) & at != 0 {
                return Err(format!("there are two pieces on square {name}"));
            }
            pieces[seat] |= at;
            if name != item {
                kings |= at;
            } else if CROWN[seat] & at != 0 {
                return Err(format!("the man on {name} would have become a king there"));
            }
        }
        if pieces[seat].count_ones() > 12 {
            return Err("a side has more than twelve pieces".to_string());
        }
    }
    let (own, other) = (pieces[mover.index()], pieces[mover.other().index()]);
    if other == 0 {
        return Err("the side that has just moved has no pieces".to_string());
    }
    // The quiet plies were steps of kings that are still there.
    if quiet >= 1 && other & kings == 0 || quiet >= 2 && own & kings == 0 {
        return Err("there were quiet plies, but a side that moved has no king".to_string());
    }
    Ok(Checkers::new(own, other, kings, mover, quiet))
}
