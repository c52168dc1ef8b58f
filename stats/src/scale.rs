//! The scale on which a parameter is looked for: by differences, or by ratios.

/// A scale.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Scale {
    /// A step is a difference.
    #[default]
    Linear,
    /// A step is a ratio: from 1 to 2 is as far as from 2 to 4. Values are above 0.
    Log,
}

impl Scale {
    /// Where a value lies on the scale. The logarithm is `libm`'s, so that it is the same on every machine.
    pub fn coordinate(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => libm::log(value),
        }
    }

    /// The value that lies there.
    pub fn value(self, coordinate: f64) -> f64 {
        match self {
            Scale::Linear => coordinate,
            Scale::Log => libm::exp(coordinate),
        }
    }
}
