//! What a tune plays next, where finding that out takes a while: outside the lock, and durable before it is used.

use std::sync::Arc;

use agon_arena::spec::Values;
use agon_proto::v1;

use super::{Coordinator, Run};
use crate::standings::encode_checked;
use crate::store::StoreError;
use agon_schedule::tuning::Tuning;

impl Coordinator {
    /// Answers the questions of a run's course, if it has any, in the background. Asking twice does no harm: the second
    /// finds the answer there.
    pub(crate) fn spawn_proposal(self: &Arc<Coordinator>, id: &str) {
        let due = |run: &mut Run| {
            run.state.is_open() && run.schedule.tuning().is_some_and(|course| course.due().is_some())
        };
        if !self.with_run(id, due).unwrap_or(false) {
            return;
        }
        let (coordinator, id) = (Arc::clone(self), id.to_string());
        tokio::spawn(async move {
            if let Err(failure) = coordinator.answer(&id).await {
                coordinator.fail(failure);
            }
        });
    }

    async fn answer(&self, id: &str) -> Result<(), StoreError> {
        // Whoever changes what is remembered of a run does so alone.
        let _alone = self.exporting.lock().await;
        loop {
            let due = self.with_run(id, |run| {
                let work = run.schedule.tuning().and_then(Tuning::due).filter(|_| run.state.is_open());
                work.map(|work| (work, run.folded.clone()))
            });
            let Some((work, mut folded)) = due.flatten() else { return Ok(()) };
            let Ok(found) = tokio::task::spawn_blocking(move || work.run()).await else { return Ok(()) };
            folded.propose(&found);
            loop {
                match self.store.remember(id.to_string(), encode_checked(&folded)).await {
                    Ok(()) => break,
                    // Nothing is played meanwhile.
                    Err(StoreError::Full) => tokio::time::sleep(std::time::Duration::from_secs(1)).await,
                    Err(failure) => return Err(failure),
                }
            }
            let mut guard = self.lock();
            let state = &mut *guard;
            if let Some(run) = state.runs.get_mut(id) {
                run.folded = folded;
                run.apply_proposals(found);
            }
            self.grant_all(state);
            drop(guard);
            self.changed();
        }
    }
}

impl Run {
    fn apply_proposals(&mut self, found: Vec<Values>) {
        if let Some(course) = self.schedule.tuning_mut() {
            course.settle(found);
        }
        self.open();
    }

    /// How far a tune is.
    pub(super) fn tune_status(&self) -> Option<v1::TuneStatus> {
        let course = self.schedule.tuning()?;
        let parameters = course.tune().parameters.iter().zip(course.tune().start().numbers());
        let recent = course.recent();
        Some(v1::TuneStatus {
            method: course.tune().method.name().to_string(),
            step: course.folded(),
            steps: course.steps(),
            tuning_bouts: course.tune().bouts,
            parameters: parameters
                .zip(course.values())
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
