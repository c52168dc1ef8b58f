//! A rated pool for programs: the JSON of `agon ratings`, which the tables for people are made of too.

use agon_stats::pool::{Bound, Standing};
use agon_stats::tournament::{Answer, Effect};
use serde::Serialize;

use crate::commands::runs::Told;

/// What was asked beyond the ratings.
pub struct Asked {
    /// Added to all ratings.
    pub shift: f64,
    /// Who is rated `shift`; without one the mean is.
    pub anchor: Option<String>,
    /// Resampled tournaments, or 0 for errors by formula.
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
    /// The run, where it is one.
    pub run: Option<String>,
    pub complete: bool,
    /// What is played, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
    /// The runs that were rated together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Told>,
    /// What was counted as independent.
    pub unit: &'static str,
    pub games: u64,
    pub players: Vec<Player>,
    pub seat_advantage: Option<f64>,
    pub seat_advantage_interval: Option<[f64; 2]>,
    /// Of more than two seats, each against their mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seat_effects: Vec<SeatEffect>,
    pub draw_rate: Option<f64>,
    /// The names of players that results connect, group by group.
    pub components: Vec<Vec<String>>,
    pub transitivity: Option<Transitivity>,
    pub anchor: Option<String>,
    pub average: Option<f64>,
    /// `bootstrap`, `sandwich` or, of more than two seats without replicas, `none`.
    pub errors: &'static str,
    pub replicas: usize,
    pub skipped: Skipped,
    /// What should be known before the numbers are trusted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<String>,
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

/// What a seat is worth.
#[derive(Serialize)]
pub struct SeatEffect {
    pub seat: usize,
    pub elo: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Document {
    /// Puts an answer into words.
    pub fn new(answer: &Answer, asked: &Asked, skipped: &Skipped) -> Self {
        let standings = answer.standings();
        let seat_effects: Vec<SeatEffect> =
            answer.seat_effects().into_iter().enumerate().map(seat_effect).collect();
        let seats = seat_effects.len().max(2) as u64;
        let games = standings.iter().map(|standing| standing.games).sum::<u64>() / seats;
        let advantage = answer.seat_advantage();
        // No formula tells those of more than two seats.
        let intervals = asked.replicas > 0 || seat_effects.is_empty();
        let mut cautions = Vec::new();
        if standings.iter().all(|standing| standing.draws == standing.games) {
            cautions.push(
                "Every game was drawn: these games show no difference, and nothing tells how large one could be."
                    .to_string(),
            );
        } else if standings.iter().any(|standing| is_alike(standing, standings)) && intervals {
            cautions.push(
                "Where + and - are empty all bouts came out alike, which does not tell how sure a rating is."
                    .to_string(),
            );
        }
        Document {
            run: None,
            complete: true,
            game: None,
            runs: Vec::new(),
            unit: if answer.bouts_only() { "bout" } else { "game" },
            games,
            players: standings.iter().map(|standing| player(standing, asked.shift)).collect(),
            seat_advantage: advantage.map(|effect| effect.elo),
            seat_advantage_interval: advantage
                .and_then(|effect| effect.interval)
                .map(|(low, high)| [low, high]),
            errors: match asked.replicas {
                0 if seat_effects.is_empty() => "sandwich",
                0 => "none",
                _ => "bootstrap",
            },
            seat_effects,
            draw_rate: answer.draw_rate(),
            components: answer.components(),
            transitivity: answer.transitivity().map(|test| Transitivity {
                statistic: test.likelihood_ratio / test.overdispersion,
                degrees: test.degrees,
                p_value: test.p_value,
            }),
            anchor: asked.anchor.clone(),
            average: asked.anchor.is_none().then_some(asked.shift),
            replicas: asked.replicas,
            skipped: skipped.clone(),
            cautions,
            crosstable: asked.crosstable.then(|| crosstable(answer)),
            los: asked.los.then(|| answer.superiority()),
            residuals: asked.residuals.then(|| residuals(answer)),
        }
    }
}

/// Whether a player that others are compared with has no interval.
fn is_alike(row: &Standing, standings: &[Standing]) -> bool {
    let compared = |other: &&Standing| other.bound.is_none() && other.component == row.component;
    compared(&row) && row.low.is_none() && standings.iter().filter(compared).count() > 1
}

fn seat_effect((seat, effect): (usize, Effect)) -> SeatEffect {
    let (low, high) = effect.interval.unzip();
    SeatEffect { seat, elo: effect.elo, low, high }
}

fn player(standing: &Standing, shift: f64) -> Player {
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
        name: standing.name.clone(),
    }
}

fn crosstable(answer: &Answer) -> Vec<Vec<Option<Meeting>>> {
    let cell = |meeting: agon_stats::pool::Meeting| {
        let (wins, draws, losses) = (meeting.wins, meeting.draws, meeting.losses);
        (meeting.games() > 0).then_some(Meeting { wins, draws, losses })
    };
    answer.crosstable().into_iter().map(|row| row.into_iter().map(cell).collect()).collect()
}

/// The greatest surprise first; those whose size cannot be told last. Each from the view of the one whose name comes first.
fn residuals(answer: &Answer) -> Vec<Residual> {
    let name = |player: usize| answer.standings()[player].name.clone();
    let mut residuals: Vec<Residual> = answer
        .residuals()
        .into_iter()
        .map(|residual| Residual {
            one: name(residual.one),
            other: name(residual.other),
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
