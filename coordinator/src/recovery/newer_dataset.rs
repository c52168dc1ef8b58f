//! Catching up with a newer dataset: a state restored from a backup takes over what the dataset has beyond it.
//!
//! Bouts in the dataset are final and not replayed. Parts are exported in bout order, so bouts below the end of a part
//! that have no rows failed or, in a run that ended early, were never played. Bouts committed after the backup and not
//! exported are lost and replayed; moves of such bouts whose games were not written yet are removed.

use std::collections::{BTreeMap, BTreeSet};

use agon_arena::Spec;
use agon_records::{BoutColumns, BoutRows};
use agon_schedule::RunManifest;
use agon_storage::summarise;
use tracing::warn;

use crate::audit::{AuditKind, Entry};
use crate::dataset::Dataset;
use crate::export::{Cells, ExportError, FoldRules, fold, stored_cells, unfold};
use crate::standings::encode_checked;
use crate::state::{Coordinator, OPEN, stored_totals};
use crate::store::{Store, StoredRun};

/// Adds to the store what only the dataset has. Returns the runs that this build cannot read; their ids stay taken.
pub(super) async fn catch_up(coordinator: &Coordinator) -> Result<BTreeSet<String>, ExportError> {
    let stored = coordinator.store.runs().await?;
    let mut known: BTreeMap<String, StoredRun> =
        stored.into_iter().map(|run| (run.id.clone(), run)).collect();
    let mut unreadable = BTreeSet::new();
    for (id, text) in coordinator.dataset.manifests().await? {
        let stored = known.remove(&id);
        match read_manifest(&text) {
            Ok((manifest, spec)) => catch_up_run(coordinator, &id, stored, &manifest, &spec).await?,
            Err(reason) => {
                warn!(run = id, reason, "manifest unreadable");
                if stored.is_none() {
                    unreadable.insert(id);
                }
            }
        }
    }
    Ok(unreadable)
}

/// Reads the manifest of a run and its spec.
fn read_manifest(text: &[u8]) -> Result<(RunManifest, Spec), String> {
    let manifest: RunManifest = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let spec = manifest.spec().map_err(|error| error.to_string())?;
    Ok((manifest, spec))
}

/// Adds to a run what only the dataset has.
async fn catch_up_run(
    coordinator: &Coordinator,
    id: &str,
    stored: Option<StoredRun>,
    manifest: &RunManifest,
    spec: &Spec,
) -> Result<(), ExportError> {
    let Coordinator { store, dataset, .. } = coordinator;
    let is_new = stored.is_none();
    let run = stored.unwrap_or_else(|| StoredRun {
        id: id.to_string(),
        text: manifest.source.text.clone(),
        files: serde_json::to_string(&manifest.source.files).expect("a map of strings is valid JSON"),
        state: Some(manifest.state).filter(|state| state.is_open()).unwrap_or_default(),
        submitted_us: manifest.submitted_us,
        signature: manifest.signature.clone(),
        priority: manifest.priority,
        build: manifest.build.clone(),
        ..StoredRun::default()
    });
    let ended = Some(manifest.state).filter(|state| !state.is_open() && run.state.is_open());
    let known: BTreeSet<u64> = store.voided(id.to_string()).await?.into_iter().collect();
    let voided: BTreeSet<u64> =
        manifest.voided.iter().copied().filter(|bout| !known.contains(bout)).collect();
    // A run that has ended and is exported can only have new voids.
    let parts = if run.state.is_open() || run.exported < manifest.bouts {
        newer_parts(store, dataset, &run).await?
    } else {
        Vec::new()
    };
    if !is_new && ended.is_none() && voided.is_empty() && parts.is_empty() {
        return Ok(());
    }
    if is_new {
        store.add_run(run.clone()).await?;
    }
    store.raise_abandoned(id, manifest.abandoned);
    let mut totals = stored_totals(&run).unwrap_or_default();
    let before = totals.bouts;
    let decided = manifest.deciding_bout.or(run.decided);
    let how = FoldRules { rated_from: spec.first_rated_bout(), decided };
    let mut exported = run.exported;
    // 1. Fold the parts that the state does not know.
    for (first, last) in parts {
        let rows = dataset.rows(id, first, last).await?;
        let mut cells = Cells::default();
        for bout in exported..=last {
            match rows.get(&bout) {
                Some(rows) => {
                    let summary = summarise(spec, &BoutColumns::from(rows));
                    fold(&mut totals, &mut cells, &how, bout, &worker(rows), Some(&summary));
                }
                None if ended.unwrap_or(run.state).has_no_holes() => {
                    fold(&mut totals, &mut cells, &how, bout, "", None);
                }
                None => {}
            }
        }
        exported = last + 1;
        store.part_written(id.to_string(), exported, encode_checked(&totals), stored_cells(cells)).await?;
    }
    let taken = totals.bouts.saturating_sub(before);
    // 2. Remove the voided bouts.
    let mut void = Vec::new();
    for (bout, summary) in
        dataset.bouts(spec, id, |bout, _| bout < exported && voided.contains(&bout)).await?
    {
        unfold(&mut totals, &how, bout, &summary);
        void.push(bout);
    }
    store.void(id.to_string(), String::new(), Vec::new(), void.clone(), encode_checked(&totals)).await?;
    // 3. End the run. If it ended early, only the number of its failed bouts is known.
    if let Some(state) = ended {
        for _ in totals.failed..manifest.failed {
            totals.add_failed();
        }
        store.part_written(id.to_string(), exported, encode_checked(&totals), Vec::new()).await?;
        store.move_state(id.to_string(), OPEN, state, manifest.deciding_bout).await?;
    }
    let text = format!(
        "the dataset was ahead of the state: {taken} bouts were taken from it, and {} of its bouts are void",
        void.len()
    );
    warn!(run = id, bouts = taken, voided = void.len(), "run caught up with dataset");
    coordinator.audit(Entry::new(AuditKind::Adopted, text).run(id));
    Ok(())
}

/// Returns the parts that the state does not know, after removing moves whose games were never written.
async fn newer_parts(
    store: &Store,
    dataset: &Dataset,
    run: &StoredRun,
) -> Result<Vec<(u64, u64)>, ExportError> {
    let unfinished = store.open_part(run.id.clone()).await?;
    let dropped = dataset.drop_unfinished(&run.id, unfinished).await?;
    if dropped > 0 {
        warn!(run = run.id, parts = dropped, "removed moves without games; their bouts are replayed");
    }
    let finished = dataset.finished_parts(&run.id).await?.into_iter();
    let newer: Vec<(u64, u64)> = finished.filter(|(first, _)| *first >= run.exported).collect();
    // The exporter finishes a part that the earlier process was writing.
    Ok(if newer[..] == *unfinished.as_slice() { Vec::new() } else { newer })
}

/// Returns the worker that played a bout.
fn worker(rows: &BoutRows) -> String {
    rows.games.first().map(|game| game.worker.clone()).unwrap_or_default()
}
