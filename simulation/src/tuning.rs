//! Tunes of a simulated player with known best parameters.
//!
//! The player loses Elo with the square of its distance from the optimum, every parameter counts equally, and games
//! are won by the logistic of the Elo difference. There are no draws, which would only reduce the noise.

use rand::RngExt as _;

use agon_stats::acquisition::{Dimension, Space, SpaceError, Trial};
use agon_stats::distribution::{Random, seeded};
use agon_stats::scale::Scale;
use agon_stats::spsa::{Parameter, Settings, SettingsError, Tune};

/// Elo lost at one unit from the optimum of one parameter; bounds are 0 and 10.
const LOSS: f64 = 8.0;
/// The start of every parameter.
const START: f64 = 2.0;
/// The optimum of every parameter.
const OPTIMUM: f64 = 6.5;

/// The result of one simulated tune.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuned {
    /// The seed of the tune and of its games.
    pub seed: u64,
    /// The number of games.
    pub games: u64,
    /// The Elo distance of the start from the optimum.
    pub loss_before: f64,
    /// The Elo distance of the result from the optimum.
    pub loss_after: f64,
}

fn loss(values: &[f64]) -> f64 {
    values.iter().map(|value| LOSS * (value - OPTIMUM) * (value - OPTIMUM)).sum()
}

/// Returns wins less losses of `games` games between players at these Elo distances from the optimum.
fn play(first_loss: f64, second_loss: f64, games: u64, random: &mut Random) -> f64 {
    let probability = 1.0 / (1.0 + 10_f64.powf((first_loss - second_loss) / 400.0));
    let wins = (0..games).filter(|_| random.random::<f64>() < probability).count() as f64;
    2.0 * wins - games as f64
}

/// Tunes `parameters` parameters by SPSA in `iterations` bouts of two games, once per seed. Results arrive late, as
/// with `in_flight` bouts in progress.
pub fn simulate_spsa(
    parameters: usize,
    iterations: u64,
    in_flight: u64,
    seeds: std::ops::Range<u64>,
) -> Result<Vec<Tuned>, SettingsError> {
    let parameter = |number: usize| Parameter {
        name: format!("parameter {number}"),
        start: START,
        minimum: 0.0,
        maximum: 10.0,
        scale: Scale::Linear,
        final_perturbation: 1.0,
        final_rate: 0.02,
        whole: number % 2 == 1,
    };
    let tune_once = |seed: u64| {
        let parameters = (0..parameters).map(parameter).collect();
        let mut tune = Tune::new(Settings { parameters, iterations, in_flight, seed })?;
        for index in 0..iterations {
            let proposal = tune.propose(index).expect("all results before this one are recorded");
            let mut random = seeded(!seed, index);
            let result = play(loss(&proposal.plus), loss(&proposal.minus), 2, &mut random);
            tune.record(index, result).expect("each iteration is recorded once");
        }
        let (before, after) = (loss(&tune.path()[0]), loss(tune.values()));
        Ok(Tuned { seed, games: 2 * iterations, loss_before: before, loss_after: after })
    };
    seeds.map(tune_once).collect()
}

/// Tunes `parameters` parameters with a Gaussian process in `batches` batches of `batch` trials of `games` games
/// against the start, once per seed.
pub fn simulate_gaussian_process(
    parameters: usize,
    (batches, batch, games): (usize, usize, u64),
    seeds: std::ops::Range<u64>,
) -> Result<Vec<Tuned>, SpaceError> {
    let dimension = |number: usize| Dimension {
        name: format!("parameter {number}"),
        minimum: 0.0,
        maximum: 10.0,
        whole: number % 2 == 1,
        scale: Scale::Linear,
    };
    let space = Space::new((0..parameters).map(dimension).collect())?;
    let start_loss = loss(&vec![START; parameters]);
    let tune_once = |seed: u64| {
        let mut trials: Vec<Trial> = Vec::new();
        for number in 0..batches {
            let mut random = seeded(!seed, number as u64);
            for values in space.suggest(&trials, batch, seed)? {
                let result = play(loss(&values), start_loss, games, &mut random);
                let score = 0.5 + 0.5 * result / games as f64;
                // The binomial variance with one more win and loss, so that a clean score is not certain.
                let smoothed = (score * games as f64 + 1.0) / (games as f64 + 2.0);
                trials.push(Trial { values, score, variance: smoothed * (1.0 - smoothed) / games as f64 });
            }
        }
        let answer = space.recommend(&trials, seed)?.values;
        let played = trials.len() as u64 * games;
        Ok(Tuned { seed, games: played, loss_before: start_loss, loss_after: loss(&answer) })
    };
    seeds.map(tune_once).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_loss(tunes: &[Tuned]) -> f64 {
        tunes.iter().map(|tune| tune.loss_after).sum::<f64>() / tunes.len() as f64
    }

    #[test]
    fn spsa_converges() {
        // 324 Elo below the optimum at the start; 10,000 games.
        let tunes = simulate_spsa(2, 5000, 16, 0..20).unwrap();
        assert!(tunes.iter().all(|tune| tune.loss_before > 300.0 && tune.loss_after < 20.0), "{tunes:?}");
        assert!(mean_loss(&tunes) < 5.0, "{}", mean_loss(&tunes));
    }

    #[test]
    fn gaussian_process_converges() {
        // 324 Elo below the optimum at the start; 48 trials of 100 games. The integer parameter loses 2 Elo at its
        // best.
        let tunes = simulate_gaussian_process(2, (6, 8, 100), 0..20).unwrap();
        assert!(tunes.iter().all(|tune| tune.loss_before > 300.0 && tune.loss_after < 40.0), "{tunes:?}");
        assert!(mean_loss(&tunes) < 10.0, "{}", mean_loss(&tunes));
    }
}
