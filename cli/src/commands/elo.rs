//! `agon elo`: conversions between scores, Elo differences and results of two players.

use agon_stats::elo::{LARGEST_DIFFERENCE, LEAST_SCORE, Split, difference, expected_score};
use agon_stats::pairs::Scores;
use clap::Args;
use serde::Serialize;

use super::counts::{self, Counts, Estimates};
use crate::fail::{Outcome, bail_usage};
use crate::number::real;
use crate::table::{print, signed, write_facts};

#[derive(Args)]
pub struct Elo {
    /// Convert a score from 0 to 1 to an Elo difference
    #[arg(long, value_name = "SCORE", value_parser = real("the score", 0.0, 1.0), allow_negative_numbers = true)]
    score: Option<f64>,
    /// Convert an Elo difference to the expected score
    #[arg(long, value_name = "ELO", value_parser = real("the difference", -10_000.0, 10_000.0), allow_negative_numbers = true)]
    difference: Option<f64>,
    #[command(flatten)]
    counts: Counts,
    /// Draw rate between equal players; also prints the shares of wins, draws and losses
    #[arg(long, value_name = "SHARE", value_parser = real("the draw rate", 0.0, 1.0), allow_negative_numbers = true, conflicts_with_all = ["pairs", "wdl"])]
    draw_rate: Option<f64>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Default)]
struct Document {
    score: Option<f64>,
    #[serde(flatten)]
    estimates: Estimates,
    games: Option<u64>,
    win: Option<f64>,
    draw: Option<f64>,
    loss: Option<f64>,
}

impl Elo {
    pub fn run(self) -> Outcome {
        let scores = self.counts.scores();
        let (score, elo) = match (self.score, self.difference, scores) {
            (Some(score), None, None) => (score, difference(score)),
            (None, Some(elo), None) => (expected_score(elo), elo),
            (None, None, Some(scores)) => return self.results(&scores),
            _ => {
                bail_usage!(
                    "give one of --score 0.75, --difference 100, --wdl 60,30,10 or --pairs 13,37,50,25,3"
                );
            }
        };
        let split = self.draw_rate.map(|rate| Split::at(score, rate));
        let document = Document {
            score: Some(score),
            estimates: Estimates { elo: Some(elo), ..Estimates::default() },
            win: split.map(|split| split.win),
            draw: split.map(|split| split.draw),
            loss: split.map(|split| split.loss),
            ..Document::default()
        };
        let mut facts =
            vec![("Elo", self.difference_text(elo)), ("score", format!("{:.2} %", 100.0 * score))];
        if let Some(Split { win, draw, loss }) = split {
            facts.extend(
                [("won", win), ("drawn", draw), ("lost", loss)]
                    .map(|(name, share)| (name, format!("{:.2} %", 100.0 * share))),
            );
        }
        print(self.json, &document, |out| write_facts(&facts, out))
    }

    /// Formats a difference; scores close to 0 and 1 only bound it.
    fn difference_text(&self, elo: f64) -> String {
        match self.score {
            Some(score) if score > 1.0 - LEAST_SCORE => format!("> {LARGEST_DIFFERENCE:.1}"),
            Some(score) if score < LEAST_SCORE => format!("< -{LARGEST_DIFFERENCE:.1}"),
            _ => signed(elo, 2),
        }
    }

    fn results(&self, scores: &Scores) -> Outcome {
        // Pairs do not show how single games ended.
        let games = self.counts.wdl.filter(|_| scores.units() > 0);
        let share = |count: u64| count as f64 / scores.units() as f64;
        let document = Document {
            score: scores.mean(),
            estimates: Estimates::of(scores),
            games: Some(scores.units() * scores.games_per_unit() as u64),
            win: games.map(|games| share(games.wins)),
            draw: games.map(|games| share(games.draws)),
            loss: games.map(|games| share(games.losses)),
        };
        print(self.json, &document, |out| counts::write(Vec::new(), scores, counts::UNNAMED, out))
    }
}
