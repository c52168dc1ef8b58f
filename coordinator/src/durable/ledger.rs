//! The ledger of a run: which bouts are done and which to play next. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// The number of workers that must fail a bout before it is abandoned, if so many are connected.
pub const FAILURES: usize = 3;
/// The number of leases of a started bout that expire before it is abandoned: its search may end the process of the worker.
pub const LOSSES: u32 = 10;

/// Why a bout was not played.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Attempts {
    /// The workers that failed it.
    pub failed: BTreeSet<String>,
    /// The last reason.
    pub reason: String,
    /// Workers whose lease expired.
    lost: BTreeSet<String>,
    /// The number of leases that expired after the bout was started.
    pub losses: u32,
}

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
    /// All bouts below are recorded as granted; later ones must not be granted yet.
    reserved: u64,
    /// Bouts that may have been granted by an earlier process.
    withheld: BTreeSet<u64>,
    /// Granted bouts that were returned.
    returned: BTreeSet<u64>,
    /// Bouts that were granted and not played.
    attempts: BTreeMap<u64, Attempts>,
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
            reserved: u64::MAX,
            withheld: BTreeSet::new(),
            returned: BTreeSet::new(),
            attempts: BTreeMap::new(),
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

    /// Allows new grants only below `end`, which is on disk.
    pub fn reserve_to(&mut self, end: u64) {
        self.reserved = end;
    }

    /// Returns the end to reserve, if the reserved bouts may run out. `ahead` is the number of bouts to reserve.
    pub fn reservation_due(&self, ahead: u64) -> Option<u64> {
        let due = self.reserved < self.open && self.fresh.saturating_add(ahead / 2) >= self.reserved;
        due.then(|| self.fresh.saturating_add(ahead).min(self.total))
    }

    /// Withholds the reserved bouts that are not done: workers of an earlier process may hold them.
    pub fn withhold(&mut self) {
        // Bouts that may not be granted yet never were.
        let end = self.reserved.min(self.open);
        while self.fresh < end {
            if !self.is_done(self.fresh) {
                self.withheld.insert(self.fresh);
            }
            self.fresh += 1;
        }
    }

    /// Makes the withheld bouts grantable.
    pub fn release_withheld(&mut self) {
        self.returned.append(&mut self.withheld);
    }

    /// Returns how many bouts are withheld.
    pub fn withheld(&self) -> usize {
        self.withheld.len()
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
        while self.fresh < self.open.min(self.reserved) {
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
        self.withheld.remove(&bout);
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

    /// Makes a done bout above the exported ones grantable again.
    pub(super) fn reopen(&mut self, bout: u64) {
        if !self.is_done(bout) {
            return;
        }
        self.beyond.remove(&bout);
        if bout < self.prefix {
            self.beyond.extend(bout + 1..self.prefix);
            self.prefix = bout;
        }
        self.give_back(bout);
    }

    /// Marks a bout as done. Returns whether it was pending.
    pub(super) fn finish(&mut self, bout: u64) -> bool {
        if bout >= self.total || self.is_done(bout) {
            return false;
        }
        self.returned.remove(&bout);
        self.withheld.remove(&bout);
        self.attempts.remove(&bout);
        self.beyond.insert(bout);
        while self.beyond.remove(&self.prefix) {
            self.prefix += 1;
        }
        true
    }

    /// Records that a worker failed a bout.
    pub fn fail(&mut self, bout: u64, worker: &str, reason: &str) {
        if !self.is_done(bout) {
            let attempts = self.attempts.entry(bout).or_default();
            attempts.failed.insert(worker.to_string());
            attempts.reason = reason.to_string();
        }
    }

    /// Records that a worker's lease expired and returns the bout. `started` is whether the worker had begun to play it.
    pub fn lose(&mut self, bout: u64, worker: &str, started: bool) {
        if !self.is_done(bout) {
            let attempts = self.attempts.entry(bout).or_default();
            attempts.lost.insert(worker.to_string());
            attempts.losses += u32::from(started);
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
        let Some(attempts) = self.attempts.get(&bout) else { return false };
        let Attempts { failed, lost, .. } = attempts;
        failed.contains(worker)
            || (lost.contains(worker) && present.any(|name| !lost.contains(name) && !failed.contains(name)))
    }

    /// Returns the bouts that were granted and not played.
    pub fn attempts(&self) -> impl Iterator<Item = (u64, &Attempts)> {
        self.attempts.iter().map(|(bout, attempts)| (*bout, attempts))
    }

    /// Returns the workers that failed this bout.
    pub fn failed_at(&self, bout: u64) -> impl Iterator<Item = &str> {
        self.attempts.get(&bout).into_iter().flat_map(|attempts| &attempts.failed).map(String::as_str)
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
}

#[cfg(test)]
mod tests {
    use agon_games::random::{below, seeded};

    use super::*;

    #[test]
    fn regrants_a_lost_bout_to_its_loser_only_as_a_last_resort() {
        let mut ledger = Ledger::new(3, 0, []);
        assert_eq!(ledger.take_next(), Some(0));
        ledger.lose(0, "hung", true);
        let for_others =
            |ledger: &Ledger, worker: &str| ledger.is_for_others(0, worker, ["hung", "quick"].into_iter());
        assert!(for_others(&ledger, "hung") && !for_others(&ledger, "quick"));
        assert!(!ledger.is_for_others(0, "hung", ["hung"].into_iter()), "no other candidate");
        ledger.lose(0, "quick", true);
        assert!(!for_others(&ledger, "hung") && !for_others(&ledger, "quick"), "all candidates lost it");
        assert_eq!(ledger.take_next(), Some(0));
        ledger.finish(0);
        ledger.lose(0, "hung", true);
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
                    3 if !done.is_empty() && below(&mut random, 4) == 0 => {
                        let bout = *done.iter().nth(below(&mut random, done.len())).unwrap();
                        done.remove(&bout);
                        ledger.reopen(bout);
                    }
                    _ => {
                        // A restart keeps done bouts, part of them as a prefix length; held bouts are claimed or lost.
                        let length = below(&mut random, ledger.prefix() as usize + 1) as u64;
                        let rest = done.iter().copied().filter(|bout| *bout >= length);
                        ledger = Ledger::new(total, length, rest);
                        if below(&mut random, 2) == 0 {
                            ledger.reserve_to(below(&mut random, total as usize + 1) as u64);
                            ledger.withhold();
                            ledger.reserve_to(total);
                        }
                        held.retain(|_| below(&mut random, 2) == 0);
                        for &bout in &held {
                            ledger.claim(bout);
                        }
                        ledger.release_withheld();
                    }
                }
                let prefix = (0..).find(|bout| !done.contains(bout)).unwrap();
                assert_eq!((ledger.prefix(), ledger.done()), (prefix, done.len() as u64));
            }
            assert_eq!(ledger.take_next(), None);
        }
    }

    #[test]
    fn grants_reserved_bouts_only() {
        let mut ledger = Ledger::new(100, 0, []);
        ledger.reserve_to(4);
        assert_eq!(ledger.reservation_due(8), Some(8));
        let granted: Vec<u64> = std::iter::from_fn(|| ledger.take_next()).collect();
        assert_eq!((granted, ledger.reservation_due(8)), (vec![0, 1, 2, 3], Some(12)));
        ledger.reserve_to(12);
        assert_eq!((ledger.take_next(), ledger.reservation_due(8)), (Some(4), None));
        ledger.reserve_to(100);
        assert_eq!(ledger.reservation_due(1000), None, "all bouts are reserved");
    }

    #[test]
    fn withholds_bouts_that_an_earlier_process_may_have_granted() {
        let mut ledger = Ledger::new(20, 2, [5]);
        ledger.reserve_to(8);
        ledger.withhold();
        ledger.reserve_to(20);
        assert_eq!((ledger.withheld(), ledger.take_next()), (5, Some(8)), "later bouts are granted at once");
        // Bout 3 is presented, and bout 4 is submitted.
        ledger.claim(3);
        ledger.finish(4);
        ledger.release_withheld();
        let granted: Vec<u64> = std::iter::from_fn(|| ledger.take_next()).take(4).collect();
        assert_eq!(granted, [2, 6, 7, 9]);
        // The schedule of a tuning run knows its first bouts only.
        let mut tuning = Ledger::new(20, 0, []);
        tuning.open_to(3);
        tuning.reserve_to(8);
        tuning.withhold();
        tuning.release_withheld();
        assert_eq!(std::iter::from_fn(|| tuning.take_next()).collect::<Vec<u64>>(), [0, 1, 2]);
        assert!(tuning.open_to(5) && tuning.take_next() == Some(3));
    }
}
