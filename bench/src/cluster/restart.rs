//! Restart: how long a coordinator takes to serve again over a state with many committed bouts.

use std::time::Duration;

use agon_arena::Spec;
use agon_coordinator::data::{DataFolder, Purpose, STATE};
use agon_coordinator::standings::{Tally, encode_checked};
use agon_coordinator::store::{NewBout, Store, StoredRun};
use agon_proto::{Bout, Lease};
use agon_records::BoutColumns;
use agon_schedule::run_id;
use agon_schedule::schedule::Schedule;
use agon_storage::summarise;

use super::process::{Coordinator, Folder};
use super::puppet::{Puppet, Recorder};
use super::{Report, source};

/// Runs that the bouts are spread over.
const RUNS: u64 = 100;
/// Bouts of each run that wait for a part to be full: what a state has most of.
const WAITING: u64 = 499;

/// Seeds a state and starts a coordinator over it.
pub(super) async fn measure(committed: u64) -> anyhow::Result<Report> {
    let folder = Folder::new("restart")?;
    seed(&folder, committed).await?;
    let bytes = folder.bytes("");
    let (coordinator, serving) = Coordinator::start(&folder.0, &[]).await?;
    let mut report = Report::default();
    report.add("committed bouts", committed as f64, "");
    report.add("from start to the first answer", serving.as_secs_f64(), "s");
    report.add("state on disk", bytes as f64 / 1e6, "MB");
    report.add("memory of the coordinator", coordinator.memory()? / 1e6, "MB");
    Ok(report)
}

/// Writes the state that a coordinator leaves after so many bouts: tallies of what is exported, and the rest in full.
async fn seed(folder: &Folder, committed: u64) -> anyhow::Result<()> {
    let data = DataFolder::open(&folder.0, Purpose::Data, false)?;
    let store = Store::open(&data.folder.join(STATE))?;
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
        let spec = std::sync::Arc::new(Spec::parse(&source)?);
        let mut schedule = Schedule::resume((*spec).clone())?;
        let scheduled = schedule.bout(0)?;
        let lease = Lease { run: String::new(), bout: 0, epoch: 0, sequence: 0 };
        let bout =
            Bout { lease, players: scheduled.players, opening: scheduled.opening, values: scheduled.values };
        let rows = Recorder::new(std::sync::Arc::clone(&spec))?.play(&bout, &Puppet::name(0))?;
        let played = BoutColumns::from(&rows);
        let summary = summarise(&spec, &played);
        let exported = each - WAITING;
        let mut folded = Tally::default();
        for _ in 0..exported {
            folded.add(&summary, true);
        }
        let id = run_id::first(&spec.name, &source)?;
        let run = StoredRun {
            id: id.clone(),
            text: source.text.clone(),
            files: "{}".to_string(),
            exported,
            folded: encode_checked(&folded),
            ..StoredRun::default()
        };
        store.add_run(run).await?;
        let new = |bout| NewBout {
            run: id.clone(),
            bout,
            worker: Puppet::name(0),
            digest: Some(played.content_digest()),
            summary: encode_checked(&summary),
            payload: vec![0; 2000],
            failure: None,
            to_check: false,
        };
        // Beside each other, so that one sync serves many.
        let put = |bout| {
            let (store, bout) = (store.clone(), new(bout));
            tokio::spawn(async move { store.put_bout(bout).await })
        };
        for stored in (exported..each).map(put).collect::<Vec<_>>() {
            stored.await??;
        }
    }
    // The store's thread has written everything it has answered; the file is closed with its last handle.
    drop(store);
    drop(data);
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(())
}
