//! Restart: the start time of a coordinator on a state with many committed bouts.

use std::path::Path;

use agon_arena::Spec;
use agon_coordinator::data::{DataFolder, Purpose, STATE};
use agon_coordinator::standings::{RunTotals, encode_checked};
use agon_coordinator::store::{Store, StoredBout, StoredRun};
use agon_records::BoutColumns;
use agon_schedule::run_id;
use agon_schedule::schedule::Schedule;
use agon_storage::summarise;
use agon_testing::bouts::{self, play_games};
use agon_testing::folder::Folder;
use agon_testing::scripted_worker::BUILD;

use super::coordinator::{Coordinator, size};
use super::{Report, source};

const WORKER: &str = "bench";
/// The number of runs.
const RUNS: u64 = 100;
/// The number of bouts per run that are not exported yet, which take most of the space.
const WAITING: u64 = 499;

/// Writes a state and measures the start of a coordinator on it.
pub(super) async fn measure(committed: u64) -> anyhow::Result<Report> {
    let folder = Folder::new();
    let data = folder.as_path().join("data");
    write_state(&data, committed)?;
    let bytes = size(&data);
    let (coordinator, ready) = Coordinator::start(&folder, &[]).await?;
    let mut report = Report::default();
    report.add("committed bouts", committed as f64, "");
    report.add("time until the first answer", ready.as_secs_f64(), "s");
    report.add("size of the state", bytes as f64 / 1e6, "MB");
    report.add("coordinator memory", coordinator.memory()? / 1e6, "MB");
    Ok(report)
}

/// Writes the state of a coordinator with this many committed bouts: totals of the exported ones, and the rest in full.
fn write_state(data: &Path, committed: u64) -> anyhow::Result<()> {
    let data = DataFolder::open(data, Purpose::Data, false)?;
    let mut store = Store::open(&data.folder.join(STATE))?;
    let each = (committed / RUNS).max(WAITING + 1);
    for number in 0..RUNS {
        let source = source(&format!(
            r#"
name = "seeded-{number}"
game = "tic-tac-toe"
seed = {number}
limit = {{ nodes = 100 }}
[tournament]
format = "round-robin"
bouts = {}
[[player]]
name = "uct"
search = {{ algorithm = "uct" }}
[[player]]
name = "random"
search = {{ algorithm = "random" }}
"#,
            each + 1000
        ));
        let mut schedule = Schedule::resume(Spec::parse(&source)?)?;
        let bout = schedule.draw_bout(0)?;
        let spec = schedule.spec();
        let rows = play_games(spec, &mut bouts::arena(spec), &bout, [WORKER, BUILD], |_| bouts::STARTED);
        let played = BoutColumns::from(&rows);
        let summary = summarise(spec, &played);
        let exported = each - WAITING;
        let mut totals = RunTotals::default();
        for _ in 0..exported {
            totals.add(&summary, true);
        }
        let id = run_id::first(&spec.name, &source)?;
        let run = StoredRun {
            id,
            text: source.text.clone(),
            files: "{}".to_string(),
            exported,
            totals: encode_checked(&totals),
            ..StoredRun::default()
        };
        let stored = |bout| StoredBout {
            bout,
            worker: WORKER.to_string(),
            digest: Some(played.content_digest()),
            summary: encode_checked(&summary),
            failed: false,
        };
        store.write_run(&run, (exported..each).map(stored).collect(), &[0; 2000])?;
    }
    drop(store);
    drop(data);
    Ok(())
}
