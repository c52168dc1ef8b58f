//! The few distributions the other files need, under the names they use.

use rand::SeedableRng as _;
use statrs::distribution::{ChiSquared, ContinuousCDF as _, Normal};

/// The seeded generator of everything here that draws: xoshiro256++, the same on every machine.
pub type Random = rand::rngs::Xoshiro256PlusPlus;

/// A generator for one `stream` of a `seed`: replicas drawn in parallel have a stream each, so that what they draw does
/// not depend on which thread draws it.
pub fn seeded(seed: u64, stream: u64) -> Random {
    Random::seed_from_u64(seed.rotate_left(32) ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The two-sided 95 % point of the standard normal.
pub const Z95: f64 = 1.959_963_984_540_054;

/// The standard normal's distribution function, Phi.
pub fn normal_cdf(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// The inverse of Phi. Precondition: `0 < p < 1`.
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// The probability that chi-square with `degrees` of freedom exceeds `x`; one where there is no freedom.
pub fn chi_square_tail(x: f64, degrees: f64) -> f64 {
    match ChiSquared::new(degrees) {
        Ok(distribution) if x > 0.0 => distribution.sf(x),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of the standard normal and of chi-square.
    #[test]
    fn table_values() {
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
