//! The lease book: which worker plays which bout, until when. A pure state machine; time is an argument.
//!
//! Leases only avoid duplicate work: a bout is committed by its key, whichever worker submits it. A bout may have two: the
//! second is a spare one, for a bout that holds up the end of a run. Leases are kept in memory. A token contains the coordinator's epoch and a proof, which only the owner of the state's secret can compute, that
//! this bout was leased to this holder: no worker can invent a lease, or use that of another, even after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
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
    /// When the worker began to play it.
    pub started: Option<Duration>,
    /// The last reported progress.
    pub progress: Progress,
}

/// The time constant with which the slot-time of a run is forgotten.
const USAGE_MEMORY: Duration = Duration::from_secs(3600);
/// The slot-time that counts as much as one lease, when runs take turns.
const USAGE_PER_LEASE: Duration = Duration::from_secs(60);

/// A lease: its bout and its token.
type Id = (BoutKey, Token);

/// All leases.
#[derive(Debug)]
pub struct LeaseBook {
    epoch: u64,
    secret: [u8; 32],
    granted: u64,
    length: Duration,
    leases: BTreeMap<Id, Lease>,
    /// Leases ordered by expiry.
    ends: BTreeSet<(Duration, Id)>,
    /// Started leases ordered by their start.
    started: BTreeSet<(Duration, Id)>,
    /// Leases by worker.
    held: BTreeMap<String, BTreeSet<Id>>,
    /// The numbers of leased bouts and of started leases by run.
    counts: BTreeMap<String, Counts>,
    /// The time of each worker's last progress, which keeps its waiting bouts leased.
    last_progress: BTreeMap<String, Duration>,
    /// The seconds that slots played each run, less those of the run with the fewest, forgotten with time.
    usage: BTreeMap<String, f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    bouts: u64,
    leases: u64,
    started: u64,
}

/// Returns the smallest and the largest id of the leases of a bout.
fn ids(key: &BoutKey) -> RangeInclusive<Id> {
    let id = |number| (key.clone(), Token { epoch: number, sequence: number });
    id(0)..=id(u64::MAX)
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
            started: BTreeSet::new(),
            held: BTreeMap::new(),
            counts: BTreeMap::new(),
            last_progress: BTreeMap::new(),
            usage: BTreeMap::new(),
        }
    }

    /// Leases a bout, beside an earlier lease of it.
    pub fn grant(&mut self, key: BoutKey, holder: Holder<'_>, now: Duration) -> Token {
        self.granted += 1;
        let counter = self.granted & ((1 << COUNTER_BITS) - 1);
        let token = Token { epoch: self.epoch, sequence: self.sequence(self.epoch, counter, &key, holder) };
        self.put((key, token), holder.worker, now);
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
        let expires = now + self.length;
        if let Some(lease) = self.leases.get_mut(&(key.clone(), token)) {
            if lease.worker != holder.worker {
                return false;
            }
            // Its progress is reported anew, perhaps by another process. It does not begin anew.
            lease.progress = Progress::default();
            self.extend((key, token), expires);
            return true;
        }
        if self.is_leased(&key) || !self.has_issued(token, &key, holder) {
            return false;
        }
        self.put((key, token), holder.worker, now);
        true
    }

    /// Extends all leases by the time during which no report could be read.
    pub fn postpone(&mut self, by: Duration) {
        self.last_progress.values_mut().for_each(|time| *time += by);
        for lease in self.leases.values_mut() {
            lease.expires += by;
            lease.started = lease.started.map(|started| started + by);
        }
        let later = |times: &mut BTreeSet<(Duration, Id)>| {
            *times = std::mem::take(times).into_iter().map(|(time, id)| (time + by, id)).collect();
        };
        later(&mut self.ends);
        later(&mut self.started);
    }

    fn put(&mut self, id: Id, worker: &str, now: Duration) {
        let expires = now + self.length;
        let (worker, token) = (worker.to_string(), id.1);
        let is_leased = self.is_leased(&id.0);
        let counts = self.counts.entry(id.0.run.clone()).or_default();
        counts.leases += 1;
        counts.bouts += u64::from(!is_leased);
        self.ends.insert((expires, id.clone()));
        self.held.entry(worker.clone()).or_default().insert(id.clone());
        self.leases
            .insert(id, Lease { worker, token, expires, started: None, progress: Progress::default() });
    }

    /// Moves the end of a lease to a later time.
    fn extend(&mut self, id: Id, until: Duration) {
        let Some(lease) = self.leases.get_mut(&id).filter(|lease| lease.expires < until) else { return };
        let end = std::mem::replace(&mut lease.expires, until);
        self.ends.remove(&(end, id.clone()));
        self.ends.insert((until, id));
    }

    /// Records a worker's report. Progress extends the lease; a bout waiting for a slot is extended by any progress of
    /// its worker.
    pub fn record_progress(&mut self, key: &BoutKey, token: Token, progress: Progress, now: Duration) {
        let id = (key.clone(), token);
        let Some(lease) = self.leases.get_mut(&id) else { return };
        let until = if progress > lease.progress {
            lease.progress = progress;
            if progress.started && lease.started.is_none() {
                lease.started = Some(now);
                self.started.insert((now, id.clone()));
                if let Some(counts) = self.counts.get_mut(&key.run) {
                    counts.started += 1;
                }
            }
            self.last_progress.insert(lease.worker.clone(), now);
            now + self.length
        } else if !lease.progress.started {
            self.last_progress
                .get(&lease.worker)
                .map_or(lease.expires, |last_progress| *last_progress + self.length)
        } else {
            return;
        };
        self.extend(id, until);
    }

    /// Returns a lease of a bout.
    pub fn lease(&self, key: &BoutKey, token: Token) -> Option<&Lease> {
        self.leases.get(&(key.clone(), token))
    }

    /// Returns the leases of a bout.
    pub fn of_bout(&self, key: &BoutKey) -> impl Iterator<Item = &Lease> {
        self.leases.range(ids(key)).map(|(_, lease)| lease)
    }

    /// Returns whether a bout is leased.
    pub fn is_leased(&self, key: &BoutKey) -> bool {
        self.of_bout(key).next().is_some()
    }

    /// Ends a lease.
    pub fn release(&mut self, key: &BoutKey, token: Token) -> Option<Lease> {
        let id = (key.clone(), token);
        let lease = self.leases.remove(&id)?;
        let is_leased = self.is_leased(key);
        if let Some(counts) = self.counts.get_mut(&key.run) {
            counts.leases -= 1;
            counts.bouts -= u64::from(!is_leased);
            counts.started -= u64::from(lease.started.is_some());
            if counts.leases == 0 {
                self.counts.remove(&key.run);
            }
        }
        self.ends.remove(&(lease.expires, id.clone()));
        if let Some(started) = lease.started {
            self.started.remove(&(started, id.clone()));
        }
        if let Some(held) = self.held.get_mut(&lease.worker) {
            held.remove(&id);
            if held.is_empty() {
                self.held.remove(&lease.worker);
                self.last_progress.remove(&lease.worker);
            }
        }
        Some(lease)
    }

    /// Ends and returns all leases of a bout.
    pub fn release_all(&mut self, key: &BoutKey) -> Vec<Lease> {
        let tokens: Vec<Token> = self.of_bout(key).map(|lease| lease.token).collect();
        tokens.into_iter().filter_map(|token| self.release(key, token)).collect()
    }

    /// Ends and returns the leases without progress in time.
    pub fn expire(&mut self, now: Duration) -> Vec<(BoutKey, Lease)> {
        let mut ended = Vec::new();
        while let Some((end, (key, token))) = self.ends.first().cloned()
            && end <= now
        {
            let lease = self.release(&key, token).expect("every expiry has a lease");
            ended.push((key, lease));
        }
        ended
    }

    /// Ends and returns the leases that were started at this time or earlier.
    pub fn end_started(&mut self, until: Duration) -> Vec<(BoutKey, Lease)> {
        let ids: Vec<Id> = self.started_until(until).cloned().collect();
        ids.into_iter().filter_map(|(key, token)| Some((key.clone(), self.release(&key, token)?))).collect()
    }

    /// Returns the leases that were started at this time or earlier, the oldest first.
    pub fn started_until(&self, until: Duration) -> impl Iterator<Item = &(BoutKey, Token)> {
        self.started.iter().take_while(move |(started, _)| *started <= until).map(|(_, id)| id)
    }

    /// Counts the slot-time of the started leases since the last call. `runs` are those that take turns.
    pub fn count_usage<'a>(&mut self, elapsed: Duration, runs: impl Iterator<Item = &'a str>) {
        let kept = (-elapsed.as_secs_f64() / USAGE_MEMORY.as_secs_f64()).exp();
        let least = |usage: &BTreeMap<String, f64>| usage.values().copied().reduce(f64::min).unwrap_or(0.0);
        // A new run begins level with the one that used least.
        let new = least(&self.usage);
        let usage: BTreeMap<String, f64> = runs
            .map(|run| {
                let started = self.counts.get(run).map_or(0, |counts| counts.started);
                let used = self.usage.get(run).copied().unwrap_or(new);
                (run.to_string(), used * kept + started as f64 * elapsed.as_secs_f64())
            })
            .collect();
        let least = least(&usage);
        self.usage = usage.into_iter().map(|(run, used)| (run, used - least)).collect();
    }

    /// Returns the number by which runs take turns, the smallest first: by the time of slots that each had, and by its
    /// leases. So neither long bouts nor many short ones take the slots of another run.
    pub fn turn(&self, run: &str) -> u64 {
        let used = self.usage.get(run).map_or(0.0, |seconds| seconds / USAGE_PER_LEASE.as_secs_f64());
        self.counts.get(run).map_or(0, |counts| counts.leases) + used as u64
    }

    /// Returns the leases of a worker.
    pub fn of_worker(&self, worker: &str) -> impl Iterator<Item = (&BoutKey, &Lease)> {
        let lease = |id: &Id| self.leases.get_key_value(id).map(|((key, _), lease)| (key, lease));
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

    /// Returns how many bouts of a run are leased.
    pub fn count_of_run(&self, run: &str) -> u64 {
        self.counts.get(run).map_or(0, |counts| counts.bouts)
    }

    /// Returns the leases of a run.
    pub fn of_run<'a>(&'a self, run: &'a str) -> impl Iterator<Item = (&'a BoutKey, &'a Lease)> {
        let first = ids(&BoutKey { run: run.to_string(), bout: 0 }).into_inner().0;
        let leases = self.leases.range(first..).map(|((key, _), lease)| (key, lease));
        leases.take_while(move |(key, _)| key.run == run)
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
        assert!(!book.is_leased(&key(0)));
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
        assert_eq!(book.of_bout(&key(0)).map(|lease| lease.token).collect::<Vec<_>>(), [old]);
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
    fn bout_has_two_leases_that_end_separately() {
        let mut book = book(1);
        let first = book.grant(key(0), holder("w"), at(0));
        let spare = book.grant(key(0), holder("other"), at(10));
        assert_eq!((book.count(), book.count_of_run("r")), (2, 1));
        assert_eq!(book.expire(at(30)).pop().map(|(_, lease)| lease.token), Some(first));
        assert_eq!((book.count_of_worker("w"), book.count_of_run("r")), (0, 1));
        let again = book.grant(key(0), holder("w"), at(31));
        let ended = book.release_all(&key(0));
        assert_eq!(ended.len(), 2);
        assert!(ended.iter().all(|lease| [again, spare].contains(&lease.token)));
        assert_eq!((book.count(), book.count_of_run("r")), (0, 0));
    }

    #[test]
    fn started_bouts_end_by_the_time_since_their_start() {
        let mut book = book(1);
        let tokens = [0, 1].map(|bout| book.grant(key(bout), holder("w"), at(0)));
        let play = |book: &mut LeaseBook, bout: u64, pulse, now| {
            let progress = Progress { started: true, pulse, ..Progress::default() };
            book.record_progress(&key(bout), tokens[bout as usize], progress, now);
        };
        play(&mut book, 0, 1, at(10));
        play(&mut book, 1, 1, at(20));
        play(&mut book, 0, 2, at(25));
        assert!(book.adopt(key(0), holder("w"), tokens[0], at(26)), "adopting it does not begin it anew");
        assert!(book.end_started(at(9)).is_empty());
        let ended = book.end_started(at(10));
        assert_eq!(ended.iter().map(|(key, _)| key.bout).collect::<Vec<_>>(), [0]);
        book.postpone(at(100));
        assert!(book.end_started(at(119)).is_empty());
        assert_eq!((book.end_started(at(120)).len(), book.count()), (1, 0));
    }

    /// Endless bouts beside short ones on ten slots: the run with the short ones gets the next turns until its slots had
    /// the same time.
    #[test]
    fn runs_share_the_time_of_the_slots() {
        let mut book = book(1);
        let run = |run: &str, bout| BoutKey { run: run.to_string(), bout };
        let started = Progress { started: true, ..Progress::default() };
        for bout in 0..10 {
            let token = book.grant(run("endless", bout), holder("w"), at(0));
            book.record_progress(&run("endless", bout), token, started, at(0));
        }
        assert_eq!((book.turn("endless"), book.turn("short")), (10, 0));
        book.count_usage(at(600), ["endless", "short"].into_iter());
        (0..10).for_each(|bout| drop(book.release_all(&run("endless", bout))));
        assert_eq!((book.turn("endless"), book.turn("short")), (100, 0));
        for bout in 0..10 {
            let token = book.grant(run("short", bout), holder("w"), at(600));
            book.record_progress(&run("short", bout), token, started, at(600));
        }
        assert!(book.turn("short") < book.turn("endless"));
        book.count_usage(at(600), ["endless", "short"].into_iter());
        assert!(book.turn("short") > book.turn("endless"), "{} {}", book.turn("short"), book.turn("endless"));
        assert_eq!(book.turn("new"), book.turn("endless"), "a new run begins level with the least");
        book.count_usage(at(1), ["short"].into_iter());
        assert_eq!(book.usage.len(), 1, "ended runs are forgotten");
    }

    #[test]
    fn forgets_workers_without_leases() {
        let mut book = book(1);
        for worker in ["a", "b"] {
            let token = book.grant(key(0), holder(worker), at(0));
            book.record_progress(&key(0), token, Progress { started: true, ..Progress::default() }, at(1));
        }
        book.release_all(&key(0));
        assert!(book.last_progress.is_empty() && book.held.is_empty() && book.started.is_empty());
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
                        assert_eq!(book.release_all(&key(bout)).len(), usize::from(known.is_some()));
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
                    let lease = book.lease(&key(entry.0), entry.2).unwrap();
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
