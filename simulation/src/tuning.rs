//! Tunes of a simulated player with known best parameters.
//!
//! In the tunes that compare the methods, the player loses Elo with the square of its distance from the optimum, every
//! parameter counts equally, and games are won by the logistic of the Elo difference. There are no draws, which would only
//! reduce the noise. The choice of trials of a Gaussian process is measured on [`Hill`]s, which are shaped like those of
//! real games, with bouts of two games over unbalanced openings and with draws.

use rand::RngExt as _;

use agon_stats::acquisition::{Dimension, Space, SpaceError, Trial};
use agon_stats::distribution::{Random, seeded};
use agon_stats::scale::Scale;
use agon_stats::spsa::{Parameter, Settings, SettingsError, Tune};

use crate::world::World;

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
        final_perturbation: None,
        whole: number % 2 == 1,
    };
    let tune_once = |seed: u64| {
        let parameters = (0..parameters).map(parameter).collect();
        let mut tune =
            Tune::new(Settings { parameters, iterations, in_flight, pairs: 1, final_rate: None, seed })?;
        for index in 0..iterations {
            let proposal = tune.propose(index).expect("all results before this one are recorded");
            let mut random = seeded(!seed, index);
            let result = play(loss(&proposal.plus), loss(&proposal.minus), 2, &mut random);
            tune.record(index, result).expect("each iteration is recorded once");
        }
        let (before, after) = (loss(&tune.path()[0]), loss(&tune.answer()));
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
                trials.push(Trial {
                    values,
                    bouts: games,
                    score,
                    squares: score * (1.0 - score) * games as f64,
                });
            }
        }
        let answer = space.recommend(&trials, seed)?.values;
        let played = trials.len() as u64 * games;
        Ok(Tuned { seed, games: played, loss_before: start_loss, loss_after: loss(&answer) })
    };
    seeds.map(tune_once).collect()
}

/// The Elo of a player by its coordinates in the unit cube. The optimum moves a little with the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hill {
    /// UCT's constant from 0.1 to 8 in connect-four: an asymmetric hill of 160 Elo with its top between 0.7 and 1.5.
    ConnectFour,
    /// The constant in go: a broad hill of 50 Elo.
    Go,
    /// A hill of 200 Elo with its top near the lower bound.
    Edge,
    /// The constant in connect-four and a second parameter.
    Two,
    /// A parameter that does nothing.
    Null,
}

/// The bounds of the constant.
const CONSTANT: [f64; 2] = [0.1, 8.0];
/// The coordinate of the least optimum of the connect-four hill, and the room above it.
const LEAST_TOP: f64 = 0.44;
const TOP_ROOM: f64 = 0.18;
/// The coordinate of the opponent's constant, 5, and the opponent's weight.
const OPPONENT: f64 = 0.893;
const OPPONENT_WEIGHT: f64 = 0.2;

impl Hill {
    /// All hills.
    pub const ALL: [Hill; 5] = [Hill::ConnectFour, Hill::Go, Hill::Edge, Hill::Two, Hill::Null];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Hill::ConnectFour => "connect-four",
            Hill::Go => "go",
            Hill::Edge => "edge",
            Hill::Two => "two parameters",
            Hill::Null => "no effect",
        }
    }

    fn elo(self, top: f64, point: &[f64]) -> f64 {
        let side = |distance: f64, height: f64, [left, right]: [f64; 2]| {
            let width = if distance < 0.0 { left } else { right };
            height * ((-0.5 * distance * distance / (width * width)).exp() - 1.0)
        };
        let distance = point[0] - top;
        match self {
            Hill::ConnectFour => side(distance, 160.0, [0.25, 0.35]),
            Hill::Go => side(distance, 50.0, [0.3, 0.5]),
            Hill::Edge => side(point[0] - 0.6 * (top - LEAST_TOP), 200.0, [0.4; 2]),
            Hill::Two => side(distance, 160.0, [0.25, 0.35]) - 100.0 * (point[1] - 0.6) * (point[1] - 0.6),
            Hill::Null => 0.0,
        }
    }

    fn best(self, top: f64) -> Vec<f64> {
        let first = if self == Hill::Edge { 0.6 * (top - LEAST_TOP) } else { top };
        if self == Hill::Two { vec![first, 0.6] } else { vec![first] }
    }

    fn space(self) -> Result<Space, SpaceError> {
        let side = |name: &str, [minimum, maximum]: [f64; 2], scale| {
            let name = name.to_owned();
            Dimension { name, minimum, maximum, whole: false, scale }
        };
        let mut dimensions = vec![side("constant", CONSTANT, Scale::Log)];
        if self == Hill::Two {
            dimensions.push(side("weight", [0.0, 1.0], Scale::Linear));
        }
        Space::new(dimensions)
    }

    fn world(self, top: f64, point: &[f64]) -> World {
        let ratings = vec![self.elo(top, point), self.elo(top, &[OPPONENT, OPPONENT_WEIGHT])];
        World { ratings, seat_advantage: 30.0, draw_rate: 0.15, openings: vec![-100.0, 0.0, 100.0] }
    }
}

fn coordinate(constant: f64) -> f64 {
    (constant / CONSTANT[0]).ln() / (CONSTANT[1] / CONSTANT[0]).ln()
}

/// The result of one simulated search of a hill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Climb {
    /// The Elo of the opponent below the top.
    pub loss_before: f64,
    /// The Elo of the answer below the top.
    pub loss: f64,
    /// The greatest share of the trials whose constants lie within a factor of 1.25.
    pub crowding: f64,
    /// Whether the interval of the expected score contains the score of the answer.
    pub score_covered: bool,
    /// Whether each interval of the best values contains the top.
    pub best_covered: bool,
}

/// Searches a hill with a Gaussian process in `trials` trials, in batches of `batch`, of `bouts` bouts, once per seed.
pub fn simulate_hill(
    hill: Hill,
    (trials, batch, bouts): (usize, usize, u64),
    seeds: std::ops::Range<u64>,
) -> Result<Vec<Climb>, SpaceError> {
    let space = hill.space()?;
    let place = |values: &[f64]| [&[coordinate(values[0])], &values[1..]].concat();
    let search = |seed: u64| {
        let mut random = seeded(!seed, 0);
        let top = LEAST_TOP + TOP_ROOM * random.random::<f64>();
        let mut played: Vec<Trial> = Vec::new();
        while played.len() < trials {
            for values in space.suggest(&played, batch.min(trials - played.len()), seed)? {
                let pairs = hill.world(top, &place(&values)).pairs(0, 1, bouts, &mut random);
                let scores =
                    pairs.0.iter().zip(0_u8..).flat_map(|(&count, half)| {
                        std::iter::repeat_n(f64::from(half) / 4.0, count as usize)
                    });
                let scores: Vec<f64> = scores.collect();
                played.extend(Trial::new(values, &scores));
            }
        }
        let answer = space.recommend(&played, seed)?;
        let truth = hill.world(top, &place(&answer.values)).score(0, 1);
        let best = hill.best(top);
        let lows = place(&answer.best.iter().map(|one| one.low).collect::<Vec<f64>>());
        let highs = place(&answer.best.iter().map(|one| one.high).collect::<Vec<f64>>());
        let inside = |place: usize| (lows[place] - 1e-9..=highs[place] + 1e-9).contains(&best[place]);
        Ok(Climb {
            loss_before: hill.elo(top, &best) - hill.elo(top, &[OPPONENT, OPPONENT_WEIGHT]),
            loss: hill.elo(top, &best) - hill.elo(top, &place(&answer.values)),
            crowding: crowding(played.iter().map(|trial| trial.values[0]).collect()),
            score_covered: (answer.score.low..=answer.score.high).contains(&truth),
            best_covered: (0..best.len()).all(inside),
        })
    };
    seeds.map(search).collect()
}

/// Climbs a hill by SPSA without set gains in `iterations` bouts between the two sides, once per seed, from the point of the
/// opponent of [`simulate_hill`].
pub fn climb_by_spsa(
    hill: Hill,
    iterations: u64,
    seeds: std::ops::Range<u64>,
) -> Result<Vec<Tuned>, SettingsError> {
    let parameter = |name: &str, start: f64, [minimum, maximum]: [f64; 2], scale| Parameter {
        name: name.to_owned(),
        start,
        minimum,
        maximum,
        scale,
        final_perturbation: None,
        whole: false,
    };
    let constant = CONSTANT[0] * (CONSTANT[1] / CONSTANT[0]).powf(OPPONENT);
    let mut parameters = vec![parameter("constant", constant, CONSTANT, Scale::Log)];
    if hill == Hill::Two {
        parameters.push(parameter("weight", OPPONENT_WEIGHT, [0.0, 1.0], Scale::Linear));
    }
    let place = |values: &[f64]| [&[coordinate(values[0])], &values[1..]].concat();
    let climb = |seed: u64| {
        let mut random = seeded(!seed, 0);
        let top = LEAST_TOP + TOP_ROOM * random.random::<f64>();
        let elo = |values: &[f64]| hill.elo(top, &place(values));
        let (parameters, final_rate) = (parameters.clone(), None);
        let mut tune =
            Tune::new(Settings { parameters, iterations, in_flight: 16, pairs: 1, final_rate, seed })?;
        for index in 0..iterations {
            let proposal = tune.propose(index).expect("all results before this one are recorded");
            let world = World {
                ratings: vec![elo(&proposal.plus), elo(&proposal.minus)],
                ..hill.world(top, &[0.0; 2])
            };
            let halves = world.pairs(0, 1, 1, &mut random).0.iter().position(|&count| count > 0);
            let result = halves.expect("one bout is played") as f64 - 2.0;
            tune.record(index, result).expect("each iteration is recorded once");
        }
        let best = hill.elo(top, &hill.best(top));
        let (before, after) = (best - elo(&tune.path()[0]), best - elo(&tune.answer()));
        Ok(Tuned { seed, games: 2 * iterations, loss_before: before, loss_after: after })
    };
    seeds.map(climb).collect()
}

/// Returns the greatest share of values within a factor of 1.25.
fn crowding(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let crowd = |&low: &f64| values.iter().filter(|&&value| (low..=1.25 * low).contains(&value)).count();
    values.iter().map(crowd).max().unwrap_or(0) as f64 / values.len().max(1) as f64
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
        // 324 Elo below the optimum at the start; 24 trials of 200 games. The integer parameter loses 2 Elo at its
        // best.
        let tunes = simulate_gaussian_process(2, (3, 8, 200), 0..3).unwrap();
        assert!(tunes.iter().all(|tune| tune.loss_before > 300.0 && tune.loss_after < 40.0), "{tunes:?}");
        assert!(mean_loss(&tunes) < 10.0, "{}", mean_loss(&tunes));
    }

    /// 25 trials of 8 bouts in batches of 8.
    const SHORT: (usize, usize, u64) = (25, 8, 8);

    /// Expected improvement over the posterior mean, at one maximum of the likelihood, lost 11.6 Elo on these seeds, with
    /// 53 % of the trials within a factor of 1.25 on average and 72 % at most.
    #[test]
    fn knowledge_gradient_loses_less_than_expected_improvement() {
        let climbs = simulate_hill(Hill::ConnectFour, SHORT, 0..24).unwrap();
        let mean = |of: fn(&Climb) -> f64| climbs.iter().map(of).sum::<f64>() / climbs.len() as f64;
        assert!(mean(|climb| climb.loss) < 0.7 * 11.6, "{climbs:?}");
        assert!(mean(|climb| climb.crowding) < 0.35, "{climbs:?}");
        assert!(climbs.iter().all(|climb| climb.crowding < 0.5), "{climbs:?}");
        // Fewer than 20 of 24 have a probability of 0.6 % if 95 % are covered.
        assert!(climbs.iter().filter(|climb| climb.score_covered).count() >= 20, "{climbs:?}");
        assert!(climbs.iter().filter(|climb| climb.best_covered).count() >= 20, "{climbs:?}");
    }

    #[test]
    fn search_of_a_flat_hill_spreads_and_claims_nothing() {
        let climbs = simulate_hill(Hill::Null, SHORT, 0..12).unwrap();
        assert!(climbs.iter().all(|climb| climb.crowding < 0.5), "{climbs:?}");
        // Fewer than 9 of 12 have a probability of 0.2 % if 95 % are covered.
        assert!(climbs.iter().filter(|climb| climb.score_covered).count() >= 9, "{climbs:?}");
        assert!(climbs.iter().filter(|climb| climb.best_covered).count() >= 9, "{climbs:?}");
    }
}
