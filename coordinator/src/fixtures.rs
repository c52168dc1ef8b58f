//! A coordinator with a run, for tests.

use std::path::Path;
use std::sync::Arc;

use agon_proto::v1::{self, operator_server::Operator as _};
use agon_proto::{Hello, PROTOCOLS};
use agon_storage::location::Location;
use tonic::Request;

use crate::dataset::Dataset;
use crate::service::operator::OperatorService;
use crate::state::{Coordinator, Recovery, Timing};
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
    let mut store = Store::open(&folder.join("state")).unwrap();
    let location = Location::Folder(folder.to_path_buf());
    let (dataset, epoch) = Dataset::open(&location, &mut store, false).await.unwrap();
    let recovery = Recovery { epoch, ..Recovery::default() };
    Coordinator::start(store, dataset, Timing::default(), String::new(), recovery).unwrap()
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
        build: String::new(),
        slots: 1,
        signature: coordinator.signature.clone(),
        speed: 1.0,
        held: Vec::new(),
        specs: Vec::new(),
    }
}
