//! Answers that would be wrong, or say too little: each is refused, or told, in one sentence.

use std::fs;

use serde_json::json;

use super::sample::{PROBE, SampleDataset, TOURNAMENT};
use super::{agon, json_of, refused, words};

#[test]
fn a_mistyped_run_is_recognised() {
    let sample = SampleDataset::play(TOURNAMENT);
    for typed in ["snall", "SMALL", "smal-run", &sample.id.to_uppercase()] {
        let sentence = format!("there is no run `{typed}`; did you mean {}?", sample.id);
        refused(&sample, &["ratings", typed], 2, &sentence);
    }
    refused(&sample, &["ratings", "x"], 2, &format!("there is no run `x`; there is only {}", sample.id));
    // A long list is cut.
    for index in 0..20 {
        fs::write(sample.folder().join(format!("runs/other-{index}.json")), "").unwrap();
    }
    refused(&sample, &["ratings", "x"], 2, "and 13 more");
    refused(&sample, &["ratings", "other"], 2, "and 12 more");
}

#[test]
fn a_probe_has_no_games() {
    let probe = SampleDataset::play(PROBE);
    for call in
        [&["games"][..], &["games", "--json"], &["games", "--show", "0.0"], &["games", "--export", "text"]]
    {
        refused(&probe, call, 2, "is a probe: it has searches and no games; `agon pruning");
    }
}

#[test]
fn games_that_are_missing_are_named() {
    let sample = SampleDataset::play(TOURNAMENT);
    fs::remove_file(sample.file("games", 2)).unwrap();
    let sentence = "no part of games has the bouts from 2 to 2; fetch or export them again";
    for call in
        [&["games"][..], &["games", "--json"], &["games", "--show", "2.0"], &["games", "--export", "text"]]
    {
        refused(&sample, call, 1, sentence);
    }
    // Others are there.
    assert!(words(&sample, &["games", "--bout", "0-1"]).contains("1.1"));
    words(&sample, &["games", "--show", "1.0"]);
}

#[test]
fn damage_is_told_once_with_a_remedy() {
    for (table, call) in [("games", "ratings"), ("games", "games"), ("moves", "pruning"), ("moves", "report")]
    {
        let sample = SampleDataset::play(TOURNAMENT);
        let file = sample.file(table, 0);
        let mut bytes = fs::read(&file).unwrap();
        // All pages, and not the directory at the end.
        let half = bytes.len() / 2;
        bytes[4..half].iter_mut().for_each(|byte| *byte ^= 0xff);
        fs::write(&file, bytes).unwrap();
        let (code, out, err) = agon(&sample, &[call]);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert_eq!(err.matches("damaged").count(), 1, "{err}");
        assert!(
            err.contains(&sample.name(table, 0)) && err.ends_with("; fetch or export it again\n"),
            "{err}"
        );
    }
}

/// Of two players the scale hangs on one, and nothing is known of it.
#[test]
fn who_won_everything_has_no_interval() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    for game in sample.bouts.values_mut().flat_map(|rows| &mut rows.games) {
        game.payoffs = game.players.iter().map(|name| if name == "deep" { 1 } else { -1 }).collect();
    }
    sample.write();
    for replicas in ["0", "20"] {
        let (_, told) = json_of(&sample, &["ratings", "--json", "--replicas", replicas]);
        let players = told["players"].as_array().unwrap();
        let rated: Vec<_> = players.iter().filter(|player| player["bound"].is_null()).collect();
        assert_eq!(rated.len(), 1, "{told}");
        assert_eq!((&rated[0]["low"], &rated[0]["high"]), (&json!(null), &json!(null)), "{told}");
        let out = words(&sample, &["ratings", "--replicas", replicas]);
        assert!(!out.contains("0.0  0.0"), "{out}");
    }
}
