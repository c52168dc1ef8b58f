//! What the state has rows of.

use agon_schedule::RunState;

use crate::leases::BoutKey;

/// A run as it is stored.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct StoredRun {
    /// Its id.
    pub id: String,
    /// The text of its spec.
    pub text: String,
    /// The files that the spec names, as JSON.
    pub files: String,
    /// Its state.
    pub state: RunState,
    /// Microseconds since 1970 when it was submitted.
    pub submitted_us: i64,
    /// The search signature it is pinned to.
    pub signature: String,
    /// Of a test that has decided, the bout that decided.
    pub decided: Option<u64>,
    /// Runs with a greater number are played first.
    pub priority: i32,
    /// Every bout below is in the dataset, if it was played, and not here any more.
    pub exported: u64,
    /// What is remembered of the bouts that are not here any more, as JSON; empty of none.
    pub folded: String,
    /// The build that it was handed in to.
    pub build: String,
    /// Bouts that were begun and never brought.
    pub abandoned: u64,
}

/// A bout to be stored.
#[derive(Clone, PartialEq, Debug)]
pub struct NewBout {
    /// The run.
    pub run: String,
    /// Its number.
    pub bout: u64,
    /// Who played it.
    pub worker: String,
    /// Of its content; none of a failed one.
    pub digest: Option<[u8; 32]>,
    /// What the standings need of it, as JSON.
    pub summary: String,
    /// Its messages; none of a failed one.
    pub payload: Vec<u8>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Whether another worker is to play it again.
    pub to_check: bool,
}

/// What a worker said of a bout that waits for another worker's word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opinion {
    /// The bout.
    pub key: BoutKey,
    /// Who said it.
    pub worker: String,
    /// Of its content.
    pub digest: [u8; 32],
}

/// What became of a bout that was to be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    /// It is there now.
    New,
    /// It was there with the same content.
    Same,
    /// It was there with another content, which stays.
    Other,
    /// It was there and is in the dataset by now.
    Exported,
    /// The run takes no more bouts.
    NotWanted,
}

/// A stored bout without its messages.
#[derive(Clone, PartialEq, Debug)]
pub struct BoutSummary {
    /// Its number.
    pub bout: u64,
    /// Who played it.
    pub worker: String,
    /// What the standings need of it, as JSON.
    pub summary: String,
    /// Whether it failed.
    pub failed: bool,
}

/// Something that operators may want to read later.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Audit {
    /// Its number, given when it is stored.
    pub number: u64,
    /// Microseconds since 1970.
    pub at_us: i64,
    /// One word for what it is.
    pub kind: String,
    /// The worker it is about; empty of none.
    pub worker: String,
    /// The run it is about; empty of none.
    pub run: String,
    /// The bout it is about.
    pub bout: Option<u64>,
    /// What happened, as a sentence.
    pub text: String,
}

/// Bouts of one pairing that one worker played, by outcome for the pairing's first player: won, lost, drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredCell {
    /// The worker.
    pub worker: String,
    /// The pairing.
    pub pairing: u64,
    /// Won, lost and drawn.
    pub outcomes: [u64; 3],
}
