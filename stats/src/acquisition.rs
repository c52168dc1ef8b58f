//! Bayesian optimisation: which values to try next, and which to recommend.
//!
//! Suggestions come in batches, because a cluster plays many bouts at once. Record suggestions instead of recomputing
//! them: linear algebra may round differently on another processor.

use nalgebra::DVector;
use thiserror::Error;

use crate::distribution::{Random, Z95, seeded};
use crate::gaussian_process::{
    GaussianProcessError, Joint, Mixture, Observation, Prediction, spread_origin, spread_point,
};
use crate::replicas::{Measure, standard_normal};
use crate::scale::Scale;

/// The maximum number of dimensions: with more, a Gaussian process needs more games than gradient steps.
pub const MOST_DIMENSIONS: usize = 6;

/// The number of steps of the grid of one dimension.
const STEPS: f64 = 60.0;
/// The numbers of candidates in more dimensions: spread over the space, and near the best point.
const SPREAD_CANDIDATES: usize = 128;
const NEAR_CANDIDATES: usize = 48;
/// The standard deviation of candidates near the best point.
const NEAR_DEVIATION: f64 = 0.1;
/// The maximum number of observations in a regression, whose time grows with their cube.
const MOST_OBSERVATIONS: usize = 128;
/// The distance of points that are merged first if there are too many.
const LEAST_RADIUS: f64 = 1.0 / 256.0;
/// The variance of the score of a bout of two games before any is played, and the number of bouts that it counts as.
const NOISE: f64 = 0.11;
const NOISE_WEIGHT: f64 = 10.0;
/// The number of functions drawn for the intervals of the best values.
const BEST_DRAWS: usize = 400;

/// A dimension of the search space.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// The name, for errors.
    pub name: String,
    /// The least value.
    pub minimum: f64,
    /// The greatest value.
    pub maximum: f64,
    /// Whether only integers are played.
    pub whole: bool,
    /// The scale of the search.
    pub scale: Scale,
}

/// The scores, from 0 to 1, of a number of bouts at some values.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The value of each dimension.
    pub values: Vec<f64>,
    /// The number of bouts.
    pub bouts: u64,
    /// The mean score.
    pub score: f64,
    /// The sum of the squared deviations of the scores from their mean.
    pub squares: f64,
}

impl Trial {
    /// Creates a trial from the scores of its bouts; `None` without a score.
    pub fn new(values: Vec<f64>, scores: &[f64]) -> Option<Self> {
        let bouts = scores.len() as u64;
        let score = scores.iter().sum::<f64>() / bouts as f64;
        let squares = scores.iter().map(|one| (one - score) * (one - score)).sum();
        (bouts > 0).then_some(Trial { values, bouts, score, squares })
    }
}

/// The result of an optimisation.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The values with the greatest expected score.
    pub values: Vec<f64>,
    /// The expected score with its 95 % interval. A validation match decides.
    pub score: Measure,
    /// The recommended value of each dimension, with the interval that contains the best value with a probability of
    /// 95 %.
    pub best: Vec<Measure>,
}

/// An invalid search space, or a failed regression.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// Too few or too many dimensions.
    #[error("search 1 to {MOST_DIMENSIONS} dimensions, not {dimensions}; tune more with SPSA")]
    Dimensions {
        /// The number of dimensions.
        dimensions: usize,
    },
    /// Bounds without room between them.
    #[error(
        "{dimension}: the minimum {minimum} must be a finite number less than the maximum {maximum}, and above 0 on a \
         logarithmic scale"
    )]
    Bounds {
        /// The dimension's name.
        dimension: String,
        /// The minimum as given.
        minimum: f64,
        /// The maximum as given.
        maximum: f64,
    },
    /// A bound of an integer dimension that is not an integer.
    #[error("{dimension}: a whole dimension needs whole bounds, not {bound}")]
    WholeBound {
        /// The dimension's name.
        dimension: String,
        /// The bound.
        bound: f64,
    },
    /// The regression failed.
    #[error(transparent)]
    Regression(#[from] GaussianProcessError),
}

/// A box of values to search.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    dimensions: Vec<Dimension>,
}

impl Space {
    /// Creates a space, or rejects invalid dimensions.
    pub fn new(dimensions: Vec<Dimension>) -> Result<Self, SpaceError> {
        if !(1..=MOST_DIMENSIONS).contains(&dimensions.len()) {
            return Err(SpaceError::Dimensions { dimensions: dimensions.len() });
        }
        for dimension in &dimensions {
            let &Dimension { minimum, maximum, whole, scale, .. } = dimension;
            let name = || dimension.name.clone();
            let placed = scale == Scale::Linear || minimum > 0.0;
            if !(minimum.is_finite() && maximum.is_finite() && minimum < maximum && placed) {
                return Err(SpaceError::Bounds { dimension: name(), minimum, maximum });
            }
            let broken = [minimum, maximum].into_iter().find(|bound| whole && bound.fract() != 0.0);
            if let Some(bound) = broken {
                return Err(SpaceError::WholeBound { dimension: name(), bound });
            }
        }
        Ok(Space { dimensions })
    }

    /// Returns the number of evenly spread trials before the regression takes over.
    pub fn initial_trials(&self) -> usize {
        4 + 4 * self.dimensions.len()
    }

    /// Returns the next `count` values to try, given all trials so far.
    ///
    /// The first trials are spread evenly. Each later one has the greatest knowledge gradient: the expected gain of the
    /// greatest posterior mean over a set of candidates (Frazier, Powell and Dayanik, "The knowledge-gradient policy for
    /// correlated normal beliefs", 2009), averaged over the hyperparameters. One bout hardly moves the maximum, so the
    /// gain is that of as many further bouts as were played so far ("KG*": Frazier and Powell, "Paradoxes in learning and
    /// the marginal value of information", 2010). Within a batch each suggestion reduces the covariance as its bouts will.
    pub fn suggest(&self, trials: &[Trial], count: usize, seed: u64) -> Result<Vec<Vec<f64>>, SpaceError> {
        // Fewer than two trials allow no regression, even for the end of a long batch.
        let missing = self.initial_trials().saturating_sub(trials.len()).min(count);
        let spread = if trials.len() < 2 { count } else { missing };
        let origin = spread_origin(self.dimensions.len(), seed);
        let mut points: Vec<Vec<f64>> =
            (0..spread).map(|offset| self.snap(&spread_point(trials.len() + offset, &origin))).collect();
        if spread < count {
            let evidence = self.evidence(trials)?;
            let mixture = Mixture::fit(&evidence.observations, seed)?;
            let mut candidates = self.candidates(&evidence, &mixture, seed, trials.len() as u64 + 1);
            candidates.extend(points.iter().cloned());
            let mut joints = mixture.joint(&candidates);
            let trial_variance = evidence.noise * trials.len() as f64 / evidence.bouts;
            let wait_for = |joints: &mut Vec<(f64, Joint)>, place| {
                joints.iter_mut().for_each(|(_, joint)| joint.await_observation(place, trial_variance));
            };
            let waiting = candidates.len() - points.len()..candidates.len();
            waiting.for_each(|place| wait_for(&mut joints, place));
            while points.len() < count {
                let gains = knowledge_gradients(&joints, evidence.noise / evidence.bouts);
                let place = greatest(gains.into_iter());
                points.push(candidates[place].clone());
                wait_for(&mut joints, place);
            }
        }
        Ok(points.iter().map(|point| self.values(point)).collect())
    }

    /// Returns the values with the greatest expected score.
    pub fn recommend(&self, trials: &[Trial], seed: u64) -> Result<Recommendation, SpaceError> {
        let evidence = self.evidence(trials)?;
        let mixture = Mixture::fit(&evidence.observations, seed)?;
        let candidates = self.candidates(&evidence, &mixture, seed, 0);
        let means = candidates.iter().map(|point| mixture.predict(point).mean);
        let values = self.values(&self.climb(&mixture, candidates[greatest(means)].clone()));
        let score = interval(mixture.predict(&self.point(&values)));
        let bests = best_candidates(&mixture.joint(&candidates), &mut seeded(seed, 1))?;
        let best = (0..self.dimensions.len()).map(|place| {
            let mut coordinates: Vec<f64> = bests.iter().map(|&best| candidates[best][place]).collect();
            coordinates.sort_by(f64::total_cmp);
            let margin = if self.dimensions.len() == 1 { 0.5 / STEPS } else { 0.0 };
            let ends = [(BEST_DRAWS / 40, -margin), (BEST_DRAWS - 1 - BEST_DRAWS / 40, margin)];
            let [low, high] = ends.map(|(index, margin)| {
                let mut point = vec![0.0; self.dimensions.len()];
                point[place] = (coordinates[index] + margin).clamp(0.0, 1.0);
                self.values(&point)[place]
            });
            Measure { value: values[place], low: low.min(values[place]), high: high.max(values[place]) }
        });
        let best = best.collect();
        Ok(Recommendation { values, score, best })
    }

    /// Returns the expected scores at some values with their 95 % intervals.
    pub fn posterior(
        &self,
        trials: &[Trial],
        values: &[Vec<f64>],
        seed: u64,
    ) -> Result<Vec<Measure>, SpaceError> {
        let mixture = Mixture::fit(&self.evidence(trials)?.observations, seed)?;
        Ok(values.iter().map(|values| interval(mixture.predict(&self.point(values)))).collect())
    }

    /// Returns the points that a trial or an answer may have: in one dimension a grid, so that trials repeat values; else
    /// a spread, the points tried so far and random points around the best of these.
    fn candidates(&self, evidence: &Evidence, mixture: &Mixture, seed: u64, stream: u64) -> Vec<Vec<f64>> {
        let count = self.dimensions.len();
        let mut points: Vec<Vec<f64>> = if count == 1 {
            (0..=STEPS as usize).map(|step| vec![step as f64 / STEPS]).collect()
        } else {
            let origin = spread_origin(count, seed);
            let spread = (0..SPREAD_CANDIDATES).map(|index| spread_point(index, &origin));
            spread.chain(evidence.observations.iter().map(|seen| seen.point.clone())).collect()
        };
        if count > 1 {
            let best = points[greatest(points.iter().map(|point| mixture.predict(point).mean))].clone();
            let mut random = seeded(seed, stream);
            let mut near = |at: &f64| (at + NEAR_DEVIATION * standard_normal(&mut random)).clamp(0.0, 1.0);
            points.extend((0..NEAR_CANDIDATES).map(|_| best.iter().map(&mut near).collect()));
        }
        let mut points: Vec<Vec<f64>> = points.iter().map(|point| self.snap(point)).collect();
        points.sort_by(|first, second| first.partial_cmp(second).expect("coordinates are finite"));
        points.dedup();
        points
    }

    /// Improves a point by axis steps that shrink when none improves the expected score.
    fn climb(&self, mixture: &Mixture, mut point: Vec<f64>) -> Vec<f64> {
        let mut mean = mixture.predict(&point).mean;
        let mut step = 0.5 / STEPS;
        while step > 1e-4 {
            let moves = (0..2 * point.len()).map(|number| {
                let mut moved = point.clone();
                let sign = if number % 2 == 0 { step } else { -step };
                moved[number / 2] = (moved[number / 2] + sign).clamp(0.0, 1.0);
                let moved = self.playable(&moved);
                (mixture.predict(&moved).mean, moved)
            });
            match moves.max_by(|first, second| first.0.total_cmp(&second.0)) {
                Some((better, moved)) if better > mean => (mean, point) = (better, moved),
                _ => step /= 2.0,
            }
        }
        point
    }

    /// Gathers the trials by their points.
    fn evidence(&self, trials: &[Trial]) -> Result<Evidence, SpaceError> {
        if trials.iter().any(|trial| trial.values.len() != self.dimensions.len()) {
            return Err(GaussianProcessError::Dimensions.into());
        }
        let place = |trial: &Trial| Trial { values: self.point(&trial.values), ..trial.clone() };
        let trials: Vec<Trial> = trials.iter().map(place).collect();
        // Trials of a bout each say nothing about the noise, but neighbours do: their scores hardly differ otherwise.
        let neighbours = grouped(&trials, trials.len().div_ceil(2));
        let bouts = trials.iter().map(|trial| trial.bouts).sum::<u64>() as f64;
        let squares: f64 = neighbours.iter().map(|group| group.squares).sum();
        let noise = (squares + NOISE_WEIGHT * NOISE) / (bouts - neighbours.len() as f64 + NOISE_WEIGHT);
        let observe = |group: Trial| Observation {
            variance: noise / group.bouts as f64,
            point: group.values,
            value: group.score,
        };
        let observations = grouped(&trials, MOST_OBSERVATIONS).into_iter().map(observe).collect();
        Ok(Evidence { observations, noise, bouts })
    }

    /// Returns the point of the unit cube for some values.
    fn point(&self, values: &[f64]) -> Vec<f64> {
        let each = self.dimensions.iter().zip(values);
        each.map(|(side, value)| {
            let [low, high, at] =
                [side.minimum, side.maximum, *value].map(|value| side.scale.coordinate(value));
            (at - low) / (high - low)
        })
        .collect()
    }

    /// Returns the values at a point of the unit cube.
    fn values(&self, point: &[f64]) -> Vec<f64> {
        let each = self.dimensions.iter().zip(point).map(|(side, coordinate)| {
            let [low, high] = [side.minimum, side.maximum].map(|bound| side.scale.coordinate(bound));
            let value = side.scale.value(low + coordinate * (high - low));
            let value = if side.whole { value.round() } else { value };
            value.clamp(side.minimum, side.maximum)
        });
        each.collect()
    }

    /// Returns the nearest point whose values can be played.
    fn playable(&self, point: &[f64]) -> Vec<f64> {
        if self.dimensions.iter().any(|side| side.whole) {
            self.point(&self.values(point))
        } else {
            point.to_vec()
        }
    }

    /// Returns the nearest point of a trial: in one dimension on the grid.
    fn snap(&self, point: &[f64]) -> Vec<f64> {
        match point {
            [at] => self.playable(&[(at * STEPS).round() / STEPS]),
            _ => self.playable(point),
        }
    }
}

/// What the trials show.
struct Evidence {
    observations: Vec<Observation>,
    /// The variance of the score of one bout.
    noise: f64,
    /// The number of bouts.
    bouts: f64,
}

/// Merges trials at equal points, and near ones until at most `most` groups are left. Preconditions: points as values, and
/// `most` above 0 unless there are no trials.
fn grouped(trials: &[Trial], most: usize) -> Vec<Trial> {
    let mut radius = 0.0;
    loop {
        // The point of the first trial of each group, and the group.
        let mut groups: Vec<(&[f64], Trial)> = Vec::new();
        for trial in trials {
            let near = |&&mut (first, _): &&mut (&[f64], Trial)| {
                first.iter().zip(&trial.values).all(|(a, b)| (a - b).abs() <= radius)
            };
            match groups.iter_mut().find(near) {
                Some((_, group)) => add(group, trial),
                None => groups.push((&trial.values, trial.clone())),
            }
        }
        if groups.len() <= most {
            return groups.into_iter().map(|(_, group)| group).collect();
        }
        radius = if radius == 0.0 { LEAST_RADIUS } else { 2.0 * radius };
    }
}

/// Adds the bouts of a trial to a group, at their mean point (Chan, Golub and LeVeque, 1979, for the squares).
fn add(group: &mut Trial, trial: &Trial) {
    let share = trial.bouts as f64 / (group.bouts + trial.bouts) as f64;
    let ahead = trial.score - group.score;
    group.squares += trial.squares + ahead * ahead * share * group.bouts as f64;
    group.score += share * ahead;
    group.bouts += trial.bouts;
    for (at, added) in group.values.iter_mut().zip(&trial.values) {
        *at += share * (added - *at);
    }
}

/// Returns the place of the greatest value, the first of equal ones. Precondition: there is a value.
fn greatest<T: PartialOrd>(values: impl Iterator<Item = T>) -> usize {
    let pick = |best: (usize, T), next: (usize, T)| if next.1 > best.1 { next } else { best };
    values.enumerate().reduce(pick).expect("there is a value").0
}

/// The nodes and weights of the Gauss-Hermite rule with seven points for the standard normal distribution.
const NODES: [(f64, f64); 7] = [
    (-3.750_439_717_725_742, 5.482_688_559_722_18e-4),
    (-2.366_759_410_734_541, 0.030_757_123_967_586_5),
    (-1.154_405_394_739_968, 0.240_123_178_605_013),
    (0.0, 0.457_142_857_142_857),
    (1.154_405_394_739_968, 0.240_123_178_605_013),
    (2.366_759_410_734_541, 0.030_757_123_967_586_5),
    (3.750_439_717_725_742, 5.482_688_559_722_18e-4),
];

/// Returns, for an observation with the given variance at each candidate, the expected gain of the greatest mean.
fn knowledge_gradients(joints: &[(f64, Joint)], variance: f64) -> Vec<f64> {
    let count = joints[0].1.mean.len();
    let mut gains = vec![0.0; count];
    for (weight, Joint { mean, covariance }) in joints {
        let greatest_mean = mean.max();
        for (place, gain) in gains.iter_mut().enumerate() {
            let slopes = covariance.column(place);
            let deviation = (slopes[place] + variance).sqrt();
            let expected = NODES.iter().map(|(node, share)| {
                let moved =
                    mean.iter().zip(slopes.iter()).map(|(mean, slope)| mean + slope / deviation * node);
                share * moved.fold(f64::NEG_INFINITY, f64::max)
            });
            *gain += weight * (expected.sum::<f64>() - greatest_mean);
        }
    }
    gains
}

/// Draws functions from the posterior and returns the best candidate of each.
fn best_candidates(joints: &[(f64, Joint)], random: &mut Random) -> Result<Vec<usize>, SpaceError> {
    let mut bests = Vec::with_capacity(BEST_DRAWS);
    let mut reached = 0.0;
    for (weight, joint) in joints {
        reached += weight;
        let root = joint.root()?;
        while (bests.len() as f64) < (reached * BEST_DRAWS as f64).round().min(BEST_DRAWS as f64) {
            let normal = DVector::from_fn(joint.mean.len(), |_, _| standard_normal(random));
            let drawn = &joint.mean + &root * normal;
            bests.push(greatest(drawn.iter()));
        }
    }
    Ok(bests)
}

/// Returns the 95 % interval of a prediction.
fn interval(Prediction { mean, variance }: Prediction) -> Measure {
    let half = Z95 * variance.sqrt();
    Measure { value: mean, low: mean - half, high: mean + half }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;

    fn side(minimum: f64, maximum: f64, whole: bool) -> Dimension {
        Dimension { name: "width".to_owned(), minimum, maximum, whole, scale: Scale::Linear }
    }

    fn trial(values: Vec<f64>, scores: &[f64]) -> Trial {
        Trial::new(values, scores).unwrap()
    }

    #[test]
    fn groups_have_the_moments_of_all_scores() {
        let trials =
            [trial(vec![0.5], &[0.0, 1.0, 0.5]), trial(vec![0.5], &[0.25]), trial(vec![0.9], &[1.0])];
        let groups = grouped(&trials, 2);
        let expected = trial(vec![0.5], &[0.0, 1.0, 0.5, 0.25]);
        assert_eq!((groups.len(), groups[0].bouts, &groups[0].values), (2, 4, &expected.values));
        assert!((groups[0].score - expected.score).abs() < 1e-12);
        assert!((groups[0].squares - expected.squares).abs() < 1e-12);
        let merged = grouped(&trials, 1);
        assert_eq!((merged.len(), merged[0].bouts), (1, 5));
        assert!((merged[0].values[0] - 0.58).abs() < 1e-12, "{merged:?}");
    }

    #[test]
    fn knowledge_gradient_matches_simulation() {
        let covariance =
            DMatrix::from_row_slice(3, 3, &[0.04, 0.01, 0.0, 0.01, 0.02, 0.005, 0.0, 0.005, 0.03]);
        let mean = DVector::from_vec(vec![0.5, 0.55, 0.48]);
        let gains =
            knowledge_gradients(&[(1.0, Joint { mean: mean.clone(), covariance: covariance.clone() })], 0.01);
        let mut random = seeded(8, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| standard_normal(&mut random)).collect();
        for (place, gain) in gains.iter().enumerate() {
            let slopes = covariance.column(place) / (covariance[(place, place)] + 0.01).sqrt();
            let expected =
                draws.iter().map(|draw| (&mean + &slopes * *draw).max() - mean.max()).sum::<f64>() / 1e5;
            assert!((gain / expected - 1.0).abs() < 0.15, "{place}: {gain} {expected}");
        }
    }

    #[test]
    fn spread_points_fill_space() {
        let space = Space::new(vec![side(0.0, 1.0, false), side(10.0, 20.0, false)]).unwrap();
        let values = space.suggest(&[], 64, 3).unwrap();
        // Four points per cell on average: none of the sixteen is empty.
        for cell in 0..16 {
            let (column, row) = (f64::from(cell % 4) / 4.0, 10.0 + f64::from(cell / 4) * 2.5);
            let inside =
                |v: &&Vec<f64>| (column..column + 0.25).contains(&v[0]) && (row..row + 2.5).contains(&v[1]);
            assert!(values.iter().filter(inside).count() >= 2, "cell {cell}");
        }
    }

    #[test]
    fn batch_is_diverse_and_playable() {
        let space = Space::new(vec![side(0.0, 2.0, false), side(1.0, 9.0, true)]).unwrap();
        let trials: Vec<Trial> = space
            .suggest(&[], space.initial_trials(), 5)
            .unwrap()
            .into_iter()
            .map(|values| {
                let [x, y] = [values[0] - 1.2, values[1] - 4.0];
                Trial { values, bouts: 100, score: 0.6 - 0.2 * x * x - 0.01 * y * y, squares: 5.0 }
            })
            .collect();
        let batch = space.suggest(&trials, 6, 5).unwrap();
        assert_eq!(batch, space.suggest(&trials, 6, 5).unwrap(), "the same seed suggests the same");
        for values in &batch {
            assert!((0.0..=2.0).contains(&values[0]) && (1.0..=9.0).contains(&values[1]));
            assert_eq!(values[1].fract(), 0.0);
        }
        let mut distinct = batch.clone();
        distinct.sort_by(|first, second| first.partial_cmp(second).unwrap());
        distinct.dedup();
        assert!(distinct.len() >= 3, "{batch:?}");
        let recommended = space.recommend(&trials, 5).unwrap();
        assert!((recommended.values[0] - 1.2).abs() < 0.3, "{recommended:?}");
        assert!((recommended.values[1] - 4.0).abs() <= 1.0, "{recommended:?}");
        assert!(recommended.score.low < 0.6 && recommended.score.high > 0.58, "{recommended:?}");
        for (best, value) in recommended.best.iter().zip(&recommended.values) {
            assert!(best.value == *value && best.low <= *value && *value <= best.high, "{recommended:?}");
        }
    }

    #[test]
    fn batch_continues_from_spread_to_regression() {
        let space = Space::new(vec![side(0.0, 1.0, false)]).unwrap();
        let trials = [0.1, 0.5, 0.3, 0.7, 0.2].map(|x| trial(vec![x], &[x; 4])).to_vec();
        assert_eq!(space.initial_trials(), 8);
        assert_eq!(space.suggest(&trials, 6, 1).unwrap().len(), 6);
        let mut long = space.suggest(&trials[..1], 12, 1).unwrap();
        long.sort_by(|first, second| first[0].total_cmp(&second[0]));
        long.dedup();
        assert_eq!(long.len(), 12, "no point of the spread comes twice");
        assert_eq!(space.suggest(&trials, 0, 1).unwrap().len(), 0);
    }

    #[test]
    fn rejects_invalid_spaces() {
        for (dimensions, message) in [
            (vec![], "not 0"),
            (vec![side(0.0, 1.0, false); 7], "not 7; tune more with SPSA"),
            (vec![side(1.0, 1.0, false)], "width: the minimum 1"),
            (vec![side(f64::NAN, 1.0, false)], "finite"),
            (vec![side(0.5, 2.0, true)], "whole bounds, not 0.5"),
        ] {
            let error = Space::new(dimensions).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let space = Space::new(vec![side(0.0, 1.0, false)]).unwrap();
        let stray = trial(vec![0.1, 0.2], &[0.0]);
        assert_eq!(
            space.recommend(&[stray.clone(), stray], 1),
            Err(SpaceError::Regression(GaussianProcessError::Dimensions))
        );
    }
}
