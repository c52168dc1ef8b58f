//! The lease book: which worker plays which bout, until when. A pure state machine; time is an argument.
//!
//! Leases only avoid duplicate work: a bout is committed by its key, whichever worker submits it. Leases are kept in
//! memory. A token contains the coordinator's epoch and a proof, which only the owner of the state's secret can compute, that
//! this bout was leased to this holder: no worker can invent a lease, or use that of another, even after a restart.

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

/// Who holds a lease: a worker with the credential of its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder<'a> {
    /// The name of the worker.
    pub worker: &'a str,
    /// The credential.
    pub credential: &'a str,
}

/// The number of low bits of a token's sequence that count grants; the others are the proof.
const COUNTER_BITS: u32 = 24;

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
    secret: [u8; 32],
    granted: u64,
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
    pub fn new(epoch: u64, secret: [u8; 32], length: Duration) -> LeaseBook {
        LeaseBook {
            epoch,
            secret,
            granted: 0,
            length,
            leases: BTreeMap::new(),
            ends: BTreeSet::new(),
            held: BTreeMap::new(),
            counts: BTreeMap::new(),
            last_progress: BTreeMap::new(),
        }
    }

    /// Leases a bout, and ends an earlier lease of it.
    pub fn grant(&mut self, key: BoutKey, holder: Holder<'_>, now: Duration) -> Token {
        self.granted += 1;
        let counter = self.granted & ((1 << COUNTER_BITS) - 1);
        let token = Token { epoch: self.epoch, sequence: self.sequence(self.epoch, counter, &key, holder) };
        self.put(key, holder.worker, token, now);
        token
    }

    /// Returns the sequence of a token: a counter and the proof that the bout was leased to the holder.
    fn sequence(&self, epoch: u64, counter: u64, key: &BoutKey, holder: Holder<'_>) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(&[epoch, counter, key.bout].map(u64::to_le_bytes).concat());
        for text in [&key.run, holder.worker, holder.credential] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        let proof: [u8; 8] = hasher.finalize().as_bytes()[..8].try_into().expect("eight bytes");
        u64::from_le_bytes(proof) << COUNTER_BITS | counter
    }

    /// Returns whether this bout was leased to this holder with this token.
    pub fn has_issued(&self, token: Token, key: &BoutKey, holder: Holder<'_>) -> bool {
        let counter = token.sequence & ((1 << COUNTER_BITS) - 1);
        token.epoch <= self.epoch && self.sequence(token.epoch, counter, key, holder) == token.sequence
    }

    /// Returns whether a token claims to be of this process.
    pub fn is_of_this_epoch(&self, token: Token) -> bool {
        token.epoch == self.epoch
    }

    /// Adopts a lease that a worker holds from before, unless another worker has the bout. Returns whether it did.
    pub fn adopt(&mut self, key: BoutKey, holder: Holder<'_>, token: Token, now: Duration) -> bool {
        let is_other = |lease: &Lease| lease.worker != holder.worker || lease.token != token;
        if self.leases.get(&key).is_some_and(is_other) || !self.has_issued(token, &key, holder) {
            return false;
        }
        self.put(key, holder.worker, token, now);
        true
    }

    /// Extends all leases by the time during which no report could be read.
    pub fn postpone(&mut self, by: Duration) {
        self.last_progress.values_mut().for_each(|time| *time += by);
        self.leases.values_mut().for_each(|lease| lease.expires += by);
        self.ends = std::mem::take(&mut self.ends).into_iter().map(|(end, key)| (end + by, key)).collect();
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

    fn book(epoch: u64) -> LeaseBook {
        LeaseBook::new(epoch, [7; 32], LENGTH)
    }

    fn holder(worker: &str) -> Holder<'_> {
        Holder { worker, credential: "token" }
    }

    #[test]
    fn extends_a_lease_on_progress() {
        let mut book = book(1);
        let token = book.grant(key(0), holder("w"), at(0));
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
        let mut book = book(1);
        let token = book.grant(key(0), holder("w"), at(0));
        let played = book.grant(key(1), holder("w"), at(0));
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
    fn accepts_only_tokens_that_it_issued_to_the_holder() {
        let mut book = book(2);
        let given = book.grant(key(0), holder("w"), at(0));
        assert!(book.has_issued(given, &key(0), holder("w")));
        assert!(!book.has_issued(given, &key(1), holder("w")), "another bout");
        assert!(!book.has_issued(given, &key(0), holder("v")), "another worker");
        let stolen = Holder { worker: "w", credential: "another token" };
        assert!(!book.has_issued(given, &key(0), stolen));
        for sequence in [0, given.sequence + 1, given.sequence ^ 1 << 40, u64::MAX] {
            for epoch in [1, 2, 3] {
                let invented = Token { epoch, sequence };
                assert!(!book.has_issued(invented, &key(0), holder("w")));
                assert!(!book.adopt(key(1), holder("w"), invented, at(0)));
            }
        }
        assert!(
            !LeaseBook::new(2, [8; 32], LENGTH).has_issued(given, &key(0), holder("w")),
            "another secret"
        );
        assert_ne!(book.grant(key(0), holder("w"), at(0)), given, "each lease has its token");
    }

    #[test]
    fn adopts_a_lease_of_an_earlier_process_for_its_holder() {
        let old = book(1).grant(key(0), holder("w"), at(0));
        let mut book = book(2);
        assert!(!book.adopt(key(0), holder("other"), old, at(0)));
        assert!(book.adopt(key(0), holder("w"), old, at(0)));
        assert!(book.adopt(key(0), holder("w"), old, at(1)), "the same worker again");
        assert_eq!(book.lease(&key(0)).unwrap().token, old);
    }

    #[test]
    fn postponed_leases_expire_later_in_the_same_order() {
        let mut book = book(1);
        book.grant(key(0), holder("w"), at(0));
        book.grant(key(1), holder("w"), at(5));
        book.postpone(at(100));
        assert!(book.expire(at(129)).is_empty());
        assert_eq!((book.expire(at(130)).len(), book.expire(at(135)).len()), (1, 1));
    }

    #[test]
    fn second_lease_of_a_bout_ends_the_first() {
        let mut book = book(1);
        book.grant(key(0), holder("w"), at(0));
        let token = book.grant(key(0), holder("other"), at(10));
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
            let mut book = book(1);
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
                        let token = book.grant(key(bout), holder(worker), now);
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
