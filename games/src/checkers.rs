//! Checkers (English draughts): forced captures, and whoever cannot move has lost.
//!
//! Seat 0 is Black and moves first. The 32 dark squares are numbered as in PDN, row by row from Black's side: Black
//! starts on 1 to 12 and moves towards 32, White starts on 21 to 32 and moves towards 1. A man steps one square
//! diagonally forward, a king one square in any of the four directions. A jump goes over an adjacent piece of the
//! other side to the empty square behind it and captures it. A side that can jump must, with the piece and on the
//! path of its choice, until the jumping piece can jump no further; no piece is jumped twice. A man that reaches the
//! far row becomes a king and its move ends there, even if the king could jump on.
//!
//! The game ends when the side to move has no move: it has lost, whatever the clock says. It is a draw
//! - after forty quiet moves a side, that is when eighty plies in a row were neither a capture nor an advance of a
//!   man (they were all steps of kings), and
//! - when a position, with the same side to move, stands on the board for the third time.
//!
//! # Notation
//!
//! PDN: `11-15` is a step, `22x15x8` a capture with every square the piece lands on. A king can sometimes capture
//! the same pieces in several orders and end on the same square. These paths lead to the same position and are one
//! move; it is written by the path whose square numbers come first when compared one by one. Any of the paths is
//! understood, and so is the short form `22x8` where only one move fits. (Published counts differ here: with the
//! paths told apart there are 388,623,673 sequences of twelve plies, with one move a position 388,617,999.)
//!
//! A position is PDN's FEN, the side to move and then the squares of both sides with a `K` before kings, followed by
//! the number of quiet plies in a row: `W:W21,22,K9:B1,K30 4`. The clock may be left out and is then 0. What was on
//! the board before is not in the text, so that repetition is counted from there on.
//!
//! # Length
//!
//! A game has at most 13,440 plies. A man advances at most seven rows, which makes 4 * (7 + 6 + 5) advances a side
//! from the start or from any other placing of twelve men; there are at most 23 captures, as one piece remains; and
//! the eightieth quiet ply after any of these 144 + 23 ends the game.
//!
//! # Representation
//!
//! Bitboards of 35 bits: every second row is followed by one bit that is no square, so that the four directions are
//! the same four shifts everywhere and whatever leaves the board at a side falls on such a bit (Samuel 1959).
//!
//! Only kings have moved since the clock last stood at 0, so a position of that time is told from the others by its
//! kings alone, 64 bits. They are kept on a stack that only steps of kings write to. [`Game::after`] does not copy:
//! it raises the floor of the stack, above which the position that is visited does as it likes and below which
//! nothing is overwritten, and afterwards puts back the boards. Where the stack would be too short for that, which
//! takes some eighty steps of kings on one line of search, it copies.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn,
};
use crate::random::{Random, below, mix};
use crate::setup::{Parameter, Parameters, Setup, SetupError, Turns};

/// A position with what the repetition rule must remember.
#[derive(Clone, Debug)]
pub struct Checkers {
    board: Board,
    /// The kings as they stood before each step of a king, by [`Board::kings_word`].
    history: [u64; STACK],
}

/// Everything but the past.
#[derive(Clone, Copy, Debug)]
struct Board {
    /// The pieces of the side to move, kings included.
    own: u64,
    /// The pieces of the other side.
    other: u64,
    /// The kings of both sides.
    kings: u64,
    mover: Seat,
    /// The clock: plies since the last capture or advance of a man.
    quiet: u8,
    /// Drawn by the clock or by repetition, unless the mover has no move.
    drawn: bool,
    /// The history's words below this belong to the positions that led to the innermost [`Game::after`].
    floor: u8,
    /// The history since the clock last stood at 0, as far as it is known, begins here
    known: u8,
    /// and ends before here. Never more than the clock above the floor.
    top: u8,
}

/// A step or a capture: the captured pieces in the low 35 bits, then the squares it leads from and to, as bits of
/// the boards. From and to are the same after a round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move(u64);

const FROM: u32 = 48;
const TO: u32 = 56;

impl Move {
    #[inline]
    const fn new(from: u32, to: u32, captured: u64) -> Move {
        Move(captured | (from as u64) << FROM | (to as u64) << TO)
    }

    #[inline]
    const fn from(self) -> u32 {
        (self.0 >> FROM) as u32 & 63
    }

    #[inline]
    const fn to(self) -> u32 {
        (self.0 >> TO) as u32 & 63
    }

    #[inline]
    const fn captured(self) -> u64 {
        self.0 & SQUARES
    }
}

/// Quiet plies that make a draw, and the most words that one line of play needs above the floor.
const QUIET_LIMIT: u8 = 80;

/// Words of history: room for the line that led to a position and for the one that leads on.
const STACK: usize = 2 * QUIET_LIMIT as usize;

/// The bits that are squares: all of 35 but every ninth.
const SQUARES: u64 = 0x7_ffff_ffff & !(1 << 8 | 1 << 17 | 1 << 26);

/// The bit of a square by its number, 1 to 32.
const fn bit(number: u32) -> u32 {
    number - 1 + (number - 1) / 8
}

/// The number of the square that a bit stands for.
const fn number(bit: u32) -> u32 {
    bit - bit / 9 + 1
}

/// A board of squares by their numbers.
const fn board_of(numbers: &[u32]) -> u64 {
    let mut board = 0;
    let mut index = 0;
    while index < numbers.len() {
        board |= 1 << bit(numbers[index]);
        index += 1;
    }
    board
}

/// The squares of a row, 0 at Black's side to 7 at White's.
const fn row(row: u32) -> u64 {
    board_of(&[4 * row + 1, 4 * row + 2, 4 * row + 3, 4 * row + 4])
}

/// A board for Black and the same turned round for White.
const fn by_seat(black: u64) -> [u64; 2] {
    [black, black.reverse_bits() >> 29]
}

/// Where men of either seat become kings. A man never comes to the row behind it.
const CROWN: [u64; 2] = by_seat(row(7));
const FAR_ROWS: u64 = CROWN[0] | CROWN[1];

/// The 32 bits that are squares, side by side.
#[inline]
const fn dense(board: u64) -> u64 {
    board & 0xff | board >> 1 & 0xff00 | board >> 2 & 0xff_0000 | board >> 3 & 0xff00_0000
}

impl Board {
    /// The pieces of a seat.
    #[inline]
    fn pieces(&self, seat: Seat) -> u64 {
        if seat == self.mover { self.own } else { self.other }
    }

    /// The mover's men.
    #[inline]
    fn men(&self) -> u64 {
        self.own & !self.kings
    }

    #[inline]
    fn empty(&self) -> u64 {
        SQUARES & !(self.own | self.other)
    }

    /// The mover's pieces that may go down, towards 32, and those that may go up.
    #[inline]
    fn walkers(&self) -> (u64, u64) {
        // All ones for White, all zeros for Black.
        let white = u64::from(self.mover.0).wrapping_neg();
        (self.own & (self.kings | !white), self.own & (self.kings | white))
    }

    /// The mover's steps down and up the board, each a word of the pieces that can go left in its low half and of
    /// those that can go right in its high half. No piece steps down from the last four bits nor up from the first
    /// four, so that half a word is enough; the words of steps up are shifted by four for it.
    #[inline]
    fn steps(&self) -> (u64, u64) {
        self.steps_to(self.empty())
    }

    /// [`Board::steps`] to the squares of `goals`.
    #[inline]
    fn steps_to(&self, goals: u64) -> (u64, u64) {
        let (down, up) = self.walkers();
        let down = (down & goals >> 4) | (down & goals >> 5) << 32;
        // Up and to the right is four bits back, to the left five.
        let up = (up & goals << 5) >> 4 | (up & goals << 4) >> 4 << 32;
        (down, up)
    }

    /// The mover's pieces that can jump.
    #[inline]
    fn jumpers(&self) -> u64 {
        let (down, up) = self.walkers();
        let (other, empty) = (self.other, self.empty());
        down & (other >> 4 & empty >> 8 | other >> 5 & empty >> 10)
            | up & (other << 4 & empty << 8 | other << 5 & empty << 10)
    }

    #[inline]
    fn can_move(&self) -> bool {
        let (down, up) = self.steps();
        down | up != 0 || self.jumpers() != 0
    }

    /// This board with the other side to move.
    #[inline]
    fn turned(self) -> Board {
        Board { own: self.other, other: self.own, mover: self.mover.other(), ..self }
    }

    /// Appends the captures of the mover that start on the squares of `jumpers`.
    fn captures(&self, jumpers: u64, out: &mut Vec<Move>) {
        let empty = self.empty();
        let mut men = jumpers & !self.kings;
        while men != 0 {
            let from = men & men.wrapping_neg();
            men ^= from;
            if self.mover == Seat::FIRST {
                self.man_jumps::<true>(from, from, 0, empty, out);
            } else {
                self.man_jumps::<false>(from, from, 0, empty, out);
            }
        }
        let mut kings = jumpers & self.kings;
        while kings != 0 {
            let from = kings & kings.wrapping_neg();
            kings ^= from;
            // The king has left its square and may come back to it.
            self.king_jumps(from, from, 0, empty | from, out.len(), out);
        }
    }

    /// Appends all ways of a man to go on from `at` after capturing `captured`. On the far row there is none.
    fn man_jumps<const DOWN: bool>(
        &self,
        from: u64,
        mut at: u64,
        mut captured: u64,
        empty: u64,
        out: &mut Vec<Move>,
    ) {
        loop {
            let [left, right] =
                if DOWN { [at << 4, at << 5] } else { [at >> 5, at >> 4] }.map(|over| over & self.other);
            let landing = if DOWN { [left << 4, right << 5] } else { [left >> 5, right >> 4] };
            let landing = landing.map(|landing| landing & empty);
            if landing[0] != 0 {
                if landing[1] != 0 {
                    self.man_jumps::<DOWN>(from, landing[1], captured | right, empty, out);
                }
                captured |= left;
                at = landing[0];
            } else if landing[1] != 0 {
                captured |= right;
                at = landing[1];
            } else {
                break;
            }
        }
        out.push(Move::new(from.trailing_zeros(), at.trailing_zeros(), captured));
    }

    /// Appends all ways of a king to go on from `at` after capturing `captured`; those listed from `start` on are
    /// its own.
    fn king_jumps(&self, from: u64, at: u64, captured: u64, empty: u64, start: usize, out: &mut Vec<Move>) {
        let other = self.other & !captured;
        let over = [at >> 5, at >> 4, at << 4, at << 5].map(|over| over & other);
        let landing = [over[0] >> 5, over[1] >> 4, over[2] << 4, over[3] << 5].map(|landing| landing & empty);
        for (over, landing) in over.into_iter().zip(landing) {
            if landing != 0 {
                self.king_jumps(from, landing, captured | over, empty, start, out);
            }
        }
        if landing == [0; 4] {
            let mv = Move::new(from.trailing_zeros(), at.trailing_zeros(), captured);
            // Only a king that went round four pieces may have had another way to capture the same.
            if captured.count_ones() < 4 || !out[start..].contains(&mv) {
                out.push(mv);
            }
        }
    }

    /// The kings of both sides, a bit a square, the mover's first.
    #[inline]
    fn kings_word(&self) -> u64 {
        dense(self.own & self.kings) | dense(self.other & self.kings) << 32
    }
}

/// The step that a bit of the word of steps down stands for.
#[inline]
const fn step_down(bit: u32) -> Move {
    let from = bit & 31;
    Move::new(from, from + 4 + (bit >> 5), 0)
}

/// The step that a bit of the word of steps up stands for.
#[inline]
const fn step_up(bit: u32) -> Move {
    let from = (bit & 31) + 4;
    Move::new(from, from - 5 + (bit >> 5), 0)
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// How many bits are set in each byte and those below it, by byte.
#[inline]
const fn sums(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x55 * ONES);
    let nibbles = (pairs & 0x33 * ONES) + (pairs >> 2 & 0x33 * ONES);
    (nibbles + (nibbles >> 4) & 0x0f * ONES).wrapping_mul(ONES)
}

/// The place of the set bit of a byte that has so many set bits below it.
const SELECT: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut place, mut rank) = (0, 0);
        while place < 8 {
            if byte >> place & 1 == 1 {
                table[byte][rank] = place;
                rank += 1;
            }
            place += 1;
        }
        byte += 1;
    }
    table
};

/// The place of the set bit of `word` that has `below` set bits below it.
#[inline]
fn select(word: u64, sums: u64, below: u64) -> u32 {
    // The bytes up to which no more than `below` bits are set.
    let passed = (below * ONES | 0x80 * ONES) - sums & 0x80 * ONES;
    let shift = (!passed & 0x80 * ONES).trailing_zeros() - 7;
    let rank = below - (sums << 8 >> shift & 0xff);
    shift + u32::from(SELECT[(word >> shift & 0xff) as usize][rank as usize & 7])
}

impl Checkers {
    /// A position without a past but with a clock.
    fn new(own: u64, other: u64, kings: u64, mover: Seat, quiet: u8) -> Checkers {
        let drawn = quiet == QUIET_LIMIT;
        let board = Board { own, other, kings, mover, quiet, drawn, floor: 0, known: 0, top: 0 };
        Checkers { board, history: [0; STACK] }
    }

    /// The part of the history that the rules look at.
    #[inline]
    fn past(&self) -> &[u64] {
        &self.history[usize::from(self.board.known)..usize::from(self.board.top)]
    }

    /// Whether the position on the board stood there twice before. Only every second ply has the same side to move,
    /// and two plies are not enough to come back.
    fn third_time(&self) -> bool {
        let now = self.board.kings_word();
        let mut times = 1;
        for then in self.past().rchunks_exact(2).skip(1) {
            times += u32::from(then[0] == now);
        }
        times >= 3
    }

    /// Raises the floor to protect the history, then visits this position or a copy of it; whatever the visit does
    /// is undone.
    #[inline]
    fn protected<R>(&mut self, visit: impl FnOnce(&mut Self) -> R) -> R {
        let board = self.board;
        let mut copy;
        let place = if usize::from(board.top) + usize::from(QUIET_LIMIT) <= STACK {
            &mut *self
        } else {
            copy = self.at_the_bottom();
            &mut *copy
        };
        place.board.floor = place.board.top;
        let result = visit(place);
        self.board = board;
        result
    }

    /// A copy with its part of the history at the bottom of the stack. On the heap, as every visit would have to
    /// leave room for it in its frame.
    #[cold]
    fn at_the_bottom(&self) -> Box<Checkers> {
        let past = self.past();
        let board = Board { floor: 0, known: 0, top: past.len() as u8, ..self.board };
        let mut copy = Box::new(Checkers { board, history: [0; STACK] });
        copy.history[..past.len()].copy_from_slice(past);
        copy
    }
}

impl PartialEq for Checkers {
    /// Where on the stack the history lies makes no difference.
    fn eq(&self, other: &Checkers) -> bool {
        let shown =
            |board: Board| (board.own, board.other, board.kings, board.mover, board.quiet, board.drawn);
        shown(self.board) == shown(other.board) && self.past() == other.past()
    }
}

impl Eq for Checkers {}

impl Game for Checkers {
    type Move = Move;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.board.drawn || !self.board.can_move() { Turn::Over } else { Turn::Player(self.board.mover) }
    }

    fn moves(&self, out: &mut Vec<Move>) {
        if self.board.drawn {
            return;
        }
        let jumpers = self.board.jumpers();
        if jumpers != 0 {
            return self.board.captures(jumpers, out);
        }
        let (mut down, mut up) = self.board.steps();
        while down != 0 {
            out.push(step_down(down.trailing_zeros()));
            down &= down - 1;
        }
        while up != 0 {
            out.push(step_up(up.trailing_zeros()));
            up &= up - 1;
        }
    }

    #[inline]
    fn play(&mut self, mv: Move) {
        let board = &mut self.board;
        let (from, to, captured) = (1u64 << mv.from(), 1u64 << mv.to(), mv.captured());
        let king = board.kings & from != 0;
        let quiet = king && captured == 0;
        if quiet {
            self.history[usize::from(board.top)] = board.kings_word();
        }
        let crowned = king || to & FAR_ROWS != 0;
        board.kings = board.kings & !(from | captured) | if crowned { to } else { 0 };
        (board.own, board.other) = (board.other & !captured, board.own & !from | to);
        board.mover = board.mover.other();
        if quiet {
            board.quiet += 1;
            board.top += 1;
            board.drawn = board.quiet >= QUIET_LIMIT;
            // A position can come back after four plies and for the third time after eight.
            if board.top - board.known >= 8 && self.third_time() {
                self.board.drawn = true;
            }
        } else {
            board.quiet = 0;
            board.known = board.floor;
            board.top = board.floor;
        }
    }

    fn payoff(&self, seat: Seat) -> i32 {
        match self.board.can_move() {
            true => 0,
            false if seat == self.board.mover => -1,
            false => 1,
        }
    }

    fn ply_bound(&self) -> u32 {
        (144 + 23 + 1) * u32::from(QUIET_LIMIT)
    }

    #[inline]
    fn after<R>(&mut self, mv: Move, visit: impl FnOnce(&mut Self) -> R) -> R {
        self.protected(|place| {
            place.play(mv);
            visit(place)
        })
    }

    #[inline]
    fn count(&self, scratch: &mut Vec<Move>) -> u64 {
        if self.board.drawn {
            return 0;
        }
        let jumpers = self.board.jumpers();
        if jumpers != 0 {
            let start = scratch.len();
            self.board.captures(jumpers, scratch);
            let count = scratch.len() - start;
            scratch.truncate(start);
            return count as u64;
        }
        let (down, up) = self.board.steps();
        u64::from(down.count_ones() + up.count_ones())
    }

    #[inline]
    fn sample(&self, random: &mut Random, scratch: &mut Vec<Move>) -> Move {
        let jumpers = self.board.jumpers();
        if jumpers != 0 {
            scratch.clear();
            self.board.captures(jumpers, scratch);
            return scratch[below(random, scratch.len())];
        }
        let (down, up) = self.board.steps();
        let sums_down = sums(down);
        let sums_up = sums(up);
        let downs = sums_down >> 56;
        let pick = below(random, (downs + (sums_up >> 56)) as usize) as u64;
        if pick < downs {
            step_down(select(down, sums_down, pick))
        } else {
            step_up(select(up, sums_up, pick - downs))
        }
    }
}

impl Duel for Checkers {}
impl Deterministic for Checkers {}

impl Keyed for Checkers {
    const PATH_DEPENDENT: bool = true;

    /// Mixed from the boards when it is asked for: playouts do not ask, and three words are quickly mixed.
    #[inline]
    fn key(&self) -> u64 {
        let Board { own, other, kings, mover, .. } = self.board;
        // Three boards of 35 bits and the turn side by side in two words.
        let first = own | kings << 35;
        let second = other | kings >> 29 << 35 | u64::from(mover.0) << 63;
        mix(mix(first, 0), second)
    }
}

impl Reseat for Checkers {
    /// The clock goes on and repetition is counted afresh: what stood on the board before had other turns.
    fn reseat(&self, seat: Seat) -> Option<Self> {
        let mut position = self.clone();
        position.give_turn(seat).then_some(position)
    }

    #[inline]
    fn after_reseat<R>(&mut self, seat: Seat, visit: impl FnOnce(&mut Self) -> R) -> Option<R> {
        self.protected(|place| place.give_turn(seat).then(|| visit(place)))
    }
}

impl Checkers {
    /// Gives the turn to a seat, if it has a move.
    #[inline]
    fn give_turn(&mut self, seat: Seat) -> bool {
        if seat != self.board.mover {
            self.board = self.board.turned();
            self.board.known = self.board.top;
        }
        self.board.can_move()
    }
}

impl Noisy for Checkers {
    const NOISY: bool = true;

    fn noisy_moves(&self, out: &mut Vec<Move>) {
        if !self.board.drawn {
            self.board.captures(self.board.jumpers(), out);
        }
    }

    /// A capture is compulsory.
    #[inline]
    fn may_stand_pat(&self) -> bool {
        self.board.jumpers() == 0
    }
}

impl Ordered for Checkers {
    /// The squares from and to.
    const SLOTS: usize = 32 * 32;

    #[inline]
    fn slot(&self, mv: Move) -> usize {
        (number(mv.from()) * 32 + number(mv.to()) - 33) as usize
    }

    /// The most captured first, then new kings, then steps to the centre; steps off the back row and into a jump
    /// last.
    fn promise(&self, mv: Move) -> i32 {
        let board = &self.board;
        let captured = mv.captured();
        if captured != 0 {
            return 10 * ones(captured) + 5 * ones(captured & board.kings);
        }
        let (from, to) = (1u64 << mv.from(), 1u64 << mv.to());
        let man = board.kings & from == 0;
        let stepped = Board { own: board.own & !from | to, ..*board }.turned();
        8 * i32::from(man && to & FAR_ROWS != 0) + 2 * i32::from(to & CENTRE != 0)
            - 2 * i32::from(man && from & HOME[board.mover.index()] != 0)
            - 6 * i32::from(stepped.reach() & to != 0)
    }
}

/// The eight squares in the middle.
const CENTRE: u64 = board_of(&[10, 11, 14, 15, 18, 19, 22, 23]);
/// The row that the other side's men want to reach.
const HOME: [u64; 2] = by_seat(row(0));
/// The two squares of it that together keep single men from passing.
const BRIDGE: [u64; 2] = by_seat(board_of(&[1, 3]));
/// Rows by a binary digit of their distance from the seat's own side.
const DIGITS: [[u64; 2]; 3] = [
    by_seat(row(1) | row(3) | row(5) | row(7)),
    by_seat(row(2) | row(3) | row(6) | row(7)),
    by_seat(row(4) | row(5) | row(6) | row(7)),
];

impl Board {
    /// The squares, empty or not, where a piece of the other side could be jumped by the mover.
    #[inline]
    fn reach(&self) -> u64 {
        let (down, up) = self.walkers();
        let empty = self.empty();
        down << 4 & empty >> 4 | down << 5 & empty >> 5 | up >> 4 & empty << 4 | up >> 5 & empty << 5
    }

    /// The empty squares where the mover's pieces could not be jumped.
    #[inline]
    fn safe(&self) -> u64 {
        self.empty() & !self.turned().reach()
    }

    /// The mover's kings that can neither jump nor step to where they could not be jumped.
    fn trapped_kings(&self) -> u64 {
        let safe = self.safe();
        let near = safe >> 4 | safe >> 5 | safe << 4 | safe << 5;
        self.own & self.kings & !near & !self.jumpers()
    }

    /// The mover's men that have no piece of the other side before them, however they turn.
    fn runaways(&self) -> u64 {
        let mut barred = self.other;
        for _ in 0..7 {
            barred |= SQUARES
                & match self.mover {
                    Seat::FIRST => barred >> 4 | barred >> 5,
                    _ => barred << 4 | barred << 5,
                };
        }
        self.own & !self.kings & !barred
    }

    /// Whether the mover has "the move", the last word when men walk up to each other: the pieces on every second
    /// row, counted from the mover's side, are odd in number.
    fn has_the_move(&self) -> bool {
        let system = SQUARES & !DIGITS[0][self.mover.index()];
        ((self.own | self.other) & system).count_ones() % 2 == 1
    }
}

const MEN: usize = 0;
const KINGS: usize = 1;
const TRADE_DOWN: usize = 2;
const ADVANCEMENT: usize = 3;
const BACK_ROW: usize = 4;
const BRIDGES: usize = 5;
const CENTRE_KINGS: usize = 6;
const MOBILITY: usize = 7;
const EXPOSED: usize = 8;
const TRAPPED_KINGS: usize = 9;
const RUNAWAYS: usize = 10;
const THE_MOVE: usize = 11;

impl Features for Checkers {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "men", weight: 1.0, about: "men" },
        Feature { name: "kings", weight: 1.6, about: "kings" },
        Feature {
            name: "trade_down",
            weight: 0.03,
            about: "the lead in pieces times the pieces off the board",
        },
        Feature { name: "advancement", weight: 0.04, about: "rows that men have advanced" },
        Feature { name: "back_row", weight: 0.2, about: "men on the own back row" },
        Feature { name: "bridge", weight: 0.25, about: "1 with men on 1 and 3, for White on 32 and 30" },
        Feature { name: "centre_kings", weight: 0.1, about: "kings on the eight squares in the middle" },
        Feature {
            name: "mobility",
            weight: 0.05,
            about: "steps to squares where the piece could not be jumped",
        },
        Feature { name: "exposed", weight: -0.4, about: "pieces that the other side could jump" },
        Feature { name: "trapped_kings", weight: -0.3, about: "kings that cannot move without being jumped" },
        Feature { name: "runaways", weight: 0.3, about: "men with nothing of the other side before them" },
        Feature {
            name: "the_move",
            weight: 0.1,
            about: "1 for having the move, while both sides have as many pieces",
        },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let own = if seat == self.board.mover { self.board } else { self.board.turned() };
        let views = [own, own.turned()];
        let mut set = |index: usize, value: fn(&Board) -> i32| {
            if wanted.has(index) {
                let [own, other] = [&views[0], &views[1]].map(value);
                values[index] = own - other;
            }
        };
        set(MEN, |board| ones(board.men()));
        set(KINGS, |board| ones(board.own & board.kings));
        set(ADVANCEMENT, |board| {
            let digit = |rows: [u64; 2]| ones(board.men() & rows[board.mover.index()]);
            digit(DIGITS[0]) + 2 * digit(DIGITS[1]) + 4 * digit(DIGITS[2])
        });
        set(BACK_ROW, |board| ones(board.men() & HOME[board.mover.index()]));
        set(BRIDGES, |board| {
            let bridge = BRIDGE[board.mover.index()];
            i32::from(board.men() & bridge == bridge)
        });
        set(CENTRE_KINGS, |board| ones(board.own & board.kings & CENTRE));
        set(MOBILITY, |board| {
            let (down, up) = board.steps_to(board.safe());
            ones(down) + ones(up)
        });
        set(EXPOSED, |board| ones(board.own & board.turned().reach()));
        set(TRAPPED_KINGS, |board| ones(board.trapped_kings()));
        set(RUNAWAYS, |board| ones(board.runaways()));
        let lead = ones(own.own) - ones(own.other);
        if wanted.has(TRADE_DOWN) {
            values[TRADE_DOWN] = lead * (24 - ones(own.own | own.other));
        }
        if wanted.has(THE_MOVE) {
            let side = if seat == self.board.mover { 1 } else { -1 };
            let sign = if self.board.has_the_move() { side } else { -side };
            values[THE_MOVE] = if lead == 0 { sign } else { 0 };
        }
    }
}

/// The number of squares on a board.
#[inline]
const fn ones(board: u64) -> i32 {
    board.count_ones() as i32
}

impl Notation for Checkers {
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
        let squares =
            text.split(if capture { 'x' } else { '-' }).map(square).collect::<Option<Vec<u32>>>()?;
        let &[from, .., to] = squares.as_slice() else { return None };
        let mut moves = Vec::new();
        self.moves(&mut moves);
        moves.retain(|mv| (mv.from(), mv.to(), mv.captured() != 0) == (from, to, capture));
        let captured = if capture { jumped(&squares) } else { Some(0) };
        // The whole path first: the short form of one move may be the whole path of another.
        if let Some(&mv) = moves.iter().find(|mv| Some(mv.captured()) == captured) {
            return (capture || squares.len() == 2).then_some(mv);
        }
        (moves.len() == 1 && squares.len() == 2).then(|| moves[0])
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

/// The bit of the square that a text numbers.
fn square(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let number = text.parse::<u32>().ok().filter(|number| digits && (1..=32).contains(number))?;
    Some(bit(number))
}

/// What a path of jumps goes over, or nothing where it is no path of jumps over different squares.
fn jumped(path: &[u32]) -> Option<u64> {
    path.windows(2).try_fold(0, |captured, jump| {
        let middle = match jump[0].abs_diff(jump[1]) {
            8 | 10 => 1u64 << ((jump[0] + jump[1]) / 2),
            _ => return None,
        };
        (captured & middle == 0).then_some(captured | middle)
    })
}

/// Finds the first path, by ascending numbers, from `at` over every piece of `captured` to `to`; appends the squares
/// where it lands. A man has only one.
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
    /// `b` and `w` for men, `B` and `W` for kings.
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

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        let [own, other] = by_seat(row(0) | row(1) | row(2));
        Ok(Checkers::new(own, other, 0, Seat::FIRST, 0))
    }

    fn from_position(_parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        read_position(text).map_err(|reason| SetupError::Position {
            game: Self::NAME,
            reason,
            form: "side to move, White's and Black's squares, quiet plies, as in W:W21,22,K9:B1,K30 4",
        })
    }
}

/// Reads a position's text, or says what is wrong with it.
fn read_position(text: &str) -> Result<Checkers, String> {
    let (fen, clock) = text.split_once(' ').unwrap_or((text, "0"));
    let quiet = clock
        .parse::<u8>()
        .ok()
        .filter(|quiet| *quiet <= QUIET_LIMIT && quiet.to_string() == clock)
        .ok_or("the number of quiet plies is a whole number from 0 to 80")?;
    let parts: Vec<&str> = fen.split(':').collect();
    let &[mover, first, second] = parts.as_slice() else {
        return Err("there must be three parts with : between".to_string());
    };
    let seat_of = |letter: &str| match letter {
        "B" => Some(Seat::FIRST),
        "W" => Some(Seat::SECOND),
        _ => None,
    };
    let mover = seat_of(mover).ok_or("the side to move is B or W")?;
    let mut pieces = [0u64; 2];
    let mut kings = 0;
    let mut listed = [false; 2];
    for part in [first, second] {
        let letter = part.get(..1).and_then(seat_of);
        let seat = letter.ok_or("a side's squares begin with its letter, B or W")?.index();
        if std::mem::replace(&mut listed[seat], true) {
            return Err("a side is listed twice".to_string());
        }
        for item in part[1..].split(',').filter(|_| part.len() > 1) {
            let name = item.strip_prefix('K').unwrap_or(item);
            let at = 1 << square(name).ok_or_else(|| format!("`{item}` is no square from 1 to 32"))?;
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
