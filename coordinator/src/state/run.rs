//! A run that is known: what is wanted of it, what is done, and whether its workers are alike.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use agon_arena::{Arena, Environment, Spec, SpecSource};
use agon_schedule::{RunState, Summary};
use agon_stats::homogeneity::{Cell, WorkerReport, compare};
use agon_stats::sprt::Decision;

use crate::ledger::Ledger;
use crate::standings::{Standings, Tally, decode_checked};
use crate::store::{StoredCell, StoredRun};
use agon_schedule::schedule::{Schedule, ScheduleError};

/// A run that is known.
pub(crate) struct Run {
    pub(crate) source: SpecSource,
    pub(crate) spec: Arc<Spec>,
    pub(crate) schedule: Schedule,
    /// For checking games outside the lock.
    pub(crate) referee: Arc<Mutex<Arena>>,
    pub(crate) ledger: Ledger,
    pub(crate) standings: Standings,
    pub(crate) state: RunState,
    pub(crate) priority: i32,
    pub(crate) decided: Option<u64>,
    /// Every bout below is in the dataset, and what is remembered of them.
    pub(crate) exported: u64,
    pub(crate) folded: Tally,
    /// Whether the dataset has its description, from this life on.
    pub(crate) described: bool,
    /// Why nothing of it can be exported, and nothing is leased.
    pub(crate) export_fault: Option<String>,
    /// Exported bouts that do not count.
    pub(crate) voided: BTreeSet<u64>,
    pub(crate) abandoned: u64,
    pub(crate) submitted_us: i64,
    /// The build that it was handed in to.
    pub(crate) build: String,
    /// The search signature of that build.
    pub(crate) signature: String,
    /// What each worker brought, by pairing and outcome.
    cells: BTreeMap<(String, u64), [u64; 3]>,
    /// How often the workers were compared, and when they are next.
    comparisons: u32,
    next_comparison: u64,
    pub(super) checked: u64,
    pub(super) disputed: u64,
    /// When it was submitted or taken up again, and what was done by then.
    pub(super) since: Instant,
    pub(super) done_before: u64,
    pub(super) games_before: u64,
}

/// A worker whose results are not like the others'.
pub(super) struct Outlier {
    pub(super) worker: String,
    pub(super) reason: String,
    /// Whether chance hardly ever does it: then the worker is set aside, else it is noted.
    pub(super) certain: bool,
}

/// The workers of a run are compared when it has so many bouts, and at each doubling.
const FIRST_COMPARISON: u64 = 128;

/// What is remembered of the exported bouts of a run; none where it is damaged.
pub(crate) fn persisted_tally(stored: &StoredRun) -> Option<Tally> {
    if stored.folded.is_empty() { Some(Tally::default()) } else { decode_checked(&stored.folded) }
}

/// A run from the store: its row, the bouts that are not exported, and what is remembered of the others.
pub(crate) struct PersistedRun {
    pub(crate) stored: StoredRun,
    /// Bouts with who brought them; none where they failed.
    pub(crate) bouts: Vec<(u64, String, Option<Summary>)>,
    pub(crate) cells: Vec<StoredCell>,
    pub(crate) voided: BTreeSet<u64>,
}

impl Run {
    /// A run with what is already done of it.
    pub(crate) fn new(
        source: SpecSource,
        schedule: Schedule,
        persisted: PersistedRun,
    ) -> Result<Run, ScheduleError> {
        let PersistedRun { stored, bouts, cells, voided } = persisted;
        let spec = Arc::new(schedule.spec().clone());
        let folded = persisted_tally(&stored).unwrap_or_default();
        let standings = Standings::new(&spec, schedule.referee().seats(), folded.clone())?;
        let referee =
            Arena::new(&spec.game, &[], Environment::system()).map_err(agon_arena::PlayError::from)?;
        let ledger = Ledger::new(schedule.bouts(), stored.exported, bouts.iter().map(|(bout, ..)| *bout));
        let cells = cells.into_iter().map(|cell| ((cell.worker, cell.pairing), cell.outcomes)).collect();
        let mut run = Run {
            source,
            spec,
            schedule,
            referee: Arc::new(Mutex::new(referee)),
            ledger,
            standings,
            state: stored.state,
            priority: stored.priority,
            decided: stored.decided,
            exported: stored.exported,
            folded,
            described: false,
            export_fault: None,
            voided,
            abandoned: stored.abandoned,
            submitted_us: stored.submitted_us,
            build: stored.build,
            signature: stored.signature,
            cells,
            comparisons: 0,
            next_comparison: FIRST_COMPARISON,
            checked: 0,
            disputed: 0,
            since: Instant::now(),
            done_before: 0,
            games_before: 0,
        };
        if let Some(course) = run.schedule.tuning_mut() {
            course.settle(run.folded.proposals().collect());
            for (bout, score) in (0..).zip(run.folded.scores()) {
                course.record(bout, score);
            }
        }
        for (bout, worker, summary) in &bouts {
            match summary {
                Some(summary) => run.add(*bout, worker, summary),
                None => run.add_failed(*bout),
            };
        }
        run.open();
        run.decided = run.decided.or(run.standings.deciding_bout());
        run.done_before = run.ledger.done();
        run.games_before = run.standings.tally().games;
        // Looks that an earlier life has made are made: what they spent stays spent.
        while run.ledger.done() >= run.next_comparison {
            run.comparisons += 1;
            run.next_comparison *= 2;
        }
        Ok(run)
    }

    /// Counts a bout that was played.
    pub(super) fn add(&mut self, bout: u64, worker: &str, summary: &Summary) -> Option<Decision> {
        self.schedule.learn(bout, summary.half_points());
        // Candidates of a tune change as it goes on, and workers that come and go would seem unlike each other.
        if bout >= self.spec.first_rated_bout()
            && let Some((pairing, outcome)) = summary.cell()
        {
            self.cells.entry((worker.to_string(), pairing)).or_default()[outcome] += 1;
        }
        self.standings.add(bout, summary)
    }

    /// Counts a bout that failed.
    pub(super) fn add_failed(&mut self, bout: u64) -> Option<Decision> {
        self.schedule.learn(bout, None);
        self.standings.add_failed(bout)
    }

    /// Lets all bouts be handed out that follow from what is known; whether there are more than before.
    pub(super) fn open(&mut self) -> bool {
        self.ledger.open_to(self.schedule.known())
    }

    /// Compares the workers at each doubling of the bouts: who departs too far from the others, and how.
    pub(super) fn compare_workers(&mut self) -> Vec<Outlier> {
        if self.ledger.done() < self.next_comparison {
            return Vec::new();
        }
        self.next_comparison = self.ledger.done().max(1) * 2;
        let names: BTreeSet<&str> = self.cells.keys().map(|(worker, _)| worker.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let pairings: BTreeSet<u64> = self.cells.keys().map(|(_, pairing)| *pairing).collect();
        let pairings: Vec<u64> = pairings.into_iter().collect();
        let cell = |((worker, pairing), outcomes): (&(String, u64), &[u64; 3])| Cell {
            pairing: pairings.binary_search(pairing).unwrap_or_default(),
            worker: names.binary_search(&worker.as_str()).unwrap_or_default(),
            outcomes: *outcomes,
        };
        let cells: Vec<Cell> = self.cells.iter().map(cell).collect();
        let report = compare(&cells, self.comparisons + 1);
        // A look at which nothing can be compared spends nothing.
        self.comparisons += u32::from(report.degrees > 0.0);
        let departs = |report: &WorkerReport| Outlier {
            worker: names[report.worker].to_string(),
            reason: format!(
                "its results differ from the others' by chi-square {:.1} with {} degrees of freedom, by chance once in {:.0}",
                report.chi_square,
                report.degrees,
                1.0 / report.probability.max(1e-300)
            ),
            certain: report.certain,
        };
        report.workers.iter().filter(|report| report.flagged).map(departs).collect()
    }
}
