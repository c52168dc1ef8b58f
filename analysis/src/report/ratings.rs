//! Results of a run: ratings, crosstable, ratings over growing prefixes of the schedule, and the sequential test.

use std::num::NonZeroUsize;

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan, SprtSettings};
use agon_schedule::schedule::sprt_bounds;
use agon_stats::pairs::Scores;
use agon_stats::pool::{Bound, Meeting, Standing};
use agon_stats::sprt::{Model, Verdict};
use agon_stats::tournament::{BoutCounts, Effect, Options, Resampling, TournamentRatings};
use serde::Serialize;

use super::{Availability, ReportError, Settings};
use crate::dataset::{Dataset, Run};
use crate::format::signed;
use crate::pruning::Interval;
use crate::results;

/// Number of schedule prefixes that are rated.
const STEPS: u64 = 24;
/// Bootstrap replicas for each prefix, where no closed formula exists.
const STEP_REPLICAS: usize = 100;

/// All results of a run.
pub(super) struct RunResults {
    /// Rated bouts.
    pub bouts: u64,
    pub test: Option<SequentialTest>,
    pub ratings: Availability<Ratings>,
    pub crosstable: Availability<Crosstable>,
    pub convergence: Availability<Vec<RatingHistory>>,
}

/// A rated tournament.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ratings {
    /// The players from best to worst, component by component.
    pub players: Vec<RatedPlayer>,
    /// Elo difference between the first and the second of two players.
    pub difference: Option<Interval>,
    /// Whether there are enough games to call a player stronger.
    pub enough: bool,
    /// Names of the players in each connected component.
    pub components: Vec<Vec<String>>,
    /// Elo advantage of the first of two seats.
    pub seat_advantage: Option<Interval>,
    /// Elo effect of each of many seats, relative to their mean.
    pub seat_effects: Vec<Interval>,
    /// Share of draws between equal players.
    pub draw_rate: Option<f64>,
    /// The p-value of the hypothesis that a single rating per player explains the results.
    pub transitivity: Option<f64>,
    /// Bootstrap replicas behind the intervals; 0 with two seats, whose intervals have a formula.
    pub replicas: usize,
}

/// A player's row of the standings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RatedPlayer {
    /// Rank within the component.
    pub rank: usize,
    /// Name.
    pub name: String,
    /// Rating.
    pub elo: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// `at_least` or `at_most` for a player who won or lost everything, whose interval is open on one side.
    pub bound: Option<&'static str>,
    /// Games played.
    pub games: u64,
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
    /// Points per game.
    pub score: Option<f64>,
    /// Likelihood of superiority over the next player.
    pub los_next: Option<f64>,
}

impl RatedPlayer {
    /// Formats the rating.
    pub(super) fn elo_text(&self) -> String {
        signed(self.elo, 0)
    }

    /// Returns the rating with its interval.
    pub(super) fn interval(&self) -> Interval {
        Interval { value: self.elo, low: self.low, high: self.high }
    }
}

/// Head-to-head results, with rows and columns in standings order.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Crosstable {
    /// The players.
    pub names: Vec<String>,
    /// Results of the row against the column; `None` if they never met.
    pub cells: Vec<Vec<Option<PairRecord>>>,
}

/// Games of one player against another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PairRecord {
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
}

impl PairRecord {
    /// Returns the share of the points.
    pub fn score(&self) -> f64 {
        let games = self.wins + self.draws + self.losses;
        (self.wins as f64 + self.draws as f64 / 2.0) / games.max(1) as f64
    }
}

/// A player's rating over growing prefixes of the schedule.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RatingHistory {
    /// Player name.
    pub player: String,
    /// Number of bouts and rating; prefixes with only a bound are absent.
    pub points: Vec<(u64, Interval)>,
}

/// State of a sequential test.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SequentialTest {
    /// The tested player.
    pub player: String,
    /// Its opponent.
    pub against: String,
    /// `H0`, `H1` or `continue`.
    pub verdict: &'static str,
    /// Elo difference under each hypothesis.
    pub bounds: [f64; 2],
    /// `logistic` or `normalised`.
    pub model: &'static str,
    /// Probability of accepting H1 under H0.
    pub alpha: f64,
    /// Probability of accepting H0 under H1.
    pub beta: f64,
    /// Log-likelihood ratio.
    pub llr: f64,
    /// Threshold for H0.
    pub lower: f64,
    /// Threshold for H1.
    pub upper: f64,
    /// Bouts by the tested player's half points, from 0 to 4.
    pub pairs: [u64; 5],
    /// Bouts that the test has used.
    pub looked_at: u64,
    /// Elo difference.
    pub elo: Option<Interval>,
    /// Likelihood that the tested player is stronger.
    pub los: Option<f64>,
}

/// Counts and rates the games of a run.
pub(super) fn read(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    settings: &Settings,
) -> Result<RunResults, ReportError> {
    let unrated = |bouts: u64, test: Option<SequentialTest>, why: &str| RunResults {
        bouts,
        test,
        ratings: Availability::missing(why),
        crosstable: Availability::missing(why),
        convergence: Availability::missing(why),
    };
    if let Plan::Probe(_) = spec.plan {
        return Ok(unrated(0, None, "A probe has no games: its players search the same positions."));
    }
    let mut lengths: Vec<u64> =
        (1..STEPS).map(|step| run.bouts * step / STEPS).filter(|length| *length > 0).collect();
    lengths.push(u64::MAX);
    lengths.dedup();
    let mut prefixes = results::prefixes(dataset, run, spec, &lengths, settings.threads)?;
    let all = prefixes.pop().unwrap_or_default();
    let answer = all.rate(&options(settings, settings.replicas), &|| ());
    let test = match &spec.plan {
        Plan::Tournament(Format::Sprt(sprt)) => test(dataset, run, spec, sprt, &all)?,
        _ => None,
    };
    Ok(match answer {
        Ok(answer) => RunResults {
            bouts: all.bouts(),
            test,
            convergence: convergence(&prefixes, &answer, all.bouts(), settings),
            crosstable: Availability::Available(crosstable(&answer)),
            ratings: Availability::Available(ratings(&answer, settings)),
        },
        Err(error) => unrated(all.bouts(), test, &format!("Ratings are not available: {error}.")),
    })
}

/// Returns the options of a rating; replicas are for games of more than two seats.
fn options(settings: &Settings, replicas: NonZeroUsize) -> Options {
    let resampling = Resampling { replicas, seed: settings.seed, threads: settings.threads };
    Options { resampling: Some(resampling), ..Options::default() }
}

fn interval(effect: Effect) -> Interval {
    let (low, high) = effect.interval.unzip();
    Interval { value: effect.elo, low, high }
}

fn ratings(answer: &TournamentRatings, settings: &Settings) -> Ratings {
    let rated = |row: &Standing| RatedPlayer {
        rank: row.rank,
        name: row.name.clone(),
        elo: row.elo,
        low: row.low,
        high: row.high,
        bound: row.bound.map(|bound| match bound {
            Bound::AtLeast => "at_least",
            Bound::AtMost => "at_most",
        }),
        games: row.games,
        wins: row.wins,
        draws: row.draws,
        losses: row.losses,
        score: row.score,
        los_next: row.los_next,
    };
    // The two best players; a tournament of many seats has no formula that could tell.
    let first = answer.compare(0, 1);
    Ratings {
        players: answer.standings().iter().map(rated).collect(),
        difference: first.filter(|_| answer.standings().len() == 2).map(|first| Interval {
            value: first.elo,
            low: first.low,
            high: first.high,
        }),
        enough: first.is_none_or(|first| first.enough),
        components: answer.components(),
        seat_advantage: answer.seat_advantage().map(interval),
        seat_effects: answer.seat_effects().into_iter().map(interval).collect(),
        draw_rate: answer.draw_rate(),
        transitivity: answer.transitivity().and_then(|test| test.p_value),
        replicas: if answer.seat_effects().is_empty() { 0 } else { settings.replicas.get() },
    }
}

fn crosstable(answer: &TournamentRatings) -> Crosstable {
    let cell = |meeting: &Meeting| {
        let (wins, draws, losses) = (meeting.wins, meeting.draws, meeting.losses);
        (meeting.games() > 0).then_some(PairRecord { wins, draws, losses })
    };
    Crosstable {
        names: answer.standings().iter().map(|row| row.name.clone()).collect(),
        cells: answer.crosstable().iter().map(|row| row.iter().map(cell).collect()).collect(),
    }
}

/// Rates growing prefixes of the schedule; the players are in the order of the final standings.
fn convergence(
    prefixes: &[BoutCounts],
    last: &TournamentRatings,
    bouts: u64,
    settings: &Settings,
) -> Availability<Vec<RatingHistory>> {
    if last.components().len() > 1 {
        return Availability::missing(
            "The results do not connect all players, so their ratings have no common scale.",
        );
    }
    let replicas = settings.replicas.min(const { NonZeroUsize::new(STEP_REPLICAS).expect("not zero") });
    let options = options(settings, replicas);
    let empty = |row: &Standing| RatingHistory { player: row.name.clone(), points: Vec::new() };
    let mut histories: Vec<RatingHistory> = last.standings().iter().map(empty).collect();
    let mut add = |bouts: u64, answer: &TournamentRatings| {
        // A player without an interval has a bound or is the reference of the others' bounds.
        for row in answer.standings().iter().filter(|row| row.bound.is_none() && row.low.is_some()) {
            if let Some(history) = histories.iter_mut().find(|history| history.player == row.name) {
                history.points.push((bouts, Interval { value: row.elo, low: row.low, high: row.high }));
            }
        }
    };
    let mut before = 0;
    for prefix in prefixes {
        let here = prefix.bouts();
        if here > before
            && here < bouts
            && let Ok(answer) = prefix.rate(&options, &|| ())
            && answer.components().len() == 1
            && answer.standings().len() == last.standings().len()
        {
            add(here, &answer);
        }
        before = here;
    }
    add(bouts, last);
    if histories.iter().all(|history| history.points.len() < 2) {
        return Availability::missing("Too few or too one-sided bouts to show how ratings converge.");
    }
    Availability::Available(histories)
}

fn test(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    settings: &SprtSettings,
    all: &BoutCounts,
) -> Result<Option<SequentialTest>, ReportError> {
    let Ok(bounds) = sprt_bounds(settings) else { return Ok(None) };
    let fold = results::fold(dataset, run, spec, bounds)?;
    let pairs = fold.pairs();
    let [Some(player), Some(against)] = [0, 1].map(|index| all.names().get(index).cloned()) else {
        return Ok(None);
    };
    let verdict = fold.decision().map_or(Verdict::Continue, |decision| decision.verdict);
    let scores = Scores::from(pairs);
    let compared = scores.compare();
    let elo =
        compared.map(|compared| Interval { value: compared.elo, low: compared.low, high: compared.high });
    Ok(Some(SequentialTest {
        player,
        against,
        verdict: run.state.verdict(verdict),
        bounds: settings.bounds,
        model: match bounds.model() {
            Model::Logistic => "logistic",
            Model::Normalised => "normalised",
        },
        alpha: settings.alpha,
        beta: settings.beta,
        llr: fold.llr(),
        lower: bounds.lower(),
        upper: bounds.upper(),
        pairs: pairs.0,
        looked_at: fold.prefix(),
        elo,
        los: compared.map(|compared| compared.los),
    }))
}
