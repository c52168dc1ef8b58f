//! A run as one self-contained HTML page: the answer with its uncertainty, the evidence, and how to reproduce it.
//!
//! [`Report::read`] gathers plain data, which is also the JSON document; [`Report::page`] renders it. `ratings.rs`,
//! `tuning.rs`, `play_statistics.rs` and `turning_points.rs` gather; `summary.rs` words the answer; the rest renders.
//! Statistics are computed in other modules.

mod boards;
mod drawing;
mod figures;
mod html;
mod page;
mod play_statistics;
mod players;
mod ratings;
mod searches;
mod sections;
mod summary;
mod svg;
mod tuning;
mod turning_points;

use std::num::NonZeroUsize;

use agon_arena::spec::{Format, Plan};
use agon_records::MoveRow;
use serde::Serialize;

use crate::board_view::{GameBoards, UnplayableGame, game_boards};
use crate::dataset::{Dataset, DatasetError, Run};
use crate::format::{grouped, signed, value_text};
use crate::games::{Query, Recordings};
use crate::pruning::{self, Interval, Pruning, PruningError};
use crate::tune::TuneError;

pub use play_statistics::{Effort, GameLengths, ListedGame};
pub use players::Player;
pub use ratings::{Crosstable, RatingHistory, Ratings, SequentialTest};
pub use tuning::{Effect, Trajectory, Tuning, Validation};

/// An error while gathering a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// From the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A game cannot be replayed.
    #[error(transparent)]
    Game(#[from] UnplayableGame),
    /// From the pruning statistics.
    #[error(transparent)]
    Pruning(#[from] PruningError),
    /// From the tune.
    #[error(transparent)]
    Tune(#[from] TuneError),
}

/// Options of a report.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bootstrap replicas for each interval.
    pub replicas: NonZeroUsize,
    /// Seed of the resampling.
    pub seed: u64,
    /// Number of threads.
    pub threads: NonZeroUsize,
}

/// A value, or the reason why a run does not have it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Availability<T> {
    /// The value.
    Available(T),
    /// No value.
    Missing {
        /// The reason, as a sentence.
        why: String,
    },
}

impl<T> Availability<T> {
    fn missing(why: impl Into<String>) -> Availability<T> {
        Availability::Missing { why: why.into() }
    }

    /// Returns the value, if available.
    pub fn get(&self) -> Option<&T> {
        match self {
            Availability::Available(value) => Some(value),
            Availability::Missing { .. } => None,
        }
    }
}

/// The question that a run answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// Which player is strongest.
    Tournament,
    /// Whether one of two players is stronger.
    Test,
    /// Which player needs the fewest nodes.
    Probe,
    /// Which parameter values are best.
    Tune,
}

/// The content of the page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Run id.
    pub run: String,
    /// The game with its parameters.
    pub game: String,
    /// The question that the run answers.
    pub question: Question,
    /// `running`, `paused`, `done`, `decided` or `cancelled`.
    pub state: &'static str,
    /// Whether the run is finished and exported.
    pub complete: bool,
    /// Scheduled bouts, or positions of a probe.
    pub bouts: u64,
    /// Those in the dataset that count.
    pub counted: u64,
    /// Failed bouts.
    pub failed: u64,
    /// Voided bouts.
    pub voided: u64,
    /// Submission time in microseconds since 1970, UTC.
    pub submitted_us: i64,
    /// The answer in one sentence.
    pub answer: String,
    /// Sentences that qualify the answer.
    pub remarks: Vec<String>,
    /// The players from best to worst, or in spec order if they have no common ratings.
    pub players: Vec<Player>,
    /// Results of a tune.
    pub tuning: Option<Tuning>,
    /// State of a sequential test.
    pub test: Option<SequentialTest>,
    /// Ratings.
    pub ratings: Availability<Ratings>,
    /// Head-to-head results.
    pub crosstable: Availability<Crosstable>,
    /// Ratings over growing prefixes of the schedule.
    pub convergence: Availability<Vec<RatingHistory>>,
    /// Search and pruning statistics.
    pub pruning: Pruning,
    /// Time and depth by player.
    pub efforts: Vec<Effort>,
    /// Lengths and endings of games.
    pub lengths: Option<GameLengths>,
    /// Turning points of lost games.
    pub moments: Vec<DecisiveMoment>,
    /// How to reproduce the run.
    pub reproduction: Reproduction,
}

/// The turning point of a lost game, with its board.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DecisiveMoment {
    /// The game.
    pub game: ListedGame,
    /// The player whose score dropped.
    pub loser: String,
    /// The drop in units of the player's mean change between consecutive searches.
    pub steps: f64,
    /// Whether the game has two seats, so that the sign of a score shows the leader.
    pub duel: bool,
    /// The position before the loser's move.
    pub before: String,
    /// The position after it.
    pub position: String,
    /// The board after it, as text.
    pub board: String,
    /// The plies up to the loser's next search.
    pub plies: Vec<SearchedPly>,
}

/// A ply with its search result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SearchedPly {
    /// Ply number.
    pub ply: u16,
    /// The player to move; `None` for chance.
    pub player: Option<String>,
    /// The move.
    #[serde(rename = "move")]
    pub mv: String,
    /// The value found by the search, in words; `None` without a search.
    pub worth: Option<String>,
    /// The last completed depth.
    pub depth: Option<u16>,
    /// The principal variation.
    pub line: String,
}

/// Everything needed to repeat the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reproduction {
    /// The spec.
    pub spec: String,
    /// Files named by the spec, with their sizes in bytes.
    pub files: Vec<(String, u64)>,
    /// Digest of the spec, in hexadecimal.
    pub digest: String,
    /// Version of the coordinator.
    pub build: String,
    /// Versions of the workers, if there are games.
    pub played_by: Vec<String>,
    /// Whether every player plays the same moves again on any machine.
    pub repeatable: bool,
}

impl Report {
    /// Gathers the report; calls `progress` with the current step.
    pub fn read(
        dataset: &Dataset,
        run: &Run,
        settings: &Settings,
        progress: &dyn Fn(&str),
    ) -> Result<Report, ReportError> {
        let spec = run.spec().map_err(DatasetError::from)?;
        let question = match &spec.plan {
            Plan::Probe(_) => Question::Probe,
            Plan::Tournament(Format::Sprt(_)) => Question::Test,
            Plan::Tournament(_) => Question::Tournament,
            Plan::Tune(_) => Question::Tune,
        };
        let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
        progress("results");
        let results = ratings::read(dataset, run, &spec, settings)?;
        progress("searches");
        let Settings { replicas, seed, threads } = *settings;
        let pruning_settings = pruning::Settings { replicas: replicas.get(), seed, threads };
        let pruning = pruning::pruning(dataset, run, pruning_settings)?;
        let play = play_statistics::read(dataset, run, &names, question, &mut |count| {
            progress(&format!("{count} games or searches"));
        })?;
        progress("boards");
        let mut moments = Vec::new();
        for point in &play.turning_points {
            moments.extend(decisive_moment(dataset, run, point)?);
        }
        let counted = match question {
            Question::Probe => play.efforts.iter().map(|effort| effort.searches).max().unwrap_or(0),
            Question::Tournament | Question::Test => results.bouts,
            // Only the bouts of the validation are rated.
            Question::Tune => run.committed.saturating_sub(run.failed),
        };
        let files = run.source.files.iter();
        let mut report = Report {
            run: run.id.clone(),
            game: spec.game.to_string(),
            question,
            state: run.state.name(),
            complete: run.is_complete(),
            bouts: run.bouts,
            counted,
            failed: run.failed,
            voided: run.voided.len() as u64,
            submitted_us: run.submitted_us,
            answer: String::new(),
            remarks: Vec::new(),
            players: players::read(&spec),
            tuning: tuning::read(dataset, run)?,
            test: results.test,
            ratings: results.ratings,
            crosstable: results.crosstable,
            convergence: results.convergence,
            pruning,
            efforts: play.efforts,
            lengths: play.lengths,
            moments,
            reproduction: Reproduction {
                spec: run.source.text.clone(),
                files: files.map(|(name, text)| (name.clone(), text.len() as u64)).collect(),
                digest: run.digest.clone(),
                build: run.build.clone(),
                played_by: play.builds,
                repeatable: spec.is_repeatable(),
            },
        };
        players::order(&mut report);
        (report.answer, report.remarks) = summary::summarise(&report);
        Ok(report)
    }

    /// Renders the page as one self-contained HTML file.
    pub fn page(&self) -> String {
        page::page(self)
    }
}

/// Formats an interval, or `-` if its ends are unknown.
fn interval_text(interval: &Interval, number: impl Fn(f64) -> String) -> String {
    match (interval.low, interval.high) {
        (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
        (Some(low), None) => format!("at least {}", number(low)),
        (None, Some(high)) => format!("at most {}", number(high)),
        (None, None) => "-".to_string(),
    }
}

/// Formats a value with a sign, followed by its unit and its interval, which may be open, if known.
fn estimate_text(interval: &Interval, decimals: usize, unit: &str) -> String {
    let number = |number| grouped(&signed(number, decimals));
    let value = format!("{}{unit}", number(interval.value));
    match (interval.low, interval.high) {
        (None, None) => value,
        _ => format!("{value} (95 %: {})", interval_text(interval, number)),
    }
}

/// Reads the board and the searches around a turning point.
fn decisive_moment(
    dataset: &Dataset,
    run: &Run,
    point: &turning_points::TurningPoint,
) -> Result<Option<DecisiveMoment>, ReportError> {
    let query = Query { bouts: Some(point.bout..=point.bout), game: Some(point.game), ..Query::default() };
    let Some(recording) = Recordings::new(dataset, run, &query)?.next().transpose()? else { return Ok(None) };
    let plies = u64::from(point.ply)..=u64::from(point.next);
    let GameBoards { start, after } = game_boards(&recording, plies.clone())?;
    let Some(after) = after.into_iter().next() else { return Ok(None) };
    let players = &recording.game.players;
    let name = |row: &MoveRow| row.seat.and_then(|seat| players.get(usize::from(seat)).cloned());
    let shown = recording.moves.iter().filter(|row| plies.contains(&u64::from(row.ply)));
    let loser = shown.clone().next().and_then(name).unwrap_or_default();
    let searched = |row: &MoveRow| SearchedPly {
        ply: row.ply,
        player: name(row),
        mv: row.mv.clone(),
        worth: row.search.as_ref().map(|search| value_text(search.value())),
        depth: row.search.as_ref().map(|search| search.depth).filter(|depth| *depth > 0),
        line: row.search.as_ref().map(|search| search.pv.clone()).unwrap_or_default(),
    };
    Ok(Some(DecisiveMoment {
        game: ListedGame::from(&recording.game),
        loser,
        steps: point.steps,
        duel: players.len() == 2,
        before: start.position,
        position: after.position,
        board: after.board,
        plies: shown.map(searched).collect(),
    }))
}
