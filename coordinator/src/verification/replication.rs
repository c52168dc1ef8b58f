//! Replication: samples bouts for a second worker and compares the results. A pure state machine.
//!
//! Applies only to deterministic bouts, limited by nodes or depth. If two workers differ, a third decides, and the
//! worker in the minority is faulty. The caller decides what follows. Open cases are persisted and survive a restart.

use std::collections::BTreeMap;

use agon_games::random::mix;

use crate::leases::BoutKey;

/// The number of first bouts of a new worker that are all checked.
pub const PROBATION: u64 = 10;
/// Later, one in this many bouts is checked.
pub const SAMPLE: u64 = 100;
/// Cases that may wait per worker; above this the oldest is dropped.
const MAX_WAITING_CASES: usize = 1000;

/// A content digest.
pub type Digest = [u8; 32];

/// The result of replaying a bout on another worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplicaVerdict {
    /// No case is open for this bout and worker.
    Unrequested,
    /// The contents are equal.
    Confirmed {
        /// The worker that played the bout first.
        first: String,
    },
    /// The contents differ; a third worker decides.
    Disputed {
        /// The worker that played the bout first.
        first: String,
    },
    /// Two workers agree and one differs.
    Outvoted {
        /// The worker in the minority.
        worker: String,
        /// Whether its content is the committed one.
        counted: bool,
    },
    /// All three contents differ; the bout may not be deterministic.
    Inconclusive,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Case {
    /// The case number; cases are replayed in this order.
    number: u64,
    /// Each worker's digest; the first is the committed one.
    digests: Vec<(String, Digest)>,
}

/// All open cases.
#[derive(Default, Debug)]
pub struct Replication {
    cases: BTreeMap<BoutKey, Case>,
    next: u64,
    /// Cases that are not leased, by the worker that played first.
    waiting: BTreeMap<String, BTreeMap<u64, BoutKey>>,
    /// The cases ever opened for each worker, and those that other workers confirmed.
    opened: BTreeMap<String, u64>,
    confirmed: BTreeMap<String, u64>,
}

impl Replication {
    /// Returns whether a committed bout should be replicated: every bout of a worker on probation, later one in
    /// [`SAMPLE`], drawn with a secret that workers cannot predict.
    pub fn is_sampled(&self, worker: &str, key: &BoutKey, digest: &Digest, secret: u64) -> bool {
        let drawn = u64::from_le_bytes(digest[..8].try_into().expect("eight bytes")) ^ secret;
        self.opened.get(worker).copied().unwrap_or(0) < PROBATION
            || mix(drawn, key.bout).is_multiple_of(SAMPLE)
    }

    /// Puts a worker on probation again.
    pub fn suspect(&mut self, worker: &str) {
        self.opened.remove(worker);
    }

    /// Returns the case to close before another is opened for a worker that has too many.
    pub fn overflow(&self, worker: &str) -> Option<BoutKey> {
        let own = self.waiting.get(worker).filter(|own| own.len() >= MAX_WAITING_CASES)?;
        own.first_key_value().map(|(_, oldest)| oldest.clone())
    }

    /// Opens a case.
    pub fn add(&mut self, key: BoutKey, worker: &str, digest: Digest) {
        if self.cases.contains_key(&key) {
            return;
        }
        self.waiting.entry(worker.to_string()).or_default().insert(self.next, key.clone());
        *self.opened.entry(worker.to_string()).or_default() += 1;
        self.cases.insert(key, Case { number: self.next, digests: vec![(worker.to_string(), digest)] });
        self.next += 1;
    }

    /// Restores a persisted digest; call in the order in which they were recorded.
    pub fn restore(&mut self, key: BoutKey, worker: &str, digest: Digest) {
        match self.cases.get_mut(&key) {
            Some(case) => case.digests.push((worker.to_string(), digest)),
            None => self.add(key, worker, digest),
        }
    }

    /// Claims a bout for this worker to replicate: one it has not played, that is not leased and that `suits` accepts.
    pub fn claim_next(
        &mut self,
        worker: &str,
        suits: impl Fn(&BoutKey, &[(String, Digest)]) -> bool,
    ) -> Option<BoutKey> {
        let suits = |key: &&BoutKey| {
            let has_not_played = |case: &Case| case.digests.iter().all(|(name, _)| name != worker);
            self.cases.get(*key).is_some_and(|case| has_not_played(case) && suits(key, &case.digests))
        };
        let others = self.waiting.iter().filter(|(first, _)| *first != worker);
        let key = others.flat_map(|(_, keys)| keys.values()).find(suits)?.clone();
        self.claim(&key);
        Some(key)
    }

    /// Returns whether a case is open.
    pub fn has(&self, key: &BoutKey) -> bool {
        self.cases.contains_key(key)
    }

    /// Returns a leased bout unplayed.
    pub fn give_back(&mut self, key: &BoutKey) {
        if let Some(case) = self.cases.get(key) {
            let own = self.waiting.entry(case.digests[0].0.clone()).or_default();
            own.insert(case.number, key.clone());
        }
    }

    /// Marks a case as leased.
    pub fn claim(&mut self, key: &BoutKey) {
        if let Some(case) = self.cases.get(key)
            && let Some(own) = self.waiting.get_mut(&case.digests[0].0)
        {
            own.remove(&case.number);
            if own.is_empty() {
                self.waiting.remove(&case.digests[0].0);
            }
        }
    }

    /// Returns what a worker's digest means.
    pub fn judge(&self, key: &BoutKey, worker: &str, digest: &Digest) -> ReplicaVerdict {
        let Some(case) = self.cases.get(key) else { return ReplicaVerdict::Unrequested };
        let mut digests: Vec<(&str, &Digest)> =
            case.digests.iter().map(|(name, digest)| (name.as_str(), digest)).collect();
        if digests.iter().any(|(name, _)| *name == worker) {
            return ReplicaVerdict::Unrequested;
        }
        digests.push((worker, digest));
        if let [(first, one), (_, other)] = digests[..] {
            let first = first.to_string();
            return if one == other {
                ReplicaVerdict::Confirmed { first }
            } else {
                ReplicaVerdict::Disputed { first }
            };
        }
        let alone = |index: usize| (0..3).all(|other| other == index || digests[other].1 != digests[index].1);
        match (0..3).filter(|&index| alone(index)).collect::<Vec<_>>()[..] {
            [odd] => ReplicaVerdict::Outvoted { worker: digests[odd].0.to_string(), counted: odd == 0 },
            _ => ReplicaVerdict::Inconclusive,
        }
    }

    /// Records a digest that differs, and makes the case available to a third worker.
    pub fn dispute(&mut self, key: &BoutKey, worker: &str, digest: Digest) {
        if let Some(case) = self.cases.get_mut(key) {
            case.digests.push((worker.to_string(), digest));
        }
        self.give_back(key);
    }

    /// Counts a bout of a worker that another confirmed.
    pub fn confirm(&mut self, worker: &str) {
        *self.confirmed.entry(worker.to_string()).or_default() += 1;
    }

    /// Closes the case of a bout.
    pub fn close(&mut self, key: &BoutKey) {
        self.claim(key);
        self.cases.remove(key);
    }

    /// Returns how many bouts of a worker others confirmed.
    pub fn confirmed(&self, worker: &str) -> u64 {
        self.confirmed.get(worker).copied().unwrap_or(0)
    }

    /// Returns the last bout of each run that has open cases.
    pub(crate) fn latest(&self) -> BTreeMap<String, u64> {
        self.cases.keys().map(|key| (key.run.clone(), key.bout)).collect()
    }

    /// Returns the open cases with the digests of each, in order.
    #[cfg(test)]
    pub(crate) fn cases(&self) -> Vec<(&BoutKey, &[(String, Digest)])> {
        self.cases.iter().map(|(key, case)| (key, &case.digests[..])).collect()
    }

    /// Returns how many cases wait for a worker.
    pub fn waiting(&self) -> usize {
        self.cases.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agon_games::random::{below, seeded};

    use super::*;

    fn key(bout: u64) -> BoutKey {
        BoutKey { run: "r".to_string(), bout }
    }

    /// Judges a digest and does what follows from it.
    fn record(checks: &mut Replication, key: &BoutKey, worker: &str, digest: Digest) -> ReplicaVerdict {
        let verdict = checks.judge(key, worker, &digest);
        match &verdict {
            ReplicaVerdict::Unrequested => {}
            ReplicaVerdict::Disputed { .. } => checks.dispute(key, worker, digest),
            ReplicaVerdict::Confirmed { first } => {
                checks.close(key);
                checks.confirm(first);
            }
            ReplicaVerdict::Outvoted { .. } | ReplicaVerdict::Inconclusive => checks.close(key),
        }
        verdict
    }

    fn take(checks: &mut Replication, worker: &str) -> Option<BoutKey> {
        checks.claim_next(worker, |_, _| true)
    }

    #[test]
    fn outvotes_the_worker_that_differs_from_two() {
        let mut checks = Replication::default();
        checks.add(key(1), "a", [1; 32]);
        assert_eq!(take(&mut checks, "a"), None, "a worker does not check itself");
        assert_eq!(take(&mut checks, "b"), Some(key(1)));
        assert_eq!(take(&mut checks, "c"), None, "already leased");
        assert_eq!(record(&mut checks, &key(1), "a", [1; 32]), ReplicaVerdict::Unrequested);
        assert_eq!(
            record(&mut checks, &key(1), "b", [2; 32]),
            ReplicaVerdict::Disputed { first: "a".to_string() }
        );
        assert_eq!(take(&mut checks, "b"), None, "a worker answers once");
        assert_eq!(take(&mut checks, "c"), Some(key(1)));
        let outvoted = ReplicaVerdict::Outvoted { worker: "a".to_string(), counted: true };
        assert_eq!(record(&mut checks, &key(1), "c", [2; 32]), outvoted);
        assert_eq!((checks.waiting(), checks.has(&key(1))), (0, false));
        checks.add(key(2), "a", [1; 32]);
        record(&mut checks, &key(2), "b", [2; 32]);
        let outvoted = ReplicaVerdict::Outvoted { worker: "b".to_string(), counted: false };
        assert_eq!(record(&mut checks, &key(2), "c", [1; 32]), outvoted);
        checks.add(key(3), "a", [1; 32]);
        record(&mut checks, &key(3), "b", [2; 32]);
        assert_eq!(record(&mut checks, &key(3), "c", [3; 32]), ReplicaVerdict::Inconclusive);
    }

    #[test]
    fn resumes_a_case_after_restart() {
        let mut checks = Replication::default();
        checks.restore(key(1), "a", [1; 32]);
        checks.restore(key(2), "a", [1; 32]);
        checks.restore(key(1), "b", [2; 32]);
        assert_eq!(checks.claim_next("c", |key, _| key.run != "r"), None, "`suits` rejects the run");
        assert_eq!(take(&mut checks, "b"), Some(key(2)), "it has answered the first");
        assert_eq!(take(&mut checks, "c"), Some(key(1)));
        let outvoted = ReplicaVerdict::Outvoted { worker: "b".to_string(), counted: false };
        assert_eq!(record(&mut checks, &key(1), "c", [1; 32]), outvoted);
        checks.close(&key(2));
        assert_eq!(
            (checks.waiting(), record(&mut checks, &key(2), "b", [1; 32])),
            (0, ReplicaVerdict::Unrequested)
        );
    }

    #[test]
    fn checks_all_bouts_on_probation_then_samples() {
        let mut checks = Replication::default();
        for bout in 0..PROBATION {
            assert!(checks.is_sampled("a", &key(bout), &[7; 32], 1));
            checks.add(key(bout), "a", [7; 32]);
            assert_eq!(
                record(&mut checks, &key(bout), "b", [7; 32]),
                ReplicaVerdict::Confirmed { first: "a".to_string() }
            );
        }
        checks.suspect("a");
        assert!(checks.is_sampled("a", &key(99), &[7; 32], 1), "a suspect is on probation again");
        for bout in 100..100 + PROBATION {
            checks.add(key(bout), "a", [7; 32]);
        }
        let sampled = (0..10_000).filter(|&bout| checks.is_sampled("a", &key(bout), &[7; 32], 1)).count();
        assert!((60..150).contains(&sampled), "{sampled} of 10,000 are checked");
    }

    /// Honest workers are never outvoted; a faulty worker always is in the end.
    #[test]
    fn outvotes_only_faulty_workers() {
        for seed in 0..200 {
            let mut random = seeded(seed);
            let mut checks = Replication::default();
            let names = ["a", "b", "c", "d"];
            let faulty = below(&mut random, 5);
            let mut outvoted = BTreeSet::new();
            for bout in 0..200 {
                let first = below(&mut random, 4);
                let digest = |worker: usize, random: &mut _| {
                    if worker == faulty && below(random, 2) == 0 { [worker as u8 + 1; 32] } else { [0; 32] }
                };
                checks.add(key(bout), names[first], digest(first, &mut random));
                for _ in 0..6 {
                    let worker = below(&mut random, 4);
                    if let Some(key) = take(&mut checks, names[worker]) {
                        if below(&mut random, 5) == 0 {
                            checks.give_back(&key);
                        } else if let ReplicaVerdict::Outvoted { worker, .. } =
                            record(&mut checks, &key, names[worker], digest(worker, &mut random))
                        {
                            outvoted.insert(worker);
                        }
                    }
                }
            }
            let expected: Vec<&str> = names.get(faulty).into_iter().copied().collect();
            assert_eq!(outvoted.iter().map(String::as_str).collect::<Vec<_>>(), expected, "seed {seed}");
        }
    }
}
