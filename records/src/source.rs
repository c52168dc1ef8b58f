//! The source of the bytes of a part: memory, or an open file that is read on demand.

use std::fs::File;
use std::io::Read;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// The bytes of a part.
#[derive(Debug)]
pub enum Source {
    /// An open file.
    File(File),
    /// Bytes in memory.
    Bytes(Bytes),
}

impl Length for Source {
    fn len(&self) -> u64 {
        match self {
            Source::File(file) => Length::len(file),
            Source::Bytes(bytes) => Length::len(bytes),
        }
    }
}

impl ChunkReader for Source {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Box<dyn Read>, ParquetError> {
        Ok(match self {
            Source::File(file) => Box::new(file.get_read(start)?),
            Source::Bytes(bytes) => Box::new(bytes.get_read(start)?),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        match self {
            Source::File(file) => file.get_bytes(start, length),
            Source::Bytes(bytes) => bytes.get_bytes(start, length),
        }
    }
}
