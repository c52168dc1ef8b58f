//! The service for operators: submits, reports and controls runs, and manages workers.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agon_arena::{Spec, SpecError, SpecSource};
use agon_proto::session::{clean_reason, worker_name};
use agon_proto::v1;
use agon_schedule::RunState;
use agon_transport::Caller;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::audit::{AuditKind, Entry, operator_name};
use crate::durable::Run;
use crate::durable::runs::{Move, OPEN, Prioritise, Selection, Submit, Void, VoidCounts, VoidRefusal};
use crate::export::ExportHold;
use crate::state::{Coordinator, OPENINGS_AHEAD, RESERVED_AHEAD, now_us};
use crate::store::{Audit, StoredRun};
use agon_schedule::run_id;
use agon_schedule::schedule::{Schedule, ScheduleError};

/// The minimum time between two messages to a watcher.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// The audit entries listed without a limit in the request, and the most that can be requested.
const DEFAULT_ENTRIES: u64 = 1000;
const MAX_ENTRIES: u64 = 100_000;

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

    /// Returns the status of a run. Computes the ratings of many players beside the runtime.
    async fn status(&self, id: &str) -> Result<v1::RunStatus, Status> {
        let (coordinator, run) = (Arc::clone(&self.coordinator), id.to_string());
        let status = tokio::task::spawn_blocking(move || coordinator.status(&run, true)).await;
        let status = status.map_err(|error| Status::internal(error.to_string()))?;
        status.ok_or_else(|| Status::not_found(format!("no run is called `{id}`")))
    }

    async fn submit(
        &self,
        source: SpecSource,
        again: bool,
        priority: i32,
        by: String,
    ) -> Result<v1::RunStatus, Status> {
        // One at a time: specs with large files and the drawing of openings take memory and time.
        let _submission = self.coordinator.submit_lock.lock().await;
        let parse = move || {
            let spec = Spec::parse(&source)?;
            let base = run_id::first(&spec.name, &source)?;
            Ok::<_, SpecError>((source, spec, base))
        };
        let (source, spec, base) = tokio::task::spawn_blocking(parse)
            .await
            .map_err(|error| Status::internal(error.to_string()))?
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        if let Some(engine) = spec.engine_command().filter(|_| !self.coordinator.only_requested) {
            let name = engine.name();
            return Err(Status::invalid_argument(format!(
                "the spec starts the engine `{name}` by `command`, which only the machine of its author may do: give the engine a \
                 `name` and start workers with --engine NAME={name}, or play the spec with `agon run`"
            )));
        }
        let known = self.coordinator.run_ids();
        let is_taken = |id: &String| known.contains(id) || self.coordinator.unreadable.contains(id);
        let id = if again {
            let numbered = |number: u64| if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let free =
                (1..).find(|number| !is_taken(&numbered(*number))).expect("there are more numbers than runs");
            // The latest repetition is continued if it is still open.
            let last = numbered(free - 1);
            let is_open =
                self.coordinator.with_run(&last, |run| run.record().state.is_open()).unwrap_or(false);
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
            let status = self.status(&id).await?;
            return Ok(v1::RunStatus { existed: true, ..status });
        }
        // Drawing the openings of a large run takes time.
        let draw = move || {
            let mut schedule = Schedule::new(spec)?;
            if let Some(preparation) = schedule.prepare(OPENINGS_AHEAD) {
                schedule.finish(preparation.run());
            }
            Ok::<_, ScheduleError>(schedule)
        };
        let schedule = tokio::task::spawn_blocking(draw)
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
        let run = Run::new(source, schedule, &stored, Vec::new(), BTreeSet::new());
        let mut run = run.map_err(|error| Status::invalid_argument(error.to_string()))?;
        run.last_export = Some(run.since);
        let submit = Submit { stored: Box::new(stored), run: Box::new(run), by };
        let existed = !self.coordinator.execute(submit).await.map_err(unavailable)?;
        let status = self.status(&id).await?;
        Ok(v1::RunStatus { existed, ..status })
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
        let text = format!("{} by {}", kind.name(), operator_name(&operator));
        let entry = Some(Entry::new(kind, text).run(&id));
        let moved = self.coordinator.execute(Move { run: id.clone(), from, to, entry }).await;
        moved.map_err(unavailable)?.map_err(|state| {
            let state = state.map_or("gone", RunState::name);
            Status::failed_precondition(format!("cannot {action} {id}: it is {state}"))
        })?;
        self.status(&id).await
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
        let selection =
            Selection { worker: request.worker.clone(), first: request.first, last: request.last };
        let spec = coordinator.with_run(id, |run| Arc::clone(&run.spec));
        let spec = spec.ok_or_else(|| Status::not_found("the run no longer exists"))?;
        if spec.tune().is_some() {
            return Err(Status::failed_precondition(format!(
                "{id} is a tuning run, in which each bout depends on all earlier ones; cancel it and start a new run with \
                 --again"
            )));
        }
        // A part that is being written is finished first: a put without an answer may still succeed.
        let _hold = ExportHold::new(coordinator, id);
        // A part that was assigned before the hold is in the state after this.
        coordinator.settle().await;
        let exported = crate::export::await_open_part(coordinator, id).await.map_err(|reason| {
            Status::unavailable(format!(
                "bouts of {id} are being exported and cannot be voided until that succeeds: {reason}"
            ))
        })?;
        let selected = |bout: u64, worker: &str| selection.contains(bout, worker);
        let in_dataset = coordinator.dataset.bouts(&spec, id, selected).await.map_err(unavailable)?;
        let reason = clean_reason(&request.reason);
        let by = if reason.is_empty() { operator.to_string() } else { format!("{operator}: {reason}") };
        let void = Void { run: id.to_string(), selection, in_dataset, exported, by };
        let counts = coordinator.execute(void).await.map_err(unavailable)?;
        let VoidCounts { replayed, voided } = counts.map_err(|refusal| match refusal {
            VoidRefusal::NoRun => Status::not_found("the run no longer exists"),
            VoidRefusal::NoBouts => Status::not_found(format!(
                "{id} has no such bouts; `agon games {id}` lists its games with their workers"
            )),
            VoidRefusal::Final => Status::failed_precondition(format!(
                "these bouts of {id} are void already, or they failed and are exported: parts of the dataset are final, so that \
                 failed bouts can only be played again before their export; repeat the run with `agon submit SPEC --again`"
            )),
            VoidRefusal::Exported => Status::aborted(format!("bouts of {id} were just exported; try again")),
        })?;
        crate::export::write_run(coordinator, id).await.map_err(unavailable)?;
        Ok(v1::VoidBoutsResponse { requeued: replayed, voided })
    }
}

/// Runs a call to its end, even if its caller hangs up: it takes long, and what it holds is released at its end.
async fn detached<T: Send + 'static>(
    call: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<Response<T>, Status> {
    let done = tokio::spawn(call).await;
    done.unwrap_or_else(|error| Err(Status::internal(error.to_string()))).map(Response::new)
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
        let by = operator_name(&Caller::of(&request));
        let request = request.into_inner();
        let spec = request.spec.ok_or_else(|| Status::invalid_argument("the request has no spec"))?;
        let source = SpecSource::try_from(spec)?;
        let service = self.clone();
        detached(async move { service.submit(source, request.again, request.priority, by).await }).await
    }

    async fn list_runs(
        &self,
        _request: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsResponse>, Status> {
        let coordinator = Arc::clone(&self.coordinator);
        let list = move || {
            let ids = coordinator.run_ids();
            ids.iter().filter_map(|id| coordinator.status(id, false)).collect()
        };
        let runs = tokio::task::spawn_blocking(list).await;
        let runs = runs.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(v1::ListRunsResponse { runs }))
    }

    async fn show_run(
        &self,
        request: Request<v1::ShowRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let id = self.find(&request.into_inner().run)?;
        self.status(&id).await.map(Response::new)
    }

    async fn watch_run(
        &self,
        request: Request<v1::WatchRunRequest>,
    ) -> Result<Response<Self::WatchRunStream>, Status> {
        let id = self.find(&request.into_inner().run)?;
        let (out, stream) = mpsc::channel(1);
        let service = self.clone();
        tokio::spawn(async move {
            let coordinator = &service.coordinator;
            let mut changes = coordinator.watch();
            loop {
                changes.mark_unchanged();
                let complete = coordinator.is_complete(&id) || coordinator.is_draining();
                let Ok(status) = service.status(&id).await else { break };
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
        let run = request.into_inner().run;
        self.transition(&run, "cancel", OPEN, RunState::Cancelled, by).await.map(Response::new)
    }

    async fn pause_run(
        &self,
        request: Request<v1::PauseRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let by = (AuditKind::Paused, Caller::of(&request));
        let run = request.into_inner().run;
        let from = &[RunState::Running];
        self.transition(&run, "pause", from, RunState::Paused, by).await.map(Response::new)
    }

    async fn resume_run(
        &self,
        request: Request<v1::ResumeRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let by = (AuditKind::Resumed, Caller::of(&request));
        let run = request.into_inner().run;
        let from = &[RunState::Paused];
        self.transition(&run, "resume", from, RunState::Running, by).await.map(Response::new)
    }

    async fn prioritise_run(
        &self,
        request: Request<v1::PrioritiseRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let operator = operator_name(&Caller::of(&request));
        let v1::PrioritiseRunRequest { run, priority } = request.into_inner();
        let id = self.find(&run)?;
        let text = format!("priority set to {priority} by {operator}");
        let entry = Entry::new(AuditKind::Prioritised, text).run(&id);
        let command = Prioritise { run: id.clone(), priority, entry };
        self.coordinator.execute(command).await.map_err(unavailable)?;
        self.status(&id).await.map(Response::new)
    }

    async fn void_bouts(
        &self,
        request: Request<v1::VoidBoutsRequest>,
    ) -> Result<Response<v1::VoidBoutsResponse>, Status> {
        let operator = operator_name(&Caller::of(&request));
        let request = request.into_inner();
        worker_name(request.worker.clone())?;
        let id = self.find(&request.run)?;
        let service = self.clone();
        detached(async move { service.void(&id, &request, &operator).await }).await
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
        let (worker, reason) = (worker_name(worker)?, clean_reason(&reason));
        self.coordinator.quarantine_by_operator(&worker, &reason, &operator).await?;
        self.worker(&worker)
    }

    async fn trust_worker(
        &self,
        request: Request<v1::TrustWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let operator = Caller::of(&request);
        let worker = worker_name(request.into_inner().worker)?;
        self.coordinator.trust_by_operator(&worker, &operator).await?;
        self.worker(&worker)
    }

    async fn drain_worker(
        &self,
        request: Request<v1::DrainWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let operator = Caller::of(&request);
        let worker = worker_name(request.into_inner().worker)?;
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
        let limit = if limit == 0 { DEFAULT_ENTRIES } else { u64::from(limit).min(MAX_ENTRIES) };
        self.coordinator.settle().await;
        let coordinator = Arc::clone(&self.coordinator);
        let worker = filter(worker);
        let read = move || coordinator.reader.audits(worker.as_deref(), run.as_deref(), limit);
        let entries = tokio::task::spawn_blocking(read).await.map_err(unavailable)?;
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
