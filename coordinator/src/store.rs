//! The durable state: one SQLite file, written by one thread, many writes in one transaction.
//!
//! A write is answered after its transaction is on disk (`synchronous = FULL`), or with the reason why it is not. Writes
//! that arrive while a transaction is being synced share the next one, so that a sync serves many bouts.

mod audit;
pub mod backup;
mod bouts;
mod rows;
mod runs;
mod schema;

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use agon_storage::ownership::Identity;

use self::schema::VERSION;

pub use self::rows::{Audit, BoutSummary, NewBout, Opinion, Stored, StoredCell, StoredRun};

/// The most writes in one transaction.
const LARGEST_GROUP: usize = 512;

/// Why the state cannot be read or written.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no room.
    #[error("the disk is full; nothing is lost, and work goes on when there is room again")]
    Full,
    /// The file was written by a newer program.
    #[error(
        "the state is of version {found} and this program knows {VERSION}; use the program that wrote it"
    )]
    Newer {
        /// The version found.
        found: i64,
    },
    /// The file was written by a program that was never released.
    #[error("the state is of version {found}, which was never released; begin anew in another folder")]
    Older {
        /// The version found.
        found: i64,
    },
    /// The file is damaged.
    #[error(
        "the state file is damaged ({0}); restore it from a copy, or begin anew in another folder with --data"
    )]
    Damaged(String),
    /// A copy of it cannot be written.
    #[error("{} cannot be written: {reason}", .file.display())]
    Uncopied {
        /// The copy.
        file: std::path::PathBuf,
        /// Why.
        reason: String,
    },
    /// Writing failed in a way after which nothing can be trusted.
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
            // A value that is not of its column's kind was not written by this program.
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
/// Work in a transaction: whether it succeeded, and what to do when the transaction is durable or lost.
type Job = Box<dyn FnOnce(&Connection) -> (bool, Completion) + Send>;

/// The one writer of the state.
#[derive(Clone)]
pub struct Store {
    jobs: mpsc::Sender<Job>,
}

impl Store {
    /// Opens the state, or begins it.
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
            .spawn(move || write_groups(connection, &inbox))
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Store { jobs })
    }

    /// Does some work in a transaction and answers when it is durable.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let result = work(connection).map_err(StoreError::from);
            let result_is_ok = result.is_ok();
            let completion = move |committed: Result<(), StoreError>| {
                // Whoever asked may have gone.
                let _ = answer.send(committed.and(result));
            };
            (result_is_ok, Box::new(completion))
        });
        self.jobs.send(job).map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// Does some work in a transaction that nobody waits for. Where it fails the log says so.
    fn post(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static) {
        let job: Job = Box::new(move |connection| {
            let result = work(connection).map_err(StoreError::from);
            let succeeded = result.is_ok();
            let completion = move |committed: Result<(), StoreError>| {
                if let Err(error) = committed.and(result) {
                    tracing::warn!(%error, "something could not be written down");
                }
            };
            (succeeded, Box::new(completion))
        });
        // A store that is closed has nobody left to read it.
        let _ = self.jobs.send(job);
    }

    /// Raises the epoch beyond `above` and returns it: how often this state has been opened to be worked with, or more.
    pub async fn next_epoch(&self, above: u64) -> Result<u64, StoreError> {
        let epoch = self.write(move |connection| {
            connection.execute("UPDATE meta SET epoch = max(epoch, ?1) + 1", [number(above)])?;
            connection.query_row("SELECT epoch FROM meta", [], |row| row.get::<_, i64>(0))
        });
        epoch.await.map(|epoch| epoch as u64)
    }

    /// What this state says of itself to a dataset far away.
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

/// An epoch beyond any that a state which is lost by now can have had, so that leases of its time do not look like those of
/// the next: the seconds since 1970. No state is opened once a second.
pub(crate) fn late_epoch() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// A number as SQLite keeps it. What is too large for it is larger than any that is kept.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Does jobs in groups, each group in one transaction, until nobody can send any more.
fn write_groups(mut connection: Connection, inbox: &mpsc::Receiver<Job>) {
    while let Ok(first) = inbox.recv() {
        let mut completions = Vec::new();
        let committed = (|| -> Result<(), rusqlite::Error> {
            let mut transaction = connection.transaction()?;
            let mut job = Some(first);
            while let Some(work) = job.take() {
                // A job that fails leaves nothing behind; the others are not touched.
                let savepoint = transaction.savepoint()?;
                let (succeeded, completion) = work(&savepoint);
                completions.push(completion);
                if succeeded {
                    savepoint.commit()?;
                }
                if completions.len() < LARGEST_GROUP {
                    job = inbox.try_recv().ok();
                }
            }
            transaction.commit()
        })();
        let committed = committed.map_err(StoreError::from);
        for completion in completions {
            completion(committed.clone());
        }
    }
}

#[cfg(test)]
mod tests {
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
            to_check: false,
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
    async fn a_bout_is_stored_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = Store::open(&path).unwrap();
        assert_eq!(store.next_epoch(0).await, Ok(1));
        assert_eq!(store.put_bout(bout(3, 1)).await, Ok(Stored::NotWanted));
        store.add_run(run()).await.unwrap();
        assert_eq!(store.put_bout(bout(3, 1)).await, Ok(Stored::New));
        assert_eq!(store.put_bout(bout(3, 1)).await, Ok(Stored::Same));
        assert_eq!(store.put_bout(bout(3, 2)).await, Ok(Stored::Other));
        assert_eq!(store.put_bout(bout(1, 2)).await, Ok(Stored::New));
        assert_eq!(store.payload("r".to_string(), 3).await, Ok(vec![1, 2, 3]));
        store.set_state("r".to_string(), RunState::Cancelled, None).await.unwrap();
        assert_eq!(store.put_bout(bout(2, 2)).await, Ok(Stored::NotWanted));
        store.assign_part("r".to_string(), 0, 2).await.unwrap();
        assert_eq!(store.open_part("r".to_string()).await, Ok(Some((0, 2))));
        let cell = |won| StoredCell { worker: "w".to_string(), pairing: 0, outcomes: [won, 0, 1] };
        store.part_written("r".to_string(), 3, "{1}".to_string(), vec![cell(1)]).await.unwrap();
        store.part_written("r".to_string(), 3, "{2}".to_string(), vec![cell(2)]).await.unwrap();
        drop(store);
        let again = Store::open(&path).unwrap();
        assert_eq!(again.next_epoch(0).await, Ok(2));
        let kept = again.summaries("r".to_string(), 0, u64::MAX).await.unwrap();
        assert_eq!(kept.iter().map(|bout| bout.bout).collect::<Vec<_>>(), [3], "what is exported is gone");
        assert_eq!(again.open_part("r".to_string()).await, Ok(None));
        let run = again.runs().await.unwrap().remove(0);
        assert_eq!((run.exported, run.folded.as_str(), run.state), (3, "{2}", RunState::Cancelled));
        assert_eq!(again.put_bout(bout(1, 2)).await, Ok(Stored::Exported));
        let sum = StoredCell { worker: "w".to_string(), pairing: 0, outcomes: [3, 0, 2] };
        assert_eq!(again.cells("r".to_string()).await, Ok(vec![sum]));
    }

    /// A bout and that it waits for another worker's word are stored together or not at all.
    #[tokio::test]
    async fn opinions_survive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = Store::open(&path).unwrap();
        store.add_run(run()).await.unwrap();
        let waits = |number| NewBout { to_check: true, ..bout(number, 1) };
        for number in [4, 2, 7] {
            assert_eq!(store.put_bout(waits(number)).await, Ok(Stored::New));
        }
        // What was there before is not asked for again.
        assert_eq!(store.put_bout(waits(4)).await, Ok(Stored::Same));
        assert_eq!(store.put_bout(bout(5, 1)).await, Ok(Stored::New));
        let place = |bout| BoutKey { run: "r".to_string(), bout };
        store.note_opinion(Opinion { key: place(4), worker: "v".to_string(), digest: [2; 32] });
        store.forget_opinions(&place(2));
        store.void("r".to_string(), String::new(), vec![7], Vec::new(), String::new()).await.unwrap();
        drop(store);
        let again = Store::open(&path).unwrap();
        let said = again.opinions().await.unwrap();
        let said: Vec<_> = said.iter().map(|it| (it.key.bout, it.worker.as_str(), it.digest[0])).collect();
        assert_eq!(said, [(4, "w", 1), (4, "v", 2)]);
    }

    #[tokio::test]
    async fn what_happened_is_read_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state")).unwrap();
        for (worker, text) in [("a", "one"), ("b", "two"), ("a", "three")] {
            let entry = Audit { worker: worker.to_string(), text: text.to_string(), ..Audit::default() };
            store.audit(entry);
        }
        let texts = |entries: Vec<Audit>| entries.into_iter().map(|entry| entry.text).collect::<Vec<_>>();
        assert_eq!(texts(store.audits(None, None, 2).await.unwrap()), ["two", "three"]);
        assert_eq!(texts(store.audits(Some("a".to_string()), None, 9).await.unwrap()), ["one", "three"]);
        store.note_quarantine("a", Some("it lies"));
        assert_eq!(store.quarantined().await, Ok(vec![("a".to_string(), "it lies".to_string())]));
        store.note_quarantine("a", None);
        assert_eq!(store.quarantined().await, Ok(vec![]));
    }

    #[tokio::test]
    async fn a_failed_write_does_not_touch_its_neighbours() {
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
        assert_eq!(good, Ok(Stored::New));
        assert_eq!(store.open_part("r".to_string()).await, Ok(None), "half of what failed is there");
    }

    #[test]
    fn what_is_no_state_is_refused() {
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
