//! agon.v1: the messages and services of the wire, and their conversions to and from domain types.
//!
//! Nothing that came over the wire is used before it went through a conversion here that checks it: [`limits`] has every
//! bound, [`session`] the small messages, [`bout`] what is lent, [`write`](mod@write) and [`assemble`] the two ends of a
//! submission. `generated/` is made of agon.proto by the test `generated`. Deliberately not here: connections, and whether a game was played by the rules, which is the referee's.

pub mod assemble;
pub mod bout;
mod check;
pub mod error;
pub mod lease;
pub mod limits;
mod packed;
mod plies;
pub mod session;
pub mod write;

pub use assemble::{Assembled, Assembler, WholeBout};
pub use bout::Bout;
pub use error::{Whole, WireError};
pub use lease::Lease;
pub use session::{Heartbeat, Hello, Progress, Returned, Welcome};
pub use write::BoutWriter;

/// The messages, clients and servers generated from agon.proto; `UPDATE_EXPECT=1 cargo test --package agon-proto-codegen`
/// renews them.
#[allow(missing_docs, clippy::all, reason = "generated; agon.proto documents every message")]
pub mod v1 {
    include!("../generated/agon.v1.rs");
}

/// The descriptors of agon.v1, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("../generated/agon.v1.descriptors");

/// The versions of the protocol that this build speaks.
pub const PROTOCOLS: std::ops::RangeInclusive<u32> = 2..=2;
