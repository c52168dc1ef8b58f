//! The columns of the dataset: one list per table defines the Arrow schema, the encodings on disk and the documentation.
//!
//! The run is not a column but part of the folder's name. Columns are added, never renamed, and readers ignore unknown ones.
//! A change that an older reader would misunderstand raises [`SCHEMA_VERSION`].

use std::collections::HashMap;
use std::sync::Arc;

use agon_search::{CounterInfo, Counters};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

/// The version of the schema, stored in every file.
pub const SCHEMA_VERSION: u32 = 1;

/// The metadata key of the version.
pub const VERSION_KEY: &str = "agon.schema";

/// The metadata key of the table's name.
pub const TABLE_KEY: &str = "agon.table";

/// The columns that differ when a bout is replayed: place, time and speed. Two datasets are equal if all others are.
pub const NOT_IN_DIGEST: &[&str] = &[
    "worker",
    "build",
    "started",
    "duration_us",
    "time_us",
    "depth_time_us",
    "overshoot_us",
    "speed_factor",
    "detail",
    "engine_cpu_us",
];

/// A table of the dataset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Table {
    /// One row per game.
    Games,
    /// One row per ply.
    Moves,
    /// One row per position and player.
    Probes,
}

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// UTF-8.
    Text,
    /// 16-bit unsigned integers.
    U16,
    /// 32-bit unsigned integers.
    U32,
    /// 64-bit unsigned integers.
    U64,
    /// 64-bit floats.
    F64,
    /// Microseconds since 1970, UTC.
    Timestamp,
    /// Lists of texts, by seat.
    TextList,
    /// Lists of 32-bit signed integers, by seat.
    I32List,
    /// Lists of 64-bit unsigned integers, by depth or by seat.
    U64List,
}

/// The encoding of a column before compression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// Indices into a dictionary, for few different values.
    Dictionary,
    /// Packed differences, for values that grow steadily.
    Delta,
    /// The values themselves, for many different ones.
    Plain,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub column_type: ColumnType,
    /// Whether values may be null.
    pub nullable: bool,
    /// The unit; empty for texts and plain numbers.
    pub unit: &'static str,
    /// The meaning.
    pub description: &'static str,
    /// Whether the column was added later: a part without it has the default in every row.
    pub later: bool,
    pub(crate) layout: Layout,
}

/// Returns a column that every row has.
const fn column(
    name: &'static str,
    column_type: ColumnType,
    layout: Layout,
    unit: &'static str,
    description: &'static str,
) -> Column {
    Column { name, column_type, nullable: false, unit, description, later: false, layout }
}

impl Column {
    const fn nullable(mut self) -> Column {
        self.nullable = true;
        self
    }

    const fn later(mut self, later: bool) -> Column {
        self.later = later;
        self
    }
}

use ColumnType::{F64, I32List, Text, TextList, Timestamp, U16, U32, U64, U64List};
use Layout::{Delta, Dictionary, Plain};

const GAMES: &[Column] = &[
    column("bout", U64, Delta, "", "the bout: one opening, played once in each rotation of the seats"),
    column("game", U16, Dictionary, "", "the number of the game in the bout, from 0"),
    column("rules", Text, Dictionary, "", "the name of the game"),
    column("variant", Text, Dictionary, "", "the parameters of the game: `key=value` separated by commas, or empty"),
    column("opening", Text, Dictionary, "", "the given moves, after the start position in brackets if there is one"),
    column("players", TextList, Dictionary, "", "the names of the players by seat"),
    column("payoffs", I32List, Dictionary, "", "the payoffs by seat"),
    column("plies", U32, Dictionary, "plies", "the number of rows in moves, opening and chance included"),
    column("ending", Text, Dictionary, "", "how the game ended"),
    column("seed", U64, Plain, "", "the seed of its searches and of chance"),
    column("worker", Text, Dictionary, "", "the name of the worker"),
    column("build", Text, Dictionary, "", "the version of the worker's program"),
    column("started", Timestamp, Delta, "UTC", "the start, by the worker's clock"),
    column("duration_us", U64, Plain, "microseconds", "the duration"),
    column(
        "speed_factor",
        F64,
        Dictionary,
        "",
        "the factor of time limits, which adjusts for the speed of the worker; otherwise 1",
    ),
    column(
        "settings",
        TextList,
        Dictionary,
        "",
        "in a tuning run, the values of each player by seat: `path=value` separated by spaces, empty for those of the \
         spec; in other runs an empty list",
    )
    .later(true),
    column(
        "detail",
        Text,
        Dictionary,
        "",
        "what happened, if the game ended by a fault of an engine, with its last lines; otherwise empty",
    )
    .later(true),
    column(
        "engine_cpu_us",
        U64List,
        Plain,
        "microseconds",
        "the processor time of the engines' processes by seat, 0 for built-in players; empty without engines",
    )
    .later(true),
];

/// The columns of a move before the counters of its search.
const MOVES: &[Column] = &[
    column("bout", U64, Delta, "", "the bout; in a probe, the position"),
    column(
        "game",
        U16,
        Dictionary,
        "",
        "the number of the game in the bout, from 0; in a probe, that of the search",
    ),
    column("ply", U16, Delta, "plies", "the number of earlier plies"),
    column("seat", U16, Dictionary, "", "the seat that moved, from 0; null for chance").nullable(),
    column("move", Text, Dictionary, "", "the move, or the outcome of chance"),
    column("legal", U16, Dictionary, "moves", "the number of legal moves"),
    column("player", Text, Dictionary, "", "the name of the player that searched").nullable(),
    column("depth", U16, Dictionary, "plies", "the last completed depth; 0 for a search without iterations")
        .nullable(),
    column("selective_depth", U16, Dictionary, "plies", "the greatest distance from the root").nullable(),
];

/// The counters of a search.
const COUNTERS: [Column; Counters::COUNT] = {
    let mut columns = [column("", U64, Plain, "", "").nullable(); Counters::COUNT];
    let mut index = 0;
    while index < Counters::COUNT {
        let CounterInfo { name, unit, description } = Counters::LIST[index];
        columns[index] =
            column(name, U64, Plain, unit, description).nullable().later(index >= Counters::ORIGINAL);
        index += 1;
    }
    columns
};

/// The columns of a search after its counters.
const SEARCH: &[Column] = &[
    column("depth_nodes", U64List, Plain, "nodes", "nodes of each completed depth alone, from depth 1")
        .nullable(),
    column(
        "depth_time_us",
        U64List,
        Plain,
        "microseconds",
        "time of each completed depth alone, from depth 1",
    )
    .nullable(),
    column(
        "score",
        F64,
        Plain,
        "the game's evaluation",
        "the value for the seat that moves; in a sampling search, the mean payoff in the game's own units",
    )
    .nullable(),
    column("pv", Text, Plain, "", "the principal variation: moves separated by spaces").nullable(),
    column("time_us", U64, Plain, "microseconds", "the time taken").nullable(),
    column("overshoot_us", U64, Plain, "microseconds", "the time beyond the limit").nullable(),
    column(
        "limit_kind",
        Text,
        Dictionary,
        "",
        "the kind of limit: `ms`, `cpu_ms`, `nodes`, `depth` or `clock_ms`",
    )
    .nullable(),
    column(
        "limit_value",
        U64,
        Dictionary,
        "that of the kind",
        "the limit; for a clock, the time left before the move",
    )
    .nullable(),
];

/// The columns of a probe before those of a move.
const POSITION: &[Column] = &[
    column("position", Text, Dictionary, "", "the start position of the moves; empty for the game's first"),
    column(
        "moves",
        Text,
        Dictionary,
        "",
        "the moves from there to the searched position, separated by spaces",
    ),
];

impl Table {
    /// Every table.
    pub const ALL: [Table; 3] = [Table::Games, Table::Moves, Table::Probes];

    /// Returns the name of the table and of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Table::Games => "games",
            Table::Moves => "moves",
            Table::Probes => "probes",
        }
    }

    /// Returns the columns in order.
    pub fn columns(self) -> impl Iterator<Item = &'static Column> {
        let parts: &[&'static [Column]] = match self {
            Table::Games => &[GAMES],
            Table::Moves => &[MOVES, &COUNTERS, SEARCH],
            Table::Probes => &[POSITION, MOVES, &COUNTERS, SEARCH],
        };
        parts.iter().copied().flatten()
    }

    /// Returns the columns that rows are sorted by.
    pub fn key(self) -> &'static [&'static str] {
        match self {
            Table::Moves => &["bout", "game", "ply"],
            Table::Games | Table::Probes => &["bout", "game"],
        }
    }

    /// Returns the Arrow schema, with the descriptions of the columns and the version.
    pub fn schema(self) -> SchemaRef {
        let fields: Vec<Field> = self.columns().map(Column::field).collect();
        let metadata = [(VERSION_KEY, SCHEMA_VERSION.to_string()), (TABLE_KEY, self.name().to_string())];
        let metadata = metadata.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        Arc::new(Schema::new_with_metadata(fields, metadata))
    }
}

impl Column {
    fn field(&self) -> Field {
        let metadata = [("description", self.description), ("unit", self.unit)];
        let metadata: HashMap<String, String> = metadata
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(key, text)| (key.to_string(), text.to_string()))
            .collect();
        Field::new(self.name, self.column_type.data_type(), self.nullable).with_metadata(metadata)
    }
}

impl ColumnType {
    /// Returns the Arrow type.
    pub fn data_type(self) -> DataType {
        match self {
            ColumnType::Text => DataType::Utf8,
            ColumnType::U16 => DataType::UInt16,
            ColumnType::U32 => DataType::UInt32,
            ColumnType::U64 => DataType::UInt64,
            ColumnType::F64 => DataType::Float64,
            ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            ColumnType::TextList | ColumnType::I32List | ColumnType::U64List => {
                DataType::List(self.element())
            }
        }
    }

    /// Returns the element field of a list, with the name that the Parquet format prescribes.
    pub(crate) fn element(self) -> Arc<Field> {
        let data_type = match self {
            ColumnType::TextList => DataType::Utf8,
            ColumnType::I32List => DataType::Int32,
            _ => DataType::UInt64,
        };
        Arc::new(Field::new("element", data_type, false))
    }

    /// Returns the name of the type in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            ColumnType::Text => "string",
            ColumnType::U16 => "u16",
            ColumnType::U32 => "u32",
            ColumnType::U64 => "u64",
            ColumnType::F64 => "f64",
            ColumnType::Timestamp => "timestamp",
            ColumnType::TextList => "list of string",
            ColumnType::I32List => "list of i32",
            ColumnType::U64List => "list of u64",
        }
    }

    /// Returns the path of the column's values in a file.
    pub(crate) fn path(self, name: &str) -> Vec<String> {
        let mut path = vec![name.to_string()];
        if matches!(self, ColumnType::TextList | ColumnType::I32List | ColumnType::U64List) {
            path.extend(["list".to_string(), "element".to_string()]);
        }
        path
    }
}
