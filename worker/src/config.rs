//! What a worker is told at its start.

use std::sync::Arc;
use std::time::Duration;

use agon_transport::Connector;

use crate::event::Watch;

/// The settings of a worker.
#[derive(Clone)]
pub struct Config {
    /// Where the coordinator is, and what to show it.
    pub connector: Connector,
    /// A name that is stable through reconnects and unlike any other worker's.
    pub name: String,
    /// The version of the program.
    pub build: String,
    /// How many bouts are played at once, at least one.
    pub slots: usize,
    /// How many bouts beyond them are held ready; none to follow how long bouts take.
    pub prefetch: Option<usize>,
    /// How long draining may take.
    pub grace: Duration,
    /// Whether each slot stays on a core of its own. Right for one worker that has the machine to itself; wrong for
    /// several, which would choose the same cores.
    pub pin: bool,
    /// Whether bouts by the clock are taken even while the system keeps the worker from running.
    pub timed_when_throttled: bool,
    /// Told of everything that happens.
    pub watch: Watch,
}

impl Config {
    /// A slot for each core that this process may use, and nobody watching.
    pub fn new(coordinator: impl Into<Connector>, name: impl Into<String>) -> Config {
        Config {
            connector: coordinator.into(),
            name: name.into(),
            build: env!("CARGO_PKG_VERSION").to_string(),
            // Knows the limits of control groups.
            slots: std::thread::available_parallelism().map_or(1, usize::from),
            prefetch: None,
            grace: Duration::from_secs(20),
            pin: false,
            timed_when_throttled: false,
            watch: Arc::new(|_| ()),
        }
    }
}
