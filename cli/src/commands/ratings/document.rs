//! A rated pool for programs: the JSON of `agon ratings`, which the tables for people are made of too.

use agon_stats::pool::{Bound, Fit, Standing, Uncertainty};
use serde::Serialize;

/// What was asked beyond the ratings.
pub struct Asked {
    /// Added to all ratings.
    pub shift: f64,
    /// Who is rated `shift`; without one the mean is.
    pub anchor: Option<String>,
    /// Resampled pools, or 0 for errors by formula.
    pub replicas: usize,
    /// Everybody's superiority over everybody.
    pub los: bool,
    /// Who did what against whom.
    pub crosstable: bool,
    /// Points made against points expected.
    pub residuals: bool,
}

/// What was not rated.
#[derive(Serialize, Clone)]
pub struct Skipped {
    /// Games without a result.
    pub unfinished: u64,
    /// Games that could not be read.
    pub malformed: u64,
    /// Players with too few games.
    #[serde(rename = "players")]
    pub left_out: usize,
}

/// A rated pool.
#[derive(Serialize)]
pub struct Document {
    pub run: Option<String>,
    pub complete: bool,
    /// What was counted as independent.
    pub unit: &'static str,
    pub games: u64,
    pub players: Vec<Player>,
    pub seat_advantage: Option<f64>,
    pub seat_advantage_interval: Option<[f64; 2]>,
    pub draw_rate: f64,
    /// The names of players that results connect, group by group.
    pub components: Vec<Vec<String>>,
    pub transitivity: Transitivity,
    pub anchor: Option<String>,
    pub average: Option<f64>,
    /// `bootstrap` or `sandwich`.
    pub errors: &'static str,
    pub replicas: usize,
    pub skipped: Skipped,
    /// Rows and columns in the order of the players.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crosstable: Option<Vec<Vec<Option<Meeting>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub los: Option<Vec<Vec<Option<f64>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residuals: Option<Vec<Residual>>,
}

/// A player's row.
#[derive(Serialize)]
pub struct Player {
    pub rank: usize,
    pub component: usize,
    pub name: String,
    pub elo: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// `at_least` or `at_most` where `elo` is only a bound.
    pub bound: Option<&'static str>,
    pub games: u64,
    pub wins: u64,
    pub draws: u64,
    pub losses: u64,
    pub score: f64,
    pub los_next: Option<f64>,
}

/// The test whether one number a player is enough.
#[derive(Serialize)]
pub struct Transitivity {
    pub statistic: f64,
    pub degrees: usize,
    pub p_value: Option<f64>,
}

/// Games of one player against another.
#[derive(Serialize, Clone)]
pub struct Meeting {
    pub wins: u64,
    pub draws: u64,
    pub losses: u64,
}

/// A pairing against what the ratings expect of it.
#[derive(Serialize)]
pub struct Residual {
    pub one: String,
    pub other: String,
    pub games: u64,
    pub observed: f64,
    pub expected: f64,
    pub deviations: Option<f64>,
}

impl Document {
    /// Puts a fit into words.
    pub fn new(fit: &Fit, uncertainty: &Uncertainty, asked: &Asked, skipped: &Skipped) -> Self {
        let standings = fit.standings(uncertainty);
        let mut components = vec![Vec::new(); fit.components()];
        for standing in &standings {
            components[standing.component].push(standing.name.clone());
        }
        // Matrices of the fit are in the order of names, those of the document in the order of ranks.
        let place = |standing: &Standing| {
            fit.names().binary_search(&standing.name).expect("everybody in the standings is in the fit")
        };
        let order: Vec<usize> = standings.iter().map(place).collect();
        let games = standings.iter().map(|standing| standing.games).sum::<u64>() / 2;
        let transitivity = fit.transitivity();
        Document {
            run: None,
            complete: true,
            unit: if fit.bouts_only() { "bout" } else { "game" },
            games,
            players: standings.into_iter().map(|standing| player(standing, asked.shift)).collect(),
            seat_advantage: fit.seat_advantage(),
            seat_advantage_interval: uncertainty.seat_advantage.map(|(low, high)| [low, high]),
            draw_rate: fit.draw_rate(),
            components,
            transitivity: Transitivity {
                statistic: transitivity.likelihood_ratio / transitivity.overdispersion,
                degrees: transitivity.degrees,
                p_value: transitivity.p_value,
            },
            anchor: asked.anchor.clone(),
            average: asked.anchor.is_none().then_some(asked.shift),
            errors: if asked.replicas > 0 { "bootstrap" } else { "sandwich" },
            replicas: asked.replicas,
            skipped: skipped.clone(),
            crosstable: asked.crosstable.then(|| crosstable(fit, &order)),
            los: asked.los.then(|| superiority(fit, uncertainty, &order)),
            residuals: asked.residuals.then(|| residuals(fit)),
        }
    }
}

fn player(standing: Standing, shift: f64) -> Player {
    Player {
        rank: standing.rank,
        component: standing.component,
        elo: standing.elo + shift,
        low: standing.low.map(|low| low + shift),
        high: standing.high.map(|high| high + shift),
        bound: standing.bound.map(|bound| match bound {
            Bound::AtLeast => "at_least",
            Bound::AtMost => "at_most",
        }),
        games: standing.games,
        wins: standing.wins,
        draws: standing.draws,
        losses: standing.losses,
        score: standing.score.expect("everybody in a pool has games"),
        los_next: standing.los_next,
        name: standing.name,
    }
}

fn crosstable(fit: &Fit, order: &[usize]) -> Vec<Vec<Option<Meeting>>> {
    let table = fit.crosstable();
    let cell = |one: usize, other: usize| {
        let meeting = table[one][other];
        let (wins, draws, losses) = (meeting.wins, meeting.draws, meeting.losses);
        (meeting.games() > 0).then_some(Meeting { wins, draws, losses })
    };
    order.iter().map(|&one| order.iter().map(|&other| cell(one, other)).collect()).collect()
}

fn superiority(fit: &Fit, uncertainty: &Uncertainty, order: &[usize]) -> Vec<Vec<Option<f64>>> {
    let table = fit.superiority(uncertainty);
    order.iter().map(|&one| order.iter().map(|&other| table[one][other]).collect()).collect()
}

/// The greatest surprise first; those whose size cannot be told last.
fn residuals(fit: &Fit) -> Vec<Residual> {
    let mut residuals: Vec<Residual> = fit
        .residuals()
        .into_iter()
        .map(|residual| Residual {
            one: fit.names()[residual.one].clone(),
            other: fit.names()[residual.other].clone(),
            games: residual.games,
            observed: residual.observed,
            expected: residual.expected,
            deviations: residual.deviations,
        })
        .collect();
    let surprise = |residual: &Residual| residual.deviations.map_or(-1.0, f64::abs);
    residuals.sort_by(|one, other| surprise(other).total_cmp(&surprise(one)));
    residuals
}
