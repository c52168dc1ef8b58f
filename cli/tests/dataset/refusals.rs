//! Rejected calls and incomplete answers, each with one message that includes the remedy.

use std::fs;

use agon_testing::sample::SampleDataset;
use agon_testing::specs::{PROBE, TOURNAMENT};
use serde_json::json;

use super::{agon, assert_refused, json_of, text};

#[test]
fn suggests_run_for_typo() {
    let sample = SampleDataset::play(TOURNAMENT);
    for typed in ["snall", "SMALL", "smal-run", &sample.id.to_uppercase()] {
        let message = format!("there is no run `{typed}`; did you mean {}?", sample.id);
        assert_refused(&sample, &["ratings", typed], 2, &message);
    }
    assert_refused(
        &sample,
        &["ratings", "x"],
        2,
        &format!("there is no run `x`; there is only {}", sample.id),
    );
    // A long list is truncated.
    for index in 0..20 {
        fs::write(sample.folder().join(format!("runs/other-{index}.json")), "").unwrap();
    }
    assert_refused(&sample, &["ratings", "x"], 2, "and 13 more");
    assert_refused(&sample, &["ratings", "other"], 2, "and 12 more");
}

#[test]
fn probe_has_no_games() {
    let probe = SampleDataset::play(PROBE);
    for call in
        [&["games"][..], &["games", "--json"], &["games", "--show", "0.0"], &["games", "--export", "text"]]
    {
        assert_refused(&probe, call, 2, "is a probe: it has searches and no games; use `agon pruning");
    }
}

#[test]
fn reports_missing_games() {
    let sample = SampleDataset::play(TOURNAMENT);
    fs::remove_file(sample.part_file("games", 2)).unwrap();
    let message = "no part of games has the bouts from 2 to 2; fetch or export them again";
    for call in
        [&["games"][..], &["games", "--json"], &["games", "--show", "2.0"], &["games", "--export", "text"]]
    {
        assert_refused(&sample, call, 1, message);
    }
    // The other games are available.
    assert!(text(&sample, &["games", "--bout", "0-1"]).contains("1.1"));
    text(&sample, &["games", "--show", "1.0"]);
}

#[test]
fn reports_damage_once_with_remedy() {
    for (table, call) in [("games", "ratings"), ("games", "games"), ("moves", "pruning"), ("moves", "report")]
    {
        let sample = SampleDataset::play(TOURNAMENT);
        let file = sample.part_file(table, 0);
        let mut bytes = fs::read(&file).unwrap();
        // Damages the pages but not the footer.
        let half = bytes.len() / 2;
        bytes[4..half].iter_mut().for_each(|byte| *byte ^= 0xff);
        fs::write(&file, bytes).unwrap();
        let (code, out, err) = agon(&sample, &[call]);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert_eq!(err.matches("damaged").count(), 1, "{err}");
        assert!(
            err.contains(&sample.part_name(table, 0)) && err.ends_with("; fetch or export it again\n"),
            "{err}"
        );
    }
}

/// The winner of every game is ahead, and the intervals are open on one side.
#[test]
fn perfect_score_has_open_interval() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    for game in sample.bouts.values_mut().flat_map(|rows| &mut rows.games) {
        game.payoffs = game.players.iter().map(|name| if name == "deep" { 1 } else { -1 }).collect();
    }
    sample.write();
    let (_, document) = json_of(&sample, &["ratings", "--json"]);
    let [winner, loser] = &document["players"].as_array().unwrap()[..] else { panic!("{document}") };
    assert_eq!(
        (&winner["name"], &winner["bound"], &winner["high"]),
        (&json!("deep"), &json!("at_least"), &json!(null))
    );
    assert_eq!((&loser["bound"], &loser["elo"]), (&json!("at_most"), &json!(0.0)));
    assert!(winner["elo"].as_f64() > loser["elo"].as_f64() && winner["low"].is_number(), "{document}");
}
