//! The bytes of a part: rows, or an error. Rows that were read can be written, and are then the same.

#![no_main]

use agon_records::{attempt, read_games, read_moves, read_probes, write_games, write_moves, write_probes};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&table, part)) = data.split_first() else { return };
    let part = Bytes::copy_from_slice(part);
    match table % 3 {
        0 => {
            if let Ok(rows) = attempt(|| read_games(part))
                && let Ok(written) = write_games(&rows)
            {
                assert_eq!(write_games(&read_games(written.clone().into()).expect("our own part")), Ok(written));
            }
        }
        1 => {
            if let Ok(rows) = attempt(|| read_moves(part))
                && let Ok(written) = write_moves(&rows)
            {
                assert_eq!(write_moves(&read_moves(written.clone().into()).expect("our own part")), Ok(written));
            }
        }
        _ => {
            if let Ok(rows) = attempt(|| read_probes(part))
                && let Ok(written) = write_probes(&rows)
            {
                assert_eq!(write_probes(&read_probes(written.clone().into()).expect("our own part")), Ok(written));
            }
        }
    }
});
