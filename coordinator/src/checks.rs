//! Bouts that are played a second time by somebody else, to see whether the first told the truth. A pure state machine.
//!
//! Only where the same bout must have the same content, by limits of nodes or depth, can anybody be convicted. Two workers
//! who differ are not enough: a third decides, and whoever stands alone against two has lied or is broken. What follows
//! from a conviction is not decided here. What was said is kept in the state, so that a restart forgets no case.

use std::collections::BTreeMap;

use agon_games::random::mix;

use crate::leases::BoutKey;

/// So many bouts of a worker that nobody knows yet are checked, one and all.
pub const PROBATION: u64 = 10;
/// Later, one in so many.
pub const SAMPLE: u64 = 100;
/// More that wait for one worker are too many: its oldest is let go.
const MOST_WAITING: usize = 1000;

/// A content digest.
pub type Digest = [u8; 32];

/// What a second playing of a bout shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// Nobody asked for it, or not from this worker.
    Unasked,
    /// It is the same: the first worker told the truth.
    Agrees {
        /// Who played it first.
        first: String,
    },
    /// It differs, and a third worker has to say who is right.
    Disputed {
        /// Who played it first.
        first: String,
    },
    /// Two agree against one.
    Convicted {
        /// Who stands alone.
        liar: String,
        /// Whether its content is the one that was counted.
        counted: bool,
    },
    /// All three differ: nobody can be believed, and perhaps the bout cannot be repeated.
    Hopeless,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Case {
    /// Its number: those that came first are played first.
    number: u64,
    /// Who said what; the first is the one that counts.
    said: Vec<(String, Digest)>,
}

/// All bouts that wait for a second or third opinion.
#[derive(Default, Debug)]
pub struct Checks {
    cases: BTreeMap<BoutKey, Case>,
    next: u64,
    /// Those that are not lent out, by who brought them, so that nobody looks through its own.
    waiting: BTreeMap<String, BTreeMap<u64, BoutKey>>,
    /// How many bouts of each worker were ever to be checked, and how many of them others found to be the same.
    opened: BTreeMap<String, u64>,
    confirmed: BTreeMap<String, u64>,
}

impl Checks {
    /// Whether a bout that was counted should be played again: all of a worker on probation, later one in a hundred, by a
    /// number that the worker cannot know before.
    pub fn wants(&self, worker: &str, key: &BoutKey, digest: &Digest, secret: u64) -> bool {
        let drawn = u64::from_le_bytes(digest[..8].try_into().expect("eight bytes")) ^ secret;
        self.opened.get(worker).copied().unwrap_or(0) < PROBATION
            || mix(drawn, key.bout).is_multiple_of(SAMPLE)
    }

    /// Puts a worker on probation again.
    pub fn suspect(&mut self, worker: &str) {
        self.opened.remove(worker);
    }

    /// Notes a bout that waits for a second opinion. Returns one that is let go for it.
    pub fn add(&mut self, key: BoutKey, worker: &str, digest: Digest) -> Option<BoutKey> {
        if self.cases.contains_key(&key) {
            return None;
        }
        let own = self.waiting.entry(worker.to_string()).or_default();
        let oldest = if own.len() >= MOST_WAITING { own.pop_first() } else { None };
        let let_go = oldest.map(|(_, oldest)| oldest);
        if let Some(oldest) = &let_go {
            self.cases.remove(oldest);
        }
        own.insert(self.next, key.clone());
        *self.opened.entry(worker.to_string()).or_default() += 1;
        self.cases.insert(key, Case { number: self.next, said: vec![(worker.to_string(), digest)] });
        self.next += 1;
        let_go
    }

    /// Takes up what was said before a restart, in its order.
    pub fn restore(&mut self, key: BoutKey, worker: &str, digest: Digest) {
        match self.cases.get_mut(&key) {
            Some(case) => case.said.push((worker.to_string(), digest)),
            None => {
                self.add(key, worker, digest);
            }
        }
    }

    /// Lets a bout go: it does not count any more.
    pub fn forget(&mut self, key: &BoutKey) {
        self.close(key);
    }

    /// A bout for this worker to play again: none that it has played, none that is lent, and only one that `suits` it by
    /// what was said of it.
    pub fn take(
        &mut self,
        worker: &str,
        suits: impl Fn(&BoutKey, &[(String, Digest)]) -> bool,
    ) -> Option<BoutKey> {
        let suits = |key: &&BoutKey| {
            let unheard = |case: &Case| case.said.iter().all(|(name, _)| name != worker);
            self.cases.get(*key).is_some_and(|case| unheard(case) && suits(key, &case.said))
        };
        let others = self.waiting.iter().filter(|(first, _)| *first != worker);
        let key = others.flat_map(|(_, keys)| keys.values()).find(suits)?.clone();
        self.claim(&key);
        Some(key)
    }

    /// Whether a bout waits for an opinion.
    pub fn has(&self, key: &BoutKey) -> bool {
        self.cases.contains_key(key)
    }

    /// A bout that was lent comes back unplayed.
    pub fn give_back(&mut self, key: &BoutKey) {
        if let Some(case) = self.cases.get(key) {
            let own = self.waiting.entry(case.said[0].0.clone()).or_default();
            own.insert(case.number, key.clone());
        }
    }

    /// Notes that somebody still holds a bout that waits for an opinion.
    pub fn claim(&mut self, key: &BoutKey) {
        if let Some(case) = self.cases.get(key)
            && let Some(own) = self.waiting.get_mut(&case.said[0].0)
        {
            own.remove(&case.number);
            if own.is_empty() {
                self.waiting.remove(&case.said[0].0);
            }
        }
    }

    /// A worker says what it found.
    pub fn answer(&mut self, key: &BoutKey, worker: &str, digest: Digest) -> Finding {
        let Some(case) = self.cases.get_mut(key) else { return Finding::Unasked };
        if case.said.iter().any(|(name, _)| name == worker) {
            return Finding::Unasked;
        }
        case.said.push((worker.to_string(), digest));
        let said = case.said.clone();
        let first = said[0].0.clone();
        if said.len() == 2 {
            if said[0].1 != said[1].1 {
                self.give_back(key);
                return Finding::Disputed { first };
            }
            *self.confirmed.entry(first.clone()).or_default() += 1;
            self.close(key);
            return Finding::Agrees { first };
        }
        self.close(key);
        let alone = |index: usize| (0..3).all(|other| other == index || said[other].1 != said[index].1);
        match (0..3).filter(|&index| alone(index)).collect::<Vec<_>>()[..] {
            [liar] => Finding::Convicted { liar: said[liar].0.clone(), counted: liar == 0 },
            _ => Finding::Hopeless,
        }
    }

    fn close(&mut self, key: &BoutKey) {
        self.claim(key);
        self.cases.remove(key);
    }

    /// How many bouts of a worker others have found to be the same.
    pub fn confirmed(&self, worker: &str) -> u64 {
        self.confirmed.get(worker).copied().unwrap_or(0)
    }

    /// How many bouts wait for an opinion.
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

    fn take(checks: &mut Checks, worker: &str) -> Option<BoutKey> {
        checks.take(worker, |_, _| true)
    }

    #[test]
    fn two_against_one() {
        let mut checks = Checks::default();
        checks.add(key(1), "a", [1; 32]);
        assert_eq!(take(&mut checks, "a"), None, "nobody checks itself");
        assert_eq!(take(&mut checks, "b"), Some(key(1)));
        assert_eq!(take(&mut checks, "c"), None, "it is lent");
        assert_eq!(checks.answer(&key(1), "a", [1; 32]), Finding::Unasked);
        assert_eq!(checks.answer(&key(1), "b", [2; 32]), Finding::Disputed { first: "a".to_string() });
        assert_eq!(take(&mut checks, "b"), None, "it has said its word");
        assert_eq!(take(&mut checks, "c"), Some(key(1)));
        let liar = Finding::Convicted { liar: "a".to_string(), counted: true };
        assert_eq!(checks.answer(&key(1), "c", [2; 32]), liar);
        assert_eq!((checks.waiting(), checks.has(&key(1))), (0, false));
        checks.add(key(2), "a", [1; 32]);
        checks.answer(&key(2), "b", [2; 32]);
        let liar = Finding::Convicted { liar: "b".to_string(), counted: false };
        assert_eq!(checks.answer(&key(2), "c", [1; 32]), liar);
        checks.add(key(3), "a", [1; 32]);
        checks.answer(&key(3), "b", [2; 32]);
        assert_eq!(checks.answer(&key(3), "c", [3; 32]), Finding::Hopeless);
    }

    /// What was said before a restart is as good as what is said after it.
    #[test]
    fn a_case_goes_on_after_a_restart() {
        let mut checks = Checks::default();
        checks.restore(key(1), "a", [1; 32]);
        checks.restore(key(2), "a", [1; 32]);
        checks.restore(key(1), "b", [2; 32]);
        assert_eq!(checks.take("c", |key, _| key.run != "r"), None, "nothing is lent of a run that waits");
        assert_eq!(take(&mut checks, "b"), Some(key(2)), "of the first it has said its word");
        assert_eq!(take(&mut checks, "c"), Some(key(1)));
        let liar = Finding::Convicted { liar: "b".to_string(), counted: false };
        assert_eq!(checks.answer(&key(1), "c", [1; 32]), liar);
        checks.forget(&key(2));
        assert_eq!((checks.waiting(), checks.answer(&key(2), "b", [1; 32])), (0, Finding::Unasked));
    }

    #[test]
    fn a_new_worker_is_on_probation() {
        let mut checks = Checks::default();
        for bout in 0..PROBATION {
            assert!(checks.wants("a", &key(bout), &[7; 32], 1));
            checks.add(key(bout), "a", [7; 32]);
            assert_eq!(checks.answer(&key(bout), "b", [7; 32]), Finding::Agrees { first: "a".to_string() });
        }
        checks.suspect("a");
        assert!(checks.wants("a", &key(99), &[7; 32], 1), "a suspect is checked again");
        for bout in 100..100 + PROBATION {
            checks.add(key(bout), "a", [7; 32]);
        }
        let sampled = (0..10_000).filter(|&bout| checks.wants("a", &key(bout), &[7; 32], 1)).count();
        assert!((60..150).contains(&sampled), "{sampled} of 10,000 are checked");
    }

    /// Among honest workers nobody is ever convicted; one liar among them always is in the end, and nobody else.
    #[test]
    fn only_liars_are_convicted() {
        for seed in 0..200 {
            let mut random = seeded(seed);
            let mut checks = Checks::default();
            let names = ["a", "b", "c", "d"];
            let liar = below(&mut random, 5);
            let mut convicted = BTreeSet::new();
            for bout in 0..200 {
                let first = below(&mut random, 4);
                let said = |worker: usize, random: &mut _| {
                    if worker == liar && below(random, 2) == 0 { [worker as u8 + 1; 32] } else { [0; 32] }
                };
                checks.add(key(bout), names[first], said(first, &mut random));
                for _ in 0..6 {
                    let worker = below(&mut random, 4);
                    if let Some(key) = take(&mut checks, names[worker]) {
                        if below(&mut random, 5) == 0 {
                            checks.give_back(&key);
                        } else if let Finding::Convicted { liar, .. } =
                            checks.answer(&key, names[worker], said(worker, &mut random))
                        {
                            convicted.insert(liar);
                        }
                    }
                }
            }
            let expected: Vec<&str> = names.get(liar).into_iter().copied().collect();
            assert_eq!(convicted.iter().map(String::as_str).collect::<Vec<_>>(), expected, "seed {seed}");
        }
    }
}
