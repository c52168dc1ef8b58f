//! Backgammon: full rules of movement, gammons and backgammons, no cube.
//!
//! Each side has fifteen checkers in the usual first position. Each turn is two plies: the roll, an outcome of chance, and
//! the play. Seat 0 (`x`) always begins. The opening roll has no doubles; its 15 outcomes have equal weights. Later rolls
//! have 21 outcomes: doubles of weight 1 and others of weight 2, of a total of 36. A double is played four times. As many
//! dice as possible must be played, and the larger one if either can be played but not both. A checker on the bar enters
//! before any other moves. With all checkers home, a die bears off from its own point, or from the highest point if that
//! is lower. Plays that lead to the same position are one play. Bearing off fifteen checkers wins 1; 2 (a gammon) if the
//! loser has borne off none; 3 (a backgammon) if in addition a checker of the loser is on the bar or in the winner's home.
//! After 2000 plies the game is drawn, `ply limit`; none of a million random games took half as many.
//!
//! A roll is its two dice, larger first: `31`. A play is its parts, one per die, joined by `,`, with points numbered from
//! the mover's view from 24 down to 1: `24/18,13/11`, `bar/20,13/7`, `6/off,5/off`; `pass` if nothing can be played.
//! Higher points are first, then larger dice; if one checker can use either die first with the same result, it uses the
//! larger first. The parser also reads parts in any order, hits marked with `*`, and combined parts of one checker
//! (`24/13`, `24/18/13`) if the play is unique.
//!
//! A position is each side's checkers, seat 0's first, as `place:number` from its own view; the seat to move, `x` or `o`;
//! the roll, `-` before it; the plies played: `24:2,13:5,8:3,6:5 24:2,13:5,8:3,6:5 x - 0`.
//!
//! A side is four bit planes, the binary digits of the number of checkers on each place, so that sets of points are
//! compared, shifted and counted at once; a position is 36 bytes. The points that the other side blocks do not change
//! within a turn, so the sources of a die are a shift of them. Plays are generated in batches that share all parts but
//! the last, so that counting and sampling need not list them.

mod features;
mod plays;
mod side;
mod words;

use crate::game::{Chance, Duel, Game, Keyed, Ordered, Payoffs, Seat, Turn};
use crate::random::{Random, below, mix};
use crate::setup::{Parameter, Parameters, Setup, SetupError, Turns};
use side::{HOME, Side, mirrored};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backgammon {
    /// The checkers by seat, each from its own view.
    sides: [Side; 2],
    /// The plies played, which determine the seat to move: each turn is a roll and a play.
    plies: u16,
    /// The dice to be played, larger first; zeros before the roll.
    dice: [u8; 2],
}

/// A roll or a play.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// The dice, larger first.
    Roll([u8; 2]),
    /// The source of each part: 25 for the bar, 0 for a die that is not played. For a double they descend; otherwise the
    /// first moves by the larger die and the second by the smaller.
    Play([u8; 4]),
}

/// The number of plies after which the game is drawn.
const PLY_LIMIT: u16 = 2000;
/// The number of checkers of a side.
const CHECKERS: u32 = 15;

impl Backgammon {
    /// Returns the seat that rolls or plays next.
    fn mover(&self) -> Seat {
        Seat((self.plies >> 1 & 1) as u8)
    }

    fn winner(&self) -> Option<Seat> {
        Seat::all(2).find(|seat| self.sides[seat.index()].all_off())
    }

    fn own(&self) -> &Side {
        &self.sides[self.mover().index()]
    }

    fn other(&self) -> &Side {
        &self.sides[self.mover().other().index()]
    }

    /// Returns the number of outcomes of the next roll.
    fn outcomes(&self) -> usize {
        if self.plies == 0 { 15 } else { 21 }
    }
}

/// Draws a number above 0 and at most 1.
#[inline]
fn unit(random: &mut Random) -> f64 {
    (below(random, 1 << 53) + 1) as f64 / (1u64 << 53) as f64
}

impl Game for Backgammon {
    type Move = Move;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs { min: -3, max: 3, sum: 0, spread: 2 };

    #[inline]
    fn turn(&self) -> Turn {
        if self.plies % 2 == 1 {
            Turn::Player(self.mover())
        } else if self.plies >= PLY_LIMIT || self.other().all_off() {
            // Only the side that has just played can have borne off the last checker.
            Turn::Over
        } else {
            Turn::Chance
        }
    }

    fn moves(&self, out: &mut Vec<Move>) {
        match self.turn() {
            Turn::Player(_) => self.batches(&mut |batch| out.extend(batch.plays())),
            Turn::Chance => {
                for larger in 1..=6 {
                    let equal = u8::from(self.plies > 0);
                    out.extend((1..larger + equal).map(|smaller| Move::Roll([larger, smaller])));
                }
            }
            Turn::Over => {}
        }
    }

    fn play(&mut self, mv: Move) {
        match mv {
            Move::Roll(dice) => self.dice = dice,
            Move::Play(sources) => {
                let mover = self.mover().index();
                let mut landed = 0;
                let own = &mut self.sides[mover];
                for (source, die) in sources.into_iter().zip(plays::steps(self.dice)) {
                    if source != 0 {
                        let target = 1 << source.saturating_sub(die);
                        own.remove(1 << source);
                        own.add(target);
                        landed |= target;
                    }
                }
                let other = &mut self.sides[mover ^ 1];
                let mut hits = mirrored(landed) & other.blots();
                other.remove(hits);
                while hits != 0 {
                    other.add(side::BAR);
                    hits &= hits - 1;
                }
                self.dice = [0; 2];
            }
        }
        self.plies += 1;
    }

    fn payoff(&self, seat: Seat) -> i32 {
        let Some(winner) = self.winner() else { return 0 };
        let loser = &self.sides[winner.other().index()];
        let far = mirrored(HOME) | side::BAR;
        let won = match (loser.off(), loser.occupied() & far) {
            (0, 0) => 2,
            (0, _) => 3,
            _ => 1,
        };
        if seat == winner { won } else { -won }
    }

    fn ply_bound(&self) -> u32 {
        u32::from(PLY_LIMIT)
    }

    fn count(&self, _scratch: &mut Vec<Move>) -> u64 {
        match self.turn() {
            Turn::Player(_) => {
                let mut count = 0;
                self.batches(&mut |batch| count += batch.size());
                u64::from(count)
            }
            Turn::Chance => self.outcomes() as u64,
            Turn::Over => 0,
        }
    }

    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Move>) -> Move {
        if self.plies % 2 == 1 {
            // Vitter's reservoir sampling with skips (1985), of size one: the `n`th play replaces the held one with
            // probability 1/n, and the number of the next replacement is drawn directly.
            let (mut seen, mut next, mut held) = (0, 0, None);
            self.batches(&mut |batch| {
                let end = seen + batch.size();
                while next < end {
                    held = Some(batch.play(next - seen));
                    next = (f64::from(next + 1) / unit(random)) as u32;
                }
                seen = end;
            });
            held.expect("a player has at least one play, possibly a pass")
        } else {
            loop {
                let draw = below(random, 36) as u8;
                let (one, two) = (draw / 6 + 1, draw % 6 + 1);
                if one != two || self.plies > 0 {
                    return Move::Roll([one.max(two), one.min(two)]);
                }
            }
        }
    }
}

impl Duel for Backgammon {}

impl Chance for Backgammon {
    fn total_weight(&self) -> u32 {
        if self.plies == 0 { 15 } else { 36 }
    }

    fn weight(&self, outcome: Move) -> u32 {
        match outcome {
            Move::Roll([one, two]) if one != two && self.plies > 0 => 2,
            _ => 1,
        }
    }
}

impl Keyed for Backgammon {
    /// Computes the key on demand: a play changes up to nine places, and few keys are needed.
    fn key(&self) -> u64 {
        let [larger, smaller] = self.dice.map(u64::from);
        let turn = larger | smaller << 3 | u64::from(self.mover().0) << 6 | u64::from(self.plies == 0) << 7;
        self.sides.iter().flat_map(Side::words).fold(turn, mix)
    }
}

impl Ordered for Backgammon {
    const SLOTS: usize = 26 * 26;

    fn slot(&self, mv: Move) -> usize {
        match mv {
            Move::Roll([one, two]) => usize::from(one) * 26 + usize::from(two),
            Move::Play([one, two, ..]) => usize::from(one) * 26 + usize::from(two),
        }
    }

    /// Prefers hits, then made points and covered blots.
    fn promise(&self, mv: Move) -> i32 {
        let Move::Play(_) = mv else { return 0 };
        let mut next = self.clone();
        next.play(mv);
        let mover = self.mover();
        let count = |side: &Side| [side.points(), side.blots()].map(|places| places.count_ones() as i32);
        let ([points, blots], [points_before, blots_before]) =
            (count(&next.sides[mover.index()]), count(self.own()));
        let bar = |side: &Side| side.count(side::BAR_PLACE) as i32;
        let hits = bar(&next.sides[mover.other().index()]) - bar(self.other());
        6 * hits + 2 * (points - points_before) - (blots - blots_before)
    }
}

impl Setup for Backgammon {
    const NAME: &'static str = "backgammon";
    const SUMMARY: &'static str = "bear off fifteen checkers by the dice; gammons and backgammons, no cube";
    const PARAMETERS: &'static [Parameter] = &[];
    const TURNS: Turns = Turns::Dice;
    const POSITION_FORM: &'static str = "both sides' checkers, the seat to move, the roll and the plies, as in \
         24:2,13:5,8:3,6:5 24:2,13:5,8:3,6:5 x - 0";

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        Ok(Backgammon { sides: [Side::START; 2], plies: 0, dice: [0; 2] })
    }

    fn read_position(_start: &Self, text: &str) -> Result<Self, String> {
        words::read_position(text)
    }
}
