//! Results of two players on the command line: pairs of games by score, or single games won, drawn and lost.

use std::io::{self, Write};

use agon_stats::pairs::{Games, Pairs, Scores};
use clap::Args;
use serde::Serialize;

use crate::table::{likelihood, signed, write_facts, write_sentence};

/// The largest count: the sum of five is exact in floating point.
const LARGEST_COUNT: u64 = 1_000_000_000_000;

/// Below this number of bouts, or of games without bouts, intervals are wider than necessary, and a test's pace is no
/// forecast.
pub const FEW_UNITS: u64 = 50;

/// Results of the first player.
#[derive(Args)]
pub struct Counts {
    /// Bouts of two games, one from each seat, by the first player's score: LL, LD, LW or DD, WD, WW
    #[arg(long, value_name = "N0,N1,N2,N3,N4", value_parser = read_pairs, allow_hyphen_values = true)]
    pub pairs: Option<Pairs>,
    /// Games won, drawn and lost by the first player, if bouts are not known
    #[arg(long, value_name = "W,D,L", value_parser = read_games, allow_hyphen_values = true, conflicts_with = "pairs")]
    pub wdl: Option<Games>,
}

impl Counts {
    /// Returns the given results.
    pub fn scores(&self) -> Option<Scores> {
        self.pairs.map(Scores::from).or(self.wdl.map(Scores::from))
    }
}

fn read_pairs(text: &str) -> Result<Pairs, String> {
    let counts = read_counts(text).map(Pairs);
    counts.ok_or_else(|| {
        format!(
            "pairs are five whole numbers from 0 to {LARGEST_COUNT}: how many bouts scored 0, 1/2, 1, 3/2 and 2 points, \
             such as 13,37,50,25,3"
        )
    })
}

fn read_games(text: &str) -> Result<Games, String> {
    let counts = read_counts(text).map(|[wins, draws, losses]| Games { wins, draws, losses });
    counts.ok_or_else(|| {
        format!("games are three whole numbers from 0 to {LARGEST_COUNT}: won, drawn, lost, such as 60,30,10")
    })
}

fn read_counts<const N: usize>(text: &str) -> Option<[u64; N]> {
    let count = |text: &str| text.trim().parse().ok().filter(|&count| count <= LARGEST_COUNT);
    let counts: Option<Vec<u64>> = text.split(',').map(count).collect();
    counts?.try_into().ok()
}

/// Returns wins, draws and losses in the order of the option.
pub fn wins_draws_losses(games: Games) -> [u64; 3] {
    [games.wins, games.draws, games.losses]
}

/// Formats a value with its 95 % interval: `+55.58 +- 27.65 (+28.50 to +83.80)`, or without the ends that the results
/// do not bound.
pub fn plus_minus(value: f64, low: Option<f64>, high: Option<f64>) -> String {
    let value = signed(value, 2);
    match (low, high) {
        (Some(low), Some(high)) => {
            format!("{value} +- {:.2} ({} to {})", (high - low) / 2.0, signed(low, 2), signed(high, 2))
        }
        (Some(low), None) => format!("{value} (at least {})", signed(low, 2)),
        (None, Some(high)) => format!("{value} (at most {})", signed(high, 2)),
        (None, None) => value,
    }
}

/// The estimates from results in a JSON answer, with the half-widths and ends of 95 % intervals.
#[derive(Serialize, Default)]
pub struct Estimates {
    pub elo: Option<f64>,
    pub elo_error: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub nelo: Option<f64>,
    pub nelo_error: Option<f64>,
    pub los: Option<f64>,
}

impl Estimates {
    /// Estimates from results.
    pub fn of(scores: &Scores) -> Estimates {
        let (elo, nelo) = (scores.compare(), scores.normalised_elo());
        Estimates {
            elo: elo.map(|comparison| comparison.elo),
            elo_error: elo.and_then(|comparison| comparison.error()),
            low: elo.and_then(|comparison| comparison.low),
            high: elo.and_then(|comparison| comparison.high),
            nelo: nelo.map(|estimate| estimate.value),
            nelo_error: nelo.and_then(|estimate| estimate.error()),
            los: elo.map(|comparison| comparison.los),
        }
    }
}

/// The players of results on the command line.
pub const UNNAMED: [&str; 2] = ["the first player", "the second"];

/// Writes facts, those of the results of two players, and the warnings that belong to the results.
pub fn write(
    mut before: Vec<(&str, String)>,
    scores: &Scores,
    players: [&str; 2],
    out: &mut impl Write,
) -> io::Result<()> {
    before.extend(facts(scores, players));
    write_facts(&before, out)?;
    cautions(scores).iter().try_for_each(|caution| write_sentence(caution, out))
}

/// Describes results: Elo, normalised Elo, superiority, score and number of games.
fn facts(scores: &Scores, [one, other]: [&str; 2]) -> Vec<(&'static str, String)> {
    let (Some(comparison), Some(mean)) = (scores.compare(), scores.mean()) else {
        return vec![("games", "none yet".to_string())];
    };
    let normalised = scores.normalised_elo();
    let unit = if scores.games_per_unit() == 2.0 { "bouts" } else { "single games" };
    let games = scores.units() * scores.games_per_unit() as u64;
    let mut facts = vec![
        ("Elo", plus_minus(comparison.elo, comparison.low, comparison.high)),
        (
            "nElo",
            normalised.map_or_else(
                || "not estimable: all scored the same".to_string(),
                |estimate| plus_minus(estimate.value, estimate.low, estimate.high),
            ),
        ),
        ("LOS", format!("{}: {}", likelihood(comparison.los), comparison.sentence(one, other))),
        ("score", format!("{:.2} %", 100.0 * mean)),
        (
            "games",
            if scores.games_per_unit() == 2.0 {
                format!("{games} in {} {unit}", scores.units())
            } else {
                format!("{games} {unit}")
            },
        ),
    ];
    facts.extend(pentanomial(scores.counts()).map(|counts| ("pairs", counts)));
    facts
}

/// Describes the bouts of two games by the first player's score; none for single games.
pub fn pentanomial(counts: &[u64]) -> Option<String> {
    let [zero, half, one, three_halves, two] = counts else { return None };
    Some(format!("{zero}, {half}, {one}, {three_halves}, {two} bouts with 0, 1/2, 1, 3/2, 2 points"))
}

/// Returns the warnings that belong to results.
fn cautions(scores: &Scores) -> Vec<String> {
    let mut cautions = Vec::new();
    let Some(comparison) = scores.compare() else { return cautions };
    let unit = if scores.games_per_unit() == 2.0 { "bout" } else { "game" };
    if let Some(caution) = comparison.caution(unit) {
        cautions.push(caution);
    } else if scores.units() < FEW_UNITS {
        cautions.push(format!(
            "With fewer than {FEW_UNITS} {unit}s the interval is wider than it needs to be, so that it is right at any score."
        ));
    }
    if scores.games_per_unit() == 1.0 {
        cautions.push(
            "Single games count as independent. If each opening was played from both sides, use --pairs."
                .to_string(),
        );
    }
    cautions
}
