//! Weights from records: an evaluation fitted to how games ended, as a fast start for a tune.
//!
//! Positions are built again by the rules, move by move. Each game counts once, however many positions it has, and a part
//! of the bouts is held out: what the weights say of games that they were not fitted to is what they are worth. Nothing is
//! searched, so that a weight is what a feature says about the end and not what a search makes of it.

use agon_arena::{PlayerConfig, Spec};
use agon_games::random::mix;
use agon_games::{Feature, GAMES, Seat, Turn};
use agon_stats::logistic::{Data, Fit, LogisticError};

use crate::dataset::{Dataset, DatasetError, Run};
use crate::games::{Query, Recording, Recordings};

/// One bout in so many is held out.
const HELD_OUT: u64 = 5;

/// Why no weights can be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegressionError {
    /// The dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The regression.
    #[error(transparent)]
    Fit(#[from] LogisticError),
    /// Runs of several games.
    #[error("{run} is of {game}, and the first run of {first}; weights are of one game")]
    AnotherGame {
        /// The run.
        run: String,
        /// Its game.
        game: String,
        /// That of the first.
        first: String,
    },
    /// A game of many seats.
    #[error("{0} has more than two seats, and who wins is then more than a number")]
    Seats(String),
    /// A feature that the game does not have.
    #[error("{game} has no feature `{name}`; it has {}", .known.join(", "))]
    NoFeature {
        /// The game.
        game: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// A game that the rules do not understand.
    #[error("bout {bout}, game {game} cannot be played; `agon verify` says more: {reason}")]
    Unplayable {
        /// The bout.
        bout: u64,
        /// The game.
        game: u16,
        /// What the rules say.
        reason: String,
    },
    /// There is too little.
    #[error("there are {games} games in {bouts} bouts, and some must be held out; play more")]
    TooFew {
        /// Games found.
        games: u64,
        /// Their bouts.
        bouts: u64,
    },
}

/// Fitted weights and what they are worth.
#[derive(Clone, PartialEq, Debug)]
pub struct Fitted {
    /// The game.
    pub game: String,
    /// Each feature with its usual and its fitted weight.
    pub weights: Vec<(&'static str, f64, f64)>,
    /// Games, and the positions of theirs.
    pub games: u64,
    /// Positions that were looked at.
    pub positions: u64,
    /// Games that were held out.
    pub held_games: u64,
    /// The mean loss of the fitted weights on the games that they were fitted to.
    pub loss: f64,
    /// The mean losses on games that were held out.
    pub held: Losses,
    /// A player with the weights, as a table of a spec.
    pub player: String,
}

/// Mean losses: minus the logarithm of the chance that was given to what came out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Losses {
    /// Of the fitted weights.
    pub fitted: f64,
    /// Of the usual weights, each worth as much as fits best.
    pub usual: f64,
    /// Of knowing only who moves first.
    pub blind: f64,
}

/// What is seen of some games.
struct Seen {
    data: Data,
    games: u64,
}

/// Fits the weights of some features, or of all, to the games of some runs of one game.
pub fn regression(dataset: &Dataset, runs: &[Run], features: &[String]) -> Result<Fitted, RegressionError> {
    let specs = runs.iter().map(Run::spec).collect::<Result<Vec<Spec>, _>>().map_err(DatasetError::from)?;
    let game = specs[0].game.clone();
    for (run, spec) in runs.iter().zip(&specs) {
        if spec.game != game {
            let (game, first) = (spec.game.to_string(), game.to_string());
            return Err(RegressionError::AnotherGame { run: run.id.clone(), game, first });
        }
    }
    if game.parameters().seats() != 2 {
        return Err(RegressionError::Seats(game.to_string()));
    }
    let info = GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game");
    let chosen = choose(info.name, info.features, features)?;
    // 1. Positions of all games, some of the bouts apart.
    let mut seen = [(); 2].map(|()| Seen { data: Data::new(chosen.len()), games: 0 });
    let mut bouts = 0;
    for run in runs {
        let query = Query::default();
        let mut last = None;
        for recording in Recordings::new(dataset, run, &query)? {
            let recording = recording?;
            let bout = recording.game.bout;
            bouts += u64::from(last.replace(bout) != Some(bout));
            let held = mix(specs[0].seed, bout).is_multiple_of(HELD_OUT);
            look(&specs[0], &recording, &chosen, &mut seen[usize::from(held)])?;
        }
    }
    let [fitted_to, held] = &seen;
    if fitted_to.games == 0 || held.games == 0 {
        return Err(RegressionError::TooFew { games: fitted_to.games + held.games, bouts });
    }
    // 2. The fit, and what it is worth beside the usual weights and beside none.
    let fit = fitted_to.data.fit()?;
    let usual: Vec<f64> = chosen.iter().map(|&index| info.features[index].weight).collect();
    let as_usual = fitted_to.data.fit_scale(&usual)?;
    let nothing = fitted_to.data.fit_scale(&vec![0.0; chosen.len()])?;
    // 3. In units of the evaluation.
    let factor = factor(&fit, &usual, info.chance);
    let weights: Vec<f64> = fit.coefficients.iter().map(|one| (one * factor * 1e4).round() / 1e4).collect();
    Ok(Fitted {
        weights: chosen
            .iter()
            .zip(&weights)
            .map(|(&index, &weight)| (info.features[index].name, info.features[index].weight, weight))
            .collect(),
        games: fitted_to.games + held.games,
        positions: (fitted_to.data.len() + held.data.len()) as u64,
        held_games: held.games,
        loss: fitted_to.data.loss(&fit),
        held: Losses {
            fitted: held.data.loss(&fit),
            usual: held.data.loss(&as_usual),
            blind: held.data.loss(&nothing),
        },
        player: player(&specs[0], &chosen, &weights),
        game: game.to_string(),
    })
}

fn choose(game: &str, known: &'static [Feature], asked: &[String]) -> Result<Vec<usize>, RegressionError> {
    if asked.is_empty() {
        return Ok((0..known.len()).collect());
    }
    let find = |name: &String| {
        known.iter().position(|feature| feature.name == name).ok_or_else(|| RegressionError::NoFeature {
            game: game.to_string(),
            name: name.clone(),
            known: known.iter().map(|feature| feature.name).collect(),
        })
    };
    asked.iter().map(find).collect()
}

/// Adds the positions of a game in which a player decided by searching, from the view of the first seat.
fn look(
    spec: &Spec,
    recording: &Recording,
    chosen: &[usize],
    seen: &mut Seen,
) -> Result<(), RegressionError> {
    let row = &recording.game;
    let wrong = |reason: String| RegressionError::Unplayable { bout: row.bout, game: row.game, reason };
    let mut position =
        spec.game.start(recording.opening_position()).map_err(|error| wrong(error.to_string()))?;
    let outcome = match row.payoffs[..] {
        [own, other] if own > other => 1.0,
        [own, other] if own < other => 0.0,
        _ => 0.5,
    };
    let mut positions: Vec<Vec<f64>> = Vec::new();
    for (index, mv) in recording.moves.iter().take(recording.played()).enumerate() {
        if mv.search.is_some() && matches!(position.turn(), Turn::Player(_)) {
            let values = position.feature_values(Seat::FIRST);
            positions.push(chosen.iter().map(|&feature| f64::from(values[feature])).collect());
        }
        position.play(index + 1, &mv.mv).map_err(|error| wrong(error.to_string()))?;
    }
    let weight = 1.0 / positions.len().max(1) as f64;
    seen.games += u64::from(!positions.is_empty());
    for values in positions {
        seen.data.add(values, outcome, weight);
    }
    Ok(())
}

/// From the logarithm of odds to units of the evaluation: with chance these are expected payoffs, which grow by half of
/// the odds' logarithm around even; else only ratios count, and the greatest weight stays as great as it usually is.
fn factor(fit: &Fit, usual: &[f64], chance: bool) -> f64 {
    let greatest = |weights: &[f64]| weights.iter().map(|weight| weight.abs()).fold(0.0, f64::max);
    let (found, usual) = (greatest(&fit.coefficients), greatest(usual));
    if chance {
        0.5
    } else if found > 0.0 {
        (if usual > 0.0 { usual } else { 1.0 }) / found
    } else {
        1.0
    }
}

/// A player with the weights: the search of the first player of the runs that evaluates, else a plain one.
fn player(spec: &Spec, chosen: &[usize], weights: &[f64]) -> String {
    let plain = || PlayerConfig::parse(&spec.game, "search = { algorithm = \"greedy\" }").ok();
    let evaluates = |config: &PlayerConfig| config.to_toml(&spec.game).contains("evaluation");
    let found = spec.players.iter().map(|player| player.config.clone()).find(evaluates).or_else(plain);
    let Some(mut config) = found else { return String::new() };
    config.weights.fill(0.0);
    for (&index, &weight) in chosen.iter().zip(weights) {
        config.weights[index] = weight;
    }
    format!("[[player]]\nname = \"fitted\"\n{}", config.to_toml(&spec.game))
}
