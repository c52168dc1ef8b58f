//! Bootstrap replicas in parallel, their intervals, and the bootstrap of a ratio of sums.
//!
//! Each replica draws from its own stream of the seed, so results do not depend on the number of threads. The
//! resampled unit is the cluster (a bout, a position), never a single observation within it.

use std::num::NonZero;
use std::thread;

use rand::RngExt as _;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::distribution::{Random, normal_cdf, seeded};
use crate::parallel;

/// The default number of replicas.
pub const REPLICAS: usize = 1000;

/// A value with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The value of the data.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Measure {
    /// Returns the measure under an increasing function, such as the exponential of a mean of logarithms.
    #[must_use]
    pub fn map(self, increasing: impl Fn(f64) -> f64) -> Self {
        Measure { value: increasing(self.value), low: increasing(self.low), high: increasing(self.high) }
    }
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

/// Returns a quantile of sorted values: the i-th of n values, counted from 1, is the quantile i / (n + 1), with
/// linear interpolation (Davison and Hinkley, "Bootstrap methods and their application", 1997, equation 5.6).
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, (sorted.len() - 1) as f64);
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// Returns the sum of numerators over the sum of denominators, with a bootstrap interval that resamples clusters.
///
/// With (nodes, seconds) by bout it is nodes per second; with (sum, count) by bout it is a mean. `None` with fewer
/// than two clusters or without a positive sum of denominators.
pub fn ratio_of_sums(clusters: &[(f64, f64)], seed: u64, replicas: usize) -> Option<Measure> {
    let ratio = |(numerator, denominator): (f64, f64)| numerator / denominator;
    let sum = |total: (f64, f64), cluster: (f64, f64)| (total.0 + cluster.0, total.1 + cluster.1);
    let total = clusters.iter().copied().fold((0.0, 0.0), sum);
    let usable = |cluster: &(f64, f64)| cluster.0.is_finite() && cluster.1.is_finite() && cluster.1 >= 0.0;
    if clusters.len() < 2 || total.1 <= 0.0 || !clusters.iter().all(usable) {
        return None;
    }
    let drawn = replicate(seed, replicas, |random| {
        let chosen = (0..clusters.len()).map(|_| clusters[random.random_range(0..clusters.len())]);
        ratio(chosen.fold((0.0, 0.0), sum))
    });
    // A replica of clusters without denominators has no ratio.
    let drawn = drawn.into_iter().filter(|value| value.is_finite()).collect();
    percentile_interval(ratio(total), drawn, clusters.len(), 1)
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
#[cfg(test)]
pub(crate) fn standard_normal(random: &mut Random) -> f64 {
    let uniform: f64 = random.random();
    // The middle of the 2^53 cells of the uniform is never 0 or 1.
    crate::distribution::normal_quantile((uniform + f64::EPSILON / 4.0).min(1.0 - f64::EPSILON / 2.0))
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

    #[test]
    fn too_little_data_gives_no_interval() {
        assert_eq!(ratio_of_sums(&[], 1, 100), None);
        assert_eq!(ratio_of_sums(&[(1.0, 1.0)], 1, 100), None);
        assert_eq!(ratio_of_sums(&[(1.0, 0.0), (2.0, 0.0)], 1, 100), None);
        assert_eq!(ratio_of_sums(&[(1.0, 1.0), (f64::NAN, 1.0)], 1, 100), None);
        let all_alike = ratio_of_sums(&[(6.0, 2.0), (3.0, 1.0), (0.0, 0.0)], 1, 100).unwrap();
        assert_eq!(all_alike, Measure { value: 3.0, low: 3.0, high: 3.0 });
    }

    /// Sums resampled together equal those resampled separately.
    #[test]
    fn joint_sums_match_separate_resampling() {
        let clusters: Vec<(f64, f64)> = (1..30).map(|n| (f64::from(n * n % 17), f64::from(n))).collect();
        let alone = ratio_of_sums(&clusters, 3, 200).unwrap();
        let arrays: Vec<[f64; 2]> = clusters.iter().map(|&(above, below)| [above, below]).collect();
        let ratios =
            resampled_sums(&arrays, 3, 200).into_iter().map(|[above, below]| above / below).collect();
        assert_eq!(percentile_interval(alone.value, ratios, clusters.len(), 1), Some(alone));
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
                let data: Vec<(f64, f64)> = (0..clusters)
                    .map(|_| {
                        let seconds = (0.5 * standard_normal(&mut random)).exp();
                        let speed = 1000.0 * (1.0 + 0.3 * standard_normal(&mut random));
                        (speed * seconds, seconds)
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
