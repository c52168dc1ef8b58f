//! Go with area scoring, positional superko and no suicide.
//!
//! Seat 0 has the black stones. A move places a stone on an empty point and captures chains of the other side that have no
//! liberty left. A stone may not leave its own chain without a liberty (suicide), nor recreate the stones of any earlier
//! position with either side to move (positional superko). Passing is always legal, and two passes in a row end the game.
//! The game also ends, with the stones on the board, after twice as many plies as the board has points, but at least
//! fifty. No stone counts as dead: a side's area is its stones and the empty regions that touch no other stones (Tromp and
//! Taylor's counting); White's area includes the komi. With a whole komi the game can be drawn.
//!
//! Moves are as in GTP: `C3` with A1 at the bottom left, no column I, and `pass`. A position is the rows from the top, `X`
//! for Black, `O` for White and `.`, then the seat to move, the passes just made and the plies played, as in
//! `.../.X./... O 0 1`. It has no history: for superko, the history begins with the position itself.
//!
//! Playouts draw among the legal points that are not a single-point eye of the mover, and pass only if there is none. An
//! eye has own stones or the border on its four sides and at most one stone of the other side on its diagonals, none at
//! the edge.
//!
//! Chains are updated incrementally (`board`), and visits are undone from a journal, which is cheaper than copying all
//! cells. A position can only recur if the placed stone had been captured on the same point before; only then is the hash
//! after the move looked up in the history, behind a bit filter.

mod board;
mod features;
mod rows;

use std::fmt;

use crate::game::{Deterministic, Duel, Game, Keyed, Noisy, Notation, Ordered, Payoffs, Reseat, Seat, Turn};
use crate::random::{Random, below, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{Labels, fields, grid, number, read_mover, read_plies, read_rows, write_rows};
use board::{Before, Board, EMPTY, Point, opposite, point_at, row_and_column};

/// A position.
pub struct Go {
    board: Board,
    clock: Clock,
    history: History,
    /// In half points.
    komi: i32,
    /// The number of plies at which the game ends.
    limit: u16,
    /// The depth of nested visits. During a visit every ply is recorded in `undo`.
    visits: u16,
    /// The plies played during visits, to be undone from the end.
    undo: Vec<Undo>,
}

/// A ply to be undone: the clock before it, and the placed stone with the result of [`History::push`].
struct Undo {
    clock: Clock,
    placed: Option<(Before, bool)>,
}

/// The seat to move, the passes and the plies.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Clock {
    mover: Seat,
    /// The consecutive passes just made.
    passes: u8,
    plies: u16,
}

/// A stone on a point, or a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move(Point);

/// Cell 0 is not a point.
const PASS: Move = Move(0);

/// The hashes of all positions of the game, including the current one.
#[derive(PartialEq, Eq)]
struct History {
    hashes: Vec<u64>,
    /// A bit for the low bits of every hash; an unset bit proves that a position is new.
    filter: [u64; History::WORDS],
}

impl History {
    const WORDS: usize = 64;

    /// Reserves room for a whole game, so that playouts do not allocate.
    fn with_room(limit: u16) -> History {
        History { hashes: Vec::with_capacity(usize::from(limit) + 1), filter: [0; History::WORDS] }
    }

    #[inline]
    fn bit(hash: u64) -> (usize, u64) {
        ((hash >> 6) as usize % History::WORDS, 1 << (hash & 63))
    }

    /// Adds a position and returns whether its bit was unset.
    #[inline]
    fn push(&mut self, hash: u64) -> bool {
        let (word, bit) = History::bit(hash);
        let new = self.filter[word] & bit == 0;
        self.filter[word] |= bit;
        self.hashes.push(hash);
        new
    }

    /// Undoes a push that returned `new`.
    #[inline]
    fn pop(&mut self, new: bool) {
        if let Some(hash) = self.hashes.pop()
            && new
        {
            let (word, bit) = History::bit(hash);
            self.filter[word] &= !bit;
        }
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let (word, bit) = History::bit(hash);
        self.filter[word] & bit != 0 && self.hashes.contains(&hash)
    }
}

impl Clone for Go {
    fn clone(&self) -> Self {
        let mut history = History::with_room(self.limit);
        history.hashes.extend_from_slice(&self.history.hashes);
        history.filter = self.history.filter;
        Go { board: self.board.clone(), history, visits: 0, undo: Vec::new(), ..*self }
    }

    fn clone_from(&mut self, source: &Self) {
        self.board.clone_from(&source.board);
        self.history.hashes.clone_from(&source.history.hashes);
        self.history.filter = source.history.filter;
        self.clock = source.clock;
        self.komi = source.komi;
        self.limit = source.limit;
        self.visits = 0;
        self.undo.clear();
    }
}

impl PartialEq for Go {
    fn eq(&self, other: &Self) -> bool {
        self.clock == other.clock
            && self.komi == other.komi
            && self.board == other.board
            && self.history == other.history
    }
}

impl Eq for Go {}

impl fmt::Debug for Go {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} positions", self.position(), self.history.hashes.len())
    }
}

/// Returns the colour of a seat's stones.
#[inline]
const fn stones_of(seat: Seat) -> u8 {
    seat.0 + 1
}

impl Go {
    fn new(komi: i32, board: Board, clock: Clock) -> Go {
        let limit = ply_limit(board.size());
        let mut history = History::with_room(limit);
        history.push(board.totals().hash);
        Go { board, clock, history, komi, limit, visits: 0, undo: Vec::new() }
    }

    /// Calls `visit`, then undoes all plies that it has played.
    #[inline]
    fn visited<R>(&mut self, visit: impl FnOnce(&mut Self) -> R) -> R {
        let played = self.undo.len();
        self.visits += 1;
        let result = visit(self);
        self.visits -= 1;
        while self.undo.len() > played {
            self.take_back();
        }
        result
    }

    fn play_with_undo(&mut self, mv: Move) {
        let clock = self.clock;
        let placed = (mv != PASS).then(|| {
            let before = self.board.place_with_undo(mv.0, self.colour());
            (before, self.history.push(self.board.totals().hash))
        });
        self.tick(if placed.is_some() { 0 } else { clock.passes + 1 });
        self.undo.push(Undo { clock, placed });
    }

    fn take_back(&mut self) {
        if let Some(Undo { clock, placed }) = self.undo.pop() {
            if let Some((before, new)) = placed {
                self.history.pop(new);
                self.board.undo(&before);
            }
            self.clock = clock;
        }
    }

    /// Returns the colour of the mover's stones.
    #[inline]
    fn colour(&self) -> u8 {
        stones_of(self.clock.mover)
    }

    #[inline]
    fn over(&self) -> bool {
        self.clock.passes >= 2 || self.clock.plies >= self.limit
    }

    /// Returns whether the mover may place a stone on an empty point.
    #[inline]
    fn allows(&self, point: Point) -> bool {
        let colour = self.colour();
        self.board.has_liberty_after(point, colour)
            && !(self.board.was_captured(point, colour)
                && self.history.contains(self.board.hash_after(point, colour)))
    }

    #[inline]
    fn allowed_points(&self) -> impl Iterator<Item = Point> {
        self.board.points().filter(|&point| self.board.colour(point) == EMPTY && self.allows(point))
    }

    /// Returns Black's lead in half points, with the stones on the board.
    pub fn lead(&self) -> i32 {
        let [black, white] = rows::area(&self.board);
        2 * (black - white) - self.komi
    }

    #[inline]
    fn tick(&mut self, passes: u8) {
        let Clock { mover, plies, .. } = self.clock;
        self.clock = Clock { mover: mover.other(), passes, plies: plies + 1 };
    }
}

impl Game for Go {
    type Move = Move;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.over() { Turn::Over } else { Turn::Player(self.clock.mover) }
    }

    fn moves(&self, out: &mut Vec<Move>) {
        if !self.over() {
            out.extend(self.allowed_points().map(Move));
            out.push(PASS);
        }
    }

    #[inline]
    fn play(&mut self, mv: Move) {
        if self.visits > 0 {
            self.play_with_undo(mv);
        } else if mv == PASS {
            self.tick(self.clock.passes + 1);
        } else {
            self.board.place::<false>(mv.0, self.colour());
            self.history.push(self.board.totals().hash);
            self.tick(0);
        }
    }

    fn payoff(&self, seat: Seat) -> i32 {
        let lead = self.lead().signum();
        if seat == Seat::FIRST { lead } else { -lead }
    }

    fn ply_bound(&self) -> u32 {
        u32::from(self.limit)
    }

    #[inline]
    fn after<R>(&mut self, mv: Move, visit: impl FnOnce(&mut Self) -> R) -> R {
        self.visited(|position| {
            position.play(mv);
            visit(position)
        })
    }

    fn count(&self, _scratch: &mut Vec<Move>) -> u64 {
        if self.over() {
            return 0;
        }
        1 + self.board.empties().iter().filter(|&&point| self.allows(point)).count() as u64
    }

    /// Draws among the empty points and the pass until the move is legal.
    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Move>) -> Move {
        let empties = self.board.empties();
        loop {
            match empties.get(below(random, empties.len() + 1)) {
                None => return PASS,
                Some(&point) if self.allows(point) => return Move(point),
                Some(_) => {}
            }
        }
    }

    /// Draws among the empty points until one fits; after a few failures lists the points that fit.
    #[inline]
    fn rollout(&self, random: &mut Random, scratch: &mut Vec<Move>) -> Move {
        const DRAWS: usize = 6;
        let colour = self.colour();
        let fits = |point: &Point| !self.board.is_eye(*point, colour) && self.allows(*point);
        let empties = self.board.empties();
        if empties.is_empty() {
            return PASS;
        }
        for _ in 0..DRAWS {
            let point = empties[below(random, empties.len())];
            if fits(&point) {
                return Move(point);
            }
        }
        scratch.clear();
        scratch.extend(empties.iter().copied().filter(fits).map(Move));
        if scratch.is_empty() { PASS } else { scratch[below(random, scratch.len())] }
    }
}

impl Duel for Go {}
impl Deterministic for Go {}

impl Noisy for Go {
    const NOISY: bool = true;

    /// Appends the captures.
    fn noisy_moves(&self, out: &mut Vec<Move>) {
        if self.over() {
            return;
        }
        let other = opposite(self.colour());
        let captures = |&point: &Point| {
            self.board.colour(point) == EMPTY && self.board.stones_in_atari(point, other) > 0
        };
        out.extend(self.board.points().filter(captures).filter(|&point| self.allows(point)).map(Move));
    }
}

impl Keyed for Go {
    const PATH_DEPENDENT: bool = true;

    /// Returns the key of the stones, the mover and the passes just made.
    fn key(&self) -> u64 {
        let Clock { mover, passes, .. } = self.clock;
        mix(self.board.totals().hash, u64::from(mover.0) | u64::from(passes) << 1)
    }
}

/// Keeps the number of passes: giving the turn away is not a pass.
impl Reseat for Go {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        let mut position = self.clone();
        position.clock.mover = seat;
        Some(position)
    }

    #[inline]
    fn after_reseat<R>(&mut self, seat: Seat, visit: impl FnOnce(&mut Self) -> R) -> Option<R> {
        let mover = std::mem::replace(&mut self.clock.mover, seat);
        let result = self.visited(visit);
        self.clock.mover = mover;
        Some(result)
    }
}

impl Ordered for Go {
    const SLOTS: usize = point_at(19, 0) as usize;

    fn slot(&self, mv: Move) -> usize {
        usize::from(mv.0)
    }

    /// Prefers captures, then stones that save a chain in atari, then contact with the other side's stones away from the
    /// edge; a pass and filling an own eye are last.
    fn promise(&self, mv: Move) -> i32 {
        if mv == PASS {
            return -50;
        }
        let (board, colour) = (&self.board, self.colour());
        if board.is_eye(mv.0, colour) {
            return -100;
        }
        let captured = i32::from(board.stones_in_atari(mv.0, opposite(colour)));
        let (others, empty) = board.next_to(mv.0, opposite(colour));
        let saved = if empty >= 2 { i32::from(board.stones_in_atari(mv.0, colour)) } else { 0 };
        100 * captured + 60 * saved + 4 * others as i32 + 3 * self.line(mv.0).min(3)
    }
}

impl Go {
    /// Returns the distance of a point to the edge.
    fn line(&self, point: Point) -> i32 {
        let (row, column) = row_and_column(point);
        let last = self.board.size() - 1;
        row.min(last - row).min(column).min(last - column) as i32
    }
}

impl Notation for Go {
    const MARKS: &'static [&'static str] = &["X (black)", "O (white)"];

    fn write_move(&self, mv: Move, out: &mut String) {
        if mv == PASS {
            out.push_str("pass");
        } else {
            let (row, column) = row_and_column(mv.0);
            out.push(Labels::Go.column(column));
            out.push_str(&(row + 1).to_string());
        }
    }

    fn parse_move(&self, text: &str) -> Option<Move> {
        if self.over() {
            return None;
        }
        if text.eq_ignore_ascii_case("pass") {
            return Some(PASS);
        }
        let size = self.board.size();
        let column = Labels::Go.column_named(text.chars().next()?, size)?;
        let row: usize = text.get(1..)?.parse().ok().filter(|row| (1..=size).contains(row))?;
        let mv = Move(point_at(row - 1, column));
        let legal = self.board.colour(mv.0) == EMPTY && self.allows(mv.0);
        // Compared with the canonical text, so that `C03` and `C+3` are rejected.
        (legal && self.move_text(mv).eq_ignore_ascii_case(text)).then_some(mv)
    }

    fn board(&self) -> String {
        let size = self.board.size();
        grid(size, size, Labels::Go, |column, row| self.symbol(row, column))
    }

    fn position(&self) -> String {
        let size = self.board.size();
        let rows = write_rows(size, size, |column, line| self.symbol(size - 1 - line, column));
        let Clock { mover, passes, plies } = self.clock;
        format!("{rows} {} {passes} {plies}", SYMBOLS[usize::from(stones_of(mover))])
    }

    fn ending(&self) -> &'static str {
        if self.clock.passes >= 2 { "two passes" } else { "ply limit" }
    }
}

/// The symbols by colour.
const SYMBOLS: [char; 3] = ['.', 'X', 'O'];

impl Go {
    /// Returns the symbol of a point, with rows counted from the bottom.
    pub(crate) fn symbol(&self, row: usize, column: usize) -> char {
        SYMBOLS[usize::from(self.board.colour(point_at(row, column)))]
    }
}

/// Returns twice the number of points, but at least 50, since all of a small board can be captured several times.
const fn ply_limit(size: usize) -> u16 {
    let limit = 2 * size * size;
    if limit < 50 { 50 } else { limit as u16 }
}

impl Setup for Go {
    const NAME: &'static str = "go";
    const SUMMARY: &'static str = "surround points: area scoring, positional superko, no suicide";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "size",
            default: "9",
            domain: Domain::Integer { min: 2, max: 19 },
            about: "points on a side of the board",
        },
        Parameter {
            name: "komi",
            default: "7.5",
            domain: Domain::Halves { min: -722, max: 722 },
            about: "points added to White's area",
        },
    ];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str =
        "rows from the top, the seat to move, passes just made and plies played, as in .../.X./... O 0 1";

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let size = parameters.integer("size") as usize;
        let board = Board::new(size, |_, _| EMPTY).expect("a board without stones has no captured chain");
        Ok(Go::new(parameters.halves("komi"), board, Clock { mover: Seat::FIRST, passes: 0, plies: 0 }))
    }

    fn read_position(start: &Self, text: &str) -> Result<Self, String> {
        let (board, clock) = read_position(start.board.size(), text)?;
        Ok(Go::new(start.komi, board, clock))
    }
}

fn read_position(size: usize, text: &str) -> Result<(Board, Clock), String> {
    let [rows, mover, passes, plies] = fields(text)?;
    let mut colours = vec![vec![EMPTY; size]; size];
    for stone in read_rows(rows, &vec![size; size], &SYMBOLS[1..])? {
        colours[size - 1 - stone.line][stone.column] = stone.symbol as u8 + 1;
    }
    let mover = read_mover(mover, &SYMBOLS[1..])?;
    let passes: u16 = number(passes).filter(|&passes| passes <= 2).ok_or("the passes are 0, 1 or 2")?;
    let plies = read_plies(plies, ply_limit(size))?;
    if plies % 2 != u16::from(mover.0) {
        return Err("X moves after an even number of plies, O after an odd one".to_string());
    }
    let placed = plies.checked_sub(passes).ok_or("there are more passes than plies")?;
    let board = Board::new(size, |row, column| colours[row][column]).ok_or("a chain has no liberty")?;
    let stones = board.totals().stones;
    if stones[0] > placed.div_ceil(2) || stones[1] > placed / 2 {
        return Err("a side has more stones than it has had plies to place them in".to_string());
    }
    if placed > 0 && stones[usize::from((placed - 1) % 2)] == 0 {
        return Err("the side that placed the last stone has none on the board".to_string());
    }
    Ok((board, Clock { mover, passes: passes as u8, plies }))
}
