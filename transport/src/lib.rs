//! Authenticated connections between a coordinator and its clients.
//!
//! On the coordinator, a [`Listener`] accepts connections, over TLS where it has a certificate ([`tls`]), authenticates
//! each call by its token ([`tokens`]) and enforces [`Limits`]. On a client, a [`Connector`] connects and presents
//! [`ClientCredentials`]. [`authority`] issues the certificates for a private cluster. Certificate and token files are
//! reloaded when they change. What a call does, and which worker holds which bout, is the coordinator's concern.

mod auth;
pub mod authority;
mod caller;
mod connections;
mod connector;
mod error_text;
mod files;
mod limits;
mod listener;
mod permissions;
mod rate_limit;
mod stream;
pub mod tls;
pub mod tokens;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use auth::AuthService;
pub use caller::{Caller, Role};
pub use connections::ConnectionInfo;
pub use connector::{ClientCredentials, ConnectError, Connection, Connector};
pub use error_text::status_text;
pub use files::{warn_operator, write_secret};
pub use limits::Limits;
pub use listener::{ConnectionEvent, EventHandler, Incoming, Listener, Rejection};
pub use rate_limit::RateLimiter;
pub use stream::ServerStream;

/// Locks a mutex. Poisoning is ignored: no invariant spans a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A certificate, key or token that cannot be read, parsed or created; the message includes the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialError(pub String);
