//! Nim: take any number of stones from one heap; the player who takes the last stone wins.
//!
//! There are up to eight heaps of up to 63 stones. A player must take at least one stone. A game has at most as many
//! plies as there are stones at the start.
//!
//! Some lectures use the name Nim for a game in which one heap is split into two unequal ones. That game is `grundy`
//! here. Nim with one heap is trivial, so [`Setup::note`] explains this to its users.
//!
//! A move is `heap-take` with heaps counted from 1: `2-3` takes three stones from the second heap. A position is the
//! heaps, empty ones as 0, and the seat to move: `3-0-5 1`.
//!
//! The heaps are the bytes of one word, so that taking is a subtraction and nim addition three shifts. Their sum, the
//! number of moves, is updated incrementally. The initial sum is part of the position as the bound on plies. At 16
//! bytes, copying is faster than undoing.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn, features, sign, write_for_mover,
};
use crate::heaps::{self, LARGEST};
use crate::random::{Random, below, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};

/// The remark for users of nim with one heap.
const ONE_HEAP_NOTE: &str = "nim with one heap is won by taking all of it; \
    if you mean splitting a heap into two unequal ones, which some lectures call Nim, that is `grundy`";

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nim {
    /// The heaps, a byte each, the first in the lowest.
    heaps: u64,
    /// The number of stones, which is the number of legal moves.
    stones: u16,
    /// The number of stones at the start.
    bound: u16,
    /// The number of heaps, including empty ones.
    count: u8,
    mover: Seat,
}

/// Stones taken from a heap, which is counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Take {
    heap: u8,
    stones: u8,
}

const MOST_HEAPS: usize = 8;

/// The lowest bit of each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGHS: u64 = 0x80 * ONES;

impl Nim {
    /// Returns the nim sum, the xor of the heaps (Bouton 1901). The side to move loses exactly if it is 0.
    #[inline]
    fn nim_sum(&self) -> u8 {
        let mut sum = self.heaps;
        sum ^= sum >> 32;
        sum ^= sum >> 16;
        sum ^= sum >> 8;
        sum as u8
    }

    /// Returns this position with other heaps of the same number.
    fn with_heaps(&self, heaps: &[u8]) -> Nim {
        Nim {
            heaps: heaps.iter().rev().fold(0, |word, &heap| word << 8 | u64::from(heap)),
            stones: heaps.iter().map(|&heap| u16::from(heap)).sum(),
            ..self.clone()
        }
    }

    /// Returns the stones of a heap.
    #[inline]
    fn heap(&self, heap: u8) -> u8 {
        (self.heaps >> (8 * heap)) as u8
    }

    /// Returns the stones of all heaps, including empty ones.
    fn sizes(&self) -> impl Iterator<Item = u8> {
        (0..self.count).map(|heap| self.heap(heap))
    }
}

impl Game for Nim {
    type Move = Take;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.stones == 0 { Turn::Over } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn moves(&self, out: &mut Vec<Take>) {
        for heap in 0..self.count {
            out.extend((1..=self.heap(heap)).map(|stones| Take { heap, stones }));
        }
    }

    #[inline]
    fn play(&mut self, Take { heap, stones }: Take) {
        self.heaps -= u64::from(stones) << (8 * heap);
        self.stones -= u16::from(stones);
        self.mover = self.mover.other();
    }

    fn payoff(&self, seat: Seat) -> i32 {
        if seat == self.mover { -1 } else { 1 }
    }

    fn ply_bound(&self) -> u32 {
        u32::from(self.bound)
    }

    #[inline]
    fn count(&self, _scratch: &mut Vec<Take>) -> u64 {
        u64::from(self.stones)
    }

    /// Maps each stone to the move that takes it and the stones above it.
    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Take>) -> Take {
        let mut stone = below(random, usize::from(self.stones)) as u64;
        if self.stones < 128 {
            // Branch-free: compute the prefix sums of the heaps byte by byte and count those past the stone.
            let sums = self.heaps.wrapping_mul(ONES);
            let past = ((sums | HIGHS) - (stone + 1) * ONES) & HIGHS;
            let heap = MOST_HEAPS as u64 - ((past >> 7).wrapping_mul(ONES) >> 56);
            let before = (sums << 8) >> (8 * heap) & 0xff;
            return Take { heap: heap as u8, stones: (stone - before) as u8 + 1 };
        }
        let mut heap = 0;
        while stone >= u64::from(self.heap(heap)) {
            stone -= u64::from(self.heap(heap));
            heap += 1;
        }
        Take { heap, stones: stone as u8 + 1 }
    }
}

impl Duel for Nim {}
impl Deterministic for Nim {}
impl Noisy for Nim {}

impl Keyed for Nim {
    const KEY_DECIDES: bool = true;

    fn key(&self) -> u64 {
        mix(self.heaps, u64::from(self.mover.0))
    }
}

impl Reseat for Nim {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        Some(Nim { mover: seat, ..self.clone() })
    }
}

impl Ordered for Nim {
    const SLOTS: usize = MOST_HEAPS * (LARGEST as usize + 1);

    fn slot(&self, mv: Take) -> usize {
        usize::from(mv.heap) * (usize::from(LARGEST) + 1) + usize::from(mv.stones)
    }

    /// Rates moves that leave a nim sum of 0.
    fn promise(&self, mv: Take) -> i32 {
        let before = self.heap(mv.heap);
        i32::from(self.nim_sum() ^ before ^ (before - mv.stones) == 0)
    }
}

features! {
    "nim_sum", 10.0, "for the mover, 1 if the xor of the heaps is not 0, else -1";
    "odd_heaps", 0.5, "for the mover, 1 if the number of heaps is odd, else -1";
    "largest_heap", 0.05, "for the mover, the stones of the largest heap";
    "single_stones", -0.1, "for the mover, the heaps of one stone";
    "stones", 0.0, "for the mover, all stones";
}

impl Features for Nim {
    /// Both sides share the heaps, so each value is counted for the side to move.
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, _wanted: FeatureSet, values: &mut [i32]) {
        let count = self.sizes().filter(|&heap| heap > 0).count();
        let singles = self.sizes().filter(|&heap| heap == 1).count();
        let largest = self.sizes().fold(0, u8::max);
        let for_mover = [
            sign(self.nim_sum() != 0),
            sign(count % 2 == 1),
            i32::from(largest),
            singles as i32,
            i32::from(self.stones),
        ];
        write_for_mover(values, seat == self.mover, for_mover);
    }
}

impl Notation for Nim {
    fn write_move(&self, mv: Take, out: &mut String) {
        out.push_str(&format!("{}-{}", mv.heap + 1, mv.stones));
    }

    fn board(&self) -> String {
        let line = |(number, heap): (u8, u8)| {
            let stones = "|".repeat(usize::from(heap));
            format!("{number}  {heap:>2}  {stones}").trim_end().to_string()
        };
        (1..).zip(self.sizes()).map(line).collect::<Vec<_>>().join("\n")
    }

    fn position(&self) -> String {
        heaps::write(self.sizes(), self.mover)
    }

    fn ending(&self) -> &'static str {
        "no stone left"
    }
}

impl Setup for Nim {
    const NAME: &'static str = "nim";
    const SUMMARY: &'static str =
        "take any number from one heap, the last stone wins (to split heaps: grundy)";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "heaps",
        default: "3-4-5",
        domain: Domain::Integers { min: 1, max: LARGEST as u64, most: MOST_HEAPS },
        about: "stones of each heap; the lecture game on one heap, which splits it, is grundy",
    }];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str = "the heaps and the seat to move, as in 3-0-5 1";

    fn note(parameters: &Parameters) -> Option<&'static str> {
        (parameters.integers("heaps").len() == 1).then_some(ONE_HEAP_NOTE)
    }

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let heaps = heaps::first_heaps(parameters);
        let start = Nim { heaps: 0, stones: 0, bound: 0, count: heaps.len() as u8, mover: Seat::FIRST };
        let start = start.with_heaps(&heaps);
        Ok(Nim { bound: start.stones, ..start })
    }

    fn read_position(start: &Self, text: &str) -> Result<Self, String> {
        let (heaps, mover) = heaps::read(text, 0)?;
        if heaps.len() != usize::from(start.count) {
            return Err(format!("there must be {} heaps", start.count));
        }
        if heaps.iter().zip(start.sizes()).any(|(&now, first)| now > first) {
            return Err("a heap is larger than at the start".to_string());
        }
        let position = Nim { mover, ..start.with_heaps(&heaps) };
        // There was at least one ply per reduced heap and at most one per missing stone.
        let fewest = position.sizes().zip(start.sizes()).filter(|(now, first)| now < first).count();
        let most = usize::from(start.stones - position.stones);
        if fewest == most && most % 2 != mover.index() {
            return Err("the number of stones taken does not fit the seat to move".to_string());
        }
        Ok(position)
    }
}
