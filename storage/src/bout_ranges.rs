//! The bouts found in a dataset, each with the part (file) that contains it. They are stored as ranges, because the bouts of
//! a part are mostly consecutive.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A set of bouts, each with the index of its part.
#[derive(Default)]
pub struct BoutRanges {
    /// For each range: the first bout as the key, then the last bout and the part. Ranges do not overlap.
    ranges: BTreeMap<u64, (u64, usize)>,
    bouts: u64,
}

impl BoutRanges {
    /// Adds a bout of a part. If a part already has the bout, changes nothing and returns that part.
    pub fn add(&mut self, bout: u64, part: usize) -> Option<usize> {
        if let Some((_, (last, owner))) = self.ranges.range_mut(..=bout).next_back() {
            if bout <= *last {
                return Some(*owner);
            }
            if *owner == part && *last + 1 == bout {
                *last = bout;
                self.bouts += 1;
                return None;
            }
        }
        self.ranges.insert(bout, (bout, part));
        self.bouts += 1;
        None
    }

    /// Adds a range of bouts of a part. If a part already has one of them, changes nothing and returns that part.
    pub fn add_range(&mut self, bouts: RangeInclusive<u64>, part: usize) -> Option<usize> {
        let (first, last) = bouts.into_inner();
        if let Some((_, (owner_last, owner))) = self.ranges.range(..=last).next_back()
            && *owner_last >= first
        {
            return Some(*owner);
        }
        self.ranges.insert(first, (last, part));
        self.bouts += last - first + 1;
        None
    }

    /// Returns the number of bouts added.
    pub fn bouts(&self) -> u64 {
        self.bouts
    }

    /// Returns the ranges of bouts below `end` that were not added.
    pub fn holes(&self, end: u64) -> Vec<RangeInclusive<u64>> {
        let mut holes = Vec::new();
        let mut next = 0;
        for (&first, &(last, _)) in self.ranges.range(..end) {
            if next < first {
                holes.push(next..=first - 1);
            }
            next = last + 1;
        }
        if next < end {
            holes.push(next..=end - 1);
        }
        holes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agon_games::random::{below, seeded};

    use super::*;

    #[test]
    fn ranges_agree_with_single_bouts() {
        let mut random = seeded(2);
        for _ in 0..200 {
            let mut ranges = BoutRanges::default();
            let mut owners = BTreeMap::new();
            for part in 0..8 {
                let first = below(&mut random, 40) as u64;
                let range = first..=first + below(&mut random, 6) as u64;
                let known: Vec<usize> = range.clone().filter_map(|bout| owners.get(&bout).copied()).collect();
                match ranges.add_range(range.clone(), part) {
                    Some(owner) => assert!(known.contains(&owner)),
                    None => {
                        assert!(known.is_empty(), "{known:?}");
                        owners.extend(range.map(|bout| (bout, part)));
                    }
                }
            }
            assert_eq!(ranges.bouts(), owners.len() as u64);
            let missing: BTreeSet<u64> = ranges.holes(50).into_iter().flatten().collect();
            assert_eq!(missing, (0..50).filter(|bout| !owners.contains_key(bout)).collect());
        }
    }

    #[test]
    fn single_bouts_agree_with_a_set() {
        let mut random = seeded(1);
        for _ in 0..200 {
            let mut ranges = BoutRanges::default();
            let mut owners = BTreeMap::new();
            for _ in 0..below(&mut random, 40) {
                let (bout, part) = (below(&mut random, 30) as u64, below(&mut random, 3));
                assert_eq!(ranges.add(bout, part), owners.get(&bout).copied());
                owners.entry(bout).or_insert(part);
            }
            assert_eq!(ranges.bouts(), owners.len() as u64);
            for end in 0..35 {
                let missing: BTreeSet<u64> = ranges.holes(end).into_iter().flatten().collect();
                let expected = (0..end).filter(|bout| !owners.contains_key(bout)).collect();
                assert_eq!(missing, expected);
            }
        }
    }
}
