//! The errors of messages.

use std::fmt;

/// Why a message is rejected. The text names the field.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A required field is missing.
    #[error("`{field}` is missing")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A text or a message is too long.
    #[error("`{field}` has {found} bytes, and at most {most} are allowed")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its length in bytes.
        found: usize,
        /// The bound.
        most: usize,
    },
    /// A list has too many or too few entries.
    #[error("`{field}` has {found} entries, and it must have {least} to {most}")]
    WrongCount {
        /// The field.
        field: &'static str,
        /// Its number of entries.
        found: usize,
        /// The lower bound.
        least: usize,
        /// The upper bound.
        most: usize,
    },
    /// A number is out of its range.
    #[error("`{field}` is {found}, and it must be from {least} to {most}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The number.
        found: WireInteger,
        /// The lower bound.
        least: WireInteger,
        /// The upper bound.
        most: WireInteger,
    },
    /// A number is infinite or not a number.
    #[error("`{field}` is {found}, and it must be a finite number")]
    NotFinite {
        /// The field.
        field: &'static str,
        /// The number.
        found: String,
    },
    /// An embedded message cannot be decoded.
    #[error("`{field}` cannot be decoded: {reason}")]
    Undecodable {
        /// The field.
        field: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// A text has unprintable characters.
    #[error("`{field}` has a control, bidirectional or zero-width character; leave it out")]
    Unprintable {
        /// The field.
        field: &'static str,
    },
    /// An enum has an unknown value.
    #[error("`{field}` has the value {found}, which this build does not know")]
    UnknownValue {
        /// The field.
        field: &'static str,
        /// The value.
        found: i32,
    },
    /// A message belongs to another lease.
    #[error("the message belongs to {found}, not to {expected}")]
    AnotherLease {
        /// The lease of the message.
        found: String,
        /// The lease of the bout.
        expected: String,
    },
    /// A message arrived in the wrong order.
    #[error("received {found}, expected {expected}")]
    OutOfOrder {
        /// The message that arrived.
        found: String,
        /// The expected message.
        expected: String,
    },
    /// The values are not allowed by the run's tuning.
    #[error("the values are outside the bounds of the run's tuning, or the run has none")]
    Values,
    /// The received bout differs from the sent one.
    #[error("the digest of the bout's {what} does not match; send the bout again from its head")]
    Digest {
        /// The digested data.
        what: &'static str,
    },
}

impl From<WireError> for tonic::Status {
    fn from(error: WireError) -> tonic::Status {
        tonic::Status::invalid_argument(error.to_string())
    }
}

/// An integer of any type on the wire as sign and magnitude, which keeps errors small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireInteger {
    negative: bool,
    size: u64,
}

impl From<i128> for WireInteger {
    /// Saturates at 64 bits.
    fn from(number: i128) -> WireInteger {
        WireInteger { negative: number < 0, size: u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX) }
    }
}

impl fmt::Display for WireInteger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", if self.negative { "-" } else { "" }, self.size)
    }
}
