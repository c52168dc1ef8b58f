//! Workers of builds that do not fit their coordinator.

use std::net::SocketAddr;
use std::sync::Arc;

use agon_proto::v1::worker_client::WorkerClient;
use agon_proto::v1::worker_server::{Worker, WorkerServer};
use agon_proto::v1::{Acknowledgement, CoordinatorMessage, Hello, Submission, WorkerMessage, worker_message};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{StreamExt as _, once};
use tonic::{Request, Response, Status, Streaming};

use crate::processes::{Cluster, Process, until};
use crate::{LONG, quick};

/// Stands between a worker and its coordinator and makes the hello that of another build.
#[derive(Clone)]
struct Between {
    coordinator: String,
    change: Arc<dyn Fn(&mut Hello) + Send + Sync>,
}

#[tonic::async_trait]
impl Worker for Between {
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

/// A worker whose hello is changed so, and what it talks through.
fn worker_as(
    cluster: &Cluster,
    change: impl Fn(&mut Hello) + Send + Sync + 'static,
) -> (Process, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let between = Between { coordinator: cluster.address(), change: Arc::new(change) };
    let address: SocketAddr = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tonic::transport::Server::builder().add_service(WorkerServer::new(between));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        address
    });
    let arguments = ["worker", "--coordinator", &format!("http://{address}"), "--slots", "1"];
    (Process::start_logged(&arguments, cluster.path("misfit.log").into()), runtime)
}

/// What a worker says, and its exit code, whose hello is changed so.
fn told_as(cluster: &Cluster, change: impl Fn(&mut Hello) + Send + Sync + 'static) -> (i32, String) {
    let (mut worker, _runtime) = worker_as(cluster, change);
    (worker.exit_code(), worker.said())
}

#[test]
fn workers_of_a_later_build_take_over_one_after_the_other() {
    let spec = quick(60);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut before = cluster.worker("before");
    cluster.until_run("the old one plays", |run| run["bouts"].as_u64().unwrap() >= 10);
    // The later build speaks versions that the coordinator has not heard of, and this one.
    let (later, _runtime) = worker_as(&cluster, |hello| {
        (hello.protocol_max, hello.build) = (hello.protocol_max + 2, "9.9.9".to_string());
    });
    until("the new one is there", || cluster.ask(&["workers", "--json"]).out.contains("9.9.9").then_some(()));
    assert_eq!(cluster.ask(&["workers", "drain", "before"]).code, 0);
    assert_eq!(before.exit_code(), 0, "{}", before.said());
    cluster.until_run("the run is done", |run| run["state"] == "done");
    assert_eq!(cluster.run()["failed"], 0);
    drop(later);
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn a_worker_of_another_build_is_told_so_and_ends() {
    let cluster = Cluster::start(LONG);
    let (code, said) = told_as(&cluster, |hello| hello.signature = "0123456789abcdef".to_string());
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("searches otherwise than the coordinator's (signature 0123456789abcdef"), "{said}");
    assert!(said.contains("run the same build on both sides"), "{said}");

    let (code, said) = told_as(&cluster, |hello| (hello.protocol_min, hello.protocol_max) = (7, 9));
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("speaks versions 7 to 9 of the protocol and the coordinator 2 to 2; update the"),
        "{said}"
    );

    let (code, said) = told_as(&cluster, |hello| hello.protocol_min = 0);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("`protocol_min` is 0, and it must be from 1"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}
