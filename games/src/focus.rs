//! Focus (Sid Sackson, 1964; also sold as Domination): stacks on the 52-square board.
//!
//! The board is 8 x 8 without the three squares at each corner. A stack belongs to the seat of its top piece. A move
//! takes the top k pieces of an own stack exactly k squares in a straight orthogonal line, over any squares, onto any
//! square. If the resulting stack has more than five pieces, the bottom pieces leave it: the mover's pieces go to the
//! mover's reserve, all others are captured and removed. Instead of moving, a player may place a reserve piece on any
//! square, with the same height rule.
//!
//! A seat that has neither a stack nor a reserve piece on its turn is out permanently, even if one of its pieces becomes
//! a top piece later; such a stack cannot move until it is covered. Turns rotate and skip seats that are out. The last
//! seat left wins. After 100 plies per seat the game ends at its ply limit: of the remaining seats, those with the most
//! stacks and reserve pieces together share the win. With more than two seats the winners share sixty points; with two
//! the payoffs are +1, 0 and -1.
//!
//! At the start all pieces are single. Two seats fill the inner 6 x 6 in alternating pairs, 18 each (Sackson, "A Gamut of
//! Games"). Three fill it in pairs, 12 each, each row shifted by one pair; a half turn exchanges seats 0 and 1 and keeps
//! seat 2. Four fill all 52 squares, 13 each, in the rotated quarters of the Domination set: a quarter turn clockwise
//! takes each seat to the next.
//!
//! ```text
//! two      A A B B A A    three    A A B B C C    four         A A C B
//!          B B A A B B             B B C C A A               B B B C B C
//!          A A B B A A             C C A A B B             A A A A C B C B
//!          B B A A B B             A A B B C C             B B B B C B C B
//!          A A B B A A             B B C C A A             D A D A D D D D
//!          B B A A B B             C C A A B B             D A D A C C C C
//!                                                            A D A D D D
//!                                                              D A C C
//! ```
//!
//! Squares are `a` to `h` from the left and 1 to 8 from the bottom. A move is `d3-d5`; its distance is the number of
//! pieces. Placing is `@d3`. A position is the rows from the top joined by `/`, their squares joined by `,`, each a stack
//! from bottom to top (`A` is seat 0) or `.`, without the missing corners; then the seat to move, the reserves, the seats
//! that are out (`-` for none) and the plies: `.,.,.,./A,A,B,B,A,A/`...` A 0,0 - 0`.
//!
//! The playout policy draws six moves and plays the best one by the move ordering, which prefers captures. Uniform games
//! take thousands of plies to end without the limit, such playouts a few hundred.
//!
//! A stack is a number: two bits per piece, the top piece lowest, and a one above the bottom piece. Taking, merging and
//! cutting stacks are shifts. The bitboard of each seat's stacks and the number of their moves are updated incrementally
//! for fast counting and sampling.

mod text;

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Ordered, Payoffs, Reseat, Seat,
    Turn, features, fill_margins,
};
use crate::random::{Random, below, mix, zobrist};

/// The ply limit per seat.
const PLIES_A_SEAT: u16 = 100;

/// The number of moves that the playout policy draws.
const PLAYOUT_DRAWS: u32 = 6;

/// The greatest height of a stack.
const TALLEST: usize = 5;

/// The most seats. Arrays by seat have this length, so that a piece's two bits are always a valid index.
const MOST_SEATS: usize = 4;

/// The stack without pieces: only the leading one.
const EMPTY: u32 = 1;

/// The 52 squares, row by row from a1.
const BOARD: u64 = 0x3c7e_ffff_ffff_7e3c;
const SQUARES: u32 = BOARD.count_ones();

/// The squares that a stack of each height can reach from each square.
static REACH: [[u64; 8]; 64] = {
    let mut reach = [[0; 8]; 64];
    let mut square = 0;
    while square < 64 {
        let (column, row) = (square as i32 % 8, square as i32 / 8);
        let mut height = 1;
        while height <= TALLEST {
            reach[square][height] = reach[square][height - 1];
            let steps = height as i32;
            let ends =
                [(column + steps, row), (column - steps, row), (column, row + steps), (column, row - steps)];
            let mut end = 0;
            while end < 4 {
                let (column, row) = ends[end];
                if 0 <= column && column < 8 && 0 <= row && row < 8 {
                    reach[square][height] |= BOARD & 1 << (8 * row + column);
                }
                end += 1;
            }
            height += 1;
        }
        square += 1;
    }
    reach
};

/// The number of squares in each set of [`REACH`].
static REACH_COUNT: [[u8; 8]; 64] = {
    let mut counts = [[0; 8]; 64];
    let mut square = 0;
    while square < 64 {
        let mut height = 0;
        while height < 8 {
            counts[square][height] = REACH[square][height].count_ones() as u8;
            height += 1;
        }
        square += 1;
    }
    counts
};

/// A key for each seat to move.
static TURN_KEYS: [u64; MOST_SEATS] = zobrist(b"fo turn");
/// A key for each set of seats that are out.
static OUT_KEYS: [u64; 1 << MOST_SEATS] = zobrist(b"fo out");
/// A key for each number of reserve pieces of each seat.
static RESERVE_KEYS: [u64; MOST_SEATS * 32] = zobrist(b"fo reser");

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Focus<const SEATS: usize> {
    /// The stack on each square.
    stacks: [u16; 64],
    /// The squares of each seat's stacks.
    owned: [u64; MOST_SEATS],
    key: u64,
    /// The number of moves of each seat's stacks.
    stack_moves: [u16; MOST_SEATS],
    reserve: [u8; MOST_SEATS],
    /// The pieces of each seat on the board and in its reserve.
    left: [u8; MOST_SEATS],
    plies: u16,
    mover: Seat,
    /// The seats that are out, a bit each.
    out: u8,
}

/// A move of pieces from a square to another, or the placing of a reserve piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// The source square, or [`RESERVE`].
    from: u8,
    to: u8,
}

/// The source of a placed piece.
const RESERVE: u8 = 64;

impl Move {
    /// Returns the number of moved pieces, which is the distance.
    #[inline]
    fn pieces(self) -> u32 {
        let apart = u32::from(self.from.abs_diff(self.to));
        if apart < 8 { apart } else { apart >> 3 }
    }
}

/// Returns the number of pieces of a stack.
#[inline]
fn height(stack: u32) -> usize {
    (stack.ilog2() >> 1) as usize
}

#[inline]
fn stack_key(square: u8, stack: u32) -> u64 {
    mix(u64::from(stack) << 6 | u64::from(square), 0)
}

/// The squares of a set, in ascending order.
struct Squares(u64);

impl Iterator for Squares {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.0 == 0 {
            return None;
        }
        let square = self.0.trailing_zeros() as u8;
        self.0 &= self.0 - 1;
        Some(square)
    }
}

impl<const SEATS: usize> Focus<SEATS> {
    const PLY_LIMIT: u16 = PLIES_A_SEAT * SEATS as u16;
    /// All seats, a bit each.
    const ALL: u8 = (1 << SEATS) - 1;
    /// The pieces each seat starts with.
    const PIECES: u8 = [0, 0, 18, 12, 13][SEATS];

    /// Creates a position without pieces.
    fn empty(mover: Seat, plies: u16) -> Self {
        let mut position = Focus {
            stacks: [EMPTY as u16; 64],
            owned: [0; MOST_SEATS],
            key: TURN_KEYS[mover.index()] ^ OUT_KEYS[0],
            stack_moves: [0; MOST_SEATS],
            reserve: [0; MOST_SEATS],
            left: [0; MOST_SEATS],
            plies,
            mover,
            out: 0,
        };
        for square in Squares(BOARD) {
            position.key ^= stack_key(square, EMPTY);
        }
        for seat in 0..SEATS {
            position.key ^= RESERVE_KEYS[seat * 32];
        }
        position
    }

    #[inline]
    fn stack(&self, square: u8) -> u32 {
        u32::from(self.stacks[usize::from(square & 63)])
    }

    /// Replaces the stack on a square and updates the derived fields except `left`.
    #[inline]
    fn set_stack(&mut self, square: u8, stack: u32) {
        let old = self.stack(square);
        self.key ^= stack_key(square, old) ^ stack_key(square, stack);
        let counts = &REACH_COUNT[usize::from(square & 63)];
        if old != EMPTY {
            let owner = (old & 3) as usize;
            self.owned[owner] &= !(1 << square);
            self.stack_moves[owner] -= u16::from(counts[height(old) & 7]);
        }
        if stack != EMPTY {
            let owner = (stack & 3) as usize;
            self.owned[owner] |= 1 << square;
            self.stack_moves[owner] += u16::from(counts[height(stack) & 7]);
        }
        self.stacks[usize::from(square & 63)] = stack as u16;
    }

    #[inline]
    fn set_reserve(&mut self, seat: Seat, pieces: u8) {
        let keys = &RESERVE_KEYS[seat.index() * 32..][..32];
        self.key ^= keys[usize::from(self.reserve[seat.index()] & 31)] ^ keys[usize::from(pieces & 31)];
        self.reserve[seat.index()] = pieces;
    }

    #[inline]
    fn can_move(&self, seat: Seat) -> bool {
        self.owned[seat.index()] != 0 || self.reserve[seat.index()] != 0
    }

    #[inline]
    fn is_out(&self, seat: Seat) -> bool {
        self.out >> seat.0 & 1 != 0
    }

    #[inline]
    fn others_are_out(&self) -> bool {
        self.out | 1 << self.mover.0 == Self::ALL
    }

    #[inline]
    fn over(&self) -> bool {
        self.others_are_out() || self.plies >= Self::PLY_LIMIT
    }

    /// Gives the turn to the next seat that can move; skipped seats are out.
    #[inline]
    fn advance(&mut self) {
        let mut next = self.mover.next(SEATS);
        // Ends at the mover at the latest, which owns the stack that it has just moved.
        while next != self.mover && (self.is_out(next) || !self.can_move(next)) {
            self.key ^= OUT_KEYS[usize::from(self.out & 15)];
            self.out |= 1 << next.0;
            self.key ^= OUT_KEYS[usize::from(self.out & 15)];
            next = next.next(SEATS);
        }
        self.key ^= TURN_KEYS[self.mover.index()] ^ TURN_KEYS[next.index()];
        self.mover = next;
    }

    /// Returns the stack that a move makes on its target, of any height.
    #[inline]
    fn merged(&self, mv: Move) -> u32 {
        let target = self.stack(mv.to);
        if mv.from == RESERVE {
            return target << 2 | u32::from(self.mover.0);
        }
        let bits = 2 * mv.pieces();
        target << bits | self.stack(mv.from) & ((1 << bits) - 1)
    }

    /// Counts the pieces that leave a stack that is too high: the mover's and those of others.
    #[inline]
    fn leaving(&self, merged: u32) -> (i32, i32) {
        let (mut own, mut others) = (0, 0);
        let mut bottom = merged >> (2 * TALLEST);
        while bottom > EMPTY {
            if bottom & 3 == u32::from(self.mover.0) {
                own += 1;
            } else {
                others += 1;
            }
            bottom >>= 2;
        }
        (own, others)
    }

    /// Returns the number of a seat's stacks and reserve pieces.
    fn holdings(&self, seat: Seat) -> u32 {
        self.owned[seat.index()].count_ones() + u32::from(self.reserve[seat.index()])
    }

    /// Returns the seats that share the win once the game is over, a bit each.
    fn winners(&self) -> u32 {
        let most = Seat::all(SEATS).filter(|&seat| !self.is_out(seat)).map(|seat| self.holdings(seat)).max();
        Seat::all(SEATS)
            .filter(|&seat| !self.is_out(seat) && Some(self.holdings(seat)) == most)
            .fold(0, |winners, seat| winners | 1 << seat.0)
    }
}

impl<const SEATS: usize> Game for Focus<SEATS> {
    type Move = Move;
    const SEATS: usize = SEATS;
    const PAYOFFS: Payoffs = Payoffs::for_seats(SEATS);

    #[inline]
    fn turn(&self) -> Turn {
        if self.over() { Turn::Over } else { Turn::Player(self.mover) }
    }

    fn moves(&self, out: &mut Vec<Move>) {
        if self.over() {
            return;
        }
        for from in Squares(self.owned[self.mover.index()]) {
            let reach = REACH[usize::from(from)][height(self.stack(from)) & 7];
            out.extend(Squares(reach).map(|to| Move { from, to }));
        }
        if self.reserve[self.mover.index()] > 0 {
            out.extend(Squares(BOARD).map(|to| Move { from: RESERVE, to }));
        }
    }

    #[inline]
    fn play(&mut self, mv: Move) {
        let mover = self.mover;
        let mut merged = self.merged(mv);
        let mut reserve = self.reserve[mover.index()];
        if mv.from == RESERVE {
            reserve -= 1;
        } else {
            self.set_stack(mv.from, self.stack(mv.from) >> (2 * mv.pieces()));
        }
        let mut bottom = merged >> (2 * TALLEST);
        if bottom > EMPTY {
            while bottom > EMPTY {
                if bottom & 3 == u32::from(mover.0) {
                    reserve += 1;
                } else {
                    self.left[(bottom & 3) as usize] -= 1;
                }
                bottom >>= 2;
            }
            merged = merged & ((1 << (2 * TALLEST)) - 1) | 1 << (2 * TALLEST);
        }
        self.set_stack(mv.to, merged);
        self.set_reserve(mover, reserve);
        self.plies += 1;
        self.advance();
    }

    fn payoff(&self, seat: Seat) -> i32 {
        Payoffs::of_winners(SEATS, self.winners(), seat)
    }

    fn ply_bound(&self) -> u32 {
        u32::from(Self::PLY_LIMIT)
    }

    fn count(&self, _scratch: &mut Vec<Move>) -> u64 {
        if self.over() {
            return 0;
        }
        let places = if self.reserve[self.mover.index()] > 0 { SQUARES } else { 0 };
        u64::from(u32::from(self.stack_moves[self.mover.index()]) + places)
    }

    fn sample(&self, random: &mut Random, scratch: &mut Vec<Move>) -> Move {
        let mut nth = below(random, self.count(scratch) as usize);
        for from in Squares(self.owned[self.mover.index()]) {
            let height = height(self.stack(from)) & 7;
            let count = usize::from(REACH_COUNT[usize::from(from)][height]);
            if nth < count {
                return Move { from, to: nth_square(REACH[usize::from(from)][height], nth) };
            }
            nth -= count;
        }
        Move { from: RESERVE, to: nth_square(BOARD, nth) }
    }

    #[inline]
    fn rollout(&self, random: &mut Random, scratch: &mut Vec<Move>) -> Move {
        let mut best = self.sample(random, scratch);
        for _ in 1..PLAYOUT_DRAWS {
            let other = self.sample(random, scratch);
            if self.promise(other) > self.promise(best) {
                best = other;
            }
        }
        best
    }
}

/// Returns the `nth` square of a set, counted from 0. Precondition: it exists.
#[inline]
fn nth_square(squares: u64, nth: usize) -> u8 {
    Squares(squares).nth(nth).expect("a set has the square that was counted")
}

impl Duel for Focus<2> {}
impl<const SEATS: usize> Deterministic for Focus<SEATS> {}

/// Moves that capture.
impl Noisy for Focus<2> {
    const NOISY: bool = true;

    fn noisy_moves(&self, out: &mut Vec<Move>) {
        let start = out.len();
        self.moves(out);
        let mut kept = start;
        for index in start..out.len() {
            let mv = out[index];
            if self.leaving(self.merged(mv)).1 > 0 {
                out[kept] = mv;
                kept += 1;
            }
        }
        out.truncate(kept);
    }
}

impl<const SEATS: usize> Keyed for Focus<SEATS> {
    fn key(&self) -> u64 {
        self.key
    }
}

impl<const SEATS: usize> Reseat for Focus<SEATS> {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        if self.over() || self.is_out(seat) || !self.can_move(seat) {
            return None;
        }
        let key = self.key ^ TURN_KEYS[self.mover.index()] ^ TURN_KEYS[seat.index()];
        Some(Focus { mover: seat, key, ..self.clone() })
    }
}

impl<const SEATS: usize> Ordered for Focus<SEATS> {
    const SLOTS: usize = 65 * 64;

    fn slot(&self, mv: Move) -> usize {
        usize::from(mv.from) * 64 + usize::from(mv.to)
    }

    /// Prefers captures, then pieces won for the reserve, then stacks taken from others, tall ones first.
    fn promise(&self, mv: Move) -> i32 {
        let (own, others) = self.leaving(self.merged(mv));
        let target = self.stack(mv.to);
        let taken = target != EMPTY && target & 3 != u32::from(self.mover.0);
        16 * others + 8 * own + if taken { 2 + height(target) as i32 } else { 0 }
            - i32::from(mv.from == RESERVE)
    }
}

features! {
    LEFT = "pieces", 1.0, "pieces not captured";
    STACKS = "stacks", 0.1, "stacks controlled";
    RESERVED = "reserve", 2.0, "pieces in the reserve";
    MOBILITY = "mobility", 0.08, "moves of the stacks";
    CONTROLLED = "controlled", 0.1, "pieces of any seat in the own stacks";
    _ = "buried", -0.2, "own pieces in stacks of others";
}

impl<const SEATS: usize> Features for Focus<SEATS> {
    /// Every value is the sum of the differences to the other seats.
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        fill_margins::<SEATS>(seat, wanted, values, |index, seat| self.feature(index, seat));
    }
}

impl<const SEATS: usize> Focus<SEATS> {
    /// Returns a seat's own value of a feature.
    #[inline]
    fn feature(&self, index: usize, seat: Seat) -> i32 {
        let place = seat.index();
        match index {
            LEFT => i32::from(self.left[place]),
            STACKS => self.owned[place].count_ones() as i32,
            RESERVED => i32::from(self.reserve[place]),
            MOBILITY => i32::from(self.stack_moves[place]),
            CONTROLLED => Squares(self.owned[place]).map(|square| height(self.stack(square)) as i32).sum(),
            _ => {
                let others = BOARD & !self.owned[place];
                Squares(others).map(|square| pieces_of(seat, self.stack(square))).sum()
            }
        }
    }
}

/// Counts the pieces of a seat in a stack.
fn pieces_of(seat: Seat, mut stack: u32) -> i32 {
    let mut count = 0;
    while stack > EMPTY {
        count += i32::from(stack & 3 == u32::from(seat.0));
        stack >>= 2;
    }
    count
}
