//! Ingest: recorded bouts at full speed, each replayed, committed and exported.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use agon_arena::{Spec, known_answers};
use agon_proto::v1::Acknowledgement;
use agon_records::BoutRows;
use agon_schedule::schedule::Schedule;
use agon_search::rate::per_second;
use agon_testing::bouts::{self, play_games};
use agon_testing::folder::Folder;
use agon_testing::scripted_worker::BUILD;
use anyhow::Context as _;
use tokio::sync::mpsc;

use super::coordinator::{Coordinator, size};
use super::simulated_worker::{Counters, SimulatedWorker, SubmitStream, messages, name};
use super::{Report, recorded};

/// The number of bouts that the simulated worker holds at once.
const CAPACITY: usize = 512;

/// Measures the coordinator's processor time per move.
pub(super) async fn measure(bouts: u64) -> anyhow::Result<Report> {
    let source = recorded(bouts);
    let spec = Arc::new(Spec::parse(&source)?);
    let rows = tokio::task::spawn_blocking({
        let spec = Arc::clone(&spec);
        move || record(&spec)
    });
    let rows = rows.await??;
    let moves: u64 = rows.values().map(|rows| rows.moves.len() as u64).sum();

    let folder = Folder::new();
    let (coordinator, _) = Coordinator::start(&folder, &[]).await?;
    let run = coordinator.submit(&source).await?;
    let (before, started) = (coordinator.processor_time()?, Instant::now());
    let (granted, mut grants) = mpsc::unbounded_channel();
    let (acknowledged, done) = mpsc::unbounded_channel();
    let signature = known_answers().signature;
    let counters = Arc::new(Counters::default());
    let mut worker =
        SimulatedWorker { number: 0, capacity: CAPACITY, signature, counters, grants: granted, done };
    let endpoint = coordinator.endpoint.clone();
    let session = tokio::spawn(async move { worker.session(&endpoint, &mut Vec::new()).await });
    let on_acknowledgement = move |acknowledgement: Acknowledgement| {
        if let Some(lease) = acknowledgement.lease {
            let _ = acknowledged.send(lease.bout);
        }
    };
    let stream = SubmitStream::open(&coordinator.endpoint, on_acknowledgement).await?;
    for _ in 0..bouts {
        let bout = grants.recv().await.context("the session ended early")?.bout;
        let rows = rows.get(&bout.lease.bout).context("the granted bout was not recorded")?;
        stream.send(messages(&spec, &bout, rows, &name(0))?).await?;
    }
    let status = coordinator.finish(&run).await?;
    let (cpu, wall) = (coordinator.processor_time()? - before, started.elapsed());
    session.abort();
    anyhow::ensure!(status.committed == bouts, "only {} of {bouts} bouts were committed", status.committed);

    let mut report = Report::default();
    report.add("bouts", bouts as f64, "");
    report.add("moves", moves as f64, "");
    let rate = per_second(moves, cpu)?;
    report.add("moves per second of coordinator processor time", rate, "");
    report.add("coordinator processor time per move", 1e6 / rate, "us");
    report.add("bouts per second, with the sender on this machine", per_second(bouts, wall)?, "");
    let dataset = size(&folder.as_path().join("data/moves"));
    report.add("bytes per row of moves", dataset as f64 / moves as f64, "");
    report.add("coordinator memory", coordinator.memory()? / 1e6, "MB");
    Ok(report)
}

/// Plays every bout of a spec.
fn record(spec: &Spec) -> anyhow::Result<HashMap<u64, BoutRows>> {
    let mut schedule = Schedule::new(spec.clone())?;
    let mut arena = bouts::arena(spec);
    let worker = name(0);
    let mut rows = HashMap::new();
    for index in 0..schedule.bouts() {
        let bout = schedule.draw_bout(index)?;
        rows.insert(index, play_games(spec, &mut arena, &bout, [&worker, BUILD], |_| bouts::STARTED));
    }
    Ok(rows)
}
