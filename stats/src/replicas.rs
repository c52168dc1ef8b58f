//! Bootstrap replicas in parallel and their intervals.
//!
//! Each replica draws from its own stream of the seed, so results do not depend on the number of threads. The
//! resampled unit is the cluster (a bout, a position), never a single observation within it.

use std::num::NonZero;
use std::thread;

use rand::RngExt as _;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::distribution::{Random, normal_cdf, normal_quantile, seeded};
use crate::parallel;

/// The default number of replicas.
pub const REPLICAS: usize = 1000;

/// A value with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// The value of the data.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Draws `replicas` values on all cores, the `i`-th from stream `i` of `seed`, and returns them in order.
pub fn replicate<T: Send>(seed: u64, replicas: usize, draw: impl Fn(&mut Random) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    parallel::map(replicas as u64, threads, |stream| draw(&mut seeded(seed, stream)))
}

/// Returns the 95 % percentile interval of a statistic of `clusters` clusters resampled within `strata` strata,
/// widened for small samples.
///
/// The percentile interval of few clusters is too narrow: a replica's variance lacks the factor n / (n - s) for n
/// clusters in s strata, and Student's t with n - s degrees should replace the normal. The expanded percentile
/// interval (Hesterberg, "What teachers should know about the bootstrap", 2015, section 4.3, for one stratum) uses
/// the quantile Phi(-sqrt(n / (n - s)) t) instead of 2.5 % and, unlike a normal interval, stays within the observable
/// range. `None` without replicas or without more clusters than strata.
pub fn percentile_interval(
    value: f64,
    mut replicas: Vec<f64>,
    clusters: usize,
    strata: usize,
) -> Option<Measure> {
    if replicas.is_empty() || clusters <= strata {
        return None;
    }
    let (n, freedom) = (clusters as f64, (clusters - strata) as f64);
    let student = StudentsT::new(0.0, 1.0, freedom).expect("a positive number of degrees of freedom");
    let tail = normal_cdf((n / freedom).sqrt() * student.inverse_cdf(0.025));
    replicas.sort_by(f64::total_cmp);
    Some(Measure { value, low: quantile(&replicas, tail), high: quantile(&replicas, 1.0 - tail) })
}

/// Returns the likelihood that a value is above 0, as `above` of `replicas` replicas are. It is as sure as the interval
/// of [`percentile_interval`]: up to the resolution of the replicas, 97.5 % where that begins at 0. `None` where there is none.
pub fn likelihood_above(above: f64, replicas: usize, clusters: usize, strata: usize) -> Option<f64> {
    if replicas == 0 || clusters <= strata {
        return None;
    }
    let (n, freedom) = (clusters as f64, (clusters - strata) as f64);
    let student = StudentsT::new(0.0, 1.0, freedom).expect("a positive number of degrees of freedom");
    let share = (above + 0.5) / (replicas as f64 + 1.0);
    Some(student.cdf(normal_quantile(share) * (freedom / n).sqrt()))
}

/// Returns a quantile of sorted values: the i-th of n values, counted from 1, is the quantile i / (n + 1), with
/// linear interpolation (Davison and Hinkley, "Bootstrap methods and their application", 1997, equation 5.6).
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, (sorted.len() - 1) as f64);
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// Returns each replica's sums over clusters resampled with replacement, so that several measures share the same
/// replicas.
pub fn resampled_sums<const N: usize>(clusters: &[[f64; N]], seed: u64, replicas: usize) -> Vec<[f64; N]> {
    let replicas = if clusters.is_empty() { 0 } else { replicas };
    replicate(seed, replicas, |random| {
        let mut sums = [0.0; N];
        for _ in clusters {
            let drawn = &clusters[random.random_range(0..clusters.len())];
            sums.iter_mut().zip(drawn).for_each(|(sum, value)| *sum += value);
        }
        sums
    })
}

/// Returns a standard normal draw, by inversion.
pub(crate) fn standard_normal(random: &mut Random) -> f64 {
    let uniform: f64 = random.random();
    // The middle of the 2^53 cells of the uniform is never 0 or 1.
    normal_quantile((uniform + f64::EPSILON / 4.0).min(1.0 - f64::EPSILON / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_replica_has_its_own_stream() {
        let draw = |random: &mut Random| random.random::<u64>();
        let one_by_one: Vec<u64> = (0..101).map(|stream| draw(&mut seeded(7, stream))).collect();
        assert_eq!(replicate(7, 101, draw), one_by_one);
        assert_eq!(replicate(7, 0, draw), Vec::<u64>::new());
    }

    #[test]
    fn quantiles_are_linear_between_neighbours() {
        let sorted = [1.0, 2.0, 4.0];
        for (share, expected) in
            [(0.0, 1.0), (0.25, 1.0), (0.375, 1.5), (0.5, 2.0), (0.625, 3.0), (0.75, 4.0), (1.0, 4.0)]
        {
            assert_eq!(quantile(&sorted, share), expected);
        }
        let values: Vec<f64> = (1..=39).map(f64::from).collect();
        assert_eq!((quantile(&values, 0.025), quantile(&values, 0.975)), (1.0, 39.0));
        assert_eq!(quantile(&values, 0.5), 20.0);
        assert_eq!(quantile(&values[..2], 0.5), 1.5);
        assert_eq!(quantile(&values[..1], 0.025), 1.0);
    }

    /// Returns the sum of numerators over the sum of denominators, with the interval of resampled clusters.
    fn ratio_of_sums(clusters: &[[f64; 2]], seed: u64, replicas: usize) -> Option<Measure> {
        let [above, below] = [0, 1].map(|part| clusters.iter().map(|cluster| cluster[part]).sum::<f64>());
        let ratios = resampled_sums(clusters, seed, replicas).iter().map(|sums| sums[0] / sums[1]).collect();
        percentile_interval(above / below, ratios, clusters.len(), 1)
    }

    #[test]
    fn too_little_data_gives_no_interval() {
        assert_eq!(ratio_of_sums(&[], 1, 100), None);
        assert_eq!(ratio_of_sums(&[[1.0, 1.0]], 1, 100), None);
        assert_eq!(ratio_of_sums(&[[1.0, 1.0], [2.0, 1.0]], 1, 0), None);
        let all_alike = ratio_of_sums(&[[6.0, 2.0], [3.0, 1.0], [9.0, 3.0]], 1, 100).unwrap();
        assert_eq!(all_alike, Measure { value: 3.0, low: 3.0, high: 3.0 });
    }

    /// An interval excludes 0 if and only if the likelihood is beyond 97.5 %.
    #[test]
    fn likelihood_agrees_with_interval() {
        for (clusters, strata) in [(2, 1), (3, 1), (5, 2), (8, 1), (40, 3), (1000, 1)] {
            for below in 0..=400 {
                let replicas = 400;
                let values = (0..replicas).map(|index| f64::from(index - below) + 0.5).collect();
                let interval = percentile_interval(1.0, values, clusters, strata).unwrap();
                let above = f64::from(replicas - below);
                let likelihood = likelihood_above(above, replicas as usize, clusters, strata).unwrap();
                // The interval interpolates between two replicas.
                if interval.low.abs() > 1.0 {
                    assert_eq!(likelihood >= 0.975, interval.low > 0.0, "{clusters} {below}: {likelihood}");
                }
                if interval.high.abs() > 1.0 {
                    assert_eq!(likelihood <= 0.025, interval.high < 0.0, "{clusters} {below}: {likelihood}");
                }
            }
        }
        assert_eq!((likelihood_above(9.0, 9, 1, 1), likelihood_above(0.0, 0, 5, 1)), (None, None));
        assert!(likelihood_above(1000.0, 1000, 2, 1).unwrap() < 0.9, "two bouts prove nothing");
    }

    /// Sums resampled together equal those resampled separately.
    #[test]
    fn joint_sums_match_separate_resampling() {
        let clusters: Vec<[f64; 2]> = (1..30).map(|n| [f64::from(n * n % 17), f64::from(n)]).collect();
        let joint = resampled_sums(&clusters, 3, 200);
        for part in [0, 1] {
            let alone: Vec<[f64; 1]> = clusters.iter().map(|cluster| [cluster[part]]).collect();
            let expected: Vec<[f64; 1]> = joint.iter().map(|sums| [sums[part]]).collect();
            assert_eq!(resampled_sums(&alone, 3, 200), expected);
        }
        assert!(resampled_sums::<2>(&[], 3, 200).is_empty());
    }

    /// Coverage of the 95 % interval for nodes per second over bouts of different length: within three standard
    /// errors of 95 % from 20 clusters on; the bound for 8 clusters is the measured value.
    #[test]
    fn intervals_cover_the_truth() {
        for (clusters, least) in [(8, 0.90), (20, 0.92), (50, 0.93)] {
            let simulations = 600;
            let mut covered = 0;
            for simulation in 0..simulations {
                let mut random = seeded(11, simulation);
                let data: Vec<[f64; 2]> = (0..clusters)
                    .map(|_| {
                        let seconds = (0.5 * standard_normal(&mut random)).exp();
                        let speed = 1000.0 * (1.0 + 0.3 * standard_normal(&mut random));
                        [speed * seconds, seconds]
                    })
                    .collect();
                let measure = ratio_of_sums(&data, simulation, 300).unwrap();
                covered += usize::from(measure.low <= 1000.0 && 1000.0 <= measure.high);
            }
            let share = covered as f64 / simulations as f64;
            let error = (0.95 * 0.05 / simulations as f64).sqrt();
            assert!(share >= least, "{clusters} clusters: {share}");
            assert!(share <= 0.95 + 3.0 * error, "{clusters} clusters: {share}");
        }
    }

    #[test]
    fn normal_draws_have_mean_zero_and_variance_one() {
        let mut random = seeded(5, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| standard_normal(&mut random)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let square = draws.iter().map(|draw| draw * draw).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 4.0 / (draws.len() as f64).sqrt(), "{mean}");
        assert!((square - 1.0).abs() < 4.0 * (2.0 / draws.len() as f64).sqrt(), "{square}");
    }
}
