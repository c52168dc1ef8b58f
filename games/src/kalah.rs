//! Kalah: sow, bank and capture.
//!
//! Each side has `holes` pits of `seeds` seeds and a store at its right end. A move lifts all seeds of one of the
//! mover's pits and sows them one by one counter-clockwise: rightwards through the mover's own pits, into the own
//! store, through the other side's pits, past the other side's store, and on from the mover's leftmost pit.
//!
//! - The last seed in the own store: the same side moves again.
//! - The last seed alone in an own pit, with seeds in the pit opposite: it and they go to the own store. A pit
//!   counts as empty too when this very move has emptied it and come round. With `empty_capture` the last seed is
//!   banked also where the pit opposite is empty.
//! - When after a move the pits of either side are all empty, whoever's turn it would be, the seeds that remain go
//!   to the store of the side they lie on and the game is over. The fuller store wins, equal stores draw.
//!
//! Play goes on when a store holds more than half of the seeds, so that final scores mean something. The published
//! results for one to three holes (Irving, Donkers and Uiterwijk, "Solving Kalah", 2000) hold for both capture
//! rules; they do not hold where the game ends only once the side to move has no seeds.
//!
//! Moves are the pits `1`, `2`, ... from the mover's own left, so that the highest lies next to the mover's store. A
//! position is each seat's pits from its own left with its store, and the seat to move: at the start
//! `4,4,4,4,4,4:0 4,4,4,4,4,4:0 0`.
//!
//! Bound on plies: a ply that banks nothing only shifts seeds rightwards on the mover's own side. Before the next
//! seed is banked the leftmost pit is so played at most once, and every other pit at most once more than all to its
//! left together: 1, 2, 4, ... times, the rightmost never, since it always banks. So each banked seed takes at most
//! 2 * (2^(holes - 1) - 1) + 1 plies.
//!
//! A side is one word of eight bytes: the store on top, the pits below it with the rightmost next to the store,
//! unused bytes empty. Sowing is then one addition a side, emptiness one mask, and a pit moves again when it holds
//! as many seeds as its distance to the top. The mover's word comes first; copying is three words.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn,
};
use crate::random::{Random, below, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};

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

/// The pit that is emptied, as the byte of the side's word that holds it: 6 is next to the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pit(u8);

/// The byte of the store.
const STORE: u32 = 7;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;
const PITS: u64 = u64::MAX >> 8;
/// The number of seeds that each pit needs to end in the store.
const DISTANCES: u64 = 0x0001_0203_0405_0607;

/// One in each byte of a pit that holds seeds.
#[inline]
fn filled(side: u64) -> u64 {
    let low = side & !HIGHS;
    ((low + !HIGHS) | side) >> 7 & ONES & PITS
}

/// How many bytes hold a one, or the sum of all bytes where it stays below 256.
#[inline]
fn sum(bytes: u64) -> u32 {
    (bytes.wrapping_mul(ONES) >> 56) as u32
}

/// Ones in the lowest `count` bytes, at most seven.
#[inline]
fn ones_below(count: u32) -> u64 {
    ONES & ((1 << (8 * count)) - 1)
}

#[inline]
fn byte(side: u64, index: u32) -> u32 {
    (side >> (8 * index) & 0xff) as u32
}

/// Both sides after a move, captures made, nothing swept up yet.
struct Sown {
    own: u64,
    other: u64,
    /// Whether the last seed fell into the store.
    again: bool,
    /// How many seeds were captured, the last one included.
    captured: u32,
}

impl Kalah {
    /// The byte of the leftmost pit.
    #[inline]
    fn leftmost(&self) -> u32 {
        STORE - u32::from(self.holes)
    }

    /// The side of a seat.
    #[inline]
    fn side(&self, seat: Seat) -> u64 {
        self.sides[usize::from(seat != self.mover)]
    }

    #[inline]
    fn over(&self) -> bool {
        self.sides[0] & PITS == 0
    }

    /// The number of seeds in a seat's store.
    pub fn store(&self, seat: Seat) -> u32 {
        byte(self.side(seat), STORE)
    }

    /// The numbers of seeds in a seat's pits, from its own left.
    pub fn pits(&self, seat: Seat) -> impl Iterator<Item = u32> {
        let side = self.side(seat);
        (self.leftmost()..STORE).map(move |index| byte(side, index))
    }

    /// The seeds in the pit opposite to each pit of the own side.
    #[inline]
    fn faced(&self, other: u64) -> u64 {
        other.swap_bytes() >> 8 << (8 * self.leftmost())
    }

    /// For each pit: how many seeds a last seed that falls there alone captures, itself included.
    #[inline]
    fn prey(&self, own: u64, other: u64) -> u64 {
        let faced = self.faced(other);
        let worth = filled(faced) | if self.empty_capture { ONES & PITS } else { 0 };
        let open = worth & !filled(own);
        (faced + open) & (open * 0xff)
    }

    /// Sows the seeds of a pit of the side that comes first.
    ///
    /// Almost without branches: where seeds fall is as good as random, and a wrong guess costs more than this.
    #[inline]
    fn sow(&self, [own, other]: [u64; 2], pit: u32) -> Sown {
        let (holes, leftmost) = (u32::from(self.holes), self.leftmost());
        // Before the store is reached nothing falls on the other side, and where the last seed falls nothing fell.
        let prey = self.prey(own, other);
        let seeds = byte(own, pit);
        let lifted = own - (u64::from(seeds) << (8 * pit));
        // The byte of the own side where the last seed falls, the store standing for all places beyond it too.
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
            // Of several seeds in the last pit none is captured.
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

    /// What falls on the own and on the other side of the seeds that come round to the own leftmost pit. Rare, and
    /// returned in registers.
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

    /// The running count of filled pits, byte by byte, is one multiplication; the pit drawn is the first byte that
    /// reaches the number drawn.
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

/// Captures, and moves that move again: either banks seeds at once, and an evaluation made in the middle of a chain
/// of such moves misses the rest of the chain. Nothing compels a side to play them, so it may stand pat.
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
    #[inline]
    fn key(&self) -> u64 {
        mix(mix(self.sides[0], u64::from(self.mover.0)), self.sides[1])
    }
}

impl Reseat for Kalah {
    /// Until the game is over both sides have seeds, and so a move.
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

    /// Moving again costs nothing and comes first, from the right so that no other chance of it is spoilt; then
    /// captures by size; then moves that feed the other side least.
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

const STORED: usize = 0;
const SEEDS: usize = 1;
const MOBILITY: usize = 2;
const MOVES_AGAIN: usize = 3;
const THREAT: usize = 4;
const MOVE: usize = 5;

/// The weights are rounded from a least-squares fit of the final margin over games of searches four plies deep.
impl Features for Kalah {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "store", weight: 1.0, about: "seeds in the store" },
        Feature { name: "seeds", weight: 0.2, about: "seeds in the own pits" },
        Feature { name: "mobility", weight: 0.8, about: "pits that hold seeds" },
        Feature { name: "moves_again", weight: 0.5, about: "pits that would end in the store" },
        Feature { name: "threat", weight: 0.5, about: "the most seeds that one move would capture" },
        Feature { name: "move", weight: 0.7, about: "1 for the side to move" },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let (own, other) = (self.side(seat), self.side(seat.other()));
        values[STORED] = byte(own, STORE) as i32 - byte(other, STORE) as i32;
        values[SEEDS] = sum(own & PITS) as i32 - sum(other & PITS) as i32;
        values[MOBILITY] = sum(filled(own)) as i32 - sum(filled(other)) as i32;
        values[MOVES_AGAIN] = moves_again(own) as i32 - moves_again(other) as i32;
        values[MOVE] = if seat == self.mover { 1 } else { -1 };
        if wanted.has(THREAT) {
            values[THREAT] = self.threat([own, other]) as i32 - self.threat([other, own]) as i32;
        }
    }
}

/// Pits whose last seed falls into the store, not counting those that come round a whole lap.
fn moves_again(side: u64) -> u32 {
    sum(ONES & PITS & !filled(side ^ DISTANCES))
}

impl Kalah {
    /// The most seeds that a move of the side that comes first would capture.
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
    fn write_move(&self, Pit(pit): Pit, out: &mut String) {
        out.push_str(&(u32::from(pit) + 1 - self.leftmost()).to_string());
    }

    /// Seat 0 at the bottom, its store at the right.
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

    fn from_position(parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        let wrong = |reason: String| SetupError::Position {
            game: Self::NAME,
            reason,
            form: "each seat's pits from its left and its store, and the seat to move, \
                   as in 4,4,4,4,4,4:0 4,4,4,4,4,4:0 0",
        };
        let mut position = Kalah::initial(parameters)?;
        let parts: Vec<&str> = text.split(' ').collect();
        let &[first, second, mover] = parts.as_slice() else {
            return Err(wrong("there must be two sides and the seat to move".to_string()));
        };
        let total = 2 * u32::from(position.half);
        let number = |text: &str| {
            let seeds = crate::text::number(text).filter(|&seeds| seeds <= total);
            seeds.ok_or_else(|| wrong(format!("`{text}` is not a number of seeds up to {total}")))
        };
        let mut held = 0;
        for (text, side) in [first, second].into_iter().zip(&mut position.sides) {
            let (pits, store) = text
                .split_once(':')
                .ok_or_else(|| wrong("a side is its pits, `:` and its store".to_string()))?;
            let pits: Vec<u32> = pits.split(',').map(number).collect::<Result<_, _>>()?;
            if pits.len() != usize::from(position.holes) {
                return Err(wrong(format!("a side has {} pits", position.holes)));
            }
            let store = number(store)?;
            held += pits.iter().sum::<u32>() + store;
            *side = pits.iter().chain([&store]).rev().fold(0, |side, &seeds| side << 8 | u64::from(seeds))
                << (8 * (STORE - u32::from(position.holes)));
        }
        if held != total {
            return Err(wrong(format!("there must be {total} seeds in all, not {held}")));
        }
        let [first, second] = position.sides.map(|side| side & PITS == 0);
        if first != second {
            return Err(wrong("one side is empty, so the other's seeds belong in its store".to_string()));
        }
        match mover {
            "0" => Ok(position),
            "1" => {
                position.sides.swap(0, 1);
                position.mover = Seat::SECOND;
                Ok(position)
            }
            _ => Err(wrong("the seat to move is 0 or 1".to_string())),
        }
    }
}
