//! Copies of a coordinator's state, which is an SQLite database and may be in use, and inspection of such copies.
//!
//! SQLite copies a snapshot in a read transaction, so that the writer is not blocked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::{StoreError, schema};

/// What a state file contains, as reported before a restore.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// The version of the schema.
    pub version: i64,
    /// The id of the state; empty before version 3.
    pub id: String,
    /// The epoch: the number of times a coordinator has opened the state.
    pub epoch: u64,
    /// The number of runs.
    pub runs: u64,
    /// The number of bouts not yet exported.
    pub bouts: u64,
}

/// Writes a copy atomically, replacing an existing file.
pub(super) fn copy(connection: &Connection, to: &Path) -> Result<(), StoreError> {
    let copy_failed = |reason: String| StoreError::CopyFailed { file: to.to_path_buf(), reason };
    let mut partial = to.to_path_buf().into_os_string();
    partial.push(".partial");
    let partial = TemporaryState(partial.into());
    // Remove what an interrupted attempt may have left.
    partial.remove();
    let name = partial.0.to_str().ok_or_else(|| copy_failed("the path is not UTF-8".to_string()))?;
    connection.execute("VACUUM INTO ?1", [name]).map_err(|error| match StoreError::from(error) {
        StoreError::Failed(reason) => copy_failed(reason),
        error => error,
    })?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(&partial.0)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&partial.0, to))
        .and_then(|()| File::open(folder)?.sync_all())
        .map_err(|error| copy_failed(error.to_string()))
}

/// Copies a state that may be in use.
pub fn copy_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    copy(&open_read_only(from)?, to)
}

/// A state file that is removed on drop, with SQLite's `-wal` and `-shm` files and the copies made before migrations.
#[derive(Debug)]
pub struct TemporaryState(pub PathBuf);

impl TemporaryState {
    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = self.0.clone().into_os_string();
            name.push(suffix);
            // Best effort: most of these files do not exist.
            let _ = fs::remove_file(name);
        }
        for version in schema::earlier_versions() {
            let _ = fs::remove_file(schema::copy_beside(&self.0, version));
        }
    }
}

impl Drop for TemporaryState {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Opens a state read-only.
pub(super) fn open_read_only(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// Checks that a file is an intact state of a supported version, and returns its contents.
pub fn inspect(path: &Path) -> Result<Contents, StoreError> {
    let connection = open_read_only(path)?;
    let version = schema::version(&connection)?;
    if version > schema::VERSION {
        return Err(StoreError::Newer { found: version });
    }
    if version != 0 && !schema::earlier_versions().chain([schema::VERSION]).any(|known| known == version) {
        return Err(StoreError::Older { found: version });
    }
    let check: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if check != "ok" {
        return Err(StoreError::Damaged(check));
    }
    if version == 0 {
        return Err(StoreError::Damaged("it is empty, or not a state file of agon".to_string()));
    }
    let number = |expression: &str| {
        connection
            .query_row(&format!("SELECT {expression}"), [], |row| row.get::<_, i64>(0))
            .map(|number| number as u64)
    };
    let id = match version {
        2 => String::new(),
        _ => connection.query_row("SELECT id FROM meta", [], |row| row.get(0))?,
    };
    Ok(Contents {
        version,
        id,
        epoch: number("epoch FROM meta")?,
        runs: number("count(*) FROM runs")?,
        bouts: number("count(*) FROM bouts")?,
    })
}

/// Sets the epoch of a copy that is not in use.
pub(crate) fn set_epoch(path: &Path, epoch: u64) -> Result<(), StoreError> {
    let connection = Connection::open(path)?;
    connection.execute("UPDATE meta SET epoch = ?1", [super::number(epoch)])?;
    Ok(())
}
