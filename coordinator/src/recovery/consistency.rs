//! Consistency of the state with itself and with the dataset, checked at each start and by `agon verify --state`.
//!
//! It is quick: the state is checked by its counts, and the dataset by the names of its parts. `agon verify` reads the parts.

use agon_storage::bout_ranges::BoutRanges;
use agon_storage::completeness::list;

use crate::dataset::RunParts;
use crate::durable::Run;

/// Returns what is wrong with the state of a run. `rows` is the number of its bouts in the state file.
pub(crate) fn check_state(run: &Run, rows: u64) -> Vec<String> {
    let (record, total) = (run.record(), run.ledger.total());
    let exported = record.exported;
    let mut problems = Vec::new();
    if exported > total {
        problems.push(format!("{exported} bouts are marked as exported, but the run has {total}"));
    }
    // A run that ended early may have unplayed bouts before an exported one.
    let (counted, voided) = (record.exported_totals.bouts, record.voided.len() as u64);
    let sum = counted + voided;
    if sum > exported || (record.state.has_no_holes() && sum < exported) {
        problems.push(format!(
            "{exported} bouts are marked as exported, but the totals count {counted}, and {voided} are void"
        ));
    }
    let kept = record.kept.len() as u64;
    if rows > kept {
        problems.push(format!(
            "{} bouts of the state do not exist or are among the {exported} exported ones",
            rows - kept
        ));
    }
    if let Some((first, last)) = record.open_part {
        let found = record.kept.range(first..=last.max(first)).count() as u64;
        let is_next = first >= exported && first <= last && last < total;
        let is_complete = first == exported && found == (last - first.min(last)).saturating_add(1);
        if !is_next || (record.state.is_open() && !is_complete) {
            problems
                .push(format!("a part of bouts {first} to {last} is due, but the state has {found} of them"));
        }
    }
    problems
}

/// Returns how the parts of a run contradict the number of its exported bouts: one that is wrong has parts counted twice, or
/// never.
pub(crate) fn check_parts(run: &Run, parts: &RunParts) -> Option<String> {
    let record = run.record();
    let exported = record.exported;
    let is_unknown = |(first, last): &&(u64, u64)| {
        let is_cut = *first < exported && *last >= exported;
        // All bouts of a run that has ended are in the state or exported.
        let is_kept = [first, last].into_iter().all(|bout| record.kept.contains_key(bout));
        is_cut || (*first >= exported && !record.state.is_open() && !is_kept)
    };
    let (first, last) = parts.finished.iter().find(is_unknown)?;
    Some(format!(
        "{exported} bouts are marked as exported, but the dataset has a part of bouts {first} to {last}"
    ))
}

/// Returns which exported bouts of a run the dataset lacks.
pub(crate) fn missing_bouts(run: &Run, parts: &RunParts) -> Option<String> {
    let (record, exported) = (run.record(), run.exported_bouts());
    let mut seen = BoutRanges::default();
    let below = parts.finished.iter().filter(|(first, _)| *first < record.exported);
    for (first, last) in below.filter(|part| !parts.without_moves.contains(part)) {
        seen.add_range(*first..=*last, 0);
    }
    // Failed bouts have no rows, nor do the unplayed bouts of a run that ended early.
    let played = exported - record.exported_totals.failed.min(exported);
    let missing = played.saturating_sub(seen.bouts());
    let holes = if record.state.has_no_holes() { list(&seen.holes(record.exported)) } else { String::new() };
    (missing > 0).then(|| format!("{missing} of {exported} exported bouts are missing in the dataset{holes}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::collections::BTreeSet;

    use agon_arena::{Spec, SpecSource};
    use agon_schedule::{RunState, Schedule};

    use super::*;
    use crate::durable::{Durable, Event};
    use crate::fixtures::SPEC;
    use crate::receipt::NewBout;
    use crate::standings::{RunTotals, encode_checked};
    use crate::store::StoredRun;

    /// Returns a run with this many exported bouts, `counted` of them in the totals, and some bouts in the state.
    fn run(state: RunState, exported: u64, counted: u64, kept: &[u64], part: Option<(u64, u64)>) -> Durable {
        let mut totals = RunTotals::default();
        (totals.bouts, totals.failed) = (counted, counted.min(1));
        let totals = encode_checked(&totals);
        let stored =
            StoredRun { id: "r".to_string(), state, exported, totals, granted: 400, ..StoredRun::default() };
        let source = SpecSource { text: SPEC.to_string(), ..SpecSource::default() };
        let schedule = Schedule::resume(Spec::parse(&source).unwrap()).unwrap();
        let run = Run::new(source, schedule, &stored, Vec::new(), BTreeSet::new()).unwrap();
        let mut durable = Durable::default();
        durable.apply(&mut Event::RunAdded { stored: Box::new(stored), run: Some(Box::new(run)) });
        for &bout in kept {
            let bout = NewBout::of_test("r", bout, "w", [1; 32]);
            durable.apply(&mut Event::BoutCommitted(Box::new(bout)));
        }
        if let Some((first, last)) = part {
            durable.apply(&mut Event::PartAssigned { run: "r".to_string(), first, last });
        }
        durable
    }

    fn parts(finished: &[(u64, u64)]) -> RunParts {
        RunParts { finished: finished.iter().copied().collect(), ..RunParts::default() }
    }

    #[test]
    fn state_with_changed_numbers_is_inconsistent() {
        use RunState::{Cancelled, Done, Running};
        let check = |durable: &Durable, rows| check_state(durable.run("r").unwrap(), rows).join("; ");
        for (state, exported, counted, kept, part) in [
            (Running, 0, 0, &[0, 5][..], None),
            (Running, 16, 16, &[16, 17, 19], Some((16, 17))),
            (Done, 400, 400, &[], None),
            (Cancelled, 400, 90, &[], None),
            (Cancelled, 90, 85, &[95, 99], Some((95, 99))),
        ] {
            assert_eq!(check(&run(state, exported, counted, kept, part), kept.len() as u64), "");
        }
        for (state, exported, counted, rows, part, problem) in [
            (
                Running,
                8,
                16,
                3,
                None,
                "8 bouts are marked as exported, but the totals count 16, and 0 are void",
            ),
            (Running, 24, 16, 3, None, "24 bouts are marked as exported, but the totals count 16"),
            (Done, 392, 400, 0, None, "392 bouts are marked as exported, but the totals count 400"),
            (Cancelled, 80, 90, 0, None, "80 bouts are marked as exported, but the totals count 90"),
            (Running, 500, 500, 0, None, "500 bouts are marked as exported, but the run has 400"),
            (Running, 16, 16, 4, None, "1 bouts of the state do not exist or are among the 16 exported ones"),
            (Running, 16, 16, 3, Some((16, 19)), "a part of bouts 16 to 19 is due, but the state has 3"),
            (Running, 16, 16, 3, Some((17, 17)), "a part of bouts 17 to 17 is due"),
            (Running, 16, 16, 3, Some((17, 16)), "a part of bouts 17 to 16 is due"),
        ] {
            let kept: &[u64] = if rows > 0 { &[16, 17, 19] } else { &[] };
            let kept = if exported > 19 { &[] } else { kept };
            let found = check(&run(state, exported, counted, kept, part), rows);
            assert!(found.contains(problem), "{problem}: {found}");
        }
    }

    #[test]
    fn exported_bouts_end_with_a_part() {
        use RunState::{Cancelled, Done, Paused};
        let check = |state, exported, kept: &[u64], finished: &[(u64, u64)]| {
            let durable = run(state, exported, exported, kept, None);
            check_parts(durable.run("r").unwrap(), &parts(finished))
        };
        assert_eq!(check(Paused, 16, &[], &[(0, 7), (8, 15), (16, 23)]), None, "the dataset may be newer");
        assert_eq!(check(Done, 400, &[], &[(0, 399)]), None);
        assert_eq!(check(Cancelled, 16, &[18, 20], &[(0, 15), (18, 20)]), None, "its end is not stored yet");
        let cut = check(Paused, 12, &[], &[(0, 7), (8, 15)]).unwrap();
        assert_eq!(cut, "12 bouts are marked as exported, but the dataset has a part of bouts 8 to 15");
        assert!(check(Cancelled, 8, &[], &[(0, 7), (8, 15)]).is_some());
    }

    #[test]
    fn missing_parts_are_found() {
        use RunState::{Cancelled, Running};
        let check = |state, exported, counted, parts: &RunParts| {
            missing_bouts(run(state, exported, counted, &[], None).run("r").unwrap(), parts)
        };
        let all = parts(&[(0, 7), (8, 15), (16, 23)]);
        assert_eq!(check(Running, 16, 16, &all), None);
        assert_eq!(check(Running, 17, 17, &parts(&[(0, 7), (8, 15)])), None, "the last one failed");
        let missing = check(Running, 24, 24, &parts(&[(0, 7), (16, 23)])).unwrap();
        assert_eq!(missing, "7 of 24 exported bouts are missing in the dataset (8-15)");
        let without = RunParts { without_moves: BTreeSet::from([(0, 7)]), ..all };
        assert!(check(Running, 24, 24, &without).unwrap().contains("7 of 24"), "a part without moves");
        assert_eq!(check(Cancelled, 400, 20, &parts(&[(0, 7), (8, 20)])), None);
        assert!(check(Cancelled, 400, 20, &parts(&[(0, 7)])).unwrap().starts_with("11 of 20 exported bouts"));
    }
}
