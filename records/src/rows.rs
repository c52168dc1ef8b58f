//! The rows of the dataset as plain values, made from the records of the arena.
//!
//! A field has the name and the unit of its column; only `move`, a keyword of Rust, is `mv`. A search is present completely
//! or not at all. Checks by the rules are the referee's.

use std::collections::BTreeMap;
use std::time::Duration;

use agon_arena::{Decision, GameRecord, MoveRecord, Opening, SearchRecord, TIME_FORFEIT};
use agon_games::GameSpec;
use agon_search::{Counters, Limit, Value};

/// The rows of a bout: its games with their moves, or the searches of one position of a probe.
///
/// Rows are in the order of their keys: games by `game`, moves by `(game, ply)`, probes by `game`.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct BoutRows {
    /// The games.
    pub games: Vec<GameRow>,
    /// The plies.
    pub moves: Vec<MoveRow>,
    /// The searches of a probe's position.
    pub probes: Vec<ProbeRow>,
}

/// A game.
#[derive(Clone, PartialEq, Debug)]
pub struct GameRow {
    /// The bout.
    pub bout: u64,
    /// The number of the game in the bout.
    pub game: u16,
    /// The name of the game.
    pub rules: String,
    /// The parameters of the game: `key=value` separated by commas, or empty.
    pub variant: String,
    /// The given moves, separated by spaces, after the start position in brackets if there is one.
    pub opening: String,
    /// The names of the players by seat.
    pub players: Vec<String>,
    /// The payoffs by seat.
    pub payoffs: Vec<i32>,
    /// The number of plies, opening and chance included.
    pub plies: u32,
    /// How the game ended.
    pub ending: String,
    /// The seed of its searches and of chance.
    pub seed: u64,
    /// The name of the worker.
    pub worker: String,
    /// The version of the worker's program.
    pub build: String,
    /// The start: microseconds since 1970, UTC, by the worker's clock.
    pub started: i64,
    /// The duration in microseconds.
    pub duration_us: u64,
    /// The factor of time limits.
    pub speed_factor: f64,
    /// In a tuning run, the values of each player by seat; otherwise empty.
    pub settings: Vec<String>,
    /// What happened, if the game ended by a fault of an engine; otherwise empty.
    pub detail: String,
    /// The processor time of engines by seat, in microseconds, 0 for built-in players; empty without engines.
    pub engine_cpu_us: Vec<u64>,
}

/// One ply of a game, or the search of a probe.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveRow {
    /// The bout.
    pub bout: u64,
    /// The number of the game in the bout; in a probe, that of the search.
    pub game: u16,
    /// The number of earlier plies.
    pub ply: u16,
    /// The seat that moved; none for chance.
    pub seat: Option<u16>,
    /// The text of the move.
    pub mv: String,
    /// The number of legal moves.
    pub legal: u16,
    /// The search; none for chance and in the opening.
    pub search: Option<SearchRow>,
}

/// A search.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchRow {
    /// The name of the player.
    pub player: String,
    /// The last completed depth.
    pub depth: u16,
    /// The greatest distance from the root.
    pub selective_depth: u16,
    /// The counters.
    pub counters: Counters,
    /// Nodes of each completed depth alone, from depth 1.
    pub depth_nodes: Vec<u64>,
    /// Microseconds of each completed depth alone, from depth 1.
    pub depth_time_us: Vec<u64>,
    /// The value for the seat that moves.
    pub score: f64,
    /// The principal variation: moves separated by spaces.
    pub pv: String,
    /// The time taken, in microseconds.
    pub time_us: u64,
    /// The time beyond the limit, in microseconds.
    pub overshoot_us: u64,
    /// The kind of limit.
    pub limit_kind: LimitKind,
    /// The limit, in the unit of its kind.
    pub limit_value: u64,
}

/// The search of one position of a probe by one player.
#[derive(Clone, PartialEq, Debug)]
pub struct ProbeRow {
    /// The start position of the moves; empty for the game's first.
    pub position: String,
    /// The moves from there to the searched position, separated by spaces.
    pub moves: String,
    /// The search. Its `game` is the number of the search in the bout, its `ply` the number of the moves.
    pub decision: MoveRow,
}

/// The kind of a limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LimitKind {
    /// Milliseconds of wall time.
    Ms,
    /// Milliseconds of the thread's processor time.
    CpuMs,
    /// Nodes, or simulations.
    Nodes,
    /// Plies.
    Depth,
    /// Milliseconds left on the game clock before the move.
    ClockMs,
}

impl LimitKind {
    /// Every kind.
    pub const ALL: [LimitKind; 5] =
        [LimitKind::Ms, LimitKind::CpuMs, LimitKind::Nodes, LimitKind::Depth, LimitKind::ClockMs];

    /// Returns the name of the kind, in the dataset and in specs.
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Ms => "ms",
            LimitKind::CpuMs => "cpu_ms",
            LimitKind::Nodes => "nodes",
            LimitKind::Depth => "depth",
            LimitKind::ClockMs => "clock_ms",
        }
    }

    /// Returns the number of the kind in digests.
    pub(crate) fn number(self) -> u8 {
        match self {
            LimitKind::Ms => 1,
            LimitKind::CpuMs => 2,
            LimitKind::Nodes => 3,
            LimitKind::Depth => 4,
            LimitKind::ClockMs => 5,
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<LimitKind> {
        LimitKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the kind and the value of a limit in whole milliseconds, nodes or plies. Drops the increment of a clock.
    pub fn of(limit: Limit) -> (LimitKind, u64) {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match limit {
            Limit::Wall(time) => (LimitKind::Ms, milliseconds(time)),
            Limit::Cpu(time) => (LimitKind::CpuMs, milliseconds(time)),
            Limit::Nodes(nodes) => (LimitKind::Nodes, nodes),
            Limit::Depth(depth) => (LimitKind::Depth, u64::from(depth)),
            Limit::Clock { remaining, .. } => (LimitKind::ClockMs, milliseconds(remaining)),
        }
    }
}

/// Why a record cannot be converted to rows.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// A number is too large for its column.
    #[error("the column `{column}` holds numbers up to {}, not {value}", u16::MAX)]
    TooLarge {
        /// The column.
        column: &'static str,
        /// The value.
        value: u64,
    },
    /// No player has this number.
    #[error("there is no player number {number}: the run has {players}, counted from 0")]
    NoSuchPlayer {
        /// The number.
        number: usize,
        /// The number of players.
        players: usize,
    },
    /// A ply has a player without a search, or a search without a player.
    #[error("ply {ply} must have both a player and a search, or neither")]
    IncompleteSearch {
        /// The ply.
        ply: u32,
    },
}

/// The columns of a game that its record does not contain.
#[derive(Clone, Copy, Debug)]
pub struct GameHead<'a> {
    /// The game.
    pub game: &'a GameSpec,
    /// The names of all players of the run, by number.
    pub names: &'a [String],
    /// The opening.
    pub opening: &'a Opening,
    /// The bout.
    pub bout: u64,
    /// The number of the game in the bout.
    pub index: u16,
    /// The name of the worker.
    pub worker: &'a str,
    /// The version of the worker's program.
    pub build: &'a str,
    /// The start: microseconds since 1970, UTC.
    pub started: i64,
    /// The factor of time limits.
    pub speed_factor: f64,
    /// In a tuning run, the values of each player by seat; otherwise empty.
    pub settings: &'a [String],
}

impl BoutRows {
    /// Creates the rows of a bout with one game.
    pub fn game(head: &GameHead<'_>, record: &GameRecord) -> Result<BoutRows, RowError> {
        let mut bout = BoutRows::default();
        bout.add_game(head, record)?;
        Ok(bout)
    }

    /// Adds the rows of the next game. Adds nothing on an error.
    pub fn add_game(&mut self, head: &GameHead<'_>, record: &GameRecord) -> Result<(), RowError> {
        let row = GameRow::new(head, record)?;
        let moves = record
            .moves
            .iter()
            .map(|ply| MoveRow::new(head.bout, head.index, ply, head.names))
            .collect::<Result<Vec<_>, _>>()?;
        self.games.push(row);
        self.moves.extend(moves);
        Ok(())
    }

    /// Groups rows by bout and sorts them by key.
    pub fn by_bout(
        games: impl IntoIterator<Item = GameRow>,
        moves: impl IntoIterator<Item = MoveRow>,
        probes: impl IntoIterator<Item = ProbeRow>,
    ) -> BTreeMap<u64, BoutRows> {
        let mut bouts: BTreeMap<u64, BoutRows> = BTreeMap::new();
        for row in games {
            bouts.entry(row.bout).or_default().games.push(row);
        }
        for row in moves {
            bouts.entry(row.bout).or_default().moves.push(row);
        }
        for row in probes {
            bouts.entry(row.decision.bout).or_default().probes.push(row);
        }
        for bout in bouts.values_mut() {
            bout.games.sort_by_key(|row| row.game);
            bout.moves.sort_by_key(|row| (row.game, row.ply));
            bout.probes.sort_by_key(|row| row.decision.game);
        }
        bouts
    }
}

impl GameRow {
    /// Returns whether the last ply was too late and is not played. An engine that lost on time, which has a detail, has no
    /// such ply.
    pub fn has_late_ply(&self) -> bool {
        self.ending == TIME_FORFEIT && self.detail.is_empty()
    }

    /// Creates the row of a game.
    pub fn new(head: &GameHead<'_>, record: &GameRecord) -> Result<GameRow, RowError> {
        let players = record.players.iter().map(|&number| player_name(head.names, number));
        Ok(GameRow {
            bout: head.bout,
            game: head.index,
            rules: head.game.name().to_string(),
            variant: head.game.parameters().to_string(),
            opening: opening_text(head.opening),
            players: players.collect::<Result<_, _>>()?,
            payoffs: record.payoffs.clone(),
            plies: u32::try_from(record.moves.len()).unwrap_or(u32::MAX),
            ending: record.ending.clone(),
            seed: record.seed,
            worker: head.worker.to_string(),
            build: head.build.to_string(),
            started: head.started,
            duration_us: microseconds(record.time),
            speed_factor: head.speed_factor,
            settings: head.settings.to_vec(),
            detail: record.detail.clone(),
            engine_cpu_us: record.engine_cpu.iter().copied().map(microseconds).collect(),
        })
    }
}

impl MoveRow {
    /// Creates the row of a ply; `names` are those of all players of the run, by number.
    pub fn new(bout: u64, game: u16, record: &MoveRecord, names: &[String]) -> Result<MoveRow, RowError> {
        let search = match (record.player, &record.search) {
            (Some(player), Some(search)) => Some(SearchRow::new(player_name(names, player)?, search)?),
            (None, None) => None,
            _ => return Err(RowError::IncompleteSearch { ply: record.ply }),
        };
        Ok(MoveRow {
            bout,
            game,
            ply: column_u16("ply", u64::from(record.ply))?,
            seat: record.seat.map(|seat| column_u16("seat", seat as u64)).transpose()?,
            mv: record.mv.clone(),
            legal: column_u16("legal", u64::from(record.legal))?,
            search,
        })
    }
}

impl SearchRow {
    /// Creates the columns of a player's search.
    pub fn new(player: String, record: &SearchRecord) -> Result<SearchRow, RowError> {
        let (limit_kind, limit_value) = LimitKind::of(record.limit);
        Ok(SearchRow {
            player,
            depth: column_u16("depth", u64::from(record.depth))?,
            selective_depth: column_u16("selective_depth", u64::from(record.selective_depth))?,
            counters: record.counters,
            depth_nodes: record.iterations.iter().map(|iteration| iteration.nodes).collect(),
            depth_time_us: record.iterations.iter().map(|iteration| microseconds(iteration.time)).collect(),
            score: record.value.number,
            pv: record.line.join(" "),
            time_us: microseconds(record.time),
            overshoot_us: microseconds(record.overshoot),
            limit_kind,
            limit_value,
        })
    }

    /// Returns the value with its proof.
    pub fn value(&self) -> Value {
        Value::recorded(self.score, self.counters.proven_plies.try_into().unwrap_or(u32::MAX))
    }
}

impl ProbeRow {
    /// Creates the row of a search of the position after an opening. `index` is the number of the search in its bout.
    pub fn new(
        bout: u64,
        index: u16,
        opening: &Opening,
        decision: Decision,
        player: String,
        record: &SearchRecord,
    ) -> Result<ProbeRow, RowError> {
        Ok(ProbeRow {
            position: opening.position.clone().unwrap_or_default(),
            moves: opening.moves.clone(),
            decision: MoveRow {
                bout,
                game: index,
                ply: column_u16("ply", opening.moves.split_ascii_whitespace().count() as u64)?,
                seat: Some(column_u16("seat", decision.seat as u64)?),
                mv: record.mv.clone(),
                legal: column_u16("legal", decision.legal)?,
                search: Some(SearchRow::new(player, record)?),
            },
        })
    }
}

/// Formats an opening for its column: the moves, after the start position in brackets if there is one.
pub fn opening_text(opening: &Opening) -> String {
    match &opening.position {
        None => opening.moves.clone(),
        Some(position) if opening.moves.is_empty() => format!("[{position}]"),
        Some(position) => format!("[{position}] {}", opening.moves),
    }
}

fn player_name(names: &[String], number: usize) -> Result<String, RowError> {
    names.get(number).cloned().ok_or(RowError::NoSuchPlayer { number, players: names.len() })
}

fn column_u16(column: &'static str, value: u64) -> Result<u16, RowError> {
    u16::try_from(value).map_err(|_| RowError::TooLarge { column, value })
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
