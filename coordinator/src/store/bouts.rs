//! The rows of bouts, of their parts, and of the totals of exported bouts.

use agon_schedule::RunState;
use rusqlite::{OptionalExtension as _, params};

use super::audit::insert_replica_digest;
use super::{BoutSummary, NewBout, PutOutcome, ReplicaDigest, Store, StoreError, StoredCell, number, select};
use crate::leases::BoutKey;

impl Store {
    /// Stores a bout, unless it is stored or exported or the run has ended.
    pub async fn put_bout(&self, bout: NewBout) -> Result<PutOutcome, StoreError> {
        self.write(move |connection| {
            let mut find =
                connection.prepare_cached("SELECT digest FROM bouts WHERE run = ?1 AND bout = ?2")?;
            let known: Option<Option<Vec<u8>>> =
                find.query_row(params![bout.run, bout.bout as i64], |row| row.get(0)).optional()?;
            if let Some(known) = known {
                let same = known.as_deref() == bout.digest.as_ref().map(|digest| &digest[..]);
                return Ok(if same { PutOutcome::Duplicate } else { PutOutcome::Conflict });
            }
            let run: Option<(String, i64)> = connection
                .prepare_cached("SELECT state, exported FROM runs WHERE id = ?1")?
                .query_row([&bout.run], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((state, exported)) = run else { return Ok(PutOutcome::RunClosed) };
            if bout.bout < exported as u64 {
                return Ok(PutOutcome::Exported);
            }
            if !RunState::from_name(&state).is_some_and(RunState::is_open) {
                return Ok(PutOutcome::RunClosed);
            }
            let mut insert = connection.prepare_cached(
                "INSERT INTO bouts (run, bout, worker, digest, summary, payload, failure)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            insert.execute(params![
                bout.run,
                bout.bout as i64,
                bout.worker,
                bout.digest,
                bout.summary,
                bout.payload,
                bout.failure,
            ])?;
            if let Some(digest) = bout.digest.filter(|_| bout.needs_replica) {
                let key = BoutKey { run: bout.run, bout: bout.bout };
                insert_replica_digest(connection, &ReplicaDigest { key, worker: bout.worker, digest })?;
            }
            Ok(PutOutcome::New)
        })
        .await
    }

    /// Returns the stored bouts of a run from `first` to `last`, without their messages, in order.
    pub async fn summaries(
        &self,
        run: String,
        first: u64,
        last: u64,
    ) -> Result<Vec<BoutSummary>, StoreError> {
        self.write(move |connection| {
            select(
                connection,
                "SELECT bout, worker, summary, failure IS NOT NULL FROM bouts
                 WHERE run = ?1 AND bout BETWEEN ?2 AND ?3 ORDER BY bout",
                params![run, number(first), number(last)],
                |row| {
                    Ok(BoutSummary {
                        bout: row.get::<_, i64>(0)? as u64,
                        worker: row.get(1)?,
                        summary: row.get(2)?,
                        failed: row.get(3)?,
                    })
                },
            )
        })
        .await
    }

    /// Returns the content digest of a bout, unless it is not stored or failed.
    pub async fn digest(&self, run: String, bout: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.write(move |connection| {
            let digest = connection
                .prepare_cached("SELECT digest FROM bouts WHERE run = ?1 AND bout = ?2")?
                .query_row(params![run, number(bout)], |row| row.get(0))
                .optional()?;
            Ok(digest.flatten())
        })
        .await
    }

    /// Returns the messages of a bout; empty if it is not stored or failed.
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

    /// Assigns bouts to a part before it is written. A run has one such part at a time.
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

    /// Returns the part of a run that is assigned but not marked as written.
    pub async fn open_part(&self, run: String) -> Result<Option<(u64, u64)>, StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached("SELECT first, last FROM parts WHERE run = ?1")?
                .query_row([run], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))
                .optional()
        })
        .await
    }

    /// Removes all bouts below `exported`, which the dataset has, and stores the totals and cells that replace them.
    pub async fn part_written(
        &self,
        run: String,
        exported: u64,
        totals: String,
        cells: Vec<StoredCell>,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let key = params![run, number(exported)];
            connection.execute("DELETE FROM parts WHERE run = ?1 AND last < ?2", key)?;
            connection.execute("DELETE FROM bouts WHERE run = ?1 AND bout < ?2", key)?;
            connection.execute(
                "UPDATE runs SET exported = ?2, folded = ?3 WHERE id = ?1",
                params![run, number(exported), totals],
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

    /// Returns the outcomes of the exported bouts of a run by worker and pairing.
    pub async fn cells(&self, run: String) -> Result<Vec<StoredCell>, StoreError> {
        self.write(move |connection| {
            select(
                connection,
                "SELECT worker, pairing, won, lost, drawn FROM cells WHERE run = ?1 ORDER BY worker",
                [run],
                |row| {
                    let count = |index: usize| row.get::<_, i64>(index).map(|count| count as u64);
                    Ok(StoredCell {
                        worker: row.get(0)?,
                        pairing: count(1)?,
                        outcomes: [count(2)?, count(3)?, count(4)?],
                    })
                },
            )
        })
        .await
    }

    /// Removes the bouts `replayed` and lists the exported bouts `voided` as void. Stores the new totals, and removes the
    /// cells of `worker`.
    pub async fn void(
        &self,
        run: String,
        worker: String,
        replayed: Vec<u64>,
        voided: Vec<u64>,
        totals: String,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let mut remove_digests =
                connection.prepare_cached("DELETE FROM opinions WHERE run = ?1 AND bout = ?2")?;
            for bout in replayed.iter().chain(&voided) {
                remove_digests.execute(params![run, number(*bout)])?;
            }
            let mut remove = connection.prepare_cached("DELETE FROM bouts WHERE run = ?1 AND bout = ?2")?;
            for bout in replayed {
                remove.execute(params![run, number(bout)])?;
            }
            let mut list =
                connection.prepare_cached("INSERT OR IGNORE INTO voids (run, bout) VALUES (?1, ?2)")?;
            for bout in voided {
                list.execute(params![run, number(bout)])?;
            }
            connection.execute("DELETE FROM cells WHERE run = ?1 AND worker = ?2", params![run, worker])?;
            connection.execute("UPDATE runs SET folded = ?2 WHERE id = ?1", params![run, totals])?;
            Ok(())
        })
        .await
    }

    /// Returns the voided bouts of a run.
    pub async fn voided(&self, run: String) -> Result<Vec<u64>, StoreError> {
        self.write(move |connection| {
            select(connection, "SELECT bout FROM voids WHERE run = ?1 ORDER BY bout", [run], |row| {
                row.get::<_, i64>(0).map(|bout| bout as u64)
            })
        })
        .await
    }
}
