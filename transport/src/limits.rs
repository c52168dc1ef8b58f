//! How much anybody may ask of a door.

use std::time::Duration;

/// The limits of one coordinator. How long messages may be is the wire's business.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once. Past it whoever has shown nothing yet makes room, the one that came first; if all have, the
    /// newcomer is turned away.
    pub connections: usize,
    /// Calls at once on one connection.
    pub streams: u32,
    /// Calls of operators a second, by caller; twice as many may come at once after a pause.
    pub calls_per_second: u32,
    /// How long a connection may take to its first call, handshakes included.
    pub first_call: Duration,
    /// How long a connection may be there without a call.
    pub idle: Duration,
    /// How long to drain a connection whose handshake failed, so that the client receives the TLS alert.
    pub close_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 16_384,
            streams: 128,
            calls_per_second: 500,
            first_call: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            close_timeout: Duration::from_secs(2),
        }
    }
}
