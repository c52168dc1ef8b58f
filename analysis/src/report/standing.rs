//! Results as the page tells them: ratings, who did what against whom, ratings after the first bouts, a test.

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan};
use agon_schedule::schedule::sprt_bounds;
use agon_stats::pairs::Scores;
use agon_stats::pool::Bound;
use agon_stats::sprt::{Model, Verdict};
use agon_stats::tournament::{Answer, Effect, Errors, Options, Tally};
use serde::Serialize;

use super::{ReportError, Settings, Told};
use crate::dataset::{Dataset, Run};
use crate::pruning::Interval;
use crate::results;

/// After how many lengths of the schedule ratings are told.
const STEPS: u64 = 24;
/// Resampled tournaments at each of them, where there is no formula.
const STEP_REPLICAS: usize = 100;

/// Everything that results say.
pub(super) struct Standing {
    /// Bouts that count.
    pub bouts: u64,
    pub test: Option<Test>,
    pub ratings: Told<Ratings>,
    pub crosstable: Told<Crosstable>,
    pub convergence: Told<Vec<Trace>>,
}

/// A rated tournament.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ratings {
    /// The best first; where results do not connect all players, group by group.
    pub players: Vec<Rated>,
    /// The names of players that results connect, group by group.
    pub components: Vec<Vec<String>>,
    /// What the first of two seats is worth.
    pub seat_advantage: Option<Interval>,
    /// What each of many seats is worth against the mean of all.
    pub seat_effects: Vec<Interval>,
    /// The share of draws between equal players.
    pub draw_rate: Option<f64>,
    /// How likely results as far from one number a player are, if one number is enough.
    pub transitivity: Option<f64>,
    /// Resampled tournaments behind the intervals.
    pub replicas: usize,
}

/// A player's row.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rated {
    /// Its place.
    pub rank: usize,
    /// Its name.
    pub name: String,
    /// Its rating.
    pub elo: f64,
    /// The ends of its interval.
    pub low: Option<f64>,
    /// The upper one.
    pub high: Option<f64>,
    /// `at_least` or `at_most` where `elo` is only a bound.
    pub bound: Option<&'static str>,
    /// Its games.
    pub games: u64,
    /// Those it won.
    pub wins: u64,
    /// Those it shared.
    pub draws: u64,
    /// Those it lost.
    pub losses: u64,
    /// Its share of the points.
    pub score: Option<f64>,
    /// How likely it is stronger than the next.
    pub los_next: Option<f64>,
}

/// Who did what against whom, rows and columns in the order of the standings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Crosstable {
    /// The players.
    pub names: Vec<String>,
    /// Nothing where two did not meet.
    pub cells: Vec<Vec<Option<Cell>>>,
}

/// Games of one player against another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cell {
    /// Won.
    pub wins: u64,
    /// Drawn.
    pub draws: u64,
    /// Lost.
    pub losses: u64,
}

impl Cell {
    /// The share of the points.
    pub fn score(&self) -> f64 {
        let games = self.wins + self.draws + self.losses;
        (self.wins as f64 + self.draws as f64 / 2.0) / games.max(1) as f64
    }
}

/// A player's rating after the first bouts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trace {
    /// Who.
    pub player: String,
    /// By number of bouts. Where it had only a bound there is nothing.
    pub points: Vec<(u64, Interval)>,
}

/// How a sequential test stands.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Test {
    /// Who is tested.
    pub player: String,
    /// Against whom.
    pub against: String,
    /// `H0`, `H1` or `continue`.
    pub verdict: &'static str,
    /// Both hypotheses.
    pub bounds: [f64; 2],
    /// `logistic` or `normalised`.
    pub model: &'static str,
    /// The error rates.
    pub alpha: f64,
    /// That of the second hypothesis.
    pub beta: f64,
    /// The log-likelihood ratio.
    pub llr: f64,
    /// Below this it is H0.
    pub lower: f64,
    /// Above this it is H1.
    pub upper: f64,
    /// Bouts by the half points of the first player, from 0 to 4.
    pub pairs: [u64; 5],
    /// Bouts that the test has looked at.
    pub looked_at: u64,
    /// The difference in Elo.
    pub elo: Option<Interval>,
    /// The likelihood that the first player is stronger.
    pub los: Option<f64>,
}

/// Counts and rates.
pub(super) fn read(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    settings: &Settings,
) -> Result<Standing, ReportError> {
    if let Plan::Probe(_) = spec.plan {
        let why = "The run is a probe: its players search the same positions and play no games.";
        return Ok(Standing {
            bouts: 0,
            test: None,
            ratings: Told::not(why),
            crosstable: Told::not(why),
            convergence: Told::not(why),
        });
    }
    let mut lengths: Vec<u64> =
        (1..STEPS).map(|step| run.bouts * step / STEPS).filter(|length| *length > 0).collect();
    lengths.push(u64::MAX);
    lengths.dedup();
    let mut tallies = results::prefixes(dataset, run, spec, &lengths, settings.threads)?;
    let all = tallies.pop().unwrap_or_default();
    let errors =
        Errors::Bootstrap { replicas: settings.replicas, seed: settings.seed, threads: settings.threads };
    let answer = all.answer(&Options { model: Default::default(), errors }, &|| ());
    let test = match &spec.plan {
        Plan::Tournament(Format::Sprt(sprt)) => test(dataset, run, spec, sprt, &all)?,
        _ => None,
    };
    Ok(match answer {
        Ok(answer) => Standing {
            bouts: all.bouts(),
            test,
            convergence: convergence(&tallies, &answer, all.bouts(), settings),
            crosstable: crosstable(&answer),
            ratings: Told::There(ratings(&answer, settings)),
        },
        Err(error) => {
            let why = format!("There are no ratings: {error}.");
            Standing {
                bouts: all.bouts(),
                test,
                ratings: Told::not(why.clone()),
                crosstable: Told::not(why.clone()),
                convergence: Told::not(why),
            }
        }
    })
}

fn interval(effect: Effect) -> Interval {
    Interval {
        value: effect.elo,
        low: effect.interval.map(|ends| ends.0),
        high: effect.interval.map(|ends| ends.1),
    }
}

fn ratings(answer: &Answer, settings: &Settings) -> Ratings {
    let rated = |row: &agon_stats::pool::Standing| Rated {
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
    Ratings {
        players: answer.standings().iter().map(rated).collect(),
        components: answer.components(),
        seat_advantage: answer.seat_advantage().map(interval),
        seat_effects: answer.seat_effects().into_iter().map(interval).collect(),
        draw_rate: answer.draw_rate(),
        transitivity: answer.transitivity().and_then(|test| test.p_value),
        replicas: settings.replicas.get(),
    }
}

fn crosstable(answer: &Answer) -> Told<Crosstable> {
    let names: Vec<String> = answer.standings().iter().map(|row| row.name.clone()).collect();
    let cell = |meeting: &agon_stats::pool::Meeting| {
        let (wins, draws, losses) = (meeting.wins, meeting.draws, meeting.losses);
        (meeting.games() > 0).then_some(Cell { wins, draws, losses })
    };
    let cells = answer.crosstable().iter().map(|row| row.iter().map(cell).collect()).collect();
    Told::There(Crosstable { names, cells })
}

/// Ratings after the first bouts, the players in the order of the standings.
fn convergence(tallies: &[Tally], last: &Answer, bouts: u64, settings: &Settings) -> Told<Vec<Trace>> {
    if last.components().len() > 1 {
        return Told::not(
            "Results do not connect all players, so that their ratings have no common scale to follow.",
        );
    }
    let many = !last.seat_effects().is_empty();
    let replicas =
        settings.replicas.min(const { std::num::NonZeroUsize::new(STEP_REPLICAS).expect("not zero") });
    let errors = match many {
        false => Errors::Sandwich,
        true => Errors::Bootstrap { replicas, seed: settings.seed, threads: settings.threads },
    };
    let options = Options { model: Default::default(), errors };
    let mut traces: Vec<Trace> =
        last.standings().iter().map(|row| Trace { player: row.name.clone(), points: Vec::new() }).collect();
    let mut note = |bouts: u64, answer: &Answer| {
        // Who has no interval has only a bound, or is where the bounds of the others are measured from.
        for row in answer.standings().iter().filter(|row| row.bound.is_none() && row.low.is_some()) {
            if let Some(trace) = traces.iter_mut().find(|trace| trace.player == row.name) {
                trace.points.push((bouts, Interval { value: row.elo, low: row.low, high: row.high }));
            }
        }
    };
    let mut before = 0;
    for tally in tallies {
        let here = tally.bouts();
        if here > before
            && here < bouts
            && let Ok(answer) = tally.answer(&options, &|| ())
            && answer.components().len() == 1
            && answer.standings().len() == last.standings().len()
        {
            note(here, &answer);
        }
        before = here;
    }
    note(bouts, last);
    if traces.iter().all(|trace| trace.points.len() < 2) {
        return Told::not("There are too few bouts, or too one-sided ones, to see ratings settle.");
    }
    Told::There(traces)
}

fn test(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    settings: &agon_arena::spec::SprtSettings,
    all: &Tally,
) -> Result<Option<Test>, ReportError> {
    let Ok(bounds) = sprt_bounds(settings) else { return Ok(None) };
    let fold = results::fold(dataset, run, spec, bounds)?;
    let pairs = fold.pairs();
    let [Some(player), Some(against)] = [0, 1].map(|index| all.names().get(index).cloned()) else {
        return Ok(None);
    };
    let verdict = fold.decision().map_or(Verdict::Continue, |decision| decision.verdict);
    let scores = Scores::from(pairs);
    let elo = scores.elo().map(|elo| {
        let ends = (elo.error > 0.0).then_some((elo.low, elo.high));
        let (low, high) = ends.unzip();
        Interval { value: elo.value, low, high }
    });
    Ok(Some(Test {
        player,
        against,
        verdict: match verdict {
            Verdict::H0 => "H0",
            Verdict::H1 => "H1",
            Verdict::Continue => "continue",
        },
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
        los: scores.superiority(),
    }))
}
