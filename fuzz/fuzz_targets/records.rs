//! Parquet files: rows or an error. Rows round-trip.
//!
//! The checksum rejects almost all mutated bytes, so these only test the code in front of it. The code behind it is tested
//! with generated files of arbitrary columns, types, values and nulls.

#![no_main]

use std::sync::Arc;

use agon_fuzz::Bytes as Plan;
use agon_records::schema::{ColumnType, TABLE_KEY, VERSION_KEY};
use agon_records::{Groups, ReadError, SCHEMA_VERSION, Table, WriteError, catch_panics, sealed};
use agon_records::{read_games, read_moves, read_probes, write_games, write_moves, write_probes};
use arrow::array::{
    ArrayBuilder, ArrayRef, Float64Array, Int32Builder, ListBuilder, RecordBatch, StringArray, StringBuilder,
    TimestampMicrosecondArray, UInt16Array, UInt32Array, UInt64Array, UInt64Builder,
};
use arrow::datatypes::{Field, Schema};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    let table = Table::ALL[usize::from(kind % 3)];
    let part =
        if kind < 128 { Some(Bytes::copy_from_slice(rest)) } else { part_of(table, &mut Plan::new(rest)) };
    let Some(part) = part else { return };
    match table {
        Table::Games => check(&part, read_games, |rows| write_games(rows)),
        Table::Moves => check(&part, read_moves, |rows| write_moves(rows)),
        Table::Probes => check(&part, read_probes, |rows| write_probes(rows)),
    }
    let columns: Vec<&str> = table.columns().map(|column| column.name).collect();
    if let Ok(groups) = Groups::open(&part, table, &columns) {
        for group in 0..groups.count() {
            let rows = catch_panics(|| {
                groups.read(&part, group)?.map(|batch| batch.map(|batch| batch.rows())).sum()
            });
            let _: Result<usize, _> = rows;
        }
    }
});

fn check<Row>(
    part: &Bytes,
    read: fn(Bytes) -> Result<Vec<Row>, ReadError>,
    write: fn(&[Row]) -> Result<Vec<u8>, WriteError>,
) {
    let rows = match read(part.clone()) {
        Ok(rows) => rows,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let Ok(written) = write(&rows) else { return };
    let again = read(written.clone().into()).expect("a written file is valid");
    assert!(write(&again).is_ok_and(|again| again == written), "written rows do not round-trip");
}

/// Creates a file whose columns, types and values follow the plan; columns may be missing or have a wrong type.
fn part_of(table: Table, plan: &mut Plan<'_>) -> Option<Bytes> {
    let rows = usize::from(plan.byte() % 4);
    let mut columns: Vec<(Field, ArrayRef)> = Vec::new();
    for column in table.columns() {
        let choice = plan.byte();
        let array = match choice {
            0..8 => continue,
            8..24 => array(KINDS[usize::from(choice - 8) % KINDS.len()], rows, plan),
            _ => array(column.column_type, rows, plan),
        };
        columns.push((Field::new(column.name, array.data_type().clone(), true), array));
    }
    if plan.byte() % 2 == 0 {
        columns.reverse();
    }
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).ok()?;
    let metadata = [(VERSION_KEY, SCHEMA_VERSION.to_string()), (TABLE_KEY, table.name().to_string())];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_string(), value)).to_vec();
    let properties = WriterProperties::builder().set_key_value_metadata(Some(metadata)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).ok()?;
    writer.write(&batch).ok()?;
    Some(sealed(writer.into_inner().ok()?).expect("a Parquet file").into())
}

const KINDS: &[ColumnType] = &[
    ColumnType::Text,
    ColumnType::U16,
    ColumnType::U32,
    ColumnType::U64,
    ColumnType::F64,
    ColumnType::Timestamp,
    ColumnType::TextList,
    ColumnType::I32List,
    ColumnType::U64List,
];

/// Creates a column of a type.
fn array(kind: ColumnType, rows: usize, plan: &mut Plan<'_>) -> ArrayRef {
    match kind {
        ColumnType::Text => Arc::new(StringArray::from_iter(values(rows, plan, |plan| plan.text()))),
        ColumnType::U16 => Arc::new(UInt16Array::from_iter(values(rows, plan, |plan| plan.number() as u16))),
        ColumnType::U32 => Arc::new(UInt32Array::from_iter(values(rows, plan, |plan| plan.number() as u32))),
        ColumnType::U64 => Arc::new(UInt64Array::from_iter(values(rows, plan, |plan| plan.number()))),
        ColumnType::F64 => {
            Arc::new(Float64Array::from_iter(values(rows, plan, |plan| f64::from_bits(plan.number()))))
        }
        ColumnType::Timestamp => {
            let moments = values(rows, plan, |plan| plan.number() as i64);
            Arc::new(TimestampMicrosecondArray::from_iter(moments).with_timezone("UTC"))
        }
        ColumnType::TextList => lists(StringBuilder::new(), rows, plan, |texts, plan| {
            texts.append_option(plan.maybe(Plan::text));
        }),
        ColumnType::I32List => lists(Int32Builder::new(), rows, plan, |numbers, plan| {
            numbers.append_option(plan.maybe(|plan| plan.number() as i32));
        }),
        ColumnType::U64List => lists(UInt64Builder::new(), rows, plan, |numbers, plan| {
            numbers.append_option(plan.maybe(Plan::number));
        }),
    }
}

fn values<T>(rows: usize, plan: &mut Plan<'_>, value: fn(&mut Plan<'_>) -> T) -> Vec<Option<T>> {
    (0..rows).map(|_| plan.maybe(value)).collect()
}

fn lists<B: ArrayBuilder>(
    elements: B,
    rows: usize,
    plan: &mut Plan<'_>,
    append: fn(&mut B, &mut Plan<'_>),
) -> ArrayRef {
    let mut lists = ListBuilder::new(elements);
    for _ in 0..rows {
        for _ in 0..plan.byte() % 4 {
            append(lists.values(), plan);
        }
        lists.append(plan.byte() % 8 != 0);
    }
    Arc::new(lists.finish())
}
