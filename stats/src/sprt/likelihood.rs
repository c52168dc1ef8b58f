//! Maximum likelihoods under a hypothesis on the mean, and on the mean in standard deviations.
//!
//! Source: Van den Bergh, "The generalized maximum likelihood ratio for the expectation value of a distribution" and
//! "Comments on normalized Elo": the most likely distribution under such a hypothesis is the observed one with each
//! probability divided by 1 + x phi, where x solves one equation in one unknown.

use super::{Bounds, Model};
use crate::elo::{NORMALISED_UNIT, expected_score};
use crate::pairs::Scores;

/// The count of a score that did not occur, so that its probability is small instead of 0.
const UNSEEN: f64 = 1e-3;

/// The iteration limit of the normalised model, and the change of a probability that ends it.
const ITERATIONS: usize = 10;
const CHANGE: f64 = 1e-9;

/// A value for each score of a pair; games use the first three.
type Distribution = [f64; 5];

/// Returns the log-likelihood ratio of the alternative against the null hypothesis.
pub fn ratio(bounds: &Bounds, scores: &Scores) -> f64 {
    if scores.units() == 0 {
        return 0.0;
    }
    let data = Data::new(scores);
    let (null, alternative) =
        (data.fit(bounds.model(), bounds.elo0()), data.fit(bounds.model(), bounds.elo1()));
    let mean_ratio: f64 = (0..data.kinds).map(|i| data.observed[i] * (alternative[i] / null[i]).ln()).sum();
    data.units * mean_ratio
}

/// The observed distribution, with small probabilities for scores that did not occur.
struct Data {
    observed: Distribution,
    kinds: usize,
    units: f64,
    games: f64,
}

impl Data {
    fn new(scores: &Scores) -> Self {
        let mut observed = [0.0; 5];
        for (share, &count) in observed.iter_mut().zip(scores.counts()) {
            *share = if count == 0 { UNSEEN } else { count as f64 };
        }
        let units: f64 = observed.iter().sum();
        observed.iter_mut().for_each(|share| *share /= units);
        Data { observed, kinds: scores.counts().len(), units, games: scores.games_per_unit() }
    }

    /// Returns a score from 0 to 1.
    fn score(&self, kind: usize) -> f64 {
        kind as f64 / (self.kinds - 1) as f64
    }

    fn fit(&self, model: Model, elo: f64) -> Distribution {
        match model {
            Model::Logistic => self.with_mean(expected_score(elo)),
            Model::Normalised => self.with_excess(self.games.sqrt() * elo / NORMALISED_UNIT),
        }
    }

    /// Returns the most likely distribution whose mean is `mean`.
    fn with_mean(&self, mean: f64) -> Distribution {
        let mut deviation = [0.0; 5];
        for (kind, deviation) in deviation.iter_mut().enumerate().take(self.kinds) {
            *deviation = self.score(kind) - mean;
        }
        self.reweighted(&deviation).expect("a mean strictly between 0 and 1 has scores on both sides")
    }

    /// Returns the most likely distribution whose mean exceeds 1/2 by `excess` standard deviations, by repeated
    /// linearisation of the condition.
    fn with_excess(&self, excess: f64) -> Distribution {
        let mut fitted = [1.0 / self.kinds as f64; 5];
        for _ in 0..ITERATIONS {
            let mean: f64 = (0..self.kinds).map(|i| fitted[i] * self.score(i)).sum();
            let variance: f64 = (0..self.kinds).map(|i| fitted[i] * (self.score(i) - mean).powi(2)).sum();
            let deviation = variance.sqrt();
            let mut condition = [0.0; 5];
            for (kind, condition) in condition.iter_mut().enumerate().take(self.kinds) {
                let score = self.score(kind);
                *condition =
                    score - 0.5 - 0.5 * excess * deviation * (1.0 + ((mean - score) / deviation).powi(2));
            }
            // No distribution meets the condition: keep the last one.
            let Some(next) = self.reweighted(&condition) else { break };
            let change = (0..self.kinds).map(|i| (next[i] - fitted[i]).abs()).fold(0.0, f64::max);
            fitted = next;
            if change < CHANGE {
                break;
            }
        }
        fitted
    }

    /// Returns the most likely distribution under which `phi` has mean 0; `None` if `phi` has only one sign.
    fn reweighted(&self, phi: &Distribution) -> Option<Distribution> {
        let (observed, phi) = (&self.observed[..self.kinds], &phi[..self.kinds]);
        let x = multiplier(observed, phi)?;
        let mut weighted = [0.0; 5];
        for (kind, weighted) in weighted.iter_mut().enumerate().take(self.kinds) {
            *weighted = observed[kind] / (1.0 + x * phi[kind]);
        }
        Some(weighted)
    }
}

/// Returns the root of sum p phi / (1 + x phi), which decreases from the pole -1/max(phi) to the pole -1/min(phi), by
/// Newton's method with bisection. `None` without two poles.
fn multiplier(observed: &[f64], phi: &[f64]) -> Option<f64> {
    let least = phi.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = phi.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !(least < 0.0 && greatest > 0.0) {
        return None;
    }
    let (mut low, mut high) = (-1.0 / greatest, -1.0 / least);
    let mut x = 0.0;
    // Bisection alone would converge within this limit.
    for _ in 0..100 {
        let (mut value, mut slope) = (0.0, 0.0);
        for (&share, &phi) in observed.iter().zip(phi) {
            let term = phi / (1.0 + x * phi);
            value += share * term;
            slope -= share * term * term;
        }
        if value > 0.0 {
            low = x;
        } else {
            high = x;
        }
        let step = x - value / slope;
        let next = if step > low && step < high { step } else { low + (high - low) / 2.0 };
        if (next - x).abs() <= 1e-15 * next.abs() || value == 0.0 {
            break;
        }
        x = next;
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;
    use crate::distribution::{Random, seeded};
    use crate::pairs::{Games, Pairs};

    fn llr(pairs: [u64; 5], model: Model, elo0: f64, elo1: f64) -> f64 {
        Bounds::new(elo0, elo1, model, 0.05, 0.05).unwrap().llr(Pairs(pairs))
    }

    /// Tests run on fishtest, with the published ratios.
    #[test]
    fn published_ratios() {
        for (pairs, model, elo0, elo1, expected) in [
            ([365, 16618, 36229, 16974, 390], Model::Normalised, 0.0, 2.0, 2.2504),
            ([127, 4883, 10712, 5150, 104], Model::Normalised, -1.75, 0.25, 3.0102),
            ([223, 9863, 21279, 10037, 246], Model::Logistic, 0.5, 2.5, -3.0741),
            ([379, 10170, 21828, 10640, 343], Model::Normalised, 0.0, 2.0, 2.9455),
            ([13, 37, 50, 25, 3], Model::Normalised, 0.0, 4.0, -0.5491),
        ] {
            let got = llr(pairs, model, elo0, elo1);
            assert!((got - expected).abs() < 5e-5, "{pairs:?}: {got} is not {expected}");
        }
    }

    /// Scores that did not occur and single games, compared with a second implementation in Python by bisection.
    #[test]
    fn ratios_match_second_implementation() {
        let games = |losses, draws, wins| Scores::from(Games { wins, draws, losses });
        for (scores, logistic, normalised) in [
            (Pairs([0, 0, 10, 6, 0]).into(), 0.4537223026386458, 0.2699135895878911),
            (Pairs([0, 3, 0, 0, 9]).into(), 0.34025048892835413, 0.37770909306119205),
            (games(40, 30, 60), 0.6789008772496457, 0.6025568370663258),
            (games(0, 25, 5), 0.850664351897831, 0.3427168892886004),
        ] {
            for (model, expected) in [(Model::Logistic, logistic), (Model::Normalised, normalised)] {
                let got = Bounds::new(0.0, 10.0, model, 0.05, 0.05).unwrap().llr(scores);
                assert!((got - expected).abs() < 1e-9, "{scores:?} {model:?}: {got} is not {expected}");
            }
        }
    }

    fn random_scores(random: &mut Random) -> Scores {
        let largest = [2, 20, 1000, 1_000_000][random.random_range(0..4)];
        let paired = random.random_bool(0.5);
        let mut count = || if random.random_bool(0.3) { 0 } else { random.random_range(0..largest) };
        if paired {
            Pairs([count(), count(), count(), count(), count() + 1]).into()
        } else {
            Games { wins: count(), draws: count(), losses: count() + 1 }.into()
        }
    }

    /// Returns the mean and the standard deviation of a distribution over the scores.
    fn moments(data: &Data, q: &Distribution) -> (f64, f64) {
        let mean: f64 = (0..data.kinds).map(|i| q[i] * data.score(i)).sum();
        let variance: f64 = (0..data.kinds).map(|i| q[i] * (data.score(i) - mean).powi(2)).sum();
        (mean, variance.sqrt())
    }

    /// A fit is a distribution, meets its hypothesis, and is locally the most likely such distribution: the
    /// definition, independent of the method.
    #[test]
    fn fits_maximise_likelihood_under_hypothesis() {
        let mut random = seeded(1, 0);
        for _ in 0..2000 {
            let data = Data::new(&random_scores(&mut random));
            let elo = random.random_range(-60.0..60.0);
            for model in [Model::Logistic, Model::Normalised] {
                let fitted = data.fit(model, elo);
                let excess = |q: &Distribution| {
                    let (mean, deviation) = moments(&data, q);
                    match model {
                        Model::Logistic => mean - expected_score(elo),
                        Model::Normalised => {
                            mean - 0.5 - deviation * data.games.sqrt() * elo / NORMALISED_UNIT
                        }
                    }
                };
                let total: f64 = fitted[..data.kinds].iter().sum();
                // A score that occurs once in a million has its root within a billionth of the pole.
                assert!((total - 1.0).abs() < 1e-6);
                assert!(excess(&fitted).abs() < 1e-6, "{model:?} {elo} {:?}", data.observed);
                // A direction that keeps the sum and, to first order, the hypothesis does not change the likelihood.
                let likelihood = |q: &Distribution| -> f64 {
                    (0..data.kinds).map(|i| data.observed[i] * q[i].max(1e-300).ln()).sum()
                };
                let gradient = |function: &dyn Fn(&Distribution) -> f64| {
                    let mut slopes = [0.0; 5];
                    for kind in 0..data.kinds {
                        let step = fitted[kind] * 1e-4;
                        let (mut up, mut down) = (fitted, fitted);
                        up[kind] += step;
                        down[kind] -= step;
                        // In units of the probability, because probabilities differ by orders of magnitude.
                        slopes[kind] = (function(&up) - function(&down)) / (2.0 * step) * fitted[kind];
                    }
                    slopes
                };
                let (slope, condition) = (gradient(&likelihood), gradient(&excess));
                // Lagrange: slope = a q + b condition, solved by least squares over the kinds.
                let kinds = 0..data.kinds;
                let dot =
                    |u: &Distribution, v: &Distribution| kinds.clone().map(|i| u[i] * v[i]).sum::<f64>();
                let (qq, qc, cc) =
                    (dot(&fitted, &fitted), dot(&fitted, &condition), dot(&condition, &condition));
                let (qs, cs) = (dot(&fitted, &slope), dot(&condition, &slope));
                let determinant = qq * cc - qc * qc;
                let (a, b) = ((qs * cc - cs * qc) / determinant, (cs * qq - qs * qc) / determinant);
                for kind in kinds.clone() {
                    let left = slope[kind] - a * fitted[kind] - b * condition[kind];
                    assert!(left.abs() < 1e-4, "{model:?} {elo} {:?}: {left}", data.observed);
                }
            }
        }
    }

    /// The ratio is finite for all data and bounds, and opposite from the other player's view.
    #[test]
    fn ratios_are_finite_and_antisymmetric() {
        let mut random = seeded(2, 0);
        for _ in 0..5000 {
            let scores = random_scores(&mut random);
            let largest = if random.random_bool(0.5) { 5.0 } else { 200.0 };
            let elo0 = random.random_range(-largest..largest);
            let elo1 = random.random_range(elo0..largest + 1e-3f64);
            for model in [Model::Logistic, Model::Normalised] {
                let Ok(bounds) = Bounds::new(elo0, elo1, model, 0.05, 0.05) else { continue };
                let reversed = Bounds::new(-elo1, -elo0, model, 0.05, 0.05).unwrap();
                let mut counts = scores.counts().to_vec();
                counts.reverse();
                let other: Scores = match *counts {
                    [losses, draws, wins] => Games { wins, draws, losses }.into(),
                    _ => Pairs(counts.try_into().unwrap()).into(),
                };
                let (one, other) = (bounds.llr(scores), reversed.llr(other));
                assert!(one.is_finite());
                assert!(
                    (one + other).abs() <= 1e-6 * (1.0 + one.abs()),
                    "{scores:?} {bounds:?}: {one} {other}"
                );
            }
        }
        assert_eq!(llr([0; 5], Model::Normalised, 0.0, 5.0), 0.0);
    }

    /// For long tests between close hypotheses the ratio is that of two normal distributions of the mean.
    #[test]
    fn close_hypotheses_agree_with_the_normal_approximation() {
        let scores = Scores::from(Pairs([223, 9863, 21279, 10037, 246]));
        let (mean, variance) = (scores.mean().unwrap(), scores.variance().unwrap());
        let (s0, s1) = (expected_score(0.5), expected_score(2.5));
        let approximate = scores.units() as f64 * (s1 - s0) * (2.0 * mean - s0 - s1) / (2.0 * variance);
        let exact = Bounds::new(0.5, 2.5, Model::Logistic, 0.05, 0.05).unwrap().llr(scores);
        assert!((exact - approximate).abs() < 0.01, "{exact} {approximate}");
    }
}
