//! A run: its durable record, what follows from that, and the volatile state of its grants and exports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use agon_arena::spec::{Format, Plan};
use agon_arena::{Arena, Environment, Spec, SpecSource};
use agon_schedule::schedule::{Schedule, ScheduleError};
use agon_schedule::tuning::Proposal;
use agon_schedule::{RunState, Summary, run_id};
use agon_stats::homogeneity::{Cell, WorkerReport, compare};

use super::Event;
use super::ledger::Ledger;
use crate::standings::{RunTotals, Standings, decode_checked};
use crate::store::{StoredCell, StoredRun};
use crate::verification::replication::Digest;

/// Outcomes by worker and pairing.
pub(crate) type Cells = BTreeMap<(String, u64), [u64; 3]>;

/// A committed bout that is not exported yet.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct KeptBout {
    pub(crate) worker: String,
    /// The content digest; none if the bout failed.
    pub(crate) digest: Option<Digest>,
    /// The results and effort; none if the bout failed.
    pub(crate) summary: Option<Summary>,
}

/// What the state file says of a run, and the standings that follow from it. Only events change it.
pub(crate) struct RunRecord {
    pub(crate) state: RunState,
    pub(crate) priority: i32,
    pub(crate) decided: Option<u64>,
    /// All bouts below are in the dataset.
    pub(crate) exported: u64,
    /// The totals of the exported bouts.
    pub(crate) exported_totals: RunTotals,
    /// The outcomes of the exported bouts.
    pub(crate) exported_cells: Cells,
    /// The bouts assigned to a part that is not written yet.
    pub(crate) open_part: Option<(u64, u64)>,
    /// The committed bouts that are not exported.
    pub(crate) kept: BTreeMap<u64, KeptBout>,
    /// Exported bouts that were voided.
    pub(crate) voided: BTreeSet<u64>,
    /// Bouts that were started and whose lease expired.
    pub(crate) abandoned: u64,
    pub(crate) submitted_us: i64,
    /// The build that accepted the run.
    pub(crate) build: String,
    /// The search signature of that build.
    pub(crate) signature: String,
    /// The results so far.
    pub(crate) standings: Standings,
}

/// A run in memory.
pub(crate) struct Run {
    record: RunRecord,
    pub(crate) source: Arc<SpecSource>,
    /// The digest of the spec, in hexadecimal.
    pub(crate) digest: String,
    pub(crate) spec: Arc<Spec>,
    pub(crate) schedule: Schedule,
    /// Checks games outside the lock.
    pub(crate) referee: Arc<Mutex<Arena>>,
    pub(crate) ledger: Ledger,
    /// When this process last exported bouts; none for a run of an earlier process, whose bouts are exported at once.
    pub(crate) last_export: Option<Instant>,
    /// Whether this process has written the manifest.
    pub(crate) manifest_written: bool,
    /// Why the run cannot be exported; it gets no grants.
    pub(crate) export_fault: Option<String>,
    /// The number of callers that wait for the end of the part being written. No other is assigned meanwhile.
    pub(crate) export_holds: u32,
    /// The last bout whose opening is needed soon and may have to be drawn.
    pub(crate) wanted_openings: Option<u64>,
    /// Whether more bouts became grantable.
    pub(crate) has_more: bool,
    /// Outcomes by worker and pairing, of all bouts.
    cells: Cells,
    /// The number of comparisons of the workers.
    comparisons: u32,
    /// The number of done bouts at the next comparison.
    next_comparison: u64,
    /// Replicas received.
    pub(crate) checked: u64,
    /// Replicas that differed.
    pub(crate) disputed: u64,
    /// When this process added the run, and its progress then.
    pub(crate) since: Instant,
    pub(crate) done_before: u64,
    pub(crate) games_before: u64,
}

/// A worker whose results differ from the others'.
pub(crate) struct DivergentWorker {
    pub(crate) worker: String,
    pub(crate) reason: String,
    /// Whether chance is practically excluded; then the worker is quarantined, otherwise only audited.
    pub(crate) certain: bool,
}

/// The number of done bouts at the first comparison of the workers; the next are at each doubling.
const FIRST_COMPARISON: u64 = 128;

/// Decodes the totals of the exported bouts of a run. Returns `None` if they are damaged.
pub(crate) fn stored_totals(stored: &StoredRun) -> Option<RunTotals> {
    if stored.totals.is_empty() { Some(RunTotals::default()) } else { decode_checked(&stored.totals) }
}

impl Run {
    /// Creates a run from its row, with the outcomes of its exported bouts and those that were voided. The other bouts
    /// follow as events.
    pub(crate) fn new(
        source: SpecSource,
        schedule: Schedule,
        stored: &StoredRun,
        cells: Vec<StoredCell>,
        voided: BTreeSet<u64>,
    ) -> Result<Run, ScheduleError> {
        let spec = Arc::clone(schedule.spec());
        let exported_totals = stored_totals(stored).unwrap_or_default();
        let standings = Standings::new(&spec, exported_totals.clone())?;
        let referee =
            Arena::new(&spec.game, &[], Environment::system()).map_err(agon_arena::PlayError::from)?;
        let mut ledger = Ledger::new(schedule.bouts(), stored.exported, []);
        ledger.reserve_to(stored.granted);
        let cells: Cells =
            cells.into_iter().map(|cell| ((cell.worker, cell.pairing), cell.outcomes)).collect();
        let record = RunRecord {
            state: stored.state,
            priority: stored.priority,
            decided: stored.decided,
            exported: stored.exported,
            exported_totals,
            exported_cells: cells.clone(),
            open_part: None,
            kept: BTreeMap::new(),
            voided,
            abandoned: stored.abandoned,
            submitted_us: stored.submitted_us,
            build: stored.build.clone(),
            signature: stored.signature.clone(),
            standings,
        };
        let mut run = Run {
            record,
            digest: run_id::digest(&source).unwrap_or_default(),
            source: Arc::new(source),
            spec,
            schedule,
            referee: Arc::new(Mutex::new(referee)),
            ledger,
            last_export: None,
            manifest_written: false,
            export_fault: None,
            export_holds: 0,
            wanted_openings: None,
            has_more: false,
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
            tuning.add_proposals(run.record.exported_totals.proposals().to_vec());
            for (bout, score) in (0..).zip(run.record.exported_totals.scores()) {
                tuning.record(bout, score);
            }
        }
        run.extend();
        Ok(run)
    }

    /// Returns the durable record.
    pub(crate) fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Marks everything recorded so far as the work of earlier processes.
    pub(crate) fn begin_session(&mut self) {
        self.done_before = self.ledger.done();
        self.games_before = self.record.standings.totals().games;
        // Comparisons of an earlier process count towards the error budget.
        while self.ledger.done() >= self.next_comparison {
            self.comparisons += 1;
            self.next_comparison *= 2;
        }
    }

    /// Applies an event that concerns only this run.
    pub(super) fn apply(&mut self, event: &Event) {
        let record = &mut self.record;
        match event {
            Event::RunStateChanged { to, decided, .. } => {
                record.state = *to;
                record.decided = *decided;
            }
            Event::Prioritised { priority, .. } => record.priority = *priority,
            Event::LeasesExpired { bouts, .. } => record.abandoned += bouts,
            Event::Reserved { end, .. } => self.ledger.reserve_to(*end),
            Event::PartAssigned { first, last, .. } => record.open_part = Some((*first, *last)),
            Event::PartWritten { exported, totals, cells, .. } => {
                record.exported = *exported;
                record.exported_totals = totals.clone();
                record.open_part = record.open_part.filter(|(_, last)| last >= exported);
                record.kept = record.kept.split_off(exported);
                for cell in cells {
                    let sum = record.exported_cells.entry((cell.worker.clone(), cell.pairing)).or_default();
                    for (sum, more) in sum.iter_mut().zip(cell.outcomes) {
                        *sum += more;
                    }
                }
            }
            Event::Voided { worker, replayed, voided, totals, .. } => {
                record.exported_totals = totals.clone();
                record.voided.extend(voided);
                record.exported_cells.retain(|(name, _), _| name != worker);
                for bout in replayed {
                    record.kept.remove(bout);
                    self.ledger.reopen(*bout);
                }
                self.recount();
            }
            Event::CellsForgotten { .. } => {
                record.exported_cells.clear();
                self.cells.clear();
            }
            Event::Proposed { proposals, totals, .. } => {
                record.exported_totals = totals.clone();
                if let Some(tuning) = self.schedule.tuning_mut() {
                    tuning.add_proposals(proposals.clone());
                }
                // A reader of the dataset must know where a repeat ended before it finds the bouts after that.
                self.manifest_written &= !proposals.iter().any(Proposal::is_answer);
                self.extend();
            }
            _ => {}
        }
    }

    /// Returns whether the run is a sequential test whose bouts can be replicated.
    pub(crate) fn is_verified_test(&self) -> bool {
        matches!(self.spec.plan, Plan::Tournament(Format::Sprt(_))) && self.spec.is_repeatable()
    }

    /// Returns the bout that decided the sequential test of an open run. The verdict may have to wait for replicas, see
    /// [`super::Durable::due_verdict`].
    pub(crate) fn pending_verdict(&self) -> Option<u64> {
        self.record.standings.deciding_bout().filter(|_| self.record.state.is_open())
    }

    /// Returns whether a worker may have played bouts that count.
    pub(crate) fn has_bouts_of(&self, worker: &str) -> bool {
        let may_be_exported = !self.is_verified_test() && self.record.exported_totals.bouts > 0;
        may_be_exported || self.workers().any(|name| name == worker)
    }

    /// Returns the workers of the bouts, with repetitions: in a sequential test of all bouts, elsewhere of those that are
    /// not exported. Every played bout of a test has an outcome, which is counted for its worker.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &String> {
        let exported = self.record.exported_cells.keys().map(|(worker, _)| worker);
        exported.chain(self.record.kept.values().map(|kept| &kept.worker))
    }

    /// Adds a committed bout.
    pub(super) fn keep(&mut self, bout: u64, kept: KeptBout) {
        if !self.ledger.finish(bout) {
            return;
        }
        self.schedule.record(bout, kept.summary.as_ref().and_then(Summary::score));
        self.count(bout, &kept);
        self.record.kept.insert(bout, kept);
        self.extend();
    }

    /// Counts a committed bout in the standings and in the outcomes by worker.
    fn count(&mut self, bout: u64, kept: &KeptBout) {
        let Some(summary) = &kept.summary else {
            self.record.standings.add_failed(bout);
            return;
        };
        // The candidates of a tuning run change over time, so that its workers are not comparable.
        if self.spec.is_rated(summary.players())
            && let Some((pairing, outcome)) = summary.pairing_outcome()
        {
            self.cells.entry((kept.worker.clone(), pairing)).or_default()[outcome] += 1;
        }
        self.record.standings.add(bout, summary);
    }

    /// Counts all bouts again, after some were removed.
    fn recount(&mut self) {
        if let Ok(standings) = Standings::new(&self.spec, self.record.exported_totals.clone()) {
            self.record.standings = standings;
        }
        self.cells = self.record.exported_cells.clone();
        let kept = std::mem::take(&mut self.record.kept);
        for (bout, kept) in &kept {
            self.count(*bout, kept);
        }
        self.record.kept = kept;
    }

    /// Counts a replica.
    pub(super) fn count_replica(&mut self, disputed: bool) {
        self.checked += 1;
        self.disputed += u64::from(disputed);
    }

    /// Returns the number of bouts that the dataset has, including failed and voided ones. A run that ended early has fewer
    /// than its schedule.
    pub(crate) fn exported_bouts(&self) -> u64 {
        if self.record.state.is_open() {
            self.record.exported
        } else {
            self.record.exported_totals.bouts + self.record.voided.len() as u64
        }
    }

    /// Makes all bouts grantable that the schedule knows.
    fn extend(&mut self) {
        self.ledger.end_at(self.schedule.bouts());
        self.has_more |= self.ledger.open_to(self.schedule.known_bouts());
    }

    /// Compares the workers at each doubling of the bouts. Returns those that differ significantly from the others.
    pub(crate) fn compare_workers(&mut self) -> Vec<DivergentWorker> {
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
