//! The durable state: one SQLite file, written by one thread.
//!
//! A write returns after its transaction is on disk (`synchronous = FULL`), or with an error. Writes that arrive while a
//! transaction is being synced share the next one, so that one sync serves many bouts.

mod audit;
pub mod backup;
mod bouts;
mod rows;
mod runs;
mod schema;

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Params, Row, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use agon_storage::ownership::Identity;

use self::schema::VERSION;

pub use self::rows::{Audit, BoutSummary, NewBout, PutOutcome, ReplicaDigest, StoredCell, StoredRun};

/// The maximum number of writes in one transaction.
const MAX_WRITES_PER_TRANSACTION: usize = 512;

/// An error of the store.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk is full.
    #[error("the disk is full; nothing is lost, and the coordinator continues when there is space")]
    Full,
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

type Completion = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
/// Work in a transaction. Returns its result, and a callback for the result of the transaction.
type Job = Box<dyn FnOnce(&Connection) -> (Result<(), StoreError>, Completion) + Send>;

/// A handle of the single writer of the state.
#[derive(Clone)]
pub struct Store {
    jobs: mpsc::Sender<Job>,
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
        let (jobs, inbox) = mpsc::channel();
        std::thread::Builder::new()
            .name("store".to_string())
            .spawn(move || write_groups(&connection, &inbox))
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Store { jobs })
    }

    /// Runs work in a transaction and waits until it is durable.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = oneshot::channel();
        // The caller may have been dropped.
        self.enqueue(work, move |result| drop(sender.send(result)))?;
        receiver.await.map_err(|_| StoreError::Closed)?
    }

    /// Runs work in a transaction without waiting; logs a failure.
    fn post(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static) {
        // A closed store needs no more writes.
        let _ = self.enqueue(work, |result| {
            if let Err(error) = result {
                tracing::warn!(%error, "background write failed");
            }
        });
    }

    /// Queues work, and what to do when its transaction is durable or lost.
    fn enqueue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
        done: impl FnOnce(Result<T, StoreError>) + Send + 'static,
    ) -> Result<(), StoreError> {
        let job: Job = Box::new(move |connection| {
            let result = work(connection).map_err(StoreError::from);
            let outcome = result.as_ref().map(|_| ()).map_err(Clone::clone);
            (outcome, Box::new(move |committed: Result<(), StoreError>| done(committed.and(result))))
        });
        self.jobs.send(job).map_err(|_| StoreError::Closed)
    }

    /// Waits until all earlier writes are durable.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.write(|_| Ok(())).await
    }

    /// Raises the epoch above `above` and returns it.
    pub async fn next_epoch(&self, above: u64) -> Result<u64, StoreError> {
        let epoch = self.write(move |connection| {
            connection.execute("UPDATE meta SET epoch = max(epoch, ?1) + 1", [number(above)])?;
            connection.query_row("SELECT epoch FROM meta", [], |row| row.get::<_, i64>(0))
        });
        epoch.await.map(|epoch| epoch as u64)
    }

    /// Returns the identity by which an object store recognises its owner.
    pub async fn identity(&self) -> Result<Identity, StoreError> {
        self.write(|connection| {
            connection.query_row(
                "SELECT id, epoch, (SELECT max(exported) > 0 FROM runs) FROM meta",
                [],
                |row| {
                    Ok(Identity {
                        id: row.get(0)?,
                        epoch: row.get::<_, i64>(1)? as u64,
                        has_exported: row.get::<_, Option<bool>>(2)?.unwrap_or(false),
                    })
                },
            )
        })
        .await
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

/// Begins a transaction. Waits while another process writes, such as a backup tool.
fn begin(connection: &Connection) -> Result<Transaction<'_>, rusqlite::Error> {
    loop {
        // A deferred transaction would fail at its first write, without the busy timeout.
        match Transaction::new_unchecked(connection, TransactionBehavior::Immediate) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                tracing::warn!("state locked by another process; waiting");
            }
            begun => return begun,
        }
    }
}

/// Runs jobs in groups, each in one transaction, until the store is closed.
fn write_groups(connection: &Connection, inbox: &mpsc::Receiver<Job>) {
    while let Ok(first) = inbox.recv() {
        let mut completions = Vec::new();
        let committed = (|| -> Result<(), StoreError> {
            let mut transaction = begin(connection)?;
            let mut job = Some(first);
            while let Some(work) = job.take() {
                // A failed job is rolled back alone.
                let savepoint = transaction.savepoint()?;
                let (outcome, completion) = work(&savepoint);
                completions.push(completion);
                match outcome {
                    Ok(()) => savepoint.commit()?,
                    // SQLite itself rolls back the whole transaction after some errors, such as a full disk.
                    Err(error) if savepoint.is_autocommit() => return Err(error),
                    Err(_) => drop(savepoint),
                }
                if completions.len() < MAX_WRITES_PER_TRANSACTION {
                    job = inbox.try_recv().ok();
                }
            }
            Ok(transaction.commit()?)
        })();
        for completion in completions {
            completion(committed.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;
    use crate::leases::BoutKey;
    use agon_schedule::RunState;

    fn bout(number: u64, digest: u8) -> NewBout {
        NewBout {
            run: "r".to_string(),
            bout: number,
            worker: "w".to_string(),
            digest: Some([digest; 32]),
            summary: "{}".to_string(),
            payload: vec![1, 2, 3],
            failure: None,
            needs_replica: false,
        }
    }

    fn run() -> StoredRun {
        StoredRun {
            id: "r".to_string(),
            text: String::new(),
            files: "{}".to_string(),
            state: RunState::Running,
            submitted_us: 0,
            ..StoredRun::default()
        }
    }

    #[tokio::test]
    async fn stores_a_bout_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = Store::open(&path).unwrap();
        assert_eq!(store.next_epoch(0).await, Ok(1));
        assert_eq!(store.put_bout(bout(3, 1)).await, Ok(PutOutcome::RunClosed));
        store.add_run(run()).await.unwrap();
        assert_eq!(store.put_bout(bout(3, 1)).await, Ok(PutOutcome::New));
        assert_eq!(store.put_bout(bout(3, 1)).await, Ok(PutOutcome::Duplicate));
        assert_eq!(store.put_bout(bout(3, 2)).await, Ok(PutOutcome::Conflict));
        assert_eq!(store.put_bout(bout(1, 2)).await, Ok(PutOutcome::New));
        assert_eq!(store.payload("r".to_string(), 3).await, Ok(vec![1, 2, 3]));
        let cancel = || store.move_state("r".to_string(), &[RunState::Running], RunState::Cancelled, None);
        assert_eq!(cancel().await, Ok(Some(RunState::Running)));
        assert_eq!(cancel().await, Ok(Some(RunState::Cancelled)), "unchanged");
        assert_eq!(store.put_bout(bout(2, 2)).await, Ok(PutOutcome::RunClosed));
        store.assign_part("r".to_string(), 0, 2).await.unwrap();
        assert_eq!(store.open_part("r".to_string()).await, Ok(Some((0, 2))));
        let cell = |won| StoredCell { worker: "w".to_string(), pairing: 0, outcomes: [won, 0, 1] };
        store.part_written("r".to_string(), 3, "{1}".to_string(), vec![cell(1)]).await.unwrap();
        store.part_written("r".to_string(), 3, "{2}".to_string(), vec![cell(2)]).await.unwrap();
        drop(store);
        let again = Store::open(&path).unwrap();
        assert_eq!(again.next_epoch(0).await, Ok(2));
        let kept = again.summaries("r".to_string(), 0, u64::MAX).await.unwrap();
        assert_eq!(kept.iter().map(|bout| bout.bout).collect::<Vec<_>>(), [3], "exported bouts are removed");
        assert_eq!(again.open_part("r".to_string()).await, Ok(None));
        let run = again.runs().await.unwrap().remove(0);
        assert_eq!((run.exported, run.totals.as_str(), run.state), (3, "{2}", RunState::Cancelled));
        assert_eq!(again.put_bout(bout(1, 2)).await, Ok(PutOutcome::Exported));
        let sum = StoredCell { worker: "w".to_string(), pairing: 0, outcomes: [3, 0, 2] };
        assert_eq!(again.cells("r".to_string()).await, Ok(vec![sum]));
    }

    /// A bout and its first replica digest are stored atomically.
    #[tokio::test]
    async fn replica_digests_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = Store::open(&path).unwrap();
        store.add_run(run()).await.unwrap();
        let replicated = |number| NewBout { needs_replica: true, ..bout(number, 1) };
        for number in [4, 2, 7] {
            assert_eq!(store.put_bout(replicated(number)).await, Ok(PutOutcome::New));
        }
        // A duplicate is not replicated again.
        assert_eq!(store.put_bout(replicated(4)).await, Ok(PutOutcome::Duplicate));
        assert_eq!(store.put_bout(bout(5, 1)).await, Ok(PutOutcome::New));
        let key = |bout| BoutKey { run: "r".to_string(), bout };
        store.add_replica_digest(ReplicaDigest { key: key(4), worker: "v".to_string(), digest: [2; 32] });
        store.remove_replica_digests(&key(2));
        store.void("r".to_string(), String::new(), vec![7], Vec::new(), String::new()).await.unwrap();
        drop(store);
        let again = Store::open(&path).unwrap();
        let digests = again.replica_digests().await.unwrap();
        let digests: Vec<_> =
            digests.iter().map(|row| (row.key.bout, row.worker.as_str(), row.digest[0])).collect();
        assert_eq!(digests, [(4, "w", 1), (4, "v", 2)]);
    }

    #[tokio::test]
    async fn lists_audit_entries_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state")).unwrap();
        for (worker, text) in [("a", "one"), ("b", "two"), ("a", "three")] {
            let entry = Audit { worker: worker.to_string(), text: text.to_string(), ..Audit::default() };
            store.audit(entry);
        }
        let texts = |entries: Vec<Audit>| entries.into_iter().map(|entry| entry.text).collect::<Vec<_>>();
        assert_eq!(texts(store.audits(None, None, 2).await.unwrap()), ["two", "three"]);
        assert_eq!(texts(store.audits(Some("a".to_string()), None, 9).await.unwrap()), ["one", "three"]);
        store.set_quarantine("a", Some("wrong results"));
        assert_eq!(store.quarantined().await, Ok(vec![("a".to_string(), "wrong results".to_string())]));
        store.set_quarantine("a", None);
        assert_eq!(store.quarantined().await, Ok(vec![]));
    }

    #[tokio::test]
    async fn rolls_back_only_the_failed_write() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state")).unwrap();
        store.add_run(run()).await.unwrap();
        let bad = store.write(|connection| {
            connection.execute("INSERT INTO parts VALUES ('r', 0, 0)", [])?;
            connection.execute("INSERT INTO nowhere VALUES (1)", [])
        });
        let good = store.put_bout(bout(0, 1));
        let (bad, good) = tokio::join!(bad, good);
        assert!(matches!(bad, Err(StoreError::Failed(_))));
        assert_eq!(good, Ok(PutOutcome::New));
        assert_eq!(
            store.open_part("r".to_string()).await,
            Ok(None),
            "the failed write is rolled back completely"
        );
    }

    /// SQLite rolls back the whole transaction when the disk is full; later writes of the group must not commit alone.
    #[tokio::test]
    async fn full_disk_fails_the_whole_group() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state")).unwrap();
        store.add_run(run()).await.unwrap();
        let pages = store.write(|connection| {
            let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            connection
                .query_row(&format!("PRAGMA max_page_count = {}", pages + 20), [], |row| row.get::<_, i64>(0))
        });
        pages.await.unwrap();
        // The first write holds the group open until all have been queued.
        let (go, wait) = mpsc::channel();
        let first = store.write(move |_| {
            let _: Result<(), _> = wait.recv();
            Ok(())
        });
        let large = NewBout { payload: vec![1; 1 << 20], ..bout(1, 1) };
        let bouts = [bout(0, 1), large, bout(2, 1)];
        let mut writes = bouts.map(|bout| Box::pin(store.put_bout(bout)));
        let mut first = Box::pin(first);
        let mut context = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut context).is_pending());
        for write in &mut writes {
            assert!(write.as_mut().poll(&mut context).is_pending());
        }
        go.send(()).unwrap();
        let mut results = vec![];
        for write in writes {
            results.push(write.await);
        }
        let stored = store.summaries("r".to_string(), 0, u64::MAX).await.unwrap();
        let stored: Vec<u64> = stored.iter().map(|row| row.bout).collect();
        let acknowledged: Vec<u64> =
            (0..).zip(&results).filter(|(_, result)| result.is_ok()).map(|(bout, _)| bout).collect();
        assert_eq!(stored, acknowledged, "{results:?}");
        assert_eq!(results[1], Err(StoreError::Full));
    }

    #[tokio::test]
    async fn waits_for_another_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = Store::open(&path).unwrap();
        store.add_run(run()).await.unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut write = Box::pin(store.put_bout(bout(0, 1)));
        // A deferred transaction fails at once.
        assert!(tokio::time::timeout(Duration::from_millis(200), &mut write).await.is_err());
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(write.await, Ok(PutOutcome::New));
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
