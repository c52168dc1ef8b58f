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

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use agon_proto::v1::worker_client::WorkerClient;
    use agon_proto::v1::worker_message::Kind;
    use agon_proto::{Hello, Lease, v1};
    use agon_transport::Caller;
    use tokio::sync::mpsc;
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;
    use crate::fixtures::{coordinator, hello};
    use crate::state::SEND_QUEUE;

    /// Returns whether this process runs only the test with this name; otherwise runs it in a process of its own, because
    /// tests that run at the same time share their memory.
    fn is_alone(test: &str) -> bool {
        const ALONE: &str = "AGON_TEST_ALONE";
        if std::env::var_os(ALONE).is_some() {
            return true;
        }
        let name = format!("serve::tests::{test}");
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        let output = process.args([&name, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        println!("{text}");
        false
    }

    /// Returns the memory of this process in MB.
    fn memory() -> u64 {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096 / 1_000_000
    }

    /// Returns the hello of a worker that claims leases and specs which do not exist.
    fn boastful(coordinator: &Coordinator, number: u64, claims: u64) -> Hello {
        let lease = |bout| Lease { run: "slow-00000000".to_string(), bout, epoch: 1, sequence: bout };
        Hello {
            held: (0..claims.min(20)).map(lease).collect(),
            specs: (0..claims).map(|claim| format!("unknown-{number}-{claim:08x}")).collect(),
            ..hello(coordinator, &format!("pod-{number}"))
        }
    }

    #[tokio::test]
    async fn ten_thousand_hellos_take_no_lasting_memory() {
        if !is_alone("ten_thousand_hellos_take_no_lasting_memory") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let greet = |numbers: std::ops::Range<u64>| {
            for number in numbers {
                let (queue, _inbox) = mpsc::channel(SEND_QUEUE);
                let hello = boastful(&coordinator, number, 100);
                let session = coordinator.connect(&hello, &Caller::anonymous(), None, queue).unwrap();
                coordinator.disconnect(&hello.worker, session);
                if number % 100 == 0 {
                    coordinator.expire_leases(coordinator.now());
                }
            }
        };
        greet(0..2000);
        coordinator.settle().await;
        let before = memory();
        greet(2000..12_000);
        coordinator.settle().await;
        let after = memory();
        println!("{before} MB before 10,000 hellos of 100 runs and 20 leases, {after} MB after");
        assert!(after < before + 16, "{before} MB, then {after} MB");
        assert!(coordinator.workers().len() < 2000);
    }

    #[tokio::test]
    async fn large_hellos_take_no_lasting_memory() {
        if !is_alone("large_hellos_take_no_lasting_memory") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        let service = services(&coordinator).await;
        let server = tokio::spawn(Server::builder().add_routes(service).serve_with_incoming(incoming));
        let mut client = WorkerClient::connect(format!("http://{address}")).await.unwrap();
        let mut answers = 0;
        let mut before = 0;
        for number in 0..220 {
            if number == 20 {
                before = memory();
            }
            let kind = Some(Kind::Hello((&boastful(&coordinator, number, 40_000)).into()));
            let (messages, outbound) = mpsc::channel(1);
            messages.send(v1::WorkerMessage { kind }).await.unwrap();
            let answer = client.session(ReceiverStream::new(outbound)).await;
            answers += u64::from(answer.is_ok());
        }
        let after = memory();
        println!(
            "{before} MB before 200 hellos of many runs, of which {answers} were answered, {after} MB after"
        );
        assert_eq!(answers, 220, "every hello is read and answered");
        assert!(after < before + 40, "{before} MB, then {after} MB");
        server.abort();
    }
}
