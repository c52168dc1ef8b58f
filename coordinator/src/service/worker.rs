//! The workers' side of the wire: sessions and submissions.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agon_arena::{Arena, Spec};
use agon_proto::v1::worker_message::Kind;
use agon_proto::{Assembled, Assembler, Bout, Heartbeat, Hello, Lease, PROTOCOLS, Returned, WholeBout, v1};
use agon_records::{BoutColumns, check_bout, check_probe};
use agon_schedule::{RunState, Summary};
use agon_storage::summarise;
use agon_transport::Caller;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use tracing::warn;

use crate::audit::{AuditKind, Entry};
use crate::export::ExportError;
use crate::leases::BoutKey;
use crate::standings::encode_checked;
use crate::state::{Arrival, Coordinator, OUTBOX, WriteTarget};
use crate::store::{NewBout, StoreError, Stored};
use crate::verification::replication::Digest;

/// How long a worker has for its hello.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a full disk is left alone before it is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Acknowledgements that may wait for a slow reader.
const ACKNOWLEDGEMENTS: usize = 1024;
/// Messages of a session that are listened to in a second, and leases in one that count as much as a message.
const MESSAGES_A_SECOND: usize = 1000;
const LEASES_A_MESSAGE: usize = 100;
/// Bouts that one stream may have under way at once.
const MOST_OPEN: usize = 8192;

/// The service that workers call.
#[derive(Clone)]
pub struct WorkerService {
    coordinator: Arc<Coordinator>,
}

impl WorkerService {
    /// The service over a coordinator.
    pub fn new(coordinator: Arc<Coordinator>) -> WorkerService {
        WorkerService { coordinator }
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl v1::worker_server::Worker for WorkerService {
    type SessionStream = Answers<v1::CoordinatorMessage>;
    type SubmitStream = Answers<v1::Acknowledgement>;

    async fn session(
        &self,
        request: Request<Streaming<v1::WorkerMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let caller = Caller::of(&request);
        let mut messages = request.into_inner();
        let first = tokio::time::timeout(PATIENCE, messages.next())
            .await
            .map_err(|_| Status::deadline_exceeded("no hello came; it is the first message of a session"))?;
        let Some(Kind::Hello(hello)) = first.transpose()?.and_then(|message| message.kind) else {
            return Err(Status::invalid_argument("the first message of a session must be a hello"));
        };
        let hello = Hello::try_from(hello)?;
        self.admit(&hello)?;
        let (out, answers) = mpsc::channel(OUTBOX);
        let session = self.coordinator.connect(&hello, &caller, out)?;
        let coordinator = Arc::clone(&self.coordinator);
        tokio::spawn(async move {
            let (mut since, mut heard) = (Instant::now(), 0);
            while let Some(Ok(message)) = messages.next().await {
                // Whoever talks without end is listened to a little later.
                heard += weight(&message);
                if heard > MESSAGES_A_SECOND {
                    tokio::time::sleep_until((since + Duration::from_secs(1)).into()).await;
                    (since, heard) = (Instant::now(), 0);
                }
                if let Err(status) = hear(&coordinator, &hello.worker, session, message) {
                    warn!(worker = hello.worker, %status, "a message of a session makes no sense; it is left out");
                }
            }
            coordinator.disconnect(&hello.worker, session);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }

    async fn submit(
        &self,
        request: Request<Streaming<v1::Submission>>,
    ) -> Result<Response<Self::SubmitStream>, Status> {
        let caller = Caller::of(&request);
        let mut messages = request.into_inner();
        let (out, answers) = mpsc::channel(ACKNOWLEDGEMENTS);
        let coordinator = Arc::clone(&self.coordinator);
        tokio::spawn(async move {
            let mut open: HashMap<Lease, Incoming> = HashMap::new();
            while let Some(message) = messages.next().await {
                let message = match message {
                    Ok(message) => message,
                    Err(status) => {
                        // A message that is too long or garbled: whoever sent it is manifest before the stream ends.
                        let _ = out.send(Err(status)).await;
                        break;
                    }
                };
                let answer = match take(&coordinator, &caller, &mut open, message) {
                    Ok(None) => continue,
                    Ok(Some(finished)) => {
                        // Bouts are stored beside each other: one sync serves all that wait for it. Each has its place
                        // among the answers before: whoever does not read them is not listened to.
                        let Ok(place) = out.clone().reserve_owned().await else { break };
                        let (coordinator, caller) = (Arc::clone(&coordinator), caller.clone());
                        tokio::spawn(async move {
                            let answer = resolve(&coordinator, &caller, finished).await;
                            coordinator.metrics.submission(outcome_name(&answer));
                            place.send(Ok(answer));
                        });
                        continue;
                    }
                    Err(answer) => answer,
                };
                // What cannot be is the last that is listened to.
                let over = !answer.as_ref().is_ok_and(|answer| answer.outcome() != v1::Outcome::Refused);
                if out.send(answer).await.is_err() || over {
                    break;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }
}

impl WorkerService {
    /// Whether a worker may play for this coordinator.
    fn admit(&self, hello: &Hello) -> Result<(), Status> {
        let spoken = &hello.protocols;
        if spoken.start() > PROTOCOLS.end() || spoken.end() < PROTOCOLS.start() {
            return Err(Status::failed_precondition(format!(
                "the worker speaks versions {} to {} of the protocol and the coordinator {} to {}; update the older one",
                spoken.start(),
                spoken.end(),
                PROTOCOLS.start(),
                PROTOCOLS.end()
            )));
        }
        if hello.signature != self.coordinator.signature {
            return Err(Status::failed_precondition(format!(
                "this worker's build {} searches otherwise than the coordinator's (signature {} and not {}): its games \
                 could not be compared; run the same build on both sides",
                hello.build, hello.signature, self.coordinator.signature
            )));
        }
        Ok(())
    }
}

/// How many messages a message of a session is worth.
fn weight(message: &v1::WorkerMessage) -> usize {
    let leases = match &message.kind {
        Some(Kind::Heartbeat(heartbeat)) => heartbeat.progress.len(),
        Some(Kind::Return(returned)) => returned.leases.len(),
        _ => 0,
    };
    1 + leases / LEASES_A_MESSAGE
}

/// One message of a session after its hello.
fn hear(
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
            coordinator.returned(worker, &returned.leases, &returned.reason);
            Ok(())
        }
        Some(Kind::Hello(_)) => Err(Status::invalid_argument("a session has one hello")),
        None => Err(Status::invalid_argument("an empty message")),
    }
}

/// A bout whose messages are coming in.
struct Incoming {
    assembler: Assembler,
    referee: Arc<Mutex<Arena>>,
}

/// A bout of which everything has arrived.
struct Finished {
    lease: Lease,
    incoming: Incoming,
    outcome: Assembled,
}

/// Takes the next message. `Err` has what to answer at once: an acknowledgement, or the end of the stream.
#[allow(clippy::result_large_err, reason = "a Status is what the wire wants")]
fn take(
    coordinator: &Coordinator,
    caller: &Caller,
    open: &mut HashMap<Lease, Incoming>,
    message: v1::Submission,
) -> Result<Option<Finished>, Result<v1::Acknowledgement, Status>> {
    let lease = Lease::required(message.lease.clone()).map_err(|error| Err(error.into()))?;
    let is_head =
        matches!(message.kind, Some(v1::submission::Kind::Head(_) | v1::submission::Kind::Failure(_)));
    if is_head && !open.contains_key(&lease) {
        let named = match &message.kind {
            Some(v1::submission::Kind::Head(head)) => Some(head.worker.as_str()),
            _ => None,
        };
        if let Some(status) = coordinator.authorise(&lease, named, caller) {
            let reason = status.message();
            warn!(
                run = lease.run,
                bout = lease.bout,
                reason,
                "a submission in the name of another is not taken"
            );
            return Err(Err(status));
        }
        if let Some(v1::submission::Kind::Head(head)) = &message.kind
            && let Some(reason) = coordinator.lease_fault(&lease, &head.worker)
        {
            let reason = coordinator.reject(&lease, &head.worker, &reason);
            return Err(Ok(acknowledge(&lease, v1::Outcome::Refused, &reason)));
        }
        let Some((spec, bout, referee)) = coordinator.leased_bout(&lease) else {
            return Err(Ok(acknowledge(&lease, v1::Outcome::NotWanted, "this coordinator has no such bout")));
        };
        if open.len() >= MOST_OPEN {
            return Err(Err(Status::resource_exhausted(format!("more than {MOST_OPEN} bouts at once"))));
        }
        let assembler = Assembler::new(spec, bout).map_err(|error| Err(error.into()))?;
        open.insert(lease.clone(), Incoming { assembler, referee });
    }
    // What follows a bout that was refused, or whose run is gone, has been answered already.
    let Some(incoming) = open.get_mut(&lease) else { return Ok(None) };
    match incoming.assembler.accept(message) {
        Ok(None) => Ok(None),
        Ok(Some(outcome)) => {
            let incoming = open.remove(&lease).expect("it was there a line ago");
            Ok(Some(Finished { lease, incoming, outcome }))
        }
        Err(error) => {
            let worker = incoming.assembler.played_by().0.to_string();
            open.remove(&lease);
            let reason = coordinator.reject(&lease, &worker, &error.to_string());
            Err(Ok(acknowledge(&lease, v1::Outcome::Refused, &reason)))
        }
    }
}

/// What became of a bout, in a word.
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

fn acknowledge(lease: &Lease, outcome: v1::Outcome, reason: &str) -> v1::Acknowledgement {
    v1::Acknowledgement {
        lease: Some(lease.into()),
        outcome: outcome as i32,
        reason: agon_proto::session::shortened(reason),
    }
}

/// Replication and stores a bout, and says what became of it. Waits as long as the disk is full.
async fn resolve(coordinator: &Arc<Coordinator>, caller: &Caller, finished: Finished) -> v1::Acknowledgement {
    let Finished { lease, incoming, outcome } = finished;
    let worker = incoming.assembler.played_by().0.to_string();
    match outcome {
        Assembled::Failed { reason } => {
            if coordinator.failed(&lease, &worker, &reason) {
                let bout = NewBout {
                    run: lease.run.clone(),
                    bout: lease.bout,
                    worker: worker.clone(),
                    digest: None,
                    summary: String::new(),
                    payload: Vec::new(),
                    failure: Some(reason.clone()),
                    to_check: false,
                };
                if store(coordinator, bout).await == Stored::New {
                    count(coordinator, &lease, &worker, None).await;
                }
            }
            acknowledge(&lease, v1::Outcome::FailureNoted, &reason)
        }
        Assembled::Whole(whole) => {
            let spec = Arc::clone(incoming.assembler.spec());
            let started = Instant::now();
            let verified = verify(&incoming, &spec, &whole.bout);
            coordinator.metrics.checked(started);
            if let Err(reason) = verified {
                let reason = coordinator.reject(&lease, &worker, &reason);
                return acknowledge(&lease, v1::Outcome::Refused, &reason);
            }
            keep(coordinator, caller, &lease, &worker, &spec, *whole, incoming.assembler.into_encoded()).await
        }
    }
}

/// Stores a bout that is sound, unless it comes too late.
async fn keep(
    coordinator: &Arc<Coordinator>,
    caller: &Caller,
    lease: &Lease,
    worker: &str,
    spec: &Spec,
    whole: WholeBout,
    payload: Vec<u8>,
) -> v1::Acknowledgement {
    let key = BoutKey { run: lease.run.clone(), bout: lease.bout };
    let entry = |kind, text: &str| Entry::new(kind, text).worker(worker).bout(&key).caused_by(caller);
    match coordinator.arrival(lease) {
        Arrival::NotWanted => {
            return acknowledge(lease, v1::Outcome::NotWanted, "the run takes no more bouts");
        }
        Arrival::Check => {
            return if coordinator.checked(lease, worker, whole.content_digest) {
                acknowledge(lease, v1::Outcome::Duplicate, "")
            } else {
                acknowledge(lease, v1::Outcome::Conflict, "another worker brought another content")
            };
        }
        Arrival::Stale => {
            coordinator
                .audit(entry(AuditKind::Stale, "arrived after its lease expired; the bout is played again"));
            let reason = "arrived after its lease expired; a timed run replays such bouts, as accepting the first to finish would favour short games";
            return acknowledge(lease, v1::Outcome::Stale, reason);
        }
        Arrival::Store => {}
    }
    let summary = summarise(spec, &whole.bout);
    let digest = whole.content_digest;
    let to_check = coordinator.is_to_check(lease, worker, &digest);
    let bout = NewBout {
        run: lease.run.clone(),
        bout: lease.bout,
        worker: worker.to_string(),
        digest: Some(digest),
        summary: encode_checked(&summary),
        payload,
        failure: None,
        to_check,
    };
    let conflict = || {
        warn!(run = lease.run, bout = lease.bout, worker, "another result of a bout that is stored");
        coordinator.audit(entry(AuditKind::Conflict, "content differs from the committed bout"));
        acknowledge(lease, v1::Outcome::Conflict, "the bout is there with another content, which stays")
    };
    match store(coordinator, bout).await {
        Stored::New => {
            coordinator.recent.keep(key, whole.bout);
            count(coordinator, lease, worker, Some((&summary, to_check.then_some(digest)))).await;
            acknowledge(lease, v1::Outcome::Committed, "")
        }
        Stored::Same => acknowledge(lease, v1::Outcome::Duplicate, ""),
        Stored::Other => conflict(),
        Stored::Exported => match exported_content(coordinator, lease).await {
            Ok(Some(known)) if known == digest => acknowledge(lease, v1::Outcome::Duplicate, ""),
            Ok(Some(_)) => conflict(),
            Ok(None) => acknowledge(lease, v1::Outcome::NotWanted, "the bout failed or was not needed"),
            Err(error) => {
                warn!(run = lease.run, bout = lease.bout, %error, "an exported bout cannot be read to compare it");
                acknowledge(lease, v1::Outcome::Duplicate, "the bout is counted; what was cannot be read now")
            }
        },
        Stored::NotWanted => acknowledge(lease, v1::Outcome::NotWanted, "the run takes no more bouts"),
    }
}

/// The content of a bout that has left for the dataset. Parts are read whole, so that few are read at once however many
/// bouts come late.
async fn exported_content(coordinator: &Coordinator, lease: &Lease) -> Result<Option<Digest>, ExportError> {
    let _alone = coordinator.comparing.lock().await;
    coordinator.dataset.content(&lease.run, lease.bout).await
}

/// Stores a bout. While there is no room nothing is granted and nobody is manifest that it is stored.
async fn store(coordinator: &Coordinator, bout: NewBout) -> Stored {
    let started = Instant::now();
    loop {
        match coordinator.store.put_bout(bout.clone()).await {
            Ok(stored) => {
                coordinator.metrics.stored(started);
                coordinator.set_write_fault(WriteTarget::State, None);
                return stored;
            }
            Err(StoreError::Full) => {
                coordinator.set_write_fault(WriteTarget::State, Some(StoreError::Full.to_string()));
                tokio::time::sleep(RETRY).await;
            }
            Err(failure) => {
                // Never acknowledge the bout: the worker submits it again after the restart.
                coordinator.fail(failure);
                return std::future::pending().await;
            }
        }
    }
}

/// Counts a bout that is durable, and ends a run that it decides.
async fn count(
    coordinator: &Arc<Coordinator>,
    lease: &Lease,
    worker: &str,
    counted: Option<(&Summary, Option<Digest>)>,
) {
    let decision = coordinator.committed(lease, worker, counted);
    coordinator.spawn_proposal(&lease.run);
    let Some(decision) = decision else { return };
    let decided =
        coordinator.store.set_state(lease.run.clone(), RunState::Decided, Some(decision.index)).await;
    match decided {
        Ok(()) => {
            let text = format!("the test decided at bout {}", decision.index);
            coordinator.audit(Entry::new(AuditKind::Decided, text).run(&lease.run));
            coordinator.end_run(&lease.run, RunState::Decided, Some(decision.index), "the test has decided");
        }
        // The next bout of the prefix finds the same decision.
        Err(failure) => warn!(%failure, run = lease.run, "a decision could not be stored yet"),
    }
}

/// Plays the games of a bout again by the rules.
fn verify(incoming: &Incoming, spec: &Spec, manifest: &BoutColumns) -> Result<(), String> {
    let bout: &Bout = incoming.assembler.bout();
    let referee = incoming.referee.lock().unwrap_or_else(PoisonError::into_inner);
    check_bout(spec, &referee, bout.request(spec).games(), manifest).map_err(|fault| fault.reason)?;
    manifest.probes.iter().try_for_each(|row| check_probe(spec, &referee, &bout.players, &bout.opening, row))
}
