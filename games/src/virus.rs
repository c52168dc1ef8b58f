//! Virus: infect a square, and the squares around it turn with it.
//!
//! A board of `size` by `size` squares, 4 to 11, and two to six seats with one start square each: seat 0 in the
//! bottom left corner, seat 1 in the top right, seat 2 in the bottom right, seat 3 in the top left, seat 4 in the
//! middle of the bottom row and seat 5 in the middle of the top row, where of two middles seat 4 has the left and
//! seat 5 the right one. Five and six seats need a size of 7 or more: on less a seat could be wiped out before its
//! first turn.
//!
//! A move names a square that is not the mover's own, empty or not, and shares an edge with one of the mover's
//! squares. It and every square of the pattern around it (`plus`: its four edge neighbours, `square`: all eight)
//! become the mover's, whoever held them. A seat without squares is out and skipped. The last one in wins. At the
//! ply limit the most squares win, and equals share. With more than two seats the winners share sixty points; with
//! two it is +1, 0 or -1.
//!
//! The limit matters: with the pattern `plus` a duel never ends before it. A seat that has just moved owns a square
//! with all its edge neighbours; only the same move again would take them all, and the other side has no square
//! next to it. So the limit is short, size * size plies, rounded up to full rounds of the seats. A seat that has
//! squares always has a move, unless all squares are its own, and then it has won. Whoever moves last strikes last and
//! gains by it, so a fair match gives every player every seat.
//!
//! Moves are squares, `a1` at the bottom left. A position is the rows from the top, each square the digit of its
//! seat or `.`, the seat to move and the plies played: `...1/..../..../0... 0 0`. Any board may be set up in which
//! the seat to move has a square.
//!
//! A bitboard of 128 bits a seat, eleven bits a row whatever the size, so that every shift is by a constant. What
//! falls off the board is cut off by the board's mask; only at the full eleven columns do shifts reach the next
//! row, which the edge columns' masks prevent.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn,
};
use crate::random::{Random, below, mix};
use crate::schema::Choice;
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{Labels, grid, number};

/// A position of a game with so many seats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Virus<const SEATS: usize> {
    squares: [u128; SEATS],
    plies: u16,
    mover: Seat,
    /// The seats that have squares, a bit each.
    standing: u8,
    size: u8,
    pattern: Pattern,
}

/// The square that is infected: eleven a row, from a1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Square(u8);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    Plus,
    Square,
}

crate::choices!(Pattern { Plus = "plus", Square = "square" });

const WIDTH: usize = 11;
const LEFT: u128 = {
    let mut column = 0;
    let mut row = 0;
    while row < WIDTH {
        column |= 1 << (WIDTH * row);
        row += 1;
    }
    column
};
const RIGHT: u128 = LEFT << (WIDTH - 1);

/// The board's squares by its size.
const BOARDS: [u128; 16] = {
    let mut boards = [0; 16];
    let mut size = 1;
    while size <= WIDTH {
        let mut row = 0;
        while row < size {
            boards[size] |= ((1 << size) - 1) << (WIDTH * row);
            row += 1;
        }
        size += 1;
    }
    boards
};

/// The infected squares by pattern and square, on the widest board.
const INFECTED: [[u128; 128]; 2] = {
    let mut infected = [[0; 128]; 2];
    let mut square = 0;
    while square < WIDTH * WIDTH {
        let one = 1 << square;
        infected[Pattern::Plus as usize][square] = one | beside(one);
        infected[Pattern::Square as usize][square] = around(one);
        square += 1;
    }
    infected
};

/// The squares that share an edge with one of `squares`, and some beyond the board's upper and right edges.
#[inline]
const fn beside(squares: u128) -> u128 {
    (squares & !LEFT) >> 1 | (squares & !RIGHT) << 1 | squares << WIDTH | squares >> WIDTH
}

/// `squares` and all that touch one of them, and some beyond the board's upper and right edges.
#[inline]
const fn around(squares: u128) -> u128 {
    let row = squares | (squares & !LEFT) >> 1 | (squares & !RIGHT) << 1;
    row | row << WIDTH | row >> WIDTH
}

/// The middle of an even or odd number of columns, the left one of two.
const fn middle(size: usize) -> usize {
    (size - 1) / 2
}

/// Where seats start, as column and row.
const fn start(size: usize, seat: usize) -> (usize, usize) {
    let last = size - 1;
    match seat {
        0 => (0, 0),
        1 => (last, last),
        2 => (last, 0),
        3 => (0, last),
        4 => (middle(size), 0),
        _ => (last - middle(size), last),
    }
}

/// Up to here start squares beside the corners' would be within a first move of them.
const CROWDED: u64 = 6;

const BYTES: u64 = 0x0101_0101_0101_0101;

/// How many bits each byte has.
#[inline]
fn bits_of_bytes(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f
}

/// For each byte, where its first, second, ... bit is.
const PLACES: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut found) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][found] = bit as u8;
                found += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// Draws one of the bits. Running counts of bits by byte are one multiplication a word, as in Vigna's "Broadword
/// implementation of rank/select queries" (2008); the bit drawn lies in the first byte that reaches the number.
#[inline]
fn draw(bits: u128, random: &mut Random) -> u8 {
    let words = [bits as u64, (bits >> 64) as u64];
    let counts = words.map(|word| bits_of_bytes(word).wrapping_mul(BYTES));
    let [low, high] = counts.map(|counts| counts >> 56);
    let drawn = below(random, (low + high) as usize) as u64;
    let upper = drawn >= low;
    let (word, counts) = if upper { (words[1], counts[1]) } else { (words[0], counts[0]) };
    let rank = drawn - if upper { low } else { 0 };
    // The high bit of each byte whose running count exceeds the rank.
    let reached = ((counts | BYTES << 7) - (rank + 1) * BYTES) & BYTES << 7;
    let byte = reached.trailing_zeros() & !7;
    let before = (counts << 8) >> byte & 0xff;
    let place = PLACES[(word >> byte & 0xff) as usize][((rank - before) & 7) as usize];
    place + byte as u8 + if upper { 64 } else { 0 }
}

impl<const SEATS: usize> Virus<SEATS> {
    #[inline]
    fn board_mask(&self) -> u128 {
        BOARDS[usize::from(self.size & 15)]
    }

    /// The squares that a seat may infect.
    #[inline]
    fn targets(&self, seat: usize) -> u128 {
        let own = self.squares[seat];
        beside(own) & !own & self.board_mask()
    }

    /// The squares that a seat could hold after one move and does not hold now, and some beyond the board.
    fn reach(&self, seat: usize) -> u128 {
        let targets = self.targets(seat);
        match self.pattern {
            Pattern::Plus => targets | beside(targets),
            Pattern::Square => around(targets),
        }
    }

    fn taken(&self) -> u128 {
        self.squares.iter().fold(0, |taken, squares| taken | squares)
    }

    #[inline]
    fn ply_limit(&self) -> u16 {
        (u16::from(self.size) * u16::from(self.size)).next_multiple_of(SEATS as u16)
    }

    /// Whether only one seat has squares.
    #[inline]
    fn alone(&self) -> bool {
        self.standing & self.standing.wrapping_sub(1) == 0
    }

    #[inline]
    fn over(&self) -> bool {
        self.alone() || self.plies >= self.ply_limit()
    }
}

/// The seats that have squares, a bit each.
#[inline]
fn standing<const SEATS: usize>(squares: &[u128; SEATS]) -> u8 {
    let mut standing = 0;
    for (seat, squares) in squares.iter().enumerate() {
        standing |= u8::from(*squares != 0) << seat;
    }
    standing
}

impl<const SEATS: usize> Game for Virus<SEATS> {
    type Move = Square;
    const SEATS: usize = SEATS;
    const PAYOFFS: Payoffs = Payoffs::for_seats(SEATS);

    #[inline]
    fn turn(&self) -> Turn {
        if self.over() { Turn::Over } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn moves(&self, out: &mut Vec<Square>) {
        if self.over() {
            return;
        }
        let targets = self.targets(self.mover.index());
        for (mut word, start) in [(targets as u64, 0), ((targets >> 64) as u64, 64)] {
            while word != 0 {
                out.push(Square(start + word.trailing_zeros() as u8));
                word &= word - 1;
            }
        }
    }

    #[inline]
    fn play(&mut self, Square(square): Square) {
        let infected = INFECTED[self.pattern as usize][usize::from(square & 127)] & self.board_mask();
        for (seat, squares) in self.squares.iter_mut().enumerate() {
            let own = if seat == self.mover.index() { infected } else { 0 };
            *squares = *squares & !infected | own;
        }
        self.plies += 1;
        self.standing = standing(&self.squares);
        let later = self.standing & 0xfe << self.mover.0;
        self.mover = Seat((if later != 0 { later } else { self.standing }).trailing_zeros() as u8);
    }

    fn payoff(&self, seat: Seat) -> i32 {
        let counts = self.squares.map(u128::count_ones);
        let most = counts.iter().max();
        let winners =
            (0..SEATS).filter(|&seat| Some(&counts[seat]) == most).fold(0, |set, seat| set | 1 << seat);
        Payoffs::of_winners(SEATS, winners, seat)
    }

    fn ply_bound(&self) -> u32 {
        u32::from(self.ply_limit())
    }

    #[inline]
    fn count(&self, _scratch: &mut Vec<Square>) -> u64 {
        if self.over() { 0 } else { u64::from(self.targets(self.mover.index()).count_ones()) }
    }

    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Square>) -> Square {
        Square(draw(self.targets(self.mover.index()), random))
    }
}

impl Duel for Virus<2> {}
impl<const SEATS: usize> Deterministic for Virus<SEATS> {}

/// None: every move turns a handful of squares, so that none is noisier than the others.
impl Noisy for Virus<2> {}

impl<const SEATS: usize> Keyed for Virus<SEATS> {
    /// Made afresh: a move changes many squares, playouts never ask, and the words mix side by side.
    fn key(&self) -> u64 {
        let mut key = mix(u64::from(self.mover.0), u64::MAX / 2);
        for (seat, &squares) in (0..).zip(&self.squares) {
            key ^= mix(squares as u64, 2 * seat) ^ mix((squares >> 64) as u64, 2 * seat + 1);
        }
        key
    }
}

impl<const SEATS: usize> Reseat for Virus<SEATS> {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        (self.squares[seat.index()] != 0).then(|| Virus { mover: seat, ..self.clone() })
    }
}

impl<const SEATS: usize> Ordered for Virus<SEATS> {
    const SLOTS: usize = WIDTH * WIDTH;

    fn slot(&self, mv: Square) -> usize {
        usize::from(mv.0)
    }

    /// The squares won, those taken from others twice.
    fn promise(&self, Square(square): Square) -> i32 {
        let infected = INFECTED[self.pattern as usize][usize::from(square & 127)] & self.board_mask();
        let won = infected & !self.squares[self.mover.index()];
        (won.count_ones() + (won & self.taken()).count_ones()) as i32
    }
}

const SQUARES: usize = 0;
const SAFE: usize = 1;
const STRIKE: usize = 2;
const AREA: usize = 3;
const OUT: usize = 4;

/// A weight that differs between duels and games of more seats.
const fn by_seats(seats: usize, duel: f64, many: f64) -> f64 {
    if seats == 2 { duel } else { many }
}

/// Each but the last is the seat's own number less the mean of the others', times the number of others so that it
/// stays whole. The weights were found by playing; among more seats than two the strikes of rivals fall on somebody
/// else as often as not, and counting them did not help.
impl<const SEATS: usize> Features for Virus<SEATS> {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "squares", weight: 1.0, about: "squares held" },
        Feature {
            name: "safe",
            weight: by_seats(SEATS, 0.5, 0.3),
            about: "squares held that nobody's next move can take",
        },
        Feature {
            name: "strike",
            weight: by_seats(SEATS, 0.5, 0.0),
            about: "what the best move would win: its squares, those taken from others twice",
        },
        Feature {
            name: "area",
            weight: by_seats(SEATS, 0.1, 0.2),
            about: "empty squares nearer to the seat than to any other",
        },
        Feature { name: "rivals_out", weight: 5.0, about: "other seats that are out" },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let contrast = |numbers: [u32; SEATS]| {
            let sum: u32 = numbers.iter().sum();
            SEATS as i32 * numbers[seat.index()] as i32 - sum as i32
        };
        if wanted.has(SQUARES) {
            values[SQUARES] = contrast(self.squares.map(u128::count_ones));
        }
        if wanted.has(SAFE) {
            let reaches: [u128; SEATS] = std::array::from_fn(|seat| self.reach(seat));
            values[SAFE] = contrast(std::array::from_fn(|seat| {
                let rivals = (0..SEATS).filter(|&rival| rival != seat);
                let threatened = rivals.fold(0, |threatened, rival| threatened | reaches[rival]);
                (self.squares[seat] & !threatened).count_ones()
            }));
        }
        if wanted.has(STRIKE) {
            values[STRIKE] = contrast(std::array::from_fn(|seat| self.strike(seat)));
        }
        if wanted.has(AREA) {
            values[AREA] = contrast(self.areas());
        }
        // Of the others: a seat that is out counts itself no rival. In a duel that goes on nobody is out.
        let out = !self.standing & !(1 << seat.0) & ((1 << SEATS) - 1);
        values[OUT] = out.count_ones() as i32;
    }
}

/// A number from 0 to 31 on every square, a bit of it a bitboard.
type Numbers = [u128; 5];

/// Adds square by square.
#[inline]
fn add(a: Numbers, b: Numbers) -> Numbers {
    let mut sum = [0; 5];
    let mut carry = 0;
    for bit in 0..5 {
        let half = a[bit] ^ b[bit];
        sum[bit] = half ^ carry;
        carry = a[bit] & b[bit] | half & carry;
    }
    sum
}

impl<const SEATS: usize> Virus<SEATS> {
    /// The greatest [`Ordered::promise`] of a seat's moves, added up on all squares at once.
    fn strike(&self, seat: usize) -> u32 {
        let (board, taken) = (self.board_mask(), self.taken());
        let worth = [board & !taken, taken & !self.squares[seat], 0, 0, 0];
        let rows = |numbers: Numbers| add(numbers.map(|bit| bit << WIDTH), numbers.map(|bit| bit >> WIDTH));
        let left = worth.map(|bit| (bit & !LEFT) >> 1);
        let right = worth.map(|bit| (bit & !RIGHT) << 1);
        let row = add(add(worth, left), right);
        let won = match self.pattern {
            Pattern::Plus => add(row, rows(worth)),
            Pattern::Square => add(row, rows(row)),
        };
        let mut best = self.targets(seat);
        let mut most = 0;
        for bit in (0..5).rev() {
            if best & won[bit] != 0 {
                best &= won[bit];
                most |= 1 << bit;
            }
        }
        most
    }

    /// How many empty squares are fewer steps away from each seat than from all others.
    fn areas(&self) -> [u32; SEATS] {
        let mut empty = self.board_mask() & !self.taken();
        let mut fronts = self.squares;
        let mut areas = [0; SEATS];
        while empty != 0 && fronts.iter().any(|&front| front != 0) {
            let (mut once, mut twice) = (0, 0);
            for front in &mut fronts {
                *front = beside(*front) & empty;
                twice |= once & *front;
                once |= *front;
            }
            for (area, front) in areas.iter_mut().zip(&mut fronts) {
                *front &= !twice;
                *area += front.count_ones();
            }
            empty &= !once;
        }
        areas
    }
}

impl<const SEATS: usize> Notation for Virus<SEATS> {
    fn write_move(&self, Square(square): Square, out: &mut String) {
        let square = usize::from(square);
        out.push(Labels::BottomUp.column(square % WIDTH));
        out.push_str(&(square / WIDTH + 1).to_string());
    }

    fn board(&self) -> String {
        let size = usize::from(self.size);
        grid(size, size, Labels::BottomUp, |column, row| self.symbol(column, row))
    }

    fn position(&self) -> String {
        let size = usize::from(self.size);
        let row = |row: usize| (0..size).map(|column| self.symbol(column, row)).collect::<String>();
        let rows: Vec<String> = (0..size).rev().map(row).collect();
        format!("{} {} {}", rows.join("/"), self.mover.0, self.plies)
    }

    fn ending(&self) -> &'static str {
        if self.alone() { "last one in" } else { "ply limit" }
    }
}

impl<const SEATS: usize> Virus<SEATS> {
    fn symbol(&self, column: usize, row: usize) -> char {
        let square = WIDTH * row + column;
        let holder = self.squares.iter().position(|squares| squares >> square & 1 == 1);
        holder.map_or('.', |seat| char::from(b'0' + seat as u8))
    }
}

impl<const SEATS: usize> Setup for Virus<SEATS> {
    const NAME: &'static str = "virus";
    const SUMMARY: &'static str = "infect squares next to your own; the last one in or the most squares win";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "seats",
            default: "2",
            domain: Domain::Integer { min: 2, max: 6 },
            about: "how many play",
        },
        Parameter {
            name: "size",
            default: "10",
            domain: Domain::Integer { min: 4, max: WIDTH as u64 },
            about: "rows and columns of the board",
        },
        Parameter {
            name: "pattern",
            default: "plus",
            domain: Domain::Choice(Pattern::NAMES),
            about: "what turns with a square: its four edge neighbours or all eight",
        },
    ];
    const TURNS: Turns = Turns::RotateSkippingOut;

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let size = parameters.integer("size");
        if SEATS > 4 && size <= CROWDED {
            return Err(SetupError::Conflict {
                game: Self::NAME,
                reason: format!(
                    "{SEATS} seats are too many for a board of size {size}; \
                     give a size of {} or more, or at most 4 seats",
                    CROWDED + 1
                ),
            });
        }
        let squares = std::array::from_fn(|seat| {
            let (column, row) = start(size as usize, seat);
            1 << (WIDTH * row + column)
        });
        let pattern = parameters.choice("pattern");
        let (mover, standing) = (Seat::FIRST, standing(&squares));
        Ok(Virus { squares, plies: 0, mover, standing, size: size as u8, pattern })
    }

    fn from_position(parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        let wrong = |reason: String| SetupError::Position {
            game: Self::NAME,
            reason,
            form: "the rows from the top, the seat to move and the plies played, as in ...1/..../..../0... 0 0",
        };
        let first = Self::initial(parameters)?;
        let size = usize::from(first.size);
        let parts: Vec<&str> = text.split(' ').collect();
        let &[rows, mover, plies] = parts.as_slice() else {
            return Err(wrong("there must be rows, the seat to move and the plies played".to_string()));
        };
        let rows: Vec<&str> = rows.split('/').collect();
        if rows.len() != size || rows.iter().any(|row| row.chars().count() != size) {
            return Err(wrong(format!("there must be {size} rows of {size} squares")));
        }
        let seat_named = |text: &str| (0..SEATS).find(|seat| text == seat.to_string());
        let mut squares = [0; SEATS];
        for (row, line) in rows.iter().rev().enumerate() {
            for (column, symbol) in line.chars().enumerate() {
                match seat_named(symbol.encode_utf8(&mut [0; 4])) {
                    Some(seat) => squares[seat] |= 1 << (WIDTH * row + column),
                    None if symbol == '.' => {}
                    None => return Err(wrong(format!("a square is a seat from 0 to {} or .", SEATS - 1))),
                }
            }
        }
        let mover = seat_named(mover)
            .ok_or_else(|| wrong(format!("the seat to move is a number from 0 to {}", SEATS - 1)))?;
        if squares[mover] == 0 {
            return Err(wrong(format!("seat {mover} is to move and has no square")));
        }
        let limit = first.ply_limit();
        let plies = number(plies)
            .and_then(|plies| u16::try_from(plies).ok())
            .filter(|&plies| plies <= limit)
            .ok_or_else(|| wrong(format!("the plies played are a number up to {limit}")))?;
        let standing = standing(&squares);
        Ok(Virus { squares, plies, mover: Seat(mover as u8), standing, ..first })
    }
}
