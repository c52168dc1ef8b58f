//! The lease book: who is playing what, until when. A pure state machine: time comes in as an argument.
//!
//! Leases make work efficient and decide nothing: a bout counts by its key, whoever brings it. A lease lives in memory
//! only; its token names the coordinator's epoch, so that no lease of an earlier life is ever mistaken for one of this.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The name of a worker.
pub type WorkerName = String;

/// A bout of a run: what is counted once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BoutKey {
    /// The run.
    pub run: String,
    /// The number of the bout.
    pub bout: u64,
}

/// What tells one lease from every other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token {
    /// Which life of the coordinator gave it.
    pub epoch: u64,
    /// Its number in that life.
    pub sequence: u64,
}

/// How far a bout is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Progress {
    /// Whether a slot plays it.
    pub started: bool,
    /// The game under way.
    pub game: u32,
    /// Its ply.
    pub ply: u32,
    /// How far its search is: a number that grows.
    pub pulse: u64,
}

/// A bout lent to a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// To whom.
    pub worker: WorkerName,
    /// By which token.
    pub token: Token,
    /// Until when, if nothing is heard.
    pub expires: Duration,
    /// How far it was when it was last heard of.
    pub progress: Progress,
}

/// All leases.
#[derive(Debug)]
pub struct LeaseBook {
    epoch: u64,
    sequence: u64,
    length: Duration,
    leases: BTreeMap<BoutKey, Lease>,
    /// Leases by when they end, so that looking for those that have ended is cheap.
    ends: BTreeSet<(Duration, BoutKey)>,
    /// What each worker holds.
    held: BTreeMap<WorkerName, BTreeSet<BoutKey>>,
    /// How many leases each run has.
    counts: BTreeMap<String, u64>,
    /// When each worker last got on with something: what waits for a slot lives as long as the slots do.
    lively: BTreeMap<WorkerName, Duration>,
}

impl LeaseBook {
    /// An empty book of one epoch, whose leases last so long.
    pub fn new(epoch: u64, length: Duration) -> LeaseBook {
        LeaseBook {
            epoch,
            sequence: 0,
            length,
            leases: BTreeMap::new(),
            ends: BTreeSet::new(),
            held: BTreeMap::new(),
            counts: BTreeMap::new(),
            lively: BTreeMap::new(),
        }
    }

    /// Lends a bout. Precondition: it is not lent.
    pub fn grant(&mut self, key: BoutKey, worker: &str, now: Duration) -> Token {
        self.sequence += 1;
        let token = Token { epoch: self.epoch, sequence: self.sequence };
        self.put(key, worker, token, now);
        token
    }

    /// Whether a token may have been given: one of this epoch that is still to come was not.
    pub fn may_have_given(&self, token: Token) -> bool {
        token.epoch < self.epoch
            || (token.epoch == self.epoch && (1..=self.sequence).contains(&token.sequence))
    }

    /// Takes over what a worker says it holds from before, if nobody else has it. Whether it was taken over.
    pub fn adopt(&mut self, key: BoutKey, worker: &str, token: Token, now: Duration) -> bool {
        match self.leases.get(&key) {
            Some(lease) if lease.worker != worker || lease.token != token => false,
            _ if token.epoch == self.epoch && !self.may_have_given(token) => false,
            _ => {
                self.release(&key);
                self.put(key, worker, token, now);
                true
            }
        }
    }

    fn put(&mut self, key: BoutKey, worker: &str, token: Token, now: Duration) {
        let expires = now + self.length;
        let lease = Lease { worker: worker.to_string(), token, expires, progress: Progress::default() };
        self.ends.insert((expires, key.clone()));
        self.held.entry(worker.to_string()).or_default().insert(key.clone());
        *self.counts.entry(key.run.clone()).or_default() += 1;
        let before = self.leases.insert(key, lease);
        debug_assert!(before.is_none(), "a bout is lent once at a time");
    }

    /// Hears of a bout. The lease lasts longer if the bout has gone on. One that waits for a slot lasts as long as its
    /// worker gets on with others.
    pub fn hear(&mut self, key: &BoutKey, token: Token, progress: Progress, now: Duration) {
        let Some(lease) = self.leases.get_mut(key).filter(|lease| lease.token == token) else { return };
        let until = if progress > lease.progress {
            lease.progress = progress;
            self.lively.insert(lease.worker.clone(), now);
            now + self.length
        } else if !lease.progress.started {
            self.lively.get(&lease.worker).map_or(lease.expires, |lively| *lively + self.length)
        } else {
            return;
        };
        if until > lease.expires {
            self.ends.remove(&(lease.expires, key.clone()));
            lease.expires = until;
            self.ends.insert((lease.expires, key.clone()));
        }
    }

    /// The lease of a bout.
    pub fn lease(&self, key: &BoutKey) -> Option<&Lease> {
        self.leases.get(key)
    }

    /// Ends a lease, whoever has it.
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

    /// Ends every lease of which nothing was heard in time, and returns them.
    pub fn expire(&mut self, now: Duration) -> Vec<(BoutKey, Lease)> {
        let mut ended = Vec::new();
        while let Some((end, key)) = self.ends.first().cloned()
            && end <= now
        {
            let lease = self.release(&key).expect("an end belongs to a lease");
            ended.push((key, lease));
        }
        ended
    }

    /// The leases of a worker.
    pub fn of_worker(&self, worker: &str) -> impl Iterator<Item = (&BoutKey, &Lease)> {
        let lease = |key| self.leases.get_key_value(key);
        self.held.get(worker).into_iter().flatten().filter_map(lease)
    }

    /// How many leases a worker has.
    pub fn count_of_worker(&self, worker: &str) -> u64 {
        self.held.get(worker).map_or(0, |held| held.len() as u64)
    }

    /// How many leases there are.
    pub fn count(&self) -> usize {
        self.leases.len()
    }

    /// How many leases a run has.
    pub fn count_of_run(&self, run: &str) -> u64 {
        self.counts.get(run).copied().unwrap_or(0)
    }

    /// The leases of a run.
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
    fn a_lease_lasts_while_its_bout_goes_on() {
        let mut book = LeaseBook::new(1, LENGTH);
        let token = book.grant(key(0), "w", at(0));
        let progress = |ply| Progress { started: true, game: 0, ply, pulse: 0 };
        book.hear(&key(0), token, progress(3), at(20));
        assert!(book.expire(at(49)).is_empty());
        // The same again is no progress, and neither is an earlier ply; another token is somebody else.
        book.hear(&key(0), token, progress(3), at(45));
        book.hear(&key(0), token, progress(2), at(46));
        book.hear(&key(0), Token { epoch: 1, sequence: 9 }, progress(8), at(47));
        assert_eq!(book.expire(at(50)).len(), 1);
        assert!(book.lease(&key(0)).is_none());
    }

    #[test]
    fn a_bout_that_waits_for_a_slot_is_not_lost() {
        let mut book = LeaseBook::new(1, LENGTH);
        let token = book.grant(key(0), "w", at(0));
        let played = book.grant(key(1), "w", at(0));
        for time in (20..400).step_by(20) {
            book.hear(
                &key(1),
                played,
                Progress { started: true, ply: time as u32, ..Progress::default() },
                at(time),
            );
            book.hear(&key(0), token, Progress::default(), at(time));
            assert!(book.expire(at(time)).is_empty());
        }
        // A worker that gets on with nothing loses what waits, too, however often it is heard from.
        for time in (400..440).step_by(10) {
            book.hear(&key(0), token, Progress::default(), at(time));
        }
        assert_eq!(book.expire(at(420)).len(), 2);
    }

    #[test]
    fn what_was_never_given_is_not_taken_over() {
        let mut book = LeaseBook::new(2, LENGTH);
        let given = book.grant(key(0), "w", at(0));
        for sequence in [0, given.sequence + 1, u64::MAX] {
            assert!(!book.adopt(key(1), "w", Token { epoch: 2, sequence }, at(0)));
            assert!(!book.may_have_given(Token { epoch: 2, sequence }));
        }
        assert!(!book.may_have_given(Token { epoch: 3, sequence: 1 }));
        assert!(book.may_have_given(given) && book.may_have_given(Token { epoch: 1, sequence: 99 }));
        assert_eq!(book.grant(key(1), "w", at(0)), Token { epoch: 2, sequence: given.sequence + 1 });
    }

    #[test]
    fn what_is_held_is_adopted_once() {
        let mut book = LeaseBook::new(2, LENGTH);
        let old = Token { epoch: 1, sequence: 7 };
        assert!(book.adopt(key(0), "w", old, at(0)));
        assert!(book.adopt(key(0), "w", old, at(1)), "the same worker again");
        assert!(!book.adopt(key(0), "other", old, at(1)));
        assert_eq!(book.lease(&key(0)).unwrap().token, old);
    }

    /// A slow model: a list of what is lent, looked through from one end to the other each time.
    #[test]
    fn the_book_agrees_with_a_slow_model() {
        use agon_games::random::{below, seeded};
        for seed in 0..200 {
            let mut random = seeded(seed);
            let mut book = LeaseBook::new(1, LENGTH);
            let mut model: Vec<(u64, &str, Token, Duration, Progress)> = Vec::new();
            let mut given = BTreeSet::new();
            let mut lively: Vec<(&str, Duration)> = Vec::new();
            let mut now = Duration::ZERO;
            for _ in 0..300 {
                now += Duration::from_secs(below(&mut random, 8) as u64);
                let bout = below(&mut random, 6) as u64;
                let worker = ["a", "b", "c"][below(&mut random, 3)];
                let known = model.iter().position(|entry| entry.0 == bout);
                match below(&mut random, 4) {
                    0 if known.is_none() => {
                        let token = book.grant(key(bout), worker, now);
                        assert!(given.insert(token), "no token is given twice");
                        model.push((bout, worker, token, now + LENGTH, Progress::default()));
                    }
                    1 => {
                        let lease = book.release(&key(bout));
                        assert_eq!(lease.is_some(), known.is_some());
                        if let Some(place) = known {
                            model.remove(place);
                        }
                    }
                    2 => {
                        let progress = Progress {
                            started: below(&mut random, 3) > 0,
                            game: below(&mut random, 2) as u32,
                            ply: below(&mut random, 5) as u32,
                            pulse: below(&mut random, 3) as u64,
                        };
                        if let Some(place) = known {
                            let (_, worker, token, expires, before) = &mut model[place];
                            book.hear(&key(bout), *token, progress, now);
                            if progress > *before {
                                *before = progress;
                                *expires = now + LENGTH;
                                lively.push((worker, now));
                            } else if let (false, Some((_, last))) =
                                (before.started, lively.iter().rev().find(|(name, _)| name == worker))
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
