//! Multinomial counts by one binomial draw per category.

use rand_distr::{Binomial, Distribution as _};

use crate::distribution::Random;

/// Returns how often each category occurs in `count` draws with these weights, by one binomial draw per category.
/// Precondition: weights are not negative, and one is positive unless `count` is zero.
pub fn multinomial<const K: usize>(random: &mut Random, count: u64, weights: &[f64; K]) -> [u64; K] {
    let mut drawn = [0; K];
    let mut left = count;
    let mut weight_left: f64 = weights.iter().sum();
    // Rounding may leave a little weight after the last category: it takes the rest.
    let last = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
    for (kind, &weight) in weights.iter().enumerate() {
        if left == 0 {
            break;
        }
        if weight <= 0.0 {
            continue;
        }
        drawn[kind] = if kind == last {
            left
        } else {
            let share = (weight / weight_left).clamp(0.0, 1.0);
            Binomial::new(left, share).expect("a share is a probability").sample(random)
        };
        left -= drawn[kind];
        weight_left -= weight;
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{chi_square_tail, seeded};

    #[test]
    fn draws_follow_the_weights() {
        let weights = [0.0, 3.0, 1.0, 0.0, 6.0, 0.0];
        for (count, repeats) in [(1u64, 20_000u64), (7, 3000), (50_000, 1)] {
            let mut random = seeded(count, 0);
            let mut totals = [0u64; 6];
            for _ in 0..repeats {
                let drawn = multinomial(&mut random, count, &weights);
                assert_eq!(drawn.iter().sum::<u64>(), count);
                totals.iter_mut().zip(drawn).for_each(|(total, drawn)| *total += drawn);
            }
            let mut statistic = 0.0;
            for (total, weight) in totals.into_iter().zip(weights) {
                let expected = (count * repeats) as f64 * weight / 10.0;
                if expected > 0.0 {
                    statistic += (total as f64 - expected).powi(2) / expected;
                } else {
                    assert_eq!(total, 0);
                }
            }
            assert!(chi_square_tail(statistic, 2.0) > 1e-3, "{totals:?}");
        }
        assert_eq!(multinomial(&mut seeded(1, 0), 0, &[0.0; 3]), [0; 3]);
    }
}
