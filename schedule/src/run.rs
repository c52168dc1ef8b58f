//! The state of a run, and the manifest that describes it in the dataset.

use std::collections::BTreeMap;

use agon_arena::{Spec, SpecError, SpecSource};
use agon_stats::sprt::Verdict;
use serde::{Deserialize, Serialize};

/// The state of a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Its bouts are leased to workers.
    #[default]
    Running,
    /// Nothing is leased until an operator resumes it; bouts under way still count.
    Paused,
    /// Every bout is done and exported.
    Done,
    /// A sequential test has decided.
    Decided,
    /// An operator cancelled it.
    Cancelled,
}

impl RunState {
    /// All states with their names.
    pub const ALL: [(RunState, &'static str); 5] = [
        (RunState::Running, "running"),
        (RunState::Paused, "paused"),
        (RunState::Done, "done"),
        (RunState::Decided, "decided"),
        (RunState::Cancelled, "cancelled"),
    ];

    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        RunState::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }

    /// Returns the state with this name.
    pub fn from_name(name: &str) -> Option<RunState> {
        RunState::ALL.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
    }

    /// Returns whether more bouts are wanted.
    pub fn is_open(self) -> bool {
        matches!(self, RunState::Running | RunState::Paused)
    }

    /// Returns the name of the verdict of a sequential test of a run in this state. The verdict of an open run may have to
    /// wait until its bouts are verified. A run that ended before the test decided leaves it undecided.
    pub fn verdict(self, verdict: Verdict) -> &'static str {
        match verdict {
            _ if self.is_open() => "continue",
            _ if self == RunState::Cancelled => "undecided",
            Verdict::H0 => "H0",
            Verdict::H1 => "H1",
            Verdict::Continue => "undecided",
        }
    }

    /// Returns whether every bout before an exported one was played or failed. A run that ended early may lack bouts.
    pub fn has_no_holes(self) -> bool {
        !matches!(self, RunState::Decided | RunState::Cancelled)
    }
}

/// The description of a run in the dataset: `runs/<id>.json`.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct RunManifest {
    /// The id.
    #[serde(rename = "run")]
    pub id: String,
    /// The spec with the files that it names.
    #[serde(flatten, with = "SourceFields")]
    pub source: SpecSource,
    /// The digest of the spec, in hexadecimal.
    pub digest: String,
    /// The version of the program that coordinated the run.
    pub build: String,
    /// The search signature: builds with the same one play the same games.
    pub signature: String,
    /// The game.
    #[serde(default)]
    pub game: String,
    /// The names of the players.
    #[serde(default)]
    pub players: Vec<String>,
    /// The seed.
    #[serde(default)]
    pub seed: u64,
    /// The number of scheduled bouts.
    pub bouts: u64,
    /// The number of bouts done when the manifest was written, failed ones included.
    pub committed: u64,
    /// The number of bouts, from the first, whose parts were written before the manifest; failed ones included. Of a run that
    /// ended early, the number of bouts in the dataset, failed and voided ones included.
    #[serde(default)]
    pub exported: u64,
    /// The number of failed bouts; they have no rows.
    #[serde(default)]
    pub failed: u64,
    /// The number of games in the committed bouts.
    #[serde(default)]
    pub games: u64,
    /// The state.
    pub state: RunState,
    /// The time of submission: microseconds since 1970, UTC.
    pub submitted_us: i64,
    /// The number of bouts that were started and never submitted.
    #[serde(default)]
    pub abandoned: u64,
    /// The bout that decided a sequential test.
    #[serde(default)]
    pub deciding_bout: Option<u64>,
    /// The priority: greater numbers first.
    #[serde(default)]
    pub priority: i32,
    /// Bouts that do not count.
    #[serde(default)]
    pub voided: Vec<u64>,
    /// The state of a tuning run.
    #[serde(default)]
    pub tune: Option<TuneManifest>,
}

/// The part of a manifest that only a tuning run has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TuneManifest {
    /// The method.
    pub method: String,
    /// The number of bouts before the validation: the most that there can be, until the last repeat has ended.
    pub tuning_bouts: u64,
    /// The values at the start.
    pub start: String,
    /// The repeats that have ended.
    #[serde(default)]
    pub ends: Vec<TuneEnd>,
}

/// The end of a repeat of a tuning run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TuneEnd {
    /// The number of bouts up to it.
    pub bouts: u64,
    /// The tuned values.
    pub values: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SpecSource")]
struct SourceFields {
    #[serde(rename = "spec")]
    text: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

impl RunManifest {
    /// Parses the spec.
    pub fn spec(&self) -> Result<Spec, SpecError> {
        Spec::parse(&self.source)
    }

    /// Returns whether all requested bouts were played, or as many as a sequential test needed.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, RunState::Done | RunState::Decided)
    }
}
