//! The state file: one SQLite database.
//!
//! [`Store`] is its only writer and belongs to the owner of the state. `Store::write` returns after the events are on disk
//! (`synchronous = FULL`), all of them or none. [`Reader`] reads beside it.

pub mod backup;
mod read;
mod rows;
mod schema;
mod write;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Params, Row, Transaction, TransactionBehavior};

use agon_storage::ownership::Identity;

use self::schema::VERSION;

use crate::durable::Event;
use crate::receipt::NewBout;

pub use self::read::Reader;
pub(crate) use self::rows::ReplicaDigest;
pub use self::rows::{Audit, StoredBout, StoredCell, StoredRun};

/// An error of the store.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk is full.
    #[error("the disk is full; nothing is lost, and the coordinator continues when there is space")]
    Full,
    /// Another process has locked the file.
    #[error(
        "another process writes to the state file, such as a backup tool or a shell; nothing is lost: wait for it, or end it"
    )]
    Locked,
    /// A newer build wrote the file.
    #[error("the state has version {found} and this build supports {VERSION}; use the build that wrote it")]
    Newer {
        /// The version found.
        found: i64,
    },
    /// An unreleased build wrote the file.
    #[error("the state has version {found}, which was never released; start in another folder")]
    Older {
        /// The version found.
        found: i64,
    },
    /// The file is damaged.
    #[error(
        "the state file is damaged ({0}); restore it from a backup, or start in another folder with --data"
    )]
    Damaged(String),
    /// A copy cannot be written.
    #[error("{} cannot be written: {reason}", .file.display())]
    CopyFailed {
        /// The copy.
        file: std::path::PathBuf,
        /// The reason.
        reason: String,
    },
    /// A write failed; the state in memory may differ from the file.
    #[error("the state cannot be written: {0}")]
    Failed(String),
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full,
            Some(ErrorCode::DatabaseBusy) => StoreError::Locked,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Damaged(error.to_string())
            }
            // A value of another type than its column was not written by agon.
            None if matches!(
                error,
                rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..)
            ) =>
            {
                StoreError::Damaged(error.to_string())
            }
            _ => StoreError::Failed(error.to_string()),
        }
    }
}

/// The writer of a state file.
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Whether writes fail as on a full disk.
    #[cfg(test)]
    pub(crate) is_full: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Store {
    /// Opens or creates the state.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        let found = schema::version(&connection)?;
        if found > VERSION {
            return Err(StoreError::Newer { found });
        }
        let check: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if check != "ok" {
            return Err(StoreError::Damaged(check));
        }
        schema::migrate(&mut connection, path)?;
        Ok(Store {
            connection,
            path: path.to_path_buf(),
            #[cfg(test)]
            is_full: std::sync::Arc::default(),
        })
    }

    /// Opens a reader of the same file.
    pub(crate) fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.path)
    }

    /// Writes events in one transaction. After an error, none of them is on disk.
    pub(crate) fn write<'a>(
        &mut self,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<(), StoreError> {
        let mut events = events.into_iter().peekable();
        if events.peek().is_none() {
            return Ok(());
        }
        #[cfg(test)]
        if self.is_full.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(StoreError::Full);
        }
        let transaction = begin(&self.connection)?;
        for event in events {
            write::write(&transaction, event)?;
        }
        Ok(transaction.commit()?)
    }

    /// Writes and removes a row, to find out whether the state can be written.
    pub(crate) fn probe(&mut self) -> Result<(), StoreError> {
        #[cfg(test)]
        if self.is_full.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(StoreError::Full);
        }
        let transaction = begin(&self.connection)?;
        let row = "INSERT INTO quarantine (worker, reason) VALUES ('', zeroblob(65536))";
        transaction.execute(row, [])?;
        transaction.execute("DELETE FROM quarantine WHERE worker = ''", [])?;
        Ok(transaction.commit()?)
    }

    /// Writes a run with played bouts that all have the same messages, for benchmarks.
    pub fn write_run(
        &mut self,
        run: &StoredRun,
        bouts: Vec<StoredBout>,
        payload: &[u8],
    ) -> Result<(), StoreError> {
        let transaction = begin(&self.connection)?;
        write::insert_run(&transaction, run)?;
        for mut bout in bouts.into_iter().filter_map(|bout| NewBout::restored(&run.id, bout)) {
            bout.payload = payload.to_vec();
            write::insert_bout(&transaction, &bout)?;
        }
        Ok(transaction.commit()?)
    }

    /// Lets all writes fail, or succeed again.
    #[cfg(test)]
    pub(crate) fn fail_writes(&self, fail: bool) {
        self.connection.pragma_update(None, "query_only", fail).unwrap();
    }

    /// Raises the epoch above `above` and returns it.
    pub fn next_epoch(&mut self, above: u64) -> Result<u64, StoreError> {
        self.connection.execute("UPDATE meta SET epoch = max(epoch, ?1) + 1", [number(above)])?;
        let epoch: i64 = self.connection.query_row("SELECT epoch FROM meta", [], |row| row.get(0))?;
        Ok(epoch as u64)
    }

    /// Returns the identity by which an object store recognises its owner.
    pub fn identity(&self) -> Result<Identity, StoreError> {
        let identity = self.connection.query_row(
            "SELECT id, epoch, (SELECT max(exported) > 0 FROM runs) FROM meta",
            [],
            |row| {
                Ok(Identity {
                    id: row.get(0)?,
                    epoch: row.get::<_, i64>(1)? as u64,
                    has_exported: row.get::<_, Option<bool>>(2)?.unwrap_or(false),
                })
            },
        );
        Ok(identity?)
    }
}

/// Returns an epoch above any of a lost state, so that its leases are distinguishable: the seconds since 1970, as no state
/// is opened once a second.
pub(crate) fn late_epoch() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Runs a cached query and collects its rows.
fn select<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, row)?.collect()
}

/// Converts a number for SQLite. Saturates, as no stored number is that large.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Begins a transaction. Waits for the busy timeout while another process writes, such as a backup tool: a deferred
/// transaction would fail at its first write.
fn begin(connection: &Connection) -> Result<Transaction<'_>, rusqlite::Error> {
    Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
}

#[cfg(test)]
mod tests {
    use agon_schedule::RunState;

    use super::*;
    use crate::audit::{AuditKind, Entry};
    use crate::leases::BoutKey;
    use crate::standings::RunTotals;
    use crate::verification::replication::Opinion;

    fn bout(number: u64, digest: u8) -> NewBout {
        let mut bout = NewBout::of_test("r", number, "w", [digest; 32]);
        bout.payload = vec![1, 2, 3];
        bout
    }

    fn commit(bout: NewBout) -> Event {
        Event::BoutCommitted(Box::new(bout))
    }

    fn run() -> StoredRun {
        StoredRun { id: "r".to_string(), files: "{}".to_string(), ..StoredRun::default() }
    }

    fn open() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("state")).unwrap();
        store.write_run(&run(), Vec::new(), &[]).unwrap();
        (folder, store)
    }

    fn numbers(reader: &Reader) -> Vec<u64> {
        reader.bouts("r").unwrap().into_iter().map(|bout| bout.bout).collect()
    }

    #[test]
    fn latest_audit_entries_are_oldest_first() {
        let (_folder, mut store) = open();
        for (worker, text) in [("a", "one"), ("b", "two"), ("a", "three")] {
            store.write([&Event::Audited(Entry::new(AuditKind::Drained, text).worker(worker))]).unwrap();
        }
        let reader = store.reader().unwrap();
        let texts = |worker, limit| -> Vec<String> {
            reader.audits(worker, None, limit).unwrap().into_iter().map(|entry| entry.text).collect()
        };
        assert_eq!(texts(None, 2), ["two", "three"]);
        assert_eq!(texts(Some("a"), 9), ["one", "three"]);
    }

    #[test]
    fn exported_bouts_are_replaced_by_totals() {
        let (folder, mut store) = open();
        assert_eq!(store.next_epoch(0), Ok(1));
        store.write([&commit(bout(1, 2)), &commit(bout(3, 1))]).unwrap();
        let reader = store.reader().unwrap();
        assert_eq!(reader.payload("r", 3), Ok(vec![1, 2, 3]));
        let run_id = || "r".to_string();
        store.write([&Event::PartAssigned { run: run_id(), first: 0, last: 2 }]).unwrap();
        assert_eq!(reader.open_part("r"), Ok(Some((0, 2))));
        let cell = |won| StoredCell { worker: "w".to_string(), pairing: 0, outcomes: [won, 0, 1] };
        for (won, bouts) in [(1, 7), (2, 8)] {
            let mut totals = RunTotals::default();
            totals.bouts = bouts;
            let part = Event::PartWritten { run: run_id(), exported: 3, totals, cells: vec![cell(won)] };
            store.write([&part]).unwrap();
        }
        store
            .write([&Event::RunStateChanged { run: run_id(), to: RunState::Cancelled, decided: None }])
            .unwrap();
        drop(store);
        let mut again = Store::open(&folder.path().join("state")).unwrap();
        assert_eq!(again.next_epoch(0), Ok(2));
        assert_eq!((numbers(&reader), reader.open_part("r")), (vec![3], Ok(None)));
        let run = reader.runs().unwrap().remove(0);
        assert_eq!((run.exported, run.state), (3, RunState::Cancelled));
        assert_eq!(crate::durable::stored_totals(&run).unwrap().bouts, 8);
        let sum = StoredCell { worker: "w".to_string(), pairing: 0, outcomes: [3, 0, 2] };
        assert_eq!(reader.cells("r"), Ok(vec![sum]));
    }

    #[test]
    fn replica_digests_follow_their_bouts() {
        let (_folder, mut store) = open();
        let key = |bout| BoutKey { run: "r".to_string(), bout };
        for number in [4, 2, 7] {
            let mut replicated = bout(number, 1);
            replicated.needs_replica = true;
            store.write([&commit(replicated)]).unwrap();
        }
        let opinion = Opinion { worker: "v".to_string(), credential: "c".to_string(), digest: [2; 32] };
        let replica = ReplicaDigest { key: key(4), opinion };
        let void = Event::Voided {
            run: "r".to_string(),
            worker: String::new(),
            replayed: vec![7],
            voided: Vec::new(),
            totals: RunTotals::default(),
        };
        store
            .write([
                &commit(bout(5, 1)),
                &Event::ReplicaReceived { replica, disputed: true },
                &Event::ReplicationClosed { key: key(2), confirmed: None },
                &void,
            ])
            .unwrap();
        let digests = store.reader().unwrap().replica_digests().unwrap();
        let row = |ReplicaDigest { key, opinion }| {
            (key.bout, format!("{}@{}", opinion.worker, opinion.credential), opinion.digest[0])
        };
        let digests: Vec<_> = digests.into_iter().map(row).collect();
        assert_eq!(digests, [(4, "w@".to_string(), 1), (4, "v@c".to_string(), 2)]);
    }

    #[test]
    fn failed_write_leaves_nothing() {
        let (_folder, mut store) = open();
        let reader = store.reader().unwrap();
        // The second copy violates the key.
        let failed = store.write([&commit(bout(0, 1)), &commit(bout(0, 2))]);
        assert!(matches!(failed, Err(StoreError::Failed(_))));
        assert_eq!(numbers(&reader), Vec::<u64>::new());
        store.write([&commit(bout(0, 1))]).unwrap();
        assert_eq!(numbers(&reader), [0]);
    }

    /// SQLite rolls back the whole transaction when the disk is full.
    #[test]
    fn full_disk_leaves_nothing() {
        let (_folder, mut store) = open();
        let pages: i64 = store.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        let limit = format!("PRAGMA max_page_count = {}", pages + 20);
        store.connection.query_row(&limit, [], |row| row.get::<_, i64>(0)).unwrap();
        let mut large = bout(1, 1);
        large.payload = vec![1; 1 << 20];
        let full = store.write([&commit(bout(0, 1)), &commit(large), &commit(bout(2, 1))]);
        assert_eq!(full, Err(StoreError::Full));
        assert_eq!(numbers(&store.reader().unwrap()), Vec::<u64>::new());
        store.write([&commit(bout(0, 1))]).unwrap();
    }

    #[test]
    fn waits_for_another_writer() {
        let (folder, mut store) = open();
        let other = Connection::open(folder.path().join("state")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let (done, written) = std::sync::mpsc::channel();
        let writer = std::thread::spawn(move || {
            done.send(store.write([&commit(bout(0, 1))])).unwrap();
        });
        // A deferred transaction fails at once.
        assert!(written.recv_timeout(Duration::from_millis(200)).is_err());
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(written.recv().unwrap(), Ok(()));
        writer.join().unwrap();
    }

    #[test]
    fn rejects_files_that_are_not_a_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        std::fs::write(&path, "this is not a database, only a text that is long enough to look like one")
            .unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Damaged(_))));
        std::fs::remove_file(&path).unwrap();
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Newer { found: 99 })));
    }
}
