//! A worker that only looks like one: it holds a session, takes bouts, and sends what was played elsewhere.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agon_arena::{Arena, Environment, KnownAnswers, PlayerConfig, Spec};
use agon_proto::limits::BATCH_MOVES;
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::worker_client::WorkerClient;
use agon_proto::v1::{self, worker_message};
use agon_proto::{Bout, BoutWriter, Heartbeat, Hello, PROTOCOLS, Progress};
use agon_records::{BoutRows, GameHead};
use anyhow::Context as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::transport::{Channel, Endpoint};

/// Bouts that a coordinator lends ahead for each slot.
const LENT_A_SLOT: usize = 256;

/// Plays bouts of a spec without sending anything.
pub(super) struct Recorder {
    spec: Arc<Spec>,
    names: Vec<String>,
    arena: Arena,
}

impl Recorder {
    /// A recorder of bouts of a spec.
    pub(super) fn new(spec: Arc<Spec>) -> anyhow::Result<Recorder> {
        let players: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
        let arena = Arena::new(&spec.game, &players, Environment::system())?;
        let names = spec.players.iter().map(|player| player.name.clone()).collect();
        Ok(Recorder { spec, names, arena })
    }

    /// The rows of a bout.
    pub(super) fn play(&mut self, bout: &Bout, worker: &str) -> anyhow::Result<BoutRows> {
        let mut rows = BoutRows::default();
        for (index, request) in bout.request(&self.spec).games().enumerate() {
            let record = self.arena.play(&request, &mut |_| ())?;
            let head = GameHead {
                game: &self.spec.game,
                names: &self.names,
                opening: &bout.opening,
                bout: bout.lease.bout,
                index: index as u16,
                worker,
                build: env!("CARGO_PKG_VERSION"),
                started: 1_800_000_000_000_000,
                speed_factor: 1.0,
                settings: &[],
            };
            rows.add_game(&head, &record)?;
        }
        Ok(rows)
    }
}

/// The messages of a bout.
pub(super) fn messages(
    spec: &Arc<Spec>,
    bout: &Bout,
    rows: &BoutRows,
    worker: &str,
) -> anyhow::Result<Vec<v1::Submission>> {
    let mut writer = BoutWriter::new(Arc::clone(spec), bout.clone())?;
    let mut messages = vec![writer.head(worker, env!("CARGO_PKG_VERSION"))?];
    for game in &rows.games {
        let moves: Vec<_> = rows.moves.iter().filter(|row| row.game == game.game).cloned().collect();
        for batch in moves.chunks(BATCH_MOVES) {
            messages.push(writer.moves(game.game, batch)?);
        }
        messages.push(writer.game_end(game)?);
    }
    messages.push(writer.end()?);
    Ok(messages)
}

/// What all puppets count together.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) welcomed: AtomicU64,
    pub(super) granted: AtomicU64,
    pub(super) acknowledged: AtomicU64,
    pub(super) revoked: AtomicU64,
    pub(super) lost: AtomicU64,
}

/// What a puppet tells: a bout it was lent, and how long after it asked.
pub(super) struct Lent {
    pub(super) puppet: usize,
    pub(super) bout: Bout,
    pub(super) waited: Duration,
}

/// One puppet.
pub(super) struct Puppet {
    pub(super) number: usize,
    pub(super) room: usize,
    pub(super) answers: Arc<KnownAnswers>,
    pub(super) counts: Arc<Counts>,
    pub(super) lent: mpsc::UnboundedSender<Lent>,
    /// Told when a bout of it is done.
    pub(super) done: mpsc::UnboundedReceiver<u64>,
}

impl Puppet {
    /// Its name.
    pub(super) fn name(number: usize) -> String {
        format!("puppet-{number}")
    }

    /// Holds a session until it breaks; the bouts it still has are given back to it for the next.
    pub(super) async fn session(&mut self, endpoint: &Endpoint, held: &mut Vec<Bout>) -> anyhow::Result<()> {
        // Thousands of connections come from as many addresses as there are hundreds of them.
        let source =
            Ipv4Addr::new(127, 0, (1 + self.number / 250 % 250) as u8, (1 + self.number % 250) as u8);
        let channel = endpoint.clone().local_address(Some(source.into())).connect().await?;
        let (out, outbound) = mpsc::unbounded_channel();
        let send = |kind| {
            let _ = out.send(v1::WorkerMessage { kind: Some(kind) });
        };
        let hello = Hello {
            protocols: PROTOCOLS,
            worker: Puppet::name(self.number),
            build: env!("CARGO_PKG_VERSION").to_string(),
            // As many as it takes to be lent so much.
            slots: self.room.div_ceil(LENT_A_SLOT),
            signature: self.answers.signature.clone(),
            speed: 1e6,
            held: held.iter().map(|bout| bout.lease.clone()).collect(),
            specs: Vec::new(),
        };
        send(worker_message::Kind::Hello((&hello).into()));
        let mut client = WorkerClient::new(channel);
        let mut inbound = client.session(UnboundedReceiverStream::new(outbound)).await?.into_inner();
        let mut interval = None;
        let (mut received, mut ply) = (0, 0);
        let mut asked = Instant::now();
        loop {
            let tick = async {
                match &mut interval {
                    Some(interval) => {
                        let interval: &mut tokio::time::Interval = interval;
                        interval.tick().await;
                    }
                    None => std::future::pending().await,
                }
            };
            let room = self.room.saturating_sub(held.len());
            tokio::select! {
                message = inbound.message() => match message?.and_then(|message| message.kind) {
                    Some(Kind::Welcome(welcome)) => {
                        self.counts.welcomed.fetch_add(1, Ordering::Relaxed);
                        held.retain(|bout| welcome.adopted.contains(&(&bout.lease).into()));
                        interval = Some(tokio::time::interval(Duration::from_millis(welcome.heartbeat_ms.into())));
                    }
                    Some(Kind::Grant(grant)) => {
                        received += 1;
                        self.counts.granted.fetch_add(1, Ordering::Relaxed);
                        let bout = Bout::try_from(grant)?;
                        held.push(bout.clone());
                        let _ = self.lent.send(Lent { puppet: self.number, bout, waited: asked.elapsed() });
                    }
                    Some(Kind::Revoke(revoke)) => {
                        self.counts.revoked.fetch_add(revoke.leases.len() as u64, Ordering::Relaxed);
                        held.retain(|bout| !revoke.leases.contains(&(&bout.lease).into()));
                    }
                    Some(_) => {}
                    None => return Ok(()),
                },
                Some(done) = self.done.recv() => {
                    held.retain(|bout| bout.lease.bout != done);
                    let room = self.room.saturating_sub(held.len());
                    asked = Instant::now();
                    let heartbeat = Heartbeat { room, grants_received: received, ..Heartbeat::default() };
                    send(worker_message::Kind::Heartbeat((&heartbeat).into()));
                }
                () = tick => {
                    ply += 1;
                    let going = |bout: &Bout| Progress { lease: bout.lease.clone(), started: true, game: 0, ply, pulse: 0 };
                    if held.is_empty() {
                        asked = Instant::now();
                    }
                    let progress = held.iter().map(going).collect();
                    let heartbeat = Heartbeat { room, progress, grants_received: received, ..Heartbeat::default() };
                    send(worker_message::Kind::Heartbeat((&heartbeat).into()));
                }
            }
        }
    }
}

/// A connection that carries bouts.
pub(super) struct Carrier {
    messages: mpsc::Sender<v1::Submission>,
}

impl Carrier {
    /// Opens one; `settled` is told of each acknowledgement.
    pub(super) async fn open(
        endpoint: &Endpoint,
        settled: impl Fn(v1::Acknowledgement) + Send + 'static,
    ) -> anyhow::Result<Carrier> {
        let channel: Channel = endpoint.connect().await.context("the coordinator does not answer")?;
        let (messages, outbound) = mpsc::channel(256);
        let mut client = WorkerClient::new(channel);
        let mut inbound = client.submit(ReceiverStream::new(outbound)).await?.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(acknowledgement)) = inbound.message().await {
                settled(acknowledgement);
            }
        });
        Ok(Carrier { messages })
    }

    /// Sends the messages of a bout.
    pub(super) async fn send(&self, messages: Vec<v1::Submission>) -> anyhow::Result<()> {
        for message in messages {
            self.messages.send(message).await.context("the coordinator has closed the connection")?;
        }
        Ok(())
    }
}
