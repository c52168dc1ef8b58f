//! Prometheus metrics and health endpoints.
//!
//! Counters are updated by the code that they count; gauges are read from the coordinator on each scrape. A separate
//! listener serves them, so that a monitor needs no access to the workers' network.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agon_transport::{ConnectionEvent, Rejection};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::audit::AuditKind;
use crate::state::Coordinator;

/// A label and its value.
type Labels = Vec<(&'static str, String)>;

/// The timeout of a request, and its maximum size.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_REQUEST_BYTES: usize = 8 << 10;
/// The maximum number of concurrent scrapes.
pub const MAX_SCRAPES: usize = 32;

/// Label values that are exported as 0 from the start, so that `rate()` sees the first event.
const OUTCOMES: [&str; 7] =
    ["committed", "duplicate", "conflict", "stale", "refused", "failed", "not-wanted"];
const ALARMS: [AuditKind; 7] = [
    AuditKind::Quarantined,
    AuditKind::Refused,
    AuditKind::Conflict,
    AuditKind::Disputed,
    AuditKind::Convicted,
    AuditKind::Departs,
    AuditKind::Failed,
];

/// All metrics.
pub struct Metrics {
    registry: Registry,
    ready: AtomicBool,
    bouts: Counter,
    games: Counter,
    moves: Counter,
    grants: Counter,
    expired: Counter,
    parts: Counter,
    submissions: Family<Labels, Counter>,
    audits: Family<Labels, Counter>,
    commit: Histogram,
    check: Histogram,
    export: Histogram,
    connections: Gauge,
    refusals: Family<Labels, Counter>,
    pub(crate) sessions: Gauge,
    pub(crate) slots: Gauge,
    pub(crate) quarantined: Gauge,
    pub(crate) throttled: Gauge,
    pub(crate) leases: Gauge,
    pub(crate) pending: Gauge,
    pub(crate) checks: Gauge,
    pub(crate) waiting: Gauge,
    runs: Family<Labels, Gauge>,
}

/// Registers a metric and returns it.
fn register<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Registers a histogram of seconds, from 0.1 ms to 26 s, doubling.
fn register_times(registry: &mut Registry, name: &str, help: &str) -> Histogram {
    let histogram = Histogram::new(exponential_buckets(1e-4, 2.0, 19));
    registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
    histogram
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::with_prefix("agon");
        let r = &mut registry;
        let metrics = Metrics {
            ready: AtomicBool::new(false),
            bouts: register(r, "bouts", "Bouts committed"),
            games: register(r, "games", "Games in committed bouts"),
            moves: register(r, "moves", "Moves in committed bouts, or searches of probes"),
            grants: register(r, "grants", "Bouts granted to workers"),
            expired: register(r, "leases_expired", "Leases expired without progress"),
            parts: register(r, "parts", "Parts written to the dataset"),
            submissions: register(r, "submissions", "Bouts submitted by workers, by outcome"),
            audits: register(r, "audit_entries", "Audit entries by kind"),
            commit: register_times(r, "commit", "Time from a complete submission to its durable commit"),
            check: register_times(r, "check", "Time to replay the games of a bout by the rules"),
            export: register_times(r, "export", "Time to write one part of the dataset"),
            connections: register(r, "connections", "Open connections"),
            refusals: register(r, "refusals", "Rejected connections and calls by reason"),
            sessions: register(r, "sessions", "Connected workers"),
            slots: register(r, "slots", "Slots of connected workers"),
            quarantined: register(r, "workers_quarantined", "Workers in quarantine"),
            throttled: register(
                r,
                "workers_throttled",
                "Connected workers throttled by their operating system",
            ),
            leases: register(r, "leases", "Leased bouts"),
            pending: register(r, "bouts_pending", "Bouts of running runs not yet committed"),
            checks: register(r, "checks_waiting", "Bouts waiting for replication by another worker"),
            waiting: register(
                r,
                "waiting",
                "1 while grants are stopped because the state or the dataset is not writable",
            ),
            runs: register(r, "runs", "Runs by state"),
            registry,
        };
        for outcome in OUTCOMES {
            let _ = metrics.submissions.get_or_create(&vec![("outcome", outcome.to_string())]);
        }
        for kind in ALARMS {
            let _ = metrics.audits.get_or_create(&vec![("kind", kind.name())]);
        }
        for why in Rejection::ALL {
            let _ = metrics.refusals.get_or_create(&vec![("why", why.name().to_string())]);
        }
        metrics
    }
}

impl Metrics {
    /// Sets whether `/readyz` reports readiness.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Counts a connection event.
    pub(crate) fn connection_event(&self, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Opened => drop(self.connections.inc()),
            ConnectionEvent::Closed => drop(self.connections.dec()),
            ConnectionEvent::Rejected(why) => {
                self.refusals.get_or_create(&vec![("why", why.name().to_string())]).inc();
            }
        }
    }

    pub(crate) fn committed(&self, games: u64, moves: u64) {
        self.bouts.inc();
        self.games.inc_by(games);
        self.moves.inc_by(moves);
    }

    pub(crate) fn granted(&self) {
        self.grants.inc();
    }

    pub(crate) fn lease_expired(&self) {
        self.expired.inc();
    }

    pub(crate) fn part_written(&self, since: Instant) {
        self.parts.inc();
        self.export.observe(since.elapsed().as_secs_f64());
    }

    pub(crate) fn submission(&self, outcome: &str) {
        self.submissions.get_or_create(&vec![("outcome", outcome.to_string())]).inc();
    }

    pub(crate) fn audited(&self, kind: AuditKind) {
        self.audits.get_or_create(&vec![("kind", kind.name())]).inc();
    }

    pub(crate) fn stored(&self, since: Instant) {
        self.commit.observe(since.elapsed().as_secs_f64());
    }

    pub(crate) fn checked(&self, since: Instant) {
        self.check.observe(since.elapsed().as_secs_f64());
    }

    /// Sets the number of runs in a state.
    pub(crate) fn set_runs(&self, state: &str, count: i64) {
        self.runs.get_or_create(&vec![("state", state.to_string())]).set(count);
    }

    /// Encodes all metrics in the OpenMetrics text format.
    fn page(&self) -> String {
        let mut page = String::new();
        encode(&mut page, &self.registry).expect("writing to a String succeeds");
        page
    }
}

/// Serves `/metrics`, `/healthz` and `/readyz` until dropped. Above the limit the oldest connection is closed.
pub(crate) async fn serve(coordinator: Arc<Coordinator>, listener: TcpListener) {
    let service = TowerToHyperService::new(routes(coordinator));
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.retain(|connection| !connection.is_finished());
                if connections.len() >= MAX_SCRAPES {
                    connections.pop_front().iter().for_each(AbortHandle::abort);
                }
                let connection = http1::Builder::new()
                    .keep_alive(false)
                    .max_buf_size(MAX_REQUEST_BYTES)
                    .serve_connection(TokioIo::new(stream), service.clone());
                connections.push_back(tokio::spawn(timeout(REQUEST_TIMEOUT, connection)).abort_handle());
            }
            // Too many open files: retry after connections have closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

fn routes(coordinator: Arc<Coordinator>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get("ok\n"))
        .route("/readyz", get(readiness))
        .fallback((StatusCode::NOT_FOUND, "not found; try /metrics, /healthz or /readyz\n"))
        .method_not_allowed_fallback(async || {
            (StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n")
        })
        .with_state(coordinator)
}

async fn metrics(State(coordinator): State<Arc<Coordinator>>) -> impl IntoResponse {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    coordinator.update_gauges();
    ([(CONTENT_TYPE, OPEN_METRICS)], coordinator.metrics.page())
}

async fn readiness(State(coordinator): State<Arc<Coordinator>>) -> (StatusCode, String) {
    let unready = |reason: String| (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n"));
    if let Some(stuck) = coordinator.stuck_for() {
        return unready(format!("state not written for {} s", stuck.as_secs()));
    }
    match (coordinator.metrics.ready.load(Ordering::Relaxed), coordinator.is_draining()) {
        (true, false) => (StatusCode::OK, "ready\n".to_string()),
        (_, true) => unready("shutting down".to_string()),
        (false, false) => unready("starting".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_and_documentation_name_existing_metrics() {
        let metrics = Metrics::default();
        metrics.submission("conflict");
        metrics.audited(AuditKind::Voided);
        metrics.set_runs("running", 1);
        let page = metrics.page();
        let names = |text: &str| -> Vec<String> {
            let words = text.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '_'));
            words.filter(|word| word.starts_with("agon_") && word.len() > 5).map(str::to_string).collect()
        };
        let existing = names(&page);
        for text in [
            include_str!("../../docs/ops/alerts.yml"),
            include_str!("../../docs/ops/operations.md"),
            include_str!("../../deploy/monitoring/dashboards/agon.json"),
            include_str!("../../deploy/kubernetes/components/autoscale/scaling.yaml"),
        ] {
            for name in names(text).iter().filter(|name| *name != "agon_coordinator") {
                // A histogram's series have suffixes that its name lacks.
                let known = existing
                    .iter()
                    .any(|known| known == name || known.strip_prefix(name.as_str()) == Some("_bucket"));
                assert!(known, "{name} is not a metric");
            }
        }
    }
}
