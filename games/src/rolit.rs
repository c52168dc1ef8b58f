//! Rolit: othello for two to four, with balls that show the colour of whoever outflanked them last.
//!
//! Seats 0 to 3 are red `r`, yellow `y`, green `g` and blue `b`, and move in this order. With four seats the centre
//! starts with one ball of each: d4 red, e4 yellow, e5 green, d5 blue, clockwise from the top left. With three the
//! centre is the same: the blue ball on d5 is nobody's, can be outflanked like any other, and never comes back.
//! With two the centre is othello's: d5 and e4 red, d4 and e5 yellow.
//!
//! A move places a ball on an empty square so that it outflanks balls of other colours: straight runs of them, mixed
//! as they may be, in any of eight directions, that end at an own ball. All balls so outflanked turn to the mover's
//! colour. Only a seat that can outflank nothing, perhaps because no ball of its colour is left, places its ball on
//! any empty square next to any ball, diagonally or not. So everybody always can move, nobody passes, and after
//! sixty plies the board is full: most balls win, and ties share. With more than two seats the winners share sixty
//! points; with two it is +1, 0 or -1.
//!
//! Moves are squares `a1` to `h8` with a1 at the top left. A position is the eight rows from the top and who moves:
//! `......../......../......../...ry.../...bg.../......../......../........ r`. The ply bound is 60.
//!
//! A bitboard a seat, one of all balls, and the set of legal squares, found once when a position is reached.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn,
};
use crate::outflank::{
    BORDER, CENTRE, CORNERS, X_SQUARES, capturable, captures, flips, neighbours, pick, read_rows, squares,
    stable, write_rows, write_square,
};
use crate::random::{Random, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{Labels, grid};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rolit<const SEATS: usize> {
    balls: [u64; SEATS],
    /// All balls, also that of the colour without a seat.
    taken: u64,
    /// Where the seat to move may place a ball.
    placements: u64,
    mover: Seat,
}

/// The square of the new ball, 0 to 63 from a1 along the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Square(u8);

const D4: u64 = 1 << 27;
const E4: u64 = 1 << 28;
const D5: u64 = 1 << 35;
const E5: u64 = 1 << 36;

impl<const SEATS: usize> Rolit<SEATS> {
    #[inline]
    fn new(balls: [u64; SEATS], taken: u64, mover: Seat) -> Self {
        let own = balls[mover.index()];
        let capturing = captures(own, taken & !own);
        let placements = if capturing != 0 { capturing } else { neighbours(taken) & !taken };
        Rolit { balls, taken, placements, mover }
    }

    #[inline]
    fn played(&self, Square(square): Square) -> Self {
        let own = self.balls[self.mover.index()];
        let turned = flips(square, own, self.taken & !own);
        let new = 1 << (square & 63);
        let mut balls = self.balls.map(|balls| balls & !turned);
        balls[self.mover.index()] |= turned | new;
        Rolit::new(balls, self.taken | new, self.mover.next(SEATS))
    }

    /// What a seat has of something, against each of the others: the sum of the differences.
    fn margin(seat: Seat, value: impl Fn(Seat) -> i32) -> i32 {
        let all: i32 = Seat::all(SEATS).map(&value).sum();
        SEATS as i32 * value(seat) - all
    }
}

impl<const SEATS: usize> Game for Rolit<SEATS> {
    type Move = Square;
    const SEATS: usize = SEATS;
    const PAYOFFS: Payoffs = Payoffs::for_seats(SEATS);

    #[inline]
    fn turn(&self) -> Turn {
        if self.placements == 0 { Turn::Over } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn moves(&self, out: &mut Vec<Square>) {
        out.extend(squares(self.placements).map(Square));
    }

    #[inline]
    fn play(&mut self, mv: Square) {
        *self = self.played(mv);
    }

    #[inline]
    fn after<R>(&mut self, mv: Square, visit: impl FnOnce(&mut Self) -> R) -> R {
        visit(&mut self.played(mv))
    }

    fn payoff(&self, seat: Seat) -> i32 {
        let counts = self.balls.map(u64::count_ones);
        let most = counts.iter().max();
        let winners = Seat::all(SEATS)
            .filter(|seat| Some(&counts[seat.index()]) == most)
            .fold(0, |all, seat| all | 1 << seat.0);
        Payoffs::of_winners(SEATS, winners, seat)
    }

    fn ply_bound(&self) -> u32 {
        60
    }

    #[inline]
    fn count(&self, _scratch: &mut Vec<Square>) -> u64 {
        u64::from(self.placements.count_ones())
    }

    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Square>) -> Square {
        Square(pick(self.placements, random))
    }
}

impl Duel for Rolit<2> {}
impl Noisy for Rolit<2> {}
impl<const SEATS: usize> Deterministic for Rolit<SEATS> {}

impl<const SEATS: usize> Keyed for Rolit<SEATS> {
    #[inline]
    fn key(&self) -> u64 {
        self.balls.iter().fold(mix(self.taken, u64::from(self.mover.0)), |key, &balls| mix(key, balls))
    }
}

impl<const SEATS: usize> Reseat for Rolit<SEATS> {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        (self.placements != 0).then(|| Rolit::new(self.balls, self.taken, seat))
    }
}

impl<const SEATS: usize> Ordered for Rolit<SEATS> {
    const SLOTS: usize = 64;

    fn slot(&self, mv: Square) -> usize {
        usize::from(mv.0)
    }

    /// Corners first, the rest of the border next, squares that give a corner away last.
    #[inline]
    fn promise(&self, mv: Square) -> i32 {
        let square = 1 << (mv.0 & 63);
        let gives_corner = neighbours(square) & CORNERS & !self.taken != 0;
        if square & CORNERS != 0 {
            20
        } else if gives_corner {
            if square & X_SQUARES != 0 { -12 } else { -6 }
        } else if square & BORDER != 0 {
            4
        } else {
            0
        }
    }
}

const BALLS: usize = 0;
const CORNER: usize = 1;
const EDGES: usize = 2;
const GIVEN_CORNERS: usize = 3;
const MOBILITY: usize = 4;
const STABILITY: usize = 5;
const EXPOSED: usize = 6;

/// Every value is the sum of the differences to each of the other seats. The weights are in balls of that sum at the
/// end: least squares over some thousand games of a two-ply search against itself with two, three and four seats,
/// rounded to what suits all three.
impl<const SEATS: usize> Features for Rolit<SEATS> {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "balls", weight: 0.4, about: "balls of one's colour" },
        Feature { name: "corners", weight: 8.5, about: "balls on corners" },
        Feature { name: "edges", weight: 0.2, about: "balls on the border, corners left out" },
        Feature { name: "given_corners", weight: -2.5, about: "balls next to an empty corner" },
        Feature { name: "mobility", weight: 0.3, about: "placements that outflank, were it one's turn" },
        Feature { name: "stability", weight: 0.7, about: "balls found to be safe for the rest of the game" },
        Feature {
            name: "exposed",
            weight: -0.4,
            about: "balls that another seat could turn, were it its turn",
        },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let balls = |seat: Seat| self.balls[seat.index()];
        let within = |set: u64| Self::margin(seat, |seat| (balls(seat) & set).count_ones() as i32);
        if wanted.has(BALLS) {
            values[BALLS] = within(!0);
        }
        if wanted.has(CORNER) {
            values[CORNER] = within(CORNERS);
        }
        if wanted.has(EDGES) {
            values[EDGES] = within(BORDER & !CORNERS);
        }
        if wanted.has(GIVEN_CORNERS) {
            values[GIVEN_CORNERS] = within(neighbours(CORNERS & !self.taken));
        }
        if wanted.has(MOBILITY) {
            let mobility = |seat: Seat| captures(balls(seat), self.taken & !balls(seat)).count_ones() as i32;
            values[MOBILITY] = Self::margin(seat, mobility);
        }
        if wanted.has(STABILITY) {
            values[STABILITY] =
                Self::margin(seat, |seat| stable(balls(seat), self.taken).count_ones() as i32);
        }
        if wanted.has(EXPOSED) {
            let exposed = Seat::all(SEATS)
                .fold(0, |exposed, by| exposed | capturable(balls(by), self.taken & !balls(by), !self.taken));
            values[EXPOSED] = within(exposed);
        }
    }
}

/// The colours; with three seats the fourth is nobody's.
const SYMBOLS: [char; 4] = ['r', 'y', 'g', 'b'];

impl<const SEATS: usize> Rolit<SEATS> {
    fn symbol(&self, square: usize) -> char {
        let held = |seat: &Seat| self.balls[seat.index()] >> square & 1 == 1;
        let empty = if self.taken >> square & 1 == 1 { SYMBOLS[3] } else { '.' };
        Seat::all(SEATS).find(held).map_or(empty, |seat| SYMBOLS[seat.index()])
    }
}

impl<const SEATS: usize> Notation for Rolit<SEATS> {
    fn write_move(&self, mv: Square, out: &mut String) {
        write_square(mv.0, out);
    }

    fn board(&self) -> String {
        grid(8, 8, Labels::TopDown, |column, row| self.symbol(8 * row + column))
    }

    fn position(&self) -> String {
        format!("{} {}", write_rows(|square| self.symbol(square)), SYMBOLS[self.mover.index()])
    }

    fn ending(&self) -> &'static str {
        "board full"
    }
}

impl<const SEATS: usize> Setup for Rolit<SEATS> {
    const NAME: &'static str = "rolit";
    const SUMMARY: &'static str = "othello for two to four; who can outflank nothing places next to any ball";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "seats",
        default: "4",
        domain: Domain::OneOf(&[2, 3, 4]),
        about: "how many play",
    }];
    const TURNS: Turns = Turns::Rotate;

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        let mut balls = [0; SEATS];
        let start: &[u64] = if SEATS == 2 { &[D5 | E4, D4 | E5] } else { &[D4, E4, E5, D5] };
        for (balls, start) in balls.iter_mut().zip(start) {
            *balls = *start;
        }
        Ok(Rolit::new(balls, CENTRE, Seat::FIRST))
    }

    fn from_position(_parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        let wrong = |reason: String| SetupError::Position {
            game: Self::NAME,
            reason,
            form: "eight rows from the top joined by / and who moves, r, y, g or b; with four seats the start is \
                   ......../......../......../...ry.../...bg.../......../......../........ r",
        };
        let (rows, mover) =
            text.split_once(' ').ok_or_else(|| wrong("there is no space before the mover".to_string()))?;
        let colours = read_rows(rows, SYMBOLS).map_err(wrong)?;
        for (colour, &balls) in colours.iter().enumerate().skip(SEATS) {
            let start = if SEATS == 3 { D5 } else { 0 };
            if balls & !start != 0 {
                let symbol = SYMBOLS[colour];
                return Err(wrong(format!("with {SEATS} seats nobody can have placed the ball `{symbol}`")));
            }
        }
        let taken = colours.iter().fold(0, |all, balls| all | balls);
        let seat = (taken.count_ones() as usize - 4) % SEATS;
        if mover != SYMBOLS[seat].to_string() {
            let symbol = SYMBOLS[seat];
            return Err(wrong(format!(
                "by the number of balls it is the turn of `{symbol}`, not of `{mover}`"
            )));
        }
        let mut balls = [0; SEATS];
        balls.copy_from_slice(&colours[..SEATS]);
        Ok(Rolit::new(balls, taken, Seat(seat as u8)))
    }
}
