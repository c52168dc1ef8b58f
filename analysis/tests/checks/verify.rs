//! Each way to spoil a dataset is found, and the problem names the file, the bout and the game.

use std::fs;

use agon_analysis::{Dataset, Problem, Verified, verify, verify_all};
use agon_records::{GameRow, LimitKind, MoveRow, ProbeRow};
use bytes::Bytes;
use serde_json::json;

use crate::sample::{PROBE, SampleDataset, TOURNAMENT, put};

fn verified(sample: &SampleDataset) -> Verified {
    verify(&Dataset::open(sample.folder()).unwrap(), &sample.id)
}

#[test]
fn what_was_played_passes() {
    let sample = SampleDataset::play(TOURNAMENT);
    let told = verified(&sample);
    let moves: usize = sample.bouts.values().map(|bout| bout.moves.len()).sum();
    assert_eq!(told.problems, []);
    assert_eq!((told.bouts, told.games, told.moves, told.probes), (3, 6, moves as u64, 0));
    let told = verified(&SampleDataset::play(PROBE));
    assert_eq!(told.problems, []);
    assert_eq!((told.bouts, told.games, told.moves, told.probes), (3, 0, 0, 6));
}

#[test]
fn content_is_what_counts_and_nothing_else() {
    let said = |text: &str, change: fn(&mut SampleDataset)| {
        let mut sample = SampleDataset::play(text);
        change(&mut sample);
        sample.write();
        verified(&sample).content
    };
    for text in [TOURNAMENT, PROBE] {
        let calm = verified(&SampleDataset::play(text)).content;
        assert_eq!(calm.len(), 32, "{calm}");
        assert_eq!(said(text, |_| {}), calm);
    }
    let calm = said(TOURNAMENT, |_| {});
    assert_eq!(said(TOURNAMENT, |sample| sample.bout(1).games[0].worker += " again"), calm);
    assert_eq!(said(TOURNAMENT, |sample| sample.bout(1).games[0].duration_us += 1), calm);
    assert_ne!(said(TOURNAMENT, |sample| sample.bout(1).games[0].seed ^= 1), calm);
    assert_ne!(said(TOURNAMENT, |sample| sample.bout(2).moves[1].legal += 1), calm);
    assert_ne!(said(PROBE, |sample| sample.bout(0).probes[1].position += " "), said(PROBE, |_| {}));
}

/// A part and the place within it that a problem must name.
type Place = (&'static str, u64, Option<u64>, Option<u16>);

/// Spoils rows, writes them, and expects exactly one problem.
fn spoiled(text: &str, spoil: impl Fn(&mut SampleDataset), (table, first, bout, game): Place, reason: &str) {
    let mut sample = SampleDataset::play(text);
    spoil(&mut sample);
    sample.write();
    let file = Some(sample.name(table, first));
    let [problem] = &verified(&sample).problems[..] else {
        panic!("{reason}: {:?}", verified(&sample).problems);
    };
    let Problem { reason: said, .. } = problem;
    assert_eq!((&problem.file, problem.bout, problem.game), (&file, bout, game), "{problem}");
    assert!(said.contains(reason), "{problem} does not say {reason}");
}

#[test]
fn spoiled_games_are_named() {
    let game = |spoil: fn(&mut SampleDataset), reason: &str| {
        spoiled(TOURNAMENT, spoil, ("games", 2, Some(2), Some(1)), reason);
    };
    game(|sample| sample.bout(2).games[1].payoffs = vec![2, -2], "the payoffs are ");
    game(|sample| sample.bout(2).games[1].plies += 1, "`plies` is ");
    game(|sample| sample.bout(2).games[1].players.reverse(), "`players` is [\"deep\", \"wide\"], not ");
    game(|sample| sample.bout(2).games[1].rules = "go".to_string(), "`rules` is go, not connect-four");
    game(|sample| sample.bout(2).games[1].opening += " a", "`opening` is ");
    game(|sample| sample.bout(2).games[1].ending = "boredom".to_string(), "not by boredom");
    game(|sample| sample.bout(2).games[1].seed ^= 1, "the seed is ");
    game(
        |sample| {
            sample.bout(2).moves.pop().unwrap();
        },
        "`plies` is ",
    );
}

#[test]
fn spoiled_moves_are_named() {
    let ply = |spoil: fn(&mut SampleDataset), reason: &str| {
        spoiled(TOURNAMENT, spoil, ("moves", 0, Some(1), Some(0)), reason);
    };
    ply(|sample| sample.bout(1).moves[3].mv = "z".to_string(), "ply 3: `z` is not legal");
    ply(|sample| sample.bout(1).moves[3].legal += 1, "ply 3: 7 moves are legal, not 8");
    ply(|sample| sample.bout(1).moves[3].seat = Some(0), "ply 3: the turn is seat 1");
    ply(|sample| sample.bout(1).moves[3].search = None, "ply 3: the player is ");
    ply(|sample| sample.bout(1).moves[3].ply = 4, "ply 3 is missing or another is there twice");
    ply(|sample| sample.search(1, 0).player = "nobody".to_string(), "the run has no player `nobody`");
    ply(
        |sample| sample.search(1, 0).counters.simulations = 61,
        "ply 3: 61 nodes are more than the limit of 60",
    );
    ply(|sample| sample.search(1, 0).limit_value = 61, "the limit is nodes 61, not nodes 60");
    ply(|sample| sample.search(1, 0).limit_kind = LimitKind::Depth, "the limit is depth 60, not nodes 60");
    ply(|sample| sample.search(1, 0).score = f64::NAN, "the score is NaN");
    ply(|sample| sample.search(1, 0).depth_time_us.push(1), "have different lengths");
}

#[test]
fn spoiled_probes_are_named() {
    let search = |spoil: fn(&mut SampleDataset), reason: &str| {
        spoiled(PROBE, spoil, ("probes", 0, Some(1), Some(1)), reason);
    };
    search(|sample| sample.bout(1).probes[1].decision.mv = "z".to_string(), "`z` is not legal");
    search(|sample| sample.bout(1).probes[1].decision.legal = 6, "seat 0 has 7 legal moves");
    search(|sample| sample.bout(1).probes[1].decision.ply += 1, "`ply` is ");
    search(|sample| sample.bout(1).probes[1].moves.clear(), "the position is not the one");
    search(|sample| sample.bout(1).probes[1].decision.search = None, "there is no search");
    let first = |sample: &mut SampleDataset| {
        sample.bout(1).probes.remove(1);
    };
    spoiled(PROBE, first, ("probes", 0, Some(1), None), "its searches are [0]");
}

#[test]
fn incomplete_bouts_are_named() {
    let lost = |sample: &mut SampleDataset| {
        sample.bout(1).games.pop();
        sample.bout(1).moves.retain(|mv| mv.game == 0);
    };
    spoiled(TOURNAMENT, lost, ("games", 0, Some(1), None), "its games are [0]");
    let twice = |sample: &mut SampleDataset| {
        let game = sample.bout(1).games[0].clone();
        sample.bout(1).games.push(game);
    };
    spoiled(TOURNAMENT, twice, ("games", 0, Some(1), None), "its games are [0, 0, 1]");
    let alone = |sample: &mut SampleDataset| {
        let mut mv = sample.bout(1).moves[0].clone();
        mv.game = 2;
        sample.bout(1).moves.push(mv);
    };
    spoiled(TOURNAMENT, alone, ("moves", 0, Some(1), Some(2)), "there are moves without a game");
    let elsewhere = |sample: &mut SampleDataset| {
        let mut mv = sample.bout(1).moves[0].clone();
        mv.bout = 2;
        sample.bout(1).moves.push(mv);
    };
    spoiled(TOURNAMENT, elsewhere, ("moves", 0, Some(2), None), "there are moves without a game");
    let beyond = |sample: &mut SampleDataset| {
        let mut rows = sample.bouts[&2].clone();
        rows.games.iter_mut().for_each(|row| row.bout = 3);
        rows.moves.iter_mut().for_each(|row| row.bout = 3);
        sample.bouts.insert(3, rows);
    };
    spoiled(TOURNAMENT, beyond, ("games", 2, Some(3), None), "the run has only 3 bouts");
}

#[test]
fn a_bout_is_there_once() {
    let sample = SampleDataset::play(TOURNAMENT);
    for table in ["games", "moves"] {
        fs::copy(sample.file(table, 0), sample.file(table, 8)).unwrap();
    }
    let told = verified(&sample);
    assert_eq!((told.bouts, told.games), (3, 10));
    let reason = format!("the bout is there a second time; the first is in {}", sample.name("games", 0));
    let expected = [0, 1].map(|bout| Problem {
        file: Some(sample.name("games", 8)),
        bout: Some(bout),
        game: None,
        reason: reason.clone(),
    });
    assert_eq!(told.problems, expected);
    // Under a name that says other bouts, but only there.
    for table in ["games", "moves"] {
        fs::remove_file(sample.file(table, 0)).unwrap();
    }
    let problems = verified(&sample).problems;
    assert_eq!(problems.len(), 2);
    assert!(problems.iter().all(|problem| problem.reason.contains("not one of those in the name")));
}

#[test]
fn holes_are_named_unless_the_run_explains_them() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.bouts.remove(&0);
    for (state, failed, committed, problem) in [
        ("done", 0, 3, Some("1 bouts are missing (0), and 0 failed")),
        ("done", 1, 3, None),
        ("done", 2, 3, Some("1 bouts are missing (0), and 2 failed")),
        ("running", 0, 3, Some("1 bouts are missing (0), and 0 failed")),
        ("running", 1, 3, None),
        ("cancelled", 0, 2, None),
        ("cancelled", 1, 3, None),
        ("cancelled", 0, 3, Some("there are 2 bouts, and the run's file counts 3, including 0 failed")),
        ("decided", 0, 2, None),
        ("decided", 0, 1, Some("there are 2 bouts, and the run's file counts 1, including 0 failed")),
    ] {
        sample.manifest["state"] = json!(state);
        sample.manifest["failed"] = json!(failed);
        sample.manifest["committed"] = json!(committed);
        sample.write();
        let found: Vec<String> = verified(&sample).problems.iter().map(ToString::to_string).collect();
        assert_eq!(found.first().map(String::as_str), problem, "{state} {failed} {committed}");
    }
    // What comes behind the parts of a run that goes on is no hole.
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.bouts.remove(&2);
    sample.manifest["state"] = json!("running");
    sample.write();
    assert_eq!(verified(&sample).problems, []);
}

#[test]
fn lost_and_exchanged_parts_are_named() {
    let problems = |sample: &SampleDataset| -> Vec<String> {
        verified(sample).problems.iter().map(ToString::to_string).collect()
    };
    let sample = SampleDataset::play(TOURNAMENT);
    fs::remove_file(sample.file("moves", 2)).unwrap();
    let lost = format!("{}: there is no part of moves to these games", sample.name("games", 2));
    assert_eq!(problems(&sample), [lost]);

    let mut sample = SampleDataset::play(TOURNAMENT);
    fs::remove_file(sample.file("games", 2)).unwrap();
    let lost = format!("{}: there is no part of games to these moves", sample.name("moves", 2));
    assert_eq!(problems(&sample), [lost, "1 bouts are missing (2), and 0 failed".to_string()]);
    // Moves are published before their games.
    sample.manifest["state"] = json!("running");
    sample.write_run();
    assert_eq!(problems(&sample), [""; 0]);

    let sample = SampleDataset::play(TOURNAMENT);
    fs::copy(sample.file("games", 0), sample.file("moves", 0)).unwrap();
    let other = format!("{}: this is a part of `games`, not of `moves`", sample.name("moves", 0));
    assert_eq!(problems(&sample), [other]);

    let sample = SampleDataset::play(TOURNAMENT);
    let bytes = fs::read(sample.file("games", 0)).unwrap();
    fs::write(sample.file("games", 0), &bytes[..bytes.len() - 9]).unwrap();
    let start =
        format!("{}: this is no part of a dataset of agon, or it was cut short", sample.name("games", 0));
    assert!(problems(&sample)[0].starts_with(&start), "{:?}", problems(&sample));
}

#[test]
fn a_description_that_is_not_the_runs_is_named() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.manifest["spec"] = json!(TOURNAMENT.replace("nodes = 60", "nodes = 600"));
    sample.write_run();
    assert_eq!(verified(&sample).problems[0].reason, "the spec is not the one that its digest is of");
    sample.manifest["spec"] = json!("name = 3");
    sample.write_run();
    assert!(verified(&sample).problems[0].reason.starts_with("the spec is not understood: "));
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.manifest["bouts"] = json!(4);
    sample.write_run();
    let said = "its file says that it has 4 bouts, its spec has 3";
    assert_eq!(verified(&sample).problems[0].reason, said);
    // A folder of parts that no file describes.
    put(&sample.folder().join("moves/run=stray/part-0-1.parquet"), b"");
    let all = verify_all(&Dataset::open(sample.folder()).unwrap());
    assert_eq!(all.len(), 2);
    assert_eq!((all[1].run.as_str(), all[1].problems.len()), ("stray", 1));
}

/// What `verify` can check of games, of moves and of probes.
type Checkable = (Vec<GameRow>, Vec<MoveRow>, Vec<(String, String, MoveRow)>);

/// The rows of a table without what searches found, which no rule can check.
fn checkable(sample: &SampleDataset, table: &str) -> Checkable {
    let bytes = Bytes::from(fs::read(sample.file(table, 0)).unwrap());
    let without_search = |row: MoveRow| MoveRow { search: None, ..row };
    match table {
        "games" => (agon_records::read_games(bytes).unwrap(), vec![], vec![]),
        "moves" => {
            let rows = agon_records::read_moves(bytes).unwrap();
            (vec![], rows.into_iter().map(without_search).collect(), vec![])
        }
        _ => {
            let rows = agon_records::read_probes(bytes).unwrap().into_iter();
            let parts = |row: ProbeRow| (row.position, row.moves, without_search(row.decision));
            (vec![], vec![], rows.map(parts).collect())
        }
    }
}

#[test]
fn a_flipped_bit_is_named() {
    const STEP: usize = 29;
    for (text, tables) in [(TOURNAMENT, &["games", "moves"][..]), (PROBE, &["probes"])] {
        let sample = SampleDataset::play(text);
        for table in tables {
            let name = sample.name(table, 0);
            let bytes = fs::read(sample.file(table, 0)).unwrap();
            let rows = checkable(&sample, table);
            let mut missed = 0;
            for place in (0..bytes.len()).step_by(STEP) {
                let mut flipped = bytes.clone();
                flipped[place] ^= 1 << (place % 8);
                fs::write(sample.file(table, 0), &flipped).unwrap();
                let problems = verified(&sample).problems;
                if !problems.iter().any(|problem| problem.file.as_ref() == Some(&name)) {
                    // A counter of a search became another: everything else would have been found.
                    assert_eq!(checkable(&sample, table), rows, "{table}: byte {place}");
                    missed += 1;
                }
            }
            assert!(missed * 20 < bytes.len() / STEP, "{table}: {missed} of {} missed", bytes.len() / STEP);
            fs::write(sample.file(table, 0), &bytes).unwrap();
        }
    }
}
