//! The bytes of a part: rows, or an error. Rows that were read can be written, and are then the same.

#![no_main]

use agon_records::{ReadError, WriteError, attempt};
use agon_records::{read_games, read_moves, read_probes, write_games, write_moves, write_probes};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&table, part)) = data.split_first() else { return };
    let part = Bytes::copy_from_slice(part);
    match table % 3 {
        0 => check(part, read_games, |rows| write_games(rows)),
        1 => check(part, read_moves, |rows| write_moves(rows)),
        _ => check(part, read_probes, |rows| write_probes(rows)),
    }
});

fn check<Row>(
    part: Bytes,
    read: fn(Bytes) -> Result<Vec<Row>, ReadError>,
    write: fn(&[Row]) -> Result<Vec<u8>, WriteError>,
) {
    let Ok(rows) = attempt(|| read(part)) else { return };
    let Ok(written) = write(&rows) else { return };
    let again = read(written.clone().into()).expect("our own part");
    assert!(write(&again).is_ok_and(|again| again == written), "what was written reads back otherwise");
}
