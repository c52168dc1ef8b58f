//! Export: committed bouts become immutable parts of the dataset while the run goes on.
//!
//! Which bouts a part has is durable before it is written, and the same bouts make the same bytes under the same name,
//! so that doing it again after a crash changes nothing. A bout's moves are published before its games: whoever sees a
//! game sees its moves.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agon_proto::{Assembled, Assembler, Lease, v1};
use agon_records::BoutRows;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use prost::Message as _;
use serde_json::json;
use tracing::{info, warn};

use crate::hall::{Hall, Obstacle};
use crate::store::{RunState, StoreError};

/// How long a store that does not answer is left alone before it is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Why a part could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The state.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The place of the dataset.
    #[error("the dataset cannot be written: {0}")]
    Place(#[from] object_store::Error),
    /// The local disk.
    #[error("the dataset cannot be written: {0}")]
    Disk(#[from] std::io::Error),
    /// Something else is there.
    #[error(
        "`{0}` is there with other bytes, and no part is ever rewritten; move it away if it does not belong here"
    )]
    Occupied(String),
    /// A stored bout does not read back.
    #[error("bout {bout} does not read back: {reason}")]
    Unreadable {
        /// Its number.
        bout: u64,
        /// Why.
        reason: String,
    },
    /// Rows that are no table.
    #[error(transparent)]
    Records(#[from] agon_records::WriteError),
}

/// Where the dataset lies.
pub struct Dataset {
    store: Arc<dyn ObjectStore>,
    /// The folder, where it is a local one: what is put there is also synced.
    folder: Option<PathBuf>,
}

impl Dataset {
    /// A local folder, which must exist.
    pub fn local(folder: PathBuf) -> Result<Dataset, ExportError> {
        let store = object_store::local::LocalFileSystem::new_with_prefix(&folder)?;
        Ok(Dataset { store: Arc::new(store), folder: Some(folder) })
    }

    /// Puts a part that has never been there, or is there already with the same bytes.
    async fn put_once(&self, name: &str, bytes: Vec<u8>) -> Result<(), ExportError> {
        let path = Path::from(name);
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&path, bytes.clone().into(), options).await {
            Ok(_) => {}
            Err(object_store::Error::AlreadyExists { .. }) => {
                let known = self.store.get(&path).await?.bytes().await?;
                if known != bytes {
                    return Err(ExportError::Occupied(name.to_string()));
                }
            }
            Err(error) => return Err(error.into()),
        }
        self.sync(name)
    }

    /// Puts something that changes.
    async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), ExportError> {
        self.store.put(&Path::from(name), bytes.into()).await?;
        self.sync(name)
    }

    /// Waits until a local file and its name are on disk.
    fn sync(&self, name: &str) -> Result<(), ExportError> {
        if let Some(folder) = &self.folder {
            let file = folder.join(name);
            std::fs::File::open(&file)?.sync_all()?;
            for above in file.ancestors().skip(1) {
                std::fs::File::open(above)?.sync_all()?;
                if above == folder {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Writes parts as bouts are committed, for as long as the coordinator lives.
pub(crate) async fn export(hall: Arc<Hall>, dataset: Dataset, part_bouts: u64) {
    loop {
        for run in hall.run_ids() {
            while let Err(error) = export_run(&hall, &dataset, &run, part_bouts).await {
                warn!(run, %error, "a part could not be written; it is tried again");
                hall.set_obstacle(Obstacle::Dataset, Some(format!("{run}: {error}")));
                tokio::time::sleep(RETRY).await;
            }
            hall.set_obstacle(Obstacle::Dataset, None);
        }
        hall.export.notified().await;
    }
}

/// Writes what there is to write of a run, and ends it when that was the last.
async fn export_run(hall: &Hall, dataset: &Dataset, id: &str, part_bouts: u64) -> Result<(), ExportError> {
    let look = hall.with_run(id, |run| (run.state, run.ledger.prefix(), run.ledger.total(), run.exported));
    let Some((state, prefix, total, exported)) = look else { return Ok(()) };
    if state == RunState::Done || (state != RunState::Running && exported == total) {
        return Ok(());
    }
    // 1. Parts that were assigned before a crash.
    let parts = hall.store.parts(id.to_string()).await?;
    let mut next = 0;
    for (first, last, written) in parts {
        if !written {
            write_part(hall, dataset, id, first, last).await?;
        }
        next = last + 1;
    }
    // 2. Full parts of the prefix; the rest when no more bouts will come.
    let over = state != RunState::Running || prefix == total;
    let end = if state == RunState::Running { prefix } else { total };
    while next < end && (over || end - next >= part_bouts) {
        let last = (next + part_bouts).min(end) - 1;
        hall.store.assign_part(id.to_string(), next, last).await?;
        write_part(hall, dataset, id, next, last).await?;
        next = last + 1;
    }
    hall.with_run(id, |run| run.exported = next);
    // 3. The end.
    if state == RunState::Running && prefix == total && next == total {
        hall.store.set_state(id.to_string(), RunState::Done, None).await?;
        hall.end_run(id, RunState::Done, None, "the run is done");
        info!(run = id, "the run is done");
    }
    write_run(hall, dataset, id).await?;
    hall.changed();
    Ok(())
}

async fn write_part(
    hall: &Hall,
    dataset: &Dataset,
    id: &str,
    first: u64,
    last: u64,
) -> Result<(), ExportError> {
    let payloads = hall.store.payloads(id.to_string(), first, last).await?;
    let mut rows = BoutRows::default();
    for (bout, payload) in payloads {
        let unreadable = |reason: String| ExportError::Unreadable { bout, reason };
        let more = read_back(hall, &payload).map_err(unreadable)?;
        rows.games.extend(more.games);
        rows.moves.extend(more.moves);
        rows.probes.extend(more.probes);
    }
    let name = |table: &str| format!("{table}/run={id}/part-{first:010}-{last:010}.parquet");
    if !rows.probes.is_empty() {
        dataset.put_once(&name("probes"), agon_records::write_probes(&rows.probes)?).await?;
    }
    if !rows.games.is_empty() {
        dataset.put_once(&name("moves"), agon_records::write_moves(&rows.moves)?).await?;
        dataset.put_once(&name("games"), agon_records::write_games(&rows.games)?).await?;
    }
    hall.store.part_written(id.to_string(), first, last).await?;
    Ok(())
}

/// The rows of a bout from its stored messages, through the same checks as when they came.
fn read_back(hall: &Hall, mut payload: &[u8]) -> Result<BoutRows, String> {
    let mut assembler: Option<Assembler> = None;
    while !payload.is_empty() {
        let message =
            v1::Submission::decode_length_delimited(&mut payload).map_err(|error| error.to_string())?;
        if assembler.is_none() {
            let lease = Lease::required(message.lease.clone()).map_err(|error| error.to_string())?;
            let (spec, bout, _) = hall.lent(&lease).ok_or_else(|| "its run is not known".to_string())?;
            assembler = Some(Assembler::new(spec, bout).map_err(|error| error.to_string())?);
        }
        let outcome = match &mut assembler {
            Some(assembler) => assembler.accept(message).map_err(|error| error.to_string())?,
            None => None,
        };
        if let Some(Assembled::Whole(whole)) = outcome {
            return Ok(whole.rows);
        }
    }
    Err("its messages have no end".to_string())
}

/// What a reader of the dataset needs to know of a run.
async fn write_run(hall: &Hall, dataset: &Dataset, id: &str) -> Result<(), ExportError> {
    let told = hall.with_run(id, |run| {
        let digest = run.source.canonical().map(|text| blake3::hash(text.as_bytes()).to_hex().to_string());
        json!({
            "run": id,
            "spec": run.source.text,
            "files": run.source.files,
            "digest": digest.unwrap_or_default(),
            "build": env!("CARGO_PKG_VERSION"),
            "signature": hall.signature,
            "game": run.spec.game.to_string(),
            "players": run.spec.players.iter().map(|player| player.name.as_str()).collect::<Vec<_>>(),
            "seed": run.spec.seed,
            "bouts": run.ledger.total(),
            "committed": run.ledger.done(),
            "failed": run.failed,
            "games": run.standings.games(),
            "state": run.state.name(),
            "submitted_us": run.submitted_us,
            "abandoned": run.abandoned,
            "deciding_bout": run.decided,
            "voided": [],
        })
    });
    if let Some(told) = told {
        let text = serde_json::to_string_pretty(&told).expect("a run is plain data");
        dataset.put(&format!("runs/{id}.json"), (text + "\n").into_bytes()).await?;
    }
    Ok(())
}
