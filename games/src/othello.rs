//! Othello on eight by eight squares.
//!
//! Seat 0 has the black discs, `x`, seat 1 the white ones, `o`. The game starts with d5 and e4 black, d4 and e5 white. A
//! move places a disc on an empty square so that it outflanks at least one of the other side's discs: a straight run of
//! them, in any of eight directions, that ends at an own disc. All outflanked discs turn. A side without such a move
//! passes, and a pass is a ply. When neither side has a move the game is over, and the side with more discs wins.
//!
//! Moves are squares `a1` to `h8` with a1 at the top left, and `pass`. A position is the eight rows from the top and the
//! seat to move: `......../......../......../...ox.../...xo.../......../......../........ x`.
//!
//! The ply bound is 60 + 59: sixty squares are empty at the start, and after a pass the other side always has a move, so
//! there is at most one pass between two placements. (No arrangement of the four central discs makes the first player
//! pass.)
//!
//! The representation is two bitboards from the mover's view and the set of legal placements, computed once per position.
//! At four words, copying is cheaper than undoing. The key is computed on demand, because a move changes many squares.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn, features, sign,
};
use crate::outflank::{
    BORDER, CORNERS, X_SQUARES, captures, flips, neighbours, pick, read_board, squares, stable, write_board,
    write_square,
};
use crate::random::{Random, mix};
use crate::setup::{Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{Labels, fields, grid, read_mover};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Othello {
    /// The discs of the side to move.
    own: u64,
    other: u64,
    /// The legal placements.
    placements: u64,
    mover: Seat,
    /// Whether the side to move has no placement and the other one has.
    must_pass: bool,
}

/// The square of the new disc, 0 to 63 from a1 along the rows, or a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement(u8);

const PASS: Placement = Placement(64);

impl Othello {
    #[inline]
    fn new(own: u64, other: u64, mover: Seat) -> Othello {
        let placements = captures(own, other);
        let must_pass = placements == 0 && can_move(other, own);
        Othello { own, other, placements, mover, must_pass }
    }

    /// Returns the position after a move.
    #[inline]
    fn played(&self, mv: Placement) -> Othello {
        if mv == PASS {
            return Othello::new(self.other, self.own, self.mover.other());
        }
        let turned = flips(mv.0, self.own, self.other);
        let own = self.own | turned | 1 << (mv.0 & 63);
        Othello::new(self.other ^ turned, own, self.mover.other())
    }

    #[inline]
    fn over(&self) -> bool {
        self.placements == 0 && !self.must_pass
    }

    /// Returns the discs of a seat and those of the other one.
    fn sides(&self, seat: Seat) -> (u64, u64) {
        if seat == self.mover { (self.own, self.other) } else { (self.other, self.own) }
    }

    fn empty(&self) -> u64 {
        !(self.own | self.other)
    }
}

/// Returns whether a side has a placement. Called only if the other side has none, which is rare.
#[cold]
#[inline(never)]
fn can_move(own: u64, other: u64) -> bool {
    captures(own, other) != 0
}

impl Game for Othello {
    type Move = Placement;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.over() { Turn::Over } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn moves(&self, out: &mut Vec<Placement>) {
        if self.must_pass {
            out.push(PASS);
        }
        out.extend(squares(self.placements).map(Placement));
    }

    #[inline]
    fn play(&mut self, mv: Placement) {
        *self = self.played(mv);
    }

    #[inline]
    fn after<R>(&mut self, mv: Placement, visit: impl FnOnce(&mut Self) -> R) -> R {
        visit(&mut self.played(mv))
    }

    fn payoff(&self, seat: Seat) -> i32 {
        let (own, other) = self.sides(seat);
        difference(own, other).signum()
    }

    fn ply_bound(&self) -> u32 {
        119
    }

    #[inline]
    fn count(&self, _scratch: &mut Vec<Placement>) -> u64 {
        u64::from(self.placements.count_ones()) + u64::from(self.must_pass)
    }

    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Placement>) -> Placement {
        if self.placements == 0 { PASS } else { Placement(pick(self.placements, random)) }
    }
}

/// Returns how many more squares the first set has.
fn difference(own: u64, other: u64) -> i32 {
    own.count_ones() as i32 - other.count_ones() as i32
}

impl Duel for Othello {}
impl Deterministic for Othello {}

/// Placements on corners: a corner can never be turned and protects the discs along its edges, so it changes the
/// evaluation by much.
impl Noisy for Othello {
    const NOISY: bool = true;

    fn noisy_moves(&self, out: &mut Vec<Placement>) {
        out.extend(squares(self.placements & CORNERS).map(Placement));
    }

    /// Returns false if every placement is a corner.
    fn may_stand_pat(&self) -> bool {
        self.placements & !CORNERS != 0 || self.must_pass
    }
}

impl Keyed for Othello {
    const KEY_DECIDES: bool = true;

    #[inline]
    fn key(&self) -> u64 {
        mix(mix(self.own, u64::from(self.mover.0)), self.other)
    }
}

impl Reseat for Othello {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        let (own, other) = self.sides(seat);
        (!self.over()).then(|| Othello::new(own, other, seat))
    }
}

impl Ordered for Othello {
    const SLOTS: usize = 65;

    fn slot(&self, mv: Placement) -> usize {
        usize::from(mv.0)
    }

    /// Prefers corners, then the edge and squares with few empty neighbours, which give the other side few moves; squares
    /// that give away a corner are last.
    #[inline]
    fn promise(&self, mv: Placement) -> i32 {
        if mv == PASS {
            return 0;
        }
        let (square, empty) = (1 << (mv.0 & 63), self.empty());
        if square & CORNERS != 0 {
            return 20;
        }
        let around = neighbours(square) & empty;
        let gives_corner = if around & CORNERS == 0 {
            0
        } else if square & X_SQUARES != 0 {
            12
        } else {
            6
        };
        2 * i32::from(square & BORDER != 0) - gives_corner - around.count_ones() as i32
    }
}

features! {
    DISCS = "discs", 0.1, "discs";
    MOBILITY = "mobility", 1.2, "placements, with either side to move";
    POTENTIAL_MOBILITY = "potential_mobility", 0.3, "empty squares next to a disc of the other side";
    FRONTIER = "frontier", -0.5, "discs next to an empty square";
    CORNER = "corners", 10.0, "discs on corners";
    X_SQUARE = "x_squares", -8.0, "discs diagonally next to an empty corner";
    C_SQUARE = "c_squares", -2.5, "discs on the edge next to an empty corner";
    EDGES = "edges", 0.3, "discs on the border, without corners";
    STABILITY = "stability", 1.2, "discs found to be safe for the rest of the game";
    PARITY = "parity", 0.8, "1 for the side that fills the last empty square if nobody passes";
}

/// The weights are in discs of the final difference. They are a rounded least-squares fit over plies 10 to 50 of several
/// thousand self-play games of a three-ply search, with mobility raised after matches.
impl Features for Othello {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let (own, other) = self.sides(seat);
        let empty = self.empty();
        let within = |squares: u64| difference(own & squares, other & squares);
        let gives_corner = neighbours(empty & CORNERS);
        wanted.fill(values, DISCS, || difference(own, other));
        wanted.fill(values, MOBILITY, || {
            let mobility = difference(self.placements, captures(self.other, self.own));
            sign(seat == self.mover) * mobility
        });
        wanted.fill(values, POTENTIAL_MOBILITY, || {
            difference(neighbours(other) & empty, neighbours(own) & empty)
        });
        wanted.fill(values, FRONTIER, || within(neighbours(empty)));
        wanted.fill(values, CORNER, || within(CORNERS));
        wanted.fill(values, X_SQUARE, || within(gives_corner & X_SQUARES));
        wanted.fill(values, C_SQUARE, || within(gives_corner & BORDER));
        wanted.fill(values, EDGES, || within(BORDER & !CORNERS));
        wanted.fill(values, STABILITY, || difference(stable(own, !empty), stable(other, !empty)));
        wanted.fill(values, PARITY, || {
            let mover_is_last = empty.count_ones() % 2 == 1;
            sign(mover_is_last == (seat == self.mover))
        });
    }
}

const SYMBOLS: [char; 2] = ['x', 'o'];

impl Othello {
    fn symbol(&self, square: usize) -> char {
        let held = |seat: &Seat| self.sides(*seat).0 >> square & 1 == 1;
        Seat::all(2).find(held).map_or('.', |seat| SYMBOLS[seat.index()])
    }
}

impl Notation for Othello {
    const MARKS: &'static [&'static str] = &["x", "o"];

    fn write_move(&self, mv: Placement, out: &mut String) {
        if mv == PASS {
            out.push_str("pass");
        } else {
            write_square(mv.0, out);
        }
    }

    fn board(&self) -> String {
        grid(8, 8, Labels::TopDown, |column, row| self.symbol(8 * row + column))
    }

    fn position(&self) -> String {
        format!("{} {}", write_board(|square| self.symbol(square)), SYMBOLS[self.mover.index()])
    }

    fn ending(&self) -> &'static str {
        if self.empty() == 0 { "board full" } else { "neither can move" }
    }
}

impl Setup for Othello {
    const NAME: &'static str = "othello";
    const SUMMARY: &'static str = "outflank the other side's discs on eight by eight; most discs win";
    const PARAMETERS: &'static [Parameter] = &[];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str = "eight rows from the top joined by / and the seat to move, x (first) or o; the start is \
         ......../......../......../...ox.../...xo.../......../......../........ x";

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        let (d4, e4, d5, e5) = (1 << 27, 1 << 28, 1 << 35, 1 << 36);
        Ok(Othello::new(d5 | e4, d4 | e5, Seat::FIRST))
    }

    /// Accepts either seat to move: because of passes, the number of discs does not determine it.
    fn read_position(_start: &Self, text: &str) -> Result<Self, String> {
        let [rows, mover] = fields(text)?;
        let discs = read_board(rows, SYMBOLS)?;
        let mover = read_mover(mover, &SYMBOLS)?;
        Ok(Othello::new(discs[mover.index()], discs[mover.other().index()], mover))
    }
}
