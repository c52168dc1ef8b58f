//! Ingest: recorded bouts at full speed, each replayed by the rules, durable before it is acknowledged, and exported.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use agon_arena::{Spec, known_answers};
use agon_proto::{Bout, Lease};
use agon_records::BoutRows;
use agon_schedule::schedule::Schedule;
use anyhow::Context as _;
use tokio::sync::mpsc;

use super::process::{Coordinator, Folder};
use super::puppet::{Carrier, Counts, Puppet, Recorder, messages};
use super::{Report, recorded};

/// Bouts that the puppet holds at once.
const ROOM: usize = 512;

/// Measures the coordinator's processor time for so many bouts.
pub(super) async fn measure(bouts: u64) -> anyhow::Result<Report> {
    let source = recorded(bouts);
    let spec = Arc::new(Spec::parse(&source)?);
    let rows = tokio::task::spawn_blocking({
        let spec = Arc::clone(&spec);
        move || record(&spec)
    });
    let rows = rows.await??;
    let moves: u64 = rows.values().map(|rows| rows.moves.len() as u64).sum();

    let folder = Folder::new("ingest")?;
    let (coordinator, _) = Coordinator::start(&folder.0, &[]).await?;
    let run = coordinator.submit(&source).await?;
    let (before, started) = (coordinator.cpu()?, Instant::now());
    let (lent, mut arrivals) = mpsc::unbounded_channel();
    let (done, inbox) = mpsc::unbounded_channel();
    let answers = Arc::new(known_answers());
    let counts = Arc::new(Counts::default());
    let mut puppet = Puppet { number: 0, room: ROOM, answers, counts, lent, done: inbox };
    let endpoint = coordinator.endpoint.clone();
    let session = tokio::spawn(async move { puppet.session(&endpoint, &mut Vec::new()).await });
    let told = done.clone();
    let settled = move |acknowledgement: agon_proto::v1::Acknowledgement| {
        if let Some(lease) = acknowledgement.lease {
            let _ = told.send(lease.bout);
        }
    };
    let carrier = Carrier::open(&coordinator.endpoint, settled).await?;
    for _ in 0..bouts {
        let bout = arrivals.recv().await.context("the session ended early")?.bout;
        let rows = rows.get(&bout.lease.bout).context("a bout that was not recorded")?;
        carrier.send(messages(&spec, &bout, rows, &Puppet::name(0))?).await?;
    }
    let status = coordinator.finish(&run).await?;
    let (cpu, wall) = (coordinator.cpu()? - before, started.elapsed().as_secs_f64());
    session.abort();
    anyhow::ensure!(status.committed == bouts, "{} of {bouts} bouts arrived", status.committed);

    let mut report = Report::default();
    report.add("bouts", bouts as f64, "");
    report.add("moves", moves as f64, "");
    report.add("moves a second of the coordinator's processor time", moves as f64 / cpu, "");
    report.add("microseconds of it a move", 1e6 * cpu / moves as f64, "us");
    report.add("bouts a second, coordinator and sender on this machine", bouts as f64 / wall, "");
    report.add("bytes a row of moves", folder.bytes("moves") as f64 / moves as f64, "");
    report.add("memory of the coordinator", coordinator.memory()? / 1e6, "MB");
    Ok(report)
}

/// Plays every bout of a spec.
fn record(spec: &Arc<Spec>) -> anyhow::Result<HashMap<u64, BoutRows>> {
    let mut schedule = Schedule::new((**spec).clone())?;
    let mut recorder = Recorder::new(Arc::clone(spec))?;
    let mut rows = HashMap::new();
    for index in 0..schedule.bouts() {
        let bout = schedule.bout(index)?;
        let lease = Lease { run: String::new(), bout: index, epoch: 0, sequence: 0 };
        let bout = Bout { lease, players: bout.players, opening: bout.opening, values: bout.values };
        rows.insert(index, recorder.play(&bout, &Puppet::name(0))?);
    }
    Ok(rows)
}
