//! The ledger of a run: which bouts are done and which to play next. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// The number of workers that must fail a bout before it is abandoned.
pub const FAILURES: usize = 3;

/// The done and pending bouts of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ledger {
    total: u64,
    /// The end of the bouts that may be granted.
    open: u64,
    /// All bouts below are done.
    prefix: u64,
    /// Done bouts above the prefix.
    beyond: BTreeSet<u64>,
    /// The first bout that was never granted.
    fresh: u64,
    /// Granted bouts that were returned.
    returned: BTreeSet<u64>,
    /// Workers that failed each bout.
    failures: BTreeMap<u64, BTreeSet<String>>,
    /// Workers whose lease of each bout expired.
    lost: BTreeMap<u64, BTreeSet<String>>,
}

impl Ledger {
    /// Creates the ledger of a run with `total` bouts; the first `prefix` and those in `done` are done.
    pub fn new(total: u64, prefix: u64, done: impl IntoIterator<Item = u64>) -> Ledger {
        let mut ledger = Ledger {
            total,
            open: total,
            prefix,
            beyond: BTreeSet::new(),
            fresh: prefix,
            returned: BTreeSet::new(),
            failures: BTreeMap::new(),
            lost: BTreeMap::new(),
        };
        for bout in done {
            ledger.finish(bout);
        }
        ledger
    }

    /// Allows new grants below `open`. Returns whether that extends the range.
    pub fn open_to(&mut self, open: u64) -> bool {
        let more = open > self.open;
        self.open = open.min(self.total);
        more
    }

    /// Returns whether a bout may be leased.
    pub fn is_open(&self, bout: u64) -> bool {
        bout < self.open
    }

    /// Takes the next bout to grant: returned bouts first, then fresh ones.
    pub fn take_next(&mut self) -> Option<u64> {
        if let Some(bout) = self.returned.pop_first() {
            return Some(bout);
        }
        while self.fresh < self.open {
            let bout = self.fresh;
            self.fresh += 1;
            if !self.is_done(bout) {
                return Some(bout);
            }
        }
        None
    }

    /// Marks a bout as granted by an earlier process.
    pub fn claim(&mut self, bout: u64) {
        self.returned.remove(&bout);
        // The bouts in between become grantable.
        while self.fresh <= bout && self.fresh < self.open {
            if self.fresh != bout && !self.is_done(self.fresh) {
                self.returned.insert(self.fresh);
            }
            self.fresh += 1;
        }
    }

    /// Returns a granted bout.
    pub fn give_back(&mut self, bout: u64) {
        if bout < self.fresh && !self.is_done(bout) {
            self.returned.insert(bout);
        }
    }

    /// Marks a bout as done. Returns whether it was pending.
    pub fn finish(&mut self, bout: u64) -> bool {
        if bout >= self.total || self.is_done(bout) {
            return false;
        }
        self.returned.remove(&bout);
        self.failures.remove(&bout);
        self.lost.remove(&bout);
        self.beyond.insert(bout);
        while self.beyond.remove(&self.prefix) {
            self.prefix += 1;
        }
        true
    }

    /// Records that a worker failed a bout. Returns whether the bout should be abandoned.
    pub fn fail(&mut self, bout: u64, worker: &str) -> bool {
        let workers = self.failures.entry(bout).or_default();
        workers.insert(worker.to_string());
        workers.len() >= FAILURES
    }

    /// Records that a worker's lease expired and returns the bout.
    pub fn lose(&mut self, bout: u64, worker: &str) {
        if !self.is_done(bout) {
            self.lost.entry(bout).or_default().insert(worker.to_string());
        }
        self.give_back(bout);
    }

    /// Returns whether another worker should get the bout: this one failed it, or lost it while another candidate has
    /// not.
    pub fn is_for_others<'a>(
        &self,
        bout: u64,
        worker: &str,
        mut present: impl Iterator<Item = &'a str>,
    ) -> bool {
        let lost = |name: &str| self.lost.get(&bout).is_some_and(|workers| workers.contains(name));
        self.has_failed(bout, worker)
            || (lost(worker) && present.any(|name| !lost(name) && !self.has_failed(bout, name)))
    }

    /// Returns how many workers failed this bout.
    pub fn failures(&self, bout: u64) -> usize {
        self.failures.get(&bout).map_or(0, BTreeSet::len)
    }

    /// Returns the workers that failed this bout.
    pub fn failed_at(&self, bout: u64) -> impl Iterator<Item = &str> {
        self.failures.get(&bout).into_iter().flatten().map(String::as_str)
    }

    /// Returns whether a worker failed this bout.
    pub fn has_failed(&self, bout: u64, worker: &str) -> bool {
        self.failures.get(&bout).is_some_and(|workers| workers.contains(worker))
    }

    /// Returns whether a bout is done.
    pub fn is_done(&self, bout: u64) -> bool {
        bout < self.prefix || self.beyond.contains(&bout)
    }

    /// Returns the end of the done prefix.
    pub fn prefix(&self) -> u64 {
        self.prefix
    }

    /// Returns how many bouts are done.
    pub fn done(&self) -> u64 {
        self.prefix + self.beyond.len() as u64
    }

    /// Returns how many bouts the run has.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns whether a bout can be granted.
    pub fn has_work(&self) -> bool {
        !self.returned.is_empty() || (self.fresh..self.open).any(|bout| !self.is_done(bout))
    }
}

#[cfg(test)]
mod tests {
    use agon_games::random::{below, seeded};

    use super::*;

    #[test]
    fn regrants_a_lost_bout_to_its_loser_only_as_a_last_resort() {
        let mut ledger = Ledger::new(3, 0, []);
        assert_eq!(ledger.take_next(), Some(0));
        ledger.lose(0, "hung");
        let for_others =
            |ledger: &Ledger, worker: &str| ledger.is_for_others(0, worker, ["hung", "quick"].into_iter());
        assert!(for_others(&ledger, "hung") && !for_others(&ledger, "quick"));
        assert!(!ledger.is_for_others(0, "hung", ["hung"].into_iter()), "no other candidate");
        ledger.lose(0, "quick");
        assert!(!for_others(&ledger, "hung") && !for_others(&ledger, "quick"), "all candidates lost it");
        assert_eq!(ledger.take_next(), Some(0));
        ledger.finish(0);
        ledger.lose(0, "hung");
        assert!(!for_others(&ledger, "hung") && ledger.take_next() == Some(1), "a done bout is not lost");
    }

    /// Every bout is granted until it is done, and done once, under any sequence of events.
    #[test]
    fn every_bout_is_done_exactly_once() {
        for seed in 0..200 {
            let mut random = seeded(seed);
            let total = 1 + below(&mut random, 40) as u64;
            let mut ledger = Ledger::new(total, 0, []);
            let (mut held, mut done) = (Vec::new(), BTreeSet::new());
            while ledger.done() < total {
                match below(&mut random, 5) {
                    0 | 1 => {
                        if let Some(bout) = ledger.take_next() {
                            assert!(!held.contains(&bout) && !done.contains(&bout), "{bout} granted twice");
                            held.push(bout);
                        }
                    }
                    2 if !held.is_empty() => {
                        let bout = held.swap_remove(below(&mut random, held.len()));
                        assert!(ledger.finish(bout) && done.insert(bout));
                        assert!(!ledger.finish(bout));
                    }
                    3 if !held.is_empty() => {
                        let bout = held.swap_remove(below(&mut random, held.len()));
                        ledger.give_back(bout);
                    }
                    _ => {
                        // A restart keeps done bouts, part of them as a prefix length; held bouts are claimed or lost.
                        let length = below(&mut random, ledger.prefix() as usize + 1) as u64;
                        let rest = done.iter().copied().filter(|bout| *bout >= length);
                        ledger = Ledger::new(total, length, rest);
                        held.retain(|_| below(&mut random, 2) == 0);
                        for &bout in &held {
                            ledger.claim(bout);
                        }
                    }
                }
                let prefix = (0..).find(|bout| !done.contains(bout)).unwrap();
                assert_eq!((ledger.prefix(), ledger.done()), (prefix, done.len() as u64));
            }
            assert_eq!((ledger.take_next(), ledger.has_work()), (None, false));
        }
    }

    #[test]
    fn abandons_a_bout_after_three_workers_failed() {
        let mut ledger = Ledger::new(5, 0, []);
        assert!(!ledger.fail(2, "a") && !ledger.fail(2, "a") && !ledger.fail(2, "b") && ledger.fail(2, "c"));
        assert!(ledger.has_failed(2, "a") && !ledger.has_failed(1, "a"));
    }
}
