//! Rolit: othello for two to four players, with balls that turn to the colour of the player who outflanks them.
//!
//! Seats 0 to 3 are red `r`, yellow `y`, green `g` and blue `b`, and move in this order. With four seats the centre
//! starts with one ball of each colour: d4 red, e4 yellow, e5 green, d5 blue. With three seats the centre is the same:
//! the blue ball on d5 has no owner and can be outflanked. With two seats the centre is that of othello: d5 and e4 red, d4
//! and e5 yellow.
//!
//! A move places a ball on an empty square so that it outflanks balls of other colours: straight runs of any mix of them,
//! in any of eight directions, that end at an own ball. All outflanked balls turn to the mover's colour. A seat that can
//! outflank nothing, possibly because it has no ball left, places its ball on any empty square adjacent to any ball,
//! diagonally included. So nobody passes, and after sixty plies the board is full. The seats with the most balls win.
//! With more than two seats the winners share sixty points; with two the payoffs are +1, 0 and -1.
//!
//! Moves are squares `a1` to `h8` with a1 at the top left. A position is the eight rows from the top and the seat to move:
//! `......../......../......../...ry.../...bg.../......../......../........ r`. The ply bound is 60.
//!
//! The representation is a bitboard per seat, one of all balls, and the legal squares, computed once per position.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn, features, margin,
};
use crate::outflank::{
    BORDER, CENTRE, CORNERS, X_SQUARES, capturable, captures, flips, neighbours, pick, read_board, squares,
    stable, write_board, write_square,
};
use crate::random::{Random, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{Labels, fields, grid};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rolit<const SEATS: usize> {
    balls: [u64; SEATS],
    /// All balls, including one of a colour without a seat.
    taken: u64,
    /// The legal placements.
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
        Payoffs::of_greatest(self.balls.map(u64::count_ones), seat)
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
    const KEY_DECIDES: bool = true;

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

    /// Prefers corners, then the rest of the border; squares that give away a corner are last.
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

features! {
    BALLS = "balls", 0.4, "balls of the own colour";
    CORNER = "corners", 8.5, "balls on corners";
    EDGES = "edges", 0.2, "balls on the border, without corners";
    GIVEN_CORNERS = "given_corners", -2.5, "balls next to an empty corner";
    MOBILITY = "mobility", 0.3, "placements that outflank, with the seat to move";
    STABILITY = "stability", 0.7, "balls found to be safe for the rest of the game";
    EXPOSED = "exposed", -0.4, "balls that another seat could turn in one move";
}

/// Every value is the sum of the differences to the other seats. The weights are in balls of that sum at the end: a rounded
/// least-squares fit over several thousand self-play games of a two-ply search with two, three and four seats.
impl<const SEATS: usize> Features for Rolit<SEATS> {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let compare = |value: &dyn Fn(u64) -> u64| {
            margin(seat, self.balls.map(|balls| value(balls).count_ones() as i32))
        };
        let within = |set: u64| compare(&|balls| balls & set);
        wanted.fill(values, BALLS, || within(!0));
        wanted.fill(values, CORNER, || within(CORNERS));
        wanted.fill(values, EDGES, || within(BORDER & !CORNERS));
        wanted.fill(values, GIVEN_CORNERS, || within(neighbours(CORNERS & !self.taken)));
        wanted.fill(values, MOBILITY, || compare(&|balls| captures(balls, self.taken & !balls)));
        wanted.fill(values, STABILITY, || compare(&|balls| stable(balls, self.taken)));
        wanted.fill(values, EXPOSED, || {
            let exposed_to = |balls: &u64| capturable(*balls, self.taken & !balls, !self.taken);
            within(self.balls.iter().map(exposed_to).fold(0, |all, squares| all | squares))
        });
    }
}

/// The colours; with three seats the fourth has no owner.
const SYMBOLS: [char; 4] = ['r', 'y', 'g', 'b'];

impl<const SEATS: usize> Rolit<SEATS> {
    fn symbol(&self, square: usize) -> char {
        let held = |seat: &Seat| self.balls[seat.index()] >> square & 1 == 1;
        let empty = if self.taken >> square & 1 == 1 { SYMBOLS[3] } else { '.' };
        Seat::all(SEATS).find(held).map_or(empty, |seat| SYMBOLS[seat.index()])
    }
}

impl<const SEATS: usize> Notation for Rolit<SEATS> {
    const MARKS: &'static [&'static str] = &["r (red)", "y (yellow)", "g (green)", "b (blue)"];

    fn write_move(&self, mv: Square, out: &mut String) {
        write_square(mv.0, out);
    }

    fn board(&self) -> String {
        grid(8, 8, Labels::TopDown, |column, row| self.symbol(8 * row + column))
    }

    fn position(&self) -> String {
        format!("{} {}", write_board(|square| self.symbol(square)), SYMBOLS[self.mover.index()])
    }

    fn ending(&self) -> &'static str {
        "board full"
    }
}

impl<const SEATS: usize> Setup for Rolit<SEATS> {
    const NAME: &'static str = "rolit";
    const SUMMARY: &'static str =
        "othello for two to four; a seat that can outflank nothing places next to any ball";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "seats",
        default: "4",
        domain: Domain::OneOf(&[2, 3, 4]),
        about: "the number of seats",
    }];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str = "eight rows from the top joined by / and the seat to move, r, y, g or b; with four seats the start is \
         ......../......../......../...ry.../...bg.../......../......../........ r";

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        let mut balls = [0; SEATS];
        let start: &[u64] = if SEATS == 2 { &[D5 | E4, D4 | E5] } else { &[D4, E4, E5, D5] };
        for (balls, start) in balls.iter_mut().zip(start) {
            *balls = *start;
        }
        Ok(Rolit::new(balls, CENTRE, Seat::FIRST))
    }

    fn read_position(_start: &Self, text: &str) -> Result<Self, String> {
        let [rows, mover] = fields(text)?;
        let colours = read_board(rows, SYMBOLS)?;
        for (colour, &balls) in colours.iter().enumerate().skip(SEATS) {
            let start = if SEATS == 3 { D5 } else { 0 };
            if balls & !start != 0 {
                let symbol = SYMBOLS[colour];
                return Err(format!("with {SEATS} seats no player can have placed the ball `{symbol}`"));
            }
        }
        let taken = colours.iter().fold(0, |all, balls| all | balls);
        let seat = (taken.count_ones() as usize - 4) % SEATS;
        if mover != SYMBOLS[seat].to_string() {
            let symbol = SYMBOLS[seat];
            return Err(format!("by the number of balls it is the turn of `{symbol}`, not of `{mover}`"));
        }
        let mut balls = [0; SEATS];
        balls.copy_from_slice(&colours[..SEATS]);
        Ok(Rolit::new(balls, taken, Seat(seat as u8)))
    }
}
