//! The tables of the state and the migration from earlier versions.
//!
//! A new state is migrated from the first version like an old one. A step only changes tables, and all steps run in one
//! transaction. A state with contents is copied first; the copy stays beside it.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{StoreError, backup};

/// The first released version.
const FIRST: i64 = 2;
/// The steps to each version.
const STEPS: [&str; 7] = [TABLES, IDENTITY, REPLICA_DIGESTS, HISTORY, GRANTS, SECRET, CREDENTIALS];
/// The current version.
pub(super) const VERSION: i64 = FIRST + STEPS.len() as i64 - 1;

/// Migrates a state to the current version.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(connection)?;
    let done = match found {
        0 => 0,
        // Earlier versions were never released.
        found if found < FIRST => return Err(StoreError::Older { found }),
        found if found > VERSION => return Err(StoreError::Newer { found }),
        found => (found - FIRST + 1) as usize,
    };
    if done == STEPS.len() {
        return Ok(());
    }
    if done > 0 {
        backup::copy(connection, &copy_beside(path, found))?;
    }
    let transaction = super::begin(connection)?;
    for step in &STEPS[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    if done > 0 {
        tracing::info!(from = found, to = VERSION, "state migrated");
    }
    Ok(())
}

/// Returns the version of a state; 0 if it is empty.
pub(super) fn version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// Returns the versions that can be migrated.
pub(super) fn earlier_versions() -> impl Iterator<Item = i64> {
    FIRST..VERSION
}

/// Returns the path of the copy made before a migration.
pub(super) fn copy_beside(path: &Path, version: i64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.version-{version}"))
}

const TABLES: &str = "
CREATE TABLE meta (epoch INTEGER NOT NULL);
INSERT INTO meta VALUES (0);
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    files TEXT NOT NULL,
    state TEXT NOT NULL,
    submitted_us INTEGER NOT NULL,
    signature TEXT NOT NULL,
    decided INTEGER,
    priority INTEGER NOT NULL,
    exported INTEGER NOT NULL,
    folded TEXT NOT NULL
);
CREATE TABLE bouts (
    run TEXT NOT NULL,
    bout INTEGER NOT NULL,
    worker TEXT NOT NULL,
    digest BLOB,
    summary TEXT NOT NULL,
    payload BLOB NOT NULL,
    failure TEXT,
    UNIQUE (run, bout)
);
CREATE TABLE parts (
    run TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    UNIQUE (run)
);
CREATE TABLE cells (
    run TEXT NOT NULL,
    worker TEXT NOT NULL,
    pairing INTEGER NOT NULL,
    won INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    drawn INTEGER NOT NULL,
    UNIQUE (run, worker, pairing)
);
CREATE TABLE voids (
    run TEXT NOT NULL,
    bout INTEGER NOT NULL,
    UNIQUE (run, bout)
);
CREATE TABLE quarantine (
    worker TEXT NOT NULL UNIQUE,
    reason TEXT NOT NULL
);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    worker TEXT NOT NULL,
    run TEXT NOT NULL,
    bout INTEGER,
    text TEXT NOT NULL
);
";

/// A random id, by which an object store recognises its owner.
const IDENTITY: &str = "
ALTER TABLE meta ADD COLUMN id TEXT NOT NULL DEFAULT '';
UPDATE meta SET id = lower(hex(randomblob(16)));
";

/// Content digests of bouts being replicated, in the order in which they were added.
const REPLICA_DIGESTS: &str = "
CREATE TABLE opinions (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    bout INTEGER NOT NULL,
    worker TEXT NOT NULL,
    digest BLOB NOT NULL
);
CREATE INDEX opinions_of_bouts ON opinions (run, bout);
";

/// Facts for the manifest that do not follow from the bouts.
const HISTORY: &str = "
ALTER TABLE runs ADD COLUMN build TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN abandoned INTEGER NOT NULL DEFAULT 0;
";

/// All bouts of a run below `granted` may have been granted, to the workers in `holders`.
const GRANTS: &str = "
ALTER TABLE runs ADD COLUMN granted INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET granted = max(exported, coalesce((SELECT max(bout) + 1 FROM bouts WHERE run = id), 0));
CREATE TABLE holders (worker TEXT NOT NULL UNIQUE);
";

/// A secret, which proves that a lease was granted.
const SECRET: &str = "
ALTER TABLE meta ADD COLUMN secret BLOB NOT NULL DEFAULT x'';
UPDATE meta SET secret = randomblob(32);
";

/// Credentials of workers with their confirmed bouts and names, and convicted workers whose bouts are to be voided.
const CREDENTIALS: &str = "
ALTER TABLE opinions ADD COLUMN credential TEXT NOT NULL DEFAULT '';
CREATE TABLE credentials (credential TEXT NOT NULL UNIQUE, confirmed INTEGER NOT NULL);
CREATE TABLE workers (worker TEXT NOT NULL, credential TEXT NOT NULL, UNIQUE (credential, worker));
CREATE TABLE convictions (worker TEXT NOT NULL, credential TEXT NOT NULL, UNIQUE (worker, credential));
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tables and columns of a state.
    fn tables(connection: &Connection) -> Vec<(String, String)> {
        let mut statement = connection
            .prepare("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'")
            .unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let mut rows: Vec<(String, String)> = rows.collect::<rusqlite::Result<_>>().unwrap();
        rows.sort_unstable();
        rows
    }

    /// Creates a state of an earlier version with contents.
    fn earlier(path: &Path, steps: usize) {
        let connection = Connection::open(path).unwrap();
        for step in &STEPS[..steps] {
            connection.execute_batch(step).unwrap();
        }
        connection
            .execute_batch(
                "UPDATE meta SET epoch = 7;
                 INSERT INTO runs (number, id, text, files, state, submitted_us, signature, decided, priority, exported,
                                   folded)
                 VALUES (1, 'r-00000000', 'text', '{}', 'paused', 5, 's', NULL, 2, 3, '');
                 INSERT INTO bouts VALUES ('r-00000000', 3, 'w', NULL, '{}', x'0102', NULL);
                 INSERT INTO quarantine VALUES ('faulty', 'wrong results');",
            )
            .unwrap();
        connection.pragma_update(None, "user_version", FIRST + steps as i64 - 1).unwrap();
    }

    #[test]
    fn migrates_every_earlier_version() {
        let folder = tempfile::tempdir().unwrap();
        let mut fresh = Connection::open_in_memory().unwrap();
        migrate(&mut fresh, Path::new("fresh")).unwrap();
        assert_eq!(version(&fresh), Ok(VERSION));
        for steps in 1..STEPS.len() {
            let path = folder.path().join(format!("state-{steps}"));
            earlier(&path, steps);
            std::fs::write(copy_beside(&path, FIRST + steps as i64 - 1), "half a copy").unwrap();
            let mut connection = Connection::open(&path).unwrap();
            migrate(&mut connection, &path).unwrap();
            assert_eq!(version(&connection), Ok(VERSION));
            assert_eq!(tables(&connection), tables(&fresh));
            let kept: (i64, String, i64, i64) = connection
                .query_row(
                    "SELECT epoch, runs.state, bouts.bout, length(payload) FROM meta, runs, bouts, quarantine",
                    [],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
                )
                .unwrap();
            assert_eq!(kept, (7, "paused".to_string(), 3, 2));
            let id: String = connection.query_row("SELECT id FROM meta", [], |row| row.get(0)).unwrap();
            assert_eq!(id.len(), 32);
            // The copy replaced the broken one, and a second migration changes nothing.
            let copy = Connection::open(copy_beside(&path, FIRST + steps as i64 - 1)).unwrap();
            assert_eq!(version(&copy), Ok(FIRST + steps as i64 - 1));
            migrate(&mut connection, &path).unwrap();
            let again: String = connection.query_row("SELECT id FROM meta", [], |row| row.get(0)).unwrap();
            assert_eq!(again, id);
        }
    }

    #[test]
    fn failed_migration_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        earlier(&path, 1);
        let mut connection = Connection::open(&path).unwrap();
        connection.execute_batch("ALTER TABLE meta ADD COLUMN id TEXT").unwrap();
        let before = tables(&connection);
        assert!(matches!(migrate(&mut connection, &path), Err(StoreError::Failed(_))));
        assert_eq!((version(&connection), tables(&connection)), (Ok(FIRST), before));
    }

    #[test]
    fn migration_waits_for_another_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        earlier(&path, 1);
        let mut connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE; UPDATE meta SET epoch = 8").unwrap();
        let (done, migrated) = std::sync::mpsc::channel();
        let migration = std::thread::spawn(move || done.send(migrate(&mut connection, &path)).unwrap());
        assert!(migrated.recv_timeout(std::time::Duration::from_millis(500)).is_err());
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(migrated.recv().unwrap(), Ok(()));
        migration.join().unwrap();
    }

    #[test]
    fn rejects_unknown_versions() {
        for found in [1, VERSION + 1, 99] {
            let mut connection = Connection::open_in_memory().unwrap();
            connection.pragma_update(None, "user_version", found).unwrap();
            let error = migrate(&mut connection, Path::new("state")).unwrap_err();
            let expected =
                if found < FIRST { StoreError::Older { found } } else { StoreError::Newer { found } };
            assert_eq!(error, expected);
        }
    }
}
