//! The ledger of a run: which bouts are done and which to play next. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// The number of times that a bout must fail before it is abandoned, and of witnesses that are enough.
pub const FAILURES: u32 = 3;
/// The number of leases of a started bout that expire before it is abandoned: its search may end the process of the worker.
pub const LOSSES: u32 = 10;

/// A machine with a credential. Whatever names its workers use, it is one witness of a failure.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Witness {
    credential: String,
    machine: Option<IpAddr>,
}

impl Witness {
    /// Creates a witness. The addresses of an IPv6 network of 64 bits are one machine, as each host may use all of them.
    pub fn new(credential: &str, address: Option<IpAddr>) -> Witness {
        let machine = address.map(|address| match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            address => address,
        });
        Witness { credential: credential.to_string(), machine }
    }
}

/// How often a witness did not play a bout that it was granted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Tries {
    failures: u32,
    /// Leases that expired.
    expired: u32,
    /// Leases that expired after the bout was started.
    losses: u32,
}

impl Tries {
    /// Returns whether the witness tried to play the bout.
    fn has_tried(self) -> bool {
        self.failures + self.losses > 0
    }
}

/// Why a bout was not played.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Attempts {
    witnesses: BTreeMap<Witness, Tries>,
    /// The workers that failed it.
    failed: BTreeSet<String>,
    /// Workers whose lease expired.
    lost: BTreeSet<String>,
    /// The reason of the last failure.
    reason: String,
}

impl Attempts {
    /// Returns why nobody can play the bout, if the candidates have tried it often enough. No credential ends a bout that
    /// another may play: as long as a candidate with a credential that has not tried it is there, the bout waits for that.
    pub fn verdict<'a>(&self, candidates: impl Iterator<Item = &'a Witness> + Clone) -> Option<String> {
        let sum = |count: fn(&Tries) -> u32| self.witnesses.values().map(count).sum::<u32>();
        let (failures, losses) = (sum(|tries| tries.failures), sum(|tries| tries.losses));
        let tried =
            || self.witnesses.iter().filter(|(_, tries)| tries.has_tried()).map(|(witness, _)| witness);
        let mut credentials = candidates.clone().peekable();
        if credentials.peek().is_none()
            || credentials.any(|candidate| tried().all(|witness| witness.credential != candidate.credential))
        {
            return None;
        }
        let are_enough = tried().count() >= FAILURES as usize;
        let mut machines = candidates;
        if !are_enough && machines.any(|candidate| tried().all(|witness| witness != candidate)) {
            return None;
        }
        if failures >= FAILURES {
            return Some(self.reason.clone());
        }
        (losses >= LOSSES).then(|| format!("{losses} leases expired after a worker had begun to play it"))
    }

    fn tries(&self, witness: &Witness) -> Tries {
        self.witnesses.get(witness).copied().unwrap_or_default()
    }

    /// Returns the order in which workers get the bout: those with fewer attempts first.
    fn rank(&self, witness: &Witness, worker: &str) -> (u32, bool) {
        let Tries { failures, expired, .. } = self.tries(witness);
        (failures + expired, self.failed.contains(worker) || self.lost.contains(worker))
    }
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

    /// Sets the number of bouts, of which none beyond the end was granted.
    pub(super) fn end_at(&mut self, total: u64) {
        self.total = total;
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
    pub fn fail(&mut self, bout: u64, worker: &str, witness: &Witness, reason: &str) {
        if !self.is_done(bout) {
            let attempts = self.attempts.entry(bout).or_default();
            attempts.failed.insert(worker.to_string());
            attempts.witnesses.entry(witness.clone()).or_default().failures += 1;
            attempts.reason = reason.to_string();
        }
    }

    /// Records that a worker's lease expired. `started` is whether the worker had begun to play the bout.
    pub fn lose(&mut self, bout: u64, worker: &str, witness: &Witness, started: bool) {
        if !self.is_done(bout) {
            let attempts = self.attempts.entry(bout).or_default();
            attempts.lost.insert(worker.to_string());
            let tries = attempts.witnesses.entry(witness.clone()).or_default();
            tries.expired += 1;
            tries.losses += u32::from(started);
        }
    }

    /// Returns whether another worker should get the bout: one that is present has fewer attempts, or this witness has tried
    /// it often enough.
    pub fn is_for_others<'a>(
        &self,
        bout: u64,
        (witness, worker): (&Witness, &str),
        mut present: impl Iterator<Item = (&'a Witness, &'a str)>,
    ) -> bool {
        let Some(attempts) = self.attempts.get(&bout) else { return false };
        let (own, rank) = (attempts.tries(witness), attempts.rank(witness, worker));
        own.failures >= FAILURES
            || own.losses >= LOSSES
            || present.any(|(witness, worker)| attempts.rank(witness, worker) < rank)
    }

    /// Returns whether a witness failed or lost a bout.
    pub fn has_tried(&self, bout: u64, witness: &Witness) -> bool {
        self.attempts.get(&bout).is_some_and(|attempts| attempts.tries(witness).has_tried())
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

    fn witness(credential: &str, machine: u8) -> Witness {
        Witness::new(credential, Some(IpAddr::from([10, 0, 0, machine])))
    }

    #[test]
    fn regrants_a_lost_bout_to_its_loser_only_as_a_last_resort() {
        let machine = witness("", 1);
        let mut ledger = Ledger::new(3, 0, []);
        assert_eq!(ledger.take_next(), Some(0));
        let lose = |ledger: &mut Ledger, worker: &str| {
            ledger.lose(0, worker, &machine, true);
            ledger.give_back(0);
        };
        lose(&mut ledger, "hung");
        let present = || ["hung", "quick"].into_iter().map(|name| (&machine, name));
        let for_others =
            |ledger: &Ledger, worker: &str| ledger.is_for_others(0, (&machine, worker), present());
        assert!(for_others(&ledger, "hung") && !for_others(&ledger, "quick"));
        assert!(!ledger.is_for_others(0, (&machine, "hung"), present().take(1)), "no other candidate");
        lose(&mut ledger, "quick");
        assert!(!for_others(&ledger, "hung") && !for_others(&ledger, "quick"), "all candidates lost it");
        assert_eq!(ledger.take_next(), Some(0));
        ledger.finish(0);
        lose(&mut ledger, "hung");
        assert!(!for_others(&ledger, "hung") && ledger.take_next() == Some(1), "a done bout is not lost");
    }

    /// Lets witnesses fail or lose bout 0 as often as given, and returns whether the candidates leave it unplayable.
    fn is_given_up(tries: &[(&Witness, u32, u32)], candidates: &[&Witness]) -> bool {
        let mut ledger = Ledger::new(1, 0, []);
        for (number, (witness, failures, losses)) in tries.iter().enumerate() {
            let names = |count| (0..count).map(move |name| format!("{number}-{name}"));
            names(*failures).for_each(|name| ledger.fail(0, &name, witness, "no reason"));
            names(*losses).for_each(|name| ledger.lose(0, &name, witness, true));
        }
        let (_, attempts) = ledger.attempts().next().unwrap();
        attempts.verdict(candidates.iter().copied()).is_some()
    }

    #[test]
    fn lone_machine_gives_a_bout_up_after_three_failures_or_ten_losses() {
        let only = witness("t", 1);
        for (failures, losses, expected) in [(1, 0, false), (2, 9, false), (3, 0, true), (0, 10, true)] {
            assert_eq!(is_given_up(&[(&only, failures, losses)], &[&only]), expected, "{failures} {losses}");
        }
        assert!(!is_given_up(&[(&only, 3, 0)], &[]), "others may come");
    }

    #[test]
    fn no_credential_gives_a_bout_up_that_another_may_play() {
        let (liar, honest) = ([1, 2, 3].map(|machine| witness("liar", machine)), witness("honest", 4));
        let failed = liar.each_ref().map(|witness| (witness, 3, 0));
        let lost = liar.each_ref().map(|witness| (witness, 0, 10));
        for tries in [failed, lost] {
            assert!(!is_given_up(&tries, &[&liar[0], &honest]));
            assert!(is_given_up(&tries, &[&liar[0]]));
            let tried_by_both = [tries[0], (&honest, 1, 0)];
            assert!(is_given_up(&tried_by_both, &[&liar[0], &honest]));
        }
    }

    #[test]
    fn fleet_of_one_credential_gives_a_bout_up_after_three_machines() {
        let fleet = [1, 2, 3, 4].map(|machine| witness("t", machine));
        let failed = |count: usize| fleet[..count].iter().map(|witness| (witness, 1, 0)).collect::<Vec<_>>();
        let candidates: Vec<&Witness> = fleet.iter().collect();
        assert!(!is_given_up(&failed(2), &candidates));
        assert!(!is_given_up(&[(&fleet[0], 5, 0)], &candidates), "one machine is one witness");
        assert!(is_given_up(&failed(3), &candidates));
    }

    #[test]
    fn witness_gets_a_bout_only_as_often_as_it_may_fail() {
        let only = witness("t", 1);
        let mut ledger = Ledger::new(1, 0, []);
        for attempt in 1..=FAILURES {
            assert!(!ledger.is_for_others(0, (&only, "w"), [(&only, "w")].into_iter()), "{attempt}");
            ledger.fail(0, "w", &only, "no reason");
        }
        assert!(ledger.is_for_others(0, (&only, "w"), [(&only, "w")].into_iter()));
    }

    #[test]
    fn addresses_of_a_host_are_one_machine() {
        let at = |text: &str| Witness::new("t", Some(text.parse().unwrap()));
        assert_eq!(at("2001:db8::1"), at("2001:db8::2:3"));
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
        assert_ne!(at("10.0.0.1"), Witness::new("other", Some("10.0.0.1".parse().unwrap())));
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
