//! The rows of the dataset as plain values, and how they are made of what the arena recorded.
//!
//! A field has the name and the unit of its column; only `move`, which Rust reserves, is `mv` here. What a search leaves
//! behind is present as a whole or not at all, so that no row has half a search. Deliberately not here: checks by the
//! rules, which are the referee's.

use std::collections::BTreeMap;
use std::time::Duration;

use agon_arena::{Decision, GameRecord, MoveRecord, Opening, SearchRecord};
use agon_games::GameSpec;
use agon_search::{Counters, Limit, Value};

/// The rows of one committed bout: its games with their moves, or, of a probe, one position searched by every player.
///
/// Rows stand in the order of their keys: games by `game`, moves by `(game, ply)`, probes by `game`.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct BoutRows {
    /// One row a game.
    pub games: Vec<GameRow>,
    /// One row a ply.
    pub moves: Vec<MoveRow>,
    /// One row a search of the position.
    pub probes: Vec<ProbeRow>,
}

/// A game.
#[derive(Clone, PartialEq, Debug)]
pub struct GameRow {
    /// The bout that it belongs to.
    pub bout: u64,
    /// Its number within the bout.
    pub game: u16,
    /// The name of the game that is played.
    pub rules: String,
    /// The parameters of the game, `key=value` separated by commas; empty where it has none.
    pub variant: String,
    /// The moves that were given, separated by spaces, after the position in brackets where it is not the game's first.
    pub opening: String,
    /// The names of the players by seat.
    pub players: Vec<String>,
    /// The payoffs by seat.
    pub payoffs: Vec<i32>,
    /// How many plies were recorded, opening and chance included.
    pub plies: u32,
    /// How it ended, in words.
    pub ending: String,
    /// The seed that its searches and its chance are drawn from.
    pub seed: u64,
    /// Who played it.
    pub worker: String,
    /// The version of the program that played it.
    pub build: String,
    /// When it was started: microseconds since 1970, UTC, by the worker's clock.
    pub started: i64,
    /// How long it took, in microseconds.
    pub duration_us: u64,
    /// What limits of time were multiplied by.
    pub speed_factor: f64,
    /// In a tune the values that each player had, by seat; else none.
    pub settings: Vec<String>,
}

/// One ply of a game, or the search of a probe.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveRow {
    /// The bout that it belongs to.
    pub bout: u64,
    /// The game within the bout; in a probe, the number of the search within the bout.
    pub game: u16,
    /// How many plies came before it.
    pub ply: u16,
    /// The seat that moved; none for chance.
    pub seat: Option<u16>,
    /// The move in words.
    pub mv: String,
    /// How many moves were legal.
    pub legal: u16,
    /// The search; none for chance and in the opening.
    pub search: Option<SearchRow>,
}

/// What a search leaves behind.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchRow {
    /// The name of the player who searched.
    pub player: String,
    /// The last completed depth.
    pub depth: u16,
    /// The greatest distance from the root.
    pub selective_depth: u16,
    /// What it counted.
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
    /// The part of it beyond the limit, in microseconds.
    pub overshoot_us: u64,
    /// What was limited.
    pub limit_kind: LimitKind,
    /// The limit, in the unit of its kind.
    pub limit_value: u64,
}

/// The search of one position of a probe by one player.
#[derive(Clone, PartialEq, Debug)]
pub struct ProbeRow {
    /// The position that the moves start from; empty for the game's first.
    pub position: String,
    /// Moves from there to the position that is searched, separated by spaces.
    pub moves: String,
    /// What was found there. Its game is the number of the search within the bout, its ply the number of the moves.
    pub decision: MoveRow,
}

/// What limits a search.
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

    /// The kind in the word of its column, which is that of a spec.
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Ms => "ms",
            LimitKind::CpuMs => "cpu_ms",
            LimitKind::Nodes => "nodes",
            LimitKind::Depth => "depth",
            LimitKind::ClockMs => "clock_ms",
        }
    }

    /// The kind as the digest has it.
    pub(crate) fn number(self) -> u8 {
        match self {
            LimitKind::Ms => 1,
            LimitKind::CpuMs => 2,
            LimitKind::Nodes => 3,
            LimitKind::Depth => 4,
            LimitKind::ClockMs => 5,
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<LimitKind> {
        LimitKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// A limit as its two columns: whole milliseconds, nodes or plies. The increment of a clock is in neither.
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

/// Why a record does not fit into rows.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// A number is too large for its column.
    #[error("the column `{column}` holds numbers up to {}, not {value}", u16::MAX)]
    TooLarge {
        /// The column.
        column: &'static str,
        /// The number.
        value: u64,
    },
    /// A player has a number that nobody has.
    #[error("there is no player number {number}: the run has {players}, counted from 0")]
    NoSuchPlayer {
        /// The number.
        number: usize,
        /// How many there are.
        players: usize,
    },
    /// A ply has a player without a search, or a search without a player.
    #[error("ply {ply} must have both a player and a search, or neither")]
    HalfASearch {
        /// The ply.
        ply: u32,
    },
}

/// What a game's rows need beside its record.
#[derive(Clone, Copy, Debug)]
pub struct GameHead<'a> {
    /// The game that is played.
    pub game: &'a GameSpec,
    /// The names of all players of the run, by their numbers.
    pub names: &'a [String],
    /// Where the game starts.
    pub opening: &'a Opening,
    /// The bout.
    pub bout: u64,
    /// The number of the game within the bout.
    pub index: u16,
    /// Who played it.
    pub worker: &'a str,
    /// The version of the program that played it.
    pub build: &'a str,
    /// When it was started: microseconds since 1970, UTC.
    pub started: i64,
    /// What limits of time were multiplied by.
    pub speed_factor: f64,
    /// In a tune the values that each player has in this game, by seat; else none.
    pub settings: &'a [String],
}

impl BoutRows {
    /// The rows of one game; a bout of several takes them with [`BoutRows::add_game`].
    pub fn game(head: &GameHead<'_>, record: &GameRecord) -> Result<BoutRows, RowError> {
        let mut bout = BoutRows::default();
        bout.add_game(head, record)?;
        Ok(bout)
    }

    /// Adds the rows of the next game of the bout. Where they do not fit, nothing is added.
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

    /// Rows of many bouts by the bout that they belong to, in the order of their keys.
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
    /// The row of a game.
    pub fn new(head: &GameHead<'_>, record: &GameRecord) -> Result<GameRow, RowError> {
        let players = record.players.iter().map(|&number| name(head.names, number));
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
        })
    }
}

impl MoveRow {
    /// The row of a ply; `names` are those of all players of the run, by their numbers.
    pub fn new(bout: u64, game: u16, record: &MoveRecord, names: &[String]) -> Result<MoveRow, RowError> {
        let search = match (record.player, &record.search) {
            (Some(player), Some(search)) => Some(SearchRow::new(name(names, player)?, search)?),
            (None, None) => None,
            _ => return Err(RowError::HalfASearch { ply: record.ply }),
        };
        Ok(MoveRow {
            bout,
            game,
            ply: small("ply", u64::from(record.ply))?,
            seat: record.seat.map(|seat| small("seat", seat as u64)).transpose()?,
            mv: record.mv.clone(),
            legal: small("legal", u64::from(record.legal))?,
            search,
        })
    }
}

impl SearchRow {
    /// The columns of a search by the player of this name.
    pub fn new(player: String, record: &SearchRecord) -> Result<SearchRow, RowError> {
        let (limit_kind, limit_value) = LimitKind::of(record.limit);
        Ok(SearchRow {
            player,
            depth: small("depth", u64::from(record.depth))?,
            selective_depth: small("selective_depth", u64::from(record.selective_depth))?,
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
}

impl SearchRow {
    /// The value with what it proves. A search that samples has a mean payoff, which proves nothing.
    pub fn value(&self) -> Value {
        Value::from_number(self.score)
    }
}

impl ProbeRow {
    /// The row of a search of the position behind an opening, which is this decision. `index` is the number of the search
    /// within its bout.
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
                ply: small("ply", opening.moves.split_ascii_whitespace().count() as u64)?,
                seat: Some(small("seat", decision.seat as u64)?),
                mv: record.mv.clone(),
                legal: small("legal", decision.legal)?,
                search: Some(SearchRow::new(player, record)?),
            },
        })
    }
}

/// An opening as it stands in its column: the moves, after the position in brackets where there is one.
pub fn opening_text(opening: &Opening) -> String {
    match &opening.position {
        None => opening.moves.clone(),
        Some(position) if opening.moves.is_empty() => format!("[{position}]"),
        Some(position) => format!("[{position}] {}", opening.moves),
    }
}

fn name(names: &[String], number: usize) -> Result<String, RowError> {
    names.get(number).cloned().ok_or(RowError::NoSuchPlayer { number, players: names.len() })
}

fn small(column: &'static str, value: u64) -> Result<u16, RowError> {
    u16::try_from(value).map_err(|_| RowError::TooLarge { column, value })
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
