//! One side's checkers, and sets of places.
//!
//! A set of places is a word of bits: bit 0 is off, bits 1 to 24 the points as the side counts them, bit 25 the bar.

use super::CHECKERS;

/// Off the board.
pub const OFF: u32 = 1;
/// The number of the bar among the places.
pub const BAR_PLACE: u32 = 25;
/// The bar.
pub const BAR: u32 = 1 << BAR_PLACE;
/// The points 1 to 24.
pub const POINTS: u32 = (1 << 25) - 2;
/// The points 1 to 6.
pub const HOME: u32 = 0b111_1110;
/// Everything that keeps a side from bearing off.
pub const OUTFIELD: u32 = (POINTS | BAR) & !HOME;

/// The same places as the other side counts them, off and the bar left out.
#[inline]
pub const fn mirrored(places: u32) -> u32 {
    places.reverse_bits() >> 6 & POINTS
}

/// The number of checkers on each place: its binary digits, the lowest first, one word for all places each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side([u32; 4]);

impl Side {
    /// No checkers at all.
    pub const NONE: Side = Side([0; 4]);

    /// Two on 24, five on 13, three on 8 and five on 6.
    pub const START: Side = Side([1 << 13 | 1 << 8 | 1 << 6, 1 << 24 | 1 << 8, 1 << 13 | 1 << 6, 0]);

    /// Adds a checker to each of `places`.
    #[inline]
    pub fn add(&mut self, places: u32) {
        let mut carry = places;
        for digit in &mut self.0 {
            let next = *digit & carry;
            *digit ^= carry;
            carry = next;
        }
    }

    /// Takes a checker from each of `places`. An empty place owes it: the next one added pays.
    #[inline]
    pub fn remove(&mut self, places: u32) {
        let mut borrow = places;
        for digit in &mut self.0 {
            let next = !*digit & borrow;
            *digit ^= borrow;
            borrow = next;
        }
    }

    /// The number of checkers on one place.
    #[inline]
    pub fn count(&self, place: u32) -> u32 {
        let [a, b, c, d] = self.0.map(|digit| digit >> place & 1);
        a | b << 1 | c << 2 | d << 3
    }

    /// How many checkers have been borne off.
    pub fn off(&self) -> u32 {
        self.count(0)
    }

    /// Whether all checkers have been borne off.
    #[inline]
    pub fn all_off(&self) -> bool {
        const { assert!(CHECKERS == 15, "all digits are set") };
        self.0[0] & self.0[1] & self.0[2] & self.0[3] & OFF != 0
    }

    /// The places with a checker still in play.
    #[inline]
    pub fn occupied(&self) -> u32 {
        (self.0[0] | self.0[1] | self.0[2] | self.0[3]) & !OFF
    }

    #[inline]
    fn several(&self) -> u32 {
        self.0[1] | self.0[2] | self.0[3]
    }

    /// The places with one checker, the bar too.
    #[inline]
    pub fn single(&self) -> u32 {
        self.0[0] & !self.several() & !OFF
    }

    /// The points with one checker.
    #[inline]
    pub fn blots(&self) -> u32 {
        self.single() & POINTS
    }

    /// The points held: those with two checkers or more.
    #[inline]
    pub fn points(&self) -> u32 {
        self.several() & POINTS
    }

    /// The number of checkers on all of `places`.
    pub fn sum(&self, places: u32) -> u32 {
        self.0.iter().rev().fold(0, |sum, digit| 2 * sum + (digit & places).count_ones())
    }

    /// The pips to bear off everything, 25 for a checker on the bar.
    pub fn pips(&self) -> u32 {
        // The digits of the place numbers, as sets of places.
        const ODD: [u32; 5] = [0xaaaa_aaaa, 0xcccc_cccc, 0xf0f0_f0f0, 0xff00_ff00, 0xffff_0000];
        ODD.iter().rev().fold(0, |pips, &places| 2 * pips + self.sum(places))
    }

    /// Everything, for hashing.
    pub fn words(&self) -> [u64; 2] {
        let [a, b, c, d] = self.0.map(u64::from);
        [a | b << 32, c | d << 32]
    }
}
