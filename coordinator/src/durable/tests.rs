//! The durable state against a model: any sequence of commands, groups, failed writes and restarts.

mod verdicts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use agon_arena::{Spec, SpecSource};
use agon_schedule::summary::{Effort, GameSummary};
use agon_schedule::{RunState, Schedule, Summary};
use agon_storage::Location;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::bouts::{Commit, Outcome, Uncommitted};
use super::runs::{
    AssignPart, Decide, FinishPart, Move, OPEN, Prioritise, Propose, Selection, Submit, Void, VoidRefusal,
};
use super::workers::{CloseConviction, Forget, Hold, Quarantine, Register, Trust};
use super::*;
use crate::audit::{AuditKind, Entry};
use crate::dataset::Dataset;
use crate::owner::{Group, Job, Pending, execute_group};
use crate::receipt::NewBout;
use crate::recovery;
use crate::state::{Coordinator, Recovery, Timing};
use crate::store::{Store, StoreError, StoredRun};

const BOUTS: u64 = 8;
const WORKERS: [&str; 3] = ["a", "b", "c"];

/// A run of [`BOUTS`] bouts, and a sequential test that a few won bouts decide.
const SPECS: [&str; 2] = [
    r#"
name = "table"
game = "tic-tac-toe"
limit = { nodes = 5 }
tournament = { format = "round-robin", bouts = 8 }
[[player]]
name = "a"
search = { algorithm = "random" }
[[player]]
name = "b"
search = { algorithm = "uct" }
"#,
    r#"
name = "test"
game = "tic-tac-toe"
limit = { nodes = 5 }
tournament = { format = "sprt", bounds = [0, 800], model = "logistic", alpha = 0.3, beta = 0.3, max_bouts = 8 }
[[player]]
name = "a"
search = { algorithm = "random" }
[[player]]
name = "b"
search = { algorithm = "uct" }
"#,
];

/// What a step does to a run.
#[derive(Clone, Debug)]
enum Change {
    /// A bout arrives, as a replica or not.
    Commit {
        bout: u64,
        worker: usize,
        content: u8,
        is_replica: bool,
    },
    /// A bout is committed as failed.
    Fail {
        bout: u64,
    },
    Move {
        from: &'static [RunState],
        to: RunState,
    },
    /// A part is assigned that was due when `offset` bouts more or fewer were exported.
    Assign {
        offset: i64,
        length: u64,
    },
    /// A part is finished, or one that was not assigned.
    Finish {
        offset: i64,
    },
    /// Bouts are voided, with what the dataset had now or before.
    Void {
        first: u64,
        last: u64,
        is_stale: bool,
    },
    Submit,
    Propose,
    Prioritise {
        priority: i32,
    },
    Reserve {
        end: u64,
    },
    Abandon,
}

#[derive(Clone, Debug)]
enum Step {
    Run(usize, Change),
    Quarantine { worker: usize },
    Trust { worker: usize },
    Hold { worker: usize, holds: bool },
    Register { worker: usize },
    Forget { worker: usize },
    CloseConviction { worker: usize },
}

/// How the writes of some commands end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Written,
    /// The disk is full for a time.
    Full,
    /// The disk fails, and the process with it.
    Failed,
    /// The process ends after the write.
    Restarted,
}

fn change() -> impl Strategy<Value = Change> {
    let moves = prop_oneof![
        Just((OPEN, RunState::Cancelled)),
        Just((&[RunState::Running][..], RunState::Paused)),
        Just((&[RunState::Paused][..], RunState::Running)),
    ];
    let offset = || prop_oneof![6 => Just(0), 1 => -2..3_i64];
    let commit = (0..BOUTS, 0..3_usize, 0..4_u8, 0..3_u8).prop_map(|(bout, worker, content, replica)| {
        Change::Commit { bout, worker, content: content.saturating_sub(1), is_replica: replica > 0 }
    });
    prop_oneof![
        20 => commit,
        1 => (0..BOUTS).prop_map(|bout| Change::Fail { bout }),
        1 => moves.prop_map(|(from, to)| Change::Move { from, to }),
        3 => (offset(), 1..5_u64).prop_map(|(offset, length)| Change::Assign { offset, length }),
        3 => offset().prop_map(|offset| Change::Finish { offset }),
        2 => (0..BOUTS, 0..3_u64, 0..8_u8)
            .prop_map(|(first, more, stale)| Change::Void { first, last: first + more, is_stale: stale == 0 }),
        1 => Just(Change::Submit),
        1 => Just(Change::Propose),
        1 => (-2..3_i32).prop_map(|priority| Change::Prioritise { priority }),
        1 => (0..BOUTS).prop_map(|end| Change::Reserve { end }),
        1 => Just(Change::Abandon),
    ]
}

fn step(run: impl Strategy<Value = usize> + Clone + 'static) -> impl Strategy<Value = Step> {
    let worker = || 0..3_usize;
    prop_oneof![
        16 => (run, change()).prop_map(|(run, change)| Step::Run(run, change)),
        1 => worker().prop_map(|worker| Step::Quarantine { worker }),
        1 => worker().prop_map(|worker| Step::Trust { worker }),
        1 => (worker(), any::<bool>()).prop_map(|(worker, holds)| Step::Hold { worker, holds }),
        1 => worker().prop_map(|worker| Step::Register { worker }),
        1 => worker().prop_map(|worker| Step::Forget { worker }),
        1 => worker().prop_map(|worker| Step::CloseConviction { worker }),
    ]
}

fn groups(
    run: impl Strategy<Value = usize> + Clone + 'static,
) -> impl Strategy<Value = Vec<(Vec<Step>, End)>> {
    let end = prop_oneof![
        8 => Just(End::Written),
        1 => Just(End::Full),
        1 => Just(End::Failed),
        1 => Just(End::Restarted)
    ];
    prop::collection::vec((prop::collection::vec(step(run), 1..8), end), 1..24)
}

/// The summary of a bout, whose first player wins both games if the content is 0.
fn summary(content: u8) -> Summary {
    let game = |players: [usize; 2], payoffs: [i32; 2]| GameSummary {
        players: players.to_vec(),
        payoffs: payoffs.to_vec(),
    };
    let won = if content == 0 { 1 } else { -1 };
    let effort = vec![Effort { moves: 1, nodes: 5, ..Effort::default() }; 2];
    Summary { games: vec![game([0, 1], [won, -won]), game([1, 0], [-won, won])], effort, forfeits: 0 }
}

/// What must be true of a run.
#[derive(Clone, Default, PartialEq, Debug)]
struct ModelRun {
    state: RunState,
    priority: i32,
    abandoned: u64,
    /// The bout that decided, and the one that decides when its verdict is verified.
    decided: Option<u64>,
    pending: Option<u64>,
    /// The content of each done bout; none if it was abandoned.
    done: BTreeMap<u64, Option<u8>>,
    exported: u64,
    part: Option<(u64, u64)>,
    voided: BTreeSet<u64>,
    /// The open replications, with the workers and what they submitted.
    cases: BTreeMap<u64, Vec<(usize, u8)>>,
}

impl ModelRun {
    fn commit(&mut self, bout: u64, content: Option<u8>) -> Outcome {
        match self.done.get(&bout) {
            _ if bout < self.exported => Err(Uncommitted::Exported),
            Some(known) if *known == content => Err(Uncommitted::Duplicate),
            Some(_) => Err(Uncommitted::Conflict),
            None if !self.state.is_open() => Err(Uncommitted::RunClosed),
            None => {
                self.done.insert(bout, content);
                Ok(())
            }
        }
    }

    fn prefix(&self) -> u64 {
        (0..).find(|bout| !self.done.contains_key(bout)).unwrap()
    }

    fn kept(&self) -> impl Iterator<Item = u64> {
        self.done.range(self.exported..).map(|(bout, _)| *bout)
    }

    /// Returns whether this can be the next part.
    fn has_part(&self, first: u64, last: u64) -> bool {
        let is_kept = |bout: u64| bout >= self.exported && self.done.contains_key(&bout);
        let is_next = if self.state.is_open() {
            first == self.exported && (first..=last).all(is_kept)
        } else {
            self.kept().next() == Some(first) && is_kept(last)
        };
        self.part.is_none() && first <= last && is_next && self.pending.is_none_or(|bout| last <= bout)
    }

    /// Reopens the run or withdraws its verdict, if a bout of its evidence was voided.
    fn reopen(&mut self, first: u64) {
        if let Some(decided) = self.decided.filter(|decided| first <= *decided) {
            self.decided = None;
            let ends = self.exported > decided + 1;
            self.state = if ends { RunState::Cancelled } else { RunState::Running };
        }
    }
}

#[derive(Clone, Default, PartialEq, Debug)]
struct Model {
    runs: [ModelRun; SPECS.len()],
    quarantine: BTreeSet<usize>,
    holders: BTreeSet<usize>,
    convictions: BTreeSet<usize>,
    /// The workers whose credentials are known.
    known: BTreeSet<usize>,
}

impl Model {
    /// Returns what becomes of a replica, if the bout is replicated.
    fn replicate(&mut self, run: usize, bout: u64, worker: usize, content: u8) -> Option<Outcome> {
        let is_strict = SPECS[run].contains("sprt");
        let cases = &mut self.runs[run].cases;
        let case = cases.get_mut(&bout)?;
        if case.iter().any(|(known, _)| *known == worker) {
            return Some(Err(Uncommitted::Replicated));
        }
        let (agreeing, differing): (Vec<_>, Vec<_>) = case.iter().partition(|(_, known)| *known == content);
        if agreeing.is_empty() {
            if differing.len() == 1 || is_strict {
                case.push((worker, content));
            } else {
                cases.remove(&bout);
            }
            return Some(Err(Uncommitted::ReplicaDiffers));
        }
        self.quarantine.extend(differing.iter().map(|(worker, _)| worker));
        if case[0].1 != content {
            self.convictions.insert(case[0].0);
        }
        if differing.is_empty() {
            self.known.insert(case[0].0);
        }
        cases.remove(&bout);
        Some(Err(Uncommitted::Replicated))
    }
}

/// Compares the answer to a command with the model's. Returns whether it was executed.
type Check = Box<dyn FnOnce() -> Result<bool, TestCaseError>>;

/// Returns the check of an answer.
fn expect<T: 'static>(
    mut receiver: oneshot::Receiver<Result<T, StoreError>>,
    is_expected: impl FnOnce(&T) -> bool + 'static,
) -> Check {
    Box::new(move || match receiver.try_recv().expect("every command is answered") {
        Ok(found) => {
            prop_assert!(is_expected(&found), "the model expects another answer");
            Ok(true)
        }
        Err(_) => Ok(false),
    })
}

/// A coordinator whose commands the test executes.
struct World {
    folder: TempDir,
    ids: Vec<String>,
    coordinator: Arc<Coordinator>,
    store: Store,
    model: Model,
}

impl World {
    fn new(runtime: &Runtime) -> World {
        let folder = tempfile::tempdir().unwrap();
        let (coordinator, store) = World::open(&folder, runtime);
        let mut world = World { folder, ids: Vec::new(), coordinator, store, model: Model::default() };
        for text in SPECS {
            let submit = submit(text);
            world.ids.push(submit.stored.id.clone());
            world.execute(vec![Pending::attended(submit, true).0]);
        }
        world
    }

    fn open(folder: &TempDir, runtime: &Runtime) -> (Arc<Coordinator>, Store) {
        let path = folder.path().join("state");
        let mut store = Store::open(&path).unwrap();
        let location = Location::Folder(folder.path().to_path_buf());
        let (dataset, epoch) = runtime.block_on(Dataset::open(&location, &mut store, false)).unwrap();
        let durable = recovery::load(&store.reader().unwrap(), &mut BTreeSet::new()).unwrap();
        let recovery = Recovery { durable, epoch, ..Recovery::default() };
        let idle = Store::open(&path).unwrap();
        let coordinator =
            Coordinator::start(idle, dataset, Timing::default(), String::new(), recovery).unwrap();
        (coordinator, store)
    }

    /// Executes jobs in the groups that their scopes allow. Returns whether all writes succeeded.
    fn execute(&mut self, jobs: Vec<Box<dyn Job>>) -> bool {
        let (_sender, inbox) = mpsc::channel();
        let mut waiting: VecDeque<Box<dyn Job>> = jobs.into();
        while !waiting.is_empty() {
            let mut group = Group::default();
            while let Some(job) = waiting.pop_front() {
                if let Err(job) = group.add(job) {
                    waiting.push_front(job);
                    break;
                }
            }
            let executed =
                execute_group(&self.coordinator, &mut self.store, group, &inbox, &mut VecDeque::new());
            match executed {
                Ok(verdicts) => {
                    for run in verdicts {
                        waiting.push_front(Pending::attended(Decide { run }, true).0);
                    }
                }
                Err(failure) => {
                    waiting.into_iter().for_each(|job| job.answer(Err(failure.clone())));
                    return false;
                }
            }
        }
        true
    }

    fn restart(&mut self, runtime: &Runtime) {
        (self.coordinator, self.store) = World::open(&self.folder, runtime);
    }

    /// Builds the command of a step, which waits for space or not, and applies the step to the model.
    fn command(&self, model: &mut Model, step: &Step, waits: bool) -> (Box<dyn Job>, Check) {
        fn build<C: Command<Answer: 'static>>(
            command: C,
            waits: bool,
            is_expected: impl FnOnce(&C::Answer) -> bool + 'static,
        ) -> (Box<dyn Job>, Check) {
            let (job, answer) = Pending::attended(command, waits);
            (job, expect(answer, is_expected))
        }
        let name = |worker: usize| WORKERS[worker].to_string();
        match *step {
            Step::Run(run, ref change) => self.change(model, run, change, waits),
            Step::Quarantine { worker } => {
                model.quarantine.insert(worker);
                let quarantine = Quarantine { worker: name(worker), reason: "a reason".to_string() };
                build(quarantine, waits, |()| true)
            }
            Step::Trust { worker } => {
                let expected = model.quarantine.remove(&worker);
                let trust = Trust { worker: name(worker), operator: String::new() };
                build(trust, waits, move |found| *found == expected)
            }
            Step::Hold { worker, holds } => {
                if holds {
                    model.holders.insert(worker)
                } else {
                    model.holders.remove(&worker)
                };
                build(Hold { worker: name(worker), holds }, waits, |()| true)
            }
            Step::Register { worker } => {
                if !model.quarantine.contains(&worker) {
                    model.known.insert(worker);
                }
                let register = Register { worker: name(worker), credential: credential(worker) };
                build(register, waits, |()| true)
            }
            Step::Forget { worker } => build(Forget { credential: credential(worker) }, waits, |()| true),
            Step::CloseConviction { worker } => {
                model.convictions.remove(&worker);
                let conviction = Conviction { worker: name(worker), credential: credential(worker) };
                build(CloseConviction(conviction), waits, |()| true)
            }
        }
    }

    /// Builds the command of a step that concerns a run.
    fn change(&self, model: &mut Model, run: usize, change: &Change, waits: bool) -> (Box<dyn Job>, Check) {
        fn build<C: Command<Answer: 'static>>(
            command: C,
            waits: bool,
            is_expected: impl FnOnce(&C::Answer) -> bool + 'static,
        ) -> (Box<dyn Job>, Check) {
            let (job, answer) = Pending::attended(command, waits);
            (job, expect(answer, is_expected))
        }
        let id = self.ids[run].clone();
        let known = &mut model.runs[run];
        let entry = || Entry::new(AuditKind::Prioritised, "");
        match *change {
            Change::Commit { bout, worker, content, is_replica } => {
                let replicated = if is_replica { model.replicate(run, bout, worker, content) } else { None };
                let expected = replicated.unwrap_or_else(|| model.runs[run].commit(bout, Some(content)));
                let commit = Commit { is_replica, ..commit(&id, bout, worker, content) };
                build(commit, waits, move |found| *found == expected)
            }
            Change::Fail { bout } => {
                let expected = known.commit(bout, None);
                let abandoned = Commit::abandoned(&BoutKey { run: id, bout }, "no reason".to_string());
                build(abandoned, waits, move |found| *found == expected)
            }
            Change::Move { from, to } => {
                let moves = from.contains(&known.state);
                if moves {
                    known.state = to;
                }
                let command = Move { run: id, from, to, entry: None };
                build(command, waits, move |found| found.is_ok() == moves)
            }
            Change::Assign { offset, length } => {
                let first = known.exported.saturating_add_signed(offset);
                let last = first + length - 1;
                let fits = known.has_part(first, last);
                if fits {
                    known.part = Some((first, last));
                }
                build(AssignPart { run: id, first, last }, waits, move |found| *found == fits)
            }
            Change::Finish { offset } => {
                let due = known.part.map_or(BOUTS, |(_, last)| last + 1).saturating_add_signed(offset);
                let ends_export = !known.state.is_open() && known.kept().next().is_none() && due == BOUTS;
                if due > known.exported && known.part.map_or(ends_export, |(_, last)| last + 1 == due) {
                    (known.exported, known.part) = (due, None);
                }
                build(FinishPart { run: id, exported: due }, waits, |()| true)
            }
            Change::Void { first, last, is_stale } => {
                let selected: Vec<u64> =
                    known.done.keys().copied().filter(|bout| (first..=last).contains(bout)).collect();
                let is_countable = |bout: &&u64| {
                    **bout >= known.exported || (known.done[*bout].is_some() && !known.voided.contains(*bout))
                };
                let countable: Vec<u64> = selected.iter().filter(is_countable).copied().collect();
                let in_dataset = |bout: &&u64| **bout < known.exported && known.done[*bout].is_some();
                let in_dataset: Vec<(u64, Summary)> = selected
                    .iter()
                    .filter(in_dataset)
                    .map(|bout| (*bout, summary(known.done[bout].unwrap())))
                    .collect();
                let refused = is_stale || known.part.is_some() || countable.is_empty();
                let expected = if refused { Err(()) } else { Ok(countable.len() as u64) };
                let exported = known.exported + u64::from(is_stale);
                if !refused {
                    for &bout in &countable {
                        known.cases.remove(&bout);
                        if bout < known.exported {
                            known.voided.insert(bout);
                        } else {
                            known.done.remove(&bout);
                        }
                    }
                    known.reopen(countable[0]);
                }
                let selection = Selection { worker: String::new(), first, last };
                let void = Void { run: id, selection, in_dataset, exported, by: String::new() };
                build(void, waits, move |found| {
                    found.as_ref().map(|counts| counts.replayed + counts.voided).map_err(|_| ()) == expected
                })
            }
            Change::Submit => build(submit(SPECS[run]), waits, |is_new| !is_new),
            Change::Propose => {
                let propose = Propose { run: id, known: 0, proposals: Vec::new() };
                build(propose, waits, |()| true)
            }
            Change::Prioritise { priority } => {
                known.priority = priority;
                build(Prioritise { run: id, priority, entry: entry() }, waits, |known| *known)
            }
            Change::Reserve { end } => {
                build(Append(vec![Event::Reserved { run: id, end }]), waits, |()| true)
            }
            Change::Abandon => {
                known.abandoned += 1;
                build(Append(vec![Event::LeasesExpired { run: id, bouts: 1 }]), waits, |()| true)
            }
        }
    }

    /// Executes steps in groups, and in the model one after the other, and compares.
    fn play(&mut self, steps: &[Step], end: End, runtime: &Runtime) -> Result<(), TestCaseError> {
        self.store.fail_writes(end == End::Failed);
        let (mut lost, mut waits) = (false, true);
        let mut steps = steps.iter().peekable();
        while steps.peek().is_some() {
            let before = self.view();
            let mut model = self.model.clone();
            let (mut jobs, mut checks, mut touched) = (Vec::new(), Vec::new(), BTreeSet::new());
            // The model does not know when a test decides and which bouts are replicated: it learns that after the group.
            while let Some(step) = steps.next_if(|step| joins(step, end, &mut touched) || jobs.is_empty()) {
                let known = model.clone();
                waits = end != End::Full || !waits;
                let (job, check) = self.command(&mut model, step, waits);
                jobs.push(job);
                checks.push((check, model != known));
                if is_alone(step, end) {
                    break;
                }
            }
            if end == End::Full {
                let is_full = Arc::clone(&self.store.is_full);
                is_full.store(true, Ordering::Relaxed);
                std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(3));
                    is_full.store(false, Ordering::Relaxed);
                });
            }
            let executed = self.execute(jobs);
            self.store.is_full.store(false, Ordering::Relaxed);
            prop_assert!(executed || end == End::Failed);
            let mut is_durable = true;
            for (check, changes) in checks {
                let is_answered = check()?;
                prop_assert!(executed || !is_answered || !changes, "acknowledged and not durable");
                is_durable &= is_answered;
            }
            if executed && is_durable {
                self.model = model;
                self.learn()?;
            } else {
                lost |= !executed;
                prop_assert!(end == End::Full || !executed, "a command failed");
                prop_assert_eq!(before, self.view(), "nothing is applied that is not written");
            }
        }
        self.store.fail_writes(false);
        if lost || end == End::Restarted {
            let before = self.view();
            self.restart(runtime);
            prop_assert_eq!(before, self.view(), "a restart gives the same state");
        }
        self.check()
    }

    /// Takes over what the model does not know: which bouts are replicated, and when a test decides.
    fn learn(&mut self) -> Result<(), TestCaseError> {
        let guard = self.coordinator.lock();
        let Model { runs, convictions, known: credentials, .. } = &mut self.model;
        for (id, known) in self.ids.iter().zip(runs) {
            let run = guard.durable.run(id).unwrap();
            let record = run.record();
            known.pending = run.pending_verdict();
            for (key, _, opinions) in guard.durable.replication().view().0 {
                if key.run == *id && !known.cases.contains_key(&key.bout) {
                    let worker = WORKERS.iter().position(|name| *name == opinions[0].worker).unwrap();
                    known.cases.insert(key.bout, vec![(worker, opinions[0].digest[0])]);
                }
            }
            if record.state == RunState::Decided && known.state.is_open() {
                let decided = record.decided.unwrap();
                let is_contested = |case: &Vec<(usize, u8)>| {
                    case.len() > 1 || credentials.iter().any(|worker| *worker != case[0].0)
                };
                prop_assert!(
                    !known.cases.range(..=decided).any(|(_, case)| is_contested(case))
                        && convictions.is_empty(),
                    "a verdict on bouts that are not verified"
                );
                (known.state, known.decided) = (RunState::Decided, Some(decided));
            }
        }
        Ok(())
    }

    /// Compares state and model.
    fn check(&self) -> Result<(), TestCaseError> {
        let guard = self.coordinator.lock();
        let durable = &guard.durable;
        for (id, known) in self.ids.iter().zip(&self.model.runs) {
            let run = durable.run(id).unwrap();
            let record = run.record();
            prop_assert_eq!(record.state, known.state);
            prop_assert_eq!((record.priority, record.abandoned), (known.priority, known.abandoned));
            prop_assert_eq!(record.decided, known.decided);
            prop_assert_eq!(record.exported, known.exported);
            prop_assert_eq!(record.open_part, known.part);
            prop_assert_eq!(&record.voided, &known.voided);
            if known.state.is_open() {
                prop_assert_eq!(run.ledger.prefix(), known.prefix());
                prop_assert_eq!(run.ledger.done(), known.done.len() as u64);
            }
            let kept: Vec<(u64, Option<u8>)> =
                record.kept.iter().map(|(bout, kept)| (*bout, kept.digest.map(|digest| digest[0]))).collect();
            let expected: Vec<_> =
                known.done.range(known.exported..).map(|(bout, content)| (*bout, *content)).collect();
            prop_assert_eq!(kept, expected);
            let counted = known.done.keys().filter(|bout| !known.voided.contains(*bout)).count() as u64;
            prop_assert_eq!(record.standings.totals().bouts, counted);
            prop_assert_eq!(durable.due_verdict(id), None, "a decided test is open");
            let opinions = |opinions: &[Opinion]| -> Vec<(String, u8)> {
                opinions.iter().map(|opinion| (opinion.worker.clone(), opinion.digest[0])).collect()
            };
            let cases = durable.replication().view().0.into_iter().filter(|(key, ..)| key.run == *id);
            let cases: BTreeMap<u64, _> = cases.map(|(key, _, known)| (key.bout, opinions(known))).collect();
            let expected = known.cases.iter().map(|(bout, known)| {
                (
                    *bout,
                    known.iter().map(|(worker, content)| (WORKERS[*worker].to_string(), *content)).collect(),
                )
            });
            prop_assert_eq!(cases, expected.collect::<BTreeMap<u64, Vec<_>>>());
        }
        let numbers = |has: &dyn Fn(&str) -> bool| -> BTreeSet<usize> {
            (0..3).filter(|worker| has(WORKERS[*worker])).collect()
        };
        prop_assert_eq!(&numbers(&|name| durable.quarantine().contains_key(name)), &self.model.quarantine);
        prop_assert_eq!(&numbers(&|name| durable.holders().contains(name)), &self.model.holders);
        let is_convicted = |name: &str| durable.convictions().iter().any(|known| known.worker == name);
        prop_assert_eq!(&numbers(&is_convicted), &self.model.convictions);
        Ok(())
    }

    /// Returns everything durable, in a form that can be compared.
    fn view(&self) -> Vec<String> {
        let guard = self.coordinator.lock();
        let durable = &guard.durable;
        let run = |id: &String| {
            let run = durable.run(id).unwrap();
            let record = run.record();
            // The bouts that were never played count as done after the end of a run.
            let ledger = record.state.is_open().then(|| (run.ledger.prefix(), run.ledger.done()));
            format!(
                "{:?} {:?} {:?} {} {:?} {:?} {:?} {:?} {:?} {} {:?} {:?} {:?}",
                record.state,
                record.priority,
                record.decided,
                record.exported,
                record.exported_totals,
                record.exported_cells,
                record.open_part,
                record.kept,
                record.voided,
                record.abandoned,
                record.standings.totals(),
                ledger,
                record.standings.sprt(record.state).map(|test| test.pairs),
            )
        };
        let mut view: Vec<String> = durable.order().iter().map(run).collect();
        view.push(format!("{:?} {:?}", durable.quarantine(), durable.holders()));
        view.push(format!("{:?} {:?}", durable.convictions(), durable.replication().view()));
        let names = |worker| durable.names(&credential(worker)).cloned().collect::<Vec<_>>();
        view.push(format!("{:?}", [0, 1, 2].map(names)));
        view
    }
}

/// Returns whether a step has a group of its own: the model must learn after it whether a test decided, or it depends on a
/// conviction in the group.
fn is_alone(step: &Step, end: End) -> bool {
    end == End::Full || matches!(step, Step::Run(1, _)) || is_of_worker(step)
}

/// Returns whether a step concerns what a replica can change too.
fn is_of_worker(step: &Step) -> bool {
    !matches!(step, Step::Run(..) | Step::Hold { .. })
}

/// Returns whether a step can follow others in a group: it does not depend on what the model learns after them.
fn joins(step: &Step, end: End, touched: &mut BTreeSet<u64>) -> bool {
    let is_new = match step {
        Step::Run(_, Change::Commit { bout, .. } | Change::Fail { bout }) => touched.insert(*bout),
        _ => true,
    };
    is_new && !is_alone(step, end)
}

/// Returns the credential of a worker.
fn credential(worker: usize) -> String {
    format!("token {}", WORKERS[worker])
}

/// Returns the command that commits a bout of a worker.
fn commit(run: &str, bout: u64, worker: usize, content: u8) -> Commit {
    let mut bout = NewBout::of_test(run, bout, WORKERS[worker], [content; 32]);
    bout.credential = credential(worker);
    bout.summary = Some(summary(content));
    bout.payload = vec![content; 5000];
    Commit { bout: Box::new(bout), is_replica: false, is_leased_again: false, secret: 7 }
}

/// Returns the command that submits a run.
fn submit(text: &str) -> Submit {
    let source = SpecSource { text: text.to_string(), ..SpecSource::default() };
    let spec = Spec::parse(&source).unwrap();
    let id = agon_schedule::run_id::first(&spec.name, &source).unwrap();
    let schedule = Schedule::resume(spec).unwrap();
    let files = "{}".to_string();
    let stored = StoredRun { id, text: text.to_string(), files, granted: BOUTS, ..StoredRun::default() };
    let run = Run::new(source, schedule, &stored, Vec::new(), BTreeSet::new()).unwrap();
    Submit { stored: Box::new(stored), run: Box::new(run), by: String::new() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn follows_the_model_through_failures_and_restarts(groups in groups(0..SPECS.len())) {
        let runtime = Runtime::new().unwrap();
        let mut world = World::new(&runtime);
        for (steps, end) in &groups {
            world.play(steps, *end, &runtime)?;
        }
    }

    /// Commands that share a transaction have the results that they have one after the other. A test that decides is an
    /// exception: it ends the run after the group.
    #[test]
    fn groups_are_equal_to_single_commands(groups in groups(Just(0))) {
        let runtime = Runtime::new().unwrap();
        let (mut grouped, mut single) = (World::new(&runtime), World::new(&runtime));
        let mut model = Model::default();
        for (steps, _) in &groups {
            let mut together = Vec::new();
            for step in steps {
                let (alone, _) = single.command(&mut model.clone(), step, true);
                single.execute(vec![alone]);
                if is_of_worker(step) {
                    grouped.execute(std::mem::take(&mut together));
                }
                together.push(grouped.command(&mut model, step, true).0);
            }
            grouped.execute(together);
            prop_assert_eq!(grouped.view(), single.view());
        }
        grouped.restart(&runtime);
        prop_assert_eq!(grouped.view(), single.view());
    }
}
