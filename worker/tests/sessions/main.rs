//! A worker against a fake coordinator, with interrupted sessions, lost acknowledgements and rejections.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod fake_coordinator;

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agon_arena::{SpecSource, known_answers};
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::{self, Outcome};
use agon_proto::{Lease, LeasedBout, Returned};
use agon_records::content_digest;
use agon_schedule::run_id;
use agon_testing::bouts;
use agon_testing::specs::{KALAH, OTHELLO_PROBE, Variation, vary};
use agon_worker::{Config, Ended, Summary, WorkerError, WorkerEvent, run};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use fake_coordinator::FakeCoordinator;

/// Games that never end.
fn endless() -> Variation {
    vary(KALAH).set("game", "\"othello\"").limit("ms = 3600000")
}

fn add_bouts(coordinator: &FakeCoordinator, bouts: u64) {
    coordinator.state().bouts.extend(
        (0..bouts).map(|number| coordinator.bout(number, ["", "1", "2 3", "4 4"][number as usize % 4])),
    );
}

/// A running worker.
struct RunningWorker {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Summary, WorkerError>>,
    events: Arc<Mutex<Vec<WorkerEvent>>>,
}

fn start(endpoint: Endpoint, change: impl FnOnce(&mut Config)) -> RunningWorker {
    let events = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&events);
    let mut config = Config::new(endpoint, "tester");
    config.slots = 2;
    config.on_event = Arc::new(move |event| recorded.lock().unwrap().push(event.clone()));
    change(&mut config);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(run(config, async {
        let _ = stopped.await;
    }));
    RunningWorker { stop, task, events }
}

impl RunningWorker {
    async fn stop(self) -> (Summary, Vec<WorkerEvent>) {
        self.stop.send(()).unwrap();
        let summary = self.task.await.unwrap().unwrap();
        let events = self.events.lock().unwrap().clone();
        (summary, events)
    }
}

#[tokio::test]
async fn submits_complete_bouts_as_the_arena_plays_them() {
    let coordinator = FakeCoordinator::new(KALAH);
    add_bouts(&coordinator, 40);
    let worker = start(coordinator.serve().await, |_| ());
    coordinator.wait_until("all bouts are submitted", |state| state.complete.len() == 40).await;
    let (summary, events) = worker.stop().await;
    assert_eq!((summary.ended, summary.finished, summary.games), (Ended::Shutdown, 40, 80));
    assert_eq!((summary.failed, summary.abandoned), (0, 0));
    assert_eq!((summary.committed, summary.unacknowledged), (40, 0));
    let state = coordinator.state();
    let hello = &state.hellos[0];
    assert_eq!((hello.worker.as_str(), hello.slots), ("tester", 2));
    assert_eq!(hello.signature, known_answers().signature);
    assert!(hello.speed > 0.0);
    for (lease, complete) in &state.complete {
        let played = bouts::play(coordinator.spec(), &state.leased[lease], "", "");
        assert_eq!(complete.content_digest, content_digest(&played), "{lease}");
        assert_eq!(complete.bout.games[0].worker, "tester");
    }
    let count = |wanted: fn(&WorkerEvent) -> bool| events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, WorkerEvent::Connected { .. })), 1);
    assert_eq!(count(|event| matches!(event, WorkerEvent::Granted { .. })), 40);
    assert_eq!(count(|event| matches!(event, WorkerEvent::Finished { games: 2, .. })), 40);
    let committed =
        |event: &WorkerEvent| matches!(event, WorkerEvent::Acknowledged { outcome: Outcome::Committed, .. });
    assert_eq!(count(committed), 40);
}

#[tokio::test]
async fn submits_probes() {
    let coordinator = FakeCoordinator::new(&vary(OTHELLO_PROBE).limit("depth = 3"));
    coordinator.state().bouts.extend([coordinator.bout(0, "d3 c3 c4"), coordinator.bout(1, "")]);
    let worker = start(coordinator.serve().await, |_| ());
    coordinator.wait_until("both are submitted", |state| state.complete.len() == 2).await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.finished, summary.games), (2, 4));
    for (lease, complete) in &coordinator.state().complete {
        let [a, b] = &complete.bout.probes[..] else { panic!("{} probes", complete.bout.probes.len()) };
        let (first, second) = (a.decision.search.as_ref().unwrap(), b.decision.search.as_ref().unwrap());
        assert_eq!((first.player.as_str(), second.player.as_str()), ("a", "b"));
        assert_eq!(first.score, second.score, "the same position to the same depth");
        let (seat, legal) = if lease.bout == 0 { (1, 2) } else { (0, 4) };
        assert_eq!(
            (a.decision.seat, a.decision.legal, a.decision.ply),
            (Some(seat), legal, if seat == 1 { 3 } else { 0 })
        );
    }
}

#[tokio::test]
async fn resubmits_bouts_after_a_lost_acknowledgement() {
    let coordinator = FakeCoordinator::new(KALAH);
    add_bouts(&coordinator, 6);
    coordinator.state().dropped_acknowledgements = 2;
    let worker = start(coordinator.serve().await, |_| ());
    coordinator
        .wait_until("six bouts and two duplicates are submitted", |state| state.complete.len() >= 8)
        .await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.finished, summary.committed, summary.unacknowledged), (6, 6, 0));
    let state = coordinator.state();
    let mut leases: Vec<&Lease> = state.complete.iter().map(|(lease, _)| lease).collect();
    leases.sort();
    leases.dedup();
    assert_eq!(leases.len(), 6);
    for (lease, complete) in &state.complete {
        let other = state.complete.iter().find(|(other, _)| other == lease).unwrap();
        assert_eq!(other.1.bytes_digest, complete.bytes_digest, "the same bytes again");
    }
}

#[tokio::test]
async fn presents_held_bouts_on_reconnect_and_drops_those_not_adopted() {
    let coordinator = FakeCoordinator::new(&endless());
    coordinator.state().bouts.extend((0..5).map(|number| coordinator.bout(number, "")));
    let worker = start(coordinator.serve().await, |config| {
        config.prefetch = Some(3);
        config.grace = Duration::from_millis(400);
    });
    coordinator
        .wait_until("all are leased and two are played", |state| {
            let started =
                |beat: &agon_proto::Heartbeat| beat.progress.iter().filter(|one| one.started).count();
            state.heartbeats.last().is_some_and(|beat| beat.progress.len() == 5 && started(beat) == 2)
        })
        .await;
    // One in progress and one waiting are not adopted.
    coordinator.state().not_adopted = vec![coordinator.bout(0, "").lease, coordinator.bout(4, "").lease];
    coordinator.cut_sessions();
    coordinator
        .wait_until("the worker reconnects with three bouts", |state| {
            state.hellos.len() == 2
                && state.heartbeats.last().is_some_and(|beat| {
                    beat.progress.len() == 3 && beat.progress.iter().filter(|one| one.started).count() == 2
                })
        })
        .await;
    let hello = coordinator.state().hellos[1].clone();
    assert_eq!(hello.held, (0..5).map(|number| coordinator.bout(number, "").lease).collect::<Vec<_>>());
    assert_eq!(hello.specs, [coordinator.run()]);
    // No bout ever finishes: draining returns the waiting one and interrupts the others.
    let (summary, events) = worker.stop().await;
    assert_eq!((summary.finished, summary.returned, summary.abandoned), (0, 1, 3));
    let dropped = events.iter().filter(|event| matches!(event, WorkerEvent::Dropped { .. })).count();
    assert_eq!(dropped, 2);
    let mut returned: Vec<u64> =
        coordinator.state().returned.iter().flat_map(|one| &one.leases).map(|lease| lease.bout).collect();
    returned.sort_unstable();
    assert_eq!(returned, [1, 2, 3]);
}

#[tokio::test]
async fn drain_finishes_bouts_in_progress_and_returns_waiting_ones() {
    let coordinator = FakeCoordinator::new(KALAH);
    add_bouts(&coordinator, 300);
    let worker = start(coordinator.serve().await, |config| config.prefetch = Some(100));
    coordinator.wait_until("a bout is submitted", |state| !state.complete.is_empty()).await;
    coordinator.state().messages.push_back(Kind::Drain(v1::Drain { reason: "enough".to_string() }));
    let summary = worker.task.await.unwrap().unwrap();
    assert_eq!(summary.ended, Ended::Drained { reason: "enough".to_string() });
    assert_eq!((summary.abandoned, summary.unacknowledged), (0, 0));
    let state = coordinator.state();
    let returned: usize = state.returned.iter().map(|one| one.leases.len()).sum();
    assert_eq!((summary.returned, summary.committed), (returned as u64, state.complete.len() as u64));
    assert_eq!(returned + state.complete.len(), state.leased.len(), "every bout is submitted or returned");
    assert!(returned > 0);
}

#[tokio::test]
async fn drops_a_revoked_bout_and_reuses_its_slot() {
    let coordinator = FakeCoordinator::new(&endless());
    coordinator.state().bouts.extend((0..2).map(|number| coordinator.bout(number, "")));
    let worker = start(coordinator.serve().await, |config| {
        config.slots = 1;
        config.prefetch = Some(1);
        config.grace = Duration::from_millis(100);
    });
    let playing = |number: u64| {
        move |state: &fake_coordinator::State| {
            let beat = state.heartbeats.last();
            beat.is_some_and(|beat| beat.progress.iter().any(|one| one.started && one.lease.bout == number))
        }
    };
    coordinator.wait_until("the first is played", playing(0)).await;
    let revoked = Returned { leases: vec![coordinator.bout(0, "").lease], reason: "decided".to_string() };
    coordinator.state().messages.push_back(Kind::Revoke((&revoked).into()));
    coordinator.wait_until("the second is played", playing(1)).await;
    let (summary, events) = worker.stop().await;
    let dropped =
        WorkerEvent::Dropped { lease: coordinator.bout(0, "").lease, reason: "decided".to_string() };
    assert!(events.contains(&dropped));
    assert_eq!((summary.abandoned, summary.finished), (2, 0));
}

#[tokio::test]
async fn reports_a_bout_that_cannot_be_played_and_continues() {
    let coordinator = FakeCoordinator::new(KALAH);
    coordinator.state().bouts.extend([coordinator.bout(0, "1 nonsense"), coordinator.bout(1, "")]);
    let worker = start(coordinator.serve().await, |config| config.slots = 1);
    coordinator
        .wait_until("both are submitted", |state| state.failures.len() == 1 && state.complete.len() == 1)
        .await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.failed, summary.finished, summary.unacknowledged), (1, 1, 0));
    let state = coordinator.state();
    let (lease, reason) = &state.failures[0];
    assert_eq!(lease.bout, 0);
    assert!(reason.contains("ply 2: `nonsense` is not a legal move"), "{reason}");
}

#[tokio::test]
async fn returns_invalid_bouts_with_the_reason() {
    let coordinator = FakeCoordinator::new(KALAH);
    let foreign = Lease { run: "other-11111111".to_string(), ..coordinator.bout(1, "").lease };
    let mut crowded = coordinator.bout(0, "");
    crowded.bout.players = vec![0, 1, 0];
    coordinator.state().bouts.extend([crowded, LeasedBout { lease: foreign, ..coordinator.bout(1, "") }]);
    let worker = start(coordinator.serve().await, |_| ());
    coordinator.wait_until("both are returned", |state| state.returned.len() == 2).await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.returned, summary.finished), (2, 0));
    let state = coordinator.state();
    let reasons: Vec<&str> = state.returned.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["`players` has 3 entries, and it must have 2 to 2", "its spec was not sent"]);
}

#[tokio::test]
async fn plays_nothing_of_a_run_whose_spec_was_changed_on_its_way() {
    let coordinator = FakeCoordinator::new(KALAH);
    add_bouts(&coordinator, 3);
    let changed = vary(KALAH).seed(77).text();
    assert_ne!(changed, KALAH);
    coordinator.state().changed_spec = Some(changed.clone());
    let worker = start(coordinator.serve().await, |_| ());
    coordinator.wait_until("all are returned", |state| state.returned.len() == 3).await;
    let digest = |text: &str| {
        let source = SpecSource { text: text.to_string(), ..SpecSource::default() };
        run_id::digest(&source).unwrap()[..8].to_string()
    };
    let expected = format!(
        "the spec has the digest {}, and the run id {} names {}: ",
        digest(&changed),
        coordinator.run(),
        digest(KALAH)
    );
    for returned in &coordinator.state().returned {
        assert!(returned.reason.starts_with(&expected), "{}", returned.reason);
    }
    assert!(coordinator.state().complete.is_empty());

    // The next session gets the spec again, as it was submitted.
    coordinator.state().changed_spec = None;
    add_bouts(&coordinator, 3);
    coordinator.cut_sessions();
    coordinator.wait_until("all are submitted", |state| state.complete.len() == 3).await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.returned, summary.finished), (3, 3));
    assert!(coordinator.state().hellos[1].specs.is_empty());
}

#[tokio::test]
async fn returns_held_bouts_when_their_spec_changes() {
    let coordinator = FakeCoordinator::new(&endless());
    coordinator.state().bouts.extend((0..3).map(|number| coordinator.bout(number, "")));
    let worker = start(coordinator.serve().await, |config| {
        config.slots = 1;
        config.prefetch = Some(2);
        config.grace = Duration::from_millis(100);
    });
    coordinator
        .wait_until("one is played and two wait", |state| {
            let beat = state.heartbeats.last();
            beat.is_some_and(|beat| beat.progress.len() == 3 && beat.progress.iter().any(|one| one.started))
        })
        .await;
    let source = SpecSource { text: KALAH.to_string(), ..SpecSource::default() };
    let (run, spec) = (coordinator.run().to_string(), Some((&source).into()));
    coordinator.state().messages.push_back(Kind::Spec(v1::RunSpec { run, spec }));
    let leases = |state: &fake_coordinator::State| -> usize {
        state.returned.iter().map(|returned| returned.leases.len()).sum()
    };
    coordinator.wait_until("all are returned", |state| leases(state) == 3).await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.finished, summary.abandoned), (0, 1));
}

#[tokio::test]
async fn ends_after_a_rejected_hello() {
    let coordinator = FakeCoordinator::new(KALAH);
    // The first is temporary.
    coordinator.state().rejections.extend([
        Status::unavailable("starting"),
        Status::failed_precondition("this build searches otherwise; install 0.1.0"),
    ]);
    let config = Config::new(coordinator.serve().await, "tester");
    let error = run(config, pending()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the coordinator rejected this worker: this build searches otherwise; install 0.1.0"
    );
    assert!(matches!(error, WorkerError::Rejected { code: Code::FailedPrecondition, .. }));
    assert_eq!(coordinator.state().hellos.len(), 2);
}

#[tokio::test]
async fn ends_after_repeatedly_rejected_submissions() {
    let coordinator = FakeCoordinator::new(KALAH);
    add_bouts(&coordinator, 1);
    coordinator.state().reject_submissions = Some(Status::invalid_argument("no such field"));
    let error = run(Config::new(coordinator.serve().await, "tester"), pending()).await.unwrap_err();
    assert!(matches!(error, WorkerError::SubmissionsRejected { times: 5, .. }), "{error}");
}

#[tokio::test]
async fn retries_while_the_coordinator_is_unreachable() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
    let worker = start(endpoint, |_| ());
    let disconnected = |event: &WorkerEvent| matches!(event, WorkerEvent::Disconnected { .. });
    while worker.events.lock().unwrap().iter().filter(|event| disconnected(event)).count() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (summary, events) = worker.stop().await;
    assert_eq!(summary.ended, Ended::Shutdown);
    let Some(WorkerEvent::Disconnected { reason, .. }) = events.first() else { panic!("{events:?}") };
    assert!(reason.contains("refused"), "{reason}");
}

#[tokio::test]
async fn rejects_invalid_settings() {
    let endpoint = Endpoint::from_static("http://127.0.0.1:1");
    for (slots, name, message) in
        [(0, "w", "1 to 4096 slots, not 0"), (1, "", "1 to 128 printable characters")]
    {
        let config = Config { slots, ..Config::new(endpoint.clone(), name) };
        let error = run(config, pending()).await.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
