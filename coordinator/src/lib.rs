//! The coordinator: schedules bouts, leases them to workers, commits their results and serves operators.
//!
//! [`leases`], [`ledger`], `verification::replication` and `verification::reputation` are pure; [`store`] is the
//! durable state; `state` is the state in memory; [`service`] has the gRPC services; [`export`] writes the [`dataset`].
//! The coordinator never searches: it only replays received games by the rules.

mod audit;
pub mod data;
pub mod dataset;
pub mod export;
pub mod leases;
pub mod ledger;
pub mod maintenance;
pub mod metrics;
mod recovery;
pub mod service;
pub mod standings;
mod state;
pub mod store;
mod verification;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agon_arena::{Spec, SpecSource};
use agon_proto::limits;
use agon_proto::v1::operator_server::OperatorServer;
use agon_proto::v1::worker_server::WorkerServer;
use agon_schedule::{RunState, Schedule, run_id};
use agon_storage::Location;
use agon_transport::tls::TlsFiles;
use agon_transport::{CredentialError, Limits, Listener};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tonic::transport::Server;
use tracing::{info, warn};

use crate::audit::{AuditKind, Entry};
use crate::data::{DataError, DataFolder, Purpose, STATE};
use crate::dataset::Dataset;
use crate::export::{ExportError, export};
use crate::service::message_limits::MethodLimit;
use crate::service::operator::OperatorService;
use crate::service::worker::WorkerService;
use crate::standings::read_summary;
use crate::state::{Coordinator, PersistedRun, Recovery, Run, Timing};
use crate::store::{Store, StoreError, StoredRun};

/// The default state folder of a dataset in an object store.
pub const STATE_FOLDER: &str = "agon-state";

/// The configuration of a coordinator.
#[derive(Debug)]
pub struct Config {
    /// The location of the dataset; a folder holds the state too.
    pub data: Location,
    /// The state folder, if the dataset is in an object store.
    pub state: PathBuf,
    /// Takes ownership of state and dataset even if another coordinator appears to own them.
    pub take_over: bool,
    /// Heartbeats and leases.
    pub timing: Timing,
    /// Bouts in a full part of the dataset.
    pub part_bouts: u64,
    /// The listener of the metrics endpoint.
    pub metrics: Option<TcpListener>,
    /// The server certificate and the client authentication.
    pub tls: Option<TlsFiles>,
    /// The file of accepted tokens.
    pub tokens: Option<PathBuf>,
    /// Connection and rate limits.
    pub limits: Limits,
    /// Grants only runs that were submitted to this process.
    pub only_asked: bool,
}

impl Config {
    /// Returns the default configuration for a location.
    pub fn new(data: impl Into<Location>) -> Config {
        Config {
            data: data.into(),
            state: PathBuf::from(STATE_FOLDER),
            take_over: false,
            timing: Timing::default(),
            part_bouts: 500,
            metrics: None,
            tls: None,
            tokens: None,
            limits: Limits::default(),
            only_asked: false,
        }
    }
}

/// How long open calls may take to end on shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the part being written may take on shutdown.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Specs parsed concurrently; further submissions wait.
const MAX_CONCURRENT_SPECS: usize = 8;
/// The limit of a call's headers.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// The interval and the timeout of HTTP/2 pings.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// An error that ends the coordinator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoordinatorError {
    /// The data folder.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The state file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The dataset.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// Certificates or tokens.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The network.
    #[error("cannot serve: {0}")]
    Serve(#[from] tonic::transport::Error),
}

/// Runs a coordinator on a listener until `shutdown` is ready, then drains.
pub fn run(
    config: Config,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Eventually<Result<(), CoordinatorError>> {
    start(config, listener, Box::pin(shutdown))
}

/// A future that is boxed so that it is monomorphised once, in this crate.
type Eventually<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn start(
    config: Config,
    listener: TcpListener,
    shutdown: Eventually<()>,
) -> Eventually<Result<(), CoordinatorError>> {
    Box::pin(serve(config, listener, shutdown))
}

async fn serve(
    config: Config,
    listener: TcpListener,
    shutdown: Eventually<()>,
) -> Result<(), CoordinatorError> {
    // Credentials are validated before anything is written.
    let observed: Arc<OnceLock<Arc<Coordinator>>> = Arc::default();
    let observer = Arc::clone(&observed);
    let observe = Arc::new(move |event| {
        if let Some(coordinator) = observer.get() {
            coordinator.metrics.connection_event(event);
        }
    });
    let transport =
        Listener::new(config.tls.clone(), config.tokens.as_deref(), config.limits.clone(), observe)?;
    let folder = match &config.data {
        Location::Folder(folder) => DataFolder::open(folder, Purpose::Data, config.take_over)?,
        Location::Store(_) => DataFolder::open(&config.state, Purpose::State, config.take_over)?,
    };
    let coordinator = recover(&config, &folder).await?;
    let _ = observed.set(Arc::clone(&coordinator));
    let services = transport.authenticate(services(&coordinator).await);
    if let Ok(address) = listener.local_addr() {
        let (epoch, auth) = (coordinator.epoch, transport.describe());
        info!(%address, epoch, data = %config.data, auth, "listening");
    }
    let monitor =
        config.metrics.map(|listener| tokio::spawn(metrics::serve(Arc::clone(&coordinator), listener)));
    coordinator.metrics.set_ready(true);
    let exporter = tokio::spawn(export(Arc::clone(&coordinator), config.part_bouts));
    let ticker = tokio::spawn(tick(Arc::clone(&coordinator)));
    let (closing, closed) = tokio::sync::oneshot::channel();
    let draining = Arc::clone(&coordinator);
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(config.limits.streams)
        .serve_with_incoming_shutdown(services, transport.incoming(listener), async move {
            shutdown.await;
            info!("draining");
            draining.drain();
            let _ = closing.send(());
        });
    let served = tokio::select! {
        served = server => served.map_err(CoordinatorError::from),
        failure = coordinator.failure() => Err(failure.into()),
        // Calls that are still open are cut off.
        () = async { let _ = closed.await; tokio::time::sleep(CLOSE_TIMEOUT).await } => Ok(()),
    };
    stop(&coordinator, served.is_ok(), exporter, [Some(ticker), monitor]).await;
    served
}

/// Opens store and dataset, and restores the state of an earlier process.
async fn recover(config: &Config, folder: &DataFolder) -> Result<Arc<Coordinator>, CoordinatorError> {
    let store = Store::open(&folder.folder.join(STATE))?;
    let (dataset, epoch) = Dataset::open(&config.data, &store, config.take_over).await?;
    let unreadable = recovery::recover(&store, &dataset).await?;
    let stored = store.runs().await?;
    let recovery = Recovery {
        epoch,
        awaits_workers: epoch > 1 && stored.iter().any(|run| run.state.is_open()),
        quarantine: store.quarantined().await?.into_iter().collect(),
        unreadable,
        only_asked: config.only_asked,
    };
    let coordinator =
        Coordinator::new(store, dataset, config.timing.clone(), config.data.to_string(), recovery);
    let coordinator = Arc::new(coordinator);
    for run in stored {
        resume_run(&coordinator, run).await?;
    }
    coordinator.restore_opinions(coordinator.store.opinions().await?);
    Ok(coordinator)
}

/// Builds the gRPC services.
async fn services(coordinator: &Arc<Coordinator>) -> Routes {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<WorkerServer<WorkerService>>().await;
    health.set_serving::<OperatorServer<OperatorService>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(agon_proto::DESCRIPTORS)
        .build_v1()
        .expect("the descriptors are generated with the code");
    let worker = |limit| {
        let service = WorkerService::new(Arc::clone(coordinator));
        WorkerServer::new(service).max_decoding_message_size(limit)
    };
    let operator = |limit| {
        let service = OperatorService::new(Arc::clone(coordinator));
        OperatorServer::new(service).max_decoding_message_size(limit)
    };
    Routes::new(health_service.max_decoding_message_size(limits::MAX_HEALTH_BYTES))
        .add_service(reflection.max_decoding_message_size(limits::MAX_REQUEST_BYTES))
        .add_service(MethodLimit::new(
            worker(limits::MAX_SUBMISSION_BYTES),
            "/agon.v1.Worker/Session",
            worker(limits::MAX_SESSION_BYTES),
            Semaphore::MAX_PERMITS,
        ))
        .add_service(MethodLimit::new(
            operator(limits::MAX_REQUEST_BYTES),
            "/agon.v1.Operator/SubmitRun",
            operator(limits::MAX_MESSAGE_BYTES),
            MAX_CONCURRENT_SPECS,
        ))
        .prepare()
}

/// Stops the background tasks. After an orderly end, the part being written is finished first.
async fn stop(
    coordinator: &Coordinator,
    orderly: bool,
    exporter: JoinHandle<()>,
    others: [Option<JoinHandle<()>>; 2],
) {
    if orderly {
        // Otherwise the next process finishes the part.
        let _ = tokio::time::timeout(EXPORT_TIMEOUT, exporter).await;
    } else {
        coordinator.drain();
        exporter.abort();
    }
    others.iter().flatten().for_each(JoinHandle::abort);
}

/// Resumes a stored run.
async fn resume_run(coordinator: &Arc<Coordinator>, stored: StoredRun) -> Result<(), CoordinatorError> {
    let (id, mut state) = (stored.id.clone(), stored.state);
    let mut run = match load(&coordinator.store, stored).await? {
        Ok(run) => run,
        Err(reason) => {
            warn!(run = id, reason, "run unreadable");
            return Ok(());
        }
    };
    let decided = run.decided;
    // Games of builds that search differently are only mixed if an operator asks for it.
    if state == RunState::Running && run.signature != coordinator.signature {
        state = RunState::Paused;
        run.state = state;
        coordinator.store.set_state(id.clone(), state, None).await?;
        let reason = format!(
            "started by a build that searches differently (signature {}, this build has {}); finish it with that build, \
             cancel it, or resume it to mix both builds in one run",
            run.signature, coordinator.signature
        );
        warn!(run = id, reason, "run paused");
        coordinator.audit(Entry::new(AuditKind::Paused, reason).run(&id));
    }
    info!(run = id, bouts = run.ledger.done(), state = state.name(), "run resumed");
    coordinator.add_run(&id, run);
    coordinator.spawn_proposal(&id);
    // The earlier process stopped between reaching this decision and storing it.
    if let (true, Some(bout)) = (state.is_open(), decided) {
        coordinator.store.set_state(id.clone(), RunState::Decided, Some(bout)).await?;
        coordinator.end_run(&id, RunState::Decided, Some(bout), "the test has decided");
    }
    Ok(())
}

/// Reads a run from the store. The inner error is for a spec that this build cannot read.
pub(crate) async fn load(store: &Store, stored: StoredRun) -> Result<Result<Run, String>, StoreError> {
    let id = stored.id.clone();
    let damaged = |bout| StoreError::Damaged(format!("bout {bout} of {id} is unreadable"));
    let mut bouts = Vec::new();
    for row in store.summaries(id.clone(), 0, u64::MAX).await? {
        let summary = read_summary(&row);
        if summary.is_none() && !row.failed {
            return Err(damaged(row.bout));
        }
        bouts.push((row.bout, row.worker, summary));
    }
    let cells = store.cells(id.clone()).await?;
    let voided = store.voided(id.clone()).await?.into_iter().collect();
    let files = serde_json::from_str(&stored.files).unwrap_or_default();
    let source = SpecSource { text: stored.text.clone(), files };
    let digest = run_id::digest(&source).unwrap_or_default();
    if state::persisted_tally(&stored).is_none() {
        return Err(StoreError::Damaged(format!("the tally of {id} is unreadable")));
    }
    if digest.is_empty() || !id.contains(&format!("-{}", &digest[..8])) {
        return Err(StoreError::Damaged(format!("the stored spec of {id} does not match its id")));
    }
    let persisted = PersistedRun { stored, bouts, cells, voided };
    let run = Spec::parse(&source)
        .map_err(|error| error.to_string())
        .and_then(|spec| Schedule::resume(spec).map_err(|error| error.to_string()))
        .and_then(|schedule| Run::new(source, schedule, persisted).map_err(|error| error.to_string()));
    Ok(run)
}

/// Expires leases periodically.
async fn tick(coordinator: Arc<Coordinator>) {
    let pause = (coordinator.timing.lease / 20).clamp(Duration::from_millis(20), Duration::from_secs(1));
    loop {
        tokio::time::sleep(pause).await;
        coordinator.expire();
    }
}
