//! What is counted out of parts is what was played, whoever counts it; what cannot be counted is named.

use std::fs;
use std::num::NonZeroUsize;

use agon_analysis::results::{fold, prefixes, results};
use agon_analysis::{Dataset, DatasetError};
use agon_coordinator::standings::{Standings, Summary, Tally as LiveTally};
use agon_records::GameRow;
use agon_stats::pairs::{PairScore, Pairs};
use agon_stats::pool;
use agon_stats::sprt::{Bounds, BoutResult, Fold, Model};
use agon_stats::tournament::{Errors, Game, Options, Tally, pair_of};
use serde_json::json;

use crate::world::{PROBE, TOURNAMENT, World};

/// Three players, thirty bouts: parts of two.
fn ladder() -> World {
    let third = "[[player]]\nname = \"greedy\"\nsearch = { algorithm = \"greedy\" }\n";
    World::of(&(TOURNAMENT.replace("bouts = 3", "bouts = 10") + third))
}

const FOUR_SEATS: &str = r#"
name = "four"
game = "virus:seats=3,size=5"
seed = 7
limit = { nodes = 40 }
openings = { random_plies = 3 }
[tournament]
format = "round-robin"
bouts = 8
[[player]]
name = "a"
search = { algorithm = "paranoid" }
[[player]]
name = "b"
search = { algorithm = "max-n" }
[[player]]
name = "c"
search = { algorithm = "greedy" }
"#;

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn counted(world: &World, count: usize) -> Result<Tally, DatasetError> {
    let dataset = Dataset::open(world.folder()).unwrap();
    let run = dataset.find(&world.id)?;
    Ok(results(&dataset, &run, &run.spec()?, threads(count))?.tally)
}

/// The same from the rows themselves.
fn slowly_counted<'a>(
    world: &World,
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
    assert!(!world.bouts.is_empty());
    tally
}

#[test]
fn parts_are_counted_as_they_were_played() {
    for text in [ladder(), World::of(FOUR_SEATS)] {
        let mut world = text;
        world.told["voided"] = json!([1, 4]);
        world.write_run();
        let tally = counted(&world, 1).unwrap();
        let rows: Vec<Vec<GameRow>> = world
            .bouts
            .iter()
            .filter(|(bout, _)| ![1, 4].contains(*bout))
            .map(|(_, rows)| rows.games.clone())
            .collect();
        assert_eq!(tally, slowly_counted(&world, tally.names(), rows.iter()));
        for count in [2, 7] {
            assert_eq!(counted(&world, count).unwrap(), tally);
        }
    }
}

#[test]
fn prefixes_are_counted_in_one_go() {
    let world = ladder();
    let dataset = Dataset::open(world.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    let lengths = [0, 1, 5, 6, 29, 30, 1000];
    let found = prefixes(&dataset, &run, &run.spec().unwrap(), &lengths, threads(3)).unwrap();
    assert_eq!(found.len(), lengths.len());
    for (length, tally) in lengths.iter().zip(&found) {
        let rows: Vec<Vec<GameRow>> =
            world.bouts.range(..length).map(|(_, rows)| rows.games.clone()).collect();
        assert_eq!(*tally, slowly_counted(&world, tally.names(), rows.iter()), "{length}");
    }
}

/// The live table and the one of the dataset are the same numbers.
#[test]
fn live_and_offline_agree() {
    for (world, seats) in [(ladder(), 2), (World::of(FOUR_SEATS), 3)] {
        let dataset = Dataset::open(world.folder()).unwrap();
        let spec = dataset.find("latest").unwrap().spec().unwrap();
        let mut live = Standings::new(&spec, seats, LiveTally::default()).unwrap();
        for (bout, rows) in &world.bouts {
            live.add(*bout, &Summary::new(&spec, &rows.into()));
        }
        let errors = match seats {
            2 => Errors::Sandwich,
            _ => Errors::Bootstrap { replicas: threads(200), seed: 1, threads: threads(1) },
        };
        let options = Options { model: pool::Options::default(), errors };
        let answer = counted(&world, 2).unwrap().answer(&options, &|| ()).unwrap();
        let table = live.table(true);
        assert_eq!(table.len(), 3);
        for (live, row) in table.iter().zip(answer.standings()) {
            assert_eq!(
                (&live.player, live.elo, live.low, live.high),
                (&row.name, Some(row.elo), row.low, row.high)
            );
            assert_eq!(
                (live.games, live.wins, live.draws, live.losses, Some(live.score)),
                (row.games, row.wins, row.draws, row.losses, row.score)
            );
        }
    }
}

/// The test of a run is a fold over its bouts one by one, and ends where a run ended early.
#[test]
fn tests_fold_over_the_schedule() {
    let mut world = World::of(&TOURNAMENT.replace("bouts = 3", "bouts = 12"));
    world.told["voided"] = json!([3]);
    world.write_run();
    let folded = |world: &World, bounds: [f64; 2]| -> Result<Fold, DatasetError> {
        let dataset = Dataset::open(world.folder()).unwrap();
        let run = dataset.find("latest").unwrap();
        let bounds = Bounds::new(bounds[0], bounds[1], Model::Logistic, 0.05, 0.05).unwrap();
        fold(&dataset, &run, &run.spec().unwrap(), bounds)
    };
    let slow = |world: &World, bounds: [f64; 2]| {
        let mut fold = Fold::new(Bounds::new(bounds[0], bounds[1], Model::Logistic, 0.05, 0.05).unwrap());
        for (bout, rows) in &world.bouts {
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
        let (found, expected) = (folded(&world, bounds).unwrap(), slow(&world, bounds));
        assert_eq!(
            (found.pairs(), found.llr(), found.decision()),
            (expected.pairs(), expected.llr(), expected.decision())
        );
        assert_eq!(found.prefix(), expected.prefix());
    }
    let Pairs(all) = folded(&world, [0.0, 5.0]).unwrap().pairs();
    assert_eq!(all.iter().sum::<u64>(), 11);

    // A failed bout is a hole that the file tells of; one more is missing.
    world.bouts.remove(&5);
    world.write();
    let error = folded(&world, [0.0, 5.0]).unwrap_err().to_string();
    assert!(error.contains("1 bouts are missing (5), and 0 failed"), "{error}");
    world.told["failed"] = json!(1);
    world.write();
    assert_eq!(folded(&world, [0.0, 5.0]).unwrap().prefix(), 12);
    // Of a run that was cancelled nobody knows whether a hole failed: the prefix ends there.
    world.told["state"] = json!("cancelled");
    world.write_run();
    assert_eq!(folded(&world, [0.0, 5.0]).unwrap().prefix(), 5);
}

#[test]
fn what_cannot_be_counted_is_named() {
    let said = |world: &World| counted(world, 2).unwrap_err().to_string();
    let mut world = ladder();
    // A part that is missing.
    fs::remove_file(world.file("games", 4)).unwrap();
    let error = said(&world);
    assert!(
        error.contains(&world.id) && error.contains("2 bouts are missing (4-5), and 0 failed"),
        "{error}"
    );
    // A part that is missing while the run goes on.
    world.told["state"] = json!("running");
    world.write_run();
    assert!(said(&world).contains("2 bouts are missing (4-5)"));
    // The last may be on its way.
    world.write();
    fs::remove_file(world.file("games", 28)).unwrap();
    assert_eq!(counted(&world, 2).unwrap().bouts(), 28);

    // A damaged part.
    world.write();
    let mut bytes = fs::read(world.file("games", 6)).unwrap();
    bytes[20] ^= 4;
    fs::write(world.file("games", 6), &bytes).unwrap();
    let error = said(&world);
    assert!(error.contains(&world.name("games", 6)) && error.contains("the file is damaged"), "{error}");

    // The same bouts under two names.
    world.write();
    fs::copy(world.file("games", 6), world.file("games", 90)).unwrap();
    let error = said(&world);
    assert!(error.contains("bout 6: it is there a second time; the first is in games/"), "{error}");

    // Somebody whom the spec does not know.
    world.bout(8).games[0].players[0] = "nobody".to_string();
    world.write();
    let error = said(&world);
    assert!(
        error.contains(&world.name("games", 8)) && error.contains("the spec has no player `nobody`"),
        "{error}"
    );

    let error = counted(&World::of(PROBE), 1).unwrap_err();
    assert!(
        error.is_wrong_call() && error.to_string().contains("is a probe: it has searches and no games"),
        "{error}"
    );
}
