//! Some columns of a part, a row group at a time and as slices: for questions over very many rows.
//!
//! A row group is what one thread reads: only the pages of the columns that are asked for, and only those of one group
//! are in memory. Names are read as numbers into a short list, so that grouping by them compares no texts.
//! Deliberately not here: rows as values, which [`crate::read`] makes, and the comparison of the pages with their seal,
//! which would need all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, AsArray as _, BooleanArray, DictionaryArray, ListArray, RecordBatch, StringArray, UInt16Array,
    UInt64Array,
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

use crate::read::{ReadError, column, open, required, typed};
use crate::schema::Table;

/// Rows of a batch: few enough that a batch of a dozen columns stays in the processor's cache.
const BATCH_ROWS: usize = 8_192;

/// A part opened for some of its columns, row group after row group.
pub struct Groups {
    part: ArrowReaderMetadata,
    mask: ProjectionMask,
}

impl Groups {
    /// Opens a part of a table for some of its columns.
    pub fn open(source: &impl ChunkReader, table: Table, columns: &[&str]) -> Result<Groups, ReadError> {
        let (part, _) = open(source, table)?;
        for &column in columns {
            if part.schema().field_with_name(column).is_err() {
                return Err(ReadError::MissingColumn { column: column.to_string() });
            }
        }
        // Texts are asked for as numbers into the list of those that occur.
        let names = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let numbered = |field: &Arc<Field>| match field.data_type() {
            DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(names.clone())),
            _ => Arc::clone(field),
        };
        let fields: Vec<Arc<Field>> = part.schema().fields().iter().map(numbered).collect();
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
        let part = ArrowReaderMetadata::try_new(Arc::clone(part.metadata()), options)?;
        let mask = ProjectionMask::columns(part.parquet_schema(), columns.iter().copied());
        Ok(Groups { part, mask })
    }

    /// How many row groups it has.
    pub fn count(&self) -> usize {
        self.part.metadata().num_row_groups()
    }

    /// The rows of a row group. `source` is the one that was opened.
    pub fn read(&self, source: &impl ChunkReader, group: usize) -> Result<Batches, ReadError> {
        let length = source.len();
        let mut pieces = Vec::new();
        for (index, chunk) in self.part.metadata().row_group(group).columns().iter().enumerate() {
            if self.mask.leaf_included(index) {
                let (start, size) = chunk.byte_range();
                // Nothing is made room for that the file cannot have.
                if start.checked_add(size).is_none_or(|end| end > length) {
                    return Err(ReadError::DamagedDirectory);
                }
                pieces.push((start, source.get_bytes(start, size as usize)?));
            }
        }
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(Pages { length, pieces }, self.part.clone())
                .with_projection(self.mask.clone())
                .with_row_groups(vec![group])
                .with_batch_size(BATCH_ROWS);
        Ok(Batches(builder.build()?))
    }
}

/// The pages of some columns of one row group, where they stand in their file.
struct Pages {
    length: u64,
    pieces: Vec<(u64, Bytes)>,
}

impl Pages {
    /// What is left of a piece from a place on.
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let within = |(first, bytes): &&(u64, Bytes)| {
            start.checked_sub(*first).is_some_and(|offset| offset <= bytes.len() as u64)
        };
        // Where one piece ends and the next begins, the place is the next one's.
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

/// The rows of a row group, batch after batch.
pub struct Batches(ParquetRecordBatchReader);

impl Iterator for Batches {
    type Item = Result<Batch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map(Batch).map_err(ReadError::from))
    }
}

/// Some columns of some rows.
pub struct Batch(RecordBatch);

/// Texts of a column: for each row a number into the list of those that occur.
pub struct Names<'a> {
    keys: &'a [i32],
    nulls: Option<&'a NullBuffer>,
    values: &'a StringArray,
}

/// Lists of a column.
pub struct Lists<'a> {
    offsets: &'a [i32],
    elements: &'a [u64],
}

impl Batch {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.0.num_rows()
    }

    /// The rows of all other bouts. Needs the column `bout`.
    pub fn without(self, bouts: &BTreeSet<u64>) -> Result<Batch, ReadError> {
        let column = self.numbers("bout")?;
        if !column.iter().any(|bout| bouts.contains(bout)) {
            return Ok(self);
        }
        let kept: BooleanArray = column.iter().map(|bout| Some(!bouts.contains(bout))).collect();
        Ok(Batch(filter_record_batch(&self.0, &kept)?))
    }

    /// A column of large numbers that every row has.
    pub fn numbers(&self, name: &str) -> Result<&[u64], ReadError> {
        Ok(required::<UInt64Array>(&self.0, name, "u64")?.values())
    }

    /// A column of small numbers that every row has.
    pub fn smalls(&self, name: &str) -> Result<&[u16], ReadError> {
        Ok(required::<UInt16Array>(&self.0, name, "u16")?.values())
    }

    /// A column of texts.
    pub fn names(&self, name: &str) -> Result<Names<'_>, ReadError> {
        let array = column::<DictionaryArray<Int32Type>>(&self.0, name, "string")?;
        let values = array.values().as_string_opt::<i32>();
        let values = values.ok_or_else(|| ReadError::WrongType {
            column: name.to_string(),
            found: array.data_type().to_string(),
            expected: "string",
        })?;
        Ok(Names { keys: array.keys().values(), nulls: array.nulls(), values })
    }

    /// A column of large numbers that the rows with a search have; in the others stands anything.
    pub fn searched_numbers(&self, name: &str, players: &Names<'_>) -> Result<&[u64], ReadError> {
        Ok(self.searched::<UInt64Array>(name, "u64", players)?.values())
    }

    /// A column of small numbers that the rows with a search have; in the others stands anything.
    pub fn searched_smalls(&self, name: &str, players: &Names<'_>) -> Result<&[u16], ReadError> {
        Ok(self.searched::<UInt16Array>(name, "u16", players)?.values())
    }

    /// A column of lists that the rows with a search have; in the others stands anything.
    pub fn searched_lists(&self, name: &str, players: &Names<'_>) -> Result<Lists<'_>, ReadError> {
        let lists = self.searched::<ListArray>(name, "a list", players)?;
        let elements = typed::<UInt64Array>(lists.values(), name, "u64")?;
        if elements.null_count() > 0 {
            return Err(ReadError::Null { column: name.to_string(), null: true });
        }
        Ok(Lists { offsets: lists.value_offsets(), elements: elements.values() })
    }

    /// A column that is null exactly where the player is.
    fn searched<A: Array + 'static>(
        &self,
        name: &str,
        expected: &'static str,
        players: &Names<'_>,
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

impl<'a> Names<'a> {
    /// The texts that occur, and perhaps others, by their numbers.
    pub fn values(&self) -> impl Iterator<Item = &'a str> {
        let values = self.values;
        (0..values.len()).map(move |key| if values.is_null(key) { "" } else { values.value(key) })
    }

    /// The text in a row; empty where it is null.
    pub fn text(&self, row: usize) -> &'a str {
        self.key(row).map_or("", |key| self.values.value(key))
    }

    /// The number of the text in a row; none where it is null.
    pub fn key(&self, row: usize) -> Option<usize> {
        self.nulls.is_none_or(|nulls| nulls.is_valid(row)).then(|| self.keys[row] as usize)
    }

    /// Every row that has a text, with its number.
    pub fn each(&self, mut visit: impl FnMut(usize, usize)) {
        match self.nulls {
            None => self.keys.iter().enumerate().for_each(|(row, &key)| visit(row, key as usize)),
            Some(nulls) => nulls.valid_indices().for_each(|row| visit(row, self.keys[row] as usize)),
        }
    }
}

impl<'a> Lists<'a> {
    /// The elements of a row.
    pub fn of(&self, row: usize) -> &'a [u64] {
        &self.elements[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}
