//! Simultaneous perturbation stochastic approximation: tuning many parameters at once by self-play (Spall,
//! "Multivariate stochastic approximation using a simultaneous perturbation gradient approximation", 1992; gains
//! after Spall, "Implementation of the SPSA algorithm", 1998, with the two final values that engine tuners state).
//!
//! A tune is a function of its settings and of the results by index: iteration `i` depends on the seed, `i` and the
//! results of a fixed prefix of iterations, so that many can be in flight and the path does not depend on the order
//! of arrival. Games are played elsewhere.

use std::collections::BTreeMap;

use rand::RngExt as _;
use thiserror::Error;

use crate::distribution::seeded;
use crate::scale::Scale;

/// The decay of the step gain.
pub const ALPHA: f64 = 0.602;
/// The decay of the perturbation.
pub const GAMMA: f64 = 0.101;

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
    pub final_perturbation: f64,
    /// The learning rate in the last iteration.
    pub final_rate: f64,
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
    /// A gain that is not positive.
    #[error("{parameter}: the final perturbation {perturbation} and the final rate {rate} must be positive")]
    Gains {
        /// The parameter's name.
        parameter: String,
        /// The final perturbation as given.
        perturbation: f64,
        /// The final rate as given.
        rate: f64,
    },
}

/// A rejected result.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ResultError {
    /// An index beyond the tune.
    #[error("iteration {index} is not part of this tune of {iterations} iterations")]
    Unplanned {
        /// The index as given.
        index: u64,
        /// The number of iterations.
        iterations: u64,
    },
    /// Two different results of one iteration.
    #[error("iteration {index} already has the result {recorded}, which {offered} contradicts")]
    Contradiction {
        /// The iteration.
        index: u64,
        /// The recorded result.
        recorded: f64,
        /// The rejected result.
        offered: f64,
    },
    /// A result that is not finite.
    #[error("the result of iteration {index} must be a finite number of wins less losses")]
    NotFinite {
        /// The iteration.
        index: u64,
    },
}

/// The gains of one parameter in one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// The perturbation of the parameter, c_k.
    pub perturbation: f64,
    /// The rate R_k at which a result moves the parameter, in units of the perturbation.
    pub rate: f64,
}

/// Returns the gains c_k = c / (k + 1)^gamma and R_k = a / (A + k + 1)^alpha / c_k^2.
///
/// Powers are `libm`'s, so that a tune is the same on every machine.
pub fn gains(a: f64, c: f64, stability: f64, iteration: u64) -> Gains {
    let k = iteration as f64;
    let perturbation = c / libm::pow(k + 1.0, GAMMA);
    Gains { perturbation, rate: a / libm::pow(stability + k + 1.0, ALPHA) / (perturbation * perturbation) }
}

/// Returns the value after one iteration's result, before clipping: theta + R c (wins - losses) delta.
pub fn step(value: f64, gains: Gains, direction: f64, wins_less_losses: f64) -> f64 {
    value + gains.rate * gains.perturbation * wins_less_losses * direction
}

/// The two sides of one iteration, a value for each parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The parameters of the side whose wins count.
    pub plus: Vec<f64>,
    /// The parameters of its opponent.
    pub minus: Vec<f64>,
}

/// A tune in progress.
#[derive(Clone, Debug)]
pub struct Tune {
    settings: Settings,
    /// The parameters after each applied prefix, the start first.
    path: Vec<Vec<f64>>,
    /// The results of the applied prefix.
    folded: Vec<f64>,
    /// Results beyond the applied prefix.
    waiting: BTreeMap<u64, f64>,
}

impl Tune {
    /// Creates a tune at its start, or rejects invalid settings.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        if settings.parameters.is_empty() {
            return Err(SettingsError::NoParameters);
        }
        if settings.iterations == 0 {
            return Err(SettingsError::NoIterations);
        }
        if settings.in_flight == 0 {
            return Err(SettingsError::NothingInFlight);
        }
        settings.parameters.iter().try_for_each(validate)?;
        let start = settings.parameters.iter().map(|parameter| parameter.start).collect();
        Ok(Tune { settings, path: vec![start], folded: Vec::new(), waiting: BTreeMap::new() })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the number of applied iterations: all before this index have a result.
    pub fn prefix(&self) -> u64 {
        self.folded.len() as u64
    }

    /// Returns whether all iterations are applied.
    pub fn finished(&self) -> bool {
        self.prefix() == self.settings.iterations
    }

    /// Returns the parameters after the applied prefix; at the end, the tuned values.
    pub fn values(&self) -> &[f64] {
        self.path.last().expect("the path begins with the start")
    }

    /// Returns the parameters after each applied prefix, the start first.
    pub fn path(&self) -> &[Vec<f64>] {
        &self.path
    }

    /// Returns the values as they can be played: integer parameters are rounded.
    pub fn playable(&self) -> Vec<f64> {
        let round =
            |(value, parameter): (&f64, &Parameter)| if parameter.whole { value.round() } else { *value };
        self.values().iter().zip(&self.settings.parameters).map(round).collect()
    }

    /// Returns the prefix on which iteration `index` depends: all but the last `in_flight - 1` iterations before it.
    pub fn prefix_for(&self, index: u64) -> u64 {
        index.saturating_sub(self.settings.in_flight - 1)
    }

    /// Returns the proposal of iteration `index`. `None` while results of its prefix are missing, or beyond the end.
    pub fn propose(&self, index: u64) -> Option<Proposal> {
        self.propose_from(index, self.prefix_for(index))
    }

    /// Returns the proposal of iteration `index` from the results before `prefix`. `None` if these are not all
    /// applied.
    pub fn propose_from(&self, index: u64, prefix: u64) -> Option<Proposal> {
        if index >= self.settings.iterations {
            return None;
        }
        let values = self.path.get(usize::try_from(prefix).ok()?)?;
        let draws = self.draws(index);
        let side = |sign: f64| {
            let each = self.settings.parameters.iter().zip(values).zip(&draws);
            each.map(|((parameter, &value), draw)| {
                let perturbation = self.gains_of(parameter, index).perturbation;
                let moved = parameter.scale.coordinate(value) + sign * draw.direction * perturbation;
                let clipped = parameter.scale.value(moved).clamp(parameter.minimum, parameter.maximum);
                // Integer bounds keep the rounded value between them.
                if parameter.whole { (clipped + draw.rounding).floor() } else { clipped }
            })
            .collect()
        };
        Some(Proposal { plus: side(1.0), minus: side(-1.0) })
    }

    /// Records iteration `index`'s wins less losses of the plus side, in any order of iterations; an iteration that
    /// failed has the result 0. Recording the same result again is allowed.
    pub fn record(&mut self, index: u64, wins_less_losses: f64) -> Result<(), ResultError> {
        if index >= self.settings.iterations {
            return Err(ResultError::Unplanned { index, iterations: self.settings.iterations });
        }
        if !wins_less_losses.is_finite() {
            return Err(ResultError::NotFinite { index });
        }
        let recorded = match usize::try_from(index).ok().and_then(|place| self.folded.get(place)) {
            Some(&recorded) => recorded,
            None => *self.waiting.entry(index).or_insert(wins_less_losses),
        };
        if recorded != wins_less_losses {
            return Err(ResultError::Contradiction { index, recorded, offered: wins_less_losses });
        }
        while let Some(result) = self.waiting.remove(&self.prefix()) {
            self.fold(result);
        }
        Ok(())
    }

    fn fold(&mut self, wins_less_losses: f64) {
        let iteration = self.prefix();
        let draws = self.draws(iteration);
        let each = self.settings.parameters.iter().zip(self.values()).zip(&draws);
        let next = each.map(|((parameter, &value), draw)| {
            let from = parameter.scale.coordinate(value);
            let moved = step(from, self.gains_of(parameter, iteration), draw.direction, wins_less_losses);
            parameter.scale.value(moved).clamp(parameter.minimum, parameter.maximum)
        });
        let next = next.collect();
        self.path.push(next);
        self.folded.push(wins_less_losses);
    }

    /// Returns the gains of a parameter from its final values: c = c_end K^gamma, a = r_end c_end^2 (A + K)^alpha, A
    /// = K / 10.
    fn gains_of(&self, parameter: &Parameter, iteration: u64) -> Gains {
        let last = self.settings.iterations as f64;
        let stability = 0.1 * last;
        let end = parameter.final_perturbation;
        let a = parameter.final_rate * end * end * libm::pow(stability + last, ALPHA);
        gains(a, end * libm::pow(last, GAMMA), stability, iteration)
    }

    fn draws(&self, iteration: u64) -> Vec<Draw> {
        let mut random = seeded(self.settings.seed, iteration);
        let mut draw = || Draw {
            direction: if random.random::<bool>() { 1.0 } else { -1.0 },
            rounding: random.random::<f64>(),
        };
        (0..self.settings.parameters.len()).map(|_| draw()).collect()
    }
}

/// The random numbers of an iteration for one parameter.
struct Draw {
    /// The side with the greater value: 1 or -1.
    direction: f64,
    /// Added before rounding down. Both sides share it: each is unbiased, and their distance varies least.
    rounding: f64,
}

fn validate(parameter: &Parameter) -> Result<(), SettingsError> {
    let &Parameter { start, minimum, maximum, final_perturbation: perturbation, final_rate: rate, .. } =
        parameter;
    let name = || parameter.name.clone();
    if ![start, minimum, maximum, perturbation, rate].iter().all(|number| number.is_finite()) {
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
    if perturbation <= 0.0 || rate <= 0.0 {
        return Err(SettingsError::Gains { parameter: name(), perturbation, rate });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str, whole: bool) -> Parameter {
        Parameter {
            name: name.to_owned(),
            start: 3.0,
            minimum: 0.0,
            maximum: 10.0,
            scale: Scale::Linear,
            final_perturbation: 1.3,
            final_rate: 0.02,
            whole,
        }
    }

    fn settings() -> Settings {
        let parameters = vec![parameter("a", false), parameter("b", true)];
        Settings { parameters, iterations: 40, in_flight: 5, seed: 9 }
    }

    #[test]
    fn gains_match_published_rows() {
        let at_two = gains(0.2, 1.6, 25.0, 2);
        assert!((at_two.perturbation - 1.43196).abs() < 5e-6, "{at_two:?}");
        assert!((at_two.rate - 0.013_121_4).abs() < 5e-8, "{at_two:?}");
        assert_eq!(step(10.0, Gains { perturbation: 2.0, rate: 0.5 }, 1.0, 3.0), 13.0);
    }

    #[test]
    fn last_iteration_has_final_gains() {
        let tune = Tune::new(settings()).unwrap();
        let last = tune.gains_of(&tune.settings.parameters[0], 39);
        assert!((last.perturbation - 1.3).abs() < 1e-12);
        // (A + K)^alpha / (A + k + 1)^alpha is one at k = K - 1.
        assert!((last.rate - 0.02).abs() < 1e-12);
    }

    /// The path and all proposals do not depend on the order in which results arrive.
    #[test]
    fn path_is_independent_of_arrival_order() {
        let result = |proposal: &Proposal, index: u64| {
            let sum: f64 = proposal.plus.iter().sum::<f64>() - proposal.minus.iter().sum::<f64>();
            (2.0 * (sum * 3.0 + index as f64 * 0.7).sin()).round()
        };
        let mut paths = Vec::new();
        for order in 0..20 {
            let mut random = seeded(order, 0);
            let mut tune = Tune::new(settings()).unwrap();
            let mut flying: Vec<(u64, Proposal)> = Vec::new();
            let mut next = 0;
            while !tune.finished() {
                while let Some(proposal) = tune.propose(next) {
                    flying.push((next, proposal));
                    next += 1;
                }
                assert!(flying.len() as u64 <= tune.settings.in_flight);
                let landed = random.random_range(0..flying.len());
                let (index, proposal) = flying.swap_remove(landed);
                tune.record(index, result(&proposal, index)).unwrap();
            }
            paths.push(tune.path().to_vec());
        }
        assert_eq!(paths[0].len(), 41);
        assert!(paths.iter().all(|path| *path == paths[0]));
    }

    #[test]
    fn proposals_are_bounded_and_unbiased() {
        let mut wide = settings();
        wide.iterations = 20_000;
        wide.parameters[1].start = 3.3;
        wide.parameters[0].start = 10.0;
        let tune = Tune::new(wide).unwrap();
        let (mut middle, mut distance) = (0.0, 0.0);
        for index in 0..20_000 {
            let Proposal { plus, minus } = tune.propose_from(index, 0).unwrap();
            for value in plus.iter().chain(&minus) {
                assert!((0.0..=10.0).contains(value));
            }
            assert_eq!((plus[1].fract(), minus[1].fract()), (0.0, 0.0));
            middle += (plus[1] + minus[1]) / 2.0 / 20_000.0;
            let perturbation = tune.gains_of(&tune.settings.parameters[1], index).perturbation;
            if perturbation < 3.0 {
                distance += ((plus[1] - minus[1]).abs() - 2.0 * perturbation) / 20_000.0;
            }
        }
        assert!((middle - 3.3).abs() < 0.02, "{middle}");
        assert!(distance.abs() < 0.02, "{distance}");
    }

    #[test]
    fn rejects_invalid_results() {
        let mut tune = Tune::new(settings()).unwrap();
        tune.record(2, 1.0).unwrap();
        tune.record(2, 1.0).unwrap();
        assert_eq!(tune.prefix(), 0);
        let contradiction = ResultError::Contradiction { index: 2, recorded: 1.0, offered: -1.0 };
        assert_eq!(tune.record(2, -1.0), Err(contradiction.clone()));
        assert_eq!(tune.record(40, 0.0), Err(ResultError::Unplanned { index: 40, iterations: 40 }));
        assert_eq!(tune.record(1, f64::NAN), Err(ResultError::NotFinite { index: 1 }));
        tune.record(0, 0.0).unwrap();
        tune.record(1, 2.0).unwrap();
        assert_eq!(tune.prefix(), 3);
        assert_eq!(tune.record(2, -1.0), Err(contradiction), "a folded result stands as well");
        assert_eq!(tune.propose(40), None);
        assert_eq!(tune.propose(8), None, "index 8 waits for the prefix 4");
        assert!(tune.propose(7).is_some());
    }

    #[test]
    fn rejects_invalid_settings() {
        type Change = fn(&mut Settings);
        let changes: [(Change, &str); 10] = [
            (|s| s.parameters.clear(), "name at least one"),
            (|s| s.iterations = 0, "at least one iteration"),
            (|s| s.in_flight = 0, "in flight"),
            (|s| s.parameters[0].start = f64::NAN, "finite"),
            (|s| s.parameters[0].maximum = 0.0, "less than the maximum"),
            (|s| s.parameters[0].start = 11.0, "start at a value from 0 to 10, not at 11"),
            (|s| s.parameters[1].minimum = 0.5, "whole bounds, not 0.5"),
            (|s| s.parameters[0].final_perturbation = 0.0, "must be positive"),
            (|s| s.parameters[0].final_rate = -0.1, "must be positive"),
            (|s| s.parameters[0].minimum = f64::NEG_INFINITY, "finite"),
        ];
        for (change, message) in changes {
            let mut changed = settings();
            change(&mut changed);
            let error = Tune::new(changed).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
