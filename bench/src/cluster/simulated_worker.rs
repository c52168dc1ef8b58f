//! A simulated worker: it holds a session and accepts bouts, whose messages the benchmark supplies.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agon_arena::Spec;
use agon_proto::limits::BATCH_MOVES;
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::worker_client::WorkerClient;
use agon_proto::v1::{self, worker_message};
use agon_proto::{Heartbeat, Hello, LeasedBout, Progress, WireError};
use agon_records::BoutRows;
use agon_testing::bouts;
use agon_testing::scripted_worker::{BUILD, hello};
use anyhow::Context as _;
use tokio::sync::mpsc;
use tokio::time::{Interval, interval};
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::transport::{Channel, Endpoint};

/// The number of bouts that a coordinator leases ahead for each slot.
const LEASES_PER_SLOT: usize = 256;

/// Returns the name of a simulated worker.
pub(super) fn name(number: usize) -> String {
    format!("simulated-{number}")
}

/// Encodes a bout as its worker's messages.
pub(super) fn messages(
    spec: &Arc<Spec>,
    bout: &LeasedBout,
    rows: &BoutRows,
    worker: &str,
) -> Result<Vec<v1::Submission>, WireError> {
    bouts::messages(spec, bout, rows, BATCH_MOVES, [worker, BUILD])
}

/// The counters of all simulated workers.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) welcomed: AtomicU64,
    pub(super) granted: AtomicU64,
    pub(super) acknowledged: AtomicU64,
    pub(super) revoked: AtomicU64,
    /// Sessions that ended with an error, by the error.
    pub(super) lost: Mutex<BTreeMap<String, u64>>,
}

/// A granted bout.
pub(super) struct Grant {
    /// The number of the worker.
    pub(super) worker: usize,
    pub(super) bout: LeasedBout,
    /// The time since the worker requested it.
    pub(super) latency: Duration,
}

/// A simulated worker.
pub(super) struct SimulatedWorker {
    pub(super) number: usize,
    /// The number of bouts held at once.
    pub(super) capacity: usize,
    pub(super) signature: String,
    pub(super) counters: Arc<Counters>,
    pub(super) grants: mpsc::UnboundedSender<Grant>,
    /// The numbers of its acknowledged bouts.
    pub(super) done: mpsc::UnboundedReceiver<u64>,
}

impl SimulatedWorker {
    /// Holds a session until it ends. `held` has its bouts, which the next session may continue.
    pub(super) async fn session(
        &mut self,
        endpoint: &Endpoint,
        held: &mut Vec<LeasedBout>,
    ) -> anyhow::Result<()> {
        // Each local address has ports for a limited number of connections.
        let source =
            Ipv4Addr::new(127, 0, (1 + self.number / 250 % 250) as u8, (1 + self.number % 250) as u8);
        let channel = endpoint.clone().local_address(Some(source.into())).connect().await?;
        let (sender, outbound) = mpsc::unbounded_channel();
        let send = |kind| {
            let _ = sender.send(v1::WorkerMessage { kind: Some(kind) });
        };
        let hello = Hello {
            slots: self.capacity.div_ceil(LEASES_PER_SLOT),
            held: held.iter().map(|bout| bout.lease.clone()).collect(),
            ..hello(&name(self.number), self.signature.clone())
        };
        send(worker_message::Kind::Hello((&hello).into()));
        let mut client = WorkerClient::new(channel);
        let mut inbound = client.session(UnboundedReceiverStream::new(outbound)).await?.into_inner();
        let mut heartbeats: Option<Interval> = None;
        let (mut received, mut ply) = (0, 0);
        let mut requested = Instant::now();
        loop {
            let tick = async {
                match &mut heartbeats {
                    Some(interval) => drop(interval.tick().await),
                    None => std::future::pending().await,
                }
            };
            let progress = tokio::select! {
                message = inbound.message() => {
                    match message?.and_then(|message| message.kind) {
                        Some(Kind::Welcome(welcome)) => {
                            self.counters.welcomed.fetch_add(1, Ordering::Relaxed);
                            held.retain(|bout| welcome.adopted.contains(&(&bout.lease).into()));
                            heartbeats = Some(interval(Duration::from_millis(welcome.heartbeat_ms.into())));
                        }
                        Some(Kind::Grant(grant)) => {
                            received += 1;
                            self.counters.granted.fetch_add(1, Ordering::Relaxed);
                            let bout = LeasedBout::try_from(grant)?;
                            held.push(bout.clone());
                            let latency = requested.elapsed();
                            let _ = self.grants.send(Grant { worker: self.number, bout, latency });
                        }
                        Some(Kind::Revoke(revoke)) => {
                            self.counters.revoked.fetch_add(revoke.leases.len() as u64, Ordering::Relaxed);
                            held.retain(|bout| !revoke.leases.contains(&(&bout.lease).into()));
                        }
                        Some(_) => {}
                        None => return Ok(()),
                    }
                    continue;
                }
                Some(done) = self.done.recv() => {
                    held.retain(|bout| bout.lease.bout != done);
                    requested = Instant::now();
                    Vec::new()
                }
                () = tick => {
                    ply += 1;
                    if held.is_empty() {
                        requested = Instant::now();
                    }
                    let progress = |bout: &LeasedBout| {
                        Progress { lease: bout.lease.clone(), started: true, game: 0, ply, pulse: 0 }
                    };
                    held.iter().map(progress).collect()
                }
            };
            let room = self.capacity.saturating_sub(held.len());
            let heartbeat = Heartbeat { room, progress, grants_received: received, ..Heartbeat::default() };
            send(worker_message::Kind::Heartbeat((&heartbeat).into()));
        }
    }
}

/// A connection that submits bouts.
pub(super) struct SubmitStream {
    messages: mpsc::Sender<v1::Submission>,
}

impl SubmitStream {
    /// Opens a connection that calls `on_acknowledgement` for each acknowledgement.
    pub(super) async fn open(
        endpoint: &Endpoint,
        on_acknowledgement: impl Fn(v1::Acknowledgement) + Send + 'static,
    ) -> anyhow::Result<SubmitStream> {
        let channel: Channel = endpoint.connect().await.context("the coordinator does not answer")?;
        let (messages, outbound) = mpsc::channel(256);
        let mut client = WorkerClient::new(channel);
        let mut inbound = client.submit(ReceiverStream::new(outbound)).await?.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(acknowledgement)) = inbound.message().await {
                on_acknowledgement(acknowledgement);
            }
        });
        Ok(SubmitStream { messages })
    }

    /// Sends the messages of a bout.
    pub(super) async fn send(&self, messages: Vec<v1::Submission>) -> anyhow::Result<()> {
        for message in messages {
            self.messages.send(message).await.context("the coordinator closed the submission stream")?;
        }
        Ok(())
    }
}
