//! A worker against a coordinator that a test holds in its hand: what it promises, and what it does when things break.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod fake;

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agon_arena::{Arena, Environment, Opening, PlayerConfig, Spec, known_answers};
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::{self, Outcome};
use agon_proto::{Bout, Lease, Returned};
use agon_records::{BoutRows, GameHead, content_digest};
use agon_worker::{Config, Ended, Summary, WorkerError, WorkerEvent, run};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use fake::{Fake, RUN};

/// Games of a few milliseconds.
const QUICK: &str = r#"
name = "test"
game = "kalah"
seed = 7
limit = { nodes = 300 }
[tournament]
format = "round-robin"
bouts = 100
[[player]]
name = "pvs"
search = { algorithm = "pvs" }
[[player]]
name = "uct"
limit = { nodes = 20 }
search = { algorithm = "uct" }
"#;

/// Games that nobody waits for.
const ENDLESS: &str = r#"
name = "test"
game = "othello"
seed = 7
limit = { ms = 3600000 }
[tournament]
format = "round-robin"
bouts = 1
[[player]]
name = "a"
search = { algorithm = "pvs" }
[[player]]
name = "b"
search = { algorithm = "alpha-beta" }
"#;

const PROBE: &str = r#"
name = "test"
game = "othello"
seed = 7
limit = { depth = 3 }
[probe]
positions = { random = 3, plies = [4, 8] }
[[player]]
name = "a"
search = { algorithm = "alpha-beta" }
[[player]]
name = "b"
search = { algorithm = "pvs" }
"#;

fn bout(number: u64, moves: &str) -> Bout {
    let lease = Lease { run: RUN.to_string(), bout: number, epoch: 1, sequence: number };
    let opening = Opening { position: None, moves: moves.to_string() };
    Bout { lease, players: vec![0, 1], opening, values: Vec::new() }
}

fn lend(fake: &Fake, bouts: u64) {
    fake.state()
        .bouts
        .extend((0..bouts).map(|number| bout(number, ["", "1", "2 3", "4 4"][number as usize % 4])));
}

/// A worker under way.
struct Started {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Summary, WorkerError>>,
    events: Arc<Mutex<Vec<WorkerEvent>>>,
}

fn start(endpoint: Endpoint, change: impl FnOnce(&mut Config)) -> Started {
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&events);
    let mut config = Config::new(endpoint, "tester");
    config.slots = 2;
    config.watch = Arc::new(move |event| heard.lock().unwrap().push(event.clone()));
    change(&mut config);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(run(config, async {
        let _ = stopped.await;
    }));
    Started { stop, task, events }
}

impl Started {
    async fn stop(self) -> (Summary, Vec<WorkerEvent>) {
        self.stop.send(()).unwrap();
        let summary = self.task.await.unwrap().unwrap();
        let events = self.events.lock().unwrap().clone();
        (summary, events)
    }
}

/// The content digest of a bout as the arena plays it here.
fn played_here(spec: &Spec, bout: &Bout) -> [u8; 32] {
    let configs: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
    let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
    let mut arena = Arena::new(&spec.game, &configs, Environment::system()).unwrap();
    let mut rows = BoutRows::default();
    for (index, request) in bout.request(spec).games().enumerate() {
        let record = arena.play(&request, &mut |_| ()).unwrap();
        let head = GameHead {
            game: &spec.game,
            names: &names,
            opening: &bout.opening,
            bout: bout.lease.bout,
            index: index as u16,
            worker: "",
            build: "",
            started: 0,
            speed_factor: 1.0,
            settings: &[],
        };
        rows.add_game(&head, &record).unwrap();
    }
    content_digest(&rows)
}

#[tokio::test]
async fn bouts_come_back_whole_and_as_the_arena_plays_them() {
    let fake = Fake::new(QUICK);
    lend(&fake, 40);
    let worker = start(fake.serve().await, |_| ());
    fake.until("all bouts are back", |state| state.whole.len() == 40).await;
    let (summary, events) = worker.stop().await;
    assert_eq!((summary.ended, summary.finished, summary.games), (Ended::Shutdown, 40, 80));
    assert_eq!((summary.failed, summary.abandoned), (0, 0));
    assert_eq!((summary.committed, summary.unacknowledged), (40, 0));
    let state = fake.state();
    let hello = &state.hellos[0];
    assert_eq!((hello.worker.as_str(), hello.slots), ("tester", 2));
    assert_eq!(hello.signature, known_answers().signature);
    assert!(hello.speed > 0.0);
    for (lease, whole) in &state.whole {
        assert_eq!(whole.content_digest, played_here(fake.spec(), &state.lent[lease]), "{lease}");
        assert_eq!(whole.bout.games[0].worker, "tester");
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
async fn probes_come_back_too() {
    let fake = Fake::new(PROBE);
    fake.state().bouts.extend([bout(0, "d3 c3 c4"), bout(1, "")]);
    let worker = start(fake.serve().await, |_| ());
    fake.until("both are back", |state| state.whole.len() == 2).await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.finished, summary.games), (2, 4));
    for (lease, whole) in &fake.state().whole {
        let [a, b] = &whole.bout.probes[..] else { panic!("{} probes", whole.bout.probes.len()) };
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
async fn a_lost_acknowledgement_brings_the_bout_again() {
    let fake = Fake::new(QUICK);
    lend(&fake, 6);
    fake.state().dropped_acknowledgements = 2;
    let worker = start(fake.serve().await, |_| ());
    fake.until("six bouts and two again", |state| state.whole.len() >= 8).await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.finished, summary.committed, summary.unacknowledged), (6, 6, 0));
    let state = fake.state();
    let mut leases: Vec<&Lease> = state.whole.iter().map(|(lease, _)| lease).collect();
    leases.sort();
    leases.dedup();
    assert_eq!(leases.len(), 6);
    for (lease, whole) in &state.whole {
        let other = state.whole.iter().find(|(other, _)| other == lease).unwrap();
        assert_eq!(other.1.bytes_digest, whole.bytes_digest, "the same bytes again");
    }
}

#[tokio::test]
async fn after_a_cut_the_worker_presents_what_it_holds_and_drops_what_is_not_adopted() {
    let fake = Fake::new(ENDLESS);
    fake.state().bouts.extend((0..5).map(|number| bout(number, "")));
    let worker = start(fake.serve().await, |config| {
        config.prefetch = Some(3);
        config.grace = Duration::from_millis(400);
    });
    fake.until("all are lent and two are played", |state| {
        let started = |beat: &agon_proto::Heartbeat| beat.progress.iter().filter(|one| one.started).count();
        state.heartbeats.last().is_some_and(|beat| beat.progress.len() == 5 && started(beat) == 2)
    })
    .await;
    // One that is played and one that waits are not adopted.
    fake.state().not_adopted = vec![bout(0, "").lease, bout(4, "").lease];
    fake.cut_sessions();
    fake.until("it is back with three", |state| {
        state.hellos.len() == 2
            && state.heartbeats.last().is_some_and(|beat| {
                beat.progress.len() == 3 && beat.progress.iter().filter(|one| one.started).count() == 2
            })
    })
    .await;
    let hello = fake.state().hellos[1].clone();
    assert_eq!(hello.held, (0..5).map(|number| bout(number, "").lease).collect::<Vec<_>>());
    assert_eq!(hello.specs, [RUN]);
    // Nothing is ever finished here: draining gives back what waits and gives up what is played.
    let (summary, events) = worker.stop().await;
    assert_eq!((summary.finished, summary.returned, summary.abandoned), (0, 1, 3));
    let dropped = events.iter().filter(|event| matches!(event, WorkerEvent::Dropped { .. })).count();
    assert_eq!(dropped, 2);
    let mut back: Vec<u64> =
        fake.state().returned.iter().flat_map(|one| &one.leases).map(|lease| lease.bout).collect();
    back.sort_unstable();
    assert_eq!(back, [1, 2, 3]);
}

#[tokio::test]
async fn a_drain_finishes_what_is_played_and_gives_back_what_waits() {
    let fake = Fake::new(QUICK);
    lend(&fake, 300);
    let worker = start(fake.serve().await, |config| config.prefetch = Some(100));
    fake.until("something is back", |state| !state.whole.is_empty()).await;
    fake.state().messages.push_back(Kind::Drain(v1::Drain { reason: "enough".to_string() }));
    let summary = worker.task.await.unwrap().unwrap();
    assert_eq!(summary.ended, Ended::Drained { reason: "enough".to_string() });
    assert_eq!((summary.abandoned, summary.unacknowledged), (0, 0));
    let state = fake.state();
    let back: usize = state.returned.iter().map(|one| one.leases.len()).sum();
    assert_eq!((summary.returned, summary.committed), (back as u64, state.whole.len() as u64));
    assert_eq!(back + state.whole.len(), state.lent.len(), "every bout is back, played or not");
    assert!(back > 0);
}

#[tokio::test]
async fn a_revoked_bout_is_given_up_and_its_slot_goes_on() {
    let fake = Fake::new(ENDLESS);
    fake.state().bouts.extend((0..2).map(|number| bout(number, "")));
    let worker = start(fake.serve().await, |config| {
        config.slots = 1;
        config.prefetch = Some(1);
        config.grace = Duration::from_millis(100);
    });
    let playing = |number: u64| {
        move |state: &fake::State| {
            let beat = state.heartbeats.last();
            beat.is_some_and(|beat| beat.progress.iter().any(|one| one.started && one.lease.bout == number))
        }
    };
    fake.until("the first is played", playing(0)).await;
    let revoked = Returned { leases: vec![bout(0, "").lease], reason: "decided".to_string() };
    fake.state().messages.push_back(Kind::Revoke((&revoked).into()));
    fake.until("the second is played", playing(1)).await;
    let (summary, events) = worker.stop().await;
    let dropped = WorkerEvent::Dropped { lease: bout(0, "").lease, reason: "decided".to_string() };
    assert!(events.contains(&dropped));
    assert_eq!((summary.abandoned, summary.finished), (2, 0));
}

#[tokio::test]
async fn a_bout_that_cannot_be_played_is_a_failure_and_no_end() {
    let fake = Fake::new(QUICK);
    fake.state().bouts.extend([bout(0, "1 nonsense"), bout(1, "")]);
    let worker = start(fake.serve().await, |config| config.slots = 1);
    fake.until("both are answered", |state| state.failures.len() == 1 && state.whole.len() == 1).await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.failed, summary.finished, summary.unacknowledged), (1, 1, 0));
    let state = fake.state();
    let (lease, reason) = &state.failures[0];
    assert_eq!(lease.bout, 0);
    assert!(reason.contains("ply 2: `nonsense` is not a legal move"), "{reason}");
}

#[tokio::test]
async fn bouts_that_do_not_fit_are_given_back_with_the_reason() {
    let fake = Fake::new(QUICK);
    let foreign = Lease { run: "other-11111111".to_string(), ..bout(1, "").lease };
    fake.state()
        .bouts
        .extend([Bout { players: vec![0, 1, 0], ..bout(0, "") }, Bout { lease: foreign, ..bout(1, "") }]);
    let worker = start(fake.serve().await, |_| ());
    fake.until("both are back", |state| state.returned.len() == 2).await;
    let (summary, _) = worker.stop().await;
    assert_eq!((summary.returned, summary.finished), (2, 0));
    let state = fake.state();
    let reasons: Vec<&str> = state.returned.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["`players` has 3 entries, and it must have 2 to 2", "its spec was not sent"]);
}

#[tokio::test]
async fn a_refused_hello_ends_the_worker() {
    let fake = Fake::new(QUICK);
    // One that will pass comes first.
    fake.state().refusals.extend([
        Status::unavailable("starting"),
        Status::failed_precondition("this build searches otherwise; install 0.1.0"),
    ]);
    let config = Config::new(fake.serve().await, "tester");
    let error = run(config, pending()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the coordinator refused this worker: this build searches otherwise; install 0.1.0"
    );
    assert!(matches!(error, WorkerError::Refused { code: Code::FailedPrecondition, .. }));
    assert_eq!(fake.state().hellos.len(), 2);
}

#[tokio::test]
async fn submissions_that_are_refused_again_and_again_end_the_worker() {
    let fake = Fake::new(QUICK);
    lend(&fake, 1);
    fake.state().refuse_submissions = Some(Status::invalid_argument("no such field"));
    let error = run(Config::new(fake.serve().await, "tester"), pending()).await.unwrap_err();
    assert!(matches!(error, WorkerError::SubmissionsRefused { times: 5, .. }), "{error}");
}

#[tokio::test]
async fn without_a_coordinator_the_worker_waits_and_says_so() {
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
async fn settings_that_make_no_sense_are_refused() {
    let endpoint = Endpoint::from_static("http://127.0.0.1:1");
    for (slots, name, said) in [(0, "w", "1 to 4096 slots, not 0"), (1, "", "1 to 128 printable characters")]
    {
        let config = Config { slots, ..Config::new(endpoint.clone(), name) };
        let error = run(config, pending()).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
