//! Slices of some columns of a part, one row group at a time, for scans over very many rows.
//!
//! A scan loads only the pages of the selected columns of one row group, so that threads can read groups in parallel. Texts
//! are read as dictionaries, so that grouping by them compares no texts. The pages are not compared with the seal, which
//! would need all of them; [`crate::read`] does that.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray as _, BooleanArray, DictionaryArray, ListArray, RecordBatch, StringArray,
    UInt16Array, UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use bytes::{Buf as _, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::read::{ReadError, column, open, present, required, typed};
use crate::schema::Table;

/// The rows of a batch: a batch of a dozen columns stays in the processor's cache.
const BATCH_ROWS: usize = 8_192;

/// A part opened for reading some columns by row group.
pub struct Groups {
    part: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// The selected counters that the part was written without.
    absent: Vec<&'static str>,
}

impl Groups {
    /// Opens some columns of a part. A counter that was added after the part was written is 0 in each search; the column
    /// `player` must be selected beside it.
    pub fn open(source: &impl ChunkReader, table: Table, columns: &[&str]) -> Result<Groups, ReadError> {
        let (part, _) = open(source, table)?;
        let selected: Vec<_> = table.columns().filter(|column| columns.contains(&column.name)).collect();
        let present = present(&part, selected.iter().copied())?;
        let names = selected.iter().map(|column| column.name);
        let absent = names.filter(|name| !present.contains(name)).collect();
        // Texts are read as dictionaries.
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let encoded = |field: &Arc<Field>| match field.data_type() {
            DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(dictionary.clone())),
            _ => Arc::clone(field),
        };
        let fields: Vec<Arc<Field>> = part.schema().fields().iter().map(encoded).collect();
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
        let part = ArrowReaderMetadata::try_new(Arc::clone(part.metadata()), options)?;
        let mask = ProjectionMask::columns(part.parquet_schema(), present);
        Ok(Groups { part, mask, absent })
    }

    /// Returns the number of row groups.
    pub fn count(&self) -> usize {
        self.part.metadata().num_row_groups()
    }

    /// Reads a row group from the source that was opened.
    pub fn read(&self, source: &impl ChunkReader, group: usize) -> Result<Batches, ReadError> {
        let length = source.len();
        let mut pieces = Vec::new();
        for (index, chunk) in self.part.metadata().row_group(group).columns().iter().enumerate() {
            if self.mask.leaf_included(index) {
                let (start, size) = chunk.byte_range();
                // Checked before memory is reserved.
                if start.checked_add(size).is_none_or(|end| end > length) {
                    return Err(ReadError::DamagedFooter);
                }
                pieces.push((start, source.get_bytes(start, size as usize)?));
            }
        }
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(Pages { length, pieces }, self.part.clone())
                .with_projection(self.mask.clone())
                .with_row_groups(vec![group])
                .with_batch_size(BATCH_ROWS);
        Ok(Batches { reader: builder.build()?, absent: self.absent.clone() })
    }
}

/// The pages of some columns of one row group, with their positions in the file.
struct Pages {
    length: u64,
    pieces: Vec<(u64, Bytes)>,
}

impl Pages {
    /// Returns the rest of a piece from a position on.
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let within = |(first, bytes): &&(u64, Bytes)| {
            start.checked_sub(*first).is_some_and(|offset| offset <= bytes.len() as u64)
        };
        // A position at the end of one piece and the start of the next belongs to the next.
        let piece = self.pieces.iter().filter(within).max_by_key(|(first, _)| *first);
        let (first, bytes) =
            piece.ok_or_else(|| ParquetError::EOF(format!("no page of the columns is at byte {start}")))?;
        Ok(bytes.slice((start - first) as usize..))
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Pages {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!(
                "the page at byte {start} ends before its {length} bytes"
            )));
        }
        Ok(bytes.slice(..length))
    }
}

/// The batches of a row group.
pub struct Batches {
    reader: ParquetRecordBatchReader,
    absent: Vec<&'static str>,
}

impl Iterator for Batches {
    type Item = Result<Batch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?.map_err(ReadError::from);
        Some(batch.and_then(|batch| with_zeros(batch, &self.absent)).map(Batch))
    }
}

/// Adds counters that are 0 in each search.
fn with_zeros(batch: RecordBatch, counters: &[&str]) -> Result<RecordBatch, ReadError> {
    if counters.is_empty() {
        return Ok(batch);
    }
    let players = batch.column_by_name("player").and_then(|players| players.nulls().cloned());
    let zeros: ArrayRef = Arc::new(UInt64Array::new(vec![0; batch.num_rows()].into(), players));
    let (schema, mut arrays, _) = batch.into_parts();
    let mut fields = schema.fields().to_vec();
    for &name in counters {
        fields.push(Arc::new(Field::new(name, DataType::UInt64, true)));
        arrays.push(Arc::clone(&zeros));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// Some columns of consecutive rows.
pub struct Batch(RecordBatch);

/// A text column as a key for each row into a dictionary.
pub struct DictionaryColumn<'a> {
    keys: &'a [i32],
    nulls: Option<&'a NullBuffer>,
    values: &'a StringArray,
}

/// A list column.
pub struct ListSlices<'a> {
    offsets: &'a [i32],
    elements: &'a [u64],
}

impl Batch {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.0.num_rows()
    }

    /// Removes the rows of some bouts. Needs the column `bout`.
    pub fn without(self, bouts: &BTreeSet<u64>) -> Result<Batch, ReadError> {
        let column = self.numbers("bout")?;
        if !column.iter().any(|bout| bouts.contains(bout)) {
            return Ok(self);
        }
        let kept: BooleanArray = column.iter().map(|bout| Some(!bouts.contains(bout))).collect();
        Ok(Batch(filter_record_batch(&self.0, &kept)?))
    }

    /// Returns a `u64` column without nulls.
    pub fn numbers(&self, name: &str) -> Result<&[u64], ReadError> {
        Ok(required::<UInt64Array>(&self.0, name, "u64")?.values())
    }

    /// Returns a `u16` column without nulls.
    pub fn smalls(&self, name: &str) -> Result<&[u16], ReadError> {
        Ok(required::<UInt16Array>(&self.0, name, "u16")?.values())
    }

    /// Returns a text column.
    pub fn names(&self, name: &str) -> Result<DictionaryColumn<'_>, ReadError> {
        let array = column::<DictionaryArray<Int32Type>>(&self.0, name, "string")?;
        let values = array.values().as_string_opt::<i32>();
        let values = values.ok_or_else(|| ReadError::WrongType {
            column: name.to_string(),
            found: array.data_type().to_string(),
            expected: "string",
        })?;
        Ok(DictionaryColumn { keys: array.keys().values(), nulls: array.nulls(), values })
    }

    /// Returns a `u64` column of searches. Its values in rows without a search are undefined.
    pub fn searched_numbers(&self, name: &str, players: &DictionaryColumn<'_>) -> Result<&[u64], ReadError> {
        Ok(self.searched::<UInt64Array>(name, "u64", players)?.values())
    }

    /// Returns a `u16` column of searches. Its values in rows without a search are undefined.
    pub fn searched_smalls(&self, name: &str, players: &DictionaryColumn<'_>) -> Result<&[u16], ReadError> {
        Ok(self.searched::<UInt16Array>(name, "u16", players)?.values())
    }

    /// Returns a list column of searches. Its values in rows without a search are undefined.
    pub fn searched_lists(
        &self,
        name: &str,
        players: &DictionaryColumn<'_>,
    ) -> Result<ListSlices<'_>, ReadError> {
        let lists = self.searched::<ListArray>(name, "a list", players)?;
        let elements = typed::<UInt64Array>(lists.values(), name, "u64")?;
        if elements.null_count() > 0 {
            return Err(ReadError::Null { column: name.to_string(), null: true });
        }
        Ok(ListSlices { offsets: lists.value_offsets(), elements: elements.values() })
    }

    /// Returns a column that is null exactly where the player is.
    fn searched<A: Array + 'static>(
        &self,
        name: &str,
        expected: &'static str,
        players: &DictionaryColumn<'_>,
    ) -> Result<&A, ReadError> {
        let array = column::<A>(&self.0, name, expected)?;
        let null = |row| array.is_null(row);
        match (array.nulls(), players.nulls) {
            (None, None) => Ok(array),
            (Some(own), Some(theirs)) if own == theirs => Ok(array),
            _ => match (0..array.len()).find(|&row| null(row) != players.key(row).is_none()) {
                Some(row) => Err(ReadError::Null { column: name.to_string(), null: null(row) }),
                None => Ok(array),
            },
        }
    }
}

impl<'a> DictionaryColumn<'a> {
    /// Returns the texts of the dictionary by key; some may not occur.
    pub fn values(&self) -> impl Iterator<Item = &'a str> {
        let values = self.values;
        (0..values.len()).map(move |key| if values.is_null(key) { "" } else { values.value(key) })
    }

    /// Returns the text of a row; empty where it is null.
    pub fn text(&self, row: usize) -> &'a str {
        self.key(row).map_or("", |key| self.values.value(key))
    }

    /// Returns the key of a row; none where it is null.
    pub fn key(&self, row: usize) -> Option<usize> {
        self.nulls.is_none_or(|nulls| nulls.is_valid(row)).then(|| self.keys[row] as usize)
    }

    /// Visits every row that is not null, with its key.
    pub fn each(&self, mut visit: impl FnMut(usize, usize)) {
        match self.nulls {
            None => self.keys.iter().enumerate().for_each(|(row, &key)| visit(row, key as usize)),
            Some(nulls) => nulls.valid_indices().for_each(|row| visit(row, self.keys[row] as usize)),
        }
    }
}

impl<'a> ListSlices<'a> {
    /// Returns the elements of a row.
    pub fn of(&self, row: usize) -> &'a [u64] {
        &self.elements[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_a_part_lacks_is_zero_in_each_search() {
        let part = Bytes::from_static(include_bytes!("../tests/earlier-moves.parquet"));
        let groups =
            Groups { absent: vec!["added"], ..Groups::open(&part, Table::Moves, &["player"]).unwrap() };
        let batch = groups.read(&part, 0).unwrap().next().unwrap().unwrap();
        let players = batch.names("player").unwrap();
        assert!((0..batch.rows()).any(|row| players.key(row).is_none()), "some plies have no search");
        assert_eq!(batch.searched_numbers("added", &players).unwrap(), vec![0; batch.rows()]);
    }
}
