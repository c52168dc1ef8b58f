//! Nim: take any number of stones from one heap; who takes the last stone wins.
//!
//! Up to eight heaps of up to 63 stones. A seat must take at least one stone; who finds no stone has lost. A game has
//! at most as many plies as there are stones at the start.
//!
//! Some lectures call another game Nim: one heap, of which a player splits a heap into two unequal ones. That game is
//! `grundy` here. One heap of this game is no game, the first seat takes it all; who asks for it is told
//! so.
//!
//! A move is `heap-take` with heaps counted from 1: `2-3` takes three stones from the second heap. A position is the
//! heaps, emptied ones as 0, and the seat to move: `3-0-5 1`.
//!
//! The heaps are the bytes of one word, so that taking is a subtraction and nim addition three shifts; their sum, which
//! is the number of moves, is kept along. The first sum stays in the position because the bound on plies is counted
//! from there. 16 bytes: copying beats undoing.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn,
};
use crate::random::{Random, below, mix};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};

/// What someone who asks for nim with one heap is told.
const ONE_HEAP_NOTE: &str = "nim with one heap is won by taking all of it; \
    if you mean splitting a heap into two unequal ones, which some lectures call Nim, that is `grundy`";

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nim {
    /// The heaps, a byte each, the first in the lowest.
    heaps: u64,
    /// The number of stones, and so of moves.
    stones: u16,
    /// The number of stones at the start.
    bound: u16,
    /// The number of heaps, emptied ones included.
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
const LARGEST: u8 = 63;

/// The lowest and the highest bit of each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x80 * ONES;

impl Nim {
    /// Nim addition: the heaps without carries (Bouton 1901). The side to move loses exactly where it is 0.
    #[inline]
    fn nim_sum(&self) -> u8 {
        let mut sum = self.heaps;
        sum ^= sum >> 32;
        sum ^= sum >> 16;
        sum ^= sum >> 8;
        sum as u8
    }

    /// This position with other heaps, as many as it has.
    fn with_heaps(&self, heaps: &[u8]) -> Nim {
        Nim {
            heaps: heaps.iter().rev().fold(0, |word, &heap| word << 8 | u64::from(heap)),
            stones: heaps.iter().map(|&heap| u16::from(heap)).sum(),
            ..self.clone()
        }
    }

    /// The stones of a heap.
    #[inline]
    fn heap(&self, heap: u8) -> u8 {
        (self.heaps >> (8 * heap)) as u8
    }

    /// The stones of all heaps, emptied ones included.
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

    /// Every stone stands for the move that takes it and those above it.
    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Take>) -> Take {
        let mut stone = below(random, usize::from(self.stones)) as u64;
        if self.stones < 128 {
            // Without a branch: byte by byte the stones up to and with each heap, and how many of these sums are
            // past the stone.
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

    /// Whether the move leaves a nim sum of 0.
    fn promise(&self, mv: Take) -> i32 {
        let before = self.heap(mv.heap);
        i32::from(self.nim_sum() ^ before ^ (before - mv.stones) == 0)
    }
}

impl Features for Nim {
    /// Both sides play with the same heaps, so each value is counted for the side to move.
    const FEATURES: &'static [Feature] = &[
        Feature {
            name: "nim_sum",
            weight: 10.0,
            about: "for the mover, 1 if the xor of the heaps is not 0, else -1",
        },
        Feature {
            name: "odd_heaps",
            weight: 0.5,
            about: "for the mover, 1 if the number of heaps is odd, else -1",
        },
        Feature {
            name: "largest_heap",
            weight: 0.05,
            about: "for the mover, the stones of the largest heap",
        },
        Feature { name: "single_stones", weight: -0.1, about: "for the mover, the heaps of one stone" },
        Feature { name: "stones", weight: 0.0, about: "for the mover, all stones" },
    ];

    fn features(&self, seat: Seat, _wanted: FeatureSet, values: &mut [i32]) {
        let heaps = self.sizes().filter(|&heap| heap > 0).count();
        let singles = self.sizes().filter(|&heap| heap == 1).count();
        let largest = self.sizes().fold(0, u8::max);
        let either = |yes: bool| if yes { 1 } else { -1 };
        let of_mover = [
            either(self.nim_sum() != 0),
            either(heaps % 2 == 1),
            i32::from(largest),
            singles as i32,
            i32::from(self.stones),
        ];
        for (value, of_mover) in values.iter_mut().zip(of_mover) {
            *value = either(seat == self.mover) * of_mover;
        }
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
        let heaps: Vec<String> = self.sizes().map(|heap| heap.to_string()).collect();
        format!("{} {}", heaps.join("-"), self.mover.0)
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

    fn note(parameters: &Parameters) -> Option<&'static str> {
        (parameters.integers("heaps").len() == 1).then_some(ONE_HEAP_NOTE)
    }

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let heaps: Vec<u8> = parameters.integers("heaps").iter().map(|&heap| heap as u8).collect();
        let start = Nim { heaps: 0, stones: 0, bound: 0, count: heaps.len() as u8, mover: Seat::FIRST };
        let start = start.with_heaps(&heaps);
        Ok(Nim { bound: start.stones, ..start })
    }

    fn from_position(parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        let start = Nim::initial(parameters)?;
        let wrong = |reason: &str| SetupError::Position {
            game: Self::NAME,
            reason: reason.to_string(),
            form: "the heaps and the seat to move, as in 3-0-5 1",
        };
        let (heaps, mover) =
            text.split_once(' ').ok_or_else(|| wrong("there is no space before the mover"))?;
        let numbers: Vec<u8> = heaps
            .split('-')
            .map(|heap| heap.parse::<u8>().ok().filter(|number| number.to_string() == heap))
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("a heap is a whole number"))?;
        if numbers.len() != usize::from(start.count) {
            return Err(wrong(&format!("there must be {} heaps", start.count)));
        }
        if numbers.iter().zip(start.sizes()).any(|(&now, first)| now > first) {
            return Err(wrong("a heap is larger than at the start"));
        }
        let mover = match mover {
            "0" => Seat::FIRST,
            "1" => Seat::SECOND,
            _ => return Err(wrong("the seat to move is 0 or 1")),
        };
        let position = Nim { mover, ..start.with_heaps(&numbers) };
        // At least one ply for each heap that is smaller now, at most one for each stone that is gone.
        let fewest = position.sizes().zip(start.sizes()).filter(|(now, first)| now < first).count();
        let most = usize::from(start.stones - position.stones);
        if fewest == most && most % 2 != mover.index() {
            return Err(wrong("the number of stones taken does not fit who moves"));
        }
        Ok(position)
    }
}
