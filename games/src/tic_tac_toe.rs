//! Tic-tac-toe: three in a row on three by three.
//!
//! Seat 0 has the crosses. Moves are squares `a1` to `c3` with a1 at the bottom left. A position is the three rows
//! from the top, `x`, `o` and `.`, and the seat to move: `.../.x./... o`.
//!
//! The representation is two bitboards of nine bits, row by row from a1. Moves are undone by copying.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn, features,
};
use crate::random::{Random, below, mix};
use crate::setup::{Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{Labels, fields, grid, read_mover, read_rows, write_rows};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TicTacToe {
    stones: [u16; 2],
    mover: Seat,
}

/// The square that the stone is placed on, 0 to 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Square(u8);

const FULL: u16 = 0b111_111_111;

const LINES: &[u16] = &[
    0b000_000_111,
    0b000_111_000,
    0b111_000_000,
    0b001_001_001,
    0b010_010_010,
    0b100_100_100,
    0b100_010_001,
    0b001_010_100,
];

/// Whether a set of stones, as the index, contains a line.
const WON: [bool; 512] = {
    let mut won = [false; 512];
    let mut stones = 0;
    while stones < 512 {
        let mut line = 0;
        while line < LINES.len() {
            won[stones] |= stones as u16 & LINES[line] == LINES[line];
            line += 1;
        }
        stones += 1;
    }
    won
};

impl TicTacToe {
    fn has_line(&self, seat: Seat) -> bool {
        WON[usize::from(self.stones[seat.index()] & FULL)]
    }

    fn empty(&self) -> u16 {
        FULL & !(self.stones[0] | self.stones[1])
    }

    /// Checks both seats: after [`Reseat::reseat`] the line may belong to either.
    fn over(&self) -> bool {
        self.has_line(self.mover.other()) || self.has_line(self.mover) || self.empty() == 0
    }
}

impl Game for TicTacToe {
    type Move = Square;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    fn turn(&self) -> Turn {
        if self.over() { Turn::Over } else { Turn::Player(self.mover) }
    }

    fn moves(&self, out: &mut Vec<Square>) {
        if self.over() {
            return;
        }
        let mut empty = self.empty();
        while empty != 0 {
            out.push(Square(empty.trailing_zeros() as u8));
            empty &= empty - 1;
        }
    }

    fn play(&mut self, Square(square): Square) {
        self.stones[self.mover.index()] |= 1 << square;
        self.mover = self.mover.other();
    }

    fn payoff(&self, seat: Seat) -> i32 {
        i32::from(self.has_line(seat)) - i32::from(self.has_line(seat.other()))
    }

    fn ply_bound(&self) -> u32 {
        9
    }

    fn count(&self, _scratch: &mut Vec<Square>) -> u64 {
        if self.over() { 0 } else { u64::from(self.empty().count_ones()) }
    }

    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Square>) -> Square {
        let mut empty = self.empty();
        for _ in 0..below(random, empty.count_ones() as usize) {
            empty &= empty - 1;
        }
        Square(empty.trailing_zeros() as u8)
    }
}

impl Duel for TicTacToe {}
impl Deterministic for TicTacToe {}
impl Noisy for TicTacToe {}

impl Keyed for TicTacToe {
    const KEY_DECIDES: bool = true;

    fn key(&self) -> u64 {
        let [crosses, noughts] = self.stones.map(u64::from);
        mix(crosses | noughts << 9, u64::from(self.mover.0))
    }
}

impl Reseat for TicTacToe {
    /// An additional own stone is never a disadvantage.
    const PASSING_HURTS: bool = true;

    fn reseat(&self, seat: Seat) -> Option<Self> {
        Some(TicTacToe { mover: seat, ..self.clone() })
    }
}

impl Ordered for TicTacToe {
    const SLOTS: usize = 9;

    fn slot(&self, mv: Square) -> usize {
        usize::from(mv.0)
    }

    /// Counts the lines through the square: centre, then corners, then edges.
    fn promise(&self, mv: Square) -> i32 {
        [3, 2, 3, 2, 4, 2, 3, 2, 3][usize::from(mv.0)]
    }
}

features! {
    "open_lines", 1.0, "lines without a stone of the other side";
    "twos", 3.0, "open lines with two own stones";
    "forks", 6.0, "1 with two or more twos";
}

impl Features for TicTacToe {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, _wanted: FeatureSet, values: &mut [i32]) {
        let view = |seat: Seat| {
            let (own, others) = (self.stones[seat.index()], self.stones[seat.other().index()]);
            let open = LINES.iter().filter(|&&line| others & line == 0);
            let twos = open.clone().filter(|&&line| (own & line).count_ones() == 2).count() as i32;
            [open.count() as i32, twos, i32::from(twos >= 2)]
        };
        let (own, others) = (view(seat), view(seat.other()));
        for (index, value) in values.iter_mut().enumerate() {
            *value = own[index] - others[index];
        }
    }
}

impl Notation for TicTacToe {
    const MARKS: &'static [&'static str] = &["x", "o"];

    fn write_move(&self, Square(square): Square, out: &mut String) {
        out.push(Labels::BottomUp.column(usize::from(square % 3)));
        out.push(char::from(b'1' + square / 3));
    }

    fn board(&self) -> String {
        grid(3, 3, Labels::BottomUp, |column, row| self.symbol(3 * row + column))
    }

    fn position(&self) -> String {
        let rows = write_rows(3, 3, |column, line| self.symbol(3 * (2 - line) + column));
        format!("{rows} {}", SYMBOLS[self.mover.index()])
    }

    fn ending(&self) -> &'static str {
        if self.payoff(Seat::FIRST) == 0 { "board full" } else { "three in a row" }
    }
}

const SYMBOLS: [char; 2] = ['x', 'o'];

impl TicTacToe {
    fn symbol(&self, square: usize) -> char {
        let held = |seat: &Seat| self.stones[seat.index()] >> square & 1 == 1;
        Seat::all(2).find(held).map_or('.', |seat| SYMBOLS[seat.index()])
    }
}

impl Setup for TicTacToe {
    const NAME: &'static str = "tic-tac-toe";
    const SUMMARY: &'static str = "three in a row on three by three";
    const PARAMETERS: &'static [Parameter] = &[];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str = "three rows from the top and the seat to move, as in .../.x./... o";

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        Ok(TicTacToe { stones: [0, 0], mover: Seat::FIRST })
    }

    fn read_position(_start: &Self, text: &str) -> Result<Self, String> {
        let [rows, mover] = fields(text)?;
        let mut stones = [0; 2];
        for piece in read_rows(rows, &[3; 3], &SYMBOLS)? {
            stones[piece.symbol] |= 1 << (3 * (2 - piece.line) + piece.column);
        }
        let [crosses, noughts] = stones.map(u16::count_ones);
        let mover = read_mover(mover, &SYMBOLS)?;
        if crosses != noughts + u32::from(mover.0) {
            return Err("the number of stones does not fit the seat to move".to_string());
        }
        let position = TicTacToe { stones, mover };
        if position.has_line(mover) {
            return Err("the side to move already has three in a row".to_string());
        }
        Ok(position)
    }
}
