//! Copies of the state, made while it is written to, and what such a copy says of itself.
//!
//! SQLite copies what one moment saw, in a reading transaction of its own: the writer goes on meanwhile and is not asked.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{StoreError, schema};

/// What a state holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// The version of its tables.
    pub version: i64,
    /// Its id; empty before version 3.
    pub id: String,
    /// How often it has been opened to be worked with.
    pub epoch: u64,
    /// Runs.
    pub runs: u64,
    /// Bouts that are not yet exported.
    pub bouts: u64,
}

/// Writes a copy to a file that must not be there.
pub(super) fn copy(connection: &Connection, to: &Path) -> Result<(), StoreError> {
    let name =
        to.to_str().ok_or_else(|| StoreError::Failed("the name of the copy is not UTF-8".to_string()))?;
    connection.execute("VACUUM INTO ?1", [name])?;
    let synced = std::fs::File::open(to).and_then(|file| file.sync_all());
    synced.map_err(|error| StoreError::Failed(error.to_string()))
}

/// Copies the state at `from` to a file that must not be there, whoever is writing to it.
pub fn copy_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    copy(&look(from)?, to)
}

/// Looks into a state without changing it.
pub(super) fn look(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// Whether a file is a sound state of a version that is known, and what it holds.
pub fn inspect(path: &Path) -> Result<Contents, StoreError> {
    let connection = look(path)?;
    let version = schema::version(&connection)?;
    if version > schema::VERSION {
        return Err(StoreError::Newer { found: version });
    }
    let check: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if check != "ok" {
        return Err(StoreError::Damaged(check));
    }
    if version == 0 {
        return Err(StoreError::Damaged("it is empty".to_string()));
    }
    let count = |what: &str| {
        connection
            .query_row(&format!("SELECT {what}"), [], |row| row.get::<_, i64>(0))
            .map(|count| count as u64)
    };
    let id = match version {
        2 => String::new(),
        _ => connection.query_row("SELECT id FROM meta", [], |row| row.get(0))?,
    };
    Ok(Contents {
        version,
        id,
        epoch: count("epoch FROM meta")?,
        runs: count("count(*) FROM runs")?,
        bouts: count("count(*) FROM bouts")?,
    })
}

/// Raises the epoch of a copy that nobody works with, unless it is higher.
pub(crate) fn raise_epoch(path: &Path, to: u64) -> Result<(), StoreError> {
    let connection = Connection::open(path)?;
    connection.execute("UPDATE meta SET epoch = max(epoch, ?1)", [super::number(to)])?;
    Ok(())
}
