//! The seal of a part: digests of its pages and of its footer, stored between the two, where Parquet readers ignore it.
//!
//! Parquet's own checksums are optional and do not cover the footer: a flipped bit would change a number, and readers loop
//! or panic on a damaged footer. Therefore a footer is compared with the seal before it is parsed, and pages before they
//! are decoded, except where only some columns are read. A seal detects damage, not forgery.

use parquet::file::reader::ChunkReader;

use crate::read::ReadError;

/// The start of a seal.
const MARK: &[u8; 16] = b"agon part seal 1";
/// The length of a seal: the mark, the digest of the pages and the digest of everything after the seal.
const LENGTH: usize = MARK.len() + 2 * blake3::OUT_LEN;
/// The end of a Parquet file: the length of the footer and Parquet's own mark.
const TAIL: usize = 8;

/// The seal of a part whose footer matches.
pub(crate) struct Seal {
    /// The number of bytes before the seal.
    length: usize,
    /// The digest of these bytes.
    pages: blake3::Hash,
}

/// Adds a seal to a Parquet file. Returns none if the bytes are not one.
pub fn sealed(mut file: Vec<u8>) -> Option<Vec<u8>> {
    let (_, tail) = file.split_last_chunk::<TAIL>()?;
    let start = file.len().checked_sub(footer_length(tail)? + TAIL)?;
    let (pages, footer) = file.split_at(start);
    let seal = [&MARK[..], blake3::hash(pages).as_bytes(), blake3::hash(footer).as_bytes()].concat();
    file.splice(start..start, seal);
    Some(file)
}

/// Reads the seal of a part and compares the footer with it.
pub(crate) fn check_footer(source: &impl ChunkReader) -> Result<Seal, ReadError> {
    let length = usize::try_from(source.len()).map_err(|_| ReadError::NoSeal)?;
    let bytes_from_end = |count: usize| -> Result<_, ReadError> {
        let start = length.checked_sub(count).ok_or(ReadError::NoSeal)?;
        Ok(source.get_bytes(start as u64, count)?)
    };
    let tail = bytes_from_end(TAIL)?;
    let tail = tail.as_ref().try_into().map_err(|_| ReadError::NoSeal)?;
    let footer = footer_length(tail).ok_or(ReadError::NoSeal)? + TAIL;
    let end = bytes_from_end(footer + LENGTH)?;
    let (seal, footer) = end.split_at(LENGTH);
    let (pages, expected) = seal.strip_prefix(MARK).ok_or(ReadError::NoSeal)?.split_at(blake3::OUT_LEN);
    if blake3::hash(footer).as_bytes() != expected {
        return Err(ReadError::DamagedFooter);
    }
    let pages = blake3::Hash::from_slice(pages).expect("half of two digests is one digest");
    Ok(Seal { length: length - end.len(), pages })
}

impl Seal {
    /// Compares the pages with the seal.
    pub(crate) fn check_pages(&self, source: &impl ChunkReader) -> Result<(), ReadError> {
        let pages = source.get_bytes(0, self.length)?;
        (blake3::hash(&pages) == self.pages).then_some(()).ok_or(ReadError::DamagedPages)
    }
}

/// Returns the length of the footer, from the end of a Parquet file.
fn footer_length(tail: &[u8; TAIL]) -> Option<usize> {
    let (length, mark) = tail.split_first_chunk::<4>()?;
    (mark == b"PAR1").then_some(u32::from_le_bytes(*length) as usize)
}
