//! The result of a tune, reconstructed from the dataset: its path, its answer and the validation match.
//!
//! Each bout depends on the results before it, so feeding the games to the schedule in order reproduces the path. Only
//! proposals of the Gaussian process are read from the records, because they may round differently on another processor.

use std::collections::{BTreeMap, BTreeSet};

use agon_arena::spec::Values;
use agon_arena::spec::tune::{Tune, decimal, number};
use agon_records::{BoutRows, GameRow, Table};
use agon_schedule::schedule::{Schedule, ScheduleError};
use agon_schedule::tuning::{Proposal, Step, Tuning};
use agon_stats::acquisition::{Recommendation, Trial};
use agon_stats::comparison::Comparison;
use agon_stats::pairs::{PairScore, Pairs, Scores};
use agon_storage::summarise;

use crate::dataset::{Dataset, DatasetError, Run};

/// An error while reading a tune.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// From the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The spec cannot be scheduled.
    #[error("cannot schedule the spec of the run: {0}")]
    Schedule(#[from] ScheduleError),
    /// The run is not a tune.
    #[error("{run} is not a tune: its spec has no [tune]")]
    NoTune {
        /// The run.
        run: String,
    },
}

/// An error while reading the trials of a tournament.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialsError {
    /// From the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The opponent is unknown.
    #[error("there is no player `{name}` in {run}; its players are {known}")]
    NoPlayer {
        /// The name as given.
        name: String,
        /// The run.
        run: String,
        /// The players.
        known: String,
    },
    /// A player lacks a parameter.
    #[error("player `{player}`: {reason}")]
    NoValue {
        /// The player.
        player: String,
        /// The reason.
        reason: String,
    },
}

/// A tune at its current step.
#[derive(Debug)]
pub struct TuneResult {
    /// The tuned parameters and the method.
    pub tune: Tune,
    /// Scheduled steps.
    pub steps: u64,
    /// Completed steps of all repeats.
    pub path: Vec<Step>,
    /// Current parameter values; once all steps are complete, those of the answer.
    pub values: Vec<f64>,
    /// The answer of each repeat that is complete.
    pub answers: Vec<Values>,
    /// The repeat whose answer stands for all, once all are complete.
    pub chosen: Option<usize>,
    /// The score of the answer against the opponents that the Gaussian process predicts.
    pub expected: Option<Recommendation>,
    /// The matches of the validation: those of the first repeat, then of the others.
    pub matches: Vec<Match>,
    /// The tuned player as a `[[player]]` table.
    pub player: Option<String>,
    /// Name of the tuned player.
    pub name: String,
    /// The tuning schedule.
    pub tuning: Tuning,
}

/// A match of the validation.
#[derive(Clone, PartialEq, Debug)]
pub struct Match {
    /// The repeat, counted from 0.
    pub repeat: usize,
    /// Name of the tuned player.
    pub tuned: String,
    /// Name of its opponent.
    pub opponent: String,
    /// Whether the opponent is the player with its start values.
    pub is_start: bool,
    /// Scheduled bouts.
    pub scheduled: u64,
    /// The score of the tuned player in each bout that did not fail, in thousandths.
    pub scores: Vec<u16>,
    /// The number of seats of the game.
    pub seats: usize,
}

impl Match {
    /// Returns the number of bouts by the tuned player's half points; none for more than two seats.
    pub fn pairs(&self) -> Option<Pairs> {
        let mut pairs = Pairs::default();
        for score in &self.scores {
            pairs.add(PairScore::from_half_points((score / 250) as u8)?);
        }
        (self.seats == 2).then_some(pairs)
    }

    /// Returns the mean score.
    pub fn mean(&self) -> Option<f64> {
        let sum: u64 = self.scores.iter().map(|score| u64::from(*score)).sum();
        (!self.scores.is_empty()).then(|| sum as f64 / (1000.0 * self.scores.len() as f64))
    }

    /// Compares the tuned player with its opponent.
    pub fn compare(&self) -> Option<Comparison> {
        match self.pairs() {
            Some(pairs) => Scores::from(pairs).compare(),
            None => {
                let shares: Vec<f64> = self.scores.iter().map(|score| f64::from(*score) / 1000.0).collect();
                Comparison::of_shares(&shares, self.seats)
            }
        }
    }
}

impl TuneResult {
    /// Reconstructs the tune of a run.
    pub fn read(dataset: &Dataset, run: &Run) -> Result<TuneResult, TuneError> {
        let spec = run.spec().map_err(DatasetError::from)?;
        let Some(tune) = spec.tune().cloned() else {
            return Err(TuneError::NoTune { run: run.id.clone() });
        };
        let mut schedule = Schedule::resume(spec)?;
        let scores = feed_results(dataset, run, &mut schedule)?;
        let spec = schedule.spec();
        let tuning = schedule.tuning().expect("the schedule of a tune has a tuning").clone();
        let answers: Vec<Values> = (0..tune.repeats).map_while(|repeat| tuning.answer(repeat)).collect();
        let chosen = (answers.len() as u64 == tune.repeats).then(|| middle(&tune, &answers));
        let player = chosen.map(|chosen| {
            let tuned = &spec.players[tune.tuned(chosen as u64)];
            let config = tune.configure(&tuned.config, &answers[chosen]);
            format!("[[player]]\nname = \"{}\"\n{}", tuned.name, config.to_toml(&spec.game))
        });
        let name = |player: usize| spec.players[player].name.clone();
        let matches = (0..tune.repeats as usize).flat_map(|repeat| {
            let tuned = tune.tuned(repeat as u64);
            let scores = &scores;
            tune.validation.opponents.iter().map(move |&opponent| Match {
                repeat,
                tuned: name(tuned),
                opponent: name(opponent),
                is_start: opponent == spec.tune().map_or(opponent, |tune| tune.player),
                scheduled: spec.tune().map_or(0, |tune| tune.validation.bouts),
                scores: scores.get(&(tuned, opponent)).cloned().unwrap_or_default(),
                seats: spec.tune().map_or(2, |tune| tune.seats),
            })
        });
        let matches = matches.collect();
        Ok(TuneResult {
            steps: tuning.steps(),
            path: tuning.path().collect(),
            values: chosen.map_or_else(|| tuning.values(), |chosen| answers[chosen].numbers()),
            expected: tuning.recommendation(chosen.unwrap_or(tuning.repeat())),
            name: name(tune.player),
            answers,
            chosen,
            matches,
            player,
            tune,
            tuning,
        })
    }

    /// Returns the match of the answer that stands for all against its start; the first match while there is none.
    pub fn proof(&self) -> Option<&Match> {
        let repeat = self.chosen.unwrap_or_default();
        self.matches.iter().find(|found| found.repeat == repeat && found.is_start)
    }

    /// Returns the trials as comma-separated values that another tune can import. Iterations of SPSA are no trials.
    pub fn trials(&self) -> Option<String> {
        let paths: Vec<&str> = self.tune.parameters.iter().map(|parameter| parameter.path.as_str()).collect();
        let rows = self.path.iter().filter_map(|step| {
            let score = step.score?;
            let values: Vec<String> =
                step.candidates.first()?.0.iter().map(|value| decimal(*value)).collect();
            Some(trial_line(&values, step.bouts, score, step.variance))
        });
        self.tuning.gaussian_process(0)?;
        Some(trial_lines(&paths, rows))
    }
}

/// Returns the answer with the least distance to the others, in shares of the ranges. It is chosen by its values and not by its
/// results, so that its validation is unbiased.
fn middle(tune: &Tune, answers: &[Values]) -> usize {
    let distance = |one: &Values, other: &Values| -> f64 {
        let squares = tune.parameters.iter().zip(one.numbers().into_iter().zip(other.numbers())).map(
            |(parameter, (one, other))| {
                let [least, most] = parameter.bounds.map(number);
                let share = |value: f64| {
                    if parameter.log {
                        (value / least).ln() / (most / least).ln()
                    } else {
                        (value - least) / (most - least)
                    }
                };
                (share(one) - share(other)).powi(2)
            },
        );
        squares.sum::<f64>().sqrt()
    };
    let total = |one: &Values| answers.iter().map(|other| distance(one, other)).sum::<f64>();
    let totals: Vec<f64> = answers.iter().map(total).collect();
    (0..totals.len()).min_by(|one, other| totals[*one].total_cmp(&totals[*other])).unwrap_or_default()
}

fn trial_lines(paths: &[&str], rows: impl Iterator<Item = String>) -> String {
    let header = format!("{},bouts,score,variance\n", paths.join(","));
    std::iter::once(header).chain(rows).collect()
}

fn trial_line(values: &[String], bouts: u64, score: f64, variance: Option<f64>) -> String {
    let variance = variance.unwrap_or(score * (1.0 - score) / 2.0);
    format!("{},{bouts},{score:.6},{variance:.6}\n", values.join(","))
}

/// Returns the results of the players of a tournament against one of them as trials: comma-separated values that a tune can
/// import. The values are those of `paths` in each player.
pub fn trials_of_tournament(
    dataset: &Dataset,
    run: &Run,
    against: &str,
    paths: &[String],
) -> Result<String, TrialsError> {
    let spec = run.spec().map_err(DatasetError::from)?;
    let names = || spec.players.iter().map(|player| player.name.as_str());
    let opponent = names().position(|name| name == against).ok_or_else(|| TrialsError::NoPlayer {
        name: against.to_string(),
        run: run.id.clone(),
        known: names().collect::<Vec<_>>().join(", "),
    })?;
    let mut values: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, player) in spec.players.iter().enumerate().filter(|(index, _)| *index != opponent) {
        let read = |path: &String| {
            let target = player.config.target(&spec.game, path);
            let (target, _) =
                target.map_err(|reason| TrialsError::NoValue { player: player.name.clone(), reason })?;
            let missing = || TrialsError::NoValue {
                player: player.name.clone(),
                reason: format!("`{path}` is not set; give it a value in the spec"),
            };
            Ok(player.config.number(&target).ok_or_else(missing)?.to_string())
        };
        values.insert(index, paths.iter().map(read).collect::<Result<_, TrialsError>>()?);
    }
    let voided: BTreeSet<u64> = run.voided.iter().copied().collect();
    let mut scores: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for part in dataset.parts(run, Table::Games)? {
        for (bout, rows) in BoutRows::by_bout(part.games()?, [], []) {
            let summary = summarise(&spec, &(&rows).into());
            let (&[first, second], false) = (summary.players(), voided.contains(&bout)) else { continue };
            let Some(score) = summary.score().map(|score| f64::from(score) / 1000.0) else { continue };
            if second == opponent {
                scores.entry(first).or_default().push(score);
            } else if first == opponent {
                scores.entry(second).or_default().push(1.0 - score);
            }
        }
    }
    let rows = scores.iter().filter_map(|(player, scores)| {
        let trial = Trial::new(Vec::new(), scores)?;
        let variance = (trial.bouts > 1).then(|| trial.squares / (trial.bouts - 1) as f64);
        Some(trial_line(values.get(player)?, trial.bouts, trial.score, variance))
    });
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    Ok(trial_lines(&paths, rows))
}

/// The scores of the validation in thousandths, by tuned player and opponent.
pub type ValidationScores = BTreeMap<(usize, usize), Vec<u16>>;

/// Feeds the bouts of a tune to its schedule in order and returns the scores of the validation; other runs are not read.
pub fn feed_results(
    dataset: &Dataset,
    run: &Run,
    schedule: &mut Schedule,
) -> Result<ValidationScores, DatasetError> {
    let mut validation = ValidationScores::new();
    let mut next = 0;
    if schedule.tuning().is_none() {
        return Ok(validation);
    }
    for part in dataset.parts(run, Table::Games)? {
        for (bout, rows) in BoutRows::by_bout(part.games()?, [], []) {
            // A hole is a failed bout: an unfinished run has no bouts after one that is still open.
            for failed in next..bout {
                propose_recorded(schedule, run, failed, None);
                schedule.record(failed, None);
            }
            propose_recorded(schedule, run, bout, rows.games.first());
            let summary = summarise(schedule.spec(), &(&rows).into());
            schedule.record(bout, summary.score());
            if let (&[tuned, opponent, ..], Some(score)) = (summary.players(), summary.score())
                && schedule.spec().is_rated(summary.players())
            {
                validation.entry((tuned, opponent)).or_default().push(score);
            }
            next = bout + 1;
        }
    }
    Ok(validation)
}

/// Supplies the proposals that the schedule is waiting for before a bout: the answer of a repeat from the manifest or from the
/// settings of a bout of the validation, a trial from the settings of its bout.
fn propose_recorded(schedule: &mut Schedule, run: &Run, bout: u64, row: Option<&GameRow>) {
    let is_rated = row.is_some_and(|row| {
        let players = schedule.spec().players.iter().enumerate();
        let seated: Vec<usize> = players
            .filter(|(_, player)| row.players.contains(&player.name))
            .map(|(index, _)| index)
            .collect();
        schedule.spec().is_rated(&seated)
    });
    let Some(tuning) = schedule.tuning_mut() else { return };
    while let Some(request) = tuning.pending_proposal()
        && tuning.bout(bout).is_none()
    {
        let tune = tuning.tune();
        let ends = run.tune.as_ref().map_or(&[][..], |tune| &tune.ends);
        let ended = ends.get(tuning.repeat()).filter(|end| end.bouts == tuning.known_bouts());
        let recorded = row.and_then(|row| row.settings.iter().find_map(|text| tune.read(text)));
        let proposals = match ended.and_then(|end| tune.read(&end.values)) {
            Some(answer) => vec![Proposal::answer(answer)],
            None if is_rated && tuning.repeat() as u64 + 1 == tune.repeats => {
                vec![Proposal::answer(recorded.unwrap_or_else(|| tune.start()))]
            }
            // The dataset lacks the answer of an earlier repeat until its manifest is written.
            None if request.asks_for_answer() => request.run(),
            None => vec![Proposal::Trial(recorded.unwrap_or_else(|| tune.start()).0)],
        };
        tuning.add_proposals(proposals);
    }
}
