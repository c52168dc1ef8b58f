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
const VERSION: i64 = 2;
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
#[derive(Clone, PartialEq, Default, Debug)]
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
    /// Runs with a greater number are played first.
    pub priority: i32,
    /// Every bout below is in the dataset, if it was played, and not here any more.
    pub exported: u64,
    /// What is remembered of the bouts that are not here any more, as JSON; empty of none.
    pub folded: String,
}

/// What a run is doing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RunState {
    /// It is played.
    #[default]
    Running,
    /// Nothing of it is lent until somebody resumes it; what is under way is counted.
    Paused,
    /// Every bout is done and exported.
    Done,
    /// A sequential test has decided.
    Decided,
    /// Somebody cancelled it.
    Cancelled,
}

impl RunState {
    /// All of them with their names.
    pub const ALL: [(RunState, &'static str); 5] = [
        (RunState::Running, "running"),
        (RunState::Paused, "paused"),
        (RunState::Done, "done"),
        (RunState::Decided, "decided"),
        (RunState::Cancelled, "cancelled"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        RunState::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<RunState> {
        RunState::ALL.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
    }

    /// Whether bouts of it are still wanted.
    pub fn is_open(self) -> bool {
        matches!(self, RunState::Running | RunState::Paused)
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
    /// It was there and is in the dataset by now.
    Exported,
    /// The run takes no more bouts.
    NotWanted,
}

/// A stored bout without its messages.
#[derive(Clone, PartialEq, Debug)]
pub struct BoutSummary {
    /// Its number.
    pub bout: u64,
    /// Who played it.
    pub worker: String,
    /// What the standings need of it, as JSON.
    pub summary: String,
    /// Whether it failed.
    pub failed: bool,
}

/// Something that operators may want to read later.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Audit {
    /// Its number, given when it is stored.
    pub number: u64,
    /// Microseconds since 1970.
    pub at_us: i64,
    /// One word for what it is.
    pub kind: String,
    /// The worker it is about; empty of none.
    pub worker: String,
    /// The run it is about; empty of none.
    pub run: String,
    /// The bout it is about.
    pub bout: Option<u64>,
    /// What happened, as a sentence.
    pub text: String,
}

/// Bouts of one pairing that one worker played, by outcome for the pairing's first player: won, lost, drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredCell {
    /// The worker.
    pub worker: String,
    /// The pairing.
    pub pairing: u64,
    /// Won, lost and drawn.
    pub outcomes: [u64; 3],
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
                "INSERT INTO runs (id, text, files, state, submitted_us, signature, priority, exported, folded)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    run.id,
                    run.text,
                    run.files,
                    run.state.name(),
                    run.submitted_us,
                    run.signature,
                    run.priority,
                    run.exported as i64,
                    run.folded
                ],
            )?;
            Ok(())
        })
        .await
    }

    /// All runs in the order in which they were submitted.
    pub async fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.write(|connection| {
            let mut statement = connection.prepare(
                "SELECT id, text, files, state, submitted_us, signature, decided, priority, exported, folded
                 FROM runs ORDER BY number",
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
                    priority: row.get(7)?,
                    exported: row.get::<_, i64>(8)? as u64,
                    folded: row.get(9)?,
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
            let run: Option<(String, i64)> = connection
                .prepare_cached("SELECT state, exported FROM runs WHERE id = ?1")?
                .query_row([&bout.run], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((state, exported)) = run else { return Ok(Stored::NotWanted) };
            if bout.bout < exported as u64 {
                return Ok(Stored::Exported);
            }
            if !RunState::from_name(&state).is_some_and(RunState::is_open) {
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

    /// The bouts of a run from `first` to `last` that are still here, without their messages, in their order.
    pub async fn summaries(
        &self,
        run: String,
        first: u64,
        last: u64,
    ) -> Result<Vec<BoutSummary>, StoreError> {
        self.write(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT bout, worker, summary, failure IS NOT NULL FROM bouts
                 WHERE run = ?1 AND bout BETWEEN ?2 AND ?3 ORDER BY bout",
            )?;
            let rows = statement.query_map(params![run, number(first), number(last)], |row| {
                Ok(BoutSummary {
                    bout: row.get::<_, i64>(0)? as u64,
                    worker: row.get(1)?,
                    summary: row.get(2)?,
                    failed: row.get(3)?,
                })
            })?;
            rows.collect()
        })
        .await
    }

    /// The messages of a bout; none where it is not here or failed.
    pub async fn payload(&self, run: String, bout: u64) -> Result<Vec<u8>, StoreError> {
        self.write(move |connection| {
            let payload = connection
                .prepare_cached("SELECT payload FROM bouts WHERE run = ?1 AND bout = ?2")?
                .query_row(params![run, number(bout)], |row| row.get(0))
                .optional()?;
            Ok(payload.unwrap_or_default())
        })
        .await
    }

    /// Assigns bouts to a part, before it is written. A run has one such part at a time.
    pub async fn assign_part(&self, run: String, first: u64, last: u64) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection.execute(
                "INSERT INTO parts (run, first, last) VALUES (?1, ?2, ?3)",
                params![run, number(first), number(last)],
            )?;
            Ok(())
        })
        .await
    }

    /// The part of a run that was assigned and is not known to be written.
    pub async fn open_part(&self, run: String) -> Result<Option<(u64, u64)>, StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached("SELECT first, last FROM parts WHERE run = ?1")?
                .query_row([run], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))
                .optional()
        })
        .await
    }

    /// Notes that every bout below `exported` is durable where the dataset is. They leave the state; `folded` and the cells
    /// that are added are what is remembered of them.
    pub async fn part_written(
        &self,
        run: String,
        exported: u64,
        folded: String,
        cells: Vec<StoredCell>,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let place = params![run, number(exported)];
            connection.execute("DELETE FROM parts WHERE run = ?1 AND last < ?2", place)?;
            connection.execute("DELETE FROM bouts WHERE run = ?1 AND bout < ?2", place)?;
            connection.execute(
                "UPDATE runs SET exported = ?2, folded = ?3 WHERE id = ?1",
                params![run, number(exported), folded],
            )?;
            let mut add = connection.prepare_cached(
                "INSERT INTO cells (run, worker, pairing, won, lost, drawn) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (run, worker, pairing) DO UPDATE
                 SET won = won + excluded.won, lost = lost + excluded.lost, drawn = drawn + excluded.drawn",
            )?;
            for StoredCell { worker, pairing, outcomes } in cells {
                let [won, lost, drawn] = outcomes.map(number);
                add.execute(params![run, worker, number(pairing), won, lost, drawn])?;
            }
            Ok(())
        })
        .await
    }

    /// What the workers brought of the bouts of a run that are not here any more.
    pub async fn cells(&self, run: String) -> Result<Vec<StoredCell>, StoreError> {
        self.write(move |connection| {
            let mut statement = connection.prepare(
                "SELECT worker, pairing, won, lost, drawn FROM cells WHERE run = ?1 ORDER BY worker",
            )?;
            let rows = statement.query_map([run], |row| {
                let count = |index: usize| row.get::<_, i64>(index).map(|count| count as u64);
                Ok(StoredCell {
                    worker: row.get(0)?,
                    pairing: count(1)?,
                    outcomes: [count(2)?, count(3)?, count(4)?],
                })
            })?;
            rows.collect()
        })
        .await
    }

    /// Changes how early a run is played.
    pub async fn set_priority(&self, run: String, priority: i32) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection.execute("UPDATE runs SET priority = ?2 WHERE id = ?1", params![run, priority])?;
            Ok(())
        })
        .await
    }

    /// Removes bouts that are not exported, so that they are played anew, and lists those that are as void. Either way
    /// `folded` is what is remembered from now on, and nothing of what `worker` brought is compared any more.
    pub async fn void(
        &self,
        run: String,
        worker: String,
        again: Vec<u64>,
        voided: Vec<u64>,
        folded: String,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let mut remove = connection.prepare_cached("DELETE FROM bouts WHERE run = ?1 AND bout = ?2")?;
            for bout in again {
                remove.execute(params![run, number(bout)])?;
            }
            let mut list =
                connection.prepare_cached("INSERT OR IGNORE INTO voids (run, bout) VALUES (?1, ?2)")?;
            for bout in voided {
                list.execute(params![run, number(bout)])?;
            }
            connection.execute("DELETE FROM cells WHERE run = ?1 AND worker = ?2", params![run, worker])?;
            connection.execute("UPDATE runs SET folded = ?2 WHERE id = ?1", params![run, folded])?;
            Ok(())
        })
        .await
    }

    /// The exported bouts of a run that do not count.
    pub async fn voided(&self, run: String) -> Result<Vec<u64>, StoreError> {
        self.write(move |connection| {
            let mut statement = connection.prepare("SELECT bout FROM voids WHERE run = ?1 ORDER BY bout")?;
            let rows = statement.query_map([run], |row| row.get::<_, i64>(0).map(|bout| bout as u64))?;
            rows.collect()
        })
        .await
    }

    /// Sets a worker aside, or trusts it again where there is no reason. Nobody waits for it.
    pub fn note_quarantine(&self, worker: &str, reason: Option<&str>) {
        let (worker, reason) = (worker.to_string(), reason.map(str::to_string));
        self.post(move |connection| {
            match reason {
                Some(reason) => connection.execute(
                    "INSERT INTO quarantine (worker, reason) VALUES (?1, ?2)
                     ON CONFLICT (worker) DO UPDATE SET reason = excluded.reason",
                    params![worker, reason],
                )?,
                None => connection.execute("DELETE FROM quarantine WHERE worker = ?1", [worker])?,
            };
            Ok(())
        });
    }

    /// The workers that are set aside, and why.
    pub async fn quarantined(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.write(|connection| {
            let mut statement =
                connection.prepare("SELECT worker, reason FROM quarantine ORDER BY worker")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
        .await
    }

    /// Writes something down for operators to read. Nobody waits for it.
    pub fn note(&self, entry: Audit) {
        self.post(move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO audit (at_us, kind, worker, run, bout, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    entry.at_us,
                    entry.kind,
                    entry.worker,
                    entry.run,
                    entry.bout.map(number),
                    entry.text
                ])?;
            Ok(())
        });
    }

    /// The last entries about a worker and a run, where they are given, the oldest first.
    pub async fn audits(
        &self,
        worker: Option<String>,
        run: Option<String>,
        most: u64,
    ) -> Result<Vec<Audit>, StoreError> {
        self.write(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT number, at_us, kind, worker, run, bout, text FROM audit
                 WHERE (?1 IS NULL OR worker = ?1) AND (?2 IS NULL OR run = ?2)
                 ORDER BY number DESC LIMIT ?3",
            )?;
            let rows = statement.query_map(params![worker, run, number(most)], |row| {
                Ok(Audit {
                    number: row.get::<_, i64>(0)? as u64,
                    at_us: row.get(1)?,
                    kind: row.get(2)?,
                    worker: row.get(3)?,
                    run: row.get(4)?,
                    bout: row.get::<_, Option<i64>>(5)?.map(|bout| bout as u64),
                    text: row.get(6)?,
                })
            })?;
            let mut entries = rows.collect::<rusqlite::Result<Vec<Audit>>>()?;
            entries.reverse();
            Ok(entries)
        })
        .await
    }
}

/// A number as SQLite keeps it. What is too large for it is larger than any that is kept.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
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
PRAGMA user_version = 2;
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
            ..StoredRun::default()
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
        assert_eq!(again.next_epoch().await, Ok(2));
        let kept = again.summaries("r".to_string(), 0, u64::MAX).await.unwrap();
        assert_eq!(kept.iter().map(|bout| bout.bout).collect::<Vec<_>>(), [3], "what is exported is gone");
        assert_eq!(again.open_part("r".to_string()).await, Ok(None));
        let run = again.runs().await.unwrap().remove(0);
        assert_eq!((run.exported, run.folded.as_str(), run.state), (3, "{2}", RunState::Cancelled));
        assert_eq!(again.put_bout(bout(1, 2)).await, Ok(Stored::Exported));
        let sum = StoredCell { worker: "w".to_string(), pairing: 0, outcomes: [3, 0, 2] };
        assert_eq!(again.cells("r".to_string()).await, Ok(vec![sum]));
    }

    #[tokio::test]
    async fn what_happened_is_read_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state")).unwrap();
        for (worker, text) in [("a", "one"), ("b", "two"), ("a", "three")] {
            let entry = Audit { worker: worker.to_string(), text: text.to_string(), ..Audit::default() };
            store.note(entry);
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
