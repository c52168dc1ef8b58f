//! Shutdown: drains the sessions, cuts off calls that stay open and stops the background tasks.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::info;

use crate::export::{ExportSchedule, export, flush};
use crate::state::Coordinator;
use crate::{BoxFuture, metrics};

/// How long open calls may take to end on shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the last parts may take on shutdown.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for the shutdown signal, then drains the sessions and reports it.
pub(crate) async fn drain(
    shutdown: BoxFuture<()>,
    coordinator: Arc<Coordinator>,
    started: oneshot::Sender<()>,
) {
    shutdown.await;
    info!("draining");
    coordinator.drain();
    let _ = started.send(());
}

/// Waits until open calls should have ended after a drain.
pub(crate) async fn close_deadline(drain_started: oneshot::Receiver<()>) {
    let _ = drain_started.await;
    tokio::time::sleep(CLOSE_TIMEOUT).await;
}

/// The tasks that run beside the services.
pub(crate) struct BackgroundTasks {
    exporter: JoinHandle<()>,
    schedule: ExportSchedule,
    expiry: JoinHandle<()>,
    reservations: JoinHandle<()>,
    metrics: Option<JoinHandle<()>>,
}

impl BackgroundTasks {
    /// Starts the metrics endpoint, the export and the expiry of leases.
    pub(crate) fn spawn(
        coordinator: &Arc<Coordinator>,
        schedule: ExportSchedule,
        metrics: Option<TcpListener>,
    ) -> BackgroundTasks {
        let endpoint = |listener| tokio::spawn(metrics::serve(Arc::clone(coordinator), listener));
        BackgroundTasks {
            metrics: metrics.map(endpoint),
            exporter: tokio::spawn(export(Arc::clone(coordinator), schedule)),
            schedule,
            expiry: tokio::spawn(expire_leases(Arc::clone(coordinator))),
            reservations: tokio::spawn(reserve_grants(Arc::clone(coordinator))),
        }
    }

    /// Stops the tasks. After an orderly end, all bouts that can be exported are exported first.
    pub(crate) async fn stop(self, coordinator: &Coordinator, orderly: bool) {
        if orderly {
            // What takes longer is left to the next process.
            let last = async {
                let _ = self.exporter.await;
                flush(coordinator, self.schedule).await;
            };
            let _ = tokio::time::timeout(EXPORT_TIMEOUT, last).await;
        } else {
            coordinator.drain();
            self.exporter.abort();
        }
        self.expiry.abort();
        self.reservations.abort();
        self.metrics.iter().for_each(JoinHandle::abort);
    }
}

/// Records which bouts may be granted next.
async fn reserve_grants(coordinator: Arc<Coordinator>) {
    if let Err(failure) = coordinator.reserve_grants().await {
        coordinator.fail(failure);
    }
}

/// Expires leases periodically.
async fn expire_leases(coordinator: Arc<Coordinator>) {
    let pause = (coordinator.timing.lease / 20).clamp(Duration::from_millis(20), Duration::from_secs(1));
    loop {
        tokio::time::sleep(pause).await;
        coordinator.expire_leases();
    }
}
