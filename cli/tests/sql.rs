//! `agon sql` as a person or a program meets it: with the feature its answers, refusals and exit codes, without it how to get
//! it.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_testing::sample;

use std::process::Command;

use sample::{SampleDataset, TOURNAMENT};

/// The exit code, and what was printed to standard output and to standard error.
fn sql(sample: &SampleDataset, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["sql", "small"])
        .args(arguments)
        .arg("--data")
        .arg(sample.folder())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[cfg(not(feature = "sql"))]
#[test]
fn without_it_the_command_says_how_to_get_it() {
    let (code, out, err) = sql(&SampleDataset::play(TOURNAMENT), &["select 1"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.starts_with("error: ")
            && err.contains("`cargo build --release --features sql`")
            && err.contains("DuckDB"),
        "{err}"
    );
    let (code, ..) = sql(&SampleDataset::play(TOURNAMENT), &["select 1", "--csv", "--json"]);
    assert_eq!(code, 2, "the call is checked all the same");
}

#[cfg(feature = "sql")]
mod with {
    use std::fs;

    use serde_json::{Value, json};

    use super::sample::PROBE;
    use super::*;

    fn rows(sample: &SampleDataset, question: &str) -> Value {
        let (code, out, err) = sql(sample, &[question, "--json"]);
        assert_eq!((code, err.as_str()), (0, ""), "{question}");
        let told: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(told["run"], json!(sample.id));
        told["rows"].clone()
    }

    #[test]
    fn tables_have_the_rows_of_the_run() {
        let mut sample = SampleDataset::play(TOURNAMENT);
        let games: usize = sample.bouts.values().map(|rows| rows.games.len()).sum();
        let moves: usize = sample.bouts.values().map(|rows| rows.moves.len()).sum();
        let counts = "select (select count(*) from games) as g, (select count(*) from moves) as m, (select count(*) from probes) as p";
        assert_eq!(rows(&sample, counts), json!([[games, moves, 0]]));
        assert_eq!(rows(&sample, "select distinct run from moves"), json!([[sample.id]]));
        let first = &sample.bouts[&0].games[0];
        assert_eq!(
            rows(
                &sample,
                "select players, payoffs, seed, speed_factor from games where bout = 0 and game = 0"
            ),
            json!([[first.players, first.payoffs, first.seed, first.speed_factor]])
        );
        // Bouts that do not count are not there.
        sample.manifest["voided"] = json!([1]);
        sample.write_run();
        assert_eq!(rows(&sample, "select distinct bout from moves order by bout"), json!([[0], [2]]));
        assert_eq!(
            rows(&sample, "select 0.0 / 0.0, null, true, [1, null]"),
            json!([[null, null, true, [1, null]]])
        );
    }

    #[test]
    fn answers_fit_whoever_reads() {
        let sample = SampleDataset::play(TOURNAMENT);
        for question in [
            "select * from moves",
            "select pv, move, player, pv as again, opening from moves join games using (bout, game)",
        ] {
            let (code, out, err) = sql(&sample, &[question]);
            assert_eq!((code, err.as_str()), (0, ""));
            for line in out.lines() {
                assert!(
                    line.chars().count() <= 80 && !line.ends_with(' ') && !line.contains("NaN"),
                    "{line}"
                );
            }
        }
        let (_, out, _) = sql(&sample, &["select bout, game from games order by bout, game", "--rows", "2"]);
        assert_eq!(out, "bout  game\n   0     0\n   0     1\nand 4 more rows; --rows 6 shows them all\n");
        let (_, out, _) = sql(
            &sample,
            &["select bout, 'a,\"b\"' as t, null as n from games where game = 0 order by bout", "--csv"],
        );
        assert_eq!(out, "bout,t,n\n0,\"a,\"\"b\"\"\",\n1,\"a,\"\"b\"\"\",\n2,\"a,\"\"b\"\"\",\n");
        let (_, out, _) = sql(&sample, &["select bout from games where bout > 5"]);
        assert_eq!(out, "The answer has no rows.\n");
    }

    #[test]
    fn what_cannot_be_answered_is_a_sentence() {
        let sample = SampleDataset::play(TOURNAMENT);
        for (question, sentence) in [
            ("selct 1", "this is no SQL: Expected"),
            ("select nods from moves", "there is no column `nods`; did you mean moves.nodes?"),
            ("select x from (select 1 as a)", "there is no column `x`; there are a"),
            ("select * from movs", "there is no table `movs`; there are games, moves and probes"),
            ("drop table games", "a question cannot change anything; ask with select"),
            ("copy games to 'x.csv'", "a question cannot change anything; ask with select"),
            ("set a.b = 1", "only questions are answered; ask with select"),
            ("select 1; select 2", "one question is answered at a time"),
            ("", "there is no question; ask with select"),
            ("select 1 / 0", "Divide by zero"),
        ] {
            let (code, out, err) = sql(&sample, &[question]);
            assert_eq!((code, out.as_str()), (2, ""), "{question}: {err}");
            assert!(err.starts_with("error: ") && err.contains(sentence), "{question}: {err}");
            assert_eq!(err.lines().count(), 1, "{err}");
        }
        fs::write(sample.file("games", 2), "no part").unwrap();
        let (code, _, err) = sql(&sample, &["select count(*) from games"]);
        assert!(code == 1 && err.contains(&sample.name("games", 2)), "{err}");
        fs::remove_file(sample.file("games", 2)).unwrap();
        let (code, _, err) = sql(&sample, &["select count(*) from games"]);
        assert!(code == 1 && err.contains("no part of games has the bouts from 2 to 2"), "{err}");
    }

    #[test]
    fn probes_are_asked_too() {
        let sample = SampleDataset::play(&PROBE.replace("name = \"probe\"", "name = \"small\""));
        let question =
            "select player, count(*), count(distinct bout) from probes group by player order by player";
        assert_eq!(rows(&sample, question), json!([["plain", 3, 3], ["pruned", 3, 3]]));
        assert_eq!(rows(&sample, "select count(*) from games"), json!([[0]]));
    }
}
