//! Grundy's game: split one heap into two unequal heaps; who cannot move loses.
//!
//! Heaps of one and two stay as they are. Some lectures call this game Nim; the game of taking stones is `nim` here.
//! One heap of 13 by default, which has a single winning split; up to four heaps of up to 63. Every split makes one
//! heap more, and a heap of n is at most split n - 2 times (ones off it, down to a two), so the bound on plies is the
//! sum of that over the first heaps.
//!
//! A move is `heap:a+b`, the smaller part first: `7:2+5` splits a heap of seven into two and five. Equal heaps are
//! interchangeable: a move names a size, and a position is a multiset. Its text is the heaps in ascending order and
//! the seat to move: `1-2-4 0`. Which first heap each of several came from is not asked of it, only whether the
//! sizes, the sum and the number of heaps can be.
//!
//! The number of heaps of each size, with the set of sizes that there are, the number of moves, the key and
//! the sum of Grundy values kept along.

use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn,
};
use crate::random::{Random, below, mix, zobrist};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grundy {
    /// The number of heaps of each size.
    counts: [u8; SIZES],
    /// The sizes that there are, a bit each.
    present: u64,
    /// The sum of the keys of all heaps.
    key: u64,
    /// The number of legal moves.
    moves: u16,
    bound: u16,
    /// The xor of the values of all heaps: the side to move loses exactly where it is 0.
    value: u8,
    mover: Seat,
}

/// A heap's size and the smaller of its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    heap: u8,
    part: u8,
}

const LARGEST: usize = 63;
const SIZES: usize = LARGEST + 1;
/// Four times 63 objects: no more heaps of one than a byte counts.
const MOST_HEAPS: usize = 4;
/// The sizes that can be split.
const SPLITTABLE: u64 = u64::MAX << 3;

/// A key for a heap of each size; heaps add up, so that two equal ones do not cancel out.
const KEYS: [u64; SIZES] = zobrist(b"grundy");

/// The value of each heap: the least number that no split of it has (Sprague 1935, Grundy 1939).
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

/// How many ways there are to split a heap.
#[inline]
const fn splits(heap: usize) -> u16 {
    (heap.saturating_sub(1) / 2) as u16
}

/// The sizes in a set, ascending.
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

    /// Whether the move leaves a sum of 0.
    fn promise(&self, Split { heap, part }: Split) -> i32 {
        let change = [heap, part, heap - part].map(|size| VALUES[usize::from(size)]);
        i32::from(self.value ^ change[0] ^ change[1] ^ change[2] == 0)
    }
}

impl Features for Grundy {
    /// Both sides play with the same heaps, so each value is counted for the side to move.
    const FEATURES: &'static [Feature] = &[
        Feature {
            name: "grundy_sum",
            weight: 10.0,
            about: "for the mover, 1 if the xor of the heaps' Grundy values is not 0, else -1",
        },
        Feature {
            name: "odd_splittable",
            weight: 1.0,
            about: "for the mover, 1 if the number of heaps of three or more is odd, else -1",
        },
        Feature { name: "splittable", weight: 0.05, about: "for the mover, the heaps of three or more" },
        Feature { name: "large_heaps", weight: 0.1, about: "for the mover, the heaps of five or more" },
        Feature { name: "moves", weight: 0.0, about: "for the mover, the legal moves" },
    ];

    fn features(&self, seat: Seat, _wanted: FeatureSet, values: &mut [i32]) {
        let either = |yes: bool| if yes { 1 } else { -1 };
        let count = |from: u64| sizes(self.present & from).map(|size| i32::from(self.counts[size])).sum();
        let splittable: i32 = count(SPLITTABLE);
        let of_mover = [
            either(self.value != 0),
            either(splittable % 2 == 1),
            splittable,
            count(SPLITTABLE << 2),
            i32::from(self.moves),
        ];
        for (value, of_mover) in values.iter_mut().zip(of_mover) {
            *value = either(seat == self.mover) * of_mover;
        }
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
        let heaps: Vec<String> = self.heaps().map(|heap| heap.to_string()).collect();
        format!("{} {}", heaps.join("-"), self.mover.0)
    }

    fn ending(&self) -> &'static str {
        "no heap to split"
    }
}

impl Setup for Grundy {
    const NAME: &'static str = "grundy";
    const SUMMARY: &'static str = "split one heap into two unequal heaps; who cannot move loses";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "heaps",
        default: "13",
        domain: Domain::Integers { min: 1, max: LARGEST as u64, most: MOST_HEAPS },
        about: "sizes of the first heaps, in any order",
    }];
    const TURNS: Turns = Turns::Rotate;

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        let heaps: Vec<u8> = parameters.integers("heaps").iter().map(|&heap| heap as u8).collect();
        let bound = heaps.iter().map(|&heap| u16::from(heap.saturating_sub(2))).sum();
        Ok(Grundy::of_heaps(&heaps, bound, Seat::FIRST))
    }

    fn from_position(parameters: &Parameters, text: &str) -> Result<Self, SetupError> {
        let start = Grundy::initial(parameters)?;
        let wrong = |reason: &str| SetupError::Position {
            game: Self::NAME,
            reason: reason.to_string(),
            form: "the heaps in ascending order and the seat to move, as in 1-2-4 0",
        };
        let (heaps, mover) =
            text.split_once(' ').ok_or_else(|| wrong("there is no space before the mover"))?;
        let heaps: Vec<u8> = heaps
            .split('-')
            .map(|heap| {
                let allowed = |size: &u8| (1..SIZES as u8).contains(size) && size.to_string() == heap;
                heap.parse().ok().filter(allowed)
            })
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("a heap is a whole number from 1 to 63"))?;
        if !heaps.is_sorted() {
            return Err(wrong("the heaps must be in ascending order"));
        }
        let total: usize = start.heaps().sum();
        if heaps.iter().map(|&heap| usize::from(heap)).sum::<usize>() != total {
            return Err(wrong(&format!("the heaps must add up to {total}")));
        }
        let (first, now) = (start.heaps().count(), heaps.len());
        // From one heap everything can come but equal heaps: joining the largest and the smallest again and again
        // leads back to the start. The same ends of several heaps are necessary, not sufficient.
        let all_equal = heaps.first() == heaps.last();
        let too_large = heaps.last().map(|&heap| usize::from(heap)) > start.heaps().max();
        if now < first || too_large || first == 1 && now > 1 && all_equal {
            return Err(wrong("these heaps cannot come from the first ones"));
        }
        let mover = match mover {
            "0" => Seat::FIRST,
            "1" => Seat::SECOND,
            _ => return Err(wrong("the seat to move is 0 or 1")),
        };
        if (now - first) % 2 != mover.index() {
            return Err(wrong("the number of heaps does not fit who moves"));
        }
        Ok(Grundy::of_heaps(&heaps, start.bound, mover))
    }
}
