//! A worker that does what a test wants: it says a proper hello, takes what it is lent, and sends anything.

use std::sync::Arc;
use std::time::Duration;

use agon_arena::{Arena, Environment, PlayerConfig, Spec, SpecSource, known_answers};
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::worker_client::WorkerClient;
use agon_proto::v1::{
    Acknowledgement, CoordinatorMessage, Return, Submission, WorkerMessage, worker_message,
};
use agon_proto::{Bout, BoutWriter, Heartbeat, Hello, Lease, PROTOCOLS, Progress};
use agon_records::{BoutRows, GameHead, MoveRow};
use agon_transport::{ClientCredentials, Connection, Connector};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The worker. Its session lasts as long as it lives.
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
    /// Is let in.
    pub fn new(address: &str, name: &str) -> ScriptedWorker {
        ScriptedWorker::with(&Connector::new(address, ClientCredentials::default()).unwrap(), name).unwrap()
    }

    /// Is let in with what it shows, or told why not.
    pub fn with(connector: &Connector, name: &str) -> Result<ScriptedWorker, Status> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (outbound, messages) = mpsc::unbounded_channel();
        let hello = Hello {
            protocols: PROTOCOLS,
            worker: name.to_string(),
            build: "rogue".to_string(),
            slots: 1,
            signature: known_answers().signature,
            speed: 1e6,
            held: Vec::new(),
            specs: Vec::new(),
        };
        let kind = Some(worker_message::Kind::Hello((&hello).into()));
        outbound.send(WorkerMessage { kind }).unwrap();
        let (client, inbound) = runtime.block_on(async {
            let connection = connector.connect().await.unwrap();
            let mut client = WorkerClient::new(connection).max_encoding_message_size(usize::MAX);
            let inbound = client.session(UnboundedReceiverStream::new(messages)).await?.into_inner();
            Ok::<_, Status>((client, inbound))
        })?;
        let mut rogue = ScriptedWorker {
            runtime,
            name: name.to_string(),
            client,
            outbound,
            inbound,
            spec: None,
            granted: 0,
        };
        assert!(matches!(rogue.hear(), Kind::Welcome(_)));
        Ok(rogue)
    }

    /// Gives bouts back, its own or not.
    pub fn give_back(&self, leases: &[Lease]) {
        let leases = leases.iter().map(Into::into).collect();
        let kind = worker_message::Kind::Return(Return { leases, reason: String::new() });
        self.outbound.send(WorkerMessage { kind: Some(kind) }).unwrap();
    }

    /// The next thing that the coordinator says.
    fn hear(&mut self) -> Kind {
        let message = async { tokio::time::timeout(PATIENCE, self.inbound.message()).await };
        self.runtime.block_on(message).expect("the coordinator is silent").unwrap().unwrap().kind.unwrap()
    }

    /// Says how much it would take and how far it says it is.
    pub fn heartbeat(&self, room: usize, progress: Vec<Progress>) {
        let heartbeat = Heartbeat { room, progress, grants_received: self.granted, ..Heartbeat::default() };
        let kind = Some(worker_message::Kind::Heartbeat((&heartbeat).into()));
        self.outbound.send(WorkerMessage { kind }).unwrap();
    }

    /// Says how much it would take and that it has read all that it was ever sent.
    pub fn claim(&self, room: usize) {
        let heartbeat = Heartbeat { room, grants_received: u64::from(u32::MAX), ..Heartbeat::default() };
        let kind = Some(worker_message::Kind::Heartbeat((&heartbeat).into()));
        self.outbound.send(WorkerMessage { kind }).unwrap();
    }

    /// Asks for a bout and waits until it is lent one.
    pub fn take(&mut self) -> Bout {
        self.take_within(PATIENCE).expect("the coordinator is silent")
    }

    /// Asks for a bout and waits so long for it.
    pub fn take_within(&mut self, patience: Duration) -> Option<Bout> {
        self.heartbeat(1, Vec::new());
        loop {
            let message = async { tokio::time::timeout(patience, self.inbound.message()).await };
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

    /// The spec of what it was lent.
    pub fn spec(&self) -> &Arc<Spec> {
        self.spec.as_ref().unwrap()
    }

    /// Plays a bout as it should be played.
    pub fn play(&self, bout: &Bout) -> BoutRows {
        let spec = self.spec();
        let configs: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
        let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
        let mut arena = Arena::new(&spec.game, &configs, Environment::system()).unwrap();
        let mut rows = BoutRows::default();
        for (index, request) in bout.request(spec).games().enumerate() {
            let record = arena.play(&request, &mut |_| ()).unwrap();
            let head = GameHead {
                game: &spec.game,
                names: &names,
                opening: &bout.opening,
                bout: bout.lease.bout,
                index: index as u16,
                worker: &self.name,
                build: "rogue",
                started: 1_700_000_000_000_000,
                speed_factor: 1.0,
                settings: &[],
            };
            rows.add_game(&head, &record).unwrap();
        }
        rows
    }

    /// The messages of a bout with these rows, with digests that fit them.
    pub fn messages(&self, bout: &Bout, rows: &BoutRows) -> Vec<Submission> {
        let mut writer = BoutWriter::new(Arc::clone(self.spec()), bout.clone()).unwrap();
        let mut messages = vec![writer.head(&self.name, "rogue").unwrap()];
        for game in &rows.games {
            let moves: Vec<MoveRow> =
                rows.moves.iter().filter(|row| row.game == game.game).cloned().collect();
            for batch in moves.chunks(32) {
                messages.push(writer.moves(game.game, batch).unwrap());
            }
            messages.push(writer.game_end(game).unwrap());
        }
        messages.push(writer.end().unwrap());
        messages
    }

    /// The messages of a bout that is played as it should be.
    pub fn honest(&self, bout: &Bout) -> Vec<Submission> {
        self.messages(bout, &self.play(bout))
    }

    /// Sends messages on a stream of their own and waits for so many answers; a status is the last of them.
    pub fn submit(
        &mut self,
        messages: Vec<Submission>,
        answers: usize,
    ) -> Vec<Result<Acknowledgement, Status>> {
        let client = &mut self.client;
        self.runtime.block_on(async {
            // The stream stays open: a coordinator that answers too early is not saved by its end.
            let (sender, outbound) = mpsc::unbounded_channel();
            for message in messages {
                sender.send(message).unwrap();
            }
            let mut inbound =
                client.submit(UnboundedReceiverStream::new(outbound)).await.unwrap().into_inner();
            let mut told = Vec::new();
            while told.len() < answers {
                let answer = tokio::time::timeout(PATIENCE, inbound.message()).await;
                let answer = answer.expect("no answer comes").transpose().expect("the stream ended");
                let over = answer.is_err();
                told.push(answer);
                if over {
                    break;
                }
            }
            told
        })
    }

    /// The one answer to the messages of one bout.
    pub fn submit_one(&mut self, messages: Vec<Submission>) -> Acknowledgement {
        self.submit(messages, 1).remove(0).unwrap()
    }
}
