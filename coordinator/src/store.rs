//! The durable state: one SQLite file, written by one thread, many writes in one transaction.
//!
//! A write is answered after its transaction is on disk (`synchronous = FULL`), or with the reason why it is not. Writes
//! that arrive while a transaction is being synced share the next one, so that a sync serves many bouts.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};
use tokio::sync::oneshot;

/// The version of the tables.
const VERSION: i64 = 1;
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
    /// The file is damaged.
    #[error(
        "the state file is damaged ({0}); restore it from a copy, or begin anew in another folder with --data"
    )]
    Damaged(String),
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

/// A run as it is stored.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredRun {
    /// Its id.
    pub id: String,
    /// The text of its spec.
    pub text: String,
    /// The files that the spec names, as JSON.
    pub files: String,
    /// Its state.
    pub state: RunState,
    /// Microseconds since 1970 when it was submitted.
    pub submitted_us: i64,
    /// The search signature it is pinned to.
    pub signature: String,
    /// Of a test that has decided, the bout that decided.
    pub decided: Option<u64>,
}

/// What a run is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunState {
    /// It is played.
    Running,
    /// Every bout is done and exported.
    Done,
    /// A sequential test has decided.
    Decided,
    /// Somebody cancelled it.
    Cancelled,
}

impl RunState {
    /// All of them with their names.
    pub const ALL: [(RunState, &'static str); 4] = [
        (RunState::Running, "running"),
        (RunState::Done, "done"),
        (RunState::Decided, "decided"),
        (RunState::Cancelled, "cancelled"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        RunState::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<RunState> {
        RunState::ALL.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
    }
}

/// A bout to be stored.
#[derive(Clone, PartialEq, Debug)]
pub struct NewBout {
    /// The run.
    pub run: String,
    /// Its number.
    pub bout: u64,
    /// Who played it.
    pub worker: String,
    /// Of its content; none of a failed one.
    pub digest: Option<[u8; 32]>,
    /// What the standings need of it, as JSON.
    pub summary: String,
    /// Its messages; none of a failed one.
    pub payload: Vec<u8>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// What became of a bout that was to be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    /// It is there now.
    New,
    /// It was there with the same content.
    Same,
    /// It was there with another content, which stays.
    Other,
    /// The run takes no more bouts.
    NotWanted,
}

/// A stored bout without its messages.
#[derive(Clone, PartialEq, Debug)]
pub struct BoutSummary {
    /// Its number.
    pub bout: u64,
    /// What the standings need of it, as JSON.
    pub summary: String,
    /// Whether it failed.
    pub failed: bool,
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
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version > VERSION {
            return Err(StoreError::Newer { found: version });
        }
        let check: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if check != "ok" {
            return Err(StoreError::Damaged(check));
        }
        if version == 0 {
            connection.execute_batch(TABLES)?;
        }
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

    /// Raises the epoch and returns it: the number of times that this state has been opened to be worked with.
    pub async fn next_epoch(&self) -> Result<u64, StoreError> {
        let epoch = self.write(|connection| {
            connection.execute("UPDATE meta SET epoch = epoch + 1", [])?;
            connection.query_row("SELECT epoch FROM meta", [], |row| row.get::<_, i64>(0))
        });
        epoch.await.map(|epoch| epoch as u64)
    }

    /// Adds a run.
    pub async fn add_run(&self, run: StoredRun) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection.execute(
                "INSERT INTO runs (id, text, files, state, submitted_us, signature) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![run.id, run.text, run.files, run.state.name(), run.submitted_us, run.signature],
            )?;
            Ok(())
        })
        .await
    }

    /// All runs in the order in which they were submitted.
    pub async fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.write(|connection| {
            let mut statement = connection.prepare(
                "SELECT id, text, files, state, submitted_us, signature, decided FROM runs ORDER BY number",
            )?;
            let rows = statement.query_map([], |row| {
                let state: String = row.get(3)?;
                let unknown = || rusqlite::Error::InvalidColumnType(3, "state".to_string(), Type::Text);
                Ok(StoredRun {
                    id: row.get(0)?,
                    text: row.get(1)?,
                    files: row.get(2)?,
                    state: RunState::from_name(&state).ok_or_else(unknown)?,
                    submitted_us: row.get(4)?,
                    signature: row.get(5)?,
                    decided: row.get::<_, Option<i64>>(6)?.map(|bout| bout as u64),
                })
            })?;
            rows.collect()
        })
        .await
    }

    /// Changes the state of a run, with the bout that decided it where one did.
    pub async fn set_state(
        &self,
        run: String,
        state: RunState,
        decided: Option<u64>,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection.execute(
                "UPDATE runs SET state = ?2, decided = coalesce(?3, decided) WHERE id = ?1",
                params![run, state.name(), decided.map(|bout| bout as i64)],
            )?;
            Ok(())
        })
        .await
    }

    /// Stores a bout, unless it is there.
    pub async fn put_bout(&self, bout: NewBout) -> Result<Stored, StoreError> {
        self.write(move |connection| {
            let mut find =
                connection.prepare_cached("SELECT digest FROM bouts WHERE run = ?1 AND bout = ?2")?;
            let known: Option<Option<Vec<u8>>> =
                find.query_row(params![bout.run, bout.bout as i64], |row| row.get(0)).optional()?;
            if let Some(known) = known {
                let same = known.as_deref() == bout.digest.as_ref().map(|digest| &digest[..]);
                return Ok(if same { Stored::Same } else { Stored::Other });
            }
            let running: bool = connection
                .prepare_cached("SELECT state = 'running' FROM runs WHERE id = ?1")?
                .query_row([&bout.run], |row| row.get(0))
                .optional()?
                .unwrap_or(false);
            if !running {
                return Ok(Stored::NotWanted);
            }
            let mut insert = connection.prepare_cached(
                "INSERT INTO bouts (run, bout, worker, digest, summary, payload, failure)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            insert.execute(params![
                bout.run,
                bout.bout as i64,
                bout.worker,
                bout.digest.map(|digest| digest.to_vec()),
                bout.summary,
                bout.payload,
                bout.failure,
            ])?;
            Ok(Stored::New)
        })
        .await
    }

    /// All bouts of a run, without their messages, in their order.
    pub async fn summaries(&self, run: String) -> Result<Vec<BoutSummary>, StoreError> {
        self.write(move |connection| {
            let mut statement = connection.prepare(
                "SELECT bout, summary, failure IS NOT NULL FROM bouts WHERE run = ?1 ORDER BY bout",
            )?;
            let rows = statement.query_map([run], |row| {
                Ok(BoutSummary {
                    bout: row.get::<_, i64>(0)? as u64,
                    summary: row.get(1)?,
                    failed: row.get(2)?,
                })
            })?;
            rows.collect()
        })
        .await
    }

    /// The messages of the bouts from `first` to `last` that did not fail, with their numbers, in their order.
    pub async fn payloads(
        &self,
        run: String,
        first: u64,
        last: u64,
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.write(move |connection| {
            let mut statement = connection.prepare(
                "SELECT bout, payload FROM bouts
                 WHERE run = ?1 AND bout BETWEEN ?2 AND ?3 AND failure IS NULL ORDER BY bout",
            )?;
            let rows = statement.query_map(params![run, first as i64, last as i64], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
            })?;
            rows.collect()
        })
        .await
    }

    /// Assigns bouts to a part, before it is written.
    pub async fn assign_part(&self, run: String, first: u64, last: u64) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection.execute(
                "INSERT INTO parts (run, first, last, exported) VALUES (?1, ?2, ?3, 0)",
                params![run, first as i64, last as i64],
            )?;
            Ok(())
        })
        .await
    }

    /// The parts of a run, and whether each has been written.
    pub async fn parts(&self, run: String) -> Result<Vec<(u64, u64, bool)>, StoreError> {
        self.write(move |connection| {
            let mut statement = connection
                .prepare("SELECT first, last, exported FROM parts WHERE run = ?1 ORDER BY first")?;
            let rows = statement.query_map([run], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64, row.get(2)?))
            })?;
            rows.collect()
        })
        .await
    }

    /// Notes that a part is durable where the dataset is. The messages of its bouts are needed no more.
    pub async fn part_written(&self, run: String, first: u64, last: u64) -> Result<(), StoreError> {
        self.write(move |connection| {
            let place = params![run, first as i64, last as i64];
            connection.execute(
                "UPDATE parts SET exported = 1 WHERE run = ?1 AND first = ?2 AND last = ?3",
                place,
            )?;
            connection
                .execute("UPDATE bouts SET payload = x'' WHERE run = ?1 AND bout BETWEEN ?2 AND ?3", place)?;
            Ok(())
        })
        .await
    }
}

const TABLES: &str = "
BEGIN;
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
    decided INTEGER
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
    exported INTEGER NOT NULL,
    UNIQUE (run, first)
);
PRAGMA user_version = 1;
COMMIT;
";

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

    fn bout(number: u64, digest: u8) -> NewBout {
        NewBout {
            run: "r".to_string(),
            bout: number,
            worker: "w".to_string(),
            digest: Some([digest; 32]),
            summary: "{}".to_string(),
            payload: vec![1, 2, 3],
            failure: None,
        }
    }

    fn run() -> StoredRun {
        StoredRun {
            id: "r".to_string(),
            text: String::new(),
            files: "{}".to_string(),
            state: RunState::Running,
            submitted_us: 0,
            signature: String::new(),
            decided: None,
        }
    }

    #[tokio::test]
    async fn a_bout_is_stored_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = Store::open(&path).unwrap();
        assert_eq!(store.next_epoch().await, Ok(1));
        assert_eq!(store.put_bout(bout(3, 1)).await, Ok(Stored::NotWanted));
        store.add_run(run()).await.unwrap();
        assert_eq!(store.put_bout(bout(3, 1)).await, Ok(Stored::New));
        assert_eq!(store.put_bout(bout(3, 1)).await, Ok(Stored::Same));
        assert_eq!(store.put_bout(bout(3, 2)).await, Ok(Stored::Other));
        assert_eq!(store.put_bout(bout(1, 2)).await, Ok(Stored::New));
        assert_eq!(store.payloads("r".to_string(), 0, 9).await.unwrap().len(), 2);
        store.set_state("r".to_string(), RunState::Cancelled, None).await.unwrap();
        assert_eq!(store.put_bout(bout(2, 2)).await, Ok(Stored::NotWanted));
        store.assign_part("r".to_string(), 0, 3).await.unwrap();
        store.part_written("r".to_string(), 0, 3).await.unwrap();
        drop(store);
        let again = Store::open(&path).unwrap();
        assert_eq!(again.next_epoch().await, Ok(2));
        let known: Vec<u64> =
            again.summaries("r".to_string()).await.unwrap().iter().map(|bout| bout.bout).collect();
        assert_eq!(known, [1, 3]);
        assert_eq!(again.parts("r".to_string()).await, Ok(vec![(0, 3, true)]));
        assert!(
            again
                .payloads("r".to_string(), 0, 9)
                .await
                .unwrap()
                .iter()
                .all(|(_, payload)| payload.is_empty())
        );
    }

    #[tokio::test]
    async fn a_failed_write_does_not_touch_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state")).unwrap();
        store.add_run(run()).await.unwrap();
        let bad = store.write(|connection| {
            connection.execute("INSERT INTO parts VALUES ('r', 0, 0, 0)", [])?;
            connection.execute("INSERT INTO nowhere VALUES (1)", [])
        });
        let good = store.put_bout(bout(0, 1));
        let (bad, good) = tokio::join!(bad, good);
        assert!(matches!(bad, Err(StoreError::Failed(_))));
        assert_eq!(good, Ok(Stored::New));
        assert_eq!(store.parts("r".to_string()).await, Ok(vec![]), "half of what failed is there");
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
