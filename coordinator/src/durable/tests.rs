//! The durable state against a model: any sequence of commands, groups, failed writes and restarts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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

use super::bouts::{Commit, Outcome};
use super::runs::{
    AssignPart, Decide, FinishPart, Move, OPEN, Selection, Submit, Void, VoidCounts, VoidRefusal,
};
use super::workers::{Quarantine, Trust};
use super::*;
use crate::dataset::Dataset;
use crate::owner::{Group, Job, Pending, execute_group};
use crate::recovery;
use crate::state::{Coordinator, Recovery, Timing};
use crate::store::{NewBout, Store, StoreError, StoredRun};

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

#[derive(Clone, Debug)]
enum Step {
    Commit { run: usize, bout: u64, worker: usize, content: u8 },
    Abandon { run: usize, bout: u64 },
    Move { run: usize, from: &'static [RunState], to: RunState },
    Assign { run: usize, length: u64 },
    Finish { run: usize },
    Void { run: usize, first: u64, last: u64 },
    Quarantine { worker: usize },
    Trust { worker: usize },
}

/// What ends a group of commands.
#[derive(Clone, Copy, Debug)]
enum End {
    Written,
    /// The disk fails, and the process with it.
    Failed,
    /// The process ends after the write.
    Restarted,
}

fn step(run: impl Strategy<Value = usize> + Clone + 'static) -> impl Strategy<Value = Step> {
    let moves = prop_oneof![
        Just((OPEN, RunState::Cancelled)),
        Just((&[RunState::Running][..], RunState::Paused)),
        Just((&[RunState::Paused][..], RunState::Running)),
    ];
    prop_oneof![
        8 => (run.clone(), 0..BOUTS, 0..3_usize, 0..3_u8)
            .prop_map(|(run, bout, worker, content)| Step::Commit { run, bout, worker, content: content.min(1) }),
        1 => (run.clone(), 0..BOUTS).prop_map(|(run, bout)| Step::Abandon { run, bout }),
        1 => (run.clone(), moves).prop_map(|(run, (from, to))| Step::Move { run, from, to }),
        2 => (run.clone(), 1..5_u64).prop_map(|(run, length)| Step::Assign { run, length }),
        2 => run.clone().prop_map(|run| Step::Finish { run }),
        1 => (run, 0..BOUTS, 0..3_u64)
            .prop_map(|(run, first, more)| Step::Void { run, first, last: first + more }),
        1 => (0..3_usize).prop_map(|worker| Step::Quarantine { worker }),
        1 => (0..3_usize).prop_map(|worker| Step::Trust { worker }),
    ]
}

fn groups(
    run: impl Strategy<Value = usize> + Clone + 'static,
) -> impl Strategy<Value = Vec<(Vec<Step>, End)>> {
    let end = prop_oneof![8 => Just(End::Written), 1 => Just(End::Failed), 1 => Just(End::Restarted)];
    prop::collection::vec((prop::collection::vec(step(run), 1..6), end), 1..24)
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
#[derive(Clone, Default, Debug)]
struct ModelRun {
    state: RunState,
    /// The content of each done bout; none if it was abandoned.
    done: BTreeMap<u64, Option<u8>>,
    exported: u64,
    part: Option<u64>,
    voided: BTreeSet<u64>,
}

impl ModelRun {
    fn commit(&mut self, bout: u64, content: Option<u8>) -> Outcome {
        match self.done.get(&bout) {
            _ if bout < self.exported => Outcome::Exported,
            Some(known) if *known == content => Outcome::Duplicate,
            Some(_) => Outcome::Conflict,
            None if !self.state.is_open() => Outcome::RunClosed,
            None => {
                self.done.insert(bout, content);
                Outcome::Committed
            }
        }
    }

    fn prefix(&self) -> u64 {
        (0..).find(|bout| !self.done.contains_key(bout)).unwrap()
    }
}

#[derive(Clone, Default, Debug)]
struct Model {
    runs: [ModelRun; SPECS.len()],
    quarantine: BTreeSet<usize>,
}

/// The answer to a command, to be compared with the model's.
enum Expected {
    Outcome(oneshot::Receiver<Result<Outcome, StoreError>>, Outcome),
    Moved(oneshot::Receiver<Result<Result<(), Option<RunState>>, StoreError>>, bool),
    Assigned(oneshot::Receiver<Result<bool, StoreError>>, bool),
    Voided(oneshot::Receiver<Result<Result<VoidCounts, VoidRefusal>, StoreError>>, Result<u64, ()>),
    Trusted(oneshot::Receiver<Result<bool, StoreError>>, bool),
    Nothing,
}

impl Expected {
    /// Compares the answer with the model's, if the command was executed; otherwise it must be an error.
    fn check(self, executed: bool) -> Result<(), TestCaseError> {
        fn answer<T>(
            mut receiver: oneshot::Receiver<Result<T, StoreError>>,
            executed: bool,
        ) -> Result<Option<T>, TestCaseError> {
            let answer = receiver.try_recv().expect("every command is answered");
            prop_assert_eq!(answer.is_ok(), executed, "acknowledged if and only if durable");
            Ok(answer.ok())
        }
        match self {
            Expected::Outcome(receiver, expected) => {
                if let Some(found) = answer(receiver, executed)? {
                    prop_assert_eq!(found, expected);
                }
            }
            Expected::Moved(receiver, expected) => {
                if let Some(found) = answer(receiver, executed)? {
                    prop_assert_eq!(found.is_ok(), expected);
                }
            }
            Expected::Assigned(receiver, expected) | Expected::Trusted(receiver, expected) => {
                if let Some(found) = answer(receiver, executed)? {
                    prop_assert_eq!(found, expected);
                }
            }
            Expected::Voided(receiver, expected) => {
                if let Some(found) = answer(receiver, executed)? {
                    prop_assert_eq!(
                        found.map(|counts| counts.replayed + counts.voided).map_err(|_| ()),
                        expected
                    );
                }
            }
            Expected::Nothing => {}
        }
        Ok(())
    }
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
            let source = SpecSource { text: text.to_string(), ..SpecSource::default() };
            let spec = Spec::parse(&source).unwrap();
            let id = agon_schedule::run_id::first(&spec.name, &source).unwrap();
            let schedule = Schedule::resume(spec).unwrap();
            let stored = StoredRun {
                id: id.clone(),
                text: text.to_string(),
                files: "{}".to_string(),
                granted: BOUTS,
                ..StoredRun::default()
            };
            let run = Run::new(source, schedule, &stored, Vec::new(), BTreeSet::new()).unwrap();
            let (job, _) = Pending::attended(Submit { stored: Box::new(stored), run: Box::new(run) }, true);
            world.execute(vec![job]);
            world.ids.push(id);
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

    /// Builds the command of a step, and applies the step to the model.
    fn command(&self, model: &mut Model, step: &Step) -> (Option<Box<dyn Job>>, Expected) {
        let id = |run: usize| self.ids[run].clone();
        match *step {
            Step::Commit { run, bout, worker, content } => {
                let bout = NewBout {
                    run: id(run),
                    bout,
                    worker: WORKERS[worker].to_string(),
                    digest: Some([content; 32]),
                    summary: Some(summary(content)),
                    payload: vec![content],
                    ..NewBout::default()
                };
                let expected = model.runs[run].commit(bout.bout, Some(content));
                let commit =
                    Commit { bout: Box::new(bout), is_replica: false, is_leased_again: false, secret: 7 };
                let (job, answer) = Pending::attended(commit, true);
                (Some(job), Expected::Outcome(answer, expected))
            }
            Step::Abandon { run, bout } => {
                let expected = model.runs[run].commit(bout, None);
                let failure = Some("no reason".to_string());
                let bout = NewBout { run: id(run), bout, failure, ..NewBout::default() };
                let (job, answer) = Pending::attended(Commit::abandoned(bout), true);
                (Some(job), Expected::Outcome(answer, expected))
            }
            Step::Move { run, from, to } => {
                let known = &mut model.runs[run];
                let moves = from.contains(&known.state);
                if moves {
                    known.state = to;
                }
                let (job, answer) = Pending::attended(Move { run: id(run), from, to, entry: None }, true);
                (Some(job), Expected::Moved(answer, moves))
            }
            Step::Assign { run, length } => {
                let known = &mut model.runs[run];
                let (first, end) = (known.exported, known.prefix().min(known.exported + length));
                if first >= end || !known.state.is_open() {
                    return (None, Expected::Nothing);
                }
                let fits = known.part.is_none();
                if fits {
                    known.part = Some(end);
                }
                let (job, answer) =
                    Pending::attended(AssignPart { run: id(run), first, last: end - 1 }, true);
                (Some(job), Expected::Assigned(answer, fits))
            }
            Step::Finish { run } => {
                let Some(exported) = model.runs[run].part.take() else { return (None, Expected::Nothing) };
                model.runs[run].exported = exported;
                let (job, _) = Pending::attended(FinishPart { run: id(run), exported }, true);
                (Some(job), Expected::Nothing)
            }
            Step::Void { run, first, last } => {
                let known = &mut model.runs[run];
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
                let refused = known.part.is_some() || countable.is_empty();
                let expected = if refused { Err(()) } else { Ok(countable.len() as u64) };
                let exported = known.exported;
                if !refused {
                    for bout in countable {
                        if bout < known.exported {
                            known.voided.insert(bout);
                        } else {
                            known.done.remove(&bout);
                        }
                    }
                }
                let selection = Selection { worker: String::new(), first, last };
                let void = Void { run: id(run), selection, in_dataset, exported, by: String::new() };
                let (job, answer) = Pending::attended(void, true);
                (Some(job), Expected::Voided(answer, expected))
            }
            Step::Quarantine { worker } => {
                model.quarantine.insert(worker);
                let reason = "a reason".to_string();
                let (job, _) =
                    Pending::attended(Quarantine { worker: WORKERS[worker].to_string(), reason }, true);
                (Some(job), Expected::Nothing)
            }
            Step::Trust { worker } => {
                let expected = model.quarantine.remove(&worker);
                let operator = String::new();
                let (job, answer) =
                    Pending::attended(Trust { worker: WORKERS[worker].to_string(), operator }, true);
                (Some(job), Expected::Trusted(answer, expected))
            }
        }
    }

    /// Executes the steps of a group one after the other in the model, and compares.
    fn play(&mut self, steps: &[Step], end: End, runtime: &Runtime) -> Result<(), TestCaseError> {
        let fails = matches!(end, End::Failed);
        self.store.fail_writes(fails);
        let mut lost = false;
        for step in steps {
            // Each step alone, so that the model follows verdicts; the groups of several are below.
            let mut model = self.model.clone();
            let (job, expected) = self.command(&mut model, step);
            let Some(job) = job else { continue };
            let before = self.view();
            let executed = self.execute(vec![job]);
            // A command without events needs no write.
            prop_assert!(executed || fails);
            expected.check(executed)?;
            if executed {
                self.model = model;
                self.follow_verdicts();
            } else {
                lost = true;
                prop_assert_eq!(before, self.view(), "nothing is applied that is not written");
            }
        }
        self.store.fail_writes(false);
        if lost || matches!(end, End::Restarted) {
            let before = (self.view(), self.cases());
            self.restart(runtime);
            prop_assert_eq!(before, (self.view(), self.cases()), "a restart gives the same state");
        }
        self.check()
    }

    /// The model does not know when a test decides; everything else about the end of a run it does.
    fn follow_verdicts(&mut self) {
        for (id, known) in self.ids.iter().zip(&mut self.model.runs) {
            let state = self.coordinator.with_run(id, |run| run.record().state).unwrap();
            if state == RunState::Decided && known.state.is_open() {
                known.state = RunState::Decided;
            }
        }
    }

    /// Compares state and model.
    fn check(&self) -> Result<(), TestCaseError> {
        let guard = self.coordinator.lock();
        for (id, known) in self.ids.iter().zip(&self.model.runs) {
            let run = guard.durable.run(id).unwrap();
            let record = run.record();
            prop_assert_eq!(record.state, known.state);
            prop_assert_eq!(record.exported, known.exported);
            prop_assert_eq!(&record.voided, &known.voided);
            prop_assert_eq!(run.ledger.prefix(), known.prefix());
            prop_assert_eq!(run.ledger.done(), known.done.len() as u64);
            let kept: Vec<(u64, Option<u8>)> =
                record.kept.iter().map(|(bout, kept)| (*bout, kept.digest.map(|digest| digest[0]))).collect();
            let expected: Vec<_> =
                known.done.range(known.exported..).map(|(bout, content)| (*bout, *content)).collect();
            prop_assert_eq!(kept, expected);
            let counted = known.done.keys().filter(|bout| !known.voided.contains(*bout)).count() as u64;
            prop_assert_eq!(record.standings.totals().bouts, counted);
            let due = record.state.is_open() && record.standings.deciding_bout().is_some();
            prop_assert!(!due, "a decided test is open");
        }
        let quarantined: BTreeSet<usize> =
            (0..3).filter(|worker| guard.durable.quarantine().contains_key(WORKERS[*worker])).collect();
        prop_assert_eq!(&quarantined, &self.model.quarantine);
        Ok(())
    }

    /// Returns everything durable, in a form that can be compared.
    fn view(&self) -> Vec<String> {
        let guard = self.coordinator.lock();
        let durable = &guard.durable;
        let run = |id: &String| {
            let run = durable.run(id).unwrap();
            let record = run.record();
            format!(
                "{:?} {:?} {:?} {} {:?} {:?} {:?} {:?} {:?} {:?} {} {} {:?}",
                record.state,
                record.priority,
                record.decided,
                record.exported,
                record.exported_totals,
                record.exported_cells,
                record.open_part,
                record.kept,
                record.voided,
                record.standings.totals(),
                run.ledger.prefix(),
                run.ledger.done(),
                record.standings.sprt(record.state).map(|test| test.pairs),
            )
        };
        let mut view: Vec<String> = durable.order().iter().map(run).collect();
        view.push(format!("{:?}", durable.quarantine()));
        view
    }

    /// Returns the open replications.
    fn cases(&self) -> String {
        format!("{:?}", self.coordinator.lock().durable.replication().cases())
    }
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
                let (Some(alone), _) = single.command(&mut model.clone(), step) else { continue };
                single.execute(vec![alone]);
                together.extend(grouped.command(&mut model, step).0);
            }
            grouped.execute(together);
            prop_assert_eq!(grouped.view(), single.view());
        }
        grouped.restart(&runtime);
        prop_assert_eq!(grouped.view(), single.view());
    }
}
