//! The answer of `agon ratings`: its JSON, from which the tables are made too.

use agon_stats::comparison::Comparison;
use agon_stats::pool::{Meeting, Standing};
use agon_stats::tournament::{Effect, TournamentRatings};
use serde::Serialize;

use crate::commands::runs::RunSummary;

/// The zero of the ratings.
#[derive(Clone)]
pub enum Scale {
    /// The second of two players has 0, so that the rating of the first is their difference; the mean of more has 0.
    Difference,
    /// The mean has this rating.
    Mean(f64),
    /// The player has this rating.
    Anchor(String, f64),
}

/// The scale of the ratings, and the requested tables.
pub struct Request {
    /// The zero of the ratings.
    pub scale: Scale,
    /// Bootstrap replicas for games of more than two seats, or 0 for no intervals.
    pub replicas: usize,
    /// Whether to compute the likelihood of superiority of each pair.
    pub los: bool,
    /// Whether to tabulate each player's results against each opponent.
    pub crosstable: bool,
    /// Whether to compare scored and expected points.
    pub residuals: bool,
}

/// The games and players that were left out.
#[derive(Serialize, Clone, Default)]
pub struct Skipped {
    /// Games without a result.
    pub unfinished: u64,
    /// Games that could not be read.
    pub malformed: u64,
    /// Players with too few games.
    #[serde(rename = "players")]
    pub left_out: usize,
}

/// A rated pool of players.
#[derive(Serialize)]
pub struct RatedPool {
    /// The run, if there is exactly one.
    pub run: Option<String>,
    pub complete: bool,
    /// The game, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
    /// The runs that were rated together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunSummary>,
    /// The unit of evidence: `bout` or `game`.
    pub unit: &'static str,
    pub games: u64,
    pub players: Vec<Standing>,
    pub seat_advantage: Option<f64>,
    pub seat_advantage_interval: Option<(f64, f64)>,
    /// The effects of more than two seats, relative to their mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seat_effects: Vec<SeatEffect>,
    pub draw_rate: Option<f64>,
    /// The groups of players that results connect.
    pub components: Vec<Vec<String>>,
    /// The difference of the first of two players to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// The bouts of two players by the score of the first, in half points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<[u64; 5]>,
    /// What the results show about the strongest player.
    pub verdict: Option<String>,
    /// The likelihood that the first player is stronger than the second, for the text.
    #[serde(skip)]
    pub los_first: Option<f64>,
    pub transitivity: Option<Transitivity>,
    pub anchor: Option<String>,
    pub average: Option<f64>,
    /// `formula` with two seats, `bootstrap` with more, or `none` for more without replicas.
    pub errors: &'static str,
    pub replicas: usize,
    pub skipped: Skipped,
    /// Warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<String>,
    /// The results of the row against the column, in the order of the players.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crosstable: Option<Vec<Vec<Option<Meeting>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub los: Option<Vec<Vec<Option<f64>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residuals: Option<Vec<Residual>>,
}

/// The difference of two players.
#[derive(Serialize)]
pub struct Difference {
    pub elo: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub los: f64,
    /// The conclusion in words.
    pub verdict: String,
}

/// The test whether one rating per player explains the results.
#[derive(Serialize)]
pub struct Transitivity {
    pub statistic: f64,
    pub degrees: usize,
    pub p_value: Option<f64>,
}

/// The scored and expected points of a pairing.
#[derive(Serialize)]
pub struct Residual {
    pub one: String,
    pub other: String,
    pub games: u64,
    pub observed: f64,
    pub expected: f64,
    pub deviations: Option<f64>,
}

/// The advantage of a seat.
#[derive(Serialize)]
pub struct SeatEffect {
    pub seat: usize,
    pub elo: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl RatedPool {
    /// Creates the document of an answer.
    pub fn new(answer: &TournamentRatings, request: &Request, skipped: &Skipped) -> Self {
        let standings = answer.standings();
        let seat_effects: Vec<SeatEffect> =
            answer.seat_effects().into_iter().enumerate().map(seat_effect).collect();
        let seats = seat_effects.len().max(2) as u64;
        let games = standings.iter().map(|standing| standing.games).sum::<u64>() / seats;
        let advantage = answer.seat_advantage();
        let difference = answer.compare(0, 1).filter(|_| standings.len() == 2);
        let conclusion = answer.conclusion();
        let (players, anchor, average) = match &request.scale {
            Scale::Difference if difference.is_some() => {
                (answer.shown_standings(), Some(standings[1].name.clone()), None)
            }
            Scale::Difference => (standings.to_vec(), None, Some(0.0)),
            Scale::Mean(average) => (shifted(standings, *average), None, Some(*average)),
            Scale::Anchor(anchor, rating) => (shifted(standings, *rating), Some(anchor.clone()), None),
        };
        let replicas = if seat_effects.is_empty() { 0 } else { request.replicas };
        let mut cautions = Vec::new();
        if standings.iter().all(|standing| standing.draws == standing.games) {
            cautions.push("Every game was drawn: the games show no difference.".to_string());
        }
        let unit = answer.unit();
        if (replicas > 0 || seat_effects.is_empty())
            && standings.iter().any(|standing| lacks_interval(standing, standings))
        {
            cautions
                .push(format!("There are too few {unit}s for intervals: play more than players and seats."));
        } else if standings.len() > 2 && standings.iter().any(|standing| standing.bound.is_some()) {
            cautions.push(
                "A player who won or lost everything has an estimate, but no bound on one side.".to_string(),
            );
        }
        cautions.extend(conclusion.as_ref().and_then(|conclusion| conclusion.caution.clone()));
        RatedPool {
            run: None,
            complete: true,
            game: None,
            runs: Vec::new(),
            unit,
            games,
            players,
            seat_advantage: advantage.map(|effect| effect.elo),
            seat_advantage_interval: advantage.and_then(|effect| effect.interval),
            errors: match replicas {
                0 if seat_effects.is_empty() => "formula",
                0 => "none",
                _ => "bootstrap",
            },
            pairs: None,
            difference: difference.map(|comparison| difference_of(&comparison, standings)),
            los_first: conclusion.as_ref().and_then(|conclusion| conclusion.los),
            verdict: conclusion.map(|conclusion| conclusion.sentence),
            seat_effects,
            draw_rate: answer.draw_rate(),
            components: answer.components(),
            transitivity: answer.transitivity().map(|test| Transitivity {
                statistic: test.likelihood_ratio / test.overdispersion,
                degrees: test.degrees,
                p_value: test.p_value,
            }),
            anchor,
            average,
            replicas,
            skipped: skipped.clone(),
            cautions,
            crosstable: request.crosstable.then(|| answer.crosstable()),
            los: request.los.then(|| answer.superiority()),
            residuals: request.residuals.then(|| residuals(answer)),
        }
    }
}

fn difference_of(comparison: &Comparison, standings: &[Standing]) -> Difference {
    let Comparison { elo, low, high, los, .. } = *comparison;
    Difference { elo, low, high, los, verdict: comparison.sentence(&standings[0].name, &standings[1].name) }
}

/// Returns whether a comparable player has no interval.
fn lacks_interval(row: &Standing, standings: &[Standing]) -> bool {
    let compared = |other: &&Standing| other.component == row.component;
    compared(&row) && row.low.is_none() && row.high.is_none() && standings.iter().filter(compared).count() > 1
}

fn seat_effect((seat, effect): (usize, Effect)) -> SeatEffect {
    let (low, high) = effect.interval.unzip();
    SeatEffect { seat, elo: effect.elo, low, high }
}

/// Returns the standings with a number added to all ratings.
fn shifted(standings: &[Standing], shift: f64) -> Vec<Standing> {
    let row = |standing: &Standing| Standing {
        elo: standing.elo + shift,
        low: standing.low.map(|low| low + shift),
        high: standing.high.map(|high| high + shift),
        ..standing.clone()
    };
    standings.iter().map(row).collect()
}

/// Returns the residuals, the largest deviation first.
fn residuals(answer: &TournamentRatings) -> Vec<Residual> {
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
    let size = |residual: &Residual| residual.deviations.map_or(-1.0, f64::abs);
    residuals.sort_by(|one, other| size(other).total_cmp(&size(one)));
    residuals
}
