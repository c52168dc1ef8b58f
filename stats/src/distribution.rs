//! Distributions and seeded random numbers.

use rand::SeedableRng as _;
use statrs::distribution::{ChiSquared, ContinuousCDF as _, Normal};

/// The seeded random number generator: xoshiro256++, the same on every machine.
pub type Random = rand::rngs::Xoshiro256PlusPlus;

/// Creates the generator for one `stream` of a `seed`. Parallel replicas use a stream each, so that results do not
/// depend on the number of threads.
pub fn seeded(seed: u64, stream: u64) -> Random {
    Random::seed_from_u64(seed.rotate_left(32) ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The two-sided 95 % point of the standard normal.
pub const Z95: f64 = 1.959_963_984_540_054;

/// Returns the standard normal distribution function, Phi.
pub fn normal_cdf(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// Returns the inverse of Phi. Precondition: `0 < p < 1`.
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// Returns the probability that chi-square with `degrees` of freedom exceeds `x`; 1 without degrees of freedom.
pub fn chi_square_tail(x: f64, degrees: f64) -> f64 {
    match ChiSquared::new(degrees) {
        Ok(distribution) if x > 0.0 => distribution.sf(x),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from published tables.
    #[test]
    fn matches_published_tables() {
        for (got, expected) in [
            (normal_cdf(Z95), 0.975),
            (normal_cdf(0.0), 0.5),
            (normal_quantile(0.975), Z95),
            (chi_square_tail(3.841_458_820_694_124, 1.0), 0.05),
            (chi_square_tail(18.307_038_053_275_146, 10.0), 0.05),
            (chi_square_tail(1.0, 0.0), 1.0),
        ] {
            assert!((got - expected).abs() < 1e-9, "{got} is not {expected}");
        }
    }
}
