//! agon.v1: the messages and services of the wire, and their conversions to and from domain types.
//!
//! The conversions check every message from the wire before it is used. [`limits`] has the bounds, [`session`] the small
//! messages, [`bout`] the leased bouts, [`write`](mod@write) and [`assemble`] the two ends of a submission. The package
//! `agon-proto-codegen` generates `generated/`. Connections are elsewhere, and so are the rules of the games.

pub mod assemble;
pub mod bout;
mod check;
pub mod error;
pub mod lease;
pub mod limits;
mod packed;
mod plies;
mod printable;
pub mod session;
pub mod write;

pub use assemble::{Assembled, Assembler, CompleteBout};
pub use bout::LeasedBout;
pub use error::{WireError, WireInteger};
pub use lease::Lease;
pub use printable::Printable;
pub use session::{Heartbeat, Hello, Progress, Returned, Welcome};
pub use write::BoutWriter;

/// The messages, clients and servers generated from agon.proto; `UPDATE_EXPECT=1 cargo test --package agon-proto-codegen`
/// renews them.
#[allow(missing_docs, clippy::all, reason = "generated; agon.proto documents every message")]
pub mod v1 {
    include!("../generated/agon.v1.rs");
}

/// The encoded descriptors of agon.v1, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("../generated/agon.v1.descriptors");

/// The protocol versions that this build supports.
pub const PROTOCOLS: std::ops::RangeInclusive<u32> = 2..=2;
