//! The gRPC services.

pub(crate) mod message_limits;
pub mod operator;
pub mod worker;
