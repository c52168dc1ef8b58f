//! Slow computations outside the lock: the proposals of tuning runs, and the openings of bouts.

use std::panic::resume_unwind;
use std::sync::Arc;

use agon_proto::v1;
use agon_schedule::tuning::{Proposal, ProposalRequest};
use agon_schedule::{Preparation, Prepared};
use tokio::task::JoinSet;

use super::{Coordinator, Run, State};
use crate::durable::runs::Propose;

/// Openings drawn beyond those that are needed now. The next are drawn when half of them are left.
pub(crate) const OPENINGS_AHEAD: u64 = 2000;

/// A computation that a run needs.
enum Request {
    /// Proposals of a Gaussian process, and the number that the run has already.
    Proposals(usize, Box<ProposalRequest>),
    Openings(Preparation),
}

enum Computed {
    Proposals(usize, Vec<Proposal>),
    Openings(Prepared),
}

impl Request {
    fn run(self) -> Computed {
        match self {
            Request::Proposals(known, request) => Computed::Proposals(known, request.run()),
            Request::Openings(preparation) => Computed::Openings(preparation.run()),
        }
    }
}

/// Computes something beside the runtime. Panics if the computation does, which ends the process.
async fn on_another_thread<T: Send + 'static>(compute: impl FnOnce() -> T + Send + 'static) -> T {
    let computed = tokio::task::spawn_blocking(compute).await;
    computed.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

impl Coordinator {
    /// Computes what runs need, whenever they need something.
    pub(crate) async fn compute(self: Arc<Coordinator>) {
        let mut computing: JoinSet<String> = JoinSet::new();
        loop {
            for (id, request) in self.lock().due_computations() {
                let coordinator = Arc::clone(&self);
                computing.spawn(async move {
                    let computed = on_another_thread(move || request.run()).await;
                    coordinator.use_computed(&id, computed).await;
                    id
                });
            }
            tokio::select! {
                () = self.computations.notified() => {}
                Some(done) = computing.join_next() => match done {
                    Ok(id) => drop(self.lock().computing.remove(&id)),
                    Err(error) => resume_unwind(error.into_panic()),
                },
            }
        }
    }

    async fn use_computed(&self, id: &str, computed: Computed) {
        match computed {
            Computed::Proposals(known, proposals) => {
                self.commit(Propose { run: id.to_string(), known, proposals }).await;
            }
            Computed::Openings(prepared) => {
                let mut guard = self.lock();
                if let Some(run) = guard.durable.run_mut(id) {
                    run.schedule.finish(prepared);
                }
                self.grant_all(&mut guard);
                drop(guard);
                self.changed();
            }
        }
    }

    /// Requests the openings of the bouts after this one, if they may run out. Returns whether that of this bout is known.
    pub(super) fn prepare_openings(&self, run: &mut Run, bout: u64) -> bool {
        if !run.schedule.is_prepared(bout.saturating_add(OPENINGS_AHEAD / 2)) {
            run.wanted_openings = Some(bout.saturating_add(OPENINGS_AHEAD));
            self.computations.notify_one();
        }
        run.schedule.is_prepared(bout)
    }
}

impl State {
    /// Requests the openings of the bouts that are to be replicated.
    pub(super) fn request_replicated_openings(&mut self) {
        let latest = self.durable.replication().latest();
        for (id, bout) in latest {
            if let Some(run) = self.durable.run_mut(&id) {
                run.wanted_openings = Some(bout);
            }
        }
    }

    /// Takes the computations that open runs need, at most one for each run.
    fn due_computations(&mut self) -> Vec<(String, Request)> {
        let State { durable, computing, .. } = self;
        let mut due = Vec::new();
        for (id, run) in durable.runs_mut().filter(|(id, _)| !computing.contains(*id)) {
            if let Some(request) = run.due_computation() {
                due.push((id.clone(), request));
            }
        }
        computing.extend(due.iter().map(|(id, _)| id.clone()));
        due
    }
}

impl Run {
    fn due_computation(&mut self) -> Option<Request> {
        let wanted = self.wanted_openings.take().filter(|bout| !self.schedule.is_prepared(*bout));
        if let Some(preparation) = wanted.and_then(|bout| self.schedule.prepare(bout)) {
            return Some(Request::Openings(preparation));
        }
        let tuning = self.schedule.tuning().filter(|_| self.record().state.is_open())?;
        Some(Request::Proposals(tuning.proposals(), Box::new(tuning.pending_proposal()?)))
    }
}

impl Run {
    /// Returns the progress of a tuning run.
    pub(super) fn tune_status(&self) -> Option<v1::TuneStatus> {
        let tuning = self.schedule.tuning()?;
        let parameters = tuning.tune().parameters.iter().zip(tuning.tune().start().numbers());
        let recent = tuning.recent_score();
        Some(v1::TuneStatus {
            method: tuning.tune().method.name().to_string(),
            step: tuning.completed_steps(),
            steps: tuning.steps(),
            tuning_bouts: tuning.tuning_bouts(),
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::fixtures::empty_coordinator;
    use crate::tasks::supervise;

    #[tokio::test]
    async fn panic_of_a_computation_ends_the_process_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = empty_coordinator(folder.path()).await;
        let computation = async { on_another_thread(|| panic!("no proposal")).await };
        let _task = supervise(&coordinator, "a computation", computation);
        assert_eq!(coordinator.failure().await.to_string(), "a computation failed: no proposal");
    }
}
