//! Connect four: drop stones into columns, four in a line win.
//!
//! Seat 0 has the crosses. A stone falls to the lowest empty square of its column. The first player with four in a
//! vertical, horizontal or diagonal line wins; a full board without a line is a draw. The default board has seven columns
//! of six squares; others start at 4 x 4, and their columns with one spare square each must fit in 64 squares. A game has
//! at most as many plies as the board has squares.
//!
//! A move is the column, `1` at the left. A position is the rows from the top, `x`, `o` and `.`, and the seat to move:
//! `......./......./......./......./......./...x... o`. The reader checks the number of stones, that none hangs in the
//! air and that the last stone can have completed all lines, but not that some order of moves leads there.
//!
//! The representation is two bitboards, column by column, for the mover's stones and for all stones: the next stone of a
//! column is one addition. An empty square on top of each column keeps lines from running into the next one (Tromp's
//! Fhourstones). The line test runs once per move; the position keeps its result and the number of columns with room. At
//! 24 bytes, copying is faster than undoing.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn, features, sign,
};
use crate::random::{Random, below, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{fields, read_mover, read_rows, write_rows};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectFour {
    /// The stones of the side to move.
    own: u64,
    /// The stones of both sides.
    occupied: u64,
    width: u8,
    /// The distance between horizontal neighbours: the height and the spare square.
    stride: u8,
    /// The number of columns with room.
    open: u8,
    mover: Seat,
    outcome: Outcome,
}

/// The result of the last stone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Outcome {
    Going,
    /// Four in a line for the side that is not to move.
    Line,
    Full,
}

/// The column of a dropped stone, from 0 at the left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column(u8);

const SIZES: Domain = Domain::Integer { min: SMALLEST as u64, max: LARGEST as u64 };
const SMALLEST: usize = 4;
const LARGEST: usize = 9;

/// The lowest squares of all columns, by stride and width.
const BOTTOMS: [[u64; LARGEST + 1]; LARGEST + 2] = {
    let mut bottoms = [[0; LARGEST + 1]; LARGEST + 2];
    let mut stride = 1;
    while stride < bottoms.len() {
        let mut width = 1;
        while width <= LARGEST && width * stride <= 64 {
            bottoms[stride][width] = bottoms[stride][width - 1] | 1 << ((width - 1) * stride);
            width += 1;
        }
        stride += 1;
    }
    bottoms
};

/// Returns whether the stones contain four in a line.
#[inline(always)]
fn has_line(stones: u64, stride: u32) -> bool {
    let line = |step: u32| {
        let pairs = stones & stones >> step;
        pairs & pairs >> (2 * step)
    };
    line(1) | line(stride - 1) | line(stride) | line(stride + 1) != 0
}

/// Calls [`has_line`] with any stride. Takes no `&self`, so that the position can stay in registers.
#[inline(never)]
fn has_unusual_line(stones: u64, stride: u8) -> bool {
    has_line(stones, stride.into())
}

/// Returns the squares, on or off the board, that would complete four with three of the stones.
#[inline(always)]
fn completions(stones: u64, stride: u32) -> u64 {
    let upright = stones << 1 & stones << 2 & stones << 3;
    [stride - 1, stride, stride + 1].into_iter().fold(upright, |squares, step| {
        let below = stones << step & stones << (2 * step);
        let above = stones >> step & stones >> (2 * step);
        squares
            | below & (stones << (3 * step) | stones >> step)
            | above & (stones >> (3 * step) | stones << step)
    })
}

/// Counts the lines without a stone of the other side, and those of them with exactly two own stones.
fn lines_and_twos(own: u64, free: u64, stride: u32) -> (u32, u32) {
    [1, stride - 1, stride, stride + 1].into_iter().fold((0, 0), |(lines, twos), step| {
        let pairs = free & free >> step;
        let open = pairs & pairs >> (2 * step);
        // Add the four squares of a line as two halves, each with a sum and a carry.
        let (one, both) = (own ^ own >> step, own & own >> step);
        let (far_one, far_both) = (one >> (2 * step), both >> (2 * step));
        let two = one & far_one | (both ^ far_both) & !one & !far_one;
        (lines + open.count_ones(), twos + (open & two).count_ones())
    })
}

impl ConnectFour {
    fn height(&self) -> u8 {
        self.stride - 1
    }

    fn bottom(&self) -> u64 {
        BOTTOMS[usize::from(self.stride)][usize::from(self.width)]
    }

    /// Returns the squares of the board without the spare ones.
    fn board(&self) -> u64 {
        self.bottom() * ((1 << self.height()) - 1)
    }

    /// Returns the landing square of each column with room.
    fn landings(&self) -> u64 {
        (self.occupied + self.bottom()) & self.board()
    }

    /// Returns the landing square of a column. Precondition: the column has room.
    #[inline]
    fn landing(&self, column: u8) -> u64 {
        // The carry runs over the stones of the column to its first empty square.
        (self.occupied + (1 << (column * self.stride))) & !self.occupied
    }

    /// Returns whether the stones contain four in a line on this board.
    #[inline]
    fn is_line(&self, stones: u64) -> bool {
        // Shifts by constants on the usual board are worth a predictable branch.
        if self.stride == 7 { has_line(stones, 7) } else { has_unusual_line(stones, self.stride) }
    }

    #[inline]
    fn has_room(&self, column: u8) -> bool {
        self.occupied >> (column * self.stride + self.stride - 2) & 1 == 0
    }

    fn stones(&self, seat: Seat) -> u64 {
        if seat == self.mover { self.own } else { self.occupied ^ self.own }
    }

    /// Returns the empty squares that complete a line of `stones`.
    fn threats(&self, stones: u64) -> u64 {
        completions(stones, u32::from(self.stride)) & self.board() & !self.occupied
    }

    /// Returns the landing squares that win for the mover, and those that would win for the other side.
    #[inline]
    fn fours(&self) -> [u64; 2] {
        let landings = self.landings();
        let stones = [self.own, self.occupied ^ self.own];
        // As in `is_line`.
        if self.stride == 7 {
            stones.map(|stones| completions(stones, 7) & landings)
        } else {
            stones.map(|stones| completions(stones, self.stride.into()) & landings)
        }
    }

    fn columns(&self) -> impl Iterator<Item = u8> {
        (0..self.width).filter(|&column| self.has_room(column))
    }

    fn symbol(&self, column: usize, row: usize) -> char {
        let square = column * usize::from(self.stride) + row;
        let held = |seat: &Seat| self.stones(*seat) >> square & 1 == 1;
        Seat::all(2).find(held).map_or('.', |seat| SYMBOLS[seat.index()])
    }
}

impl Game for ConnectFour {
    type Move = Column;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.outcome == Outcome::Going { Turn::Player(self.mover) } else { Turn::Over }
    }

    #[inline]
    fn moves(&self, out: &mut Vec<Column>) {
        if self.outcome != Outcome::Going {
            return;
        }
        if self.open == self.width {
            // Usual in the first half of a game; the compiler vectorises it.
            out.extend((0..self.width).map(Column));
        } else {
            out.extend(self.columns().map(Column));
        }
    }

    #[inline]
    fn play(&mut self, Column(column): Column) {
        let landing = self.landing(column);
        let moved = self.own | landing;
        self.own ^= self.occupied;
        self.occupied |= landing;
        self.open -= u8::from(!self.has_room(column));
        self.mover = self.mover.other();
        self.outcome = if self.is_line(moved) {
            Outcome::Line
        } else if self.open == 0 {
            Outcome::Full
        } else {
            Outcome::Going
        };
    }

    #[inline]
    fn payoff(&self, seat: Seat) -> i32 {
        match self.outcome {
            Outcome::Line if seat == self.mover => -1,
            Outcome::Line => 1,
            Outcome::Going | Outcome::Full => 0,
        }
    }

    fn ply_bound(&self) -> u32 {
        u32::from(self.width) * u32::from(self.height())
    }

    #[inline]
    fn count(&self, _scratch: &mut Vec<Column>) -> u64 {
        if self.outcome == Outcome::Going { u64::from(self.open) } else { 0 }
    }

    /// Draws columns until one has room. Most columns have, and selecting the n-th open column costs an unpredictable
    /// branch.
    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Column>) -> Column {
        loop {
            let column = below(random, usize::from(self.width)) as u8;
            if self.has_room(column) {
                return Column(column);
            }
        }
    }
}

impl Duel for ConnectFour {}
impl Deterministic for ConnectFour {}

/// Moves that win at once, and all moves if the other side threatens to win.
impl Noisy for ConnectFour {
    const NOISY: bool = true;

    fn noisy_moves(&self, out: &mut Vec<Column>) {
        if self.outcome != Outcome::Going {
            return;
        }
        let [wins, dangers] = self.fours();
        if wins == 0 && dangers != 0 {
            return self.moves(out);
        }
        out.extend((0..self.width).filter(|column| self.column_of(*column) & wins != 0).map(Column));
    }

    fn may_stand_pat(&self) -> bool {
        let [wins, dangers] = self.fours();
        wins != 0 || dangers == 0
    }
}

impl Keyed for ConnectFour {
    const KEY_DECIDES: bool = true;

    /// Mixes the sum of both boards, which is unique: it encodes each column without a carry into the next.
    #[inline]
    fn key(&self) -> u64 {
        mix(self.own + self.occupied, u64::from(self.mover.0))
    }
}

impl Reseat for ConnectFour {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        Some(ConnectFour { own: self.stones(seat), mover: seat, ..self.clone() })
    }
}

impl Ordered for ConnectFour {
    /// One slot per landing square.
    const SLOTS: usize = 64;

    #[inline]
    fn slot(&self, Column(column): Column) -> usize {
        self.landing(column).trailing_zeros() as usize
    }

    /// Prefers winning moves, then answers to a threat, then central columns.
    #[inline]
    fn promise(&self, column: Column) -> i32 {
        self.promise_among(column, self.fours())
    }

    #[inline]
    fn promises(&self, moves: &[Column], mut each: impl FnMut(usize, i32)) {
        let fours = self.fours();
        for (index, &column) in moves.iter().enumerate() {
            each(index, self.promise_among(column, fours));
        }
    }
}

impl ConnectFour {
    #[inline]
    fn promise_among(&self, Column(column): Column, [wins, saves]: [u64; 2]) -> i32 {
        let landing = self.landing(column);
        let centre = i32::from(column.min(self.width - 1 - column));
        centre + 100 * i32::from(wins & landing != 0) + 50 * i32::from(saves & landing != 0)
    }
}

const LINE_FEATURES: FeatureSet = FeatureSet::NONE.with(OPEN_LINES).with(TWOS);
const THREAT_FEATURES: FeatureSet = FeatureSet::NONE.with(THREATS).with(ZUGZWANG).with(STACKED).with(TACTICS);

features! {
    OPEN_LINES = "open_lines", 0.3, "lines of four without a stone of the other side";
    TWOS = "twos", 0.4, "open lines with exactly two own stones";
    CENTRE = "centre", 0.2, "steps of all stones from the nearer side edge";
    THREATS = "threats", 1.0, "empty squares that complete four";
    ZUGZWANG = "zugzwang_threats", 2.0,
        "threats on the rows that zugzwang gives to the seat: on 7x6 odd rows to seat 0, even to seat 1";
    STACKED = "stacked_threats", 4.0, "pairs of threats, one directly above the other";
    TACTICS = "tactics", 30.0, "1 with a winning move, -1 against more threats than one stone stops";
}

impl Features for ConnectFour {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let (own, others) = (self.stones(seat), self.stones(seat.other()));
        let difference = |own: u32, others: u32| own as i32 - others as i32;
        let squares = |own: u64, others: u64| difference(own.count_ones(), others.count_ones());
        if wanted.any(LINE_FEATURES) {
            let (board, stride) = (self.board(), u32::from(self.stride));
            let (lines, twos) = lines_and_twos(own, board & !others, stride);
            let (other_lines, other_twos) = lines_and_twos(others, board & !own, stride);
            values[OPEN_LINES] = difference(lines, other_lines);
            values[TWOS] = difference(twos, other_twos);
        }
        if wanted.has(CENTRE) {
            let column = |column: u8| {
                let steps = i32::from(column.min(self.width - 1 - column));
                steps * squares(own & self.column_of(column), others & self.column_of(column))
            };
            values[CENTRE] = (0..self.width).map(column).sum();
        }
        if wanted.any(THREAT_FEATURES) {
            let (threats, other_threats) = (self.threats(own), self.threats(others));
            values[THREATS] = squares(threats, other_threats);
            let (rows, other_rows) = (self.rows_of(seat), self.rows_of(seat.other()));
            values[ZUGZWANG] = squares(threats & rows, other_threats & other_rows);
            values[STACKED] = squares(threats & threats >> 1, other_threats & other_threats >> 1);
            values[TACTICS] = sign(seat == self.mover) * self.tactics();
        }
    }
}

impl ConnectFour {
    /// Returns all squares of a column.
    fn column_of(&self, column: u8) -> u64 {
        ((1 << self.height()) - 1) << (column * self.stride)
    }

    /// Returns the rows that a seat gets once every other column is full (Allis 1988, section 3.3, for any size). With
    /// `n` squares elsewhere, seat 0 gets the first square of the column if `n` is even, and every second one from there.
    fn rows_of(&self, seat: Seat) -> u64 {
        let elsewhere = u32::from(self.width - 1) * u32::from(self.height());
        let alternate = 0x5555_5555_5555_5555 << ((elsewhere + u32::from(seat.0)) & 1);
        self.bottom() * (alternate & ((1 << self.height()) - 1))
    }

    /// Returns 1 if the mover wins with the next stone, -1 if the other side then wins with certainty, otherwise 0.
    fn tactics(&self) -> i32 {
        let [wins, dangers] = self.fours();
        let unstoppable = dangers & (dangers - u64::from(dangers != 0)) != 0
            || dangers << 1 & self.threats(self.occupied ^ self.own) != 0;
        if wins != 0 { 1 } else { -i32::from(unstoppable) }
    }
}

const SYMBOLS: [char; 2] = ['x', 'o'];

impl Notation for ConnectFour {
    const MARKS: &'static [&'static str] = &["x", "o"];

    fn write_move(&self, Column(column): Column, out: &mut String) {
        out.push(char::from(b'1' + column));
    }

    fn parse_move(&self, text: &str) -> Option<Column> {
        let &[digit] = text.as_bytes() else { return None };
        let column = digit.checked_sub(b'1').filter(|&column| column < self.width)?;
        (self.outcome == Outcome::Going && self.has_room(column)).then_some(Column(column))
    }

    fn board(&self) -> String {
        let line = |cell: &dyn Fn(usize) -> char| {
            (0..usize::from(self.width)).flat_map(|column| [' ', cell(column)]).collect::<String>()
        };
        let rows = (0..usize::from(self.height())).rev();
        let mut lines: Vec<String> = rows.map(|row| line(&|column| self.symbol(column, row))).collect();
        lines.push(line(&|column| char::from(b'1' + column as u8)));
        lines.join("\n")
    }

    fn position(&self) -> String {
        let (width, height) = (usize::from(self.width), usize::from(self.height()));
        let rows = write_rows(width, height, |column, line| self.symbol(column, height - 1 - line));
        format!("{rows} {}", SYMBOLS[self.mover.index()])
    }

    fn ending(&self) -> &'static str {
        if self.outcome == Outcome::Line { "four in a line" } else { "board full" }
    }
}

impl Setup for ConnectFour {
    const NAME: &'static str = "connect-four";
    const SUMMARY: &'static str = "drop stones into columns; four in a line win";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "width", default: "7", domain: SIZES, about: "columns" },
        Parameter {
            name: "height",
            default: "6",
            domain: SIZES,
            about: "squares of a column; width * (height + 1) is at most 64",
        },
    ];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str =
        "the rows from the top and the seat to move, as in ..../..../..../.x.. o on a board of 4 x 4";

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let (width, height) = (parameters.integer("width"), parameters.integer("height"));
        if width * (height + 1) > 64 {
            return Err(SetupError::Conflict {
                game: Self::NAME,
                reason: format!(
                    "{width} columns of {height} squares are too many; width * (height + 1) must be at most 64"
                ),
            });
        }
        Ok(ConnectFour {
            own: 0,
            occupied: 0,
            width: width as u8,
            stride: height as u8 + 1,
            open: width as u8,
            mover: Seat::FIRST,
            outcome: Outcome::Going,
        })
    }

    fn read_position(start: &Self, text: &str) -> Result<Self, String> {
        let (width, height, stride) = (start.width, start.height(), u32::from(start.stride));
        let [rows, mover] = fields(text)?;
        let mut stones = [0u64; 2];
        for piece in read_rows(rows, &vec![width.into(); height.into()], &SYMBOLS)? {
            let row = usize::from(height) - 1 - piece.line;
            stones[piece.symbol] |= 1 << (piece.column * stride as usize + row);
        }
        let occupied = stones[0] | stones[1];
        let supported = occupied << 1 | start.bottom();
        if occupied & !supported != 0 {
            return Err("a stone hangs in the air".to_string());
        }
        let [crosses, noughts] = stones.map(u64::count_ones);
        let mover = read_mover(mover, &SYMBOLS)?;
        if crosses != noughts + u32::from(mover.0) {
            return Err("the number of stones does not fit the seat to move".to_string());
        }
        let (own, others) = (stones[mover.index()], stones[mover.other().index()]);
        if has_line(own, stride) {
            return Err("the side to move already has four in a line".to_string());
        }
        let mut position = ConnectFour { own, occupied, mover, ..start.clone() };
        position.open = position.columns().count() as u8;
        if has_line(others, stride) {
            let mut tops = others & !(occupied >> 1);
            let last = std::iter::from_fn(|| {
                let top = tops & tops.wrapping_neg();
                tops ^= top;
                (top != 0).then_some(top)
            });
            if !last.into_iter().any(|top| !has_line(others ^ top, stride)) {
                return Err("no last stone can have completed all lines of four".to_string());
            }
            position.outcome = Outcome::Line;
        } else if position.open == 0 {
            position.outcome = Outcome::Full;
        }
        Ok(position)
    }
}
