//! A worker that a test controls message by message: its handshake is correct, everything after it is up to the test.

use std::sync::Arc;
use std::time::Duration;

use agon_arena::{Spec, SpecSource, known_answers};
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::worker_client::WorkerClient;
use agon_proto::v1::{
    Acknowledgement, CoordinatorMessage, Return, Submission, WorkerMessage, worker_message,
};
use agon_proto::{Heartbeat, Hello, Lease, LeasedBout, PROTOCOLS, Progress};
use agon_records::BoutRows;
use agon_transport::{ClientCredentials, Connection, Connector};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use crate::bouts;

/// The build that the worker reports.
pub const BUILD: &str = "scripted";
/// The time within which the coordinator must answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the hello of a worker with one slot that holds no bouts.
pub fn hello(worker: &str, signature: String) -> Hello {
    Hello {
        protocols: PROTOCOLS,
        worker: worker.to_string(),
        build: BUILD.to_string(),
        slots: 1,
        signature,
        speed: 1e6,
        held: Vec::new(),
        specs: Vec::new(),
        engines: Vec::new(),
    }
}

/// Changes the values of all searches within their bounds, so that only a replica reveals it.
pub fn falsify(rows: &mut BoutRows) {
    for search in rows.moves.iter_mut().filter_map(|row| row.search.as_mut()) {
        search.score = search.score / 2.0 - 0.25;
    }
}

/// The worker. Dropping it ends its session.
pub struct ScriptedWorker {
    runtime: Runtime,
    name: String,
    client: WorkerClient<Connection>,
    outbound: mpsc::UnboundedSender<WorkerMessage>,
    inbound: Streaming<CoordinatorMessage>,
    spec: Option<Arc<Spec>>,
    granted: u64,
}

impl ScriptedWorker {
    /// Connects without credentials.
    pub fn new(address: &str, name: &str) -> ScriptedWorker {
        ScriptedWorker::connect(&Connector::new(address, ClientCredentials::default()).unwrap(), name)
            .unwrap()
    }

    /// Connects with the connector's credentials.
    pub fn connect(connector: &Connector, name: &str) -> Result<ScriptedWorker, Status> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (outbound, messages) = mpsc::unbounded_channel();
        let hello = hello(name, known_answers().signature);
        let kind = Some(worker_message::Kind::Hello((&hello).into()));
        outbound.send(WorkerMessage { kind }).unwrap();
        let (client, inbound) = runtime.block_on(async {
            let connection = connector.connect().await.unwrap();
            let mut client = WorkerClient::new(connection).max_encoding_message_size(usize::MAX);
            let inbound = client.session(UnboundedReceiverStream::new(messages)).await?.into_inner();
            Ok::<_, Status>((client, inbound))
        })?;
        let mut worker = ScriptedWorker {
            runtime,
            name: name.to_string(),
            client,
            outbound,
            inbound,
            spec: None,
            granted: 0,
        };
        assert!(matches!(worker.receive(), Kind::Welcome(_)));
        Ok(worker)
    }

    /// Returns leases, its own or not.
    pub fn return_leases(&self, leases: &[Lease]) {
        let leases = leases.iter().map(Into::into).collect();
        let kind = worker_message::Kind::Return(Return { leases, reason: String::new() });
        self.outbound.send(WorkerMessage { kind: Some(kind) }).unwrap();
    }

    /// Receives the next message.
    fn receive(&mut self) -> Kind {
        let message = async { tokio::time::timeout(TIMEOUT, self.inbound.message()).await };
        self.runtime
            .block_on(message)
            .expect("no message from the coordinator")
            .unwrap()
            .unwrap()
            .kind
            .unwrap()
    }

    /// Reports free slots and progress.
    pub fn heartbeat(&self, room: usize, progress: Vec<Progress>) {
        self.send_heartbeat(room, progress, self.granted);
    }

    /// Reports free slots and claims to have received every grant.
    pub fn claim_all_received(&self, room: usize) {
        self.send_heartbeat(room, Vec::new(), u64::from(u32::MAX));
    }

    fn send_heartbeat(&self, room: usize, progress: Vec<Progress>, grants_received: u64) {
        let heartbeat = Heartbeat { room, progress, grants_received, ..Heartbeat::default() };
        let kind = Some(worker_message::Kind::Heartbeat((&heartbeat).into()));
        self.outbound.send(WorkerMessage { kind }).unwrap();
    }

    /// Requests a bout and waits for the grant.
    pub fn lease(&mut self) -> LeasedBout {
        self.lease_within(TIMEOUT).expect("no message from the coordinator")
    }

    /// Requests a bout and waits for the grant for a limited time.
    pub fn lease_within(&mut self, timeout: Duration) -> Option<LeasedBout> {
        self.heartbeat(1, Vec::new());
        loop {
            let message = async { tokio::time::timeout(timeout, self.inbound.message()).await };
            match self.runtime.block_on(message).ok()?.unwrap().unwrap().kind.unwrap() {
                Kind::Spec(spec) => {
                    let source = SpecSource::try_from(spec.spec.unwrap()).unwrap();
                    self.spec = Some(Arc::new(Spec::parse(&source).unwrap()));
                }
                Kind::Grant(grant) => {
                    self.granted += 1;
                    return Some(grant.try_into().unwrap());
                }
                _ => {}
            }
        }
    }

    /// Returns the spec of the last leased bout.
    pub fn spec(&self) -> &Arc<Spec> {
        self.spec.as_ref().unwrap()
    }

    /// Plays a bout honestly.
    pub fn play(&self, bout: &LeasedBout) -> BoutRows {
        bouts::play(self.spec(), bout, &self.name, BUILD)
    }

    /// Encodes these rows as the messages of a bout, with matching digests.
    pub fn messages(&self, bout: &LeasedBout, rows: &BoutRows) -> Vec<Submission> {
        bouts::messages(self.spec(), bout, rows, 32, [&self.name, BUILD]).unwrap()
    }

    /// Plays a bout honestly and encodes it.
    pub fn honest_messages(&self, bout: &LeasedBout) -> Vec<Submission> {
        self.messages(bout, &self.play(bout))
    }

    /// Sends messages on a new stream and waits for `answers` acknowledgements; an error is the last one.
    pub fn submit(
        &mut self,
        messages: Vec<Submission>,
        answers: usize,
    ) -> Vec<Result<Acknowledgement, Status>> {
        let client = &mut self.client;
        self.runtime.block_on(async {
            // The stream stays open, so that its end does not hide an early acknowledgement.
            let (sender, outbound) = mpsc::unbounded_channel();
            for message in messages {
                sender.send(message).unwrap();
            }
            let mut inbound =
                client.submit(UnboundedReceiverStream::new(outbound)).await.unwrap().into_inner();
            let mut received = Vec::new();
            while received.len() < answers {
                let answer = tokio::time::timeout(TIMEOUT, inbound.message()).await;
                let answer = answer.expect("no acknowledgement").transpose().expect("the stream ended");
                let is_last = answer.is_err();
                received.push(answer);
                if is_last {
                    break;
                }
            }
            received
        })
    }

    /// Submits one bout and returns its acknowledgement.
    pub fn submit_one(&mut self, messages: Vec<Submission>) -> Acknowledgement {
        self.submit(messages, 1).remove(0).unwrap()
    }
}
