//! Replication: samples bouts for a second worker and compares the results. A pure state machine.
//!
//! Applies only to deterministic bouts, limited by nodes or depth. If two workers differ, a third decides, and the
//! worker in the minority is faulty. The caller decides what follows. Open cases are persisted and survive a restart.
//!
//! A sequential test ends at its verdict, so the bouts of a credential that is not trusted yet are all replicated there,
//! and by other credentials only: such cases are strict. A credential is trusted after [`TRUSTED`] confirmations.

use std::collections::BTreeMap;

use agon_games::random::mix;

use crate::leases::BoutKey;

/// The number of first bouts of a new worker that are all checked.
pub const PROBATION: u64 = 10;
/// Later, one in this many bouts is checked.
pub const SAMPLE: u64 = 100;
/// In sequential tests, one in this many bouts of a trusted credential is checked.
pub const TEST_SAMPLE: u64 = 10;
/// The bouts of a credential that another must confirm until it is trusted in sequential tests. A credential that forges
/// more than 5 % of its bouts passes with a probability below 0.95^60 < 0.05.
pub const TRUSTED: u64 = 60;
/// Cases that may wait for a worker; above this no more are opened for it, unless they are strict.
const MAX_WAITING_CASES: usize = 1000;
/// Open strict cases of a run; above this its new bouts wait for replicas.
const MAX_STRICT_CASES: u64 = 500;

/// A content digest.
pub type Digest = [u8; 32];

/// The content of a bout according to a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opinion {
    /// The worker.
    pub worker: String,
    /// Its credential; empty if it has none.
    pub credential: String,
    /// The content digest.
    pub digest: Digest,
}

impl Opinion {
    /// Returns whether the credentials of both are known and equal.
    fn shares_credential(&self, other: &Opinion) -> bool {
        !self.credential.is_empty() && self.credential == other.credential
    }
}

/// The result of replaying a bout on another worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplicaVerdict {
    /// No case is open for this bout and worker.
    Unrequested,
    /// The contents are equal.
    Confirmed {
        /// The worker that played the bout first.
        first: String,
        /// Its credential, if the replica has another.
        credential: Option<String>,
    },
    /// The contents differ; a further worker decides.
    Disputed {
        /// The worker that played the bout first.
        first: String,
    },
    /// Two workers agree and the others differ.
    Outvoted {
        /// The workers that differ, in order.
        outvoted: Vec<Opinion>,
        /// Whether the content of the first of them is the committed one.
        counted: bool,
        /// Whether the two that agree have no credentials or different ones.
        independent: bool,
    },
    /// All three contents differ; the bout may not be deterministic.
    Inconclusive,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Case {
    /// The case number; cases are replayed in this order.
    number: u64,
    /// Whether all its workers must have different credentials, and a verdict waits for its end.
    strict: bool,
    /// What each worker submitted; the first is the committed content.
    opinions: Vec<Opinion>,
}

/// All open cases.
#[derive(Default, Debug)]
pub struct Replication {
    cases: BTreeMap<BoutKey, Case>,
    next: u64,
    /// Cases that are not leased, by the worker that played first.
    waiting: BTreeMap<String, BTreeMap<u64, BoutKey>>,
    /// The number of strict cases by run.
    strict: BTreeMap<String, u64>,
    /// The cases ever opened for each worker, and those that other workers confirmed.
    opened: BTreeMap<String, u64>,
    confirmed: BTreeMap<String, u64>,
    /// Credentials of workers, and how many of their bouts other credentials confirmed.
    credentials: BTreeMap<String, u64>,
}

impl Replication {
    /// Returns whether a committed bout should be replicated: in a sequential test every bout of a credential that is not
    /// trusted; elsewhere every bout of a worker on probation; later a sample, drawn with a secret that workers cannot
    /// predict.
    pub fn is_sampled(&self, key: &BoutKey, author: &Opinion, is_test: bool, secret: u64) -> bool {
        let Opinion { worker, credential, digest } = author;
        let is_strict = is_test && !credential.is_empty();
        let is_full = self.waiting.get(worker).is_some_and(|own| own.len() >= MAX_WAITING_CASES);
        if is_full && !(is_strict && self.knows_other(credential)) {
            return false;
        }
        let drawn = u64::from_le_bytes(digest[..8].try_into().expect("eight bytes")) ^ secret;
        let sample = if is_strict { TEST_SAMPLE } else { SAMPLE };
        (is_strict && self.confirmations(credential) < TRUSTED)
            || self.opened.get(worker).copied().unwrap_or(0) < PROBATION
            || mix(drawn, key.bout).is_multiple_of(sample)
    }

    /// Puts a worker on probation again.
    pub fn suspect(&mut self, worker: &str) {
        self.opened.remove(worker);
    }

    /// Forgets the counts of a worker, which is on probation again if it returns.
    pub fn forget(&mut self, worker: &str) {
        self.opened.remove(worker);
        self.confirmed.remove(worker);
    }

    /// Opens a case.
    pub fn add(&mut self, key: BoutKey, author: Opinion, is_test: bool) {
        if self.cases.contains_key(&key) {
            return;
        }
        let strict = is_test && !author.credential.is_empty();
        *self.strict.entry(key.run.clone()).or_default() += u64::from(strict);
        self.waiting.entry(author.worker.clone()).or_default().insert(self.next, key.clone());
        *self.opened.entry(author.worker.clone()).or_default() += 1;
        self.cases.insert(key, Case { number: self.next, strict, opinions: vec![author] });
        self.next += 1;
    }

    /// Restores a persisted digest; call in the order in which they were recorded.
    pub fn restore(&mut self, key: BoutKey, opinion: Opinion, is_test: bool) {
        match self.cases.get_mut(&key) {
            Some(case) => case.opinions.push(opinion),
            None => self.add(key, opinion, is_test),
        }
    }

    /// Claims a bout for this worker to replicate: one it has not played, that is not leased and that `suits` accepts.
    pub fn claim_next(
        &mut self,
        worker: &str,
        credential: &str,
        suits: impl Fn(&BoutKey, &[Opinion]) -> bool,
    ) -> Option<BoutKey> {
        let suits = |key: &&BoutKey| {
            self.cases
                .get(*key)
                .is_some_and(|case| case.may_be_played_by(worker, credential) && suits(key, &case.opinions))
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
            let own = self.waiting.entry(case.opinions[0].worker.clone()).or_default();
            own.insert(case.number, key.clone());
        }
    }

    /// Marks a case as leased.
    pub fn claim(&mut self, key: &BoutKey) {
        if let Some(case) = self.cases.get(key)
            && let Some(own) = self.waiting.get_mut(&case.opinions[0].worker)
        {
            own.remove(&case.number);
            if own.is_empty() {
                self.waiting.remove(&case.opinions[0].worker);
            }
        }
    }

    /// Returns what the replica of a worker means.
    pub fn judge(&self, key: &BoutKey, replica: &Opinion) -> ReplicaVerdict {
        let Some(case) = self.cases.get(key) else { return ReplicaVerdict::Unrequested };
        if !case.may_be_played_by(&replica.worker, &replica.credential) {
            return ReplicaVerdict::Unrequested;
        }
        let first = &case.opinions[0];
        let (agreeing, differing): (Vec<&Opinion>, Vec<&Opinion>) =
            case.opinions.iter().partition(|opinion| opinion.digest == replica.digest);
        match (agreeing.first(), differing.len()) {
            (Some(_), 0) => {
                let credential = [first, replica].map(|opinion| opinion.credential.as_str());
                let differs =
                    credential[0] != credential[1] && credential.iter().all(|name| !name.is_empty());
                let credential = differs.then(|| first.credential.clone());
                ReplicaVerdict::Confirmed { first: first.worker.clone(), credential }
            }
            (Some(other), _) => ReplicaVerdict::Outvoted {
                counted: first.digest != replica.digest,
                independent: !other.shares_credential(replica),
                outvoted: differing.into_iter().cloned().collect(),
            },
            (None, count) if count < 2 || case.strict => {
                ReplicaVerdict::Disputed { first: first.worker.clone() }
            }
            (None, _) => ReplicaVerdict::Inconclusive,
        }
    }

    /// Records a replica that differs, and makes the case available to a further worker.
    pub fn dispute(&mut self, key: &BoutKey, replica: Opinion) {
        if let Some(case) = self.cases.get_mut(key) {
            case.opinions.push(replica);
        }
        self.give_back(key);
    }

    /// Counts a bout of a worker that another confirmed, and of its credential if another credential did.
    pub fn confirm(&mut self, worker: &str, credential: Option<&str>) {
        *self.confirmed.entry(worker.to_string()).or_default() += 1;
        if let Some(credential) = credential {
            *self.credentials.entry(credential.to_string()).or_default() += 1;
        }
    }

    /// Closes the case of a bout.
    pub fn close(&mut self, key: &BoutKey) {
        self.claim(key);
        if let Some(case) = self.cases.remove(key)
            && let Some(count) = self.strict.get_mut(&key.run)
        {
            *count -= u64::from(case.strict);
            if *count == 0 {
                self.strict.remove(&key.run);
            }
        }
    }

    /// Returns how many bouts of a worker others confirmed.
    pub fn confirmed(&self, worker: &str) -> u64 {
        self.confirmed.get(worker).copied().unwrap_or(0)
    }

    /// Adds a credential of workers, with the number of its confirmed bouts.
    pub fn add_credential(&mut self, credential: &str, confirmed: u64) {
        *self.credentials.entry(credential.to_string()).or_default() += confirmed;
    }

    /// Forgets the confirmations of a credential.
    pub fn distrust(&mut self, credential: &str) {
        if let Some(confirmed) = self.credentials.get_mut(credential) {
            *confirmed = 0;
        }
    }

    /// Returns how many bouts of a credential other credentials confirmed.
    pub fn confirmations(&self, credential: &str) -> u64 {
        self.credentials.get(credential).copied().unwrap_or(0)
    }

    /// Returns whether another credential is known, so that bouts of this one can be replicated.
    pub fn knows_other(&self, credential: &str) -> bool {
        self.credentials.keys().any(|known| known != credential)
    }

    /// Returns whether a verdict of a run at `bout` must wait for replicas. It does not wait for those that no known
    /// credential can play.
    pub fn holds_up(&self, run: &str, bout: u64) -> bool {
        self.up_to(run, bout).any(|case| {
            case.strict && (case.opinions.len() > 1 || self.knows_other(&case.opinions[0].credential))
        })
    }

    /// Returns whether the bouts up to `bout` of a run are not verified by a second credential.
    pub fn is_unverified(&self, run: &str, bout: u64) -> bool {
        self.credentials.len() < 2 || self.up_to(run, bout).any(|case| case.strict)
    }

    /// Returns whether a run has too many strict cases to get more bouts.
    pub fn is_backlogged(&self, run: &str) -> bool {
        self.credentials.len() > 1 && self.strict.get(run).is_some_and(|count| *count >= MAX_STRICT_CASES)
    }

    /// Returns the open cases of a run up to a bout.
    fn up_to(&self, run: &str, bout: u64) -> impl Iterator<Item = &Case> {
        let key = |bout| BoutKey { run: run.to_string(), bout };
        self.cases.range(key(0)..=key(bout)).map(|(_, case)| case)
    }

    /// Returns the last bout of each run that has open cases.
    pub(crate) fn latest(&self) -> BTreeMap<String, u64> {
        self.cases.keys().map(|key| (key.run.clone(), key.bout)).collect()
    }

    /// Returns the open cases with what each worker submitted, in order, and the confirmations of credentials.
    #[cfg(test)]
    pub(crate) fn view(&self) -> (Vec<CaseView<'_>>, &BTreeMap<String, u64>) {
        let cases = self.cases.iter().map(|(key, case)| (key, case.strict, &case.opinions[..]));
        (cases.collect(), &self.credentials)
    }

    /// Returns how many cases wait for a worker.
    pub fn waiting(&self) -> usize {
        self.cases.len()
    }
}

/// The bout of a case, whether the case is strict, and what each worker submitted.
#[cfg(test)]
pub(crate) type CaseView<'a> = (&'a BoutKey, bool, &'a [Opinion]);

impl Case {
    /// Returns whether a worker may replicate the bout: it has not played it, and in a strict case nor has its credential.
    fn may_be_played_by(&self, worker: &str, credential: &str) -> bool {
        self.opinions.iter().all(|opinion| {
            let is_known = self.strict && !credential.is_empty() && opinion.credential == credential;
            opinion.worker != worker && !is_known
        })
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

    /// Returns the opinion of a worker; a name such as `a@token` has a credential.
    fn opinion(worker: &str, digest: Digest) -> Opinion {
        let credential = worker.split_once('@').map_or("", |(_, credential)| credential);
        Opinion { worker: worker.to_string(), credential: credential.to_string(), digest }
    }

    /// Judges a digest and does what follows from it.
    fn record(checks: &mut Replication, key: &BoutKey, worker: &str, digest: Digest) -> ReplicaVerdict {
        let replica = opinion(worker, digest);
        let verdict = checks.judge(key, &replica);
        match &verdict {
            ReplicaVerdict::Unrequested => {}
            ReplicaVerdict::Disputed { .. } => checks.dispute(key, replica),
            ReplicaVerdict::Confirmed { first, credential } => {
                checks.close(key);
                checks.confirm(first, credential.as_deref());
            }
            ReplicaVerdict::Outvoted { .. } | ReplicaVerdict::Inconclusive => checks.close(key),
        }
        verdict
    }

    fn add(checks: &mut Replication, bout: u64, worker: &str, digest: Digest) {
        checks.add(key(bout), opinion(worker, digest), false);
    }

    fn confirmed(first: &str) -> ReplicaVerdict {
        ReplicaVerdict::Confirmed { first: first.to_string(), credential: None }
    }

    fn outvoted(worker: &str, digest: Digest, counted: bool) -> ReplicaVerdict {
        ReplicaVerdict::Outvoted { outvoted: vec![opinion(worker, digest)], counted, independent: true }
    }

    fn take(checks: &mut Replication, worker: &str) -> Option<BoutKey> {
        checks.claim_next(worker, &opinion(worker, [0; 32]).credential, |_, _| true)
    }

    #[test]
    fn outvotes_the_worker_that_differs_from_two() {
        let mut checks = Replication::default();
        add(&mut checks, 1, "a", [1; 32]);
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
        assert_eq!(record(&mut checks, &key(1), "c", [2; 32]), outvoted("a", [1; 32], true));
        assert_eq!((checks.waiting(), checks.has(&key(1))), (0, false));
        add(&mut checks, 2, "a", [1; 32]);
        record(&mut checks, &key(2), "b", [2; 32]);
        assert_eq!(record(&mut checks, &key(2), "c", [1; 32]), outvoted("b", [2; 32], false));
        add(&mut checks, 3, "a", [1; 32]);
        record(&mut checks, &key(3), "b", [2; 32]);
        assert_eq!(record(&mut checks, &key(3), "c", [3; 32]), ReplicaVerdict::Inconclusive);
    }

    #[test]
    fn resumes_a_case_after_restart() {
        let mut checks = Replication::default();
        checks.restore(key(1), opinion("a", [1; 32]), false);
        checks.restore(key(2), opinion("a", [1; 32]), false);
        checks.restore(key(1), opinion("b", [2; 32]), false);
        assert_eq!(checks.claim_next("c", "", |key, _| key.run != "r"), None, "`suits` rejects the run");
        assert_eq!(take(&mut checks, "b"), Some(key(2)), "it has answered the first");
        assert_eq!(take(&mut checks, "c"), Some(key(1)));
        assert_eq!(record(&mut checks, &key(1), "c", [1; 32]), outvoted("b", [2; 32], false));
        checks.close(&key(2));
        assert_eq!(
            (checks.waiting(), record(&mut checks, &key(2), "b", [1; 32])),
            (0, ReplicaVerdict::Unrequested)
        );
    }

    #[test]
    fn checks_all_bouts_on_probation_then_samples() {
        let mut checks = Replication::default();
        let is_sampled =
            |checks: &Replication, bout| checks.is_sampled(&key(bout), &opinion("a", [7; 32]), false, 1);
        for bout in 0..PROBATION {
            assert!(is_sampled(&checks, bout));
            add(&mut checks, bout, "a", [7; 32]);
            assert_eq!(record(&mut checks, &key(bout), "b", [7; 32]), confirmed("a"));
        }
        checks.suspect("a");
        assert!(is_sampled(&checks, 99), "a suspect is on probation again");
        for bout in 100..100 + PROBATION {
            add(&mut checks, bout, "a", [7; 32]);
        }
        let sampled = (0..10_000).filter(|&bout| is_sampled(&checks, bout)).count();
        assert!((60..150).contains(&sampled), "{sampled} of 10,000 are checked");
    }

    #[test]
    fn test_bouts_are_replicated_by_other_credentials_until_theirs_is_trusted() {
        let mut checks = Replication::default();
        let author = |bout: u64| (key(bout), opinion("a@one", [bout as u8; 32]));
        let is_sampled = |checks: &Replication, bout| {
            let (key, author) = author(bout);
            checks.is_sampled(&key, &author, true, 1)
        };
        for credential in ["one", "two"] {
            checks.add_credential(credential, 0);
        }
        for bout in 0..TRUSTED {
            assert!(is_sampled(&checks, bout), "bout {bout}");
            let (key, author) = author(bout);
            checks.add(key.clone(), author, true);
            assert!(checks.holds_up("r", bout) && (bout == 0 || !checks.holds_up("r", bout - 1)));
            assert_eq!(take(&mut checks, "b@one"), None, "the same credential");
            assert_eq!(record(&mut checks, &key, "b@one", [bout as u8; 32]), ReplicaVerdict::Unrequested);
            assert_eq!(take(&mut checks, "c@two"), Some(key.clone()));
            record(&mut checks, &key, "c@two", [bout as u8; 32]);
            assert!(!checks.holds_up("r", bout));
        }
        assert_eq!(checks.confirmations("one"), TRUSTED);
        let sampled = (0..10_000).filter(|&bout| is_sampled(&checks, bout + 1000)).count();
        assert!((900..1100).contains(&sampled), "{sampled} of 10,000 are checked");
        checks.distrust("one");
        assert!((0..100).all(|bout| is_sampled(&checks, bout)));
    }

    #[test]
    fn dispute_in_a_test_waits_until_two_credentials_agree() {
        let mut checks = Replication::default();
        checks.add_credential("one", 0);
        checks.add(key(1), opinion("a@one", [1; 32]), true);
        assert!(!checks.holds_up("r", 9) && checks.is_unverified("r", 9), "nobody can replicate it");
        checks.add_credential("two", 0);
        assert!(checks.holds_up("r", 9) && !checks.holds_up("r", 0));
        for (worker, digest) in [("b@two", 2), ("c@three", 3)] {
            let disputed = ReplicaVerdict::Disputed { first: "a@one".to_string() };
            assert_eq!(record(&mut checks, &key(1), worker, [digest; 32]), disputed);
            assert_eq!(take(&mut checks, "d@two"), None, "a credential has one opinion");
        }
        let verdict = record(&mut checks, &key(1), "d@four", [3; 32]);
        let odd = vec![opinion("a@one", [1; 32]), opinion("b@two", [2; 32])];
        assert_eq!(verdict, ReplicaVerdict::Outvoted { outvoted: odd, counted: true, independent: true });
        assert!(!checks.holds_up("r", 9));
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
                add(&mut checks, bout, names[first], digest(first, &mut random));
                for _ in 0..6 {
                    let worker = below(&mut random, 4);
                    if let Some(key) = take(&mut checks, names[worker]) {
                        if below(&mut random, 5) == 0 {
                            checks.give_back(&key);
                        } else if let ReplicaVerdict::Outvoted { outvoted: odd, .. } =
                            record(&mut checks, &key, names[worker], digest(worker, &mut random))
                        {
                            outvoted.extend(odd.into_iter().map(|opinion| opinion.worker));
                        }
                    }
                }
            }
            let expected: Vec<&str> = names.get(faulty).into_iter().copied().collect();
            assert_eq!(outvoted.iter().map(String::as_str).collect::<Vec<_>>(), expected, "seed {seed}");
        }
    }
}
