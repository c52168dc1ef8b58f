//! A coordinator with a run, for tests.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use agon_proto::v1::{self, coordinator_message::Kind, operator_server::Operator as _};
use agon_proto::{Heartbeat, Hello, Lease, PROTOCOLS, Progress};
use agon_storage::location::Location;
use agon_transport::Caller;
use tokio::sync::mpsc;
use tonic::{Request, Status};

use crate::dataset::Dataset;
use crate::service::operator::OperatorService;
use crate::state::{Coordinator, Recovery, SEND_QUEUE, Timing, lease_ref};
use crate::store::Store;

/// A run of 400 bouts.
pub(crate) const SPEC: &str = r#"
name = "slow"
game = "connect-four"
seed = 1
limit = { nodes = 10 }
openings = { random_plies = 2 }
tournament = { format = "round-robin", bouts = 400 }
[[player]]
name = "a"
search = { algorithm = "pvs", table_mb = 1 }
[[player]]
name = "b"
search = { algorithm = "uct" }
"#;

/// Returns a coordinator without runs.
pub(crate) async fn empty_coordinator(folder: &Path) -> Arc<Coordinator> {
    coordinator_and_disk(folder).await.0
}

/// Returns a coordinator without runs, and the switch with which its disk is full.
pub(crate) async fn coordinator_and_disk(folder: &Path) -> (Arc<Coordinator>, Arc<AtomicBool>) {
    let mut store = Store::open(&folder.join("state")).unwrap();
    let is_full = Arc::clone(&store.is_full);
    let location = Location::Folder(folder.to_path_buf());
    let (dataset, epoch) = Dataset::open(&location, &mut store, false).await.unwrap();
    let recovery = Recovery { epoch, signature: "tests".to_string(), ..Recovery::default() };
    let coordinator = Coordinator::start(store, dataset, Timing::default(), String::new(), recovery).unwrap();
    (coordinator, is_full)
}

/// Returns the request for a run of [`SPEC`].
pub(crate) fn submission() -> Request<v1::SubmitRunRequest> {
    let spec = Some(v1::Spec { text: SPEC.to_string(), ..Default::default() });
    Request::new(v1::SubmitRunRequest { spec, ..Default::default() })
}

/// Returns a coordinator with a run of [`SPEC`].
pub(crate) async fn coordinator(folder: &Path) -> Arc<Coordinator> {
    let coordinator = empty_coordinator(folder).await;
    OperatorService::new(Arc::clone(&coordinator)).submit_run(submission()).await.unwrap();
    coordinator
}

/// Returns the hello of a worker with one slot.
pub(crate) fn hello(coordinator: &Coordinator, worker: &str) -> Hello {
    Hello {
        protocols: PROTOCOLS,
        worker: worker.to_string(),
        build: "1".to_string(),
        slots: 1,
        signature: coordinator.signature.clone(),
        speed: 1.0,
        held: Vec::new(),
        specs: Vec::new(),
        engines: Vec::new(),
    }
}

/// A connected worker on a machine.
pub(crate) struct TestWorker {
    pub(crate) name: String,
    pub(crate) session: u64,
    pub(crate) inbox: mpsc::Receiver<Result<v1::CoordinatorMessage, Status>>,
}

impl TestWorker {
    /// Connects a worker with one slot on the machine with this number.
    pub(crate) async fn connect(coordinator: &Coordinator, name: &str, machine: u8) -> TestWorker {
        TestWorker::connect_with_engines(coordinator, name, machine, &[]).await
    }

    /// Connects a worker with one slot that has engines.
    pub(crate) async fn connect_with_engines(
        coordinator: &Coordinator,
        name: &str,
        machine: u8,
        engines: &[&str],
    ) -> TestWorker {
        let (queue, inbox) = mpsc::channel(SEND_QUEUE);
        let address = Some(IpAddr::from([10, 0, 0, machine]));
        let engines = engines.iter().map(ToString::to_string).collect();
        let hello = Hello { engines, ..hello(coordinator, name) };
        let session = coordinator.connect(&hello, &Caller::anonymous(), address, queue).unwrap();
        coordinator.record_holder(name, session).await;
        TestWorker { name: name.to_string(), session, inbox }
    }

    /// Sends a heartbeat that asks for bouts.
    pub(crate) fn ask(&self, coordinator: &Coordinator, room: usize) {
        let heartbeat = Heartbeat { room, grants_received: u64::MAX, ..Heartbeat::default() };
        coordinator.heartbeat(&self.name, self.session, &heartbeat);
    }

    /// Reports progress of a bout.
    pub(crate) fn play(&self, coordinator: &Coordinator, lease: &Lease, pulse: u64) {
        let progress = Progress { lease: lease.clone(), started: true, game: 0, ply: 1, pulse };
        let heartbeat = Heartbeat { progress: vec![progress], ..Heartbeat::default() };
        coordinator.heartbeat(&self.name, self.session, &heartbeat);
    }

    /// Returns its leases.
    pub(crate) fn leases(&self, coordinator: &Coordinator) -> Vec<Lease> {
        let state = coordinator.lock();
        let leases = state.leases.of_worker(&self.name);
        leases.map(|(key, lease)| Lease::try_from(lease_ref(key, lease.token)).unwrap()).collect()
    }

    /// Asks for a bout and returns its lease.
    pub(crate) fn lease(&self, coordinator: &Coordinator) -> Lease {
        self.ask(coordinator, 1);
        self.leases(coordinator).pop().expect("a bout is grantable")
    }

    /// Returns the reason of each revocation that it received.
    pub(crate) fn revocations(&mut self) -> Vec<String> {
        let messages = std::iter::from_fn(|| self.inbox.try_recv().ok());
        let revocation = |message: Result<v1::CoordinatorMessage, Status>| match message.unwrap().kind {
            Some(Kind::Revoke(revoke)) => Some(revoke.reason),
            _ => None,
        };
        messages.filter_map(revocation).collect()
    }
}
