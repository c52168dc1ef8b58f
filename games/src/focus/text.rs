//! Reading and writing moves, boards and positions, and the first positions.

use super::{BOARD, EMPTY, Focus, MOST_SEATS, Move, OUT_KEYS, RESERVE, Squares, TALLEST, height, pieces_of};
use crate::game::{Game, Notation, Seat, Turn};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{fields, number, read_mover, read_plies};

const SYMBOLS: [char; MOST_SEATS] = ['A', 'B', 'C', 'D'];

/// The rows of the first positions for two, three and four seats, from the top.
const STARTS: [&str; 3] = [
    "..../AABBAA/.BBAABB./.AABBAA./.BBAABB./.AABBAA./BBAABB/....",
    "..../AABBCC/.BBCCAA./.CCAABB./.AABBCC./.BBCCAA./CCAABB/....",
    "AACB/BBBCBC/AAAACBCB/BBBBCBCB/DADADDDD/DADACCCC/ADADDD/DACC",
];

/// Returns the squares of each row, from the top.
fn rows() -> impl Iterator<Item = impl Iterator<Item = u8>> {
    (0..8).rev().map(|row| Squares(BOARD & 0xff << (8 * row)))
}

fn write_square(square: u8, out: &mut String) {
    out.push(char::from(b'a' + square % 8));
    out.push(char::from(b'1' + square / 8));
}

impl<const SEATS: usize> Focus<SEATS> {
    /// Returns the pieces of a square's stack from bottom to top, or a dot.
    fn stack_text(&self, square: u8) -> String {
        let stack = self.stack(square);
        if stack == EMPTY {
            return ".".to_string();
        }
        (0..height(stack)).rev().map(|place| SYMBOLS[(stack >> (2 * place) & 3) as usize]).collect()
    }

    /// Returns the letters of the seats that are out, or `-`.
    fn out_text(&self) -> String {
        let out: String =
            Seat::all(SEATS).filter(|&seat| self.is_out(seat)).map(|seat| SYMBOLS[seat.index()]).collect();
        if out.is_empty() { "-".to_string() } else { out }
    }
}

impl<const SEATS: usize> Notation for Focus<SEATS> {
    const MARKS: &'static [&'static str] = &["A", "B", "C", "D"];

    fn write_move(&self, mv: Move, out: &mut String) {
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

impl<const SEATS: usize> Focus<SEATS> {
    /// Returns the seat of a letter.
    fn seat_named(symbol: char) -> Option<Seat> {
        Seat::all(SEATS).find(|seat| SYMBOLS[seat.index()] == symbol)
    }

    /// Reads a stack, from bottom to top.
    fn stack_named(text: &str) -> Result<u32, String> {
        if text == "." {
            return Ok(EMPTY);
        }
        let count = text.chars().count();
        if count == 0 || count > TALLEST {
            return Err(format!("`{text}` is not a stack of one to five pieces"));
        }
        text.chars().try_fold(EMPTY, |stack, symbol| {
            let seat =
                Self::seat_named(symbol).ok_or_else(|| format!("`{symbol}` is not a piece of a seat"))?;
            Ok(stack << 2 | u32::from(seat.0))
        })
    }

    fn read(text: &str) -> Result<Self, String> {
        let [board, mover, reserves, out, plies] = fields(text)?;
        let mover = read_mover(mover, &SYMBOLS[..SEATS])?;
        let mut position = Self::empty(mover, read_plies(plies, Self::PLY_LIMIT)?);

        let lines: Vec<&str> = board.split('/').collect();
        if lines.len() != 8 {
            return Err(format!("there are {} rows instead of 8", lines.len()));
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
            let pieces = number(reserve).filter(|&pieces| pieces <= Self::PIECES);
            let pieces = pieces.ok_or_else(|| {
                format!("`{reserve}` is not a reserve: a whole number from 0 to {}", Self::PIECES)
            })?;
            position.set_reserve(seat, pieces);
            // The text may list up to 260 pieces.
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

    /// Reads the seats that are out into a position that is otherwise complete.
    fn read_out(&mut self, text: &str) -> Result<(), String> {
        let mut out = 0;
        for symbol in text.chars().filter(|_| text != "-") {
            let seat = Self::seat_named(symbol)
                .ok_or_else(|| format!("`{symbol}` is not a seat that can be out"))?;
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
        if self.out_text() == text {
            Ok(())
        } else {
            Err("the seats that are out are - or letters in order".to_string())
        }
    }
}

impl<const SEATS: usize> Setup for Focus<SEATS> {
    const NAME: &'static str = "focus";
    const SUMMARY: &'static str =
        "move stacks of up to five as far as their height; the last seat able to move wins";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "seats",
        default: "2",
        domain: Domain::OneOf(&[2, 3, 4]),
        about: "the number of seats",
    }];
    const TURNS: Turns = Turns::RotateSkippingOut;
    const POSITION_FORM: &'static str = "eight rows from the top, the seat to move, reserves, seats that are out, plies, as in .,A,AB,./... A 0,0 - 0";

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

    fn read_position(_start: &Self, text: &str) -> Result<Self, String> {
        Self::read(text)
    }
}
