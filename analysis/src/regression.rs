//! Evaluation weights fitted to recorded games by logistic regression, as a starting point for a tune.
//!
//! Positions are rebuilt by the rules. Every game has the same total weight, and some bouts are held out for validation.
//! Nothing is searched, so a weight measures how well a feature predicts the result, not how useful it is to a search.

use agon_arena::{PlayerConfig, Spec};
use agon_games::random::mix;
use agon_games::{Feature, GAMES, Seat, Turn};
use agon_stats::logistic::{Data, Fit, LogisticError};
use serde::Serialize;

use crate::board_view::UnplayableGame;
use crate::dataset::{Dataset, DatasetError, Run};
use crate::games::{Query, Recording, Recordings};

/// One bout in this many is held out.
const HELD_OUT: u64 = 5;

/// An error while fitting weights.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegressionError {
    /// From the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// From the regression.
    #[error(transparent)]
    Fit(#[from] LogisticError),
    /// The runs are of different games.
    #[error("{run} plays {game}, but the first run plays {first}; weights can be fitted to one game only")]
    DifferentGames {
        /// The run.
        run: String,
        /// Its game.
        game: String,
        /// The game of the first run.
        first: String,
    },
    /// The game has more than two seats.
    #[error("{0} has more than two seats; weights can be fitted for two-seat games only")]
    Seats(String),
    /// The game has no such feature.
    #[error("{game} has no feature `{name}`; it has {}", .known.join(", "))]
    UnknownFeature {
        /// The game.
        game: String,
        /// The requested feature.
        name: String,
        /// The features of the game.
        known: Vec<&'static str>,
    },
    /// A game cannot be replayed.
    #[error(transparent)]
    Unplayable(#[from] UnplayableGame),
    /// There are too few bouts to hold some out.
    #[error("{games} games in {bouts} bouts are too few to hold some out; play more")]
    TooFew {
        /// Games found.
        games: u64,
        /// Their bouts.
        bouts: u64,
    },
}

/// Fitted weights and their validation, in the form of `agon tune --from --json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FittedWeights {
    /// The game.
    pub game: String,
    /// Games read.
    pub games: u64,
    /// Their positions.
    pub positions: u64,
    /// Games held out.
    pub held_games: u64,
    /// Mean loss on the training games. A loss is minus the logarithm of the probability given to the actual result.
    pub loss: f64,
    /// Mean loss on the held-out games.
    pub held_loss: f64,
    /// Mean loss of the default weights on the held-out games, after the best scaling.
    pub held_loss_usual: f64,
    /// Mean loss on the held-out games of knowing only the first seat's advantage.
    pub held_loss_blind: f64,
    /// The weights by feature.
    pub weights: Vec<FittedWeight>,
    /// A player with the weights as a `[[player]]` table.
    pub table: String,
}

/// The weight of a feature.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FittedWeight {
    /// The feature.
    pub feature: &'static str,
    /// Its default weight.
    pub usual: f64,
    /// Its fitted weight.
    pub weight: f64,
}

/// Positions of some games.
struct Sample {
    data: Data,
    games: u64,
}

/// Fits the weights of the given features, or of all, to the games of some runs.
pub fn regression(
    dataset: &Dataset,
    runs: &[Run],
    features: &[String],
) -> Result<FittedWeights, RegressionError> {
    let specs = runs.iter().map(Run::spec).collect::<Result<Vec<Spec>, _>>().map_err(DatasetError::from)?;
    let game = specs[0].game.clone();
    for (run, spec) in runs.iter().zip(&specs) {
        if spec.game != game {
            let (game, first) = (spec.game.to_string(), game.to_string());
            return Err(RegressionError::DifferentGames { run: run.id.clone(), game, first });
        }
    }
    if game.parameters().seats() != 2 {
        return Err(RegressionError::Seats(game.to_string()));
    }
    let info = GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game");
    let chosen = feature_indices(info.name, info.features, features)?;
    // 1. Collect the positions of all games, held-out bouts separately.
    let mut samples = [(); 2].map(|()| Sample { data: Data::new(chosen.len()), games: 0 });
    let mut bouts = 0;
    for run in runs {
        let query = Query::default();
        let mut last = None;
        for recording in Recordings::new(dataset, run, &query)? {
            let recording = recording?;
            let bout = recording.game.bout;
            bouts += u64::from(last.replace(bout) != Some(bout));
            let held = mix(specs[0].seed, bout).is_multiple_of(HELD_OUT);
            add_positions(&specs[0], &recording, &chosen, &mut samples[usize::from(held)])?;
        }
    }
    let [training, held] = &samples;
    if training.games == 0 || held.games == 0 {
        return Err(RegressionError::TooFew { games: training.games + held.games, bouts });
    }
    // 2. Fit, and compare with the default weights and with none.
    let fit = training.data.fit()?;
    let usual: Vec<f64> = chosen.iter().map(|&index| info.features[index].weight).collect();
    let scaled_usual = training.data.fit_scale(&usual)?;
    let blind = training.data.fit_scale(&vec![0.0; chosen.len()])?;
    // 3. Convert to units of the evaluation.
    let scale = evaluation_scale(&fit, &usual, info.chance);
    let weights: Vec<f64> = fit.coefficients.iter().map(|one| (one * scale * 1e4).round() / 1e4).collect();
    let fitted = chosen.iter().zip(&weights).map(|(&index, &weight)| {
        let feature = &info.features[index];
        FittedWeight { feature: feature.name, usual: feature.weight, weight }
    });
    Ok(FittedWeights {
        games: training.games + held.games,
        positions: (training.data.len() + held.data.len()) as u64,
        held_games: held.games,
        loss: training.data.loss(&fit),
        held_loss: held.data.loss(&fit),
        held_loss_usual: held.data.loss(&scaled_usual),
        held_loss_blind: held.data.loss(&blind),
        weights: fitted.collect(),
        table: player(&specs[0], &chosen, &weights),
        game: game.to_string(),
    })
}

/// Returns the indices of the named features, or of all if none is named.
fn feature_indices(
    game: &str,
    known: &'static [Feature],
    names: &[String],
) -> Result<Vec<usize>, RegressionError> {
    if names.is_empty() {
        return Ok((0..known.len()).collect());
    }
    let find = |name: &String| {
        known.iter().position(|feature| feature.name == name).ok_or_else(|| RegressionError::UnknownFeature {
            game: game.to_string(),
            name: name.clone(),
            known: known.iter().map(|feature| feature.name).collect(),
        })
    };
    names.iter().map(find).collect()
}

/// Adds the searched positions of a game from the view of the first seat.
fn add_positions(
    spec: &Spec,
    recording: &Recording,
    chosen: &[usize],
    sample: &mut Sample,
) -> Result<(), UnplayableGame> {
    let mut position = spec
        .game
        .start(recording.opening_position())
        .map_err(|error| UnplayableGame::new(recording, &error))?;
    let outcome = match recording.game.payoffs[..] {
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
        position.play(index + 1, &mv.mv).map_err(|error| UnplayableGame::new(recording, &error))?;
    }
    let weight = 1.0 / positions.len().max(1) as f64;
    sample.games += u64::from(!positions.is_empty());
    for values in positions {
        sample.data.add(values, outcome, weight);
    }
    Ok(())
}

/// Returns the factor from log-odds to units of the evaluation.
///
/// In games with chance, evaluations are expected payoffs, whose slope at even odds is half of the log-odds. Elsewhere only
/// ratios matter, so the largest weight keeps its default size.
fn evaluation_scale(fit: &Fit, usual: &[f64], chance: bool) -> f64 {
    let largest = |weights: &[f64]| weights.iter().map(|weight| weight.abs()).fold(0.0, f64::max);
    let (fitted, usual) = (largest(&fit.coefficients), largest(usual));
    if chance {
        0.5
    } else if fitted > 0.0 {
        (if usual > 0.0 { usual } else { 1.0 }) / fitted
    } else {
        1.0
    }
}

/// Returns a player with the weights, which searches like the first player with an evaluation, or else greedily.
fn player(spec: &Spec, chosen: &[usize], weights: &[f64]) -> String {
    let plain = || PlayerConfig::parse(&spec.game, "search = { algorithm = \"greedy\" }").ok();
    let evaluates = |config: &PlayerConfig| config.to_toml(&spec.game).contains("evaluation");
    let searches = spec.players.iter().map(|player| player.config.clone());
    let found = searches.filter(|config| config.search().is_some()).find(evaluates).or_else(plain);
    let Some(PlayerConfig::Search(mut config)) = found else { return String::new() };
    config.weights.fill(0.0);
    for (&index, &weight) in chosen.iter().zip(weights) {
        config.weights[index] = weight;
    }
    format!("[[player]]\nname = \"fitted\"\n{}", PlayerConfig::Search(config).to_toml(&spec.game))
}
