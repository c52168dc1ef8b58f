//! What a monitor reads: counters and gauges for Prometheus, and whether the coordinator lives and serves.
//!
//! Counters are raised where things happen; gauges are taken from the hall when somebody asks. The page is served by a
//! listener of its own, so that a monitor needs nothing of the workers' network.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agon_doors::{DoorEvent, Refusal};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::hall::Hall;

/// A label and its value.
type Labels = Vec<(&'static str, String)>;

/// How long a monitor has for its request, and how long that may be.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_REQUEST: usize = 8 << 10;
/// Monitors that are answered at once.
pub const MOST_MONITORS: usize = 32;

/// What is counted by a label is there with 0 before it happens: from nothing to one is no rate.
const OUTCOMES: [&str; 7] =
    ["committed", "duplicate", "conflict", "stale", "refused", "failed", "not-wanted"];
const ALARMS: [&str; 7] =
    ["quarantined", "refused", "conflict", "disputed", "convicted", "departs", "failed"];

/// Everything that is counted.
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
    sessions: Gauge,
    slots: Gauge,
    quarantined: Gauge,
    throttled: Gauge,
    leases: Gauge,
    pending: Gauge,
    checks: Gauge,
    waiting: Gauge,
    runs: Family<Labels, Gauge>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        // From a tenth of a millisecond to half a minute and more.
        let times = || Histogram::new(exponential_buckets(1e-4, 2.0, 19));
        let mut metrics = Metrics {
            registry: Registry::with_prefix("agon"),
            ready: AtomicBool::new(false),
            bouts: Counter::default(),
            games: Counter::default(),
            moves: Counter::default(),
            grants: Counter::default(),
            expired: Counter::default(),
            parts: Counter::default(),
            submissions: Family::default(),
            audits: Family::default(),
            commit: times(),
            check: times(),
            export: times(),
            connections: Gauge::default(),
            refusals: Family::default(),
            sessions: Gauge::default(),
            slots: Gauge::default(),
            quarantined: Gauge::default(),
            throttled: Gauge::default(),
            leases: Gauge::default(),
            pending: Gauge::default(),
            checks: Gauge::default(),
            waiting: Gauge::default(),
            runs: Family::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("bouts", "Bouts that were stored and counted", metrics.bouts.clone());
        registry.register("games", "Their games", metrics.games.clone());
        registry.register("moves", "Their moves, or searches of a probe", metrics.moves.clone());
        registry.register("grants", "Bouts that were lent", metrics.grants.clone());
        registry.register(
            "leases_expired",
            "Leases of which nothing was heard in time",
            metrics.expired.clone(),
        );
        registry.register("parts", "Parts of the dataset that were written", metrics.parts.clone());
        registry.register(
            "submissions",
            "Bouts that arrived, by what became of them",
            metrics.submissions.clone(),
        );
        registry.register("audit_entries", "What was written down, by its kind", metrics.audits.clone());
        let seconds = Unit::Seconds;
        registry.register_with_unit(
            "commit",
            "From a whole bout to its being durable",
            seconds.clone(),
            metrics.commit.clone(),
        );
        registry.register_with_unit(
            "check",
            "Playing the games of a bout again by the rules",
            seconds.clone(),
            metrics.check.clone(),
        );
        registry.register_with_unit(
            "export",
            "Writing one part of the dataset",
            seconds,
            metrics.export.clone(),
        );
        registry.register("connections", "Connections of anybody", metrics.connections.clone());
        registry.register(
            "refusals",
            "Connections and calls that were not let in, by why",
            metrics.refusals.clone(),
        );
        registry.register("sessions", "Workers that are connected", metrics.sessions.clone());
        registry.register("slots", "Their slots", metrics.slots.clone());
        registry.register(
            "workers_quarantined",
            "Workers that are given nothing",
            metrics.quarantined.clone(),
        );
        registry.register(
            "workers_throttled",
            "Workers that their system keeps from running",
            metrics.throttled.clone(),
        );
        registry.register("leases", "Bouts that are lent now", metrics.leases.clone());
        registry.register(
            "bouts_pending",
            "Bouts of running runs that are not yet stored, lent or not",
            metrics.pending.clone(),
        );
        registry.register("checks_waiting", "Bouts that wait for a second worker", metrics.checks.clone());
        registry.register(
            "waiting",
            "1 while nothing is granted because something cannot be written",
            metrics.waiting.clone(),
        );
        registry.register("runs", "Runs by their state", metrics.runs.clone());
        for outcome in OUTCOMES {
            let _ = metrics.submissions.get_or_create(&vec![("outcome", outcome.to_string())]);
        }
        for kind in ALARMS {
            let _ = metrics.audits.get_or_create(&vec![("kind", kind.to_string())]);
        }
        for why in Refusal::ALL {
            let _ = metrics.refusals.get_or_create(&vec![("why", why.name().to_string())]);
        }
        metrics
    }
}

/// What the hall knows at one moment.
#[derive(Default)]
pub(crate) struct Levels {
    pub(crate) sessions: i64,
    pub(crate) slots: i64,
    pub(crate) quarantined: i64,
    pub(crate) throttled: i64,
    pub(crate) leases: i64,
    pub(crate) pending: i64,
    pub(crate) checks: i64,
    pub(crate) waiting: bool,
    pub(crate) runs: Vec<(&'static str, i64)>,
}

impl Metrics {
    /// The coordinator serves from now on.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Something happened at the door.
    pub(crate) fn door(&self, event: DoorEvent) {
        match event {
            DoorEvent::Opened => drop(self.connections.inc()),
            DoorEvent::Closed => drop(self.connections.dec()),
            DoorEvent::Refused(why) => {
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

    pub(crate) fn noted(&self, kind: &str) {
        self.audits.get_or_create(&vec![("kind", kind.to_string())]).inc();
    }

    pub(crate) fn stored(&self, since: Instant) {
        self.commit.observe(since.elapsed().as_secs_f64());
    }

    pub(crate) fn checked(&self, since: Instant) {
        self.check.observe(since.elapsed().as_secs_f64());
    }

    /// The page in the text format of OpenMetrics.
    fn page(&self, levels: &Levels) -> String {
        self.sessions.set(levels.sessions);
        self.slots.set(levels.slots);
        self.quarantined.set(levels.quarantined);
        self.throttled.set(levels.throttled);
        self.leases.set(levels.leases);
        self.pending.set(levels.pending);
        self.checks.set(levels.checks);
        self.waiting.set(i64::from(levels.waiting));
        for (state, count) in &levels.runs {
            self.runs.get_or_create(&vec![("state", (*state).to_string())]).set(*count);
        }
        let mut page = String::new();
        encode(&mut page, &self.registry).expect("a text takes every line");
        page
    }
}

/// Serves `/metrics`, `/healthz` and `/readyz` until it is dropped. Past so many monitors at once the first makes room.
pub(crate) async fn serve(hall: Arc<Hall>, listener: TcpListener) {
    let mut answering: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                answering.retain(|answer| !answer.is_finished());
                if answering.len() >= MOST_MONITORS {
                    answering.pop_front().iter().for_each(AbortHandle::abort);
                }
                let hall = Arc::clone(&hall);
                let answer = tokio::spawn(async move {
                    // A monitor that goes away in the middle is not our concern.
                    let _ = timeout(PATIENCE, answer(&hall, stream)).await;
                });
                answering.push_back(answer.abort_handle());
            }
            // Too many open files: they are closed again in a while.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Answers one request of HTTP/1.1 and closes.
async fn answer(hall: &Hall, mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        request.extend_from_slice(&buffer[..count]);
    }
    let (status, kind, body) = respond(hall, &request);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if !request.starts_with(b"HEAD ") {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

fn respond(hall: &Hall, request: &[u8]) -> (&'static str, &'static str, String) {
    const TEXT: &str = "text/plain; charset=utf-8";
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", OPEN_METRICS, hall.metrics.page(&hall.levels())),
        ("GET" | "HEAD", "/healthz") => ("200 OK", TEXT, "it lives\n".to_string()),
        ("GET" | "HEAD", "/readyz") => match (hall.metrics.ready.load(Ordering::Relaxed), hall.is_draining())
        {
            (true, false) => ("200 OK", TEXT, "it serves\n".to_string()),
            (_, true) => ("503 Service Unavailable", TEXT, "it shuts down\n".to_string()),
            (false, false) => ("503 Service Unavailable", TEXT, "it is starting\n".to_string()),
        },
        ("GET" | "HEAD", _) => {
            ("404 Not Found", TEXT, "there are /metrics, /healthz and /readyz\n".to_string())
        }
        _ => ("405 Method Not Allowed", TEXT, "only GET\n".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_and_documentation_name_metrics_that_there_are() {
        let metrics = Metrics::default();
        metrics.submission("conflict");
        metrics.noted("voided");
        let page = metrics.page(&Levels { runs: vec![("running", 1)], ..Levels::default() });
        let names = |text: &str| -> Vec<String> {
            let words = text.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '_'));
            words.filter(|word| word.starts_with("agon_") && word.len() > 5).map(str::to_string).collect()
        };
        let there = names(&page);
        for text in [
            include_str!("../../docs/alerts.yml"),
            include_str!("../../docs/operations.md"),
            include_str!("../../deploy/monitoring/dashboards/agon.json"),
            include_str!("../../deploy/kubernetes/components/autoscale/scaling.yaml"),
        ] {
            for name in names(text).iter().filter(|name| *name != "agon_coordinator") {
                // A histogram is named without what its lines end with.
                let known = there
                    .iter()
                    .any(|known| known == name || known.strip_prefix(name.as_str()) == Some("_bucket"));
                assert!(known, "{name} is no metric");
            }
        }
    }
}
