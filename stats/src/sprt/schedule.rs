//! The test over a schedule: the decision does not depend on the order in which results arrive.
//!
//! The test examines complete prefixes of the schedule, bout by bout, and ends at the first that decides. Later bouts
//! never count, however early they arrived. Only bouts that wait for an earlier one are stored.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{Bounds, Verdict};
use crate::pairs::{PairScore, Pairs};

/// The result of a scheduled bout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoutResult {
    /// The bout was played.
    Pair(PairScore),
    /// The bout failed or was voided: it is no evidence, and the schedule continues.
    Void,
}

/// The decision of a test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// [`Verdict::H0`] or [`Verdict::H1`].
    pub verdict: Verdict,
    /// The deciding log-likelihood ratio.
    pub llr: f64,
    /// The index of the deciding bout, the last of the prefix.
    pub index: u64,
}

/// A rejected result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The bout has a result already.
    #[error("bout {0} already has a result; a bout counts once")]
    Twice(u64),
}

/// A sequential test in progress.
#[derive(Clone, Debug)]
pub struct SequentialTest {
    bounds: Bounds,
    pairs: Pairs,
    llr: f64,
    next: u64,
    waiting: BTreeMap<u64, BoutResult>,
    decision: Option<Decision>,
}

impl SequentialTest {
    /// Creates a test of a schedule that begins with bout 0.
    pub fn new(bounds: Bounds) -> Self {
        SequentialTest::resume(bounds, Pairs::default(), 0)
    }

    /// Creates a test that has examined the first `next` bouts, with these pairs, and has not decided before the
    /// last.
    pub fn resume(bounds: Bounds, pairs: Pairs, next: u64) -> Self {
        let llr = bounds.llr(pairs);
        let verdict = bounds.verdict(llr);
        let decision =
            (verdict != Verdict::Continue && next > 0).then(|| Decision { verdict, llr, index: next - 1 });
        SequentialTest { bounds, pairs, llr, next, waiting: BTreeMap::new(), decision }
    }

    /// Records the result of bout `index` and returns the decision if the test has ended. After the decision results
    /// are ignored, and duplicates beyond the deciding prefix are not detected.
    pub fn record(&mut self, index: u64, result: BoutResult) -> Result<Option<Decision>, ScheduleError> {
        if index < self.next || self.waiting.contains_key(&index) {
            return Err(ScheduleError::Twice(index));
        }
        if self.decision.is_none() {
            self.waiting.insert(index, result);
            self.advance();
        }
        Ok(self.decision)
    }

    fn advance(&mut self) {
        while let Some(result) = self.waiting.remove(&self.next) {
            let index = self.next;
            self.next += 1;
            let BoutResult::Pair(score) = result else { continue };
            self.pairs.add(score);
            self.llr = self.bounds.llr(self.pairs);
            let verdict = self.bounds.verdict(self.llr);
            if verdict != Verdict::Continue {
                self.decision = Some(Decision { verdict, llr: self.llr, index });
                self.waiting.clear();
                return;
            }
        }
    }

    /// Returns the hypotheses.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Returns the counts over the complete prefix, up to the deciding bout.
    pub fn pairs(&self) -> Pairs {
        self.pairs
    }

    /// Returns the log-likelihood ratio over that prefix.
    pub fn llr(&self) -> f64 {
        self.llr
    }

    /// Returns the length of that prefix, void bouts included.
    pub fn prefix(&self) -> u64 {
        self.next
    }

    /// Returns the number of results that wait for an earlier bout.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the decision, if there is one.
    pub fn decision(&self) -> Option<Decision> {
        self.decision
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;
    use rand::seq::SliceRandom as _;

    use super::*;
    use crate::distribution::seeded;
    use crate::sprt::Model;

    fn bounds(model: Model) -> Bounds {
        Bounds::new(0.0, 40.0, model, 0.05, 0.05).unwrap()
    }

    /// Draws a schedule of results that favours one side, with some void bouts.
    fn schedule(seed: u64, bouts: u64) -> Vec<(u64, BoutResult)> {
        let mut random = seeded(seed, 0);
        let lean = random.random_range(0.45..0.60);
        (0..bouts)
            .map(|index| {
                let points = (0..4).filter(|_| random.random_bool(lean)).count() as u8;
                let pair = PairScore::from_half_points(points).unwrap();
                (index, if random.random_bool(0.05) { BoutResult::Void } else { BoutResult::Pair(pair) })
            })
            .collect()
    }

    /// Returns the decision of the first deciding prefix, counted from scratch.
    fn slow_decision(bounds: &Bounds, schedule: &[(u64, BoutResult)]) -> Option<Decision> {
        (1..=schedule.len()).find_map(|length| {
            let mut pairs = Pairs::default();
            for (_, result) in &schedule[..length] {
                if let BoutResult::Pair(pair) = result {
                    pairs.add(*pair);
                }
            }
            let llr = bounds.llr(pairs);
            let verdict = bounds.verdict(llr);
            (verdict != Verdict::Continue).then_some(Decision { verdict, llr, index: length as u64 - 1 })
        })
    }

    /// Any order of arrival gives the same decision at the same bout.
    #[test]
    fn arrival_order_does_not_matter() {
        let mut verdicts = [0; 3];
        for seed in 0..60 {
            let bounds = bounds(if seed % 2 == 0 { Model::Logistic } else { Model::Normalised });
            let mut results = schedule(seed, 150);
            let expected = slow_decision(&bounds, &results);
            verdicts[expected.map_or(2, |decision| decision.verdict as usize)] += 1;
            let mut random = seeded(seed, 1);
            for _ in 0..5 {
                results.shuffle(&mut random);
                let mut fold = SequentialTest::new(bounds);
                for &(index, result) in &results {
                    fold.record(index, result).unwrap();
                }
                assert_eq!(fold.decision(), expected, "schedule {seed}");
                assert_eq!(fold.prefix(), expected.map_or(150, |decision| decision.index + 1));
                assert_eq!(fold.waiting(), 0);
            }
        }
        assert!(verdicts.iter().all(|&count| count > 3), "the schedules are one-sided: {verdicts:?}");
    }

    #[test]
    fn bouts_wait_for_predecessors() {
        let mut fold = SequentialTest::new(bounds(Model::Logistic));
        let win = BoutResult::Pair(PairScore::from_half_points(4).unwrap());
        for index in 1..200 {
            assert_eq!(fold.record(index, win), Ok(None));
        }
        assert_eq!((fold.prefix(), fold.llr(), fold.waiting()), (0, 0.0, 199));
        let decision = fold.record(0, BoutResult::Void).unwrap().expect("two hundred wins decide");
        assert_eq!(decision.verdict, Verdict::H1);
        assert!(decision.index < 100);
    }

    #[test]
    fn rejects_duplicate_bout() {
        let mut fold = SequentialTest::new(bounds(Model::Logistic));
        fold.record(0, BoutResult::Void).unwrap();
        fold.record(2, BoutResult::Void).unwrap();
        assert_eq!(fold.record(0, BoutResult::Void), Err(ScheduleError::Twice(0)));
        assert_eq!(fold.record(2, BoutResult::Void), Err(ScheduleError::Twice(2)));
        assert_eq!(fold.prefix(), 1);
    }
}
