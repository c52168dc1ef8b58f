//! Verification finds each kind of damage and names its file, bout and game.

use std::fs;

use agon_analysis::{Dataset, Problem, Verified, verify, verify_all};
use agon_records::{GameRow, LimitKind, MoveRow, ProbeRow};
use bytes::Bytes;
use serde_json::json;

use agon_testing::sample::{SampleDataset, write_file};
use agon_testing::specs::{PROBE, TOURNAMENT};

fn verified(sample: &SampleDataset) -> Verified {
    verify(&Dataset::open(sample.folder()).unwrap(), &sample.id)
}

#[test]
fn intact_datasets_pass() {
    let sample = SampleDataset::play(TOURNAMENT);
    let result = verified(&sample);
    let moves: usize = sample.bouts.values().map(|bout| bout.moves.len()).sum();
    assert_eq!(result.problems, []);
    assert_eq!((result.bouts, result.games, result.moves, result.probes), (3, 6, moves as u64, 0));
    let result = verified(&SampleDataset::play(PROBE));
    assert_eq!(result.problems, []);
    assert_eq!((result.bouts, result.games, result.moves, result.probes), (3, 0, 0, 6));
}

#[test]
fn content_digest_covers_exactly_the_compared_columns() {
    let content = |text: &str, change: fn(&mut SampleDataset)| {
        let mut sample = SampleDataset::play(text);
        change(&mut sample);
        sample.write();
        verified(&sample).content
    };
    for text in [TOURNAMENT, PROBE] {
        let original = verified(&SampleDataset::play(text)).content;
        assert_eq!(original.len(), 32, "{original}");
        assert_eq!(content(text, |_| {}), original);
    }
    let original = content(TOURNAMENT, |_| {});
    assert_eq!(content(TOURNAMENT, |sample| sample.bout(1).games[0].worker += " again"), original);
    assert_eq!(content(TOURNAMENT, |sample| sample.bout(1).games[0].duration_us += 1), original);
    assert_ne!(content(TOURNAMENT, |sample| sample.bout(1).games[0].seed ^= 1), original);
    assert_ne!(content(TOURNAMENT, |sample| sample.bout(2).moves[1].legal += 1), original);
    assert_ne!(content(PROBE, |sample| sample.bout(0).probes[1].position += " "), content(PROBE, |_| {}));
}

/// The part, bout and game that a problem must name.
type Location = (&'static str, u64, Option<u64>, Option<u16>);

/// Damages rows, writes them, and expects exactly one problem.
fn expect_problem(
    text: &str,
    damage: impl Fn(&mut SampleDataset),
    (table, first, bout, game): Location,
    reason: &str,
) {
    let mut sample = SampleDataset::play(text);
    damage(&mut sample);
    sample.write();
    let file = Some(sample.part_name(table, first));
    let [problem] = &verified(&sample).problems[..] else {
        panic!("{reason}: {:?}", verified(&sample).problems);
    };
    assert_eq!((&problem.file, problem.bout, problem.game), (&file, bout, game), "{problem}");
    assert!(problem.reason.contains(reason), "{problem} does not contain {reason}");
}

#[test]
fn damaged_games_are_named() {
    let game = |damage: fn(&mut SampleDataset), reason: &str| {
        expect_problem(TOURNAMENT, damage, ("games", 2, Some(2), Some(1)), reason);
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
fn damaged_moves_are_named() {
    let ply = |damage: fn(&mut SampleDataset), reason: &str| {
        expect_problem(TOURNAMENT, damage, ("moves", 0, Some(1), Some(0)), reason);
    };
    ply(|sample| sample.bout(1).moves[3].mv = "z".to_string(), "ply 3: `z` is not legal");
    ply(|sample| sample.bout(1).moves[3].legal += 1, "ply 3: 7 moves are legal, not 8");
    ply(|sample| sample.bout(1).moves[3].seat = Some(0), "ply 3: the turn is seat 1");
    ply(|sample| sample.bout(1).moves[3].search = None, "ply 3: the player is ");
    ply(|sample| sample.bout(1).moves[3].ply = 4, "ply 3 is missing or another one occurs twice");
    ply(|sample| sample.first_search(1, 0).player = "nobody".to_string(), "the run has no player `nobody`");
    ply(
        |sample| sample.first_search(1, 0).counters.simulations = 61,
        "ply 3: `simulations` is 61, and it must be at most 60: the node limit",
    );
    ply(|sample| sample.first_search(1, 0).limit_value = 61, "the limit is nodes 61, not nodes 60");
    ply(
        |sample| sample.first_search(1, 0).limit_kind = LimitKind::Depth,
        "the limit is depth 60, not nodes 60",
    );
    ply(|sample| sample.first_search(1, 0).score = f64::NAN, "the score is NaN");
    ply(|sample| sample.first_search(1, 0).depth_time_us.push(1), "an entry for each completed depth");
}

#[test]
fn damaged_probes_are_named() {
    let search = |damage: fn(&mut SampleDataset), reason: &str| {
        expect_problem(PROBE, damage, ("probes", 0, Some(1), Some(1)), reason);
    };
    search(|sample| sample.bout(1).probes[1].decision.mv = "z".to_string(), "`z` is not legal");
    search(|sample| sample.bout(1).probes[1].decision.legal = 6, "seat 0 has 7 legal moves");
    search(|sample| sample.bout(1).probes[1].decision.ply += 1, "`ply` is ");
    search(|sample| sample.bout(1).probes[1].moves.clear(), "the position is not that of the spec");
    search(|sample| sample.bout(1).probes[1].decision.search = None, "the search is missing");
    let first = |sample: &mut SampleDataset| {
        sample.bout(1).probes.remove(1);
    };
    expect_problem(PROBE, first, ("probes", 0, Some(1), None), "its searches are [0]");
}

#[test]
fn incomplete_bouts_are_named() {
    let lost = |sample: &mut SampleDataset| {
        sample.bout(1).games.pop();
        sample.bout(1).moves.retain(|mv| mv.game == 0);
    };
    expect_problem(TOURNAMENT, lost, ("games", 0, Some(1), None), "its games are [0]");
    let twice = |sample: &mut SampleDataset| {
        let game = sample.bout(1).games[0].clone();
        sample.bout(1).games.push(game);
    };
    expect_problem(TOURNAMENT, twice, ("games", 0, Some(1), None), "its games are [0, 0, 1]");
    let alone = |sample: &mut SampleDataset| {
        let mut mv = sample.bout(1).moves[0].clone();
        mv.game = 2;
        sample.bout(1).moves.push(mv);
    };
    expect_problem(TOURNAMENT, alone, ("moves", 0, Some(1), Some(2)), "moves without a game");
    let elsewhere = |sample: &mut SampleDataset| {
        let mut mv = sample.bout(1).moves[0].clone();
        mv.bout = 2;
        sample.bout(1).moves.push(mv);
    };
    expect_problem(TOURNAMENT, elsewhere, ("moves", 0, Some(2), None), "moves without a game");
    let beyond = |sample: &mut SampleDataset| {
        let mut rows = sample.bouts[&2].clone();
        rows.games.iter_mut().for_each(|row| row.bout = 3);
        rows.moves.iter_mut().for_each(|row| row.bout = 3);
        sample.bouts.insert(3, rows);
    };
    expect_problem(TOURNAMENT, beyond, ("games", 2, Some(3), None), "the run has only 3 bouts");
}

#[test]
fn duplicate_bouts_are_named() {
    let sample = SampleDataset::play(TOURNAMENT);
    for table in ["games", "moves"] {
        fs::copy(sample.part_file(table, 0), sample.part_file(table, 8)).unwrap();
    }
    let result = verified(&sample);
    assert_eq!((result.bouts, result.games), (3, 10));
    let reason = format!("duplicate bout; the first is in {}", sample.part_name("games", 0));
    let expected = [0, 1].map(|bout| Problem {
        file: Some(sample.part_name("games", 8)),
        bout: Some(bout),
        game: None,
        reason: reason.clone(),
    });
    assert_eq!(result.problems, expected);
    // Once, but in a file whose name has another range.
    for table in ["games", "moves"] {
        fs::remove_file(sample.part_file(table, 0)).unwrap();
    }
    let problems = verified(&sample).problems;
    assert_eq!(problems.len(), 2);
    assert!(problems.iter().all(|problem| problem.reason.contains("outside the range in the file name")));
}

#[test]
fn unexplained_holes_are_named() {
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
    // Bouts after the last part of a running run are not holes.
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.bouts.remove(&2);
    sample.manifest["state"] = json!("running");
    sample.write();
    assert_eq!(verified(&sample).problems, []);
}

#[test]
fn missing_and_swapped_parts_are_named() {
    let problems = |sample: &SampleDataset| -> Vec<String> {
        verified(sample).problems.iter().map(ToString::to_string).collect()
    };
    let sample = SampleDataset::play(TOURNAMENT);
    fs::remove_file(sample.part_file("moves", 2)).unwrap();
    let lost = format!("{}: the part of moves for these games is missing", sample.part_name("games", 2));
    assert_eq!(problems(&sample), [lost]);

    let mut sample = SampleDataset::play(TOURNAMENT);
    fs::remove_file(sample.part_file("games", 2)).unwrap();
    let lost = format!("{}: the part of games for these moves is missing", sample.part_name("moves", 2));
    assert_eq!(problems(&sample), [lost, "1 bouts are missing (2), and 0 failed".to_string()]);
    // Moves are published before their games.
    sample.manifest["state"] = json!("running");
    sample.write_manifest();
    assert_eq!(problems(&sample), [""; 0]);

    // The bouts that were exported before the manifest are present, even in a running run.
    sample.manifest["exported"] = json!(3);
    sample.write_manifest();
    fs::remove_file(sample.part_file("moves", 2)).unwrap();
    assert_eq!(problems(&sample), ["1 bouts are missing (2), and 0 failed"]);

    let sample = SampleDataset::play(TOURNAMENT);
    fs::copy(sample.part_file("games", 0), sample.part_file("moves", 0)).unwrap();
    let other = format!("{}: this is a part of `games`, not of `moves`", sample.part_name("moves", 0));
    assert_eq!(problems(&sample), [other]);

    let sample = SampleDataset::play(TOURNAMENT);
    let bytes = fs::read(sample.part_file("games", 0)).unwrap();
    fs::write(sample.part_file("games", 0), &bytes[..bytes.len() - 9]).unwrap();
    let start = format!(
        "{}: this is not a part of an agon dataset, or it was truncated",
        sample.part_name("games", 0)
    );
    assert!(problems(&sample)[0].starts_with(&start), "{:?}", problems(&sample));
}

#[cfg(unix)]
#[test]
fn verification_does_not_wait_for_a_pipe() {
    for table in ["games", "moves"] {
        let sample = SampleDataset::play(TOURNAMENT);
        fs::remove_file(sample.part_file(table, 2)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(sample.part_file(table, 2)).status();
        assert!(made.unwrap().success());
        let found: Vec<String> = verified(&sample).problems.iter().map(ToString::to_string).collect();
        assert!(
            found.iter().any(|problem| {
                problem.starts_with(&sample.part_name(table, 2))
                    && problem.ends_with("this is a pipe or a device, not a regular file")
            }),
            "{found:?}"
        );
    }
}

#[test]
fn inconsistent_manifest_is_named() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.manifest["spec"] = json!(TOURNAMENT.replace("nodes = 60", "nodes = 600"));
    sample.write_manifest();
    assert_eq!(verified(&sample).problems[0].reason, "the digest in the manifest is not that of its spec");
    sample.manifest["spec"] = json!("name = 3");
    sample.write_manifest();
    assert!(verified(&sample).problems[0].reason.starts_with("cannot parse the spec: "));
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.manifest["bouts"] = json!(4);
    sample.write_manifest();
    let reason = "the manifest has 4 bouts, the spec has 3";
    assert_eq!(verified(&sample).problems[0].reason, reason);
    // Parts without a manifest.
    write_file(&sample.folder().join("moves/run=stray/part-0-1.parquet"), b"");
    let all = verify_all(&Dataset::open(sample.folder()).unwrap());
    assert_eq!(all.len(), 2);
    assert_eq!((all[1].run.as_str(), all[1].problems.len()), ("stray", 1));
}

/// The columns of games, moves and probes that `verify` can check.
type Checkable = (Vec<GameRow>, Vec<MoveRow>, Vec<(String, String, MoveRow)>);

/// Returns the rows of a table without search results, which the rules cannot check.
fn checkable(sample: &SampleDataset, table: &str) -> Checkable {
    let bytes = Bytes::from(fs::read(sample.part_file(table, 0)).unwrap());
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
fn flipped_bit_is_named() {
    const STEP: usize = 29;
    for (text, tables) in [(TOURNAMENT, &["games", "moves"][..]), (PROBE, &["probes"])] {
        let sample = SampleDataset::play(text);
        for table in tables {
            let name = sample.part_name(table, 0);
            let bytes = fs::read(sample.part_file(table, 0)).unwrap();
            let rows = checkable(&sample, table);
            let mut missed = 0;
            for offset in (0..bytes.len()).step_by(STEP) {
                let mut flipped = bytes.clone();
                flipped[offset] ^= 1 << (offset % 8);
                fs::write(sample.part_file(table, 0), &flipped).unwrap();
                let problems = verified(&sample).problems;
                if !problems.iter().any(|problem| problem.file.as_ref() == Some(&name)) {
                    // Only a search result changed; any other change would have been found.
                    assert_eq!(checkable(&sample, table), rows, "{table}: byte {offset}");
                    missed += 1;
                }
            }
            assert!(missed * 20 < bytes.len() / STEP, "{table}: {missed} of {} missed", bytes.len() / STEP);
            fs::write(sample.part_file(table, 0), &bytes).unwrap();
        }
    }
}
