//! agon.v1: the messages and services of the wire, made at build time, and their conversions to and from domain types.
//!
//! Nothing that came over the wire is used before it went through a conversion here that checks it.

/// The generated messages, clients and servers.
#[allow(missing_docs, clippy::all, reason = "generated; agon.proto documents every message")]
pub mod v1 {
    tonic::include_proto!("agon.v1");
}

/// The descriptors of agon.v1, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agon.v1.descriptors"));
