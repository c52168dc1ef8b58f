//! The report page is well-formed, self-contained, names every player and shows only finite numbers, for any run.

use std::num::NonZeroUsize;

use agon_analysis::Dataset;
use agon_analysis::report::{Availability, Question, Report, Settings};
use serde_json::json;

use agon_testing::sample::SampleDataset;
use agon_testing::specs::{PROBE, TOURNAMENT};

/// A game with four seats and two players.
const FOUR_SEATS: &str = r#"
name = "four"
game = { name = "virus", seats = 4, size = 6 }
seed = 3
limit = { nodes = 40 }
openings = { random_plies = 4 }
[tournament]
format = "round-robin"
bouts = 2
[[player]]
name = "max-n"
search = { algorithm = "max-n" }
[[player]]
name = "uct"
search = { algorithm = "uct" }
"#;

/// A sequential test that ends undecided.
const TEST: &str = r#"
name = "test"
game = "connect-four"
seed = 5
limit = { nodes = 80 }
openings = { random_plies = 4 }
[tournament]
format = "sprt"
bounds = [0, 50]
model = "normalised"
alpha = 0.05
beta = 0.05
max_bouts = 6
[[player]]
name = "deep"
search = { algorithm = "pvs" }
[[player]]
name = "shallow"
limit = { depth = 2 }
search = { algorithm = "alpha-beta" }
"#;

/// Players that do not search by depth.
const SAMPLING: &str = r#"
name = "sampling"
game = "tic-tac-toe"
seed = 5
limit = { nodes = 50 }
openings = { random_plies = 2 }
[tournament]
format = "round-robin"
bouts = 4
[[player]]
name = "c-1"
search = { algorithm = "uct", c = 1.0 }
[[player]]
name = "c-2"
search = { algorithm = "uct", c = 2.0 }
[[player]]
name = "chance"
search = { algorithm = "random" }
"#;

fn read(sample: &SampleDataset) -> Report {
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    let settings = Settings {
        replicas: NonZeroUsize::new(50).unwrap(),
        seed: 1,
        threads: NonZeroUsize::new(2).unwrap(),
    };
    Report::read(&dataset, &run, &settings, &|_| ()).unwrap()
}

/// Elements without an end tag.
const VOID: [&str; 2] = ["meta", "br"];

/// Checks that elements are nested correctly and attributes are quoted.
fn check_well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = page.strip_prefix("<!doctype html>\n").unwrap();
    // Style is not markup.
    let (before, rest) = body.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    for text in [before, after] {
        for (index, piece) in text.split('<').enumerate().skip(1) {
            let (tag, words) =
                piece.split_once('>').unwrap_or_else(|| panic!("piece {index} has no end: {piece}"));
            assert!(!words.contains('>'), "a stray > in {words:?}");
            let quotes = tag.matches('"').count();
            assert!(quotes % 2 == 0, "{tag}");
            // Every second piece is a quoted value; the others are attribute names.
            for name in tag.split('"').step_by(2) {
                assert!(!name.trim_end_matches('=').contains('='), "{tag}");
            }
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "in {tag}");
            } else if !tag.ends_with('/') {
                let name = tag.split_whitespace().next().unwrap();
                if !VOID.contains(&name) {
                    open.push(name);
                }
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    for reference in page.split('&').skip(1) {
        let name = reference.split(';').next().unwrap();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "&{name}");
    }
}

/// Checks the properties of every page and returns its text.
fn check(report: &Report) -> String {
    let page = report.page();
    check_well_formed(&page);
    for forbidden in ["http", " src=", "<script", "url(", "@import", "<link", "<img", "<iframe"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    for link in page.split("href=\"").skip(1) {
        let name = link.split('"').next().unwrap().strip_prefix('#').expect("all links are within the page");
        assert_eq!(page.matches(&format!(" id=\"{name}\"")).count(), 1, "{name}");
    }
    let words = words(&page);
    for word in words.split(|c: char| !c.is_alphanumeric()) {
        assert!(!["nan", "inf", "infinity"].contains(&word.to_lowercase().as_str()), "{words}");
    }
    for player in &report.players {
        assert!(words.contains(&player.name), "{}", player.name);
    }
    assert!(words.contains(&report.run) && words.contains(&report.answer));
    for svg in page.split("<svg ").skip(1) {
        let label = svg.split("aria-label=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(label.len() > 10, "a chart without a text alternative: {label}");
    }
    assert_eq!(page.matches("<table>").count(), page.matches("<caption>").count());
    assert_eq!(
        page.matches("<svg ").count(),
        page.matches("<details>").count(),
        "every chart has a data table"
    );
    assert!(page.len() < 500_000, "{} bytes", page.len());
    let json = serde_json::to_string(report).unwrap();
    assert!(!json.contains("NaN"));
    words
}

/// Returns the visible text of a page.
fn words(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let body = format!("{before}{}", rest.split_once("</style>").unwrap().1);
    let text: String =
        body.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, words)| words).collect();
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[test]
fn reports_tournament() {
    let report = read(&SampleDataset::play(TOURNAMENT));
    let words = check(&report);
    assert_eq!(
        (report.question, report.complete, report.counted, report.bouts),
        (Question::Tournament, true, 3, 3)
    );
    assert_eq!(report.lengths.as_ref().unwrap().games, 6);
    assert!(words.contains("deep") && words.contains("agon replay small-"), "{words}");
    assert!(words.contains("search = { algorithm = \"uct\" }"), "the spec is whole");
    // Efforts and pruning statistics cover the same searches.
    for (effort, measured) in report.efforts.iter().zip(&report.pruning.players) {
        assert_eq!((&effort.player, effort.searches), (&measured.player, measured.searches));
    }
}

#[test]
fn reports_four_seats() {
    let report = read(&SampleDataset::play(FOUR_SEATS));
    let words = check(&report);
    let Availability::Available(ratings) = &report.ratings else { panic!("{:?}", report.ratings) };
    assert_eq!(ratings.seat_effects.len(), 4);
    assert!(words.contains("against the mean of all seats"), "{words}");
    assert!(report.moments.iter().all(|moment| !moment.duel));
}

#[test]
fn reports_sequential_test() {
    let report = read(&SampleDataset::play(TEST));
    let words = check(&report);
    assert_eq!(report.question, Question::Test);
    let test = report.test.as_ref().unwrap();
    assert_eq!((test.player.as_str(), test.against.as_str()), ("deep", "shallow"));
    assert!(words.contains("log-likelihood ratio"), "{words}");
    assert_eq!(test.verdict == "continue", report.answer.starts_with("Not decided"), "{}", report.answer);
}

#[test]
fn reports_probe() {
    let report = read(&SampleDataset::play(PROBE));
    let words = check(&report);
    assert_eq!((report.question, report.counted, report.lengths.is_none()), (Question::Probe, 3, true));
    assert!(report.answer.starts_with("pruned needs the fewest nodes to depth 3"), "{}", report.answer);
    assert!(words.contains("times the nodes of plain"), "{words}");
    for absent in ["Ratings", "Head-to-head results", "Decisive moments", "The longest games"] {
        assert!(!words.contains(absent), "{absent}");
    }
}

#[test]
fn reports_probe_of_one_player() {
    let (alone, _) = PROBE.rsplit_once("[[player]]").unwrap();
    let report = read(&SampleDataset::play(alone));
    check(&report);
    assert_eq!(report.answer, "plain is the only player, so there is no comparison.");
}

#[test]
fn reports_players_without_depth() {
    let report = read(&SampleDataset::play(SAMPLING));
    let words = check(&report);
    assert!(words.contains("No player searched by depth"), "{words}");
    assert!(!words.contains("Nodes by depth") && !words.contains("Depth by ply"), "{words}");
}

#[test]
fn reports_drawn_games() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    for rows in sample.bouts.values_mut() {
        rows.games.iter_mut().for_each(|game| game.payoffs = vec![0, 0]);
    }
    sample.write();
    let report = read(&sample);
    check(&report);
    assert_eq!(report.answer, "The players are equal: every game was drawn.");
    assert!(report.moments.is_empty());
}

/// For both players as the reference of the scale.
#[test]
fn reports_perfect_score() {
    for winner in ["deep", "wide"] {
        let mut sample = SampleDataset::play(TOURNAMENT);
        for rows in sample.bouts.values_mut() {
            for game in &mut rows.games {
                let won = |name: &String| if name == winner { 1 } else { -1 };
                game.payoffs = game.players.iter().map(won).collect();
            }
        }
        sample.write();
        let report = read(&sample);
        let words = check(&report);
        assert_eq!(report.answer, format!("{winner} is the stronger of two players: it won every game."));
        assert!(words.contains("Elo above") && words.contains("has only a bound"), "{words}");
        // The winner has no interval.
        assert!(!words.contains("relative to the mean ("), "{words}");
    }
}

/// The line of a fitted tree ends where most searches did.
#[test]
fn rare_depths_are_rings() {
    let report = read(&SampleDataset::play(&TOURNAMENT.replace("nodes = 60", "nodes = 150")));
    let by_depth = &report.pruning.by_depth;
    let most = |name: &str| by_depth.iter().filter(|row| row.player == name).map(|row| row.searches).max();
    let few = by_depth.iter().filter(|row| most(&row.player).is_some_and(|most| 2 * row.searches < most));
    let (few, page) = (few.count(), report.page());
    assert!(few > 0, "{by_depth:?}");
    assert_eq!(
        (page.matches("\"ring ").count(), page.matches("class=\"dot s").count()),
        (few, by_depth.len() - few)
    );
}

#[test]
fn reports_unfinished_runs() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.bouts.remove(&2);
    sample.manifest["state"] = json!("running");
    sample.manifest["committed"] = json!(2);
    sample.write();
    let report = read(&sample);
    let words = check(&report);
    assert!(!report.complete && words.contains("Unfinished (running): 2 of 3 bouts"), "{words}");
    // No bout yet.
    sample.bouts.clear();
    sample.manifest["committed"] = json!(0);
    sample.write();
    let words = check(&read(&sample));
    assert!(words.contains("0 of 3 bouts are in the dataset so far"), "{words}");
    let mut sample = SampleDataset::play(PROBE);
    sample.bouts.clear();
    sample.manifest["state"] = json!("running");
    sample.manifest["committed"] = json!(0);
    sample.write();
    let report = read(&sample);
    check(&report);
    assert_eq!(report.answer, "No position has been searched yet.");
}

#[test]
fn voided_bouts_are_excluded() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    sample.manifest["voided"] = json!([1]);
    sample.write_manifest();
    let report = read(&sample);
    check(&report);
    assert_eq!((report.counted, report.voided, report.lengths.as_ref().unwrap().games), (2, 1, 4));
    assert!(report.moments.iter().all(|moment| moment.game.bout != 1));
}

/// Specs reject such names, but the page does not rely on it.
#[test]
fn names_are_escaped() {
    let mut report = read(&SampleDataset::play(TOURNAMENT));
    let hostile = "<b onload=\"x\">&amp;'</b></style></svg>";
    report.run = hostile.to_string();
    report.answer = hostile.to_string();
    report.game = hostile.to_string();
    report.reproduction.spec = hostile.to_string();
    report.players[0].name = hostile.to_string();
    report.efforts[0].player = hostile.to_string();
    report.pruning.players[0].player = hostile.to_string();
    report.pruning.by_depth.iter_mut().for_each(|row| row.player = hostile.to_string());
    if let Availability::Available(ratings) = &mut report.ratings {
        ratings.players.iter_mut().for_each(|player| player.name = hostile.to_string());
    }
    if let Availability::Available(table) = &mut report.crosstable {
        table.names[0] = hostile.to_string();
    }
    for moment in &mut report.moments {
        moment.board = hostile.to_string();
        moment.loser = hostile.to_string();
        moment.game.ending = hostile.to_string();
    }
    let page = report.page();
    check_well_formed(&page);
    assert!(!page.contains("<b ") && page.contains("&lt;b onload"), "{page}");
}

#[test]
fn reports_twelve_players() {
    let head = TOURNAMENT.split("[[player]]").next().unwrap();
    let mut text = head.replace("bouts = 3", "bouts = 1").replace("limit = { nodes = 60 }\n", "");
    for index in 0..12 {
        let name = if index % 4 == 0 { "a-name-that-is-rather-long-for-a-player" } else { "p" };
        text.push_str(&format!(
            "[[player]]\nname = \"{name}-{index}\"\nlimit = {{ nodes = {} }}\nsearch = {{ algorithm = \"pvs\" }}\n",
            20 + 10 * index
        ));
    }
    let report = read(&SampleDataset::play(&text));
    check(&report);
    let Availability::Available(ratings) = &report.ratings else { panic!("{:?}", report.ratings) };
    assert_eq!(ratings.players.len(), 12);
}

#[test]
fn page_does_not_depend_on_threads() {
    let sample = SampleDataset::play(TOURNAMENT);
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    let page = |threads: usize| {
        let (replicas, threads) = (NonZeroUsize::new(50).unwrap(), NonZeroUsize::new(threads).unwrap());
        Report::read(&dataset, &run, &Settings { replicas, seed: 1, threads }, &|_| ()).unwrap().page()
    };
    assert_eq!(page(1), page(4));
}

#[test]
fn damaged_part_is_named() {
    let sample = SampleDataset::play(TOURNAMENT);
    let file = sample.part_file("moves", 0);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].iter_mut().for_each(|byte| *byte = 0);
    std::fs::write(&file, bytes).unwrap();
    let dataset = Dataset::open(sample.folder()).unwrap();
    let run = dataset.find("latest").unwrap();
    let settings = Settings { replicas: NonZeroUsize::MIN, seed: 1, threads: NonZeroUsize::MIN };
    let error = Report::read(&dataset, &run, &settings, &|_| ()).unwrap_err().to_string();
    assert!(error.contains(file.file_name().unwrap().to_str().unwrap()), "{error}");
}
