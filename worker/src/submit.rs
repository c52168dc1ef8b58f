//! The connection that carries bouts: a task that keeps every message until its bout is acknowledged.
//!
//! Whatever breaks, everything that is not acknowledged is sent again from the head on the next connection: at least
//! once here, exactly once by the coordinator's key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agon_proto::Lease;
use agon_proto::limits::MAX_SUBMISSION_BYTES;
use agon_proto::session::shortened;
use agon_proto::v1::worker_client::WorkerClient;
use agon_proto::v1::{Acknowledgement, Outcome, Submission};
use agon_transport::{ConnectError, Connector, status_text};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::backoff::Backoff;
use crate::error::is_final;
use crate::outbox::Outbox;
use crate::session::with_patience;

/// How long a connection may take to be opened.
const PATIENCE: Duration = Duration::from_secs(10);

/// Messages handed to the connection ahead of what it has sent.
const AHEAD: usize = 32;

/// After so many connections in a row that were refused without a single acknowledgement, trying on is of no use.
const MOST_REFUSALS: u32 = 5;

/// What the task is told.
pub(crate) enum Command {
    /// The next message of a bout.
    Message(Lease, Submission),
    /// A bout is given up.
    Forget(Lease),
    /// A bout is given up while its slot may still write.
    ForgetAhead(Lease),
    /// The slot of a bout that was given up has stopped.
    Stopped(Lease),
}

/// What the task tells.
pub(crate) enum SubmitEvent {
    /// A bout is not needed any more.
    Acknowledged(Lease, Outcome, String),
    /// The coordinator keeps refusing. The last event.
    Refused {
        /// How often.
        times: u32,
        /// Its last sentence.
        reason: String,
    },
}

/// The task's own things.
pub(crate) struct Submitter {
    /// Where to connect.
    pub(crate) connector: Connector,
    /// The waits between connections.
    pub(crate) backoff: Backoff,
    /// What it is told; it ends with its last sender.
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    /// What it tells.
    pub(crate) events: mpsc::UnboundedSender<SubmitEvent>,
    /// Whether there is a session: without one the coordinator does not know the leases.
    pub(crate) welcome: watch::Receiver<bool>,
    /// The bytes that are not acknowledged, for heartbeats.
    pub(crate) bytes: Arc<AtomicU64>,
}

/// Nobody tells the task anything any more.
struct Closed;

/// Why a connection ended.
enum Broken {
    Lost(String),
    Refused(Status),
}

impl From<Status> for Broken {
    fn from(status: Status) -> Broken {
        if is_final(&status) { Broken::Refused(status) } else { Broken::Lost(status_text(&status)) }
    }
}

impl Submitter {
    /// Works until nobody tells it anything any more, or until the coordinator refuses for good.
    pub(crate) async fn run(mut self) {
        let mut outbox = Outbox::default();
        let mut refusals = 0;
        loop {
            if self.until_needed(&mut outbox).await.is_err() {
                return;
            }
            outbox.rewind();
            let mut acknowledged = false;
            let broken = match self.carry(&mut outbox, &mut acknowledged).await {
                Ok(Closed) => return,
                Err(broken) => broken,
            };
            if acknowledged {
                refusals = 0;
                self.backoff.reset();
            }
            let reason = match broken {
                Broken::Lost(reason) => reason,
                Broken::Refused(status) => {
                    refusals += 1;
                    if refusals >= MOST_REFUSALS {
                        let reason = status.message().to_string();
                        let _ = self.events.send(SubmitEvent::Refused { times: refusals, reason });
                        return;
                    }
                    status.message().to_string()
                }
            };
            let wait = self.backoff.wait();
            tracing::warn!(reason, ?wait, "the connection for submissions broke; everything is sent again");
            sleep(wait).await;
        }
    }

    /// Waits until there is something to send and somebody to send it to.
    async fn until_needed(&mut self, outbox: &mut Outbox) -> Result<(), Closed> {
        loop {
            let welcome = *self.welcome.borrow_and_update();
            if welcome && outbox.bytes() > 0 {
                return Ok(());
            }
            tokio::select! {
                command = self.commands.recv() => self.apply(command.ok_or(Closed)?, outbox),
                changed = self.welcome.changed() => changed.map_err(|_| Closed)?,
            }
        }
    }

    /// Carries messages over one connection until it breaks.
    async fn carry(&mut self, outbox: &mut Outbox, acknowledged: &mut bool) -> Result<Closed, Broken> {
        let (sender, messages) = mpsc::channel(AHEAD);
        let opened = timeout(PATIENCE, open(&self.connector, messages)).await;
        let mut inbound = opened.map_err(|_| Broken::Lost(format!("no answer within {PATIENCE:?}")))??;
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.apply(command, outbox),
                    None => return Ok(Closed),
                },
                permit = sender.reserve(), if outbox.has_unsent() => match (permit, outbox.next()) {
                    (Ok(permit), Some(message)) => permit.send(message),
                    // The connection does not take any more: its end says why.
                    _ => return Err(ending(&mut inbound).await),
                },
                message = inbound.message() => match message? {
                    Some(acknowledgement) => {
                        *acknowledged = true;
                        self.settle(acknowledgement, outbox);
                    }
                    None => return Err(Broken::Lost("the coordinator ended it".to_string())),
                },
            }
        }
    }

    fn apply(&self, command: Command, outbox: &mut Outbox) {
        match command {
            Command::Message(lease, message) => outbox.push(lease, message),
            Command::Forget(lease) => drop(outbox.forget(&lease)),
            Command::ForgetAhead(lease) => outbox.forget_ahead(lease),
            Command::Stopped(lease) => outbox.stopped(&lease),
        }
        self.bytes.store(outbox.bytes(), Ordering::Relaxed);
    }

    fn settle(&self, acknowledgement: Acknowledgement, outbox: &mut Outbox) {
        let outcome = acknowledgement.outcome();
        let lease = match Lease::required(acknowledgement.lease) {
            Ok(lease) => lease,
            Err(error) => {
                tracing::warn!(%error, "an acknowledgement of no bout is ignored");
                return;
            }
        };
        if !outbox.forget(&lease) {
            tracing::debug!(%lease, "an acknowledgement of a bout that is not held is ignored");
            return;
        }
        self.bytes.store(outbox.bytes(), Ordering::Relaxed);
        let reason = shortened(&acknowledgement.reason);
        let _ = self.events.send(SubmitEvent::Acknowledged(lease, outcome, reason));
    }
}

type Inbound = Streaming<Acknowledgement>;

async fn open(connector: &Connector, messages: mpsc::Receiver<Submission>) -> Result<Inbound, Broken> {
    let lost = |error: ConnectError| Broken::Lost(error.to_string());
    let channel = with_patience(connector).connect().await.map_err(lost)?;
    let mut client = WorkerClient::new(channel).max_encoding_message_size(MAX_SUBMISSION_BYTES);
    Ok(client.submit(ReceiverStream::new(messages)).await?.into_inner())
}

/// What the coordinator said at the end of a connection.
async fn ending(inbound: &mut Inbound) -> Broken {
    loop {
        match timeout(PATIENCE, inbound.message()).await {
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) | Err(_) => return Broken::Lost("the connection takes no more".to_string()),
            Ok(Err(status)) => return status.into(),
        }
    }
}
