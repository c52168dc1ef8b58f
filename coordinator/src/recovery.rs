//! A state that is older than its dataset: what the dataset has beyond it is taken from there.
//!
//! A state that was restored from a backup does not know what was exported, handed in or voided since. Bouts that are in the
//! dataset are not played again: parts are never rewritten, and what they have is final. Exports go from the first bout on,
//! so that a part says everything of the bouts before its end: those that have no rows failed, or, in a run that was ended
//! early, were never played. What was committed and not exported after the backup is lost, and is played again; moves of
//! such bouts that were written while their games were not are removed.

use std::collections::{BTreeMap, BTreeSet};

use agon_arena::Spec;
use agon_records::{BoutColumns, BoutRows};
use agon_schedule::RunManifest;
use agon_storage::summarise;
use tracing::warn;

use crate::audit::{AuditKind, Entry};
use crate::dataset::Dataset;
use crate::export::{Cells, ExportError, Folding, fold, stored_cells, unfold};
use crate::standings::encode_checked;
use crate::state::persisted_tally;
use crate::store::{Store, StoredRun};

/// Takes what the dataset knows beyond a state. The answer is the runs that this program does not understand, which nobody
/// may begin anew.
pub(crate) async fn recover(store: &Store, dataset: &Dataset) -> Result<BTreeSet<String>, ExportError> {
    let mut known: BTreeMap<String, StoredRun> =
        store.runs().await?.into_iter().map(|run| (run.id.clone(), run)).collect();
    let mut unreadable = BTreeSet::new();
    for (id, text) in dataset.descriptions().await? {
        let stored = known.remove(&id);
        match understood(&text) {
            Ok((manifest, spec)) => recover_run(store, dataset, &id, stored, &manifest, &spec).await?,
            Err(reason) => {
                warn!(run = id, reason, "a run of the dataset is not understood and is left alone");
                if stored.is_none() {
                    unreadable.insert(id);
                }
            }
        }
    }
    Ok(unreadable)
}

/// Returns the manifest of a run and its spec, or why this program cannot read them.
fn understood(text: &[u8]) -> Result<(RunManifest, Spec), String> {
    let manifest: RunManifest = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let spec = manifest.spec().map_err(|error| error.to_string())?;
    Ok((manifest, spec))
}

async fn recover_run(
    store: &Store,
    dataset: &Dataset,
    id: &str,
    stored: Option<StoredRun>,
    manifest: &RunManifest,
    spec: &Spec,
) -> Result<(), ExportError> {
    let is_new = stored.is_none();
    let run = stored.unwrap_or_else(|| StoredRun {
        id: id.to_string(),
        text: manifest.source.text.clone(),
        files: serde_json::to_string(&manifest.source.files).expect("texts by texts"),
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
    // Of a run that is over and exported nothing can have come since but that bouts of it are void.
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
    let mut tally = persisted_tally(&run).unwrap_or_default();
    let before = tally.bouts;
    let decided = manifest.deciding_bout.or(run.decided);
    let how = Folding { rated_from: spec.first_rated_bout(), decided };
    let mut exported = run.exported;
    // 1. The parts beyond what the state knows, in their order.
    for (first, last) in parts {
        let rows = dataset.rows(id, first, last).await?;
        let mut cells = Cells::default();
        for bout in exported..=last {
            match rows.get(&bout) {
                Some(rows) => {
                    let summary = summarise(spec, &BoutColumns::from(rows));
                    fold(&mut tally, &mut cells, &how, bout, &worker(rows), Some(&summary));
                }
                None if ended.unwrap_or(run.state).has_no_holes() => {
                    fold(&mut tally, &mut cells, &how, bout, "", None);
                }
                None => {}
            }
        }
        exported = last + 1;
        store.part_written(id.to_string(), exported, encode_checked(&tally), stored_cells(cells)).await?;
    }
    let taken = tally.bouts.saturating_sub(before);
    // 2. What is void by now.
    let mut void = Vec::new();
    for (bout, summary) in
        dataset.bouts(spec, id, |bout, _| bout < exported && voided.contains(&bout)).await?
    {
        unfold(&mut tally, &how, bout, &summary);
        void.push(bout);
    }
    store.void(id.to_string(), String::new(), Vec::new(), void.clone(), encode_checked(&tally)).await?;
    // 3. How it ended, if it did; of the bouts that failed in a run that was ended early only the number is known.
    if let Some(state) = ended {
        for _ in tally.failed..manifest.failed {
            tally.add_failed();
        }
        store.part_written(id.to_string(), exported, encode_checked(&tally), Vec::new()).await?;
        store.set_state(id.to_string(), state, manifest.deciding_bout).await?;
    }
    // 4. Somebody may wonder.
    let text = format!(
        "the dataset was ahead of the state: {taken} bouts were taken from it, and {} of its bouts are void",
        void.len()
    );
    warn!(run = id, "{text}");
    store.audit(Entry::new(AuditKind::Adopted, text).run(id).into_row());
    Ok(())
}

/// The parts of a run that its state does not know. Moves behind them whose games were never written are removed.
async fn newer_parts(
    store: &Store,
    dataset: &Dataset,
    run: &StoredRun,
) -> Result<Vec<(u64, u64)>, ExportError> {
    let under_way = store.open_part(run.id.clone()).await?;
    let dropped = dataset.drop_unfinished(&run.id, under_way).await?;
    if dropped > 0 {
        warn!(
            run = run.id,
            parts = dropped,
            "moves whose games were never written are gone; they are played again"
        );
    }
    let finished = dataset.finished_parts(&run.id).await?.into_iter();
    let newer: Vec<(u64, u64)> = finished.filter(|(first, _)| *first >= run.exported).collect();
    // A part that was just written when the coordinator died is finished by whoever writes parts.
    Ok(if newer[..] == *under_way.as_slice() { Vec::new() } else { newer })
}

/// Who played a bout.
fn worker(rows: &BoutRows) -> String {
    rows.games.first().map(|game| game.worker.clone()).unwrap_or_default()
}
