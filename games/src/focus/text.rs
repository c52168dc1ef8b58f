//! Focus in text: moves, boards and positions, both ways, and the starts.

use super::{BOARD, EMPTY, Focus, Haul, MOST_SEATS, OUT_KEYS, RESERVE, Squares, TALLEST, height, pieces_of};
use crate::game::{Game, Notation, Seat, Turn};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};

const SYMBOLS: [char; MOST_SEATS] = ['A', 'B', 'C', 'D'];

/// The starts of two, three and four seats: the rows from the top.
const STARTS: [&str; 3] = [
    "..../AABBAA/.BBAABB./.AABBAA./.BBAABB./.AABBAA./BBAABB/....",
    "..../AABBCC/.BBCCAA./.CCAABB./.AABBCC./.BBCCAA./CCAABB/....",
    "AACB/BBBCBC/AAAACBCB/BBBBCBCB/DADADDDD/DADACCCC/ADADDD/DACC",
];

/// The squares of each row, the rows from the top.
fn rows() -> impl Iterator<Item = impl Iterator<Item = u8>> {
    (0..8).rev().map(|row| Squares(BOARD & 0xff << (8 * row)))
}

fn write_square(square: u8, out: &mut String) {
    out.push(char::from(b'a' + square % 8));
    out.push(char::from(b'1' + square / 8));
}

impl<const SEATS: usize> Focus<SEATS> {
    /// The pieces of a square's stack from bottom to top; a dot where there is none.
    fn stack_text(&self, square: u8) -> String {
        let stack = self.stack(square);
        if stack == EMPTY {
            return ".".to_string();
        }
        (0..height(stack)).rev().map(|place| SYMBOLS[(stack >> (2 * place) & 3) as usize]).collect()
    }

    /// The letters of the seats that are out.
    fn out_text(&self) -> String {
        let out: String =
            Seat::all(SEATS).filter(|&seat| self.is_out(seat)).map(|seat| SYMBOLS[seat.index()]).collect();
        if out.is_empty() { "-".to_string() } else { out }
    }
}

impl<const SEATS: usize> Notation for Focus<SEATS> {
    fn write_move(&self, mv: Haul, out: &mut String) {
        if mv.from == RESERVE {
            out.push('@');
        } else {
            write_square(mv.from, out);
            out.push('-');
        }
        write_square(mv.to, out);
    }

    fn board(&self) -> String {
        let mut text = String::new();
        for row in (0..8).rev() {
            let mut line = format!("{} ", row + 1);
            for column in 0..8 {
                let square = 8 * row + column;
                let cell = if BOARD >> square & 1 == 1 { self.stack_text(square) } else { String::new() };
                line.push_str(&format!(" {cell:<TALLEST$}"));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push_str("   a     b     c     d     e     f     g     h\n");
        for seat in Seat::all(SEATS) {
            let symbol = SYMBOLS[seat.index()];
            let (reserve, left) = (self.reserve[seat.index()], self.left[seat.index()]);
            let state = match seat {
                _ if self.is_out(seat) => ", out",
                _ if self.turn() == Turn::Player(seat) => ", to move",
                _ => "",
            };
            text.push_str(&format!("{symbol}: reserve {reserve}, lost {}{state}\n", Self::PIECES - left));
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn position(&self) -> String {
        let rows: Vec<String> = rows()
            .map(|row| row.map(|square| self.stack_text(square)).collect::<Vec<String>>().join(","))
            .collect();
        let reserves: Vec<String> = self.reserve[..SEATS].iter().map(u8::to_string).collect();
        format!(
            "{} {} {} {} {}",
            rows.join("/"),
            SYMBOLS[self.mover.index()],
            reserves.join(","),
            self.out_text(),
            self.plies
        )
    }

    fn ending(&self) -> &'static str {
        if self.others_are_out() { "all others out" } else { "ply limit" }
    }
}

fn number(text: &str) -> Option<u16> {
    crate::text::number(text).and_then(|number| u16::try_from(number).ok())
}

impl<const SEATS: usize> Focus<SEATS> {
    /// The seat of a letter.
    fn seat_named(symbol: char) -> Option<Seat> {
        Seat::all(SEATS).find(|seat| SYMBOLS[seat.index()] == symbol)
    }

    /// The stack of a text from bottom to top.
    fn stack_named(text: &str) -> Result<u32, String> {
        if text == "." {
            return Ok(EMPTY);
        }
        let count = text.chars().count();
        if count == 0 || count > TALLEST {
            return Err(format!("`{text}` is no stack of one to five pieces"));
        }
        text.chars().try_fold(EMPTY, |stack, symbol| {
            let seat = Self::seat_named(symbol).ok_or_else(|| format!("`{symbol}` is no seat's piece"))?;
            Ok(stack << 2 | u32::from(seat.0))
        })
    }

    /// The position that a text describes, or what is wrong with it.
    fn read(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split(' ').collect();
        let &[board, mover, reserves, out, plies] = fields.as_slice() else {
            return Err("there must be five parts with single spaces between".to_string());
        };
        let letter = |text: &str| {
            let mut symbols = text.chars();
            symbols.next().filter(|_| symbols.next().is_none()).and_then(Self::seat_named)
        };
        let mover = letter(mover).ok_or("the mover is not the letter of a seat")?;
        let plies = number(plies).filter(|&plies| plies <= Self::PLY_LIMIT);
        let plies = plies.ok_or_else(|| format!("the plies are a number up to {}", Self::PLY_LIMIT))?;
        let mut position = Self::empty(mover, plies);

        let lines: Vec<&str> = board.split('/').collect();
        if lines.len() != 8 {
            return Err(format!("there are {} rows", lines.len()));
        }
        for (squares, line) in rows().zip(lines) {
            let squares: Vec<u8> = squares.collect();
            let stacks: Vec<&str> = line.split(',').collect();
            if stacks.len() != squares.len() {
                return Err(format!("row {} must have {} squares", squares[0] / 8 + 1, squares.len()));
            }
            for (square, stack) in squares.into_iter().zip(stacks) {
                let stack = Self::stack_named(stack)?;
                position.set_stack(square, stack);
                for seat in Seat::all(SEATS) {
                    let left = &mut position.left[seat.index()];
                    *left = left.saturating_add(pieces_of(seat, stack) as u8);
                }
            }
        }
        let reserves: Vec<&str> = reserves.split(',').collect();
        if reserves.len() != SEATS {
            return Err(format!("there must be {SEATS} reserves"));
        }
        for (seat, reserve) in Seat::all(SEATS).zip(reserves) {
            let pieces = number(reserve).filter(|&pieces| pieces <= u16::from(Self::PIECES));
            let pieces = pieces.ok_or_else(|| format!("`{reserve}` is no possible reserve"))? as u8;
            position.set_reserve(seat, pieces);
            // Up to 260 pieces could stand on the board.
            position.left[seat.index()] = position.left[seat.index()].saturating_add(pieces);
            if position.left[seat.index()] > Self::PIECES {
                let symbol = SYMBOLS[seat.index()];
                return Err(format!("{symbol} has more than the {} pieces of the start", Self::PIECES));
            }
        }
        position.read_out(out)?;
        if !position.can_move(mover) {
            return Err("the seat to move has no move".to_string());
        }
        Ok(position)
    }

    /// Reads who is out; the rest of the position is there.
    fn read_out(&mut self, text: &str) -> Result<(), String> {
        let mut out = 0;
        for symbol in text.chars().filter(|_| text != "-") {
            let seat = Self::seat_named(symbol).ok_or_else(|| format!("`{symbol}` is no seat to be out"))?;
            if self.reserve[seat.index()] > 0 {
                return Err(format!("{symbol} has a reserve and cannot be out"));
            }
            if seat == self.mover {
                return Err("the seat to move cannot be out".to_string());
            }
            out |= 1 << seat.0;
        }
        self.key ^= OUT_KEYS[0] ^ OUT_KEYS[usize::from(out)];
        self.out = out;
        if self.out_text() == text { Ok(()) } else { Err("who is out is - or letters in order".to_string()) }
    }
}

impl<const SEATS: usize> Setup for Focus<SEATS> {
    const NAME: &'static str = "focus";
    const SUMMARY: &'static str = "stacks of up to five move as far as they are high; last to move wins";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "seats",
        default: "2",
        domain: Domain::OneOf(&[2, 3, 4]),
        about: "the number of seats",
    }];
    const TURNS: Turns = Turns::RotateSkippingOut;

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        let mut position = Self::empty(Seat::FIRST, 0);
        let symbols = STARTS[SEATS - 2].chars().filter(|&symbol| symbol != '/');
        for (square, symbol) in rows().flatten().zip(symbols) {
            if let Some(seat) = Self::seat_named(symbol) {
                position.set_stack(square, EMPTY << 2 | u32::from(seat.0));
                position.left[seat.index()] += 1;
            }
        }
        Ok(position)
    }

    fn from_position(_parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        Self::read(text).map_err(|reason| SetupError::Position {
            game: Self::NAME,
            reason,
            form: "eight rows from the top, who moves, reserves, who is out, plies, as in .,A,AB,./... A 0,0 - 0",
        })
    }
}
