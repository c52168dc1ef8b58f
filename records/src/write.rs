//! Writes rows as Parquet files: the same rows always give the same bytes.
//!
//! Files contain no time of writing and no library version. Rows are sorted by key, so that row groups and pages are ranges
//! of bouts that a reader can skip. The Arrow schema is left out of the metadata: it is redundant, and its descriptions would
//! outweigh small parts.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int32Builder, ListBuilder, RecordBatch, StringArray, StringBuilder,
    TimestampMicrosecondArray, UInt16Array, UInt32Array, UInt64Array, UInt64Builder,
};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

use crate::arrays::{Span, batches, ply_arrays};
use crate::columns::Plies;
use crate::rows::{GameRow, MoveRow, ProbeRow};
use crate::schema::{ColumnType, Layout, SCHEMA_VERSION, TABLE_KEY, Table, VERSION_KEY};
use crate::seal::sealed;

/// The rows of a row group: DuckDB's unit of parallelism, and few enough to skip most of a large part.
const ROW_GROUP_ROWS: usize = 122_880;

/// The rows of a page: the least that a reader of one game has to read.
const PAGE_ROWS: usize = 8_192;

/// The rows of a batch of arrays. All writers use the same, since the ends of pages depend on it. Such arrays stay in the
/// processor's cache.
const BATCH_ROWS: usize = PAGE_ROWS;

/// The compression level: higher ones cost more time than they save space; level 1 makes files a fifth larger.
const ZSTD_LEVEL: i32 = 3;

/// Why rows cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the {} cannot be written as Parquet: {source}", .table.name())]
pub struct WriteError {
    /// The table.
    pub table: Table,
    /// The error of the writer.
    pub source: ParquetError,
}

/// Writes a part of `games`.
pub fn write_games<'a>(rows: impl IntoIterator<Item = &'a GameRow>) -> Result<Vec<u8>, WriteError> {
    let mut rows: Vec<&GameRow> = rows.into_iter().collect();
    rows.sort_by_key(|row| (row.bout, row.game));
    write(Table::Games, &rows, game_arrays, properties(Table::Games))
}

/// Writes a part of `moves`.
pub fn write_moves<'a>(rows: impl IntoIterator<Item = &'a MoveRow>) -> Result<Vec<u8>, WriteError> {
    write_moves_with(rows, properties(Table::Moves))
}

/// Writes a part of `moves` from plies in the order of their keys. The bytes are those of [`write_moves`], however the plies
/// are divided.
pub fn write_plies<'a>(parts: impl IntoIterator<Item = &'a Plies>) -> Result<Vec<u8>, WriteError> {
    let attempt = || {
        let mut part = PartWriter::new(Table::Moves, properties(Table::Moves))?;
        batches(parts, BATCH_ROWS, |spans| part.write(ply_arrays(spans)))?;
        part.finish()
    };
    attempt().map_err(|source| WriteError { table: Table::Moves, source })
}

/// Writes a part of `moves` from groups of rows in the order of their keys, without holding all in memory. Each group starts
/// a new row group.
pub fn write_moves_in_groups(
    rows: impl FnOnce(&mut dyn FnMut(&[MoveRow]) -> Result<(), WriteError>) -> Result<(), WriteError>,
) -> Result<Vec<u8>, WriteError> {
    let failed = |source| WriteError { table: Table::Moves, source };
    let mut part = PartWriter::new(Table::Moves, properties(Table::Moves)).map_err(failed)?;
    rows(&mut |group| {
        let rows: Vec<&MoveRow> = group.iter().collect();
        for rows in rows.chunks(BATCH_ROWS) {
            part.write(move_arrays(rows)).map_err(failed)?;
        }
        part.writer.flush().map_err(failed)
    })?;
    part.finish().map_err(failed)
}

/// Writes a part of `probes`.
pub fn write_probes<'a>(rows: impl IntoIterator<Item = &'a ProbeRow>) -> Result<Vec<u8>, WriteError> {
    let mut rows: Vec<&ProbeRow> = rows.into_iter().collect();
    rows.sort_by_key(|row| (row.decision.bout, row.decision.game));
    write(Table::Probes, &rows, probe_arrays, properties(Table::Probes))
}

/// Writes a part of `moves` with given properties, for comparison in tests.
pub(crate) fn write_moves_with<'a>(
    rows: impl IntoIterator<Item = &'a MoveRow>,
    properties: WriterProperties,
) -> Result<Vec<u8>, WriteError> {
    let mut rows: Vec<&MoveRow> = rows.into_iter().collect();
    rows.sort_by_key(|row| (row.bout, row.game, row.ply));
    write(Table::Moves, &rows, move_arrays, properties)
}

fn write<T>(
    table: Table,
    rows: &[T],
    arrays: impl Fn(&[T]) -> Vec<ArrayRef>,
    properties: WriterProperties,
) -> Result<Vec<u8>, WriteError> {
    let attempt = || {
        let mut part = PartWriter::new(table, properties)?;
        for batch in rows.chunks(BATCH_ROWS) {
            part.write(arrays(batch))?;
        }
        part.finish()
    };
    attempt().map_err(|source| WriteError { table, source })
}

/// A part under construction.
struct PartWriter {
    schema: SchemaRef,
    writer: ArrowWriter<Vec<u8>>,
}

impl PartWriter {
    fn new(table: Table, properties: WriterProperties) -> Result<PartWriter, ParquetError> {
        let schema = table.schema();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&schema), options)?;
        Ok(PartWriter { schema, writer })
    }

    fn write(&mut self, arrays: Vec<ArrayRef>) -> Result<(), ParquetError> {
        self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }

    fn finish(self) -> Result<Vec<u8>, ParquetError> {
        Ok(sealed(self.writer.into_inner()?).expect("the writer makes Parquet files"))
    }
}

/// Returns the properties of a table's files.
fn properties(table: Table) -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("zstd has this level");
    let metadata = [(VERSION_KEY, SCHEMA_VERSION.to_string()), (TABLE_KEY, table.name().to_string())];
    let metadata = metadata.into_iter().map(|(key, value)| KeyValue::new(key.to_string(), value));
    let column_index = |name: &str| {
        let index = table.columns().position(|column| column.name == name);
        index.expect("the columns of a key are columns of its table") as i32
    };
    let sorting = table.key().iter().map(|name| SortingColumn {
        column_idx: column_index(name),
        descending: false,
        nulls_first: false,
    });
    let mut builder = WriterProperties::builder()
        // Pages of version 2 leave the positions of nulls uncompressed, which costs more than it saves.
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by("agon".to_string())
        .set_key_value_metadata(Some(metadata.collect()))
        .set_sorting_columns(Some(sorting.collect()))
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for column in table.columns() {
        let path = ColumnPath::new(column.column_type.path(column.name));
        // Readers search only for keys within a row group.
        if table.key().contains(&column.name) {
            builder = builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::Page);
        }
        let encoding = match column.layout {
            Layout::Dictionary => continue,
            Layout::Delta => Encoding::DELTA_BINARY_PACKED,
            Layout::Plain => Encoding::PLAIN,
        };
        builder =
            builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
    }
    builder.build()
}

// The arrays of a table are in the order of its columns; the schema checks their number and types.

fn game_arrays(rows: &[&GameRow]) -> Vec<ArrayRef> {
    let text = |of: fn(&GameRow) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| of(row))))
    };
    let number = |of: fn(&GameRow) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| of(row))))
    };
    let mut players = ListBuilder::new(StringBuilder::new()).with_field(ColumnType::TextList.element());
    let mut payoffs = ListBuilder::new(Int32Builder::new()).with_field(ColumnType::I32List.element());
    let mut settings = ListBuilder::new(StringBuilder::new()).with_field(ColumnType::TextList.element());
    let mut cpu = ListBuilder::new(UInt64Builder::new()).with_field(ColumnType::U64List.element());
    for row in rows {
        cpu.append_value(row.engine_cpu_us.iter().copied().map(Some));
        settings.append_value(row.settings.iter().map(Some));
        players.append_value(row.players.iter().map(Some));
        payoffs.append_value(row.payoffs.iter().copied().map(Some));
    }
    let started = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.started));
    vec![
        number(|row| row.bout),
        Arc::new(UInt16Array::from_iter_values(rows.iter().map(|row| row.game))),
        text(|row| &row.rules),
        text(|row| &row.variant),
        text(|row| &row.opening),
        Arc::new(players.finish()),
        Arc::new(payoffs.finish()),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.plies))),
        text(|row| &row.ending),
        number(|row| row.seed),
        text(|row| &row.worker),
        text(|row| &row.build),
        Arc::new(started.with_timezone("UTC")),
        number(|row| row.duration_us),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.speed_factor))),
        Arc::new(settings.finish()),
        text(|row| &row.detail),
        Arc::new(cpu.finish()),
    ]
}

fn move_arrays(rows: &[&MoveRow]) -> Vec<ArrayRef> {
    let plies: Plies = rows.iter().copied().collect();
    ply_arrays(&[Span::whole(&plies)])
}

fn probe_arrays(rows: &[&ProbeRow]) -> Vec<ArrayRef> {
    let decisions: Vec<&MoveRow> = rows.iter().map(|row| &row.decision).collect();
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.position))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.moves))),
    ];
    arrays.extend(move_arrays(&decisions));
    arrays
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::played;

    #[test]
    fn writing_in_groups_keeps_all_rows() {
        let bouts = played("connect-four", ["pvs", "uct"], "nodes=50", 6);
        let moves: Vec<MoveRow> = bouts.iter().flat_map(|bout| bout.moves.clone()).collect();
        let (first, second) = moves.split_at(moves.len() / 3);
        let bytes = write_moves_in_groups(|write| [first, second].into_iter().try_for_each(write)).unwrap();
        assert_eq!(crate::read_moves(bytes::Bytes::from(bytes)).unwrap(), moves);
        // A single group gives the same bytes as `write_moves`.
        let bytes = write_moves_in_groups(|write| write(&moves)).unwrap();
        assert_eq!(bytes, write_moves(&moves).unwrap());
    }

    /// Three pages and a bit, divided in several ways.
    #[test]
    fn bytes_do_not_depend_on_the_division_of_plies() {
        let bouts = played("connect-four", ["pvs", "uct"], "nodes=20", 6);
        let mut moves: Vec<MoveRow> = bouts.into_iter().flat_map(|bout| bout.moves).collect();
        while moves.len() < 3 * PAGE_ROWS + 100 {
            moves.extend_from_within(..);
        }
        for (number, row) in moves.iter_mut().enumerate() {
            row.bout = number as u64;
            row.seat = row.seat.filter(|_| number % 7 != 0);
        }
        let expected = write_moves(&moves).unwrap();
        for length in [1, 53, 8000, PAGE_ROWS, moves.len()] {
            let parts: Vec<Plies> = moves.chunks(length).map(|rows| rows.iter().collect()).collect();
            assert!(write_plies(&parts).unwrap() == expected, "divisions of {length} plies");
            let back: Vec<MoveRow> = parts.iter().flat_map(Plies::rows).collect();
            assert!(back == moves, "{length} plies as columns and as rows again");
        }
    }

    /// Compares bytes per move with the library's defaults, without and with compression.
    #[test]
    fn files_are_smaller_than_with_default_properties() {
        for (game, players, limit, bouts) in [
            ("othello", ["pvs", "uct"], "nodes=400", 40),
            ("chess", ["alpha-beta", "pvs"], "nodes=1000", 10),
            ("backgammon", ["star2", "expectiminimax"], "nodes=300", 10),
        ] {
            let bouts = played(game, players, limit, bouts);
            let moves: Vec<&MoveRow> = bouts.iter().flat_map(|bout| &bout.moves).collect();
            let size = |properties| {
                let bytes = write_moves_with(moves.iter().copied(), properties).unwrap().len();
                bytes as f64 / moves.len() as f64
            };
            let plain = WriterProperties::builder();
            let zstd = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).unwrap()));
            let (ours, plain, zstd) =
                (size(properties(Table::Moves)), size(plain.build()), size(zstd.build()));
            println!(
                "{game}: {} moves, bytes a move: {ours:.1}, defaults {plain:.1}, with zstd {zstd:.1}",
                moves.len()
            );
            assert!(ours < zstd && zstd < plain, "{game}: {ours} {zstd} {plain}");
        }
    }
}
