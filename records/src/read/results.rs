//! The results of games, read in batches without copying texts.

use arrow::array::{Int32Array, ListArray, RecordBatch, StringArray, UInt16Array, UInt64Array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::file::reader::ChunkReader;

use super::{ReadError, TypedLists, open, required, select};
use crate::schema::Table;

/// The columns of a result.
const COLUMNS: [&str; 4] = ["bout", "game", "players", "payoffs"];

/// The rows of a batch.
const BATCH_ROWS: usize = 8192;

/// Reads the results of a part of `games`, in the order of bout and game. Compares the part with its seal first.
pub fn stream_results(source: impl ChunkReader + 'static) -> Result<Results, ReadError> {
    let (part, seal) = open(&source, Table::Games)?;
    seal.check_pages(&source)?;
    Ok(Results(select(source, part, &COLUMNS)?.with_batch_size(BATCH_ROWS).build()?))
}

/// The batches of [`stream_results`].
pub struct Results(ParquetRecordBatchReader);

impl Iterator for Results {
    type Item = Result<ResultBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(ReadError::from).and_then(|batch| ResultBatch::new(&batch)))
    }
}

/// A batch of results.
pub struct ResultBatch {
    bouts: UInt64Array,
    games: UInt16Array,
    players: ListArray,
    names: StringArray,
    payoffs: ListArray,
    numbers: Int32Array,
}

impl ResultBatch {
    fn new(batch: &RecordBatch) -> Result<ResultBatch, ReadError> {
        let players = required::<ListArray>(batch, "players", "a list")?;
        let payoffs = required::<ListArray>(batch, "payoffs", "a list")?;
        Ok(ResultBatch {
            bouts: required::<UInt64Array>(batch, "bout", "u64")?.clone(),
            games: required::<UInt16Array>(batch, "game", "u16")?.clone(),
            names: TypedLists::<StringArray>::new(players, "players", "string")?.elements.clone(),
            players: players.clone(),
            numbers: TypedLists::<Int32Array>::new(payoffs, "payoffs", "i32")?.elements.clone(),
            payoffs: payoffs.clone(),
        })
    }

    /// Returns the number of games.
    pub fn len(&self) -> usize {
        self.bouts.len()
    }

    /// Returns whether there are no games.
    pub fn is_empty(&self) -> bool {
        self.bouts.is_empty()
    }

    /// Returns the bout and the number of a game.
    pub fn key(&self, row: usize) -> (u64, u16) {
        (self.bouts.value(row), self.games.value(row))
    }

    /// Returns the names of a game's players by seat.
    pub fn players(&self, row: usize) -> impl Iterator<Item = &str> {
        let offsets = self.players.value_offsets();
        (offsets[row] as usize..offsets[row + 1] as usize).map(|element| self.names.value(element))
    }

    /// Returns the payoffs of a game by seat.
    pub fn payoffs(&self, row: usize) -> &[i32] {
        let offsets = self.payoffs.value_offsets();
        &self.numbers.values()[offsets[row] as usize..offsets[row + 1] as usize]
    }
}
