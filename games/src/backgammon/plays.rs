//! The legal plays of a roll.
//!
//! Blocked points do not change within a turn, so a checker's moves depend only on the order of bar, entry and bearing
//! off. Two facts avoid duplicate plays:
//! - For a double, the multiset of sources determines the result, and every legal multiset can be played from the highest
//!   source down.
//! - For two different dice, the pair of sources determines the result, except that one checker may use the dice in either
//!   order (with the same result unless it hits on the way), and that two checkers borne off may swap dice.

use super::side::{BAR, OFF, OUTFIELD, POINTS, Side, mirrored};
use super::{Backgammon, Move};

/// Returns the die for each source of a play.
#[inline]
pub fn steps([larger, smaller]: [u8; 2]) -> [u8; 4] {
    if larger == smaller { [larger; 4] } else { [larger, smaller, 0, 0] }
}

/// Plays that share all sources but one.
pub struct Batch {
    sources: [u8; 4],
    /// The index of the varying source.
    varying: usize,
    /// Its possible places, a bit each.
    choices: u32,
}

impl Batch {
    /// Returns the number of plays.
    #[inline]
    pub fn size(&self) -> u32 {
        self.choices.count_ones()
    }

    /// Iterates over the plays, lowest source first.
    pub fn plays(&self) -> impl Iterator<Item = Move> {
        let (mut sources, varying) = (self.sources, self.varying);
        each(self.choices).map(move |source| {
            sources[varying] = source as u8;
            Move::Play(sources)
        })
    }

    /// Returns a play by its index. Precondition: `index` is below [`Batch::size`].
    #[inline]
    pub fn play(&self, index: u32) -> Move {
        let mut choices = self.choices;
        for _ in 0..index {
            choices &= choices - 1;
        }
        let mut sources = self.sources;
        sources[self.varying] = choices.trailing_zeros() as u8;
        Move::Play(sources)
    }
}

/// Iterates over the places in a set.
#[inline]
fn each(mut places: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (places != 0).then(|| {
            let place = places.trailing_zeros();
            places &= places - 1;
            place
        })
    })
}

/// Returns the places from which a die can be played; `open` are the points that are not blocked.
#[inline]
fn sources(occupied: u32, open: u32, die: u32) -> u32 {
    if occupied & OUTFIELD != 0 {
        let movable = occupied & (open << die);
        return if occupied & BAR == 0 { movable } else { movable & BAR };
    }
    let movable = occupied & ((open | OFF) << die);
    // Bearing off from below the die's own point takes the highest checker.
    if occupied >> die == 0 && occupied != 0 { 1 << occupied.ilog2() } else { movable }
}

/// Returns the occupied places after a checker has moved.
#[inline]
fn occupied_after(occupied: u32, single: u32, source: u32, die: u32) -> u32 {
    let target = 1u32 << source.saturating_sub(die) & POINTS;
    occupied & !(single & 1 << source) | target
}

impl Backgammon {
    /// Visits every legal play once, in batches. Precondition: the dice are rolled.
    #[inline]
    pub(super) fn batches(&self, visit: &mut impl FnMut(Batch)) {
        let [larger, smaller] = self.dice.map(u32::from);
        let (own, other) = (self.own(), self.other());
        let open = POINTS & !mirrored(other.points());
        if larger == smaller {
            let most = most_steps(*own, open, larger);
            if most == 0 {
                pass(visit);
            } else {
                repeated(own, open, larger, u32::MAX, [0; 4], most, 0, visit);
            }
        } else {
            let pairs = Pairs { open, larger, smaller, occupied: own.occupied(), single: own.single() };
            let outside = own.occupied() & OUTFIELD;
            let stays_outside = outside & !own.single() != 0 || outside & outside.wrapping_sub(1) != 0;
            let blots = mirrored(other.blots());
            let found = if stays_outside && outside & BAR == 0 {
                pairs.in_the_field(blots, visit)
            } else {
                pairs.with_bar_or_bearing_off(blots, visit)
            };
            if !found {
                pairs.single_die(visit);
            }
        }
    }
}

fn pass(visit: &mut impl FnMut(Batch)) {
    // The only choice is place 0, for no source.
    visit(Batch { sources: [0; 4], varying: 0, choices: 1 });
}

/// Counts how often a double can be played, at most four times. Moving the highest checker first is optimal: it only lifts
/// the restrictions of the bar and of bearing off.
fn most_steps(mut own: Side, open: u32, die: u32) -> usize {
    for step in 0..4 {
        let choices = sources(own.occupied(), open, die);
        if choices == 0 {
            return step;
        }
        let source = choices.ilog2();
        own.remove(1 << source);
        own.add(1 << source.saturating_sub(die));
    }
    4
}

/// Visits the plays of a double from step `step` on, with sources in `up_to`: none above the last source.
#[allow(clippy::too_many_arguments, reason = "the state of one recursion")]
fn repeated(
    own: &Side,
    open: u32,
    die: u32,
    up_to: u32,
    played: [u8; 4],
    most: usize,
    step: usize,
    visit: &mut impl FnMut(Batch),
) {
    let occupied = own.occupied();
    let choices = sources(occupied, open, die) & up_to;
    if step + 1 == most {
        if choices != 0 {
            visit(Batch { sources: played, varying: step, choices });
        }
        return;
    }
    for source in each(choices) {
        let up_to = (2 << source) - 1;
        let mut played = played;
        played[step] = source as u8;
        if step + 2 == most {
            // The last step only needs the occupied places.
            let after = occupied_after(occupied, own.single(), source, die);
            let choices = sources(after, open, die) & up_to;
            if choices != 0 {
                visit(Batch { sources: played, varying: step + 1, choices });
            }
        } else {
            let mut after = *own;
            after.remove(1 << source);
            after.add(1 << source.saturating_sub(die));
            repeated(&after, open, die, up_to, played, most, step + 1, visit);
        }
    }
}

/// The plays of two different dice.
struct Pairs {
    open: u32,
    larger: u32,
    smaller: u32,
    occupied: u32,
    single: u32,
}

impl Pairs {
    fn first_sources(&self, die: u32) -> u32 {
        sources(self.occupied, self.open, die)
    }

    fn second_sources(&self, first: u32, first_die: u32, die: u32) -> u32 {
        sources(occupied_after(self.occupied, self.single, first, first_die), self.open, die)
    }

    /// Visits the plays of both dice for positions without checkers on the bar or close to bearing off. Returns whether
    /// there are any.
    #[inline]
    fn in_the_field(&self, blots: u32, visit: &mut impl FnMut(Batch)) -> bool {
        let &Pairs { open, larger, smaller, occupied, single } = self;
        let by_larger = occupied & (open << larger);
        let by_smaller = occupied & (open << smaller);
        let through = open << (larger + smaller);
        // Checkers that can use both dice in either order with the same result: the larger first.
        let either = by_larger & by_smaller & through & !(blots << larger | blots << smaller);
        let mut found = false;
        for source in each(by_larger) {
            let place = 1 << source;
            let onward = place >> larger & (open << smaller);
            let swapped = place << smaller & either;
            let choices = (by_smaller & !(single & place) | onward) & !swapped;
            if choices != 0 {
                found = true;
                visit(Batch { sources: [source as u8, 0, 0, 0], varying: 1, choices });
            }
        }
        // One checker uses both dice, the smaller first, onto a point where no other checker can use the larger.
        for source in each(by_smaller & through & !either & !(occupied << smaller)) {
            found = true;
            let first = (source - smaller) as u8;
            visit(Batch { sources: [first, 0, 0, 0], varying: 1, choices: 1 << source });
        }
        found
    }

    /// Visits the plays of both dice in the other positions. Returns whether there are any.
    fn with_bar_or_bearing_off(&self, blots: u32, visit: &mut impl FnMut(Batch)) -> bool {
        let &Pairs { larger, smaller, .. } = self;
        // The sources of the smaller die, by the source of the larger.
        let mut pairs = [0u32; 26];
        let mut firsts = self.first_sources(larger);
        for source in each(firsts) {
            pairs[source as usize] = self.second_sources(source, larger, smaller);
        }
        for source in each(self.first_sources(smaller)) {
            let choices = self.second_sources(source, smaller, larger);
            firsts |= choices;
            for first in each(choices) {
                pairs[first as usize] |= 1 << source;
            }
        }
        let mut found = false;
        for first in each(firsts) {
            let mut choices = pairs[first as usize];
            // One checker using the smaller die first, if the larger first has the same result.
            let start = first + smaller;
            if choices & 1 << start != 0 && start > larger {
                let way = start - larger;
                if pairs[start as usize] & 1 << way != 0 && blots & (1 << first | 1 << way) == 0 {
                    choices &= !(1 << start);
                }
            }
            // Two checkers borne off, the higher by the smaller die, if the swapped dice work as well.
            if first < smaller {
                for higher in each(choices & ((2 << smaller) - (2 << first))) {
                    if pairs[higher as usize] & 1 << first != 0 {
                        choices &= !(1 << higher);
                    }
                }
            }
            if choices != 0 {
                found = true;
                visit(Batch { sources: [first as u8, 0, 0, 0], varying: 1, choices });
            }
        }
        found
    }

    /// Visits the plays of a single die: the larger if possible, else the smaller, else a pass.
    fn single_die(&self, visit: &mut impl FnMut(Batch)) {
        for (varying, die) in [self.larger, self.smaller].into_iter().enumerate() {
            let choices = self.first_sources(die);
            if choices != 0 {
                return visit(Batch { sources: [0; 4], varying, choices });
            }
        }
        pass(visit);
    }
}
