//! Changes whose callers hang up or act at the same time: memory follows the store in every order.

use std::path::Path;
use std::task::{Context, Poll, Waker};

use agon_proto::v1::operator_server::Operator as _;
use agon_schedule::RunState;
use rusqlite::Connection;

use super::*;
use crate::fixtures::{coordinator, empty_coordinator, hello, submission};

/// Returns the states of the only run in the store and in memory.
fn states(coordinator: &Coordinator) -> (RunState, RunState) {
    let stored = coordinator.reader.runs().unwrap().remove(0);
    (stored.state, coordinator.with_run(&stored.id, |run| run.record().state).unwrap())
}

/// Keeps the store from writing until the result is dropped.
fn hold_store(folder: &Path) -> Connection {
    let connection = Connection::open(folder.join("state")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

#[tokio::test]
async fn change_is_completed_if_its_caller_hangs_up() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = coordinator(folder.path()).await;
    let service = OperatorService::new(Arc::clone(&coordinator));
    let mut cancel = service.cancel_run(Request::new(v1::CancelRunRequest { run: "slow".to_string() }));
    assert!(cancel.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(cancel);
    while states(&coordinator) != (RunState::Cancelled, RunState::Cancelled) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn concurrent_changes_leave_the_same_state_in_store_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = coordinator(folder.path()).await;
    let service = OperatorService::new(Arc::clone(&coordinator));
    let run = || "slow".to_string();
    let (cancelled, _) = tokio::join!(
        service.cancel_run(Request::new(v1::CancelRunRequest { run: run() })),
        service.pause_run(Request::new(v1::PauseRunRequest { run: run() })),
    );
    assert_eq!(cancelled.unwrap().into_inner().state(), v1::RunState::Cancelled);
    assert_eq!(states(&coordinator), (RunState::Cancelled, RunState::Cancelled));
    let resumed = service.resume_run(Request::new(v1::ResumeRunRequest { run: run() })).await;
    assert!(resumed.unwrap_err().message().contains("it is cancelled"));
}

#[tokio::test]
async fn concurrent_submissions_of_a_spec_are_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = empty_coordinator(folder.path()).await;
    let service = OperatorService::new(Arc::clone(&coordinator));
    let (one, other) = tokio::join!(service.submit_run(submission()), service.submit_run(submission()));
    let existed = [one, other].map(|status| status.unwrap().into_inner().existed);
    assert!(existed[0] != existed[1], "{existed:?}");
    assert_eq!(coordinator.reader.runs().unwrap().len(), 1);
}

#[tokio::test]
async fn quarantine_is_durable_before_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = coordinator(folder.path()).await;
    let service = OperatorService::new(Arc::clone(&coordinator));
    let (queue, _inbox) = tokio::sync::mpsc::channel(1);
    coordinator.connect(&hello(&coordinator, "w"), &Caller::anonymous(), None, queue).unwrap();
    let request = v1::QuarantineWorkerRequest { worker: "w".to_string(), reason: String::new() };
    let held = hold_store(folder.path());
    let mut call = service.quarantine_worker(Request::new(request));
    assert!(matches!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    drop(held);
    call.await.unwrap();
    assert_eq!(coordinator.reader.quarantined().unwrap().len(), 1);
    assert_eq!(coordinator.reader.audits(Some("w"), None, 9).unwrap().len(), 1);
}
