//! The seal of a part: digests of its pages and of its directory, between the two, where readers of Parquet do not look.
//!
//! Parquet's own checksums are optional, seldom checked, and never of the directory: one flipped bit would be another
//! number, and readers loop or panic over a directory that leads them astray. So nothing of a part is parsed before its
//! directory has been compared with the seal, and no row is believed before its pages have been, except where some columns
//! are read and most pages are not. A seal finds damage; it keeps nobody from writing a part of their own and sealing it.

use parquet::file::reader::ChunkReader;

use crate::read::ReadError;

/// What a seal begins with.
const MARK: &[u8; 16] = b"agon part seal 1";
/// The mark, the digest of the pages, and that of all that is behind the seal.
const LENGTH: usize = MARK.len() + 2 * blake3::OUT_LEN;
/// The length of the directory and Parquet's own mark, with which a file ends.
const TAIL: usize = 8;

/// The seal of a part whose directory is the one that was written.
pub(crate) struct Seal {
    /// How many bytes are before the seal.
    length: usize,
    /// Their digest.
    pages: blake3::Hash,
}

/// Seals a Parquet file. `None` where it is none.
pub fn sealed(mut file: Vec<u8>) -> Option<Vec<u8>> {
    let (_, tail) = file.split_last_chunk::<TAIL>()?;
    let place = file.len().checked_sub(directory_length(tail)? + TAIL)?;
    let (pages, directory) = file.split_at(place);
    let seal = [&MARK[..], blake3::hash(pages).as_bytes(), blake3::hash(directory).as_bytes()].concat();
    file.splice(place..place, seal);
    Some(file)
}

/// Reads the seal of a part, and compares its directory with it.
pub(crate) fn check_directory(source: &impl ChunkReader) -> Result<Seal, ReadError> {
    let length = usize::try_from(source.len()).map_err(|_| ReadError::NoSeal)?;
    let bytes_from_end = |count: usize| -> Result<_, ReadError> {
        let start = length.checked_sub(count).ok_or(ReadError::NoSeal)?;
        Ok(source.get_bytes(start as u64, count)?)
    };
    let tail = bytes_from_end(TAIL)?;
    let tail = tail.as_ref().try_into().map_err(|_| ReadError::NoSeal)?;
    let directory = directory_length(tail).ok_or(ReadError::NoSeal)? + TAIL;
    let end = bytes_from_end(directory + LENGTH)?;
    let (seal, directory) = end.split_at(LENGTH);
    let (pages, behind) = seal.strip_prefix(MARK).ok_or(ReadError::NoSeal)?.split_at(blake3::OUT_LEN);
    if blake3::hash(directory).as_bytes() != behind {
        return Err(ReadError::DamagedDirectory);
    }
    let pages = blake3::Hash::from_slice(pages).expect("a half of two digests is one");
    Ok(Seal { length: length - end.len(), pages })
}

impl Seal {
    /// Compares the pages with the seal.
    pub(crate) fn check_pages(&self, source: &impl ChunkReader) -> Result<(), ReadError> {
        let pages = source.get_bytes(0, self.length)?;
        (blake3::hash(&pages) == self.pages).then_some(()).ok_or(ReadError::DamagedPages)
    }
}

/// The length of the directory, by the end of a Parquet file.
fn directory_length(tail: &[u8; TAIL]) -> Option<usize> {
    let (length, mark) = tail.split_first_chunk::<4>()?;
    (mark == b"PAR1").then_some(u32::from_le_bytes(*length) as usize)
}
