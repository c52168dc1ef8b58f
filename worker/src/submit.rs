//! The submission connection: a task that keeps every message until its bout is acknowledged.
//!
//! After a failure everything unacknowledged is sent again on the next connection. Delivery is at least once; the
//! coordinator deduplicates by lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agon_proto::Lease;
use agon_proto::limits::MAX_SUBMISSION_BYTES;
use agon_proto::session::clean_reason;
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
use crate::session::{CONNECT_TIMEOUT, with_timeouts};

/// The number of messages queued on the connection before they are sent.
const SEND_QUEUE: usize = 32;

/// The number of consecutive rejected connections without an acknowledgement after which the worker gives up.
const MAX_REJECTIONS: u32 = 5;

/// A command for the task.
pub(crate) enum Command {
    /// Adds the next message of a bout.
    Message(Lease, Submission),
    /// Removes a bout whose slot has stopped.
    Remove(Lease),
    /// Abandons a bout whose slot may still write messages.
    Abandon(Lease),
    /// Marks the slot of an abandoned bout as stopped.
    SlotStopped(Lease),
}

/// An event of the task.
pub(crate) enum SubmitEvent {
    /// The coordinator acknowledged a bout, possibly with a message.
    Acknowledged(Lease, Outcome, String),
    /// The coordinator repeatedly rejected the connection. The last event.
    Rejected {
        /// The number of rejections.
        times: u32,
        /// The coordinator's last message.
        reason: String,
    },
}

/// The state of the task.
pub(crate) struct Submitter {
    /// The coordinator.
    pub(crate) connector: Connector,
    /// The delays between connections.
    pub(crate) backoff: Backoff,
    /// The commands; the task ends when all senders are dropped.
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    /// The receiver of events.
    pub(crate) events: mpsc::UnboundedSender<SubmitEvent>,
    /// Whether a session is open; without one the coordinator does not know the leases.
    pub(crate) in_session: watch::Receiver<bool>,
    /// The number of unacknowledged bytes, for heartbeats.
    pub(crate) bytes: Arc<AtomicU64>,
}

/// The worker has ended: all command senders are dropped.
struct Closed;

/// The reason why a connection ended.
enum ConnectionEnd {
    Lost(String),
    Rejected(Status),
}

impl From<Status> for ConnectionEnd {
    fn from(status: Status) -> ConnectionEnd {
        if is_final(&status) {
            ConnectionEnd::Rejected(status)
        } else {
            ConnectionEnd::Lost(status_text(&status))
        }
    }
}

impl Submitter {
    /// Runs until the worker ends or the coordinator has rejected too many connections.
    pub(crate) async fn run(mut self) {
        let mut outbox = Outbox::default();
        let mut rejections = 0;
        while self.wait_until_needed(&mut outbox).await.is_ok() {
            outbox.rewind();
            let mut acknowledged = false;
            let end = match self.run_connection(&mut outbox, &mut acknowledged).await {
                Ok(Closed) => return,
                Err(end) => end,
            };
            if acknowledged {
                rejections = 0;
                self.backoff.reset();
            }
            let reason = match end {
                ConnectionEnd::Lost(reason) => reason,
                ConnectionEnd::Rejected(status) => {
                    rejections += 1;
                    let reason = clean_reason(status.message());
                    if rejections >= MAX_REJECTIONS {
                        let _ = self.events.send(SubmitEvent::Rejected { times: rejections, reason });
                        return;
                    }
                    reason
                }
            };
            let delay = self.backoff.next_delay();
            tracing::warn!(reason, ?delay, "submission connection lost; resending all unacknowledged bouts");
            sleep(delay).await;
        }
    }

    /// Waits until there is a message to send and a session.
    async fn wait_until_needed(&mut self, outbox: &mut Outbox) -> Result<(), Closed> {
        loop {
            let in_session = *self.in_session.borrow_and_update();
            if in_session && outbox.bytes() > 0 {
                return Ok(());
            }
            tokio::select! {
                command = self.commands.recv() => self.apply(command.ok_or(Closed)?, outbox),
                changed = self.in_session.changed() => changed.map_err(|_| Closed)?,
            }
        }
    }

    /// Sends messages over one connection until it ends.
    async fn run_connection(
        &mut self,
        outbox: &mut Outbox,
        acknowledged: &mut bool,
    ) -> Result<Closed, ConnectionEnd> {
        let (sender, messages) = mpsc::channel(SEND_QUEUE);
        let timed_out = |_| ConnectionEnd::Lost(format!("no answer within {CONNECT_TIMEOUT:?}"));
        let mut inbound =
            timeout(CONNECT_TIMEOUT, connect(&self.connector, messages)).await.map_err(timed_out)??;
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.apply(command, outbox),
                    None => return Ok(Closed),
                },
                permit = sender.reserve(), if outbox.has_unsent() => match (permit, outbox.next()) {
                    (Ok(permit), Some(message)) => permit.send(message),
                    // The connection is closed; its last message has the reason.
                    _ => return Err(read_end(&mut inbound).await),
                },
                message = inbound.message() => match message? {
                    Some(acknowledgement) => {
                        *acknowledged = true;
                        self.acknowledge(acknowledgement, outbox);
                    }
                    None => return Err(ConnectionEnd::Lost("the coordinator closed it".to_string())),
                },
            }
        }
    }

    fn apply(&self, command: Command, outbox: &mut Outbox) {
        match command {
            Command::Message(lease, message) => outbox.push(lease, message),
            Command::Remove(lease) => drop(outbox.remove(&lease)),
            Command::Abandon(lease) => outbox.abandon(lease),
            Command::SlotStopped(lease) => outbox.slot_stopped(&lease),
        }
        self.bytes.store(outbox.bytes(), Ordering::Relaxed);
    }

    fn acknowledge(&self, acknowledgement: Acknowledgement, outbox: &mut Outbox) {
        let outcome = acknowledgement.outcome();
        let lease = match Lease::required(acknowledgement.lease) {
            Ok(lease) => lease,
            Err(error) => {
                tracing::warn!(%error, "ignored an invalid acknowledgement");
                return;
            }
        };
        if !outbox.remove(&lease) {
            tracing::debug!(%lease, "ignored the acknowledgement of an unknown bout");
            return;
        }
        self.bytes.store(outbox.bytes(), Ordering::Relaxed);
        let reason = clean_reason(&acknowledgement.reason);
        let _ = self.events.send(SubmitEvent::Acknowledged(lease, outcome, reason));
    }
}

type Inbound = Streaming<Acknowledgement>;

async fn connect(
    connector: &Connector,
    messages: mpsc::Receiver<Submission>,
) -> Result<Inbound, ConnectionEnd> {
    let lost = |error: ConnectError| ConnectionEnd::Lost(error.to_string());
    let channel = with_timeouts(connector).connect().await.map_err(lost)?;
    let mut client = WorkerClient::new(channel).max_encoding_message_size(MAX_SUBMISSION_BYTES);
    Ok(client.submit(ReceiverStream::new(messages)).await?.into_inner())
}

/// Reads the reason for the end of a connection.
async fn read_end(inbound: &mut Inbound) -> ConnectionEnd {
    loop {
        match timeout(CONNECT_TIMEOUT, inbound.message()).await {
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) | Err(_) => {
                return ConnectionEnd::Lost("the connection accepts no more messages".to_string());
            }
            Ok(Err(status)) => return status.into(),
        }
    }
}
