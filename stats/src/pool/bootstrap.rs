//! Errors of ratings by resampling bouts and rating each resampled pool.
//!
//! Units are drawn as counts within each pairing, separately for bouts and for single games in either seat. Of n
//! units n - 1 are drawn and weighted n / (n - 1): then variances are right for any n (McCarthy and Snowden 1985; Rao
//! and Wu 1988), where drawing n would make them too small. A single unit is drawn from the fitted model. Each
//! replica keeps a thousandth of the real results, so that a player who wins everything in a replica gets a large
//! rating instead of an infinite one, as scores are clamped to 0.999 elsewhere.

use std::num::NonZeroUsize;
use std::ops::Range;

use nalgebra::DMatrix;

use super::fit::Fit;
use super::model::Point;
use super::results::{GameCounts, KINDS, Pairing, Unit};
use super::uncertainty::{Uncertainty, with_spread};
use crate::distribution::{Random, seeded};
use crate::elo::{LEAST_SCORE, POINTS_PER_LOGIT};
use crate::multinomial::multinomial;
use crate::parallel;
use crate::replicas::quantile;

/// Unit kinds that are drawn together: bouts, games with the first seat, games with the second.
const STRATA: [Range<usize>; 3] = [0..9, 9..12, 12..15];

/// The default number of replicas, enough for two digits of an interval.
pub const DEFAULT_REPLICAS: NonZeroUsize = NonZeroUsize::new(1000).expect("one thousand is not zero");

impl Fit {
    /// Computes intervals and covariance over `replicas` resampled pools. Intervals are the 2.5 % and 97.5 %
    /// quantiles. The result depends on the seed, not on the number of threads.
    pub fn bootstrap(&self, replicas: NonZeroUsize, seed: u64, threads: NonZeroUsize) -> Uncertainty {
        self.bootstrap_with_progress(replicas, seed, threads, &|| ())
    }

    /// Does the same and calls `on_replica` after each replica on its thread, to show progress.
    pub fn bootstrap_with_progress(
        &self,
        replicas: NonZeroUsize,
        seed: u64,
        threads: NonZeroUsize,
        on_replica: &(dyn Fn() + Sync),
    ) -> Uncertainty {
        let players = self.problem.players;
        let pairings: Vec<Resampler<'_>> = self.inner.iter().map(|pairing| self.resampler(pairing)).collect();
        let replicas = parallel::map(replicas.get() as u64, threads, |replica| {
            let replica = self.replica(&pairings, &mut seeded(seed, replica));
            on_replica();
            replica
        });
        let interval = |of: &dyn Fn(&Replica) -> f64| {
            let mut values: Vec<f64> = replicas.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            (quantile(&values, 0.025), quantile(&values, 0.975))
        };
        let intervals: Vec<(f64, f64)> =
            (0..players).map(|player| interval(&|replica: &Replica| replica.ratings[player])).collect();
        Uncertainty {
            low: intervals.iter().map(|interval| interval.0).collect(),
            high: intervals.iter().map(|interval| interval.1).collect(),
            covariance: covariance(players, &replicas),
            seat_advantage: self
                .problem
                .advantage
                .then(|| interval(&|replica: &Replica| replica.advantage))
                .and_then(with_spread),
        }
    }

    fn replica(&self, pairings: &[Resampler<'_>], random: &mut Random) -> Replica {
        let tallies: Vec<GameCounts> = pairings.iter().map(|pairing| pairing.draw(random)).collect();
        let parameters = self.problem.maximise(&tallies, self.parameters.clone());
        let zero = self.anchor.map_or(0.0, |anchor| parameters.ratings[anchor]);
        let anchored = self.anchor.map(|anchor| self.structure.block_of[anchor]);
        let ratings = parameters.ratings.iter().zip(&self.structure.block_of).map(|(rating, &block)| {
            let shift = if anchored == Some(block) { zero } else { 0.0 };
            (rating - shift) * POINTS_PER_LOGIT
        });
        Replica { ratings: ratings.collect(), advantage: parameters.advantage * POINTS_PER_LOGIT }
    }

    /// Returns the distribution of a pairing's resampled units.
    fn resampler<'a>(&self, pairing: &'a Pairing) -> Resampler<'a> {
        let difference = self.parameters.ratings[pairing.one] - self.parameters.ratings[pairing.other];
        let rate = self.draw_rate();
        let first = Point::new(self.parameters.advantage + difference, rate).probabilities();
        let second = Point::new(self.parameters.advantage - difference, rate).probabilities();
        let modelled = std::array::from_fn(|kind| {
            let unit = Unit::of_kind(kind);
            let with_first = unit.first().map_or(1.0, |outcome| first[outcome.half_points()]);
            let with_second = unit.second().map_or(1.0, |outcome| second[outcome.reversed().half_points()]);
            with_first * with_second
        });
        Resampler { seen: &pairing.units, modelled }
    }
}

/// The distribution of a pairing's resampled units.
struct Resampler<'a> {
    seen: &'a [u64; KINDS],
    /// The probability of each kind within its stratum, by the fitted model.
    modelled: [f64; KINDS],
}

impl Resampler<'_> {
    fn draw(&self, random: &mut Random) -> GameCounts {
        let mut units = [0.0; KINDS];
        for stratum in STRATA {
            let count: u64 = self.seen[stratum.clone()].iter().sum();
            if count == 0 {
                continue;
            }
            let mut weights = [0.0; 9];
            for (weight, kind) in weights.iter_mut().zip(stratum.clone()) {
                *weight = if count == 1 { self.modelled[kind] } else { self.seen[kind] as f64 };
            }
            let draws = (count - 1).max(1);
            let drawn = multinomial(random, draws, &weights);
            let worth = (1.0 - LEAST_SCORE) * count as f64 / draws as f64;
            for (kind, drawn) in stratum.zip(drawn) {
                units[kind] = worth * drawn as f64 + LEAST_SCORE * self.seen[kind] as f64;
            }
        }
        GameCounts::of(&units)
    }
}

/// The parameters of a resampled pool, in Elo.
struct Replica {
    ratings: Vec<f64>,
    advantage: f64,
}

fn covariance(players: usize, replicas: &[Replica]) -> DMatrix<f64> {
    let count = replicas.len() as f64;
    let values =
        DMatrix::from_fn(players, replicas.len(), |player, replica| replicas[replica].ratings[player]);
    let means = values.column_sum() / count;
    let mut centred = values;
    for mut column in centred.column_iter_mut() {
        column -= &means;
    }
    let products = &centred * centred.transpose();
    products / (count - 1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(tally: &GameCounts) -> f64 {
        let [_, draws, wins] = tally.total();
        wins + 0.5 * draws
    }

    /// The points of a replica have the mean of the units and n times their unbiased variance.
    #[test]
    fn replicas_have_variance_of_data() {
        let mut seen = [0; KINDS];
        for (kind, count) in [(0, 1), (3, 2), (8, 1), (6, 3), (10, 2), (11, 1), (12, 3), (14, 1)] {
            seen[kind] = count;
        }
        let resampler = Resampler { seen: &seen, modelled: [0.0; KINDS] };
        let (mut expected_mean, mut expected_variance) = (0.0, 0.0);
        for stratum in STRATA {
            let count: f64 = seen[stratum.clone()].iter().sum::<u64>() as f64;
            let moment = |power: i32| -> f64 {
                let kinds = stratum.clone();
                kinds.map(|kind| seen[kind] as f64 * Unit::of_kind(kind).points().powi(power)).sum::<f64>()
                    / count
            };
            expected_mean += count * moment(1);
            expected_variance += count * (moment(2) - moment(1).powi(2)) * count / (count - 1.0);
        }
        let mut random = seeded(3, 0);
        let values: Vec<f64> = (0..40_000).map(|_| points(&resampler.draw(&mut random))).collect();
        let mean = values.iter().sum::<f64>() / 40_000.0;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 40_000.0;
        assert!((mean / expected_mean - 1.0).abs() < 0.005, "{mean} is not {expected_mean}");
        assert!((variance / expected_variance - 1.0).abs() < 0.03, "{variance} is not {expected_variance}");
    }

    /// A single unit is drawn from the model, plus a thousandth of the real one.
    #[test]
    fn draws_single_unit_from_model() {
        let mut seen = [0; KINDS];
        seen[11] = 1;
        let mut modelled = [0.0; KINDS];
        (modelled[9], modelled[11]) = (0.25, 0.75);
        let resampler = Resampler { seen: &seen, modelled };
        let mut random = seeded(4, 0);
        let mut wins = 0;
        for _ in 0..10_000 {
            let tally = resampler.draw(&mut random);
            assert!((tally.total().iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(tally.first[2] >= LEAST_SCORE);
            wins += u32::from(tally.first[2] > 0.5);
        }
        assert!((7370..=7630).contains(&wins), "{wins}");
    }
}
