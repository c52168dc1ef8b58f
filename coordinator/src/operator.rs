//! The operators' side of the wire: submit, list, show, watch, cancel.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agon_arena::{Spec, SpecSource};
use agon_proto::session::shortened;
use agon_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::export::{Folding, unfold};
use crate::hall::{Hall, Remembered, Run, now_us};
use crate::naming::meant;
use crate::schedule::Schedule;
use crate::standings::seal;
use crate::store::{Audit, RunState, StoreError, StoredRun};

/// The least time between two messages to a watcher.
const BETWEEN: Duration = Duration::from_millis(250);

/// The service that operators call.
#[derive(Clone)]
pub struct Operator {
    hall: Arc<Hall>,
}

impl Operator {
    /// The service over a hall.
    pub fn new(hall: Arc<Hall>) -> Operator {
        Operator { hall }
    }

    /// The id that is meant: an id, a name, a unique beginning, or `latest`.
    fn find(&self, given: &str) -> Result<String, Status> {
        let ids = self.hall.run_ids();
        if given == "latest" {
            return ids.last().cloned().ok_or_else(|| Status::not_found("there is no run yet"));
        }
        let matching = meant(&ids, given);
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
        self.hall.status(id, true).ok_or_else(|| Status::not_found(format!("no run is called `{id}`")))
    }

    async fn submit(&self, source: SpecSource, again: bool, priority: i32) -> Result<v1::RunStatus, Status> {
        let spec = Spec::parse(&source).map_err(|error| {
            let place = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            Status::invalid_argument(format!("{place}{}", error.reason))
        })?;
        let base = run_id(&spec.name, &source)?;
        let known = self.hall.run_ids();
        let is_taken = |id: &String| known.contains(id) || self.hall.strange.contains(id);
        let id = if again {
            let numbered = |number: u64| if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let free = (1..).find(|number| !is_taken(&numbered(*number))).expect("numbers do not run out");
            // The last one goes on where it stopped, if it is itself one more.
            let last = numbered(free - 1);
            let is_open = self.hall.with_run(&last, |run| run.state.is_open()).unwrap_or(false);
            if free > 2 && is_open { last } else { numbered(free) }
        } else {
            base
        };
        if self.hall.strange.contains(&id) {
            return Err(Status::failed_precondition(format!(
                "the dataset has a run {id} that this program does not understand, and its bouts must not be played a \
                 second time; use the program that made it, or run it --again"
            )));
        }
        self.hall.ask_for(&id);
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
            signature: self.hall.signature.clone(),
            build: env!("CARGO_PKG_VERSION").to_string(),
            priority,
            ..StoredRun::default()
        };
        let remembered = Remembered {
            stored: stored.clone(),
            bouts: Vec::new(),
            cells: Vec::new(),
            voided: BTreeSet::new(),
        };
        let run = Run::new(source, schedule, remembered)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        self.hall.store.add_run(stored).await.map_err(|error| unavailable(&error))?;
        self.hall.add_run(&id, run);
        self.hall.pursue(&id);
        self.status(&id)
    }
}

impl Operator {
    fn must_be(&self, id: &str, states: &[RunState], what: &str) -> Result<(), Status> {
        match self.hall.with_run(id, |run| run.state) {
            Some(state) if states.contains(&state) => Ok(()),
            state => {
                let state = state.map_or("gone", RunState::name);
                Err(Status::failed_precondition(format!("{id} is {state}; there is nothing to {what}")))
            }
        }
    }

    async fn store_state(&self, id: &str, state: RunState) -> Result<(), Status> {
        let stored = self.hall.store.set_state(id.to_string(), state, None).await;
        stored.map_err(|error| unavailable(&error))
    }

    fn worker(&self, name: &str) -> Result<Response<v1::WorkerStatus>, Status> {
        // One that is known by its quarantine alone has not been here since the coordinator started.
        let absent = v1::WorkerStatus { worker: name.to_string(), ..v1::WorkerStatus::default() };
        Ok(Response::new(self.hall.worker(name).unwrap_or(absent)))
    }

    /// Takes bouts out of the count: those in the state are played anew, those in the dataset are listed and left out.
    async fn void(&self, id: &str, request: &v1::VoidBoutsRequest) -> Result<v1::VoidBoutsResponse, Status> {
        let hall = &self.hall;
        let unavailable = |error: &dyn std::fmt::Display| Status::unavailable(error.to_string());
        let _alone = hall.exporting.lock().await;
        let wanted = |bout: u64, worker: &str| match request.worker.as_str() {
            "" => (request.first..=request.last).contains(&bout),
            name => name == worker,
        };
        // What is on its way into the dataset arrives there first: a put that nobody answered may still be done.
        crate::export::finish_part(hall, id).await.map_err(|error| {
            Status::unavailable(format!(
                "bouts of {id} are on their way into the dataset, and nothing can be voided meanwhile: {error}"
            ))
        })?;
        let look = hall.with_run(id, |run| {
            let how = Folding { rated_from: run.spec.first_rated_bout(), decided: run.decided };
            (Arc::clone(&run.spec), run.folded.clone(), run.voided.clone(), how)
        });
        let (spec, mut folded, known, how) = look.ok_or_else(|| Status::not_found("the run is gone"))?;
        if spec.tune().is_some() {
            return Err(Status::failed_precondition(format!(
                "{id} is a tune, and what it plays follows from every bout before: none can be left out; cancel it, and \
                 run it again with --again"
            )));
        }
        let kept =
            hall.store.summaries(id.to_string(), 0, u64::MAX).await.map_err(|error| unavailable(&error))?;
        let again: Vec<u64> =
            kept.iter().filter(|row| wanted(row.bout, &row.worker)).map(|row| row.bout).collect();
        let exported = hall.dataset.bouts(&spec, id, wanted).await.map_err(|error| unavailable(&error))?;
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
        hall.store
            .void(id.to_string(), request.worker.clone(), again, voided, seal(&folded))
            .await
            .map_err(|error| unavailable(&error))?;
        hall.recent.forget(id);
        let stored = hall.store.runs().await.map_err(|error| unavailable(&error))?;
        if let Some(stored) = stored.into_iter().find(|run| run.id == id) {
            let run = crate::load(&hall.store, stored).await.map_err(|error| unavailable(&error))?;
            hall.replace_run(id, run.map_err(Status::internal)?, &taken);
        }
        crate::export::write_run(hall, id).await.map_err(|error| unavailable(&error))?;
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
        hall.note_both("voided", &request.worker, id, &text);
        Ok(answer)
    }
}

/// The id of a run: its name and the beginning of the digest of what its spec says.
pub fn run_id(name: &str, source: &SpecSource) -> Result<String, Status> {
    let canonical = source.canonical().map_err(|error| Status::invalid_argument(error.reason))?;
    let digest = blake3::hash(canonical.as_bytes()).to_hex();
    Ok(format!("{name}-{}", &digest[..8]))
}

fn unavailable(error: &StoreError) -> Status {
    Status::unavailable(error.to_string())
}

#[tonic::async_trait]
impl v1::operator_server::Operator for Operator {
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
        let ids = self.hall.run_ids();
        let runs = ids.iter().filter_map(|id| self.hall.status(id, false)).collect();
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
        let hall = Arc::clone(&self.hall);
        tokio::spawn(async move {
            let mut changes = hall.watch();
            while let Some(status) = hall.status(&id, true) {
                changes.mark_unchanged();
                let open = [v1::RunState::Running, v1::RunState::Paused].map(|state| state as i32);
                // A run that has ended is over when all that it played is in the dataset.
                let ended = !open.contains(&status.state) && status.exported == status.bouts;
                let over = ended || hall.is_draining();
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
        self.hall.note_run("cancelled", &id, "an operator cancelled it");
        self.hall.end_run(&id, RunState::Cancelled, None, "the run was cancelled");
        self.status(&id).map(Response::new)
    }

    async fn pause_run(
        &self,
        request: Request<v1::PauseRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let id = self.find(&request.into_inner().run)?;
        self.must_be(&id, &[RunState::Running], "pause")?;
        self.store_state(&id, RunState::Paused).await?;
        self.hall.note_run("paused", &id, "an operator paused it");
        self.hall.steer(&id, |run| run.state = RunState::Paused);
        self.status(&id).map(Response::new)
    }

    async fn resume_run(
        &self,
        request: Request<v1::ResumeRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let id = self.find(&request.into_inner().run)?;
        self.must_be(&id, &[RunState::Paused], "resume")?;
        self.store_state(&id, RunState::Running).await?;
        self.hall.note_run("resumed", &id, "an operator let it go on");
        self.hall.steer(&id, |run| run.state = RunState::Running);
        self.status(&id).map(Response::new)
    }

    async fn prioritise_run(
        &self,
        request: Request<v1::PrioritiseRunRequest>,
    ) -> Result<Response<v1::RunStatus>, Status> {
        let v1::PrioritiseRunRequest { run, priority } = request.into_inner();
        let id = self.find(&run)?;
        self.hall.store.set_priority(id.clone(), priority).await.map_err(|error| unavailable(&error))?;
        self.hall.note_run("prioritised", &id, &format!("an operator gave it priority {priority}"));
        self.hall.steer(&id, |run| run.priority = priority);
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
        Ok(Response::new(v1::ListWorkersResponse { workers: self.hall.workers() }))
    }

    async fn quarantine_worker(
        &self,
        request: Request<v1::QuarantineWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let v1::QuarantineWorkerRequest { worker, reason } = request.into_inner();
        let reason =
            if reason.is_empty() { "an operator set it aside".to_string() } else { shortened(&reason) };
        self.hall.set_quarantine(&worker, Some(&reason)).map_err(Status::failed_precondition)?;
        self.worker(&worker)
    }

    async fn trust_worker(
        &self,
        request: Request<v1::TrustWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let worker = request.into_inner().worker;
        self.hall.set_quarantine(&worker, None).map_err(Status::failed_precondition)?;
        self.worker(&worker)
    }

    async fn drain_worker(
        &self,
        request: Request<v1::DrainWorkerRequest>,
    ) -> Result<Response<v1::WorkerStatus>, Status> {
        let worker = request.into_inner().worker;
        self.hall.drain_worker(&worker).map_err(Status::failed_precondition)?;
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
        let entries = self.hall.store.audits(given(worker), run, most).await;
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
