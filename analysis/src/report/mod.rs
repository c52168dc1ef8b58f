//! A run as one page that can be mailed: what was asked, what came out and how sure it is, and how to do it again.
//!
//! [`Report::read`] gathers everything that the page says as plain data; [`Report::page`] is a function of that alone.
//! `standing.rs` has ratings and tests, `tuning.rs` tunes, `survey.rs` and `moments.rs` walk over the games, `words.rs` puts the answer into
//! sentences, `page.rs`, `sections.rs`, `searches.rs` and `svg.rs` draw. What does not apply to a run is a sentence that
//! says why. Deliberately not here: new statistics, and where the page is written to.

mod markup;
mod moments;
mod page;
mod searches;
mod sections;
mod standing;
mod survey;
mod svg;
mod tuning;
mod words;

use std::num::NonZeroUsize;

use agon_arena::spec::{Format, Plan, SpecPlayer};
use agon_records::{LimitKind, MoveRow};
use serde::Serialize;

use crate::boards::{BoardsError, boards};
use crate::dataset::{Dataset, DatasetError, Run};
use crate::format::worth;
use crate::games::{Query, Recordings};
use crate::pruning::{self, Pruning, PruningError};
use crate::tune::TuneError;

pub use standing::{Cell, Crosstable, Rated, Ratings, Test, Trace};
pub use survey::{Effort, GameLine, Lengths};
pub use tuning::{Trajectory, Tuning, Validation};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A game.
    #[error(transparent)]
    Boards(#[from] BoardsError),
    /// What is told of searches.
    #[error(transparent)]
    Pruning(#[from] PruningError),
    /// What is told of a tune.
    #[error(transparent)]
    Tune(#[from] TuneError),
}

/// How a report is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Resampled tournaments behind an interval.
    pub replicas: NonZeroUsize,
    /// Where they are drawn from.
    pub seed: u64,
    /// How many are made, and how many parts read, at once.
    pub threads: NonZeroUsize,
}

/// Something that a page says, or why it does not.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Told<T> {
    /// It is said.
    There(T),
    /// A sentence why not.
    Not {
        /// The sentence.
        why: String,
    },
}

impl<T> Told<T> {
    fn not(why: impl Into<String>) -> Told<T> {
        Told::Not { why: why.into() }
    }

    /// What is said, if it is.
    pub fn get(&self) -> Option<&T> {
        match self {
            Told::There(value) => Some(value),
            Told::Not { .. } => None,
        }
    }
}

/// What a run asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// Who is strongest.
    Tournament,
    /// Whether one of two is stronger.
    Test,
    /// Who needs fewest nodes.
    Probe,
    /// Which values are best.
    Tune,
}

/// Everything that a page says of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The run.
    pub run: String,
    /// The game with its parameters.
    pub game: String,
    /// What it asks.
    pub question: Question,
    /// How it stands: `running`, `paused`, `done`, `decided` or `cancelled`.
    pub state: &'static str,
    /// Whether more may come.
    pub complete: bool,
    /// Bouts, or positions of a probe, that are scheduled.
    pub bouts: u64,
    /// Those that are in the dataset and count.
    pub counted: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that are void.
    pub voided: u64,
    /// When it was submitted: microseconds since 1970, UTC.
    pub submitted_us: i64,
    /// The answer in a sentence.
    pub answer: String,
    /// What is to be said of it.
    pub remarks: Vec<String>,
    /// Who played or searched, in the order of the spec.
    pub players: Vec<Player>,
    /// Of a tune, how it went.
    pub tuning: Option<Tuning>,
    /// Of a sequential test, how it stands.
    pub test: Option<Test>,
    /// Ratings.
    pub ratings: Told<Ratings>,
    /// Who did what against whom.
    pub crosstable: Told<Crosstable>,
    /// Ratings after the first bouts.
    pub convergence: Told<Vec<Trace>>,
    /// How the players search and prune.
    pub pruning: Pruning,
    /// Time and depth by player.
    pub efforts: Vec<Effort>,
    /// How long games were.
    pub lengths: Option<Lengths>,
    /// Where games were decided.
    pub moments: Vec<Moment>,
    /// How to do it again.
    pub reproduction: Reproduction,
}

/// A player in a line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Player {
    /// Its name.
    pub name: String,
    /// Its algorithm.
    pub algorithm: String,
    /// What it may spend on a move.
    pub limit: String,
}

/// Where a game was decided.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Moment {
    /// The game.
    pub game: GameLine,
    /// Who lost it there.
    pub loser: String,
    /// The fall of the loser's score, in the mean change of its score from one move to its next.
    pub steps: f64,
    /// Whether the game has two seats, so that scores say who is ahead.
    pub duel: bool,
    /// The board before the loser's move.
    pub board: String,
    /// The plies from there to the loser's next.
    pub plies: Vec<Thought>,
}

/// A ply and what was thought at it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Thought {
    /// The ply.
    pub ply: u16,
    /// Who moved; nobody where it was chance.
    pub player: Option<String>,
    /// The move.
    #[serde(rename = "move")]
    pub mv: String,
    /// What it was worth to who searched it, in words; nothing where nobody did.
    pub worth: Option<String>,
    /// The last completed depth.
    pub depth: Option<u16>,
    /// The line that was expected.
    pub line: String,
}

/// What is needed to do it again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reproduction {
    /// The spec.
    pub spec: String,
    /// The files that it names, with their sizes in bytes.
    pub files: Vec<(String, u64)>,
    /// Of the spec, in hexadecimal.
    pub digest: String,
    /// The version of the program that coordinated.
    pub build: String,
    /// The versions of those that played, where there are games.
    pub played_by: Vec<String>,
    /// Whether every player plays the same again on any machine.
    pub repeatable: bool,
}

impl Report {
    /// Gathers everything. `watch` is told what is done, for those who show it.
    pub fn read(
        dataset: &Dataset,
        run: &Run,
        settings: &Settings,
        watch: &dyn Fn(&str),
    ) -> Result<Report, ReportError> {
        let spec = run.spec().map_err(DatasetError::from)?;
        let question = match &spec.plan {
            Plan::Probe(_) => Question::Probe,
            Plan::Tournament(Format::Sprt(_)) => Question::Test,
            Plan::Tournament(_) => Question::Tournament,
            Plan::Tune(_) => Question::Tune,
        };
        let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
        watch("results");
        let standing = standing::read(dataset, run, &spec, settings)?;
        watch("searches");
        let Settings { replicas, seed, threads } = *settings;
        let asked = pruning::Settings { replicas: replicas.get(), seed, threads };
        let pruning = pruning::pruning(dataset, run, asked)?;
        let survey = survey::survey(dataset, run, &names, question, &mut |count| {
            watch(&format!("{count} games or searches"));
        })?;
        watch("boards");
        let mut moments = Vec::new();
        for place in &survey.turning_points {
            moments.extend(moment(dataset, run, place)?);
        }
        let counted = match question {
            Question::Probe => survey.efforts.iter().map(|effort| effort.searches).max().unwrap_or(0),
            Question::Tournament | Question::Test => standing.bouts,
            // Only those of the validation rate anybody.
            Question::Tune => run.committed.saturating_sub(run.failed),
        };
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
            players: spec.players.iter().map(player).collect(),
            tuning: tuning::read(dataset, run)?,
            test: standing.test,
            ratings: standing.ratings,
            crosstable: standing.crosstable,
            convergence: standing.convergence,
            pruning,
            efforts: survey.efforts,
            lengths: survey.lengths,
            moments,
            reproduction: Reproduction {
                spec: run.source.text.clone(),
                files: run
                    .source
                    .files
                    .iter()
                    .map(|(name, text)| (name.clone(), text.len() as u64))
                    .collect(),
                digest: run.digest.clone(),
                build: run.build.clone(),
                played_by: survey.builds,
                repeatable: spec.is_repeatable(),
            },
        };
        (report.answer, report.remarks) = words::answer(&report);
        Ok(report)
    }

    /// The page: one HTML file that needs nothing else.
    pub fn page(&self) -> String {
        page::page(self)
    }
}

fn player(player: &SpecPlayer) -> Player {
    let (kind, value) = LimitKind::of(player.limit);
    Player {
        name: player.name.clone(),
        algorithm: player.config.algorithm.name.to_string(),
        limit: format!("{}={value}", kind.name()),
    }
}

/// A turning point with its board, and what was thought around it.
fn moment(dataset: &Dataset, run: &Run, place: &moments::Place) -> Result<Option<Moment>, ReportError> {
    let query = Query { bouts: Some(place.bout..=place.bout), game: Some(place.game), ..Query::default() };
    let Some(recording) = Recordings::new(dataset, run, &query)?.next().transpose()? else { return Ok(None) };
    let plies = u64::from(place.ply)..=u64::from(place.next);
    let board = boards(&recording, plies.clone())?.start.board;
    let players = &recording.game.players;
    let name = |row: &MoveRow| row.seat.and_then(|seat| players.get(usize::from(seat)).cloned());
    let shown = recording.moves.iter().filter(|row| plies.contains(&u64::from(row.ply)));
    let loser = shown.clone().next().and_then(name).unwrap_or_default();
    let thought = |row: &MoveRow| Thought {
        ply: row.ply,
        player: name(row),
        mv: row.mv.clone(),
        worth: row.search.as_ref().map(|search| worth(search.value())),
        depth: row.search.as_ref().map(|search| search.depth).filter(|depth| *depth > 0),
        line: row.search.as_ref().map(|search| search.pv.clone()).unwrap_or_default(),
    };
    Ok(Some(Moment {
        game: GameLine::from(&recording.game),
        loser,
        steps: place.steps,
        duel: players.len() == 2,
        board,
        plies: shown.map(thought).collect(),
    }))
}
