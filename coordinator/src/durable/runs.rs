//! Changes of runs: submission, control, parts, voiding, verdicts and proposals.

use agon_arena::spec::Values;
use agon_schedule::{RunState, Summary, Tuning};

use super::run::Cells;
use super::{Command, Durable, Event, Run, Scope};
use crate::audit::{AuditKind, Entry};
use crate::standings::RunTotals;
use crate::store::{StoredCell, StoredRun};

/// The states of a run that needs more bouts.
pub(crate) const OPEN: &[RunState] = &[RunState::Running, RunState::Paused];

/// Adds a run. Answers whether its id was free.
pub(crate) struct Submit {
    pub(crate) stored: Box<StoredRun>,
    pub(crate) run: Box<Run>,
}

impl Command for Submit {
    type Answer = bool;

    fn scope(&self) -> Scope {
        Scope::Run(self.stored.id.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, bool) {
        if durable.run(&self.stored.id).is_some() {
            return (Vec::new(), false);
        }
        (vec![Event::RunAdded { stored: self.stored, run: Some(self.run) }], true)
    }
}

/// Moves a run from one of the states `from` to another. Otherwise answers the state that it has, if it exists.
pub(crate) struct Move {
    pub(crate) run: String,
    pub(crate) from: &'static [RunState],
    pub(crate) to: RunState,
    pub(crate) entry: Option<Entry>,
}

impl Command for Move {
    type Answer = Result<(), Option<RunState>>;

    fn scope(&self) -> Scope {
        Scope::Run(self.run.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, Self::Answer) {
        let found = durable.run(&self.run).map(|run| run.record().state);
        if !found.is_some_and(|state| self.from.contains(&state)) {
            return (Vec::new(), Err(found));
        }
        let moved = Event::RunMoved { run: self.run, to: self.to, decided: None };
        (std::iter::once(moved).chain(self.entry.map(Event::Audited)).collect(), Ok(()))
    }
}

/// Ends a run whose sequential test has decided.
pub(crate) struct Decide {
    pub(crate) run: String,
}

impl Command for Decide {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Run(self.run.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        let due = durable.run(&self.run).and_then(Run::due_verdict);
        let events = due.map_or_else(Vec::new, |bout| {
            let text = format!("the test decided at bout {bout}");
            let entry = Entry::new(AuditKind::Decided, text).run(&self.run);
            let moved = Event::RunMoved { run: self.run, to: RunState::Decided, decided: Some(bout) };
            vec![moved, Event::Audited(entry)]
        });
        (events, ())
    }
}

impl Run {
    /// Returns the bout that decided the sequential test of an open run.
    pub(crate) fn due_verdict(&self) -> Option<u64> {
        self.record().standings.deciding_bout().filter(|_| self.record().state.is_open())
    }
}

/// Sets the priority of a run. Answers whether the run exists.
pub(crate) struct Prioritise {
    pub(crate) run: String,
    pub(crate) priority: i32,
    pub(crate) entry: Entry,
}

impl Command for Prioritise {
    type Answer = bool;

    fn scope(&self) -> Scope {
        Scope::Run(self.run.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, bool) {
        if durable.run(&self.run).is_none() {
            return (Vec::new(), false);
        }
        let set = Event::Prioritised { run: self.run, priority: self.priority };
        (vec![set, Event::Audited(self.entry)], true)
    }
}

/// Records that leases of started bouts expired.
pub(crate) struct Abandon {
    pub(crate) run: String,
    pub(crate) bouts: u64,
}

impl Command for Abandon {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Addition
    }

    fn decide(self, _durable: &Durable) -> (Vec<Event>, ()) {
        (vec![Event::Abandoned { run: self.run, bouts: self.bouts }], ())
    }
}

/// Records that the bouts below `end` may be granted. After a restart, only these can be held by workers.
pub(crate) struct Reserve {
    pub(crate) run: String,
    pub(crate) end: u64,
}

impl Command for Reserve {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Addition
    }

    fn decide(self, _durable: &Durable) -> (Vec<Event>, ()) {
        (vec![Event::Reserved { run: self.run, end: self.end }], ())
    }
}

/// Assigns the bouts from `first` to `last` to a part before it is written. Answers whether they are the next ones.
pub(crate) struct AssignPart {
    pub(crate) run: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Command for AssignPart {
    type Answer = bool;

    fn scope(&self) -> Scope {
        Scope::Run(self.run.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, bool) {
        let AssignPart { run, first, last } = self;
        let fits = durable.run(&run).is_some_and(|run| {
            let record = run.record();
            record.open_part.is_none() && run.export_holds == 0 && record.exported <= first
        });
        if !fits {
            return (Vec::new(), false);
        }
        (vec![Event::PartAssigned { run, first, last }], true)
    }
}

/// Replaces the bouts below `exported`, which the dataset has, by their totals.
pub(crate) struct FinishPart {
    pub(crate) run: String,
    pub(crate) exported: u64,
}

impl Command for FinishPart {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Run(self.run.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        let FinishPart { run: id, exported } = self;
        let Some(run) = durable.run(&id).filter(|run| run.record().exported < exported) else {
            return (Vec::new(), ());
        };
        let record = run.record();
        let mut totals = record.exported_totals.clone();
        let mut cells = Cells::default();
        let rules =
            FoldRules { rated_from: run.spec.first_rated_bout(), decided: record.standings.deciding_bout() };
        for (bout, kept) in record.kept.range(..exported) {
            fold(&mut totals, &mut cells, &rules, *bout, &kept.worker, kept.summary.as_ref());
        }
        let cells = stored_cells(cells);
        (vec![Event::PartWritten { run: id, exported, totals, cells }], ())
    }
}

/// How bouts of a run are folded into its totals.
pub(crate) struct FoldRules {
    /// The first rated bout; earlier ones are tuning bouts.
    pub(crate) rated_from: u64,
    /// The bout that decided the sequential test.
    pub(crate) decided: Option<u64>,
}

/// Adds a bout to the totals of the exported bouts; a failed bout has no summary.
pub(crate) fn fold(
    totals: &mut RunTotals,
    cells: &mut Cells,
    rules: &FoldRules,
    bout: u64,
    worker: &str,
    summary: Option<&Summary>,
) {
    match summary {
        Some(summary) => totals.add(summary, bout >= rules.rated_from),
        None => totals.add_failed(),
    }
    if bout < rules.rated_from {
        totals.add_score(bout, summary.and_then(Summary::half_points));
        return;
    }
    if rules.decided.is_none_or(|decided| bout <= decided) {
        totals.add_pair(summary);
    }
    if let Some((pairing, outcome)) = summary.and_then(Summary::pairing_outcome) {
        cells.entry((worker.to_string(), pairing)).or_default()[outcome] += 1;
    }
}

/// Removes a voided bout from the totals of the exported bouts.
pub(crate) fn unfold(totals: &mut RunTotals, rules: &FoldRules, bout: u64, summary: &Summary) {
    totals.subtract(summary);
    if bout >= rules.rated_from && rules.decided.is_none_or(|decided| bout <= decided) {
        totals.subtract_pair(summary);
    }
}

/// Converts cells to rows of the store.
pub(crate) fn stored_cells(cells: Cells) -> Vec<StoredCell> {
    let stored = |((worker, pairing), outcomes)| StoredCell { worker, pairing, outcomes };
    cells.into_iter().map(stored).collect()
}

/// Selects bouts by worker or by number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Selection {
    /// The worker, or empty to select by number.
    pub(crate) worker: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Selection {
    /// Returns whether a bout is selected.
    pub(crate) fn contains(&self, bout: u64, worker: &str) -> bool {
        match self.worker.as_str() {
            "" => (self.first..=self.last).contains(&bout),
            name => name == worker,
        }
    }
}

/// Voids bouts: those in the state are played again, those in the dataset do not count any more.
pub(crate) struct Void {
    pub(crate) run: String,
    pub(crate) selection: Selection,
    /// The selected bouts of the dataset, read when all bouts below `exported` were in it.
    pub(crate) in_dataset: Vec<(u64, Summary)>,
    pub(crate) exported: u64,
    /// The operator, and the reason given.
    pub(crate) by: String,
}

/// Why bouts were not voided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum VoidRefusal {
    /// The run does not exist.
    NoRun,
    /// No such bout counts.
    NoBouts,
    /// Bouts were exported since the dataset was read.
    Exported,
}

/// The numbers of bouts that are played again, and of those that are listed as void.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VoidCounts {
    pub(crate) replayed: u64,
    pub(crate) voided: u64,
}

impl Command for Void {
    type Answer = Result<VoidCounts, VoidRefusal>;

    fn scope(&self) -> Scope {
        Scope::Run(self.run.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, Self::Answer) {
        let Void { run: id, selection, in_dataset, exported, by } = self;
        let refuse = |refusal| (Vec::new(), Err(refusal));
        let Some(run) = durable.run(&id) else { return refuse(VoidRefusal::NoRun) };
        let record = run.record();
        if record.exported != exported || record.open_part.is_some() {
            return refuse(VoidRefusal::Exported);
        }
        let selected = |(bout, kept): &(&u64, &super::KeptBout)| selection.contains(**bout, &kept.worker);
        let replayed: Vec<u64> = record.kept.iter().filter(selected).map(|(bout, _)| *bout).collect();
        let rules = FoldRules { rated_from: run.spec.first_rated_bout(), decided: record.decided };
        let mut totals = record.exported_totals.clone();
        let mut voided = Vec::new();
        for (bout, summary) in in_dataset.iter().filter(|(bout, _)| !record.voided.contains(bout)) {
            unfold(&mut totals, &rules, *bout, summary);
            voided.push(*bout);
        }
        if replayed.is_empty() && voided.is_empty() {
            return refuse(VoidRefusal::NoBouts);
        }
        let counts = VoidCounts { replayed: replayed.len() as u64, voided: voided.len() as u64 };
        let Selection { worker, first, last } = selection;
        let subject =
            if worker.is_empty() { format!("bouts {first} to {last}") } else { format!("bouts of {worker}") };
        let text = format!(
            "{subject}: {} are replayed, {} in the dataset are voided, by {by}",
            counts.replayed, counts.voided
        );
        let entry = Entry::new(AuditKind::Voided, text).worker(&worker).run(&id);
        let void = Event::Voided { run: id, worker, replayed, voided, totals };
        (vec![void, Event::Audited(entry)], Ok(counts))
    }
}

/// Adds the proposals that followed the first `known` ones.
pub(crate) struct Propose {
    pub(crate) run: String,
    pub(crate) known: usize,
    pub(crate) proposals: Vec<Values>,
}

impl Command for Propose {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Run(self.run.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        let Propose { run: id, known, proposals } = self;
        let Some(run) = durable.run(&id) else { return (Vec::new(), ()) };
        if run.schedule.tuning().map(Tuning::proposals).is_none_or(|made| made.len() != known) {
            return (Vec::new(), ());
        }
        let mut totals = run.record().exported_totals.clone();
        totals.add_proposals(&proposals);
        (vec![Event::Proposed { run: id, proposals, totals }], ())
    }
}
