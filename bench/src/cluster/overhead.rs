//! Overhead: a tournament through coordinator and worker against the same bouts in a plain loop on as many threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use agon_arena::{Arena, Environment, PlayerConfig, Spec, SpecSource};
use agon_proto::v1;
use agon_schedule::schedule::Schedule;

use super::process::{Coordinator, Folder};
use super::{Report, source};

/// Threads of the loop, and slots of the worker.
const SLOTS: usize = 2;

/// By the clock: what matters is how much of the time goes to anything but thinking.
fn timed() -> SpecSource {
    source(
        r#"
name = "timed"
game = "connect-four"
seed = 1
limit = { ms = 10 }
openings = { random_plies = 4 }
[tournament]
format = "round-robin"
bouts = 40
[[player]]
name = "pvs"
search = { algorithm = "pvs", table_mb = 1 }
[[player]]
name = "uct"
search = { algorithm = "uct" }
"#,
    )
}

/// Bouts that take next to nothing: what matters is everything around them.
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

/// What was played in what time.
struct Pace {
    bouts: f64,
    plies: f64,
    seconds: f64,
}

/// Measures both.
pub(super) async fn measure() -> anyhow::Result<Report> {
    let mut report = Report::default();
    let (alone, through) = (plainly(&timed()).await?, cluster(&timed()).await?);
    let loss = 1.0 - (through.plies / through.seconds) / (alone.plies / alone.seconds);
    report.add("10 ms a move: moves a second in a loop", alone.plies / alone.seconds, "");
    report.add("10 ms a move: through the cluster", through.plies / through.seconds, "");
    report.add("10 ms a move: fewer by", 100.0 * loss, "%");
    let (alone, through) = (plainly(&tiny()).await?, cluster(&tiny()).await?);
    report.add("tic-tac-toe, depth 1: bouts a second in a loop", alone.bouts / alone.seconds, "");
    report.add("tic-tac-toe, depth 1: durable bouts a second", through.bouts / through.seconds, "");
    let cost = through.seconds / through.plies - alone.seconds / alone.plies;
    report.add("cost a ply of everything around the game", 1e6 * cost * SLOTS as f64, "us of a core");
    report.add(
        "cost a ply in the loop, search included",
        1e6 * alone.seconds / alone.plies * SLOTS as f64,
        "us of a core",
    );
    Ok(report)
}

/// The bouts of a spec on threads that take the next one.
async fn plainly(source: &SpecSource) -> anyhow::Result<Pace> {
    let spec = Spec::parse(source)?;
    let played = tokio::task::spawn_blocking(move || {
        let mut schedule = Schedule::new(spec.clone())?;
        let mut bouts = Vec::new();
        for index in 0..schedule.bouts() {
            let bout = schedule.bout(index)?;
            bouts.push(schedule.request(&bout));
        }
        let players: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
        let (next, plies) = (AtomicU64::new(0), AtomicU64::new(0));
        let started = Instant::now();
        std::thread::scope(|scope| {
            let play = || -> anyhow::Result<()> {
                let mut arena = Arena::new(&spec.game, &players, Environment::system())?;
                while let Some(bout) = bouts.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    for game in bout.games() {
                        let record = arena.play(&game, &mut |_| ())?;
                        plies.fetch_add(record.moves.len() as u64, Ordering::Relaxed);
                    }
                }
                Ok(())
            };
            let threads: Vec<_> = (0..SLOTS).map(|_| scope.spawn(play)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("playing does not panic"))
        })?;
        let seconds = started.elapsed().as_secs_f64();
        anyhow::Ok(Pace { bouts: bouts.len() as f64, plies: plies.into_inner() as f64, seconds })
    });
    played.await?
}

/// The same through a coordinator and a worker, from the first grant to the last commit.
async fn cluster(source: &SpecSource) -> anyhow::Result<Pace> {
    let folder = Folder::new("overhead")?;
    let (coordinator, _) = Coordinator::start(&folder.0, &["--heartbeat-ms", "1000"]).await?;
    let mut config = agon_worker::Config::new(coordinator.endpoint.clone(), "bench");
    config.slots = SLOTS;
    let plies = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&plies);
    config.watch = Arc::new(move |event| {
        if let agon_worker::WorkerEvent::Finished { plies, .. } = event {
            counted.fetch_add(*plies, Ordering::Relaxed);
        }
    });
    let worker = tokio::spawn(agon_worker::run(config, std::future::pending()));
    let mut operator = coordinator.operator().await?;
    while operator.list_workers(v1::ListWorkersRequest {}).await?.into_inner().workers.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let started = Instant::now();
    let run = coordinator.submit(source).await?;
    let bouts =
        Spec::parse(source).map_err(anyhow::Error::from).and_then(|spec| Ok(Schedule::new(spec)?.bouts()))?;
    let request = || v1::ShowRunRequest { run: run.clone() };
    while operator.show_run(request()).await?.into_inner().committed < bouts {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    worker.abort();
    Ok(Pace { bouts: bouts as f64, plies: plies.load(Ordering::Relaxed) as f64, seconds })
}
