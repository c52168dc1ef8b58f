//! Changes of runs: submission, control, parts, voiding, verdicts and proposals.

use agon_arena::Spec;
use agon_schedule::tuning::Proposal;
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
    /// Who submitted it.
    pub(crate) by: String,
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
        let text = format!("submitted by {}", self.by);
        let entry = Entry::new(AuditKind::Submitted, text).run(&self.stored.id);
        (vec![Event::RunAdded { stored: self.stored, run: Some(self.run) }, Event::Audited(entry)], true)
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
        // A test whose verdict waits for replicas is not done.
        let is_pending = self.to == RunState::Done
            && durable.run(&self.run).is_some_and(|run| run.pending_verdict().is_some());
        if is_pending || !found.is_some_and(|state| self.from.contains(&state)) {
            return (Vec::new(), Err(found));
        }
        let forgotten = durable.run(&self.run).filter(|_| self.to == RunState::Done);
        let forgotten = forgotten.and_then(|run| forget_cells(run, &self.run));
        let moved = Event::RunStateChanged { run: self.run, to: self.to, decided: None };
        let events = std::iter::once(moved).chain(forgotten).chain(self.entry.map(Event::Audited));
        (events.collect(), Ok(()))
    }
}

/// Returns the event that forgets the outcomes of a run that has ended and is exported. Those of a sequential test say who
/// played its bouts, which a conviction asks.
fn forget_cells(run: &Run, id: &str) -> Option<Event> {
    (!run.is_verified_test()).then(|| Event::CellsForgotten { run: id.to_string() })
}

/// Ends a run whose sequential test has decided, unless the verdict has to wait for replicas.
pub(crate) struct Decide {
    pub(crate) run: String,
}

impl Command for Decide {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Run(self.run.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        let due = durable.due_verdict(&self.run);
        let events = due.map_or_else(Vec::new, |bout| {
            let audit = |kind, text: String| Event::Audited(Entry::new(kind, text).run(&self.run));
            let unverified = durable.unverified_reason(&self.run, bout);
            let unverified = unverified
                .map(|reason| audit(AuditKind::Unverified, format!("the verdict is not verified: {reason}")));
            let decided = audit(AuditKind::Decided, format!("the test decided at bout {bout}"));
            let moved =
                Event::RunStateChanged { run: self.run.clone(), to: RunState::Decided, decided: Some(bout) };
            [moved, decided].into_iter().chain(unverified).collect()
        });
        (events, ())
    }
}

impl Durable {
    /// Returns why the bouts up to `bout`, on which a verdict rests, are not verified, if they are not.
    fn unverified_reason(&self, id: &str, bout: u64) -> Option<&'static str> {
        if self.trusts_workers {
            return None;
        }
        if !self.run(id)?.is_verified_test() {
            return Some("the run has time limits, so that no other worker can replicate its bouts");
        }
        self.replication
            .is_unverified(id, bout)
            .then_some("no worker with another credential replicated its bouts")
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
            record_has_part(run, first, last)
                && run.export_holds == 0
                // Bouts after a verdict that is not durable yet may still be needed for the next one.
                && run.pending_verdict().is_none_or(|decided| last <= decided)
        });
        if !fits {
            return (Vec::new(), false);
        }
        (vec![Event::PartAssigned { run, first, last }], true)
    }
}

/// Returns whether the bouts from `first` to `last` can be the next part of a run: in an open run all of them are
/// kept, in one that has ended these are the first that are left.
fn record_has_part(run: &Run, first: u64, last: u64) -> bool {
    let record = run.record();
    if first > last || record.open_part.is_some() {
        return false;
    }
    if record.state.is_open() {
        let kept = record.kept.range(first..=last).count() as u64;
        return first == record.exported && kept == last - first + 1;
    }
    record.kept.keys().next() == Some(&first) && record.kept.contains_key(&last)
}

/// Replaces the bouts below `exported`, which the dataset has, by their totals. Ends the open part, or the export of a run
/// that has ended.
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
        let is_rest = !record.state.is_open() && record.kept.is_empty() && exported == run.ledger.total();
        if record.open_part.map_or(!is_rest, |(_, last)| last + 1 != exported) {
            return (Vec::new(), ());
        }
        let mut totals = record.exported_totals.clone();
        let mut cells = Cells::default();
        let rules = FoldRules { spec: &run.spec, decided: record.standings.deciding_bout() };
        for (bout, kept) in record.kept.range(..exported) {
            fold(&mut totals, &mut cells, &rules, *bout, &kept.worker, kept.summary.as_ref());
        }
        let is_last = !record.state.is_open() && exported == run.ledger.total();
        let forgotten = if is_last { forget_cells(run, &id) } else { None };
        let written = Event::PartWritten { run: id, exported, totals, cells: stored_cells(cells) };
        (std::iter::once(written).chain(forgotten).collect(), ())
    }
}

/// How bouts of a run are folded into its totals.
pub(crate) struct FoldRules<'a> {
    /// The spec, which says what bouts are rated.
    pub(crate) spec: &'a Spec,
    /// The bout that decided the sequential test.
    pub(crate) decided: Option<u64>,
}

/// Adds a bout to the totals of the exported bouts; a failed bout has no summary.
pub(crate) fn fold(
    totals: &mut RunTotals,
    cells: &mut Cells,
    rules: &FoldRules<'_>,
    bout: u64,
    worker: &str,
    summary: Option<&Summary>,
) {
    match summary {
        Some(summary) => totals.add(summary, rules.spec.is_rated(summary.players())),
        None => totals.add_failed(),
    }
    // A failed bout of a validation is no score: the tuning ignores it.
    if let Some(tune) = rules.spec.tune()
        && !summary.is_some_and(|summary| rules.spec.is_rated(summary.players()))
    {
        totals.add_score(bout, summary.and_then(Summary::score), tune.seats);
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
pub(crate) fn unfold(totals: &mut RunTotals, rules: &FoldRules<'_>, bout: u64, summary: &Summary) {
    totals.subtract(summary);
    if rules.spec.is_rated(summary.players()) && rules.decided.is_none_or(|decided| bout <= decided) {
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
    /// The bouts failed or were never played, and are exported, or they are void already.
    Final,
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
        let rules = FoldRules { spec: &run.spec, decided: record.decided };
        let mut totals = record.exported_totals.clone();
        let mut voided = Vec::new();
        for (bout, summary) in in_dataset.iter().filter(|(bout, _)| !record.voided.contains(bout)) {
            unfold(&mut totals, &rules, *bout, summary);
            voided.push(*bout);
        }
        if replayed.is_empty() && voided.is_empty() {
            let is_final = selection.worker.is_empty() && selection.first < record.exported;
            return refuse(if is_final { VoidRefusal::Final } else { VoidRefusal::NoBouts });
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
        let touched = replayed.iter().chain(&voided).min().copied();
        let reopened = reopen_verdict(run, &id, touched);
        let void = Event::Voided { run: id, worker, replayed, voided, totals };
        ([void, Event::Audited(entry)].into_iter().chain(reopened).collect(), Ok(counts))
    }
}

/// Returns the events that withdraw the verdict of a run if voided bouts, `touched` the first of them, were part of
/// its evidence. The run continues and decides again, unless later bouts are in the dataset already.
fn reopen_verdict(run: &Run, id: &str, touched: Option<u64>) -> Vec<Event> {
    let record = run.record();
    let Some(decided) = record.decided.filter(|decided| touched.is_some_and(|first| first <= *decided))
    else {
        return Vec::new();
    };
    let (kind, to, text) = if record.exported <= decided + 1 {
        let text = format!(
            "verdict withdrawn: bouts up to bout {decided}, which decided, are void; the test continues"
        );
        (AuditKind::Reopened, RunState::Running, text)
    } else {
        let text = format!(
            "verdict withdrawn: bouts up to bout {decided}, which decided, are void, and the run is exported, so that it \
             cannot continue; repeat it with `agon submit SPEC --again`"
        );
        (AuditKind::Withdrawn, RunState::Cancelled, text)
    };
    let moved = Event::RunStateChanged { run: id.to_string(), to, decided: None };
    vec![moved, Event::Audited(Entry::new(kind, text).run(id))]
}

/// Adds the proposals that followed the first `known` ones.
pub(crate) struct Propose {
    pub(crate) run: String,
    pub(crate) known: usize,
    pub(crate) proposals: Vec<Proposal>,
}

impl Command for Propose {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Run(self.run.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        let Propose { run: id, known, proposals } = self;
        let Some(run) = durable.run(&id) else { return (Vec::new(), ()) };
        if run.schedule.tuning().map(Tuning::proposals) != Some(known) {
            return (Vec::new(), ());
        }
        let mut totals = run.record().exported_totals.clone();
        totals.add_proposals(&proposals);
        (vec![Event::Proposed { run: id, proposals, totals }], ())
    }
}
