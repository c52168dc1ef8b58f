//! The rows of runs.

use agon_schedule::RunState;
use rusqlite::types::Type;
use rusqlite::{OptionalExtension as _, params};

use super::{Store, StoreError, StoredRun, number, select};

impl Store {
    /// Adds a run.
    pub async fn add_run(&self, run: StoredRun) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection.execute(
                "INSERT INTO runs (id, text, files, state, submitted_us, signature, priority, exported, folded, build,
                                   abandoned, granted)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    run.id,
                    run.text,
                    run.files,
                    run.state.name(),
                    run.submitted_us,
                    run.signature,
                    run.priority,
                    run.exported as i64,
                    run.totals,
                    run.build,
                    number(run.abandoned),
                    number(run.granted)
                ],
            )?;
            Ok(())
        })
        .await
    }

    /// Returns all runs in order of submission.
    pub async fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.write(|connection| {
            select(connection, "SELECT id, text, files, state, submitted_us, signature, decided, priority, exported, folded, build,
                        abandoned, granted
                 FROM runs ORDER BY number", [], |row| {
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
                    totals: row.get(9)?,
                    build: row.get(10)?,
                    abandoned: row.get::<_, i64>(11)? as u64,
                    granted: row.get::<_, i64>(12)? as u64,
                })
            })
        })
        .await
    }

    /// Moves a run from one of the states `from` to another, and sets the bout that decided it, if any. Returns the state
    /// before, which is not in `from` if nothing changed; `None` if there is no such run.
    pub async fn move_state(
        &self,
        run: String,
        from: &'static [RunState],
        to: RunState,
        decided: Option<u64>,
    ) -> Result<Option<RunState>, StoreError> {
        self.write(move |connection| {
            let found: Option<String> = connection
                .prepare_cached("SELECT state FROM runs WHERE id = ?1")?
                .query_row([&run], |row| row.get(0))
                .optional()?;
            let before = found.as_deref().and_then(RunState::from_name);
            if before.is_some_and(|state| from.contains(&state)) {
                connection.execute(
                    "UPDATE runs SET state = ?2, decided = coalesce(?3, decided) WHERE id = ?1",
                    params![run, to.name(), decided.map(number)],
                )?;
            }
            Ok(before)
        })
        .await
    }

    /// Sets the totals of the exported bouts of a run.
    pub async fn set_totals(&self, run: String, totals: String) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection.execute("UPDATE runs SET folded = ?2 WHERE id = ?1", params![run, totals])?;
            Ok(())
        })
        .await
    }

    /// Raises the number of abandoned bouts of a run. Does not wait.
    pub fn raise_abandoned(&self, run: &str, abandoned: u64) {
        let run = run.to_string();
        self.post(move |connection| {
            connection.execute(
                "UPDATE runs SET abandoned = max(abandoned, ?2) WHERE id = ?1",
                params![run, number(abandoned)],
            )?;
            Ok(())
        });
    }

    /// Records that the bouts of these runs below these numbers may be granted.
    pub async fn reserve_grants(&self, ends: Vec<(String, u64)>) -> Result<(), StoreError> {
        self.write(move |connection| {
            let mut raise =
                connection.prepare_cached("UPDATE runs SET granted = max(granted, ?2) WHERE id = ?1")?;
            for (run, end) in &ends {
                raise.execute(params![run, number(*end)])?;
            }
            Ok(())
        })
        .await
    }

    /// Sets the priority of a run.
    pub async fn set_priority(&self, run: String, priority: i32) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection.execute("UPDATE runs SET priority = ?2 WHERE id = ?1", params![run, priority])?;
            Ok(())
        })
        .await
    }
}
