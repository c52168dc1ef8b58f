//! The service for workers: sessions, which grant leases, and submissions, which commit bouts.
//!
//! This module receives, verifies and acknowledges; the state decides what a bout is worth, the store makes it durable.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agon_proto::v1::worker_message::Kind;
use agon_proto::{Heartbeat, Hello, Lease, PROTOCOLS, Returned, v1};
use agon_transport::{Caller, ConnectionInfo};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use tracing::{error, warn};

use crate::audit::{AuditKind, Entry as AuditEntry};
use crate::durable::bouts::Uncommitted;
use crate::export::ExportError;
use crate::leases::BoutKey;
use crate::receipt::{self, Arrived, HeldBout, Invalid, UncommittedBout};
use crate::state::{Coordinator, Rejection, SEND_QUEUE};
use crate::verification::replication::Digest;

/// How long a new session may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// Acknowledgements queued for a slow reader.
const ACKNOWLEDGEMENT_QUEUE: usize = 1024;
/// The rate limit of a session; further messages wait.
const MAX_MESSAGES_PER_SECOND: usize = 1000;
/// Leases in a message that count as one more message.
const LEASES_PER_MESSAGE: usize = 100;

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
        let address = request.extensions().get::<ConnectionInfo>().map(|info| info.peer().ip());
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
        let session = self.coordinator.connect(&hello, &caller, address, queue)?;
        let coordinator = Arc::clone(&self.coordinator);
        let worker = hello.worker.clone();
        tokio::spawn(async move {
            let messages = messages.map_while(Result::ok);
            let read = read_session(Arc::clone(&coordinator), worker.clone(), session, messages);
            if let Err(failure) = tokio::spawn(read).await {
                error!(worker, %failure, "session ended by a bug; report this");
            }
            coordinator.disconnect(&worker, session);
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
            let mut open: HashMap<Lease, HeldBout> = HashMap::new();
            while let Some(message) = messages.next().await {
                let message = match message {
                    Ok(message) => message,
                    Err(status) => {
                        // Report an oversized or malformed message before the stream ends.
                        let _ = out.send(Err(status)).await;
                        break;
                    }
                };
                let answer = match receive(&coordinator, &caller, &mut open, message).await {
                    Ok(None) => continue,
                    Ok(Some(arrived)) => {
                        // Bouts are stored concurrently, so that one sync serves many. Back-pressure: reserve a place
                        // in the queue first, so that a worker that does not read its acknowledgements is not read.
                        let Ok(slot) = out.clone().reserve_owned().await else { break };
                        let slot = AnswerSlot { slot: Some(slot), lease: arrived.lease().clone() };
                        let (coordinator, caller) = (Arc::clone(&coordinator), caller.clone());
                        tokio::spawn(async move {
                            let answer = commit(&coordinator, &caller, arrived).await;
                            coordinator.metrics.submission(outcome_name(&answer));
                            slot.send(answer);
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

/// Reads the messages of a session after its hello. They are read while the state cannot be written, so that the leases of a
/// worker that returned do not expire; it is granted bouts after it is on disk that it may hold leases.
async fn read_session(
    coordinator: Arc<Coordinator>,
    worker: String,
    session: u64,
    messages: impl Stream<Item = v1::WorkerMessage>,
) {
    let (mut recording, mut messages) = (pin!(coordinator.record_holder(&worker, session)), pin!(messages));
    let mut is_recorded = false;
    let (mut since, mut received) = (Instant::now(), 0);
    loop {
        let message = tokio::select! {
            () = &mut recording, if !is_recorded => {
                is_recorded = true;
                continue;
            }
            message = messages.next() => message,
        };
        let Some(message) = message else { return };
        received += weight(&message);
        if received > MAX_MESSAGES_PER_SECOND {
            tokio::time::sleep_until((since + Duration::from_secs(1)).into()).await;
            (since, received) = (Instant::now(), 0);
        }
        if let Err(status) = handle_message(&coordinator, &worker, session, message) {
            warn!(worker, %status, "message ignored");
        }
    }
}

/// The place of the answer to a bout. If its commit panics, the answer is a status: no submission stays without an answer.
struct AnswerSlot {
    slot: Option<mpsc::OwnedPermit<Result<v1::Acknowledgement, Status>>>,
    lease: Lease,
}

impl AnswerSlot {
    fn send(mut self, answer: v1::Acknowledgement) {
        if let Some(slot) = self.slot.take() {
            slot.send(Ok(answer));
        }
    }
}

impl Drop for AnswerSlot {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take().filter(|_| std::thread::panicking()) else { return };
        error!(run = self.lease.run, bout = self.lease.bout, "commit ended by a bug; report this");
        let text = format!("the commit of {} failed in the coordinator; its log has the reason", self.lease);
        slot.send(Err(Status::internal(text)));
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
            coordinator.return_bouts(worker, session, &returned.leases, &returned.reason);
            Ok(())
        }
        Some(Kind::Hello(_)) => Err(Status::invalid_argument("a session has only one hello")),
        None => Err(Status::invalid_argument("the message is empty")),
    }
}

/// Receives a message. Returns what it completes, if anything; an error is the immediate answer: an acknowledgement, or
/// a status that ends the stream.
async fn receive(
    coordinator: &Coordinator,
    caller: &Caller,
    open: &mut HashMap<Lease, HeldBout>,
    message: v1::Submission,
) -> Result<Option<Arrived>, Result<v1::Acknowledgement, Status>> {
    let lease = Lease::required(message.lease.clone()).map_err(|error| Err(error.into()))?;
    let is_head =
        matches!(message.kind, Some(v1::submission::Kind::Head(_) | v1::submission::Kind::Failure(_)));
    if is_head && !open.contains_key(&lease) {
        let worker = match &message.kind {
            Some(v1::submission::Kind::Head(head)) => Some(head.worker.as_str()),
            _ => None,
        };
        let admission = match coordinator.admit(&lease, worker, caller) {
            Ok(admission) => admission,
            Err(Rejection::Call(status)) => {
                warn!(run = lease.run, bout = lease.bout, %status, "submission rejected");
                return Err(Err(status));
            }
            Err(Rejection::Fault(reason)) => {
                let reason = coordinator.reject(&lease, worker.unwrap_or_default(), &reason).await;
                return Err(Ok(acknowledge(&lease, v1::Outcome::Refused, &reason)));
            }
            Err(Rejection::Unknown) => {
                let reason = "the coordinator has no such bout";
                return Err(Ok(acknowledge(&lease, v1::Outcome::NotWanted, reason)));
            }
        };
        let is_leased = |other: &Lease| coordinator.lease_facts(other).0;
        make_room(open, &lease, admission.most_open, is_leased).map_err(Err)?;
        let held = HeldBout::new(lease.clone(), admission).map_err(|error| Err(error.into()))?;
        open.insert(lease.clone(), held);
    }
    // The rest of a bout that was refused or has no run is already answered.
    let Entry::Occupied(held) = open.entry(lease) else { return Ok(None) };
    match receipt::accept(held, message) {
        Ok(arrived) => Ok(arrived),
        Err(Invalid { lease, worker, reason }) => {
            let reason = coordinator.reject(&lease, &worker, &reason).await;
            Err(Ok(acknowledge(&lease, v1::Outcome::Refused, &reason)))
        }
    }
}

/// Drops the bouts of a stream that will not be completed: earlier leases of this bout, and at the limit those whose lease
/// has ended. Fails if there are still too many.
fn make_room<T>(
    open: &mut HashMap<Lease, T>,
    lease: &Lease,
    most: usize,
    is_leased: impl Fn(&Lease) -> bool,
) -> Result<(), Status> {
    open.retain(|other, _| (&other.run, other.bout) != (&lease.run, lease.bout));
    if open.len() >= most {
        open.retain(|other, _| is_leased(other));
    }
    if open.capacity() > 4 * most {
        open.shrink_to(most);
    }
    if open.len() >= most {
        let text =
            format!("more than {most} incomplete bouts, which is more than the slots of this worker play");
        return Err(Status::resource_exhausted(text));
    }
    Ok(())
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
        reason: agon_proto::session::clean_reason(reason),
    }
}

/// Verifies and commits what has arrived. Waits while the disk is full.
async fn commit(coordinator: &Arc<Coordinator>, caller: &Caller, arrived: Arrived) -> v1::Acknowledgement {
    let failed = |lease: &Lease, reason: &str| {
        coordinator.record_failure(lease, reason);
        acknowledge(lease, v1::Outcome::FailureNoted, reason)
    };
    let received = match arrived {
        Arrived::Failed { lease, reason } => return failed(&lease, &reason),
        Arrived::Complete(received) => received,
    };
    let (lease, worker) = (received.lease().clone(), received.worker().to_string());
    let plies = received.plies();
    let check = {
        let coordinator = Arc::clone(coordinator);
        move || received.check(&coordinator)
    };
    match coordinator.referees.run(plies, check).await {
        Ok(Ok(checked)) => match checked.commit(coordinator, caller).await {
            Ok(durable) => durable.acknowledge(),
            Err(uncommitted) => answer(coordinator, caller, &uncommitted).await,
        },
        Ok(Err(reason)) => {
            let reason = coordinator.reject(&lease, &worker, &reason).await;
            acknowledge(&lease, v1::Outcome::Refused, &reason)
        }
        Err(failure) => {
            error!(run = lease.run, bout = lease.bout, %failure, "referee failed; report this");
            failed(&lease, "the referee of the coordinator failed; its log has the reason")
        }
    }
}

/// Returns the acknowledgement of a checked bout that does not count.
async fn answer(
    coordinator: &Arc<Coordinator>,
    caller: &Caller,
    uncommitted: &UncommittedBout,
) -> v1::Acknowledgement {
    let UncommittedBout { lease, worker, digest, reason } = uncommitted;
    coordinator.finish_lease(lease);
    let key = BoutKey { run: lease.run.clone(), bout: lease.bout };
    let audit = |kind, text| {
        coordinator.audit_caused_by(AuditEntry::new(kind, text).worker(worker).bout(&key), caller);
    };
    let conflict = || {
        warn!(run = lease.run, bout = lease.bout, worker, "content conflict");
        audit(AuditKind::Conflict, "content differs from the committed bout");
        acknowledge(lease, v1::Outcome::Conflict, "the bout is already committed with different content")
    };
    match reason {
        Uncommitted::Duplicate | Uncommitted::Replicated => acknowledge(lease, v1::Outcome::Duplicate, ""),
        Uncommitted::Conflict => conflict(),
        Uncommitted::ReplicaDiffers => {
            acknowledge(lease, v1::Outcome::Conflict, "another worker submitted different content")
        }
        Uncommitted::RunClosed => acknowledge(lease, v1::Outcome::NotWanted, "the run accepts no more bouts"),
        Uncommitted::Stale => {
            audit(AuditKind::Stale, "arrived after its lease expired; the bout is played again");
            let reason = "arrived after its lease expired; a timed run replays such bouts, as accepting the first to finish \
                          would favour short games";
            acknowledge(lease, v1::Outcome::Stale, reason)
        }
        Uncommitted::Exported => match exported_content(coordinator, lease).await {
            Ok(Some(known)) if known == *digest => acknowledge(lease, v1::Outcome::Duplicate, ""),
            Ok(Some(_)) => conflict(),
            Ok(None) => acknowledge(lease, v1::Outcome::NotWanted, "the bout failed or was not needed"),
            Err(error) => {
                warn!(run = lease.run, bout = lease.bout, %error, "exported bout unreadable");
                let reason = "the bout is exported; its content cannot be read for comparison now";
                acknowledge(lease, v1::Outcome::Duplicate, reason)
            }
        },
    }
}

/// Reads the content digest of an exported bout. One part is read at a time, because parts are read into memory.
async fn exported_content(coordinator: &Coordinator, lease: &Lease) -> Result<Option<Digest>, ExportError> {
    let _guard = coordinator.comparison_lock.lock().await;
    coordinator.dataset.content(&lease.run, lease.bout).await
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::durable::workers::Hold;
    use crate::fixtures::{TestWorker, coordinator, hello};

    fn lease(bout: u64, sequence: u64) -> Lease {
        Lease { run: "r".to_string(), bout, epoch: 1, sequence }
    }

    #[test]
    fn stream_keeps_no_more_incomplete_bouts_than_its_worker_plays() {
        let mut open: HashMap<Lease, ()> = HashMap::new();
        let mut begin = |lease: Lease, leased: u64| {
            let room = make_room(&mut open, &lease, 4, |other| other.bout < leased);
            let added = room.map(|()| open.insert(lease, ()));
            added.map(|_| open.len()).map_err(|status| status.code())
        };
        for bout in 0..4 {
            assert_eq!(begin(lease(bout, 1), 4), Ok(bout as usize + 1));
        }
        assert_eq!(begin(lease(4, 1), 4), Err(tonic::Code::ResourceExhausted));
        assert_eq!(begin(lease(3, 2), 4), Ok(4), "a new lease replaces the earlier one of the bout");
        assert_eq!(begin(lease(5, 1), 2), Ok(3), "bouts without a lease make room");
    }

    #[tokio::test]
    async fn panicking_commit_is_answered_with_a_status() {
        let (out, mut answers) = mpsc::channel(1);
        let slot = AnswerSlot { slot: Some(out.reserve_owned().await.unwrap()), lease: lease(0, 1) };
        let commit = tokio::spawn(async move {
            tokio::task::yield_now().await;
            assert!(slot.lease.bout > 0, "a bug");
            slot.send(v1::Acknowledgement::default());
        });
        assert!(commit.await.is_err());
        assert_eq!(answers.recv().await.unwrap().unwrap_err().code(), tonic::Code::Internal);
    }

    /// The state cannot be written, and a worker returns with a lease.
    #[tokio::test]
    async fn heartbeats_extend_leases_while_the_state_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let before = TestWorker::connect(&coordinator, "w", 1).await;
        let held = before.lease(&coordinator);
        coordinator.disconnect("w", before.session);
        let other = Connection::open(folder.path().join("state")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        coordinator.post(Hold { worker: "another".to_string(), holds: true });
        let (queue, _inbox) = mpsc::channel(SEND_QUEUE);
        let hello = Hello { held: vec![held.clone()], ..hello(&coordinator, "w") };
        let session = coordinator.connect(&hello, &Caller::anonymous(), None, queue).unwrap();
        let heartbeat = |pulse| {
            let lease = Some((&held).into());
            let progress = vec![v1::Progress { lease, started: true, pulse, ..Default::default() }];
            let heartbeat = v1::Heartbeat { progress, room: 1, grants_received: 99, ..Default::default() };
            v1::WorkerMessage { kind: Some(Kind::Heartbeat(heartbeat)) }
        };
        let (send, receive) = mpsc::channel(9);
        let read =
            read_session(Arc::clone(&coordinator), "w".to_string(), session, ReceiverStream::new(receive));
        let reading = tokio::spawn(read);
        for pulse in 1..10 {
            send.send(heartbeat(pulse)).await.unwrap();
            while send.capacity() < 9 {
                tokio::task::yield_now().await;
            }
            coordinator.pass(coordinator.timing.lease / 3);
            assert_eq!(coordinator.lock().leases.count(), 1, "it keeps its bout and gets no other");
        }
        other.execute_batch("COMMIT").unwrap();
        while coordinator.lock().leases.count() < 2 {
            tokio::task::yield_now().await;
        }
        drop(send);
        reading.await.unwrap();
    }
}
