//! The operators' side of the wire: submit, list, show, watch, cancel.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agon_arena::{Spec, SpecSource};
use agon_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::hall::{Hall, Run};
use crate::schedule::Schedule;
use crate::store::{RunState, StoreError, StoredRun};

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

    /// The id that is meant: an id, a unique beginning of one, or `latest`.
    fn find(&self, given: &str) -> Result<String, Status> {
        let ids = self.hall.run_ids();
        if given == "latest" {
            return ids.last().cloned().ok_or_else(|| Status::not_found("there is no run yet"));
        }
        if let Some(id) = ids.iter().find(|id| *id == given) {
            return Ok(id.clone());
        }
        let matching: Vec<&String> =
            ids.iter().filter(|id| !given.is_empty() && id.starts_with(given)).collect();
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

    async fn submit(&self, source: SpecSource, again: bool) -> Result<v1::RunStatus, Status> {
        let spec = Spec::parse(&source).map_err(|error| {
            let place = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            Status::invalid_argument(format!("{place}{}", error.reason))
        })?;
        let base = run_id(&spec.name, &source)?;
        let known = self.hall.run_ids();
        let id = if again {
            let numbered = |number: u64| if number == 1 { base.clone() } else { format!("{base}-{number}") };
            (1..).map(numbered).find(|id| !known.contains(id)).expect("numbers do not run out")
        } else {
            base
        };
        if known.contains(&id) {
            let status = self.status(&id)?;
            return Ok(v1::RunStatus { existed: true, ..status });
        }
        // Drawing all openings of a large run takes a while.
        let schedule = tokio::task::spawn_blocking(move || Schedule::new(spec))
            .await
            .map_err(|error| Status::internal(error.to_string()))?
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let submitted_us = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
        let files = serde_json::to_string(&source.files).expect("texts by texts");
        let stored = StoredRun {
            id: id.clone(),
            text: source.text.clone(),
            files,
            state: RunState::Running,
            submitted_us,
            signature: self.hall.signature.clone(),
            decided: None,
        };
        let run = Run::new(source, schedule, &[], RunState::Running, submitted_us)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        self.hall.store.add_run(stored).await.map_err(|error| unavailable(&error))?;
        self.hall.add_run(&id, run);
        self.status(&id)
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
        self.submit(source, request.again).await.map(Response::new)
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
                let over = status.state != v1::RunState::Running as i32 || hall.is_draining();
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
        let state = self.hall.with_run(&id, |run| run.state);
        if state != Some(RunState::Running) {
            let state = state.map_or("gone", RunState::name);
            return Err(Status::failed_precondition(format!("{id} is {state}; there is nothing to cancel")));
        }
        self.hall
            .store
            .set_state(id.clone(), RunState::Cancelled, None)
            .await
            .map_err(|error| unavailable(&error))?;
        self.hall.end_run(&id, RunState::Cancelled, None, "the run was cancelled");
        self.status(&id).map(Response::new)
    }

    async fn list_workers(
        &self,
        _request: Request<v1::ListWorkersRequest>,
    ) -> Result<Response<v1::ListWorkersResponse>, Status> {
        Ok(Response::new(v1::ListWorkersResponse { workers: self.hall.workers() }))
    }
}
