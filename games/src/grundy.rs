//! Grundy's game: split one heap into two unequal heaps; a player who cannot move loses.
//!
//! Heaps of one and two cannot be split. Some lectures call this game Nim; the game of taking stones is `nim` here. The
//! default is one heap of 13, which has a single winning split; there can be up to four heaps of up to 63. A heap of n
//! is split at most n - 2 times (removing ones, down to a two), so the bound on plies is the sum of n - 2 over the first
//! heaps.
//!
//! A move is `heap:a+b`, the smaller part first: `7:2+5` splits a heap of seven into two and five. Equal heaps are
//! interchangeable: a move names a size, and a position is a multiset. Its text is the heaps in ascending order and the
//! seat to move: `1-2-4 0`. The reader checks that the sizes, the sum and the number of heaps are possible, but not
//! which first heap each one came from.
//!
//! The representation is the number of heaps of each size, with the set of sizes, the number of moves, the key and the
//! sum of Grundy values updated incrementally.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn, features, sign, write_for_mover,
};
use crate::heaps::{self, LARGEST};
use crate::random::{Random, below, mix, zobrist};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grundy {
    /// The number of heaps of each size.
    counts: [u8; SIZES],
    /// The set of sizes, a bit each.
    present: u64,
    /// The sum of the keys of all heaps.
    key: u64,
    /// The number of legal moves.
    moves: u16,
    bound: u16,
    /// The xor of the Grundy values of all heaps. The side to move loses exactly if it is 0.
    value: u8,
    mover: Seat,
}

/// A heap's size and the smaller of its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    heap: u8,
    part: u8,
}

const SIZES: usize = LARGEST as usize + 1;
/// At four, the number of heaps of one (up to 4 * 63) fits a byte.
const MOST_HEAPS: usize = 4;
/// The sizes that can be split.
const SPLITTABLE: u64 = u64::MAX << 3;

/// The key of a heap of each size. Keys are added, so that equal heaps do not cancel out.
const KEYS: [u64; SIZES] = zobrist(b"grundy");

/// The Grundy value of each heap: the least number that none of its splits has (Sprague 1935, Grundy 1939).
const VALUES: [u8; SIZES] = {
    let mut values = [0; SIZES];
    let mut heap = 3;
    while heap < SIZES {
        let mut reached = 0u64;
        let mut part = 1;
        while 2 * part < heap {
            reached |= 1 << (values[part] ^ values[heap - part]);
            part += 1;
        }
        values[heap] = reached.trailing_ones() as u8;
        heap += 1;
    }
    values
};

/// Returns the number of ways to split a heap.
#[inline]
const fn splits(heap: usize) -> u16 {
    (heap.saturating_sub(1) / 2) as u16
}

/// Iterates over the sizes in a set, in ascending order.
fn sizes(set: u64) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let size = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (size < SIZES).then_some(size)
    })
}

impl Grundy {
    fn of_heaps(heaps: &[u8], bound: u16, mover: Seat) -> Grundy {
        let mut position =
            Grundy { counts: [0; SIZES], present: 0, key: 0, moves: 0, bound, value: 0, mover };
        for &heap in heaps {
            position.add(usize::from(heap));
        }
        position
    }

    #[inline]
    fn add(&mut self, heap: usize) {
        let heap = heap % SIZES;
        self.key = self.key.wrapping_add(KEYS[heap]);
        self.value ^= VALUES[heap];
        self.moves += splits(heap) * u16::from(self.counts[heap] == 0);
        self.present |= 1 << heap;
        self.counts[heap] += 1;
    }

    #[inline]
    fn remove(&mut self, heap: usize) {
        let heap = heap % SIZES;
        self.key = self.key.wrapping_sub(KEYS[heap]);
        self.value ^= VALUES[heap];
        self.counts[heap] -= 1;
        let last = self.counts[heap] == 0;
        self.present ^= u64::from(last) << heap;
        self.moves -= splits(heap) * u16::from(last);
    }

    fn heaps(&self) -> impl Iterator<Item = usize> {
        (0..SIZES).flat_map(|size| std::iter::repeat_n(size, usize::from(self.counts[size])))
    }
}

impl Game for Grundy {
    type Move = Split;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.moves == 0 { Turn::Over } else { Turn::Player(self.mover) }
    }

    #[inline]
    fn moves(&self, out: &mut Vec<Split>) {
        for size in sizes(self.present & SPLITTABLE) {
            out.extend((1..=splits(size) as u8).map(|part| Split { heap: size as u8, part }));
        }
    }

    #[inline]
    fn play(&mut self, Split { heap, part }: Split) {
        self.remove(usize::from(heap));
        self.add(usize::from(part));
        self.add(usize::from(heap - part));
        self.mover = self.mover.other();
    }

    fn payoff(&self, seat: Seat) -> i32 {
        if seat == self.mover { -1 } else { 1 }
    }

    fn ply_bound(&self) -> u32 {
        u32::from(self.bound)
    }

    #[inline]
    fn count(&self, _scratch: &mut Vec<Split>) -> u64 {
        u64::from(self.moves)
    }

    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Split>) -> Split {
        let mut index = below(random, usize::from(self.moves)) as u16;
        let mut rest = self.present & SPLITTABLE;
        loop {
            let heap = rest.trailing_zeros() as usize;
            if index < splits(heap) {
                return Split { heap: heap as u8, part: index as u8 + 1 };
            }
            index -= splits(heap);
            rest &= rest - 1;
        }
    }
}

impl Duel for Grundy {}
impl Deterministic for Grundy {}
impl Noisy for Grundy {}

impl Keyed for Grundy {
    const KEY_DECIDES: bool = true;

    fn key(&self) -> u64 {
        mix(self.key, u64::from(self.mover.0))
    }
}

impl Reseat for Grundy {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        Some(Grundy { mover: seat, ..self.clone() })
    }
}

impl Ordered for Grundy {
    /// The smaller part of a heap of at most 63 is below 32.
    const SLOTS: usize = SIZES * 32;

    fn slot(&self, mv: Split) -> usize {
        usize::from(mv.heap) * 32 + usize::from(mv.part)
    }

    /// Rates moves that leave a sum of 0.
    fn promise(&self, Split { heap, part }: Split) -> i32 {
        let change = [heap, part, heap - part].map(|size| VALUES[usize::from(size)]);
        i32::from(self.value ^ change[0] ^ change[1] ^ change[2] == 0)
    }
}

features! {
    "grundy_sum", 10.0, "for the mover, 1 if the xor of the heaps' Grundy values is not 0, else -1";
    "odd_splittable", 1.0, "for the mover, 1 if the number of heaps of three or more is odd, else -1";
    "splittable", 0.05, "for the mover, the heaps of three or more";
    "large_heaps", 0.1, "for the mover, the heaps of five or more";
    "moves", 0.0, "for the mover, the legal moves";
}

impl Features for Grundy {
    /// Both sides share the heaps, so each value is counted for the side to move.
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, _wanted: FeatureSet, values: &mut [i32]) {
        let count = |from: u64| sizes(self.present & from).map(|size| i32::from(self.counts[size])).sum();
        let splittable: i32 = count(SPLITTABLE);
        let for_mover = [
            sign(self.value != 0),
            sign(splittable % 2 == 1),
            splittable,
            count(SPLITTABLE << 2),
            i32::from(self.moves),
        ];
        write_for_mover(values, seat == self.mover, for_mover);
    }
}

impl Notation for Grundy {
    fn write_move(&self, Split { heap, part }: Split, out: &mut String) {
        out.push_str(&format!("{heap}:{part}+{}", heap - part));
    }

    fn board(&self) -> String {
        let line = |size: usize| {
            let times = self.counts[size];
            let times = if times == 1 { String::new() } else { format!("  x {times}") };
            format!("{size:>2}  {}{times}", "|".repeat(size))
        };
        let lines: Vec<String> = (0..SIZES).rev().filter(|&size| self.counts[size] > 0).map(line).collect();
        lines.join("\n")
    }

    fn position(&self) -> String {
        heaps::write(self.heaps().map(|heap| heap as u8), self.mover)
    }

    fn ending(&self) -> &'static str {
        "no heap to split"
    }
}

impl Setup for Grundy {
    const NAME: &'static str = "grundy";
    const SUMMARY: &'static str = "split one heap into two unequal heaps; a player who cannot move loses";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "heaps",
        default: "13",
        domain: Domain::Integers { min: 1, max: LARGEST as u64, most: MOST_HEAPS },
        about: "sizes of the first heaps, in any order",
    }];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str = "the heaps in ascending order and the seat to move, as in 1-2-4 0";

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let heaps = heaps::first_heaps(parameters);
        let bound = heaps.iter().map(|&heap| u16::from(heap.saturating_sub(2))).sum();
        Ok(Grundy::of_heaps(&heaps, bound, Seat::FIRST))
    }

    fn read_position(start: &Self, text: &str) -> Result<Self, String> {
        let (heaps, mover) = heaps::read(text, 1)?;
        if !heaps.is_sorted() {
            return Err("the heaps must be in ascending order".to_string());
        }
        let total: usize = start.heaps().sum();
        if heaps.iter().map(|&heap| usize::from(heap)).sum::<usize>() != total {
            return Err(format!("the heaps must add up to {total}"));
        }
        let (first, now) = (start.heaps().count(), heaps.len());
        // One heap leads to every multiset except several equal heaps: joining the largest and the smallest repeatedly
        // leads back to the start. For several first heaps these checks are necessary but not sufficient.
        let all_equal = heaps.first() == heaps.last();
        let too_large = heaps.last().map(|&heap| usize::from(heap)) > start.heaps().max();
        if now < first || too_large || first == 1 && now > 1 && all_equal {
            return Err("the first heaps cannot lead to these".to_string());
        }
        if (now - first) % 2 != mover.index() {
            return Err("the number of heaps does not fit the seat to move".to_string());
        }
        Ok(Grundy::of_heaps(&heaps, start.bound, mover))
    }
}
