//! A run in memory: its schedule, its progress and the comparison of its workers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use agon_arena::{Arena, Environment, Spec, SpecSource};
use agon_schedule::{RunState, Summary};
use agon_stats::homogeneity::{Cell, WorkerReport, compare};
use agon_stats::sprt::Decision;

use crate::ledger::Ledger;
use crate::standings::{RunTotals, Standings, decode_checked};
use crate::store::{StoredCell, StoredRun};
use agon_schedule::schedule::{Schedule, ScheduleError};

/// A run in memory.
pub(crate) struct Run {
    pub(crate) source: SpecSource,
    pub(crate) spec: Arc<Spec>,
    pub(crate) schedule: Schedule,
    /// Checks games outside the lock.
    pub(crate) referee: Arc<Mutex<Arena>>,
    pub(crate) ledger: Ledger,
    pub(crate) standings: Standings,
    pub(crate) state: RunState,
    pub(crate) priority: i32,
    pub(crate) decided: Option<u64>,
    /// All bouts below are in the dataset.
    pub(crate) exported: u64,
    /// The totals of the exported bouts.
    pub(crate) exported_totals: RunTotals,
    /// When this process last exported bouts; none for a run of an earlier process, whose bouts are exported at once.
    pub(crate) last_export: Option<Instant>,
    /// Whether this process has written the manifest.
    pub(crate) manifest_written: bool,
    /// Why the run cannot be exported; it gets no grants.
    pub(crate) export_fault: Option<String>,
    /// Exported bouts that were voided.
    pub(crate) voided: BTreeSet<u64>,
    /// Bouts that were started and whose lease expired.
    pub(crate) abandoned: u64,
    pub(crate) submitted_us: i64,
    /// The build that accepted the run.
    pub(crate) build: String,
    /// The search signature of that build.
    pub(crate) signature: String,
    /// Outcomes by worker and pairing.
    cells: BTreeMap<(String, u64), [u64; 3]>,
    /// The number of comparisons of the workers.
    comparisons: u32,
    /// The number of done bouts at the next comparison.
    next_comparison: u64,
    /// Replicas received.
    pub(super) checked: u64,
    /// Replicas that differed.
    pub(super) disputed: u64,
    /// When this process added the run, and its progress then.
    pub(crate) since: Instant,
    pub(super) done_before: u64,
    pub(super) games_before: u64,
}

/// A worker whose results differ from the others'.
pub(super) struct DivergentWorker {
    pub(super) worker: String,
    pub(super) reason: String,
    /// Whether chance is practically excluded; then the worker is quarantined, otherwise only audited.
    pub(super) certain: bool,
}

/// The number of done bouts at the first comparison of the workers; the next are at each doubling.
const FIRST_COMPARISON: u64 = 128;

/// Decodes the totals of the exported bouts of a run. Returns `None` if they are damaged.
pub(crate) fn stored_totals(stored: &StoredRun) -> Option<RunTotals> {
    if stored.totals.is_empty() { Some(RunTotals::default()) } else { decode_checked(&stored.totals) }
}

/// A run as read from the store.
#[derive(Default)]
pub(crate) struct PersistedRun {
    pub(crate) stored: StoredRun,
    /// The bouts not yet exported, with worker and summary; failed bouts have no summary.
    pub(crate) bouts: Vec<(u64, String, Option<Summary>)>,
    pub(crate) cells: Vec<StoredCell>,
    pub(crate) voided: BTreeSet<u64>,
}

impl Run {
    /// Creates a run with the progress from the store.
    pub(crate) fn new(
        source: SpecSource,
        schedule: Schedule,
        persisted: PersistedRun,
    ) -> Result<Run, ScheduleError> {
        let PersistedRun { stored, bouts, cells, voided } = persisted;
        let spec = Arc::new(schedule.spec().clone());
        let exported_totals = stored_totals(&stored).unwrap_or_default();
        let standings = Standings::new(&spec, exported_totals.clone())?;
        let referee =
            Arena::new(&spec.game, &[], Environment::system()).map_err(agon_arena::PlayError::from)?;
        let done = bouts.iter().map(|(bout, ..)| *bout);
        let mut ledger = Ledger::new(schedule.bouts(), stored.exported, done);
        ledger.reserve_to(stored.granted);
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
            exported_totals,
            last_export: None,
            manifest_written: false,
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
        if let Some(tuning) = run.schedule.tuning_mut() {
            tuning.add_proposals(run.exported_totals.proposals().collect());
            for (bout, score) in (0..).zip(run.exported_totals.scores()) {
                tuning.record(bout, score);
            }
        }
        for (bout, worker, summary) in &bouts {
            match summary {
                Some(summary) => run.add(*bout, worker, summary),
                None => run.add_failed(*bout),
            };
        }
        run.extend();
        run.decided = run.decided.or(run.standings.deciding_bout());
        run.done_before = run.ledger.done();
        run.games_before = run.standings.totals().games;
        // Comparisons of an earlier process count towards the error budget.
        while run.ledger.done() >= run.next_comparison {
            run.comparisons += 1;
            run.next_comparison *= 2;
        }
        Ok(run)
    }

    /// Adds a played bout. Returns the decision of a sequential test.
    pub(super) fn add(&mut self, bout: u64, worker: &str, summary: &Summary) -> Option<Decision> {
        self.schedule.record(bout, summary.half_points());
        // The candidates of a tuning run change over time, so that its workers are not comparable.
        if bout >= self.spec.first_rated_bout()
            && let Some((pairing, outcome)) = summary.pairing_outcome()
        {
            self.cells.entry((worker.to_string(), pairing)).or_default()[outcome] += 1;
        }
        self.standings.add(bout, summary)
    }

    /// Adds a failed bout.
    pub(super) fn add_failed(&mut self, bout: u64) -> Option<Decision> {
        self.schedule.record(bout, None);
        self.standings.add_failed(bout)
    }

    /// Returns the number of bouts that the dataset has, including failed and voided ones. A run that ended early has fewer
    /// than its schedule.
    pub(super) fn exported_bouts(&self) -> u64 {
        if self.state.is_open() {
            self.exported
        } else {
            self.exported_totals.bouts + self.voided.len() as u64
        }
    }

    /// Makes all bouts grantable that the schedule knows. Returns whether there are more than before.
    pub(super) fn extend(&mut self) -> bool {
        self.ledger.open_to(self.schedule.known_bouts())
    }

    /// Compares the workers at each doubling of the bouts. Returns those that differ significantly from the others.
    pub(super) fn compare_workers(&mut self) -> Vec<DivergentWorker> {
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
        // A comparison without data does not count.
        self.comparisons += u32::from(report.degrees > 0.0);
        let divergent = |report: &WorkerReport| DivergentWorker {
            worker: names[report.worker].to_string(),
            reason: format!(
                "its results differ from the others': chi-square {:.1} with {} degrees of freedom, by chance once in {:.0}",
                report.chi_square,
                report.degrees,
                1.0 / report.probability.max(1e-300)
            ),
            certain: report.certain,
        };
        report.workers.iter().filter(|report| report.flagged).map(divergent).collect()
    }
}
