//! Convictions: the bouts of workers that replication proved faulty are voided, and played again where that is possible.
//!
//! A conviction is durable until its bouts are voided. Verdicts of sequential tests wait for that.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::audit::{AuditKind, Entry};
use crate::durable::runs::{Selection, Void, VoidRefusal};
use crate::durable::workers::CloseConviction;
use crate::durable::{Conviction, Durable};
use crate::export::{ExportHold, await_open_part, write_run};
use crate::state::Coordinator;

/// The delay before a failed attempt is repeated.
const RETRY: Duration = Duration::from_secs(2);

/// Voids the bouts of convicted workers, whenever there are any.
pub(crate) async fn void_convicted(coordinator: Arc<Coordinator>) {
    loop {
        let next = coordinator.lock().durable.convictions().first().cloned();
        let Some(conviction) = next else {
            coordinator.convictions.notified().await;
            continue;
        };
        match void_all(&coordinator, &conviction).await {
            Ok(()) => coordinator.commit(CloseConviction(conviction)).await,
            Err(reason) => {
                warn!(worker = conviction.worker, reason, "bouts of a convicted worker not voided yet");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Voids the bouts of a convicted worker in all runs.
async fn void_all(coordinator: &Coordinator, conviction: &Conviction) -> Result<(), String> {
    for id in coordinator.run_ids() {
        let workers = selected_workers(&coordinator.lock().durable, &id, conviction);
        for worker in workers {
            void_bouts(coordinator, &id, &worker).await?;
        }
    }
    Ok(())
}

/// Returns the workers whose bouts of a run are void: the convicted one and, in an undecided test, all others with its
/// credential, which can lie under any name. None in runs whose bouts cannot be replicated.
fn selected_workers(durable: &Durable, id: &str, conviction: &Conviction) -> BTreeSet<String> {
    let Some(run) = durable.run(id).filter(|run| run.spec.is_repeatable()) else { return BTreeSet::new() };
    let mut workers = BTreeSet::from([conviction.worker.clone()]);
    if run.is_verified_test() && run.record().state.is_open() {
        workers.extend(durable.names(&conviction.credential).cloned());
    }
    workers
}

/// Voids the bouts of a worker in a run.
async fn void_bouts(coordinator: &Coordinator, id: &str, worker: &str) -> Result<(), String> {
    loop {
        let values = coordinator.with_run(id, |run| (Arc::clone(&run.spec), run.has_bouts_of(worker)));
        let Some((spec, true)) = values else { return Ok(()) };
        if spec.tune().is_some() {
            let text = "its bouts in this tuning run cannot be voided, as each depends on all earlier ones; cancel the run \
                        and repeat it with `agon submit SPEC --again`";
            coordinator.audit(Entry::new(AuditKind::Convicted, text).worker(worker).run(id));
            return Ok(());
        }
        let hold = ExportHold::new(coordinator, id);
        let exported = await_open_part(coordinator, id).await?;
        let by_worker = |_, name: &str| name == worker;
        let in_dataset =
            coordinator.dataset.bouts(&spec, id, by_worker).await.map_err(|error| error.to_string())?;
        let selection = Selection { worker: worker.to_string(), first: 0, last: 0 };
        let by = "the coordinator, because two other workers contradict a bout of it".to_string();
        let void = Void { run: id.to_string(), selection, in_dataset, exported, by };
        let voided = coordinator.commit(void).await;
        drop(hold);
        match voided {
            Err(VoidRefusal::Exported) => {}
            Err(VoidRefusal::NoRun | VoidRefusal::NoBouts | VoidRefusal::Final) => return Ok(()),
            Ok(_) => return write_run(coordinator, id).await.map_err(|error| error.to_string()),
        }
    }
}
