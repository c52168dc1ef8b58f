//! Verdicts of sequential tests: what they wait for, and how voided bouts withdraw them.

use super::*;
use crate::verification::convictions::void_convicted;

/// The sequential test.
const TEST: usize = 1;
const LIAR: usize = 0;
const ONE: usize = 1;
const OTHER: usize = 2;
/// A bout that the first player wins, and one that it loses.
const WON: u8 = 0;
const LOST: u8 = 1;

impl World {
    /// Creates a world in which these workers have connected.
    fn with_workers(runtime: &Runtime, workers: &[usize]) -> World {
        let mut world = World::new(runtime);
        for &worker in workers {
            world.ask(Register { worker: WORKERS[worker].to_string(), credential: credential(worker) });
        }
        world
    }

    /// Executes a command and returns its answer.
    fn ask<C: Command>(&mut self, command: C) -> C::Answer {
        let (job, mut answer) = Pending::attended(command, true);
        assert!(self.execute(vec![job]));
        answer.try_recv().unwrap().unwrap()
    }

    fn play_bout(&mut self, run: usize, bout: u64, worker: usize, content: u8) {
        let commit = commit(&self.ids[run], bout, worker, content);
        assert_eq!(self.ask(commit), Ok(()));
    }

    fn replicate(&mut self, run: usize, bout: u64, worker: usize, content: u8) -> Outcome {
        let commit = commit(&self.ids[run], bout, worker, content);
        self.ask(Commit { is_replica: true, ..commit })
    }

    /// Lets a worker play bouts of the test until it would decide. Returns the deciding bout.
    fn play_until_decided(&mut self, worker: usize, content: u8) -> u64 {
        for bout in 0..BOUTS {
            self.play_bout(TEST, bout, worker, content);
            let decided = self.with_test(|run| run.pending_verdict().or(run.record().decided));
            if let Some(decided) = decided {
                return decided;
            }
        }
        panic!("the test does not decide");
    }

    fn with_test<T>(&self, f: impl FnOnce(&mut Run) -> T) -> T {
        self.coordinator.with_run(&self.ids[TEST], f).unwrap()
    }

    fn state(&self) -> RunState {
        self.with_test(|run| run.record().state)
    }

    /// Returns the verdict that operators see.
    fn verdict(&self) -> String {
        self.with_test(|run| run.record().standings.sprt(run.record().state).unwrap().verdict)
    }

    /// Returns the kinds of the audit entries of the test.
    fn audit(&self) -> Vec<String> {
        let entries = self.store.reader().unwrap().audits(None, Some(&self.ids[TEST]), 100).unwrap();
        entries.into_iter().map(|entry| entry.kind).collect()
    }

    /// Voids the bouts of a worker, as the operator does.
    fn void(&mut self, worker: usize) -> Result<(), VoidRefusal> {
        let id = self.ids[TEST].clone();
        let selection = Selection { worker: WORKERS[worker].to_string(), first: 0, last: 0 };
        let (exported, done) = self.with_test(|run| (run.record().exported, run.ledger.done()));
        let in_dataset = (0..exported.min(done)).map(|bout| (bout, summary(WON))).collect();
        self.ask(Void { run: id, selection, in_dataset, exported, by: "test".to_string() }).map(drop)
    }
}

#[test]
fn liar_decides_no_sequential_test() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::with_workers(&runtime, &[LIAR, ONE, OTHER]);
    let id = world.ids[TEST].clone();
    // 1. The liar fabricates wins: the verdict waits, and nothing may follow it.
    let decided = world.play_until_decided(LIAR, WON);
    world.play_bout(TEST, decided + 1, LIAR, WON);
    assert_eq!((world.state(), world.verdict().as_str()), (RunState::Running, "continue"));
    let part = |last| AssignPart { run: id.clone(), first: 0, last };
    assert!(!world.ask(part(decided + 1)), "bouts after the verdict are still needed");
    let done = Move { run: id.clone(), from: OPEN, to: RunState::Done, entry: None };
    assert!(world.ask(done).is_err());
    assert!(world.coordinator.lock().durable.awaits_replicas(&id), "no new bouts are granted");
    // 2. Two honest workers contradict its first bout and confirm no other.
    assert_eq!(world.replicate(TEST, 0, LIAR, WON), Err(Uncommitted::Replicated), "it cannot confirm itself");
    assert_eq!(world.replicate(TEST, 0, ONE, LOST), Err(Uncommitted::ReplicaDiffers));
    assert_eq!(world.replicate(TEST, 0, OTHER, LOST), Err(Uncommitted::Replicated));
    for bout in 1..=decided + 1 {
        world.replicate(TEST, bout, ONE, WON).unwrap_err();
    }
    // 3. No case is open, but its bouts are still to be voided: also after a restart.
    for _ in 0..2 {
        world.ask(Decide { run: id.clone() });
        assert_eq!((world.state(), world.verdict().as_str()), (RunState::Running, "continue"));
        world.restart(&runtime);
    }
    world.void(LIAR).unwrap();
    let conviction = Conviction { worker: WORKERS[LIAR].to_string(), credential: credential(LIAR) };
    world.ask(CloseConviction(conviction));
    assert_eq!(world.with_test(|run| (run.ledger.done(), run.record().kept.len())), (0, 0));
    // 4. The bouts are replayed, and the verdict is the true one.
    let decided = world.play_until_decided(ONE, LOST);
    for bout in 0..=decided {
        assert_eq!(world.verdict(), "continue");
        assert_eq!(world.replicate(TEST, bout, OTHER, LOST), Err(Uncommitted::Replicated));
    }
    assert_eq!((world.state(), world.verdict().as_str()), (RunState::Decided, "H0"));
    let expected = ["submitted", "disputed", "convicted", "voided", "decided"];
    assert_eq!(world.audit().iter().filter(|kind| *kind != "quarantined").collect::<Vec<_>>(), expected);
}

#[test]
fn verdict_of_a_single_credential_is_unverified() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::with_workers(&runtime, &[ONE]);
    world.play_until_decided(ONE, LOST);
    assert_eq!((world.state(), world.verdict().as_str()), (RunState::Decided, "H0"));
    assert_eq!(world.audit(), ["submitted", "decided", "unverified"]);
}

/// The coordinator of `agon run` has no credentials and one worker.
#[test]
fn verdict_of_local_workers_waits_for_nothing() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::with_workers(&runtime, &[LIAR, ONE]);
    world.coordinator.lock().durable.trust_workers();
    world.play_until_decided(ONE, LOST);
    assert_eq!(
        (world.state(), world.audit()),
        (RunState::Decided, vec!["submitted".into(), "decided".into()])
    );
}

#[test]
fn voided_evidence_reopens_the_test() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::with_workers(&runtime, &[LIAR]);
    let decided = world.play_until_decided(LIAR, WON);
    assert_eq!(world.verdict(), "H1");
    world.void(LIAR).unwrap();
    assert_eq!((world.state(), world.verdict().as_str()), (RunState::Running, "continue"));
    world.restart(&runtime);
    assert_eq!((world.state(), world.with_test(|run| run.record().decided)), (RunState::Running, None));
    // The bouts are granted again, and decide again.
    let granted: Vec<u64> = world.with_test(|run| std::iter::from_fn(|| run.ledger.take_next()).collect());
    assert_eq!(granted[..=decided as usize], (0..=decided).collect::<Vec<u64>>());
    world.play_until_decided(LIAR, LOST);
    assert_eq!((world.state(), world.verdict().as_str()), (RunState::Decided, "H0"));
    assert!(world.audit().contains(&"reopened".to_string()));
}

#[test]
fn voided_evidence_of_an_exported_test_withdraws_the_verdict() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::with_workers(&runtime, &[LIAR]);
    let decided = world.play_until_decided(LIAR, WON);
    let id = world.ids[TEST].clone();
    assert!(world.ask(AssignPart { run: id.clone(), first: 0, last: decided }));
    for exported in [decided + 1, BOUTS] {
        world.ask(FinishPart { run: id.clone(), exported });
    }
    world.void(LIAR).unwrap();
    for _ in 0..2 {
        assert_eq!((world.state(), world.verdict().as_str()), (RunState::Cancelled, "undecided"));
        world.restart(&runtime);
    }
    assert_eq!(world.audit().last().map(String::as_str), Some("withdrawn"));
}

#[test]
fn bouts_of_a_convicted_worker_are_voided_in_all_runs() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::with_workers(&runtime, &[LIAR, ONE, OTHER]);
    for bout in 0..3 {
        world.play_bout(0, bout, LIAR, WON);
        world.play_bout(TEST, bout, LIAR, WON);
        world.play_bout(0, bout + 3, ONE, LOST);
    }
    world.replicate(0, 0, ONE, LOST).unwrap_err();
    world.replicate(0, 0, OTHER, LOST).unwrap_err();
    // The process ends before the bouts are voided.
    world.restart(&runtime);
    assert_eq!(world.coordinator.lock().durable.convictions().len(), 1);
    let task = runtime.spawn(void_convicted(Arc::clone(&world.coordinator)));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !world.coordinator.lock().durable.convictions().is_empty() {
        assert!(std::time::Instant::now() < deadline, "the conviction is not carried out");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    task.abort();
    let kept = |run: usize| {
        let keys = |run: &mut Run| run.record().kept.keys().copied().collect::<Vec<u64>>();
        world.coordinator.with_run(&world.ids[run], keys).unwrap()
    };
    assert_eq!((kept(0), kept(TEST)), (vec![3, 4, 5], Vec::new()));
    world.restart(&runtime);
    assert!(world.coordinator.lock().durable.convictions().is_empty());
}

/// A part that was due before bouts were voided, would lack them for good.
#[test]
fn part_that_lacks_bouts_is_not_assigned() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::with_workers(&runtime, &[ONE]);
    let id = world.ids[0].clone();
    (0..4).for_each(|bout| world.play_bout(0, bout, ONE, WON));
    let selection = Selection { worker: String::new(), first: 2, last: 2 };
    let void = Void { run: id.clone(), selection, in_dataset: Vec::new(), exported: 0, by: String::new() };
    assert!(world.ask(void).is_ok());
    let part = |last| AssignPart { run: id.clone(), first: 0, last };
    assert!(!world.ask(part(3)), "bout 2 is to be replayed");
    assert!(world.ask(part(1)));
    world.ask(FinishPart { run: id.clone(), exported: 4 });
    assert_eq!(world.coordinator.with_run(&id, |run| run.record().exported), Some(0), "another part");
}

#[test]
fn run_pauses_when_too_many_bouts_fail() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::new(&runtime);
    let submit = submit(crate::fixtures::SPEC);
    let id = submit.stored.id.clone();
    assert!(world.ask(submit));
    let fail = |world: &mut World, bout| {
        let key = BoutKey { run: id.clone(), bout };
        let outcome = world.ask(Commit::abandoned(&key, "out of memory".to_string()));
        assert_eq!(outcome, Ok(()));
        world.coordinator.with_run(&id, |run| run.record().state).unwrap()
    };
    let states: Vec<RunState> = (0..11).map(|bout| fail(&mut world, bout)).collect();
    assert!(states[..10].iter().all(|state| *state == RunState::Running) && states[10] == RunState::Paused);
    let entries = world.store.reader().unwrap().audits(None, Some(&id), 1).unwrap();
    let expected = "11 of 11 bouts failed, the last one because: out of memory; ";
    assert!(entries[0].kind == "paused" && entries[0].text.starts_with(expected), "{entries:?}");
    // The operator may accept them, or repeat them.
    let resume = || Move { run: id.clone(), from: &[RunState::Paused], to: RunState::Running, entry: None };
    assert!(world.ask(resume()).is_ok());
    assert_eq!(fail(&mut world, 11), RunState::Running);
    let selection = Selection { worker: String::new(), first: 0, last: 11 };
    let void = Void { run: id.clone(), selection, in_dataset: Vec::new(), exported: 0, by: String::new() };
    assert_eq!(world.ask(void).unwrap().replayed, 12);
    let next = world.coordinator.with_run(&id, |run| run.ledger.take_next());
    assert_eq!(next, Some(Some(0)));
}

/// Pods have new names for ever. Those that a conviction may need stay.
#[test]
fn names_of_a_credential_are_bounded() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::with_workers(&runtime, &[LIAR]);
    world.play_bout(TEST, 0, LIAR, WON);
    for pod in 0..30 {
        world.ask(Register { worker: format!("pod-{pod:02}"), credential: credential(LIAR) });
    }
    world.ask(Hold { worker: "pod-07".to_string(), holds: true });
    let names = |world: &World| {
        let state = world.coordinator.lock();
        state.durable.names(&credential(LIAR)).cloned().collect::<Vec<_>>()
    };
    world.ask(Forget { credential: credential(LIAR) });
    assert_eq!(names(&world), [WORKERS[LIAR], "pod-07"]);
    // A late bout of a forgotten worker.
    let mut late = commit(&world.ids[TEST].clone(), 1, LIAR, LOST);
    late.bout.worker = "pod-03".to_string();
    world.ask(late).unwrap();
    assert_eq!(names(&world), [WORKERS[LIAR], "pod-03", "pod-07"]);
    let before = world.view();
    world.restart(&runtime);
    assert_eq!(world.view(), before);
}

/// The dataset has no rows of a failed bout, and its parts are never rewritten.
#[test]
fn exported_failures_are_final() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::new(&runtime);
    let id = world.ids[0].clone();
    let key = |bout| BoutKey { run: id.clone(), bout };
    for bout in 0..2 {
        world.ask(Commit::abandoned(&key(bout), "no reason".to_string())).unwrap();
    }
    let void = |world: &mut World, exported| {
        let selection = Selection { worker: String::new(), first: 0, last: 0 };
        let run = id.clone();
        world.ask(Void { run, selection, in_dataset: Vec::new(), exported, by: String::new() })
    };
    assert_eq!(void(&mut world, 0).unwrap().replayed, 1);
    world.ask(Commit::abandoned(&key(0), "no reason".to_string())).unwrap();
    assert!(world.ask(AssignPart { run: id.clone(), first: 0, last: 1 }));
    world.ask(FinishPart { run: id.clone(), exported: 2 });
    assert_eq!(void(&mut world, 2), Err(VoidRefusal::Final));
}

/// A run that is over needs no outcomes by worker, unless a conviction may ask who played its bouts.
#[test]
fn ended_run_forgets_its_workers() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::new(&runtime);
    let id = world.ids[0].clone();
    for bout in 0..BOUTS {
        world.ask(commit(&id, bout, ONE, WON)).unwrap();
    }
    let cells = |world: &World| world.store.reader().unwrap().cells(&id).unwrap().len();
    assert!(world.ask(AssignPart { run: id.clone(), first: 0, last: BOUTS - 1 }));
    world.ask(FinishPart { run: id.clone(), exported: BOUTS });
    assert!(cells(&world) > 0);
    world.ask(Move { run: id.clone(), from: OPEN, to: RunState::Done, entry: None }).unwrap();
    assert_eq!(cells(&world), 0);
    let before = world.view();
    world.restart(&runtime);
    assert_eq!(world.view(), before);
}
