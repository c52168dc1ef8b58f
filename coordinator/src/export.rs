//! Export: committed bouts become immutable parts of the dataset while the run goes on.
//!
//! Which bouts a part has is durable before it is written, and the same bouts make the same bytes under the same name,
//! so that doing it again after a crash changes nothing. A run is described before it has parts, and a bout's moves are
//! published before its games: whoever sees a game sees its moves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agon_proto::{Assembler, Lease, v1};
use agon_records::{BoutColumns, Table};
use agon_schedule::{RunManifest, RunState, Summary, Tuning, run_id};
use prost::Message as _;
use tracing::info;

use crate::leases::BoutKey;
use crate::standings::{Tally, encode_checked, read_summary};
use crate::state::{Coordinator, WriteTarget};
use crate::store::{BoutSummary, StoreError, StoredCell};
use agon_storage::location::{LocationError, in_a_line};
use agon_storage::ownership::OwnerError;

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
    Place(String),
    /// Its address.
    #[error(transparent)]
    Address(#[from] LocationError),
    /// Whose it is.
    #[error(transparent)]
    Owner(#[from] OwnerError),
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
    /// A part that does not read back.
    #[error("a part does not read back: {0}")]
    Read(#[from] agon_records::PartError),
    /// Bouts that were assigned to a part are not in the state.
    #[error(
        "of the bouts {first} to {last}, which are to be written together, only {found} are in the state"
    )]
    Incomplete {
        /// The first of them.
        first: u64,
        /// The last.
        last: u64,
        /// How many there are.
        found: u64,
    },
}

impl ExportError {
    /// Whether it is a matter of one run, so that others can go on.
    fn is_of_one_run(&self) -> bool {
        match self {
            ExportError::Occupied(_)
            | ExportError::Unreadable { .. }
            | ExportError::Records(_)
            | ExportError::Read(_)
            | ExportError::Incomplete { .. } => true,
            ExportError::Store(_)
            | ExportError::Place(_)
            | ExportError::Address(_)
            | ExportError::Owner(_)
            | ExportError::Disk(_) => false,
        }
    }
}

impl From<object_store::Error> for ExportError {
    fn from(error: object_store::Error) -> ExportError {
        ExportError::Place(in_a_line(&error))
    }
}

/// Writes parts as bouts are committed, until the coordinator shuts down. A part that is being written then is finished.
pub(crate) async fn export(coordinator: Arc<Coordinator>, part_bouts: u64) {
    while !coordinator.is_draining() {
        let mut fault = None;
        let mut failed = false;
        for run in coordinator.run_ids() {
            let result = export_run(&coordinator, &run, part_bouts).await;
            failed |= result.is_err();
            match result {
                Ok(()) => coordinator.set_export_fault(&run, None),
                Err(error) if error.is_of_one_run() => {
                    coordinator.set_export_fault(&run, Some(error.to_string()));
                }
                Err(error) => {
                    fault = Some(error.to_string());
                    break;
                }
            }
        }
        coordinator.set_write_fault(WriteTarget::Dataset, fault);
        if failed {
            tokio::time::sleep(RETRY).await;
        } else {
            coordinator.export.notified().await;
        }
    }
}

/// What the exporter needs to know of a run.
struct RunSnapshot {
    state: RunState,
    prefix: u64,
    total: u64,
    exported: u64,
    described: bool,
}

impl RunSnapshot {
    fn take(coordinator: &Coordinator, id: &str) -> Option<RunSnapshot> {
        coordinator.with_run(id, |run| RunSnapshot {
            state: run.state,
            prefix: run.ledger.prefix(),
            total: run.ledger.total(),
            exported: run.exported,
            described: run.described,
        })
    }
}

/// Writes what there is to write of a run, and ends it when that was the last.
async fn export_run(coordinator: &Coordinator, id: &str, part_bouts: u64) -> Result<(), ExportError> {
    let _alone = coordinator.exporting.lock().await;
    let Some(snapshot) = RunSnapshot::take(coordinator, id) else { return Ok(()) };
    if snapshot.exported == snapshot.total && !snapshot.state.is_open() && snapshot.described {
        return Ok(());
    }
    let before = snapshot.exported;
    // 1. A run that the dataset has never heard of could be taken for a new one.
    if !snapshot.described {
        write_run(coordinator, id).await?;
        coordinator.with_run(id, |run| run.described = true);
    }
    // 2. A part that was assigned before; what is done without holes, in full parts; the rest when no more bouts will come.
    finish_part(coordinator, id).await?;
    while !coordinator.is_draining()
        && let Some((first, last)) = next_part(coordinator, id, part_bouts).await?
    {
        coordinator.store.assign_part(id.to_string(), first, last).await?;
        write_part(coordinator, id, first, last).await?;
    }
    // 3. The end.
    let Some(snapshot) = RunSnapshot::take(coordinator, id) else { return Ok(()) };
    if snapshot.state.is_open() && snapshot.exported == snapshot.total {
        coordinator.store.set_state(id.to_string(), RunState::Done, None).await?;
        coordinator.end_run(id, RunState::Done, None, "the run is done");
        info!(run = id, "the run is done");
    } else if !snapshot.state.is_open() {
        // Bouts that were never played are as good as exported.
        mark_exported(coordinator, id, snapshot.total, &[]).await?;
    }
    if snapshot.exported > before || !snapshot.state.is_open() || snapshot.exported == snapshot.total {
        write_run(coordinator, id).await?;
        coordinator.changed();
    }
    Ok(())
}

/// Writes the part that was assigned and is not known to be written, where there is one.
pub(crate) async fn finish_part(coordinator: &Coordinator, id: &str) -> Result<(), ExportError> {
    match coordinator.store.open_part(id.to_string()).await? {
        Some((first, last)) => write_part(coordinator, id, first, last).await,
        None => Ok(()),
    }
}

/// The bouts of the next part, where there is one.
async fn next_part(
    coordinator: &Coordinator,
    id: &str,
    part_bouts: u64,
) -> Result<Option<(u64, u64)>, ExportError> {
    let Some(RunSnapshot { state, prefix, total, exported, .. }) = RunSnapshot::take(coordinator, id) else {
        return Ok(None);
    };
    if state.is_open() {
        let full = prefix >= exported.saturating_add(part_bouts) || (prefix == total && exported < total);
        return Ok(full.then(|| (exported, (exported + part_bouts).min(prefix) - 1)));
    }
    // A run that has ended takes no more bouts: what the store has is all there will be.
    let left = coordinator.store.summaries(id.to_string(), exported, u64::MAX).await?;
    let part = &left[..left.len().min(part_bouts as usize)];
    Ok(part.first().zip(part.last()).map(|(first, last)| (first.bout, last.bout)))
}

async fn write_part(coordinator: &Coordinator, id: &str, first: u64, last: u64) -> Result<(), ExportError> {
    let started = Instant::now();
    let bouts = coordinator.store.summaries(id.to_string(), first, last).await?;
    let found = bouts.len() as u64;
    // Only where a run has ended early are there bouts that nobody played.
    if RunSnapshot::take(coordinator, id).is_some_and(|snapshot| snapshot.state.is_open())
        && found != last - first + 1
    {
        return Err(ExportError::Incomplete { first, last, found });
    }
    let played = played(coordinator, id, &bouts).await?;
    let put = |table: Table, bytes| coordinator.dataset.put_part(table, id, (first, last), bytes);
    let probes: Vec<_> = played.iter().flat_map(|bout| &bout.probes).collect();
    if !probes.is_empty() {
        put(Table::Probes, agon_records::write_probes(probes)?).await?;
    }
    let games: Vec<_> = played.iter().flat_map(|bout| &bout.games).collect();
    if !games.is_empty() {
        put(Table::Moves, agon_records::write_plies(played.iter().map(|bout| &bout.moves))?).await?;
        put(Table::Games, agon_records::write_games(games)?).await?;
    }
    mark_exported(coordinator, id, last + 1, &bouts).await?;
    coordinator.metrics.part_written(started);
    Ok(())
}

/// What workers brought, by pairing and outcome.
pub(crate) type Cells = BTreeMap<(String, u64), [u64; 3]>;

/// What a tally must know of its run.
pub(crate) struct Folding {
    /// The first bout that rates players; those before it are a tune's.
    pub(crate) rated_from: u64,
    /// The bout that decided a sequential test.
    pub(crate) decided: Option<u64>,
}

/// Adds a bout to what is remembered of those that are exported; one without a summary failed.
pub(crate) fn fold(
    folded: &mut Tally,
    cells: &mut Cells,
    how: &Folding,
    bout: u64,
    worker: &str,
    summary: Option<&Summary>,
) {
    match summary {
        Some(summary) => folded.add(summary, bout >= how.rated_from),
        None => folded.add_failed(),
    }
    if bout < how.rated_from {
        folded.note_score(bout, summary.and_then(Summary::half_points));
        return;
    }
    if how.decided.is_none_or(|decided| bout <= decided) {
        folded.test(summary);
    }
    if let Some((pairing, outcome)) = summary.and_then(Summary::cell) {
        cells.entry((worker.to_string(), pairing)).or_default()[outcome] += 1;
    }
}

/// Takes an exported bout that is void out of what is remembered.
pub(crate) fn unfold(folded: &mut Tally, how: &Folding, bout: u64, summary: &Summary) {
    folded.subtract(summary);
    if bout >= how.rated_from && how.decided.is_none_or(|decided| bout <= decided) {
        folded.forget_test(summary);
    }
}

/// The same cells as they are stored.
pub(crate) fn stored_cells(cells: Cells) -> Vec<StoredCell> {
    let stored = |((worker, pairing), outcomes)| StoredCell { worker, pairing, outcomes };
    cells.into_iter().map(stored).collect()
}

/// Lets bouts leave the state for the dataset: only what is counted of them stays.
async fn mark_exported(
    coordinator: &Coordinator,
    id: &str,
    exported: u64,
    bouts: &[BoutSummary],
) -> Result<(), ExportError> {
    let snapshot = coordinator
        .with_run(id, |run| (run.folded.clone(), run.standings.deciding_bout(), run.spec.first_rated_bout()));
    let Some((mut folded, decided, rated_from)) = snapshot else { return Ok(()) };
    let mut cells = Cells::default();
    for row in bouts {
        let how = Folding { rated_from, decided };
        fold(&mut folded, &mut cells, &how, row.bout, &row.worker, read_summary(row).as_ref());
    }
    let cells = stored_cells(cells);
    coordinator.store.part_written(id.to_string(), exported, encode_checked(&folded), cells).await?;
    coordinator.with_run(id, |run| {
        run.exported = exported;
        run.folded = folded;
    });
    Ok(())
}

/// What was played, bout after bout: those that came lately are at hand, the others are read from the state.
async fn played(
    coordinator: &Coordinator,
    id: &str,
    bouts: &[BoutSummary],
) -> Result<Vec<BoutColumns>, ExportError> {
    let mut played = Vec::with_capacity(bouts.len());
    for row in bouts.iter().filter(|row| !row.failed) {
        let key = BoutKey { run: id.to_string(), bout: row.bout };
        played.push(match coordinator.recent.take(&key) {
            Some(bout) => bout,
            None => read_back(coordinator, id, row.bout).await?,
        });
    }
    Ok(played)
}

/// A bout from its stored messages, through the same checks as when they came.
async fn read_back(coordinator: &Coordinator, id: &str, bout: u64) -> Result<BoutColumns, ExportError> {
    let unreadable = |reason: String| ExportError::Unreadable { bout, reason };
    let payload = coordinator.store.payload(id.to_string(), bout).await?;
    let message = v1::Submission::decode_length_delimited(&payload[..]);
    let lease = message.map_err(|error| unreadable(error.to_string()))?.lease;
    let lease = Lease::required(lease).map_err(|error| unreadable(error.to_string()))?;
    let leased =
        coordinator.leased_bout(&lease).ok_or_else(|| unreadable("its run is not known".to_string()))?;
    Assembler::read(leased.0, leased.1, &payload).map_err(|error| unreadable(error.to_string()))
}

/// Bouts that are stored and not yet exported, so that they need not be read back. Losing them loses nothing.
#[derive(Default)]
pub(crate) struct Recent(Mutex<(BTreeMap<BoutKey, BoutColumns>, usize)>);

/// Plies and searches that are kept at most.
const MOST_RECENT: usize = 400_000;

impl Recent {
    /// Keeps a bout, where there is room.
    pub(crate) fn keep(&self, key: BoutKey, bout: BoutColumns) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (bouts, count) = &mut *guard;
        let more = bout.moves.len() + bout.probes.len();
        if *count + more <= MOST_RECENT {
            *count += more;
            bouts.insert(key, bout);
        }
    }

    fn take(&self, key: &BoutKey) -> Option<BoutColumns> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (bouts, count) = &mut *guard;
        let bout = bouts.remove(key)?;
        *count -= bout.moves.len() + bout.probes.len();
        Some(bout)
    }

    /// Forgets a run whose bouts are taken away.
    pub(crate) fn forget(&self, run: &str) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (bouts, count) = &mut *guard;
        bouts.retain(|key, _| key.run != run);
        *count = bouts.values().map(|bout| bout.moves.len() + bout.probes.len()).sum();
    }
}

/// Writes the manifest of a run.
pub(crate) async fn write_run(coordinator: &Coordinator, id: &str) -> Result<(), ExportError> {
    let manifest = coordinator.with_run(id, |run| {
        // An open run counts everything committed; a run that has ended, everything exported.
        let committed = if run.state.is_open() { run.standings.tally() } else { &run.folded };
        RunManifest {
            id: id.to_string(),
            source: run.source.clone(),
            digest: run_id::digest(&run.source).unwrap_or_default(),
            build: run.build.clone(),
            signature: coordinator.signature.clone(),
            game: run.spec.game.to_string(),
            players: run.spec.players.iter().map(|player| player.name.clone()).collect(),
            seed: run.spec.seed,
            bouts: run.ledger.total(),
            committed: committed.bouts,
            failed: committed.failed,
            games: committed.games,
            state: run.state,
            submitted_us: run.submitted_us,
            abandoned: run.abandoned,
            deciding_bout: run.decided,
            priority: run.priority,
            voided: run.voided.iter().copied().collect(),
            tune: run.schedule.tuning().map(Tuning::manifest),
        }
    });
    if let Some(manifest) = manifest {
        let text = serde_json::to_string_pretty(&manifest).expect("a manifest is plain data");
        coordinator.dataset.put_description(id, text + "\n").await?;
    }
    Ok(())
}
