//! Reading the state file, beside its writer.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agon_schedule::RunState;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Audit, ReplicaDigest, StoreError, StoredBout, StoredCell, StoredRun, backup, number, select};
use crate::durable::Conviction;
use crate::leases::BoutKey;
use crate::verification::replication::Opinion;

/// A read-only connection to a state file.
pub struct Reader(Mutex<Connection>);

impl Reader {
    /// Opens the state at `path`.
    pub(crate) fn open(path: &Path) -> Result<Reader, StoreError> {
        Ok(Reader(Mutex::new(backup::open_read_only(path)?)))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the secret that proves leases.
    pub(crate) fn secret(&self) -> Result<[u8; 32], StoreError> {
        Ok(self.connection().query_row("SELECT secret FROM meta", [], |row| row.get(0))?)
    }

    /// Returns all runs in order of submission.
    pub fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        let sql = "SELECT id, text, files, state, submitted_us, signature, decided, priority, exported, folded, build,
                          abandoned, granted
                   FROM runs ORDER BY number";
        let runs = select(&self.connection(), sql, [], |row| {
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
        });
        Ok(runs?)
    }

    /// Returns the bouts of a run without their messages, in order.
    pub fn bouts(&self, run: &str) -> Result<Vec<StoredBout>, StoreError> {
        let sql = "SELECT bout, worker, digest, summary, failure IS NOT NULL FROM bouts WHERE run = ?1 ORDER BY bout";
        let bouts = select(&self.connection(), sql, [run], |row| {
            Ok(StoredBout {
                bout: row.get::<_, i64>(0)? as u64,
                worker: row.get(1)?,
                digest: row.get(2)?,
                summary: row.get(3)?,
                failed: row.get(4)?,
            })
        });
        Ok(bouts?)
    }

    /// Returns the messages of a bout; empty if it is not stored or failed.
    pub fn payload(&self, run: &str, bout: u64) -> Result<Vec<u8>, StoreError> {
        let payload = self
            .connection()
            .prepare_cached("SELECT payload FROM bouts WHERE run = ?1 AND bout = ?2")?
            .query_row(params![run, number(bout)], |row| row.get(0))
            .optional()?;
        Ok(payload.unwrap_or_default())
    }

    /// Returns the part of a run that is assigned but not marked as written.
    pub fn open_part(&self, run: &str) -> Result<Option<(u64, u64)>, StoreError> {
        let part = self
            .connection()
            .prepare_cached("SELECT first, last FROM parts WHERE run = ?1")?
            .query_row([run], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))
            .optional();
        Ok(part?)
    }

    /// Returns the outcomes of the exported bouts of a run by worker and pairing.
    pub fn cells(&self, run: &str) -> Result<Vec<StoredCell>, StoreError> {
        let sql = "SELECT worker, pairing, won, lost, drawn FROM cells WHERE run = ?1 ORDER BY worker";
        let cells = select(&self.connection(), sql, [run], |row| {
            let count = |index: usize| row.get::<_, i64>(index).map(|count| count as u64);
            Ok(StoredCell {
                worker: row.get(0)?,
                pairing: count(1)?,
                outcomes: [count(2)?, count(3)?, count(4)?],
            })
        });
        Ok(cells?)
    }

    /// Returns the voided bouts of a run.
    pub fn voided(&self, run: &str) -> Result<Vec<u64>, StoreError> {
        let sql = "SELECT bout FROM voids WHERE run = ?1 ORDER BY bout";
        Ok(select(&self.connection(), sql, [run], |row| row.get::<_, i64>(0).map(|bout| bout as u64))?)
    }

    /// Returns the quarantined workers and the reasons.
    pub fn quarantined(&self) -> Result<Vec<(String, String)>, StoreError> {
        let sql = "SELECT worker, reason FROM quarantine ORDER BY worker";
        Ok(select(&self.connection(), sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// Returns the workers that may hold leases.
    pub fn holders(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT worker FROM holders ORDER BY worker";
        Ok(select(&self.connection(), sql, [], |row| row.get(0))?)
    }

    /// Returns the digests of bouts being replicated, in the order in which they were added.
    pub(crate) fn replica_digests(&self) -> Result<Vec<ReplicaDigest>, StoreError> {
        let sql = "SELECT run, bout, worker, credential, digest FROM opinions ORDER BY number";
        let digests = select(&self.connection(), sql, [], |row| {
            let key = BoutKey { run: row.get(0)?, bout: row.get::<_, i64>(1)? as u64 };
            let opinion = Opinion { worker: row.get(2)?, credential: row.get(3)?, digest: row.get(4)? };
            Ok(ReplicaDigest { key, opinion })
        });
        Ok(digests?)
    }

    /// Returns the credentials of workers, and how many of their bouts other credentials confirmed.
    pub fn credentials(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let sql = "SELECT credential, confirmed FROM credentials ORDER BY credential";
        let credentials =
            select(&self.connection(), sql, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)));
        Ok(credentials?)
    }

    /// Returns the workers that have connected, with their credentials.
    pub fn workers(&self) -> Result<Vec<(String, String)>, StoreError> {
        let sql = "SELECT worker, credential FROM workers ORDER BY worker";
        Ok(select(&self.connection(), sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// Returns the convicted workers whose bouts are not voided yet.
    pub(crate) fn convictions(&self) -> Result<Vec<Conviction>, StoreError> {
        let sql = "SELECT worker, credential FROM convictions ORDER BY worker";
        let conviction =
            |row: &rusqlite::Row<'_>| Ok(Conviction { worker: row.get(0)?, credential: row.get(1)? });
        Ok(select(&self.connection(), sql, [], conviction)?)
    }

    /// Returns the latest audit entries, filtered by worker and run, oldest first.
    pub fn audits(
        &self,
        worker: Option<&str>,
        run: Option<&str>,
        limit: u64,
    ) -> Result<Vec<Audit>, StoreError> {
        let sql = "SELECT number, at_us, kind, worker, run, bout, text FROM audit
                   WHERE (?1 IS NULL OR worker = ?1) AND (?2 IS NULL OR run = ?2)
                   ORDER BY number DESC LIMIT ?3";
        let mut entries = select(&self.connection(), sql, params![worker, run, number(limit)], |row| {
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
        entries.reverse();
        Ok(entries)
    }
}
