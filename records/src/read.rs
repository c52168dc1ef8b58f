//! Reads Parquet files as rows, or as batches of some of their columns.
//!
//! Columns are found by name, in any order; unknown columns are ignored, and columns that were added later may be absent. A
//! file of a newer schema version is rejected. The footer of a part is compared with its seal before it is parsed, and the
//! pages before they are decoded, except in batches of some columns. A source is a `bytes::Bytes` or a file.

mod results;

use std::ops::RangeInclusive;

use agon_search::Counters;
use arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int32Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt16Array, UInt32Array, UInt64Array,
};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::file::metadata::{FileMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::statistics::Statistics;

use crate::rows::{GameRow, LimitKind, MoveRow, ProbeRow, SearchRow};
use crate::schema::{Column, SCHEMA_VERSION, TABLE_KEY, Table, VERSION_KEY};
use crate::seal::{Seal, check_footer};

pub use results::{ResultBatch, Results, stream_results};

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file has no seal.
    #[error(
        "this is not a part of an agon dataset, or it was truncated, damaged or rewritten by another program: it has no \
         seal of agon; fetch or export it again"
    )]
    NoSeal,
    /// The file cannot be read, or it is damaged.
    #[error("the file cannot be read, or it is damaged ({0}); fetch or export it again")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The file is damaged, and no batches can be decoded.
    #[error("the file is damaged ({0}); fetch or export it again")]
    Arrow(#[from] arrow::error::ArrowError),
    /// The pages do not match the seal.
    #[error("the file is damaged: its pages do not match its seal; fetch or export it again")]
    DamagedPages,
    /// The footer does not match the seal.
    #[error("the file is damaged: its footer does not match its seal; fetch or export it again")]
    DamagedFooter,
    /// The metadata does not identify a part of a dataset.
    #[error(
        "this Parquet file is not a part of an agon dataset: its metadata has no number under `{VERSION_KEY}`"
    )]
    NotAPart,
    /// A newer program wrote the file.
    #[error(
        "the file has schema version {found}, and this program supports up to {SCHEMA_VERSION}; use a newer program"
    )]
    NewerSchema {
        /// The version of the file.
        found: u32,
    },
    /// The part belongs to another table.
    #[error("this is a part of `{found}`, not of `{}`", .expected.name())]
    WrongTable {
        /// The requested table.
        expected: Table,
        /// The table of the part.
        found: String,
    },
    /// A column is missing.
    #[error("the column `{column}` is missing")]
    MissingColumn {
        /// The column.
        column: String,
    },
    /// A column has another type.
    #[error("the column `{column}` has the type {found}, not {expected}")]
    WrongType {
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
    /// A column is null where it must not be, or the reverse.
    #[error("the column `{column}` is {} in a row that does not allow it", if *.null { "null" } else { "not null" })]
    Null {
        /// The column.
        column: String,
        /// Whether it is null.
        null: bool,
    },
    /// A limit has an unknown kind.
    #[error("the column `limit_kind` has the unknown value `{found}`")]
    UnknownLimit {
        /// The value.
        found: String,
    },
}

/// Reads the rows of a part of `games`.
pub fn read_games(source: impl ChunkReader + 'static) -> Result<Vec<GameRow>, ReadError> {
    read(source, Table::Games, game_rows)
}

/// Reads the rows of a part of `moves`.
pub fn read_moves(source: impl ChunkReader + 'static) -> Result<Vec<MoveRow>, ReadError> {
    read(source, Table::Moves, move_rows)
}

/// Reads the rows of a part of `probes`.
pub fn read_probes(source: impl ChunkReader + 'static) -> Result<Vec<ProbeRow>, ReadError> {
    read(source, Table::Probes, probe_rows)
}

/// Reads batches of some columns of a part, in the order of the file; all columns if none are named. Does not detect all
/// damage of the pages.
pub fn read_batches(
    source: impl ChunkReader + 'static,
    table: Table,
    columns: &[&str],
) -> Result<ParquetRecordBatchReader, ReadError> {
    let (part, _) = open(&source, table)?;
    batches(source, part, columns)
}

/// The rows to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowRange {
    /// The bouts.
    pub bouts: RangeInclusive<u64>,
    /// The numbers of plies of a game; ignored for moves.
    pub plies: RangeInclusive<u32>,
}

impl Default for RowRange {
    fn default() -> RowRange {
        RowRange { bouts: 0..=u64::MAX, plies: 0..=u32::MAX }
    }
}

/// Batches of the rows of a part, in the order of their keys.
pub struct Rows<T> {
    /// None if no row group can contain wanted rows.
    batches: Option<ParquetRecordBatchReader>,
    rows: fn(&RecordBatch) -> Result<Vec<T>, ReadError>,
}

impl<T> Iterator for Rows<T> {
    type Item = Result<Vec<T>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.as_mut()?.next()?;
        Some(batch.map_err(ReadError::from).and_then(|batch| (self.rows)(&batch)))
    }
}

/// Reads the rows of a part of `games` within a range. Skips row groups whose statistics exclude the range; if all do, reads
/// no pages.
pub fn stream_games(
    source: impl ChunkReader + 'static,
    wanted: &RowRange,
) -> Result<Rows<GameRow>, ReadError> {
    stream(source, Table::Games, wanted, game_rows)
}

/// Reads the rows of a part of `moves` within a range of bouts, like [`stream_games`].
pub fn stream_moves(
    source: impl ChunkReader + 'static,
    wanted: &RowRange,
) -> Result<Rows<MoveRow>, ReadError> {
    stream(source, Table::Moves, wanted, move_rows)
}

fn stream<T>(
    source: impl ChunkReader + 'static,
    table: Table,
    wanted: &RowRange,
    rows: fn(&RecordBatch) -> Result<Vec<T>, ReadError>,
) -> Result<Rows<T>, ReadError> {
    let (part, seal) = open(&source, table)?;
    let (first, last) = (u64::from(*wanted.plies.start()), u64::from(*wanted.plies.end()));
    let groups: Vec<usize> = part
        .metadata()
        .row_groups()
        .iter()
        .enumerate()
        .filter(|(_, group)| {
            may_have(group, "bout", &wanted.bouts) && may_have(group, "plies", &(first..=last))
        })
        .map(|(index, _)| index)
        .collect();
    if groups.is_empty() {
        return Ok(Rows { batches: None, rows });
    }
    seal.check_pages(&source)?;
    let columns = present(&part, table.columns())?;
    let mut builder = select(source, part, &columns)?.with_row_groups(groups);
    if wanted.bouts != (0..=u64::MAX) {
        let bouts = wanted.bouts.clone();
        let key = ProjectionMask::columns(builder.parquet_schema(), ["bout"]);
        let predicate = ArrowPredicateFn::new(key, move |batch| {
            let column = required::<UInt64Array>(&batch, "bout", "u64")
                .map_err(|error| arrow::error::ArrowError::ExternalError(Box::new(error)))?;
            Ok(column.values().iter().map(|bout| Some(bouts.contains(bout))).collect::<BooleanArray>())
        });
        builder = builder.with_row_filter(RowFilter::new(vec![Box::new(predicate)]));
    }
    Ok(Rows { batches: Some(builder.build()?), rows })
}

/// Returns whether a row group may have a value within the range in an unsigned column. Without statistics it may.
fn may_have(group: &RowGroupMetaData, column: &str, range: &RangeInclusive<u64>) -> bool {
    let found = group.columns().iter().find(|chunk| chunk.column_path().string() == column);
    let (least, most) = match found.and_then(|chunk| chunk.statistics()) {
        Some(Statistics::Int64(statistics)) => {
            (statistics.min_opt().map(|&least| least as u64), statistics.max_opt().map(|&most| most as u64))
        }
        Some(Statistics::Int32(statistics)) => {
            let number = |&number: &i32| u64::from(number as u32);
            (statistics.min_opt().map(number), statistics.max_opt().map(number))
        }
        _ => (None, None),
    };
    least.is_none_or(|least| least <= *range.end()) && most.is_none_or(|most| most >= *range.start())
}

fn read<T>(
    source: impl ChunkReader + 'static,
    table: Table,
    rows: impl Fn(&RecordBatch) -> Result<Vec<T>, ReadError>,
) -> Result<Vec<T>, ReadError> {
    let (part, seal) = open(&source, table)?;
    seal.check_pages(&source)?;
    let columns = present(&part, table.columns())?;
    let mut all = Vec::new();
    for batch in batches(source, part, &columns)? {
        all.extend(rows(&batch?)?);
    }
    Ok(all)
}

/// Opens a part of a table and checks its footer and its metadata.
pub(crate) fn open(
    source: &impl ChunkReader,
    table: Table,
) -> Result<(ArrowReaderMetadata, Seal), ReadError> {
    let seal = check_footer(source)?;
    // The types of Parquet decide, whatever Arrow schema another writer may have added.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let part = ArrowReaderMetadata::load(source, options)?;
    let metadata = part.metadata().file_metadata();
    let version = value(metadata, VERSION_KEY).and_then(|text| text.parse().ok());
    match version.ok_or(ReadError::NotAPart)? {
        found if found > SCHEMA_VERSION => return Err(ReadError::NewerSchema { found }),
        _ => {}
    }
    let found = value(metadata, TABLE_KEY).ok_or(ReadError::NotAPart)?;
    if found != table.name() {
        return Err(ReadError::WrongTable { expected: table, found: found.to_string() });
    }
    Ok((part, seal))
}

/// Returns the value of a key of the metadata.
fn value<'a>(metadata: &'a FileMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.key_value_metadata().into_iter().flatten();
    pairs.filter(|pair| pair.key == key).find_map(|pair| pair.value.as_deref())
}

fn batches(
    source: impl ChunkReader + 'static,
    part: ArrowReaderMetadata,
    columns: &[&str],
) -> Result<ParquetRecordBatchReader, ReadError> {
    Ok(select(source, part, columns)?.build()?)
}

/// Returns the names of the columns that a part has. Columns that were added later may be missing.
pub(crate) fn present<'a>(
    part: &ArrowReaderMetadata,
    columns: impl Iterator<Item = &'a Column>,
) -> Result<Vec<&'a str>, ReadError> {
    let mut names = Vec::new();
    for column in columns {
        match part.schema().field_with_name(column.name) {
            Ok(_) => names.push(column.name),
            Err(_) if column.later => {}
            Err(_) => return Err(ReadError::MissingColumn { column: column.name.to_string() }),
        }
    }
    Ok(names)
}

/// Begins a reader of some columns of a part; all columns if none are named.
fn select<S: ChunkReader + 'static>(
    source: S,
    part: ArrowReaderMetadata,
    columns: &[&str],
) -> Result<ParquetRecordBatchReaderBuilder<S>, ReadError> {
    for &column in columns {
        if part.schema().field_with_name(column).is_err() {
            return Err(ReadError::MissingColumn { column: column.to_string() });
        }
    }
    let mask = if columns.is_empty() {
        ProjectionMask::all()
    } else {
        ProjectionMask::columns(part.parquet_schema(), columns.iter().copied())
    };
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(source, part).with_projection(mask))
}

fn game_rows(batch: &RecordBatch) -> Result<Vec<GameRow>, ReadError> {
    let bout = required::<UInt64Array>(batch, "bout", "u64")?;
    let game = required::<UInt16Array>(batch, "game", "u16")?;
    let rules = required::<StringArray>(batch, "rules", "string")?;
    let variant = required::<StringArray>(batch, "variant", "string")?;
    let opening = required::<StringArray>(batch, "opening", "string")?;
    let texts = |name| TypedLists::<StringArray>::new(required(batch, name, "a list")?, name, "string");
    let players = texts("players")?;
    let payoffs = TypedLists::<Int32Array>::new(required(batch, "payoffs", "a list")?, "payoffs", "i32")?;
    let plies = required::<UInt32Array>(batch, "plies", "u32")?;
    let ending = required::<StringArray>(batch, "ending", "string")?;
    let seed = required::<UInt64Array>(batch, "seed", "u64")?;
    let worker = required::<StringArray>(batch, "worker", "string")?;
    let build = required::<StringArray>(batch, "build", "string")?;
    let started = required::<TimestampMicrosecondArray>(batch, "started", "timestamp in microseconds")?;
    let duration_us = required::<UInt64Array>(batch, "duration_us", "u64")?;
    let speed_factor = required::<Float64Array>(batch, "speed_factor", "f64")?;
    // Added later.
    let has = |name: &str| batch.column_by_name(name).is_some();
    let settings = has("settings").then(|| texts("settings")).transpose()?;
    let detail = has("detail").then(|| required::<StringArray>(batch, "detail", "string")).transpose()?;
    let numbers = |name| TypedLists::<UInt64Array>::new(required(batch, name, "a list")?, name, "u64");
    let engine_cpu_us = has("engine_cpu_us").then(|| numbers("engine_cpu_us")).transpose()?;
    let row = |index| GameRow {
        bout: bout.value(index),
        game: game.value(index),
        rules: rules.value(index).to_string(),
        variant: variant.value(index).to_string(),
        opening: opening.value(index).to_string(),
        players: players.texts(index),
        payoffs: payoffs.elements.values()[payoffs.range(index)].to_vec(),
        plies: plies.value(index),
        ending: ending.value(index).to_string(),
        seed: seed.value(index),
        worker: worker.value(index).to_string(),
        build: build.value(index).to_string(),
        started: started.value(index),
        duration_us: duration_us.value(index),
        speed_factor: speed_factor.value(index),
        settings: settings.as_ref().map_or_else(Vec::new, |settings| settings.texts(index)),
        detail: detail.map_or_else(String::new, |detail| detail.value(index).to_string()),
        engine_cpu_us: engine_cpu_us
            .as_ref()
            .map_or_else(Vec::new, |times| times.elements.values()[times.range(index)].to_vec()),
    };
    Ok((0..batch.num_rows()).map(row).collect())
}

fn move_rows(batch: &RecordBatch) -> Result<Vec<MoveRow>, ReadError> {
    let bout = required::<UInt64Array>(batch, "bout", "u64")?;
    let game = required::<UInt16Array>(batch, "game", "u16")?;
    let ply = required::<UInt16Array>(batch, "ply", "u16")?;
    let seat = column::<UInt16Array>(batch, "seat", "u16")?;
    let mv = required::<StringArray>(batch, "move", "string")?;
    let legal = required::<UInt16Array>(batch, "legal", "u16")?;
    // The player tells whether a ply was searched; every other column of the search must agree.
    let player = column::<StringArray>(batch, "player", "string")?;
    let text = |name| searched::<StringArray>(batch, name, "string", player);
    let small = |name| searched::<UInt16Array>(batch, name, "u16", player);
    let number = |name| searched::<UInt64Array>(batch, name, "u64", player);
    let list = |name| TypedLists::<UInt64Array>::new(searched(batch, name, "a list", player)?, name, "u64");
    let (depth, selective_depth) = (small("depth")?, small("selective_depth")?);
    // A counter may have been added later.
    let counters = Counters::LIST.iter().map(|counter| match batch.column_by_name(counter.name) {
        Some(_) => number(counter.name).map(Some),
        None => Ok(None),
    });
    let counters = counters.collect::<Result<Vec<_>, _>>()?;
    let (depth_nodes, depth_time_us) = (list("depth_nodes")?, list("depth_time_us")?);
    let score = searched::<Float64Array>(batch, "score", "f64", player)?;
    let pv = text("pv")?;
    let (time_us, overshoot_us) = (number("time_us")?, number("overshoot_us")?);
    let (limit_kind, limit_value) = (text("limit_kind")?, number("limit_value")?);
    let search = |index| -> Result<SearchRow, ReadError> {
        let kind = limit_kind.value(index);
        Ok(SearchRow {
            player: player.value(index).to_string(),
            depth: depth.value(index),
            selective_depth: selective_depth.value(index),
            counters: Counters::from_values(std::array::from_fn(|counter| {
                counters[counter].map_or(0, |column| column.value(index))
            })),
            depth_nodes: depth_nodes.elements.values()[depth_nodes.range(index)].to_vec(),
            depth_time_us: depth_time_us.elements.values()[depth_time_us.range(index)].to_vec(),
            score: score.value(index),
            pv: pv.value(index).to_string(),
            time_us: time_us.value(index),
            overshoot_us: overshoot_us.value(index),
            limit_kind: LimitKind::from_name(kind)
                .ok_or_else(|| ReadError::UnknownLimit { found: kind.to_string() })?,
            limit_value: limit_value.value(index),
        })
    };
    let row = |index| -> Result<MoveRow, ReadError> {
        Ok(MoveRow {
            bout: bout.value(index),
            game: game.value(index),
            ply: ply.value(index),
            seat: seat.is_valid(index).then(|| seat.value(index)),
            mv: mv.value(index).to_string(),
            legal: legal.value(index),
            search: player.is_valid(index).then(|| search(index)).transpose()?,
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

fn probe_rows(batch: &RecordBatch) -> Result<Vec<ProbeRow>, ReadError> {
    let position = required::<StringArray>(batch, "position", "string")?;
    let moves = required::<StringArray>(batch, "moves", "string")?;
    let row = |(index, decision)| ProbeRow {
        position: position.value(index).to_string(),
        moves: moves.value(index).to_string(),
        decision,
    };
    Ok(move_rows(batch)?.into_iter().enumerate().map(row).collect())
}

/// Returns a column of a batch by name and type.
pub(crate) fn column<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &str,
    expected: &'static str,
) -> Result<&'a A, ReadError> {
    let array =
        batch.column_by_name(name).ok_or_else(|| ReadError::MissingColumn { column: name.to_string() })?;
    typed(array, name, expected)
}

/// Returns a column without nulls.
pub(crate) fn required<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &str,
    expected: &'static str,
) -> Result<&'a A, ReadError> {
    let array = column::<A>(batch, name, expected)?;
    if array.null_count() > 0 {
        return Err(ReadError::Null { column: name.to_string(), null: true });
    }
    Ok(array)
}

/// Returns a column that is null exactly where the player is.
fn searched<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &str,
    expected: &'static str,
    player: &StringArray,
) -> Result<&'a A, ReadError> {
    let array = column::<A>(batch, name, expected)?;
    match (0..batch.num_rows()).find(|&row| array.is_null(row) != player.is_null(row)) {
        Some(row) => Err(ReadError::Null { column: name.to_string(), null: array.is_null(row) }),
        None => Ok(array),
    }
}

/// Casts an array to the expected type.
pub(crate) fn typed<'a, A: Array + 'static>(
    array: &'a ArrayRef,
    name: &str,
    expected: &'static str,
) -> Result<&'a A, ReadError> {
    array.as_any().downcast_ref().ok_or_else(|| ReadError::WrongType {
        column: name.to_string(),
        found: array.data_type().to_string(),
        expected,
    })
}

/// A list column with typed elements.
struct TypedLists<'a, A> {
    lists: &'a ListArray,
    elements: &'a A,
}

impl<'a, A: Array + 'static> TypedLists<'a, A> {
    fn new(lists: &'a ListArray, name: &str, expected: &'static str) -> Result<TypedLists<'a, A>, ReadError> {
        let elements = typed::<A>(lists.values(), name, expected)?;
        if elements.null_count() > 0 {
            return Err(ReadError::Null { column: name.to_string(), null: true });
        }
        Ok(TypedLists { lists, elements })
    }

    /// Returns the range of a row's elements.
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let offsets = self.lists.value_offsets();
        offsets[row] as usize..offsets[row + 1] as usize
    }
}

impl TypedLists<'_, StringArray> {
    /// Returns a row's elements.
    fn texts(&self, index: usize) -> Vec<String> {
        self.range(index).map(|element| self.elements.value(element).to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn parts_may_lack_columns_that_were_added_later() {
        let source = Bytes::from_static(include_bytes!("../tests/earlier-moves.parquet"));
        let (part, _) = open(&source, Table::Moves).unwrap();
        let legal = Table::Moves.columns().find(|column| column.name == "legal").unwrap();
        let with = |later| {
            let added = Column { name: "added", later, ..*legal };
            let columns: Vec<Column> = Table::Moves.columns().copied().chain([added]).collect();
            present(&part, columns.iter()).map(|names| names.len())
        };
        let known = Table::Moves.columns().filter(|column| !column.later).count();
        assert_eq!(with(true).unwrap(), known);
        let error = with(false).unwrap_err().to_string();
        assert_eq!(error, "the column `added` is missing");
        assert!(!read_moves(source).unwrap().is_empty());
    }
}
