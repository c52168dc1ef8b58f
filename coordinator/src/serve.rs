//! Wiring: connects the listener, the state, the gRPC services and the background tasks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agon_proto::limits;
use agon_proto::v1::operator_server::OperatorServer;
use agon_proto::v1::worker_server::WorkerServer;
use agon_storage::Location;
use agon_transport::Listener;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tonic::server::NamedService as _;
use tonic::service::Routes;
use tonic::transport::Server;
use tracing::info;

use crate::data::{DataFolder, Purpose};
use crate::recovery::recover;
use crate::service::message_limits::MethodLimit;
use crate::service::operator::OperatorService;
use crate::service::worker::WorkerService;

use crate::state::Coordinator;
use crate::tasks::{self, BackgroundTasks};
use crate::{BoxFuture, Config, CoordinatorError};

/// Specs parsed concurrently; further submissions wait.
const MAX_CONCURRENT_SPECS: usize = 8;
/// The limit of a call's headers.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// The interval and the timeout of HTTP/2 pings.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Boxes [`serve`].
pub(crate) fn start(
    config: Config,
    listener: TcpListener,
    shutdown: BoxFuture<()>,
) -> BoxFuture<Result<(), CoordinatorError>> {
    Box::pin(serve(config, listener, shutdown))
}

/// Serves until `shutdown` is ready or a fatal error occurs.
async fn serve(
    config: Config,
    listener: TcpListener,
    shutdown: BoxFuture<()>,
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
    let background = BackgroundTasks::spawn(&coordinator, config.export, config.metrics);
    coordinator.metrics.set_ready(true);
    let (draining, drain_started) = oneshot::channel();
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(config.limits.streams)
        .serve_with_incoming_shutdown(
            services,
            transport.incoming(listener),
            tasks::drain(shutdown, Arc::clone(&coordinator), draining),
        );
    let served = tokio::select! {
        served = server => served.map_err(CoordinatorError::from),
        failure = coordinator.failure() => Err(failure.into()),
        replaced = folder.replacement() => Err(replaced.into()),
        // Calls that are still open are cut off.
        () = tasks::close_deadline(drain_started) => Ok(()),
    };
    background.stop(&coordinator, served.is_ok()).await;
    served
}

/// Builds the gRPC services.
async fn services(coordinator: &Arc<Coordinator>) -> Routes {
    let (health, health_service) = tonic_health::server::health_reporter();
    // The empty name stands for the whole server.
    let names = ["", WorkerServer::<WorkerService>::NAME, OperatorServer::<OperatorService>::NAME];
    tokio::spawn(tasks::report_health(health, Arc::downgrade(coordinator), names));
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
