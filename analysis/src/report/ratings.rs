//! Results of a run: ratings, crosstable, ratings over growing prefixes of the schedule, and the sequential test.

use std::num::NonZeroUsize;

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan, SprtSettings};
use agon_schedule::schedule::sprt_bounds;
use agon_stats::comparison::Comparison;
use agon_stats::pairs::Scores;
use agon_stats::pool::{Meeting, Standing};
use agon_stats::replicas::Measure;
use agon_stats::sprt::{Model, Verdict};
use agon_stats::tournament::{BoutCounts, Effect, Options, Resampling, TournamentRatings};
use serde::Serialize;

use super::{Availability, ReportError, Settings};
use crate::dataset::{Dataset, Run};
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
    /// The players from best to worst, component by component. Of two players the second has 0.
    pub players: Vec<Standing>,
    /// Elo difference between the first and the second of two players.
    pub difference: Option<Interval>,
    /// What the results show about the strongest player.
    pub verdict: String,
    /// The likelihood that the first player is stronger than the second, if they can be compared.
    pub los: Option<f64>,
    /// The warning that the results are too few, if they are.
    pub caution: Option<String>,
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

/// Head-to-head results, with rows and columns in standings order.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Crosstable {
    /// The players.
    pub names: Vec<String>,
    /// Results of the row against the column; `None` if they never met.
    pub cells: Vec<Vec<Option<Meeting>>>,
}

/// A player's rating over growing prefixes of the schedule.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RatingHistory {
    /// Player name.
    pub player: String,
    /// Number of bouts and rating, or difference to the other of two players; prefixes with only a bound are absent.
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

impl From<Effect> for Interval {
    fn from(effect: Effect) -> Interval {
        let (low, high) = effect.interval.unzip();
        Interval { value: effect.elo, low, high }
    }
}

impl From<Comparison> for Interval {
    fn from(Comparison { elo, low, high, .. }: Comparison) -> Interval {
        Interval { value: elo, low, high }
    }
}

impl From<Measure> for Interval {
    fn from(Measure { value, low, high }: Measure) -> Interval {
        Interval { value, low: Some(low), high: Some(high) }
    }
}

impl From<&Standing> for Interval {
    fn from(row: &Standing) -> Interval {
        Interval { value: row.elo, low: row.low, high: row.high }
    }
}

fn ratings(answer: &TournamentRatings, settings: &Settings) -> Ratings {
    let conclusion = answer.conclusion();
    Ratings {
        players: answer.shown_standings(),
        difference: answer.compare(0, 1).filter(|_| answer.standings().len() == 2).map(Interval::from),
        los: conclusion.as_ref().and_then(|conclusion| conclusion.los),
        caution: conclusion.as_ref().and_then(|conclusion| conclusion.caution.clone()),
        verdict: conclusion.map(|conclusion| conclusion.sentence).unwrap_or_default(),
        components: answer.components(),
        seat_advantage: answer.seat_advantage().map(Interval::from),
        seat_effects: answer.seat_effects().into_iter().map(Interval::from).collect(),
        draw_rate: answer.draw_rate(),
        transitivity: answer.transitivity().and_then(|test| test.p_value),
        replicas: if answer.seat_effects().is_empty() { 0 } else { settings.replicas.get() },
    }
}

fn crosstable(answer: &TournamentRatings) -> Crosstable {
    Crosstable {
        names: answer.standings().iter().map(|row| row.name.clone()).collect(),
        cells: answer.crosstable(),
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
    let shown = if last.standings().len() == 2 { 1 } else { last.standings().len() };
    let mut histories: Vec<RatingHistory> = last.standings()[..shown].iter().map(empty).collect();
    let mut add = |bouts: u64, answer: &TournamentRatings| {
        // A player without an interval has a bound or is the reference of the others' bounds.
        let rows = answer.standings();
        // Of two players only the leader has a history: that of the difference.
        if let [leader, other] = last.standings() {
            let place = |name: &str| rows.iter().position(|row| row.name == name);
            let compared = place(&leader.name).zip(place(&other.name));
            let compared = compared.and_then(|(one, other)| answer.compare(one, other));
            if let Some(compared) = compared.filter(|_| rows.iter().all(|row| row.bound.is_none())) {
                histories[0].points.push((bouts, compared.into()));
            }
            return;
        }
        for row in rows.iter().filter(|row| row.bound.is_none() && row.low.or(row.high).is_some()) {
            if let Some(history) = histories.iter_mut().find(|history| history.player == row.name) {
                history.points.push((bouts, row.into()));
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
        elo: compared.map(Interval::from),
        los: compared.map(|compared| compared.los),
    }))
}
