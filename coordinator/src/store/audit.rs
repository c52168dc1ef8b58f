//! Who is set aside, and what operators may want to read.

use rusqlite::{Connection, params};

use super::{Audit, Opinion, Store, StoreError, number};
use crate::leases::BoutKey;

/// Adds an opinion within a transaction.
pub(super) fn put_opinion(connection: &Connection, opinion: &Opinion) -> rusqlite::Result<()> {
    let Opinion { key, worker, digest } = opinion;
    connection
        .prepare_cached("INSERT INTO opinions (run, bout, worker, digest) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key.run, number(key.bout), worker, digest])?;
    Ok(())
}

impl Store {
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

    /// Keeps what a further worker said of a bout. Nobody waits for it: where it is lost, the worker is asked again.
    pub fn note_opinion(&self, opinion: Opinion) {
        self.post(move |connection| put_opinion(connection, &opinion));
    }

    /// Lets go what was said of a bout. Nobody waits for it: where it stays, the bout is only played once more.
    pub fn forget_opinions(&self, key: &BoutKey) {
        let key = key.clone();
        self.post(move |connection| {
            connection
                .prepare_cached("DELETE FROM opinions WHERE run = ?1 AND bout = ?2")?
                .execute(params![key.run, number(key.bout)])?;
            Ok(())
        });
    }

    /// What was said of bouts that wait for another worker's word, in its order.
    pub async fn opinions(&self) -> Result<Vec<Opinion>, StoreError> {
        self.write(|connection| {
            let mut statement =
                connection.prepare("SELECT run, bout, worker, digest FROM opinions ORDER BY number")?;
            let rows = statement.query_map([], |row| {
                let key = BoutKey { run: row.get(0)?, bout: row.get::<_, i64>(1)? as u64 };
                Ok(Opinion { key, worker: row.get(2)?, digest: row.get(3)? })
            })?;
            rows.collect()
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
