//! The transposition table: one allocation, aged, with both bounds of a value at one depth.
//!
//! Entries are matched by the whole 64-bit key. A move from the table only reorders generated moves, so that a key
//! collision cannot produce an illegal move. Entries of earlier games have an older epoch and count as empty, so that
//! starting a game costs nothing.
//!
//! Both bounds are kept because the memory-enhanced test drivers need them (Plaat, Schaeffer, Pijls and de Bruin
//! 1996).

use crate::memory::reserve;
use crate::value::{INFINITY, Score, to_node, to_root};

/// A table entry, with scores from the root's view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known<M> {
    /// The search depth for which the bounds hold.
    pub depth: u32,
    /// The lower bound of the value.
    pub lower: Score,
    /// The upper bound of the value.
    pub upper: Score,
    /// Whether the bounds depend on no horizon, so that they hold at every greater depth too.
    pub whole: bool,
    /// The best move, if one was found.
    pub best: Option<M>,
}

#[derive(Clone, Copy)]
struct Entry<M> {
    key: u64,
    lower: Score,
    upper: Score,
    best: Option<M>,
    epoch: u16,
    depth: u8,
    /// The age in the low bits, and [`WHOLE`].
    age: u8,
}

/// The bit of an entry whose bounds depend on no horizon.
const WHOLE: u8 = 0x80;

/// The number of entries per bucket.
const WAYS: usize = 2;

/// A transposition table of a fixed size.
pub struct TranspositionTable<M> {
    buckets: Vec<[Entry<M>; WAYS]>,
    epoch: u16,
    age: u8,
}

impl<M: Copy + Eq> TranspositionTable<M> {
    /// Creates an empty table of at most `megabytes` MiB. Panics if there is no memory for it.
    pub fn new(megabytes: usize) -> TranspositionTable<M> {
        let count = ((megabytes << 20) / size_of::<[Entry<M>; WAYS]>()).max(1);
        let empty = Entry { key: 0, lower: 0, upper: 0, best: None, epoch: 0, depth: 0, age: 0 };
        let mut buckets = Vec::new();
        reserve(&mut buckets, count, || format!("a transposition table of {megabytes} MB"));
        buckets.resize(count, [empty; WAYS]);
        TranspositionTable { buckets, epoch: 1, age: 0 }
    }

    /// Empties the table.
    pub fn clear(&mut self) {
        self.age = 0;
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            // After 65,536 games the epochs wrap around and the table is wiped.
            let entries = self.buckets.iter_mut().flatten();
            entries.for_each(|entry| entry.epoch = 0);
            self.epoch = 1;
        }
    }

    /// Starts a new search: entries of earlier searches are replaced first.
    pub fn grow_older(&mut self) {
        self.age = (self.age + 1) & !WHOLE;
    }

    #[inline]
    fn bucket(&self, key: u64) -> usize {
        ((u128::from(key) * self.buckets.len() as u128) >> 64) as usize
    }

    /// Returns the entry of a position `ply` plies from the root.
    #[inline]
    pub fn probe(&self, key: u64, ply: usize) -> Option<Known<M>> {
        let bucket = &self.buckets[self.bucket(key)];
        let entry = bucket.iter().find(|entry| entry.key == key && entry.epoch == self.epoch)?;
        Some(Known {
            depth: u32::from(entry.depth),
            lower: to_root(entry.lower, ply),
            upper: to_root(entry.upper, ply),
            whole: entry.age & WHOLE != 0,
            best: entry.best,
        })
    }

    /// Stores bounds of a position's value. Known bounds at the same depth are narrowed, and a known best move is
    /// kept if the new entry has none.
    #[inline]
    pub fn store(&mut self, key: u64, ply: usize, known: Known<M>) {
        let index = self.bucket(key);
        let (epoch, age) = (self.epoch, self.age);
        let depth = known.depth.min(255) as u8;
        let (mut lower, mut upper) = (to_node(known.lower, ply), to_node(known.upper, ply));
        let bucket = &mut self.buckets[index];
        let same = bucket.iter().position(|entry| entry.key == key && entry.epoch == epoch);
        let slot = same.unwrap_or_else(|| {
            // Replace an entry of another game, else the shallowest, each search of age costing four plies.
            let worth = |entry: &Entry<M>| {
                if entry.epoch != epoch {
                    return i32::MIN;
                }
                i32::from(entry.depth) - 4 * i32::from(age.wrapping_sub(entry.age) & !WHOLE)
            };
            (0..WAYS).min_by_key(|&way| worth(&bucket[way])).unwrap_or(0)
        });
        let old = &bucket[slot];
        let mut best = known.best;
        let mut whole = known.whole;
        if same.is_some() {
            best = best.or(old.best);
            if old.depth == depth {
                lower = lower.max(old.lower);
                upper = upper.min(old.upper);
                whole &= old.age & WHOLE != 0;
                if lower > upper {
                    // Bounds can contradict each other only where values depend on the path: the new ones win.
                    (lower, upper) = (to_node(known.lower, ply), to_node(known.upper, ply));
                    whole = known.whole;
                }
            }
        }
        let age = if whole { age | WHOLE } else { age };
        bucket[slot] = Entry { key, lower, upper, best, epoch, depth, age };
    }
}

impl<M> Known<M> {
    /// Creates the entry that a fail-soft search with the window `(alpha, beta)` and this value implies.
    #[inline]
    pub fn learnt(depth: u32, value: Score, alpha: Score, beta: Score, best: Option<M>) -> Known<M> {
        Known {
            whole: false,
            depth,
            lower: if value > alpha { value } else { -INFINITY },
            upper: if value < beta { value } else { INFINITY },
            best,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{WIN, end_score};

    fn known(depth: u32, lower: Score, upper: Score, best: Option<u8>) -> Known<u8> {
        Known { depth, lower, upper, whole: false, best }
    }

    #[test]
    fn narrows_bounds_of_equal_depth() {
        let mut table = TranspositionTable::new(1);
        table.store(5, 0, known(3, -INFINITY, 10, None));
        table.store(5, 0, known(3, 4, INFINITY, Some(7)));
        assert_eq!(table.probe(5, 0), Some(known(3, 4, 10, Some(7))));
        table.store(5, 0, known(4, 5, INFINITY, None));
        assert_eq!(table.probe(5, 0), Some(known(4, 5, INFINITY, Some(7))));
        assert_eq!(table.probe(6, 0), None);
    }

    #[test]
    fn narrowed_bounds_are_whole_only_if_both_are() {
        let mut table = TranspositionTable::new(1);
        let whole = |lower, upper| Known { whole: true, ..known(3, lower, upper, None) };
        for _ in 0..200 {
            // The age never touches the bit.
            table.grow_older();
            table.store(5, 0, whole(-INFINITY, 10));
            assert_eq!(table.probe(5, 0), Some(whole(-INFINITY, 10)));
            table.store(5, 0, whole(4, INFINITY));
            assert_eq!(table.probe(5, 0), Some(whole(4, 10)));
            table.store(5, 0, known(3, 5, INFINITY, None));
            assert_eq!(table.probe(5, 0), Some(known(3, 5, 10, None)));
            table.store(5, 0, known(4, 0, 0, None));
        }
    }

    #[test]
    #[should_panic(expected = "not enough memory for a transposition table of 1099511627776 MB")]
    fn a_table_that_does_not_fit_panics() {
        let _: TranspositionTable<u8> = TranspositionTable::new(1 << 40);
    }

    #[test]
    fn ends_are_stored_relative_to_node() {
        let mut table: TranspositionTable<u8> = TranspositionTable::new(1);
        let win = end_score(1, 9);
        table.store(5, 6, known(3, win, win, None));
        assert_eq!(table.probe(5, 2).map(|known| known.lower), Some(WIN - 5));
    }

    #[test]
    fn cleared_table_is_empty_after_all_epochs() {
        let mut table: TranspositionTable<u8> = TranspositionTable::new(1);
        for _ in 0..70_000 {
            assert_eq!(table.probe(5, 0), None);
            table.store(5, 0, known(1, 1, 1, None));
            table.clear();
        }
    }

    #[test]
    fn replaces_shallow_and_old_entries() {
        let mut table: TranspositionTable<u8> =
            TranspositionTable { buckets: vec![[EMPTY; WAYS]], epoch: 1, age: 0 };
        for (key, depth) in [(1, 9), (2, 3), (3, 4), (4, 1)] {
            table.store(key, 0, known(depth, 0, 0, None));
        }
        assert!(table.probe(1, 0).is_some() && table.probe(4, 0).is_some());
        for _ in 0..3 {
            table.grow_older();
        }
        table.store(5, 0, known(2, 0, 0, None));
        table.store(6, 0, known(1, 0, 0, None));
        assert!(table.probe(5, 0).is_some() && table.probe(6, 0).is_some() && table.probe(1, 0).is_none());
    }

    const EMPTY: Entry<u8> = Entry { key: 0, lower: 0, upper: 0, best: None, epoch: 0, depth: 0, age: 0 };
}
