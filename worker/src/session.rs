//! A session with the coordinator: connects, sends the hello, receives the welcome, then exchanges messages until the
//! connection ends. Not here: what the messages mean and when to reconnect, which [`crate::worker`] decides.

use std::time::Duration;

use agon_proto::limits::MAX_MESSAGE_BYTES;
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::worker_client::WorkerClient;
use agon_proto::v1::{CoordinatorMessage, WorkerMessage, worker_message};
use agon_proto::{Hello, Welcome};
use agon_transport::{Connector, status_text};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use crate::error::is_final;

/// The time limit for connecting and for the first answer.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval of keep-alive pings, and the time limit for their answers.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// An event of a session.
pub(crate) enum SessionEvent {
    /// The coordinator accepted the hello. Precedes all messages.
    Welcome(Welcome),
    /// A message arrived.
    Message(Box<Kind>),
    /// The coordinator rejected the worker. The last event.
    Rejected(Status),
    /// The session ended and a retry may succeed. The last event.
    Lost(String),
}

/// A session that is connecting or open.
pub(crate) struct Session {
    outbound: mpsc::UnboundedSender<WorkerMessage>,
    events: mpsc::Receiver<SessionEvent>,
    task: JoinHandle<()>,
}

impl Session {
    /// Starts to connect.
    pub(crate) fn open(connector: &Connector, hello: &Hello) -> Session {
        let (outbound, messages) = mpsc::unbounded_channel();
        let (sender, events) = mpsc::channel(64);
        let connector = with_timeouts(connector);
        let task = tokio::spawn(async move {
            let end = run(&connector, messages, &sender).await;
            let _ = sender.send(end).await;
        });
        let session = Session { outbound, events, task };
        session.send(worker_message::Kind::Hello(hello.into()));
        session
    }

    /// Sends a message, unless the session has ended.
    pub(crate) fn send(&self, kind: worker_message::Kind) {
        let _ = self.outbound.send(WorkerMessage { kind: Some(kind) });
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> SessionEvent {
        let ended = || SessionEvent::Lost("the session has ended".to_string());
        self.events.recv().await.unwrap_or_else(ended)
    }

    /// Closes the session, and waits at most `limit` until the last messages are sent.
    pub(crate) async fn close(self, limit: Duration) {
        let Session { outbound, mut events, mut task } = self;
        drop(outbound);
        let drained = async {
            while events.recv().await.is_some() {}
            let _ = (&mut task).await;
        };
        if timeout(limit, drained).await.is_err() {
            task.abort();
        }
    }
}

/// Returns a connector with time limits for connecting and for silence.
pub(crate) fn with_timeouts(connector: &Connector) -> Connector {
    connector.clone().with(|endpoint| {
        endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true)
    })
}

/// Runs a session and returns its last event.
async fn run(
    connector: &Connector,
    messages: mpsc::UnboundedReceiver<WorkerMessage>,
    events: &mpsc::Sender<SessionEvent>,
) -> SessionEvent {
    let (welcome, mut inbound) = match timeout(CONNECT_TIMEOUT, handshake(connector, messages)).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(end)) => return end,
        Err(_) => return SessionEvent::Lost(format!("no welcome within {CONNECT_TIMEOUT:?}")),
    };
    let mut event = SessionEvent::Welcome(welcome);
    while events.send(event).await.is_ok() {
        event = loop {
            match inbound.message().await {
                Ok(Some(CoordinatorMessage { kind: Some(kind) })) => {
                    break SessionEvent::Message(Box::new(kind));
                }
                // A kind that this build does not know.
                Ok(Some(CoordinatorMessage { kind: None })) => {}
                Ok(None) => return SessionEvent::Lost("the coordinator closed the session".to_string()),
                Err(status) => return SessionEvent::Lost(status_text(&status)),
            }
        };
    }
    SessionEvent::Lost("the worker closed the session".to_string())
}

async fn handshake(
    connector: &Connector,
    messages: mpsc::UnboundedReceiver<WorkerMessage>,
) -> Result<(Welcome, Streaming<CoordinatorMessage>), SessionEvent> {
    let failed = |status: Status| match is_final(&status) {
        true => SessionEvent::Rejected(status),
        false => SessionEvent::Lost(status_text(&status)),
    };
    let channel = connector.connect().await.map_err(|error| SessionEvent::Lost(error.to_string()))?;
    let mut client = WorkerClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let response = client.session(UnboundedReceiverStream::new(messages)).await.map_err(failed)?;
    let mut inbound = response.into_inner();
    let kind = inbound.message().await.map_err(failed)?.and_then(|message| message.kind);
    let Some(Kind::Welcome(welcome)) = kind else {
        return Err(SessionEvent::Lost(
            "the coordinator did not answer the hello with a welcome".to_string(),
        ));
    };
    let welcome = Welcome::try_from(welcome).map_err(|error| SessionEvent::Rejected(Status::from(error)))?;
    Ok((welcome, inbound))
}
