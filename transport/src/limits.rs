//! Connection and rate limits.

use std::time::Duration;

/// The limits of one coordinator. Message sizes are limited by the services.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Concurrent connections. At the limit the oldest unauthenticated connection is closed; if there is none, the new
    /// one is rejected.
    pub connections: usize,
    /// Concurrent calls per connection.
    pub streams: u32,
    /// Operator calls per second and caller; the burst is twice as large.
    pub calls_per_second: u32,
    /// The deadline of a connection's first call, including the handshake.
    pub first_call: Duration,
    /// How long a connection may stay open without a call.
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
