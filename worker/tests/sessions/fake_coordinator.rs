//! A coordinator controlled by the test: it leases the given bouts, records what the worker sends, and fails on demand.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use agon_arena::{Opening, Spec, SpecSource};
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::worker_server::{Worker, WorkerServer};
use agon_proto::v1::{self, Acknowledgement, CoordinatorMessage, Outcome, Submission, WorkerMessage};
use agon_proto::v1::{submission, worker_message};
use agon_proto::{
    Assembled, Assembler, CompleteBout, Heartbeat, Hello, Lease, LeasedBout, Returned, Welcome,
};
use agon_schedule::run_id;
use agon_testing::specs::parse;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::Endpoint;
use tonic::{Request, Response, Status, Streaming};

/// The recorded messages and the planned behaviour.
#[derive(Default)]
pub struct State {
    /// Bouts to lease.
    pub bouts: VecDeque<LeasedBout>,
    /// Leased bouts.
    pub leased: BTreeMap<Lease, LeasedBout>,
    pub hellos: Vec<Hello>,
    pub heartbeats: Vec<Heartbeat>,
    pub returned: Vec<Returned>,
    /// Complete bouts in order of arrival, duplicates included.
    pub complete: Vec<(Lease, CompleteBout)>,
    pub failures: Vec<(Lease, String)>,
    /// The answers to the next hellos.
    pub rejections: VecDeque<Status>,
    /// The number of complete bouts after which the connection fails without an acknowledgement.
    pub dropped_acknowledgements: usize,
    /// Leases that the next welcome does not adopt.
    pub not_adopted: Vec<Lease>,
    /// The answer to every submission.
    pub reject_submissions: Option<Status>,
    /// Messages to send next.
    pub messages: VecDeque<Kind>,
    /// The text that is sent instead of the run's spec.
    pub changed_spec: Option<String>,
}

#[derive(Clone)]
pub struct FakeCoordinator {
    state: Arc<Mutex<State>>,
    source: SpecSource,
    spec: Arc<Spec>,
    run: String,
    /// Changes when every session must fail.
    cut: watch::Sender<u64>,
}

impl FakeCoordinator {
    pub fn new(text: &str) -> FakeCoordinator {
        let source = SpecSource { text: text.to_string(), ..SpecSource::default() };
        let spec = parse(text);
        let run = run_id::first(&spec.name, &source).unwrap();
        FakeCoordinator { state: Arc::default(), source, spec, run, cut: watch::channel(0).0 }
    }

    pub fn run(&self) -> &str {
        &self.run
    }

    pub fn bout(&self, number: u64, moves: &str) -> LeasedBout {
        let lease = Lease { run: self.run.clone(), bout: number, epoch: 1, sequence: number };
        let opening = Opening { position: None, moves: moves.to_string() };
        LeasedBout::new(lease, vec![0, 1], opening, Vec::new())
    }

    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Serves on a free port until the test's runtime ends.
    pub async fn serve(&self) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tonic::transport::Server::builder().add_service(WorkerServer::new(self.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Endpoint::from_shared(format!("http://{address}")).unwrap()
    }

    pub fn cut_sessions(&self) {
        self.cut.send_modify(|count| *count += 1);
    }

    /// Waits until the recorded messages satisfy a condition.
    pub async fn wait_until(&self, what: &str, mut condition: impl FnMut(&State) -> bool) {
        for _ in 0..6000 {
            if condition(&self.state()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("timed out waiting until {what}");
    }

    /// Returns the answers to a session message.
    fn answer(&self, message: WorkerMessage, sent: &mut u64) -> Result<Vec<Kind>, Status> {
        let mut state = self.state();
        let mut answers = Vec::new();
        match message.kind.unwrap() {
            worker_message::Kind::Hello(_) => return Err(Status::invalid_argument("a second hello")),
            worker_message::Kind::Return(returned) => state.returned.push(returned.try_into()?),
            worker_message::Kind::Heartbeat(heartbeat) => {
                let heartbeat = Heartbeat::try_from(heartbeat)?;
                let in_flight = *sent - heartbeat.grants_received;
                for _ in in_flight..heartbeat.room as u64 {
                    let Some(bout) = state.bouts.pop_front() else { break };
                    if *sent == 0 {
                        let mut source = self.source.clone();
                        source.text = state.changed_spec.clone().unwrap_or(source.text);
                        let (run, spec) = (self.run.clone(), Some((&source).into()));
                        answers.push(Kind::Spec(v1::RunSpec { run, spec }));
                    }
                    answers.push(Kind::Grant((&bout).into()));
                    state.leased.insert(bout.lease.clone(), bout);
                    *sent += 1;
                }
                state.heartbeats.push(heartbeat);
            }
        }
        answers.extend(state.messages.drain(..));
        Ok(answers)
    }

    fn welcome(&self, hello: Hello) -> Result<Welcome, Status> {
        let mut state = self.state();
        let adopted: Vec<Lease> =
            hello.held.iter().filter(|lease| !state.not_adopted.contains(lease)).cloned().collect();
        state.hellos.push(hello);
        if let Some(rejection) = state.rejections.pop_front() {
            return Err(rejection);
        }
        Ok(Welcome {
            protocol: *agon_proto::PROTOCOLS.end(),
            epoch: 1,
            heartbeat: Duration::from_millis(50),
            lease: Duration::from_secs(30),
            window_bytes: 1 << 20,
            adopted,
        })
    }

    fn accept(
        &self,
        message: Submission,
        assemblers: &mut BTreeMap<Lease, Assembler>,
    ) -> Result<Option<Acknowledgement>, Status> {
        let lease = Lease::required(message.lease.clone())?;
        let mut state = self.state();
        if let Some(rejection) = &state.reject_submissions {
            return Err(rejection.clone());
        }
        if let Some(submission::Kind::Head(_)) = message.kind {
            let bout = state.leased[&lease].clone();
            assemblers.insert(lease.clone(), Assembler::new(Arc::clone(&self.spec), bout)?);
        }
        let assembler = assemblers.get_mut(&lease).ok_or_else(|| Status::not_found("no head was sent"))?;
        let outcome = match assembler.accept(message)? {
            None => return Ok(None),
            Some(Assembled::Failed { reason }) => {
                state.failures.push((lease.clone(), reason));
                Outcome::FailureNoted
            }
            Some(Assembled::Complete(bout)) => {
                state.complete.push((lease.clone(), *bout));
                Outcome::Committed
            }
        };
        if state.dropped_acknowledgements > 0 {
            state.dropped_acknowledgements -= 1;
            return Err(Status::unavailable("the acknowledgement is lost"));
        }
        let reason = String::new();
        Ok(Some(Acknowledgement { lease: Some((&lease).into()), outcome: outcome.into(), reason }))
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Worker for FakeCoordinator {
    type SessionStream = Answers<CoordinatorMessage>;
    type SubmitStream = Answers<Acknowledgement>;

    async fn session(
        &self,
        request: Request<Streaming<WorkerMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let mut inbound = request.into_inner();
        let first = inbound.message().await?.and_then(|message| message.kind);
        let Some(worker_message::Kind::Hello(hello)) = first else {
            return Err(Status::invalid_argument("no hello"));
        };
        let welcome = self.welcome(hello.try_into()?)?;
        let (sender, answers) = mpsc::channel(64);
        let (coordinator, mut cut) = (self.clone(), self.cut.subscribe());
        tokio::spawn(async move {
            let send = |kind| sender.send(Ok(CoordinatorMessage { kind: Some(kind) }));
            let _ = send(Kind::Welcome((&welcome).into())).await;
            let mut sent = 0;
            loop {
                let message = tokio::select! {
                    message = inbound.message() => message,
                    _ = cut.changed() => Err(Status::unavailable("cut")),
                };
                let answers = match message {
                    Ok(Some(message)) => coordinator.answer(message, &mut sent),
                    Ok(None) => return,
                    Err(status) => Err(status),
                };
                match answers {
                    Ok(answers) => {
                        for kind in answers {
                            let _ = send(kind).await;
                        }
                    }
                    Err(status) => {
                        let _ = sender.send(Err(status)).await;
                        return;
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }

    async fn submit(
        &self,
        request: Request<Streaming<Submission>>,
    ) -> Result<Response<Self::SubmitStream>, Status> {
        let mut inbound = request.into_inner();
        let (sender, answers) = mpsc::channel(64);
        let coordinator = self.clone();
        tokio::spawn(async move {
            let mut assemblers = BTreeMap::new();
            while let Ok(Some(message)) = inbound.message().await {
                let answer = coordinator.accept(message, &mut assemblers);
                let is_last = answer.is_err();
                if let Some(answer) = answer.transpose() {
                    let _ = sender.send(answer).await;
                }
                if is_last {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }
}
