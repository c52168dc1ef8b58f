//! The rows of workers, replica digests and audit entries.

use rusqlite::{Connection, params};

use super::{Audit, ReplicaDigest, Store, StoreError, number, select};
use crate::leases::BoutKey;

/// Inserts a replica digest within a transaction.
pub(super) fn insert_replica_digest(connection: &Connection, row: &ReplicaDigest) -> rusqlite::Result<()> {
    let ReplicaDigest { key, worker, digest } = row;
    connection
        .prepare_cached("INSERT INTO opinions (run, bout, worker, digest) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key.run, number(key.bout), worker, digest])?;
    Ok(())
}

impl Store {
    /// Quarantines a worker, or trusts it again without a reason. Does not wait.
    pub fn set_quarantine(&self, worker: &str, reason: Option<&str>) {
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

    /// Returns the quarantined workers and the reasons.
    pub async fn quarantined(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.write(|connection| {
            select(connection, "SELECT worker, reason FROM quarantine ORDER BY worker", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
        })
        .await
    }

    /// Records that a worker may hold leases.
    pub async fn add_holder(&self, worker: &str) -> Result<(), StoreError> {
        let worker = worker.to_string();
        self.write(move |connection| {
            connection
                .prepare_cached("INSERT OR IGNORE INTO holders (worker) VALUES (?1)")?
                .execute([worker])
                .map(|_| ())
        })
        .await
    }

    /// Records that a worker holds no leases. Does not wait: if it is lost, the next process waits for the worker.
    pub fn remove_holder(&self, worker: &str) {
        let worker = worker.to_string();
        self.post(move |connection| {
            connection.prepare_cached("DELETE FROM holders WHERE worker = ?1")?.execute([worker]).map(|_| ())
        });
    }

    /// Returns the workers that may hold leases.
    pub async fn holders(&self) -> Result<Vec<String>, StoreError> {
        self.write(|connection| {
            select(connection, "SELECT worker FROM holders ORDER BY worker", [], |row| row.get(0))
        })
        .await
    }

    /// Adds the digest of a further worker. Does not wait: if it is lost, the bout is replicated again.
    pub fn add_replica_digest(&self, row: ReplicaDigest) {
        self.post(move |connection| insert_replica_digest(connection, &row));
    }

    /// Removes the digests of a bout. Does not wait: if they stay, the bout is only replicated once more.
    pub fn remove_replica_digests(&self, key: &BoutKey) {
        let key = key.clone();
        self.post(move |connection| {
            connection
                .prepare_cached("DELETE FROM opinions WHERE run = ?1 AND bout = ?2")?
                .execute(params![key.run, number(key.bout)])?;
            Ok(())
        });
    }

    /// Returns the digests of bouts being replicated, in the order in which they were added.
    pub async fn replica_digests(&self) -> Result<Vec<ReplicaDigest>, StoreError> {
        self.write(|connection| {
            select(connection, "SELECT run, bout, worker, digest FROM opinions ORDER BY number", [], |row| {
                let key = BoutKey { run: row.get(0)?, bout: row.get::<_, i64>(1)? as u64 };
                Ok(ReplicaDigest { key, worker: row.get(2)?, digest: row.get(3)? })
            })
        })
        .await
    }

    /// Adds an audit entry, without waiting.
    pub fn audit(&self, entry: Audit) {
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

    /// Returns the latest entries, filtered by worker and run, oldest first.
    pub async fn audits(
        &self,
        worker: Option<String>,
        run: Option<String>,
        limit: u64,
    ) -> Result<Vec<Audit>, StoreError> {
        self.write(move |connection| {
            let mut entries = select(
                connection,
                "SELECT number, at_us, kind, worker, run, bout, text FROM audit
                 WHERE (?1 IS NULL OR worker = ?1) AND (?2 IS NULL OR run = ?2)
                 ORDER BY number DESC LIMIT ?3",
                params![worker, run, number(limit)],
                |row| {
                    Ok(Audit {
                        number: row.get::<_, i64>(0)? as u64,
                        at_us: row.get(1)?,
                        kind: row.get(2)?,
                        worker: row.get(3)?,
                        run: row.get(4)?,
                        bout: row.get::<_, Option<i64>>(5)?.map(|bout| bout as u64),
                        text: row.get(6)?,
                    })
                },
            )?;
            entries.reverse();
            Ok(entries)
        })
        .await
    }
}
