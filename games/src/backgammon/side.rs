//! One side's checkers, and sets of places.
//!
//! A set of places is a word: bit 0 is off, bits 1 to 24 are the points from the side's view, bit 25 is the bar.

use super::CHECKERS;

/// The place of checkers borne off.
pub const OFF: u32 = 1;
/// The place number of the bar.
pub const BAR_PLACE: u32 = 25;
/// The bar.
pub const BAR: u32 = 1 << BAR_PLACE;
/// The points 1 to 24.
pub const POINTS: u32 = (1 << 25) - 2;
/// The points 1 to 6.
pub const HOME: u32 = 0b111_1110;
/// The places where a checker prevents bearing off.
pub const OUTFIELD: u32 = (POINTS | BAR) & !HOME;

/// Returns the points as the other side counts them, without off and the bar.
#[inline]
pub const fn mirrored(places: u32) -> u32 {
    places.reverse_bits() >> 6 & POINTS
}

/// The number of checkers on each place: a word per binary digit, the lowest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side([u32; 4]);

impl Side {
    /// A side without checkers.
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

    /// Removes a checker from each of `places`. An empty place wraps around; the next checker added restores it.
    #[inline]
    pub fn remove(&mut self, places: u32) {
        let mut borrow = places;
        for digit in &mut self.0 {
            let next = !*digit & borrow;
            *digit ^= borrow;
            borrow = next;
        }
    }

    /// Returns the number of checkers on a place.
    #[inline]
    pub fn count(&self, place: u32) -> u32 {
        let [a, b, c, d] = self.0.map(|digit| digit >> place & 1);
        a | b << 1 | c << 2 | d << 3
    }

    /// Returns the number of checkers borne off.
    pub fn off(&self) -> u32 {
        self.count(0)
    }

    /// Returns whether all checkers are borne off.
    #[inline]
    pub fn all_off(&self) -> bool {
        const { assert!(CHECKERS == 15, "all digits are set") };
        self.0[0] & self.0[1] & self.0[2] & self.0[3] & OFF != 0
    }

    /// Returns the places with a checker in play.
    #[inline]
    pub fn occupied(&self) -> u32 {
        (self.0[0] | self.0[1] | self.0[2] | self.0[3]) & !OFF
    }

    #[inline]
    fn several(&self) -> u32 {
        self.0[1] | self.0[2] | self.0[3]
    }

    /// Returns the places with one checker, including the bar.
    #[inline]
    pub fn single(&self) -> u32 {
        self.0[0] & !self.several() & !OFF
    }

    /// Returns the points with one checker.
    #[inline]
    pub fn blots(&self) -> u32 {
        self.single() & POINTS
    }

    /// Returns the held points: those with two checkers or more.
    #[inline]
    pub fn points(&self) -> u32 {
        self.several() & POINTS
    }

    /// Counts the checkers on all of `places`.
    pub fn sum(&self, places: u32) -> u32 {
        self.0.iter().rev().fold(0, |sum, digit| 2 * sum + (digit & places).count_ones())
    }

    /// Returns the pip count, with 25 for a checker on the bar.
    pub fn pips(&self) -> u32 {
        // The places whose number has each binary digit set.
        const ODD: [u32; 5] = [0xaaaa_aaaa, 0xcccc_cccc, 0xf0f0_f0f0, 0xff00_ff00, 0xffff_0000];
        ODD.iter().rev().fold(0, |pips, &places| 2 * pips + self.sum(places))
    }

    /// Returns the words for hashing.
    pub fn words(&self) -> [u64; 2] {
        let [a, b, c, d] = self.0.map(u64::from);
        [a | b << 32, c | d << 32]
    }
}
