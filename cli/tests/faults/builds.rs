//! Workers of other builds than their coordinator's.

use std::net::SocketAddr;
use std::sync::Arc;

use agon_proto::v1::worker_client::WorkerClient;
use agon_proto::v1::worker_server::{Worker, WorkerServer};
use agon_proto::v1::{Acknowledgement, CoordinatorMessage, Hello, Submission, WorkerMessage, worker_message};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{StreamExt as _, once};
use tonic::{Request, Response, Status, Streaming};

use crate::{LONG, quick};
use agon_testing::processes::{Cluster, Process, wait_until};

/// A proxy between a worker and its coordinator that changes the worker's hello.
#[derive(Clone)]
struct HelloProxy {
    coordinator: String,
    change: Arc<dyn Fn(&mut Hello) + Send + Sync>,
}

#[tonic::async_trait]
impl Worker for HelloProxy {
    type SessionStream = Streaming<CoordinatorMessage>;
    type SubmitStream = Streaming<Acknowledgement>;

    async fn session(
        &self,
        request: Request<Streaming<WorkerMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let mut messages = request.into_inner().filter_map(Result::ok);
        let mut first = messages.next().await.unwrap();
        if let Some(worker_message::Kind::Hello(hello)) = &mut first.kind {
            (self.change)(hello);
        }
        let mut client = WorkerClient::connect(self.coordinator.clone()).await.unwrap();
        client.session(once(first).chain(messages)).await
    }

    async fn submit(
        &self,
        request: Request<Streaming<Submission>>,
    ) -> Result<Response<Self::SubmitStream>, Status> {
        let mut client = WorkerClient::connect(self.coordinator.clone()).await.unwrap();
        client.submit(request.into_inner().filter_map(Result::ok)).await
    }
}

/// Starts a worker with a changed hello, and returns it with the runtime of its proxy.
fn worker_with_hello(
    cluster: &Cluster,
    change: impl Fn(&mut Hello) + Send + Sync + 'static,
) -> (Process, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = HelloProxy { coordinator: cluster.address(), change: Arc::new(change) };
    let address: SocketAddr = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tonic::transport::Server::builder().add_service(WorkerServer::new(proxy));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        address
    });
    let arguments = ["worker", "--coordinator", &format!("http://{address}"), "--slots", "1"];
    (Process::start_logged(&arguments, cluster.path("changed-hello.log").into()), runtime)
}

/// Returns the exit code and the log of a worker with a changed hello.
fn run_worker_with_hello(
    cluster: &Cluster,
    change: impl Fn(&mut Hello) + Send + Sync + 'static,
) -> (i32, String) {
    let (mut worker, _runtime) = worker_with_hello(cluster, change);
    (worker.wait(), worker.log())
}

#[test]
fn rolling_upgrade_replaces_workers() {
    let spec = quick(60);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut before = cluster.worker("before");
    cluster.wait_for_run("the old worker plays", |run| run["bouts"].as_u64().unwrap() >= 10);
    // The newer build supports this protocol version and unknown ones.
    let (newer, _runtime) = worker_with_hello(&cluster, |hello| {
        (hello.protocol_max, hello.build) = (hello.protocol_max + 2, "9.9.9".to_string());
    });
    wait_until("the new worker is connected", || {
        cluster.agon(&["workers", "--json"]).out.contains("9.9.9").then_some(())
    });
    assert_eq!(cluster.agon(&["workers", "drain", "before"]).code, 0);
    assert_eq!(before.wait(), 0, "{}", before.log());
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    assert_eq!(cluster.last_run()["failed"], 0);
    drop(newer);
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn incompatible_worker_exits_with_reason() {
    let cluster = Cluster::start(LONG);
    let (code, log) =
        run_worker_with_hello(&cluster, |hello| hello.signature = "0123456789abcdef".to_string());
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("searches differently (signature 0123456789abcdef, coordinator "), "{log}");
    assert!(log.contains("run the same build on both sides"), "{log}");

    let (code, log) =
        run_worker_with_hello(&cluster, |hello| (hello.protocol_min, hello.protocol_max) = (7, 9));
    assert_eq!(code, 1, "{log}");
    assert!(
        log.contains("supports protocol versions 7 to 9 and the coordinator 2 to 2; update the"),
        "{log}"
    );

    let (code, log) = run_worker_with_hello(&cluster, |hello| hello.protocol_min = 0);
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("`protocol_min` is 0, and it must be from 1"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}
