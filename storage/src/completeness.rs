//! Compares the bouts of a run in a dataset with the counts in its manifest.

use std::ops::RangeInclusive;

use agon_schedule::{RunManifest, RunState};

use crate::bout_ranges::BoutRanges;

/// Describes missing bouts. Failed bouts leave gaps, and so do bouts that were not played when the run ended. `scheduled` is
/// the number of bouts of the spec, `last_part` the first bout of the last part.
pub fn missing(run: &RunManifest, scheduled: u64, seen: &BoutRanges, last_part: u64) -> Option<String> {
    let RunManifest { state, failed, committed, .. } = run;
    // Voided bouts are present but not counted.
    let voided = run.voided.len() as u64;
    let found = seen.bouts();
    match state {
        RunState::Decided | RunState::Cancelled => (found + failed != committed + voided).then(|| {
            format!(
                "there are {found} bouts, and the run's file counts {committed}, including {failed} failed"
            )
        }),
        // The parts of exported bouts precede the manifest. Only the last part may be newer.
        RunState::Running | RunState::Paused | RunState::Done => {
            let done = *state == RunState::Done;
            let holes = seen.holes(if done { scheduled } else { last_part.max(run.exported) });
            let missing: u64 = holes.iter().map(|hole| hole.end() - hole.start() + 1).sum();
            (missing > *failed || (done && missing < *failed))
                .then(|| format!("{missing} bouts are missing{}, and {failed} failed", list(&holes)))
        }
    }
}

/// Lists the first few gaps in brackets.
pub fn list(holes: &[RangeInclusive<u64>]) -> String {
    const SHOWN: usize = 8;
    let text = |hole: &RangeInclusive<u64>| match (hole.start(), hole.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    let shown: Vec<String> = holes.iter().take(SHOWN).map(text).collect();
    match holes.len() {
        0 => String::new(),
        more if more > SHOWN => format!(" ({}, ...)", shown.join(", ")),
        _ => format!(" ({})", shown.join(", ")),
    }
}
