//! How each event is written.

use rusqlite::{Connection, params};

use super::{ReplicaDigest, StoredCell, StoredRun, number};
use crate::audit::Entry;
use crate::durable::{Confirmation, Conviction, Event};
use crate::leases::BoutKey;
use crate::receipt::NewBout;
use crate::standings::{RunTotals, encode_checked};
use crate::state::now_us;
use crate::verification::replication::Opinion;

/// Writes an event within a transaction.
pub(super) fn write(connection: &Connection, event: &Event) -> rusqlite::Result<()> {
    let run_once = |sql: &str, params: &[&dyn rusqlite::ToSql]| {
        connection.prepare_cached(sql)?.execute(params).map(|_| ())
    };
    match event {
        Event::RunAdded { stored, .. } => insert_run(connection, stored),
        Event::BoutCommitted(bout) => insert_bout(connection, bout),
        Event::RunStateChanged { run, to, decided } => run_once(
            "UPDATE runs SET state = ?2, decided = ?3 WHERE id = ?1",
            params![run, to.name(), decided.map(number)],
        ),
        Event::Prioritised { run, priority } => {
            run_once("UPDATE runs SET priority = ?2 WHERE id = ?1", params![run, priority])
        }
        Event::LeasesExpired { run, bouts } => {
            run_once("UPDATE runs SET abandoned = abandoned + ?2 WHERE id = ?1", params![run, number(*bouts)])
        }
        Event::Reserved { run, end } => {
            run_once("UPDATE runs SET granted = max(granted, ?2) WHERE id = ?1", params![run, number(*end)])
        }
        Event::PartAssigned { run, first, last } => run_once(
            "INSERT INTO parts (run, first, last) VALUES (?1, ?2, ?3)",
            params![run, number(*first), number(*last)],
        ),
        Event::PartWritten { run, exported, totals, cells } => {
            finish_part(connection, run, *exported, totals, cells)
        }
        Event::Voided { run, worker, replayed, voided, totals } => {
            for bout in replayed.iter().chain(voided) {
                remove_replica_digests(connection, run, *bout)?;
            }
            for bout in replayed {
                run_once("DELETE FROM bouts WHERE run = ?1 AND bout = ?2", params![run, number(*bout)])?;
            }
            for bout in voided {
                let sql = "INSERT OR IGNORE INTO voids (run, bout) VALUES (?1, ?2)";
                run_once(sql, params![run, number(*bout)])?;
            }
            run_once("DELETE FROM cells WHERE run = ?1 AND worker = ?2", params![run, worker])?;
            set_totals(connection, run, totals)
        }
        Event::Proposed { run, totals, .. } => set_totals(connection, run, totals),
        Event::ReplicaReceived { replica, disputed } => {
            if *disputed {
                insert_replica_digest(connection, replica)
            } else {
                Ok(())
            }
        }
        Event::ReplicationClosed { key, confirmed } => {
            remove_replica_digests(connection, &key.run, key.bout)?;
            let Some(Confirmation { credential: Some(credential), .. }) = confirmed else { return Ok(()) };
            run_once(
                "INSERT INTO credentials (credential, confirmed) VALUES (?1, 1)
                 ON CONFLICT (credential) DO UPDATE SET confirmed = confirmed + 1",
                params![credential],
            )
        }
        Event::Quarantined { worker, reason } => run_once(
            "INSERT INTO quarantine (worker, reason) VALUES (?1, ?2)
             ON CONFLICT (worker) DO UPDATE SET reason = reason || '; ' || excluded.reason",
            params![worker, reason],
        ),
        Event::QuarantineLifted { worker } => {
            run_once("DELETE FROM quarantine WHERE worker = ?1", params![worker])
        }
        Event::LeaseHolderAdded { worker } => {
            run_once("INSERT OR IGNORE INTO holders (worker) VALUES (?1)", params![worker])
        }
        Event::LeaseHolderRemoved { worker } => {
            run_once("DELETE FROM holders WHERE worker = ?1", params![worker])
        }
        Event::WorkerSeen { worker, credential } => {
            let sql = "INSERT OR IGNORE INTO credentials (credential, confirmed) VALUES (?1, 0)";
            run_once(sql, params![credential])?;
            let sql = "INSERT OR IGNORE INTO workers (worker, credential) VALUES (?1, ?2)";
            run_once(sql, params![worker, credential])
        }
        Event::WorkersForgotten { credential, workers } => {
            let sql = "DELETE FROM workers WHERE credential = ?1 AND worker = ?2";
            workers.iter().try_for_each(|worker| run_once(sql, params![credential, worker]))
        }
        Event::CellsForgotten { run } => run_once("DELETE FROM cells WHERE run = ?1", params![run]),
        Event::ConfirmationsVoided { credential } => {
            run_once("UPDATE credentials SET confirmed = 0 WHERE credential = ?1", params![credential])
        }
        Event::Convicted(Conviction { worker, credential }) => run_once(
            "INSERT OR IGNORE INTO convictions (worker, credential) VALUES (?1, ?2)",
            params![worker, credential],
        ),
        Event::ConvictionClosed(Conviction { worker, credential }) => run_once(
            "DELETE FROM convictions WHERE worker = ?1 AND credential = ?2",
            params![worker, credential],
        ),
        Event::Audited(Entry { kind, worker, run, bout, text }) => run_once(
            "INSERT INTO audit (at_us, kind, worker, run, bout, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![now_us(), kind.name(), worker, run, bout.map(number), text],
        ),
    }
}

/// Inserts a run.
pub(super) fn insert_run(connection: &Connection, run: &StoredRun) -> rusqlite::Result<()> {
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
            number(run.exported),
            run.totals,
            run.build,
            number(run.abandoned),
            number(run.granted)
        ],
    )?;
    Ok(())
}

/// Inserts a bout, and its digest if other workers replicate it.
pub(super) fn insert_bout(connection: &Connection, bout: &NewBout) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO bouts (run, bout, worker, digest, summary, payload, failure)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            bout.run,
            number(bout.bout),
            bout.worker,
            bout.digest,
            bout.summary.as_ref().map(encode_checked).unwrap_or_default(),
            bout.payload,
            bout.failure,
        ])?;
    if let Some(opinion) = bout.opinion().filter(|_| bout.needs_replica) {
        let key = BoutKey { run: bout.run.clone(), bout: bout.bout };
        insert_replica_digest(connection, &ReplicaDigest { key, opinion })?;
    }
    Ok(())
}

fn insert_replica_digest(connection: &Connection, row: &ReplicaDigest) -> rusqlite::Result<()> {
    let ReplicaDigest { key, opinion: Opinion { worker, credential, digest } } = row;
    connection
        .prepare_cached(
            "INSERT INTO opinions (run, bout, worker, credential, digest) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![key.run, number(key.bout), worker, credential, digest])?;
    Ok(())
}

fn remove_replica_digests(connection: &Connection, run: &str, bout: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM opinions WHERE run = ?1 AND bout = ?2")?
        .execute(params![run, number(bout)])?;
    Ok(())
}

fn set_totals(connection: &Connection, run: &str, totals: &RunTotals) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE runs SET folded = ?2 WHERE id = ?1")?
        .execute(params![run, encode_checked(totals)])?;
    Ok(())
}

/// Removes the bouts below `exported` and stores the totals and cells that replace them.
fn finish_part(
    connection: &Connection,
    run: &str,
    exported: u64,
    totals: &RunTotals,
    cells: &[StoredCell],
) -> rusqlite::Result<()> {
    let key = params![run, number(exported)];
    connection.execute("DELETE FROM parts WHERE run = ?1 AND last < ?2", key)?;
    connection.execute("DELETE FROM bouts WHERE run = ?1 AND bout < ?2", key)?;
    connection.execute("UPDATE runs SET exported = ?2 WHERE id = ?1", key)?;
    set_totals(connection, run, totals)?;
    let mut add = connection.prepare_cached(
        "INSERT INTO cells (run, worker, pairing, won, lost, drawn) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (run, worker, pairing) DO UPDATE
         SET won = won + excluded.won, lost = lost + excluded.lost, drawn = drawn + excluded.drawn",
    )?;
    for StoredCell { worker, pairing, outcomes } in cells {
        let [won, lost, drawn] = outcomes.map(number);
        add.execute(params![run, worker, number(*pairing), won, lost, drawn])?;
    }
    Ok(())
}
