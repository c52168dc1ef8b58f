//! The lease book: which worker plays which bout, until when. A pure state machine; time is an argument.
//!
//! Leases only avoid duplicate work: a bout is committed by its key, whichever worker submits it. Leases are kept in
//! memory; their tokens contain the coordinator's epoch, so that leases of an earlier process are distinguishable.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The key of a bout, committed once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BoutKey {
    /// The run.
    pub run: String,
    /// The number of the bout.
    pub bout: u64,
}

/// The unique token of a lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token {
    /// The epoch of the coordinator that granted it.
    pub epoch: u64,
    /// Its number in the epoch.
    pub sequence: u64,
}

/// The progress of a bout.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Progress {
    /// Whether a slot plays it.
    pub started: bool,
    /// The current game.
    pub game: u32,
    /// Its ply.
    pub ply: u32,
    /// A counter that grows while the search runs.
    pub pulse: u64,
}

/// A bout leased to a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The holder.
    pub worker: String,
    /// Its token.
    pub token: Token,
    /// When it expires without progress.
    pub expires: Duration,
    /// The last reported progress.
    pub progress: Progress,
}

/// All leases.
#[derive(Debug)]
pub struct LeaseBook {
    epoch: u64,
    sequence: u64,
    length: Duration,
    leases: BTreeMap<BoutKey, Lease>,
    /// Leases ordered by expiry.
    ends: BTreeSet<(Duration, BoutKey)>,
    /// Leases by worker.
    held: BTreeMap<String, BTreeSet<BoutKey>>,
    /// The number of leases by run.
    counts: BTreeMap<String, u64>,
    /// The time of each worker's last progress, which keeps its waiting bouts leased.
    last_progress: BTreeMap<String, Duration>,
}

impl LeaseBook {
    /// Creates an empty book for an epoch, with leases of `length`.
    pub fn new(epoch: u64, length: Duration) -> LeaseBook {
        LeaseBook {
            epoch,
            sequence: 0,
            length,
            leases: BTreeMap::new(),
            ends: BTreeSet::new(),
            held: BTreeMap::new(),
            counts: BTreeMap::new(),
            last_progress: BTreeMap::new(),
        }
    }

    /// Leases a bout, and ends an earlier lease of it.
    pub fn grant(&mut self, key: BoutKey, worker: &str, now: Duration) -> Token {
        self.sequence += 1;
        let token = Token { epoch: self.epoch, sequence: self.sequence };
        self.put(key, worker, token, now);
        token
    }

    /// Returns whether a token can have been issued: not a future one of this epoch.
    pub fn may_have_issued(&self, token: Token) -> bool {
        token.epoch < self.epoch
            || (token.epoch == self.epoch && (1..=self.sequence).contains(&token.sequence))
    }

    /// Adopts a lease that a worker holds from before, unless another worker has the bout. Returns whether it did.
    pub fn adopt(&mut self, key: BoutKey, worker: &str, token: Token, now: Duration) -> bool {
        match self.leases.get(&key) {
            Some(lease) if lease.worker != worker || lease.token != token => false,
            _ if token.epoch == self.epoch && !self.may_have_issued(token) => false,
            _ => {
                self.put(key, worker, token, now);
                true
            }
        }
    }

    fn put(&mut self, key: BoutKey, worker: &str, token: Token, now: Duration) {
        self.release(&key);
        let expires = now + self.length;
        let lease = Lease { worker: worker.to_string(), token, expires, progress: Progress::default() };
        self.ends.insert((expires, key.clone()));
        self.held.entry(worker.to_string()).or_default().insert(key.clone());
        *self.counts.entry(key.run.clone()).or_default() += 1;
        self.leases.insert(key, lease);
    }

    /// Records a worker's report. Progress extends the lease; a bout waiting for a slot is extended by any progress of
    /// its worker.
    pub fn record_progress(&mut self, key: &BoutKey, token: Token, progress: Progress, now: Duration) {
        let Some(lease) = self.leases.get_mut(key).filter(|lease| lease.token == token) else { return };
        let until = if progress > lease.progress {
            lease.progress = progress;
            self.last_progress.insert(lease.worker.clone(), now);
            now + self.length
        } else if !lease.progress.started {
            self.last_progress
                .get(&lease.worker)
                .map_or(lease.expires, |last_progress| *last_progress + self.length)
        } else {
            return;
        };
        if until > lease.expires {
            self.ends.remove(&(lease.expires, key.clone()));
            lease.expires = until;
            self.ends.insert((lease.expires, key.clone()));
        }
    }

    /// Returns the lease of a bout.
    pub fn lease(&self, key: &BoutKey) -> Option<&Lease> {
        self.leases.get(key)
    }

    /// Ends a lease.
    pub fn release(&mut self, key: &BoutKey) -> Option<Lease> {
        let lease = self.leases.remove(key)?;
        self.ends.remove(&(lease.expires, key.clone()));
        if let Some(held) = self.held.get_mut(&lease.worker) {
            held.remove(key);
            if held.is_empty() {
                self.held.remove(&lease.worker);
            }
        }
        if let Some(count) = self.counts.get_mut(&key.run) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key.run);
            }
        }
        Some(lease)
    }

    /// Ends and returns the leases without progress in time.
    pub fn expire(&mut self, now: Duration) -> Vec<(BoutKey, Lease)> {
        let mut ended = Vec::new();
        while let Some((end, key)) = self.ends.first().cloned()
            && end <= now
        {
            let lease = self.release(&key).expect("every expiry has a lease");
            ended.push((key, lease));
        }
        ended
    }

    /// Returns the leases of a worker.
    pub fn of_worker(&self, worker: &str) -> impl Iterator<Item = (&BoutKey, &Lease)> {
        let lease = |key| self.leases.get_key_value(key);
        self.held.get(worker).into_iter().flatten().filter_map(lease)
    }

    /// Returns how many leases a worker has.
    pub fn count_of_worker(&self, worker: &str) -> u64 {
        self.held.get(worker).map_or(0, |held| held.len() as u64)
    }

    /// Returns how many leases there are.
    pub fn count(&self) -> usize {
        self.leases.len()
    }

    /// Returns how many leases a run has.
    pub fn count_of_run(&self, run: &str) -> u64 {
        self.counts.get(run).copied().unwrap_or(0)
    }

    /// Returns the leases of a run.
    pub fn of_run<'a>(&'a self, run: &'a str) -> impl Iterator<Item = (&'a BoutKey, &'a Lease)> {
        let first = BoutKey { run: run.to_string(), bout: 0 };
        self.leases.range(first..).take_while(move |(key, _)| key.run == run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(30);

    fn key(bout: u64) -> BoutKey {
        BoutKey { run: "r".to_string(), bout }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn extends_a_lease_on_progress() {
        let mut book = LeaseBook::new(1, LENGTH);
        let token = book.grant(key(0), "w", at(0));
        let progress = |ply| Progress { started: true, game: 0, ply, pulse: 0 };
        book.record_progress(&key(0), token, progress(3), at(20));
        assert!(book.expire(at(49)).is_empty());
        // Repeated or earlier progress and other tokens extend nothing.
        book.record_progress(&key(0), token, progress(3), at(45));
        book.record_progress(&key(0), token, progress(2), at(46));
        book.record_progress(&key(0), Token { epoch: 1, sequence: 9 }, progress(8), at(47));
        assert_eq!(book.expire(at(50)).len(), 1);
        assert!(book.lease(&key(0)).is_none());
    }

    #[test]
    fn keeps_a_waiting_bout_while_its_worker_progresses() {
        let mut book = LeaseBook::new(1, LENGTH);
        let token = book.grant(key(0), "w", at(0));
        let played = book.grant(key(1), "w", at(0));
        for time in (20..400).step_by(20) {
            book.record_progress(
                &key(1),
                played,
                Progress { started: true, ply: time as u32, ..Progress::default() },
                at(time),
            );
            book.record_progress(&key(0), token, Progress::default(), at(time));
            assert!(book.expire(at(time)).is_empty());
        }
        // A worker without progress loses waiting bouts too, despite its heartbeats.
        for time in (400..440).step_by(10) {
            book.record_progress(&key(0), token, Progress::default(), at(time));
        }
        assert_eq!(book.expire(at(420)).len(), 2);
    }

    #[test]
    fn does_not_adopt_tokens_never_issued() {
        let mut book = LeaseBook::new(2, LENGTH);
        let given = book.grant(key(0), "w", at(0));
        for sequence in [0, given.sequence + 1, u64::MAX] {
            assert!(!book.adopt(key(1), "w", Token { epoch: 2, sequence }, at(0)));
            assert!(!book.may_have_issued(Token { epoch: 2, sequence }));
        }
        assert!(!book.may_have_issued(Token { epoch: 3, sequence: 1 }));
        assert!(book.may_have_issued(given) && book.may_have_issued(Token { epoch: 1, sequence: 99 }));
        assert_eq!(book.grant(key(1), "w", at(0)), Token { epoch: 2, sequence: given.sequence + 1 });
    }

    #[test]
    fn adopts_a_held_lease_for_one_worker() {
        let mut book = LeaseBook::new(2, LENGTH);
        let old = Token { epoch: 1, sequence: 7 };
        assert!(book.adopt(key(0), "w", old, at(0)));
        assert!(book.adopt(key(0), "w", old, at(1)), "the same worker again");
        assert!(!book.adopt(key(0), "other", old, at(1)));
        assert_eq!(book.lease(&key(0)).unwrap().token, old);
    }

    #[test]
    fn second_lease_of_a_bout_ends_the_first() {
        let mut book = LeaseBook::new(1, LENGTH);
        book.grant(key(0), "w", at(0));
        let token = book.grant(key(0), "other", at(10));
        assert_eq!((book.count_of_worker("w"), book.count_of_run("r")), (0, 1));
        assert!(book.expire(at(30)).is_empty());
        assert_eq!(book.expire(at(40)).pop().unwrap().1.token, token);
    }

    /// The model is a list, scanned linearly.
    #[test]
    fn agrees_with_a_linear_model() {
        use agon_games::random::{below, seeded};
        for seed in 0..200 {
            let mut random = seeded(seed);
            let mut book = LeaseBook::new(1, LENGTH);
            let mut model: Vec<(u64, &str, Token, Duration, Progress)> = Vec::new();
            let mut given = BTreeSet::new();
            let mut last_progress: Vec<(&str, Duration)> = Vec::new();
            let mut now = Duration::ZERO;
            for _ in 0..300 {
                now += Duration::from_secs(below(&mut random, 8) as u64);
                let bout = below(&mut random, 6) as u64;
                let worker = ["a", "b", "c"][below(&mut random, 3)];
                let known = model.iter().position(|entry| entry.0 == bout);
                match below(&mut random, 4) {
                    0 if known.is_none() => {
                        let token = book.grant(key(bout), worker, now);
                        assert!(given.insert(token), "tokens are unique");
                        model.push((bout, worker, token, now + LENGTH, Progress::default()));
                    }
                    1 => {
                        let lease = book.release(&key(bout));
                        assert_eq!(lease.is_some(), known.is_some());
                        if let Some(index) = known {
                            model.remove(index);
                        }
                    }
                    2 => {
                        let progress = Progress {
                            started: below(&mut random, 3) > 0,
                            game: below(&mut random, 2) as u32,
                            ply: below(&mut random, 5) as u32,
                            pulse: below(&mut random, 3) as u64,
                        };
                        if let Some(index) = known {
                            let (_, worker, token, expires, before) = &mut model[index];
                            book.record_progress(&key(bout), *token, progress, now);
                            if progress > *before {
                                *before = progress;
                                *expires = now + LENGTH;
                                last_progress.push((worker, now));
                            } else if let (false, Some((_, last))) =
                                (before.started, last_progress.iter().rev().find(|(name, _)| name == worker))
                            {
                                *expires = (*last + LENGTH).max(*expires);
                            }
                        }
                    }
                    _ => {
                        let mut ended: Vec<u64> =
                            book.expire(now).into_iter().map(|(key, _)| key.bout).collect();
                        ended.sort_unstable();
                        let mut expected: Vec<u64> =
                            model.iter().filter(|entry| entry.3 <= now).map(|entry| entry.0).collect();
                        expected.sort_unstable();
                        assert_eq!(ended, expected);
                        model.retain(|entry| entry.3 > now);
                    }
                }
                for entry in &model {
                    let lease = book.lease(&key(entry.0)).unwrap();
                    assert_eq!(
                        (lease.worker.as_str(), lease.token, lease.expires),
                        (entry.1, entry.2, entry.3)
                    );
                }
                assert_eq!(book.of_run("r").count(), model.len());
                assert_eq!(book.count_of_run("r"), model.len() as u64);
                for worker in ["a", "b", "c"] {
                    let held: Vec<u64> = book.of_worker(worker).map(|(key, _)| key.bout).collect();
                    let mut expected: Vec<u64> =
                        model.iter().filter(|entry| entry.1 == worker).map(|entry| entry.0).collect();
                    expected.sort_unstable();
                    assert_eq!(held, expected);
                }
            }
        }
    }
}
