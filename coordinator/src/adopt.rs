//! A state that is older than its dataset: what the dataset has beyond it is taken from there.
//!
//! A state that was restored from a backup does not know the bouts that were exported since. They are not played again:
//! parts are never rewritten, and what they have is final. Exports go from the first bout on, so that a part says
//! everything of the bouts before its end: those that have no rows failed, or, in a run that was ended early, were never
//! played. What was committed and not exported after the backup is lost, and is played again; moves of such bouts that
//! were written while their games were not are removed.

use std::collections::{BTreeMap, BTreeSet};

use agon_arena::{Spec, SpecSource};
use agon_records::{BoutColumns, BoutRows, Table};
use serde::Deserialize;
use tracing::warn;

use crate::dataset::Dataset;
use crate::export::{Cells, ExportError, Folding, fold, stored_cells};
use crate::hall::{now_us, remembered_tally};
use crate::standings::{Summary, seal};
use crate::store::{Audit, RunState, Store, StoredRun};

/// What the description of a run in the dataset says that a state needs.
#[derive(Deserialize)]
struct Description {
    spec: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    state: String,
    signature: String,
    submitted_us: i64,
    #[serde(default)]
    failed: u64,
    #[serde(default)]
    deciding_bout: Option<u64>,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    voided: Vec<u64>,
}

/// Takes what the dataset knows of the open runs of a state, and with the operator's word also runs that the state has
/// never heard of.
pub(crate) async fn adopt(store: &Store, dataset: &Dataset, strangers: bool) -> Result<(), ExportError> {
    let known = store.runs().await?;
    let ids: BTreeSet<String> = dataset.described().await?.into_iter().collect();
    let open = known.iter().filter(|run| run.state.is_open() && ids.contains(&run.id)).cloned();
    let mut runs: Vec<(StoredRun, bool)> = open.map(|run| (run, false)).collect();
    if strangers {
        let strange = ids.iter().filter(|id| !known.iter().any(|run| run.id == **id));
        runs.extend(strange.map(|id| (StoredRun { id: id.clone(), ..StoredRun::default() }, true)));
    }
    for (run, is_new) in runs {
        match described(dataset, &run.id).await? {
            Ok((description, spec)) => adopt_run(store, dataset, run, is_new, &description, &spec).await?,
            Err(reason) => {
                warn!(run = run.id, reason, "a run of the dataset is not understood and is left alone");
            }
        }
    }
    Ok(())
}

/// The description of a run and its spec. The inner error says why this program does not understand it.
async fn described(dataset: &Dataset, id: &str) -> Result<Result<(Description, Spec), String>, ExportError> {
    let text = dataset.description(id).await?;
    let read = || {
        let description: Description = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let source = SpecSource { text: description.spec.clone(), files: description.files.clone() };
        let spec = Spec::parse(&source).map_err(|error| error.to_string())?;
        Ok((description, spec))
    };
    Ok(read())
}

async fn adopt_run(
    store: &Store,
    dataset: &Dataset,
    run: StoredRun,
    is_new: bool,
    description: &Description,
    spec: &Spec,
) -> Result<(), ExportError> {
    let id = run.id.clone();
    let parts: Vec<(u64, u64)> =
        dataset.finished_parts(&id).await?.into_iter().filter(|(first, _)| *first >= run.exported).collect();
    let ended = RunState::from_name(&description.state).filter(|state| !state.is_open());
    let under_way = store.open_part(id.clone()).await?;
    let dropped = dataset.drop_unfinished(&id, under_way).await?;
    if dropped > 0 {
        warn!(
            run = id,
            parts = dropped,
            "moves whose games were never written are gone; they are played again"
        );
    }
    // A part that was just written when the coordinator died is finished by whoever writes parts.
    let is_current = parts[..] == *under_way.as_slice();
    if is_current && !is_new && ended.is_none() {
        return Ok(());
    }
    let mut tally = remembered_tally(&run).unwrap_or_default();
    let before = tally.bouts;
    if is_new {
        store
            .add_run(StoredRun {
                text: description.spec.clone(),
                files: serde_json::to_string(&description.files).expect("texts by texts"),
                submitted_us: description.submitted_us,
                signature: description.signature.clone(),
                priority: description.priority,
                ..run.clone()
            })
            .await?;
    }
    let voided: BTreeSet<u64> = description.voided.iter().copied().collect();
    let how = Folding { rated_from: spec.first_rated_bout(), decided: description.deciding_bout };
    let mut exported = run.exported;
    // 1. The parts beyond what the state knows, in their order.
    for (first, last) in parts {
        let rows = dataset.rows(&id, first, last).await?;
        let mut cells = Cells::default();
        for bout in exported..=last {
            match rows.get(&bout) {
                Some(rows) => {
                    let summary = Summary::new(spec, &BoutColumns::from(rows));
                    fold(&mut tally, &mut cells, &how, bout, &worker(rows), Some(&summary));
                    if voided.contains(&bout) {
                        tally.subtract(&summary);
                        tally.forget_test(&summary);
                    }
                }
                None if ended.is_none_or(|state| state == RunState::Done) => {
                    fold(&mut tally, &mut cells, &how, bout, "", None);
                }
                None => {}
            }
        }
        exported = last + 1;
        store.part_written(id.clone(), exported, seal(&tally), stored_cells(cells)).await?;
    }
    // 2. How it ended, if it did; of the bouts that failed in a run that was ended early only the number is known.
    if let Some(state) = ended {
        for _ in tally.failed..description.failed {
            tally.add_failed();
        }
        store.part_written(id.clone(), exported, seal(&tally), Vec::new()).await?;
        store.set_state(id.clone(), state, description.deciding_bout).await?;
    }
    let unknown: Vec<u64> = voided.into_iter().filter(|bout| *bout < exported).collect();
    if !unknown.is_empty() {
        store.void(id.clone(), String::new(), Vec::new(), unknown, seal(&tally)).await?;
    }
    // 3. Somebody may wonder.
    if is_new || exported > run.exported || ended.is_some() {
        let text = format!(
            "the dataset was ahead of the state: {} bouts were taken from it",
            tally.bouts.saturating_sub(before)
        );
        warn!(run = id, "{text}");
        store.note(Audit { at_us: now_us(), kind: "adopted".to_string(), run: id, text, ..Audit::default() });
    }
    Ok(())
}

/// Who played a bout.
fn worker(rows: &BoutRows) -> String {
    rows.games.first().map(|game| game.worker.clone()).unwrap_or_default()
}

/// The tables whose parts say that all of their bouts are there: they are written last.
pub(crate) const LAST_TABLES: [Table; 2] = [Table::Games, Table::Probes];
