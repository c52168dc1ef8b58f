//! Results read from parts agree with the rows that were written; damage is reported.

use std::fs;
use std::num::NonZeroUsize;

use agon_analysis::results::{fold, prefixes, results};
use agon_analysis::{Dataset, DatasetError};
use agon_records::GameRow;
use agon_stats::pairs::{PairScore, Pairs};
use agon_stats::sprt::{Bounds, BoutResult, Model, SequentialTest};
use agon_stats::tournament::{BoutCounts, Game, pair_of};
use serde_json::json;

use agon_testing::sample::SampleDataset;
use agon_testing::specs::{PROBE, THREE_SEATS, TOURNAMENT};

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn count(sample: &SampleDataset, thread_count: usize) -> Result<BoutCounts, DatasetError> {
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find(&sample.id)?;
    Ok(results(&dataset, &run, &run.spec()?, threads(thread_count))?.tally)
}

/// Counts the rows of the sample directly.
fn count_rows<'a>(
    sample: &SampleDataset,
    names: &[String],
    bouts: impl Iterator<Item = &'a Vec<GameRow>>,
) -> BoutCounts {
    let mut tally = BoutCounts::new(names.to_vec());
    let number = |name: &String| names.iter().position(|known| known == name).unwrap();
    for games in bouts {
        let game = |row: &GameRow| Game {
            players: row.players.iter().map(number).collect(),
            payoffs: row.payoffs.clone(),
        };
        tally.add(&games.iter().map(game).collect::<Vec<_>>(), 1).unwrap();
    }
    assert!(!sample.bouts.is_empty());
    tally
}

#[test]
fn counts_agree_with_rows() {
    for text in [SampleDataset::three_players(), SampleDataset::play(THREE_SEATS)] {
        let mut sample = text;
        sample.manifest["voided"] = json!([1, 4]);
        sample.write_manifest();
        let tally = count(&sample, 1).unwrap();
        let rows: Vec<Vec<GameRow>> = sample
            .bouts
            .iter()
            .filter(|(bout, _)| ![1, 4].contains(*bout))
            .map(|(_, rows)| rows.games.clone())
            .collect();
        assert_eq!(tally, count_rows(&sample, tally.names(), rows.iter()));
        for threads in [2, 7] {
            assert_eq!(count(&sample, threads).unwrap(), tally);
        }
    }
}

#[test]
fn prefixes_agree_with_rows() {
    let sample = SampleDataset::three_players();
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    let lengths = [0, 1, 5, 6, 29, 30, 1000];
    let found = prefixes(&dataset, &run, &run.spec().unwrap(), &lengths, threads(3)).unwrap();
    assert_eq!(found.len(), lengths.len());
    for (length, tally) in lengths.iter().zip(&found) {
        let rows: Vec<Vec<GameRow>> =
            sample.bouts.range(..length).map(|(_, rows)| rows.games.clone()).collect();
        assert_eq!(*tally, count_rows(&sample, tally.names(), rows.iter()), "{length}");
    }
}

/// The sequential test of a run equals a fold over its bouts in order, up to the end of the run.
#[test]
fn sequential_test_folds_over_schedule() {
    let mut sample = SampleDataset::play(&TOURNAMENT.replace("bouts = 3", "bouts = 12"));
    sample.manifest["voided"] = json!([3]);
    sample.write_manifest();
    let folded = |sample: &SampleDataset, bounds: [f64; 2]| -> Result<SequentialTest, DatasetError> {
        let dataset = Dataset::open(sample.folder()).unwrap();
        let run = dataset.find("latest").unwrap();
        let bounds = Bounds::new(bounds[0], bounds[1], Model::Logistic, 0.05, 0.05).unwrap();
        fold(&dataset, &run, &run.spec().unwrap(), bounds)
    };
    let direct = |sample: &SampleDataset, bounds: [f64; 2]| {
        let mut fold =
            SequentialTest::new(Bounds::new(bounds[0], bounds[1], Model::Logistic, 0.05, 0.05).unwrap());
        for (bout, rows) in &sample.bouts {
            let games: Vec<Game> = rows
                .games
                .iter()
                .map(|row| Game {
                    players: row.players.iter().map(|name| usize::from(name != "deep")).collect(),
                    payoffs: row.payoffs.clone(),
                })
                .collect();
            let (players, [first, second]) = pair_of(&games).unwrap();
            assert_eq!(players, [0, 1]);
            let pair = BoutResult::Pair(PairScore::of(first, second));
            fold.record(*bout, if *bout == 3 { BoutResult::Void } else { pair }).unwrap();
        }
        fold
    };
    for bounds in [[0.0, 5.0], [0.0, 400.0], [-400.0, 0.0]] {
        let (found, expected) = (folded(&sample, bounds).unwrap(), direct(&sample, bounds));
        assert_eq!(
            (found.pairs(), found.llr(), found.decision()),
            (expected.pairs(), expected.llr(), expected.decision())
        );
        assert_eq!(found.prefix(), expected.prefix());
    }
    let Pairs(all) = folded(&sample, [0.0, 5.0]).unwrap().pairs();
    assert_eq!(all.iter().sum::<u64>(), 11);

    // The manifest explains a hole by a failed bout; any other hole is missing.
    sample.bouts.remove(&5);
    sample.write();
    let error = folded(&sample, [0.0, 5.0]).unwrap_err().to_string();
    assert!(error.contains("1 bouts are missing (5), and 0 failed"), "{error}");
    sample.manifest["failed"] = json!(1);
    sample.write();
    assert_eq!(folded(&sample, [0.0, 5.0]).unwrap().prefix(), 12);
    // In a cancelled run a hole may not have failed, so the prefix ends there.
    sample.manifest["state"] = json!("cancelled");
    sample.write_manifest();
    assert_eq!(folded(&sample, [0.0, 5.0]).unwrap().prefix(), 5);
}

#[test]
fn uncountable_parts_are_named() {
    let error_of = |sample: &SampleDataset| count(sample, 2).unwrap_err().to_string();
    let mut sample = SampleDataset::three_players();
    // A missing part.
    fs::remove_file(sample.part_file("games", 4)).unwrap();
    let error = error_of(&sample);
    assert!(
        error.contains(&sample.id) && error.contains("2 bouts are missing (4-5), and 0 failed"),
        "{error}"
    );
    // A missing part of a running run.
    sample.manifest["state"] = json!("running");
    sample.write_manifest();
    assert!(error_of(&sample).contains("2 bouts are missing (4-5)"));
    // The last part of a running run may not be published yet.
    sample.write();
    fs::remove_file(sample.part_file("games", 28)).unwrap();
    assert_eq!(count(&sample, 2).unwrap().bouts(), 28);
    // But not if it precedes the manifest.
    sample.manifest["exported"] = json!(30);
    sample.write_manifest();
    assert!(error_of(&sample).contains("2 bouts are missing (28-29), and 0 failed"));
    sample.manifest["exported"] = json!(0);

    // A damaged part.
    sample.write();
    let mut bytes = fs::read(sample.part_file("games", 6)).unwrap();
    bytes[20] ^= 4;
    fs::write(sample.part_file("games", 6), &bytes).unwrap();
    let error = error_of(&sample);
    assert!(
        error.contains(&sample.part_name("games", 6)) && error.contains("the file is damaged"),
        "{error}"
    );

    // The same bouts in two parts.
    sample.write();
    fs::copy(sample.part_file("games", 6), sample.part_file("games", 90)).unwrap();
    let error = error_of(&sample);
    assert!(error.contains("bout 6: duplicate bout; the first is in games/"), "{error}");

    // An unknown player.
    sample.bout(8).games[0].players[0] = "nobody".to_string();
    sample.write();
    let error = error_of(&sample);
    assert!(
        error.contains(&sample.part_name("games", 8)) && error.contains("the spec has no player `nobody`"),
        "{error}"
    );

    let error = count(&SampleDataset::play(PROBE), 1).unwrap_err();
    assert!(
        error.is_usage_error() && error.to_string().contains("is a probe: it has searches and no games"),
        "{error}"
    );
}
