//! Fleet: thousands of sessions with heartbeats and bouts, what they cost the coordinator, and a storm of reconnects.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agon_arena::{Spec, known_answers};
use agon_proto::v1::Acknowledgement;
use tokio::sync::mpsc;
use tonic::transport::Endpoint;

use super::process::{Coordinator, Folder};
use super::puppet::{Carrier, Counts, Lent, Puppet, Recorder, messages};
use super::{Report, recorded};

/// How long a bout of a simulated worker takes.
const BOUT: Duration = Duration::from_secs(30);
/// Connections that carry the bouts of all simulated workers.
const CARRIERS: usize = 16;

/// Watches so many sessions for so many seconds.
pub(super) async fn measure(sessions: u32, seconds: u32) -> anyhow::Result<Report> {
    let source = recorded(60_000);
    let spec = Arc::new(Spec::parse(&source)?);
    let folder = Folder::new("fleet")?;
    let arguments = ["--heartbeat-ms", "5000", "--lease-ms", "30000"];
    let (coordinator, _) = Coordinator::start(&folder.0, &arguments).await?;
    coordinator.submit(&source).await?;
    let counts = Arc::new(Counts::default());
    let fleet = Fleet::start(sessions as usize, &coordinator.endpoint, &spec, &counts).await?;

    // 1. Everybody comes.
    let came = Instant::now();
    wait_for(&counts.welcomed, u64::from(sessions)).await?;
    let came = came.elapsed();

    // 2. The everyday.
    tokio::time::sleep(Duration::from_secs(5)).await;
    fleet.waits.lock().expect("nobody panics with it").clear();
    let (cpu, granted, done) = (
        coordinator.cpu()?,
        counts.granted.load(Ordering::Relaxed),
        counts.acknowledged.load(Ordering::Relaxed),
    );
    let started = Instant::now();
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    let wall = started.elapsed().as_secs_f64();
    let cpu = (coordinator.cpu()? - cpu) / wall;
    let mut waits = std::mem::take(&mut *fleet.waits.lock().expect("nobody panics with it"));
    waits.sort_unstable();
    let at = |share: f64| waits.get((share * waits.len() as f64) as usize).map_or(0.0, Duration::as_secs_f64);
    let grants = (counts.granted.load(Ordering::Relaxed) - granted) as f64 / wall;
    let bouts = (counts.acknowledged.load(Ordering::Relaxed) - done) as f64 / wall;
    let (revoked, memory) = (counts.revoked.load(Ordering::Relaxed), coordinator.memory()?);

    // 3. The storm: every connection breaks at the same moment.
    counts.welcomed.store(0, Ordering::Relaxed);
    fleet.storm.send_modify(|number| *number += 1);
    let storm = Instant::now();
    wait_for(&counts.welcomed, u64::from(sessions)).await?;
    let storm = storm.elapsed();

    let mut report = Report::default();
    report.add("sessions", f64::from(sessions), "");
    report.add("until all were welcomed", came.as_secs_f64(), "s");
    report.add("bouts a second, about 53 moves each", bouts, "");
    report.add("grants a second", grants, "");
    report.add("grant latency, median", 1e3 * at(0.5), "ms");
    report.add("grant latency, 99 of 100", 1e3 * at(0.99), "ms");
    report.add("processor time of the coordinator", 100.0 * cpu, "% of a core");
    report.add("memory of the coordinator", memory / 1e6, "MB");
    report.add("leases that expired", revoked as f64, "");
    report.add("storm: all reconnect, until all were welcomed", storm.as_secs_f64(), "s");
    report.add("sessions lost otherwise", counts.lost.load(Ordering::Relaxed) as f64, "");
    Ok(report)
}

async fn wait_for(count: &AtomicU64, wanted: u64) -> anyhow::Result<()> {
    let started = Instant::now();
    while count.load(Ordering::Relaxed) < wanted {
        let found = count.load(Ordering::Relaxed);
        anyhow::ensure!(started.elapsed() < Duration::from_secs(300), "only {found} of {wanted} came");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

struct Fleet {
    /// Raised to break every connection.
    storm: tokio::sync::watch::Sender<u64>,
    /// How long grants took.
    waits: Arc<std::sync::Mutex<Vec<Duration>>>,
}

impl Fleet {
    async fn start(
        sessions: usize,
        endpoint: &Endpoint,
        spec: &Arc<Spec>,
        counts: &Arc<Counts>,
    ) -> anyhow::Result<Fleet> {
        let answers = Arc::new(known_answers());
        let (lent, arrivals) = mpsc::unbounded_channel();
        let storm = tokio::sync::watch::Sender::new(0);
        let waits = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut inboxes = Vec::new();
        for number in 0..sessions {
            let (done, inbox) = mpsc::unbounded_channel();
            inboxes.push(done);
            let puppet = Puppet {
                number,
                room: 2,
                answers: Arc::clone(&answers),
                counts: Arc::clone(counts),
                lent: lent.clone(),
                done: inbox,
            };
            tokio::spawn(hold(puppet, endpoint.clone(), storm.subscribe(), Arc::clone(counts)));
        }
        let inboxes = Arc::new(inboxes);
        let mut carriers = Vec::new();
        for _ in 0..CARRIERS {
            let (inboxes, counts) = (Arc::clone(&inboxes), Arc::clone(counts));
            let settled = move |acknowledgement: Acknowledgement| settle(&inboxes, &counts, acknowledgement);
            carriers.push(Carrier::open(endpoint, settled).await?);
        }
        tokio::spawn(play(arrivals, carriers, Arc::clone(spec), Arc::clone(&waits)));
        Ok(Fleet { storm, waits })
    }
}

/// Keeps a puppet connected, from a new address port each time.
async fn hold(
    mut puppet: Puppet,
    endpoint: Endpoint,
    mut storm: tokio::sync::watch::Receiver<u64>,
    counts: Arc<Counts>,
) {
    let mut held = Vec::new();
    loop {
        let broken = tokio::select! {
            ended = puppet.session(&endpoint, &mut held) => ended.is_err(),
            changed = storm.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        counts.lost.fetch_add(u64::from(broken), Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(200 + puppet.number as u64 % 800)).await;
    }
}

/// Tells the puppet that a bout of it is settled. Its name is in the worker of the bout, which the acknowledgement has
/// not; the lease's number tells it: leases are noted by whoever sent them.
fn settle(inboxes: &[mpsc::UnboundedSender<u64>], counts: &Counts, acknowledgement: Acknowledgement) {
    counts.acknowledged.fetch_add(1, Ordering::Relaxed);
    if let Some(lease) = acknowledgement.lease {
        let puppet = OWNERS.lock().expect("nobody panics with it").remove(&(lease.epoch, lease.sequence));
        if let Some(inbox) = puppet.and_then(|puppet| inboxes.get(puppet)) {
            let _ = inbox.send(lease.bout);
        }
    }
}

/// Whose lease it is.
static OWNERS: std::sync::Mutex<std::collections::BTreeMap<(u64, u64), usize>> =
    std::sync::Mutex::new(std::collections::BTreeMap::new());

/// Sends the bouts of all puppets when their time has come.
async fn play(
    mut arrivals: mpsc::UnboundedReceiver<Lent>,
    carriers: Vec<Carrier>,
    spec: Arc<Spec>,
    waits: Arc<std::sync::Mutex<Vec<Duration>>>,
) -> anyhow::Result<()> {
    let mut recorder = Recorder::new(Arc::clone(&spec))?;
    let mut due: BinaryHeap<Reverse<(Instant, u64)>> = BinaryHeap::new();
    let mut bouts = std::collections::HashMap::new();
    let mut number = 0;
    loop {
        let next = due.peek().map(|Reverse((time, _))| *time);
        let time = next.unwrap_or_else(|| Instant::now() + Duration::from_secs(1));
        tokio::select! {
            biased;
            lent = arrivals.recv() => {
                let Some(lent) = lent else { return Ok(()) };
                waits.lock().expect("nobody panics with it").push(lent.waited);
                // Bouts end spread over the time that one takes.
                let share = (lent.bout.lease.bout % 97) as f64 / 97.0;
                due.push(Reverse((Instant::now() + BOUT.mul_f64(0.5 + share), number)));
                bouts.insert(number, lent);
                number += 1;
            }
            () = tokio::time::sleep_until(time.into()), if next.is_some() => {
                let Some(Reverse((_, key))) = due.pop() else { continue };
                let Some(Lent { puppet, bout, .. }) = bouts.remove(&key) else { continue };
                let name = Puppet::name(puppet);
                let rows = recorder.play(&bout, &name)?;
                let lease = &bout.lease;
                OWNERS.lock().expect("nobody panics with it").insert((lease.epoch, lease.sequence), puppet);
                let carrier = &carriers[puppet % carriers.len()];
                carrier.send(messages(&spec, &bout, &rows, &name)?).await?;
            }
        }
    }
}
