//! The workers' side of the wire: sessions and submissions.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agon_arena::{Arena, Spec};
use agon_doors::Caller;
use agon_proto::v1::worker_message::Kind;
use agon_proto::{Assembled, Assembler, Bout, Heartbeat, Hello, Lease, PROTOCOLS, Returned, WholeBout, v1};
use agon_records::{BoutColumns, check_bout, check_probe};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use tracing::{error, warn};

use crate::checks::Digest;
use crate::export::ExportError;
use crate::hall::{Arrival, Hall, OUTBOX, Obstacle};
use crate::leases::BoutKey;
use crate::standings::{Summary, seal};
use crate::store::{NewBout, RunState, StoreError, Stored};

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
pub struct Fleet {
    hall: Arc<Hall>,
}

impl Fleet {
    /// The service over a hall.
    pub fn new(hall: Arc<Hall>) -> Fleet {
        Fleet { hall }
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl v1::worker_server::Worker for Fleet {
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
        let session = self.hall.welcome(&hello, &caller, out)?;
        let hall = Arc::clone(&self.hall);
        tokio::spawn(async move {
            let (mut since, mut heard) = (Instant::now(), 0);
            while let Some(Ok(message)) = messages.next().await {
                // Whoever talks without end is listened to a little later.
                heard += weight(&message);
                if heard > MESSAGES_A_SECOND {
                    tokio::time::sleep_until((since + Duration::from_secs(1)).into()).await;
                    (since, heard) = (Instant::now(), 0);
                }
                if let Err(status) = hear(&hall, &hello.worker, session, message) {
                    warn!(worker = hello.worker, %status, "a message of a session makes no sense; it is left out");
                }
            }
            hall.farewell(&hello.worker, session);
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
        let hall = Arc::clone(&self.hall);
        tokio::spawn(async move {
            let mut open: HashMap<Lease, Incoming> = HashMap::new();
            while let Some(message) = messages.next().await {
                let message = match message {
                    Ok(message) => message,
                    Err(status) => {
                        // A message that is too long or garbled: whoever sent it is told before the stream ends.
                        let _ = out.send(Err(status)).await;
                        break;
                    }
                };
                let answer = match take(&hall, &caller, &mut open, message) {
                    Ok(None) => continue,
                    Ok(Some(finished)) => {
                        // Bouts are stored beside each other: one sync serves all that wait for it. Each has its place
                        // among the answers before: whoever does not read them is not listened to.
                        let Ok(place) = out.clone().reserve_owned().await else { break };
                        let (hall, caller) = (Arc::clone(&hall), caller.clone());
                        tokio::spawn(async move {
                            let answer = settle(&hall, &caller, finished).await;
                            hall.metrics.submission(outcome_name(&answer));
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

impl Fleet {
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
        if hello.signature != self.hall.signature {
            return Err(Status::failed_precondition(format!(
                "this worker's build {} searches otherwise than the coordinator's (signature {} and not {}): its games \
                 could not be compared; run the same build on both sides",
                hello.build, hello.signature, self.hall.signature
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
fn hear(hall: &Hall, worker: &str, session: u64, message: v1::WorkerMessage) -> Result<(), Status> {
    match message.kind {
        Some(Kind::Heartbeat(heartbeat)) => {
            hall.heartbeat(worker, session, &Heartbeat::try_from(heartbeat)?);
            Ok(())
        }
        Some(Kind::Return(returned)) => {
            let returned = Returned::try_from(returned)?;
            hall.returned(worker, &returned.leases, &returned.reason);
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
    hall: &Hall,
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
        if let Some(status) = hall.trespass(&lease, named, caller) {
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
            && let Some(reason) = hall.doubt(&lease, &head.worker)
        {
            let reason = hall.refuse(&lease, &head.worker, &reason);
            return Err(Ok(acknowledge(&lease, v1::Outcome::Refused, &reason)));
        }
        let Some((spec, bout, referee)) = hall.lent(&lease) else {
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
            let reason = hall.refuse(&lease, &worker, &error.to_string());
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

/// Checks and stores a bout, and says what became of it. Waits as long as the disk is full.
async fn settle(hall: &Arc<Hall>, caller: &Caller, finished: Finished) -> v1::Acknowledgement {
    let Finished { lease, incoming, outcome } = finished;
    let worker = incoming.assembler.played_by().0.to_string();
    match outcome {
        Assembled::Failed { reason } => {
            if hall.failed(&lease, &worker, &reason) {
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
                if store(hall, bout).await == Stored::New {
                    count(hall, &lease, &worker, None).await;
                }
            }
            acknowledge(&lease, v1::Outcome::FailureNoted, &reason)
        }
        Assembled::Whole(whole) => {
            let spec = Arc::clone(incoming.assembler.spec());
            let started = Instant::now();
            let verified = verify(&incoming, &spec, &whole.bout);
            hall.metrics.checked(started);
            if let Err(reason) = verified {
                let reason = hall.refuse(&lease, &worker, &reason);
                return acknowledge(&lease, v1::Outcome::Refused, &reason);
            }
            keep(hall, caller, &lease, &worker, &spec, *whole, incoming.assembler.into_encoded()).await
        }
    }
}

/// Stores a bout that is sound, unless it comes too late.
async fn keep(
    hall: &Arc<Hall>,
    caller: &Caller,
    lease: &Lease,
    worker: &str,
    spec: &Spec,
    whole: WholeBout,
    payload: Vec<u8>,
) -> v1::Acknowledgement {
    let key = BoutKey { run: lease.run.clone(), bout: lease.bout };
    match hall.arrival(lease) {
        Arrival::NotWanted => {
            return acknowledge(lease, v1::Outcome::NotWanted, "the run takes no more bouts");
        }
        Arrival::Check => {
            return if hall.checked(lease, worker, whole.content_digest) {
                acknowledge(lease, v1::Outcome::Duplicate, "")
            } else {
                acknowledge(lease, v1::Outcome::Conflict, "another worker brought another content")
            };
        }
        Arrival::Stale => {
            hall.note_of(caller, "stale", worker, Some(&key), "it came too late and is played anew");
            let reason = "it came too late and is played anew: in a timed run the first to finish would be the shortest";
            return acknowledge(lease, v1::Outcome::Stale, reason);
        }
        Arrival::Store => {}
    }
    let summary = Summary::new(spec, &whole.bout);
    let digest = whole.content_digest;
    let to_check = hall.is_to_check(lease, worker, &digest);
    let bout = NewBout {
        run: lease.run.clone(),
        bout: lease.bout,
        worker: worker.to_string(),
        digest: Some(digest),
        summary: seal(&summary),
        payload,
        failure: None,
        to_check,
    };
    let conflict = || {
        warn!(run = lease.run, bout = lease.bout, worker, "another result of a bout that is stored");
        hall.note_of(caller, "conflict", worker, Some(&key), "another content of a bout that counts already");
        acknowledge(lease, v1::Outcome::Conflict, "the bout is there with another content, which stays")
    };
    match store(hall, bout).await {
        Stored::New => {
            hall.recent.keep(key, whole.bout);
            count(hall, lease, worker, Some((&summary, to_check.then_some(digest)))).await;
            acknowledge(lease, v1::Outcome::Committed, "")
        }
        Stored::Same => acknowledge(lease, v1::Outcome::Duplicate, ""),
        Stored::Other => conflict(),
        Stored::Exported => match exported_content(hall, lease).await {
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
async fn exported_content(hall: &Hall, lease: &Lease) -> Result<Option<Digest>, ExportError> {
    let _alone = hall.comparing.lock().await;
    hall.dataset.content(&lease.run, lease.bout).await
}

/// Stores a bout. While there is no room nothing is granted and nobody is told that it is stored.
async fn store(hall: &Hall, bout: NewBout) -> Stored {
    let started = Instant::now();
    loop {
        match hall.store.put_bout(bout.clone()).await {
            Ok(stored) => {
                hall.metrics.stored(started);
                hall.set_obstacle(Obstacle::State, None);
                return stored;
            }
            Err(StoreError::Full) => {
                hall.set_obstacle(Obstacle::State, Some(StoreError::Full.to_string()));
                tokio::time::sleep(RETRY).await;
            }
            Err(failure) => {
                // After a failed write nothing that this process believes about its file can be trusted.
                error!(%failure, "the state cannot be written; this process ends, and starting it again recovers");
                std::process::exit(1);
            }
        }
    }
}

/// Counts a bout that is durable, and ends a run that it decides.
async fn count(hall: &Arc<Hall>, lease: &Lease, worker: &str, counted: Option<(&Summary, Option<Digest>)>) {
    let decision = hall.committed(lease, worker, counted);
    hall.pursue(&lease.run);
    let Some(decision) = decision else { return };
    let decided = hall.store.set_state(lease.run.clone(), RunState::Decided, Some(decision.index)).await;
    match decided {
        Ok(()) => {
            hall.note_run("decided", &lease.run, &format!("the test decided at bout {}", decision.index));
            hall.end_run(&lease.run, RunState::Decided, Some(decision.index), "the test has decided");
        }
        // The next bout of the prefix finds the same decision.
        Err(failure) => warn!(%failure, run = lease.run, "a decision could not be stored yet"),
    }
}

/// Plays the games of a bout again by the rules.
fn verify(incoming: &Incoming, spec: &Spec, told: &BoutColumns) -> Result<(), String> {
    let bout: &Bout = incoming.assembler.bout();
    let referee = incoming.referee.lock().unwrap_or_else(PoisonError::into_inner);
    check_bout(spec, &referee, bout.request(spec).games(), told).map_err(|fault| fault.reason)?;
    told.probes.iter().try_for_each(|row| check_probe(spec, &referee, &bout.players, &bout.opening, row))
}
