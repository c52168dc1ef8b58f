//! What is counted out of parts is what was played, whoever counts it; what cannot be counted is named.

use std::fs;
use std::num::NonZeroUsize;

use agon_analysis::results::{fold, prefixes, results};
use agon_analysis::{Dataset, DatasetError};
use agon_records::GameRow;
use agon_stats::pairs::{PairScore, Pairs};
use agon_stats::sprt::{Bounds, BoutResult, Fold, Model};
use agon_stats::tournament::{Game, Tally, pair_of};
use serde_json::json;

use crate::sample::{PROBE, SampleDataset, THREE_SEATS, TOURNAMENT};

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn counted(sample: &SampleDataset, count: usize) -> Result<Tally, DatasetError> {
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find(&sample.id)?;
    Ok(results(&dataset, &run, &run.spec()?, threads(count))?.tally)
}

/// The same from the rows themselves.
fn slowly_counted<'a>(
    sample: &SampleDataset,
    names: &[String],
    bouts: impl Iterator<Item = &'a Vec<GameRow>>,
) -> Tally {
    let mut tally = Tally::new(names.to_vec());
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
fn parts_are_counted_as_they_were_played() {
    for text in [SampleDataset::of_three_players(), SampleDataset::play(THREE_SEATS)] {
        let mut sample = text;
        sample.manifest["voided"] = json!([1, 4]);
        sample.write_run();
        let tally = counted(&sample, 1).unwrap();
        let rows: Vec<Vec<GameRow>> = sample
            .bouts
            .iter()
            .filter(|(bout, _)| ![1, 4].contains(*bout))
            .map(|(_, rows)| rows.games.clone())
            .collect();
        assert_eq!(tally, slowly_counted(&sample, tally.names(), rows.iter()));
        for count in [2, 7] {
            assert_eq!(counted(&sample, count).unwrap(), tally);
        }
    }
}

#[test]
fn prefixes_are_counted_in_one_go() {
    let sample = SampleDataset::of_three_players();
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    let lengths = [0, 1, 5, 6, 29, 30, 1000];
    let found = prefixes(&dataset, &run, &run.spec().unwrap(), &lengths, threads(3)).unwrap();
    assert_eq!(found.len(), lengths.len());
    for (length, tally) in lengths.iter().zip(&found) {
        let rows: Vec<Vec<GameRow>> =
            sample.bouts.range(..length).map(|(_, rows)| rows.games.clone()).collect();
        assert_eq!(*tally, slowly_counted(&sample, tally.names(), rows.iter()), "{length}");
    }
}

/// The test of a run is a fold over its bouts one by one, and ends where a run ended early.
#[test]
fn tests_fold_over_the_schedule() {
    let mut sample = SampleDataset::play(&TOURNAMENT.replace("bouts = 3", "bouts = 12"));
    sample.manifest["voided"] = json!([3]);
    sample.write_run();
    let folded = |sample: &SampleDataset, bounds: [f64; 2]| -> Result<Fold, DatasetError> {
        let dataset = Dataset::open(sample.folder()).unwrap();
        let run = dataset.find("latest").unwrap();
        let bounds = Bounds::new(bounds[0], bounds[1], Model::Logistic, 0.05, 0.05).unwrap();
        fold(&dataset, &run, &run.spec().unwrap(), bounds)
    };
    let slow = |sample: &SampleDataset, bounds: [f64; 2]| {
        let mut fold = Fold::new(Bounds::new(bounds[0], bounds[1], Model::Logistic, 0.05, 0.05).unwrap());
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
            fold.put(*bout, if *bout == 3 { BoutResult::Void } else { pair }).unwrap();
        }
        fold
    };
    for bounds in [[0.0, 5.0], [0.0, 400.0], [-400.0, 0.0]] {
        let (found, expected) = (folded(&sample, bounds).unwrap(), slow(&sample, bounds));
        assert_eq!(
            (found.pairs(), found.llr(), found.decision()),
            (expected.pairs(), expected.llr(), expected.decision())
        );
        assert_eq!(found.prefix(), expected.prefix());
    }
    let Pairs(all) = folded(&sample, [0.0, 5.0]).unwrap().pairs();
    assert_eq!(all.iter().sum::<u64>(), 11);

    // A failed bout is a hole that the file tells of; one more is missing.
    sample.bouts.remove(&5);
    sample.write();
    let error = folded(&sample, [0.0, 5.0]).unwrap_err().to_string();
    assert!(error.contains("1 bouts are missing (5), and 0 failed"), "{error}");
    sample.manifest["failed"] = json!(1);
    sample.write();
    assert_eq!(folded(&sample, [0.0, 5.0]).unwrap().prefix(), 12);
    // Of a run that was cancelled nobody knows whether a hole failed: the prefix ends there.
    sample.manifest["state"] = json!("cancelled");
    sample.write_run();
    assert_eq!(folded(&sample, [0.0, 5.0]).unwrap().prefix(), 5);
}

#[test]
fn what_cannot_be_counted_is_named() {
    let said = |sample: &SampleDataset| counted(sample, 2).unwrap_err().to_string();
    let mut sample = SampleDataset::of_three_players();
    // A part that is missing.
    fs::remove_file(sample.file("games", 4)).unwrap();
    let error = said(&sample);
    assert!(
        error.contains(&sample.id) && error.contains("2 bouts are missing (4-5), and 0 failed"),
        "{error}"
    );
    // A part that is missing while the run goes on.
    sample.manifest["state"] = json!("running");
    sample.write_run();
    assert!(said(&sample).contains("2 bouts are missing (4-5)"));
    // The last may be on its way.
    sample.write();
    fs::remove_file(sample.file("games", 28)).unwrap();
    assert_eq!(counted(&sample, 2).unwrap().bouts(), 28);

    // A damaged part.
    sample.write();
    let mut bytes = fs::read(sample.file("games", 6)).unwrap();
    bytes[20] ^= 4;
    fs::write(sample.file("games", 6), &bytes).unwrap();
    let error = said(&sample);
    assert!(error.contains(&sample.name("games", 6)) && error.contains("the file is damaged"), "{error}");

    // The same bouts under two names.
    sample.write();
    fs::copy(sample.file("games", 6), sample.file("games", 90)).unwrap();
    let error = said(&sample);
    assert!(error.contains("bout 6: it is there a second time; the first is in games/"), "{error}");

    // Somebody whom the spec does not know.
    sample.bout(8).games[0].players[0] = "nobody".to_string();
    sample.write();
    let error = said(&sample);
    assert!(
        error.contains(&sample.name("games", 8)) && error.contains("the spec has no player `nobody`"),
        "{error}"
    );

    let error = counted(&SampleDataset::play(PROBE), 1).unwrap_err();
    assert!(
        error.is_wrong_call() && error.to_string().contains("is a probe: it has searches and no games"),
        "{error}"
    );
}
