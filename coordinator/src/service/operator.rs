//! The service for operators: submits, reports and controls runs, and manages workers.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agon_arena::{Spec, SpecError, SpecSource};
use agon_proto::session::truncate_reason;
use agon_proto::v1;
use agon_schedule::RunState;
use agon_transport::Caller;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::audit::{AuditKind, Entry, operator_name};
use crate::export::{FoldRules, unfold};
use crate::standings::encode_checked;
use crate::state::{Coordinator, OPEN, PersistedRun, RESERVED_AHEAD, Run, now_us};
use crate::store::{Audit, StoredRun};
use agon_schedule::run_id;
use agon_schedule::schedule::Schedule;

/// The minimum time between two messages to a watcher.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// The gRPC service for operators.
#[derive(Clone)]
pub struct OperatorService {
    coordinator: Arc<Coordinator>,
}

impl OperatorService {
    /// Creates the service for a coordinator.
    pub fn new(coordinator: Arc<Coordinator>) -> OperatorService {
        OperatorService { coordinator }
    }

    /// Resolves a run id, a name, a unique prefix or `latest`.
    fn find(&self, given: &str) -> Result<String, Status> {
        let ids = self.coordinator.run_ids();
        if given == "latest" {
            return ids.last().cloned().ok_or_else(|| {
                Status::failed_precondition("there are no runs yet; submit one with `agon submit SPEC`")
            });
        }
        let matching = run_id::matching(&ids, given);
        match matching[..] {
            [id] => Ok(id.clone()),
            [] => {
                let known = ids.iter().rev().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() { "none".to_string() } else { known };
                Err(Status::not_found(format!("no run is called `{given}`; latest runs: {known}")))
            }
            _ => {
                let names = matching.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
                Err(Status::invalid_argument(format!("`{given}` is ambiguous: {names}")))
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
        // One at a time: drawing openings takes memory, and the same spec must not be added twice.
        let _submission = self.coordinator.submit_lock.lock().await;
        let known = self.coordinator.run_ids();
        let is_taken = |id: &String| known.contains(id) || self.coordinator.unreadable.contains(id);
        let id = if again {
            let numbered = |number: u64| if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let free =
                (1..).find(|number| !is_taken(&numbered(*number))).expect("there are more numbers than runs");
            // The latest repetition is continued if it is still open.
            let last = numbered(free - 1);
            let is_open = self.coordinator.with_run(&last, |run| run.state.is_open()).unwrap_or(false);
            if free > 2 && is_open { last } else { numbered(free) }
        } else {
            base
        };
        if self.coordinator.unreadable.contains(&id) {
            return Err(Status::failed_precondition(format!(
                "the dataset has a run {id} that this build cannot read, so that it cannot be continued; use the build that \
                 wrote it, or start a new run with --again"
            )));
        }
        self.coordinator.request_run(&id);
        if known.contains(&id) {
            let status = self.status(&id)?;
            return Ok(v1::RunStatus { existed: true, ..status });
        }
        // Drawing the openings of a large run takes time.
        let schedule = tokio::task::spawn_blocking(move || Schedule::new(spec))
            .await
            .map_err(|error| Status::internal(error.to_string()))?
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let files = serde_json::to_string(&source.files).expect("a map of strings is valid JSON");
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
        let stored = StoredRun { granted: RESERVED_AHEAD.min(schedule.bouts()), ..stored };
        let persisted = PersistedRun { stored: stored.clone(), ..PersistedRun::default() };
        let mut run = Run::new(source, schedule, persisted)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        run.last_export = Some(run.since);
        self.coordinator.store.add_run(stored).await.map_err(unavailable)?;
        self.coordinator.add_run(&id, run);
        self.coordinator.spawn_proposal(&id);
        self.status(&id)
    }

    /// Moves a run to another state, if it is in one of `from`.
    async fn transition(
        &self,
        run: &str,
        action: &str,
        from: &'static [RunState],
        to: RunState,
        (kind, operator): (AuditKind, Caller),
    ) -> Result<v1::RunStatus, Status> {
        let id = self.find(run)?;
        let change = self.coordinator.change_lock.write().await;
        let before =
            self.coordinator.store.move_state(id.clone(), from, to, None).await.map_err(unavailable)?;
        if !before.is_some_and(|state| from.contains(&state)) {
            let state = before.map_or("gone", RunState::name);
            return Err(Status::failed_precondition(format!("cannot {action} {id}: it is {state}")));
        }
        if to.is_open() {
            self.coordinator.update_run(&id, |run| run.state = to);
        } else {
            self.coordinator.end_run(&id, to, None, &format!("the run was {}", to.name()));
        }
        drop(change);
        let text = format!("{} by {}", kind.name(), operator_name(&operator));
        self.coordinator.audit(Entry::new(kind, text).run(&id));
        self.coordinator.store.flush().await.map_err(unavailable)?;
        self.status(&id)
    }

    fn worker(&self, name: &str) -> Result<Response<v1::WorkerStatus>, Status> {
        // A quarantined worker may not have connected since the start.
        let absent = v1::WorkerStatus { worker: name.to_string(), ..v1::WorkerStatus::default() };
        Ok(Response::new(self.coordinator.worker(name).unwrap_or(absent)))
    }

    /// Voids bouts: those in the state are replayed, those in the dataset are excluded from the results.
    async fn void(
        &self,
        id: &str,
        request: &v1::VoidBoutsRequest,
        operator: &str,
    ) -> Result<v1::VoidBoutsResponse, Status> {
        let coordinator = &self.coordinator;
        let _guard = coordinator.export_lock.lock().await;
        let selected = |bout: u64, worker: &str| match request.worker.as_str() {
            "" => (request.first..=request.last).contains(&bout),
            name => name == worker,
        };
        // Finish the part being written first: a put without an answer may still succeed. Nothing is exported afterwards, as
        // this call holds the lock.
        crate::export::finish_part(coordinator, id).await.map_err(|error| {
            Status::unavailable(format!(
                "bouts of {id} are being exported and cannot be voided until that succeeds: {error}"
            ))
        })?;
        let snapshot = coordinator.with_run(id, |run| {
            let how = FoldRules { rated_from: run.spec.first_rated_bout(), decided: run.decided };
            (Arc::clone(&run.spec), run.exported_totals.clone(), run.voided.clone(), how)
        });
        let (spec, mut totals, known, how) =
            snapshot.ok_or_else(|| Status::not_found("the run no longer exists"))?;
        if spec.tune().is_some() {
            return Err(Status::failed_precondition(format!(
                "{id} is a tuning run, in which each bout depends on all earlier ones; cancel it and start a new run with \
                 --again"
            )));
        }
        let exported = coordinator.dataset.bouts(&spec, id, selected).await.map_err(unavailable)?;
        // From here until the run is replaced, no bout is committed: it would be missing in the new run.
        let change = coordinator.change_lock.write().await;
        let kept = coordinator.store.summaries(id.to_string(), 0, u64::MAX).await.map_err(unavailable)?;
        let replayed: Vec<u64> =
            kept.iter().filter(|row| selected(row.bout, &row.worker)).map(|row| row.bout).collect();
        let mut voided = Vec::new();
        for (bout, summary) in exported.into_iter().filter(|(bout, _)| !known.contains(bout)) {
            unfold(&mut totals, &how, bout, &summary);
            voided.push(bout);
        }
        if replayed.is_empty() && voided.is_empty() {
            return Err(Status::not_found(format!(
                "{id} has no such bouts; `agon games {id}` lists its games with their workers"
            )));
        }
        let answer = v1::VoidBoutsResponse { requeued: replayed.len() as u64, voided: voided.len() as u64 };
        let removed = [&replayed[..], &voided].concat();
        coordinator
            .store
            .void(id.to_string(), request.worker.clone(), replayed, voided, encode_checked(&totals))
            .await
            .map_err(unavailable)?;
        coordinator.recent.remove_run(id);
        let stored = coordinator.store.runs().await.map_err(unavailable)?;
        if let Some(stored) = stored.into_iter().find(|run| run.id == id) {
            let run = crate::recovery::load_run(&coordinator.store, stored).await.map_err(unavailable)?;
            coordinator.replace_run(id, run.map_err(Status::internal)?, &removed);
        }
        drop(change);
        crate::export::write_run(coordinator, id).await.map_err(unavailable)?;
        let subject = if request.worker.is_empty() {
            format!("bouts {} to {}", request.first, request.last)
        } else {
            format!("bouts of {}", request.worker)
        };
        let text = format!(
            "{subject}: {} are replayed, {} in the dataset are voided, by {operator}{}{}",
            answer.requeued,
            answer.voided,
            if request.reason.is_empty() { "" } else { ": " },
            truncate_reason(&request.reason)
        );
        coordinator.audit(Entry::new(AuditKind::Voided, text).worker(&request.worker).run(id));
        Ok(answer)
    }
}

/// Makes a change to its end, even if its caller hangs up.
async fn complete<T: Send + 'static>(
    change: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<Response<T>, Status> {
    let changed = tokio::spawn(change).await;
    changed.unwrap_or_else(|error| Err(Status::internal(error.to_string()))).map(Response::new)
}

/// Returns the status for a failed write or read.
fn unavailable(error: impl Display) -> Status {
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
        let spec = request.spec.ok_or_else(|| Status::invalid_argument("the request has no spec"))?;
        let source = SpecSource::try_from(spec)?;
        let service = self.clone();
        complete(async move { service.submit(source, request.again, request.priority).await }).await
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
            loop {
                changes.mark_unchanged();
                let complete = coordinator.is_complete(&id) || coordinator.is_draining();
                let Some(status) = coordinator.status(&id, true) else { break };
                if out.send(Ok(status)).await.is_err() || complete {
                    break;
                }
                tokio::time::sleep(WATCH_INTERVAL).await;
                // Rates and estimates change without events too.
                let _ = tokio::time::timeout(Duration::from_secs(2), changes.changed()).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn cancel_run(
        &self,
        request: Request<v1::CancelRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let by = (AuditKind::Cancelled, Caller::of(&request));
        let (service, run) = (self.clone(), request.into_inner().run);
        complete(async move { service.transition(&run, "cancel", OPEN, RunState::Cancelled, by).await }).await
    }

    async fn pause_run(
        &self,
        request: Request<v1::PauseRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let by = (AuditKind::Paused, Caller::of(&request));
        let (service, run) = (self.clone(), request.into_inner().run);
        complete(async move {
            service.transition(&run, "pause", &[RunState::Running], RunState::Paused, by).await
        })
        .await
    }

    async fn resume_run(
        &self,
        request: Request<v1::ResumeRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let by = (AuditKind::Resumed, Caller::of(&request));
        let (service, run) = (self.clone(), request.into_inner().run);
        complete(async move {
            service.transition(&run, "resume", &[RunState::Paused], RunState::Running, by).await
        })
        .await
    }

    async fn prioritise_run(
        &self,
        request: Request<v1::PrioritiseRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let operator = operator_name(&Caller::of(&request));
        let v1::PrioritiseRunRequest { run, priority } = request.into_inner();
        let service = self.clone();
        complete(async move {
            let id = service.find(&run)?;
            let change = service.coordinator.change_lock.write().await;
            service.coordinator.store.set_priority(id.clone(), priority).await.map_err(unavailable)?;
            service.coordinator.update_run(&id, |run| run.priority = priority);
            drop(change);
            let text = format!("priority set to {priority} by {operator}");
            service.coordinator.audit(Entry::new(AuditKind::Prioritised, text).run(&id));
            service.coordinator.store.flush().await.map_err(unavailable)?;
            service.status(&id)
        })
        .await
    }

    async fn void_bouts(
        &self,
        request: Request<v1::VoidBoutsRequest>,
    ) -> Result<Response<v1::VoidBoutsResponse>, Status> {
        let operator = operator_name(&Caller::of(&request));
        let request = request.into_inner();
        let id = self.find(&request.run)?;
        let service = self.clone();
        complete(async move { service.void(&id, &request, &operator).await }).await
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
        let operator = Caller::of(&request);
        let v1::QuarantineWorkerRequest { worker, reason } = request.into_inner();
        let reason = truncate_reason(&reason);
        self.coordinator
            .set_quarantine(&worker, Some(&reason), &operator)
            .map_err(Status::failed_precondition)?;
        self.coordinator.store.flush().await.map_err(unavailable)?;
        self.worker(&worker)
    }

    async fn trust_worker(
        &self,
        request: Request<v1::TrustWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let operator = Caller::of(&request);
        let worker = request.into_inner().worker;
        self.coordinator.set_quarantine(&worker, None, &operator).map_err(Status::failed_precondition)?;
        self.coordinator.store.flush().await.map_err(unavailable)?;
        self.worker(&worker)
    }

    async fn drain_worker(
        &self,
        request: Request<v1::DrainWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let operator = Caller::of(&request);
        let worker = request.into_inner().worker;
        self.coordinator.drain_worker(&worker, &operator).map_err(Status::failed_precondition)?;
        self.worker(&worker)
    }

    async fn list_audit(
        &self,
        request: Request<v1::ListAuditRequest>,
    ) -> Result<Response<v1::ListAuditResponse>, Status> {
        let v1::ListAuditRequest { worker, run, limit } = request.into_inner();
        let filter = |text: String| (!text.is_empty()).then_some(text);
        let run = filter(run).map(|run| self.find(&run)).transpose()?;
        let limit = if limit == 0 { 1000 } else { u64::from(limit) };
        let entries = self.coordinator.store.audits(filter(worker), run, limit).await;
        let entry = |entry: Audit| v1::AuditEntry {
            number: entry.number,
            at_us: entry.at_us,
            kind: entry.kind,
            worker: entry.worker,
            run: entry.run,
            bout: entry.bout,
            text: entry.text,
        };
        let entries = entries.map_err(unavailable)?.into_iter().map(entry).collect();
        Ok(Response::new(v1::ListAuditResponse { entries }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests;
