//! `agon compare`: the changes of ratings, scores and specs from one run to another.
//!
//! Ratings of two runs have no common zero. The mean of the players in both runs serves as one, so that an equal gain of
//! all of them does not show. The runs count as independent.

mod differences;

use std::io::{self, Write};

use agon_stats::plackett_luce::DEFAULT_REPLICAS;
use agon_stats::pool::Standing;
use agon_stats::tournament::{Options, Resampling, TournamentRatings};
use agon_storage::location::Location;
use clap::Args;
use serde::Serialize;

use self::differences::{Difference, differences};
use super::runs::{self, LoadedRun, RunSummary};
use crate::fail::{Outcome, UsageError, bail_usage};
use crate::number::cores;
use crate::table::{Table, percent, print, signed, write_facts, write_sentence};

#[derive(Args)]
#[command(
    after_help = "Example, after `agon run examples/quick-start.toml` and `agon run examples/gauntlet.toml`:\n  \
                        agon compare quick-start gauntlet"
)]
pub struct Compare {
    /// First run: id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN")]
    first: String,
    /// Second run
    #[arg(value_name = "RUN", default_value = "latest")]
    second: String,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "LOCATION", default_value = "agon-data")]
    data: Location,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct RunComparison {
    runs: [RunSummary; 2],
    /// The differences of the specs.
    differences: Vec<Difference>,
    players: Vec<Player>,
    /// The players of only one run.
    only: [Vec<String>; 2],
}

/// A player of both runs.
#[derive(Serialize)]
struct Player {
    name: String,
    first: Side,
    second: Side,
    /// The gain in Elo with its 95 % interval; none for a rating that is only a bound.
    change: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// A player in one of the runs.
#[derive(Serialize)]
struct Side {
    /// The rating against the mean of the players of both runs.
    elo: Option<f64>,
    games: u64,
    score: Option<f64>,
    #[serde(skip)]
    interval: Option<(f64, f64)>,
}

impl Compare {
    pub fn run(self) -> Outcome {
        let runs = runs::load(&self.data, &[self.first, self.second], cores())?;
        let [first, second] = &runs[..] else { unreachable!("two runs were loaded") };
        let answers = [rated(first)?, rated(second)?];
        let players = players(&answers)?;
        let document = RunComparison {
            runs: [first.summary(), second.summary()],
            differences: differences(first, second),
            only: [only(&answers[0], &answers[1]), only(&answers[1], &answers[0])],
            players,
        };
        print(self.json, &document, |out| write_document(&document, out))
    }
}

fn rated(run: &LoadedRun) -> anyhow::Result<TournamentRatings> {
    run.check_played()?;
    let tally = &run.results.tally;
    let resampling = Some(Resampling { replicas: DEFAULT_REPLICAS, seed: 1, threads: cores() });
    let options = Options { resampling, ..Options::default() };
    tally.rate(&options, &|| ()).map_err(|error| anyhow::Error::from(error).context(run.run.id.clone()))
}

/// Returns the players of both runs, the greatest gain first.
fn players([first, second]: &[TournamentRatings; 2]) -> Result<Vec<Player>, UsageError> {
    let index_of = |answer: &TournamentRatings, name: &str| {
        answer.standings().iter().position(|standing| standing.name == name)
    };
    let both: Vec<(usize, usize)> = first
        .standings()
        .iter()
        .enumerate()
        .filter_map(|(index, standing)| Some((index, index_of(second, &standing.name)?)))
        .collect();
    // The common mean leaves out players with only a bound, and those that no results connect with the largest group.
    let rated = |standing: &Standing| standing.bound.is_none() && standing.component == 0;
    let common: Vec<(usize, usize)> = both
        .iter()
        .copied()
        .filter(|&(one, other)| rated(&first.standings()[one]) && rated(&second.standings()[other]))
        .collect();
    if both.len() < 2 {
        bail_usage!(
            "the runs share fewer than two players; changes are relative to the players of both runs"
        );
    }
    // The zero is the mean of the common players, or of two the second, so that the first has their whole difference.
    let zero = if common.len() == 2 { vec![common[1]] } else { common };
    let (ones, others): (Vec<usize>, Vec<usize>) = zero.into_iter().unzip();
    let side = |answer: &TournamentRatings, index: usize, common: &[usize]| {
        let standing = &answer.standings()[index];
        let relative = answer.relative(index, common);
        Side {
            elo: relative.map(|relative| relative.elo),
            games: standing.games,
            score: standing.score,
            interval: relative.and_then(|relative| relative.interval),
        }
    };
    let mut players: Vec<Player> = both
        .iter()
        .map(|&(one, other)| {
            let (before, after) = (side(first, one, &ones), side(second, other, &others));
            let change = after.elo.zip(before.elo).map(|(after, before)| after - before);
            let interval = change_interval(&before, &after);
            Player {
                name: first.standings()[one].name.clone(),
                low: interval.map(|(low, _)| low),
                high: interval.map(|(_, high)| high),
                first: before,
                second: after,
                change,
            }
        })
        .collect();
    let key = |player: &Player| player.change.unwrap_or(f64::NEG_INFINITY);
    players.sort_by(|one, other| key(other).total_cmp(&key(one)));
    Ok(players)
}

/// Returns the 95 % interval of the change between two independent ratings from their intervals, which need not be
/// symmetric (Zou and Donner 2008, "Construction of confidence limits about effect measures").
fn change_interval(before: &Side, after: &Side) -> Option<(f64, f64)> {
    let ((one, other), ends) = (before.elo.zip(after.elo)?, before.interval.zip(after.interval)?);
    let ((one_low, one_high), (other_low, other_high)) = ends;
    let change = other - one;
    Some((
        change - (other - other_low).hypot(one_high - one),
        change + (other_high - other).hypot(one - one_low),
    ))
}

fn only(answer: &TournamentRatings, other: &TournamentRatings) -> Vec<String> {
    let names = answer.standings().iter().map(|standing| &standing.name);
    names.filter(|name| other.standings().iter().all(|known| known.name != **name)).cloned().collect()
}

fn write_document(document: &RunComparison, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::of_numbers("player", &["Elo 1", "Elo 2", "change", "95 %", "score 1", "score 2"])
        .optional(&["score 2", "score 1", "Elo 2", "Elo 1"]);
    for player in &document.players {
        let elo = |elo: Option<f64>| elo.map_or_else(|| "-".to_string(), |elo| signed(elo, 1));
        let score = |side: &Side| side.score.map_or_else(String::new, percent);
        let interval = player.low.zip(player.high);
        table.row([
            player.name.clone(),
            elo(player.first.elo),
            elo(player.second.elo),
            elo(player.change),
            interval
                .map_or_else(String::new, |(low, high)| format!("{} to {}", signed(low, 1), signed(high, 1))),
            score(&player.first),
            score(&player.second),
        ]);
    }
    table.write(out)?;
    writeln!(out)?;
    let [first, second] = &document.runs;
    let mut facts = vec![
        ("run 1", format!("{}: {}", first.run, first.progress)),
        ("run 2", format!("{}: {}", second.run, second.progress)),
    ];
    for (name, only) in ["only in 1", "only in 2"].into_iter().zip(&document.only) {
        if !only.is_empty() {
            facts.push((name, only.join(", ")));
        }
    }
    if document.differences.is_empty() {
        facts.push(("differs", "nothing in the specs".to_string()));
    }
    facts.extend(document.differences.iter().map(|difference| {
        ("differs", format!("{}: {} | {}", difference.what, difference.first, difference.second))
    }));
    write_facts(&facts, out)?;
    let zero = document.players.iter().find(|player| {
        document.players.len() == 2
            && [&player.first, &player.second].iter().all(|side| side.elo == Some(0.0))
    });
    let zero = zero.map_or("the mean of the players with a rating in both runs", |player| &player.name);
    write_sentence(
        &format!(
            "Elo is relative to {zero}. The unit of evidence is the bout; the runs count as independent."
        ),
        out,
    )
}
