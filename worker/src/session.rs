//! One session with the coordinator: connect, say hello, be welcomed, then small messages both ways until it breaks.
//!
//! Deliberately not here: what the messages mean and when to try again, which is [`crate::work`]'s.

use std::time::Duration;

use agon_proto::limits::MAX_MESSAGE_BYTES;
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::worker_client::WorkerClient;
use agon_proto::v1::{WorkerMessage, worker_message};
use agon_proto::{Hello, Welcome};
use agon_transport::{Connector, status_text};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use crate::error::is_final;

/// How long a connection and a welcome may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a silent connection is asked whether it lives, and how long it may take to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// What comes out of a session.
pub(crate) enum SessionEvent {
    /// The hello was accepted. Always the first event, or there is only the end.
    Welcome(Welcome),
    /// A message.
    Message(Box<Kind>),
    /// The coordinator does not want this worker. The last event.
    Refused(Status),
    /// It is over, and may be tried again. The last event.
    Lost(String),
}

/// A session that is opened or open.
pub(crate) struct Session {
    outbound: mpsc::UnboundedSender<WorkerMessage>,
    events: mpsc::Receiver<SessionEvent>,
    task: JoinHandle<()>,
}

impl Session {
    /// Begins to connect.
    pub(crate) fn open(connector: &Connector, hello: &Hello) -> Session {
        let (outbound, messages) = mpsc::unbounded_channel();
        let (sender, events) = mpsc::channel(64);
        let connector = with_patience(connector);
        let session = Session {
            outbound,
            events,
            task: tokio::spawn(async move {
                let end = converse(&connector, messages, &sender).await;
                let _ = sender.send(end).await;
            }),
        };
        session.send(worker_message::Kind::Hello(hello.into()));
        session
    }

    /// Sends a message, or nothing where the session is over.
    pub(crate) fn send(&self, kind: worker_message::Kind) {
        let _ = self.outbound.send(WorkerMessage { kind: Some(kind) });
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> SessionEvent {
        let ended = || SessionEvent::Lost("the session is over".to_string());
        self.events.recv().await.unwrap_or_else(ended)
    }

    /// Hangs up, and lets the last messages leave for so long.
    pub(crate) async fn close(self, patience: Duration) {
        let Session { outbound, mut events, mut task } = self;
        drop(outbound);
        let drained = async {
            while events.recv().await.is_some() {}
            let _ = (&mut task).await;
        };
        if timeout(patience, drained).await.is_err() {
            task.abort();
        }
    }
}

/// The same with limits to how long it may be silent.
pub(crate) fn with_patience(connector: &Connector) -> Connector {
    connector.clone().with(|endpoint| {
        endpoint
            .connect_timeout(PATIENCE)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true)
    })
}

/// Speaks until the end, and says how it ended.
async fn converse(
    connector: &Connector,
    messages: mpsc::UnboundedReceiver<WorkerMessage>,
    events: &mpsc::Sender<SessionEvent>,
) -> SessionEvent {
    let greeted = match timeout(PATIENCE, greet(connector, messages)).await {
        Ok(greeted) => greeted,
        Err(_) => return SessionEvent::Lost(format!("no welcome within {PATIENCE:?}")),
    };
    let (welcome, mut inbound) = match greeted {
        Ok(greeted) => greeted,
        Err(end) => return end,
    };
    if events.send(SessionEvent::Welcome(welcome)).await.is_err() {
        return SessionEvent::Lost("nobody listens".to_string());
    }
    loop {
        match inbound.message().await {
            Ok(Some(message)) => {
                // A kind that this build does not know is not for it.
                let Some(kind) = message.kind else { continue };
                if events.send(SessionEvent::Message(Box::new(kind))).await.is_err() {
                    return SessionEvent::Lost("nobody listens".to_string());
                }
            }
            Ok(None) => return SessionEvent::Lost("the coordinator ended the session".to_string()),
            Err(status) => return SessionEvent::Lost(status_text(&status)),
        }
    }
}

type Inbound = Streaming<agon_proto::v1::CoordinatorMessage>;

async fn greet(
    connector: &Connector,
    messages: mpsc::UnboundedReceiver<WorkerMessage>,
) -> Result<(Welcome, Inbound), SessionEvent> {
    let answered = |status: Status| match is_final(&status) {
        true => SessionEvent::Refused(status),
        false => SessionEvent::Lost(status_text(&status)),
    };
    let channel = connector.connect().await.map_err(|error| SessionEvent::Lost(error.to_string()))?;
    let mut client = WorkerClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let response = client.session(UnboundedReceiverStream::new(messages)).await.map_err(answered)?;
    let mut inbound = response.into_inner();
    let kind = inbound.message().await.map_err(answered)?.and_then(|message| message.kind);
    let Some(Kind::Welcome(welcome)) = kind else {
        return Err(SessionEvent::Lost("the coordinator answered the hello with something else".to_string()));
    };
    let welcome = Welcome::try_from(welcome).map_err(|error| SessionEvent::Refused(Status::from(error)))?;
    Ok((welcome, inbound))
}
