//! The columns of the dataset: one list a table, from which the Arrow schemas, the encodings on disk and the documentation
//! come.
//!
//! The name of the run is no column: it is the folder's. Columns are added, never renamed, and a reader ignores those it
//! does not know; whatever would make an older reader misunderstand a file raises [`SCHEMA_VERSION`].

use std::collections::HashMap;
use std::sync::Arc;

use agon_search::{CounterInfo, Counters};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

/// The version of the columns' meaning, which every file states.
pub const SCHEMA_VERSION: u32 = 1;

/// The key of the version in a file's metadata.
pub const VERSION_KEY: &str = "agon.schema";

/// The key of the table's name in a file's metadata.
pub const TABLE_KEY: &str = "agon.table";

/// The columns that say where and when a bout was played, and how fast the machine was: two datasets are equal when all
/// others are.
pub const UNCOUNTED: &[&str] = &[
    "worker",
    "build",
    "started",
    "duration_us",
    "time_us",
    "depth_time_us",
    "overshoot_us",
    "speed_factor",
];

/// A table of the dataset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Table {
    /// One row a game.
    Games,
    /// One row a ply.
    Moves,
    /// One row a position and player.
    Probes,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// A small whole number.
    U16,
    /// A whole number.
    U32,
    /// A large whole number.
    U64,
    /// A decimal.
    F64,
    /// A moment.
    Timestamp,
    /// Texts, by seat.
    Texts,
    /// Whole numbers with a sign, by seat.
    Integers,
    /// Large whole numbers, by depth.
    Wholes,
}

/// How a column's values lie on disk before they are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// Few different values: each once, then references.
    Dictionary,
    /// Values that grow steadily: differences in as few bits as they need.
    Delta,
    /// Many different values: as they are, for the compression to find what they have in common.
    Plain,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may be null.
    pub nullable: bool,
    /// The unit; empty for texts and plain numbers.
    pub unit: &'static str,
    /// What it means.
    pub description: &'static str,
    /// Whether it was added later: a part without it is read as if every row had the default.
    pub later: bool,
    pub(crate) layout: Layout,
}

/// A column that every row has.
const fn always(
    name: &'static str,
    kind: Kind,
    layout: Layout,
    unit: &'static str,
    description: &'static str,
) -> Column {
    Column { name, kind, nullable: false, unit, description, later: false, layout }
}

/// A column that is null where there was no search.
const fn searched(
    name: &'static str,
    kind: Kind,
    layout: Layout,
    unit: &'static str,
    description: &'static str,
) -> Column {
    Column { name, kind, nullable: true, unit, description, later: false, layout }
}

use Kind::{F64, Integers, Text, Texts, Timestamp, U16, U32, U64, Wholes};
use Layout::{Delta, Dictionary, Plain};

const GAMES: &[Column] = &[
    always("bout", U64, Delta, "", "the bout: one opening, played once in each rotation of the seats"),
    always("game", U16, Dictionary, "", "the game within the bout, from 0"),
    always("rules", Text, Dictionary, "", "the name of the game that is played"),
    always(
        "variant",
        Text,
        Dictionary,
        "",
        "its parameters, `key=value` separated by commas; empty where it has none",
    ),
    always(
        "opening",
        Text,
        Dictionary,
        "",
        "the moves that were given, after the position in brackets where it is not the game's first",
    ),
    always("players", Texts, Dictionary, "", "the names of the players, by seat"),
    always("payoffs", Integers, Dictionary, "", "what each seat got, by seat"),
    always("plies", U32, Dictionary, "plies", "rows of the game in moves, opening and chance included"),
    always("ending", Text, Dictionary, "", "how it ended, in words"),
    always("seed", U64, Plain, "", "what its searches and its chance are drawn from"),
    always("worker", Text, Dictionary, "", "who played it"),
    always("build", Text, Dictionary, "", "the version of the program that played it"),
    always("started", Timestamp, Delta, "UTC", "when it was started, by the worker's clock"),
    always("duration_us", U64, Plain, "microseconds", "how long it took"),
    always(
        "speed_factor",
        F64,
        Dictionary,
        "",
        "what limits of time were multiplied by because the worker is slower or faster than the reference; else 1",
    ),
    Column {
        name: "settings",
        kind: Texts,
        nullable: false,
        unit: "",
        description: "in a tune, the values that each player had, by seat: `path=value` separated by spaces, empty for one \
                      that is as the spec says; in other runs an empty list",
        later: true,
        layout: Dictionary,
    },
];

/// What a move has before the counters of its search.
const MOVES: &[Column] = &[
    always("bout", U64, Delta, "", "the bout; in a probe, the position"),
    always(
        "game",
        U16,
        Dictionary,
        "",
        "the game within the bout, from 0; in a probe, the number of the search",
    ),
    always("ply", U16, Delta, "plies", "how many plies came before"),
    Column {
        name: "seat",
        kind: U16,
        nullable: true,
        unit: "",
        description: "the seat that moved, 0 moves first; null for chance",
        later: false,
        layout: Dictionary,
    },
    always("move", Text, Dictionary, "", "the move, or the outcome of chance"),
    always("legal", U16, Dictionary, "moves", "how many moves were legal"),
    searched("player", Text, Dictionary, "", "the name of the player who searched"),
    searched(
        "depth",
        U16,
        Dictionary,
        "plies",
        "the last completed depth; 0 for a search without iterations",
    ),
    searched("selective_depth", U16, Dictionary, "plies", "the greatest distance from the root"),
];

/// The counters of a search.
const COUNTERS: [Column; Counters::COUNT] = {
    let mut columns = [searched("", U64, Plain, "", ""); Counters::COUNT];
    let mut index = 0;
    while index < Counters::COUNT {
        let CounterInfo { name, unit, description } = Counters::LIST[index];
        columns[index] = searched(name, U64, Plain, unit, description);
        columns[index].later = index >= Counters::ORIGINAL;
        index += 1;
    }
    columns
};

/// What a search has behind its counters.
const SEARCH: &[Column] = &[
    searched("depth_nodes", Wholes, Plain, "nodes", "nodes of each completed depth alone, from depth 1"),
    searched(
        "depth_time_us",
        Wholes,
        Plain,
        "microseconds",
        "time of each completed depth alone, from depth 1",
    ),
    searched(
        "score",
        F64,
        Plain,
        "the game's evaluation",
        "the value for the seat that moves; of a sampling search, the mean payoff",
    ),
    searched("pv", Text, Plain, "", "the principal variation: moves separated by spaces"),
    searched("time_us", U64, Plain, "microseconds", "the time taken"),
    searched("overshoot_us", U64, Plain, "microseconds", "the part of it beyond the limit"),
    searched(
        "limit_kind",
        Text,
        Dictionary,
        "",
        "what was limited: `ms`, `cpu_ms`, `nodes`, `depth` or `clock_ms`",
    ),
    searched(
        "limit_value",
        U64,
        Dictionary,
        "that of the kind",
        "the limit; of a clock, what was left before the move",
    ),
];

/// What a probe has before the columns of a move.
const POSITION: &[Column] = &[
    always(
        "position",
        Text,
        Dictionary,
        "",
        "the position that the moves start from; empty for the game's first",
    ),
    always(
        "moves",
        Text,
        Dictionary,
        "",
        "moves from there to the position that is searched, separated by spaces",
    ),
];

impl Table {
    /// Every table.
    pub const ALL: [Table; 3] = [Table::Games, Table::Moves, Table::Probes];

    /// The table's name, which is also that of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Table::Games => "games",
            Table::Moves => "moves",
            Table::Probes => "probes",
        }
    }

    /// The columns in their order.
    pub fn columns(self) -> impl Iterator<Item = &'static Column> {
        let parts: &[&'static [Column]] = match self {
            Table::Games => &[GAMES],
            Table::Moves => &[MOVES, &COUNTERS, SEARCH],
            Table::Probes => &[POSITION, MOVES, &COUNTERS, SEARCH],
        };
        parts.iter().copied().flatten()
    }

    /// The columns that rows are sorted by.
    pub fn key(self) -> &'static [&'static str] {
        match self {
            Table::Moves => &["bout", "game", "ply"],
            Table::Games | Table::Probes => &["bout", "game"],
        }
    }

    /// The Arrow schema: the columns with their descriptions, and the version.
    pub fn schema(self) -> SchemaRef {
        let fields: Vec<Field> = self.columns().map(Column::field).collect();
        let metadata = [(VERSION_KEY, SCHEMA_VERSION.to_string()), (TABLE_KEY, self.name().to_string())];
        let metadata = metadata.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        Arc::new(Schema::new_with_metadata(fields, metadata))
    }
}

impl Column {
    fn field(&self) -> Field {
        let words = [("description", self.description), ("unit", self.unit)];
        let words: HashMap<String, String> = words
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(key, text)| (key.to_string(), text.to_string()))
            .collect();
        Field::new(self.name, self.kind.data_type(), self.nullable).with_metadata(words)
    }
}

impl Kind {
    /// The Arrow type.
    pub fn data_type(self) -> DataType {
        match self {
            Kind::Text => DataType::Utf8,
            Kind::U16 => DataType::UInt16,
            Kind::U32 => DataType::UInt32,
            Kind::U64 => DataType::UInt64,
            Kind::F64 => DataType::Float64,
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Texts | Kind::Integers | Kind::Wholes => DataType::List(self.element()),
        }
    }

    /// The element of a list, by the name that the Parquet format gives it.
    pub(crate) fn element(self) -> Arc<Field> {
        let data_type = match self {
            Kind::Texts => DataType::Utf8,
            Kind::Integers => DataType::Int32,
            _ => DataType::UInt64,
        };
        Arc::new(Field::new("element", data_type, false))
    }

    /// The type in the words of the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::U16 => "u16",
            Kind::U32 => "u32",
            Kind::U64 => "u64",
            Kind::F64 => "f64",
            Kind::Timestamp => "timestamp",
            Kind::Texts => "list of string",
            Kind::Integers => "list of i32",
            Kind::Wholes => "list of u64",
        }
    }

    /// The path of the column's values within a file.
    pub(crate) fn path(self, name: &str) -> Vec<String> {
        let mut path = vec![name.to_string()];
        if matches!(self, Kind::Texts | Kind::Integers | Kind::Wholes) {
            path.extend(["list".to_string(), "element".to_string()]);
        }
        path
    }
}
