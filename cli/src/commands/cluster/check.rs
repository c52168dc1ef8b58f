//! `agon check`: reads a spec and prints its plan without playing.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agon_arena::roster::rotations;
use agon_arena::spec::tune::{Method, decimal};
use agon_arena::spec::{Format, Openings, Plan, Tune};
use agon_arena::{Arena, Environment, PlayerConfig, Spec};
use agon_schedule::schedule::Schedule;
use agon_schedule::tuning::Tuning;
use agon_search::Limit;
use clap::Args;
use serde::Serialize;

use super::spec_file::SpecFile;
use super::status::clock;
use crate::fail::{Outcome, UsageError};
use crate::number::cores;
use crate::table::{Align, Table, print, write_sentence};

#[derive(Args)]
pub struct Check {
    /// Spec file
    spec: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct CheckJson {
    run: String,
    game: String,
    players: Vec<String>,
    bouts: u64,
    games: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    openings: Option<Listed>,
    repeatable: bool,
    seconds: Option<f64>,
    /// The games that were played to estimate the time.
    measured_games: u64,
}

/// The openings of a file.
#[derive(Serialize)]
struct Listed {
    /// The openings in the file.
    listed: usize,
    /// The different positions that they lead to.
    distinct: usize,
}
/// The time spent on games that measure how long a game takes.
const MEASURED: Duration = Duration::from_secs(2);
const MEASURED_BOUTS: u64 = 50;

impl Check {
    pub fn run(self) -> Outcome {
        let file = SpecFile::read(&self.spec)?;
        let id = agon_schedule::run_id::first(&file.spec.name, &file.source)
            .map_err(|error| UsageError(error.to_string()))?;
        let mut schedule = Schedule::new(file.spec.clone())
            .map_err(|error| UsageError(format!("{}: {error}", self.spec.display())))?;
        let wrong = |error: agon_schedule::schedule::ScheduleError| UsageError(error.to_string());
        let bouts = schedule.bouts();
        let plays = !matches!(file.spec.plan, Plan::Probe(_));
        let mut games = 0;
        if file.spec.tune().is_some() {
            games = bouts * file.spec.game.parameters().seats() as u64;
        } else if plays {
            // All rounds have the same number of games.
            let round = schedule.pairings().unwrap_or(1).min(bouts).min(10_000);
            for index in 0..round {
                games += rotations(&schedule.draw_bout(index).map_err(wrong)?.players).count() as u64;
            }
            games = games * bouts / round.max(1);
        }
        let plies = f64::from(games_plies(&mut schedule).map_err(wrong)?);
        let mut measured_games = 0;
        let seconds = match (seconds_a_move(&file), file.spec.tune()) {
            (Some(move_time), _) => {
                let moves =
                    if plays { games as f64 * plies } else { bouts as f64 * file.spec.players.len() as f64 };
                Some(moves * move_time / cores().get() as f64)
            }
            // The engines of a spec may not be on this machine.
            (None, Some(_)) if file.spec.players.iter().all(|player| player.config.search().is_some()) => {
                let (played, seconds) = measure(&mut schedule)?;
                measured_games = played;
                Some(games as f64 * seconds / played.max(1) as f64 / cores().get() as f64)
            }
            (None, _) => None,
        };
        let answer = CheckJson {
            run: id,
            game: file.spec.game.to_string(),
            players: file.spec.players.iter().map(|player| player.name.clone()).collect(),
            bouts,
            games,
            openings: listed(&file.spec, &schedule).map_err(wrong)?,
            repeatable: file.spec.is_repeatable(),
            seconds,
            measured_games,
        };
        print(self.json, &answer, |out| {
            match file.spec.tune() {
                Some(tune) => write_tune(&answer.run, &file.spec, tune, out)?,
                None => writeln!(out, "{}: {} players of {}", answer.run, answer.players.len(), answer.game)?,
            }
            if plays {
                let sequential = matches!(file.spec.plan, Plan::Tournament(Format::Sprt(_)));
                let ends_early = file.spec.tune().is_some_and(|tune| tune.precision.is_some());
                let most = if sequential || ends_early { "at most " } else { "" };
                writeln!(out, "{most}{bouts} bouts with {games} games")?;
            } else {
                writeln!(out, "{bouts} positions, {} searches", bouts * answer.players.len() as u64)?;
            }
            if let Some(Listed { listed, distinct }) = answer.openings {
                writeln!(out, "{listed} openings in the file, {distinct} of them distinct")?;
            }
            if let Some(seconds) = answer.seconds {
                match answer.measured_games {
                    0 => writeln!(out, "at most about {} on this machine", clock(seconds))?,
                    played => {
                        let cores = cores();
                        writeln!(
                            out,
                            "about {} on the {cores} cores of this machine, measured over {played} games on one core",
                            clock(seconds)
                        )?;
                    }
                }
            }
            let repeat = if answer.repeatable {
                "repeatable bit by bit"
            } else {
                "not repeatable: they depend on time"
            };
            writeln!(out, "games are {repeat}")
        })
    }
}

/// Counts the openings of a file.
fn listed(
    spec: &Spec,
    schedule: &Schedule,
) -> Result<Option<Listed>, agon_schedule::schedule::ScheduleError> {
    let Openings::Lines(lines) = &spec.openings else { return Ok(None) };
    let keys = lines.iter().map(|line| schedule.referee().decision_key(line));
    let distinct = keys.collect::<Result<HashSet<u64>, _>>()?.len();
    Ok(Some(Listed { listed: lines.len(), distinct }))
}

/// Describes the plan of a tuning run.
fn write_tune(id: &str, spec: &Spec, tune: &Tune, out: &mut impl io::Write) -> io::Result<()> {
    let name = |player: usize| spec.players[player].name.as_str();
    let steps = tune.bouts / tune.step_bouts();
    writeln!(out, "{id}: tunes {} in {}", name(tune.player), spec.game)?;
    let how = match tune.method {
        Method::Spsa { window, .. } => {
            format!("{steps} iterations of SPSA, {window} at once, {} bouts each", tune.step_bouts())
        }
        Method::Bayes { batch } => {
            format!(
                "{steps} trials of a Gaussian process, {batch} together, {} bouts each",
                tune.step_bouts()
            )
        }
    };
    let opponents =
        tune.opponents.iter().map(|opponent| opponent.map_or("the other side", name)).collect::<Vec<_>>();
    writeln!(out, "{how}, against {}", opponents.join(", "))?;
    tune.advice().iter().try_for_each(|advice| write_sentence(advice, out))?;
    if tune.repeats > 1 {
        writeln!(out, "{} repeats, each with a seed of its own", tune.repeats)?;
    }
    if !tune.imported.is_empty() {
        let bouts: u64 = tune.imported.iter().map(|trial| trial.bouts).sum();
        writeln!(out, "{} trials of {bouts} bouts are imported", tune.imported.len())?;
    }
    if let Some(precision) = tune.precision {
        writeln!(out, "a repeat ends early when its answer is known to +- {precision} Elo (95 %)")?;
    }
    let words = ["parameter", "start", "min", "max", "kind", "scale", "step"];
    let mut table =
        Table::new(&words.map(|word| (word, if word == "parameter" { Align::Left } else { Align::Right })))
            .optional(&["scale", "kind"]);
    for parameter in &tune.parameters {
        let [least, most] = parameter.bounds.map(decimal);
        let step = parameter.step.map(|step| step.to_string()).unwrap_or_default();
        let kind = if parameter.whole { "integer" } else { "real" };
        let scale = if parameter.log { "log" } else { "linear" };
        let start = decimal(parameter.start);
        table.row([parameter.path.clone(), start, least, most, kind.to_string(), scale.to_string(), step]);
    }
    table.write(out)?;
    let opponents: Vec<&str> = tune.validation.opponents.iter().map(|&player| name(player)).collect();
    let tuned: Vec<&str> = (0..tune.repeats).map(|repeat| name(tune.tuned(repeat))).collect();
    let each = if tune.validation_bouts() > tune.validation.bouts { " each" } else { "" };
    writeln!(
        out,
        "then {} bouts{each} of {} against {}",
        tune.validation.bouts,
        tuned.join(", "),
        opponents.join(", ")
    )
}

/// Plays the first bouts of a tuning run on one core. Returns the number of games and the seconds that they took.
fn measure(schedule: &mut Schedule) -> anyhow::Result<(u64, f64)> {
    let spec = Arc::clone(schedule.spec());
    let configs: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
    let mut arena = Arena::new(&spec.game, &configs, Environment::system())?;
    let start = Instant::now();
    let mut games = 0;
    for index in 0..schedule.known_bouts().min(MEASURED_BOUTS) {
        let bout = schedule.draw_bout(index)?;
        for (player, config) in spec.configured_players(&bout.values) {
            arena.configure(player, config);
        }
        for game in spec.games(&bout, 1.0) {
            arena.play(&game, &mut |_| ())?;
            games += 1;
        }
        if start.elapsed() >= MEASURED {
            break;
        }
    }
    Ok((games, start.elapsed().as_secs_f64()))
}

/// Returns the ply limit of a game, at most 200.
fn games_plies(schedule: &mut Schedule) -> Result<u32, agon_schedule::schedule::ScheduleError> {
    if let Some(work) = schedule.tuning().and_then(Tuning::pending_proposal) {
        schedule.tuning_mut().into_iter().for_each(|tuning| tuning.add_proposals(work.clone().run()));
    }
    let opening = schedule.draw_bout(0)?.opening;
    let played = opening.moves.split_ascii_whitespace().count() as u32;
    Ok(schedule.referee().ply_bound().saturating_sub(played).min(200))
}

/// Returns the mean time limit per move, if all limits are times.
fn seconds_a_move(file: &SpecFile) -> Option<f64> {
    let times: Vec<Option<f64>> = file
        .spec
        .players
        .iter()
        .map(|player| match player.limit {
            Limit::Wall(time) | Limit::Cpu(time) => Some(time.as_secs_f64()),
            _ => None,
        })
        .collect();
    let known: Vec<f64> = times.iter().copied().flatten().collect();
    (known.len() == times.len()).then(|| known.iter().sum::<f64>() / known.len().max(1) as f64)
}
