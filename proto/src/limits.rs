//! The bounds of all messages. An error names the bound that a message exceeds.

/// The bytes of the largest message: a spec with its files.
pub const MAX_MESSAGE_BYTES: usize = MAX_SPEC_BYTES + (1 << 20);

/// The bytes of the largest message of a worker's session: one with [`MAX_LEASES`] leases.
pub const MAX_SESSION_BYTES: usize = 8 << 20;

/// The bytes of the largest message of an operator that has no spec.
pub const MAX_REQUEST_BYTES: usize = 64 << 10;

/// The bytes of the largest request for health.
pub const MAX_HEALTH_BYTES: usize = 1 << 10;

/// The bytes of a spec and its files together.
pub const MAX_SPEC_BYTES: usize = 16 << 20;

/// The most files of a spec.
pub const MAX_SPEC_FILES: usize = 16;

/// The bytes of a file's name.
pub const MAX_FILE_NAME: usize = 1024;

/// The bytes of the largest message of a submission.
pub const MAX_SUBMISSION_BYTES: usize = 2 << 20;

/// The bytes of all messages of a bout together.
pub const MAX_BOUT_BYTES: usize = 256 << 20;

/// The most plies in one message.
pub const MAX_BATCH_MOVES: usize = 256;

/// The plies that a worker collects into one message. Even with the longest lines they fit.
pub const BATCH_MOVES: usize = 32;

/// The most plies of a game: their numbers fit into 16 bits.
pub const MAX_PLIES: usize = 1 << 16;

/// The most seats of a game.
pub const MAX_SEATS: usize = 64;

/// The most players of a spec, and of a probe.
pub const MAX_PLAYERS: usize = 1000;

/// The most parameters of a tune.
pub const MAX_PARAMETERS: usize = 64;

/// The bytes of a run id.
pub const MAX_RUN_ID: usize = 128;

/// The bytes of a worker's name.
pub const MAX_WORKER_NAME: usize = 128;

/// The bytes of a build's version and of a signature.
pub const MAX_BUILD: usize = 128;

/// The bytes of an ending.
pub const MAX_ENDING: usize = 128;

/// The bytes of a move's text.
pub const MAX_MOVE: usize = 512;

/// The bytes of a principal variation, and of the position and the moves of an opening.
pub const MAX_LINE: usize = 32 << 10;

/// The largest counter of a search: exact as a float, and safe in sums.
pub const MAX_COUNT: u64 = 1 << 53;

/// The most completed depths of a search.
pub const MAX_DEPTHS: usize = agon_search::value::MAX_PLY;

/// The most nodes per second of a worker.
pub const MAX_SPEED: u64 = agon_search::rate::MAX_RATE as u64;

/// The largest absolute payoff.
pub const MAX_PAYOFF: i32 = 1_000_000;

/// The bytes of a reason.
pub const MAX_REASON: usize = 4 << 10;

/// The most engines of a worker.
pub const MAX_ENGINES: usize = 1000;

/// The most leases in one message.
pub const MAX_LEASES: usize = 100_000;

/// The most slots of a worker.
pub const MAX_SLOTS: usize = 4096;

/// The end of the year 9999, in microseconds since 1970.
pub const MAX_TIME_US: u64 = 253_402_300_799_999_999;
