//! `agon compare`: what changed from one run to another: each player's rating against the players that both runs have, its
//! score, and what the two specs say differently.
//!
//! Ratings of two runs have no common zero. The mean of the players in both is taken for one, so that a change is a change
//! against them, and if all of them grew stronger alike nothing shows. The runs count as independent.

mod differences;

use std::io::{self, Write};
use std::process::ExitCode;

use agon_stats::distribution::Z95;
use agon_stats::pool::{self, DEFAULT_REPLICAS, Standing};
use agon_stats::tournament::{Answer, Errors, Options};
use agon_storage::location::Location;
use clap::Args;
use serde::Serialize;

use self::differences::{Difference, differences};
use super::runs::{self, Counted, Told};
use crate::fail::{Outcome, WrongCall};
use crate::table::{Align, Table, shortened, signed, write_facts, write_json, write_sentence};

/// The longest name.
const NAME: usize = 20;

/// The arguments of `agon compare`.
#[derive(Args)]
pub struct Compare {
    /// First run: id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN")]
    first: String,
    /// Second run
    #[arg(value_name = "RUN")]
    second: String,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "PLACE", default_value = "agon-data")]
    data: Location,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    runs: [Told; 2],
    /// What the specs say differently.
    differences: Vec<Difference>,
    players: Vec<Player>,
    /// Players of one run alone.
    only: [Vec<String>; 2],
}

/// A player of both runs.
#[derive(Serialize)]
struct Player {
    name: String,
    first: Side,
    second: Side,
    /// By how much its rating grew, with the ends of the interval of 95 %; none where there is only a bound.
    change: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// A player in one of the runs.
#[derive(Serialize)]
struct Side {
    /// Against the mean of the players of both runs.
    elo: Option<f64>,
    games: u64,
    score: Option<f64>,
    #[serde(skip)]
    deviation: Option<f64>,
}

impl Compare {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let runs = runs::read(&self.data, &[self.first, self.second], runs::cores())?;
        let [first, second] = &runs[..] else { unreachable!("two runs were asked for") };
        let answers = [rated(first)?, rated(second)?];
        let players = players(&answers)?;
        let document = Document {
            runs: [first.told(), second.told()],
            differences: differences(first, second),
            only: [only(&answers[0], &answers[1]), only(&answers[1], &answers[0])],
            players,
        };
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&document, &mut out)?;
        } else {
            write_document(&document, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn rated(counted: &Counted) -> anyhow::Result<Answer> {
    counted.check_played()?;
    let tally = &counted.results.tally;
    // Errors of two seats come by formula, those of more take replicas.
    let errors = match tally.seats() {
        Some(2) | None => Errors::Sandwich,
        Some(_) => Errors::Bootstrap { replicas: DEFAULT_REPLICAS, seed: 1, threads: runs::cores() },
    };
    let options = Options { model: pool::Options::default(), errors };
    tally.answer(&options, &|| ()).map_err(|error| anyhow::Error::from(error).context(counted.run.id.clone()))
}

/// The players of both, the greatest gain first.
fn players([first, second]: &[Answer; 2]) -> Result<Vec<Player>, WrongCall> {
    let place =
        |answer: &Answer, name: &str| answer.standings().iter().position(|standing| standing.name == name);
    let both: Vec<(usize, usize)> = first
        .standings()
        .iter()
        .enumerate()
        .filter_map(|(index, standing)| Some((index, place(second, &standing.name)?)))
        .collect();
    // Who has only a bound in one of the runs is no measure for the others, nor is who cannot be compared with most.
    let rated = |standing: &Standing| standing.bound.is_none() && standing.component == 0;
    let common: Vec<(usize, usize)> = both
        .iter()
        .copied()
        .filter(|&(one, other)| rated(&first.standings()[one]) && rated(&second.standings()[other]))
        .collect();
    if both.len() < 2 {
        return Err(WrongCall(
            "the runs have fewer than two players in common; a change shows only against others who are in both".into(),
        ));
    }
    let (ones, others): (Vec<usize>, Vec<usize>) = common.into_iter().unzip();
    let side = |answer: &Answer, index: usize, common: &[usize]| {
        let standing = &answer.standings()[index];
        let relative = answer.relative(index, common);
        Side {
            elo: relative.map(|(elo, _)| elo),
            games: standing.games,
            score: standing.score,
            // Where all bouts of a run came out alike nothing tells how sure it is.
            deviation: relative.map(|(_, deviation)| deviation).filter(|deviation| *deviation > 1e-3),
        }
    };
    let mut players: Vec<Player> = both
        .iter()
        .map(|&(one, other)| {
            let (before, after) = (side(first, one, &ones), side(second, other, &others));
            let change = after.elo.zip(before.elo).map(|(after, before)| after - before);
            let error = after
                .deviation
                .zip(before.deviation)
                .map(|(after, before)| Z95 * (after * after + before * before).sqrt());
            Player {
                name: first.standings()[one].name.clone(),
                low: change.zip(error).map(|(change, error)| change - error),
                high: change.zip(error).map(|(change, error)| change + error),
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

fn only(answer: &Answer, other: &Answer) -> Vec<String> {
    let names = answer.standings().iter().map(|standing| &standing.name);
    names.filter(|name| other.standings().iter().all(|known| known.name != **name)).cloned().collect()
}

fn write_document(document: &Document, out: &mut impl Write) -> io::Result<()> {
    let header = ["Elo 1", "Elo 2", "change", "95 %", "score 1", "score 2"].map(|name| (name, Align::Right));
    let header: Vec<(&str, Align)> = [("player", Align::Left)].into_iter().chain(header).collect();
    let mut table = Table::new(&header);
    for player in &document.players {
        let elo = |elo: Option<f64>| elo.map_or_else(|| "-".to_string(), |elo| signed(elo, 1));
        let score =
            |side: &Side| side.score.map_or_else(String::new, |score| format!("{:.1} %", 100.0 * score));
        let interval = player.low.zip(player.high);
        table.row([
            shortened(&player.name, NAME),
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
        ("run 1", format!("{}: {}", first.run, first.standing)),
        ("run 2", format!("{}: {}", second.run, second.standing)),
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
    write_sentence(
        "Elo is against the mean of the players that have a rating in both runs. The unit of evidence is the bout, and the \
         runs count as independent.",
        out,
    )
}
