//! `agon sql`: queries, errors and exit codes with the feature `sql`, and the hint without it.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use agon_testing::binary::agon_on;
use agon_testing::sample::SampleDataset;
use agon_testing::specs::TOURNAMENT;

/// Calls `agon sql` on a sample dataset and returns its exit code, standard output and standard error.
fn sql(sample: &SampleDataset, arguments: &[&str]) -> (i32, String, String) {
    agon_on(sample, &[&["sql", "small"], arguments].concat())
}

#[cfg(not(feature = "sql"))]
#[test]
fn sql_names_the_missing_feature() {
    let (code, out, err) = sql(&SampleDataset::play(TOURNAMENT), &["select 1"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.starts_with("error: ")
            && err.contains("`cargo build --release --features sql`")
            && err.contains("DuckDB"),
        "{err}"
    );
    let (code, ..) = sql(&SampleDataset::play(TOURNAMENT), &["select 1", "--csv", "--json"]);
    assert_eq!(code, 2, "the arguments are still validated");
}

#[cfg(feature = "sql")]
mod with {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use agon_testing::specs::{PROBE, vary};

    fn rows(sample: &SampleDataset, question: &str) -> Value {
        let (code, out, err) = sql(sample, &[question, "--json"]);
        assert_eq!((code, err.as_str()), (0, ""), "{question}");
        let document: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(document["run"], json!(sample.id));
        document["rows"].clone()
    }

    #[test]
    fn tables_contain_the_rows_of_the_run() {
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
        // Voided bouts are not part of the tables.
        sample.manifest["voided"] = json!([1]);
        sample.write_manifest();
        assert_eq!(rows(&sample, "select distinct bout from moves order by bout"), json!([[0], [2]]));
        assert_eq!(
            rows(&sample, "select 0.0 / 0.0, null, true, [1, null]"),
            json!([[null, null, true, [1, null]]])
        );
    }

    #[test]
    fn output_fits_terminal_and_programs() {
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
    fn rejects_invalid_queries() {
        let sample = SampleDataset::play(TOURNAMENT);
        for (question, message) in [
            ("selct 1", "invalid SQL: Expected"),
            ("select nods from moves", "there is no column `nods`; did you mean moves.nodes?"),
            ("select x from (select 1 as a)", "there is no column `x`; there are a"),
            ("select * from movs", "there is no table `movs`; there are games, moves and probes"),
            ("drop table games", "datasets are read-only; use select"),
            ("copy games to 'x.csv'", "datasets are read-only; use select"),
            ("set a.b = 1", "only queries are supported; use select"),
            ("select 1; select 2", "only one statement is supported at a time"),
            ("", "the query is empty; use select"),
            ("select 1 / 0", "Divide by zero"),
        ] {
            let (code, out, err) = sql(&sample, &[question]);
            assert_eq!((code, out.as_str()), (2, ""), "{question}: {err}");
            assert!(err.starts_with("error: ") && err.contains(message), "{question}: {err}");
            assert_eq!(err.lines().count(), 1, "{err}");
        }
        fs::write(sample.part_file("games", 2), "no part").unwrap();
        let (code, _, err) = sql(&sample, &["select count(*) from games"]);
        assert!(code == 1 && err.contains(&sample.part_name("games", 2)), "{err}");
        fs::remove_file(sample.part_file("games", 2)).unwrap();
        let (code, _, err) = sql(&sample, &["select count(*) from games"]);
        assert!(code == 1 && err.contains("no part of games has the bouts from 2 to 2"), "{err}");
    }

    #[test]
    fn queries_probes() {
        let sample = SampleDataset::play(&vary(PROBE).name("small"));
        let question =
            "select player, count(*), count(distinct bout) from probes group by player order by player";
        assert_eq!(rows(&sample, question), json!([["plain", 3, 3], ["pruned", 3, 3]]));
        assert_eq!(rows(&sample, "select count(*) from games"), json!([[0]]));
    }

    #[test]
    fn a_column_that_an_older_part_lacks_is_null() {
        let sample = SampleDataset::play(TOURNAMENT);
        let older = "../records/tests/games-without-settings.parquet";
        fs::copy(older, sample.part_file("games", 0)).unwrap();
        let counts = "select count(*) > 0, count(settings) from games where settings is null";
        assert_eq!(rows(&sample, counts), json!([[true, 0]]));
        let (code, _, err) = sql(&sample, &["select * from games"]);
        assert_eq!((code, err.as_str()), (0, ""));
    }
}
