//! The names of the files of a dataset.

use agon_records::Table;

/// The folder of the manifests.
pub const MANIFESTS: &str = "runs";

/// The tables that are written last: a part of one of them implies that all rows of its bouts are present.
pub const LAST_TABLES: [Table; 2] = [Table::Games, Table::Probes];

/// Returns the name of the manifest of a run.
pub fn manifest_name(run: &str) -> String {
    format!("{MANIFESTS}/{run}.json")
}

/// Returns the run of a manifest with this file name.
pub fn manifest_run(file_name: &str) -> Option<&str> {
    file_name.strip_suffix(".json")
}

/// Returns the folder of the parts of a run in a table.
pub fn part_folder(table: Table, run: &str) -> String {
    format!("{}/run={run}", table.name())
}

/// Returns the name of a part.
pub fn part_name(table: Table, run: &str, first: u64, last: u64) -> String {
    format!("{}/part-{first:010}-{last:010}.parquet", part_folder(table, run))
}

/// Returns the first and the last bout in the file name of a part.
pub fn part_bouts(file_name: &str) -> Option<(u64, u64)> {
    let (first, last) = file_name.strip_prefix("part-")?.strip_suffix(".parquet")?.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < u64::MAX).then_some((first, last))
}

/// Returns the run in the name of a part, and its first and last bout.
pub fn named_part(table: Table, name: &str) -> Option<(&str, (u64, u64))> {
    let (folder, file_name) = name.rsplit_once('/')?;
    let run = folder.strip_prefix(table.name())?.strip_prefix("/run=")?;
    Some((run, part_bouts(file_name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_names_read_back() {
        let name = part_name(Table::Games, "a-1", 4, 12_345_678_901);
        assert_eq!(name, "games/run=a-1/part-0000000004-12345678901.parquet");
        assert_eq!(part_bouts(name.rsplit('/').next().unwrap()), Some((4, 12_345_678_901)));
        assert_eq!(named_part(Table::Games, &name), Some(("a-1", (4, 12_345_678_901))));
        assert_eq!(named_part(Table::Moves, &name), None);
        for wrong in ["part-2-1.parquet", "part-1.parquet", "part-1-2.partial", "1-2.parquet"] {
            assert_eq!(part_bouts(wrong), None, "{wrong}");
        }
    }
}
