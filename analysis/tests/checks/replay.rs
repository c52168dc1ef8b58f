//! Replays of recorded games are identical; any changed value is reported.

use std::num::NonZeroUsize;

use agon_analysis::{Dataset, Replay, ReplayError, Selection, replay};

use agon_testing::sample::SampleDataset;
use agon_testing::specs::{PROBE, TOURNAMENT};

const SAMPLE: Selection = Selection::Sample { games: 20, seed: 1 };

fn replay_on(sample: &SampleDataset, selection: Selection, threads: usize) -> Result<Replay, ReplayError> {
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    replay(&dataset, &run, selection, NonZeroUsize::new(threads).unwrap())
}

fn replayed(sample: &SampleDataset, selection: Selection) -> Result<Replay, ReplayError> {
    replay_on(sample, selection, 2)
}

#[test]
fn unchanged_games_are_identical() {
    let sample = SampleDataset::play(TOURNAMENT);
    let moves: usize = sample.bouts.values().map(|bout| bout.moves.len()).sum();
    let all = replayed(&sample, SAMPLE).unwrap();
    assert_eq!((all.games, all.identical_games), (6, 6));
    assert_eq!((all.moves, all.identical_moves), (moves as u64, moves as u64));
    assert_eq!(all.difference, None);
    for threads in [1, 3] {
        assert_eq!(replay_on(&sample, SAMPLE, threads).unwrap(), all);
    }
    assert_eq!(replayed(&sample, Selection::Sample { games: 4, seed: 1 }).unwrap().games, 4);
    let bout = replayed(&sample, Selection::Bout { bout: 1, game: None }).unwrap();
    assert_eq!((bout.games, bout.moves), (2, sample.bouts[&1].moves.len() as u64));
    let game = replayed(&sample, Selection::Bout { bout: 1, game: Some(1) }).unwrap();
    assert_eq!((game.games, game.moves), (1, u64::from(sample.bouts[&1].games[1].plies)));

    let probe = replayed(&SampleDataset::play(PROBE), SAMPLE).unwrap();
    assert_eq!((probe.games, probe.identical_games, probe.difference), (6, 6, None));
}

#[test]
fn first_difference_is_named() {
    let changed =
        |text: &str, change: &dyn Fn(&mut SampleDataset), bout: u64, game: u16, ply, column: &str| {
            let mut sample = SampleDataset::play(text);
            change(&mut sample);
            sample.write();
            let result = replayed(&sample, SAMPLE).unwrap();
            assert_eq!(result.identical_games + 1, result.games, "{column}");
            let found = result.difference.unwrap();
            assert_eq!((found.bout, found.game, found.ply, found.column), (bout, game, ply, column));
            assert_ne!(found.recorded, found.replayed);
        };
    let ply = |column: &str, change: &dyn Fn(&mut SampleDataset)| {
        changed(TOURNAMENT, change, 2, 1, Some(3), column);
    };
    ply("leaves", &|sample| sample.first_search(2, 1).counters.leaves += 1);
    ply("tree_nodes", &|sample| sample.first_search(2, 1).counters.tree_nodes += 1);
    ply("score", &|sample| {
        let search = sample.first_search(2, 1);
        search.score = f64::from_bits(search.score.to_bits() ^ 1);
    });
    ply("pv", &|sample| sample.first_search(2, 1).pv += " a");
    ply("depth_nodes", &|sample| sample.first_search(2, 1).depth_nodes.push(1));
    ply("limit_value", &|sample| sample.first_search(2, 1).limit_value = 1);
    let game =
        |column: &str, change: &dyn Fn(&mut SampleDataset)| changed(TOURNAMENT, change, 2, 1, None, column);
    game("payoffs", &|sample| sample.bout(2).games[1].payoffs = vec![0, 0, 0]);
    game("ending", &|sample| sample.bout(2).games[1].ending.clear());
    game("plies", &|sample| {
        sample.bout(2).moves.pop();
    });
    changed(PROBE, &|sample| sample.bout(1).probes[1].decision.legal = 6, 1, 1, Some(plies(1)), "legal");
}

fn plies(bout: u64) -> u16 {
    SampleDataset::play(PROBE).bouts[&bout].probes[0].decision.ply
}

#[test]
fn times_and_workers_are_not_compared() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let row = &mut sample.bout(0).games[0];
    (row.worker, row.build, row.started, row.duration_us) = ("other".to_string(), "2".to_string(), 99, 99);
    let search = sample.first_search(0, 0);
    (search.time_us, search.overshoot_us) = (9_999, 9_999);
    search.depth_time_us.iter_mut().for_each(|time| *time += 1);
    sample.write();
    assert_eq!(replayed(&sample, SAMPLE).unwrap().difference, None);
}

#[test]
fn rejects_unreplayable_games() {
    let sample = SampleDataset::play(&TOURNAMENT.replace("nodes = 60", "ms = 1"));
    let error = replayed(&sample, SAMPLE).unwrap_err().to_string();
    assert!(error.contains("`deep` is limited by time (ms)"), "{error}");
    let sample = SampleDataset::play(TOURNAMENT);
    let error = |bout, game| replayed(&sample, Selection::Bout { bout, game }).unwrap_err().to_string();
    assert_eq!(error(7, None), "bout 7 is not in the dataset of the run");
    assert_eq!(error(1, Some(2)), "bout 1, game 2 is not in the dataset of the run");
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.bouts.clear();
    sample.write();
    assert!(matches!(replayed(&sample, SAMPLE), Err(ReplayError::Empty)));
}
