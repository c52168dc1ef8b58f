//! Simultaneous perturbation stochastic approximation: tuning many parameters at once by self-play (Spall,
//! "Multivariate stochastic approximation using a simultaneous perturbation gradient approximation", 1992; gains
//! after Spall, "Implementation of the SPSA algorithm", 1998, with the two final values that engine tuners state).
//!
//! A tune is a function of its settings and of the results by index: iteration `i` depends on the seed, `i` and the
//! results of a fixed prefix of iterations, so that many can be in flight and the path does not depend on the order
//! of arrival. Games are played elsewhere.
//!
//! No gain needs to be set. The perturbation is a share of the range, which the first iterations reduce until the
//! perturbed player is not much weaker than the unperturbed one; the rate follows from the number of iterations and the
//! spread of the results. Once the path has converged, the answer is the mean of its end.

mod settings;

use std::collections::BTreeMap;

use rand::RngExt as _;
use thiserror::Error;

pub use self::settings::{Parameter, Settings, SettingsError};
use crate::distribution::{chi_square_tail, seeded};

/// The decay of the step gain.
pub const ALPHA: f64 = 0.602;
/// The decay of the perturbation.
pub const GAMMA: f64 = 0.101;

/// The perturbation in the last iteration as a share of the range, before calibration.
const SHARE: f64 = 0.15;
/// The least perturbation of an integer parameter, so that the sides differ.
const LEAST_WHOLE: f64 = 0.5;
/// The number of iterations after which a calibration decides.
const ROUND: u32 = 16;
/// The mean score by which the perturbed player may fall behind the unperturbed one: to 25 %, 190 Elo.
const TOO_FAR: f64 = 0.25;
/// The share of the iterations after which no calibration starts again.
const CALIBRATION: f64 = 0.2;
/// The rate in the last iteration for one iteration and results with a mean square of one.
const RATE: f64 = 1.0;
/// The mean square of a bout's wins less losses between equal players, and the number of iterations that it counts as.
const SQUARE: f64 = 1.6;
const SQUARE_WEIGHT: f64 = 5.0;
/// The ends of the path that are averaged if they have converged: the last half, quarter or eighth.
const TAILS: [u64; 3] = [2, 4, 8];
/// The share of iterations with the result 0 from which the parameters have no visible effect.
const IDENTICAL: f64 = 0.95;
/// The probability below which chance does not explain a path.
const CHANCE: f64 = 0.05;

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

/// What a path shows about the parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Movement {
    /// So many iterations of all had the result 0, almost all.
    Identical {
        /// The number of iterations with the result 0.
        zeros: u64,
    },
    /// Chance alone would move as far with this probability.
    Chance {
        /// The probability.
        p: f64,
    },
    /// The path moved further than chance explains.
    Directed,
}

/// The perturbations from a prefix on.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Phase {
    /// The factor of the perturbations that are shares of the range.
    factor: f64,
    /// Whether the minus side is the unperturbed player.
    calibrating: bool,
}

/// A tune in progress.
#[derive(Clone, Debug)]
pub struct Tune {
    settings: Settings,
    /// The parameters after each applied prefix, the start first.
    path: Vec<Vec<f64>>,
    /// The results of the applied prefix.
    folded: Vec<f64>,
    /// The sum of their squares.
    squares: f64,
    /// The phases, each with the prefix from which it applies.
    phases: Vec<(u64, Phase)>,
    /// The results of the present round of calibration: their number, and the sum of the scores lost.
    round: (u32, f64),
    /// Results beyond the applied prefix.
    waiting: BTreeMap<u64, f64>,
}

impl Tune {
    /// Creates a tune at its start, or rejects invalid settings.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.validate()?;
        let start = settings.parameters.iter().map(|parameter| parameter.start).collect();
        let calibrating = settings.parameters.iter().any(|parameter| parameter.final_perturbation.is_none());
        Ok(Tune {
            settings,
            path: vec![start],
            folded: Vec::new(),
            squares: 0.0,
            phases: vec![(0, Phase { factor: 1.0, calibrating })],
            round: (0, 0.0),
            waiting: BTreeMap::new(),
        })
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

    /// Returns the parameters after the applied prefix.
    pub fn values(&self) -> &[f64] {
        self.path.last().expect("the path begins with the start")
    }

    /// Returns the parameters after each applied prefix, the start first.
    pub fn path(&self) -> &[Vec<f64>] {
        &self.path
    }

    /// Returns the tuned values: the mean of the end of the path that has converged, or its last values.
    pub fn answer(&self) -> Vec<f64> {
        let Some(count) = self.converged() else { return self.values().to_vec() };
        let tail = &self.path[self.path.len() - count as usize..];
        let mean = |(place, parameter): (usize, &Parameter)| {
            let sum: f64 = tail.iter().map(|values| parameter.scale.coordinate(values[place])).sum();
            parameter.scale.value(sum / count as f64).clamp(parameter.minimum, parameter.maximum)
        };
        self.settings.parameters.iter().enumerate().map(mean).collect()
    }

    /// Returns the number of last iterations over which the path has converged: the greatest of the last half, quarter
    /// or eighth in which chance explains the drift with a probability of 16 % or more. The mean of a path that still
    /// climbs would lie behind its end (Polyak and Juditsky, "Acceleration of stochastic approximation by averaging",
    /// 1992).
    pub fn converged(&self) -> Option<u64> {
        let degrees = self.settings.parameters.len() as f64;
        // The chi-square quantile of one standard deviation (Wilson and Hilferty, 1931), the same on every machine.
        let spread = 2.0 / (9.0 * degrees);
        let root = 1.0 - spread + spread.sqrt();
        let most = degrees * root * root * root;
        let tails = TAILS.into_iter().map(|parts| self.prefix() / parts).filter(|&count| count > 0);
        tails.into_iter().find(|&count| self.drift(self.prefix() - count, self.prefix()) <= most)
    }

    /// Returns what the path shows: whether all of it, its first half or its first quarter moved further than chance
    /// explains.
    pub fn movement(&self) -> Movement {
        let zeros = self.folded.iter().filter(|&&result| result == 0.0).count() as u64;
        if zeros as f64 >= IDENTICAL * self.prefix() as f64 {
            return Movement::Identical { zeros };
        }
        let degrees = self.settings.parameters.len() as f64;
        let parts = [1, 2, 4].map(|parts| chi_square_tail(self.drift(0, self.prefix() / parts), degrees));
        let p = parts.into_iter().fold(1.0, f64::min) * parts.len() as f64;
        if p < CHANCE { Movement::Directed } else { Movement::Chance { p: p.min(1.0) } }
    }

    /// Returns the squared drift over some iterations, which has a chi-square distribution with a degree of freedom for
    /// each parameter if the parameters have no effect.
    fn drift(&self, from: u64, to: u64) -> f64 {
        let mut sums = vec![0.0; self.settings.parameters.len()];
        let mut squares = 0.0;
        for (iteration, result) in (from..to).zip(&self.folded[from as usize..to as usize]) {
            squares += result * result;
            for (sum, draw) in
                sums.iter_mut().zip(self.draws(iteration, self.phase_at(self.prefix_for(iteration))))
            {
                *sum += draw.direction * result;
            }
        }
        if squares > 0.0 { sums.iter().map(|sum| sum * sum).sum::<f64>() / squares } else { 0.0 }
    }

    /// Returns the prefix on which iteration `index` depends: all but the last `in_flight - 1` iterations before it.
    fn prefix_for(&self, index: u64) -> u64 {
        index.saturating_sub(self.settings.in_flight - 1)
    }

    /// Returns the proposal of iteration `index`. `None` while results of its prefix are missing, or beyond the end.
    pub fn propose(&self, index: u64) -> Option<Proposal> {
        self.propose_from(index, self.prefix_for(index))
    }

    /// Returns the proposal of iteration `index` from the results before `prefix`. `None` if these are not all
    /// applied.
    fn propose_from(&self, index: u64, prefix: u64) -> Option<Proposal> {
        if index >= self.settings.iterations {
            return None;
        }
        let values = self.path.get(usize::try_from(prefix).ok()?)?;
        let phase = self.phase_at(prefix);
        let draws = self.draws(index, phase);
        let side = |sign: f64| {
            let each = self.settings.parameters.iter().zip(values).zip(&draws);
            each.map(|((parameter, &value), draw)| {
                let perturbation = self.gains_of(parameter, index, phase.factor).perturbation;
                let moved = parameter.scale.coordinate(value) + sign * draw.direction * perturbation;
                let clipped = parameter.scale.value(moved).clamp(parameter.minimum, parameter.maximum);
                // Integer bounds keep the rounded value between them.
                if parameter.whole { (clipped + draw.rounding).floor() } else { clipped }
            })
            .collect()
        };
        Some(Proposal { plus: side(1.0), minus: side(if phase.calibrating { 0.0 } else { -1.0 }) })
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
        let (phase, present) = (self.phase_at(self.prefix_for(iteration)), self.phase_at(iteration));
        self.squares += wins_less_losses * wins_less_losses;
        // An iteration with a perturbation that was given up since then does not count.
        let next = if phase.factor == present.factor {
            let draws = self.draws(iteration, phase);
            let each = self.settings.parameters.iter().zip(self.values()).zip(&draws);
            let next = each.map(|((parameter, &value), draw)| {
                let from = parameter.scale.coordinate(value);
                let gains = self.gains_of(parameter, iteration, phase.factor);
                let moved = step(from, gains, draw.direction, wins_less_losses);
                parameter.scale.value(moved).clamp(parameter.minimum, parameter.maximum)
            });
            next.collect()
        } else {
            self.values().to_vec()
        };
        self.path.push(next);
        self.folded.push(wins_less_losses);
        if present.calibrating && phase == present {
            self.calibrate(present.factor, wins_less_losses);
        }
    }

    /// Counts a result of the perturbed player against the unperturbed one. At the end of a round, the calibration ends, or
    /// the tune returns to its start with half the perturbation.
    fn calibrate(&mut self, factor: f64, wins_less_losses: f64) {
        let (count, lost) = &mut self.round;
        *count += 1;
        *lost -= wins_less_losses / (4.0 * self.settings.pairs as f64);
        if *count < ROUND {
            return;
        }
        let too_far = *lost > TOO_FAR * f64::from(*count);
        self.round = (0, 0.0);
        let again = too_far && self.prefix() as f64 <= CALIBRATION * self.settings.iterations as f64;
        let factor = if again { 0.5 * factor } else { factor };
        self.phases.push((self.prefix(), Phase { factor, calibrating: again }));
        if again {
            let start = self.path[0].clone();
            self.path.pop();
            self.path.push(start);
        }
    }

    /// Returns the phase of proposals from the results before `prefix`. Precondition: these are applied.
    fn phase_at(&self, prefix: u64) -> Phase {
        let after = self.phases.partition_point(|(from, _)| *from <= prefix);
        self.phases[after - 1].1
    }

    /// Returns the rate in the last iteration. Without a set one, chance moves a parameter by about a perturbation over
    /// the whole tune.
    fn final_rate(&self) -> f64 {
        self.settings.final_rate.unwrap_or_else(|| {
            let prior = SQUARE * self.settings.pairs as f64;
            let seen = self.folded.len() as f64;
            let square = (SQUARE_WEIGHT * prior + self.squares) / (SQUARE_WEIGHT + seen);
            RATE / (square * self.settings.iterations as f64).sqrt()
        })
    }

    /// Returns the perturbation of a parameter in the last iteration.
    fn final_perturbation(parameter: &Parameter, factor: f64) -> f64 {
        parameter.final_perturbation.unwrap_or_else(|| {
            let [low, high] =
                [parameter.minimum, parameter.maximum].map(|end| parameter.scale.coordinate(end));
            let share = factor * SHARE * (high - low);
            if parameter.whole { share.max(LEAST_WHOLE) } else { share }
        })
    }

    /// Returns the gains of a parameter from its final values: c = c_end K^gamma, a = r_end c_end^2 (A + K)^alpha, A
    /// = K / 10.
    fn gains_of(&self, parameter: &Parameter, iteration: u64, factor: f64) -> Gains {
        let last = self.settings.iterations as f64;
        let stability = 0.1 * last;
        let end = Self::final_perturbation(parameter, factor);
        let a = self.final_rate() * end * end * libm::pow(stability + last, ALPHA);
        gains(a, end * libm::pow(last, GAMMA), stability, iteration)
    }

    /// Draws the directions of an iteration. In a calibration every second iteration goes the opposite way, so that the slope
    /// cancels and only what a perturbation of this size costs remains.
    fn draws(&self, iteration: u64, phase: Phase) -> Vec<Draw> {
        let opposite = phase.calibrating && !iteration.is_multiple_of(2);
        let mut random = seeded(self.settings.seed, iteration - u64::from(opposite));
        let ahead = if opposite { -1.0 } else { 1.0 };
        let mut draw = || Draw {
            direction: if random.random::<bool>() { ahead } else { -ahead },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::Scale;

    fn parameter(name: &str, whole: bool) -> Parameter {
        Parameter {
            name: name.to_owned(),
            start: 3.0,
            minimum: 0.0,
            maximum: 10.0,
            scale: Scale::Linear,
            final_perturbation: Some(1.3),
            whole,
        }
    }

    fn settings() -> Settings {
        let parameters = vec![parameter("a", false), parameter("b", true)];
        Settings { parameters, iterations: 40, in_flight: 5, pairs: 1, final_rate: Some(0.02), seed: 9 }
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
        let last = tune.gains_of(&tune.settings.parameters[0], 39, 1.0);
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
            let perturbation = tune.gains_of(&tune.settings.parameters[1], index, 1.0).perturbation;
            if perturbation < 3.0 {
                distance += ((plus[1] - minus[1]).abs() - 2.0 * perturbation) / 20_000.0;
            }
        }
        assert!((middle - 3.3).abs() < 0.02, "{middle}");
        assert!(distance.abs() < 0.02, "{distance}");
    }

    /// Tunes a player that loses `steepness` Elo with the square of the distance from 0.6 of the range, without set gains.
    fn tune_quadratic(parameters: usize, (start, steepness): (f64, f64), iterations: u64, seed: u64) -> Tune {
        let mut settings = Settings { iterations, final_rate: None, seed, ..settings() };
        let free = Parameter { final_perturbation: None, start, ..parameter("free", false) };
        settings.parameters = vec![free; parameters];
        let mut tune = Tune::new(settings).unwrap();
        let elo = |values: &[f64]| {
            let square = |value: &f64| steepness * (value / 10.0 - 0.6) * (value / 10.0 - 0.6);
            -values.iter().map(square).sum::<f64>()
        };
        for index in 0..iterations {
            let Proposal { plus, minus } = tune.propose(index).unwrap();
            let expected = crate::elo::expected_score(elo(&plus) - elo(&minus));
            let mut random = seeded(!seed, index);
            let mut game = || if random.random::<f64>() < expected { 1.0 } else { -1.0 };
            tune.record(index, game() + game()).unwrap();
        }
        tune
    }

    #[test]
    fn tune_without_gains_reaches_optimum() {
        let far =
            |tune: &Tune| tune.answer().iter().map(|value| (value / 10.0 - 0.6).abs()).fold(0.0, f64::max);
        for seed in 0..10 {
            let tune = tune_quadratic(4, (1.0, 400.0), 1600, seed);
            assert!(far(&tune) < 0.25, "{:?}", tune.answer());
            assert_eq!(tune.movement(), Movement::Directed);
            assert_eq!(tune.phases.last().unwrap().1, Phase { factor: 1.0, calibrating: false });
            // On so steep a hill, a share of the range is too great a perturbation.
            let steep = tune_quadratic(4, (5.5, 20_000.0), 1600, seed);
            assert!(steep.phases.last().unwrap().1.factor < 0.5, "{:?}", steep.phases);
            assert!(far(&steep) < 0.1, "{:?}", steep.answer());
        }
    }

    #[test]
    fn calibration_returns_to_start() {
        let mut free = settings();
        free.parameters[0].final_perturbation = None;
        free.iterations = 400;
        let mut tune = Tune::new(free).unwrap();
        for index in 0..400 {
            let Proposal { minus, plus } = tune.propose(index).unwrap();
            let reached = &tune.path()[index.saturating_sub(4) as usize];
            let phase = tune.phase_at(index.saturating_sub(4));
            assert_eq!(minus[0] == reached[0], phase.calibrating, "the minus side is the unperturbed player");
            let distance = (plus[0] - reached[0]).abs();
            let end = SHARE * 10.0 * phase.factor * (400.0_f64 / (index as f64 + 1.0)).powf(GAMMA);
            assert!(distance < end + 1e-9);
            tune.record(index, if phase.calibrating { -2.0 } else { 0.0 }).unwrap();
        }
        let factors: Vec<f64> = tune.phases.iter().map(|(_, phase)| phase.factor).collect();
        assert_eq!(
            factors,
            [1.0, 0.5, 0.25, 0.125, 0.0625, 0.0625],
            "until a fifth is played: {:?}",
            tune.phases
        );
        let (from, _) = tune.phases[1];
        assert_eq!(tune.path()[from as usize], tune.path()[0]);
    }

    #[test]
    fn answer_is_the_mean_of_a_converged_end() {
        let run = |result: fn(u64, f64) -> f64| {
            let mut tune = Tune::new(settings()).unwrap();
            for index in 0..40 {
                let direction = tune.draws(index, tune.phase_at(0))[0].direction;
                tune.record(index, result(index, direction)).unwrap();
            }
            tune
        };
        let climbing = run(|_, direction| 2.0 * direction);
        assert_eq!((climbing.converged(), climbing.answer()), (None, climbing.values().to_vec()));
        assert_eq!(climbing.movement(), Movement::Directed);
        let resting = run(|index, direction| if index < 20 { 2.0 * direction } else { 0.0 });
        assert_eq!(resting.converged(), Some(20));
        let late = run(|index, direction| if index < 28 { 2.0 * direction } else { 0.1 * direction });
        assert_eq!(late.converged(), None);
        let alternating = run(|index, direction| if index % 2 == 0 { direction } else { -direction });
        let mean = alternating.path()[21..].iter().map(|values| values[0]).sum::<f64>() / 20.0;
        assert_eq!(alternating.converged(), Some(20));
        assert!((alternating.answer()[0] - mean).abs() < 1e-12 && mean != alternating.values()[0]);
        assert!(matches!(alternating.movement(), Movement::Chance { .. }), "{:?}", alternating.movement());
        assert_eq!(run(|_, _| 0.0).movement(), Movement::Identical { zeros: 40 });
    }

    #[test]
    fn paths_by_chance_are_rarely_called_directed() {
        let directed = |seed| tune_quadratic(3, (1.0, 0.0), 200, seed).movement() == Movement::Directed;
        let called = (0..200).filter(|&seed| directed(seed)).count();
        // More than 18 of 200 have a probability of 0.5 % at 5 %.
        assert!(called <= 18, "{called}");
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
            (|s| s.parameters[0].final_perturbation = Some(0.0), "must be positive"),
            (|s| s.final_rate = Some(-0.1), "must be positive"),
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
