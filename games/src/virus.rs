//! Virus: infect a square together with the squares around it.
//!
//! The board has `size` by `size` squares, 4 to 11, and two to six seats with one start square each: seat 0 in the bottom
//! left corner, seat 1 in the top right, seat 2 in the bottom right, seat 3 in the top left, seat 4 in the middle of the
//! bottom row and seat 5 in the middle of the top row (on an even size, left and right of the centre respectively). Five
//! and six seats need a size of 7 or more: on a smaller board a seat could be eliminated before its first turn.
//!
//! A move names a square, empty or of another seat, that shares an edge with one of the mover's squares. It and every
//! square of the pattern around it (`plus`: its four edge neighbours, `square`: all eight neighbours) become the mover's.
//! A seat without squares is out and skipped. The last seat left wins. At the ply limit the seats with the most squares
//! win. With more than two seats the winners share sixty points; with two the payoffs are +1, 0 and -1.
//!
//! With the pattern `plus` a duel always reaches the limit: a seat that has just moved owns a square with all its edge
//! neighbours; only the same move would take all of them, and the other side has no square next to it. So the limit is
//! short: size * size plies, rounded up to full rounds. A seat with squares always has a move, unless it owns the whole
//! board and has won. The last move is an advantage, so a fair match gives every player every seat.
//!
//! Moves are squares, `a1` at the bottom left. A position is the rows from the top, each square the digit of its seat or
//! `.`, the seat to move and the plies played: `...1/..../..../0... 0 0`. Any board in which the seat to move has a square
//! is accepted.
//!
//! The representation is a bitboard of 128 bits per seat with eleven bits per row for every size, so that every shift is
//! by a constant. The board's mask removes squares off the board; the masks of the edge columns keep shifts from reaching
//! the next row at the full eleven columns.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn, margin,
};
use crate::random::{Random, below, mix};
use crate::schema::Choice;
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{Labels, SEAT_DIGITS, fields, grid, read_mover, read_plies, read_rows, write_rows};

/// A position.
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

/// The infected square: eleven per row, from a1.
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

/// The squares of the board by size.
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

/// Returns the squares that share an edge with one of `squares`, and some beyond the upper and right edges.
#[inline]
const fn beside(squares: u128) -> u128 {
    (squares & !LEFT) >> 1 | (squares & !RIGHT) << 1 | squares << WIDTH | squares >> WIDTH
}

/// Returns `squares` with all their neighbours, and some squares beyond the upper and right edges.
#[inline]
const fn around(squares: u128) -> u128 {
    let row = squares | (squares & !LEFT) >> 1 | (squares & !RIGHT) << 1;
    row | row << WIDTH | row >> WIDTH
}

/// Returns the middle column, the left one of two.
const fn middle(size: usize) -> usize {
    (size - 1) / 2
}

/// Returns the column and the row of a start square.
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

/// The largest size at which start squares between the corners are within reach of a first move.
const CROWDED: u64 = 6;

const BYTES: u64 = 0x0101_0101_0101_0101;

/// Counts the bits of each byte.
#[inline]
fn bits_of_bytes(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f
}

/// The places of the bits of each byte, ascending.
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

/// Draws a bit. Running bit counts by byte take one multiplication per word, as in Vigna's "Broadword implementation of
/// rank/select queries" (2008); the drawn bit is in the first byte that reaches the drawn number.
#[inline]
fn draw(bits: u128, random: &mut Random) -> u8 {
    let words = [bits as u64, (bits >> 64) as u64];
    let counts = words.map(|word| bits_of_bytes(word).wrapping_mul(BYTES));
    let [low, high] = counts.map(|counts| counts >> 56);
    let drawn = below(random, (low + high) as usize) as u64;
    let upper = drawn >= low;
    let (word, counts) = if upper { (words[1], counts[1]) } else { (words[0], counts[0]) };
    let rank = drawn - if upper { low } else { 0 };
    // Set the high bit of each byte whose running count exceeds the rank.
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

    /// Returns the squares that a seat may infect.
    #[inline]
    fn targets(&self, seat: usize) -> u128 {
        let own = self.squares[seat];
        beside(own) & !own & self.board_mask()
    }

    /// Returns the squares that a seat's next move can take, and some beyond the board.
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

    /// Returns whether only one seat has squares.
    #[inline]
    fn alone(&self) -> bool {
        self.standing & self.standing.wrapping_sub(1) == 0
    }

    #[inline]
    fn over(&self) -> bool {
        self.alone() || self.plies >= self.ply_limit()
    }
}

/// Returns the seats that have squares, a bit each.
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
        Payoffs::of_greatest(self.squares.map(u128::count_ones), seat)
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

/// There are no noisy moves: all moves turn a similar number of squares.
impl Noisy for Virus<2> {}

impl<const SEATS: usize> Keyed for Virus<SEATS> {
    /// Computes the key on demand: a move changes many squares, playouts need no keys, and the words are mixed in parallel.
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

    /// Counts the squares won, with those taken from others twice.
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

/// Returns a weight that differs between duels and games with more seats.
const fn by_seats(seats: usize, duel: f64, many: f64) -> f64 {
    if seats == 2 { duel } else { many }
}

/// Every value except the last is the sum of the differences to the other seats. The weights were tuned by matches. With
/// more than two seats `strike` did not help, because rivals often attack each other.
impl<const SEATS: usize> Features for Virus<SEATS> {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "squares", weight: 1.0, about: "squares held" },
        Feature {
            name: "safe",
            weight: by_seats(SEATS, 0.5, 0.3),
            about: "squares held that no rival's next move can take",
        },
        Feature {
            name: "strike",
            weight: by_seats(SEATS, 0.5, 0.0),
            about: "squares won by the best move, with those taken from others twice",
        },
        Feature {
            name: "area",
            weight: by_seats(SEATS, 0.1, 0.2),
            about: "empty squares nearer to the seat than to any other",
        },
        Feature { name: "rivals_out", weight: 5.0, about: "other seats that are out" },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let contrast = |numbers: [u32; SEATS]| margin(seat, numbers.map(|number| number as i32));
        wanted.fill(values, SQUARES, || contrast(self.squares.map(u128::count_ones)));
        wanted.fill(values, SAFE, || {
            let reaches: [u128; SEATS] = std::array::from_fn(|seat| self.reach(seat));
            contrast(std::array::from_fn(|seat| {
                let rivals = (0..SEATS).filter(|&rival| rival != seat);
                let threatened = rivals.fold(0, |threatened, rival| threatened | reaches[rival]);
                (self.squares[seat] & !threatened).count_ones()
            }))
        });
        wanted.fill(values, STRIKE, || contrast(std::array::from_fn(|seat| self.strike(seat))));
        wanted.fill(values, AREA, || contrast(self.areas()));
        // A seat that is out is not its own rival. Always 0 in a duel that is not over.
        let out = !self.standing & !(1 << seat.0) & ((1 << SEATS) - 1);
        values[OUT] = out.count_ones() as i32;
    }
}

/// A number from 0 to 31 on every square: a bitboard per binary digit.
type Numbers = [u128; 5];

/// Adds the numbers of each square.
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
    /// Returns the greatest [`Ordered::promise`] of a seat's moves, computed on all squares at once.
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

    /// Counts the empty squares that each seat reaches in fewer steps than all others.
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
    const MARKS: &'static [&'static str] = &["0", "1", "2", "3", "4", "5"];

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
        let rows = write_rows(size, size, |column, line| self.symbol(column, size - 1 - line));
        format!("{rows} {} {}", self.mover.0, self.plies)
    }

    fn ending(&self) -> &'static str {
        if self.alone() { "last one in" } else { "ply limit" }
    }
}

impl<const SEATS: usize> Virus<SEATS> {
    fn symbol(&self, column: usize, row: usize) -> char {
        let square = WIDTH * row + column;
        let holder = self.squares.iter().position(|squares| squares >> square & 1 == 1);
        holder.map_or('.', |seat| SEAT_DIGITS[seat])
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
            about: "the number of seats",
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
            about: "the squares infected with a square: its four edge neighbours or all eight",
        },
    ];
    const TURNS: Turns = Turns::RotateSkippingOut;
    const POSITION_FORM: &'static str =
        "the rows from the top, the seat to move and the plies played, as in ...1/..../..../0... 0 0";

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

    fn read_position(start: &Self, text: &str) -> Result<Self, String> {
        let size = usize::from(start.size);
        let [rows, mover, plies] = fields(text)?;
        let symbols = &SEAT_DIGITS[..SEATS];
        let mut squares = [0; SEATS];
        for piece in read_rows(rows, &vec![size; size], symbols)? {
            squares[piece.symbol] |= 1 << (WIDTH * (size - 1 - piece.line) + piece.column);
        }
        let mover = read_mover(mover, symbols)?;
        if squares[mover.index()] == 0 {
            return Err(format!("seat {} is to move but has no square", mover.0));
        }
        let plies = read_plies(plies, start.ply_limit())?;
        let standing = standing(&squares);
        Ok(Virus { squares, plies, mover, standing, ..start.clone() })
    }
}
