//! Parquet files become rows again, or batches of some of their columns.
//!
//! A column is found by its name and read by its type, wherever it stands and whatever else is there; a file of a newer
//! version is refused, since its numbers might mean something else. A part's directory is compared with its seal before it
//! is parsed, and its pages before they are decoded; only batches of some columns, which do not read all pages, are not. A
//! source is a `bytes::Bytes` or a file.

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
use crate::seal::{Seal, check_directory};

pub use results::{ResultBatch, Results, stream_results};

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It has no seal where one should be.
    #[error(
        "this is no part of a dataset of agon, or it was cut short, damaged or written anew by another program: it has no \
         seal of agon; fetch or export it again"
    )]
    NoSeal,
    /// It cannot be read, or it is damaged.
    #[error("the file cannot be read, or it is damaged ({0}); fetch or export it again")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// It is damaged where batches are made of it.
    #[error("the file is damaged ({0}); fetch or export it again")]
    Arrow(#[from] arrow::error::ArrowError),
    /// Its pages are not those that were written.
    #[error("the file is damaged: its pages are not those that were written; fetch or export it again")]
    DamagedPages,
    /// What says where its pages are is not what was written.
    #[error("the file is damaged: its directory is not the one that was written; fetch or export it again")]
    DamagedDirectory,
    /// Nothing says that it is a part of a dataset.
    #[error(
        "this Parquet file is no part of a dataset of agon: its metadata has no number under `{VERSION_KEY}`"
    )]
    NotAPart,
    /// It was written by a newer program.
    #[error(
        "the file has version {found} of the columns, and this program knows up to {SCHEMA_VERSION}; use a newer one"
    )]
    NewerSchema {
        /// The version of the file.
        found: u32,
    },
    /// It is another table.
    #[error("this is a part of `{found}`, not of `{}`", .expected.name())]
    WrongTable {
        /// What was asked for.
        expected: Table,
        /// What it is.
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
        /// The type that it should have.
        expected: &'static str,
    },
    /// A column is null where it must not be, or the reverse.
    #[error("the column `{column}` is {} in a row where that cannot be", if *.null { "null" } else { "not null" })]
    Null {
        /// The column.
        column: String,
        /// Whether it is null.
        null: bool,
    },
    /// A limit of a kind that is not known.
    #[error("the column `limit_kind` has `{found}`, which is no kind of limit")]
    UnknownLimit {
        /// What stands there.
        found: String,
    },
}

/// The rows of a part of `games`.
pub fn read_games(source: impl ChunkReader + 'static) -> Result<Vec<GameRow>, ReadError> {
    read(source, Table::Games, game_rows)
}

/// The rows of a part of `moves`.
pub fn read_moves(source: impl ChunkReader + 'static) -> Result<Vec<MoveRow>, ReadError> {
    read(source, Table::Moves, move_rows)
}

/// The rows of a part of `probes`.
pub fn read_probes(source: impl ChunkReader + 'static) -> Result<Vec<ProbeRow>, ReadError> {
    read(source, Table::Probes, probe_rows)
}

/// Some columns of a part, batch after batch; all that are there where no names are given. Columns come in the order of
/// the file. Damage of its pages is not always recognised.
pub fn read_batches(
    source: impl ChunkReader + 'static,
    table: Table,
    columns: &[&str],
) -> Result<ParquetRecordBatchReader, ReadError> {
    let (part, _) = open(&source, table)?;
    batches(source, part, columns)
}

/// What rows must have to be wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The bouts.
    pub bouts: RangeInclusive<u64>,
    /// The plies of a game; nothing is asked of the plies of moves.
    pub plies: RangeInclusive<u32>,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { bouts: 0..=u64::MAX, plies: 0..=u32::MAX }
    }
}

/// Rows of a part, batch after batch in the order of their keys.
pub struct Rows<T> {
    /// None where no rows can be wanted.
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

/// The wanted rows of a part of `games`. Its directory tells which stretches of it have none, and those are not decoded;
/// where none has any, its pages are not read.
pub fn stream_games(source: impl ChunkReader + 'static, wanted: &Wanted) -> Result<Rows<GameRow>, ReadError> {
    stream(source, Table::Games, wanted, game_rows)
}

/// The rows of the wanted bouts of a part of `moves`, read in the same way.
pub fn stream_moves(source: impl ChunkReader + 'static, wanted: &Wanted) -> Result<Rows<MoveRow>, ReadError> {
    stream(source, Table::Moves, wanted, move_rows)
}

fn stream<T>(
    source: impl ChunkReader + 'static,
    table: Table,
    wanted: &Wanted,
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

/// Whether a row group may have a value of the range in a column of numbers without a sign. One without that column, or
/// without statistics of it, may.
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

/// Opens a part of a table, if it is one.
pub(crate) fn open(
    source: &impl ChunkReader,
    table: Table,
) -> Result<(ArrowReaderMetadata, Seal), ReadError> {
    let seal = check_directory(source)?;
    // What another writer may say about Arrow types does not matter: those of Parquet decide.
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

/// The value of a key of a file's metadata.
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

/// Returns the names of the columns that a part has. One that was added later may be missing.
fn present<'a>(
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

/// A reader of some columns of a part, before it is decided which rows it reads.
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
    let players = Lists::<StringArray>::new(required(batch, "players", "a list")?, "players", "string")?;
    let payoffs = Lists::<Int32Array>::new(required(batch, "payoffs", "a list")?, "payoffs", "i32")?;
    let plies = required::<UInt32Array>(batch, "plies", "u32")?;
    let ending = required::<StringArray>(batch, "ending", "string")?;
    let seed = required::<UInt64Array>(batch, "seed", "u64")?;
    let worker = required::<StringArray>(batch, "worker", "string")?;
    let build = required::<StringArray>(batch, "build", "string")?;
    let started = required::<TimestampMicrosecondArray>(batch, "started", "timestamp in microseconds")?;
    let duration_us = required::<UInt64Array>(batch, "duration_us", "u64")?;
    let speed_factor = required::<Float64Array>(batch, "speed_factor", "f64")?;
    // A part from before there were tunes has none.
    let settings = match batch.column_by_name("settings") {
        Some(_) => {
            Some(Lists::<StringArray>::new(required(batch, "settings", "a list")?, "settings", "string")?)
        }
        None => None,
    };
    let settings_of = |index| match &settings {
        Some(lists) => lists.range(index).map(|element| lists.elements.value(element).to_string()).collect(),
        None => Vec::new(),
    };
    let row = |index| GameRow {
        bout: bout.value(index),
        game: game.value(index),
        rules: rules.value(index).to_string(),
        variant: variant.value(index).to_string(),
        opening: opening.value(index).to_string(),
        players: players.range(index).map(|element| players.elements.value(element).to_string()).collect(),
        payoffs: payoffs.elements.values()[payoffs.range(index)].to_vec(),
        plies: plies.value(index),
        ending: ending.value(index).to_string(),
        seed: seed.value(index),
        worker: worker.value(index).to_string(),
        build: build.value(index).to_string(),
        started: started.value(index),
        duration_us: duration_us.value(index),
        speed_factor: speed_factor.value(index),
        settings: settings_of(index),
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
    // Whether there was a search is what the player's name says; every other column of a search must agree.
    let player = column::<StringArray>(batch, "player", "string")?;
    let text = |name| searched::<StringArray>(batch, name, "string", player);
    let small = |name| searched::<UInt16Array>(batch, name, "u16", player);
    let number = |name| searched::<UInt64Array>(batch, name, "u64", player);
    let list = |name| Lists::<UInt64Array>::new(searched(batch, name, "a list", player)?, name, "u64");
    let (depth, selective_depth) = (small("depth")?, small("selective_depth")?);
    // A part from before a counter was added does not have it.
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

/// A column of a batch by its name and type.
pub(crate) fn column<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &str,
    expected: &'static str,
) -> Result<&'a A, ReadError> {
    let array =
        batch.column_by_name(name).ok_or_else(|| ReadError::MissingColumn { column: name.to_string() })?;
    typed(array, name, expected)
}

/// A column that is never null.
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

/// A column that is null exactly where the player is.
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

/// An array as one of the type that is expected.
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

/// A column of lists.
struct Lists<'a, A> {
    lists: &'a ListArray,
    elements: &'a A,
}

impl<'a, A: Array + 'static> Lists<'a, A> {
    fn new(lists: &'a ListArray, name: &str, expected: &'static str) -> Result<Lists<'a, A>, ReadError> {
        let elements = typed::<A>(lists.values(), name, expected)?;
        if elements.null_count() > 0 {
            return Err(ReadError::Null { column: name.to_string(), null: true });
        }
        Ok(Lists { lists, elements })
    }

    /// Where the elements of a row stand.
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let offsets = self.lists.value_offsets();
        offsets[row] as usize..offsets[row + 1] as usize
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// A reader of a later build, which has one column more.
    #[test]
    fn a_part_of_an_earlier_build_may_lack_a_column() {
        let source = Bytes::from_static(include_bytes!("../tests/earlier-moves.parquet"));
        let (part, _) = open(&source, Table::Moves).unwrap();
        let legal = Table::Moves.columns().find(|column| column.name == "legal").unwrap();
        let with = |later| {
            let novelty = Column { name: "novelty", later, ..*legal };
            let columns: Vec<Column> = Table::Moves.columns().copied().chain([novelty]).collect();
            present(&part, columns.iter()).map(|names| names.len())
        };
        // Columns that were added since the part was written are not in it either.
        let known = Table::Moves.columns().filter(|column| !column.later).count();
        assert_eq!(with(true).unwrap(), known);
        let error = with(false).unwrap_err().to_string();
        assert_eq!(error, "the column `novelty` is missing");
        assert!(!read_moves(source).unwrap().is_empty());
    }
}
