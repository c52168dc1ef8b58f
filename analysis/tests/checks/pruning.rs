//! Pruning statistics agree with a direct computation over all rows and do not depend on threads or parts.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;

use agon_analysis::pruning::{Interval, Pruning, Settings, pruning};
use agon_analysis::{Dataset, DatasetError, PruningError};
use agon_records::{MoveRow, SearchRow, WriteError};
use agon_stats::branching::{effective_branching_factor, growth, minimal_leaves};

use agon_testing::sample::{SampleDataset, write_file};
use agon_testing::specs::{PROBE, TOURNAMENT};

fn settings(threads: usize) -> Settings {
    Settings { replicas: 100, seed: 3, threads: NonZeroUsize::new(threads).unwrap() }
}

fn statistics(sample: &SampleDataset, threads: usize) -> Result<Pruning, PruningError> {
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find(&sample.id).unwrap();
    pruning(&dataset, &run, settings(threads))
}

/// Returns the searches of a player from the rows of the sample.
fn searches<'a>(sample: &'a SampleDataset, player: &str) -> Vec<(&'a MoveRow, &'a SearchRow)> {
    let moves = sample.bouts.values().flat_map(|bout| {
        let probes = bout.probes.iter().map(|probe| &probe.decision);
        bout.moves.iter().chain(probes)
    });
    let searched = moves.filter_map(|row| Some((row, row.search.as_ref()?)));
    searched.filter(|(_, search)| search.player == player).collect()
}

fn assert_close(found: Option<Interval>, expected: Option<f64>, name: &str) {
    match (found, expected) {
        (None, None) => {}
        (Some(found), Some(expected)) => {
            let off = (found.value - expected).abs() / expected.abs().max(1e-9);
            assert!(off < 1e-6, "{name}: {} and {expected}", found.value);
            if let (Some(low), Some(high)) = (found.low, found.high) {
                assert!(
                    low <= found.value * (1.0 + 1e-9) && found.value <= high * (1.0 + 1e-9),
                    "{name}: {found:?}"
                );
            }
        }
        _ => panic!("{name}: {found:?} and {expected:?}"),
    }
}

fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Compares every measure with its direct computation from all rows.
fn compare_with_rows(sample: &SampleDataset, pruning: &Pruning) {
    for player in &pruning.players {
        let rows = searches(sample, &player.player);
        let total =
            |counter: fn(&SearchRow) -> u64| rows.iter().map(|(_, search)| counter(search)).sum::<u64>();
        let time = total(|search| search.time_us);
        let name = &player.player;
        assert_eq!(player.searches, rows.len() as u64);
        // Speeds are absent below five microseconds per search.
        let per_second = |count: u64| ratio(count * 1_000_000, time).filter(|_| time >= 5 * player.searches);
        assert_close(player.nps, per_second(total(|s| s.counters.nodes)), name);
        let simulations = total(|search| search.counters.simulations);
        assert_close(player.sps, per_second(simulations).filter(|_| simulations > 0), name);
        assert_close(
            player.first_move_share,
            ratio(
                total(|search| search.counters.first_move_cutoffs),
                total(|search| search.counters.cutoffs),
            ),
            name,
        );
        assert_close(
            player.hit_rate,
            ratio(total(|search| search.counters.table_hits), total(|search| search.counters.table_probes)),
            name,
        );
        let deep: Vec<_> = rows.iter().filter(|(_, search)| !search.depth_nodes.is_empty()).collect();
        let mean_of_deep = |value: &dyn Fn(&MoveRow, &SearchRow) -> f64| {
            mean(&deep.iter().map(|(row, search)| value(row, search)).collect::<Vec<_>>())
        };
        assert_close(player.mean_depth, mean_of_deep(&|_, search| f64::from(search.depth)), name);
        let branching = |_: &MoveRow, search: &SearchRow| {
            let nodes = *search.depth_nodes.last().unwrap() as f64;
            effective_branching_factor(nodes, search.depth_nodes.len() as u32).unwrap()
        };
        assert_close(player.ebf, mean_of_deep(&branching), name);
        let mut steps = Vec::new();
        for (_, search) in &deep {
            steps.extend(search.depth_nodes.windows(2).map(|pair| growth(pair).unwrap().ln()));
        }
        assert_close(player.growth, mean(&steps).map(f64::exp), name);
        let mut minimal = Vec::new();
        for (row, search) in deep.iter().filter(|(row, _)| row.legal > 1) {
            let trees =
                (1..=search.depth_nodes.len() as u32).map(|d| minimal_leaves(f64::from(row.legal), d));
            let completed = search.depth_nodes.iter().sum::<u64>() as f64 / search.counters.nodes as f64;
            minimal.push((search.counters.leaves as f64 * completed / trees.sum::<f64>()).ln());
        }
        assert_close(player.vs_minimal, mean(&minimal).map(f64::exp), name);
        let mut by_depth: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (_, search) in &rows {
            for (index, &nodes) in search.depth_nodes.iter().enumerate() {
                by_depth.entry(index + 1).or_default().push(nodes as f64);
            }
        }
        let found: Vec<_> = pruning.by_depth.iter().filter(|row| row.player == player.player).collect();
        assert_eq!(found.len(), by_depth.len());
        for (row, (depth, nodes)) in found.into_iter().zip(by_depth) {
            assert_eq!((row.depth, row.searches), (depth, nodes.len() as u64));
            assert_close(Some(row.nodes), mean(&nodes), name);
        }
    }
}

#[test]
fn measures_agree_with_direct_computation() {
    for spec in [TOURNAMENT, PROBE] {
        let sample = SampleDataset::play(spec);
        let pruning = statistics(&sample, 2).unwrap();
        assert!(pruning.complete && pruning.players.iter().all(|player| player.searches > 0));
        compare_with_rows(&sample, &pruning);
    }
}

#[test]
fn players_are_paired_by_position() {
    let sample = SampleDataset::play(PROBE);
    let pruning = statistics(&sample, 2).unwrap();
    let (plain, pruned) = (searches(&sample, "plain"), searches(&sample, "pruned"));
    assert_eq!(pruning.ratios.iter().map(|ratio| ratio.depth).collect::<Vec<_>>(), [1, 2, 3]);
    for ratio in &pruning.ratios {
        let at = |search: &SearchRow| search.depth_nodes[ratio.depth - 1] as f64;
        let logarithms: Vec<f64> =
            plain.iter().zip(&pruned).map(|(one, other)| (at(one.1) / at(other.1)).ln()).collect();
        assert_eq!((ratio.a.as_str(), ratio.b.as_str(), ratio.positions), ("plain", "pruned", 3));
        let found = Interval { value: ratio.ratio, low: ratio.low, high: ratio.high };
        assert_close(Some(found), mean(&logarithms).map(f64::exp), "ratio");
    }
    // The unpruned player has ratio 1, the other the inverse of the last ratio.
    let against = |player: usize| pruning.players[player].vs_minimax.unwrap().value;
    assert_eq!(against(0), 1.0);
    assert!((against(1) * pruning.ratios[2].ratio - 1.0).abs() < 1e-6);
}

/// Counting unpruned trees gives the same result as a player without pruning.
#[test]
fn unpruned_trees_are_counted_without_unpruned_player() {
    let measured = statistics(&SampleDataset::play(PROBE), 1).unwrap();
    let text = PROBE.replace(
        "name = \"plain\"\nsearch = { algorithm = \"minimax\" }",
        "name = \"plain\"\nsearch = { algorithm = \"pvs\" }",
    );
    assert_ne!(text, PROBE);
    let counted = statistics(&SampleDataset::play(&text), 2).unwrap();
    let note = |pruning: &Pruning| {
        pruning.notes.iter().find(|note| note.measure == "vs_minimax").unwrap().note.clone()
    };
    assert_eq!(note(&measured), "measured: plain searched the same positions");
    assert!(note(&counted).starts_with("unpruned trees were counted at 3 positions"), "{}", note(&counted));
    assert_eq!(measured.players[1].vs_minimax, counted.players[1].vs_minimax);
}

#[test]
fn statistics_do_not_depend_on_threads_or_parts() {
    for spec in [TOURNAMENT, PROBE] {
        let sample = SampleDataset::play(spec);
        let text = |threads| serde_json::to_string(&statistics(&sample, threads).unwrap()).unwrap();
        let one = text(1);
        assert_eq!(one, text(4));
        assert_eq!(one, text(32));
        for table in ["moves", "probes", "games"] {
            let _ = fs::remove_dir_all(sample.folder().join(table));
        }
        let place = |table: &str, number: usize| {
            let name = format!("{table}/run={}/part-000000000{number}-0000000009.parquet", sample.id);
            sample.folder().join(name)
        };
        let bouts = || sample.bouts.values();
        if bouts().any(|bout| !bout.moves.is_empty()) {
            // One part instead of two, with a row group per bout.
            let groups = |write: &mut dyn FnMut(&[MoveRow]) -> Result<(), WriteError>| {
                bouts().try_for_each(|bout| write(&bout.moves))
            };
            write_file(&place("moves", 0), &agon_records::write_moves_in_groups(groups).unwrap());
        } else {
            // One part per player, so that positions occur in several parts.
            for player in 0..2 {
                let own = bouts().map(|bout| &bout.probes[player]);
                write_file(&place("probes", player), &agon_records::write_probes(own).unwrap());
            }
        }
        assert_eq!(one, text(1));
        assert_eq!(one, text(3));
    }
}

#[test]
fn voided_bouts_are_excluded() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.manifest["voided"] = serde_json::json!([1]);
    sample.write();
    let pruning = statistics(&sample, 2).unwrap();
    sample.bouts.remove(&1);
    compare_with_rows(&sample, &pruning);
}

#[test]
fn damaged_and_missing_parts_are_named() {
    let sample = SampleDataset::play(TOURNAMENT);
    fs::remove_file(sample.part_file("moves", 2)).unwrap();
    let error = statistics(&sample, 2).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{} is missing; fetch or export it again", sample.part_name("moves", 2))
    );
    fs::remove_file(sample.part_file("games", 2)).unwrap();
    let error = statistics(&sample, 2).unwrap_err();
    assert_eq!(error.to_string(), "no part of moves has the bouts from 2 to 2; fetch or export them again");

    let sample = SampleDataset::play(TOURNAMENT);
    let file = sample.part_file("moves", 2);
    let bytes = fs::read(&file).unwrap();
    for cut in [0, 4, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&file, &bytes[..cut]).unwrap();
        let error = statistics(&sample, 2).unwrap_err();
        assert!(
            matches!(&error, PruningError::Dataset(DatasetError::Part { file: damaged, .. }) if *damaged == file)
        );
    }
    // A changed byte gives a result or an error, never a panic.
    for place in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut changed = bytes.clone();
        changed[place] ^= 0x55;
        fs::write(&file, &changed).unwrap();
        if let Err(error) = statistics(&sample, 2) {
            assert!(
                error.to_string().contains("part-0000000002")
                    || matches!(error, PruningError::UnknownPlayer { .. })
            );
        }
    }
}

#[test]
fn rejects_search_of_unknown_player() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.first_search(1, 0).player = "someone".to_string();
    sample.write();
    let error = statistics(&sample, 2).unwrap_err();
    assert!(error.to_string().contains("searches of `someone`, which is not a player of the run"), "{error}");
}

#[test]
fn exported_bouts_of_an_open_run_are_present() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.bouts.remove(&2);
    sample.manifest["state"] = "running".into();
    sample.write();
    assert!(statistics(&sample, 2).is_ok());
    sample.manifest["exported"] = 3.into();
    sample.write();
    let error = statistics(&sample, 2).unwrap_err();
    assert!(error.to_string().contains("no part of moves has the bouts from 2 to 2"), "{error}");
}

#[test]
fn empty_run_has_empty_statistics() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.bouts.clear();
    sample.manifest["state"] = "running".into();
    sample.write();
    let pruning = statistics(&sample, 2).unwrap();
    assert!(!pruning.complete && pruning.notes.is_empty() && pruning.by_depth.is_empty());
    assert!(pruning.players.iter().all(|player| player.searches == 0 && player.nps.is_none()));
}
