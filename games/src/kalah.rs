//! Kalah: sow, bank and capture.
//!
//! Each side has `holes` pits of `seeds` seeds and a store at its right end. A move lifts all seeds of one of the
//! mover's pits and sows them one by one counter-clockwise: rightwards through the mover's pits, into the mover's store,
//! through the other side's pits, past the other side's store, and on from the mover's leftmost pit.
//!
//! - If the last seed falls into the mover's store, the same side moves again.
//! - If the last seed falls into an empty own pit and there are seeds in the pit opposite, all of these go to the mover's
//!   store. The pit may have been emptied by the same move. With `empty_capture` the last seed goes to the store even if
//!   the pit opposite is empty.
//! - If all pits of either side are empty after a move, the remaining seeds go to the store of the side they lie on and
//!   the game is over. The fuller store wins; equal stores are a draw.
//!
//! Play continues when a store holds more than half of the seeds, so that final scores are comparable. The published
//! results for one to three holes (Irving, Donkers and Uiterwijk, "Solving Kalah", 2000) hold for both capture rules;
//! they do not hold for games that end only once the side to move has no seeds.
//!
//! Moves are the pits `1`, `2`, ... from the mover's left; the highest is next to the mover's store. A position is each
//! seat's pits from its left with its store, and the seat to move: at the start `4,4,4,4,4,4:0 4,4,4,4,4,4:0 0`.
//!
//! The bound on plies: a ply that banks nothing only shifts seeds rightwards on the mover's side. So before the next
//! seed is banked the leftmost pit is played at most once, and every other pit at most once more than all pits to its left
//! together: 1, 2, 4, ... times. The rightmost always banks. Thus each banked seed takes at most
//! 2 * (2^(holes - 1) - 1) + 1 plies.
//!
//! A side is one word of eight bytes: the store on top, the pits below it with the rightmost next to the store, unused
//! bytes empty. Sowing is one addition per side, and a pit moves again if it holds as many seeds as its distance to the
//! top. The mover's word is first. Moves are undone by copying.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn, features, sign,
};
use crate::random::{Random, below, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{SEAT_DIGITS, fields, read_mover};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kalah {
    /// The mover's side, then the other's.
    sides: [u64; 2],
    mover: Seat,
    holes: u8,
    empty_capture: bool,
    /// Half of all seeds, for the bound on plies.
    half: u8,
}

/// The sown pit, as its byte in the side's word: 6 is next to the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pit(u8);

/// The byte of the store.
const STORE: u32 = 7;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;
const PITS: u64 = u64::MAX >> 8;
/// The number of seeds with which each pit ends in the store.
const DISTANCES: u64 = 0x0001_0203_0405_0607;

/// Returns a one in the byte of each pit that holds seeds.
#[inline]
fn filled(side: u64) -> u64 {
    let low = side & !HIGHS;
    ((low + !HIGHS) | side) >> 7 & ONES & PITS
}

/// Returns the sum of all bytes. Precondition: it is below 256.
#[inline]
fn sum(bytes: u64) -> u32 {
    (bytes.wrapping_mul(ONES) >> 56) as u32
}

/// Returns a one in each of the lowest `count` bytes, at most seven.
#[inline]
fn ones_below(count: u32) -> u64 {
    ONES & ((1 << (8 * count)) - 1)
}

#[inline]
fn byte(side: u64, index: u32) -> u32 {
    (side >> (8 * index) & 0xff) as u32
}

/// Both sides after a move and its capture, before the end of the game is handled.
struct Sown {
    own: u64,
    other: u64,
    /// Whether the last seed fell into the store.
    again: bool,
    /// The number of captured seeds, including the last one.
    captured: u32,
}

impl Kalah {
    /// Returns the byte of the leftmost pit.
    #[inline]
    fn leftmost(&self) -> u32 {
        STORE - u32::from(self.holes)
    }

    /// Returns the side of a seat.
    #[inline]
    fn side(&self, seat: Seat) -> u64 {
        self.sides[usize::from(seat != self.mover)]
    }

    #[inline]
    fn over(&self) -> bool {
        self.sides[0] & PITS == 0
    }

    /// Returns the number of seeds in a seat's store.
    pub fn store(&self, seat: Seat) -> u32 {
        byte(self.side(seat), STORE)
    }

    /// Returns the numbers of seeds in a seat's pits, from its left.
    pub fn pits(&self, seat: Seat) -> impl Iterator<Item = u32> {
        let side = self.side(seat);
        (self.leftmost()..STORE).map(move |index| byte(side, index))
    }

    /// Returns the seeds opposite to each pit of the own side.
    #[inline]
    fn faced(&self, other: u64) -> u64 {
        other.swap_bytes() >> 8 << (8 * self.leftmost())
    }

    /// Returns, for each empty pit, the number of seeds that a last seed there captures, including itself.
    #[inline]
    fn prey(&self, own: u64, other: u64) -> u64 {
        let faced = self.faced(other);
        let worth = filled(faced) | if self.empty_capture { ONES & PITS } else { 0 };
        let open = worth & !filled(own);
        (faced + open) & (open * 0xff)
    }

    /// Sows the seeds of a pit of the first side.
    ///
    /// Almost branch-free: where the last seed falls is unpredictable.
    #[inline]
    fn sow(&self, [own, other]: [u64; 2], pit: u32) -> Sown {
        let (holes, leftmost) = (u32::from(self.holes), self.leftmost());
        // A move that ends before the store changes neither the other side nor the content of its last pit.
        let prey = self.prey(own, other);
        let seeds = byte(own, pit);
        let lifted = own - (u64::from(seeds) << (8 * pit));
        // The byte of the own side where the last seed falls; the store also stands for everything beyond it.
        let mut end = (pit + seeds).min(STORE);
        let mut again = pit + seeds == STORE;
        let mut near = ONES << (8 * (pit + 1)) & u64::MAX >> (8 * (STORE - end));
        let crossing = (pit + seeds).saturating_sub(STORE);
        let mut far = ones_below(crossing.min(holes)) << (8 * leftmost);
        let mut captured = byte(prey, end);
        if crossing > holes {
            let round = crossing - holes;
            let (round_near, round_far) = self.sow_on(round);
            near += round_near;
            far += round_far;
            let last = leftmost + (round - 1) % (2 * holes + 1);
            (again, end) = (last == STORE, last.min(STORE));
            // There is a capture only if the last seed is alone in its pit.
            let single = if byte(lifted + near, end) == 1 { 1 << (8 * end) } else { 0 };
            captured = byte(self.prey(lifted + near - single, other + far), end);
        }
        let captures = u32::from(captured > 0);
        let opposite = (STORE - 1 + leftmost).saturating_sub(end);
        Sown {
            own: lifted + near + (u64::from(captured) << (8 * STORE)) - (u64::from(captures) << (8 * end)),
            other: other + far - (u64::from(captured - captures) << (8 * opposite)),
            again,
            captured,
        }
    }

    /// Returns the seeds added to the own and the other side by the seeds that reach the own leftmost pit again. Rare.
    #[cold]
    fn sow_on(&self, seeds: u32) -> (u64, u64) {
        let holes = u32::from(self.holes);
        let (laps, rest) = (seeds / (2 * holes + 1), seeds % (2 * holes + 1));
        let near = u64::from(laps) * ones_below(holes) + ones_below(rest.min(holes));
        let banked = u64::from(laps + u32::from(rest > holes));
        let far = u64::from(laps) * ones_below(holes) + ones_below(rest.saturating_sub(holes + 1));
        let left = 8 * self.leftmost();
        (near << left | banked << (8 * STORE), far << left)
    }
}

impl Game for Kalah {
    type Move = Pit;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.over() { Turn::Over } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn moves(&self, out: &mut Vec<Pit>) {
        let mut filled = filled(self.sides[0]);
        while filled != 0 {
            out.push(Pit((filled.trailing_zeros() / 8) as u8));
            filled &= filled - 1;
        }
    }

    #[inline]
    fn play(&mut self, Pit(pit): Pit) {
        let Sown { mut own, mut other, again, .. } = self.sow(self.sides, u32::from(pit));
        if own & PITS == 0 || other & PITS == 0 {
            own = u64::from(sum(own)) << (8 * STORE);
            other = u64::from(sum(other)) << (8 * STORE);
        }
        self.sides = if again { [own, other] } else { [other, own] };
        self.mover = Seat(self.mover.0 ^ u8::from(!again));
    }

    fn payoff(&self, seat: Seat) -> i32 {
        (self.store(seat) as i32 - self.store(seat.other()) as i32).signum()
    }

    fn ply_bound(&self) -> u32 {
        2 * u32::from(self.half) * ((1 << self.holes) - 1)
    }

    #[inline]
    fn count(&self, _scratch: &mut Vec<Pit>) -> u64 {
        u64::from(sum(filled(self.sides[0])))
    }

    /// One multiplication gives the running count of filled pits byte by byte; the drawn pit is the first byte that reaches
    /// the drawn number.
    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Pit>) -> Pit {
        let counts = filled(self.sides[0]).wrapping_mul(ONES);
        let drawn = 1 + below(random, (counts >> 56) as usize) as u64;
        let reached = ((counts | HIGHS) - drawn * ONES) & HIGHS;
        Pit((reached.trailing_zeros() / 8) as u8)
    }
}

impl Duel for Kalah {}
impl Deterministic for Kalah {}

/// Captures and moves that move again. Both bank seeds at once, and an evaluation within a chain of such moves misses the
/// rest of it. They are not compulsory, so a side may stand pat.
impl Noisy for Kalah {
    const NOISY: bool = true;

    fn noisy_moves(&self, out: &mut Vec<Pit>) {
        let mut filled = filled(self.sides[0]);
        while filled != 0 {
            let pit = filled.trailing_zeros() / 8;
            let Sown { again, captured, .. } = self.sow(self.sides, pit);
            if again || captured > 0 {
                out.push(Pit(pit as u8));
            }
            filled &= filled - 1;
        }
    }
}

impl Keyed for Kalah {
    const KEY_DECIDES: bool = true;

    #[inline]
    fn key(&self) -> u64 {
        mix(mix(self.sides[0], u64::from(self.mover.0)), self.sides[1])
    }
}

impl Reseat for Kalah {
    /// Until the game is over both sides have seeds and therefore a move.
    fn reseat(&self, seat: Seat) -> Option<Self> {
        let mut position = self.clone();
        if seat != self.mover {
            position.sides.swap(0, 1);
            position.mover = seat;
        }
        Some(position)
    }
}

impl Ordered for Kalah {
    const SLOTS: usize = 7;

    fn slot(&self, mv: Pit) -> usize {
        usize::from(mv.0)
    }

    /// Prefers moving again, from the right so that other such moves remain; then captures by size; then moves that give
    /// the other side few seeds.
    fn promise(&self, Pit(pit): Pit) -> i32 {
        let Sown { again, captured, .. } = self.sow(self.sides, u32::from(pit));
        if again {
            1000 + i32::from(pit)
        } else if captured > 0 {
            100 + captured as i32
        } else {
            STORE as i32 - i32::from(pit) - byte(self.sides[0], u32::from(pit)) as i32
        }
    }
}

features! {
    STORED = "store", 1.0, "seeds in the store";
    SEEDS = "seeds", 0.2, "seeds in the own pits";
    MOBILITY = "mobility", 0.8, "pits that hold seeds";
    MOVES_AGAIN = "moves_again", 0.5, "pits that would end in the store";
    THREAT = "threat", 0.5, "the most seeds that one move would capture";
    MOVE = "move", 0.7, "1 for the side to move";
}

/// The weights are a rounded least-squares fit of the final margin over games of four-ply searches.
impl Features for Kalah {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let (own, other) = (self.side(seat), self.side(seat.other()));
        values[STORED] = byte(own, STORE) as i32 - byte(other, STORE) as i32;
        values[SEEDS] = sum(own & PITS) as i32 - sum(other & PITS) as i32;
        values[MOBILITY] = sum(filled(own)) as i32 - sum(filled(other)) as i32;
        values[MOVES_AGAIN] = moves_again(own) as i32 - moves_again(other) as i32;
        values[MOVE] = sign(seat == self.mover);
        wanted.fill(values, THREAT, || self.threat([own, other]) as i32 - self.threat([other, own]) as i32);
    }
}

/// Counts the pits whose last seed falls into the store, without those that go a whole lap.
fn moves_again(side: u64) -> u32 {
    sum(ONES & PITS & !filled(side ^ DISTANCES))
}

impl Kalah {
    /// Returns the most seeds that a move of the first side would capture.
    fn threat(&self, sides: [u64; 2]) -> u32 {
        let mut filled = filled(sides[0]);
        let mut most = 0;
        while filled != 0 {
            most = most.max(self.sow(sides, filled.trailing_zeros() / 8).captured);
            filled &= filled - 1;
        }
        most
    }
}

impl Notation for Kalah {
    const MARKS: &'static [&'static str] = &["seat 0 (the lower row)", "seat 1 (the upper row)"];

    fn write_move(&self, Pit(pit): Pit, out: &mut String) {
        out.push_str(&(u32::from(pit) + 1 - self.leftmost()).to_string());
    }

    /// Draws seat 0 at the bottom, with its store at the right.
    fn board(&self) -> String {
        let row = |cells: Vec<u32>| cells.iter().map(|cell| format!("{cell:>4}")).collect::<String>();
        let label = |seat: Seat| {
            let to_move = if !self.over() && seat == self.mover { ", to move" } else { "" };
            format!("    seat {}{to_move}", seat.0)
        };
        let names = || 1..=u32::from(self.holes);
        let mut above: Vec<u32> = self.pits(Seat::SECOND).collect();
        above.reverse();
        [
            format!("    {}{}", row(names().rev().collect()), label(Seat::SECOND)),
            format!("    {}", row(above)),
            format!(
                "{:>4}{}{:>4}",
                self.store(Seat::SECOND),
                " ".repeat(4 * usize::from(self.holes)),
                self.store(Seat::FIRST)
            ),
            format!("    {}", row(self.pits(Seat::FIRST).collect())),
            format!("    {}{}", row(names().collect()), label(Seat::FIRST)),
        ]
        .join("\n")
    }

    fn position(&self) -> String {
        let side = |seat: Seat| {
            let pits: Vec<String> = self.pits(seat).map(|seeds| seeds.to_string()).collect();
            format!("{}:{}", pits.join(","), self.store(seat))
        };
        format!("{} {} {}", side(Seat::FIRST), side(Seat::SECOND), self.mover.0)
    }

    fn ending(&self) -> &'static str {
        "a side is empty"
    }
}

impl Setup for Kalah {
    const NAME: &'static str = "kalah";
    const SUMMARY: &'static str = "sow seeds round the board, bank and capture; the fuller store wins";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "holes",
            default: "6",
            domain: Domain::Integer { min: 1, max: 7 },
            about: "pits a side",
        },
        Parameter {
            name: "seeds",
            default: "4",
            domain: Domain::Integer { min: 1, max: 12 },
            about: "seeds in each pit at the start",
        },
        Parameter {
            name: "empty_capture",
            default: "false",
            domain: Domain::Flag,
            about: "whether the last seed is captured where the pit opposite is empty",
        },
    ];
    const TURNS: Turns = Turns::MoveAgain;
    const POSITION_FORM: &'static str = "each seat's pits from its left and its store, and the seat to move, \
         as in 4,4,4,4,4,4:0 4,4,4,4,4,4:0 0";

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let (holes, seeds) = (parameters.integer("holes") as u32, parameters.integer("seeds") as u32);
        let side = (u64::from(seeds) * ones_below(holes)) << (8 * (STORE - holes));
        Ok(Kalah {
            sides: [side; 2],
            mover: Seat::FIRST,
            holes: holes as u8,
            empty_capture: parameters.flag("empty_capture"),
            half: (holes * seeds) as u8,
        })
    }

    fn read_position(start: &Self, text: &str) -> Result<Self, String> {
        let mut position = start.clone();
        let [first, second, mover] = fields(text)?;
        let total = 2 * u32::from(position.half);
        let number = |text: &str| {
            let seeds = crate::text::number(text).filter(|&seeds| seeds <= total);
            seeds.ok_or_else(|| format!("`{text}` is not a number of seeds up to {total}"))
        };
        let mut held = 0;
        for (text, side) in [first, second].into_iter().zip(&mut position.sides) {
            let (pits, store) = text.split_once(':').ok_or("a side is its pits, `:` and its store")?;
            let pits: Vec<u32> = pits.split(',').map(number).collect::<Result<_, _>>()?;
            if pits.len() != usize::from(position.holes) {
                return Err(format!("a side has {} pits", position.holes));
            }
            let store = number(store)?;
            held += pits.iter().sum::<u32>() + store;
            *side = pits.iter().chain([&store]).rev().fold(0, |side, &seeds| side << 8 | u64::from(seeds))
                << (8 * (STORE - u32::from(position.holes)));
        }
        if held != total {
            return Err(format!("there must be {total} seeds in all, not {held}"));
        }
        let [first, second] = position.sides.map(|side| side & PITS == 0);
        if first != second {
            return Err("one side is empty, so the other's seeds belong in its store".to_string());
        }
        position.mover = read_mover(mover, &SEAT_DIGITS[..2])?;
        if position.mover == Seat::SECOND {
            position.sides.swap(0, 1);
        }
        Ok(position)
    }
}
