//! The operators' side of the wire: submit, list, show, watch, cancel.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agon_arena::{Spec, SpecError, SpecSource};
use agon_proto::session::shortened;
use agon_proto::v1;
use agon_schedule::RunState;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::audit::{AuditKind, Entry};
use crate::export::{Folding, unfold};
use crate::standings::encode_checked;
use crate::state::{Coordinator, PersistedRun, Run, now_us};
use crate::store::{Audit, StoreError, StoredRun};
use agon_schedule::run_id;
use agon_schedule::schedule::Schedule;

/// The least time between two messages to a watcher.
const BETWEEN: Duration = Duration::from_millis(250);

/// The service that operators call.
#[derive(Clone)]
pub struct OperatorService {
    coordinator: Arc<Coordinator>,
}

impl OperatorService {
    /// The service over a coordinator.
    pub fn new(coordinator: Arc<Coordinator>) -> OperatorService {
        OperatorService { coordinator }
    }

    /// The id that is meant: an id, a name, a unique beginning, or `latest`.
    fn find(&self, given: &str) -> Result<String, Status> {
        let ids = self.coordinator.run_ids();
        if given == "latest" {
            return ids.last().cloned().ok_or_else(|| Status::not_found("there is no run yet"));
        }
        let matching = run_id::matching(&ids, given);
        match matching[..] {
            [id] => Ok(id.clone()),
            [] => {
                let known = ids.iter().rev().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() {
                    "there is none yet".to_string()
                } else {
                    format!("the last: {known}")
                };
                Err(Status::not_found(format!("no run is called `{given}`; {known}")))
            }
            _ => {
                let names = matching.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
                Err(Status::invalid_argument(format!("`{given}` could be any of {names}")))
            }
        }
    }

    fn status(&self, id: &str) -> Result<v1::RunStatus, Status> {
        self.coordinator.status(id, true).ok_or_else(|| Status::not_found(format!("no run is called `{id}`")))
    }

    async fn submit(&self, source: SpecSource, again: bool, priority: i32) -> Result<v1::RunStatus, Status> {
        let invalid = |error: SpecError| Status::invalid_argument(error.to_string());
        let spec = Spec::parse(&source).map_err(invalid)?;
        let base = run_id::first(&spec.name, &source).map_err(invalid)?;
        let known = self.coordinator.run_ids();
        let is_taken = |id: &String| known.contains(id) || self.coordinator.unreadable.contains(id);
        let id = if again {
            let numbered = |number: u64| if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let free = (1..).find(|number| !is_taken(&numbered(*number))).expect("numbers do not run out");
            // The last one goes on where it stopped, if it is itself one more.
            let last = numbered(free - 1);
            let is_open = self.coordinator.with_run(&last, |run| run.state.is_open()).unwrap_or(false);
            if free > 2 && is_open { last } else { numbered(free) }
        } else {
            base
        };
        if self.coordinator.unreadable.contains(&id) {
            return Err(Status::failed_precondition(format!(
                "the dataset has a run {id} that this program does not understand, and its bouts must not be played a \
                 second time; use the program that made it, or run it --again"
            )));
        }
        self.coordinator.ask_for(&id);
        if known.contains(&id) {
            let status = self.status(&id)?;
            return Ok(v1::RunStatus { existed: true, ..status });
        }
        // Drawing all openings of a large run takes a while.
        let schedule = tokio::task::spawn_blocking(move || Schedule::new(spec))
            .await
            .map_err(|error| Status::internal(error.to_string()))?
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let files = serde_json::to_string(&source.files).expect("texts by texts");
        let stored = StoredRun {
            id: id.clone(),
            text: source.text.clone(),
            files,
            submitted_us: now_us(),
            signature: self.coordinator.signature.clone(),
            build: env!("CARGO_PKG_VERSION").to_string(),
            priority,
            ..StoredRun::default()
        };
        let persisted = PersistedRun {
            stored: stored.clone(),
            bouts: Vec::new(),
            cells: Vec::new(),
            voided: BTreeSet::new(),
        };
        let run = Run::new(source, schedule, persisted)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        self.coordinator.store.add_run(stored).await.map_err(|error| unavailable(&error))?;
        self.coordinator.add_run(&id, run);
        self.coordinator.spawn_proposal(&id);
        self.status(&id)
    }
}

impl OperatorService {
    fn must_be(&self, id: &str, states: &[RunState], what: &str) -> Result<(), Status> {
        match self.coordinator.with_run(id, |run| run.state) {
            Some(state) if states.contains(&state) => Ok(()),
            state => {
                let state = state.map_or("gone", RunState::name);
                Err(Status::failed_precondition(format!("{id} is {state}; there is nothing to {what}")))
            }
        }
    }

    async fn store_state(&self, id: &str, state: RunState) -> Result<(), Status> {
        let stored = self.coordinator.store.set_state(id.to_string(), state, None).await;
        stored.map_err(|error| unavailable(&error))
    }

    fn worker(&self, name: &str) -> Result<Response<v1::WorkerStatus>, Status> {
        // One that is known by its quarantine alone has not been here since the coordinator started.
        let absent = v1::WorkerStatus { worker: name.to_string(), ..v1::WorkerStatus::default() };
        Ok(Response::new(self.coordinator.worker(name).unwrap_or(absent)))
    }

    /// Takes bouts out of the count: those in the state are played anew, those in the dataset are listed and left out.
    async fn void(&self, id: &str, request: &v1::VoidBoutsRequest) -> Result<v1::VoidBoutsResponse, Status> {
        let coordinator = &self.coordinator;
        let unavailable = |error: &dyn std::fmt::Display| Status::unavailable(error.to_string());
        let _alone = coordinator.exporting.lock().await;
        let wanted = |bout: u64, worker: &str| match request.worker.as_str() {
            "" => (request.first..=request.last).contains(&bout),
            name => name == worker,
        };
        // What is on its way into the dataset arrives there first: a put that nobody answered may still be done.
        crate::export::finish_part(coordinator, id).await.map_err(|error| {
            Status::unavailable(format!(
                "bouts of {id} are on their way into the dataset, and nothing can be voided meanwhile: {error}"
            ))
        })?;
        let snapshot = coordinator.with_run(id, |run| {
            let how = Folding { rated_from: run.spec.first_rated_bout(), decided: run.decided };
            (Arc::clone(&run.spec), run.folded.clone(), run.voided.clone(), how)
        });
        let (spec, mut folded, known, how) = snapshot.ok_or_else(|| Status::not_found("the run is gone"))?;
        if spec.tune().is_some() {
            return Err(Status::failed_precondition(format!(
                "{id} is a tune, and what it plays follows from every bout before: none can be left out; cancel it, and \
                 run it again with --again"
            )));
        }
        let kept = coordinator
            .store
            .summaries(id.to_string(), 0, u64::MAX)
            .await
            .map_err(|error| unavailable(&error))?;
        let again: Vec<u64> =
            kept.iter().filter(|row| wanted(row.bout, &row.worker)).map(|row| row.bout).collect();
        let exported =
            coordinator.dataset.bouts(&spec, id, wanted).await.map_err(|error| unavailable(&error))?;
        let mut voided = Vec::new();
        for (bout, summary) in exported.into_iter().filter(|(bout, _)| !known.contains(bout)) {
            unfold(&mut folded, &how, bout, &summary);
            voided.push(bout);
        }
        if again.is_empty() && voided.is_empty() {
            return Err(Status::not_found(format!(
                "{id} has no such bouts that count; `agon games {id}` lists its games with who played them"
            )));
        }
        let answer = v1::VoidBoutsResponse { requeued: again.len() as u64, voided: voided.len() as u64 };
        let taken = [&again[..], &voided].concat();
        coordinator
            .store
            .void(id.to_string(), request.worker.clone(), again, voided, encode_checked(&folded))
            .await
            .map_err(|error| unavailable(&error))?;
        coordinator.recent.forget(id);
        let stored = coordinator.store.runs().await.map_err(|error| unavailable(&error))?;
        if let Some(stored) = stored.into_iter().find(|run| run.id == id) {
            let run = crate::load(&coordinator.store, stored).await.map_err(|error| unavailable(&error))?;
            coordinator.replace_run(id, run.map_err(Status::internal)?, &taken);
        }
        crate::export::write_run(coordinator, id).await.map_err(|error| unavailable(&error))?;
        let whose = if request.worker.is_empty() {
            format!("bouts {} to {}", request.first, request.last)
        } else {
            format!("bouts of {}", request.worker)
        };
        let text = format!(
            "{whose}: {} are played anew, {} in the dataset are left out{}{}",
            answer.requeued,
            answer.voided,
            if request.reason.is_empty() { "" } else { ": " },
            shortened(&request.reason)
        );
        coordinator.audit(Entry::new(AuditKind::Voided, text).worker(&request.worker).run(id));
        Ok(answer)
    }
}

fn unavailable(error: &StoreError) -> Status {
    Status::unavailable(error.to_string())
}

#[tonic::async_trait]
impl v1::operator_server::Operator for OperatorService {
    type WatchRunStream = Pin<Box<dyn Stream<Item = Result<v1::RunStatus, Status>> + Send>>;

    async fn submit_run(
        &self,
        request: Request<v1::SubmitRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let request = request.into_inner();
        let spec = request.spec.ok_or_else(|| Status::invalid_argument("there is no spec"))?;
        let source = SpecSource::try_from(spec)?;
        self.submit(source, request.again, request.priority).await.map(Response::new)
    }

    async fn list_runs(
        &self,
        _request: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsResponse>, Status> {
        let ids = self.coordinator.run_ids();
        let runs = ids.iter().filter_map(|id| self.coordinator.status(id, false)).collect();
        Ok(Response::new(v1::ListRunsResponse { runs }))
    }

    async fn show_run(
        &self,
        request: Request<v1::ShowRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let id = self.find(&request.into_inner().run)?;
        self.status(&id).map(Response::new)
    }

    async fn watch_run(
        &self,
        request: Request<v1::WatchRunRequest>,
    ) -> Result<Response<Self::WatchRunStream>, Status> {
        let id = self.find(&request.into_inner().run)?;
        let (out, stream) = mpsc::channel(1);
        let coordinator = Arc::clone(&self.coordinator);
        tokio::spawn(async move {
            let mut changes = coordinator.watch();
            while let Some(status) = coordinator.status(&id, true) {
                changes.mark_unchanged();
                let open = [v1::RunState::Running, v1::RunState::Paused].map(|state| state as i32);
                // A run that has ended is over when all that it played is in the dataset.
                let ended = !open.contains(&status.state) && status.exported == status.bouts;
                let over = ended || coordinator.is_draining();
                if out.send(Ok(status)).await.is_err() || over {
                    break;
                }
                tokio::time::sleep(BETWEEN).await;
                // Rates and estimates change even when nothing happens.
                let _ = tokio::time::timeout(Duration::from_secs(2), changes.changed()).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn cancel_run(
        &self,
        request: Request<v1::CancelRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let id = self.find(&request.into_inner().run)?;
        self.must_be(&id, &[RunState::Running, RunState::Paused], "cancel")?;
        self.store_state(&id, RunState::Cancelled).await?;
        self.coordinator.audit(Entry::new(AuditKind::Cancelled, "cancelled by an operator").run(&id));
        self.coordinator.end_run(&id, RunState::Cancelled, None, "the run was cancelled");
        self.status(&id).map(Response::new)
    }

    async fn pause_run(
        &self,
        request: Request<v1::PauseRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let id = self.find(&request.into_inner().run)?;
        self.must_be(&id, &[RunState::Running], "pause")?;
        self.store_state(&id, RunState::Paused).await?;
        self.coordinator.audit(Entry::new(AuditKind::Paused, "paused by an operator").run(&id));
        self.coordinator.update_run(&id, |run| run.state = RunState::Paused);
        self.status(&id).map(Response::new)
    }

    async fn resume_run(
        &self,
        request: Request<v1::ResumeRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let id = self.find(&request.into_inner().run)?;
        self.must_be(&id, &[RunState::Paused], "resume")?;
        self.store_state(&id, RunState::Running).await?;
        self.coordinator.audit(Entry::new(AuditKind::Resumed, "resumed by an operator").run(&id));
        self.coordinator.update_run(&id, |run| run.state = RunState::Running);
        self.status(&id).map(Response::new)
    }

    async fn prioritise_run(
        &self,
        request: Request<v1::PrioritiseRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let v1::PrioritiseRunRequest { run, priority } = request.into_inner();
        let id = self.find(&run)?;
        self.coordinator
            .store
            .set_priority(id.clone(), priority)
            .await
            .map_err(|error| unavailable(&error))?;
        let text = format!("priority set to {priority} by an operator");
        self.coordinator.audit(Entry::new(AuditKind::Prioritised, text).run(&id));
        self.coordinator.update_run(&id, |run| run.priority = priority);
        self.status(&id).map(Response::new)
    }

    async fn void_bouts(
        &self,
        request: Request<v1::VoidBoutsRequest>,
    ) -> Result<Response<v1::VoidBoutsResponse>, Status> {
        let request = request.into_inner();
        let id = self.find(&request.run)?;
        self.void(&id, &request).await.map(Response::new)
    }

    async fn list_workers(
        &self,
        _request: Request<v1::ListWorkersRequest>,
    ) -> Result<Response<v1::ListWorkersResponse>, Status> {
        Ok(Response::new(v1::ListWorkersResponse { workers: self.coordinator.workers() }))
    }

    async fn quarantine_worker(
        &self,
        request: Request<v1::QuarantineWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let v1::QuarantineWorkerRequest { worker, reason } = request.into_inner();
        let reason =
            if reason.is_empty() { "an operator set it aside".to_string() } else { shortened(&reason) };
        self.coordinator.set_quarantine(&worker, Some(&reason)).map_err(Status::failed_precondition)?;
        self.worker(&worker)
    }

    async fn trust_worker(
        &self,
        request: Request<v1::TrustWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let worker = request.into_inner().worker;
        self.coordinator.set_quarantine(&worker, None).map_err(Status::failed_precondition)?;
        self.worker(&worker)
    }

    async fn drain_worker(
        &self,
        request: Request<v1::DrainWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let worker = request.into_inner().worker;
        self.coordinator.drain_worker(&worker).map_err(Status::failed_precondition)?;
        self.worker(&worker)
    }

    async fn list_audit(
        &self,
        request: Request<v1::ListAuditRequest>,
    ) -> Result<Response<v1::ListAuditResponse>, Status> {
        let v1::ListAuditRequest { worker, run, limit } = request.into_inner();
        let given = |text: String| (!text.is_empty()).then_some(text);
        let run = given(run).map(|run| self.find(&run)).transpose()?;
        let most = if limit == 0 { 1000 } else { u64::from(limit) };
        let entries = self.coordinator.store.audits(given(worker), run, most).await;
        let entry = |entry: Audit| v1::AuditEntry {
            number: entry.number,
            at_us: entry.at_us,
            kind: entry.kind,
            worker: entry.worker,
            run: entry.run,
            bout: entry.bout,
            text: entry.text,
        };
        let entries = entries.map_err(|error| unavailable(&error))?.into_iter().map(entry).collect();
        Ok(Response::new(v1::ListAuditResponse { entries }))
    }
}
