//! The tasks beside the services, their supervision and the orderly end.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tracing::{info, warn};

use crate::export::{ExportSchedule, export, flush};
use crate::owner::panic_text;
use crate::state::{Coordinator, Fatal};
use crate::verification::convictions::void_convicted;
use crate::{BoxFuture, metrics};

/// How long open calls may take to end on shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval at which the health is reported.
const HEALTH_INTERVAL: Duration = Duration::from_secs(1);
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
    others: Vec<JoinHandle<()>>,
}

impl BackgroundTasks {
    /// Starts the export, the expiry of leases, slow computations and the metrics endpoint.
    pub(crate) fn spawn(
        coordinator: &Arc<Coordinator>,
        schedule: ExportSchedule,
        metrics: Option<TcpListener>,
    ) -> BackgroundTasks {
        let shared = || Arc::clone(coordinator);
        let endpoint = metrics.map(|listener| {
            supervise(coordinator, "the metrics endpoint", metrics::serve(shared(), listener))
        });
        let mut others = vec![
            supervise(coordinator, "the expiry of leases", expire_leases(shared())),
            supervise(coordinator, "a computation", shared().compute()),
            supervise(coordinator, "the voiding of bouts", void_convicted(shared())),
        ];
        others.extend(endpoint);
        let exporter = supervise(coordinator, "the export", export(shared(), schedule));
        BackgroundTasks { exporter, schedule, others }
    }

    /// Stops the tasks. After an orderly end, all bouts that can be exported are exported first.
    pub(crate) async fn stop(self, coordinator: &Arc<Coordinator>, orderly: bool) {
        if orderly {
            // What takes longer is left to the next process.
            let last = async {
                let _ = self.exporter.await;
                flush(coordinator, self.schedule).await;
                coordinator.settle().await;
            };
            let _ = tokio::time::timeout(EXPORT_TIMEOUT, last).await;
        } else {
            coordinator.drain();
            self.exporter.abort();
        }
        self.others.iter().for_each(JoinHandle::abort);
    }
}

/// Spawns a task and ends the process with a reason if it panics: the coordinator is useless without it.
pub(crate) fn supervise(
    coordinator: &Arc<Coordinator>,
    task: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let coordinator = Arc::clone(coordinator);
    let running = AbortOnDrop(tokio::spawn(work));
    tokio::spawn(async move {
        let mut running = running;
        if let Err(error) = (&mut running.0).await
            && let Ok(panic) = error.try_into_panic()
        {
            coordinator.fail(Fatal::Task { task, reason: panic_text(&*panic) });
        }
    })
}

/// Aborts a task when its supervisor is aborted.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports by the standard health service whether the coordinator serves: not while the state cannot be written.
pub(crate) async fn report_health(
    reporter: HealthReporter,
    coordinator: Weak<Coordinator>,
    services: [&'static str; 3],
) {
    let mut reported = None;
    while let Some(stuck) = coordinator.upgrade().map(|coordinator| coordinator.stuck_for()) {
        if let Some(stuck) = stuck.filter(|_| reported == Some(ServingStatus::Serving)) {
            warn!(
                seconds = stuck.as_secs(),
                "state not written; health reports that the coordinator does not serve"
            );
        }
        let status = if stuck.is_some() { ServingStatus::NotServing } else { ServingStatus::Serving };
        if reported != Some(status) {
            for service in services {
                reporter.set_service_status(service, status).await;
            }
            reported = Some(status);
        }
        tokio::time::sleep(HEALTH_INTERVAL).await;
    }
}

/// Expires leases periodically.
async fn expire_leases(coordinator: Arc<Coordinator>) {
    loop {
        coordinator.expire_leases(coordinator.now());
        tokio::time::sleep(coordinator.tick()).await;
    }
}
