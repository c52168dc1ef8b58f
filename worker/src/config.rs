//! The configuration of a worker.

use std::sync::Arc;
use std::time::Duration;

use agon_transport::Connector;

use crate::engine::Engines;
use crate::event::EventHandler;

/// The settings of a worker.
#[derive(Clone)]
pub struct Config {
    /// The coordinator's address and the credentials for it.
    pub connector: Connector,
    /// A unique name that stays the same across reconnects.
    pub name: String,
    /// The version of the program.
    pub build: String,
    /// The number of bouts played at once, at least one.
    pub slots: usize,
    /// The number of bouts held ready beyond them; `None` adapts it to the duration of bouts.
    pub prefetch: Option<usize>,
    /// The time limit for draining.
    pub grace: Duration,
    /// Whether to pin each slot to a core. Suits one worker per machine; several would choose the same cores.
    pub pin: bool,
    /// Whether to accept bouts with time limits while the system throttles the worker.
    pub timed_when_throttled: bool,
    /// The engines that the worker can start.
    pub engines: Engines,
    /// The callback for events.
    pub on_event: EventHandler,
}

impl Config {
    /// Configures one slot per available core, and ignores events.
    pub fn new(coordinator: impl Into<Connector>, name: impl Into<String>) -> Config {
        Config {
            connector: coordinator.into(),
            name: name.into(),
            build: env!("CARGO_PKG_VERSION").to_string(),
            // Respects the limits of control groups.
            slots: std::thread::available_parallelism().map_or(1, usize::from),
            prefetch: None,
            grace: Duration::from_secs(20),
            pin: false,
            timed_when_throttled: false,
            engines: Engines::default(),
            on_event: Arc::new(|_| ()),
        }
    }
}
