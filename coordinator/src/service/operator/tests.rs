//! Changes whose callers hang up or act at the same time: memory follows the store in every order.

use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use agon_proto::v1::operator_server::Operator as _;
use agon_schedule::RunState;

use super::*;
use crate::fixtures::{coordinator, empty_coordinator, hello, submission};

/// Returns the states of the only run in the store and in memory.
async fn states(coordinator: &Coordinator) -> (RunState, RunState) {
    let stored = coordinator.store.runs().await.unwrap().remove(0);
    (stored.state, coordinator.with_run(&stored.id, |run| run.state).unwrap())
}

/// Stops the writer of the store until the result is dropped.
fn hold_store(coordinator: &Coordinator) -> mpsc::Sender<()> {
    let (go, wait) = mpsc::channel::<()>();
    let store = coordinator.store.clone();
    tokio::spawn(async move {
        store
            .write(move |_| {
                let _ = wait.recv();
                Ok(())
            })
            .await
    });
    go
}

#[tokio::test]
async fn change_is_completed_if_its_caller_hangs_up() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = coordinator(folder.path()).await;
    let service = OperatorService::new(Arc::clone(&coordinator));
    let mut cancel = service.cancel_run(Request::new(v1::CancelRunRequest { run: "slow".to_string() }));
    assert!(cancel.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(cancel);
    while states(&coordinator).await != (RunState::Cancelled, RunState::Cancelled) {
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
    assert_eq!(states(&coordinator).await, (RunState::Cancelled, RunState::Cancelled));
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
    assert_eq!(coordinator.store.runs().await.unwrap().len(), 1);
}

#[tokio::test]
async fn quarantine_is_durable_before_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = coordinator(folder.path()).await;
    let service = OperatorService::new(Arc::clone(&coordinator));
    let (queue, _inbox) = tokio::sync::mpsc::channel(1);
    coordinator.connect(&hello(&coordinator, "w"), &Caller::anonymous(), queue).unwrap();
    let request = v1::QuarantineWorkerRequest { worker: "w".to_string(), reason: String::new() };
    let held = hold_store(&coordinator);
    // Let the store begin to wait.
    tokio::task::yield_now().await;
    let mut call = service.quarantine_worker(Request::new(request));
    assert!(matches!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    drop(held);
    call.await.unwrap();
    assert_eq!(coordinator.store.quarantined().await.unwrap().len(), 1);
    assert_eq!(coordinator.store.audits(None, None, 9).await.unwrap().len(), 1);
}
