//! Rows of moves as JSON objects with the names of the columns.

use agon_records::MoveRow;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::commands::search::proven;

/// A row of `moves` with the proof of its score. Without a search, all columns from `player` on are null.
pub(super) struct MoveColumns<'a>(pub(super) &'a MoveRow);

impl Serialize for MoveColumns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, cell) in self.0.cells() {
            map.serialize_entry(name, &cell)?;
            if name == "score" {
                let search = self.0.search.as_ref();
                map.serialize_entry("proven", &search.and_then(|search| proven(search.value())))?;
            }
        }
        map.end()
    }
}
