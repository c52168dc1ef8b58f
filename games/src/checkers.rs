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
//! kings alone, 64 bits. They are kept by the clock's reading, eighty words at most, and only steps of kings write
//! there. That makes a position long to copy: [`Game::after`] undoes instead, and puts back the one word that was
//! overwritten, so that the words of an outer line survive whatever an inner line does.

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
    /// The kings as they stood when the clock read the index, by [`Board::kings_word`]. Those from `board.known` to
    /// before `board.quiet` are of this line of play; the others are rubbish.
    history: [u64; QUIET_LIMIT as usize],
}

/// Everything but the past.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Board {
    /// The pieces by seat, kings included.
    pieces: [u64; 2],
    /// The kings of both sides.
    kings: u64,
    mover: Seat,
    /// The clock: plies since the last capture or advance of a man.
    quiet: u8,
    /// The clock's reading from which on the history is known.
    known: u8,
    /// Drawn by the clock or by repetition, unless the mover has no move.
    drawn: bool,
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

/// Quiet plies that make a draw.
const QUIET_LIMIT: u8 = 80;

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

/// Where men become kings.
const CROWN: [u64; 2] = by_seat(row(7));

/// The 32 bits that are squares, side by side.
#[inline]
const fn dense(board: u64) -> u64 {
    board & 0xff | board >> 1 & 0xff00 | board >> 2 & 0xff_0000 | board >> 3 & 0xff00_0000
}

impl Board {
    #[inline]
    fn own(&self) -> u64 {
        self.pieces[self.mover.index()]
    }

    #[inline]
    fn other(&self) -> u64 {
        self.pieces[self.mover.other().index()]
    }

    #[inline]
    fn empty(&self) -> u64 {
        SQUARES & !(self.pieces[0] | self.pieces[1])
    }

    /// The pieces of a seat that may go down, towards 32, and those that may go up.
    #[inline]
    fn walkers(&self, seat: Seat) -> (u64, u64) {
        let own = self.pieces[seat.index()];
        // All ones for White, all zeros for Black.
        let white = (seat.0 as u64).wrapping_neg();
        (own & (self.kings | !white), own & (self.kings | white))
    }

    /// The steps of a seat down and up the board, each a word of the pieces that can go left in its low half and of
    /// those that can go right in its high half. No piece steps down from the last four bits nor up from the first
    /// four, so that four bits less are enough; the words of steps up are shifted by them.
    #[inline]
    fn steps(&self, seat: Seat) -> (u64, u64) {
        let (down, up) = self.walkers(seat);
        let empty = self.empty();
        let down = (down & empty >> 4) | (down & empty >> 5) << 32;
        // Up and to the right is four bits back, to the left five.
        let up = (up & empty << 5) >> 4 | (up & empty << 4) >> 4 << 32;
        (down, up)
    }

    /// The pieces of a seat that can jump.
    #[inline]
    fn jumpers(&self, seat: Seat) -> u64 {
        let (down, up) = self.walkers(seat);
        let other = self.pieces[seat.other().index()];
        let empty = self.empty();
        down & ((other >> 4 & empty >> 8) | (other >> 5 & empty >> 10))
            | up & ((other << 4 & empty << 8) | (other << 5 & empty << 10))
    }

    /// The pieces of a seat that the other side could jump.
    #[inline]
    fn exposed(&self, seat: Seat) -> u64 {
        let (down, up) = self.walkers(seat.other());
        let own = self.pieces[seat.index()];
        let empty = self.empty();
        own & ((down << 4 & empty >> 4)
            | (down << 5 & empty >> 5)
            | (up >> 4 & empty << 4)
            | (up >> 5 & empty << 5))
    }

    #[inline]
    fn can_move(&self, seat: Seat) -> bool {
        let (down, up) = self.steps(seat);
        down | up != 0 || self.jumpers(seat) != 0
    }

    /// The mover has lost or the game is drawn.
    #[inline]
    fn over(&self) -> bool {
        self.drawn || !self.can_move(self.mover)
    }

    /// Appends the captures of the mover that start on the squares of `jumpers`.
    fn captures(&self, mut jumpers: u64, out: &mut Vec<Move>) {
        while jumpers != 0 {
            let from = jumpers & jumpers.wrapping_neg();
            jumpers ^= from;
            let king = self.kings & from != 0;
            let mut jump = Jump {
                from,
                king,
                down: king || self.mover == Seat::FIRST,
                up: king || self.mover == Seat::SECOND,
                other: self.other(),
                // The piece has left its square and may come back to it.
                empty: self.empty() | from,
                stop: if king { 0 } else { CROWN[self.mover.index()] },
                start: out.len(),
            };
            jump.follow(from, 0, out);
        }
    }

    /// The kings of both sides, a bit a square.
    #[inline]
    fn kings_word(&self) -> u64 {
        dense(self.pieces[0] & self.kings) | dense(self.pieces[1] & self.kings) << 32
    }
}

/// A piece on its way.
struct Jump {
    from: u64,
    king: bool,
    down: bool,
    up: bool,
    other: u64,
    empty: u64,
    /// Where the move ends whatever could be jumped from there.
    stop: u64,
    /// Where the captures of this piece begin in the list.
    start: usize,
}

impl Jump {
    /// Appends all ways to go on from `at` after capturing `captured`, by ascending numbers of the squares: of
    /// several paths that are one move, the one that comes first is found first.
    fn follow(&mut self, at: u64, captured: u64, out: &mut Vec<Move>) {
        let other = self.other & !captured;
        let mut ended = true;
        if at & self.stop == 0 {
            if self.up {
                if at & other << 5 & self.empty << 10 != 0 {
                    ended = false;
                    self.follow(at >> 10, captured | at >> 5, out);
                }
                if at & other << 4 & self.empty << 8 != 0 {
                    ended = false;
                    self.follow(at >> 8, captured | at >> 4, out);
                }
            }
            if self.down {
                if at & other >> 4 & self.empty >> 8 != 0 {
                    ended = false;
                    self.follow(at << 8, captured | at << 4, out);
                }
                if at & other >> 5 & self.empty >> 10 != 0 {
                    ended = false;
                    self.follow(at << 10, captured | at << 5, out);
                }
            }
        }
        if ended {
            let mv = Move::new(self.from.trailing_zeros(), at.trailing_zeros(), captured);
            // Only a king that went round at least four pieces may have had another way to do so.
            let twice = self.king && captured.count_ones() >= 4 && out[self.start..].contains(&mv);
            if !twice {
                out.push(mv);
            }
        }
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

/// The place of the set bit that has `below` set bits below it.
#[inline]
fn select(mut word: u64, below: usize) -> u32 {
    for _ in 0..below {
        word &= word - 1;
    }
    word.trailing_zeros()
}

impl Checkers {
    fn new(board: Board) -> Checkers {
        Checkers { board, history: [0; QUIET_LIMIT as usize] }
    }

    /// The part of the history that the rules look at.
    fn past(&self) -> &[u64] {
        &self.history[usize::from(self.board.known)..usize::from(self.board.quiet)]
    }

    /// Whether the position on the board stood there twice before. Only every second ply has the same side to move,
    /// and two plies are not enough to come back.
    fn third_time(&self) -> bool {
        let now = self.board.kings_word();
        self.past().iter().rev().skip(3).step_by(2).filter(|&&then| then == now).count() >= 2
    }
}

impl PartialEq for Checkers {
    fn eq(&self, other: &Checkers) -> bool {
        self.board == other.board && self.past() == other.past()
    }
}

impl Eq for Checkers {}

impl Game for Checkers {
    type Move = Move;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.board.over() { Turn::Over } else { Turn::Player(self.board.mover) }
    }

    fn moves(&self, out: &mut Vec<Move>) {
        if self.board.drawn {
            return;
        }
        let jumpers = self.board.jumpers(self.board.mover);
        if jumpers != 0 {
            return self.board.captures(jumpers, out);
        }
        let (mut down, mut up) = self.board.steps(self.board.mover);
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
        let (from, to) = (1u64 << mv.from(), 1u64 << mv.to());
        let mover = board.mover.index();
        let captured = mv.captured();
        let quiet = captured == 0 && board.kings & from != 0;
        if quiet {
            self.history[usize::from(board.quiet)] = board.kings_word();
        }
        let king = board.kings & from != 0 || CROWN[mover] & to != 0;
        board.pieces[mover] = board.pieces[mover] & !from | to;
        board.pieces[mover ^ 1] &= !captured;
        board.kings = board.kings & !(from | captured) | if king { to } else { 0 };
        board.mover = board.mover.other();
        if quiet {
            board.quiet += 1;
            // A position can come back after four plies and for the third time after eight.
            let repeatable = board.quiet - board.known >= 8;
            board.drawn = board.quiet >= QUIET_LIMIT;
            if repeatable && self.third_time() {
                self.board.drawn = true;
            }
        } else {
            board.quiet = 0;
            board.known = 0;
        }
    }

    fn payoff(&self, seat: Seat) -> i32 {
        match self.board.can_move(self.board.mover) {
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
        let board = self.board;
        let slot = usize::from(board.quiet);
        let word = self.history[slot];
        self.play(mv);
        let result = visit(self);
        self.board = board;
        self.history[slot] = word;
        result
    }

    #[inline]
    fn count(&self, scratch: &mut Vec<Move>) -> u64 {
        if self.board.drawn {
            return 0;
        }
        let jumpers = self.board.jumpers(self.board.mover);
        if jumpers != 0 {
            let start = scratch.len();
            self.board.captures(jumpers, scratch);
            let count = scratch.len() - start;
            scratch.truncate(start);
            return count as u64;
        }
        let (down, up) = self.board.steps(self.board.mover);
        u64::from(down.count_ones() + up.count_ones())
    }

    #[inline]
    fn sample(&self, random: &mut Random, scratch: &mut Vec<Move>) -> Move {
        let jumpers = self.board.jumpers(self.board.mover);
        if jumpers != 0 {
            scratch.clear();
            self.board.captures(jumpers, scratch);
            return scratch[below(random, scratch.len())];
        }
        let (down, up) = self.board.steps(self.board.mover);
        let downs = down.count_ones() as usize;
        let pick = below(random, downs + up.count_ones() as usize);
        if pick < downs { step_down(select(down, pick)) } else { step_up(select(up, pick - downs)) }
    }
}

impl Duel for Checkers {}
impl Deterministic for Checkers {}

impl Keyed for Checkers {
    const PATH_DEPENDENT: bool = true;

    /// Mixed from the boards when it is asked for: playouts do not ask, and three words are quickly mixed.
    #[inline]
    fn key(&self) -> u64 {
        let Board { pieces: [black, white], kings, mover, .. } = self.board;
        // Three boards of 35 bits and the turn side by side in two words.
        let first = black | kings << 35;
        let second = white | kings >> 29 << 35 | u64::from(mover.0) << 63;
        mix(mix(first, 0), second)
    }
}

impl Reseat for Checkers {
    /// The clock goes on and repetition is counted afresh: what stood on the board before had other turns.
    fn reseat(&self, seat: Seat) -> Option<Self> {
        let mut position = self.clone();
        position.after_reseat(seat, |there| there.board).map(|board| {
            position.board = board;
            position
        })
    }

    #[inline]
    fn after_reseat<R>(&mut self, seat: Seat, visit: impl FnOnce(&mut Self) -> R) -> Option<R> {
        if seat == self.board.mover {
            return Some(visit(self));
        }
        if !self.board.can_move(seat) {
            return None;
        }
        let board = self.board;
        self.board.mover = seat;
        self.board.known = board.quiet;
        let result = visit(self);
        self.board = board;
        Some(result)
    }
}

impl Noisy for Checkers {
    const NOISY: bool = true;

    fn noisy_moves(&self, out: &mut Vec<Move>) {
        if !self.board.drawn {
            self.board.captures(self.board.jumpers(self.board.mover), out);
        }
    }

    /// A capture is compulsory.
    #[inline]
    fn may_stand_pat(&self) -> bool {
        self.board.jumpers(self.board.mover) == 0
    }
}

impl Ordered for Checkers {
    /// The squares from and to.
    const SLOTS: usize = 32 * 32;

    #[inline]
    fn slot(&self, mv: Move) -> usize {
        (number(mv.from()) * 32 + number(mv.to()) - 33) as usize
    }

    fn promise(&self, mv: Move) -> i32 {
        0
    }
}

impl Features for Checkers {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "men", weight: 1.0, about: "men" },
    ];

    fn features(&self, seat: Seat, _wanted: FeatureSet, values: &mut [i32]) {
        let men = |seat: Seat| (self.board.pieces[seat.index()] & !self.board.kings).count_ones() as i32;
        values[0] = men(seat) - men(seat.other());
    }
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
        let squares = text.split(if capture { 'x' } else { '-' }).map(square).collect::<Option<Vec<u32>>>()?;
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
        let Board { pieces, kings, mover, quiet, .. } = self.board;
        let list = |pieces: u64| {
            let squares = (1..=32).filter(|&number| pieces >> bit(number) & 1 == 1);
            let texts = squares.map(|number| {
                let king = if kings >> bit(number) & 1 == 1 { "K" } else { "" };
                format!("{king}{number}")
            });
            texts.collect::<Vec<String>>().join(",")
        };
        format!("{}:W{}:B{} {quiet}", LETTERS[mover.index()], list(pieces[1]), list(pieces[0]))
    }

    fn ending(&self) -> &'static str {
        let Board { mover, quiet, .. } = self.board;
        if self.board.own() == 0 {
            "no piece left"
        } else if !self.board.can_move(mover) {
            "no move left"
        } else if quiet == QUIET_LIMIT {
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
        let Board { pieces, kings, .. } = self.board;
        match pieces.map(|pieces| pieces >> bit & 1 == 1) {
            [false, false] => '.',
            [black, _] => {
                let letter = LETTERS[usize::from(!black)];
                if kings >> bit & 1 == 1 { letter } else { letter.to_ascii_lowercase() }
            }
        }
    }
}

impl Setup for Checkers {
    const NAME: &'static str = "checkers";
    const SUMMARY: &'static str = "English draughts: forced captures, multiple jumps, short kings";
    const PARAMETERS: &'static [Parameter] = &[];
    const TURNS: Turns = Turns::Rotate;

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        let pieces = by_seat(row(0) | row(1) | row(2));
        Ok(Checkers::new(Board { pieces, kings: 0, mover: Seat::FIRST, quiet: 0, known: 0, drawn: false }))
    }

    fn from_position(_parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        read_position(text).map(Checkers::new).map_err(|reason| SetupError::Position {
            game: Self::NAME,
            reason,
            form: "side to move, White's and Black's squares, quiet plies, as in W:W21,22,K9:B1,K30 4",
        })
    }
}

/// Reads a position's text, or says what is wrong with it.
fn read_position(text: &str) -> Result<Board, String> {
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
    let board = Board { pieces, kings, mover, quiet, known: quiet, drawn: quiet == QUIET_LIMIT };
    if board.other() == 0 {
        return Err("the side that has just moved has no pieces".to_string());
    }
    // The quiet plies were steps of kings that are still there.
    if quiet >= 1 && board.other() & kings == 0 || quiet >= 2 && board.own() & kings == 0 {
        return Err("there were quiet plies, but a side that moved has no king".to_string());
    }
    Ok(board)
}
