//! Overhead: a tournament on a coordinator and a worker, compared with the same bouts in a plain loop on as many threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agon_arena::{Spec, SpecSource};
use agon_proto::v1;
use agon_schedule::schedule::Schedule;
use agon_search::rate::{RateError, per_second};
use agon_testing::bouts;
use agon_testing::folder::Folder;
use agon_testing::specs::{PVS_VS_UCT, vary};

use super::coordinator::Coordinator;
use super::{Report, source};

/// The threads of the loop and the slots of the worker.
const SLOTS: usize = 2;

/// Returns a spec with a time limit, which shows the share of time that is not spent in searches.
fn timed() -> SpecSource {
    source(&vary(PVS_VS_UCT).name("timed").seed(1).limit("ms = 10").bouts(40))
}

/// Returns a spec with trivial bouts, which shows the cost of everything else.
fn tiny() -> SpecSource {
    source(
        r#"
name = "tiny"
game = "tic-tac-toe"
seed = 1
limit = { depth = 1 }
[tournament]
format = "round-robin"
bouts = 30000
[[player]]
name = "alpha-beta"
search = { algorithm = "alpha-beta" }
[[player]]
name = "random"
search = { algorithm = "random" }
"#,
    )
}

/// The bouts and plies played in a time.
struct Throughput {
    bouts: u64,
    plies: u64,
    elapsed: Duration,
}

impl Throughput {
    fn bouts_per_second(&self) -> Result<f64, RateError> {
        per_second(self.bouts, self.elapsed)
    }

    fn plies_per_second(&self) -> Result<f64, RateError> {
        per_second(self.plies, self.elapsed)
    }

    /// Returns the time of a core per ply, in microseconds.
    fn microseconds_per_ply(&self) -> Result<f64, RateError> {
        Ok(1e6 * SLOTS as f64 / self.plies_per_second()?)
    }
}

/// Measures both specs in both ways.
pub(super) async fn measure() -> anyhow::Result<Report> {
    let mut report = Report::default();
    let (in_loop, clustered) = (play_in_loop(&timed()).await?, play_on_cluster(&timed()).await?);
    let (in_loop, clustered) = (in_loop.plies_per_second()?, clustered.plies_per_second()?);
    report.add("10 ms a move: moves per second in a loop", in_loop, "");
    report.add("10 ms a move: on the cluster", clustered, "");
    report.add("10 ms a move: loss", 100.0 * (1.0 - clustered / in_loop), "%");
    let (in_loop, clustered) = (play_in_loop(&tiny()).await?, play_on_cluster(&tiny()).await?);
    report.add("tic-tac-toe, depth 1: bouts per second in a loop", in_loop.bouts_per_second()?, "");
    report.add("tic-tac-toe, depth 1: committed bouts per second", clustered.bouts_per_second()?, "");
    let (in_loop, clustered) = (in_loop.microseconds_per_ply()?, clustered.microseconds_per_ply()?);
    report.add("cost per ply of everything but the game", clustered - in_loop, "us of a core");
    report.add("cost per ply in the loop, with the search", in_loop, "us of a core");
    Ok(report)
}

/// Plays the bouts of a spec in a loop on each thread.
async fn play_in_loop(source: &SpecSource) -> anyhow::Result<Throughput> {
    let spec = Spec::parse(source)?;
    let played = tokio::task::spawn_blocking(move || {
        let mut schedule = Schedule::new(spec.clone())?;
        let mut bouts = Vec::new();
        for index in 0..schedule.bouts() {
            bouts.push(schedule.draw_bout(index)?);
        }
        let (next, plies) = (AtomicU64::new(0), AtomicU64::new(0));
        let started = Instant::now();
        std::thread::scope(|scope| {
            let play = || -> anyhow::Result<()> {
                let mut arena = bouts::arena(&spec);
                while let Some(bout) = bouts.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    for game in spec.games(bout, 1.0) {
                        let record = arena.play(&game, &mut |_| ())?;
                        plies.fetch_add(record.moves.len() as u64, Ordering::Relaxed);
                    }
                }
                Ok(())
            };
            let threads: Vec<_> = (0..SLOTS).map(|_| scope.spawn(play)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("the arena does not panic"))
        })?;
        let elapsed = started.elapsed();
        anyhow::Ok(Throughput { bouts: bouts.len() as u64, plies: plies.into_inner(), elapsed })
    });
    played.await?
}

/// Plays them with a coordinator and a worker, from the submission to the last commit.
async fn play_on_cluster(source: &SpecSource) -> anyhow::Result<Throughput> {
    let folder = Folder::new();
    let (coordinator, _) = Coordinator::start(&folder, &["--heartbeat-ms", "1000"]).await?;
    let mut config = agon_worker::Config::new(coordinator.endpoint.clone(), "bench");
    config.slots = SLOTS;
    let plies = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&plies);
    config.on_event = Arc::new(move |event| {
        if let agon_worker::WorkerEvent::Finished { plies, .. } = event {
            counted.fetch_add(*plies, Ordering::Relaxed);
        }
    });
    let worker = tokio::spawn(agon_worker::run(config, std::future::pending()));
    let mut operator = coordinator.operator().await?;
    while operator.list_workers(v1::ListWorkersRequest {}).await?.into_inner().workers.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let started = Instant::now();
    let run = coordinator.submit(source).await?;
    let bouts =
        Spec::parse(source).map_err(anyhow::Error::from).and_then(|spec| Ok(Schedule::new(spec)?.bouts()))?;
    let request = || v1::ShowRunRequest { run: run.clone() };
    while operator.show_run(request()).await?.into_inner().committed < bouts {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let elapsed = started.elapsed();
    worker.abort();
    Ok(Throughput { bouts, plies: plies.load(Ordering::Relaxed), elapsed })
}
