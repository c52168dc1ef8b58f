//! The service for workers: sessions, which grant leases, and submissions, which commit bouts.
//!
//! This module receives, verifies and acknowledges; the state decides what a bout is worth, the store makes it durable.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agon_arena::{Arena, Spec};
use agon_proto::v1::worker_message::Kind;
use agon_proto::{Assembled, Assembler, CompleteBout, Heartbeat, Hello, Lease, PROTOCOLS, Returned, v1};
use agon_records::{BoutColumns, check_bout, check_probe};
use agon_schedule::{RunState, Summary};
use agon_storage::summarise;
use agon_transport::Caller;
use tokio::sync::{RwLockReadGuard, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use tracing::warn;

use crate::audit::{AuditKind, Entry};
use crate::export::ExportError;
use crate::leases::BoutKey;
use crate::standings::encode_checked;
use crate::state::{Coordinator, OPEN, SEND_QUEUE, SubmissionVerdict, WriteTarget};
use crate::store::{NewBout, PutOutcome, StoreError};
use crate::verification::replication::Digest;

/// How long a new session may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// The delay before a write to a full disk is retried.
const DISK_FULL_RETRY: Duration = Duration::from_secs(1);
/// Acknowledgements queued for a slow reader.
const ACKNOWLEDGEMENT_QUEUE: usize = 1024;
/// The rate limit of a session; further messages wait.
const MAX_MESSAGES_PER_SECOND: usize = 1000;
/// Leases in a message that count as one more message.
const LEASES_PER_MESSAGE: usize = 100;
/// The maximum number of incomplete bouts of a stream.
const MAX_OPEN_BOUTS: usize = 8192;

/// The gRPC service for workers.
#[derive(Clone)]
pub struct WorkerService {
    coordinator: Arc<Coordinator>,
}

impl WorkerService {
    /// Creates the service for a coordinator.
    pub fn new(coordinator: Arc<Coordinator>) -> WorkerService {
        WorkerService { coordinator }
    }
}

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl v1::worker_server::Worker for WorkerService {
    type SessionStream = ResponseStream<v1::CoordinatorMessage>;
    type SubmitStream = ResponseStream<v1::Acknowledgement>;

    async fn session(
        &self,
        request: Request<Streaming<v1::WorkerMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let caller = Caller::of(&request);
        let mut messages = request.into_inner();
        let first = tokio::time::timeout(HELLO_TIMEOUT, messages.next())
            .await
            .map_err(|_| Status::deadline_exceeded("no hello received; a session begins with one"))?;
        let Some(Kind::Hello(hello)) = first.transpose()?.and_then(|message| message.kind) else {
            return Err(Status::invalid_argument("the first message of a session must be a hello"));
        };
        let hello = Hello::try_from(hello)?;
        self.check_compatibility(&hello)?;
        let (queue, responses) = mpsc::channel(SEND_QUEUE);
        let session = self.coordinator.connect(&hello, &caller, queue)?;
        let coordinator = Arc::clone(&self.coordinator);
        tokio::spawn(async move {
            // Before the first heartbeat, which asks for bouts. A failure costs efficiency after a restart, nothing else.
            if let Err(error) = coordinator.store.add_holder(&hello.worker).await {
                warn!(worker = hello.worker, %error, "holder not recorded");
            }
            let (mut since, mut received) = (Instant::now(), 0);
            while let Some(Ok(message)) = messages.next().await {
                received += weight(&message);
                if received > MAX_MESSAGES_PER_SECOND {
                    tokio::time::sleep_until((since + Duration::from_secs(1)).into()).await;
                    (since, received) = (Instant::now(), 0);
                }
                if let Err(status) = handle_message(&coordinator, &hello.worker, session, message) {
                    warn!(worker = hello.worker, %status, "message ignored");
                }
            }
            coordinator.disconnect(&hello.worker, session);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(responses))))
    }

    async fn submit(
        &self,
        request: Request<Streaming<v1::Submission>>,
    ) -> Result<Response<Self::SubmitStream>, Status> {
        let caller = Caller::of(&request);
        let mut messages = request.into_inner();
        let (out, responses) = mpsc::channel(ACKNOWLEDGEMENT_QUEUE);
        let coordinator = Arc::clone(&self.coordinator);
        tokio::spawn(async move {
            let mut open: HashMap<Lease, IncomingBout> = HashMap::new();
            while let Some(message) = messages.next().await {
                let message = match message {
                    Ok(message) => message,
                    Err(status) => {
                        // Report an oversized or malformed message before the stream ends.
                        let _ = out.send(Err(status)).await;
                        break;
                    }
                };
                let answer = match receive(&coordinator, &caller, &mut open, message) {
                    Ok(None) => continue,
                    Ok(Some(received)) => {
                        // Bouts are stored concurrently, so that one sync serves many. Back-pressure: reserve a place
                        // in the queue first, so that a worker that does not read its acknowledgements is not read.
                        let Ok(slot) = out.clone().reserve_owned().await else { break };
                        let (coordinator, caller) = (Arc::clone(&coordinator), caller.clone());
                        tokio::spawn(async move {
                            let answer = commit(&coordinator, &caller, received).await;
                            coordinator.metrics.submission(outcome_name(&answer));
                            slot.send(Ok(answer));
                        });
                        continue;
                    }
                    Err(answer) => answer,
                };
                // A refused bout ends the stream.
                let over = !answer.as_ref().is_ok_and(|answer| answer.outcome() != v1::Outcome::Refused);
                if out.send(answer).await.is_err() || over {
                    break;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(responses))))
    }
}

impl WorkerService {
    /// Rejects a worker whose protocol or search differs from this build.
    fn check_compatibility(&self, hello: &Hello) -> Result<(), Status> {
        let theirs = &hello.protocols;
        if theirs.start() > PROTOCOLS.end() || theirs.end() < PROTOCOLS.start() {
            return Err(Status::failed_precondition(format!(
                "the worker supports protocol versions {} to {} and the coordinator {} to {}; update the older one",
                theirs.start(),
                theirs.end(),
                PROTOCOLS.start(),
                PROTOCOLS.end()
            )));
        }
        if hello.signature != self.coordinator.signature {
            return Err(Status::failed_precondition(format!(
                "this worker's build {} searches differently (signature {}, coordinator {}), so that its games are not \
                 comparable; run the same build on both sides",
                hello.build, hello.signature, self.coordinator.signature
            )));
        }
        Ok(())
    }
}

/// Returns how many messages a message counts as.
fn weight(message: &v1::WorkerMessage) -> usize {
    let leases = match &message.kind {
        Some(Kind::Heartbeat(heartbeat)) => heartbeat.progress.len(),
        Some(Kind::Return(returned)) => returned.leases.len(),
        _ => 0,
    };
    1 + leases / LEASES_PER_MESSAGE
}

/// Handles a message of a session after its hello.
fn handle_message(
    coordinator: &Coordinator,
    worker: &str,
    session: u64,
    message: v1::WorkerMessage,
) -> Result<(), Status> {
    match message.kind {
        Some(Kind::Heartbeat(heartbeat)) => {
            coordinator.heartbeat(worker, session, &Heartbeat::try_from(heartbeat)?);
            Ok(())
        }
        Some(Kind::Return(returned)) => {
            let returned = Returned::try_from(returned)?;
            coordinator.return_bouts(worker, &returned.leases, &returned.reason);
            Ok(())
        }
        Some(Kind::Hello(_)) => Err(Status::invalid_argument("a session has only one hello")),
        None => Err(Status::invalid_argument("the message is empty")),
    }
}

/// A bout that is partly received.
struct IncomingBout {
    assembler: Assembler,
    referee: Arc<Mutex<Arena>>,
}

/// A bout that is completely received.
struct ReceivedBout {
    lease: Lease,
    incoming: IncomingBout,
    outcome: Assembled,
}

/// Receives a message. Returns the bout if that completes it; an error is the immediate answer: an acknowledgement, or
/// a status that ends the stream.
#[allow(clippy::result_large_err, reason = "tonic returns a Status by value")]
fn receive(
    coordinator: &Coordinator,
    caller: &Caller,
    open: &mut HashMap<Lease, IncomingBout>,
    message: v1::Submission,
) -> Result<Option<ReceivedBout>, Result<v1::Acknowledgement, Status>> {
    let lease = Lease::required(message.lease.clone()).map_err(|error| Err(error.into()))?;
    let is_head =
        matches!(message.kind, Some(v1::submission::Kind::Head(_) | v1::submission::Kind::Failure(_)));
    if is_head && !open.contains_key(&lease) {
        let worker = match &message.kind {
            Some(v1::submission::Kind::Head(head)) => Some(head.worker.as_str()),
            _ => None,
        };
        if let Err(status) = coordinator.authorise(&lease, worker, caller) {
            warn!(run = lease.run, bout = lease.bout, %status, "submission rejected");
            return Err(Err(status));
        }
        if let Some(v1::submission::Kind::Head(head)) = &message.kind
            && let Some(reason) = coordinator.lease_fault(&lease, &head.worker)
        {
            let reason = coordinator.reject(&lease, &head.worker, &reason);
            return Err(Ok(acknowledge(&lease, v1::Outcome::Refused, &reason)));
        }
        let Some((spec, bout, referee)) = coordinator.leased_bout(&lease) else {
            return Err(Ok(acknowledge(&lease, v1::Outcome::NotWanted, "the coordinator has no such bout")));
        };
        if open.len() >= MAX_OPEN_BOUTS {
            return Err(Err(Status::resource_exhausted(format!(
                "more than {MAX_OPEN_BOUTS} incomplete bouts"
            ))));
        }
        let assembler = Assembler::new(spec, bout).map_err(|error| Err(error.into()))?;
        open.insert(lease.clone(), IncomingBout { assembler, referee });
    }
    // The rest of a bout that was refused or has no run is already answered.
    let Some(incoming) = open.get_mut(&lease) else { return Ok(None) };
    match incoming.assembler.accept(message) {
        Ok(None) => Ok(None),
        Ok(Some(outcome)) => {
            let incoming = open.remove(&lease).expect("just found");
            Ok(Some(ReceivedBout { lease, incoming, outcome }))
        }
        Err(error) => {
            let worker = incoming.assembler.played_by().0.to_string();
            open.remove(&lease);
            let reason = coordinator.reject(&lease, &worker, &error.to_string());
            Err(Ok(acknowledge(&lease, v1::Outcome::Refused, &reason)))
        }
    }
}

/// Returns the metric label of an outcome.
fn outcome_name(answer: &v1::Acknowledgement) -> &'static str {
    match answer.outcome() {
        v1::Outcome::Committed => "committed",
        v1::Outcome::Duplicate => "duplicate",
        v1::Outcome::Conflict => "conflict",
        v1::Outcome::Stale => "stale",
        v1::Outcome::Refused => "refused",
        v1::Outcome::FailureNoted => "failed",
        v1::Outcome::NotWanted | v1::Outcome::Unspecified => "not-wanted",
    }
}

/// Builds an acknowledgement.
fn acknowledge(lease: &Lease, outcome: v1::Outcome, reason: &str) -> v1::Acknowledgement {
    v1::Acknowledgement {
        lease: Some(lease.into()),
        outcome: outcome as i32,
        reason: agon_proto::session::truncate_reason(reason),
    }
}

/// Verifies and stores a received bout. Waits while the disk is full.
async fn commit(
    coordinator: &Arc<Coordinator>,
    caller: &Caller,
    received: ReceivedBout,
) -> v1::Acknowledgement {
    let ReceivedBout { lease, incoming, outcome } = received;
    let worker = incoming.assembler.played_by().0.to_string();
    match outcome {
        Assembled::Failed { reason } => {
            if coordinator.record_failure(&lease, &worker, &reason) {
                let bout = NewBout {
                    run: lease.run.clone(),
                    bout: lease.bout,
                    worker: worker.clone(),
                    failure: Some(reason.clone()),
                    ..NewBout::default()
                };
                let (outcome, _change) = store_bout(coordinator, bout).await;
                if outcome == PutOutcome::New {
                    record_commit(coordinator, &lease, &worker, None).await;
                }
            }
            acknowledge(&lease, v1::Outcome::FailureNoted, &reason)
        }
        Assembled::Complete(bout) => {
            let spec = Arc::clone(incoming.assembler.spec());
            let started = Instant::now();
            let verified = verify(&incoming, &spec, &bout.bout);
            coordinator.metrics.checked(started);
            if let Err(reason) = verified {
                let reason = coordinator.reject(&lease, &worker, &reason);
                return acknowledge(&lease, v1::Outcome::Refused, &reason);
            }
            commit_verified(
                coordinator,
                caller,
                &lease,
                &worker,
                &spec,
                *bout,
                incoming.assembler.into_encoded(),
            )
            .await
        }
    }
}

/// Stores a verified bout, unless the state decides otherwise.
async fn commit_verified(
    coordinator: &Arc<Coordinator>,
    caller: &Caller,
    lease: &Lease,
    worker: &str,
    spec: &Spec,
    complete: CompleteBout,
    payload: Vec<u8>,
) -> v1::Acknowledgement {
    let key = BoutKey { run: lease.run.clone(), bout: lease.bout };
    let entry = |kind, text: &str| Entry::new(kind, text).worker(worker).bout(&key).caused_by(caller);
    match coordinator.judge_submission(lease) {
        SubmissionVerdict::RunClosed => {
            return acknowledge(lease, v1::Outcome::NotWanted, "the run accepts no more bouts");
        }
        SubmissionVerdict::Replica => {
            return if coordinator.resolve_replica(lease, worker, complete.content_digest) {
                acknowledge(lease, v1::Outcome::Duplicate, "")
            } else {
                acknowledge(lease, v1::Outcome::Conflict, "another worker submitted different content")
            };
        }
        SubmissionVerdict::Stale => {
            coordinator
                .audit(entry(AuditKind::Stale, "arrived after its lease expired; the bout is played again"));
            let reason = "arrived after its lease expired; a timed run replays such bouts, as accepting the first to finish would \
                          favour short games";
            return acknowledge(lease, v1::Outcome::Stale, reason);
        }
        SubmissionVerdict::Store => {}
    }
    let summary = summarise(spec, &complete.bout);
    let digest = complete.content_digest;
    let needs_replica = coordinator.needs_replica(lease, worker, &digest);
    let bout = NewBout {
        run: lease.run.clone(),
        bout: lease.bout,
        worker: worker.to_string(),
        digest: Some(digest),
        summary: encode_checked(&summary),
        payload,
        failure: None,
        needs_replica,
    };
    let conflict = || {
        warn!(run = lease.run, bout = lease.bout, worker, "content conflict");
        coordinator.audit(entry(AuditKind::Conflict, "content differs from the committed bout"));
        acknowledge(lease, v1::Outcome::Conflict, "the bout is already committed with different content")
    };
    let (outcome, change) = store_bout(coordinator, bout).await;
    match outcome {
        PutOutcome::New => {
            coordinator.recent.insert(key, complete.bout);
            record_commit(coordinator, lease, worker, Some((&summary, needs_replica.then_some(digest))))
                .await;
            drop(change);
            acknowledge(lease, v1::Outcome::Committed, "")
        }
        PutOutcome::Duplicate => acknowledge(lease, v1::Outcome::Duplicate, ""),
        PutOutcome::Conflict => conflict(),
        PutOutcome::Exported => match exported_content(coordinator, lease, change).await {
            Ok(Some(known)) if known == digest => acknowledge(lease, v1::Outcome::Duplicate, ""),
            Ok(Some(_)) => conflict(),
            Ok(None) => acknowledge(lease, v1::Outcome::NotWanted, "the bout failed or was not needed"),
            Err(error) => {
                warn!(run = lease.run, bout = lease.bout, %error, "exported bout unreadable");
                acknowledge(
                    lease,
                    v1::Outcome::Duplicate,
                    "the bout is exported; its content cannot be read for comparison now",
                )
            }
        },
        PutOutcome::RunClosed => acknowledge(lease, v1::Outcome::NotWanted, "the run accepts no more bouts"),
    }
}

/// Reads the content digest of an exported bout. One part is read at a time, because parts are read into memory.
async fn exported_content(
    coordinator: &Coordinator,
    lease: &Lease,
    change: RwLockReadGuard<'_, ()>,
) -> Result<Option<Digest>, ExportError> {
    drop(change);
    let _guard = coordinator.comparison_lock.lock().await;
    coordinator.dataset.content(&lease.run, lease.bout).await
}

/// Stores a bout durably. While the disk is full, grants stop and nothing is acknowledged. Returns a guard to hold until the
/// bout is recorded in memory.
async fn store_bout(coordinator: &Coordinator, bout: NewBout) -> (PutOutcome, RwLockReadGuard<'_, ()>) {
    let started = Instant::now();
    loop {
        let change = coordinator.change_lock.read().await;
        match coordinator.store.put_bout(bout.clone()).await {
            Ok(stored) => {
                coordinator.metrics.stored(started);
                coordinator.set_write_fault(WriteTarget::State, None);
                return (stored, change);
            }
            Err(StoreError::Full) => {
                drop(change);
                coordinator.set_write_fault(WriteTarget::State, Some(StoreError::Full.to_string()));
                tokio::time::sleep(DISK_FULL_RETRY).await;
            }
            Err(failure) => {
                // Never acknowledge the bout: the worker submits it again after the restart.
                coordinator.fail(failure);
                return std::future::pending().await;
            }
        }
    }
}

/// Records a durable bout, and ends a run that it decides.
async fn record_commit(
    coordinator: &Arc<Coordinator>,
    lease: &Lease,
    worker: &str,
    counted: Option<(&Summary, Option<Digest>)>,
) {
    let decision = coordinator.record_commit(lease, worker, counted);
    coordinator.spawn_proposal(&lease.run);
    let Some(decision) = decision else { return };
    let decided =
        coordinator.store.move_state(lease.run.clone(), OPEN, RunState::Decided, Some(decision.index)).await;
    match decided {
        // Another bout of the prefix found the same decision.
        Ok(before) if before.is_none_or(|state| !state.is_open()) => {}
        Ok(_) => {
            let text = format!("the test decided at bout {}", decision.index);
            coordinator.audit(Entry::new(AuditKind::Decided, text).run(&lease.run));
            coordinator.end_run(&lease.run, RunState::Decided, Some(decision.index), "the test has decided");
        }
        // The next bout of the prefix finds the same decision.
        Err(failure) => warn!(%failure, run = lease.run, "decision not stored"),
    }
}

/// Replays the games of a bout by the rules.
fn verify(incoming: &IncomingBout, spec: &Spec, columns: &BoutColumns) -> Result<(), String> {
    let bout = &incoming.assembler.leased().bout;
    let referee = incoming.referee.lock().unwrap_or_else(PoisonError::into_inner);
    check_bout(spec, &referee, spec.games(bout, 1.0), columns).map_err(|fault| fault.reason)?;
    columns.probes.iter().try_for_each(|row| check_probe(spec, &referee, &bout.players, &bout.opening, row))
}
