//! The coordinator: schedules bouts, lends them to workers, keeps what comes back, answers operators.
//!
//! [`schedule`], [`course`], [`leases`], [`ledger`], [`checks`] and [`conduct`] are pure; [`store`] is the durable state; [`hall`] decides what follows from
//! what; [`fleet`] and [`operator`] are the services; [`export`] writes the [`dataset`] to its [`place`], whose one [`owner`] it is. Deliberately not here: searching.
//! Games that arrive are played again by the rules, and that is all.

mod adopt;
pub mod checks;
pub mod conduct;
pub mod course;
pub mod data;
pub mod dataset;
pub mod export;
pub mod fleet;
pub mod hall;
pub mod leases;
pub mod ledger;
pub mod metrics;
pub mod naming;
pub mod operator;
pub mod owner;
pub mod place;
pub mod schedule;
mod sizes;
pub mod standings;
pub mod store;
pub mod upkeep;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agon_arena::{Spec, SpecSource};
use agon_doors::tls::TlsFiles;
use agon_doors::{DoorError, Doors, Limits};
use agon_proto::{limits, v1};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tonic::service::Routes;
use tonic::transport::Server;
use tracing::{info, warn};

use crate::data::{DataError, DataFolder, Purpose, STATE};
use crate::dataset::Dataset;
use crate::export::{ExportError, export};
use crate::hall::{Before, Hall, Remembered, Run, Timing};
use crate::place::Place;
use crate::schedule::Schedule;
use crate::sizes::ByMethod;
use crate::standings::Summary;
use crate::store::{RunState, Store, StoreError, StoredRun};

/// Where the state of a dataset in an object store lies, if nobody says.
pub const STATE_FOLDER: &str = "agon-state";

/// How a coordinator is set up.
#[derive(Debug)]
pub struct Config {
    /// Where the dataset lies, and in a folder the state too.
    pub data: Place,
    /// Where the state lies, if the dataset is in an object store.
    pub state: PathBuf,
    /// Whether the operator says that nobody else works with state and dataset, whatever they say themselves.
    pub take_over: bool,
    /// Heartbeats and leases.
    pub timing: Timing,
    /// How many bouts a full part of the dataset has.
    pub part_bouts: u64,
    /// Where monitors ask, if anywhere.
    pub metrics: Option<TcpListener>,
    /// The certificate that is shown, if any, and whether clients are asked for theirs.
    pub tls: Option<TlsFiles>,
    /// The file of tokens that are asked for, if any.
    pub tokens: Option<PathBuf>,
    /// How much anybody may ask.
    pub limits: Limits,
    /// Whether open runs of before wait until they are handed in again.
    pub only_asked: bool,
}

impl Config {
    /// The usual settings over a place.
    pub fn new(data: impl Into<Place>) -> Config {
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

/// How long calls have to end by themselves after everybody has been told.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a part that is being written may still take then.
const LAST_PART: Duration = Duration::from_secs(5);

/// Specs that are read at once; who hands in more waits.
const SPECS_AT_ONCE: usize = 8;
/// The longest head of a call: paths and tokens are short.
const LONGEST_HEAD: u32 = 16 << 10;
/// How often a silent connection is asked whether it lives, and how long it may take to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Why a coordinator cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoordinatorError {
    /// Its folder.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Its state.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its dataset.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// Its certificates or tokens.
    #[error(transparent)]
    Doors(#[from] DoorError),
    /// Its network.
    #[error("the coordinator cannot serve: {0}")]
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

/// What is boxed is compiled here, once, and not with everybody who waits for it.
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
    // What is wrong with certificates and tokens is found before anything changes.
    let told: Arc<OnceLock<Arc<Hall>>> = Arc::default();
    let watching = Arc::clone(&told);
    let watch = Arc::new(move |event| watching.get().into_iter().for_each(|hall| hall.metrics.door(event)));
    let doors = Doors::new(config.tls, config.tokens.as_deref(), config.limits.clone(), watch)?;
    let folder = match &config.data {
        Place::Folder(folder) => DataFolder::open(folder, Purpose::Data, config.take_over)?,
        Place::Store(_) => DataFolder::open(&config.state, Purpose::State, config.take_over)?,
    };
    let store = Store::open(&folder.folder.join(STATE))?;
    let (dataset, epoch) = Dataset::open(&config.data, &store, config.take_over).await?;
    let strange = adopt::adopt(&store, &dataset).await?;
    let stored = store.runs().await?;
    let before = Before {
        epoch,
        settle: epoch > 1 && stored.iter().any(|run| run.state.is_open()),
        quarantine: store.quarantined().await?.into_iter().collect(),
        strange,
        only_asked: config.only_asked,
    };
    let hall = Hall::new(store, dataset, config.timing.clone(), config.data.to_string(), before);
    let hall = Arc::new(hall);
    for run in stored {
        take_up(&hall, run).await?;
    }
    hall.restore_opinions(hall.store.opinions().await?);

    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<v1::worker_server::WorkerServer<fleet::Fleet>>().await;
    health.set_serving::<v1::operator_server::OperatorServer<operator::Operator>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(agon_proto::DESCRIPTORS)
        .build_v1()
        .expect("the descriptors are made with the code");
    let health_service = health_service.max_decoding_message_size(limits::MAX_HEALTH_BYTES);
    let reflection = reflection.max_decoding_message_size(limits::MAX_REQUEST_BYTES);
    let fleet = |most| {
        let fleet = fleet::Fleet::new(Arc::clone(&hall));
        v1::worker_server::WorkerServer::new(fleet).max_decoding_message_size(most)
    };
    let (submissions, sessions) = (fleet(limits::MAX_SUBMISSION_BYTES), fleet(limits::MAX_SESSION_BYTES));
    let fleet = ByMethod::new(submissions, "/agon.v1.Worker/Session", sessions, Semaphore::MAX_PERMITS);
    let operators = |most| {
        let operator = operator::Operator::new(Arc::clone(&hall));
        v1::operator_server::OperatorServer::new(operator).max_decoding_message_size(most)
    };
    let (asking, specs) = (operators(limits::MAX_REQUEST_BYTES), operators(limits::MAX_MESSAGE_BYTES));
    let operators = ByMethod::new(asking, "/agon.v1.Operator/SubmitRun", specs, SPECS_AT_ONCE);
    let _ = told.set(Arc::clone(&hall));
    if let Ok(address) = listener.local_addr() {
        let asks = doors.describe();
        info!(%address, epoch, data = %config.data, asks, "the coordinator listens");
    }
    let monitored = config.metrics.map(|monitor| tokio::spawn(metrics::serve(Arc::clone(&hall), monitor)));
    hall.metrics.set_ready(true);
    let exporter = tokio::spawn(export(Arc::clone(&hall), config.part_bouts));
    let ticker = tokio::spawn(tick(Arc::clone(&hall)));
    let draining = Arc::clone(&hall);
    let (closing, closed) = tokio::sync::oneshot::channel();
    let services = Routes::new(health_service)
        .add_service(reflection)
        .add_service(fleet)
        .add_service(operators)
        .prepare();
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .http2_max_header_list_size(LONGEST_HEAD)
        .max_concurrent_streams(config.limits.streams)
        .serve_with_incoming_shutdown(doors.guard(services), doors.open(listener), async move {
            shutdown.await;
            info!("the coordinator drains");
            draining.drain();
            let _ = closing.send(());
        });
    tokio::select! {
        served = server => served?,
        // Calls that do not end by themselves are cut off: whoever made them sees the connection close.
        () = async { let _ = closed.await; tokio::time::sleep(LAST_WORDS).await } => {}
    }
    ticker.abort();
    // A part that is being written is finished, or else the next life finishes it.
    let _ = tokio::time::timeout(LAST_PART, exporter).await;
    if let Some(monitored) = monitored {
        monitored.abort();
    }
    Ok(())
}

/// Takes up a run that is stored.
async fn take_up(hall: &Arc<Hall>, stored: StoredRun) -> Result<(), CoordinatorError> {
    let (id, mut state) = (stored.id.clone(), stored.state);
    let signature = stored.signature.clone();
    let mut run = match load(&hall.store, stored).await? {
        Ok(run) => run,
        Err(reason) => {
            warn!(run = id, reason, "a stored run is not understood by this program and is left alone");
            return Ok(());
        }
    };
    let decided = run.decided;
    // Games of two builds that search differently cannot be compared: they are not mixed without anybody's knowing.
    if state == RunState::Running && signature != hall.signature {
        state = RunState::Paused;
        run.state = state;
        hall.store.set_state(id.clone(), state, None).await?;
        let reason = format!(
            "it was begun by a build that searches otherwise (signature {signature} and not {}); finish it with that \
             build, cancel it, or resume it and have both in one run",
            hall.signature
        );
        warn!(run = id, reason, "the run is paused");
        hall.note_run("paused", &id, &reason);
    }
    info!(run = id, bouts = run.ledger.done(), state = state.name(), "run taken up");
    hall.add_run(&id, run);
    hall.pursue(&id);
    // A decision that was found but not stored before the end.
    if let (true, Some(bout)) = (state.is_open(), decided) {
        hall.store.set_state(id.clone(), RunState::Decided, Some(bout)).await?;
        hall.end_run(&id, RunState::Decided, Some(bout), "the test has decided");
    }
    Ok(())
}

/// Reads a run from the store. The inner error says why this program does not understand it.
pub(crate) async fn load(store: &Store, stored: StoredRun) -> Result<Result<Run, String>, StoreError> {
    let id = stored.id.clone();
    let damaged = |bout| StoreError::Damaged(format!("bout {bout} of {id} does not read back"));
    let mut bouts = Vec::new();
    for row in store.summaries(id.clone(), 0, u64::MAX).await? {
        let summary = Summary::read(&row);
        if summary.is_none() && !row.failed {
            return Err(damaged(row.bout));
        }
        bouts.push((row.bout, row.worker, summary));
    }
    let cells = store.cells(id.clone()).await?;
    let voided = store.voided(id.clone()).await?.into_iter().collect();
    let files = serde_json::from_str(&stored.files).unwrap_or_default();
    let source = SpecSource { text: stored.text.clone(), files };
    let digest = blake3::hash(source.canonical().unwrap_or_default().as_bytes()).to_hex();
    if hall::remembered_tally(&stored).is_none() {
        return Err(StoreError::Damaged(format!("what was counted of {id} does not read back")));
    }
    if !id.contains(&format!("-{}", &digest[..8])) {
        return Err(StoreError::Damaged(format!("the spec of {id} is not what was handed in")));
    }
    let remembered = Remembered { stored, bouts, cells, voided };
    let run = Spec::parse(&source)
        .map_err(|error| error.to_string())
        .and_then(|spec| Schedule::resume(spec).map_err(|error| error.to_string()))
        .and_then(|schedule| Run::new(source, schedule, remembered).map_err(|error| error.to_string()));
    Ok(run)
}

/// Looks after leases.
async fn tick(hall: Arc<Hall>) {
    let pause = (hall.timing.lease / 20).clamp(Duration::from_millis(20), Duration::from_secs(1));
    loop {
        tokio::time::sleep(pause).await;
        hall.expire();
    }
}
