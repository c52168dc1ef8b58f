//! The scale on which a parameter is searched: linear or logarithmic.

/// A scale.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Scale {
    /// Steps are differences.
    #[default]
    Linear,
    /// Steps are ratios: from 1 to 2 is as far as from 2 to 4. Values are positive.
    Log,
}

impl Scale {
    /// Returns the coordinate of a value. The logarithm is `libm`'s, so that it is the same on every machine.
    pub fn coordinate(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => libm::log(value),
        }
    }

    /// Returns the value at a coordinate.
    pub fn value(self, coordinate: f64) -> f64 {
        match self {
            Scale::Linear => coordinate,
            Scale::Log => libm::exp(coordinate),
        }
    }
}
