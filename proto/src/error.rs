//! Why something that came over the wire is refused.

use std::fmt;

/// What is wrong with a message, in a sentence that names the field.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Something that must be there is not.
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
        /// Its bytes.
        found: usize,
        /// The bound.
        most: usize,
    },
    /// A list has too many entries or too few.
    #[error("`{field}` has {found} entries, and it must have {least} to {most}")]
    WrongCount {
        /// The field.
        field: &'static str,
        /// Its entries.
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
        found: Whole,
        /// The lower bound.
        least: Whole,
        /// The upper bound.
        most: Whole,
    },
    /// A number is infinite or not a number.
    #[error("`{field}` is {found}, and it must be a finite number")]
    NotFinite {
        /// The field.
        field: &'static str,
        /// The number.
        found: String,
    },
    /// A message within a message does not decode.
    #[error("`{field}` cannot be decoded: {reason}")]
    Garbled {
        /// The field.
        field: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A text has characters that do not print.
    #[error("`{field}` has a control character; leave it out")]
    ControlCharacter {
        /// The field.
        field: &'static str,
    },
    /// A word of a list of words is not known.
    #[error("`{field}` has the value {found}, which this build does not know")]
    UnknownValue {
        /// The field.
        field: &'static str,
        /// The number of the word.
        found: i32,
    },
    /// A message is of another bout.
    #[error("the message belongs to {found}, not to {expected}")]
    AnotherLease {
        /// The lease of the message.
        found: String,
        /// The lease of the bout.
        expected: String,
    },
    /// A message comes when another one must come.
    #[error("{found} came where {expected} must come")]
    OutOfOrder {
        /// What came.
        found: String,
        /// What must come.
        expected: String,
    },
    /// Values that the run does not tune.
    #[error("the values are not such as the tune of the run allows")]
    Values,
    /// What arrived is not what was sent.
    #[error("the digest of the bout's {what} does not fit what arrived; send the bout again from its head")]
    Digest {
        /// Of what.
        what: &'static str,
    },
}

impl From<WireError> for tonic::Status {
    fn from(error: WireError) -> tonic::Status {
        tonic::Status::invalid_argument(error.to_string())
    }
}

/// A whole number of any width that the wire has, kept as its sign and size: an error must stay small, and needs no more than
/// the alignment of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whole {
    negative: bool,
    size: u64,
}

impl From<i128> for Whole {
    /// What is beyond 64 bits is as large as they can say.
    fn from(number: i128) -> Whole {
        Whole { negative: number < 0, size: u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX) }
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", if self.negative { "-" } else { "" }, self.size)
    }
}
