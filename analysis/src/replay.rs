//! Replays recorded games and compares them with the records, bit by bit in every column of the content digest.
//!
//! Everything is derived from the run's own spec; only moves and counters come from the records. Games start with empty
//! tables and their own seeds, so each can be replayed without the rest of its bout. Runs with time limits are rejected,
//! because they are not reproducible.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use agon_arena::spec::{Plan, SpecPlayer};
use agon_arena::{Arena, Bout, Environment, GameRequest, PlayError, PlayerConfig, SeedPath, Spec, SpecError};
use agon_games::SetupError;
use agon_games::random::{below, seeded};
use agon_records::schema::NOT_IN_DIGEST;
use agon_records::{BoutRows, Cell, Cells, GameHead, GameRow, LimitKind, MoveRow, ProbeRow, RowError, Table};
use agon_schedule::schedule::{Schedule, ScheduleError};
use agon_search::Counters;
use serde::Serialize;

use crate::dataset::{Dataset, DatasetError, Part, Run};
use crate::scan::on_threads;
use crate::tune::feed_results;

/// Number of games read before they are replayed.
const BATCH: usize = 256;

/// An error while replaying.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The dataset cannot be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The spec cannot be parsed.
    #[error("cannot parse the spec of the run: {0}")]
    Spec(#[from] SpecError),
    /// The spec cannot be scheduled.
    #[error("cannot schedule the spec of the run: {0}")]
    Schedule(#[from] ScheduleError),
    /// A player has a time limit.
    #[error(
        "{run} cannot be replayed: `{player}` is limited by time ({kind}), so that its moves depend on the speed of the \
         machine; `agon verify {run}` checks the recorded games by the rules"
    )]
    Timed {
        /// The run.
        run: String,
        /// The player.
        player: String,
        /// Kind of limit.
        kind: &'static str,
    },
    /// A player is an engine.
    #[error(
        "{run} cannot be replayed: `{player}` is an engine, which a replay does not start; `agon verify {run}` checks the \
         recorded games by the rules"
    )]
    Engine {
        /// The run.
        run: String,
        /// The player.
        player: String,
    },
    /// The dataset has no games of the run.
    #[error("the run has no games in its dataset yet")]
    Empty,
    /// The bout or game is not recorded.
    #[error("bout {bout}{} is not in the dataset of the run", game_text(.game))]
    NotRecorded {
        /// The bout.
        bout: u64,
        /// The game, if one was requested.
        game: Option<u16>,
    },
    /// The spec has no such game.
    #[error(
        "bout {bout}, game {game} is in the dataset, but the run's spec has no such game; run `agon verify` for details"
    )]
    NotScheduled {
        /// The bout.
        bout: u64,
        /// The game.
        game: u16,
    },
    /// The game or search cannot be played.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// The game cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The replayed game does not fit into rows.
    #[error(transparent)]
    Row(#[from] RowError),
}

fn game_text(game: &Option<u16>) -> String {
    game.map(|game| format!(", game {game}")).unwrap_or_default()
}

/// Selection of games to replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// Random games spread evenly over the run.
    Sample {
        /// Number of games.
        games: u64,
        /// Seed of the sample.
        seed: u64,
    },
    /// One bout.
    Bout {
        /// Its number.
        bout: u64,
        /// One game of it; `None` for all.
        game: Option<u16>,
    },
}

/// Result of a replay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Replay {
    /// The run.
    pub run: String,
    /// The number of replayed games, or searches of a probe.
    pub games: u64,
    /// The number of these that are identical.
    pub identical_games: u64,
    /// The number of plies recorded for them.
    pub moves: u64,
    /// The number of these that are identical.
    pub identical_moves: u64,
    /// First difference by bout and game.
    pub difference: Option<Difference>,
}

/// The first difference between a record and its replay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// The bout.
    pub bout: u64,
    /// The game, or search of a probe.
    pub game: u16,
    /// The ply; `None` for a column of the game.
    pub ply: Option<u16>,
    /// The column.
    pub column: &'static str,
    /// The value in the dataset.
    pub recorded: String,
    /// The replayed value.
    pub replayed: String,
}

/// Replays recorded games of a run.
pub fn replay(
    dataset: &Dataset,
    run: &Run,
    selection: Selection,
    threads: NonZeroUsize,
) -> Result<Replay, ReplayError> {
    let spec = Spec::parse(&run.source)?;
    if let Some(player) = spec.players.iter().find(|player| player.config.engine().is_some()) {
        return Err(ReplayError::Engine { run: run.id.clone(), player: player.name.clone() });
    }
    if let Some(player) = spec.players.iter().find(|player| !player.is_repeatable()) {
        let (kind, _) = LimitKind::of(player.limit);
        let (run, player) = (run.id.clone(), player.name.clone());
        return Err(ReplayError::Timed { run, player, kind: kind.name() });
    }
    let mut collector = Collector::new(dataset, run, spec)?;
    let mut result = Replay {
        run: run.id.clone(),
        games: 0,
        identical_games: 0,
        moves: 0,
        identical_moves: 0,
        difference: None,
    };
    // Batch games of several parts, so that a sparse sample keeps all threads busy.
    let mut pending = Vec::new();
    for (part, rows) in collector.select(selection)? {
        pending.extend(collector.tasks(&part, &rows)?);
        if pending.len() >= BATCH {
            result.add_all(play_all(collector.schedule.spec(), &pending, threads)?);
            pending.clear();
        }
    }
    result.add_all(play_all(collector.schedule.spec(), &pending, threads)?);
    Ok(result)
}

impl Replay {
    /// Adds outcomes. Precondition: they are in the order of bouts and games.
    fn add_all(&mut self, outcomes: Vec<Outcome>) {
        for outcome in outcomes {
            self.games += 1;
            self.identical_games += u64::from(outcome.difference.is_none());
            self.moves += outcome.moves;
            self.identical_moves += outcome.identical_moves;
            self.difference = self.difference.take().or(outcome.difference);
        }
    }
}

/// A recorded game or search with its scheduled bout.
struct Task {
    bout: Bout,
    recorded: Recorded,
}

enum Recorded {
    Game { request: GameRequest, row: GameRow, moves: Vec<MoveRow> },
    Search(ProbeRow),
}

/// The comparison of one game or search.
struct Outcome {
    moves: u64,
    identical_moves: u64,
    difference: Option<Difference>,
}

/// Reads the selected rows and schedules their bouts.
struct Collector {
    schedule: Schedule,
    /// Parts of `games` or `probes`.
    parts: Vec<Part>,
    /// Parts of `moves`.
    moves: Vec<Part>,
}

impl Collector {
    fn new(dataset: &Dataset, run: &Run, spec: Spec) -> Result<Collector, ReplayError> {
        let table = match spec.plan {
            Plan::Tournament(_) | Plan::Tune(_) => Table::Games,
            Plan::Probe(_) => Table::Probes,
        };
        let mut schedule = Schedule::new(spec)?;
        feed_results(dataset, run, &mut schedule)?;
        Ok(Collector {
            schedule,
            parts: dataset.parts(run, table)?,
            moves: dataset.parts(run, Table::Moves)?,
        })
    }

    /// Returns the parts to read with the indices of the selected rows.
    fn select(&self, selection: Selection) -> Result<Vec<(Part, Vec<u64>)>, ReplayError> {
        match selection {
            Selection::Sample { games, seed } => self.sample(games, seed),
            Selection::Bout { bout, game } => self.find(bout, game),
        }
    }

    /// Selects a stratified sample: one random row from each of `games` equal strata of the run.
    fn sample(&self, games: u64, seed: u64) -> Result<Vec<(Part, Vec<u64>)>, ReplayError> {
        let counts = self.parts.iter().map(Part::rows).collect::<Result<Vec<u64>, _>>()?;
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return Err(ReplayError::Empty);
        }
        let games = games.clamp(1, total);
        let start_of = |stratum: u64| (u128::from(stratum) * u128::from(total) / u128::from(games)) as u64;
        let mut random = seeded(seed);
        let mut selected = (0..games)
            .map(|stratum| {
                let width = start_of(stratum + 1) - start_of(stratum);
                start_of(stratum) + below(&mut random, width as usize) as u64
            })
            .peekable();
        let mut rows_before = 0;
        let mut parts = Vec::new();
        for (part, count) in self.parts.iter().zip(counts) {
            let mut rows = Vec::new();
            while let Some(row) = selected.next_if(|row| *row < rows_before + count) {
                rows.push(row - rows_before);
            }
            rows_before += count;
            if !rows.is_empty() {
                parts.push((part.clone(), rows));
            }
        }
        Ok(parts)
    }

    /// Selects the rows of one bout.
    fn find(&self, bout: u64, game: Option<u16>) -> Result<Vec<(Part, Vec<u64>)>, ReplayError> {
        for part in self.parts.iter().filter(|part| part.may_contain(bout)) {
            let matches = |key: &(u64, u16)| key.0 == bout && game.is_none_or(|game| key.1 == game);
            let keys = keys(part)?;
            let rows: Vec<u64> =
                (0..).zip(&keys).filter(|(_, key)| matches(key)).map(|(index, _)| index).collect();
            if !rows.is_empty() {
                return Ok(vec![(part.clone(), rows)]);
            }
        }
        Err(ReplayError::NotRecorded { bout, game })
    }

    /// Reads rows of a part and pairs each with its scheduled bout.
    fn tasks(&mut self, part: &Part, rows: &[u64]) -> Result<Vec<Task>, ReplayError> {
        let rows = || rows.iter().map(|&row| row as usize);
        if part.table == Table::Probes {
            let mut probes: Vec<Option<ProbeRow>> = part.probes()?.into_iter().map(Some).collect();
            let chosen = rows().filter_map(|row| probes.get_mut(row)?.take());
            return chosen.map(|row| self.search_task(row)).collect();
        }
        let mut games: Vec<Option<GameRow>> = part.games()?.into_iter().map(Some).collect();
        let chosen: Vec<GameRow> = rows().filter_map(|row| games.get_mut(row)?.take()).collect();
        let keys: HashSet<(u64, u16)> = chosen.iter().map(|row| (row.bout, row.game)).collect();
        let moves_part = self.moves.iter().find(|moves| moves.file_name() == part.file_name());
        let mut moves = moves_part.map(Part::moves).transpose()?.unwrap_or_default();
        moves.retain(|mv| keys.contains(&(mv.bout, mv.game)));
        let mut by_bout = BoutRows::by_bout([], moves, []);
        chosen
            .into_iter()
            .map(|row| {
                let bout = by_bout.get_mut(&row.bout);
                let moves = bout.map(|bout| bout.moves.extract_if(.., |mv| mv.game == row.game).collect());
                self.game_task(row, moves.unwrap_or_default())
            })
            .collect()
    }

    /// Returns a bout of the schedule; an error if the schedule has no such bout.
    fn scheduled(&mut self, bout: u64, game: u16) -> Result<Bout, ReplayError> {
        if bout >= self.schedule.bouts() {
            return Err(ReplayError::NotScheduled { bout, game });
        }
        Ok(self.schedule.draw_bout(bout)?)
    }

    fn game_task(&mut self, row: GameRow, moves: Vec<MoveRow>) -> Result<Task, ReplayError> {
        let bout = self.scheduled(row.bout, row.game)?;
        let request = self.schedule.spec().games(&bout, 1.0).nth(usize::from(row.game));
        let request = request.ok_or(ReplayError::NotScheduled { bout: row.bout, game: row.game })?;
        Ok(Task { bout, recorded: Recorded::Game { request, row, moves } })
    }

    fn search_task(&mut self, row: ProbeRow) -> Result<Task, ReplayError> {
        let (bout, game) = (row.decision.bout, row.decision.game);
        let scheduled = self.scheduled(bout, game)?;
        if usize::from(game) >= scheduled.players.len() {
            return Err(ReplayError::NotScheduled { bout, game });
        }
        Ok(Task { bout: scheduled, recorded: Recorded::Search(row) })
    }
}

/// Reads the bout and game of each row.
fn keys(part: &Part) -> Result<Vec<(u64, u16)>, DatasetError> {
    Ok(match part.table {
        Table::Probes => part.probes()?.iter().map(|row| (row.decision.bout, row.decision.game)).collect(),
        _ => part.games()?.iter().map(|row| (row.bout, row.game)).collect(),
    })
}

/// Replays tasks on several threads; outcomes are in the order of the tasks.
fn play_all(spec: &Spec, tasks: &[Task], threads: NonZeroUsize) -> Result<Vec<Outcome>, ReplayError> {
    let configs: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
    let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, Outcome)>, ReplayError> {
        let mut arena = Arena::new(&spec.game, &configs, Environment::system())?;
        let mut outcomes = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index) else { return Ok(outcomes) };
            outcomes.push((index, task.play(spec, &names, &mut arena)?));
        }
    };
    let shares = on_threads(threads.get().min(tasks.len()), work);
    let mut outcomes =
        shares.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect::<Vec<_>>();
    outcomes.sort_unstable_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

impl Task {
    fn play(&self, spec: &Spec, names: &[String], arena: &mut Arena) -> Result<Outcome, ReplayError> {
        match &self.recorded {
            Recorded::Game { request, row, moves } => {
                for (player, config) in spec.configured_players(&self.bout.values) {
                    arena.configure(player, config);
                }
                let settings = spec.settings(&self.bout.values, &request.seats);
                let record = arena.play(request, &mut |_| ())?;
                // Worker, build and times are not compared.
                let head = GameHead {
                    game: &spec.game,
                    names,
                    opening: &request.opening,
                    bout: row.bout,
                    index: row.game,
                    worker: "",
                    build: "",
                    started: 0,
                    speed_factor: 1.0,
                    settings: &settings,
                };
                let replayed = BoutRows::game(&head, &record)?;
                Ok(compare_games((row, moves), (&replayed.games[0], &replayed.moves)))
            }
            Recorded::Search(row) => {
                let index = row.decision.game;
                let player = self.bout.players[usize::from(index)];
                let replayed = replay_search(spec, &self.bout, index, player, arena)?;
                let location = (row.decision.bout, index, Some(row.decision.ply));
                let difference = first_difference(location, row.cells(), replayed.cells());
                Ok(Outcome { moves: 1, identical_moves: u64::from(difference.is_none()), difference })
            }
        }
    }
}

/// Repeats a search of a probe as a worker does: all players use the seed of the bout's first game.
fn replay_search(
    spec: &Spec,
    bout: &Bout,
    index: u16,
    player: usize,
    arena: &mut Arena,
) -> Result<ProbeRow, ReplayError> {
    let SpecPlayer { name, limit, .. } = &spec.players[player];
    let seed = SeedPath { run: spec.seed, bout: bout.index, game: 0 }.game_seed();
    let record = arena.search(player, &bout.opening, *limit, seed, &mut |_| ())?;
    let decision = arena.decision(&bout.opening)?;
    Ok(ProbeRow::new(bout.index, index, &bout.opening, decision, name.clone(), &record)?)
}

/// Compares a game with its replay. A difference in a ply is reported before one in the game's row, because it is the cause.
fn compare_games(recorded: (&GameRow, &[MoveRow]), replayed: (&GameRow, &[MoveRow])) -> Outcome {
    let ((row, moves), (replayed_row, replayed_moves)) = (recorded, replayed);
    let (bout, game) = (row.bout, row.game);
    let mut identical_moves = 0;
    let mut difference = None;
    for (mv, replayed) in moves.iter().zip(replayed_moves) {
        let found = first_difference((bout, game, Some(mv.ply)), mv.cells(), replayed.cells());
        identical_moves += u64::from(found.is_none());
        difference = difference.or(found);
    }
    let difference = difference
        .or_else(|| first_difference((bout, game, None), row.cells(), replayed_row.cells()))
        .or_else(|| {
            // The game's row may be identical although rows of moves are missing or superfluous.
            let (recorded, replayed) = (moves.len().to_string(), replayed_moves.len().to_string());
            let differs = moves.len() != replayed_moves.len();
            differs.then_some(Difference { bout, game, ply: None, column: "plies", recorded, replayed })
        });
    Outcome { moves: moves.len() as u64, identical_moves, difference }
}

/// Returns the first column that differs, ignoring columns outside the content digest, and counters that are 0 in the record
/// because an older build did not have them.
fn first_difference(
    (bout, game, ply): (u64, u16, Option<u16>),
    recorded: Cells<'_>,
    replayed: Cells<'_>,
) -> Option<Difference> {
    let later = &Counters::LIST[Counters::ORIGINAL..];
    let is_compared = |name: &str, recorded: &Cell<'_>| {
        let uncounted = *recorded == Cell::Unsigned(0) && later.iter().any(|counter| counter.name == name);
        !NOT_IN_DIGEST.contains(&name) && !uncounted
    };
    let mut pairs =
        recorded.into_iter().zip(replayed).filter(|((name, recorded), _)| is_compared(name, recorded));
    // Compared as text, which unlike `==` distinguishes -0.0 from 0.0.
    pairs.find_map(|((column, recorded), (_, replayed))| {
        let (recorded, replayed) = (recorded.to_string(), replayed.to_string());
        (recorded != replayed).then_some(Difference { bout, game, ply, column, recorded, replayed })
    })
}
