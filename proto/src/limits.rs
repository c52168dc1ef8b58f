//! Every bound of the wire in one place. What is longer, more or larger is refused with a sentence that names the bound.

/// The largest message there is: a spec with its files, from an operator or to a worker.
pub const MAX_MESSAGE_BYTES: usize = MAX_SPEC_BYTES + (1 << 20);

/// The largest message of a worker's session: all leases that there can be.
pub const MAX_SESSION_BYTES: usize = 8 << 20;

/// The largest message of an operator, but for a spec.
pub const MAX_REQUEST_BYTES: usize = 64 << 10;

/// The largest question whether the coordinator lives.
pub const MAX_HEALTH_BYTES: usize = 1 << 10;

/// The text of a spec and of its files together.
pub const MAX_SPEC_BYTES: usize = 16 << 20;

/// Files that a spec names.
pub const MAX_SPEC_FILES: usize = 16;

/// The name of a file.
pub const MAX_FILE_NAME: usize = 1024;

/// The largest message of a submission.
pub const MAX_SUBMISSION_BYTES: usize = 2 << 20;

/// All messages of one bout together.
pub const MAX_BOUT_BYTES: usize = 256 << 20;

/// The most plies in one message.
pub const MAX_BATCH_MOVES: usize = 256;

/// Plies after which a worker sends what it has; a search of theirs with the longest line fits a message many times.
pub const BATCH_MOVES: usize = 32;

/// The most plies of a game: their numbers fit the column.
pub const MAX_PLIES: usize = 1 << 16;

/// The most seats of a game.
pub const MAX_SEATS: usize = 64;

/// The most players of a spec, and of a probe.
pub const MAX_PLAYERS: usize = 1000;

/// The most parameters of a tune.
pub const MAX_PARAMETERS: usize = 64;

/// The id of a run.
pub const MAX_RUN_ID: usize = 128;

/// The name of a worker.
pub const MAX_WORKER_NAME: usize = 128;

/// A build's version and a signature.
pub const MAX_BUILD: usize = 128;

/// How a game ended.
pub const MAX_ENDING: usize = 128;

/// A move in words.
pub const MAX_MOVE: usize = 512;

/// A principal variation in words, and the position and the moves of an opening.
pub const MAX_LINE: usize = 32 << 10;

/// The largest count of a search: what a float still holds exactly, and far from where sums overflow.
pub const MAX_COUNT: u64 = 1 << 53;

/// The most completed depths of a search.
pub const MAX_DEPTHS: usize = 1024;

/// The largest payoff, gained or lost.
pub const MAX_PAYOFF: i32 = 1_000_000;

/// A sentence of a person or of an error.
pub const MAX_REASON: usize = 4 << 10;

/// The most leases in one message.
pub const MAX_LEASES: usize = 100_000;

/// The most slots of a worker.
pub const MAX_SLOTS: usize = 4096;

/// The end of the year 9999, in microseconds since 1970.
pub const MAX_TIME_US: u64 = 253_402_300_799_999_999;
