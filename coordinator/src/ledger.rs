//! The ledger of a run: which bouts are done and which to play next. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// Workers that must fail at a bout before it is given up.
pub const FAILURES: usize = 3;

/// What is done of a run and what is left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ledger {
    total: u64,
    /// Bouts below can be handed out.
    open: u64,
    /// Everything below is done.
    prefix: u64,
    /// What is done beyond.
    beyond: BTreeSet<u64>,
    /// The first that was never handed out.
    fresh: u64,
    /// What was handed out and came back undone.
    returned: BTreeSet<u64>,
    /// Who failed at what.
    failures: BTreeMap<u64, BTreeSet<String>>,
    /// Who had what and let it expire.
    lost: BTreeMap<u64, BTreeSet<String>>,
}

impl Ledger {
    /// A run of so many bouts, of which the first `prefix` are done and some more.
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

    /// Lets only bouts below be handed out that never were; whether more can be than before.
    pub fn open_to(&mut self, open: u64) -> bool {
        let more = open > self.open;
        self.open = open.min(self.total);
        more
    }

    /// Whether a bout can be out with somebody.
    pub fn is_open(&self, bout: u64) -> bool {
        bout < self.open
    }

    /// The next bout to hand out: what came back first, then the first that never was.
    pub fn take(&mut self) -> Option<u64> {
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

    /// Notes that somebody holds a bout that this life never handed out.
    pub fn claim(&mut self, bout: u64) {
        self.returned.remove(&bout);
        // Everything between was not handed out in this life either.
        while self.fresh <= bout && self.fresh < self.open {
            if self.fresh != bout && !self.is_done(self.fresh) {
                self.returned.insert(self.fresh);
            }
            self.fresh += 1;
        }
    }

    /// A bout that was handed out comes back undone.
    pub fn give_back(&mut self, bout: u64) {
        if bout < self.fresh && !self.is_done(bout) {
            self.returned.insert(bout);
        }
    }

    /// Marks a bout as done. Whether it was not.
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

    /// Notes that a worker failed at a bout; whether so many have that it is to be given up.
    pub fn fail(&mut self, bout: u64, worker: &str) -> bool {
        let workers = self.failures.entry(bout).or_default();
        workers.insert(worker.to_string());
        workers.len() >= FAILURES
    }

    /// A worker was not heard of in time with a bout, which comes back undone.
    pub fn lose(&mut self, bout: u64, worker: &str) {
        if !self.is_done(bout) {
            self.lost.entry(bout).or_default().insert(worker.to_string());
        }
        self.give_back(bout);
    }

    /// Whether others should have a bout rather than this worker: it has failed at it, or has lost it while somebody else
    /// is there who has not.
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

    /// How many workers have failed at this bout.
    pub fn failures(&self, bout: u64) -> usize {
        self.failures.get(&bout).map_or(0, BTreeSet::len)
    }

    /// The workers that have failed at this bout.
    pub fn failed_at(&self, bout: u64) -> impl Iterator<Item = &str> {
        self.failures.get(&bout).into_iter().flatten().map(String::as_str)
    }

    /// Whether a worker has failed at this bout.
    pub fn has_failed(&self, bout: u64, worker: &str) -> bool {
        self.failures.get(&bout).is_some_and(|workers| workers.contains(worker))
    }

    /// Whether a bout is done.
    pub fn is_done(&self, bout: u64) -> bool {
        bout < self.prefix || self.beyond.contains(&bout)
    }

    /// Everything below is done.
    pub fn prefix(&self) -> u64 {
        self.prefix
    }

    /// How many are done.
    pub fn done(&self) -> u64 {
        self.prefix + self.beyond.len() as u64
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether there is something to hand out.
    pub fn has_work(&self) -> bool {
        !self.returned.is_empty() || (self.fresh..self.open).any(|bout| !self.is_done(bout))
    }
}

#[cfg(test)]
mod tests {
    use agon_games::random::{below, seeded};

    use super::*;

    #[test]
    fn who_lost_a_bout_gets_it_again_only_if_nobody_else_can() {
        let mut ledger = Ledger::new(3, 0, []);
        assert_eq!(ledger.take(), Some(0));
        ledger.lose(0, "hung");
        let for_others =
            |ledger: &Ledger, worker: &str| ledger.is_for_others(0, worker, ["hung", "quick"].into_iter());
        assert!(for_others(&ledger, "hung") && !for_others(&ledger, "quick"));
        assert!(!ledger.is_for_others(0, "hung", ["hung"].into_iter()), "there is nobody else");
        ledger.lose(0, "quick");
        assert!(!for_others(&ledger, "hung") && !for_others(&ledger, "quick"), "all have lost it");
        assert_eq!(ledger.take(), Some(0));
        ledger.finish(0);
        ledger.lose(0, "hung");
        assert!(!for_others(&ledger, "hung") && ledger.take() == Some(1), "what is done is not lost");
    }

    /// Whatever happens in between, every bout is handed out until it is done, and done once.
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
                        if let Some(bout) = ledger.take() {
                            assert!(
                                !held.contains(&bout) && !done.contains(&bout),
                                "{bout} is handed out twice"
                            );
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
                        // A restart: what is done stays, what was held is presented or lost.
                        // Of what is done, the beginning may be known by its length alone.
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
            assert_eq!((ledger.take(), ledger.has_work()), (None, false));
        }
    }

    #[test]
    fn three_different_workers_must_fail() {
        let mut ledger = Ledger::new(5, 0, []);
        assert!(!ledger.fail(2, "a") && !ledger.fail(2, "a") && !ledger.fail(2, "b") && ledger.fail(2, "c"));
        assert!(ledger.has_failed(2, "a") && !ledger.has_failed(1, "a"));
    }
}
