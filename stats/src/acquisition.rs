//! Bayesian optimisation: which values to try next, and which to recommend.
//!
//! Suggestions come in batches, because a cluster plays many bouts at once. Record suggestions instead of recomputing
//! them: linear algebra may round differently on another processor.

use rand::RngExt as _;
use thiserror::Error;

use crate::distribution::{Random, Z95, normal_cdf, seeded};
use crate::gaussian_process::{GaussianProcess, GaussianProcessError, Observation, Prediction};
use crate::replicas::Measure;
use crate::scale::Scale;

/// The maximum number of dimensions: with more, a Gaussian process needs more games than gradient steps.
pub const MOST_DIMENSIONS: usize = 6;

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

/// The mean score of a number of bouts at some values, with the variance of that mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The value of each dimension.
    pub values: Vec<f64>,
    /// The score; greater is better.
    pub score: f64,
    /// The known variance of the score; 0 if unknown.
    pub variance: f64,
}

/// The result of an optimisation.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The values with the greatest expected score.
    pub values: Vec<f64>,
    /// The expected score with its 95 % interval, given the fitted hyperparameters. A validation match decides.
    pub score: Measure,
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
    /// The first trials are spread evenly. Later ones maximise the expected improvement over the best expected score
    /// so far (Jones, Schonlau and Welch, 1998, with the posterior mean in place of the best score, which noise
    /// inflates). Within a batch each suggestion counts as a trial with its expected score and typical noise
    /// ("kriging believer", Ginsbourger, Le Riche and Carraro, 2010), so that the next one differs.
    pub fn suggest(&self, trials: &[Trial], count: usize, seed: u64) -> Result<Vec<Vec<f64>>, SpaceError> {
        // Fewer than two trials allow no regression, even for the end of a long batch.
        let missing = self.initial_trials().saturating_sub(trials.len()).min(count);
        let spread = if trials.len() < 2 { count } else { missing };
        let mut suggestions: Vec<Vec<f64>> =
            (0..spread).map(|offset| self.values(&self.spread_point(trials.len() + offset, seed))).collect();
        if spread == count {
            return Ok(suggestions);
        }
        let mut seen = self.observations(trials)?;
        let mut process = GaussianProcess::fit(&seen, seed)?;
        let usual_variance = seen.iter().map(|one| one.variance).sum::<f64>() / seen.len() as f64;
        let mut random = seeded(seed, trials.len() as u64 + 1);
        let believe = |process: &GaussianProcess, seen: &mut Vec<Observation>, point: Vec<f64>| {
            let value = process.predict(&point).mean;
            seen.push(Observation { point, value, variance: usual_variance });
            GaussianProcess::with(seen, process.hyperparameters().clone())
        };
        for values in suggestions.clone() {
            process = believe(&process, &mut seen, self.point(&values))?;
        }
        while suggestions.len() < count {
            let tried = seen.iter().map(|one| process.predict(&one.point).mean);
            let best = tried.fold(f64::NEG_INFINITY, f64::max);
            let improvement = |point: &[f64]| expected_improvement(process.predict(point), best);
            let point = self.maximise(&seen, &mut random, improvement);
            suggestions.push(self.values(&point));
            process = believe(&process, &mut seen, point)?;
        }
        Ok(suggestions)
    }

    /// Returns the values with the greatest expected score.
    pub fn recommend(&self, trials: &[Trial], seed: u64) -> Result<Recommendation, SpaceError> {
        let seen = self.observations(trials)?;
        let process = GaussianProcess::fit(&seen, seed)?;
        let point = self.maximise(&seen, &mut seeded(seed, 0), |point| process.predict(point).mean);
        Ok(Recommendation { values: self.values(&point), score: interval(process.predict(&point)) })
    }

    /// Returns the expected scores at some values with their 95 % intervals, given the fitted hyperparameters.
    pub fn posterior(
        &self,
        trials: &[Trial],
        values: &[Vec<f64>],
        seed: u64,
    ) -> Result<Vec<Measure>, SpaceError> {
        let process = GaussianProcess::fit(&self.observations(trials)?, seed)?;
        Ok(values.iter().map(|values| interval(process.predict(&self.point(values)))).collect())
    }

    /// Returns a point of a low-discrepancy sequence: multiples of powers of the root of x^(d+1) = x + 1 (Roberts' R
    /// sequence, 2018), from a seeded random origin.
    fn spread_point(&self, index: usize, seed: u64) -> Vec<f64> {
        let count = self.dimensions.len();
        let mut root = 2.0_f64;
        for _ in 0..60 {
            root = (1.0 + root).powf(1.0 / (count + 1) as f64);
        }
        let mut random = seeded(seed, 0);
        let origin: Vec<f64> = (0..count).map(|_| random.random()).collect();
        let coordinate =
            |(place, start): (usize, f64)| (start + index as f64 / root.powi(place as i32 + 1)).fract();
        let point: Vec<f64> = origin.into_iter().enumerate().map(coordinate).collect();
        self.snap(&point)
    }

    /// Returns the point of the unit cube that approximately maximises `score`: the best of many random points and of
    /// all trials, improved by axis steps that shrink when none improves.
    fn maximise(&self, seen: &[Observation], random: &mut Random, score: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        let count = self.dimensions.len();
        let drawn = (0..200 * count).map(|_| (0..count).map(|_| random.random()).collect::<Vec<f64>>());
        let tried = seen.iter().map(|one| one.point.clone());
        let scored = |point: Vec<f64>| {
            let point = self.snap(&point);
            (score(&point), point)
        };
        let mut candidates: Vec<(f64, Vec<f64>)> = drawn.chain(tried).map(scored).collect();
        candidates.sort_by(|first, second| second.0.total_cmp(&first.0));
        candidates.truncate(3);
        for (value, point) in &mut candidates {
            let mut step = 0.1;
            while step > 1e-4 {
                let moves = (0..2 * count).map(|number| {
                    let mut moved = point.clone();
                    let sign = if number % 2 == 0 { step } else { -step };
                    moved[number / 2] = (moved[number / 2] + sign).clamp(0.0, 1.0);
                    scored(moved)
                });
                let best = moves.max_by(|first, second| first.0.total_cmp(&second.0));
                match best {
                    Some((better, moved)) if better > *value => (*value, *point) = (better, moved),
                    _ => step /= 2.0,
                }
            }
        }
        let best = candidates.into_iter().max_by(|first, second| first.0.total_cmp(&second.0));
        best.expect("there are random candidates").1
    }

    fn observations(&self, trials: &[Trial]) -> Result<Vec<Observation>, SpaceError> {
        if trials.iter().any(|trial| trial.values.len() != self.dimensions.len()) {
            return Err(GaussianProcessError::Dimensions.into());
        }
        let observe = |trial: &Trial| Observation {
            point: self.point(&trial.values),
            value: trial.score,
            variance: trial.variance,
        };
        Ok(trials.iter().map(observe).collect())
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

    /// Returns the nearest playable point.
    fn snap(&self, point: &[f64]) -> Vec<f64> {
        if self.dimensions.iter().any(|side| side.whole) {
            self.point(&self.values(point))
        } else {
            point.to_vec()
        }
    }
}

/// Returns the 95 % interval of a prediction.
fn interval(Prediction { mean, variance }: Prediction) -> Measure {
    let half = Z95 * variance.sqrt();
    Measure { value: mean, low: mean - half, high: mean + half }
}

/// Returns the expectation of max(f - best, 0) for a normal f (Jones, Schonlau and Welch, 1998, equation 15).
pub fn expected_improvement(prediction: Prediction, best: f64) -> f64 {
    let deviation = prediction.variance.sqrt();
    let ahead = prediction.mean - best;
    if deviation == 0.0 {
        return ahead.max(0.0);
    }
    let z = ahead / deviation;
    let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    (ahead * normal_cdf(z) + deviation * density).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicas::standard_normal;

    fn side(minimum: f64, maximum: f64, whole: bool) -> Dimension {
        Dimension { name: "width".to_owned(), minimum, maximum, whole, scale: Scale::Linear }
    }

    #[test]
    fn expected_improvement_matches_simulation() {
        let mut random = seeded(8, 0);
        let draws: Vec<f64> = (0..200_000).map(|_| standard_normal(&mut random)).collect();
        for (mean, variance, best) in [(0.0_f64, 1.0_f64, 0.0_f64), (1.0, 0.25, 2.0), (3.0, 4.0, 2.0)] {
            let gain = |draw: &f64| (mean + variance.sqrt() * draw - best).max(0.0);
            let expected = draws.iter().map(gain).sum::<f64>() / draws.len() as f64;
            let got = expected_improvement(Prediction { mean, variance }, best);
            assert!((got - expected).abs() < 0.01, "{got} {expected}");
        }
        assert_eq!(expected_improvement(Prediction { mean: 3.0, variance: 0.0 }, 2.0), 1.0);
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
                let score =
                    -(values[0] - 1.2) * (values[0] - 1.2) - 0.05 * (values[1] - 4.0) * (values[1] - 4.0);
                Trial { values, score, variance: 0.01 }
            })
            .collect();
        let batch = space.suggest(&trials, 6, 5).unwrap();
        assert_eq!(batch, space.suggest(&trials, 6, 5).unwrap(), "the same seed suggests the same");
        for (place, values) in batch.iter().enumerate() {
            assert!((0.0..=2.0).contains(&values[0]) && (1.0..=9.0).contains(&values[1]));
            assert_eq!(values[1].fract(), 0.0);
            assert!(!batch[..place].contains(values), "{batch:?}");
        }
        let recommended = space.recommend(&trials, 5).unwrap();
        assert!((recommended.values[0] - 1.2).abs() < 0.3, "{recommended:?}");
        assert!((recommended.values[1] - 4.0).abs() <= 1.0, "{recommended:?}");
        assert!(recommended.score.low < 0.0 && recommended.score.high > -0.1, "{recommended:?}");
    }

    #[test]
    fn batch_continues_from_spread_to_regression() {
        let space = Space::new(vec![side(0.0, 1.0, false)]).unwrap();
        let trial = |x: f64| Trial { values: vec![x], score: x, variance: 0.01 };
        let trials: Vec<Trial> = [0.1, 0.5, 0.3, 0.7, 0.2].map(trial).to_vec();
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
        let stray = Trial { values: vec![0.1, 0.2], score: 0.0, variance: 0.0 };
        assert_eq!(
            space.recommend(&[stray.clone(), stray], 1),
            Err(SpaceError::Regression(GaussianProcessError::Dimensions))
        );
    }
}
