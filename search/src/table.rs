//! The transposition table: one allocation, aged, with both bounds of a value at one depth.
//!
//! Entries are found by their whole 64-bit key. A move from the table is only ever used to reorder generated moves, so
//! that a colliding key can never put an illegal move on the board. Each game starts with an empty table: entries of
//! earlier games are told by their epoch and count as empty, which costs nothing to begin anew.
//!
//! Both bounds are kept, as the memory-enhanced test drivers need (Plaat, Schaeffer, Pijls and de Bruin 1996).

use crate::value::{INFINITY, Score, to_node, to_root};

/// What the table knows of a position, scores as seen from the root of the asking search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known<M> {
    /// The depth below the position that the bounds hold for.
    pub depth: u32,
    /// The value is at least this.
    pub lower: Score,
    /// The value is at most this.
    pub upper: Score,
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
    age: u8,
}

/// Entries that share an index.
const WAYS: usize = 2;

/// A table of a fixed size.
pub struct Table<M> {
    buckets: Vec<[Entry<M>; WAYS]>,
    epoch: u16,
    age: u8,
}

impl<M: Copy + Eq> Table<M> {
    /// Creates an empty table of at most `megabytes` MiB.
    pub fn new(megabytes: usize) -> Table<M> {
        let buckets = ((megabytes << 20) / size_of::<[Entry<M>; WAYS]>()).max(1);
        let empty = Entry { key: 0, lower: 0, upper: 0, best: None, epoch: 0, depth: 0, age: 0 };
        Table { buckets: vec![[empty; WAYS]; buckets], epoch: 1, age: 0 }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.age = 0;
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            // Once in 65,536 games the epochs run out and the table is really wiped.
            let entries = self.buckets.iter_mut().flatten();
            entries.for_each(|entry| entry.epoch = 0);
            self.epoch = 1;
        }
    }

    /// Tells the table that a new search begins: what earlier ones stored gives way first.
    pub fn grow_older(&mut self) {
        self.age = self.age.wrapping_add(1);
    }

    #[inline]
    fn bucket(&self, key: u64) -> usize {
        ((u128::from(key) * self.buckets.len() as u128) >> 64) as usize
    }

    /// What is known of the position with this key, `ply` plies from the root.
    #[inline]
    pub fn probe(&self, key: u64, ply: usize) -> Option<Known<M>> {
        let bucket = &self.buckets[self.bucket(key)];
        let entry = bucket.iter().find(|entry| entry.key == key && entry.epoch == self.epoch)?;
        Some(Known {
            depth: u32::from(entry.depth),
            lower: to_root(entry.lower, ply),
            upper: to_root(entry.upper, ply),
            best: entry.best,
        })
    }

    /// Stores that the value of a position at this depth lies within bounds. Bounds already known for the same depth
    /// are narrowed; the best move is kept where the new search has none.
    #[inline]
    pub fn store(&mut self, key: u64, ply: usize, known: Known<M>) {
        let index = self.bucket(key);
        let (epoch, age) = (self.epoch, self.age);
        let depth = known.depth.min(255) as u8;
        let (mut lower, mut upper) = (to_node(known.lower, ply), to_node(known.upper, ply));
        let bucket = &mut self.buckets[index];
        let same = bucket.iter().position(|entry| entry.key == key && entry.epoch == epoch);
        let slot = same.unwrap_or_else(|| {
            // The entry that is worth least: one of another game, else the shallowest, an age costing four plies.
            let worth = |entry: &Entry<M>| {
                if entry.epoch != epoch {
                    return i32::MIN;
                }
                i32::from(entry.depth) - 4 * i32::from(age.wrapping_sub(entry.age))
            };
            (0..WAYS).min_by_key(|&way| worth(&bucket[way])).unwrap_or(0)
        });
        let old = &bucket[slot];
        let mut best = known.best;
        if same.is_some() {
            best = best.or(old.best);
            if old.depth == depth {
                lower = lower.max(old.lower);
                upper = upper.min(old.upper);
                if lower > upper {
                    // Only where values depend on the path can old and new contradict each other: the new ones count.
                    (lower, upper) = (to_node(known.lower, ply), to_node(known.upper, ply));
                }
            }
        }
        bucket[slot] = Entry { key, lower, upper, best, epoch, depth, age };
    }
}

impl<M> Known<M> {
    /// What a search with the window `(alpha, beta)` learnt from the value `value` (fail-soft).
    #[inline]
    pub fn learnt(depth: u32, value: Score, alpha: Score, beta: Score, best: Option<M>) -> Known<M> {
        Known {
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
        Known { depth, lower, upper, best }
    }

    #[test]
    fn bounds_of_one_depth_are_narrowed_and_others_replaced() {
        let mut table = Table::new(1);
        table.store(5, 0, known(3, -INFINITY, 10, None));
        table.store(5, 0, known(3, 4, INFINITY, Some(7)));
        assert_eq!(table.probe(5, 0), Some(known(3, 4, 10, Some(7))));
        table.store(5, 0, known(4, 5, INFINITY, None));
        assert_eq!(table.probe(5, 0), Some(known(4, 5, INFINITY, Some(7))));
        assert_eq!(table.probe(6, 0), None);
    }

    #[test]
    fn ends_are_seen_from_the_node() {
        let mut table: Table<u8> = Table::new(1);
        let win = end_score(1, 9);
        table.store(5, 6, known(3, win, win, None));
        assert_eq!(table.probe(5, 2).map(|known| known.lower), Some(WIN - 5));
    }

    #[test]
    fn a_cleared_table_is_empty_even_after_all_epochs() {
        let mut table: Table<u8> = Table::new(1);
        for _ in 0..70_000 {
            assert_eq!(table.probe(5, 0), None);
            table.store(5, 0, known(1, 1, 1, None));
            table.clear();
        }
    }

    #[test]
    fn deep_entries_outlive_shallow_ones_of_the_same_age() {
        let mut table: Table<u8> = Table { buckets: vec![[EMPTY; WAYS]], epoch: 1, age: 0 };
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
