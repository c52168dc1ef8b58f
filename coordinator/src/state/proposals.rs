//! Proposals of tuning runs: computed outside the lock, and durable before they are used.

use std::sync::Arc;

use agon_arena::spec::Values;
use agon_proto::v1;

use super::{Coordinator, Run};
use crate::standings::encode_checked;
use crate::store::StoreError;
use agon_schedule::tuning::Tuning;

impl Coordinator {
    /// Computes the pending proposal of a run's tuning, if any, in the background. Calling it twice is harmless: the second
    /// task finds nothing pending.
    pub(crate) fn spawn_proposal(self: &Arc<Coordinator>, id: &str) {
        let due = |run: &mut Run| {
            run.state.is_open()
                && run.schedule.tuning().is_some_and(|tuning| tuning.pending_proposal().is_some())
        };
        if !self.with_run(id, due).unwrap_or(false) {
            return;
        }
        let (coordinator, id) = (Arc::clone(self), id.to_string());
        tokio::spawn(async move {
            if let Err(failure) = coordinator.propose(&id).await {
                coordinator.fail(failure);
            }
        });
    }

    /// Computes and applies proposals while any is pending.
    async fn propose(&self, id: &str) -> Result<(), StoreError> {
        // Only the holder of the lock changes the totals of the exported bouts.
        let _guard = self.export_lock.lock().await;
        loop {
            let due = self.with_run(id, |run| {
                let request =
                    run.schedule.tuning().and_then(Tuning::pending_proposal).filter(|_| run.state.is_open());
                request.map(|request| (request, run.exported_totals.clone()))
            });
            let Some((request, mut totals)) = due.flatten() else { return Ok(()) };
            let Ok(proposals) = tokio::task::spawn_blocking(move || request.run()).await else {
                return Ok(());
            };
            totals.add_proposals(&proposals);
            loop {
                match self.store.set_totals(id.to_string(), encode_checked(&totals)).await {
                    Ok(()) => break,
                    // The run waits until there is space.
                    Err(StoreError::Full) => tokio::time::sleep(std::time::Duration::from_secs(1)).await,
                    Err(failure) => return Err(failure),
                }
            }
            let mut guard = self.lock();
            let state = &mut *guard;
            if let Some(run) = state.runs.get_mut(id) {
                run.exported_totals = totals;
                run.apply_proposals(proposals);
            }
            self.grant_all(state);
            drop(guard);
            self.changed();
        }
    }
}

impl Run {
    /// Gives proposals to the tuning schedule and opens the bouts that follow.
    fn apply_proposals(&mut self, proposals: Vec<Values>) {
        if let Some(tuning) = self.schedule.tuning_mut() {
            tuning.add_proposals(proposals);
        }
        self.extend();
    }

    /// Returns the progress of a tuning run.
    pub(super) fn tune_status(&self) -> Option<v1::TuneStatus> {
        let tuning = self.schedule.tuning()?;
        let parameters = tuning.tune().parameters.iter().zip(tuning.tune().start().numbers());
        let recent = tuning.recent_score();
        Some(v1::TuneStatus {
            method: tuning.tune().method.name().to_string(),
            step: tuning.completed_steps(),
            steps: tuning.steps(),
            tuning_bouts: tuning.tune().bouts,
            parameters: parameters
                .zip(tuning.values())
                .map(|((parameter, start), value)| v1::TunedParameter {
                    path: parameter.path.clone(),
                    start,
                    value,
                })
                .collect(),
            recent_score: recent.map(|(score, _)| score),
            recent_bouts: recent.map_or(0, |(_, bouts)| bouts),
        })
    }
}
