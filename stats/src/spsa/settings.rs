//! The settings of a tune by simultaneous perturbation.

use thiserror::Error;

use crate::scale::Scale;

/// A parameter to tune.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name, for errors.
    pub name: String,
    /// The starting value.
    pub start: f64,
    /// The least value that is played.
    pub minimum: f64,
    /// The greatest value that is played.
    pub maximum: f64,
    /// The scale on which the parameter is perturbed and moved.
    pub scale: Scale,
    /// The perturbation in the last iteration, in units of the scale: on a logarithmic one, the logarithm of a ratio.
    /// Without one, it is a share of the range that the tune calibrates.
    pub final_perturbation: Option<f64>,
    /// Whether only integers are played. The tuned value moves freely between them.
    pub whole: bool,
}

/// The settings of a tune.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The parameters to tune.
    pub parameters: Vec<Parameter>,
    /// The number of iterations, K.
    pub iterations: u64,
    /// The number of iterations in flight, at least one. It is a setting because it determines the prefix on which a
    /// proposal depends.
    pub in_flight: u64,
    /// The number of openings of an iteration. The greatest result of an iteration is twice as many wins less losses, or
    /// four times against opponents.
    pub pairs: u64,
    /// The learning rate in the last iteration, in perturbations per win. Without one, it follows from the number of
    /// iterations and the spread of the results.
    pub final_rate: Option<f64>,
    /// The seed of all perturbations and roundings.
    pub seed: u64,
}

/// Invalid settings of a tune.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No parameters.
    #[error("name at least one parameter to tune")]
    NoParameters,
    /// No iterations.
    #[error("ask for at least one iteration")]
    NoIterations,
    /// No openings.
    #[error("play at least one opening in an iteration")]
    NoOpenings,
    /// A rate that is not positive.
    #[error("the final rate {rate} must be positive")]
    Rate {
        /// The final rate as given.
        rate: f64,
    },
    /// No iterations in flight.
    #[error("allow at least one iteration in flight")]
    NothingInFlight,
    /// A number that is not finite.
    #[error("{parameter}: every number must be finite")]
    NotFinite {
        /// The parameter's name.
        parameter: String,
    },
    /// Bounds without room between them.
    #[error("{parameter}: the minimum {minimum} must be less than the maximum {maximum}")]
    Bounds {
        /// The parameter's name.
        parameter: String,
        /// The minimum as given.
        minimum: f64,
        /// The maximum as given.
        maximum: f64,
    },
    /// A logarithmic scale with values that are not positive.
    #[error("{parameter}: a logarithmic scale needs a minimum above 0, not {minimum}")]
    Scale {
        /// The parameter's name.
        parameter: String,
        /// The minimum as given.
        minimum: f64,
    },
    /// A start outside the bounds.
    #[error("{parameter}: start at a value from {minimum} to {maximum}, not at {start}")]
    Start {
        /// The parameter's name.
        parameter: String,
        /// The start as given.
        start: f64,
        /// The minimum.
        minimum: f64,
        /// The maximum.
        maximum: f64,
    },
    /// A bound of an integer parameter that is not an integer.
    #[error("{parameter}: a whole parameter needs whole bounds, not {bound}")]
    WholeBound {
        /// The parameter's name.
        parameter: String,
        /// The bound.
        bound: f64,
    },
    /// A perturbation that is not positive.
    #[error("{parameter}: the final perturbation {perturbation} must be positive")]
    Perturbation {
        /// The parameter's name.
        parameter: String,
        /// The final perturbation as given.
        perturbation: f64,
    },
}

impl Settings {
    /// Rejects settings with which no tune can run.
    pub(super) fn validate(&self) -> Result<(), SettingsError> {
        if self.parameters.is_empty() {
            return Err(SettingsError::NoParameters);
        }
        if self.iterations == 0 {
            return Err(SettingsError::NoIterations);
        }
        if self.in_flight == 0 {
            return Err(SettingsError::NothingInFlight);
        }
        if self.pairs == 0 {
            return Err(SettingsError::NoOpenings);
        }
        if let Some(rate) = self.final_rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(SettingsError::Rate { rate });
        }
        self.parameters.iter().try_for_each(validate)
    }
}

fn validate(parameter: &Parameter) -> Result<(), SettingsError> {
    let &Parameter { start, minimum, maximum, final_perturbation, .. } = parameter;
    let perturbation = final_perturbation.unwrap_or(1.0);
    let name = || parameter.name.clone();
    if ![start, minimum, maximum, perturbation].iter().all(|number| number.is_finite()) {
        return Err(SettingsError::NotFinite { parameter: name() });
    }
    if minimum >= maximum {
        return Err(SettingsError::Bounds { parameter: name(), minimum, maximum });
    }
    if parameter.scale == Scale::Log && minimum <= 0.0 {
        return Err(SettingsError::Scale { parameter: name(), minimum });
    }
    if !(minimum..=maximum).contains(&start) {
        return Err(SettingsError::Start { parameter: name(), start, minimum, maximum });
    }
    let broken = [minimum, maximum].into_iter().find(|bound| parameter.whole && bound.fract() != 0.0);
    if let Some(bound) = broken {
        return Err(SettingsError::WholeBound { parameter: name(), bound });
    }
    if perturbation <= 0.0 {
        return Err(SettingsError::Perturbation { parameter: name(), perturbation });
    }
    Ok(())
}
