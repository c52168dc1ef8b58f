//! The doors: who is let in, and how one comes in.
//!
//! On the coordinator's side [`Doors`] takes connections, over TLS where it has a certificate ([`tls`]), asks every
//! call for its token ([`tokens`]) and holds everybody to [`Limits`]. On the other side a [`Dialer`] brings
//! what the coordinator asks for. [`authority`] makes the certificates of a private cluster. Every file of them is read again
//! when it changes. Deliberately not here: what a call does, and whose bout is whose.

pub mod authority;
mod caller;
mod dial;
mod door;
mod files;
mod guard;
mod limits;
mod rate;
mod rules;
mod sentences;
mod stream;
pub mod tls;
pub mod tokens;

pub use caller::{Caller, Role};
pub use dial::{Connection, DialError, Dialer, Papers};
pub use door::{DoorEvent, Doors, Incoming, Refusal, Watch};
pub use files::{read_secret, warn_anyway, write_secret};
pub use guard::Guard;
pub use limits::Limits;
pub use rate::Rates;
pub use rules::{Need, is_stream, need};
pub use sentences::{cause, said};
pub use stream::Visit;

/// Why a door cannot be opened: a file that cannot be read or does not make sense, with the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DoorError(pub String);
