//! Fleet: the cost of thousands of sessions with heartbeats and bouts, and a simultaneous reconnect of all of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agon_arena::{Spec, known_answers};
use agon_proto::v1::Acknowledgement;
use agon_search::rate::per_second;
use agon_testing::bouts;
use agon_testing::folder::Folder;
use agon_testing::scripted_worker::BUILD;
use tokio::sync::{mpsc, watch};
use tonic::transport::Endpoint;

use super::coordinator::Coordinator;
use super::simulated_worker::{Counters, Grant, SimulatedWorker, SubmitStream, messages, name};
use super::{Report, recorded};

/// The mean duration of a simulated bout.
const BOUT_TIME: Duration = Duration::from_secs(30);
/// The number of connections that submit the bouts of all simulated workers.
const SUBMIT_STREAMS: usize = 16;

/// Measures the coordinator with this many sessions for this many seconds.
pub(super) async fn measure(sessions: u32, seconds: u32) -> anyhow::Result<Report> {
    let source = recorded(60_000);
    let spec = Arc::new(Spec::parse(&source)?);
    let folder = Folder::new();
    let flags = ["--heartbeat-ms", "5000", "--lease-ms", "30000"];
    let (coordinator, _) = Coordinator::start(&folder, &flags).await?;
    coordinator.submit(&source).await?;
    let counters = Arc::new(Counters::default());

    // 1. All workers connect.
    let connecting = Instant::now();
    let fleet = Fleet::start(sessions as usize, &coordinator.endpoint, &spec, &counters).await?;
    wait_for(&counters.welcomed, u64::from(sessions)).await?;
    let connected = connecting.elapsed();

    // 2. Steady state.
    tokio::time::sleep(Duration::from_secs(5)).await;
    lock(&fleet.latencies).clear();
    let (cpu, granted, done) = (
        coordinator.processor_time()?,
        counters.granted.load(Ordering::Relaxed),
        counters.acknowledged.load(Ordering::Relaxed),
    );
    let started = Instant::now();
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    let wall = started.elapsed();
    let cpu = (coordinator.processor_time()? - cpu).div_duration_f64(wall);
    let mut latencies = std::mem::take(&mut *lock(&fleet.latencies));
    latencies.sort_unstable();
    let quantile = |share: f64| {
        latencies.get((share * latencies.len() as f64) as usize).map_or(0.0, Duration::as_secs_f64)
    };
    let grants = per_second(counters.granted.load(Ordering::Relaxed) - granted, wall)?;
    let bouts = per_second(counters.acknowledged.load(Ordering::Relaxed) - done, wall)?;
    let (revoked, memory) = (counters.revoked.load(Ordering::Relaxed), coordinator.memory()?);

    // 3. All connections break at once.
    counters.welcomed.store(0, Ordering::Relaxed);
    fleet.disconnect.send_modify(|number| *number += 1);
    let reconnecting = Instant::now();
    wait_for(&counters.welcomed, u64::from(sessions)).await?;
    let reconnected = reconnecting.elapsed();

    let mut report = Report::default();
    report.add("sessions", f64::from(sessions), "");
    report.add("time until all are connected", connected.as_secs_f64(), "s");
    report.add("bouts per second, about 53 moves each", bouts, "");
    report.add("grants per second", grants, "");
    report.add("grant latency, median", 1e3 * quantile(0.5), "ms");
    report.add("grant latency, 99th percentile", 1e3 * quantile(0.99), "ms");
    report.add("coordinator processor time", 100.0 * cpu, "% of a core");
    report.add("coordinator memory", memory / 1e6, "MB");
    report.add("expired leases", revoked as f64, "");
    report.add("time until all are reconnected", reconnected.as_secs_f64(), "s");
    let lost = lock(&counters.lost);
    for (reason, count) in lost.iter() {
        eprintln!("{count} sessions lost: {reason}");
    }
    report.add("other lost sessions", lost.values().sum::<u64>() as f64, "");
    drop(lost);
    Ok(report)
}

async fn wait_for(count: &AtomicU64, wanted: u64) -> anyhow::Result<()> {
    let started = Instant::now();
    while count.load(Ordering::Relaxed) < wanted {
        let found = count.load(Ordering::Relaxed);
        anyhow::ensure!(
            started.elapsed() < Duration::from_secs(300),
            "only {found} of {wanted} workers connected"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The worker of each submitted lease, by epoch and sequence: acknowledgements do not name it.
type Owners = Arc<Mutex<BTreeMap<(u64, u64), usize>>>;

struct Fleet {
    /// Changes when every connection must break.
    disconnect: watch::Sender<u64>,
    /// The latencies of grants.
    latencies: Arc<Mutex<Vec<Duration>>>,
}

impl Fleet {
    async fn start(
        sessions: usize,
        endpoint: &Endpoint,
        spec: &Arc<Spec>,
        counters: &Arc<Counters>,
    ) -> anyhow::Result<Fleet> {
        let signature = known_answers().signature;
        let (granted, grants) = mpsc::unbounded_channel();
        let disconnect = watch::Sender::new(0);
        let mut inboxes = Vec::new();
        for number in 0..sessions {
            let (inbox, done) = mpsc::unbounded_channel();
            inboxes.push(inbox);
            let worker = SimulatedWorker {
                number,
                capacity: 2,
                signature: signature.clone(),
                counters: Arc::clone(counters),
                grants: granted.clone(),
                done,
            };
            tokio::spawn(keep_connected(worker, endpoint.clone(), disconnect.subscribe()));
        }
        let (inboxes, owners) = (Arc::new(inboxes), Owners::default());
        let mut streams = Vec::new();
        for _ in 0..SUBMIT_STREAMS {
            let (inboxes, owners, counters) =
                (Arc::clone(&inboxes), Arc::clone(&owners), Arc::clone(counters));
            let on_acknowledgement = move |acknowledgement: Acknowledgement| {
                counters.acknowledged.fetch_add(1, Ordering::Relaxed);
                if let Some(lease) = acknowledgement.lease
                    && let Some(worker) = lock(&owners).remove(&(lease.epoch, lease.sequence))
                {
                    let _ = inboxes[worker].send(lease.bout);
                }
            };
            streams.push(SubmitStream::open(endpoint, on_acknowledgement).await?);
        }
        let latencies = Arc::default();
        tokio::spawn(play(grants, streams, Arc::clone(spec), owners, Arc::clone(&latencies)));
        Ok(Fleet { disconnect, latencies })
    }
}

/// Reconnects a worker whenever its session ends.
async fn keep_connected(
    mut worker: SimulatedWorker,
    endpoint: Endpoint,
    mut disconnect: watch::Receiver<u64>,
) {
    let mut held = Vec::new();
    loop {
        let ended = tokio::select! {
            ended = worker.session(&endpoint, &mut held) => ended,
            changed = disconnect.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        if let Err(error) = ended {
            *lock(&worker.counters.lost).entry(format!("{error:#}")).or_default() += 1;
        }
        tokio::time::sleep(Duration::from_millis(200 + worker.number as u64 % 800)).await;
    }
}

/// Plays the granted bouts, and submits each when its simulated duration has passed.
async fn play(
    mut grants: mpsc::UnboundedReceiver<Grant>,
    streams: Vec<SubmitStream>,
    spec: Arc<Spec>,
    owners: Owners,
    latencies: Arc<Mutex<Vec<Duration>>>,
) -> anyhow::Result<()> {
    let mut arena = bouts::arena(&spec);
    let mut due: BinaryHeap<Reverse<(Instant, u64)>> = BinaryHeap::new();
    let mut playing = HashMap::new();
    let mut number = 0;
    loop {
        let next = due.peek().map(|Reverse((time, _))| *time);
        let time = next.unwrap_or_else(|| Instant::now() + Duration::from_secs(1));
        tokio::select! {
            biased;
            grant = grants.recv() => {
                let Some(grant) = grant else { return Ok(()) };
                lock(&latencies).push(grant.latency);
                // Spreads the ends of bouts over the duration of one.
                let share = (grant.bout.lease.bout % 97) as f64 / 97.0;
                due.push(Reverse((Instant::now() + BOUT_TIME.mul_f64(0.5 + share), number)));
                playing.insert(number, grant);
                number += 1;
            }
            () = tokio::time::sleep_until(time.into()), if next.is_some() => {
                let Some(Reverse((_, key))) = due.pop() else { continue };
                let Some(Grant { worker, bout, .. }) = playing.remove(&key) else { continue };
                let name = name(worker);
                let rows = bouts::play_on(&mut arena, &spec, &bout, &name, BUILD);
                lock(&owners).insert((bout.lease.epoch, bout.lease.sequence), worker);
                streams[worker % streams.len()].send(messages(&spec, &bout, &rows, &name)?).await?;
            }
        }
    }
}
