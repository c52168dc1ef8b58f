//! Checkers (English draughts): captures are compulsory, and a side that cannot move has lost.
//!
//! Seat 0 is Black and moves first. The 32 dark squares are numbered as in PDN, row by row from Black's side: Black starts
//! on 1 to 12 and moves towards 32, White starts on 21 to 32 and moves towards 1. A man steps one square diagonally
//! forward, a king one square in any of the four directions. A jump over an adjacent piece of the other side to the empty
//! square behind it captures that piece. A side that can jump must do so, with any piece and on any path, until the
//! jumping piece can jump no further; no piece is jumped twice. A man that reaches the far row becomes a king and its move
//! ends there, even if the king could jump on.
//!
//! The game ends when the side to move has no move: it has lost, regardless of the clock. The game is a draw
//! - after forty quiet moves per side: eighty consecutive plies without a capture or an advance of a man, and
//! - when a position occurs for the third time with the same side to move.
//!
//! # Notation
//!
//! Moves are PDN: `11-15` is a step, `22x15x8` a capture with every landing square. A king can sometimes capture the same
//! pieces in several orders and end on the same square. These paths lead to the same position and are one move, written
//! as the path with the lexicographically smallest square numbers. The parser reads any of the paths, and the short form
//! `22x8` if it is unique. (Published counts differ here: there are 388,623,673 sequences of twelve plies with distinct
//! paths, and 388,617,999 with one move per position.)
//!
//! A position is PDN's FEN, the side to move and then the squares of both sides with a `K` before kings, followed by the
//! number of consecutive quiet plies: `W:W21,22,K9:B1,K30 4`. The clock is optional, with a default of 0. The text has no
//! history, so repetitions are counted from the position on.
//!
//! # Length
//!
//! A game has at most 13,440 plies. A man advances at most seven rows, which makes 4 * (7 + 6 + 5) advances per side from
//! any placing of twelve men; there are at most 23 captures, as one piece remains; and the eightieth quiet ply after any
//! of these 144 + 23 ends the game.
//!
//! # Representation
//!
//! Bitboards have 35 bits: an unused bit follows every second row, so that the four directions are the same four shifts on
//! every square and moves off a side land on such a bit (Samuel 1959).
//!
//! Only kings have moved since the clock was last 0, so the kings alone, 64 bits, identify the positions since then. They
//! are on a stack that only king steps push to. [`Game::after`] does not copy: it raises the floor of the stack, which
//! protects the entries below from the visitor, and restores the boards afterwards. If the stack has no room, after some
//! eighty king steps on one line of search, it copies.

mod evaluation;
mod notation;

use crate::game::{Deterministic, Duel, Game, Keyed, Noisy, Payoffs, Reseat, Seat, Turn};
use crate::random::{Random, below, mix};

/// A position with the history for the repetition rule.
#[derive(Clone, Debug)]
pub struct Checkers {
    board: Board,
    /// The kings before each king step, by [`Board::kings_word`].
    history: [u64; STACK],
}

/// The position without its history.
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
    /// Whether the game is drawn by the clock or by repetition, unless the mover has no move.
    drawn: bool,
    /// The history below this index belongs to callers of the innermost [`Game::after`].
    floor: u8,
    /// The start of the known history since the clock was last 0.
    known: u8,
    /// The end of the history, at most the clock above the floor.
    top: u8,
}

/// A step or a capture: the captured pieces in the low 35 bits, then the bit numbers of the source and the target, which
/// are equal for a round trip.
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

/// The quiet plies that make a draw, and the most history that one line of play needs above the floor.
const QUIET_LIMIT: u8 = 80;

/// The length of the history: room for the line that leads to a position and for a line from it.
const STACK: usize = 2 * QUIET_LIMIT as usize;

/// The bits that are squares: 35 bits except every ninth.
const SQUARES: u64 = 0x7_ffff_ffff & !(1 << 8 | 1 << 17 | 1 << 26);

/// Returns the bit of a square by its number, 1 to 32.
const fn bit(number: u32) -> u32 {
    number - 1 + (number - 1) / 8
}

/// Returns the number of the square of a bit.
const fn number(bit: u32) -> u32 {
    bit - bit / 9 + 1
}

/// Returns the board of squares given by their numbers.
const fn board_of(numbers: &[u32]) -> u64 {
    let mut board = 0;
    let mut index = 0;
    while index < numbers.len() {
        board |= 1 << bit(numbers[index]);
        index += 1;
    }
    board
}

/// Returns the squares of a row, from 0 at Black's side to 7 at White's.
const fn row(row: u32) -> u64 {
    board_of(&[4 * row + 1, 4 * row + 2, 4 * row + 3, 4 * row + 4])
}

/// Returns a board for Black and the same rotated for White.
const fn by_seat(black: u64) -> [u64; 2] {
    [black, black.reverse_bits() >> 29]
}

/// The row where men of each seat become kings. A man never moves to its own back row, so [`FAR_ROWS`] serves both.
const CROWN: [u64; 2] = by_seat(row(7));
const FAR_ROWS: u64 = CROWN[0] | CROWN[1];

/// Packs the 32 squares into adjacent bits.
#[inline]
const fn dense(board: u64) -> u64 {
    board & 0xff | board >> 1 & 0xff00 | board >> 2 & 0xff_0000 | board >> 3 & 0xff00_0000
}

impl Board {
    /// Returns the pieces of a seat.
    #[inline]
    fn pieces(&self, seat: Seat) -> u64 {
        if seat == self.mover { self.own } else { self.other }
    }

    /// Returns the mover's men.
    #[inline]
    fn men(&self) -> u64 {
        self.own & !self.kings
    }

    #[inline]
    fn empty(&self) -> u64 {
        SQUARES & !(self.own | self.other)
    }

    /// Returns the mover's pieces that may move down, towards 32, and those that may move up.
    #[inline]
    fn walkers(&self) -> (u64, u64) {
        // All ones for White, all zeros for Black.
        let white = u64::from(self.mover.0).wrapping_neg();
        (self.own & (self.kings | !white), self.own & (self.kings | white))
    }

    /// Returns the mover's steps down and up the board. Each word has the pieces that can step left in its low half and
    /// those that can step right in its high half. No piece steps down from the last four bits or up from the first four,
    /// so half a word is enough; the steps up are shifted by four.
    #[inline]
    fn steps(&self) -> (u64, u64) {
        self.steps_to(self.empty())
    }

    /// Returns [`Board::steps`] to the squares of `goals`.
    #[inline]
    fn steps_to(&self, goals: u64) -> (u64, u64) {
        let (down, up) = self.walkers();
        let down = (down & goals >> 4) | (down & goals >> 5) << 32;
        // Up right is four bits back, up left is five.
        let up = (up & goals << 5) >> 4 | (up & goals << 4) >> 4 << 32;
        (down, up)
    }

    /// Returns the mover's pieces that can jump.
    #[inline]
    fn jumpers(&self) -> u64 {
        let (down, up) = self.walkers();
        let (other, empty) = (self.other, self.empty());
        down & (other >> 4 & empty >> 8 | other >> 5 & empty >> 10)
            | up & (other << 4 & empty << 8 | other << 5 & empty << 10)
    }

    /// Returns whether the mover has a move.
    #[inline]
    fn can_move(&self) -> bool {
        let (down, up) = self.steps();
        down | up != 0 || self.jumpers() != 0
    }

    /// Returns this board with the other side to move.
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
            // The king has left its square and may return to it.
            self.king_jumps(from, from, 0, empty | from, out.len(), out);
        }
    }

    /// Appends all continuations of a man's capture from `at`, after capturing `captured`.
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

    /// Appends all continuations of a king's capture from `at`, after capturing `captured`. The moves of this king begin
    /// at `start`.
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
            // Only a circle around four pieces has another path with the same captures.
            if captured.count_ones() < 4 || !out[start..].contains(&mv) {
                out.push(mv);
            }
        }
    }

    /// Returns the kings of both sides, a bit per square, the mover's first.
    #[inline]
    fn kings_word(&self) -> u64 {
        dense(self.own & self.kings) | dense(self.other & self.kings) << 32
    }
}

/// Returns the step for a bit of the word of steps down.
#[inline]
const fn step_down(bit: u32) -> Move {
    let from = bit & 31;
    Move::new(from, from + 4 + (bit >> 5), 0)
}

/// Returns the step for a bit of the word of steps up.
#[inline]
const fn step_up(bit: u32) -> Move {
    let from = (bit & 31) + 4;
    Move::new(from, from + (bit >> 5) - 5, 0)
}

/// Returns a word of eight equal bytes.
const fn bytes(byte: u64) -> u64 {
    byte * 0x0101_0101_0101_0101
}

/// Returns the number of set bits up to and including each byte.
#[inline]
const fn sums(word: u64) -> u64 {
    let pairs = word - (word >> 1 & bytes(0x55));
    let nibbles = (pairs & bytes(0x33)) + (pairs >> 2 & bytes(0x33));
    ((nibbles + (nibbles >> 4)) & bytes(0x0f)).wrapping_mul(bytes(1))
}

/// The place of each set bit of a byte, by its rank.
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

/// Returns the place of the set bit of `word` with `below` set bits below it, branch-free (Vigna 2008). `sums` are those
/// of the word.
#[inline]
fn select(word: u64, sums: u64, below: u64) -> u32 {
    // Set the high bit of each byte that ends before that bit.
    let passed = ((bytes(below) | bytes(0x80)) - sums) & bytes(0x80);
    let shift = (passed ^ bytes(0x80)).trailing_zeros() - 7;
    let rank = below - (sums << 8 >> shift & 0xff);
    shift + u32::from(SELECT[(word >> shift & 0xff) as usize][rank as usize & 7])
}

impl Checkers {
    /// Creates a position without history.
    fn new(own: u64, other: u64, kings: u64, mover: Seat, quiet: u8) -> Checkers {
        let drawn = quiet == QUIET_LIMIT;
        let board = Board { own, other, kings, mover, quiet, drawn, floor: 0, known: 0, top: 0 };
        Checkers { board, history: [0; STACK] }
    }

    /// Returns the history that counts for repetition.
    #[inline]
    fn relevant_history(&self) -> &[u64] {
        &self.history[usize::from(self.board.known)..usize::from(self.board.top)]
    }

    /// Returns whether the position occurs for the third time. Compares every second ply, which has the same side to move,
    /// except the latest: two plies cannot repeat a position.
    fn third_time(&self) -> bool {
        let now = self.board.kings_word();
        let mut times = 1;
        for then in self.relevant_history().rchunks_exact(2).skip(1) {
            times += u32::from(then[0] == now);
        }
        times >= 3
    }

    /// Raises the floor to protect the history, visits this position or a copy, then restores this position.
    #[inline]
    fn protected<R>(&mut self, visit: impl FnOnce(&mut Self) -> R) -> R {
        let board = self.board;
        let mut copy;
        let visited = if usize::from(board.top) + usize::from(QUIET_LIMIT) <= STACK {
            &mut *self
        } else {
            copy = self.with_history_at_bottom();
            &mut *copy
        };
        visited.board.floor = visited.board.top;
        let result = visit(visited);
        self.board = board;
        result
    }

    /// Copies the position with its relevant history at the bottom of the stack. The copy is boxed to keep stack frames of
    /// visits small.
    #[cold]
    fn with_history_at_bottom(&self) -> Box<Checkers> {
        let past = self.relevant_history();
        let board = Board { floor: 0, known: 0, top: past.len() as u8, ..self.board };
        let mut copy = Box::new(Checkers { board, history: [0; STACK] });
        copy.history[..past.len()].copy_from_slice(past);
        copy
    }
}

impl PartialEq for Checkers {
    /// Ignores the place of the history on the stack.
    fn eq(&self, other: &Checkers) -> bool {
        let shown =
            |board: Board| (board.own, board.other, board.kings, board.mover, board.quiet, board.drawn);
        shown(self.board) == shown(other.board) && self.relevant_history() == other.relevant_history()
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
            // A position can occur for the second time after four plies and for the third time after eight.
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
        if self.board.can_move() {
            0
        } else if seat == self.board.mover {
            -1
        } else {
            1
        }
    }

    fn ply_bound(&self) -> u32 {
        // The advances, the captures and the end, as explained in the module header.
        (144 + 23 + 1) * u32::from(QUIET_LIMIT)
    }

    #[inline]
    fn after<R>(&mut self, mv: Move, visit: impl FnOnce(&mut Self) -> R) -> R {
        self.protected(|position| {
            position.play(mv);
            visit(position)
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
        let (sums_down, sums_up) = (sums(down), sums(up));
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

    /// Computes the key on demand: playouts need no keys, and mixing three words is fast.
    #[inline]
    fn key(&self) -> u64 {
        let Board { own, other, kings, mover, .. } = self.board;
        // Pack three boards of 35 bits and the mover into two words.
        let first = own | kings << 35;
        let second = other | kings >> 29 << 35 | u64::from(mover.0) << 63;
        mix(mix(first, 0), second)
    }
}

impl Reseat for Checkers {
    /// Keeps the clock and clears the history: earlier positions had other turns.
    fn reseat(&self, seat: Seat) -> Option<Self> {
        let mut position = self.clone();
        position.give_turn(seat).then_some(position)
    }

    #[inline]
    fn after_reseat<R>(&mut self, seat: Seat, visit: impl FnOnce(&mut Self) -> R) -> Option<R> {
        self.protected(|position| position.give_turn(seat).then(|| visit(position)))
    }
}

impl Checkers {
    /// Gives the turn to a seat and returns whether it has a move.
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

    /// Captures are compulsory.
    #[inline]
    fn may_stand_pat(&self) -> bool {
        self.board.jumpers() == 0
    }
}
